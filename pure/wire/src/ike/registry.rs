//! Numbers of "Internet Key Exchange Version 2 (IKEv2) Parameters" that we send, understand or name
//! in a log. Our private-use numbers are in the same types, below a comment. They are sent only to
//! peers that sent our vendor ID.

use crate::registry;

registry! {
    /// Exchange types (RFC 7296 section 3.1).
    pub struct ExchangeType(u8) {
        IKE_SA_INIT = 34,
        IKE_AUTH = 35,
        CREATE_CHILD_SA = 36,
        INFORMATIONAL = 37,
        IKE_SESSION_RESUME = 38,
        IKE_INTERMEDIATE = 43,
        IKE_FOLLOWUP_KE = 44,
        // Private use, 240 to 255.
        KEY_DISTRIBUTE = 240,
        KEY_REQUEST = 241,
        SKID_RESUME = 242,
    }
}

registry! {
    /// Payload types (RFC 7296 section 3.2).
    pub struct PayloadType(u8) {
        NONE = 0,
        SA = 33,
        KE = 34,
        IDI = 35,
        IDR = 36,
        CERT = 37,
        CERTREQ = 38,
        AUTH = 39,
        NONCE = 40,
        NOTIFY = 41,
        DELETE = 42,
        VENDOR_ID = 43,
        TSI = 44,
        TSR = 45,
        SK = 46,
        CP = 47,
        EAP = 48,
        SKF = 53,
        // Private use, 128 to 255.
        GRANT = 200,
        SECRET = 201,
    }
}

registry! {
    /// Security protocols (RFC 7296 section 3.3.1).
    pub struct Protocol(u8) { NONE = 0, IKE = 1, AH = 2, ESP = 3 }
}

registry! {
    /// Transform types (RFC 7296 section 3.3.2, RFC 9370 section 3).
    pub struct TransformType(u8) {
        ENCR = 1,
        PRF = 2,
        INTEG = 3,
        KE = 4,
        ESN = 5,
        ADDKE1 = 6,
        ADDKE2 = 7,
        ADDKE3 = 8,
        ADDKE4 = 9,
        ADDKE5 = 10,
        ADDKE6 = 11,
        ADDKE7 = 12,
    }
}

registry! {
    /// Encryption transforms (RFC 7296 section 3.3.2, RFC 4106, RFC 4543, RFC 7634, RFC 8750).
    pub struct EncryptionId(u16) {
        NULL = 11,
        AES_CBC = 12,
        AES_GCM_16 = 20,
        NULL_AUTH_AES_GMAC = 21,
        CHACHA20_POLY1305 = 28,
        AES_GCM_16_IIV = 30,
        CHACHA20_POLY1305_IIV = 31,
        // Private use, for zones only: the IV is the sequence number, as in RFC 8750 for AEADs.
        AES_GMAC_IIV = 41100,
        AES_CTR_IIV = 41101,
    }
}

registry! {
    /// Pseudorandom functions (RFC 7296 section 3.3.2, RFC 4868).
    pub struct PrfId(u16) { HMAC_SHA1 = 2, HMAC_SHA2_256 = 5, HMAC_SHA2_384 = 6, HMAC_SHA2_512 = 7 }
}

registry! {
    /// Integrity transforms (RFC 7296 section 3.3.2, RFC 4868). AEADs need none.
    pub struct IntegrityId(u16) {
        NONE = 0,
        HMAC_SHA2_256_128 = 12,
        HMAC_SHA2_384_192 = 13,
        HMAC_SHA2_512_256 = 14,
        // Private use, for zones only: HMACs that are not cut.
        HMAC_SHA2_256_256 = 41100,
        HMAC_SHA2_384_384 = 41101,
        HMAC_SHA2_512_512 = 41102,
    }
}

registry! {
    /// Key exchange methods (RFC 7296 section 3.3.2, RFC 3526, RFC 5903, RFC 8031,
    /// draft-ietf-ipsecme-ikev2-mlkem).
    pub struct GroupId(u16) {
        NONE = 0,
        MODP_2048 = 14,
        MODP_3072 = 15,
        SECP256R1 = 19,
        SECP384R1 = 20,
        CURVE25519 = 31,
        ML_KEM_512 = 35,
        ML_KEM_768 = 36,
        ML_KEM_1024 = 37,
    }
}

registry! {
    /// Extended sequence numbers (RFC 7296 section 3.3.2).
    pub struct EsnId(u16) { NO = 0, YES = 1 }
}

registry! {
    /// Identification types (RFC 7296 section 3.5).
    pub struct IdType(u8) {
        IPV4_ADDR = 1,
        FQDN = 2,
        RFC822_ADDR = 3,
        IPV6_ADDR = 5,
        DER_ASN1_DN = 9,
        DER_ASN1_GN = 10,
        KEY_ID = 11,
    }
}

registry! {
    /// Authentication methods (RFC 7296 section 3.8).
    pub struct AuthMethod(u8) {
        RSA_SIGNATURE = 1,
        SHARED_KEY = 2,
        // RFC 4754.
        ECDSA_P256 = 9,
        ECDSA_P384 = 10,
        DIGITAL_SIGNATURE = 14,
    }
}

registry! {
    /// Traffic selector types (RFC 7296 section 3.13.1).
    pub struct TsType(u8) { IPV4_ADDR_RANGE = 7, IPV6_ADDR_RANGE = 8 }
}

registry! {
    /// Notify messages: errors below 16384, status from there (RFC 7296 section 3.10.1).
    pub struct NotifyType(u16) {
        UNSUPPORTED_CRITICAL_PAYLOAD = 1,
        INVALID_IKE_SPI = 4,
        INVALID_MAJOR_VERSION = 5,
        INVALID_SYNTAX = 7,
        INVALID_MESSAGE_ID = 9,
        INVALID_SPI = 11,
        NO_PROPOSAL_CHOSEN = 14,
        INVALID_KE_PAYLOAD = 17,
        AUTHENTICATION_FAILED = 24,
        SINGLE_PAIR_REQUIRED = 34,
        NO_ADDITIONAL_SAS = 35,
        INTERNAL_ADDRESS_FAILURE = 36,
        FAILED_CP_REQUIRED = 37,
        TS_UNACCEPTABLE = 38,
        INVALID_SELECTORS = 39,
        UNACCEPTABLE_ADDRESSES = 40,
        UNEXPECTED_NAT_DETECTED = 41,
        TEMPORARY_FAILURE = 43,
        CHILD_SA_NOT_FOUND = 44,
        STATE_NOT_FOUND = 47,
        TS_MAX_QUEUE = 48,
        INITIAL_CONTACT = 16384,
        SET_WINDOW_SIZE = 16385,
        ADDITIONAL_TS_POSSIBLE = 16386,
        NAT_DETECTION_SOURCE_IP = 16388,
        NAT_DETECTION_DESTINATION_IP = 16389,
        COOKIE = 16390,
        USE_TRANSPORT_MODE = 16391,
        REKEY_SA = 16393,
        ESP_TFC_PADDING_NOT_SUPPORTED = 16394,
        MOBIKE_SUPPORTED = 16396,
        ADDITIONAL_IP4_ADDRESS = 16397,
        ADDITIONAL_IP6_ADDRESS = 16398,
        NO_ADDITIONAL_ADDRESSES = 16399,
        UPDATE_SA_ADDRESSES = 16400,
        COOKIE2 = 16401,
        NO_NATS_ALLOWED = 16402,
        AUTH_LIFETIME = 16403,
        MULTIPLE_AUTH_SUPPORTED = 16404,
        REDIRECT_SUPPORTED = 16406,
        REDIRECT = 16407,
        REDIRECTED_FROM = 16408,
        TICKET_LT_OPAQUE = 16409,
        TICKET_REQUEST = 16410,
        TICKET_ACK = 16411,
        TICKET_NACK = 16412,
        TICKET_OPAQUE = 16413,
        EAP_ONLY_AUTHENTICATION = 16417,
        CHILDLESS_IKEV2_SUPPORTED = 16418,
        QCD_TOKEN = 16419,
        IKEV2_MESSAGE_ID_SYNC_SUPPORTED = 16420,
        IKEV2_FRAGMENTATION_SUPPORTED = 16430,
        SIGNATURE_HASH_ALGORITHMS = 16431,
        CLONE_IKE_SA_SUPPORTED = 16432,
        CLONE_IKE_SA = 16433,
        USE_PPK = 16435,
        PPK_IDENTITY = 16436,
        NO_PPK_AUTH = 16437,
        INTERMEDIATE_EXCHANGE_SUPPORTED = 16438,
        ADDITIONAL_KEY_EXCHANGE = 16441,
        SA_RESOURCE_INFO = 16444,
        // Private use: errors 8192 to 16383, status 40960 to 65535. PRIVATE_ERROR stands for any
        // private error of a peer whose meaning is unknown, and is never sent.
        PRIVATE_ERROR = 8192,
        KEY_REFUSED = 12288,
        ZONES_REQUIRED = 12289,
        OFFER_REFUSED = 12290,
        // Number of strongSwan, until draft-ietf-ipsecme-ikev2-beet-mode assigns one.
        USE_BEET_MODE = 40961,
        ZONE_MAP = 41100,
        KEY_ACCEPTED = 41101,
        REVOKE = 41102,
        CERTIFICATE_REFUSED = 41103,
        LEVEL_GRANT = 41104,
        OFFER = 41105,
        NEIGHBOURS = 41106,
        ONWARD = 41107,
        TOKEN = 41108,
        SESSION_REQUEST = 41109,
        SESSION = 41110,
        PING_COUNTS = 41111,
        ADD_SA_ADDRESS = 41112,
        REMOVE_SA_ADDRESS = 41113,
        IP_PARAMETER = 41114,
        PLACE = 41115,
        PATH_SELECTORS = 41116,
    }
}

registry! {
    /// Private: reason for the refusal of a KEY_DISTRIBUTE or KEY_REQUEST.
    pub struct RefusalCode(u16) {
        NOT_A_LICENSED_NODE = 1,
        NOT_THE_GATEWAY = 2,
        INVALID_GRANT = 3,
        TOO_MANY_GRANTS = 4,
        NOT_A_NEIGHBOUR = 5,
        INVALID_TOKEN = 6,
        UNKNOWN_GRANT = 7,
        WRONG_TOKEN = 8,
        STALE_TOKEN = 9,
        USED_TOKEN = 10,
        NOT_LICENSED = 11,
        BUSY = 12,
    }
}

registry! {
    /// Certificate encodings (RFC 7296 section 3.6, RFC 7670 section 3).
    pub struct CertificateEncoding(u8) { X509_SIGNATURE = 4, HASH_AND_URL = 12, RAW_PUBLIC_KEY = 15 }
}

registry! {
    /// Private: reason for the refusal of a certificate, in addition to AUTHENTICATION_FAILED.
    pub struct CertificateRefusal(u16) {
        EXPIRED = 1,
        NOT_YET_VALID = 2,
        UNKNOWN_AUTHORITY = 3,
        WRONG_NAME = 4,
        WRONG_USAGE = 5,
        WRONG_SIGNATURE = 6,
        INVALID = 7,
        REVOKED = 8,
        REVOCATION_UNKNOWN = 9,
        WRONG_UNIT = 10,
        UNSUPPORTED = 11,
    }
}

registry! {
    /// Kinds of Configuration payloads (RFC 7296 section 3.15).
    pub struct ConfigurationType(u8) { CFG_REQUEST = 1, CFG_REPLY = 2, CFG_SET = 3, CFG_ACK = 4 }
}

registry! {
    /// Attributes of a Configuration payload (RFC 7296 section 3.15.1, RFC 8598).
    pub struct AttributeType(u16) {
        INTERNAL_IP4_ADDRESS = 1,
        INTERNAL_IP4_NETMASK = 2,
        INTERNAL_IP4_DNS = 3,
        APPLICATION_VERSION = 7,
        INTERNAL_IP6_ADDRESS = 8,
        INTERNAL_IP6_DNS = 10,
        INTERNAL_IP4_SUBNET = 13,
        SUPPORTED_ATTRIBUTES = 14,
        INTERNAL_IP6_SUBNET = 15,
        INTERNAL_DNS_DOMAIN = 25,
    }
}

registry! {
    /// Private: direction of the packets that the key of a SECRET payload opens.
    pub struct KeyDirection(u8) { FROM_GATEWAY = 1, TO_GATEWAY = 2 }
}

impl AuthMethod {
    /// Returns true if AUTH holds a signature.
    pub const fn is_signature(self) -> bool {
        matches!(
            self,
            Self::RSA_SIGNATURE | Self::ECDSA_P256 | Self::ECDSA_P384 | Self::DIGITAL_SIGNATURE
        )
    }
}

impl NotifyType {
    /// Returns true if this notify reports an error (RFC 7296 section 3.10.1).
    pub const fn is_error(self) -> bool {
        self.0 < 16384
    }

    /// Returns true for our private notifies, which have a meaning only for peers that sent our
    /// vendor ID.
    pub const fn is_private(self) -> bool {
        matches!(
            self,
            Self::KEY_REFUSED | Self::ZONES_REQUIRED | Self::OFFER_REFUSED | Self::USE_BEET_MODE
        ) || Self::ZONE_MAP.0 <= self.0 && self.0 <= Self::PATH_SELECTORS.0
    }
}

impl ExchangeType {
    /// Returns true for our private exchanges.
    pub const fn is_private(self) -> bool {
        matches!(
            self,
            Self::KEY_DISTRIBUTE | Self::KEY_REQUEST | Self::SKID_RESUME
        )
    }
}

impl TransformType {
    /// Returns true for key exchanges after the first one (RFC 9370 section 2.2.1).
    pub const fn is_additional(self) -> bool {
        Self::ADDKE1.0 <= self.0 && self.0 <= Self::ADDKE7.0
    }
}

impl PayloadType {
    /// Returns true for our private payloads.
    pub const fn is_private(self) -> bool {
        matches!(self, Self::GRANT | Self::SECRET)
    }

    /// Returns true if RFC 7296 defines the type. The critical bit of such payloads is ignored,
    /// even if we skip them (section 2.5: "MUST be ignored by the recipient if the recipient
    /// understands the payload type code").
    pub const fn is_standard(self) -> bool {
        Self::SA.0 <= self.0 && self.0 <= Self::EAP.0
    }
}
