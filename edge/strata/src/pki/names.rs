//! Names in certificates: the identities that a certificate may have, and how it encodes them.

use control::Failure;
use crypto::Name;
use model::Identity;
use rcgen::SanType;

/// Returns the names of a host, the first one without its repetitions, or a failure if a
/// certificate cannot have one of them.
pub(super) fn of_host(id: &Identity, also: &[Identity]) -> Result<Vec<Identity>, Failure> {
    let mut names: Vec<Identity> = Vec::new();
    for name in std::iter::once(id).chain(also) {
        if !is_valid(name) {
            return Err(Failure::new(
                format!("`{name}` is not a domain name, mail address or IP address of one host"),
                "write `--id gw.example.net`, `--id alice@example.net` or `--id 192.0.2.1`; \
                 further names follow `--also`",
            ));
        }
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Ok(names)
}

/// Returns the subjectAltNames. The certificate of a gateway has an address also as a domain name,
/// in which Windows looks for the address that it connects to.
pub(super) fn alternatives(
    names: &[Identity],
    is_gateway: bool,
) -> Result<Vec<SanType>, rcgen::Error> {
    let mut all = Vec::new();
    for name in names {
        let text = name.to_string();
        all.push(match name {
            Identity::Address(address) => SanType::IpAddress(*address),
            Identity::Email(_) => SanType::Rfc822Name(text.try_into()?),
            Identity::Fqdn(_) | Identity::Opaque { .. } => SanType::DnsName(text.try_into()?),
        });
    }
    if is_gateway {
        for address in names.iter().filter(|name| is_address(name)) {
            all.push(SanType::DnsName(address.to_string().try_into()?));
        }
    }
    Ok(all)
}

/// Returns the identity that a name of a certificate stands for.
pub(super) fn identity(name: &Name) -> Identity {
    match name {
        Name::Dns(name) => Identity::Fqdn(name.clone()),
        Name::Email(address) => Identity::Email(address.clone()),
        Name::Address(address) => Identity::Address(*address),
    }
}

/// Returns true for a name that clients can connect to.
pub(super) const fn is_reachable(name: &Identity) -> bool {
    matches!(name, Identity::Address(_) | Identity::Fqdn(_))
}

const fn is_address(name: &Identity) -> bool {
    matches!(name, Identity::Address(_))
}

/// Returns true if a certificate may have the name. The name is also that of files.
fn is_valid(name: &Identity) -> bool {
    match name {
        Identity::Address(_) => true,
        Identity::Fqdn(name) => is_domain(name),
        Identity::Email(address) => match address.rsplit_once('@') {
            Some((local, domain)) => is_local(local) && is_domain(domain),
            None => false,
        },
        Identity::Opaque { .. } => false,
    }
}

/// Labels of 1 to 63 letters, digits, hyphens and underscores (RFC 1123 section 2.1), at most 253
/// octets. Peers compare names without wildcards, so a certificate has none.
fn is_domain(name: &str) -> bool {
    let is_label = |label: &str| {
        let known = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
        (1..=63).contains(&label.len())
            && label.bytes().all(known)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Returns true for the local part of a mail address without quotes (RFC 5322 section 3.2.3), and
/// without the slash.
fn is_local(name: &str) -> bool {
    let known =
        |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.=?^_`{|}~".contains(&octet);
    (1..=64).contains(&name.len()) && name.bytes().all(known) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(text: &str) -> Identity {
        text.parse().expect("any text is an identity")
    }

    #[test]
    fn names_of_one_host_are_taken_once_in_their_order() {
        let also = [
            "192.0.2.1",
            "GW.example.net",
            "2001:db8::1",
            "ops+x@example.net",
        ];
        let names =
            of_host(&identity("gw.example.net"), &also.map(identity)).expect("all are good");
        let texts: Vec<_> = names.iter().map(ToString::to_string).collect();
        let expected = [
            "gw.example.net",
            "192.0.2.1",
            "2001:db8::1",
            "ops+x@example.net",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn what_no_host_is_called_is_refused_with_examples() {
        for text in [
            "",
            "alice example",
            "*.example.net",
            "-gw.example.net",
            "gw..example.net",
            "b\u{e9}.example",
            "../gw",
            "@example.net",
            "a/b@example.net",
            "alice@",
            "alice@exa mple",
        ] {
            let good = identity("gw.example.net");
            for refused in [
                of_host(&identity(text), &[]),
                of_host(&good, &[identity(text)]),
            ] {
                let failure = refused.expect_err(text);
                assert!(failure.message.contains("is not a domain name"), "{text}");
                assert!(failure.fix.contains("--also"), "{text}");
            }
        }
        let long = format!("{}.net", "a".repeat(64));
        assert!(of_host(&identity(&long), &[]).is_err());
    }

    #[test]
    fn a_gateway_has_its_address_as_a_domain_name_too() {
        let names = [identity("192.0.2.1"), identity("gw.example.net")];
        let count = |is_gateway| {
            alternatives(&names, is_gateway)
                .expect("all are good")
                .len()
        };
        assert_eq!((count(false), count(true)), (2, 3));
    }
}
