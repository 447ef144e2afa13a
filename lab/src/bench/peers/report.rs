//! Measurements and goals.

use super::load::Sample;
use super::{Entrant, Round};
use crate::bench::{Bound, Goal, Spread, aead};
use crate::experiment::median;
use serde::Serialize;

/// A measurement, as `strata-lab bench peers --json` prints it. All values are medians of the
/// rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// AES-GCM implementation of Strata and of the roofline.
    pub aead: &'static str,
    /// Programs that had a turn.
    pub rows: Vec<Row>,
    /// Programs that this machine does not have.
    pub missing: Vec<Entrant>,
    /// Number of rounds.
    pub rounds: usize,
    /// Reason for which no packet got through, in that case.
    pub failure: Option<String>,
    /// Goals and results.
    pub goals: Vec<Goal>,
    /// True for a release build; other builds have meaningless figures.
    pub optimised: bool,
}

/// Measurements of one program.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// The program.
    pub entrant: Entrant,
    /// Throughput over one TCP connection, in 10^9 bits per second.
    pub one_gbps: f64,
    /// Throughput over four TCP connections, in 10^9 bits per second.
    pub four_gbps: f64,
    /// Processor time of the whole machine for 10^9 octets over one connection, in seconds, iperf3
    /// included.
    pub cpu_s_per_gb: f64,
    /// Datagrams of 64 octets per second.
    pub packets_per_s: f64,
    /// Round-trip time without other traffic, in microseconds.
    pub rtt_us: f64,
    /// Round-trip time during four TCP connections, in microseconds.
    pub loaded_rtt_us: f64,
    /// `one_gbps` over that of Strata with plain ESP.
    pub over_plain: Spread,
}

impl Report {
    pub(super) fn new(rounds: &[Round]) -> Self {
        let rows = Entrant::ALL.into_iter();
        let had_turn = |one: &Entrant| rounds.iter().all(|round| round.contains_key(one));
        Self {
            rows: rows
                .clone()
                .filter_map(|one| Row::new(one, rounds))
                .collect(),
            missing: rows.filter(|one| !had_turn(one)).collect(),
            rounds: rounds.len(),
            failure: None,
            goals: goals(rounds),
            optimised: !cfg!(debug_assertions),
            aead: aead(),
        }
    }

    /// Returns the report of a run with mismatched keys. `failure` is `None` if the tunnel came up
    /// nevertheless.
    pub(super) fn failed(failure: Option<String>) -> Self {
        Self {
            failure: Some(failure.unwrap_or_else(|| "ends with different keys came up".into())),
            ..Self::new(&[])
        }
    }
}

/// Returns the goals whose programs had a turn.
fn goals(rounds: &[Round]) -> Vec<Goal> {
    use Bound::{AtLeast, AtMost};
    use Entrant::{Boringtun, Plain, Roofline, Strongswan, Unguarded, WireguardGo, Zones};
    let one = |sample: &Sample| sample.one;
    let goal = |name, bound, limit, pair: [Entrant; 2], value| {
        let ratio = ratio(rounds, pair, value)?;
        Some(Goal::new(name, bound, limit, Some(ratio.median)))
    };
    let goals = [
        goal("two zones over plain", AtLeast, 0.85, [Zones, Plain], one),
        goal(
            "plain over the roofline",
            AtLeast,
            0.7,
            [Plain, Roofline],
            one,
        ),
        goal(
            "plain over strongSwan in user space",
            AtLeast,
            11.0,
            [Plain, Strongswan],
            one,
        ),
        goal(
            "plain over wireguard-go",
            AtLeast,
            2.7,
            [Plain, WireguardGo],
            one,
        ),
        goal(
            "two zones over wireguard-go",
            AtLeast,
            2.2,
            [Zones, WireguardGo],
            one,
        ),
        goal(
            "CPU for a GB over wireguard-go's",
            AtMost,
            0.4,
            [Plain, WireguardGo],
            |sample| sample.cpu,
        ),
        goal(
            "small packets over wireguard-go's",
            AtLeast,
            5.0,
            [Plain, WireguardGo],
            |sample| sample.packets,
        ),
        goal(
            "round trip at rest over wireguard-go's",
            AtMost,
            1.0,
            [Plain, WireguardGo],
            |sample| sample.rtt,
        ),
        goal(
            "plain over boringtun",
            AtLeast,
            5.0,
            [Plain, Boringtun],
            one,
        ),
        goal(
            "plain over plain without the guard",
            AtLeast,
            0.98,
            [Plain, Unguarded],
            one,
        ),
    ];
    goals.into_iter().flatten().collect()
}

impl Row {
    fn new(entrant: Entrant, rounds: &[Round]) -> Option<Self> {
        let middle = |of: fn(&Sample) -> f64| {
            let values = rounds
                .iter()
                .filter_map(|round| round.get(&entrant).map(of));
            median(&values.collect::<Vec<_>>())
        };
        Some(Self {
            entrant,
            one_gbps: middle(|sample| sample.one)?,
            four_gbps: middle(|sample| sample.four)?,
            cpu_s_per_gb: middle(|sample| sample.cpu)?,
            packets_per_s: middle(|sample| sample.packets)?,
            rtt_us: middle(|sample| sample.rtt)?,
            loaded_rtt_us: middle(|sample| sample.loaded)?,
            over_plain: ratio(rounds, [entrant, Entrant::Plain], |sample| sample.one)?,
        })
    }
}

/// Returns the ratio of one program's value to that of another, round by round.
fn ratio(rounds: &[Round], [who, over]: [Entrant; 2], value: fn(&Sample) -> f64) -> Option<Spread> {
    let ratio = |round: &Round| Some(value(round.get(&who)?) / value(round.get(&over)?));
    Spread::of(rounds.iter().filter_map(ratio))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::Measured;

    /// Returns a round of all programs but the last, with all speeds scaled by a factor.
    fn round(speed: f64) -> Round {
        let sample = |one: f64| Sample {
            one: one * speed,
            four: one * speed * 2.0,
            cpu: 1.0 / one,
            packets: 1e5 * one * speed,
            rtt: 50.0 / speed,
            loaded: 800.0 / speed,
        };
        let samples = [40.0, 8.0, 6.0, 5.4, 3.0, 6.5, 1.0, 6.0, 0.5, 2.0].map(sample);
        Entrant::ALL.into_iter().zip(samples).collect()
    }

    pub(in crate::bench::peers) fn report() -> Report {
        // One round was disturbed throughout, which changes no ratio.
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
        let reached = report.goals.iter().map(|goal| goal.reached);
        assert_eq!(
            reached.collect::<Vec<_>>(),
            [true, true, true, true, true, true, false, true, true]
        );
        assert!((report.goals[2].measured.unwrap() - 12.0).abs() < 1e-9);
    }

    #[test]
    fn who_is_not_here_is_told_and_no_goal_is_held_against_it() {
        let report = report();
        assert_eq!(report.missing, [Entrant::Boringtun]);
        assert!(
            report
                .rows
                .iter()
                .all(|row| row.entrant != Entrant::Boringtun)
        );
        assert!(
            report
                .goals
                .iter()
                .all(|goal| !goal.goal.contains("boringtun"))
        );
        assert!(report.goals.iter().all(|goal| goal.measured.is_some()));
    }

    #[test]
    fn keys_that_do_not_fit_are_a_failure_whatever_happens() {
        assert!(!Report::failed(Some("it was refused".into())).is_complete());
        assert!(!Report::failed(None).is_complete());
        assert!(report().is_complete());
    }
}
