//! Random octets from a seed.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng as _, SeedableRng};
use std::fmt;
use zeroize::Zeroizing;

/// A deterministic generator: ChaCha20 with fast key erasure. Each request runs the cipher from the
/// present key; its first 32 octets become the next key, the rest is the output. So whoever reads
/// this memory later learns nothing about private values that were drawn before.
///
/// Not `Clone`: two copies would draw the same nonces.
pub struct Rng {
    key: Zeroizing<[u8; 32]>,
}

impl Rng {
    /// A generator whose output depends on `seed` only. In production the seed comes from the
    /// operating system, once per engine.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self {
            key: Zeroizing::new(seed),
        }
    }

    /// Fills `octets`.
    pub fn fill(&mut self, octets: &mut [u8]) {
        let mut stream = ChaCha20Rng::from_seed(*self.key);
        stream.fill_bytes(self.key.as_mut_slice());
        stream.fill_bytes(octets);
        wipe(&mut stream);
    }

    /// `N` octets.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut octets = [0; N];
        self.fill(&mut octets);
        octets
    }

    /// 16 bits.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    /// 32 bits.
    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    /// 64 bits.
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
/// keeps the optimiser from dropping a write that nobody reads.
fn wipe(stream: &mut ChaCha20Rng) {
    *stream = ChaCha20Rng::from_seed([0; 32]);
    std::hint::black_box(stream);
}
