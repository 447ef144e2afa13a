//! The demo's result, for programs and readers, and the verdict on the claims.

use super::run::Run;
use super::{Options, Setup};
use serde::Serialize;
use std::collections::BTreeMap;

/// Smallest factor by which SNOOP must speed up the zoned download.
pub const GAIN_NEEDED: f64 = 3.0;

/// The demo's result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// True if all claims hold.
    pub passed: bool,
    /// Claims that do not hold.
    pub reasons: Vec<String>,
    /// Goodput of zoned ESP with SNOOP over goodput without; `None` if either was not measured.
    pub gain: Option<f64>,
    /// Smallest gain that passes.
    pub gain_needed: f64,
    /// True if the licensed node had a licence for the payload, which the search must then find.
    pub payload_licensed: bool,
    /// Bits per bit error on the lossy hop; 0 for no errors.
    pub one_error_in: u64,
    /// Seed of the bit errors.
    pub seed: u64,
    /// Length of each download, in seconds.
    pub seconds: u64,
    /// Outcome of each setup: `none`, `snoop`, `ipsec`, `zoned`, `zoned_snoop`.
    pub runs: BTreeMap<&'static str, Outcome>,
}

/// Outcome of one setup.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Measurements of the setup.
    Measured(Box<Run>),
    /// Reason of a failure.
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
            gain_needed: GAIN_NEEDED,
            payload_licensed: options.license_payload,
            one_error_in: options.ber,
            seed: options.seed,
            seconds: options.duration.as_secs(),
            runs: keys.zip(outcomes).collect(),
        };
        report.gain = report.gain_of_snoop();
        report.reasons = report.find_reasons();
        report.passed = report.reasons.is_empty();
        report
    }

    /// Returns the measurements of a setup, if it was measured.
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

    fn find_reasons(&self) -> Vec<String> {
        let mut reasons: Vec<_> = Setup::ALL
            .into_iter()
            .filter_map(|s| self.failure(s))
            .collect();
        match self.gain {
            Some(gain) if gain >= GAIN_NEEDED => {}
            Some(gain) => reasons.push(format!(
                "with SNOOP the zoned download is {gain:.2} times as fast as without, not \
                 {GAIN_NEEDED} times"
            )),
            None => reasons.push("SNOOP's gain could not be measured".to_owned()),
        }
        reasons.extend(Setup::ALL.into_iter().filter_map(|s| self.wrong_sight(s)));
        reasons
    }

    fn failure(&self, setup: Setup) -> Option<String> {
        match self.runs.get(setup.key())? {
            Outcome::Measured(_) => None,
            Outcome::Failed(reason) => Some(format!("{}: {reason}", setup.name())),
        }
    }

    /// Returns the reason if the search of a node had the wrong result. Clear TCP is the control: a
    /// search that finds nothing there is blind, as is one that finds nothing where the payload is
    /// licensed. In all other setups the search must find nothing.
    fn wrong_sight(&self, setup: Setup) -> Option<String> {
        let may_read = self.payload_licensed || !setup.is_zoned();
        let what = match (may_read, self.seen(setup)?) {
            (true, false) => "the payload was there to be read, and the search did not find it",
            (false, true) => "the licensed node has octets of the payload",
            _ => return None,
        };
        Some(format!("{}: {what}", setup.name()))
    }

    /// Returns true if octets of the payload were found in the node; `None` if there is no node.
    fn seen(&self, setup: Setup) -> Option<bool> {
        let node = self.run(setup)?.node.as_ref()?;
        Some(node.payload.found > 0)
    }
}

#[cfg(test)]
pub(super) mod tests {
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
        late: 0,
        lateness: Quantiles {
            count: 0,
            p50_us: 0.0,
            p99_us: 0.0,
            p999_us: 0.0,
            max_us: 0.0,
        },
    };

    /// Returns a setup with this goodput and, if it has a node, this many marks found in the node.
    pub fn measured(setup: Setup, goodput: f64, found: u64) -> Outcome {
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

    /// Returns the claimed outcomes: SNOOP helps, and only the payload of clear TCP is seen.
    pub fn as_claimed() -> Vec<Outcome> {
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
}
