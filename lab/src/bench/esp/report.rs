//! Measurements and goals.

use super::{Gain, Length};
use crate::bare::{Alone, Shape};
use crate::bench::aead;
use crate::bench::{Bound, Goal};
use crate::experiment::median;
use serde::Serialize;
use std::time::Duration;

/// A measurement, as `strata-lab bench esp --json` prints it. Times are nanoseconds of processor
/// time per packet; all values are medians of the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the AES-GCM implementation.
    pub aead: &'static str,
    /// Every shape of packet at every length.
    pub rows: Vec<Row>,
    /// Speed-up from a second worker, in each round.
    pub gains: Vec<Gain>,
    /// Reason for which no packet got through, in that case.
    pub failure: Option<String>,
    /// Goals and results.
    pub goals: Vec<Goal>,
    /// True for a release build; other builds have meaningless figures.
    pub optimised: bool,
}

/// Packets of one shape and length, spread over a number of SAs.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Division of the packets into zones.
    pub shape: Shape,
    /// Length of the inner datagrams, in octets.
    pub length: Length,
    /// Number of SAs.
    pub sas: usize,
    /// Cost at the sender.
    pub sealing: Cost,
    /// Cost at the receiver.
    pub opening: Cost,
    /// Cost at a node that is licensed for the first zone, if there is one.
    pub node: Option<Cost>,
}

/// Cost of processing a packet.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cost {
    /// Total processor time, in nanoseconds.
    pub ns: f64,
    /// Processor time of the AEAD calls alone, in nanoseconds.
    pub raw_ns: f64,
    /// Share of the AEAD calls in the total: 1 if the rest took no time.
    pub share: f64,
}

/// One round of a row.
pub(super) struct Timed {
    pub alone: Alone,
    pub sealing: Duration,
    pub opening: Duration,
    pub node: Option<Duration>,
}

impl Row {
    pub(super) fn new((shape, length, sas): (Shape, Length, usize), times: &[Timed]) -> Self {
        let cost = |of: fn(&Timed) -> Option<(Duration, Duration)>| {
            Cost::from_rounds(&times.iter().filter_map(of).collect::<Vec<_>>())
        };
        Self {
            shape,
            length,
            sas,
            sealing: cost(|timed| Some((timed.sealing, timed.alone.sealing))).unwrap_or_default(),
            opening: cost(|timed| Some((timed.opening, timed.alone.opening))).unwrap_or_default(),
            node: cost(|timed| Some((timed.node?, timed.alone.first))),
        }
    }

    /// Returns the total of both ends.
    fn ns(&self) -> f64 {
        self.sealing.ns + self.opening.ns
    }

    fn raw_ns(&self) -> f64 {
        self.sealing.raw_ns + self.opening.raw_ns
    }
}

impl Cost {
    /// Summarises rounds of (total, AEAD calls alone).
    fn from_rounds(rounds: &[(Duration, Duration)]) -> Option<Self> {
        let middle = |of: fn(f64, f64) -> f64| {
            let one = |(all, raw): &(Duration, Duration)| {
                of(all.as_nanos() as f64, raw.as_nanos().max(1) as f64)
            };
            median(&rounds.iter().map(one).collect::<Vec<_>>())
        };
        Some(Self {
            ns: middle(|all, _| all)?,
            raw_ns: middle(|_, raw| raw)?,
            share: middle(|all, raw| raw / all.max(1.0))?,
        })
    }
}

impl Report {
    pub(super) fn new(rows: Vec<Row>, gains: Vec<Gain>) -> Self {
        let mut report = Self {
            rows,
            gains,
            failure: None,
            goals: Vec::new(),
            optimised: !cfg!(debug_assertions),
            aead: aead(),
        };
        report.goals = report.goals();
        report
    }

    /// Returns the report of a run with mismatched keys. `failure` is `None` if packets got through
    /// nevertheless.
    pub(super) fn failed(failure: Option<String>) -> Self {
        Self {
            failure: Some(failure.unwrap_or_else(|| "packets of other keys were opened".into())),
            ..Self::new(Vec::new(), Vec::new())
        }
    }

    fn goals(&self) -> Vec<Goal> {
        use Bound::AtLeast;
        let at = |shape, length, many| {
            let row = |row: &&Row| (row.shape, row.length, row.sas > 1) == (shape, length, many);
            self.rows.iter().find(row)
        };
        let both = |a: Option<&Row>, b: Option<&Row>, of: fn(&Row, &Row) -> f64| Some(of(a?, b?));
        let longest = Length::Octets(1400);
        let [plain, two] = [Shape::Plain, Shape::Two].map(|shape| at(shape, longest, false));
        let mixed = at(Shape::Plain, Length::Imix, false);
        let node = two.and_then(|row| Some(row.ns() / row.node?.ns));
        let gains: Vec<_> = self
            .gains
            .iter()
            .map(|gain| gain.workers / gain.raw)
            .collect();
        let share = |row: &Row| row.raw_ns() / row.ns();
        vec![
            Goal::new(
                "share of AEAD, plain, 1400 octets",
                AtLeast,
                0.5,
                plain.map(share),
            ),
            Goal::new("share of AEAD, plain, IMIX", AtLeast, 0.5, mixed.map(share)),
            Goal::new(
                "that share in two zones over it plain",
                AtLeast,
                0.9,
                both(two, plain, |two, plain| {
                    (two.raw_ns() / two.ns()) / (plain.raw_ns() / plain.ns())
                }),
            ),
            Goal::new(
                "speed of one SA that many have",
                AtLeast,
                0.5,
                both(plain, at(Shape::Plain, longest, true), |one, many| {
                    one.ns() / many.ns()
                }),
            ),
            Goal::new(
                "gain by a worker over that of AEAD",
                AtLeast,
                0.9,
                median(&gains),
            ),
            Goal::new("node's speed over one that reseals", AtLeast, 1.8, node),
        ]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::Measured;

    /// Returns a row of a shape whose AEAD calls take `raw` nanoseconds at either end.
    fn row(shape: Shape, sas: usize, ns: u64, raw: u64) -> Row {
        let [all, raw] = [ns, raw].map(Duration::from_nanos);
        let timed = |times: u32| Timed {
            alone: Alone {
                sealing: raw * times,
                opening: raw * times,
                first: raw * times / 4,
            },
            sealing: all * times,
            opening: all * times,
            node: (shape == Shape::Two).then_some(all * times / 2),
        };
        // In one round the machine stalled for a while.
        let times = [timed(1), timed(1), timed(50)];
        Row::new((shape, Length::Octets(1400), sas), &times)
    }

    pub(in crate::bench::esp) fn report(many: u64) -> Report {
        let rows = vec![
            row(Shape::Plain, 1, 600, 400),
            row(Shape::Two, 1, 1000, 700),
            row(Shape::Plain, 9, many, 400),
        ];
        let gain = Gain {
            workers: 1.5,
            raw: 2.0,
        };
        Report::new(rows, vec![gain])
    }

    fn goal(report: &Report, words: &str) -> (Option<f64>, bool) {
        let mut goals = report.goals.iter();
        let goal = goals.find(|goal| goal.goal.contains(words)).unwrap();
        (goal.measured, goal.reached)
    }

    #[test]
    fn the_middle_round_counts_and_each_goal_is_held_against_its_own() {
        let report = report(1500);
        assert_eq!(report.rows[0].sealing.ns, 600.0);
        assert_eq!(report.rows[1].node.unwrap().share, 175.0 / 500.0);
        assert_eq!(goal(&report, "plain, 1400"), (Some(400.0 / 600.0), true));
        assert!(goal(&report, "two zones over").1);
        assert_eq!(goal(&report, "many"), (Some(0.4), false));
        assert_eq!(goal(&report, "worker"), (Some(0.75), false));
        assert_eq!(goal(&report, "reseals"), (Some(4.0), true));
        assert_eq!(goal(&report, "IMIX"), (None, false));
    }

    #[test]
    fn keys_that_do_not_fit_are_a_failure_whatever_happens() {
        assert!(!Report::failed(Some("a packet was dropped".into())).is_complete());
        assert!(!Report::failed(None).is_complete());
    }
}
