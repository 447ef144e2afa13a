//! A private key: a PEM file that only its owner may use, and the signatures made with it.

use crate::psk::secret;
use crate::reader::Value;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use crypto::{PublicKey, SignatureAlgorithm};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// Most octets of the file.
const LONGEST: usize = 8 * 1024;

const MAKE_ONE: &str = "make key and certificate with `strata pki issue`";

/// A key for signatures. Never shown.
pub struct PrivateKey(Pair);

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl PrivateKey {
    /// The public key to it.
    pub fn public(&self) -> PublicKey {
        let (algorithm, octets) = match &self.0 {
            Pair::Ecdsa(pair) => (
                SignatureAlgorithm::EcdsaP256Sha256,
                pair.public_key().as_ref(),
            ),
            Pair::Ed25519(pair) => (SignatureAlgorithm::Ed25519, pair.public_key().as_ref()),
        };
        PublicKey {
            algorithm,
            octets: octets.to_vec(),
        }
    }

    /// A signature over the octets.
    pub fn sign(&self, octets: &[u8]) -> Option<Vec<u8>> {
        match &self.0 {
            Pair::Ecdsa(pair) => {
                let signature = pair.sign(&SystemRandom::new(), octets).ok()?;
                Some(signature.as_ref().to_vec())
            }
            Pair::Ed25519(pair) => Some(pair.sign(octets).as_ref().to_vec()),
        }
    }

    /// A new key, and its PKCS #8 in DER. `None` if there is no randomness for it.
    pub fn generate(algorithm: SignatureAlgorithm) -> Option<(Self, Zeroizing<Vec<u8>>)> {
        let random = SystemRandom::new();
        let document = match algorithm {
            SignatureAlgorithm::EcdsaP256Sha256 => {
                EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random)
            }
            SignatureAlgorithm::Ed25519 => Ed25519KeyPair::generate_pkcs8v1(&random),
        };
        let der = Zeroizing::new(document.ok()?.as_ref().to_vec());
        Self::from_der(&der).map(|key| (key, der))
    }

    /// Reads a PEM file's first private key, if it is for signatures as we make them.
    pub fn from_pem(pem: &[u8]) -> Option<Self> {
        let mut der = PrivateKeyDer::from_pem_slice(pem).ok()?;
        let key = Self::from_der(der.secret_der());
        der.zeroize();
        key
    }

    fn from_der(der: &[u8]) -> Option<Self> {
        let ecdsa = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, der);
        let pair = ecdsa.ok().map(Pair::Ecdsa).or_else(|| {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der);
            pair.ok().map(Pair::Ed25519)
        })?;
        Some(Self(pair))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({:?})", self.public().algorithm)
    }
}

/// Reads the key whose file a value names.
pub(crate) fn private_key(value: &Value<'_>) -> Option<PrivateKey> {
    let pem = secret(value, LONGEST, MAKE_ONE)?;
    PrivateKey::from_pem(&pem).or_else(|| {
        value.fault(
            "this is no private key for Ed25519 or ECDSA P-256 in PEM, or it has a passphrase",
            MAKE_ONE,
        )
    })
}
