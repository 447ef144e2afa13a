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

/// A key pair in the form that rcgen takes.
pub(super) struct Key {
    private: PrivateKey,
    pub(super) public: PublicKey,
}

impl Key {
    pub(super) fn new(private: PrivateKey) -> Self {
        let public = private.public().clone();
        Self { private, public }
    }

    /// "The 160-bit SHA-1 hash of the value of the BIT STRING subjectPublicKey" (RFC 5280 section
    /// 4.2.1.2).
    pub(super) fn identifier(&self) -> KeyIdMethod {
        KeyIdMethod::PreSpecified(sha1(&[&self.public.octets]).to_vec())
    }
}

impl rcgen::PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        &self.public.octets
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        match self.public.kind {
            KeyKind::P256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            KeyKind::P384 => &rcgen::PKCS_ECDSA_P384_SHA384,
            KeyKind::Ed25519 => &rcgen::PKCS_ED25519,
            // Unreachable: `Authority::open` refuses RSA keys, and new keys are never RSA.
            KeyKind::Rsa => &rcgen::PKCS_RSA_SHA256,
        }
    }
}

impl rcgen::SigningKey for Key {
    fn sign(&self, octets: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signature = self.private.sign(octets);
        signature.ok_or(rcgen::Error::RemoteKeyError)
    }
}
