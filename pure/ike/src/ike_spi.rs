//! SPIs of our IKE SAs.
//!
//! ```text
//! SPI = 48 random bits | first 16 bits of HMAC-SHA-256(secret, the random bits)
//! ```
//!
//! The secret lives as long as the process, so that a request on an IKE SA of an earlier process is known from
//! one on an SA that has ended here, or whose rekey still waits for a response. Of 65,536 SPIs of an earlier
//! process one passes for ours; its peer then finds out by liveness.

use crypto::{Prf, Rng, Secret};

/// Number of bits that follow from the others.
const TAG: u32 = 16;

pub(crate) struct IkeSpis {
    secret: Secret,
}

impl IkeSpis {
    /// Derives the secret from the seed of the engine.
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        Self {
            secret: Prf::HmacSha256.mac(seed, &[b"SPIs of IKE SAs"]),
        }
    }

    /// Draws an SPI, which is never zero.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let spi = self.tagged(rng.u64());
            if spi != 0 {
                return spi;
            }
        }
    }

    /// Returns true if this engine has drawn an SPI, be it in use or not.
    pub(crate) fn has_drawn(&self, spi: u64) -> bool {
        spi == self.tagged(spi)
    }

    fn tagged(&self, drawn: u64) -> u64 {
        let random = drawn >> TAG;
        let mac = Prf::HmacSha256.mac(self.secret.expose(), &[&random.to_be_bytes()]);
        let tag = mac.expose().iter().take(TAG as usize / 8);
        tag.fold(random, |spi, octet| spi << 8 | u64::from(*octet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_knows_its_own_spis_from_those_of_another() {
        let [ours, theirs] = [1, 2].map(|seed| IkeSpis::new(&[seed; 32]));
        let mut rng = Rng::from_seed([3; 32]);
        let drawn: Vec<_> = (0..1000).map(|_| ours.draw(&mut rng)).collect();
        assert!(drawn.iter().all(|spi| ours.has_drawn(*spi)));
        assert!(drawn.iter().filter(|spi| theirs.has_drawn(**spi)).count() < 3);
    }
}
