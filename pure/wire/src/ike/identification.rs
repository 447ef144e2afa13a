//! Identification payloads (RFC 7296 section 3.5): type (1), reserved (3), data.

use super::IdType;
use crate::codec::{Codec, Malformed, Reader};
use model::Identity;
use std::net::IpAddr;

/// Appends type, reserved octets and data: also what AUTH is computed over (RFC 7296 section 2.15,
/// "RestOfInitIDPayload").
pub(super) fn encode_identity(identity: &Identity, out: &mut Vec<u8>) {
    out.push(kind_of(identity).0);
    out.extend_from_slice(&[0; 3]);
    out.extend_from_slice(&data_of(identity));
}

/// Data that does not fit its type (an address of the wrong length, a name that is no UTF-8) is
/// kept as opaque: it can equal no configured identity, but it can still be shown.
pub(super) fn read_identity(reader: &mut Reader<'_>) -> Result<Identity, Malformed> {
    let kind = IdType::read(reader)?;
    reader.take(3)?;
    Ok(from_parts(kind, reader.rest()))
}

impl super::Payload {
    /// The body of an identification payload, which is what AUTH covers.
    pub fn identity_body(identity: &Identity) -> Vec<u8> {
        let mut body = Vec::new();
        encode_identity(identity, &mut body);
        body
    }
}

pub(super) const fn kind_of(identity: &Identity) -> IdType {
    match identity {
        Identity::Address(IpAddr::V4(_)) => IdType::IPV4_ADDR,
        Identity::Address(IpAddr::V6(_)) => IdType::IPV6_ADDR,
        Identity::Fqdn(_) => IdType::FQDN,
        Identity::Email(_) => IdType::RFC822_ADDR,
        Identity::Opaque { kind, .. } => IdType(*kind),
    }
}

pub(super) fn data_of(identity: &Identity) -> Vec<u8> {
    match identity {
        Identity::Address(IpAddr::V4(address)) => address.octets().to_vec(),
        Identity::Address(IpAddr::V6(address)) => address.octets().to_vec(),
        Identity::Fqdn(text) | Identity::Email(text) => text.as_bytes().to_vec(),
        Identity::Opaque { data, .. } => data.clone(),
    }
}

pub(super) fn from_parts(kind: IdType, data: &[u8]) -> Identity {
    let text = || std::str::from_utf8(data).ok().map(str::to_owned);
    let known = match kind {
        IdType::IPV4_ADDR => <[u8; 4]>::try_from(data)
            .ok()
            .map(|octets| Identity::Address(octets.into())),
        IdType::IPV6_ADDR => <[u8; 16]>::try_from(data)
            .ok()
            .map(|octets| Identity::Address(octets.into())),
        IdType::FQDN => text().map(Identity::Fqdn),
        IdType::RFC822_ADDR => text().map(Identity::Email),
        _ => None,
    };
    known.unwrap_or_else(|| Identity::Opaque {
        kind: kind.0,
        data: data.to_vec(),
    })
}
