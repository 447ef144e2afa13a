//! SPIs of our IKE SAs.
//!
//! ```text
//! SPI = 48 random bits | first 16 bits of HMAC-SHA-256(secret, the random bits)
//! ```
//!
//! The secret lives as long as the process, so that a request on an IKE SA of an earlier process is
//! known from one on an SA that has ended here, or whose rekey still waits for a response. Of
//! 65,536 SPIs of an earlier process one passes for ours; its peer then finds out by liveness.
//!
//! SAs whose peer did not answer any more end without a Delete. Their SPIs are kept, the newest
//! [`MOST_LOST`] of them: such a peer may come back, and cannot know.

use crypto::{Prf, Rng, Secret};
use std::collections::VecDeque;

/// Number of bits that follow from the others.
const TAG: u32 = 16;

/// Maximum number of SPIs that are kept.
const MOST_LOST: usize = 4096;

pub(crate) struct IkeSpis {
    secret: Secret,
    /// SPIs of SAs that ended without a Delete, oldest first.
    lost: VecDeque<u64>,
}

impl IkeSpis {
    /// Derives the secret from the seed of the engine.
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        Self {
            secret: Prf::HmacSha256.mac(seed, &[b"SPIs of IKE SAs"]),
            lost: VecDeque::new(),
        }
    }

    /// Keeps the SPI of an SA that ended without a Delete.
    pub(crate) fn lose(&mut self, spi: u64) {
        if self.lost.len() == MOST_LOST {
            self.lost.pop_front();
        }
        self.lost.push_back(spi);
    }

    /// Returns true if the peer may still use an SPI of no SA: it is of an earlier process, or the
    /// SA ended without a Delete.
    pub(crate) fn is_lost(&self, spi: u64) -> bool {
        !self.has_drawn(spi) || self.lost.contains(&spi)
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
    fn has_drawn(&self, spi: u64) -> bool {
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

    // Weakness: 142
    #[test]
    fn the_newest_of_the_sas_that_ended_without_a_delete_are_known() {
        let mut spis = IkeSpis::new(&[1; 32]);
        let mut rng = Rng::from_seed([3; 32]);
        let drawn: Vec<_> = (0..5000).map(|_| spis.draw(&mut rng)).collect();
        assert_eq!(spis.lost.capacity(), 0);
        assert!(!drawn.iter().any(|spi| spis.is_lost(*spi)));
        drawn.iter().for_each(|spi| spis.lose(*spi));
        let (forgotten, known) = drawn.split_at(5000 - MOST_LOST);
        assert!(!forgotten.iter().any(|spi| spis.is_lost(*spi)));
        assert!(known.iter().all(|spi| spis.is_lost(*spi)));
    }
}
