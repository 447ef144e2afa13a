//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, and the fields that traffic selectors match.

use crate::checksum::{self, Sum};
use crate::codec::Malformed;
use crate::{tcp, udp};
use model::Flow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Octets of an IPv4 header without options.
pub const V4_HEADER_LEN: usize = 20;
/// Octets of an IPv6 header without extension headers.
pub const V6_HEADER_LEN: usize = 40;

/// SCTP. Its ports are at the same offsets as those of TCP and UDP (RFC 9260 section 3.1).
const SCTP: u8 = 132;
/// ICMP and ICMPv6. Selectors hold type and code in place of a port.
pub(crate) const ICMP: u8 = 1;
pub(crate) const ICMPV6: u8 = 58;
/// The Mobility Header (RFC 6275). Selectors hold its type in place of a port.
const MOBILITY: u8 = 135;

/// The header of a packet, and the packet itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    packet: &'a [u8],
    total_len: usize,
    header_len: usize,
    protocol: u8,
    fragment: bool,
}

impl<'a> Header<'a> {
    /// Reads a whole packet. Octets after its total length are ignored. IPv6 extension headers
    /// (RFC 8200 section 4) are skipped, not interpreted.
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        let header = Self::parse_front(octets)?;
        match header.packet.len() == header.total_len {
            true => Ok(header),
            false => Err(Malformed::Truncated("IP packet")),
        }
    }

    /// Reads the front of a packet: the payload may be truncated.
    pub fn parse_front(octets: &'a [u8]) -> Result<Self, Malformed> {
        match octets.first().map(|first| first >> 4) {
            Some(4) => Self::parse_v4(octets),
            Some(6) => Self::parse_v6(octets),
            Some(_) => Err(Malformed::Value("IP version")),
            None => Err(Malformed::Truncated("IP header")),
        }
    }

    fn parse_v4(octets: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; V4_HEADER_LEN] = octets
            .first_chunk()
            .ok_or(Malformed::Truncated("IPv4 header"))?;
        let header_len = usize::from(fixed[0] & 0xf) * 4;
        let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if header_len < V4_HEADER_LEN || total_len < header_len {
            return Err(Malformed::Length("IPv4 header"));
        }
        const MORE_FRAGMENTS_AND_OFFSET: u16 = 0x3fff;
        if octets.len() < header_len {
            return Err(Malformed::Truncated("IPv4 header"));
        }
        Ok(Self {
            packet: &octets[..total_len.min(octets.len())],
            total_len,
            header_len,
            protocol: fixed[9],
            fragment: u16::from_be_bytes([fixed[6], fixed[7]]) & MORE_FRAGMENTS_AND_OFFSET != 0,
        })
    }

    fn parse_v6(octets: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; V6_HEADER_LEN] = octets
            .first_chunk()
            .ok_or(Malformed::Truncated("IPv6 header"))?;
        let payload_len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let total_len = V6_HEADER_LEN + payload_len;
        let mut header = Self {
            packet: &octets[..total_len.min(octets.len())],
            total_len,
            header_len: V6_HEADER_LEN,
            protocol: fixed[6],
            fragment: false,
        };
        while header.step_over_extension()? {}
        Ok(header)
    }

    /// Skips one extension header. Returns true if there was one. Nothing is read behind a fragment
    /// header, because only the first fragment has the transport header there.
    fn step_over_extension(&mut self) -> Result<bool, Malformed> {
        const HOP_BY_HOP: u8 = 0;
        const ROUTING: u8 = 43;
        const FRAGMENT: u8 = 44;
        const AUTHENTICATION: u8 = 51;
        const DESTINATION: u8 = 60;
        if self.fragment {
            return Ok(false);
        }
        let here = &self.packet[self.header_len..];
        let unit = |len: usize| match self.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION => Some((len + 1) * 8),
            AUTHENTICATION => Some((len + 2) * 4),
            FRAGMENT => Some(8),
            _ => None,
        };
        if unit(0).is_none() {
            return Ok(false);
        }
        let truncated = Malformed::Truncated("IPv6 extension header");
        let &[next, len] = here.first_chunk().ok_or(truncated)?;
        let len = unit(len.into()).unwrap_or(0);
        if here.len() < len {
            return Err(truncated);
        }
        self.fragment = self.protocol == FRAGMENT;
        self.protocol = next;
        self.header_len += len;
        Ok(true)
    }

    /// Returns the version, 4 or 6.
    pub fn version(&self) -> u8 {
        self.packet[0] >> 4
    }

    /// Returns the source address.
    pub fn source(&self) -> IpAddr {
        self.address(12, 8)
    }

    /// Returns the destination address.
    pub fn destination(&self) -> IpAddr {
        self.address(16, 24)
    }

    fn address(&self, v4_at: usize, v6_at: usize) -> IpAddr {
        let v6 = |at: usize| self.packet[at..].first_chunk().copied().map(Ipv6Addr::from);
        let v4 = |at: usize| self.packet[at..].first_chunk().copied().map(Ipv4Addr::from);
        match self.version() {
            4 => v4(v4_at).map(IpAddr::V4),
            _ => v6(v6_at).map(IpAddr::V6),
        }
        .expect("parse saw the whole fixed header")
    }

    /// Returns the protocol above IP; for IPv6, the protocol behind the last extension header.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Returns the octets before the transport header, including options and extension headers.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// Returns the length of the packet according to its header.
    pub fn total_len(&self) -> usize {
        self.total_len
    }

    /// Returns the time to live or hop limit.
    pub fn ttl(&self) -> u8 {
        self.packet[ttl_at(self.version())]
    }

    /// Returns the differentiated services field with ECN; in IPv6, the traffic class.
    pub fn tos(&self) -> u8 {
        match self.version() {
            4 => self.packet[1],
            _ => self.packet[0] << 4 | self.packet[1] >> 4,
        }
    }

    /// Returns true for fragments, including first ones and the atomic ones of RFC 6946.
    pub fn is_fragment(&self) -> bool {
        self.fragment
    }

    /// Returns true if routers may fragment the packet, which they never may in IPv6.
    pub fn may_be_fragmented(&self) -> bool {
        const DONT_FRAGMENT: u8 = 0x40;
        self.version() == 4 && self.packet[6] & DONT_FRAGMENT == 0
    }

    /// Returns true if there are IPv4 options or IPv6 extension headers.
    pub fn has_options(&self) -> bool {
        self.header_len
            != match self.version() {
                4 => V4_HEADER_LEN,
                _ => V6_HEADER_LEN,
            }
    }

    /// Returns true if the IPv4 header checksum is right, and for IPv6, which has none.
    pub fn checksum_is_right(&self) -> bool {
        self.version() != 4
            || Sum::default()
                .with(&self.packet[..self.header_len])
                .finish()
                == 0
    }

    /// Returns the octets behind the header, as far as they are present.
    pub fn payload(&self) -> &'a [u8] {
        &self.packet[self.header_len..]
    }

    /// Returns the fields that selectors match (RFC 4301 section 4.4.1.1). A fragment shows no
    /// ports.
    pub fn flow(&self) -> Flow {
        let shown = if self.fragment { &[] } else { self.payload() };
        flow_between((self.source(), self.destination()), self.protocol, shown)
    }
}

/// Returns the fields that selectors match of a transport header between two addresses.
pub fn flow_between(
    (source, destination): (IpAddr, IpAddr),
    protocol: u8,
    transport: &[u8],
) -> Flow {
    let ports = match (protocol, transport) {
        (tcp::PROTOCOL | udp::PROTOCOL | SCTP, _) => transport.first_chunk().copied(),
        (ICMP | ICMPV6, [kind, code, ..]) => Some([*kind, *code, *kind, *code]),
        // Payload Proto, Header Len, MH Type (RFC 6275 section 6.1.1).
        (MOBILITY, [_, _, kind, ..]) => Some([*kind, 0, *kind, 0]),
        _ => None,
    };
    let [a, b, c, d] = ports.unwrap_or_default();
    Flow {
        source,
        destination,
        protocol,
        source_port: u16::from_be_bytes([a, b]),
        destination_port: u16::from_be_bytes([c, d]),
        ports_visible: ports.is_some(),
    }
}

/// Returns the fields that selectors match, or `None` if the octets are not a packet.
pub fn flow(octets: &[u8]) -> Option<Flow> {
    Header::parse(octets).ok().map(|header| header.flow())
}

/// Adds the hop that a detour through this host has cost: the time to live grows by one, and the
/// checksum is updated. Other octets than packets, and a time to live of 255, stay unchanged.
pub fn restore_hop(octets: &mut [u8]) {
    let Ok(header) = Header::parse(octets) else {
        return;
    };
    let (version, Some(ttl)) = (header.version(), header.ttl().checked_add(1)) else {
        return;
    };
    replace(octets, ttl_at(version), ttl);
}

/// Writes one octet of the fixed header and updates the IPv4 checksum. Truncated headers stay
/// unchanged.
pub(crate) fn replace(octets: &mut [u8], at: usize, value: u8) {
    const CHECKSUM: usize = 10;
    match octets.first().map(|first| first >> 4) {
        Some(4) if octets.len() >= V4_HEADER_LEN => {
            let start = at & !1;
            let mut word = [octets[start], octets[start + 1]];
            word[at & 1] = value;
            checksum::rewrite(octets, start, word, CHECKSUM);
        }
        Some(6) if octets.len() >= V6_HEADER_LEN => octets[at] = value,
        _ => {}
    }
}

const fn ttl_at(version: u8) -> usize {
    match version {
        4 => 8,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V4: [u8; 28] = [
        0x45, 0xb9, 0, 28, 0, 1, 0x40, 0, 63, 17, 0x27, 0x15, 10, 0, 0, 1, 10, 0, 0, 2, // IP
        0x13, 0x88, 0, 53, 0, 8, 0, 0, // UDP
    ];

    fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x6b, 0x90, 0, 0, 0, payload.len() as u8, next, 64];
        packet.extend([[0xfd; 16], [0xfc; 16]].concat());
        packet.extend(payload);
        packet
    }

    #[test]
    fn an_ipv4_packet_tells_what_selectors_ask_for() {
        let header = Header::parse(&V4).unwrap();
        assert_eq!(
            (header.version(), header.ttl(), header.tos()),
            (4, 63, 0xb9)
        );
        assert!(!header.is_fragment() && !header.has_options() && header.checksum_is_right());
        let flow = header.flow();
        assert_eq!(flow.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(flow.destination, IpAddr::from([10, 0, 0, 2]));
        assert_eq!(
            (flow.source_port, flow.destination_port, flow.ports_visible),
            (5000, 53, true)
        );
    }

    #[test]
    fn ipv6_extension_headers_are_walked_over() {
        let octets = v6(
            0,
            &[60, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2],
        );
        let header = Header::parse(&octets).unwrap();
        assert_eq!((header.protocol(), header.header_len()), (17, 56));
        assert!(header.has_options() && header.tos() == 0xb9);
        assert_eq!(header.flow().destination_port, 2);
        let cut = v6(0, &[60, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            Header::parse(&cut),
            Err(Malformed::Truncated("IPv6 extension header"))
        );
    }

    #[test]
    fn fragments_show_no_ports_not_even_the_first() {
        let mut first = V4;
        first[6] = 0x20;
        let first_v6 = v6(44, &[17, 0, 0, 1, 0, 0, 0, 0, 0x13, 0x88, 0, 53]);
        for octets in [&first[..], &first_v6] {
            let header = Header::parse(octets).unwrap();
            assert!(header.is_fragment() && header.protocol() == 17);
            assert!(!header.flow().ports_visible);
        }
    }

    /// RFC 7296 section 3.13.1.
    #[test]
    fn type_and_code_of_a_message_stand_for_its_ports() {
        let ends = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let port = |protocol, transport: &[u8]| {
            let flow = flow_between(ends, protocol, transport);
            assert_eq!(flow.source_port, flow.destination_port);
            flow.ports_visible.then_some(flow.source_port)
        };
        assert_eq!(port(1, &[3, 4, 0, 0]), Some(0x0304));
        assert_eq!(port(58, &[128, 0, 0, 0]), Some(0x8000));
        assert_eq!(port(135, &[59, 1, 5, 0, 0, 0]), Some(0x0500));
        for (protocol, transport) in [(1, &[3][..]), (58, &[]), (135, &[59, 1]), (47, &[8; 8])] {
            assert_eq!(port(protocol, transport), None);
        }
        let mut fragment = V4;
        (fragment[6], fragment[9]) = (0x20, 1);
        assert!(!Header::parse(&fragment).unwrap().flow().ports_visible);
    }

    #[test]
    fn lengths_that_lie_are_malformed() {
        for (at, value) in [(0, 0x44), (0, 0x4f), (0, 0x55), (3, 19), (3, 29)] {
            let mut octets = V4;
            octets[at] = value;
            assert!(Header::parse(&octets).is_err(), "octet {at} = {value}");
        }
        assert!(Header::parse(&[]).is_err() && Header::parse(&V4[..19]).is_err());
    }

    #[test]
    fn octets_after_the_total_length_are_no_payload() {
        let mut octets = V4.to_vec();
        octets.extend([1, 2, 3]);
        assert_eq!(Header::parse(&octets).unwrap().payload(), &V4[20..]);
    }

    #[test]
    fn a_restored_hop_keeps_the_checksum_right() {
        let mut octets = V4;
        restore_hop(&mut octets);
        let header = Header::parse(&octets).unwrap();
        assert!(header.ttl() == 64 && header.checksum_is_right());
        let mut six = v6(17, &[]);
        restore_hop(&mut six);
        assert_eq!(Header::parse(&six).unwrap().ttl(), 65);
        six[7] = 255;
        restore_hop(&mut six);
        assert_eq!(Header::parse(&six).unwrap().ttl(), 255);
    }

    proptest! {
        #[test]
        fn any_octets_are_read_without_panic(
            first in prop_oneof![Just(0x45_u8), Just(0x60), any::<u8>()],
            rest in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            let mut octets = vec![first];
            octets.extend(rest);
            restore_hop(&mut octets);
            if let Ok(header) = Header::parse(&octets) {
                prop_assert_eq!(header.header_len() + header.payload().len(), header.total_len());
                prop_assert!(header.total_len() <= octets.len());
                header.flow();
            }
        }
    }
}
