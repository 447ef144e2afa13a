//! Random octets from a seed.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng as _, SeedableRng};
use std::fmt;
use zeroize::Zeroizing;

/// A deterministic generator: ChaCha20 with fast key erasure.
///
/// Each request runs the cipher from the current key. Its first 32 octets become the next key, the
/// rest is the output. An attacker who reads this memory later learns nothing about private values
/// drawn before.
///
/// Not `Clone`: two copies would draw the same nonces.
pub struct Rng {
    key: Zeroizing<[u8; 32]>,
}

impl Rng {
    /// Returns a generator whose output depends on `seed` only. In production the seed comes from
    /// the operating system, once per engine.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self {
            key: Zeroizing::new(seed),
        }
    }

    /// Fills `octets` with random octets.
    pub fn fill(&mut self, octets: &mut [u8]) {
        let mut stream = ChaCha20Rng::from_seed(*self.key);
        stream.fill_bytes(self.key.as_mut_slice());
        stream.fill_bytes(octets);
        wipe(&mut stream);
    }

    /// Returns `N` random octets.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut octets = [0; N];
        self.fill(&mut octets);
        octets
    }

    /// Returns 16 random bits.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    /// Returns 32 random bits.
    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    /// Returns 64 random bits.
    pub fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.array())
    }
}

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rng(..)")
    }
}

/// Overwrites the cipher's key and buffer, which have no destructor of their own. The black box
/// keeps the optimiser from removing a write that is never read.
fn wipe(stream: &mut ChaCha20Rng) {
    *stream = ChaCha20Rng::from_seed([0; 32]);
    std::hint::black_box(stream);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// RFC 8439 appendix A.1 gives ChaCha20's first block for the zero key.
    #[test]
    fn the_first_half_of_a_block_becomes_the_key_and_the_rest_the_output() {
        let key = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7";
        let output = "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586";
        let mut rng = Rng::from_seed([0; 32]);
        assert_eq!(rng.array::<32>().to_vec(), hex(output));
        assert_eq!(rng.key.to_vec(), hex(key));
    }

    #[test]
    fn the_same_seed_repeats_and_another_does_not() {
        let draw = |seed| {
            let mut rng = Rng::from_seed(seed);
            (rng.u16(), rng.u32(), rng.u64(), rng.array::<100>())
        };
        assert_eq!(draw([1; 32]), draw([1; 32]));
        assert_ne!(draw([1; 32]), draw([2; 32]));
    }

    #[test]
    fn no_two_draws_are_the_same() {
        let mut rng = Rng::from_seed([3; 32]);
        let drawn: std::collections::BTreeSet<u64> = (0..10_000).map(|_| rng.u64()).collect();
        assert_eq!(drawn.len(), 10_000);
    }

    /// Even an empty draw replaces the key, and long draws are filled to the end.
    #[test]
    fn the_key_moves_on_with_every_draw() {
        let mut rng = Rng::from_seed([4; 32]);
        for len in [0, 1, 31, 32, 33, 255, 256, 257, 5000] {
            let before = *rng.key;
            let mut octets = vec![0; len];
            rng.fill(&mut octets);
            assert_ne!(*rng.key, before);
            let last = &octets[len.saturating_sub(16)..];
            assert!(len < 16 || last.iter().any(|&octet| octet != 0));
        }
    }

    #[test]
    fn the_generator_prints_no_state() {
        assert_eq!(format!("{:?}", Rng::from_seed([5; 32])), "Rng(..)");
    }
}
