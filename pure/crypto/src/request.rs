//! Certificate signing requests (RFC 2986): a public key that its holder wants a CA to certify, and
//! the names that the holder wants. The signature proves that the holder has the private key. It
//! proves none of the names.

use crate::certificate::{self, Name};
use crate::verifier;
use crate::{PublicKey, raw_key};
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject;
use thiserror::Error;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer;

/// A request whose signature was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    /// Requested subject, as text for people.
    pub subject: String,
    /// Requested subjectAltNames of the kinds that an IKE identity can have.
    pub names: Vec<Name>,
    /// The key to be certified.
    pub key: PublicKey,
}

/// Reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadRequest {
    /// The octets are no request.
    #[error("not a certificate signing request (PKCS #10)")]
    Unreadable,
    /// The key is of a kind that is not supported for IKE signatures.
    #[error("its key is not ECDSA P-256, ECDSA P-384, Ed25519, or RSA of at least 2048 bits")]
    UnknownKey,
    /// The request was changed, or its sender does not have the private key.
    #[error("it is not signed with the key that it contains")]
    Forged,
}

impl CertificateRequest {
    /// Parses the first request of a PEM file.
    pub fn from_pem(text: &[u8]) -> Result<Self, BadRequest> {
        let der = CertificateSigningRequestDer::from_pem_slice(text);
        Self::from_der(&der.map_err(|_| BadRequest::Unreadable)?)
    }

    /// Parses a request in DER; trailing octets are an error.
    pub fn from_der(der: &[u8]) -> Result<Self, BadRequest> {
        let parsed = X509CertificationRequest::from_der(der).ok();
        let (_, request) = parsed
            .filter(|(rest, _)| rest.is_empty())
            .ok_or(BadRequest::Unreadable)?;
        let info = &request.certification_request_info;
        let key = raw_key::read(&info.subject_pki).ok_or(BadRequest::UnknownKey)?;
        if !is_signed(&request, &key) {
            return Err(BadRequest::Forged);
        }
        let extensions = request.requested_extensions().into_iter().flatten();
        let names = extensions.flat_map(|extension| match extension {
            ParsedExtension::SubjectAlternativeName(names) => &names.general_names[..],
            _ => &[],
        });
        Ok(Self {
            subject: certificate::text(&info.subject),
            names: names.filter_map(certificate::name).collect(),
            key,
        })
    }
}

/// Verifies a request's signature by the algorithms that it names. RSASSA-PSS has one name for all
/// hash functions.
fn is_signed(request: &X509CertificationRequest<'_>, key: &PublicKey) -> bool {
    const HEADER: usize = 2;
    let named = request.signature_algorithm.algorithm.as_bytes();
    let message = request.certification_request_info.raw;
    let signature = &request.signature_value.data;
    if request.signature_value.unused_bits != 0 {
        return false;
    }
    let mut algorithms = verifier::ALL.iter().filter(|algorithm| {
        // An object identifier with its tag and length, then the parameters.
        let identifier = algorithm.signature_alg_id();
        let identifier = identifier.as_ref().get(HEADER..).unwrap_or_default();
        identifier.starts_with(named)
    });
    algorithms.any(|algorithm| {
        let verified = algorithm.verify_signature(&key.octets, message, signature);
        verified.is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyKind;
    use std::path::Path;

    fn file(name: &str) -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/requests");
        std::fs::read(folder.join(name)).unwrap()
    }

    fn der(name: &str) -> Vec<u8> {
        let der = CertificateSigningRequestDer::from_pem_slice(&file(name)).unwrap();
        der.to_vec()
    }

    #[test]
    fn requests_of_openssl_are_read() {
        for (name, kind) in [
            ("p256.csr", KeyKind::P256),
            ("p384.csr", KeyKind::P384),
            ("ed25519.csr", KeyKind::Ed25519),
            ("rsa.csr", KeyKind::Rsa),
            ("pss.csr", KeyKind::Rsa),
        ] {
            let request = CertificateRequest::from_pem(&file(name)).unwrap();
            assert_eq!(request.key.kind, kind, "{name}");
            assert_eq!(request.subject, "CN=alice@example.net", "{name}");
            let expected = [
                Name::Email("alice@example.net".to_owned()),
                Name::Dns("alice.example.net".to_owned()),
                Name::Address([192, 0, 2, 7].into()),
            ];
            assert_eq!(request.names, expected, "{name}");
        }
    }

    #[test]
    fn a_request_for_a_key_that_ike_cannot_use_is_refused() {
        for name in ["p521.csr", "short.csr"] {
            let refused = CertificateRequest::from_pem(&file(name));
            assert_eq!(refused, Err(BadRequest::UnknownKey), "{name}");
        }
    }

    /// The name of the signature algorithm is the only part that no signature covers.
    #[test]
    fn a_request_of_which_any_octet_was_changed_is_refused() {
        const ALGORITHM: &[u8] = &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
        let good = der("p256.csr");
        assert!(CertificateRequest::from_der(&good).is_ok());
        let mut windows = good.windows(ALGORITHM.len());
        let algorithm = windows.position(|octets| octets == ALGORITHM).unwrap();
        for at in (0..algorithm).chain(algorithm + ALGORITHM.len()..good.len()) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(CertificateRequest::from_der(&bad).is_err(), "octet {at}");
        }
        let name = good.windows(5).position(|octets| octets == b"alice");
        let mut bad = good.clone();
        bad[name.unwrap()] = b'A';
        let refused = CertificateRequest::from_der(&bad);
        assert_eq!(refused, Err(BadRequest::Forged));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let good = der("p256.csr");
        for bad in [&good[..good.len() - 1], &[&good[..], &[0]].concat(), b""] {
            let refused = CertificateRequest::from_der(bad);
            assert_eq!(refused, Err(BadRequest::Unreadable));
        }
        let refused = CertificateRequest::from_pem(b"no request");
        assert_eq!(refused, Err(BadRequest::Unreadable));
    }
}
