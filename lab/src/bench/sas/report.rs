//! Measurements and goals.

use super::clients::Clients;
use crate::bench::{Bound, Goal};
use crate::experiment::median;
use serde::Serialize;
use std::time::Duration;

/// A measurement, as `strata-lab bench sas --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of tunnels, each with an SA per direction.
    pub sas: usize,
    /// Rows for one, few and all tunnels.
    pub rows: Vec<Row>,
    /// Reason for which the measurement is missing or incomplete.
    pub failure: Option<String>,
    /// Goals and results.
    pub goals: Vec<Goal>,
    /// True if the gateway had its own core.
    pub own_core: bool,
    /// True for a release build; other builds have meaningless figures.
    pub optimised: bool,
    #[serde(skip)]
    pub(super) turns: Vec<[Turn; 3]>,
}

/// Throughput with a number of tunnels in use. All values are medians of the rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// Tunnels in use.
    pub sas: usize,
    /// Echoes per second; each is a packet that is opened and one that is sealed.
    pub echoes_per_s: f64,
    /// Processor time of the gateway per echo, in microseconds.
    pub cpu_us: f64,
    /// Echoes per second over those of one tunnel in the same round.
    pub over_one: f64,
    /// Echoes per second over those of few tunnels in the same round.
    pub over_few: f64,
}

/// One volley.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    pub sas: usize,
    pub lasted: Duration,
    /// Processor time of the gateway's threads.
    pub spent: Duration,
}

impl Turn {
    pub fn new(sas: usize) -> Self {
        Self {
            sas,
            ..Self::default()
        }
    }
}

impl Report {
    pub(super) const fn new(sas: usize, own_core: bool) -> Self {
        Self {
            sas,
            rows: Vec::new(),
            failure: None,
            goals: Vec::new(),
            own_core,
            optimised: !cfg!(debug_assertions),
            turns: Vec::new(),
        }
    }

    /// Adds the rows and goals that follow from the turns.
    pub(super) fn finished(mut self) -> Self {
        let rows = (0..3).filter_map(|place| Row::new(place, &self.turns));
        self.rows = rows.collect();
        let all = self.rows.last();
        let goal = |name, measured| Goal::new(name, Bound::AtLeast, 0.85, measured);
        self.goals = vec![
            goal("speed of one that all have", all.map(|row| row.over_one)),
            goal(
                "speed of few in turns that all have",
                all.map(|row| row.over_few),
            ),
        ];
        self
    }
}

impl Row {
    fn new(place: usize, turns: &[[Turn; 3]]) -> Option<Self> {
        let middle = |of: &dyn Fn(&[Turn; 3]) -> f64| {
            let values: Vec<_> = turns.iter().map(of).collect();
            median(&values)
        };
        let lasted = |turn: Turn| turn.lasted.as_secs_f64();
        let volley = Clients::VOLLEY as f64;
        Some(Self {
            sas: turns.first()?[place].sas,
            echoes_per_s: middle(&|round| volley / lasted(round[place]))?,
            cpu_us: middle(&|round| round[place].spent.as_secs_f64() * 1e6 / volley)?,
            over_one: middle(&|round| lasted(round[0]) / lasted(round[place]))?,
            over_few: middle(&|round| lasted(round[1]) / lasted(round[place]))?,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::Measured;

    /// Returns a report of three rounds, one of which was disturbed throughout.
    pub(in crate::bench::sas) fn report() -> Report {
        let turn = |sas, millis: u64| Turn {
            sas,
            lasted: Duration::from_millis(millis),
            spent: Duration::from_millis(millis / 2),
        };
        let round = |slow: u64| {
            [
                turn(1, 80 * slow),
                turn(64, 90 * slow),
                turn(100_000, 100 * slow),
            ]
        };
        let mut report = Report::new(100_000, true);
        report.turns = vec![round(1), round(7), round(1)];
        report.finished()
    }

    #[test]
    fn ratios_are_of_a_round_and_goals_are_held_against_all() {
        let report = report();
        let [one, few, all] = &report.rows[..] else {
            panic!("three rows: {report:?}");
        };
        assert_eq!((one.sas, few.sas, all.sas), (1, 64, 100_000));
        assert_eq!((one.over_one, few.over_few), (1.0, 1.0));
        assert!((all.over_one - 0.8).abs() < 1e-9 && (all.over_few - 0.9).abs() < 1e-9);
        assert!((one.echoes_per_s - 51_200.0).abs() < 1e-6);
        let reached = report.goals.iter().map(|goal| goal.reached);
        assert_eq!(reached.collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn without_a_round_nothing_is_told() {
        let mut report = Report::new(5, false);
        report.failure = Some("nobody came up".into());
        let report = report.finished();
        assert!(report.rows.is_empty() && !report.is_complete());
        assert!(report.goals.iter().all(|goal| goal.measured.is_none()));
    }
}
