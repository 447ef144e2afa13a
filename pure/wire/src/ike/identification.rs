//! Identification payloads (RFC 7296 section 3.5): type (1), reserved (3), data.

use super::IdType;
use crate::codec::{Codec, Malformed, Reader};
use model::Identity;
use std::net::IpAddr;

/// The body of an identification payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identification {
    /// Identity that the payload names.
    pub identity: Identity,
    /// Reserved octets: "MUST be sent as zero; MUST be ignored on receipt". AUTH covers them as
    /// received.
    pub reserved: [u8; 3],
}

impl Identification {
    /// Returns type, reserved octets and data, as AUTH covers them (RFC 7296 section 2.15,
    /// "RestOfInitIDPayload").
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        self.encode(&mut octets);
        octets
    }
}

impl From<Identity> for Identification {
    fn from(identity: Identity) -> Self {
        Self {
            identity,
            reserved: [0; 3],
        }
    }
}

impl Codec for Identification {
    /// Data that does not fit its type (an address of the wrong length, a name that is not UTF-8)
    /// becomes an opaque identity. It equals no configured identity, but it can be displayed.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let kind = IdType::read(reader)?;
        Ok(Self {
            reserved: reader.array()?,
            identity: from_parts(kind, reader.rest()),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(kind_of(&self.identity).0);
        out.extend_from_slice(&self.reserved);
        out.extend_from_slice(&data_of(&self.identity));
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
