//! Identities as strongSwan and Libreswan write them.

use std::net::IpAddr;

/// Returns an identity in the syntax of our configuration, or the reason that it has none.
pub(crate) fn identity(text: &str) -> Result<String, &'static str> {
    const NAMED: [&str; 6] = ["fqdn:", "dns:", "email:", "rfc822:", "ipv4:", "ipv6:"];
    let text = text.trim();
    let named = NAMED.iter().find_map(|kind| text.strip_prefix(kind));
    let plain = match named.unwrap_or(text) {
        name if name.starts_with("@#") || name.starts_with("@@") => {
            return match name.strip_prefix("@@") {
                Some(address) => Ok(address.to_owned()),
                None => Err("Strata has no key IDs: use a name, mail address or IP address"),
            };
        }
        name => name.strip_prefix('@').unwrap_or(name),
    };
    // A pattern for many users, who authenticate by certificate.
    let named = plain.strip_prefix("*@").unwrap_or(plain);
    if named.is_empty() || named.starts_with('%') || named.contains('*') {
        return Err(
            "the peer may have any identity here: write its `id`, or with certificates a pattern like `*@example.net`",
        );
    }
    if plain.starts_with("keyid:") || plain.starts_with("asn1") || plain.contains('=') {
        return Err(
            "Strata has no distinguished names and key IDs: use a subjectAltName of the certificate",
        );
    }
    if plain.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("this is no name, mail address or IP address");
    }
    Ok(plain.to_owned())
}

/// Returns true if two texts are the same identity.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    match (identity(one), identity(other)) {
        (Ok(one), Ok(other)) => {
            let addresses = [&one, &other].map(|text| text.parse::<IpAddr>().ok());
            match addresses {
                [Some(one), Some(other)] => one == other,
                _ => one.eq_ignore_ascii_case(&other),
            }
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_mail_addresses_are_the_same_here() {
        for (theirs, ours) in [
            ("moon.strongswan.org", "moon.strongswan.org"),
            ("@moon.strongswan.org", "moon.strongswan.org"),
            ("fqdn:moon.strongswan.org", "moon.strongswan.org"),
            ("carol@strongswan.org", "carol@strongswan.org"),
            ("*@strongswan.org", "*@strongswan.org"),
            ("@@carol@strongswan.org", "carol@strongswan.org"),
            ("email:carol@strongswan.org", "carol@strongswan.org"),
            ("192.168.0.1", "192.168.0.1"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(identity(theirs).as_deref(), Ok(ours));
        }
    }

    #[test]
    fn what_is_no_identity_of_ours_is_refused_with_a_reason() {
        for (text, why) in [
            ("%any", "any identity"),
            ("*@*.strongswan.org", "any identity"),
            ("*.strongswan.org", "any identity"),
            ("", "any identity"),
            ("C=CH, O=strongSwan, CN=moon", "distinguished names"),
            ("keyid:abcd", "key IDs"),
            ("@#0a0b", "key IDs"),
            ("two words", "no name"),
        ] {
            let told = identity(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }

    #[test]
    fn identities_are_compared_as_peers_do() {
        assert!(is_same("@Moon.example", "moon.example"));
        assert!(is_same("2001:db8:0::1", "2001:db8::1"));
        assert!(!is_same("moon.example", "sun.example"));
    }
}
