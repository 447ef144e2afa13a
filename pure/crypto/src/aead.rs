//! Authenticated encryption: AES-GCM with a 16-octet ICV (RFC 5116 section 5, RFC 4106, RFC 5282).

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::fmt;
use thiserror::Error;

/// Octets of the integrity check value: always the full tag.
pub const ICV_LEN: usize = 16;

/// Octets of a nonce: 4 of salt, then 8 of IV (RFC 4106 section 4).
pub const NONCE_LEN: usize = 12;

/// Which cipher, with which key length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AeadAlgorithm {
    /// AEAD_AES_128_GCM.
    Aes128Gcm,
    /// AEAD_AES_256_GCM.
    Aes256Gcm,
}

impl AeadAlgorithm {
    /// Octets of key, without salt.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm => 32,
        }
    }
}

/// One key, expanded. AWS-LC wipes it when it is dropped.
///
/// The nonce is an argument because in ESP and IKEv2 it is the packet's number; that a pair of key
/// and nonce seals only once is the promise of whoever counts those numbers.
pub struct Aead {
    algorithm: AeadAlgorithm,
    key: LessSafeKey,
}

impl Aead {
    /// Expands `key`, which is without salt.
    pub fn new(algorithm: AeadAlgorithm, key: &[u8]) -> Result<Self, BadKey> {
        let cipher = match algorithm {
            AeadAlgorithm::Aes128Gcm => &AES_128_GCM,
            AeadAlgorithm::Aes256Gcm => &AES_256_GCM,
        };
        let unbound = UnboundKey::new(cipher, key).map_err(|_| BadKey {
            expected: algorithm.key_len(),
            found: key.len(),
        })?;
        Ok(Self {
            algorithm,
            key: LessSafeKey::new(unbound),
        })
    }

    /// Encrypts `in_out` in place and authenticates it together with `aad`.
    ///
    /// # Panics
    /// If `in_out` is longer than GCM allows, 2^36 - 32 octets: no packet is.
    pub fn seal(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], in_out: &mut [u8]) -> [u8; ICV_LEN] {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(aad), in_out)
            .expect("a packet is far below GCM's limit of 64 GiB");
        tag.as_ref().try_into().expect("GCM's tag is 16 octets")
    }

    /// Checks `icv` over `aad` and `in_out`, and decrypts `in_out` in place. After an error
    /// `in_out` holds neither the ciphertext nor any plaintext, and must not be used.
    pub fn open(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
        icv: &[u8],
    ) -> Result<(), BadIcv> {
        // AWS-LC would accept a shorter tag of a context made for one; ours are never short.
        if icv.len() != ICV_LEN {
            in_out.fill(0);
            return Err(BadIcv);
        }
        let nonce = Nonce::assume_unique_for_key(*nonce);
        self.key
            .open_in_place_separate_tag(nonce, Aad::from(aad), icv, in_out)
            .map(|_| ())
            .map_err(|_| BadIcv)
    }
}

impl fmt::Debug for Aead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aead({:?})", self.algorithm)
    }
}

/// The caller brought a key of the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a key of {found} octets, where the cipher takes {expected}")]
pub struct BadKey {
    /// Octets the cipher takes.
    pub expected: usize,
    /// Octets there were.
    pub found: usize,
}

/// The packet is not what the holder of the key sealed. Nothing more may be said about why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("integrity check failed")]
pub struct BadIcv;
