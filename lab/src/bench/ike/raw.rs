//! The cryptography of one set-up on the responder's side, and nothing else: the same calls of
//! `crypto` that `ike` and `esp` make for it, on octets of the same lengths.
//!
//! ```text
//! IKE_SA_INIT   a key pair, the agreement; SKEYSEED, the seven keys, two AEAD contexts
//! IKE_AUTH      the request opened; AUTH verified and made, three prfs each; the response sealed
//! the child     KEYMAT, two AEAD contexts
//! ```
//!
//! Hashes without a security role in the handshake (NAT detection, the recognition of retransmitted
//! requests) are left out, as are parsing, maps, timers and system calls. The rest of a set-up's
//! cost is ours to justify.

use crate::bench::cores;
use anyhow::Result;
use crypto::{Aead, AeadAlgorithm, Group, ICV_LEN, KeyPair, NONCE_LEN, Prf, Rng, Secret};
use std::hint::black_box;
use std::time::Duration;

/// Repetitions within one measurement.
const TIMES: u32 = 200;

pub(super) const PRF: Prf = Prf::HmacSha256;

/// Octets of a nonce.
pub(super) const NONCE: [u8; 32] = [7; 32];
/// Octets of an IKE SPI.
pub(super) const SPI: [u8; 8] = [9; 8];
/// Octets of an AES-128-GCM key with its salt.
const KEY_LEN: usize = 16;
pub(super) const KEY_AND_SALT_LEN: usize = KEY_LEN + 4;
/// Unencrypted part of an AEAD message: the IKE header and that of the SK payload (RFC 5282 section
/// 5.1).
pub(super) const CLEAR: [u8; 32] = [1; 32];
/// Octets of a message around its text: the unencrypted part, the IV and the ICV.
const FRAMING: usize = CLEAR.len() + 8 + ICV_LEN;

/// One set-up that can be repeated.
pub(super) struct Raw {
    /// Public value of the initiator.
    public: Vec<u8>,
    /// Request and response of IKE_SA_INIT.
    first: [Vec<u8>; 2],
    /// Request of IKE_AUTH as received, and its ICV.
    request: Vec<u8>,
    icv: [u8; ICV_LEN],
    /// Response of IKE_AUTH before it is sealed.
    response: Vec<u8>,
}

/// Keys of an IKE SA.
pub(super) struct Agreed {
    pub inbound: Aead,
    pub outbound: Aead,
    pub sk_d: Vec<u8>,
    pub sk_p: [Vec<u8>; 2],
}

impl Raw {
    /// Prepares messages of these lengths, in the order in which they are sent.
    pub fn new([init_request, init_response, auth_request, auth_response]: [usize; 4]) -> Self {
        let initiator = KeyPair::generate(Group::X25519, &mut Rng::from_seed([1; 32]));
        let text = |len: usize| vec![3; len.saturating_sub(FRAMING)];
        let mut raw = Self {
            public: initiator.public().to_vec(),
            first: [vec![4; init_request], vec![5; init_response]],
            request: text(auth_request),
            icv: [0; ICV_LEN],
            response: text(auth_response),
        };
        raw.icv = raw.agree().inbound.seal(&nonce(), &CLEAR, &mut raw.request);
        raw
    }

    /// Returns the mean duration of one set-up.
    pub fn time(&self) -> Result<Duration> {
        each(|| {
            black_box(self.set_up());
            Ok(())
        })
    }

    /// Runs one set-up. Returns the AEAD contexts of the child SA.
    pub fn set_up(&self) -> [Aead; 2] {
        let agreed = self.agree();
        self.authenticate(&agreed);
        child(&agreed.sk_d)
    }

    /// Runs the key agreement, with the same result each time: the request is sealed with the
    /// derived key.
    fn agree(&self) -> Agreed {
        let pair = KeyPair::generate(Group::X25519, &mut Rng::from_seed([2; 32]));
        black_box(pair.public());
        let shared = pair.agree(&self.public).expect("an honest public value");
        let nonces = [NONCE, NONCE].concat();
        Agreed::expand(&PRF.mac(&nonces, &[shared.expose()]), &nonces)
    }

    fn authenticate(&self, agreed: &Agreed) {
        let mut request = self.request.clone();
        agreed
            .inbound
            .open(&nonce(), &CLEAR, &mut request, &self.icv)
            .expect("it was sealed with the same key");
        let [theirs, ours] = [0, 1].map(|end| proof(&self.first[end], &agreed.sk_p[end]));
        black_box(crypto::equal(theirs.expose(), ours.expose()));
        let mut response = self.response.clone();
        black_box(agreed.outbound.seal(&nonce(), &CLEAR, &mut response));
    }
}

impl Agreed {
    /// Derives the seven keys.
    pub fn expand(seed: &Secret, nonces: &[u8]) -> Self {
        let length = 3 * PRF.len() + 2 * KEY_AND_SALT_LEN;
        let keys = PRF.plus(seed.expose(), &[nonces, &SPI, &SPI], length);
        let (sk_d, keys) = keys.expose().split_at(PRF.len());
        let (of_i, keys) = keys.split_at(KEY_AND_SALT_LEN);
        let (of_r, keys) = keys.split_at(KEY_AND_SALT_LEN);
        let (sk_pi, sk_pr) = keys.split_at(PRF.len());
        Self {
            inbound: aead(of_i),
            outbound: aead(of_r),
            sk_d: sk_d.to_vec(),
            sk_p: [sk_pi.to_vec(), sk_pr.to_vec()],
        }
    }
}

/// Returns the mean duration of some work.
pub(super) fn each(mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let begun = cores::spent_here()?;
    for _ in 0..TIMES {
        work()?;
    }
    Ok((cores::spent_here()? - begun) / TIMES)
}

/// Returns the AEAD contexts of a child SA.
pub(super) fn child(sk_d: &[u8]) -> [Aead; 2] {
    let keymat = PRF.plus(sk_d, &[&NONCE, &NONCE], 2 * KEY_AND_SALT_LEN);
    let (of_i, of_r) = keymat.expose().split_at(KEY_AND_SALT_LEN);
    [aead(of_i), aead(of_r)]
}

/// AUTH with a pre-shared key (RFC 7296 section 2.15).
fn proof(message: &[u8], sk_p: &[u8]) -> Secret {
    let identity = PRF.mac(sk_p, &[b"\x02\0\0\x00001000.bench"]);
    let key = PRF.mac(crate::bench::responder::KEY, &[b"Key Pad for IKEv2"]);
    PRF.mac(key.expose(), &[message, &NONCE, identity.expose()])
}

pub(super) fn aead(key_and_salt: &[u8]) -> Aead {
    let key = &key_and_salt[..KEY_LEN];
    Aead::new(AeadAlgorithm::Aes128Gcm, key).expect("as long as the cipher takes")
}

pub(super) const fn nonce() -> [u8; NONCE_LEN] {
    [6; NONCE_LEN]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request opens every time, so each run does the same work; otherwise `set_up` would
    /// panic.
    #[test]
    fn a_set_up_can_be_done_again_and_again() {
        let raw = Raw::new([250, 300, 220, 240]);
        raw.set_up();
        raw.set_up();
        assert_eq!(raw.request.len(), 220 - 32 - 8 - 16);
    }

    #[test]
    #[should_panic(expected = "it was sealed with the same key")]
    fn a_request_that_is_not_genuine_is_noticed() {
        let mut raw = Raw::new([250, 300, 220, 240]);
        raw.icv[0] ^= 1;
        raw.set_up();
    }
}
