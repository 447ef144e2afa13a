//! Measurements and goals.

use super::{Options, Terms, Way};
use crate::bench::{Bound, Goal, Spread};
use serde::Serialize;

/// A measurement, as `strata-lab bench ike --resume --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Way of resumption.
    pub resume: Way,
    /// Set-ups of each kind in each round.
    pub setups: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// A row for each kind of proof in the full exchange.
    pub rows: Vec<Row>,
    /// Reason for which the measurement is incomplete.
    pub failure: Option<String>,
    /// Goals and results.
    pub goals: Vec<Goal>,
    /// True if the gateways had their own core.
    pub own_core: bool,
    /// True for a release build; other builds have meaningless figures.
    pub optimised: bool,
}

/// Full exchanges with a kind of proof, and resumptions of the same sessions.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// Terms of the tunnels.
    pub terms: Terms,
    /// Processor time of the gateway for a full exchange, in microseconds.
    pub full_us: Spread,
    /// The same for a resumption.
    pub resumed_us: Spread,
    /// Ratio of the first to the second in each round.
    pub ratio: Spread,
    /// Median time until a tunnel is up by a full exchange, in milliseconds.
    pub full_ms: Spread,
    /// The same by resumption.
    pub resumed_ms: Spread,
}

/// Both turns of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub full_us: f64,
    pub resumed_us: f64,
    pub full_ms: f64,
    pub resumed_ms: f64,
}

impl Report {
    pub(super) fn new(options: &Options, own_core: bool) -> Self {
        Self {
            resume: options.way,
            setups: options.setups,
            rounds: options.rounds,
            rows: Vec::new(),
            failure: None,
            goals: Vec::new(),
            own_core,
            optimised: !cfg!(debug_assertions),
        }
    }

    /// Adds the row of a kind of proof.
    pub(super) fn add(&mut self, terms: Terms, rounds: &[Round]) {
        let cost = |of: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
        let rows = || {
            Some(Row {
                terms,
                full_us: cost(&|round| round.full_us)?,
                resumed_us: cost(&|round| round.resumed_us)?,
                ratio: cost(&|round| round.full_us / round.resumed_us)?,
                full_ms: cost(&|round| round.full_ms)?,
                resumed_ms: cost(&|round| round.resumed_ms)?,
            })
        };
        self.rows.extend(rows());
    }

    /// Adds the goals.
    pub(super) fn finished(mut self) -> Self {
        let [psk, ecdsa] = match self.resume {
            Way::Skid3 => [2.0, 4.0],
            Way::Ticket => [1.4, 2.5],
        };
        let ratio = |terms| {
            let row = self.rows.iter().find(|row| row.terms == terms);
            row.map(|row| row.ratio.median)
        };
        let goal = |name, least, terms| Goal::new(name, Bound::AtLeast, least, ratio(terms));
        self.goals = vec![
            goal("full over resumed, PSK", psk, Terms::Psk),
            goal("full over resumed, ECDSA", ecdsa, Terms::Ecdsa),
        ];
        self
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::Measured;

    /// Returns a report whose resumptions take 50 µs, and full exchanges this much with a
    /// pre-shared key and four times as much with ECDSA.
    pub(in crate::bench::ike::resume) fn report(way: Way, full_us: f64) -> Report {
        let options = Options {
            way,
            rounds: 3,
            setups: 100,
            wrong_key: false,
        };
        let mut report = Report::new(&options, true);
        for (terms, full_us) in [(Terms::Psk, full_us), (Terms::Ecdsa, 4.0 * full_us)] {
            let round = |slow: f64| Round {
                full_us: full_us * slow,
                resumed_us: 50.0 * slow,
                full_ms: 2.0,
                resumed_ms: 1.0,
            };
            report.add(terms, &[1.0, 7.0, 1.0].map(round));
        }
        report.finished()
    }

    #[test]
    fn ratios_are_of_a_round_and_each_way_has_its_goals() {
        let reached = |way, full_us| {
            let report = report(way, full_us);
            assert!(report.is_complete());
            report
                .goals
                .iter()
                .map(|goal| goal.reached)
                .collect::<Vec<_>>()
        };
        assert_eq!(reached(Way::Skid3, 101.0), [true, true]);
        assert_eq!(reached(Way::Skid3, 75.0), [false, true]);
        assert_eq!(reached(Way::Ticket, 75.0), [true, true]);
        assert_eq!(reached(Way::Ticket, 30.0), [false, false]);
        let ratio = report(Way::Skid3, 101.0).rows[0].ratio;
        assert!((ratio.most - ratio.least).abs() < 1e-9, "{ratio:?}");
    }

    #[test]
    fn without_a_round_no_goal_is_reached() {
        let mut report = report(Way::Skid3, 101.0);
        report.rows.clear();
        report.failure = Some("none came up".into());
        let report = report.finished();
        assert!(!report.is_complete() && report.goals.iter().all(|goal| !goal.reached));
    }
}
