//! Round-trip time over the wireless hop, its queue included (RFC 6298 with a shorter clock).
//!
//! Most of this time is spent in the hop's queue, and it may grow to a second. A timeout that did
//! not follow it would fill the queue with copies. So the estimator is that of TCP, and the caller
//! feeds it only packets that were sent once (Karn's rule, RFC 6298 section 3).

use crate::Config;
use std::time::Duration;

/// The RTT estimator of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    backoff: u32,
}

impl Rtt {
    /// Adds a sample (RFC 6298 rules 2.2 and 2.3).
    pub(crate) fn sample(&mut self, rtt: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(rtt)) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
    }

    /// Doubles the timeout after an expiry (rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Ends the back-off, because the receiver made progress.
    pub(crate) fn progress(&mut self) {
        self.backoff = 0;
    }

    /// Returns the smoothed round-trip time, or `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Returns the current retransmission timeout.
    pub(crate) fn timeout(&self, config: &Config) -> Duration {
        let base = match self.smoothed {
            None => config.initial_rto,
            Some(smoothed) => smoothed + self.variation * 4,
        };
        let factor = 1_u32.checked_shl(self.backoff).unwrap_or(u32::MAX);
        base.max(config.min_rto)
            .saturating_mul(factor)
            .min(config.max_rto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_timeout_starts_at_the_initial_one_and_never_falls_below_the_least() {
        let config = Config::default();
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(&config), ms(100));
        rtt.sample(ms(8));
        assert_eq!(
            (rtt.smoothed(), rtt.timeout(&config)),
            (Some(ms(8)), ms(100))
        );
    }

    #[test]
    fn the_timeout_follows_a_queue_that_fills() {
        let config = Config::default();
        let mut rtt = Rtt::default();
        for n in 0..100 {
            let queue = ms(8 + 6 * n);
            assert!(n < 2 || rtt.timeout(&config) > queue, "late at {queue:?}");
            rtt.sample(queue);
        }
    }

    #[test]
    fn each_timeout_doubles_up_to_the_limit_and_progress_ends_it() {
        let config = Config::default();
        let mut rtt = Rtt::default();
        let mut seen = Vec::new();
        for _ in 0..7 {
            seen.push(rtt.timeout(&config).as_millis());
            rtt.back_off();
        }
        assert_eq!(seen, [100, 200, 400, 800, 1600, 3000, 3000]);
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.timeout(&config), ms(3000));
        rtt.progress();
        assert_eq!(rtt.timeout(&config), ms(100));
    }
}
