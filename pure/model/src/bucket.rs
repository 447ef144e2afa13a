//! A rate limit with bursts.

use crate::Instant;
use std::time::Duration;

/// A token bucket. Costs are times: that of one action is the time after which one more is earned.
/// So the state is one time, at which everything taken so far is earned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket(Instant);

impl Bucket {
    /// Takes a cost, if earlier costs exceed what is earned by no more than `burst`. Returns true
    /// if it did.
    pub fn take(&mut self, cost: Duration, burst: Duration, now: Instant) -> bool {
        let takes = self.next(burst, now) <= now;
        if takes {
            self.charge(cost, burst, now);
        }
        takes
    }

    /// Takes a cost that arose anyway. Earlier costs count up to `burst`.
    pub fn charge(&mut self, cost: Duration, burst: Duration, now: Instant) {
        self.0 = self.0.clamp(now, now + burst) + cost;
    }

    /// Returns the next time at which [`Self::take`] succeeds.
    pub fn next(&self, burst: Duration, now: Instant) -> Instant {
        now + (self.0 - (now + burst))
    }

    /// Returns true if everything taken is earned.
    pub fn is_full(&self, now: Instant) -> bool {
        self.0 <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Duration = Duration::from_millis(250);
    const BURST: Duration = Duration::from_millis(750);

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(9) + Duration::from_millis(millis))
    }

    #[test]
    fn a_burst_is_taken_at_once_and_then_as_much_as_is_earned() {
        for begun in [0, 3_600_000] {
            let mut bucket = Bucket::default();
            let taken = |bucket: &mut Bucket, millis: std::ops::Range<u64>| {
                let times = millis.map(|millis| at(begun + millis));
                times.filter(|now| bucket.take(EACH, BURST, *now)).count()
            };
            assert_eq!(taken(&mut bucket, 0..200), 4);
            assert!(!bucket.is_full(at(begun + 200)));
            assert_eq!(bucket.next(BURST, at(begun + 200)), at(begun + 250));
            assert_eq!(taken(&mut bucket, 200..10_200), 40);
            assert!(bucket.is_full(at(begun + 20_000)));
            assert_eq!(taken(&mut bucket, 20_000..20_200), 4);
        }
    }

    #[test]
    fn costs_that_arise_anyway_are_owed_for_a_burst_at_most() {
        let mut bucket = Bucket::default();
        (0..1000).for_each(|_| bucket.charge(EACH, BURST, at(0)));
        assert_eq!(bucket.next(BURST, at(0)), at(250));
    }
}
