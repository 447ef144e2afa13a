//! Measurements and goals.

use super::Options;
use crate::bench::responder::Terms;
use crate::bench::{Bound, Goal, Spread};
use serde::Serialize;

/// A measurement, as `strata-lab bench ike --tunnels --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Set-ups of each program in each round.
    pub setups: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// Rows for each number of tunnels and the terms of the set-ups.
    pub rows: Vec<Row>,
    /// Octets of memory that stratad takes for each configured peer that is not up.
    pub octets_of_a_peer: f64,
    /// Number of these peers.
    pub configured: usize,
    /// Reason for which the measurement is incomplete.
    pub failure: Option<String>,
    /// Goals and results.
    pub goals: Vec<Goal>,
    /// True if the gateways had their own core.
    pub own_core: bool,
    /// True for a release build; other builds have meaningless figures.
    pub optimised: bool,
}

/// Set-ups while a number of tunnels is up.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// Terms of the tunnels.
    pub terms: Terms,
    /// Tunnels that are up.
    pub tunnels: usize,
    /// Processor time of stratad for a set-up, in microseconds.
    pub strata_us: Spread,
    /// The same of charon.
    pub strongswan_us: Spread,
    /// Ratio of the two in each round.
    pub ratio: Spread,
    /// Processor time of the responder's cryptography alone, in microseconds, for a pre-shared key.
    pub raw_us: Option<Spread>,
    /// Ratio of stratad's time to it in each round.
    pub over_raw: Option<Spread>,
    /// Time until a set-up is complete, with several under way at once, divided by their number, in
    /// microseconds.
    pub strata_wall_us: f64,
    /// The same of charon.
    pub strongswan_wall_us: f64,
    /// Octets of memory of stratad for each tunnel.
    pub strata_octets: f64,
    /// The same of charon.
    pub strongswan_octets: f64,
}

/// The turns of both programs in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Processor time of the cryptography alone, measured just before, in microseconds.
    pub raw_us: Option<f64>,
    pub strata: Turn,
    pub strongswan: Turn,
}

/// Set-ups of one program. The times are for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub cpu_us: f64,
    pub wall_us: f64,
}

impl Report {
    pub(super) fn new(options: &Options, octets_of_a_peer: f64, own_core: bool) -> Self {
        Self {
            setups: options.setups,
            rounds: options.rounds,
            rows: Vec::new(),
            octets_of_a_peer,
            configured: options.configured,
            failure: None,
            goals: Vec::new(),
            own_core,
            optimised: !cfg!(debug_assertions),
        }
    }

    /// Adds the row of a number of tunnels. `octets` are those of each tunnel at both programs.
    pub(super) fn add(&mut self, terms: Terms, tunnels: usize, rounds: &[Round], octets: [f64; 2]) {
        let cost = |of: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
        let (Some(strata_us), Some(strongswan_us), Some(ratio)) = (
            cost(&|round| round.strata.cpu_us),
            cost(&|round| round.strongswan.cpu_us),
            cost(&|round| round.strata.cpu_us / round.strongswan.cpu_us),
        ) else {
            return;
        };
        let raw = |of: &dyn Fn(&Round, f64) -> f64| {
            let rounds = rounds.iter();
            Spread::of(rounds.filter_map(|round| Some(of(round, round.raw_us?))))
        };
        let wall = |of: &dyn Fn(&Round) -> f64| cost(of).map_or(0.0, |cost| cost.median);
        self.rows.push(Row {
            terms,
            tunnels,
            strata_us,
            strongswan_us,
            ratio,
            raw_us: raw(&|_, raw| raw),
            over_raw: raw(&|round, raw| round.strata.cpu_us / raw),
            strata_wall_us: wall(&|round| round.strata.wall_us),
            strongswan_wall_us: wall(&|round| round.strongswan.wall_us),
            strata_octets: octets[0],
            strongswan_octets: octets[1],
        });
    }

    /// Adds the goals. Each is for the row that is farthest from it. Costs at different numbers of
    /// tunnels are compared in units of the cryptography alone, which has a turn in each round.
    pub(super) fn finished(mut self) -> Self {
        use Bound::AtMost;
        let of = |terms| self.rows.iter().filter(move |row| row.terms == terms);
        let largest = |values: &mut dyn Iterator<Item = f64>| values.max_by(f64::total_cmp);
        let psk = || of(Terms::Psk).map(|row| row.strata_us.median);
        // Minutes lie between two numbers of tunnels, in which the machine changes.
        let units = || of(Terms::Psk).filter_map(|row| Some(row.over_raw?.median));
        let least = units().min_by(f64::total_cmp);
        let grows = largest(&mut units())
            .zip(least)
            .map(|(most, least)| most / least);
        let ratio = |terms| largest(&mut of(terms).map(|row| row.ratio.median));
        self.goals = vec![
            Goal::new("µs of a set-up, PSK", AtMost, 120.0, largest(&mut psk())),
            Goal::new("most expensive over cheapest", AtMost, 1.1, grows),
            Goal::new("over strongSwan's, PSK", AtMost, 0.5, ratio(Terms::Psk)),
            Goal::new("over strongSwan's, ECDSA", AtMost, 0.4, ratio(Terms::Ecdsa)),
            Goal::new(
                "octets of a configured peer",
                AtMost,
                2048.0,
                Some(self.octets_of_a_peer),
            ),
        ];
        self
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::Measured;

    /// Returns a report of two sizes. A set-up of Strata takes 100 µs and then `grown`, one of
    /// strongSwan 300.
    pub(in crate::bench::ike::growth) fn report(grown: f64) -> Report {
        let options = Options {
            tunnels: vec![16, 100_000],
            rounds: 3,
            setups: 100,
            configured: 10_000,
            wrong_key: false,
        };
        let turn = |cpu_us| Turn {
            cpu_us,
            wall_us: 2.0 * cpu_us,
        };
        let round = |cpu_us, slow: f64| Round {
            raw_us: Some(50.0 * slow),
            strata: turn(cpu_us * slow),
            strongswan: turn(300.0 * slow),
        };
        let mut report = Report::new(&options, 1500.0, true);
        for (tunnels, cpu_us) in [(16, 100.0), (100_000, grown)] {
            for terms in [Terms::Psk, Terms::Ecdsa, Terms::Leased] {
                let rounds = [1.0, 7.0, 1.0].map(|slow| round(cpu_us, slow));
                report.add(terms, tunnels, &rounds, [9000.0, 20_000.0]);
            }
        }
        report.finished()
    }

    #[test]
    fn ratios_are_of_a_round_and_goals_are_held_against_the_worst_row() {
        let reached =
            |report: &Report| -> Vec<_> { report.goals.iter().map(|goal| goal.reached).collect() };
        let flat = report(105.0);
        assert_eq!(reached(&flat), [true; 5]);
        let ratio = flat.rows[0].ratio;
        assert!((ratio.most - ratio.least).abs() < 1e-9, "{ratio:?}");
        assert_eq!(flat.rows[0].strata_us.most, 700.0);
        let raw = flat.rows[0].raw_us.zip(flat.rows[0].over_raw);
        let raw = raw.map(|(raw, over)| (raw.most, over.least, over.most));
        assert_eq!(raw, Some((350.0, 2.0, 2.0)));
        assert_eq!(reached(&report(160.0)), [false, false, false, false, true]);
    }

    #[test]
    fn without_a_round_nothing_is_reached_but_what_was_measured_before() {
        let mut report = report(100.0);
        report.rows.clear();
        report.failure = Some("none came up".into());
        let report = report.finished();
        let reached = report.goals.iter().filter(|goal| goal.reached);
        assert!(reached.count() == 1 && !report.is_complete());
    }
}
