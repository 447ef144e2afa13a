//! Identities of peers (RFC 7296 section 3.5).

use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An IKEv2 identity.
///
/// Domain names and the domains of mail addresses compare without regard to case (RFC 4343, RFC
/// 5280 sections 7.2 and 7.5). Everything else compares octet by octet, without wildcards or
/// prefixes. The original spelling is kept because AUTH payloads and tokens cover it.
#[derive(Clone, Debug)]
pub enum Identity {
    /// ID_IPV4_ADDR or ID_IPV6_ADDR.
    Address(IpAddr),
    /// ID_FQDN.
    Fqdn(String),
    /// ID_RFC822_ADDR.
    Email(String),
    /// ID_KEY_ID, and every type without a variant of its own.
    Opaque {
        /// ID type octet.
        kind: u8,
        /// Identification data.
        data: Vec<u8>,
    },
}

impl FromStr for Identity {
    type Err = std::convert::Infallible;

    /// Parses an IP address, an e-mail address if there is an `@`, and otherwise a domain name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse() {
            Ok(address) => Self::Address(address),
            Err(_) if text.contains('@') => Self::Email(text.to_owned()),
            Err(_) => Self::Fqdn(text.to_owned()),
        })
    }
}

impl Identity {
    /// Returns the position of this kind in the order of identities.
    const fn rank(&self) -> u8 {
        match self {
            Self::Address(_) => 0,
            Self::Fqdn(_) => 1,
            Self::Email(_) => 2,
            Self::Opaque { .. } => 3,
        }
    }

    /// Returns the spelling that represents all equal identities.
    #[must_use]
    pub fn canonical(&self) -> Self {
        match self {
            Self::Fqdn(name) => Self::Fqdn(name.to_ascii_lowercase()),
            Self::Email(address) => {
                let (local, domain) = mailbox(address);
                Self::Email([local, &domain.to_ascii_lowercase()].concat())
            }
            Self::Address(_) | Self::Opaque { .. } => self.clone(),
        }
    }
}

impl Ord for Identity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Address(a), Self::Address(b)) => a.cmp(b),
            (Self::Fqdn(a), Self::Fqdn(b)) => compare(a, b),
            (Self::Email(a), Self::Email(b)) => {
                let ((a, at_a), (b, at_b)) = (mailbox(a), mailbox(b));
                a.cmp(b).then_with(|| compare(at_a, at_b))
            }
            (
                Self::Opaque {
                    kind: a,
                    data: of_a,
                },
                Self::Opaque {
                    kind: b,
                    data: of_b,
                },
            ) => (a, of_a).cmp(&(b, of_b)),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Identity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Identity {}

/// Compares domain names without regard to case.
fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.bytes(), b.bytes());
    a.map(|octet| octet.to_ascii_lowercase())
        .cmp(b.map(|octet| octet.to_ascii_lowercase()))
}

/// Splits a mail address into the local part with its `@`, and the domain.
fn mailbox(address: &str) -> (&str, &str) {
    let domain = address.rfind('@').map_or(address.len(), |at| at + 1);
    address.split_at(domain)
}

/// Most characters or octets shown of an identity. A domain name has at most 253 characters.
const SHOWN: usize = 256;

impl fmt::Display for Identity {
    /// Writes an identity as in a configuration file. The text came from a peer, so control
    /// characters are escaped and long text is cut.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = match self {
            Self::Address(address) => return write!(f, "{address}"),
            Self::Fqdn(text) | Self::Email(text) => {
                for c in text.chars().take(SHOWN) {
                    match c {
                        '\'' | '"' => write!(f, "{c}")?,
                        c => write!(f, "{}", c.escape_debug())?,
                    }
                }
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

    fn identity(text: &str) -> Identity {
        text.parse().unwrap()
    }

    // Weakness: 95
    #[test]
    fn domains_are_compared_without_regard_to_case_and_nothing_else_is() {
        for (a, b, equal) in [
            ("Branch.Example.NET", "branch.example.net", true),
            ("ops@Example.NET", "ops@example.net", true),
            ("Ops@example.net", "ops@example.net", false),
            ("\"a@B\"@Example.net", "\"a@B\"@example.NET", true),
            ("\"a@B\"@example.net", "\"a@b\"@example.net", false),
            ("branch.example.net", "branch.example.ne", false),
            ("b\u{e9}.example", "b\u{c9}.example", false),
            ("2001:db8::A", "2001:db8::a", true),
        ] {
            let (a, b) = (identity(a), identity(b));
            assert_eq!((a == b, a.cmp(&b).is_eq()), (equal, equal), "{a} {b}");
            assert_eq!(
                a.canonical().to_string() == b.canonical().to_string(),
                equal
            );
            assert_eq!(a.canonical(), a);
        }
        let opaque = |data: &[u8]| Identity::Opaque {
            kind: 11,
            data: data.to_vec(),
        };
        assert_ne!(opaque(b"Key"), opaque(b"key"));
        assert_ne!(opaque(b"example.net"), identity("example.net"));
    }

    #[test]
    fn the_spelling_of_an_identity_is_kept() {
        for text in [
            "Branch.Example.NET",
            "Ops@Example.NET",
            "o'brien@example.net",
        ] {
            assert_eq!(identity(text).to_string(), text);
        }
    }

    // Weakness: 7
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
