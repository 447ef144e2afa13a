//! Reports that a packet was too long for a next hop, as the host of its source receives them: the
//! MTU, and what the report quotes of the packet.
//!
//! A report is not authentic. The quote shows what its sender knew of the packet: addresses and
//! ports, which anyone can guess, and SPI and sequence number of ESP, which only a router on the
//! path has seen (RFC 4301 section 8.2.1). A router quotes at least 8 octets behind the IP header
//! (RFC 792), which are the UDP header where ESP is in UDP, and mostly as much as 576 or 1280
//! octets have room for (RFC 1812 section 4.3.2.3, RFC 4443 section 3.2).

use crate::checksum::Sum;
use crate::esp::Header;
use crate::ip::V6_HEADER_LEN;
use crate::udp;
use model::Path;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Octets of ICMP before the quoted packet.
const FRONT: usize = 8;

const ESP: u8 = 50;
const UDP: u8 = 17;

/// A report with the packet that it quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Path of the quoted packet, as its sender has it.
    pub path: Path,
    /// ESP header of the quoted packet, or the first octets of another UDP payload; `None` if the
    /// quote is too short.
    pub header: Option<Header>,
    /// The reported MTU in octets.
    pub mtu: u16,
}

impl Quoted {
    /// Reads an ICMP message: Destination Unreachable with code 4 (RFC 1191 section 4), whose
    /// checksum is checked. `None` for any other, and if the quoted packet is neither ESP nor UDP.
    pub fn read_v4(message: &[u8]) -> Option<Self> {
        let (front, packet) = message.split_first_chunk::<FRONT>()?;
        let &[3, 4, _, _, _, _, high, low] = front else {
            return None;
        };
        if Sum::default().with(message).finish() != 0 {
            return None;
        }
        let first = packet.first().filter(|first| **first >> 4 == 4)?;
        let header_len = 4 * usize::from(first & 0x0f);
        let (header, payload) = packet.split_at_checked(header_len)?;
        let protocol = *header.get(9)?;
        let address = |at: usize| {
            let octets: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(octets)))
        };
        let mtu = u16::from_be_bytes([high, low]);
        Self::parse([address(12)?, address(16)?], protocol, payload, mtu)
    }

    /// Reads an ICMPv6 message whose checksum the system has checked: Packet Too Big (RFC 4443
    /// section 3.2). `None` for any other, and if the quoted packet is neither ESP nor UDP.
    pub fn read_v6(message: &[u8]) -> Option<Self> {
        let (front, packet) = message.split_first_chunk::<FRONT>()?;
        let &[2, 0, _, _, a, b, c, d] = front else {
            return None;
        };
        let (header, payload) = packet.split_first_chunk::<V6_HEADER_LEN>()?;
        let address = |at: usize| {
            let octets: [u8; 16] = header[at..at + 16].try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)))
        };
        let mtu = u32::from_be_bytes([a, b, c, d]).min(u16::MAX.into());
        let is_v6 = header[0] >> 4 == 6;
        let quoted = Self::parse([address(8)?, address(24)?], header[6], payload, mtu as u16)?;
        is_v6.then_some(quoted)
    }

    fn parse([from, to]: [IpAddr; 2], protocol: u8, payload: &[u8], mtu: u16) -> Option<Self> {
        let (ports, behind) = match protocol {
            ESP => ([0; 2], payload),
            UDP => {
                let &[a, b, c, d] = payload.first_chunk()?;
                let ports = [[a, b], [c, d]].map(u16::from_be_bytes);
                (ports, payload.get(udp::HEADER_LEN..).unwrap_or_default())
            }
            _ => return None,
        };
        let ends = [
            SocketAddr::new(from, ports[0]),
            SocketAddr::new(to, ports[1]),
        ];
        let path = Path::udp(ends[0], ends[1]);
        Some(Self {
            path: if protocol == ESP {
                path.without_udp()
            } else {
                path
            },
            header: Header::parse(behind),
            mtu,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::too_big::TooBig;
    use model::Spi;
    use proptest::prelude::*;

    const HEADER: Header = Header {
        spi: Spi(0x1234_5678),
        seq: 9,
    };

    /// Returns an outer packet of ESP in UDP, or of ESP alone.
    fn packet(v6: bool, in_udp: bool) -> Vec<u8> {
        let mut payload = Vec::new();
        if in_udp {
            payload.extend([0x11, 0x94, 0x12, 0x34, 0, 0, 0, 0]);
        }
        payload.extend(HEADER.octets());
        payload.resize(1400, 7);
        let protocol = if in_udp { UDP } else { ESP };
        let mut packet = match v6 {
            false => {
                let [high, low] = (20 + payload.len() as u16).to_be_bytes();
                let mut front = vec![0x45, 0, high, low, 0, 1, 0x40, 0, 64, protocol, 0, 0];
                front.extend([192, 0, 2, 1, 198, 51, 100, 1]);
                front
            }
            true => {
                let [high, low] = (payload.len() as u16).to_be_bytes();
                let mut front = vec![0x60, 0, 0, 0, high, low, protocol, 64];
                front.extend([[0xfd; 16], [0xfc; 16]].concat());
                front
            }
        };
        packet.extend(payload);
        packet
    }

    fn read(v6: bool, message: &[u8]) -> Option<Quoted> {
        match v6 {
            false => Quoted::read_v4(message),
            true => Quoted::read_v6(message),
        }
    }

    /// What a router writes about a packet: our own writer has vectors of its own.
    fn message(v6: bool, packet: &[u8]) -> Vec<u8> {
        let message = TooBig::about(packet, 1386).unwrap();
        message.octets()[if v6 { 40 } else { 20 }..].to_vec()
    }

    #[test]
    fn path_spi_and_number_are_those_of_the_quoted_packet() {
        for (v6, in_udp) in [(false, true), (false, false), (true, true), (true, false)] {
            let quoted = read(v6, &message(v6, &packet(v6, in_udp))).unwrap();
            assert_eq!((quoted.header, quoted.mtu), (Some(HEADER), 1386));
            let ends = match v6 {
                false => ["192.0.2.1", "198.51.100.1"],
                true => [
                    "fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd",
                    "fcfc:fcfc:fcfc:fcfc:fcfc:fcfc:fcfc:fcfc",
                ],
            };
            let ends = ends.map(|end| end.parse::<IpAddr>().unwrap());
            let path = Path::udp((ends[0], 4500).into(), (ends[1], 0x1234).into());
            let expected = if in_udp { path } else { path.without_udp() };
            assert_eq!(quoted.path, expected);
        }
    }

    /// RFC 792: "The internet header plus the first 64 bits of the original datagram's data".
    #[test]
    fn a_short_quote_has_no_number_where_esp_is_in_udp() {
        for (in_udp, header) in [(true, None), (false, Some(HEADER))] {
            let mut short = message(false, &packet(false, in_udp));
            short.truncate(FRONT + 28);
            short[2..4].fill(0);
            let sum = Sum::default().with(&short).finish();
            short[2..4].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(Quoted::read_v4(&short).unwrap().header, header);
        }
    }

    #[test]
    fn a_corrupt_message_and_one_about_other_things_are_none() {
        let right = message(false, &packet(false, true));
        for at in [0, 1, 2, 7, 8, 30] {
            let mut wrong = right.clone();
            wrong[at] ^= 1;
            assert_eq!(Quoted::read_v4(&wrong), None, "{at}");
        }
        let mut tcp = packet(false, true);
        tcp[9] = 6;
        assert_eq!(Quoted::read_v4(&message(false, &tcp)), None);
        let mut other = message(true, &packet(true, true));
        other[0] = 1;
        assert_eq!(Quoted::read_v6(&other), None);
    }

    /// The kernel reports no more than 16 bits of the interface, and ICMPv6 has 32.
    #[test]
    fn an_mtu_beyond_the_longest_packet_is_the_longest() {
        let mut long = message(true, &packet(true, true));
        long[4..8].copy_from_slice(&0x0001_0000_u32.to_be_bytes());
        assert_eq!(Quoted::read_v6(&long).unwrap().mtu, u16::MAX);
    }

    proptest! {
        #[test]
        fn no_octets_stop_the_reader(octets: Vec<u8>, long in 0..64_usize) {
            let mut octets = octets;
            octets.resize(octets.len() + long, 0x45);
            let _ = Quoted::read_v4(&octets);
            let _ = Quoted::read_v6(&octets);
        }
    }
}
