//! Messages to the source of a datagram that is too long for the next hop: Destination Unreachable
//! with code 4 (RFC 792, RFC 1191 section 4), or Packet Too Big (RFC 4443 section 3.2).
//!
//! The message has the datagram's destination as its source. A tunnel need not have an address of
//! its own, and a message with this source passes every reverse-path check.

use crate::checksum::Sum;
use crate::ip::{Header, ICMP, ICMPV6, V4_HEADER_LEN, V6_HEADER_LEN};
use std::net::{IpAddr, Ipv4Addr};

/// Octets of type, code, checksum, and the fields that depend on them.
const ICMP_LEN: usize = 8;
/// Longest ICMP message: as much of the datagram as every host accepts (RFC 1812 section 4.3.2.3).
const LONGEST_V4: usize = 576;
/// Longest ICMPv6 message: as much of the datagram as every link carries (RFC 4443 section 3.2).
const LONGEST_V6: usize = 1280;
/// Precedence 6, recommended for such messages (RFC 1812 section 4.3.2.5).
const CLASS: u8 = 6 << 5;
const TTL: u8 = 64;

/// A message to the source of a datagram.
#[derive(Clone, Debug)]
pub struct TooBig {
    octets: [u8; LONGEST_V6],
    len: usize,
}

impl TooBig {
    /// Returns the message that announces an MTU. `None` if the datagram must not be answered
    /// (RFC 1812 section 4.3.2.7, RFC 4443 section 2.4 (e)): errors, later fragments, and sources
    /// that are not a single host.
    pub fn about(datagram: &[u8], mtu: u16) -> Option<Self> {
        let header = Header::parse(datagram).ok()?;
        if !may_be_answered(&header, datagram) {
            return None;
        }
        let mut message = Self {
            octets: [0; LONGEST_V6],
            len: 0,
        };
        match (header.source(), header.destination()) {
            (IpAddr::V4(to), IpAddr::V4(from)) => {
                message.put(&[0x45, CLASS, 0, 0, 0, 0, 0, 0, TTL, ICMP, 0, 0]);
                message.put(&from.octets());
                message.put(&to.octets());
                let [high, low] = mtu.to_be_bytes();
                message.put(&[3, 4, 0, 0, 0, 0, high, low]);
                message.put(&datagram[..datagram.len().min(LONGEST_V4 - message.len)]);
                message.finish_v4();
            }
            (to, from) => {
                message.put(&[0x60, 0, 0, 0, 0, 0, ICMPV6, TTL]);
                for address in [from, to] {
                    if let IpAddr::V6(address) = address {
                        message.put(&address.octets());
                    }
                }
                message.put(&[2, 0, 0, 0]);
                message.put(&u32::from(mtu).to_be_bytes());
                message.put(&datagram[..datagram.len().min(LONGEST_V6 - message.len)]);
                message.finish_v6(from, to);
            }
        }
        Some(message)
    }

    /// Returns the message with its IP header.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }

    fn put(&mut self, octets: &[u8]) {
        self.octets[self.len..][..octets.len()].copy_from_slice(octets);
        self.len += octets.len();
    }

    fn set(&mut self, at: usize, word: u16) {
        self.octets[at..at + 2].copy_from_slice(&word.to_be_bytes());
    }

    fn finish_v4(&mut self) {
        self.set(2, self.len as u16);
        let header = Sum::default().with(&self.octets[..V4_HEADER_LEN]);
        self.set(10, header.finish());
        let message = Sum::default().with(&self.octets[V4_HEADER_LEN..self.len]);
        self.set(V4_HEADER_LEN + 2, message.finish());
    }

    fn finish_v6(&mut self, from: IpAddr, to: IpAddr) {
        let len = self.len - V6_HEADER_LEN;
        self.set(4, len as u16);
        let sum = Sum::pseudo_header(from, to, ICMPV6, len);
        let message = sum.with(&self.octets[V6_HEADER_LEN..self.len]);
        self.set(V6_HEADER_LEN + 2, message.finish());
    }
}

fn may_be_answered(header: &Header<'_>, datagram: &[u8]) -> bool {
    let kind = header.payload().first().copied();
    match (header.source(), header.destination()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            const OFFSET: u16 = 0x1fff;
            let later = u16::from_be_bytes([datagram[6], datagram[7]]) & OFFSET != 0;
            // Echo, timestamps and the like; all other types report errors.
            let asks = matches!(kind, Some(0 | 8 | 13 | 14));
            let is_error = header.protocol() == ICMP && !asks;
            let many = |address: Ipv4Addr| address.is_multicast() || address.is_broadcast();
            let nobody = source.is_unspecified() || source.is_loopback() || many(source);
            !(later || is_error || nobody || many(destination))
        }
        (IpAddr::V6(source), _) => {
            let is_error = header.protocol() == ICMPV6 && kind.is_none_or(|kind| kind < 128);
            let nobody = source.is_unspecified() || source.is_loopback() || source.is_multicast();
            !(is_error || nobody)
        }
        _ => false,
    }
}

/// The front of every message fits.
const _: () = assert!(V6_HEADER_LEN + ICMP_LEN < LONGEST_V6);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FLAGS: usize = 6;

    fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let [high, low] = ((20 + payload.len()) as u16).to_be_bytes();
        let mut packet = vec![0x45, 0, high, low, 0, 1, 0x40, 0, 64, protocol, 0, 0];
        packet.extend([10, 1, 0, 1, 10, 8, 0, 1]);
        packet.extend(payload);
        packet
    }

    fn v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let [high, low] = (payload.len() as u16).to_be_bytes();
        let mut packet = vec![0x60, 0, 0, 0, high, low, protocol, 64];
        packet.extend([[0xfd; 16], [0xfc; 16]].concat());
        packet.extend(payload);
        packet
    }

    fn said(datagram: &[u8], mtu: u16) -> Option<Vec<u8>> {
        TooBig::about(datagram, mtu).map(|message| message.octets().to_vec())
    }

    #[test]
    fn the_next_hops_mtu_and_the_front_of_the_datagram_go_to_its_source() {
        let datagram = v4(17, &[7; 1400]);
        let message = said(&datagram, 1338).unwrap();
        let header = Header::parse(&message).unwrap();
        assert!(header.checksum_is_right());
        assert_eq!(header.source().to_string(), "10.8.0.1");
        assert_eq!(header.destination().to_string(), "10.1.0.1");
        let (front, quoted) = header.payload().split_at(8);
        assert_eq!(
            (front[..2].to_vec(), &front[4..]),
            (vec![3, 4], &[0, 0, 5, 58][..])
        );
        assert_eq!(Sum::default().with(header.payload()).finish(), 0);
        assert_eq!((message.len(), quoted), (576, &datagram[..548]));
    }

    #[test]
    fn over_ipv6_the_message_is_packet_too_big_and_fits_every_link() {
        let datagram = v6(17, &[7; 1400]);
        let message = said(&datagram, 1338).unwrap();
        let header = Header::parse(&message).unwrap();
        assert_eq!(
            header.destination(),
            Header::parse(&datagram).unwrap().source()
        );
        let (front, quoted) = header.payload().split_at(8);
        assert_eq!(
            (front[..2].to_vec(), &front[4..]),
            (vec![2, 0], &[0, 0, 5, 58][..])
        );
        let (from, to) = (header.source(), header.destination());
        let sum = Sum::pseudo_header(from, to, ICMPV6, header.payload().len());
        assert_eq!(sum.with(header.payload()).finish(), 0);
        assert_eq!((message.len(), quoted), (1280, &datagram[..1232]));
    }

    /// RFC 1812 section 4.3.2.5.
    #[test]
    fn a_message_over_ipv4_has_the_precedence_of_internetwork_control() {
        let message = said(&v4(17, &[7; 1400]), 1338).unwrap();
        let precedence = message[1] >> 5;
        assert_eq!((precedence, message[1] & 0b1_1111), (6, 0));
    }

    #[test]
    fn a_short_datagram_is_there_as_a_whole() {
        let datagram = v4(17, &[7; 9]);
        let message = said(&datagram, 1280).unwrap();
        assert_eq!(message[28..], datagram);
    }

    // Refuses: path-mtu
    #[test]
    fn nobody_is_told_of_an_error_about_an_error() {
        assert_eq!(said(&v4(ICMP, &[3; 600]), 1280), None);
        assert_eq!(said(&v6(ICMPV6, &[1; 1300]), 1280), None);
        assert!(said(&v4(ICMP, &[8; 600]), 1280).is_some());
        assert!(said(&v6(ICMPV6, &[128; 1300]), 1280).is_some());
    }

    #[test]
    fn nobody_is_told_of_a_later_fragment() {
        let mut first = v4(17, &[7; 600]);
        first[FLAGS] = 0x20;
        assert!(said(&first, 1280).is_some());
        first[FLAGS + 1] = 1;
        assert_eq!(said(&first, 1280), None);
    }

    /// A forged source would direct the message to a network, or to ourselves.
    // Refuses: path-mtu
    #[test]
    fn only_a_single_host_is_told() {
        for source in [[0; 4], [224, 0, 0, 1], [255; 4], [127, 0, 0, 1]] {
            let mut datagram = v4(17, &[7; 600]);
            datagram[12..16].copy_from_slice(&source);
            assert_eq!(said(&datagram, 1280), None, "{source:?}");
        }
        let mut multicast = [0; 16];
        multicast[0] = 0xff;
        let mut loopback = [0; 16];
        loopback[15] = 1;
        for source in [[0; 16], multicast, loopback] {
            let mut datagram = v6(17, &[7; 1300]);
            datagram[8..24].copy_from_slice(&source);
            assert_eq!(said(&datagram, 1280), None, "{source:?}");
        }
        let mut to_many = v4(17, &[7; 600]);
        to_many[16] = 224;
        assert_eq!(said(&to_many, 1280), None);
    }

    proptest! {
        #[test]
        fn any_octets_are_taken_without_panic(
            mut octets in proptest::collection::vec(any::<u8>(), 0..1400),
            first in prop_oneof![Just(0x45_u8), Just(0x60)],
            mtu in any::<u16>(),
        ) {
            let _ = said(&octets, mtu);
            if let Some(front) = octets.first_mut() {
                *front = first;
            }
            let len = octets.len() as u16;
            if octets.len() > 40 {
                let field = if first == 0x45 { len } else { len - 40 };
                let at = if first == 0x45 { 2 } else { 4 };
                octets[at..at + 2].copy_from_slice(&field.to_be_bytes());
            }
            if let Some(message) = said(&octets, mtu) {
                let header = Header::parse(&message).unwrap();
                prop_assert!(header.checksum_is_right());
                prop_assert!(message.len() <= LONGEST_V6);
            }
        }
    }
}
