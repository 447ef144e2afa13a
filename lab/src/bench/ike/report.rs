//! Measurements and goals.

use super::{Load, Poured};
use crate::bench::crowd::Run;
use crate::bench::{Bound, Goal};
use crate::experiment::median;
use serde::Serialize;
use std::time::Duration;

/// Share of honest set-ups that must succeed during a flood. Under the other loads, all must.
pub(super) const HONEST_SHARE: f64 = 0.99;

/// A measurement, as `strata-lab bench ike --json` prints it. Medians and sums are over all rounds;
/// for a flood, over the flooded round.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Load on the responder.
    pub load: Load,
    /// Number of attempted set-ups.
    pub wanted: usize,
    /// Number of successful set-ups.
    pub up: usize,
    /// Reason of the first failure.
    pub failure: Option<String>,
    /// Processor time of the responder per set-up, in microseconds, the median of the rounds.
    pub cpu_us: Option<f64>,
    /// Set-ups per second that would fill one core.
    pub per_cpu_second: Option<f64>,
    /// Processor time of the cryptography within `cpu_us`, timed alone, in microseconds.
    pub raw_us: Option<f64>,
    /// Ratio of a set-up's cost to its cryptography, the median of the rounds.
    pub ratio: Option<f64>,
    /// Median time from the first request until the child is up, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile of this time, in milliseconds.
    pub p99_ms: Option<f64>,
    /// Growth of the responder's memory per set-up, in octets.
    pub octets_per_sa: Option<f64>,
    /// Retransmitted requests as a share of all other requests.
    pub retransmitted_share: f64,
    /// Goals and results.
    pub goals: Vec<Goal>,
    /// All rounds.
    pub rounds: Vec<Round>,
    /// True if the responder had its own core.
    pub own_core: bool,
    /// True for a release build; other builds have meaningless figures.
    pub optimised: bool,
}

/// One round.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// IKE SAs that were up before the round.
    pub sas_before: usize,
    /// Number of attempted set-ups.
    pub wanted: usize,
    /// Number of successful set-ups.
    pub up: usize,
    /// Reason of the first failure.
    pub failure: Option<String>,
    /// Time from the first start until no set-up was under way, in seconds.
    pub seconds: f64,
    /// Processor time of the responder per successful set-up, in microseconds.
    pub cpu_us: Option<f64>,
    /// Processor time of the cryptography of one set-up, timed just before, in microseconds.
    pub raw_us: f64,
    /// Ratio of `cpu_us` to `raw_us`.
    pub ratio: Option<f64>,
    /// Requests, without retransmissions.
    pub requests: u64,
    /// Retransmitted requests.
    pub retransmitted: u64,
    /// Growth of the responder's memory, in octets.
    pub grown_octets: u64,
    /// The flood, if there was one.
    pub flood: Option<Poured>,
    /// Durations of the successful set-ups, the shortest first.
    #[serde(skip)]
    setups: Vec<Duration>,
}

impl Round {
    pub(super) fn new(
        sas_before: usize,
        run: Run,
        (spent, raw): (Duration, Duration),
        grown_octets: u64,
        flood: Option<Poured>,
    ) -> Self {
        let raw_us = micros(raw);
        let cpu_us = (run.up > 0).then(|| micros(spent) / run.up as f64);
        Self {
            sas_before,
            wanted: run.wanted,
            up: run.up,
            failure: run.failure,
            seconds: run.lasted.as_secs_f64(),
            cpu_us,
            raw_us,
            ratio: cpu_us.map(|cpu_us| cpu_us / raw_us),
            requests: run.requests,
            retransmitted: run.retransmitted,
            grown_octets,
            flood,
            setups: run.setups,
        }
    }
}

impl Report {
    pub(super) fn new(load: Load, rounds: Vec<Round>, own_core: bool) -> Self {
        let calm = usize::from(matches!(load, Load::Flood { .. }));
        let judged = &rounds[calm.min(rounds.len())..];
        let sum = |of: fn(&Round) -> u64| judged.iter().map(of).sum::<u64>();
        let middle = |of: fn(&Round) -> Option<f64>| {
            median(&judged.iter().filter_map(of).collect::<Vec<_>>())
        };
        let up: usize = judged.iter().map(|round| round.up).sum();
        let requests = sum(|round| round.requests).max(1);
        let cpu_us = middle(|round| round.cpu_us);
        let mut setups: Vec<_> = judged.iter().flat_map(|round| &round.setups).collect();
        setups.sort_unstable();
        let percentile = |percent| quantile(&setups, percent).map(|took| micros(**took) / 1000.0);
        let mut report = Self {
            load,
            wanted: judged.iter().map(|round| round.wanted).sum(),
            up,
            failure: judged.iter().find_map(|round| round.failure.clone()),
            cpu_us,
            per_cpu_second: cpu_us.map(|cpu_us| 1e6 / cpu_us),
            raw_us: middle(|round| Some(round.raw_us)),
            ratio: middle(|round| round.ratio),
            p50_ms: percentile(50),
            p99_ms: percentile(99),
            octets_per_sa: (up > 0).then(|| sum(|round| round.grown_octets) as f64 / up as f64),
            retransmitted_share: sum(|round| round.retransmitted) as f64 / requests as f64,
            goals: Vec::new(),
            own_core,
            optimised: !cfg!(debug_assertions),
            rounds,
        };
        report.goals = report.goals();
        report
    }

    fn goals(&self) -> Vec<Goal> {
        use Bound::AtMost;
        let memory = Goal::new("octets per IKE SA", AtMost, 6144.0, self.octets_per_sa);
        match (self.load, self.rounds.as_slice()) {
            (Load::Rate { .. }, _) => vec![
                Goal::new("times its cryptography", AtMost, 2.5, self.ratio),
                memory,
            ],
            (Load::Simultaneous { .. }, rounds) => {
                let seconds = rounds.first().map(|round| round.seconds);
                let share = Some(self.retransmitted_share);
                vec![
                    Goal::new("seconds until all are up", AtMost, 15.0, seconds),
                    Goal::new("share of requests sent again", AtMost, 0.1, share),
                    memory,
                ]
            }
            (Load::Flood { .. }, [calm, flooded]) => self.flood_goals(calm, flooded),
            (Load::Flood { .. }, _) => Vec::new(),
        }
    }

    /// Returns the goals of a flood. The number of half-open SAs is bounded, so a flood may cost
    /// some memory, but not memory in proportion to its size.
    fn flood_goals(&self, calm: &Round, flooded: &Round) -> Vec<Goal> {
        use Bound::{AtLeast, AtMost};
        let share = self.up as f64 / self.wanted.max(1) as f64;
        let grown = flooded.grown_octets.saturating_sub(calm.grown_octets);
        let poured = flooded.flood.unwrap_or_default();
        let answers = poured.answers as f64 / poured.sent.max(1) as f64;
        let length = poured.longest_answer as f64 / poured.request.max(1) as f64;
        vec![
            Goal::new(
                "share of honest set-ups",
                AtLeast,
                HONEST_SHARE,
                Some(share),
            ),
            Goal::new("octets more than in peace", AtMost, 4e6, Some(grown as f64)),
            Goal::new("answers to a spoofed request", AtMost, 1.0, Some(answers)),
            Goal::new(
                "length of an answer by its request's",
                AtMost,
                1.0,
                Some(length),
            ),
        ]
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// Returns the smallest value that is not exceeded by `percent` per cent of the values.
fn quantile<T>(sorted: &[T], percent: usize) -> Option<&T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::Measured;

    pub(in crate::bench::ike) const RATE: Load = Load::Rate {
        rounds: 1,
        setups: 4,
        at_once: 2,
    };

    /// Returns a round with set-ups of these durations in milliseconds, and `cpu_us` microseconds
    /// of the responder's core for each.
    pub(in crate::bench::ike) fn round(took: &[u64], cpu_us: u64) -> Round {
        let run = Run {
            wanted: 4,
            up: took.len(),
            failure: (took.len() < 4).then(|| "no answer".to_owned()),
            lasted: Duration::from_secs(2),
            resumed: 0,
            served: Vec::new(),
            setups: took.iter().map(|ms| Duration::from_millis(*ms)).collect(),
            requests: 8,
            retransmitted: 1,
        };
        let spent = Duration::from_micros(cpu_us) * took.len() as u32;
        Round::new(0, run, (spent, Duration::from_micros(50)), 8000, None)
    }

    #[test]
    fn the_middle_round_and_all_set_ups_count() {
        let rounds = vec![
            round(&[1, 2, 3, 4], 400),
            round(&[1, 2, 3, 100], 100),
            round(&[1, 2, 3, 4], 110),
        ];
        let report = Report::new(RATE, rounds, true);
        assert_eq!((report.wanted, report.up), (12, 12));
        assert_eq!((report.cpu_us, report.ratio), (Some(110.0), Some(2.2)));
        assert_eq!((report.p50_ms, report.p99_ms), (Some(2.0), Some(100.0)));
        assert_eq!(report.octets_per_sa, Some(2000.0));
        assert_eq!(report.retransmitted_share, 0.125);
        assert!(report.is_complete() && report.goals.iter().all(|goal| goal.reached));
    }

    #[test]
    fn who_is_not_up_is_missed_and_why_is_told() {
        let report = Report::new(RATE, vec![round(&[1, 2, 3], 100)], true);
        assert!(!report.is_complete());
        assert_eq!(report.failure.as_deref(), Some("no answer"));
        let nobody = Report::new(RATE, vec![round(&[], 100)], true);
        assert_eq!((nobody.cpu_us, nobody.p99_ms, nobody.up), (None, None, 0));
        assert!(nobody.goals.iter().all(|goal| !goal.reached));
    }

    /// The calm half is the baseline of the flooded one.
    #[test]
    fn a_flood_that_takes_memory_or_is_answered_at_length_misses_its_goals() {
        let load = Load::Flood {
            spoofed: 1000,
            seconds: 1,
        };
        let flooded = |grown_octets, longest_answer| {
            let poured = Poured {
                sent: 1000,
                per_second: 1000.0,
                request: 250,
                answers: 1000,
                longest_answer,
            };
            let flooded = Round {
                grown_octets,
                flood: Some(poured),
                ..round(&[1, 2, 3, 4], 100)
            };
            let report = Report::new(load, vec![round(&[9, 9, 9, 9], 900), flooded], true);
            assert_eq!(report.cpu_us, Some(100.0));
            report
                .goals
                .iter()
                .map(|goal| goal.reached)
                .collect::<Vec<_>>()
        };
        assert_eq!(flooded(9000, 60), [true; 4]);
        assert_eq!(flooded(9_000_000, 60), [true, false, true, true]);
        assert_eq!(flooded(9000, 251), [true, true, true, false]);
    }
}
