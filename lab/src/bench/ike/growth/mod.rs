//! `strata-lab bench ike --tunnels`: the cost of a set-up at daemons that have many tunnels up,
//! compared with strongSwan's.
//!
//! ```text
//!   crowd  192.0.2.1, 10.64.0.0/14 ------ veth ------ 192.0.2.2  gateway, 10.8.0.1 inside
//! ```
//!
//! There is a pair of hosts for each contender (`contender`): stratad and charon, with a
//! pre-shared key, with certificates for ECDSA, and with leased addresses. All gateways share one
//! core, and only the contender whose turn it is has work. Each is the daemon as it runs: with its
//! TUN device and its routes, its log, and its store of leases. The initiators are the same for
//! all.
//!
//! At each number of tunnels, all contenders are brought to it (charon to a limit), and an echo
//! request passes through every tunnel in ESP. Then each sets up the same number of further tunnels
//! in turns, in several rounds. An echo passes through those as well, and they end before the next
//! turn, outside the measured part. A ratio compares two turns of one round. Before the turns with
//! a pre-shared key, the cryptography of such a set-up is timed alone (`raw`).

mod contender;
mod report;
mod text;

pub use report::{Report, Row};

use super::super::cores::OwnCore;
pub use super::super::responder::Terms;
use crate::obstacle::Obstacle;
use crate::testbed::{Testbed, find_binary};
use anyhow::{Context, Result};
use contender::{Contender, Program};
use report::Round;

/// Set-ups before the first measurement, so that one-time allocations of the daemons exist.
const WARM_UP: usize = 16;

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tunnels that are up during a measurement, the fewest first.
    pub tunnels: Vec<usize>,
    /// Rounds at each number of tunnels.
    pub rounds: usize,
    /// Set-ups of each contender in each round.
    pub setups: usize,
    /// Configured peers, none of them up, whose memory is measured.
    pub configured: usize,
    /// True to give the crowd a key that the gateways do not have: no tunnel may come up.
    pub wrong_key: bool,
}

/// Runs the benchmark in namespaces that were already entered ([`crate::testbed::enter`]). The
/// report includes tunnels that do not come up.
///
/// # Errors
/// This machine cannot run the benchmark, or strongSwan is not installed.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    find_binary("stratad")?;
    run(options).map_err(|error| {
        let fix = "end what else keeps this machine busy, or try fewer (--tunnels)";
        Obstacle::new(format!("{error:#}"), fix)
    })
}

fn run(options: &Options) -> Result<Report> {
    let bed = Testbed::new("bench")?;
    let each = contender::octets_of_a_peer(&bed, options.configured)?;
    let most = options.tunnels.iter().max().copied().unwrap_or_default();
    let peers = most.max(WARM_UP) + options.setups;
    let mut pairs = Vec::new();
    for terms in [Terms::Psk, Terms::Ecdsa, Terms::Leased] {
        let start = |program| Contender::start(&bed, program, terms, peers);
        pairs.push((
            terms,
            [start(Program::Strata)?, start(Program::Strongswan)?],
        ));
    }
    let processes = pairs.iter_mut().flat_map(|(_, pair)| pair);
    let processes: Vec<_> = processes.map(Contender::pid).collect();
    let core = OwnCore::apart_from(&processes)?;
    let mut report = Report::new(options, each, core.is_apart());
    report.failure = rounds(options, &mut pairs, &mut report)
        .err()
        .map(|error| format!("{error:#}"));
    Ok(report.finished())
}

fn rounds(
    options: &Options,
    pairs: &mut [(Terms, [Contender; 2])],
    report: &mut Report,
) -> Result<()> {
    for contender in pairs.iter_mut().flat_map(|(_, pair)| pair) {
        if options.wrong_key {
            contender.forget_the_key();
        }
        contender.fill(WARM_UP)?;
    }
    for &tunnels in &options.tunnels {
        for contender in pairs.iter_mut().flat_map(|(_, pair)| pair) {
            let name = contender.name();
            let filled = contender.fill(tunnels);
            filled.with_context(|| format!("{tunnels} tunnels of {name}"))?;
        }
        let mut rounds = vec![Vec::new(); pairs.len()];
        for _ in 0..options.rounds {
            for ((terms, pair), rounds) in pairs.iter_mut().zip(&mut rounds) {
                let [strata, strongswan] = pair;
                let raw_us = match terms {
                    Terms::Psk => Some(strata.cryptography()?.as_secs_f64() * 1e6),
                    Terms::Ecdsa | Terms::Leased => None,
                };
                rounds.push(Round {
                    raw_us,
                    strata: strata.turn(options.setups)?,
                    strongswan: strongswan.turn(options.setups)?,
                });
            }
        }
        for ((terms, pair), rounds) in pairs.iter_mut().zip(rounds) {
            let octets = [pair[0].octets()?, pair[1].octets()?];
            report.add(*terms, tunnels, &rounds, octets);
        }
    }
    Ok(())
}
