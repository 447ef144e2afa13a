//! Raw public keys (RFC 7670): a SubjectPublicKeyInfo without a certificate. The user of such a key
//! has to know its owner from elsewhere.

use crate::{KeyKind, PublicKey, sha256};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject;
use std::fmt;
use thiserror::Error;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey as Parsed;
use x509_parser::x509::SubjectPublicKeyInfo;

/// A public key in the form in which it is sent and stored. Two keys are equal if their octets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawKey {
    der: Vec<u8>,
    key: PublicKey,
}

/// The octets are no public key, or the kind of key is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a public key for Ed25519, ECDSA P-256 or P-384, or RSA of at least 2048 bits")]
pub struct NoKey;

impl RawKey {
    /// Parses a key in DER; trailing octets are an error.
    pub fn from_der(der: &[u8]) -> Result<Self, NoKey> {
        let (rest, info) = SubjectPublicKeyInfo::from_der(der).map_err(|_| NoKey)?;
        let key = read(&info).filter(|_| rest.is_empty()).ok_or(NoKey)?;
        let der = der.to_vec();
        Ok(Self { der, key })
    }

    /// Parses the first key of a PEM file.
    pub fn from_pem(text: &[u8]) -> Result<Self, NoKey> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text).map_err(|_| NoKey)?;
        Self::from_der(&der)
    }

    /// Returns the SubjectPublicKeyInfo in DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Returns the key for verifying signatures.
    pub const fn key(&self) -> &PublicKey {
        &self.key
    }
}

impl fmt::Display for RawKey {
    /// Formats the kind of key and the first half of SHA-256 over the DER, which is enough to
    /// compare keys by eye.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.key.kind)?;
        let digest = sha256(&[&self.der]);
        let (half, _) = digest.split_at(digest.len() / 2);
        half.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Returns the key if its kind is supported. Its length tells P-256 and P-384 from other curves,
/// and a point off the curve verifies nothing.
pub(crate) fn read(info: &SubjectPublicKeyInfo<'_>) -> Option<PublicKey> {
    const ED25519: &str = "1.3.101.112";
    const P256_POINT: usize = 65;
    const P384_POINT: usize = 97;
    const SHORTEST_RSA: usize = 2048;
    let octets = info.subject_public_key.data.to_vec();
    let kind = match info.parsed().ok()? {
        Parsed::EC(_) if octets.len() == P256_POINT => KeyKind::P256,
        Parsed::EC(_) if octets.len() == P384_POINT => KeyKind::P384,
        Parsed::RSA(key) if key.key_size() >= SHORTEST_RSA => KeyKind::Rsa,
        _ if info.algorithm.algorithm.to_id_string() == ED25519 => KeyKind::Ed25519,
        _ => return None,
    };
    Some(PublicKey { kind, octets })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// RFC 7670 appendix A.1.
    const ECDSA: &str = "3059 3013 0607 2a86 48ce 3d02 0106 082a 8648 ce3d 0301 0703 4200 04cb 28e0
        999b 9c77 15fd 0a80 d8e4 7a77 0797 16cb bf91 7dd7 2e97 566e a1c0 6695 7c2b 57c0 235f
        b748 9768 d058 ff49 11c2 0fdb e71e 3699 d913 39af bb90 3ee1 7255 dc";

    #[test]
    fn the_example_of_rfc_7670_appendix_a_1_is_read() {
        let der = hex(ECDSA);
        let key = RawKey::from_der(&der).unwrap();
        assert_eq!((key.key().kind, key.der()), (KeyKind::P256, &der[..]));
        assert_eq!(key.key().octets, der[26..]);
    }

    /// RFC 8410 section 10.1.
    #[test]
    fn the_ed25519_key_of_rfc_8410_is_read_from_a_pem_file() {
        let pem = b"-----BEGIN PUBLIC KEY-----\n\
            MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
            -----END PUBLIC KEY-----\n";
        let key = RawKey::from_pem(pem).unwrap();
        let octets =
            "19bf 4409 6984 cdfe 8541 bac1 67dc 3b96 c850 86aa 30b6 b6cb 0c5c 38ad 7031 66e1";
        assert_eq!(key.key().kind, KeyKind::Ed25519);
        assert_eq!(key.key().octets, hex(octets));
        assert_eq!(key.der()[12..], hex(octets));
    }

    /// The key of RFC 7670 appendix A.2 has 1024 bits, which is too short.
    // Weakness: 60
    #[test]
    fn the_rsa_key_of_rfc_7670_appendix_a_2_is_too_short() {
        let der = "3081 9f30 0d06 092a 8648 86f7 0d01 0101 0500 0381 8d00 3081 8902 8181 00bc 7b43
            4749 c7b3 8600 bfa8 4b44 f881 879a 2dda 08d1 f014 5af5 806c 2aed 6a61 72ff 0dc3 d4cd
            6016 38e8 ca34 8ebd ca57 4231 cadc 9712 e209 b1fd dba5 8a8c 62b3 6903 8a3d 1eaa 727c
            1f39 ae49 ed6e bc30 f8d9 b52e 2338 5a40 1915 858c 59be 72f3 43fb 1eb8 7b16 ffc5 ab0f
            8f8f e9f7 cb3e 663d 8fe9 f9ec fa12 3066 f368 358c eaef d302 0301 0001";
        assert_eq!(RawKey::from_der(&hex(der)), Err(NoKey));
    }

    #[test]
    fn nothing_is_read_but_one_whole_key() {
        let der = hex(ECDSA);
        for len in 0..der.len() {
            assert_eq!(RawKey::from_der(&der[..len]), Err(NoKey), "{len} octets");
        }
        assert_eq!(RawKey::from_der(&[&der[..], &[0]].concat()), Err(NoKey));
        assert_eq!(RawKey::from_pem(b"no key at all"), Err(NoKey));
    }

    /// The digest comes from `sha256sum`.
    #[test]
    fn a_person_sees_the_kind_and_a_digest() {
        let key = RawKey::from_der(&hex(ECDSA)).unwrap();
        let shown = "ECDSA P-256 e9ba871a830473c63a6bbd89b74fd238";
        assert_eq!(key.to_string(), shown);
    }
}
