//! Loss measurement: the share of sequence numbers missing among received packets.
//!
//! "If a MH determines that it has a high signal strength, and therefore likely has a reliable
//! wireless link, it may not need to run a performance enhancing algorithm" ("Mobile multi-layered
//! IPsec", section 5.2): then no node on the path needs to read headers. Signal strength predicts
//! losses, while sequence numbers show them, on any kind of link. The opposite direction uses the
//! same links.
//!
//! A number counts as missing once a later one has arrived, even if its packet arrives afterwards:
//! a licensed node repairs losses, and is needed where it does.

/// Sequence numbers per measurement. With fewer, a single loss could exceed the threshold.
const PERIOD: u64 = 1000;

/// The unit of shares: ten-thousandths.
const WHOLE: u128 = 10_000;

/// The quality of the path that an SA's packets arrive on. Initially unknown, and not good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The share of missing packets in the last measurement, in ten-thousandths; `None` before the
    /// first.
    pub missing: Option<u16>,
    /// True if the share is small enough.
    pub good: bool,
    numbers: u64,
    gaps: u64,
}

impl Link {
    /// Records that the highest received number has grown by `advance`. Returns true if the link
    /// has become good or bad. It becomes bad as soon as the share of a period can no longer be
    /// less than `below`, and good after a period with less than half of that. This hysteresis
    /// keeps single losses from toggling the state.
    pub fn advance(&mut self, advance: u64, below: u16) -> bool {
        self.numbers = self.numbers.saturating_add(advance);
        self.gaps = self.gaps.saturating_add(advance.saturating_sub(1));
        let share = u128::from(self.gaps) * WHOLE / u128::from(self.numbers.max(PERIOD));
        let (below, was) = (u128::from(below), self.good);
        if share >= below {
            self.good = false;
        } else if self.numbers < PERIOD {
            return false;
        } else if 2 * share < below {
            self.good = true;
        }
        self.missing = u16::try_from(share).ok();
        (self.numbers, self.gaps) = (0, 0);
        self.good != was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One in a hundred.
    const BELOW: u16 = 100;

    /// Receives this many packets, with one in `every` lost.
    fn come(link: &mut Link, packets: u64, every: u64) -> u32 {
        let mut changes = 0;
        for number in 1..=packets {
            let advance = if number % every == 0 { 2 } else { 1 };
            changes += u32::from(link.advance(advance, BELOW));
        }
        changes
    }

    #[test]
    fn a_link_is_good_after_a_period_in_which_little_is_missing() {
        let mut link = Link::default();
        assert_eq!(
            (come(&mut link, PERIOD - 1, u64::MAX), link.good),
            (0, false)
        );
        assert_eq!((come(&mut link, 1, u64::MAX), link.good), (1, true));
        assert_eq!(link.missing, Some(0));
    }

    #[test]
    fn a_link_is_bad_as_soon_as_too_much_is_missing() {
        let mut link = Link::default();
        come(&mut link, PERIOD, u64::MAX);
        assert!(
            !link.advance(10, BELOW),
            "nine of a thousand are less than one in a hundred"
        );
        assert!(link.advance(2, BELOW));
        assert_eq!((link.good, link.missing), (false, Some(100)));
    }

    #[test]
    fn what_is_between_changes_nothing() {
        for (before, every) in [(u64::MAX, 140), (50, 140)] {
            let mut link = Link::default();
            come(&mut link, 2 * PERIOD, before);
            let good = link.good;
            assert_eq!((come(&mut link, 10 * PERIOD, every), link.good), (0, good));
        }
    }

    /// A late packet does not advance the window.
    #[test]
    fn what_comes_late_is_missing_all_the_same() {
        let mut link = Link::default();
        for _ in 0..PERIOD {
            link.advance(2, BELOW);
            link.advance(0, BELOW);
        }
        assert!(!link.good);
        assert!(link.missing >= Some(100), "{link:?}");
    }

    #[test]
    fn a_number_far_ahead_is_no_overflow() {
        let mut link = Link::default();
        assert!(!link.advance(u64::MAX, BELOW));
        assert_eq!((link.good, link.missing), (false, Some(9999)));
    }
}
