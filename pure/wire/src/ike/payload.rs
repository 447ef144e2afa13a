//! Payloads of a message, by type (RFC 7296 section 3.2 and following).

use super::{
    AuthMethod, CertificateEncoding, Configuration, Delete, GrantOffer, GroupId, Identification,
    Notify, PayloadType, Proposal, SecretShare, TrafficSelectors,
};
use crate::codec::{Codec, Malformed, Reader};

/// Nonces are 16 to 256 octets (RFC 7296 section 3.9).
const NONCE_LEN: std::ops::RangeInclusive<usize> = 16..=256;

/// A payload. Unsupported types keep their content unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Proposals, or the chosen proposal (section 3.3).
    SecurityAssociation(Vec<Proposal>),
    /// A public value (section 3.4).
    KeyExchange(KeyExchange),
    /// Identity of the initiator (section 3.5).
    IdInitiator(Identification),
    /// Identity of the responder, or the identity that the initiator expects (section 3.5).
    IdResponder(Identification),
    /// The proof of identity (section 3.8).
    Authentication(Authentication),
    /// A certificate of the sender's chain (section 3.6).
    Certificate {
        /// Encoding of the data.
        encoding: CertificateEncoding,
        /// One certificate.
        data: Vec<u8>,
    },
    /// CAs that the sender trusts (section 3.7).
    CertificateRequest {
        /// Requested kind of certificate.
        encoding: CertificateEncoding,
        /// SHA-1 hashes of the CAs' public keys, concatenated.
        data: Vec<u8>,
    },
    /// A nonce of 16 to 256 octets (section 3.9).
    Nonce(Vec<u8>),
    /// An error or a status (section 3.10).
    Notify(Notify),
    /// Deleted SAs (section 3.11).
    Delete(Delete),
    /// Hash that identifies extensions supported by the sender (section 3.12).
    VendorId(Vec<u8>),
    /// Traffic selectors of the initiator's side (section 3.13).
    TsInitiator(TrafficSelectors),
    /// Traffic selectors of the responder's side (section 3.13).
    TsResponder(TrafficSelectors),
    /// Addresses and other settings for use inside the tunnel (section 3.15).
    Configuration(Configuration),
    /// Private: a grant for a licensed node.
    Grant(GrantOffer),
    /// Private: the key of one zone in one direction.
    Secret(SecretShare),
    /// A payload of an unsupported type.
    Other {
        /// Payload type.
        kind: PayloadType,
        /// True if a recipient that does not know the type has to refuse the message.
        critical: bool,
        /// Content of the payload.
        data: Vec<u8>,
    },
}

/// A public value with its key exchange method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyExchange {
    /// Key exchange method.
    pub group: GroupId,
    /// Public value as received, of any length.
    pub public: Vec<u8>,
}

/// A proof of identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// Authentication method.
    pub method: AuthMethod,
    /// The MAC or signature.
    pub data: Vec<u8>,
}

impl Payload {
    /// Returns the payload type.
    pub const fn kind(&self) -> PayloadType {
        match self {
            Self::SecurityAssociation(_) => PayloadType::SA,
            Self::KeyExchange(_) => PayloadType::KE,
            Self::IdInitiator(_) => PayloadType::IDI,
            Self::IdResponder(_) => PayloadType::IDR,
            Self::Authentication(_) => PayloadType::AUTH,
            Self::Certificate { .. } => PayloadType::CERT,
            Self::CertificateRequest { .. } => PayloadType::CERTREQ,
            Self::Nonce(_) => PayloadType::NONCE,
            Self::Notify(_) => PayloadType::NOTIFY,
            Self::Delete(_) => PayloadType::DELETE,
            Self::VendorId(_) => PayloadType::VENDOR_ID,
            Self::TsInitiator(_) => PayloadType::TSI,
            Self::TsResponder(_) => PayloadType::TSR,
            Self::Configuration(_) => PayloadType::CP,
            Self::Grant(_) => PayloadType::GRANT,
            Self::Secret(_) => PayloadType::SECRET,
            Self::Other { kind, .. } => *kind,
        }
    }

    /// Returns the critical bit. It is zero for all payloads that we know: for standard types it
    /// "MUST be set to zero" (section 2.5), and private types are sent only to peers that know
    /// them.
    pub(super) const fn is_critical(&self) -> bool {
        matches!(self, Self::Other { critical: true, .. })
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::SecurityAssociation(proposals) => Proposal::encode_all(proposals, out),
            Self::KeyExchange(exchange) => exchange.encode(out),
            Self::IdInitiator(id) | Self::IdResponder(id) => id.encode(out),
            Self::Authentication(proof) => proof.encode(out),
            Self::Certificate { encoding, data } | Self::CertificateRequest { encoding, data } => {
                encoding.encode(out);
                out.extend_from_slice(data);
            }
            Self::Nonce(octets) | Self::VendorId(octets) => out.extend_from_slice(octets),
            Self::Notify(notify) => notify.encode(out),
            Self::Delete(delete) => delete.encode(out),
            Self::TsInitiator(selectors) | Self::TsResponder(selectors) => selectors.encode(out),
            Self::Configuration(configuration) => configuration.encode(out),
            Self::Grant(offer) => offer.encode(out),
            Self::Secret(share) => share.encode(out),
            Self::Other { data, .. } => out.extend_from_slice(data),
        }
    }

    pub(super) fn unknown(kind: PayloadType, critical: bool, body: &[u8]) -> Self {
        let data = body.to_vec();
        Self::Other {
            kind,
            critical,
            data,
        }
    }

    pub(super) fn read_body(
        kind: PayloadType,
        critical: bool,
        body: &[u8],
    ) -> Result<Self, Malformed> {
        let mut r = Reader::new(name_of(kind), body);
        let payload = match kind {
            PayloadType::SA => Self::SecurityAssociation(Proposal::read_all(&mut r)?),
            PayloadType::KE => Self::KeyExchange(KeyExchange::read(&mut r)?),
            PayloadType::IDI => Self::IdInitiator(Identification::read(&mut r)?),
            PayloadType::IDR => Self::IdResponder(Identification::read(&mut r)?),
            PayloadType::AUTH => Self::Authentication(Authentication::read(&mut r)?),
            PayloadType::CERT => Self::Certificate {
                encoding: CertificateEncoding::read(&mut r)?,
                data: r.rest().to_vec(),
            },
            PayloadType::CERTREQ => Self::CertificateRequest {
                encoding: CertificateEncoding::read(&mut r)?,
                data: r.rest().to_vec(),
            },
            PayloadType::NONCE => Self::Nonce(read_nonce(&mut r)?),
            PayloadType::NOTIFY => Self::Notify(Notify::read(&mut r)?),
            PayloadType::DELETE => Self::Delete(Delete::read(&mut r)?),
            PayloadType::VENDOR_ID => Self::VendorId(r.rest().to_vec()),
            PayloadType::TSI => Self::TsInitiator(TrafficSelectors::read(&mut r)?),
            PayloadType::TSR => Self::TsResponder(TrafficSelectors::read(&mut r)?),
            PayloadType::CP => Self::Configuration(Configuration::read(&mut r)?),
            PayloadType::GRANT => Self::Grant(GrantOffer::read(&mut r)?),
            PayloadType::SECRET => Self::Secret(SecretShare::read(&mut r)?),
            // An Encrypted payload may be neither inside another nor anywhere but last.
            PayloadType::SK | PayloadType::SKF => {
                return Err(Malformed::Value("the payload chain"));
            }
            _ => Self::unknown(kind, critical, r.rest()),
        };
        r.finish().map(|()| payload)
    }
}

impl Codec for KeyExchange {
    fn encode(&self, out: &mut Vec<u8>) {
        self.group.encode(out);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.public);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let group = GroupId::read(reader)?;
        reader.take(2)?;
        Ok(Self {
            group,
            public: reader.rest().to_vec(),
        })
    }
}

impl Codec for Authentication {
    fn encode(&self, out: &mut Vec<u8>) {
        self.method.encode(out);
        out.extend_from_slice(&[0; 3]);
        out.extend_from_slice(&self.data);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let method = AuthMethod::read(reader)?;
        reader.take(3)?;
        Ok(Self {
            method,
            data: reader.rest().to_vec(),
        })
    }
}

fn read_nonce(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let nonce = reader.rest();
    match NONCE_LEN.contains(&nonce.len()) {
        true => Ok(nonce.to_vec()),
        false => Err(Malformed::Length("the Nonce payload")),
    }
}

/// Returns the name of the payload type in errors.
const fn name_of(kind: PayloadType) -> &'static str {
    match kind {
        PayloadType::SA => "the SA payload",
        PayloadType::KE => "the KE payload",
        PayloadType::IDI => "the IDi payload",
        PayloadType::IDR => "the IDr payload",
        PayloadType::AUTH => "the AUTH payload",
        PayloadType::CERT => "a CERT payload",
        PayloadType::CERTREQ => "a CERTREQ payload",
        PayloadType::NONCE => "the Nonce payload",
        PayloadType::NOTIFY => "a Notify payload",
        PayloadType::DELETE => "a Delete payload",
        PayloadType::TSI => "the TSi payload",
        PayloadType::TSR => "the TSr payload",
        PayloadType::CP => "the CP payload",
        PayloadType::GRANT => "the GRANT payload",
        PayloadType::SECRET => "a SECRET payload",
        _ => "a payload",
    }
}
