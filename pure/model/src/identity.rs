//! Who a peer says it is (RFC 7296 section 3.5).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An IKEv2 identity. Equality is octet equality: no wildcard, no prefix, no case folding.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identity {
    /// ID_IPV4_ADDR or ID_IPV6_ADDR.
    Address(IpAddr),
    /// ID_FQDN.
    Fqdn(String),
    /// ID_RFC822_ADDR.
    Email(String),
    /// ID_KEY_ID, and every type without a form of its own here.
    Opaque {
        /// The ID type octet.
        kind: u8,
        /// The identification data.
        data: Vec<u8>,
    },
}

impl FromStr for Identity {
    type Err = std::convert::Infallible;

    /// An address, an e-mail address if there is an `@`, else a domain name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse() {
            Ok(address) => Self::Address(address),
            Err(_) if text.contains('@') => Self::Email(text.to_owned()),
            Err(_) => Self::Fqdn(text.to_owned()),
        })
    }
}

/// What is shown of an identity that a peer made long: a domain name has at most 253 characters.
const SHOWN: usize = 256;

impl fmt::Display for Identity {
    /// As in a configuration file. The text came from a peer: control characters are escaped, and
    /// no line of a log becomes longer than it has to.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = match self {
            Self::Address(address) => return write!(f, "{address}"),
            Self::Fqdn(text) | Self::Email(text) => {
                let mut shown = text.chars().take(SHOWN).flat_map(char::escape_debug);
                shown.try_for_each(|c| write!(f, "{c}"))?;
                text.len()
            }
            Self::Opaque { kind, data } => {
                write!(f, "type {kind}:")?;
                let mut shown = data.iter().take(SHOWN);
                shown.try_for_each(|octet| write!(f, "{octet:02x}"))?;
                data.len()
            }
        };
        if length > SHOWN {
            write!(f, "... ({length} octets)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_makes_long_or_wild_is_shown_short_and_tame() {
        let long = Identity::Fqdn("a".repeat(60_000)).to_string();
        assert!(long.ends_with("aaa... (60000 octets)") && long.len() < 300);
        let wild = Identity::Email("a\u{1b}[2J@b".to_owned()).to_string();
        assert_eq!(wild, "a\\u{1b}[2J@b");
        let longest = format!("{}.net", "a".repeat(249));
        assert_eq!(Identity::Fqdn(longest.clone()).to_string(), longest);
    }
}
