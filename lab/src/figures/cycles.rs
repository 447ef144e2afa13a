//! Parts that the figures of cycles share.

use crate::experiment::{Column, Estimate, Filled, Finding, Grid, Row, median};
use crate::legacy::{Algorithms, Encryption, Integrity};
use crate::obstacle::Obstacle;
use crate::plot::{Dot, Plot};
use serde::{Deserialize, Serialize};

/// Algorithms of the paper's first zone and of its second zone.
pub(super) const ZONES: [Algorithms; 2] = [
    Encryption::Rc5.with(Integrity::Md5),
    Encryption::Rijndael.with(Integrity::Md5),
];

/// Octets of an IP header and a TCP header, which are in the first zone together with the links.
pub(super) const HEADERS: usize = 40;

/// Checks for the time stamp counter.
pub(super) fn check() -> Result<(), Obstacle> {
    let counter = os::cycles::now().map(drop);
    counter.ok_or_else(|| {
        Obstacle::new(
            "this processor has no time stamp counter",
            "run it on x86-64",
        )
    })
}

/// Cycles per packet in each round: in total, and for the calls of the algorithms alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cost {
    pub all: Vec<f64>,
    pub alone: Vec<f64>,
}

impl Cost {
    pub fn push(&mut self, all: f64, alone: f64) {
        self.all.push(all);
        self.alone.push(alone);
    }

    /// Returns the median of the total.
    pub fn cycles(&self) -> Option<f64> {
        median(&self.all)
    }

    /// Returns the median of the calls.
    pub fn calls(&self) -> Option<f64> {
        median(&self.alone)
    }

    /// Returns the longest round.
    pub fn longest(&self) -> Option<f64> {
        self.all.iter().copied().max_by(f64::total_cmp)
    }

    /// Returns a row: its place on the axis, and the measured values.
    pub fn row(&self, subject: String, name: String, octets: usize) -> Row {
        let numbers = [self.cycles(), self.longest(), self.calls()].map(whole);
        Row {
            subject,
            name,
            numbers: [Some(octets as i64)].into_iter().chain(numbers).collect(),
        }
    }

    pub fn dot(&self, x: usize) -> Option<Dot> {
        dot(x, self.cycles()?)
    }
}

/// Rounds a number of cycles.
pub(super) fn whole(cycles: Option<f64>) -> Option<i64> {
    cycles.map(|cycles| cycles.round() as i64)
}

/// Returns the table of all cells.
pub(super) fn filled<C>(
    cells: &[C],
    row: impl Fn(&C) -> Row,
    findings: Vec<Finding>,
    plots: Vec<Plot>,
) -> Filled {
    Filled {
        grid: Grid {
            columns: ["octets", "cycles", "longest", "calls"]
                .map(|name| Column::new("", name))
                .into(),
            rows: cells.iter().map(row).collect(),
        },
        findings,
        faults: Vec::new(),
        plots,
    }
}

pub(super) fn dot(x: usize, y: f64) -> Option<Dot> {
    Some(Dot {
        x: x as f64,
        y,
        interval: None,
    })
}

/// Returns the ratio of the cost per octet between the first two of three lengths to that between
/// the last two, the smaller over the larger. It is 1 for a straight line.
pub(super) fn straightness(points: [(usize, Option<f64>); 3]) -> Option<f64> {
    let [a, b] = [[points[0], points[1]], [points[1], points[2]]].map(slope);
    let (a, b) = (a?, b?);
    (a > 0.0 && b > 0.0).then(|| a.min(b) / a.max(b))
}

/// Returns the cost per octet between two lengths.
pub(super) fn slope([(x, y), (further, higher)]: [(usize, Option<f64>); 2]) -> Option<f64> {
    Some((higher? - y?) / (further - x) as f64)
}

/// Returns an estimate from a median.
pub(super) fn estimate(value: Option<f64>, runs: usize) -> Option<Estimate> {
    value.map(|value| Estimate {
        value,
        interval: None,
        runs,
    })
}

/// Claims that the cost grows linearly. The cost per octet must not increase or decrease along the
/// line.
pub(super) fn is_straight(what: &str, straightness: Option<f64>, runs: usize) -> Finding {
    let what = format!("{what}: an octet of short ones over one of long ones, or the reverse");
    Finding::at_least(what, STRAIGHT, estimate(straightness, runs))
}

const STRAIGHT: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict;

    fn line(costs: [f64; 3]) -> Option<f64> {
        let [a, b, c] = costs.map(Some);
        straightness([(0, a), (100, b), (300, c)])
    }

    #[test]
    fn a_line_is_straight_and_a_bent_one_is_not() {
        assert_eq!(line([500.0, 600.0, 800.0]), Some(1.0));
        assert_eq!(line([500.0, 600.0, 1000.0]), Some(0.5));
        assert_eq!(line([500.0, 700.0, 900.0]), Some(0.5));
        assert_eq!(line([500.0, 400.0, 200.0]), None);
        assert_eq!(
            straightness([(0, None), (1, Some(1.0)), (2, Some(2.0))]),
            None
        );
    }

    #[test]
    fn what_is_bent_or_was_not_measured_fails() {
        let verdict = |straightness| is_straight("", straightness, 1).verdict;
        assert_eq!(verdict(Some(1.0)), Verdict::Holds);
        assert_eq!(verdict(Some(0.5)), Verdict::Fails);
        assert_eq!(verdict(None), Verdict::Fails);
    }

    #[test]
    fn the_middle_round_is_told_and_the_longest() {
        let mut cost = Cost::default();
        for (all, alone) in [(10.0, 5.0), (12.4, 6.0), (900.0, 500.0)] {
            cost.push(all, alone);
        }
        let row = cost.row("a".to_owned(), "b".to_owned(), 60);
        assert_eq!(row.numbers, [60, 12, 900, 6].map(Some));
        let none = Cost::default().row("a".to_owned(), "b".to_owned(), 60);
        assert_eq!(none.numbers, [Some(60), None, None, None]);
    }
}
