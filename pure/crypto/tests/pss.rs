//! Certificates signed by a CA with RSASSA-PSS, with all kinds of parameters.

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]

use crypto::{Certificate, TrustStore, UnixTime, Unsupported, Untrusted};
use std::path::Path;

/// 2030-03-17, when the certificates are valid.
const TODAY: UnixTime = UnixTime(1_900_000_000);

fn certificate(name: &str) -> Certificate {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pss");
    let pem = std::fs::read(folder.join(format!("{name}.pem"))).unwrap();
    Certificate::all_from_pem(&pem).unwrap().remove(0)
}

fn verify(der: Vec<u8>) -> Result<Certificate, Untrusted> {
    TrustStore::new(vec![certificate("ca")]).verify(&[der], TODAY)
}

/// Salt and mask use the certificate's hash (RFC 4055 section 3.1). openssl accepts other
/// parameters.
// Weakness: 59
#[test]
fn a_certificate_is_believed_with_no_other_parameters_of_pss_than_ours() {
    assert!(verify(certificate("good").der).is_ok());
    for name in [
        "no-salt",
        "short-salt",
        "long-salt",
        "other-mask",
        "old-mask",
        "defaults",
    ] {
        let refused = verify(certificate(name).der);
        assert!(
            matches!(
                refused,
                Err(Untrusted::Unsupported(Unsupported::Signature(_)))
            ),
            "{name}: {refused:?}"
        );
    }
}

/// "This field MUST contain the same algorithm identifier as the signature field" (RFC 5280 section
/// 4.1.1.2).
// Weakness: 59
#[test]
fn parameters_beside_a_certificate_are_those_in_it() {
    const SALT: [u8; 5] = [0xa2, 3, 2, 1, 32];
    let good = certificate("good").der;
    let places: Vec<_> = (0..good.len() - 4)
        .filter(|at| good[*at..].starts_with(&SALT))
        .collect();
    assert_eq!(places.len(), 2);
    for place in places {
        for salt in [0, 20, 33, 127, 128, 255] {
            let mut other = good.clone();
            other[place + 4] = salt;
            assert!(verify(other).is_err(), "{salt}");
        }
    }
}
