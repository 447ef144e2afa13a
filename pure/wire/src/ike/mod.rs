//! IKEv2 messages (RFC 7296 section 3): a header and a chain of payloads.
//!
//! On the wire, each payload names the type of the next. Here the chain is a plain list, and the
//! next-payload octets exist only in the encoding.
//!
//! Reading is bounded: [`MAX_MESSAGE`] octets, [`MAX_PAYLOADS`] payloads, [`MAX_PROPOSALS`]
//! proposals of [`MAX_TRANSFORMS`] transforms. Payloads of unsupported types become
//! [`Payload::Other`], so that callers can distinguish "unknown and critical" from "unknown".
//!
//! This module lays out encrypted messages, and the caller encrypts them: [`Message::seal_with`]
//! and [`Sealed::open_with`] take the cipher as a closure.

mod configuration;
mod first;
mod header;
mod identification;
mod ip_parameter;
mod level;
mod message;
mod notify;
mod payload;
mod private;
mod proposal;
mod registry;
mod sealed;
mod selector;
#[cfg(test)]
mod tests;
mod token;

pub use configuration::{Configuration, ConfigurationAttribute, MAX_ATTRIBUTES};
pub use first::First;
pub use header::{Flags, HEADER_LEN, Header, VERSION_2};
pub use identification::Identification;
pub use ip_parameter::{IpParameter, IpRole};
pub use level::{decode_level, encode_level};
pub use message::{Datagram, MAX_MESSAGE, MAX_PAYLOADS, Message};
pub use notify::{Delete, Notify};
pub use payload::{Authentication, KeyExchange, Payload};
pub use private::{
    GrantOffer, GrantReply, MAX_LICENCES, MAX_NODES, MAX_RANGES, PingCounts, SecretShare,
    VENDOR_ID_TEXT, WINDOWS, ZONE_MAP_VERSION, decode_csa, decode_licences, decode_nodes,
    decode_place, decode_zone_map, encode_csa, encode_licences, encode_nodes, encode_place,
    encode_zone_map,
};
pub use proposal::{Attribute, MAX_PROPOSALS, MAX_TRANSFORMS, Proposal, Transform};
pub use registry::{
    AttributeType, AuthMethod, CertificateEncoding, CertificateRefusal, ConfigurationType,
    EncryptionId, EsnId, ExchangeType, GroupId, IdType, IntegrityId, KeyDirection, NotifyType,
    PayloadType, PrfId, Protocol, RefusalCode, TransformType, TsType,
};
pub use sealed::{Content, Fragment, Frame, NotOpened, Sealed};
pub use selector::TrafficSelectors;
pub use token::{TOKEN_ZONE, Token};
