//! What the packets that come say about their way: how many of their numbers are missing.
//!
//! "If a MH determines that it has a high signal strength, and therefore likely has a reliable wireless link, it
//! may not need to run a performance enhancing algorithm" ("Mobile multi-layered IPsec", section 5.2): then
//! nobody on the way has to see anything. A signal's strength says what may be lost, the numbers say what was,
//! whatever kind of link it is; and what goes the other way takes the same links.
//!
//! A number is missing when one behind it has come, also if its packet comes later: a licensed node repairs
//! losses, and is needed where it does.

/// So many numbers are judged together. With fewer a single loss would be more than what is asked for.
const PERIOD: u64 = 1000;

/// In ten-thousandths.
const WHOLE: u128 = 10_000;

/// How good the way of an SA's packets is. Nothing is known of it at first, and that is not good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Of how many ten-thousandths of the packets nothing was seen when they were judged last; `None` before
    /// there were enough of them.
    pub missing: Option<u16>,
    /// Whether that is little enough.
    pub good: bool,
    numbers: u64,
    gaps: u64,
}

impl Link {
    /// The highest number of those that came is higher by `advance` now. Says whether the link has become
    /// good or bad by that. It is bad as soon as so much is missing of a period that it cannot be less than
    /// `below`, and good after one with less than half of that: so it does not turn with each loss.
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

    /// So many packets come of which every so many-th is lost.
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

    /// What comes late moves nothing forward.
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
