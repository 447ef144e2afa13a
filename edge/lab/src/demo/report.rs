//! What the demo found, for programs and for people, and whether it is what was claimed.

use super::run::Run;
use super::topology::LOSSY_RATE;
use super::{Options, Setup};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// How many times faster SNOOP has to make the zoned download.
pub const GAIN_NEEDED: f64 = 3.0;

/// The demo's result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whether everything is as claimed.
    pub passed: bool,
    /// What is not.
    pub reasons: Vec<String>,
    /// Goodput of zoned ESP with SNOOP over goodput without; `None` if one was not measured.
    pub gain: Option<f64>,
    /// One bit error in so many bits on the lossy hop, 0 for none.
    pub one_error_in: u64,
    /// What the errors are drawn from.
    pub seed: u64,
    /// Seconds of each download.
    pub seconds: u64,
    /// What each setup did, or why it could not: `none`, `snoop`, `ipsec`, `zoned`,
    /// `zoned_snoop`.
    pub runs: BTreeMap<&'static str, Outcome>,
}

/// What became of one setup.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was measured.
    Measured(Box<Run>),
    /// Why it was not.
    Failed(String),
}

impl Report {
    /// Judges the outcomes, which are in the order of the options' setups.
    pub(super) fn new(options: &Options, outcomes: Vec<Outcome>) -> Self {
        let keys = options.setups.iter().map(|setup| setup.key());
        let mut report = Self {
            passed: false,
            reasons: Vec::new(),
            gain: None,
            one_error_in: options.ber,
            seed: options.seed,
            seconds: options.duration.as_secs(),
            runs: keys.zip(outcomes).collect(),
        };
        report.gain = report.gain_of_snoop();
        report.reasons = report.find_reasons(options.license_payload);
        report.passed = report.reasons.is_empty();
        report
    }

    /// What a setup did, if it was measured.
    pub fn run(&self, setup: Setup) -> Option<&Run> {
        match self.runs.get(setup.key())? {
            Outcome::Measured(run) => Some(run),
            Outcome::Failed(_) => None,
        }
    }

    fn gain_of_snoop(&self) -> Option<f64> {
        let without = self.run(Setup::Zoned)?.goodput;
        let with = self.run(Setup::ZonedSnoop)?.goodput;
        (without > 0.0).then(|| with / without)
    }

    fn find_reasons(&self, payload_is_licensed: bool) -> Vec<String> {
        let mut reasons: Vec<_> = Setup::ALL
            .into_iter()
            .filter_map(|s| self.failure(s))
            .collect();
        match self.gain {
            Some(gain) if gain >= GAIN_NEEDED => {}
            Some(gain) => reasons.push(format!(
                "zoned with SNOOP is {gain:.2} times as fast as without, not {GAIN_NEEDED}"
            )),
            None => reasons.push("SNOOP's gain could not be measured".to_owned()),
        }
        // Clear TCP is the control: a search that finds nothing there is blind.
        let must_be_found = [Setup::Snoop];
        let zoned = [Setup::Zoned, Setup::ZonedSnoop];
        let (found, hidden): (&[Setup], &[Setup]) = match payload_is_licensed {
            true => (&zoned, &[]),
            false => (&[], &zoned),
        };
        let blind = must_be_found
            .iter()
            .chain(found)
            .filter(|s| self.seen(**s) == Some(false));
        reasons.extend(blind.map(|setup| {
            format!(
                "{}: the payload was there to be read, and the search did not find it",
                setup.name()
            )
        }));
        let leaks = hidden
            .iter()
            .filter(|setup| self.seen(**setup) == Some(true));
        reasons.extend(leaks.map(|setup| {
            format!(
                "{}: the licensed node has octets of the payload",
                setup.name()
            )
        }));
        reasons
    }

    fn failure(&self, setup: Setup) -> Option<String> {
        match self.runs.get(setup.key())? {
            Outcome::Measured(_) => None,
            Outcome::Failed(reason) => Some(format!("{}: {reason}", setup.name())),
        }
    }

    /// Whether octets of the payload were found in the node.
    fn seen(&self, setup: Setup) -> Option<bool> {
        let node = self.run(setup)?.node.as_ref()?;
        Some(node.payload.found > 0)
    }

    fn write_goodput(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.run(Setup::Zoned).map(|run| run.goodput);
        writeln!(
            f,
            "{:14} {:>10} {:>8} {:>7} {:>7} {:>9} {:>11}",
            "", "goodput", "of zoned", "packets", "lost", "resent", "ACKs held"
        )?;
        for setup in Setup::ALL {
            let Some(run) = self.run(setup) else {
                if self.runs.contains_key(setup.key()) {
                    writeln!(f, "{:14} not measured", setup.name())?;
                }
                continue;
            };
            let ratio = base.map_or("-".to_owned(), |base| format!("{:.2}", run.goodput / base));
            let [down, up] = &run.lossy;
            let lost = down.lost_bit_error + down.lost_queue + up.lost_bit_error + up.lost_queue;
            let node = run.node.as_ref();
            let count = |number: Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
            writeln!(
                f,
                "{:14} {:>5.0} kb/s {:>8} {:>7} {:>7} {:>9} {:>11}",
                setup.name(),
                run.goodput / 1000.0,
                ratio,
                down.offered + up.offered,
                lost,
                count(node.map(|node| node.retransmitted())),
                count(node.map(|node| node.suppressed())),
            )?;
        }
        Ok(())
    }

    fn write_links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = Setup::ALL.into_iter().filter_map(|setup| self.run(setup));
        let directions: Vec<_> = runs
            .flat_map(|run| run.lossy.iter().chain(&run.wired))
            .collect();
        let worst = |value: fn(&crate::histogram::Quantiles) -> f64| {
            let values = directions
                .iter()
                .map(|direction| value(&direction.lateness));
            values.fold(0.0, f64::max) / 1000.0
        };
        let real_time = directions.iter().all(|direction| direction.real_time);
        writeln!(
            f,
            "emulated links: at worst {:.2} ms late (99 %), {:.2} ms (99.9 %), {:.2} ms; {}",
            worst(|q| q.p99_us),
            worst(|q| q.p999_us),
            worst(|q| q.max_us),
            match real_time {
                true => "at real-time priority",
                false => "without real-time priority, which this user may not have",
            }
        )
    }

    fn write_node(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = |setup| Some((setup, self.run(setup)?.node.as_ref()?));
        let nodes: Vec<_> = Setup::ALL.into_iter().filter_map(node).collect();
        if !nodes.is_empty() {
            writeln!(f, "what the licensed node could read:")?;
        }
        for (setup, node) in nodes {
            let keys = match (setup.is_zoned(), node.opens().as_slice()) {
                (false, _) => "everything is in clear".to_owned(),
                (true, []) => "it has no keys".to_owned(),
                (true, zones) => format!("it has keys of zones {zones:?}"),
            };
            let payload = &node.payload;
            let megabytes = payload.searched as f64 / 1e6;
            let found = match (&payload.first, payload.found) {
                (Some(place), found) => format!("payload {found} times, first in {place}"),
                (None, _) => "no octets of the payload".to_owned(),
            };
            writeln!(
                f,
                "  {:14} {keys}; {megabytes:.0} MB searched: {found}",
                setup.name()
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = match self.one_error_in {
            0 => "without bit errors".to_owned(),
            bits => format!("one bit error in {bits}"),
        };
        writeln!(
            f,
            "lossy hop {} Mb/s, 1 ms, {errors}; wired hop 100 ms; TCP Reno without SACK; {} s; seed {}\n",
            LOSSY_RATE / 1_000_000,
            self.seconds,
            self.seed
        )?;
        self.write_goodput(f)?;
        writeln!(f)?;
        self.write_links(f)?;
        self.write_node(f)?;
        writeln!(f)?;
        if let Some(gain) = self.gain {
            writeln!(
                f,
                "zoned with SNOOP is {gain:.2} times as fast as zoned without"
            )?;
        }
        match self.passed {
            true => writeln!(f, "passed"),
            false => writeln!(f, "failed: {}", self.reasons.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canary::Sightings;
    use crate::demo::Node;
    use crate::emulator::Statistics;
    use crate::histogram::Quantiles;

    const QUIET: Statistics = Statistics {
        offered: 0,
        delivered: 0,
        delivered_octets: 0,
        lost_queue: 0,
        lost_bit_error: 0,
        refused: 0,
        real_time: true,
        lateness: Quantiles {
            count: 0,
            p50_us: 0.0,
            p99_us: 0.0,
            p999_us: 0.0,
            max_us: 0.0,
        },
    };

    /// A setup with this goodput and, where it has a node, this many marks found in it.
    fn measured(setup: Setup, goodput: f64, found: u64) -> Outcome {
        let payload = Sightings {
            found,
            ..Sightings::default()
        };
        let node = Node {
            payload,
            ..Node::default()
        };
        Outcome::Measured(Box::new(Run {
            goodput,
            octets: 1,
            lossy: [QUIET; 2],
            wired: [QUIET; 2],
            node: setup.has_node().then_some(node),
        }))
    }

    /// What should come out: SNOOP helps, and only clear TCP is seen.
    fn as_claimed() -> Vec<Outcome> {
        let goodput = |setup| match setup {
            Setup::Snoop | Setup::ZonedSnoop => 1.6e6,
            _ => 4e5,
        };
        let run = |setup| measured(setup, goodput(setup), u64::from(setup == Setup::Snoop));
        Setup::ALL.into_iter().map(run).collect()
    }

    fn reasons(change: impl FnOnce(&mut Vec<Outcome>, &mut Options)) -> Vec<String> {
        let (mut outcomes, mut options) = (as_claimed(), Options::default());
        change(&mut outcomes, &mut options);
        let report = Report::new(&options, outcomes);
        assert_eq!(report.passed, report.reasons.is_empty());
        report.reasons
    }

    #[test]
    fn what_is_claimed_passes() {
        assert!(reasons(|_, _| ()).is_empty());
    }

    #[test]
    fn less_than_three_times_the_goodput_fails() {
        let enough = |outcomes: &mut Vec<_>| outcomes[4] = measured(Setup::ZonedSnoop, 1.21e6, 0);
        assert!(reasons(|outcomes, _| enough(outcomes)).is_empty());
        let reasons = reasons(|outcomes, _| {
            outcomes[4] = measured(Setup::ZonedSnoop, 1.19e6, 0);
        });
        assert!(reasons[0].contains("not 3"), "{reasons:?}");
    }

    #[test]
    fn a_setup_that_failed_fails_the_demo_with_its_reason() {
        let reasons = reasons(|outcomes, _| outcomes[2] = Outcome::Failed("no tunnel".to_owned()));
        assert_eq!(reasons, ["IPsec: no tunnel"]);
        let reasons = self::reasons(|outcomes, _| outcomes[3] = Outcome::Failed("no".to_owned()));
        assert_eq!(reasons.len(), 2, "{reasons:?}");
    }

    #[test]
    fn payload_seen_by_the_node_fails_unless_it_is_licensed() {
        let seen = |outcomes: &mut Vec<_>| {
            outcomes[3] = measured(Setup::Zoned, 4e5, 1);
            outcomes[4] = measured(Setup::ZonedSnoop, 1.6e6, 1);
        };
        assert_eq!(reasons(|outcomes, _| seen(outcomes)).len(), 2);
        assert!(
            reasons(|outcomes, options| {
                seen(outcomes);
                options.license_payload = true;
            })
            .is_empty()
        );
    }

    #[test]
    fn a_search_that_is_blind_fails() {
        let reasons = reasons(|outcomes, _| outcomes[1] = measured(Setup::Snoop, 1.6e6, 0));
        assert!(reasons[0].contains("did not find"), "{reasons:?}");
        let reasons = self::reasons(|_, options| options.license_payload = true);
        assert_eq!(reasons.len(), 2, "{reasons:?}");
    }

    #[test]
    fn the_table_has_a_line_for_each_setup() {
        let text = Report::new(&Options::default(), as_claimed()).to_string();
        for setup in Setup::ALL {
            assert!(
                text.lines().any(|line| line.starts_with(setup.name())),
                "{text}"
            );
        }
        assert!(text.contains("4.00 times"), "{text}");
    }
}
