//! The line to change after a failure of certificates or public keys.

use super::remedy::{Remedy, elsewhere};
use control::Fix;
use crypto::{Certificate, Unsupported, Untrusted};
use model::Identity;
use node::BadProof;
use wire::ike::CertificateRefusal;

/// Returns fixes for a peer's certificate or key that we refuse.
pub fn theirs(remedy: &Remedy<'_>, why: &BadProof, theirs: Option<&Certificate>) -> Vec<Fix> {
    match why {
        BadProof::Untrusted(why) => untrusted(remedy, why, &issuer(theirs)),
        BadProof::WrongName { claimed, names } => {
            let mut fixes = vec![elsewhere(format!(
                "issue a certificate for {claimed}, its `id`, and run `strata reload`"
            ))];
            let name = names.first();
            fixes.extend(name.map(|name| {
                let change =
                    format!("or write `id = \"{name}\"`, if that is the peer, also at the peer");
                remedy.at("id", change)
            }));
            fixes
        }
        BadProof::OtherAuthority { expected, .. } => vec![
            elsewhere(format!(
                "issue the certificate by {}, and run `strata reload`",
                expected.join(" or ")
            )),
            remedy.at("ca", "or add the other CA, if this peer may use it"),
        ],
        BadProof::OtherUnit { expected, .. } => vec![
            elsewhere(format!(
                "issue a certificate with `--ou \"{}\"`, and run `strata reload`",
                expected.join("\"` or `--ou \"")
            )),
            remedy.at("ou", "or change the line, if this peer may come"),
        ],
        BadProof::SeveralTables { .. } => vec![elsewhere(
            "issue a certificate with one organisational unit, and run `strata reload`",
        )],
        BadProof::WrongSignature | BadProof::UnknownSignature => {
            vec![elsewhere("name a `cert` and `key` that belong together")]
        }
        BadProof::AnotherKey { .. } | BadProof::WrongKey => vec![remedy.at(
            "pubkey",
            "name a file with the output of `strata pki pubkey` for the peer's key",
        )],
        BadProof::CertificateExpected => vec![
            remedy.at("psk", "add the line, with the same key at both ends"),
            elsewhere(
                "or remove `psk` and `pubkey` from its table for this host, and add a `cert` to [node]",
            ),
        ],
        BadProof::SharedKeyExpected => vec![
            remedy.at(
                "psk",
                "remove the line, if the peer's certificate is sufficient",
            ),
            elsewhere("or write the same `psk` in its table for this host"),
        ],
        BadProof::KeyExpected => vec![
            remedy.at(
                "pubkey",
                "remove the line, if the peer's certificate is sufficient",
            ),
            elsewhere("or write our `pubkey` in its table for this host"),
        ],
        BadProof::OldRsa => vec![elsewhere(
            "issue a certificate for an ECDSA P-256 or P-384 key, which signs without SHA-1",
        )],
        _ => Vec::new(),
    }
}

fn untrusted(remedy: &Remedy<'_>, why: &Untrusted, issuer: &str) -> Vec<Fix> {
    match why {
        Untrusted::UnknownAuthority(_) => vec![
            remedy.fix("node.ca", format!("add {issuer}, if you trust it")),
            elsewhere("or add the intermediates up to one of our CAs to the file of `cert`"),
        ],
        Untrusted::Forged(_) => vec![
            remedy.fix("node.ca", format!("name the newest file of {issuer}")),
            elsewhere("or issue a new certificate by the CA in our `ca`"),
        ],
        Untrusted::AuthorityExpired(_) => {
            vec![remedy.fix("node.ca", format!("name a renewed file of {issuer}"))]
        }
        Untrusted::NotYetValid(_) | Untrusted::AuthorityNotYetValid(_) => vec![clocks()],
        Untrusted::MayNotCertify(_) => vec![elsewhere(
            "issue it by a CA whose certificate has CA:TRUE and keyCertSign (`strata pki ca`)",
        )],
        Untrusted::TooDeep(_) => vec![elsewhere(
            "issue it by a CA nearer to the top, or renew the CA with a larger pathLenConstraint",
        )],
        Untrusted::NameOutside => vec![elsewhere(
            "issue it for a name that its CA may certify, or by another CA",
        )],
        Untrusted::Unsupported(what) => vec![elsewhere(supported(what))],
        Untrusted::TooMany => vec![elsewhere(
            "keep only the certificate and the intermediates up to a CA in the file of `cert`",
        )],
        Untrusted::Revoked { .. } => vec![elsewhere(
            "issue a certificate for a new key (`strata pki issue`), if the peer is still trusted",
        )],
        Untrusted::RevocationUnknown(_)
        | Untrusted::RevocationListEnded(_)
        | Untrusted::RevocationListForged(_) => vec![
            remedy.fix("node.crl", format!("name the newest list of {issuer}")),
            remedy.fix("node.revocation", "or write `revocation = \"relaxed\"`"),
        ],
        _ => vec![elsewhere(
            "issue a new certificate (`strata pki issue`), and run `strata reload`",
        )],
    }
}

/// Returns what is supported instead.
const fn supported(what: &Unsupported) -> &'static str {
    match what {
        Unsupported::Signature(_) | Unsupported::Key(_) => {
            "have its CAs sign with ECDSA P-256 or P-384, Ed25519, or RSA of 2048 bits or more, and SHA-256 or SHA-384"
        }
        Unsupported::Extension(_) => "issue it without this extension, or not marked critical",
        Unsupported::Constraints(_) => {
            "constrain the CA to DNS names and addresses, or use another CA"
        }
        Unsupported::Length => "issue it by a CA nearer to the top",
        Unsupported::Authority => "issue one for this end that is no CA (`strata pki issue`)",
        _ => "issue a new certificate (`strata pki issue`)",
    }
}

/// Returns fixes for our certificate that the peer refuses. Other implementations do not report the
/// reason.
pub fn ours(
    remedy: &Remedy<'_>,
    identity: &Identity,
    why: Option<CertificateRefusal>,
    ours: Option<&Certificate>,
) -> Vec<Fix> {
    let renew = format!("issue it for {identity} (`strata pki issue`), and run `strata reload`");
    let issuer = issuer(ours);
    let trust = || {
        vec![
            elsewhere(format!("add {issuer} to `ca`")),
            remedy.fix("node.cert", "or append the intermediates to this file"),
        ]
    };
    match why {
        Some(CertificateRefusal::NOT_YET_VALID) => vec![clocks()],
        Some(CertificateRefusal::UNKNOWN_AUTHORITY) => trust(),
        Some(CertificateRefusal::WRONG_SIGNATURE) => {
            vec![remedy.fix("node.key", "name the private key of `cert`")]
        }
        Some(CertificateRefusal::UNSUPPORTED) => {
            let part = "issue it without the part that `strata check` names";
            vec![remedy.fix("node.cert", part)]
        }
        Some(CertificateRefusal::REVOCATION_UNKNOWN) => {
            vec![elsewhere(format!(
                "name the newest list of {issuer} in `crl`"
            ))]
        }
        Some(_) => vec![remedy.fix("node.cert", renew)],
        None => {
            let table =
                format!("write `id = \"{identity}\"` without `psk` in its table for this host");
            let expected = "compare it with `id` in [node] of the peer";
            let mut fixes = vec![elsewhere(table), remedy.at("id", expected)];
            fixes.extend(trust());
            fixes
        }
    }
}

/// Returns fixes for a peer that verifies other signature algorithms than ours.
pub fn other_kind(remedy: &Remedy<'_>) -> Vec<Fix> {
    let change = "name a certificate for a key of the other kind, Ed25519 or ECDSA P-256";
    vec![
        remedy.fix("node.cert", change),
        remedy.at(
            "psk",
            "or add the line, if the peer has a `psk` for this host",
        ),
    ]
}

fn clocks() -> Fix {
    elsewhere("compare the clocks of both ends with `date --utc`")
}

fn issuer(certificate: Option<&Certificate>) -> String {
    let name = certificate.map(|certificate| &certificate.issuer);
    name.map_or_else(|| "its CA".to_owned(), |name| format!("the CA `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Places;
    use crypto::UnixTime;

    /// Returns the key and the text of the first fix.
    fn first(fixes: &[Fix]) -> (Option<&str>, &str) {
        let fix = fixes.first().expect("something can be done");
        (fix.key.as_deref(), &fix.change)
    }

    fn remedy(places: &Places) -> Remedy<'_> {
        Remedy {
            places,
            table: "peer.alice",
            by_udp: true,
            decodes_psk: false,
        }
    }

    #[test]
    fn what_is_wrong_with_the_peers_proof_names_what_to_change() {
        let places = Places::default();
        let end = UnixTime(0);
        let name = BadProof::WrongName {
            claimed: "a.example".parse().expect("any text is an identity"),
            names: vec!["b.example".to_owned()],
        };
        for (why, key, says) in [
            (
                BadProof::from(Untrusted::Expired(end)),
                None,
                "a new certificate",
            ),
            (Untrusted::NotYetValid(end).into(), None, "clocks"),
            (
                Untrusted::AuthorityExpired(end).into(),
                Some("node.ca"),
                "renewed",
            ),
            (
                Untrusted::UnknownAuthority("CN=X".to_owned()).into(),
                Some("node.ca"),
                "add its CA",
            ),
            (
                Untrusted::Forged("CN=X".to_owned()).into(),
                Some("node.ca"),
                "newest",
            ),
            (Untrusted::Usage.into(), None, "a new certificate"),
            (Untrusted::AuthorityNotYetValid(end).into(), None, "clocks"),
            (
                Untrusted::MayNotCertify("CN=X".to_owned()).into(),
                None,
                "keyCertSign",
            ),
            (
                Untrusted::TooDeep("CN=X".to_owned()).into(),
                None,
                "nearer to the top",
            ),
            (Untrusted::NameOutside.into(), None, "may certify"),
            (
                Untrusted::from(Unsupported::Key("X".to_owned())).into(),
                None,
                "P-256",
            ),
            (
                Untrusted::from(Unsupported::Extension("X".to_owned())).into(),
                None,
                "not marked critical",
            ),
            (
                Untrusted::Revoked {
                    subject: "CN=X".to_owned(),
                    since: end,
                }
                .into(),
                None,
                "new key",
            ),
            (
                Untrusted::RevocationListEnded(end).into(),
                Some("node.crl"),
                "newest list of its CA",
            ),
            (
                Untrusted::RevocationUnknown("CN=X".to_owned()).into(),
                Some("node.crl"),
                "newest list of its CA",
            ),
            (BadProof::WrongKey, Some("peer.alice.pubkey"), "strata pki"),
            (
                BadProof::KeyExpected,
                Some("peer.alice.pubkey"),
                "remove the line",
            ),
            (name.clone(), None, "for a.example"),
            (
                BadProof::OtherAuthority {
                    issuer: "CN=X".to_owned(),
                    expected: vec!["`CN=Y`".to_owned()],
                },
                None,
                "by `CN=Y`",
            ),
            (
                BadProof::OtherUnit {
                    units: Vec::new(),
                    expected: vec!["Staff".to_owned()],
                },
                None,
                "`--ou \"Staff\"`",
            ),
            (BadProof::WrongSignature, None, "belong together"),
            (
                BadProof::CertificateExpected,
                Some("peer.alice.psk"),
                "add the line",
            ),
            (
                BadProof::SharedKeyExpected,
                Some("peer.alice.psk"),
                "remove the line",
            ),
        ] {
            let fixes = theirs(&remedy(&places), &why, None);
            let (at, change) = first(&fixes);
            assert_eq!(at, key, "{why}");
            assert!(change.contains(says), "{why}: {change}");
        }
        let fixes = theirs(&remedy(&places), &name, None);
        let other = fixes.last().expect("there are two ways");
        assert_eq!(other.key.as_deref(), Some("peer.alice.id"));
        assert!(other.change.contains("b.example"));
    }

    #[test]
    fn what_the_peer_says_of_ours_names_what_to_change() {
        use CertificateRefusal as Code;
        let places = Places::default();
        let identity = "a.example".parse().expect("any text is an identity");
        for (why, key, says) in [
            (Some(Code::EXPIRED), Some("node.cert"), "for a.example"),
            (Some(Code::NOT_YET_VALID), None, "clocks"),
            (Some(Code::UNKNOWN_AUTHORITY), None, "to `ca`"),
            (Some(Code::WRONG_NAME), Some("node.cert"), "for a.example"),
            (Some(Code::WRONG_USAGE), Some("node.cert"), "for a.example"),
            (Some(Code::WRONG_UNIT), Some("node.cert"), "for a.example"),
            (Some(Code::WRONG_SIGNATURE), Some("node.key"), "`cert`"),
            (Some(Code::REVOKED), Some("node.cert"), "for a.example"),
            (Some(Code::REVOCATION_UNKNOWN), None, "newest list"),
            (Some(Code(999)), Some("node.cert"), "for a.example"),
            (None, None, "without `psk`"),
        ] {
            let fixes = ours(&remedy(&places), &identity, why, None);
            let (at, change) = first(&fixes);
            assert_eq!(at, key, "{why:?}");
            assert!(change.contains(says), "{why:?}: {change}");
        }
    }
}
