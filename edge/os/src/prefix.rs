//! Address prefixes and families.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both families.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Returns the family of an address.
    pub const fn from_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Returns the length of an address in bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    pub(crate) const fn unspecified(self) -> IpAddr {
        match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Self::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }

    /// Returns the setting that enables forwarding.
    pub(crate) const fn forwarding_sysctl(self) -> &'static str {
        match self {
            Self::V4 => "net.ipv4.ip_forward",
            Self::V6 => "net.ipv6.conf.all.forwarding",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// An address with a prefix length. Interface addresses keep their host bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    /// The address.
    pub address: IpAddr,
    /// The number of leading bits, at most 32 or 128.
    pub length: u8,
}

impl Prefix {
    /// Returns the prefix of one single address.
    pub const fn host(address: IpAddr) -> Self {
        Self {
            address,
            length: Family::from_address(address).bits(),
        }
    }

    /// Returns the prefix of all addresses of a family.
    pub const fn everything(family: Family) -> Self {
        Self {
            address: family.unspecified(),
            length: 0,
        }
    }

    /// Returns the family of the address.
    pub const fn family(self) -> Family {
        Family::from_address(self.address)
    }

    /// Returns true if an address lies inside.
    pub fn contains(self, address: IpAddr) -> bool {
        let differ = match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            _ => return false,
        };
        differ >= self.length.into()
    }

    /// Returns the first and the last address.
    fn range(self) -> RangeInclusive<IpAddr> {
        let length = u32::from(self.length);
        match self.address {
            IpAddr::V4(address) => {
                let host = u32::MAX.checked_shr(length).unwrap_or(0);
                let first = address.to_bits() & !host;
                let [first, last] = [first, first | host].map(Ipv4Addr::from_bits);
                first.into()..=last.into()
            }
            IpAddr::V6(address) => {
                let host = u128::MAX.checked_shr(length).unwrap_or(0);
                let first = address.to_bits() & !host;
                let [first, last] = [first, first | host].map(Ipv6Addr::from_bits);
                first.into()..=last.into()
            }
        }
    }
}

/// Returns the addresses that are inside any of the prefixes. Each prefix visits only those, and
/// each of them once.
pub(crate) fn inside(
    prefixes: impl IntoIterator<Item = Prefix>,
    mut addresses: BTreeSet<IpAddr>,
) -> BTreeSet<IpAddr> {
    let mut inside = BTreeSet::new();
    for prefix in prefixes {
        let found: Vec<_> = addresses.range(prefix.range()).copied().collect();
        for address in found {
            addresses.remove(&address);
            inside.insert(address);
        }
    }
    inside
}

impl From<(IpAddr, u8)> for Prefix {
    fn from((address, length): (IpAddr, u8)) -> Self {
        Self { address, length }
    }
}

impl From<IpAddr> for Prefix {
    fn from(address: IpAddr) -> Self {
        Self::host(address)
    }
}

impl FromStr for Prefix {
    type Err = BadPrefix;

    /// Parses `10.0.0.0/8`, or an address alone.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let host = Self::host(address.parse().map_err(|_| BadPrefix)?);
        let length = match length {
            Some(length) => length.parse().map_err(|_| BadPrefix)?,
            None => host.length,
        };
        match length <= host.length {
            true => Ok(Self { length, ..host }),
            false => Err(BadPrefix),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Not an address, or a length beyond that of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address prefix such as 10.0.0.0/8 or fd00::/64")]
pub struct BadPrefix;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_read_as_they_are_written() {
        for text in ["0.0.0.0/0", "10.1.0.0/16", "fd00:8::/64"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.1".parse::<Prefix>().unwrap().length, 32);
        for text in ["10.0.0.0/33", "fd00::/129", "10.0.0/8", "10.0.0.0/", ""] {
            assert_eq!(text.parse::<Prefix>(), Err(BadPrefix), "{text}");
        }
    }

    #[test]
    fn a_prefix_contains_only_addresses_that_share_its_bits() {
        let lan: Prefix = "10.1.0.0/16".parse().unwrap();
        assert!(lan.contains("10.1.255.1".parse().unwrap()));
        assert!(!lan.contains("10.2.0.1".parse().unwrap()));
        assert!(!lan.contains("fd00::1".parse().unwrap()));
        assert!(Prefix::everything(Family::V6).contains("fd00::1".parse().unwrap()));
    }

    #[test]
    fn addresses_inside_any_prefix_are_found() {
        let prefixes = ["10.1.2.3/16", "10.1.0.0/24", "192.0.2.7", "fd00::/8"];
        let prefixes = || prefixes.map(|text| text.parse::<Prefix>().unwrap());
        let all = [
            "10.0.255.255",
            "10.1.0.0",
            "10.1.255.255",
            "10.2.0.0",
            "192.0.2.7",
            "fd01::1",
        ];
        let all: BTreeSet<IpAddr> = all.map(|text| text.parse().unwrap()).into();
        let mut expected = all.clone();
        expected.retain(|address| prefixes().iter().any(|prefix| prefix.contains(*address)));
        assert_eq!(expected.len(), 4);
        assert_eq!(inside(prefixes(), all.clone()), expected);
        let everything = Prefix::everything(Family::V4);
        assert_eq!(inside([everything], all).len(), 5);
    }
}
