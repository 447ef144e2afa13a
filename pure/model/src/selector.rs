//! Which packets an SA or a policy speaks of (RFC 4301 section 4.4.1.1, RFC 7296 section 3.13).

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// What of a packet selectors look at. Ports are 0 where the protocol has none or they are not
/// visible (fragments).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// IP protocol of the transport header.
    pub protocol: u8,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Whether the ports could be read.
    pub ports_visible: bool,
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

impl TrafficSelector {
    /// Every protocol and port of a prefix. `None` if the length is longer than the address.
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

    /// Whether an address, protocol and port lie inside. A port that cannot be seen matches only
    /// selectors that take every port (RFC 4301 section 7.1).
    #[inline]
    pub fn contains(&self, address: IpAddr, protocol: u8, port: Option<u16>) -> bool {
        let any_port = self.ports == (0..=u16::MAX);
        (self.protocol == 0 || self.protocol == protocol)
            && within(self.first, address, self.last)
            && port.map_or(any_port, |port| any_port || self.ports.contains(&port))
    }

    /// What both selectors speak of, if anything (RFC 7296 section 2.9).
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

    /// Prefixes that cover exactly this range of addresses, for routes. At most 254.
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

/// The one address at each end, ours first, if selectors speak of no other and of the same family.
pub fn one_pair(local: &[TrafficSelector], remote: &[TrafficSelector]) -> Option<(IpAddr, IpAddr)> {
    let one = |selectors: &[TrafficSelector]| {
        let address = selectors.first()?.first;
        let same = |s: &TrafficSelector| (s.first, s.last) == (address, address);
        selectors.iter().all(same).then_some(address)
    };
    let pair = one(local).zip(one(remote));
    pair.filter(|(local, remote)| same_family(*local, *remote))
}

/// Whether an address is in a range of its own family. Every packet asks this twice, so numbers are compared.
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
        if self.ports != (0..=u16::MAX) {
            write!(f, " ports {}-{}", self.ports.start(), self.ports.end())?;
        }
        Ok(())
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

    #[test]
    fn an_unseen_port_matches_only_selectors_that_take_every_port() {
        let mut web = prefix("10.0.0.0/8");
        let address = "10.0.0.1".parse().unwrap();
        assert!(web.contains(address, 6, None));
        web.ports = 80..=80;
        assert!(!web.contains(address, 6, None));
        assert!(web.contains(address, 6, Some(80)));
    }
}
