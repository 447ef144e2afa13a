//! What was measured, and what it is held against.

use super::Entrant;
use super::load::Sample;
use crate::bench::{Bound, Goal};
use crate::experiment::median;
use serde::Serialize;

/// A measurement, as `strata bench peers --json` prints it. All values are medians of the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Everybody who had a turn.
    pub rows: Vec<Row>,
    /// Rounds.
    pub rounds: usize,
    /// Why nothing got through, if nothing did.
    pub failure: Option<String>,
    /// What is aimed at.
    pub goals: Vec<Goal>,
    /// Whether this is a release build; the figures of others say nothing.
    pub optimised: bool,
}

/// What somebody carries.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// Who.
    pub entrant: Entrant,
    /// 10^9 bits a second over one TCP connection.
    pub one_gbps: f64,
    /// The same over four.
    pub four_gbps: f64,
    /// Seconds of all processors for 10^9 octets over one connection, iperf3's included.
    pub cpu_s_per_gb: f64,
    /// Datagrams of 64 octets a second.
    pub packets_per_s: f64,
    /// Microseconds there and back, when nothing else is carried.
    pub rtt_us: f64,
    /// `one_gbps` over that of Strata with plain ESP.
    pub over_plain: Ratio,
}

/// Of two values of the same round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratio {
    /// The median of the rounds.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Report {
    /// Each round has everybody's turn, in the order of [`Entrant::ALL`].
    pub(super) fn new(rounds: &[Vec<Sample>]) -> Self {
        let rows = Entrant::ALL.into_iter().enumerate();
        let rows = rows.filter_map(|(index, entrant)| Row::new(entrant, index, rounds));
        let mut report = Self {
            rows: rows.collect(),
            rounds: rounds.len(),
            failure: None,
            goals: Vec::new(),
            optimised: !cfg!(debug_assertions),
        };
        report.goals = vec![
            Goal::new(
                "two zones over plain",
                Bound::AtLeast,
                0.85,
                report.ratio(Entrant::Zones, 1.0),
            ),
            Goal::new(
                "plain over the roofline",
                Bound::AtLeast,
                0.7,
                report.ratio(Entrant::Roofline, -1.0),
            ),
            Goal::new(
                "plain over strongSwan in user space",
                Bound::AtLeast,
                11.0,
                report.ratio(Entrant::Strongswan, -1.0),
            ),
        ];
        report
    }

    /// With keys that do not fit; `failure` is none if the tunnel came up nevertheless.
    pub(super) fn failed(failure: Option<String>) -> Self {
        Self {
            failure: Some(failure.unwrap_or_else(|| "ends with different keys came up".into())),
            ..Self::new(&[])
        }
    }

    /// Whether everybody carried something, however much.
    pub const fn is_complete(&self) -> bool {
        self.failure.is_none()
    }

    fn ratio(&self, of: Entrant, power: f64) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.entrant == of)?;
        Some(row.over_plain.median.powf(power))
    }
}

impl Row {
    fn new(entrant: Entrant, index: usize, rounds: &[Vec<Sample>]) -> Option<Self> {
        let plain = Entrant::ALL.iter().position(|one| *one == Entrant::Plain)?;
        let middle = |of: fn(&Sample) -> f64| {
            let values = rounds.iter().filter_map(|round| round.get(index).map(of));
            median(&values.collect::<Vec<_>>())
        };
        let ratios = rounds.iter().filter_map(|round| {
            let (one, plain) = (round.get(index)?.one, round.get(plain)?.one);
            Some(one / plain)
        });
        let ratios: Vec<_> = ratios.collect();
        Some(Self {
            entrant,
            one_gbps: middle(|sample| sample.one)?,
            four_gbps: middle(|sample| sample.four)?,
            cpu_s_per_gb: middle(|sample| sample.cpu)?,
            packets_per_s: middle(|sample| sample.packets)?,
            rtt_us: middle(|sample| sample.rtt)?,
            over_plain: Ratio {
                median: median(&ratios)?,
                least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
                most: ratios.iter().copied().fold(0.0, f64::max),
            },
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A round in which everything went so many times as fast.
    fn round(speed: f64) -> Vec<Sample> {
        let sample = |one: f64| Sample {
            one: one * speed,
            four: one * speed * 2.0,
            cpu: 1.0 / one,
            packets: 1e5 * one * speed,
            rtt: 50.0 / speed,
        };
        [40.0, 8.0, 6.0, 5.4, 3.0, 1.0, 0.5].map(sample).into()
    }

    pub(in crate::bench::peers) fn report() -> Report {
        // One was disturbed from its beginning to its end, which changes no ratio.
        Report::new(&[round(1.0), round(0.1), round(1.1)])
    }

    #[test]
    fn ratios_are_of_a_round_and_goals_are_held_against_their_median() {
        let report = report();
        let row = |entrant| {
            report
                .rows
                .iter()
                .find(|row| row.entrant == entrant)
                .unwrap()
        };
        assert_eq!(row(Entrant::Plain).one_gbps, 6.0);
        assert_eq!(row(Entrant::Plain).over_plain.median, 1.0);
        let zones = row(Entrant::Zones).over_plain;
        assert!((zones.least - 0.9).abs() < 1e-9 && (zones.most - 0.9).abs() < 1e-9);
        let reached: Vec<_> = report.goals.iter().map(|goal| goal.reached).collect();
        assert_eq!(reached, [true; 3]);
        assert!((report.goals[2].measured.unwrap() - 12.0).abs() < 1e-9);
    }

    #[test]
    fn keys_that_do_not_fit_are_a_failure_whatever_happens() {
        assert!(!Report::failed(Some("it was refused".into())).is_complete());
        assert!(!Report::failed(None).is_complete());
        assert!(report().is_complete());
    }
}
