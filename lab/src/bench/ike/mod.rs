//! `strata-lab bench ike`: the cost of tunnel set-ups at a responder, compared with their
//! cryptography.
//!
//! The responder is an ordinary `stratad`, in a host that has only a loopback device, on its own
//! core (`cores`). Its processor time and memory come from the kernel (`responder`). On the other
//! core is a crowd of initiators: engines as objects of this process, each with its own identity
//! and its own address in 127.0.0.0/8, behind one socket (`crowd`). Every set-up is IKE_SA_INIT and
//! IKE_AUTH with a pre-shared key, X25519, AES-128-GCM and one plain child. An established tunnel
//! stays up.
//!
//! A run is a list of rounds. Each round first times the responder's cryptography of that very
//! exchange (`raw`) and then the set-ups, so that a machine that becomes slower does so for both.
//! The report has the medians over all rounds. The loads:
//!
//! * **Rate**: few set-ups under way at once, so that none waits for long. The rounds show whether
//!   a set-up costs more when more tunnels are up.
//! * **Simultaneous**: all initiators start as fast as their core allows.
//! * **Resume** ([`resume`]): sessions that are lost and resumed, beside full exchanges.
//! * **Growth** ([`growth`]): further set-ups while many tunnels are up, also of strongSwan.
//! * **Flood**: a fixed rate of set-ups, first alone, then during requests from addresses that know
//!   nothing of them (`flood`).

mod flood;
pub mod growth;
mod raw;
mod report;
pub mod resume;
mod text;

pub use flood::Poured;
pub use report::{Report, Round};

use super::cores::OwnCore;
use super::crowd::{Crowd, Pace};
use super::responder::{Place, Responder};
use crate::host::Host;
use crate::obstacle::Obstacle;
use crate::testbed::{Testbed, find_binary};
use anyhow::{Result, ensure};
use raw::Raw;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Set-ups one after the other before the measurement, so that one-time allocations of the daemon
/// exist.
const WARM_UP: usize = 16;

/// Honest set-ups per second during a flood.
const HONEST_PER_SECOND: u32 = 100;

/// Load on the responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Rounds of set-ups with few under way at once.
    Rate {
        /// Number of rounds.
        rounds: usize,
        /// Set-ups in each round.
        setups: usize,
        /// Largest number of set-ups under way.
        at_once: usize,
    },
    /// All set-ups start at once.
    Simultaneous {
        /// Number of initiators.
        initiators: usize,
    },
    /// A hundred honest set-ups per second, without and with spoofed requests.
    Flood {
        /// Spoofed requests per second.
        spoofed: u32,
        /// Length of each half, in seconds.
        seconds: u32,
    },
}

impl Load {
    fn rounds(self) -> Vec<Plan> {
        match self {
            Self::Rate {
                rounds,
                setups,
                at_once,
            } => vec![Plan::new(setups, Pace::Queue(at_once)); rounds],
            Self::Simultaneous { initiators } => {
                vec![Plan::new(initiators, Pace::Queue(initiators))]
            }
            Self::Flood { spoofed, seconds } => {
                let honest = HONEST_PER_SECOND * seconds;
                let pace = Pace::Every(Duration::from_secs(1) / HONEST_PER_SECOND);
                let calm = Plan::new(honest as usize, pace);
                let flooded = Plan {
                    spoofed: Some(spoofed),
                    ..calm
                };
                vec![calm, flooded]
            }
        }
    }
}

/// One round of a load.
#[derive(Clone, Copy)]
struct Plan {
    setups: usize,
    pace: Pace,
    spoofed: Option<u32>,
}

impl Plan {
    const fn new(setups: usize, pace: Pace) -> Self {
        Self {
            setups,
            pace,
            spoofed: None,
        }
    }
}

/// Options of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Load to measure.
    pub load: Load,
    /// True to give all initiators but the first few a key that the responder does not have: none
    /// may get in.
    pub wrong_key: bool,
}

/// Runs the benchmark in namespaces that were already entered ([`crate::testbed::enter`]). The
/// report includes initiators that do not come up.
///
/// # Errors
/// This machine cannot run the benchmark.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    find_binary("stratad")?;
    find_binary("strata")?;
    run(options).map_err(|error| {
        let fix = "end what else keeps this machine busy, and try again";
        Obstacle::new(format!("{error:#}"), fix)
    })
}

fn run(options: &Options) -> Result<Report> {
    let plans = options.load.rounds();
    let setups: usize = plans.iter().map(|plan| plan.setups).sum();
    let bed = Testbed::new("bench")?;
    let host = bed.host("loopback")?;
    let responder = Responder::start(&host, WARM_UP + setups)?;
    let core = OwnCore::apart_from(&[responder.pid()])?;
    let mut crowd = Crowd::new(&host, Place::ONE_HOST)?;
    let first = crowd.run(WARM_UP, Pace::Queue(1))?;
    let why = first.failure.unwrap_or_default();
    ensure!(
        first.up == WARM_UP,
        "the first tunnel does not come up: {why}"
    );
    if options.wrong_key {
        crowd.forget_the_key();
    }
    let mut bench = Bench {
        raw: Raw::new(crowd.dialogue()?),
        host: &host,
        responder: &responder,
        crowd,
    };
    let rounds = plans.iter().map(|plan| bench.round(plan));
    let rounds = rounds.collect::<Result<Vec<_>>>()?;
    Ok(Report::new(options.load, rounds, core.is_apart()))
}

/// State that all rounds share.
struct Bench<'a> {
    host: &'a Host,
    responder: &'a Responder,
    crowd: Crowd,
    raw: Raw,
}

impl Bench<'_> {
    fn round(&mut self, plan: &Plan) -> Result<Round> {
        let sas_before = self.crowd.up();
        let raw = self.raw.time()?;
        let (spent, memory) = (self.responder.spent()?, self.responder.memory()?);
        let (host, over) = (self.host, &AtomicBool::new(false));
        let (run, poured) = thread::scope(|scope| {
            let pouring = plan
                .spoofed
                .map(|rate| scope.spawn(move || flood::pour(host, rate, over)));
            let run = self.crowd.run(plan.setups, plan.pace);
            over.store(true, Ordering::Relaxed);
            let poured = pouring.map(|thread| thread.join().expect("a flood returns its errors"));
            Ok::<_, anyhow::Error>((run?, poured.transpose()?))
        })?;
        let spent = self.responder.spent()?.saturating_sub(spent);
        let grown = self.responder.memory()?.saturating_sub(memory);
        Ok(Round::new(sas_before, run, (spent, raw), grown, poured))
    }
}
