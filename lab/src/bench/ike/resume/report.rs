//! Measurements and goals.

use super::{Compared, Options, Terms, Way};
use crate::bench::{Bound, Goal, Spread};
use serde::{Deserialize, Serialize};

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
    /// The cryptography of a full exchange, timed alone, in microseconds.
    pub full_raw_us: Spread,
    /// The same for a resumption.
    pub resumed_raw_us: Spread,
    /// Ratio of the first to the second in each round.
    pub raw_ratio: Spread,
    /// Median time until a tunnel is up by a full exchange, in milliseconds.
    pub full_ms: Spread,
    /// The same by resumption.
    pub resumed_ms: Spread,
    /// Time until all tunnels are up by full exchanges, in seconds.
    pub full_s: Spread,
    /// The same by resumption.
    pub resumed_s: Spread,
    /// Ratio of the first to the second in each round.
    pub time_ratio: Spread,
    /// Growth of the gateway's memory for each tunnel, in octets. Later rounds use it again.
    pub octets: Spread,
}

/// Both turns of a round.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Processor time of the gateway for a full exchange, in microseconds.
    pub full_us: f64,
    /// Processor time of its cryptography, timed alone.
    pub full_raw_us: f64,
    /// Processor time of the gateway for a resumption, in microseconds.
    pub resumed_us: f64,
    /// Processor time of its cryptography, timed alone.
    pub resumed_raw_us: f64,
    /// Median time until a tunnel is up by a full exchange, in milliseconds.
    pub full_ms: f64,
    /// The same by resumption.
    pub resumed_ms: f64,
    /// Time until all tunnels are up by full exchanges, in seconds.
    pub full_s: f64,
    /// The same by resumption.
    pub resumed_s: f64,
    /// Growth of the gateway's memory for each tunnel, in octets.
    pub octets: f64,
}

impl Report {
    pub(super) fn new(options: &Options, compared: Compared) -> Self {
        let rows = compared
            .rounds
            .iter()
            .filter_map(|(terms, rounds)| Row::new(*terms, rounds));
        let rows: Vec<_> = rows.collect();
        Self {
            resume: options.way,
            setups: options.setups,
            rounds: options.rounds,
            goals: goals(options.way, &rows),
            rows,
            failure: compared.failure,
            own_core: compared.own_core,
            optimised: !cfg!(debug_assertions),
        }
    }
}

impl Row {
    fn new(terms: Terms, rounds: &[Round]) -> Option<Self> {
        let cost = |of: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
        Some(Self {
            terms,
            full_us: cost(&|round| round.full_us)?,
            resumed_us: cost(&|round| round.resumed_us)?,
            ratio: cost(&|round| round.full_us / round.resumed_us)?,
            full_raw_us: cost(&|round| round.full_raw_us)?,
            resumed_raw_us: cost(&|round| round.resumed_raw_us)?,
            raw_ratio: cost(&|round| round.full_raw_us / round.resumed_raw_us)?,
            full_ms: cost(&|round| round.full_ms)?,
            resumed_ms: cost(&|round| round.resumed_ms)?,
            full_s: cost(&|round| round.full_s)?,
            resumed_s: cost(&|round| round.resumed_s)?,
            time_ratio: cost(&|round| round.full_s / round.resumed_s)?,
            octets: cost(&|round| round.octets)?,
        })
    }
}

fn goals(way: Way, rows: &[Row]) -> Vec<Goal> {
    let [psk, ecdsa] = match way {
        Way::Skid3 => [2.0, 4.0],
        Way::Ticket => [1.4, 2.5],
    };
    let of = |terms, ratio: fn(&Row) -> Spread| {
        let row = rows.iter().find(|row| row.terms == terms);
        row.map(|row| ratio(row).median)
    };
    let goal = |name, least, ratio| Goal::new(name, Bound::AtLeast, least, ratio);
    let whole = |terms| of(terms, |row| row.ratio);
    let raw = |terms| of(terms, |row| row.raw_ratio);
    let mut goals = vec![
        goal("full over resumed, PSK", psk, whole(Terms::Psk)),
        goal("full over resumed, ECDSA", ecdsa, whole(Terms::Ecdsa)),
        goal(
            "until all are up, PSK",
            2.0,
            of(Terms::Psk, |row| row.time_ratio),
        ),
        goal(
            "until all are up, ECDSA",
            2.0,
            of(Terms::Ecdsa, |row| row.time_ratio),
        ),
    ];
    if way == Way::Skid3 {
        goals.extend([
            goal("cryptography alone, PSK", 4.0, raw(Terms::Psk)),
            goal("cryptography alone, ECDSA", 12.0, raw(Terms::Ecdsa)),
        ]);
    }
    goals
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::Measured;

    /// Returns a report whose resumptions take 50 µs, and full exchanges this much with a
    /// pre-shared key and four times as much with ECDSA.
    pub(in crate::bench::ike::resume) fn report(way: Way, full_us: f64) -> Report {
        let rounds = |full_us: f64| {
            let round = |slow: f64| Round {
                full_us: full_us * slow,
                full_raw_us: full_us / 2.0 * slow,
                resumed_us: 50.0 * slow,
                resumed_raw_us: 10.0 * slow,
                full_ms: 2.0,
                resumed_ms: 1.0,
                full_s: full_us * slow / 1000.0,
                resumed_s: 0.05 * slow,
                octets: 9000.0 / slow,
            };
            [1.0, 7.0, 1.0].map(round).into()
        };
        let rounds = vec![
            (Terms::Psk, rounds(full_us)),
            (Terms::Ecdsa, rounds(4.0 * full_us)),
        ];
        made(way, rounds, None)
    }

    fn made(way: Way, rounds: Vec<(Terms, Vec<Round>)>, failure: Option<String>) -> Report {
        let options = Options {
            way,
            rounds: 3,
            setups: 100,
            control: None,
        };
        let compared = Compared {
            rounds,
            failure,
            own_core: true,
        };
        Report::new(&options, compared)
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
        assert_eq!(reached(Way::Skid3, 101.0), [true; 6]);
        assert_eq!(
            reached(Way::Skid3, 75.0),
            [false, true, false, true, false, true]
        );
        assert_eq!(reached(Way::Ticket, 75.0), [true, true, false, true]);
        assert_eq!(reached(Way::Ticket, 30.0), [false, false, false, true]);
        let ratio = report(Way::Skid3, 101.0).rows[0].ratio;
        assert!((ratio.most - ratio.least).abs() < 1e-9, "{ratio:?}");
    }

    #[test]
    fn without_a_round_no_goal_is_reached() {
        let report = made(Way::Skid3, Vec::new(), Some("none came up".into()));
        assert!(!report.is_complete() && report.goals.iter().all(|goal| !goal.reached));
    }
}
