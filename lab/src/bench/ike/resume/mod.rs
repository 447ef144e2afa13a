//! `strata-lab bench ike --resume`: the cost of a session that is resumed at the gateway, compared
//! with the full exchange.
//!
//! There is a gateway and a crowd for each kind of proof: a pre-shared key, and certificates for
//! ECDSA. All gateways share one core, and only the one whose turn it is has work. In each round,
//! each sets up tunnels by full exchanges (X25519); all initiators lose their IKE SAs without a
//! Delete, and resume. An echo passes through every tunnel, before and after. The tunnels then end,
//! outside the measured part. A ratio compares both turns of one round. Each turn also times the
//! cryptography of its set-ups alone (`raw`), so that a machine that becomes slower does so for
//! both.
//!
//! Two figures have measurements of their own: set-ups across a wire with a delay (`distance`), and
//! very many clients that lose their gateway at once (`storm`).

mod distance;
mod raw;
mod report;
mod storm;
mod text;

use raw::Cryptography;

pub(crate) use distance::{Distant, SetUp, distant};
pub(crate) use report::Round;
pub use report::{Report, Row};
pub(crate) use storm::{Recovery, Size, Storm, storm};

use super::super::certificates::Certificates;
use super::super::cores::OwnCore;
use super::super::crowd::{Crowd, Pace, Run};
pub use super::super::responder::Terms;
use super::super::responder::{Place, Responder};
use crate::host::Host;
use crate::obstacle::Obstacle;
use crate::testbed::{Testbed, find_binary};
use anyhow::{Result, ensure};
use ike::Resumption;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Set-ups before the first measurement, so that one-time allocations of the daemons exist.
const WARM_UP: usize = 16;

/// Set-ups under way at once: few enough that no gateway asks for cookies.
const AT_ONCE: usize = 16;

/// Silence after which the gateway has handled everything: the third message of SKID3 is answered
/// when the tunnel is up.
const SILENCE: Duration = Duration::from_millis(50);

/// Way of resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// A ticket (RFC 5723).
    Ticket,
    /// SKID3 (paper 004).
    Skid3,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 2] = [Self::Ticket, Self::Skid3];

    /// Returns the name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ticket => "ticket",
            Self::Skid3 => "SKID3",
        }
    }

    /// Returns the word of the configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ticket => "ticket",
            Self::Skid3 => "skid3",
        }
    }
}

impl From<Way> for Resumption {
    fn from(way: Way) -> Self {
        match way {
            Way::Ticket => Self::Tickets,
            Way::Skid3 => Self::Skid3,
        }
    }
}

/// Options of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Way of resumption.
    pub way: Way,
    /// Number of rounds.
    pub rounds: usize,
    /// Set-ups of each kind in each round.
    pub setups: usize,
    /// A negative control.
    pub control: Option<Control>,
}

/// Negative control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The crowd has a key that the gateways do not have: no tunnel may come up.
    WrongKey,
    /// Neither end resumes sessions: full exchanges are compared with full exchanges.
    NoResumption,
}

impl Options {
    /// Returns how initiators resume sessions.
    fn resumption(&self) -> Resumption {
        match self.control {
            Some(Control::NoResumption) => Resumption::Off,
            Some(Control::WrongKey) | None => self.way.into(),
        }
    }
}

/// All rounds, at the gateway of each kind of proof.
pub(crate) struct Compared {
    pub rounds: Vec<(Terms, Vec<Round>)>,
    /// Reason for which rounds are missing.
    pub failure: Option<String>,
    /// True if the gateways had their own core.
    own_core: bool,
}

/// Runs the benchmark in namespaces that were already entered ([`crate::testbed::enter`]). The
/// report includes tunnels that do not come up.
///
/// # Errors
/// This machine cannot run the benchmark.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    find_binary("stratad")?;
    run(options).map_err(|error| {
        let fix = "end what else keeps this machine busy, and try again";
        Obstacle::new(format!("{error:#}"), fix)
    })
}

fn run(options: &Options) -> Result<Report> {
    compare(options).map(|compared| Report::new(options, compared))
}

/// Runs all rounds in namespaces that were already entered.
///
/// # Errors
/// A gateway does not start.
pub(crate) fn compare(options: &Options) -> Result<Compared> {
    let bed = Testbed::new("bench")?;
    let start = |terms| Gateway::start(&bed, terms, options);
    let mut gateways = [start(Terms::Psk)?, start(Terms::Ecdsa)?];
    let pids = gateways.each_ref().map(|gateway| gateway.responder.pid());
    let core = OwnCore::apart_from(&pids)?;
    let (rounds, failure) = match rounds(options, &mut gateways) {
        Ok(rounds) => (rounds, None),
        Err(error) => (Vec::new(), Some(format!("{error:#}"))),
    };
    Ok(Compared {
        rounds,
        failure,
        own_core: core.is_apart(),
    })
}

fn rounds(options: &Options, gateways: &mut [Gateway; 2]) -> Result<Vec<(Terms, Vec<Round>)>> {
    for gateway in &mut *gateways {
        if options.control == Some(Control::WrongKey) {
            gateway.crowd.forget_the_key();
        }
        gateway.round(WARM_UP)?;
    }
    let mut rounds: Vec<_> = gateways
        .iter()
        .map(|gateway| (gateway.terms, Vec::new()))
        .collect();
    for _ in 0..options.rounds {
        for (gateway, (_, rounds)) in gateways.iter_mut().zip(&mut rounds) {
            rounds.push(gateway.round(options.setups)?);
        }
    }
    Ok(rounds)
}

/// A gateway with its crowd.
struct Gateway {
    terms: Terms,
    way: Way,
    responder: Responder,
    crowd: Crowd,
    cryptography: Cryptography,
    /// True if sessions are resumed.
    resumes: bool,
}

impl Gateway {
    fn start(bed: &Testbed, terms: Terms, options: &Options) -> Result<Self> {
        let host: Host = bed.host(&format!("{terms:?}").to_lowercase())?;
        let certificates = Certificates::for_terms(terms, &host)?;
        let resumption = options.resumption();
        let peers = WARM_UP.max(options.setups);
        let responder = Responder::start_for(&host, peers, terms, line(resumption), "")?;
        let mut crowd = Crowd::on(terms, &host, Place::ONE_HOST, certificates)?;
        crowd.resume(resumption);
        Ok(Self {
            terms,
            way: options.way,
            responder,
            crowd,
            cryptography: Cryptography::new()?,
            resumes: resumption != Resumption::Off,
        })
    }

    fn round(&mut self, setups: usize) -> Result<Round> {
        let pace = Pace::Queue(AT_ONCE);
        let full_raw_us = self.cryptography.full(self.terms)?;
        let empty = self.responder.memory()?;
        let (run, full_us) = self.turn(setups, |crowd| crowd.run(setups, pace))?;
        ensure!(run.resumed == 0, "a new tunnel was resumed");
        let octets = self.responder.memory()?.saturating_sub(empty) as f64 / setups as f64;
        let (full_ms, full_s) = (middle(&run.setups), last(&run));
        self.crowd.lose(setups)?;
        let resumed_raw_us = self.cryptography.resumed(self.way)?;
        let (run, resumed_us) = self.turn(setups, |crowd| crowd.run_again(setups, pace))?;
        let (resumed, wanted) = (run.resumed, usize::from(self.resumes) * setups);
        ensure!(
            resumed == wanted,
            "{resumed} and not {wanted} sessions were resumed"
        );
        let (resumed_ms, resumed_s) = (middle(&run.setups), last(&run));
        self.crowd.leave(setups)?;
        self.crowd.settle(SILENCE)?;
        Ok(Round {
            full_us,
            full_raw_us,
            resumed_us,
            resumed_raw_us,
            full_ms,
            resumed_ms,
            full_s,
            resumed_s,
            octets,
        })
    }

    /// Returns the processor time for each set-up, in microseconds.
    fn turn(
        &mut self,
        setups: usize,
        set_up: impl FnOnce(&mut Crowd) -> Result<Run>,
    ) -> Result<(Run, f64)> {
        let before = self.responder.spent()?;
        let run = set_up(&mut self.crowd)?;
        self.crowd.settle(SILENCE)?;
        let spent = self.responder.spent()?.saturating_sub(before);
        run.complete()?;
        self.crowd.echo()?;
        Ok((run, spent.as_secs_f64() * 1e6 / setups as f64))
    }
}

/// Returns the line of a peer's table that resumes sessions in this way.
const fn line(resumption: Resumption) -> &'static str {
    match resumption {
        Resumption::Off => "resume = \"off\"\n",
        Resumption::Tickets => "resume = \"ticket\"\n",
        Resumption::Skid3 => "resume = \"skid3\"\n",
        Resumption::Skid3Pfs => "resume = \"skid3-pfs\"\n",
    }
}

/// Returns the median of sorted times, in milliseconds.
fn middle(times: &[Duration]) -> f64 {
    times.get(times.len() / 2).copied().map_or(0.0, ms)
}

/// Returns the time until all were up, in seconds.
fn last(run: &Run) -> f64 {
    run.served.last().map_or(0.0, Duration::as_secs_f64)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
