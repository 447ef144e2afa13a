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

impl fmt::Display for Identity {
    /// As in a configuration file. Control characters are escaped: the text came from a peer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Fqdn(text) | Self::Email(text) => write!(f, "{}", text.escape_debug()),
            Self::Opaque { kind, data } => {
                write!(f, "type {kind}:")?;
                data.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
            }
        }
    }
}
