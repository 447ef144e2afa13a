//! A private key: a PEM file that only its owner may read, and the signatures made with it.

use crate::psk::secret;
use crate::reader::Value;
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PSS_SHA256, RsaKeyPair,
};
use crypto::{KeyKind, PublicKey, RawKey};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// Longest key file, in octets.
const LONGEST: usize = 8 * 1024;

const MAKE_ONE: &str = "make key and certificate with `strata pki issue`";

const P256: &EcdsaSigningAlgorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
const P384: &EcdsaSigningAlgorithm = &ECDSA_P384_SHA384_ASN1_SIGNING;

/// A private key for signatures. Never displayed.
pub struct PrivateKey {
    pair: Pair,
    public: RawKey,
}

enum Pair {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl PrivateKey {
    /// Returns the corresponding public key.
    pub const fn public(&self) -> &PublicKey {
        self.public.key()
    }

    /// Returns the public key in the form that peers configure as `pubkey`.
    pub const fn raw(&self) -> &RawKey {
        &self.public
    }

    /// Signs the octets with the scheme of [`KeyKind::signs_with`].
    pub fn sign(&self, octets: &[u8]) -> Option<Vec<u8>> {
        match &self.pair {
            Pair::P256(pair) | Pair::P384(pair) => {
                let signature = pair.sign(&SystemRandom::new(), octets).ok()?;
                Some(signature.as_ref().to_vec())
            }
            Pair::Ed25519(pair) => Some(pair.sign(octets).as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let random = SystemRandom::new();
                pair.sign(&RSA_PSS_SHA256, &random, octets, &mut signature)
                    .ok()?;
                Some(signature)
            }
        }
    }

    /// Generates a key, and its PKCS #8 in DER. Returns `None` if randomness is unavailable, and
    /// for RSA, which new keys do not use.
    pub fn generate(kind: KeyKind) -> Option<(Self, Zeroizing<Vec<u8>>)> {
        let random = SystemRandom::new();
        let document = match kind {
            KeyKind::P256 => EcdsaKeyPair::generate_pkcs8(P256, &random),
            KeyKind::P384 => EcdsaKeyPair::generate_pkcs8(P384, &random),
            KeyKind::Ed25519 => Ed25519KeyPair::generate_pkcs8v1(&random),
            KeyKind::Rsa => return None,
        };
        let der = Zeroizing::new(document.ok()?.as_ref().to_vec());
        Self::from_der(&der).map(|key| (key, der))
    }

    /// Reads the first private key of a PEM file, if it suits the signature schemes used here.
    pub fn from_pem(pem: &[u8]) -> Option<Self> {
        let mut der = PrivateKeyDer::from_pem_slice(pem).ok()?;
        let key = Self::from_der(der.secret_der());
        der.zeroize();
        key
    }

    fn from_der(der: &[u8]) -> Option<Self> {
        let ecdsa = |curve| EcdsaKeyPair::from_private_key_der(curve, der).ok();
        let ed25519 = || Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok();
        let rsa = || RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der));
        let pair = (ecdsa(P256).map(Pair::P256))
            .or_else(|| ecdsa(P384).map(Pair::P384))
            .or_else(|| ed25519().map(Pair::Ed25519))
            .or_else(|| rsa().ok().map(Pair::Rsa))?;
        let public = RawKey::from_der(pair.public()?.as_ref()).ok()?;
        Some(Self { pair, public })
    }
}

impl Pair {
    fn public(&self) -> Option<PublicKeyX509Der<'static>> {
        let der = match self {
            Self::P256(pair) | Self::P384(pair) => pair.public_key().as_der(),
            Self::Ed25519(pair) => pair.public_key().as_der(),
            Self::Rsa(pair) => pair.public_key().as_der(),
        };
        der.ok()
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({:?})", self.public().kind)
    }
}

/// Reads the private key whose file a value names, and makes a first signature with it. In that of
/// a process AWS-LC gathers randomness for some 140 ms, for which no peer should have to wait.
pub(crate) fn private_key(value: &Value<'_>) -> Option<PrivateKey> {
    let pem = secret(value, LONGEST, MAKE_ONE)?;
    let key = PrivateKey::from_pem(&pem).filter(|key| key.sign(&[]).is_some());
    key.or_else(|| {
        value.fault(
            "the file is not a PEM private key without a passphrase for Ed25519, ECDSA P-256 or P-384, or RSA of 2048 bits or more",
            MAKE_ONE,
        )
    })
}
