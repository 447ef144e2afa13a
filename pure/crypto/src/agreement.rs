//! Key agreement: X25519 (RFC 7748, in IKEv2 RFC 8031).

use crate::{Rng, Secret};
use aws_lc_rs::agreement::{self, PrivateKey, PublicKey, UnparsedPublicKey, X25519};
use std::fmt;
use thiserror::Error;
use zeroize::Zeroizing;

/// A Diffie-Hellman group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Curve25519.
    X25519,
}

impl Group {
    /// Octets of a public value.
    pub const fn public_len(self) -> usize {
        match self {
            Self::X25519 => 32,
        }
    }
}

/// A fresh private value and its public one. Good for one agreement: a private value that is used
/// again would tie exchanges together that must be independent. AWS-LC wipes it when it is dropped.
pub struct KeyPair {
    group: Group,
    private: PrivateKey,
    public: PublicKey,
}

impl KeyPair {
    /// Draws a private value. For X25519 every 32 octets are one (RFC 7748 section 5 clears and
    /// sets the bits that must be).
    pub fn generate(group: Group, rng: &mut Rng) -> Self {
        let octets = Zeroizing::new(rng.array::<32>());
        Self::from_private(group, &octets)
    }

    /// Our value for the KE payload, [`Group::public_len`] octets.
    pub fn public(&self) -> &[u8] {
        self.public.as_ref()
    }

    /// The shared secret. Refuses a peer's value of the wrong length, and one of small order: it
    /// would make the secret all zero whatever ours is (RFC 7748 section 6.1, RFC 8031 section 5).
    pub fn agree(self, peer: &[u8]) -> Result<Secret, BadPublicValue> {
        let algorithm = match self.group {
            Group::X25519 => &X25519,
        };
        let peer = UnparsedPublicKey::new(algorithm, peer);
        agreement::agree(&self.private, peer, BadPublicValue, |shared| {
            Ok(Secret::new(shared.to_vec()))
        })
    }

    fn from_private(group: Group, octets: &[u8; 32]) -> Self {
        let private = match group {
            Group::X25519 => PrivateKey::from_private_key(&X25519, octets),
        }
        .expect("every 32 octets are an X25519 private key");
        let public = private
            .compute_public_key()
            .expect("every X25519 private key has a public one");
        Self {
            group,
            private,
            public,
        }
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({:?})", self.group)
    }
}

/// The peer's public value is none that an honest peer would send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("unacceptable Diffie-Hellman public value")]
pub struct BadPublicValue;
