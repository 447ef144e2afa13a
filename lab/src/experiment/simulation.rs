//! The same cells in virtual time, as far as the simulator supports them: Reno over the papers'
//! wired hop, and no packets outside a tunnel. The simulator draws its errors from other streams,
//! so only means can be compared.

use super::Measured;
use super::cell::{Cell, Condition, Hops, Sample};
use super::results::Results;
use super::statistics::Estimate;
use crate::bystander::Moments;
use crate::scene::{Sender, Setup, WINDOW, WIRED_DELAY};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use sim::scene::{Configuration, Download};
use sim::tcp;
use std::time::Duration;

/// Relative difference between simulator and namespaces above which the report must explain it.
const TOLERANCE: f64 = 0.15;

/// Payload octets of a segment, in clear and in the tunnel.
const SEGMENT: [u64; 2] = [1448, 1328];

/// Agreement of the simulator and the namespaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Number of conditions that both have.
    pub conditions: usize,
    /// Conditions with goodputs that differ by more than 15 %.
    pub apart: Vec<Apart>,
}

/// A condition in which simulator and namespaces differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Apart {
    /// The condition.
    #[serde(flatten)]
    pub condition: Condition,
    /// Ratio of the simulator's goodput to that of the namespaces.
    pub ratio: f64,
    /// True if both intervals overlap: then there are too few runs to decide.
    pub may_be_chance: bool,
}

/// Returns true if the simulator can run a cell.
pub(super) fn has(cell: &Cell) -> bool {
    let Condition {
        sender, wired_ms, ..
    } = cell.condition;
    sender == Sender::Reno
        && Duration::from_millis(wired_ms) == WIRED_DELAY
        && !cell.has_plaintext()
}

/// Runs a cell in virtual time.
pub(super) fn run(cell: &Cell) -> Result<Measured> {
    let (setup, level) = cell.carried();
    let download = Download {
        configuration: configuration(setup),
        every: level.map(|level| level.every),
        tcp: tcp::Settings {
            sack: false,
            receive_buffer: match cell.condition.modern {
                true => tcp::Settings::default().receive_buffer,
                false => WINDOW,
            },
            ..tcp::Settings::default()
        },
        one_error_in: cell.condition.one_error_in,
        duration: Duration::from_secs(cell.seconds),
        seed: cell.seed,
        licence: true,
        snoop: cell.snoop,
    };
    let measured = download.run()?;
    let segment = SEGMENT[usize::from(setup.has_tunnel())];
    let snoop = measured.snoop.as_ref();
    let sample = |sample: &sim::scene::Sample| Sample {
        ms: sample.at.as_millis() as u64,
        acknowledged: sample.acknowledged,
        window: (sample.window / segment) as u32,
    };
    Ok(Measured {
        cell: *cell,
        goodput: measured.goodput,
        resent: measured.tcp.sent_again,
        repaired: snoop.map_or(0, |snoop| {
            snoop.retransmitted_lost + snoop.retransmitted_timeout + snoop.retransmitted_persist
        }),
        suppressed: snoop.map_or(0, |snoop| snoop.suppressed),
        hops: Hops {
            packets: measured.wireless.iter().map(|way| way.offered).sum(),
            hit: measured.wireless.iter().map(|way| way.lost_bit_error).sum(),
            overflowed: measured.wireless.iter().map(|way| way.lost_queue).sum(),
            ..Hops::default()
        },
        machine: Moments::default(),
        repeats: 0,
        trace: measured.samples.iter().map(sample).collect(),
    })
}

fn configuration(setup: Setup) -> Configuration {
    match setup {
        Setup::None => Configuration::None,
        Setup::Snoop => Configuration::Snoop,
        Setup::Ipsec => Configuration::Ipsec,
        Setup::Zoned => Configuration::Zoned,
        Setup::ZonedSnoop => Configuration::ZonedSnoop,
    }
}

impl Agreement {
    /// Compares the goodputs of all conditions that both have.
    pub(super) fn new(measured: &Results, simulated: &Results) -> Self {
        let mut agreement = Self::default();
        for condition in simulated.conditions() {
            let both = measured
                .goodput(condition)
                .zip(simulated.goodput(condition));
            let Some((here, there)) = both else {
                continue;
            };
            agreement.conditions += 1;
            let ratio = there.value / here.value.max(1.0);
            if (ratio - 1.0).abs() > TOLERANCE {
                agreement.apart.push(Apart {
                    condition: *condition,
                    ratio,
                    may_be_chance: overlap(here, there),
                });
            }
        }
        agreement
    }
}

fn overlap(a: Estimate, b: Estimate) -> bool {
    match (a.interval, b.interval) {
        (Some([low, high]), Some([other_low, other_high])) => {
            low <= other_high && other_low <= high
        }
        // A single run says nothing about chance.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{cell, measured};
    use super::*;
    use crate::scene::{Level, Others};

    fn results(goodputs: [f64; 2]) -> Results {
        let cells = (1..).zip(goodputs);
        cells
            .map(|(seed, bps)| measured(&cell(seed), bps))
            .collect()
    }

    #[test]
    fn fifteen_percent_apart_is_agreement_and_more_is_not() {
        let here = results([1e6, 1.001e6]);
        let near = Agreement::new(&here, &results([1.14e6, 1.141e6]));
        assert_eq!((near.conditions, near.apart.len()), (1, 0));
        let far = Agreement::new(&here, &results([1.3e6, 1.301e6]));
        assert!((far.apart[0].ratio - 1.3).abs() < 0.01, "{far:?}");
        assert!(!far.apart[0].may_be_chance);
        let wild = Agreement::new(&here, &results([0.9e6, 1.7e6]));
        assert!(wild.apart[0].may_be_chance);
    }

    #[test]
    fn the_simulator_runs_a_cell_of_reno_and_no_other() {
        let mut cell = cell(1);
        cell.seconds = 4;
        assert!(has(&cell));
        let simulated = run(&cell).unwrap();
        assert!(simulated.goodput > 1e4, "{simulated:?}");
        assert_eq!(simulated.trace.len(), 40);
        cell.condition.sender = Sender::Bbr;
        assert!(!has(&cell));
    }

    #[test]
    fn the_simulator_has_levels_and_no_plaintext() {
        let mut cell = cell(1);
        cell.condition.one_error_in = 0;
        cell.seconds = 8;
        let all = run(&cell).unwrap().goodput;
        let mut with = |others| {
            cell.condition.level = Some(Level { every: 0, others });
            has(&cell).then(|| run(&cell).unwrap().goodput / all)
        };
        let gain = with(Others::Integrity).unwrap();
        assert!((gain - 1.014).abs() < 0.002, "{gain}");
        assert_eq!(with(Others::Plaintext), None);
    }
}
