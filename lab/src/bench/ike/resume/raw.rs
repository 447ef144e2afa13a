//! The cryptography of a set-up at the gateway, and nothing else: in full ([`Raw`]), and of both
//! ways to resume a session.
//!
//! ```text
//! ticket   the MAC of the reference; SKEYSEED, the seven keys, two AEAD contexts
//!          the request opened; AUTH verified and made, two prfs each; the response sealed
//! SKID3    the MAC of the reference; the keys of the first message, a context, opened; its hash
//!          SKEYSEED, the seven keys, two contexts; the second message sealed
//!          the third message opened; AUTH verified, one prf; the fourth message sealed
//!          the secret of the next entry
//! both     KEYMAT, two AEAD contexts; the credential twice; the next reference
//! ```
//!
//! With ECDSA, a full exchange has a signature, and verifies two: AUTH, and the end certificate.

use super::super::raw::{
    Agreed, CLEAR, KEY_AND_SALT_LEN, NONCE, PRF, Raw, SPI, aead, child, each, nonce,
};
use super::{Terms, Way};
use anyhow::Result;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use crypto::{Secret, sha256};
use std::hint::black_box;
use std::time::Duration;

/// Octets of the messages of a full exchange, and of what is sealed in those of a resumption: about
/// as many as a capture has.
const FULL: [usize; 4] = [300, 310, 300, 290];
const REQUEST: usize = 280;
const RESPONSE: usize = 240;
const PROOF: usize = 48;
const CONFIRMATION: usize = 64;

/// A secret, a handle, or anything else of this length.
const SECRET: [u8; 32] = [8; 32];

/// Set-ups of each kind that can be repeated.
pub(super) struct Cryptography {
    full: Raw,
    signer: EcdsaKeyPair,
    random: SystemRandom,
}

impl Cryptography {
    pub fn new() -> Result<Self> {
        Ok(Self {
            full: Raw::new(FULL),
            signer: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)?,
            random: SystemRandom::new(),
        })
    }

    /// Returns the mean duration of a full exchange, in microseconds.
    pub fn full(&self, terms: Terms) -> Result<f64> {
        let set_up = || {
            black_box(self.full.set_up());
            match terms {
                Terms::Psk | Terms::Leased => Ok(()),
                Terms::Ecdsa => self.sign_and_verify(),
            }
        };
        each(set_up).map(us)
    }

    /// Returns the mean duration of a resumption, in microseconds.
    pub fn resumed(&self, way: Way) -> Result<f64> {
        let set_up = || {
            black_box(PRF.mac(&SECRET, &[&SECRET[..16]]));
            let agreed = match way {
                Way::Ticket => ticket(),
                Way::Skid3 => skid3(),
            };
            black_box(child(&agreed.sk_d));
            for _ in 0..2 {
                black_box(PRF.mac(&SECRET, &[b"credentials", &CLEAR, &SECRET]));
            }
            black_box(PRF.mac(&SECRET, &[&SECRET[..16]]));
            Ok(())
        };
        each(set_up).map(us)
    }

    fn sign_and_verify(&self) -> Result<()> {
        let signature = self.signer.sign(&self.random, &SECRET)?;
        let public = self.signer.public_key().as_ref();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, public);
        for _ in 0..2 {
            public.verify(&SECRET, signature.as_ref())?;
        }
        Ok(())
    }
}

fn ticket() -> Agreed {
    let agreed = agreed(b"Resumption", &[]);
    pass(&agreed, REQUEST, RESPONSE);
    for sk_p in &agreed.sk_p {
        let identity = PRF.mac(sk_p, &[&CLEAR]);
        black_box(PRF.mac(sk_p, &[&[1; 160], &NONCE, identity.expose()]));
    }
    agreed
}

fn skid3() -> Agreed {
    let keys = PRF.plus(&SECRET, &[b"SKID3 request", &NONCE, &SPI], KEY_AND_SALT_LEN);
    black_box(aead(keys.expose()).seal(&nonce(), &CLEAR, &mut [1; REQUEST]));
    let first = sha256(&[&CLEAR, &[1; REQUEST]]);
    let agreed = agreed(b"SKID3 keys", &first);
    black_box(agreed.outbound.seal(&nonce(), &CLEAR, &mut [1; RESPONSE]));
    pass(&agreed, PROOF, CONFIRMATION);
    black_box(PRF.mac(&agreed.sk_p[0], &[&[1; REQUEST], &[1; RESPONSE]]));
    black_box(PRF.mac(&agreed.sk_d, &[b"SKID3 secret"]));
    agreed
}

fn agreed(label: &[u8], more: &[u8]) -> Agreed {
    let nonces = [NONCE, NONCE].concat();
    let seed: Secret = PRF.mac(&SECRET, &[label, &nonces, more]);
    Agreed::expand(&seed, &nonces)
}

/// Opens a request and seals its response. To open takes as long as to seal.
fn pass(agreed: &Agreed, request: usize, response: usize) {
    for (context, length) in [(&agreed.inbound, request), (&agreed.outbound, response)] {
        black_box(context.seal(&nonce(), &CLEAR, &mut vec![1; length]));
    }
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_can_be_timed() {
        let cryptography = Cryptography::new().unwrap();
        for terms in [Terms::Psk, Terms::Ecdsa] {
            assert!(cryptography.full(terms).unwrap() > 0.0);
        }
        for way in Way::ALL {
            assert!(cryptography.resumed(way).unwrap() > 0.0);
        }
    }
}
