//! SPIs of our child SAs, on which the peer's packets arrive.

use crate::extension::resource;
use crypto::Rng;
use model::{IkeSaId, Spi};
use std::num::NonZeroU8;

/// Smallest usable SPI (RFC 4303 section 2.1 reserves those below).
const FIRST: u32 = 256;

/// Pseudorandom numbers whose last k bits do not repeat before all 2^k values were drawn: each
/// number is an odd step after the previous one (a Weyl sequence). Of 100,000 random SPIs, two
/// would probably collide, and the second tunnel could not come up. Start and step are random, so a
/// number reveals little about the next one. Nothing depends on that, because packets are
/// authenticated or dropped.
pub(crate) struct Sequence {
    next: u32,
    step: u32,
}

impl Sequence {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self {
            next: rng.u32(),
            step: rng.u32() | 1,
        }
    }

    const fn draw(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(self.step);
        number
    }
}

/// Draws the SPIs of one child SA. With several receiving workers, the remainder of an SPI
/// identifies the worker, so that a kernel can assign a packet to a worker by its SPI alone. Child
/// SAs for the same traffic (RFC 9611) go to the workers in turn, and so do first child SAs.
pub(crate) struct Fresh<'a> {
    sequence: &'a mut Sequence,
    workers: u32,
    worker: u32,
}

impl<'a> Fresh<'a> {
    pub(crate) fn new(
        sequence: &'a mut Sequence,
        workers: NonZeroU8,
        sa: IkeSaId,
        name: Option<&str>,
    ) -> Self {
        let workers = u32::from(workers.get());
        let place = sa.0 + u64::from(resource::number(name).unwrap_or(0));
        Self {
            sequence,
            workers,
            worker: (place % u64::from(workers)) as u32,
        }
    }

    /// Draws an SPI: the low bits of the next number, as many as fit, times the number of workers,
    /// plus the number of the worker.
    pub(crate) const fn fresh(&mut self) -> Spi {
        let own = u32::MAX >> (u32::BITS - (self.workers - 1).leading_zeros());
        loop {
            let spi = (self.sequence.draw() & own) * self.workers + self.worker;
            if spi >= FIRST {
                return Spi(spi);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prop_assert, prop_assert_eq, proptest};
    use std::collections::BTreeSet;

    fn workers(count: u8) -> NonZeroU8 {
        NonZeroU8::new(count).unwrap()
    }

    #[test]
    fn of_a_million_spis_no_two_are_alike() {
        let mut sequence = Sequence::new(&mut Rng::from_seed([7; 32]));
        let drawn = (0..1 << 20).map(|sa| {
            let mut fresh = Fresh::new(&mut sequence, workers(3), IkeSaId(sa), None);
            fresh.fresh()
        });
        assert_eq!(drawn.collect::<BTreeSet<_>>().len(), 1 << 20);
    }

    proptest! {
        #[test]
        fn an_spi_says_whose_it_is(seed: [u8; 32], count in 1..=u8::MAX, sa: u32) {
            let mut sequence = Sequence::new(&mut Rng::from_seed(seed));
            let mut fresh = Fresh::new(&mut sequence, workers(count), IkeSaId(sa.into()), None);
            let spis: BTreeSet<_> = (0..100).map(|_| fresh.fresh().0).collect();
            prop_assert_eq!(spis.len(), 100);
            prop_assert!(spis.iter().all(|spi| *spi >= FIRST));
            let whose = sa % u32::from(count);
            prop_assert!(spis.iter().all(|spi| spi % u32::from(count) == whose));
        }
    }
}
