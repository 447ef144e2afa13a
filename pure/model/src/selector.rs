//! Traffic selectors: the packets that an SA or a policy covers (RFC 4301 section 4.4.1.1, RFC 7296
//! section 3.13).

use crate::Shared;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Protocols with a port at each end: TCP, UDP and SCTP.
const WITH_PORTS: [u8; 3] = [6, 17, 132];
/// ICMP. Selectors hold its type and code in place of a port.
const ICMP: u8 = 1;
/// ICMPv6. Selectors hold its type and code in place of a port.
const ICMPV6: u8 = 58;
/// The IPv6 Mobility Header. Selectors hold its type in place of a port.
const MOBILITY: u8 = 135;

/// The fields of a packet that selectors match. Ports are 0 if the protocol has none or if they are
/// not visible (fragments).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// IP protocol of the transport header.
    pub protocol: u8,
    /// Source port; for ICMP, type and code; for a Mobility Header, the type (RFC 7296 section
    /// 3.13.1).
    pub source_port: u16,
    /// Destination port; for ICMP and a Mobility Header, as `source_port`.
    pub destination_port: u16,
    /// True if the ports could be read.
    pub ports_visible: bool,
}

impl Flow {
    /// Returns true if the protocol has a port at each end.
    pub fn has_ports(&self) -> bool {
        WITH_PORTS.contains(&self.protocol)
    }

    /// Returns the flow of the replies.
    pub const fn reversed(&self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            ..*self
        }
    }
}

/// One traffic selector: a protocol (0 is any), a range of ports and a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrafficSelector {
    /// IP protocol, 0 for any.
    pub protocol: u8,
    /// Ports, 0 to 65535 for any.
    pub ports: RangeInclusive<u16>,
    /// First address.
    pub first: IpAddr,
    /// Last address, of the same family and not below the first.
    pub last: IpAddr,
}

/// Traffic selectors of a configuration. A host with 100,000 peers keeps each list once.
pub type Selectors = Shared<[TrafficSelector]>;

/// Size of a selector. Of two selectors, one inside the other, the inner one is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breadth {
    /// Number of addresses after the first.
    addresses: u128,
    any_protocol: bool,
    /// Number of ports after the first.
    ports: u16,
}

impl TrafficSelector {
    /// Returns the selector of a prefix, with every protocol and port. `None` if `length` exceeds
    /// the address.
    pub fn from_prefix(address: IpAddr, length: u8) -> Option<Self> {
        let (first, last) = match address {
            IpAddr::V4(v4) => {
                let host = u32::MAX.checked_shr(length.into()).unwrap_or(0);
                let host = if length > 32 { return None } else { host };
                let bits = v4.to_bits();
                (
                    IpAddr::V4((bits & !host).into()),
                    IpAddr::V4((bits | host).into()),
                )
            }
            IpAddr::V6(v6) => {
                let host = u128::MAX.checked_shr(length.into()).unwrap_or(0);
                let host = if length > 128 { return None } else { host };
                let bits = v6.to_bits();
                (
                    IpAddr::V6((bits & !host).into()),
                    IpAddr::V6((bits | host).into()),
                )
            }
        };
        Some(Self {
            protocol: 0,
            ports: 0..=u16::MAX,
            first,
            last,
        })
    }

    /// Returns true if the selector matches an address, protocol and port. A port that is not
    /// visible matches only selectors with all ports (RFC 4301 section 7.1).
    #[inline]
    pub fn contains(&self, address: IpAddr, protocol: u8, port: Option<u16>) -> bool {
        let takes = || port.is_some_and(|port| self.ports.contains(&port));
        self.has(address, protocol) && (self.takes_every_port() || takes())
    }

    /// Returns true if the selector matches the source of a packet.
    #[inline]
    pub fn covers_source(&self, flow: &Flow) -> bool {
        let port = flow.ports_visible.then_some(flow.source_port);
        self.contains(flow.source, flow.protocol, port)
    }

    /// Returns true if the selector matches the destination of a packet. The type of an ICMP
    /// message or Mobility Header is matched only at the source: the selector of the other end
    /// limits the types that the other end may send (RFC 4301 section 4.4.1.3).
    #[inline]
    pub fn covers_destination(&self, flow: &Flow) -> bool {
        let port = flow.ports_visible.then_some(flow.destination_port);
        match flow.protocol {
            MOBILITY | ICMP | ICMPV6 => self.has(flow.destination, flow.protocol),
            _ => self.contains(flow.destination, flow.protocol, port),
        }
    }

    #[inline]
    fn has(&self, address: IpAddr, protocol: u8) -> bool {
        (self.protocol == 0 || self.protocol == protocol) && within(self.first, address, self.last)
    }

    #[inline]
    fn takes_every_port(&self) -> bool {
        self.ports == (0..=u16::MAX)
    }

    /// Returns true if a packet can match. A range of ports needs a protocol that has ports, or a
    /// type in their place.
    pub fn is_matchable(&self) -> bool {
        let (first, last) = (*self.ports.start(), *self.ports.end());
        match self.protocol {
            _ if self.takes_every_port() => true,
            // The type is in the upper eight bits, and the lower ones are zero.
            MOBILITY => first <= last && first.div_ceil(256) <= last / 256,
            ICMP | ICMPV6 => first <= last,
            protocol => WITH_PORTS.contains(&protocol) && first <= last,
        }
    }

    /// Returns true if a packet can have its source in this selector and its destination in
    /// `other`.
    pub fn reaches(&self, other: &Self) -> bool {
        let protocols = [self.protocol, other.protocol];
        let same = protocols.contains(&0) || self.protocol == other.protocol;
        same && same_family(self.first, other.first)
    }

    /// Returns the packets that both selectors match, or `None` if there are none (RFC 7296 section
    /// 2.9).
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let protocol = match (self.protocol, other.protocol) {
            (0, p) | (p, 0) => p,
            (a, b) if a == b => a,
            _ => return None,
        };
        let ports =
            *self.ports.start().max(other.ports.start())..=*self.ports.end().min(other.ports.end());
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        let overlap = same_family(self.first, other.first) && first <= last && !ports.is_empty();
        overlap.then_some(Self {
            protocol,
            ports,
            first,
            last,
        })
    }

    /// Returns the selector of the same protocol and ports at a single address.
    #[must_use]
    pub fn at(&self, address: IpAddr) -> Self {
        Self {
            first: address,
            last: address,
            ..self.clone()
        }
    }

    /// Returns true if the range of addresses has this one.
    pub fn has_address(&self, address: IpAddr) -> bool {
        within(self.first, address, self.last)
    }

    /// Returns the size of the selector.
    pub fn breadth(&self) -> Breadth {
        let addresses = match (self.first, self.last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                u128::from(last.to_bits().saturating_sub(first.to_bits()))
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => last.to_bits().saturating_sub(first.to_bits()),
            _ => u128::MAX,
        };
        Breadth {
            addresses,
            any_protocol: self.protocol == 0,
            ports: self.ports.end().saturating_sub(*self.ports.start()),
        }
    }

    /// Returns the prefixes that exactly cover the range of addresses, for routes: at most 254.
    pub fn prefixes(&self) -> Vec<(IpAddr, u8)> {
        let (width, mut first, last) = match (self.first, self.last) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                (32, u128::from(a.to_bits()), u128::from(b.to_bits()))
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => (128, a.to_bits(), b.to_bits()),
            _ => return Vec::new(),
        };
        let mut prefixes = Vec::new();
        loop {
            // The largest block that starts at `first` and does not pass `last`.
            let mut host = first.trailing_zeros().min(width);
            while host > 0
                && (host == 128 && (first, last) != (0, u128::MAX)
                    || host < 128 && first + ((1 << host) - 1) > last)
            {
                host -= 1;
            }
            let address = match width {
                32 => IpAddr::V4((first as u32).into()),
                _ => IpAddr::V6(first.into()),
            };
            prefixes.push((address, (width - host) as u8));
            let block_end = if host == 128 {
                u128::MAX
            } else {
                first + ((1 << host) - 1)
            };
            if block_end >= last {
                return prefixes;
            }
            first = block_end + 1;
        }
    }
}

/// Returns the only address at each end, ours first, if all selectors of an end have the same
/// single address and both ends have the same family.
pub fn one_pair(local: &[TrafficSelector], remote: &[TrafficSelector]) -> Option<(IpAddr, IpAddr)> {
    let one = |selectors: &[TrafficSelector]| {
        let address = selectors.first()?.first;
        let same = |s: &TrafficSelector| (s.first, s.last) == (address, address);
        selectors.iter().all(same).then_some(address)
    };
    let pair = one(local).zip(one(remote));
    pair.filter(|(local, remote)| same_family(*local, *remote))
}

/// Returns true if an address is in a range of its own family. Every packet needs this check twice,
/// so it compares integers.
#[inline]
fn within(first: IpAddr, address: IpAddr, last: IpAddr) -> bool {
    match (first, address, last) {
        (IpAddr::V4(first), IpAddr::V4(address), IpAddr::V4(last)) => {
            (first.to_bits()..=last.to_bits()).contains(&address.to_bits())
        }
        (IpAddr::V6(first), IpAddr::V6(address), IpAddr::V6(last)) => {
            (first.to_bits()..=last.to_bits()).contains(&address.to_bits())
        }
        _ => false,
    }
}

fn same_family(a: IpAddr, b: IpAddr) -> bool {
    a.is_ipv4() == b.is_ipv4()
}

impl fmt::Display for TrafficSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefixes().as_slice() {
            [(address, length)] => write!(f, "{address}/{length}")?,
            _ => write!(f, "{}-{}", self.first, self.last)?,
        }
        if self.protocol != 0 {
            write!(f, " protocol {}", self.protocol)?;
        }
        let (first, last) = (*self.ports.start(), *self.ports.end());
        match self.protocol {
            _ if self.takes_every_port() => Ok(()),
            ICMP | ICMPV6 => show_types(first, last, f),
            MOBILITY => write!(f, " types {}-{}", first.div_ceil(256), last / 256),
            _ => write!(f, " ports {first}-{last}"),
        }
    }
}

/// Shows a range of ICMP types and codes in their numeric order.
fn show_types(first: u16, last: u16, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let ([first, first_code], [last, last_code]) = (first.to_be_bytes(), last.to_be_bytes());
    match (first == last, first_code, last_code) {
        (true, 0, u8::MAX) => write!(f, " type {first}"),
        (true, a, b) if a == b => write!(f, " type {first} code {a}"),
        (true, a, b) => write!(f, " type {first} codes {a}-{b}"),
        (false, 0, u8::MAX) => write!(f, " types {first}-{last}"),
        (false, a, b) => write!(f, " type {first} code {a} to type {last} code {b}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> TrafficSelector {
        let (address, length) = text.split_once('/').unwrap();
        TrafficSelector::from_prefix(address.parse().unwrap(), length.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_prefix_and_its_range_are_the_same() {
        for text in [
            "0.0.0.0/0",
            "10.1.0.0/16",
            "192.0.2.1/32",
            "::/0",
            "fd00:8::/64",
            "fd00::1/128",
        ] {
            assert_eq!(prefix(text).to_string(), text);
        }
        assert_eq!(
            TrafficSelector::from_prefix("10.0.0.0".parse().unwrap(), 33),
            None
        );
    }

    #[test]
    fn an_odd_range_becomes_prefixes() {
        let mut odd = prefix("10.0.0.0/24");
        odd.first = "10.0.0.3".parse().unwrap();
        odd.last = "10.0.0.8".parse().unwrap();
        let texts: Vec<_> = odd
            .prefixes()
            .iter()
            .map(|(a, l)| format!("{a}/{l}"))
            .collect();
        assert_eq!(texts, ["10.0.0.3/32", "10.0.0.4/30", "10.0.0.8/32"]);
    }

    #[test]
    fn narrowing_never_widens() {
        let narrow = prefix("10.0.0.0/8").intersection(&prefix("10.8.0.0/16"));
        assert_eq!(narrow, Some(prefix("10.8.0.0/16")));
        assert_eq!(prefix("10.0.0.0/8").intersection(&prefix("fd00::/8")), None);
        assert_eq!(
            prefix("10.0.0.0/9").intersection(&prefix("10.128.0.0/9")),
            None
        );
    }

    fn ranged(protocol: u8, ports: RangeInclusive<u16>) -> TrafficSelector {
        TrafficSelector {
            protocol,
            ports,
            ..prefix("10.0.0.0/8")
        }
    }

    fn flow(protocol: u8, ports: Option<[u16; 2]>) -> Flow {
        let [source_port, destination_port] = ports.unwrap_or_default();
        Flow {
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 0, 2].into(),
            protocol,
            source_port,
            destination_port,
            ports_visible: ports.is_some(),
        }
    }

    #[test]
    fn an_unseen_port_matches_only_selectors_that_take_every_port() {
        let fragment = flow(6, None);
        let (all, web) = (ranged(0, 0..=u16::MAX), ranged(0, 80..=80));
        assert!(all.covers_source(&fragment) && all.covers_destination(&fragment));
        assert!(!web.covers_source(&fragment) && !web.covers_destination(&fragment));
        let request = flow(6, Some([40_000, 80]));
        assert!(!web.covers_source(&request) && web.covers_destination(&request));
    }

    #[test]
    fn addresses_outside_of_the_range_or_of_the_other_family_match_nothing() {
        for (range, [before, first, last, behind]) in [
            (
                "10.1.0.0/16",
                ["10.0.255.255", "10.1.0.0", "10.1.255.255", "10.2.0.0"],
            ),
            (
                "fd00:8::/64",
                ["fd00:7::", "fd00:8::", "fd00:8::ffff", "fd00:8:0:1::"],
            ),
        ] {
            let range = prefix(range);
            let covers = |address: &str| {
                let address = address.parse().unwrap();
                let from = Flow {
                    source: address,
                    ..flow(0, None)
                };
                let to = Flow {
                    destination: address,
                    ..flow(0, None)
                };
                [range.covers_source(&from), range.covers_destination(&to)]
            };
            assert_eq!([first, last].map(covers), [[true; 2]; 2]);
            let others = [before, behind, "::a01:0", "192.0.2.1"];
            assert_eq!(others.map(covers), [[false; 2]; 4], "{range}");
        }
    }

    /// RFC 4301 sections 4.4.1.1 and 4.4.1.3.
    #[test]
    fn the_type_of_a_message_is_asked_of_the_end_that_sends_it() {
        for protocol in [1, 58, 135] {
            let [echo, reply] = [0x0800, 0].map(|kind| flow(protocol, Some([kind; 2])));
            let only_echo = ranged(protocol, 0x0800..=0x08ff);
            assert!(only_echo.covers_source(&echo) && !only_echo.covers_source(&reply));
            assert!(only_echo.covers_destination(&echo) && only_echo.covers_destination(&reply));
            let fragment = flow(protocol, None);
            assert!(!only_echo.covers_source(&fragment));
            assert!(ranged(protocol, 0..=u16::MAX).covers_source(&fragment));
        }
    }

    #[test]
    fn a_range_of_ports_is_matchable_only_where_packets_show_ports_or_types() {
        for protocol in 0..=u8::MAX {
            let shows = [1, 6, 17, 58, 132, 135].contains(&protocol);
            assert!(ranged(protocol, 0..=u16::MAX).is_matchable());
            assert_eq!(ranged(protocol, 0x0800..=0x08ff).is_matchable(), shows);
            #[expect(clippy::reversed_empty_ranges, reason = "OPAQUE of RFC 7296")]
            let opaque = ranged(protocol, u16::MAX..=0);
            assert!(!opaque.is_matchable());
        }
        assert!(!ranged(135, 0x0501..=0x05ff).is_matchable());
        assert!(ranged(135, 0x0500..=0x0500).is_matchable());
    }

    #[test]
    fn types_and_codes_are_shown_as_such() {
        for (protocol, ports, shown) in [
            (1, 0x0800..=0x0800, "protocol 1 type 8 code 0"),
            (1, 0x0300..=0x03ff, "protocol 1 type 3"),
            (58, 0x0101..=0x0104, "protocol 58 type 1 codes 1-4"),
            (1, 0..=0x08ff, "protocol 1 types 0-8"),
            (1, 3..=0x0801, "protocol 1 type 0 code 3 to type 8 code 1"),
            (135, 0x0500..=0x0600, "protocol 135 types 5-6"),
            (6, 80..=80, "protocol 6 ports 80-80"),
            (1, 0..=u16::MAX, "protocol 1"),
        ] {
            let text = ranged(protocol, ports).to_string();
            assert_eq!(text, format!("10.0.0.0/8 {shown}"));
        }
    }
}
