//! SPIs of our IKE SAs.
//!
//! ```text
//! SPI = 48 random bits | first 16 bits of HMAC-SHA-256(secret, the random bits)
//! ```
//!
//! The secret lives as long as the process, so that a request on an IKE SA of an earlier process is
//! known from one on an SA that has ended here, or whose rekey still waits for a response. Of
//! 65,536 SPIs of an earlier process one passes for ours; its peer then finds out by liveness. If
//! the node counts its starts ([`Incarnation`]), SPIs of the last of them are known as its own.
//!
//! SAs whose peer did not answer any more end without a Delete. Their SPIs are kept, the newest
//! [`MOST_LOST`] of them: such a peer may come back, and cannot know.

use crate::incarnation::Incarnation;
use crypto::{Prf, Rng, Secret};
use std::collections::VecDeque;

/// Number of bits that follow from the others.
const TAG: u32 = 16;

/// Maximum number of SPIs that are kept.
const MOST_LOST: usize = 4096;

pub(crate) struct IkeSpis {
    secret: Secret,
    /// The present incarnation of the node, if it is known, and the secret of SPIs since.
    incarnation: Option<(Secret, Incarnation)>,
    /// SPIs of SAs that ended without a Delete, oldest first.
    lost: VecDeque<u64>,
}

impl IkeSpis {
    /// Derives the secret from the seed of the engine.
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        Self {
            secret: Prf::HmacSha256.mac(seed, &[b"SPIs of IKE SAs"]),
            incarnation: None,
            lost: VecDeque::new(),
        }
    }

    /// Draws SPIs of this incarnation from now on.
    pub(crate) fn set_incarnation(&mut self, incarnation: Incarnation) {
        self.incarnation = Some((incarnation.spi_secret(), incarnation));
    }

    /// Returns true if the node can prove later that IKE SAs of this process are lost.
    pub(crate) const fn makes_tokens(&self) -> bool {
        self.incarnation.is_some()
    }

    /// Returns the token of an IKE SA that is up.
    pub(crate) fn token(&self, spi_i: u64, spi_r: u64) -> Option<Vec<u8>> {
        let (_, incarnation) = self.incarnation.as_ref()?;
        Some(incarnation.token(spi_i, spi_r))
    }

    /// Returns the token of an IKE SA that was lost with an earlier process. `own` is our SPI. An
    /// SA of this process has none, be it up or not.
    pub(crate) fn token_of_lost(&self, own: u64, spi_i: u64, spi_r: u64) -> Option<Vec<u8>> {
        if self.has_drawn(own) {
            return None;
        }
        let (_, incarnation) = self.incarnation.as_ref()?;
        let mut earlier = incarnation.earlier();
        let of = earlier.find(|earlier| own == tagged(&earlier.spi_secret(), own))?;
        Some(of.token(spi_i, spi_r))
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
            let secret = self
                .incarnation
                .as_ref()
                .map_or(&self.secret, |(spis, _)| spis);
            let spi = tagged(secret, rng.u64());
            if spi != 0 {
                return spi;
            }
        }
    }

    /// Returns true if this engine has drawn an SPI, be it in use or not.
    fn has_drawn(&self, spi: u64) -> bool {
        let since = self.incarnation.iter().map(|(spis, _)| spis);
        let mut secrets = since.chain([&self.secret]);
        secrets.any(|secret| spi == tagged(secret, spi))
    }
}

fn tagged(secret: &Secret, drawn: u64) -> u64 {
    let random = drawn >> TAG;
    let mac = Prf::HmacSha256.mac(secret.expose(), &[&random.to_be_bytes()]);
    let tag = mac.expose().iter().take(TAG as usize / 8);
    tag.fold(random, |spi, octet| spi << 8 | u64::from(*octet))
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

    fn in_incarnation(seed: u8, number: u32) -> IkeSpis {
        let mut spis = IkeSpis::new(&[seed; 32]);
        spis.set_incarnation(Incarnation::new(Secret::new(vec![7; 32]), number));
        spis
    }

    #[test]
    fn the_token_of_a_lost_sa_is_the_one_that_its_process_gave() {
        let (first, later) = (in_incarnation(1, 5), in_incarnation(2, 6));
        let spi = first.draw(&mut Rng::from_seed([3; 32]));
        let given = first.token(9, spi).unwrap();
        assert_eq!(later.token_of_lost(spi, 9, spi), Some(given.clone()));
        assert_ne!(later.token_of_lost(spi, 8, spi), Some(given.clone()));
        assert_ne!(later.token(9, spi), Some(given));
    }

    /// Otherwise whoever asks could end an SA that is up.
    // Weakness: 186
    #[test]
    fn no_token_leaves_for_an_spi_of_this_process_or_of_another_node() {
        let mut rng = Rng::from_seed([3; 32]);
        let before = IkeSpis::new(&[2; 32]).draw(&mut rng);
        let spis = in_incarnation(2, 6);
        assert_eq!(spis.token_of_lost(before, 9, before), None);
        let own = spis.draw(&mut rng);
        assert_eq!(spis.token_of_lost(own, 9, own), None);
        let mut other = IkeSpis::new(&[4; 32]);
        other.set_incarnation(Incarnation::new(Secret::new(vec![8; 32]), 5));
        let of_another = other.draw(&mut rng);
        assert_eq!(spis.token_of_lost(of_another, 9, of_another), None);
        // A start that is not before this one: the count went back.
        let later = in_incarnation(3, 7).draw(&mut rng);
        assert_eq!(spis.token_of_lost(later, 9, later), None);
        assert_eq!(IkeSpis::new(&[1; 32]).token_of_lost(own, 9, own), None);
    }

    #[test]
    fn eight_starts_are_remembered() {
        let mut rng = Rng::from_seed([3; 32]);
        let known = |number: u32, rng: &mut Rng| {
            let spi = in_incarnation(1, number).draw(rng);
            in_incarnation(2, 20).token_of_lost(spi, 9, spi).is_some()
        };
        let known: Vec<_> = (10..20).filter(|number| known(*number, &mut rng)).collect();
        assert_eq!(known, (12..20).collect::<Vec<_>>());
    }
}
