//! The retransmission timeout (RFC 6298).

use std::time::Duration;

/// Timeout before the first sample (RFC 6298 section 2.1).
const INITIAL: Duration = Duration::from_secs(1);
/// Upper bound of Linux, TCP_RTO_MAX.
const LONGEST: Duration = Duration::from_secs(120);

/// Smoothed round-trip time, its variation, and the number of consecutive timeouts.
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    estimate: Option<(Duration, Duration)>,
    backoff: u32,
    granularity: Duration,
}

impl RoundTrip {
    /// Creates an estimator without samples. The timeout is at least `granularity` above the
    /// smoothed round-trip time: the G of RFC 6298, and the minimum timeout of Linux.
    pub const fn new(granularity: Duration) -> Self {
        Self {
            estimate: None,
            backoff: 0,
            granularity,
        }
    }

    /// Adds a measurement (sections 2.2 and 2.3), which also ends the backoff (section 5.7).
    pub fn sample(&mut self, measured: Duration) {
        let estimate = match self.estimate {
            None => (measured, measured / 2),
            Some((smoothed, variation)) => (
                (smoothed * 7 + measured) / 8,
                (variation * 3 + smoothed.abs_diff(measured)) / 4,
            ),
        };
        self.estimate = Some(estimate);
        self.backoff = 0;
    }

    /// Doubles the next timeout after the timer expired (section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Returns the time to wait for an acknowledgement.
    pub fn timeout(&self) -> Duration {
        let base = self.estimate.map_or(INITIAL, |(smoothed, variation)| {
            smoothed + (variation * 4).max(self.granularity)
        });
        base.saturating_mul(1 << self.backoff).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Duration = Duration::from_millis(200);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_timeout_follows_the_formulas() {
        let mut round_trip = RoundTrip::new(ms(1));
        assert_eq!(round_trip.timeout(), ms(1000));
        round_trip.sample(ms(100));
        assert_eq!(round_trip.timeout(), ms(100 + 4 * 50));
        round_trip.sample(ms(180));
        // Variation 3/4 * 50 + 1/4 * 80, smoothed 7/8 * 100 + 1/8 * 180.
        assert_eq!(
            round_trip.timeout(),
            Duration::from_micros(110_000 + 4 * 57_500)
        );
    }

    #[test]
    fn a_steady_path_leaves_the_granularity() {
        let mut round_trip = RoundTrip::new(G);
        (0..100).for_each(|_| round_trip.sample(ms(208)));
        assert_eq!(round_trip.timeout(), ms(408));
    }

    #[test]
    fn it_backs_off_by_doubling_up_to_a_bound_until_a_sample_comes() {
        let mut round_trip = RoundTrip::new(G);
        round_trip.sample(ms(200));
        let first = round_trip.timeout();
        round_trip.back_off();
        assert_eq!(round_trip.timeout(), first * 2);
        round_trip.back_off();
        assert_eq!(round_trip.timeout(), first * 4);
        (0..100).for_each(|_| round_trip.back_off());
        assert_eq!(round_trip.timeout(), LONGEST);
        round_trip.sample(ms(200));
        assert!(round_trip.timeout() <= first);
    }
}
