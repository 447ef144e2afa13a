//! Addresses, prefixes and ranges of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the prefixes that a text stands for: an address, a prefix, or a range `FIRST-LAST`. Bits
/// beyond the length of a prefix are cleared.
pub(crate) fn prefixes(text: &str) -> Option<Vec<String>> {
    if let Some((first, last)) = text.split_once('-') {
        let [first, last] = [first, last].map(|end| end.trim().parse::<IpAddr>().ok());
        return Cover::new(first?, last?).map(|cover| cover.prefixes());
    }
    let whole = match text.parse::<IpAddr>() {
        Ok(address) => format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 }),
        Err(_) => text.to_owned(),
    };
    let prefix: config::Prefix = whole.parse().ok()?;
    Some(vec![prefix.network().to_string()])
}

/// Returns an address with the length of one host.
pub(crate) fn host(address: IpAddr) -> String {
    let length = if address.is_ipv4() { 32 } else { 128 };
    format!("{address}/{length}")
}

/// A range of addresses.
struct Cover {
    first: u128,
    last: u128,
    bits: u32,
}

impl Cover {
    fn new(first: IpAddr, last: IpAddr) -> Option<Self> {
        let (first, last, bits) = match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                (u32::from(first).into(), u32::from(last).into(), 32)
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => (first.into(), last.into(), 128),
            _ => return None,
        };
        (first <= last).then_some(Self { first, last, bits })
    }

    /// Returns the fewest prefixes that are exactly the range.
    fn prefixes(&self) -> Vec<String> {
        let mut prefixes = Vec::new();
        let mut next = Some(self.first);
        while let Some(first) = next.filter(|first| *first <= self.last) {
            let aligned = first.trailing_zeros().min(self.bits);
            let end = |host: u32| match host {
                128 => u128::MAX,
                host => first | ((1 << host) - 1),
            };
            let host = (0..=aligned).rev().find(|host| end(*host) <= self.last);
            let host = host.unwrap_or(0);
            prefixes.push(format!("{}/{}", self.address(first), self.bits - host));
            next = end(host).checked_add(1);
        }
        prefixes
    }

    fn address(&self, number: u128) -> IpAddr {
        match u32::try_from(number) {
            Ok(number) if self.bits == 32 => Ipv4Addr::from(number).into(),
            _ => Ipv6Addr::from(number).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_prefixes_and_ranges_are_prefixes() {
        for (text, expected) in [
            ("10.1.0.5", &["10.1.0.5/32"][..]),
            ("10.1.0.5/16", &["10.1.0.0/16"]),
            ("10.3.0.0-10.3.0.255", &["10.3.0.0/24"]),
            (
                "10.3.0.1-10.3.0.6",
                &["10.3.0.1/32", "10.3.0.2/31", "10.3.0.4/31", "10.3.0.6/32"],
            ),
            ("0.0.0.0-255.255.255.255", &["0.0.0.0/0"]),
            ("255.255.255.254 - 255.255.255.255", &["255.255.255.254/31"]),
            ("fd00::/64", &["fd00::/64"]),
            ("fd00::-fd00::ffff", &["fd00::/112"]),
            ("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &["::/0"]),
        ] {
            assert_eq!(prefixes(text).expect(text), expected);
        }
        for text in [
            "",
            "10.1.0.9-10.1.0.1",
            "10.1.0.1-fd00::1",
            "moon",
            "10.0.0.0/33",
            "%any",
        ] {
            assert_eq!(prefixes(text), None, "{text}");
        }
    }
}
