//! Measurements and goals.

use super::REKEY;
use crate::bench::{Bound, Goal};
use serde::Serialize;

/// Octets that a daemon may grow by, for buffers that fill only later.
const MOST_GROWN: u64 = 4 << 20;

/// A measurement, as `strata-lab bench soak --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Planned duration, in seconds.
    pub seconds: u32,
    /// Datagrams per second in both directions, at full rate.
    pub full_per_s: f64,
    /// Datagrams delivered after that, each exactly once.
    pub datagrams: u64,
    /// Number of rekeys of the tunnel.
    pub new_keys: usize,
    /// One sample per second.
    pub samples: Vec<Sample>,
    /// Growth of each daemon, from the second quarter to the last.
    pub grown_octets: Option<Grown>,
    /// Loss or growth, if any.
    pub failure: Option<String>,
    /// Goals and results.
    pub goals: Vec<Goal>,
    /// True for a release build.
    pub optimised: bool,
}

/// State at one moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Time since the start, in seconds.
    pub s: f64,
    /// Datagrams so far.
    pub datagrams: u64,
    /// Memory of the mobile node's daemon, in octets.
    pub mobile: u64,
    /// Memory of the licensed node's daemon, in octets.
    pub node: u64,
    /// Memory of the gateway's daemon, in octets.
    pub gateway: u64,
}

/// Growth of each daemon, in octets; zero if it has shrunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Grown {
    /// Growth of the mobile node's daemon.
    pub mobile: u64,
    /// Growth of the licensed node's daemon.
    pub node: u64,
    /// Growth of the gateway's daemon.
    pub gateway: u64,
}

impl Report {
    pub(super) const fn new(seconds: u32) -> Self {
        Self {
            seconds,
            full_per_s: 0.0,
            datagrams: 0,
            new_keys: 0,
            samples: Vec::new(),
            grown_octets: None,
            failure: None,
            goals: Vec::new(),
            optimised: !cfg!(debug_assertions),
        }
    }

    /// Adds the conclusions from the samples.
    pub(super) fn finished(mut self) -> Self {
        self.grown_octets = Grown::from_samples(&self.samples);
        let grown = self.grown_octets.map(|grown| grown.most());
        let rekeys = f64::from(self.seconds) / REKEY.as_secs_f64();
        let keys = self.new_keys as f64;
        let limit = MOST_GROWN as f64;
        self.goals = vec![
            // The first rekey is a little late, and rekeys have jitter.
            Goal::new(
                "times new keys",
                Bound::AtLeast,
                (rekeys - 2.0).max(0.0).floor(),
                Some(keys),
            ),
            Goal::new(
                "octets that a daemon has grown by",
                Bound::AtMost,
                limit,
                grown.map(|octets| octets as f64),
            ),
        ];
        let missed = self.goals.iter().find(|goal| !goal.reached);
        let missed = missed.map(|goal| format!("not as wanted: {}", goal.goal));
        self.failure = self.failure.or(missed);
        self
    }

    /// Returns the datagrams per second over the whole run.
    pub fn per_s(&self) -> Option<f64> {
        let last = self.samples.last()?;
        Some(last.datagrams as f64 / last.s)
    }
}

impl Grown {
    /// Compares the medians of the second quarter and of the last quarter. Every buffer has been
    /// used by the second.
    fn from_samples(samples: &[Sample]) -> Option<Self> {
        let quarter = samples.len() / 4;
        let between = |of: fn(&Sample) -> u64| {
            let median = |from: usize| {
                let mut octets: Vec<_> = samples[from..from + quarter].iter().map(of).collect();
                octets.sort_unstable();
                octets[quarter / 2]
            };
            median(samples.len() - quarter).saturating_sub(median(quarter))
        };
        (quarter > 0).then(|| Self {
            mobile: between(|sample| sample.mobile),
            node: between(|sample| sample.node),
            gateway: between(|sample| sample.gateway),
        })
    }

    fn most(self) -> u64 {
        self.mobile.max(self.node).max(self.gateway)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::Measured;

    /// Returns the report of a minute in which the daemon of each host grows by this many octets
    /// per second.
    pub fn report([mobile, node, gateway]: [u64; 3]) -> Report {
        let sample = |s: u64| Sample {
            s: s as f64,
            datagrams: 10_000 * s,
            mobile: (20 << 20) + mobile * s,
            node: (30 << 20) + node * s,
            gateway: (25 << 20) + gateway * s,
        };
        let report = Report {
            full_per_s: 12_500.0,
            datagrams: 600_000,
            new_keys: 5,
            samples: (1..=60).map(sample).collect(),
            ..Report::new(60)
        };
        report.finished()
    }

    #[test]
    fn who_stays_as_he_is_passes() {
        let report = report([0; 3]);
        assert!(report.is_complete(), "{report:?}");
        let none = Grown {
            mobile: 0,
            node: 0,
            gateway: 0,
        };
        assert_eq!(report.grown_octets, Some(none));
    }

    /// The control: a single growing daemon changes the verdict.
    // Refuses: soak
    #[test]
    fn whoever_grows_fails() {
        for index in 0..3 {
            let mut each = [0; 3];
            each[index] = 200 << 10;
            let report = report(each);
            assert!(!report.is_complete(), "{report:?}");
            assert_eq!(report.grown_octets.unwrap().most(), 30 * (200 << 10));
        }
    }

    #[test]
    fn without_new_keys_it_fails() {
        let report = Report {
            new_keys: 3,
            ..report([0; 3])
        };
        assert!(!report.finished().is_complete());
    }

    #[test]
    fn what_is_over_before_it_begins_fails_and_says_no_growth() {
        let report = Report::new(60).finished();
        assert!(!report.is_complete() && report.grown_octets.is_none());
    }
}
