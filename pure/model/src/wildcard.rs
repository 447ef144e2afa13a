//! Patterns that stand for many identities.

use crate::Identity;

/// Longest identity that a pattern matches, in octets: "the upper limit on addresses" of mail (RFC
/// 3696, erratum 1690). A domain name is shorter.
const LONGEST: usize = 254;

/// A pattern of identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wildcard {
    /// One identity alone.
    One(Identity),
    /// `*@DOMAIN`: every mail address of a domain.
    Mailboxes(String),
    /// `*.DOMAIN`: every name below a domain, at any depth.
    Below(String),
    /// `*`: every name, mail address and IP address.
    Any,
}

impl Wildcard {
    /// Returns the pattern that an identity is written as, or `None` if the identity is no pattern.
    pub fn read(identity: &Identity) -> Option<Self> {
        let of = |text: &str| (!text.is_empty() && !text.contains('*')).then(|| text.to_owned());
        match identity {
            Identity::Fqdn(text) if text == "*" => Some(Self::Any),
            Identity::Fqdn(text) => text.strip_prefix("*.").and_then(of).map(Self::Below),
            Identity::Email(text) => text.strip_prefix("*@").and_then(of).map(Self::Mailboxes),
            Identity::Address(_) | Identity::Opaque { .. } => None,
        }
    }

    /// Returns true if the pattern stands for an identity.
    ///
    /// A pattern matches no identity that could not be shown as one word: with a star, a space or a
    /// control character.
    pub fn matches(&self, identity: &Identity) -> bool {
        let text = match (self, identity) {
            (Self::One(one), _) => return one == identity,
            (Self::Any, Identity::Address(_)) => return true,
            (_, Identity::Address(_) | Identity::Opaque { .. }) => return false,
            (_, Identity::Fqdn(text) | Identity::Email(text)) => text,
        };
        let is_wild = |c: char| c == '*' || c.is_whitespace() || c.is_control();
        if text.is_empty() || text.len() > LONGEST || text.contains(is_wild) {
            return false;
        }
        match (self, identity) {
            (Self::Mailboxes(domain), Identity::Email(text)) => ends_with(text, '@', domain),
            (Self::Below(domain), Identity::Fqdn(text)) => ends_with(text, '.', domain),
            (Self::Any, _) => true,
            (Self::One(_) | Self::Mailboxes(_) | Self::Below(_), _) => false,
        }
    }

    /// Returns the rank among patterns that match one identity: the highest counts.
    pub const fn rank(&self) -> usize {
        match self {
            Self::One(_) => usize::MAX,
            Self::Mailboxes(domain) | Self::Below(domain) => domain.len() + 1,
            Self::Any => 0,
        }
    }
}

/// Returns true if a name has something before the last `mark`, and this domain behind it.
fn ends_with(name: &str, mark: char, domain: &str) -> bool {
    let Some(at) = name.len().checked_sub(domain.len()) else {
        return false;
    };
    let Some((before, behind)) = name.split_at_checked(at) else {
        return false;
    };
    let local = before.strip_suffix(mark);
    local.is_some_and(|local| !local.is_empty()) && behind.eq_ignore_ascii_case(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(text: &str) -> Identity {
        text.parse().unwrap()
    }

    fn pattern(text: &str) -> Wildcard {
        Wildcard::read(&identity(text)).unwrap()
    }

    #[test]
    fn a_pattern_is_a_star_alone_or_before_a_domain() {
        for text in ["*", "*@example.net", "*.example.net"] {
            assert!(Wildcard::read(&identity(text)).is_some(), "{text}");
        }
        for text in [
            "example.net",
            "alice@example.net",
            "a*@example.net",
            "*a.example.net",
            "*@*.example.net",
            "*.*",
            "**",
            "*@",
            "*.",
            "192.0.2.1",
            "",
        ] {
            assert_eq!(Wildcard::read(&identity(text)), None, "{text}");
        }
    }

    #[test]
    fn a_pattern_matches_what_is_before_its_domain_and_nothing_else() {
        for (wildcard, name, matches) in [
            ("*@staff.example.net", "alice@staff.example.net", true),
            ("*@staff.example.net", "alice@Staff.Example.NET", true),
            ("*@staff.example.net", "\"a@b\"@staff.example.net", true),
            ("*@staff.example.net", "@staff.example.net", false),
            ("*@staff.example.net", "staff.example.net", false),
            ("*@staff.example.net", "alice@example.net", false),
            ("*@staff.example.net", "alice@evil-staff.example.net", false),
            ("*@staff.example.net", "alice@a.staff.example.net", false),
            (
                "*@staff.example.net",
                "alice@staff.example.net.evil.example",
                false,
            ),
            ("*@staff.example.net", "alice.staff.example.net", false),
            ("*@staff.example.net", "*@staff.example.net", false),
            ("*@staff.example.net", "al ice@staff.example.net", false),
            ("*@staff.example.net", "alice\n@staff.example.net", false),
            ("*.example.net", "laptop.example.net", true),
            ("*.example.net", "a.b.EXAMPLE.net", true),
            ("*.example.net", "example.net", false),
            ("*.example.net", ".example.net", false),
            ("*.example.net", "laptop-example.net", false),
            ("*.example.net", "alice@laptop.example.net", false),
            ("*.example.net", "\u{e9}.example.net", true),
            ("*.example.net", "\u{e9}example.net", false),
            ("*", "laptop.example.net", true),
            ("*", "alice@example.net", true),
            ("*", "192.0.2.1", true),
            ("*", "", false),
            ("*.example.net", "192.0.2.1", false),
        ] {
            let found = pattern(wildcard).matches(&identity(name));
            assert_eq!(found, matches, "{wildcard} {name:?}");
        }
        let long = format!("{}@example.net", "a".repeat(250));
        assert!(!pattern("*@example.net").matches(&identity(&long)));
        let opaque = Identity::Opaque {
            kind: 11,
            data: b"alice@example.net".to_vec(),
        };
        assert!(!pattern("*").matches(&opaque));
    }

    #[test]
    fn the_longer_pattern_has_the_higher_rank() {
        let alice = identity("alice@example.net");
        let ranks = [
            pattern("*"),
            pattern("*.net"),
            pattern("*.example.net"),
            Wildcard::One(alice.clone()),
        ]
        .map(|pattern| pattern.rank());
        assert!(ranks.is_sorted());
        assert!(Wildcard::One(alice.clone()).matches(&identity("alice@EXAMPLE.net")));
        assert!(!Wildcard::One(alice).matches(&identity("bob@example.net")));
    }
}
