//! Fuzzes certificates and requests for them: any chain is refused unless the CA issued it, and the
//! text shown for it is short and without control characters.

use crate::credential::{TODAY, certificates, trust};
use crypto::{Certificate, CertificateRequest, Name, RawKey, TrustStore};
use std::sync::LazyLock;

/// The CA, and all certificates for IKE issued by it or by its intermediate.
static KNOWN: LazyLock<(TrustStore, Vec<Certificate>)> = LazyLock::new(|| {
    let issued: [&[u8]; 4] = [
        include_bytes!("../../pure/ike/src/tests/certificates/gateway.pem"),
        include_bytes!("../../pure/ike/src/tests/certificates/mobile-ca.pem"),
        include_bytes!("../../pure/ike/src/tests/certificates/mobile-middle.pem"),
        include_bytes!("../../pure/ike/src/tests/certificates/thief.pem"),
    ];
    (
        trust(),
        issued.iter().flat_map(|pem| certificates(pem)).collect(),
    )
});

/// Runs on certificates in DER, each preceded by two octets of length.
pub fn run(octets: &[u8]) {
    let chain = chain(octets);
    for der in &chain {
        if let Ok(certificate) = Certificate::from_der(der) {
            assert_eq!(certificate.der, *der);
            look(
                &certificate.names,
                [&certificate.subject, &certificate.issuer],
            );
        }
        if let Ok(request) = CertificateRequest::from_der(der) {
            look(&request.names, [&request.subject]);
        }
        if let Ok(key) = RawKey::from_der(der) {
            assert_eq!(key.der(), *der);
        }
    }
    let (trust, issued) = &*KNOWN;
    match trust.verify(&chain, TODAY) {
        Ok(owner) => assert!(issued.contains(&owner), "{owner:?}"),
        Err(why) => assert!(!why.to_string().is_empty()),
    }
}

fn chain(mut octets: &[u8]) -> Vec<Vec<u8>> {
    let mut chain = Vec::new();
    while let Some(([high, low], rest)) = octets.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let (der, rest) = rest.split_at(len.min(rest.len()));
        chain.push(der.to_vec());
        octets = rest;
    }
    chain
}

fn look<const N: usize>(names: &[Name], texts: [&String; N]) {
    let names = names.iter().map(ToString::to_string);
    for text in names.chain(texts.into_iter().cloned()) {
        assert!(text.chars().count() <= 200, "{text:?}");
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}
