//! The operations that a resumption and a key exchange consist of, each timed alone.

use crate::bare::{BATCH, each};
use anyhow::{Result, ensure};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey,
};
use crypto::{Group, KeyPair, Prf, Rng};
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// Octets of a key, of a nonce, and of a signed or authenticated text.
const KEY: [u8; 32] = [1; 32];
const NONCE: [u8; 32] = [2; 32];
const TEXT: [u8; 64] = [3; 64];

/// Operation, or operations, of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operation {
    /// Two MACs made and two verified, which is two made as well.
    Macs,
    /// A pair of values and the shared secret, in the group of 2048 bits.
    Modp2048,
    /// The same with X25519.
    X25519,
    /// A signature made and one verified, with RSA of 2048 bits.
    Rsa2048,
    /// The same with ECDSA over P-256.
    EcdsaP256,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 5] = [
        Self::Macs,
        Self::Modp2048,
        Self::X25519,
        Self::Rsa2048,
        Self::EcdsaP256,
    ];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Macs => "four MACs, HMAC-SHA2-256",
            Self::Modp2048 => "Diffie-Hellman, 2048 bits",
            Self::X25519 => "Diffie-Hellman, X25519",
            Self::Rsa2048 => "RSA 2048, signed and verified",
            Self::EcdsaP256 => "ECDSA P-256, signed and verified",
        }
    }
}

/// Times of an operation, in nanoseconds of processor time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Times {
    pub operation: Operation,
    pub ns: Vec<f64>,
}

/// Times all operations in turns.
pub(super) fn measure(rounds: u32) -> Result<Vec<Times>> {
    let bench = Bench::new()?;
    let mut all = Operation::ALL.map(|operation| Times {
        operation,
        ns: Vec::new(),
    });
    for _ in 0..rounds {
        for times in &mut all {
            times.ns.push(bench.time(times.operation)?);
        }
    }
    Ok(all.into())
}

/// Keys and public values of the operations.
struct Bench {
    rsa: RsaKeyPair,
    ecdsa: EcdsaKeyPair,
    random: SystemRandom,
    /// Public values of a peer, by group.
    peers: [(Group, Vec<u8>); 2],
}

impl Bench {
    fn new() -> Result<Self> {
        let peer = |group| {
            let pair = KeyPair::generate(group, &mut Rng::from_seed([4; 32]));
            (group, pair.public().to_vec())
        };
        Ok(Self {
            rsa: RsaKeyPair::generate(KeySize::Rsa2048)?,
            ecdsa: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)?,
            random: SystemRandom::new(),
            peers: [peer(Group::Modp2048), peer(Group::X25519)],
        })
    }

    /// Returns the mean time of an operation in a batch, in nanoseconds.
    fn time(&self, operation: Operation) -> Result<f64> {
        let mut worked = true;
        let took = each(|| {
            for _ in 0..BATCH {
                worked &= self.work(operation).is_some();
            }
        })?;
        ensure!(worked, "{} does not work", operation.name());
        Ok(took.as_nanos() as f64)
    }

    /// Works once. `None` if something that is right was refused.
    fn work(&self, operation: Operation) -> Option<()> {
        match operation {
            Operation::Macs => {
                for _ in 0..4 {
                    black_box(Prf::HmacSha256.mac(&KEY, &[&NONCE, &NONCE, &TEXT]));
                }
            }
            Operation::Modp2048 => self.agree(0)?,
            Operation::X25519 => self.agree(1)?,
            Operation::Rsa2048 => {
                let mut signature = vec![0; self.rsa.public_modulus_len()];
                let into = &mut signature;
                let signed = self.rsa.sign(&RSA_PKCS1_SHA256, &self.random, &TEXT, into);
                signed.ok()?;
                let public = self.rsa.public_key().as_ref();
                let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
                public.verify(&TEXT, &signature).ok()?;
            }
            Operation::EcdsaP256 => {
                let signature = self.ecdsa.sign(&self.random, &TEXT).ok()?;
                let public = self.ecdsa.public_key().as_ref();
                let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, public);
                public.verify(&TEXT, signature.as_ref()).ok()?;
            }
        }
        Some(())
    }

    fn agree(&self, place: usize) -> Option<()> {
        let (group, peer) = &self.peers[place];
        let pair = KeyPair::generate(*group, &mut Rng::from_seed([5; 32]));
        black_box(pair.agree(peer).ok()?);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_timed_each_round() {
        let all = measure(2).unwrap();
        assert_eq!(all.len(), Operation::ALL.len());
        for times in all {
            let is_right = times.ns.len() == 2 && times.ns.iter().all(|ns| *ns > 0.0);
            assert!(is_right, "{times:?}");
        }
    }
}
