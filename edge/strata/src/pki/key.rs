//! Keys in the form that rcgen takes. Keys and signatures use the daemon's code.

use config::PrivateKey;
use control::Failure;
use crypto::{KeyKind, PublicKey, sha1};
use rcgen::KeyIdMethod;
use zeroize::Zeroizing;

/// Creates a private key; returns it also as PKCS #8 in DER.
pub(super) fn new_key(kind: KeyKind) -> Result<(PrivateKey, Zeroizing<Vec<u8>>), Failure> {
    PrivateKey::generate(kind).ok_or_else(|| {
        Failure::new(
            "the system has no randomness for a key yet",
            "try again when the system has started",
        )
    })
}

/// A key pair that signs.
pub(super) struct Key {
    private: PrivateKey,
    pub(super) subject: Subject,
}

/// A public key that a certificate is for.
pub(super) struct Subject(pub(super) PublicKey);

impl Key {
    pub(super) fn new(private: PrivateKey) -> Self {
        let subject = Subject(private.public().clone());
        Self { private, subject }
    }
}

impl Subject {
    /// "The 160-bit SHA-1 hash of the value of the BIT STRING subjectPublicKey" (RFC 5280 section
    /// 4.2.1.2).
    pub(super) fn identifier(&self) -> KeyIdMethod {
        KeyIdMethod::PreSpecified(sha1(&[&self.0.octets]).to_vec())
    }
}

impl rcgen::PublicKeyData for Subject {
    fn der_bytes(&self) -> &[u8] {
        &self.0.octets
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        match self.0.kind {
            KeyKind::P256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            KeyKind::P384 => &rcgen::PKCS_ECDSA_P384_SHA384,
            KeyKind::Ed25519 => &rcgen::PKCS_ED25519,
            // Keys that sign are never RSA: `Authority::open` refuses one, and no new key is one.
            KeyKind::Rsa => &rcgen::PKCS_RSA_SHA256,
        }
    }
}

impl rcgen::PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        self.subject.der_bytes()
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.subject.algorithm()
    }
}

impl rcgen::SigningKey for Key {
    fn sign(&self, octets: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signature = self.private.sign(octets);
        signature.ok_or(rcgen::Error::RemoteKeyError)
    }
}
