//! New IP headers for payloads that came without one: no options, no extension headers.
//!
//! Such a header belongs to one whole datagram. So it is not a fragment, forbids fragmentation, and
//! needs no identification (RFC 6864 section 4.1).

use crate::checksum::Sum;
use crate::ip::{V4_HEADER_LEN, V6_HEADER_LEN};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Initial time to live of the datagram, as hosts use it (RFC 1700).
const HOPS: u8 = 64;

/// An IPv4 or IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shell {
    octets: [u8; V6_HEADER_LEN],
    len: usize,
}

impl Shell {
    /// Returns the header of a payload of `len` octets. `None` if that exceeds the maximum length,
    /// or if the addresses differ in family.
    pub fn new(source: IpAddr, destination: IpAddr, protocol: u8, len: usize) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let total = u16::try_from(len + V4_HEADER_LEN).ok()?;
                Some(Self::v4(source, destination, protocol, total))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let len = u16::try_from(len).ok()?;
                Some(Self::v6(source, destination, protocol, len))
            }
            _ => None,
        }
    }

    /// Returns the octets of the header.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }

    fn v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, total: u16) -> Self {
        const DO_NOT_FRAGMENT: u8 = 0x40;
        let mut octets = [0; V6_HEADER_LEN];
        octets[0] = 0x45;
        octets[2..4].copy_from_slice(&total.to_be_bytes());
        octets[6] = DO_NOT_FRAGMENT;
        (octets[8], octets[9]) = (HOPS, protocol);
        octets[12..16].copy_from_slice(&source.octets());
        octets[16..20].copy_from_slice(&destination.octets());
        let sum = Sum::default().with(&octets[..V4_HEADER_LEN]).finish();
        octets[10..12].copy_from_slice(&sum.to_be_bytes());
        let len = V4_HEADER_LEN;
        Self { octets, len }
    }

    fn v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, payload: u16) -> Self {
        let mut octets = [0; V6_HEADER_LEN];
        octets[0] = 0x60;
        octets[4..6].copy_from_slice(&payload.to_be_bytes());
        (octets[6], octets[7]) = (protocol, HOPS);
        octets[8..24].copy_from_slice(&source.octets());
        octets[24..40].copy_from_slice(&destination.octets());
        let len = V6_HEADER_LEN;
        Self { octets, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Header;

    const PAIRS: [(&str, &str); 2] = [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")];

    fn shell((source, destination): (&str, &str), len: usize) -> Option<Shell> {
        Shell::new(
            source.parse().unwrap(),
            destination.parse().unwrap(),
            6,
            len,
        )
    }

    #[test]
    fn a_header_reads_as_it_was_written() {
        for pair in PAIRS {
            for len in [0, 1, 1400] {
                let datagram = [shell(pair, len).unwrap().octets(), &vec![7; len]].concat();
                let header = Header::parse(&datagram).unwrap();
                assert_eq!(header.source().to_string(), pair.0);
                assert_eq!(header.destination().to_string(), pair.1);
                assert_eq!((header.protocol(), header.payload().len()), (6, len));
                assert_eq!((header.ttl(), header.tos()), (64, 0));
                assert!(header.checksum_is_right() && !header.has_options());
                assert!(!header.is_fragment());
            }
        }
    }

    #[test]
    fn what_is_longer_than_a_datagram_can_be_gets_no_header() {
        assert!(shell(PAIRS[0], 65_515).is_some() && shell(PAIRS[0], 65_516).is_none());
        assert!(shell(PAIRS[1], 65_535).is_some() && shell(PAIRS[1], 65_536).is_none());
    }

    #[test]
    fn addresses_of_two_families_make_no_header() {
        assert_eq!(shell((PAIRS[0].0, PAIRS[1].1), 0), None);
    }
}
