//! The replay window (RFC 4303 section 3.4.3): a bitmap in a ring of words, so that an advance
//! clears words instead of shifting bits (the idea of RFC 6479).
//!
//! Bit `seq` is bit `seq % 64` of word `(seq / 64) % words`. There is one word more than the window
//! needs, because the word of the highest number may extend beyond that number. Exactly the numbers
//! `highest - window + 1 ..= highest` are inside; RFC 6479 has only approximately as many.
//!
//! Numbers have 64 bits. Without extended sequence numbers all are below 2^32.

use crate::drop::DropReason;
use crate::prefetch::prefetch;

/// Window size of plain SAs, and the minimum of composite ones, in packets.
pub(crate) const MIN_WINDOW: u32 = 4096;
/// The largest window size, in packets.
pub(crate) const MAX_WINDOW: u32 = 65536;

const BITS: u64 = 64;

/// The sequence numbers of one SA that were received.
pub(crate) struct Replay {
    window: u32,
    highest: u64,
    /// Empty before the first packet: of ten thousand SAs, few may carry any traffic.
    words: Box<[u64]>,
}

impl Replay {
    /// Creates an empty window of `window` packets, clamped to [`MIN_WINDOW`] and [`MAX_WINDOW`].
    pub fn new(window: u32) -> Self {
        let window = window.clamp(MIN_WINDOW, MAX_WINDOW);
        Self {
            window,
            highest: 0,
            words: Box::default(),
        }
    }

    /// Returns the window size, in packets.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Prefetches the word of the next expected number.
    pub fn prefetch(&self) {
        if !self.words.is_empty() {
            let (word, _) = self.place(self.highest.wrapping_add(1));
            prefetch(&self.words[word]);
        }
    }

    /// Returns the highest number received, 0 before the first.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Returns the extended number for a packet's lower half: the first number with that half that
    /// is not left of the window (RFC 4303 appendix A2.2). After a loss of 2^32 packets the result
    /// is wrong, and the packet fails authentication.
    pub fn extended(&self, lower: u32) -> u64 {
        let bottom = self.highest.saturating_sub(u64::from(self.window) - 1);
        // After the last number the first follows, which is left of the window.
        bottom.wrapping_add(lower.wrapping_sub(bottom as u32).into())
    }

    /// Checks if a number could be new. Runs before authentication, so it changes nothing.
    pub fn check(&self, seq: u64) -> Result<(), DropReason> {
        match seq {
            0 => Err(DropReason::SequenceZero),
            _ if seq > self.highest => Ok(()),
            _ if self.highest - seq >= self.window.into() => Err(DropReason::TooOld),
            _ => {
                let (word, bit) = self.place(seq);
                match self.words[word] & bit {
                    0 => Ok(()),
                    _ => Err(DropReason::Replayed),
                }
            }
        }
    }

    /// Repeats the check for an authenticated number, marks the number as received, and advances
    /// the window.
    pub fn take(&mut self, seq: u64) -> Result<(), DropReason> {
        self.check(seq)?;
        if self.words.is_empty() {
            self.words = vec![0; u64::from(self.window).div_ceil(BITS) as usize + 1].into();
        }
        if seq > self.highest {
            self.forget_between(self.highest / BITS, seq / BITS);
            self.highest = seq;
        }
        let (word, bit) = self.place(seq);
        self.words[word] |= bit;
        Ok(())
    }

    /// Clears the words after `old` up to `new`, which still hold numbers now left of the window.
    fn forget_between(&mut self, old: u64, new: u64) {
        let all = self.words.len() as u64;
        for word in 1..=(new - old).min(all) {
            let index = (new - (word - 1)) % all;
            self.words[index as usize] = 0;
        }
    }

    fn place(&self, seq: u64) -> (usize, u64) {
        let word = (seq / BITS) % self.words.len() as u64;
        (word as usize, 1 << (seq % BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// A reference model of the window, with unlimited memory.
    #[derive(Default)]
    struct Naive {
        seen: BTreeSet<u64>,
    }

    impl Naive {
        fn take(&mut self, seq: u64, window: u64) -> Result<(), DropReason> {
            let highest = self.seen.last().copied().unwrap_or(0);
            if seq == 0 {
                return Err(DropReason::SequenceZero);
            }
            if seq <= highest.saturating_sub(window) {
                return Err(DropReason::TooOld);
            }
            match self.seen.insert(seq) {
                true => Ok(()),
                false => Err(DropReason::Replayed),
            }
        }

        /// The upper half exactly as in RFC 4303 appendix A2.3, in arithmetic modulo 2^32.
        fn extended(&self, lower: u32, window: u32) -> u64 {
            let top = self.seen.last().copied().unwrap_or(0);
            let (top_lower, top_upper) = (top as u32, (top >> 32) as u32);
            let is_right = lower < top_lower.wrapping_sub(window - 1);
            let upper = match (top_lower >= window - 1, is_right) {
                (true, false) => top_upper,
                (true, true) => top_upper.wrapping_add(1),
                // RFC 4303 does not define a number before the first.
                (false, false) => top_upper.saturating_sub(1),
                (false, true) => top_upper,
            };
            u64::from(upper) << 32 | u64::from(lower)
        }
    }

    #[test]
    fn the_window_is_exactly_as_wide_as_agreed() {
        for window in [4096, 5000, 65536] {
            let mut replay = Replay::new(window);
            replay.take(100_000).unwrap();
            let oldest = 100_000 - u64::from(window) + 1;
            assert_eq!(replay.check(oldest - 1), Err(DropReason::TooOld));
            replay.take(oldest).unwrap();
            assert_eq!(replay.take(oldest), Err(DropReason::Replayed));
        }
    }

    // Weakness: 74
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
        assert_eq!(replay.take(LAST), Ok(()));
        assert_eq!(replay.take(LAST), Err(DropReason::Replayed));
        assert_eq!(replay.take(LAST - 4095), Ok(()));
        assert_eq!(replay.take(1), Err(DropReason::TooOld));
    }

    #[test]
    fn the_extended_number_is_the_first_that_is_not_left_of_the_window() {
        let cases = [
            // Before the first packet, and within the first window.
            (0, 1, 1),
            (0, u32::MAX, LAST),
            (100, u32::MAX, LAST),
            // The window is in one cycle: numbers left of it belong to the next.
            (LAST, u32::MAX, LAST),
            (LAST, u32::MAX - 4095, LAST - 4095),
            (LAST, u32::MAX - 4096, (2 << 32) - 1 - 4096),
            (LAST, 0, 1 << 32),
            (LAST, 7, (1 << 32) + 7),
            // The window spans two cycles.
            ((1 << 32) + 7, u32::MAX, LAST),
            ((1 << 32) + 7, 8, (1 << 32) + 8),
            ((1 << 32) + 4094, u32::MAX, LAST),
            ((1 << 32) + 4095, u32::MAX, (2 << 32) - 1),
        ];
        for (highest, lower, extended) in cases {
            let mut replay = Replay::new(4096);
            replay.highest = highest;
            assert_eq!(replay.extended(lower), extended, "{lower} after {highest}");
        }
    }

    /// A peer with the keys gains nothing from jumping to the last number.
    #[test]
    fn beyond_the_last_extended_number_all_are_left_of_the_window() {
        let mut replay = Replay::new(4096);
        replay.take(u64::MAX).unwrap();
        for lower in [0, 1, 7, u32::MAX - 4096] {
            let number = replay.extended(lower);
            assert_eq!(number, u64::from(lower));
            assert!(matches!(
                replay.check(number),
                Err(DropReason::TooOld | DropReason::SequenceZero)
            ));
        }
        assert_eq!(replay.extended(u32::MAX), u64::MAX);
        assert_eq!(replay.check(u64::MAX), Err(DropReason::Replayed));
    }

    /// The last number without an upper half.
    const LAST: u64 = u32::MAX as u64;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        // Weakness: 77
        #[test]
        fn it_does_what_the_naive_model_does(
            window in 4096..=65536_u32,
            start in prop_oneof![Just(1), 1..=LAST, LAST - 9000..LAST + 9000, 1..=u64::MAX],
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
                seq = seq.saturating_add_signed(step);
                prop_assert_eq!(replay.take(seq), naive.take(seq, window.into()), "{}", seq);
                prop_assert_eq!(replay.highest(), naive.seen.last().copied().unwrap_or(0));
            }
        }

        /// For any lower half and any position of the window.
        #[test]
        fn an_extended_number_is_what_rfc_4303_appendix_a2_says(
            window in 4096..=65536_u32,
            highest in prop_oneof![0..=2 * 65536_u64, LAST - 70_000..LAST + 70_000, 0..u64::MAX - (1 << 32)],
            lower in prop_oneof![any::<u32>(), (-70_000..70_000_i32).prop_map(|near| near as u32)],
            near: bool,
        ) {
            let mut replay = Replay::new(window);
            replay.highest = highest;
            let lower = if near { lower.wrapping_add(highest as u32) } else { lower };
            let naive = Naive { seen: [highest].into() };
            prop_assert_eq!(replay.extended(lower), naive.extended(lower, window));
        }
    }
}
