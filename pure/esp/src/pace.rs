//! The rates of an SA's traffic, without a timer: an SA that carries nothing costs nothing.
//!
//! An SA keeps its counters as they were at two earlier times. A packet that arrives [`SPAN`] after
//! the newer of them, or later, makes it the older one. So all packets since the newer sample came
//! within [`SPAN`] after it, and if it is twice as old, nothing was carried for a while.

use crate::report::{SaTraffic, Traffic};
use model::Instant;
use std::time::Duration;

/// The shortest time between two samples.
const SPAN: Duration = Duration::from_secs(2);

/// The shortest time over which a rate is computed.
const LEAST: Duration = Duration::from_secs(1);

/// Two samples of the counters of an SA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    older: Sample,
    newer: Sample,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    at: Instant,
    traffic: SaTraffic,
}

/// Rates of inner traffic over the last seconds, in octets per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Outbound traffic.
    pub sealed: u64,
    /// Inbound traffic.
    pub opened: u64,
}

impl Pace {
    /// Returns true if the counters have to be sampled before another packet is counted.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now.since(self.newer.at) >= SPAN
    }

    /// Samples the counters.
    pub(crate) const fn sample(&mut self, traffic: SaTraffic, now: Instant) {
        self.older = self.newer;
        self.newer = Sample { at: now, traffic };
    }

    /// Returns the rates, by the present counters.
    pub fn rates(&self, traffic: SaTraffic, now: Instant) -> Rates {
        if now.since(self.newer.at) >= 2 * SPAN {
            return Rates::default();
        }
        // What came before a pause does not belong to the traffic of now.
        let is_steady = self.newer.at.since(self.older.at) < 2 * SPAN;
        let from = if is_steady { self.older } else { self.newer };
        let time = now.since(from.at).max(LEAST);
        Rates {
            sealed: rate(from.traffic.sealed, traffic.sealed, time),
            opened: rate(from.traffic.opened, traffic.opened, time),
        }
    }
}

fn rate(from: Traffic, to: Traffic, time: Duration) -> u64 {
    let octets = u128::from(to.octets.saturating_sub(from.octets));
    let rate = octets * 1000 / time.as_millis().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An SA that only receives.
    #[derive(Clone, Default)]
    struct Counted {
        traffic: SaTraffic,
        pace: Pace,
    }

    impl Counted {
        /// Counts packets of 1,000 octets at equal distances, with both ends.
        fn carry(&mut self, millis: std::ops::RangeInclusive<u64>, step: usize) {
            for millis in millis.step_by(step) {
                let now = at(millis);
                if self.pace.is_due(now) {
                    self.pace.sample(self.traffic, now);
                }
                self.traffic.opened.count(1000);
            }
        }

        fn rate(&self, millis: u64) -> u64 {
            let rates = self.pace.rates(self.traffic, at(millis));
            assert_eq!(rates.sealed, 0);
            rates.opened
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    fn is_near(rate: u64, expected: u64) -> bool {
        rate.abs_diff(expected) * 20 <= expected
    }

    #[test]
    fn steady_traffic_has_its_rate_at_any_time() {
        let mut sa = Counted::default();
        sa.carry(100_000..=130_000, 10);
        for later in [0, 5, 500, 999] {
            let mut sa = sa.clone();
            sa.carry(130_010..=130_000 + later, 10);
            let rate = sa.rate(130_000 + later);
            assert!(is_near(rate, 100_000), "{rate} after {later} ms");
        }
    }

    #[test]
    fn a_burst_after_a_pause_is_not_spread_over_the_pause() {
        let mut sa = Counted::default();
        sa.carry(100_000..=110_000, 10);
        sa.carry(500_000..=501_500, 10);
        assert!(is_near(sa.rate(501_500), 100_000), "{}", sa.rate(501_500));
    }

    #[test]
    fn the_first_packet_is_no_flood() {
        let mut sa = Counted::default();
        sa.carry(100_000..=100_000, 10);
        assert_eq!(sa.rate(100_001), 1000);
    }

    #[test]
    fn traffic_that_has_ended_has_no_rate() {
        let mut sa = Counted::default();
        sa.carry(100_000..=110_000, 10);
        assert!(sa.rate(111_000) > 0);
        assert_eq!(sa.rate(114_001), 0);
        assert_eq!(Counted::default().rate(0), 0);
    }
}
