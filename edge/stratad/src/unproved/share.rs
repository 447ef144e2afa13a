//! A share of a thread's time.

use model::{Bucket, Instant};
use std::time::Duration;

/// Time that may be used at once, after a pause of this length times the parts of the share.
pub const BURST: Duration = Duration::from_millis(1);

/// One part in `parts` of the time, or all of it while nothing else needs it.
pub struct Share {
    parts: u32,
    used: Bucket,
}

impl Share {
    pub fn new(parts: u32) -> Self {
        Self {
            parts,
            used: Bucket::default(),
        }
    }

    /// Returns the next time at which the share may be used.
    pub fn next(&self, now: Instant) -> Instant {
        self.used.next(self.burst(), now)
    }

    /// Records a use of the share.
    pub fn took(&mut self, began: Instant, ended: Instant) {
        let cost = (ended - began) * self.parts;
        self.used.charge(cost, self.burst(), began);
    }

    fn burst(&self) -> Duration {
        BURST * self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_waited_for_as_many_times_as_there_are_parts() {
        let begun = Instant::from_origin(Duration::from_secs(9));
        let mut share = Share::new(8);
        assert_eq!(share.next(begun), begun);
        share.took(begun, begun + BURST);
        assert_eq!(share.next(begun + BURST), begun + BURST, "a burst is free");
        let ended = begun + BURST * 2;
        share.took(begun + BURST, ended);
        assert_eq!(share.next(ended), begun + BURST * 8);
    }

    #[test]
    fn time_that_was_used_while_there_was_enough_is_owed_for_a_burst_at_most() {
        let mut now = Instant::from_origin(Duration::from_secs(9));
        let mut share = Share::new(8);
        for _ in 0..1000 {
            let ended = now + BURST;
            share.took(now, ended);
            now = ended;
        }
        assert_eq!(share.next(now), now + BURST * 7);
    }
}
