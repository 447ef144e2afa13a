//! An address with a prefix length.

use model::TrafficSelector;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A prefix, or an interface's address with its prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// A text that is no prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address, a slash and a prefix length")]
pub struct NotAPrefix;

impl Prefix {
    /// Returns the address.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Returns the prefix length in bits, at most 32 or 128.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Returns the prefix with its host bits cleared.
    pub fn network(self) -> Self {
        Self {
            address: self.selector().first,
            length: self.length,
        }
    }

    /// Returns a selector of every protocol and port of the prefix.
    pub fn selector(self) -> TrafficSelector {
        TrafficSelector::from_prefix(self.address, self.length)
            .expect("the length was checked when the prefix was read")
    }
}

impl FromStr for Prefix {
    type Err = NotAPrefix;

    fn from_str(text: &str) -> Result<Self, NotAPrefix> {
        let (address, length) = text.split_once('/').ok_or(NotAPrefix)?;
        let address: IpAddr = address.parse().map_err(|_| NotAPrefix)?;
        // `parse` would accept a plus sign.
        if !length.bytes().all(|octet| octet.is_ascii_digit()) {
            return Err(NotAPrefix);
        }
        let length = length.parse().map_err(|_| NotAPrefix)?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        if length > longest {
            return Err(NotAPrefix);
        }
        Ok(Self { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}
