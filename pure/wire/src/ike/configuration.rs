//! The Configuration payload (RFC 7296 section 3.15), with which one end requests and gets settings
//! for use inside the tunnel.
//!
//! ```text
//!  CFG Type (1) | RESERVED (3) | attributes
//!  attribute: R (1 bit) | Attribute Type (15 bits) | Length (2) | Value
//! ```

use super::{AttributeType, ConfigurationType};
use crate::codec::{Codec, Malformed, Reader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most attributes of a payload that is read.
pub const MAX_ATTRIBUTES: usize = 128;

const WHAT: &str = "the CP payload";
const ATTRIBUTE: &str = "an attribute of the CP payload";

/// The bit that RFC 7296 reserves before the type.
const RESERVED: u16 = 1 << 15;

/// A Configuration payload, such as a request or a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Type of the payload.
    pub kind: ConfigurationType,
    /// Requested or assigned settings.
    pub attributes: Vec<ConfigurationAttribute>,
}

/// An attribute. A request may omit the value to leave the choice to the responder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigurationAttribute {
    /// INTERNAL_IP4_ADDRESS or INTERNAL_IP6_ADDRESS: an inner address.
    Address {
        /// True for IPv4.
        is_ipv4: bool,
        /// The address with its prefix length: 32 for IPv4, from the attribute for IPv6.
        value: Option<(IpAddr, u8)>,
    },
    /// INTERNAL_IP4_DNS or INTERNAL_IP6_DNS: a name server inside the tunnel.
    Dns {
        /// True for IPv4.
        is_ipv4: bool,
        /// Address of the name server.
        value: Option<IpAddr>,
    },
    /// INTERNAL_IP4_SUBNET or INTERNAL_IP6_SUBNET: a subnet that the sender protects.
    Subnet {
        /// True for IPv4.
        is_ipv4: bool,
        /// An address in the subnet, and the prefix length.
        value: Option<(IpAddr, u8)>,
    },
    /// An attribute without support here.
    Other {
        /// Attribute type.
        kind: AttributeType,
        /// Value of the attribute.
        value: Vec<u8>,
    },
}

impl Codec for Configuration {
    fn encode(&self, out: &mut Vec<u8>) {
        self.kind.encode(out);
        out.extend_from_slice(&[0; 3]);
        for attribute in self.attributes.iter().take(MAX_ATTRIBUTES) {
            let value = attribute.value();
            attribute.kind().encode(out);
            out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
            out.extend_from_slice(&value);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let kind = ConfigurationType::read(reader)?;
        reader.take(3)?;
        let mut attributes = Vec::new();
        while !reader.is_empty() {
            if attributes.len() == MAX_ATTRIBUTES {
                return Err(Malformed::TooMany(WHAT));
            }
            let kind = AttributeType(reader.u16()? & !RESERVED);
            let length = usize::from(reader.u16()?);
            let value = reader.sub(ATTRIBUTE, length)?;
            attributes.push(ConfigurationAttribute::read(kind, value)?);
        }
        Ok(Self { kind, attributes })
    }
}

impl ConfigurationAttribute {
    /// Returns the attribute type.
    pub const fn kind(&self) -> AttributeType {
        match self {
            Self::Address { is_ipv4: true, .. } => AttributeType::INTERNAL_IP4_ADDRESS,
            Self::Address { .. } => AttributeType::INTERNAL_IP6_ADDRESS,
            Self::Dns { is_ipv4: true, .. } => AttributeType::INTERNAL_IP4_DNS,
            Self::Dns { .. } => AttributeType::INTERNAL_IP6_DNS,
            Self::Subnet { is_ipv4: true, .. } => AttributeType::INTERNAL_IP4_SUBNET,
            Self::Subnet { .. } => AttributeType::INTERNAL_IP6_SUBNET,
            Self::Other { kind, .. } => *kind,
        }
    }

    fn value(&self) -> Vec<u8> {
        match self {
            Self::Address { value, .. } => match value {
                // "INTERNAL_IP4_NETMASK" is an attribute of its own.
                Some((IpAddr::V4(address), _)) => address.octets().to_vec(),
                Some((IpAddr::V6(address), length)) => with_length(*address, *length),
                None => Vec::new(),
            },
            Self::Dns { value, .. } => value.map_or_else(Vec::new, |address| match address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            }),
            Self::Subnet { value, .. } => match value {
                Some((IpAddr::V4(address), length)) => {
                    let mask = u32::MAX.checked_shl(32 - u32::from(*length)).unwrap_or(0);
                    [address.octets(), mask.to_be_bytes()].concat()
                }
                Some((IpAddr::V6(address), length)) => with_length(*address, *length),
                None => Vec::new(),
            },
            Self::Other { value, .. } => value.clone(),
        }
    }

    fn read(kind: AttributeType, mut value: Reader<'_>) -> Result<Self, Malformed> {
        let left_out = value.is_empty();
        let attribute = match kind {
            AttributeType::INTERNAL_IP4_ADDRESS => Self::Address {
                is_ipv4: true,
                value: (!left_out)
                    .then(|| v4(&mut value))
                    .transpose()?
                    .map(|a| (a, 32)),
            },
            AttributeType::INTERNAL_IP6_ADDRESS => Self::Address {
                is_ipv4: false,
                value: (!left_out).then(|| v6_prefix(&mut value)).transpose()?,
            },
            AttributeType::INTERNAL_IP4_DNS => Self::Dns {
                is_ipv4: true,
                value: (!left_out).then(|| v4(&mut value)).transpose()?,
            },
            AttributeType::INTERNAL_IP6_DNS => Self::Dns {
                is_ipv4: false,
                value: (!left_out).then(|| v6(&mut value)).transpose()?,
            },
            AttributeType::INTERNAL_IP4_SUBNET => Self::Subnet {
                is_ipv4: true,
                value: (!left_out).then(|| v4_subnet(&mut value)).transpose()?,
            },
            AttributeType::INTERNAL_IP6_SUBNET => Self::Subnet {
                is_ipv4: false,
                value: (!left_out).then(|| v6_prefix(&mut value)).transpose()?,
            },
            _ => Self::Other {
                kind,
                value: value.rest().to_vec(),
            },
        };
        value.finish().map(|()| attribute)
    }
}

fn with_length(address: Ipv6Addr, length: u8) -> Vec<u8> {
    let mut octets = address.octets().to_vec();
    octets.push(length);
    octets
}

fn v4(value: &mut Reader<'_>) -> Result<IpAddr, Malformed> {
    value.array::<4>().map(IpAddr::from)
}

fn v6(value: &mut Reader<'_>) -> Result<IpAddr, Malformed> {
    value.array::<16>().map(IpAddr::from)
}

fn v6_prefix(value: &mut Reader<'_>) -> Result<(IpAddr, u8), Malformed> {
    let (address, length) = (v6(value)?, value.u8()?);
    match length {
        0..=128 => Ok((address, length)),
        _ => Err(Malformed::Value(ATTRIBUTE)),
    }
}

/// Reads an address and a mask. A mask with a one behind a zero is refused.
fn v4_subnet(value: &mut Reader<'_>) -> Result<(IpAddr, u8), Malformed> {
    let (address, mask) = (value.array::<4>().map(Ipv4Addr::from)?, value.u32()?);
    let length = mask.leading_ones();
    match mask.count_ones() == length {
        true => Ok((address.into(), length as u8)),
        false => Err(Malformed::Value(ATTRIBUTE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(octets: &[u8]) -> Result<Configuration, Malformed> {
        Configuration::read(&mut Reader::new(WHAT, octets))
    }

    fn request(attribute: &[u8]) -> Result<Configuration, Malformed> {
        read(&[&[1, 0, 0, 0], attribute].concat())
    }

    /// Section 3.15.1 defines the lengths: 0 or 4, 0 or 17, 0 or 8.
    #[test]
    fn an_attribute_has_its_length_or_none() {
        for (kind, length) in [(1, 4), (3, 4), (8, 17), (10, 16), (13, 8), (15, 17)] {
            for tried in 0..=18 {
                let attribute = [&[0, kind, 0, tried], vec![0; tried.into()].as_slice()].concat();
                let good = tried == 0 || tried == length;
                assert_eq!(
                    request(&attribute).is_ok(),
                    good,
                    "type {kind}, {tried} octets"
                );
            }
        }
    }

    #[test]
    fn what_is_unknown_is_kept_and_its_reserved_bit_is_not() {
        let octets = [0x80, 7, 0, 2, b'v', b'1', 0x5b, 0xa0, 0, 0];
        let other = |kind, value: &[u8]| ConfigurationAttribute::Other {
            kind: AttributeType(kind),
            value: value.to_vec(),
        };
        let configuration = request(&octets).unwrap();
        assert_eq!(
            configuration.attributes,
            [other(7, b"v1"), other(0x5ba0, b"")]
        );
        let mut written = Vec::new();
        configuration.encode(&mut written);
        assert_eq!(written[4..6], [0, 7]);
    }

    #[test]
    fn a_mask_with_holes_and_a_prefix_that_is_too_long_are_no_values() {
        let mask = |mask: [u8; 4]| request(&[&[0, 13, 0, 8, 10, 8, 0, 0][..], &mask].concat());
        for (octets, length) in [([0; 4], 0), ([255, 255, 0, 0], 16), ([255; 4], 32)] {
            let subnet = ConfigurationAttribute::Subnet {
                is_ipv4: true,
                value: Some(([10, 8, 0, 0].into(), length)),
            };
            let read = mask(octets).unwrap();
            assert_eq!(read.attributes, [subnet]);
            let mut written = Vec::new();
            read.encode(&mut written);
            assert_eq!(written[12..], octets);
        }
        assert!(mask([255, 0, 255, 0]).is_err());
        let mut long = vec![0, 8, 0, 17];
        long.extend([0; 16]);
        long.push(129);
        assert!(request(&long).is_err());
    }

    #[test]
    fn attributes_are_bounded() {
        assert!(request(&[0, 3, 0, 0].repeat(MAX_ATTRIBUTES)).is_ok());
        assert!(request(&[0, 3, 0, 0].repeat(MAX_ATTRIBUTES + 1)).is_err());
        assert!(request(&[0, 3, 0, 4, 10]).is_err());
    }
}
