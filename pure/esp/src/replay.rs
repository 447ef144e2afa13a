//! The replay window (RFC 4303 section 3.4.3): a bitmap that is a ring of words, so that moving it
//! forward clears words instead of shifting bits (the idea of RFC 6479).
//!
//! Bit `seq` is bit `seq % 64` of word `(seq / 64) % words`. There is one word more than the window
//! needs, so the word that the highest number is in may be partly ahead of it. Exactly the numbers
//! `highest - window + 1 ..= highest` are inside; RFC 6479 gives only about as many.

use crate::drop::DropReason;

/// Packets that are in the window of every plain SA, and at least in that of a composite one.
pub(crate) const MIN_WINDOW: u32 = 4096;
/// Packets in the largest window.
pub(crate) const MAX_WINDOW: u32 = 65536;

const BITS: u32 = 64;

/// Which sequence numbers of one SA were seen.
pub(crate) struct Replay {
    window: u32,
    highest: u32,
    /// None before the first packet: with ten thousand SAs up, few may have carried anything.
    words: Box<[u64]>,
}

impl Replay {
    /// An empty window of `window` packets, brought between [`MIN_WINDOW`] and [`MAX_WINDOW`].
    pub fn new(window: u32) -> Self {
        let window = window.clamp(MIN_WINDOW, MAX_WINDOW);
        Self {
            window,
            highest: 0,
            words: Box::default(),
        }
    }

    /// Packets in the window.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// The highest number seen, 0 before the first.
    pub fn highest(&self) -> u32 {
        self.highest
    }

    /// Whether a number could be new. Asked before authentication, where nothing may change yet.
    pub fn check(&self, seq: u32) -> Result<(), DropReason> {
        match seq {
            0 => Err(DropReason::SequenceZero),
            _ if seq > self.highest => Ok(()),
            _ if self.highest - seq >= self.window => Err(DropReason::TooOld),
            _ => {
                let (word, bit) = self.place(seq);
                match self.words[word] & bit {
                    0 => Ok(()),
                    _ => Err(DropReason::Replayed),
                }
            }
        }
    }

    /// Checks again and takes an authenticated number into the window, which moves with it.
    pub fn take(&mut self, seq: u32) -> Result<(), DropReason> {
        self.check(seq)?;
        if self.words.is_empty() {
            self.words = vec![0; self.window.div_ceil(BITS) as usize + 1].into();
        }
        if seq > self.highest {
            self.forget_between(self.highest / BITS, seq / BITS);
            self.highest = seq;
        }
        let (word, bit) = self.place(seq);
        self.words[word] |= bit;
        Ok(())
    }

    /// Clears the words after `old` up to `new`: they still hold what is now left of the window.
    fn forget_between(&mut self, old: u32, new: u32) {
        let all = self.words.len() as u32;
        for word in 1..=(new - old).min(all) {
            let index = (new - (word - 1)) % all;
            self.words[index as usize] = 0;
        }
    }

    fn place(&self, seq: u32) -> (usize, u64) {
        let word = (seq / BITS) as usize % self.words.len();
        (word, 1 << (seq % BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// What the window is meant to be, with all the memory it wants.
    #[derive(Default)]
    struct Naive {
        seen: BTreeSet<u32>,
    }

    impl Naive {
        fn take(&mut self, seq: u32, window: u32) -> Result<(), DropReason> {
            let highest = self.seen.last().copied().unwrap_or(0);
            if seq == 0 {
                return Err(DropReason::SequenceZero);
            }
            if u64::from(seq) + u64::from(window) <= u64::from(highest) {
                return Err(DropReason::TooOld);
            }
            match self.seen.insert(seq) {
                true => Ok(()),
                false => Err(DropReason::Replayed),
            }
        }
    }

    #[test]
    fn the_window_is_exactly_as_wide_as_agreed() {
        for window in [4096, 5000, 65536] {
            let mut replay = Replay::new(window);
            replay.take(100_000).unwrap();
            assert_eq!(replay.check(100_000 - window), Err(DropReason::TooOld));
            replay.take(100_000 - window + 1).unwrap();
            assert_eq!(replay.take(100_000 - window + 1), Err(DropReason::Replayed));
        }
    }

    #[test]
    fn a_window_is_never_narrower_nor_wider_than_designed() {
        assert_eq!(Replay::new(0).window(), 4096);
        assert_eq!(Replay::new(u32::MAX).window(), 65536);
    }

    #[test]
    fn a_check_changes_nothing() {
        let replay = Replay::new(4096);
        assert_eq!(replay.check(5_000), Ok(()));
        assert_eq!(replay.check(1), Ok(()));
        assert_eq!(replay.highest(), 0);
    }

    #[test]
    fn zero_is_never_new_and_the_last_number_is_once() {
        let mut replay = Replay::new(4096);
        assert_eq!(replay.take(0), Err(DropReason::SequenceZero));
        assert_eq!(replay.take(u32::MAX), Ok(()));
        assert_eq!(replay.take(u32::MAX), Err(DropReason::Replayed));
        assert_eq!(replay.take(u32::MAX - 4095), Ok(()));
        assert_eq!(replay.take(1), Err(DropReason::TooOld));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_does_what_the_naive_model_does(
            window in 4096..=65536_u32,
            start in prop_oneof![Just(1_u32), 1..=u32::MAX],
            steps in proptest::collection::vec(
                prop_oneof![
                    4 => -200..200_i64,
                    2 => -5_000..5_000_i64,
                    1 => -70_000..140_000_i64,
                ],
                1..400,
            ),
        ) {
            let (mut replay, mut naive) = (Replay::new(window), Naive::default());
            let mut seq = start;
            for step in steps {
                seq = (i64::from(seq) + step).clamp(0, u32::MAX.into()) as u32;
                prop_assert_eq!(replay.take(seq), naive.take(seq, window), "{}", seq);
                prop_assert_eq!(replay.highest(), naive.seen.last().copied().unwrap_or(0));
            }
        }
    }
}
