//! Set-ups across a wire with a delay: the time until the initiator can send, and the messages that
//! this takes, as a packet socket of the kernel sees them at the gateway.
//!
//! ```text
//!   near  10.64.0.0/14, 192.0.2.1 ---- delay ---- 192.0.2.2  gateway, 10.8.0.1 inside
//! ```

use super::super::super::certificates::Certificates;
use super::super::super::crowd::{Crowd, Pace};
use super::super::super::responder::{Place, Responder, Terms};
use super::{Way, line, ms};
use crate::emulator::{Emulator, Settings};
use crate::host::Host;
use crate::testbed::Testbed;
use crate::wire;
use crate::wiretap::{Seen, Wiretap};
use ::wire::ike::{ExchangeType, Header};
use anyhow::{Result, ensure};
use ike::Resumption;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Name of the wire's devices.
const WIRE: &str = "wan0";

/// Silence, beyond a round trip, after which both ends have handled everything.
const SILENCE: Duration = Duration::from_millis(50);

/// Delay for which one more set-up may be under way: their work is then no part of each other's
/// time.
const SPACE: Duration = Duration::from_millis(10);

/// Way in which a tunnel comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SetUp {
    /// A full exchange.
    Full(Terms),
    /// A session that a full exchange with a pre-shared key began is resumed.
    Resumed(Way),
}

/// Set-ups of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Distant {
    pub set_up: SetUp,
    /// Times until the initiator could send, in milliseconds, the shortest first.
    pub up_ms: Vec<f64>,
    /// Messages of all, with those sent again.
    pub messages: usize,
    /// Octets of all, from the IP header on.
    pub octets: usize,
}

/// Sets this many tunnels up in each way, at this distance. Without `resumes`, a negative control,
/// sessions that are lost are set up in full.
///
/// # Errors
/// A tunnel does not come up, or carries no echo.
pub(crate) fn distant(round_trip: Duration, setups: usize, resumes: bool) -> Result<Vec<Distant>> {
    let mut certified = Far::start(Terms::Ecdsa, round_trip, setups)?;
    let ecdsa = certified.turn(SetUp::Full(Terms::Ecdsa), setups, false)?;
    let mut shared = Far::start(Terms::Psk, round_trip, setups)?;
    let mut all = vec![ecdsa];
    for way in Way::ALL {
        shared.crowd.resume(match resumes {
            true => way.into(),
            false => Resumption::Off,
        });
        let full = shared.turn(SetUp::Full(Terms::Psk), setups, false)?;
        // Those of the other ways are the same.
        if way == Way::ALL[0] {
            all.push(full);
        }
        shared.crowd.lose(setups)?;
        all.push(shared.turn(SetUp::Resumed(way), setups, resumes)?);
        shared.crowd.leave(setups)?;
        shared.settle()?;
    }
    Ok(all)
}

/// A gateway and its crowd, far from each other.
struct Far {
    round_trip: Duration,
    crowd: Crowd,
    _responder: Responder,
    gateway: Host,
    _near: Host,
    _wire: Emulator,
    _bed: Testbed,
}

impl Far {
    fn start(terms: Terms, round_trip: Duration, setups: usize) -> Result<Self> {
        let bed = Testbed::new("distance")?;
        let (near, gateway) = (bed.host("near")?, bed.host("gateway")?);
        let settings = sim::Settings {
            rate: None,
            delay: round_trip / 2,
            queue: 0,
            bit_error_rate: 0.0,
        };
        let wire = wire::emulated(
            near.end(WIRE, &["192.0.2.1/24"]),
            gateway.end(WIRE, &["192.0.2.2/24"]),
            Settings::symmetric(settings),
            1,
        )?;
        Place::address(&near, &gateway)?;
        let certificates = Certificates::for_terms(terms, &gateway)?;
        // A peer that may resume by SKID3 may by ticket as well.
        let each = line(Resumption::Skid3);
        let responder = Responder::start_for(&gateway, setups, terms, each, "")?;
        let crowd = Crowd::on(terms, &near, Place::TWO_HOSTS, certificates)?;
        Ok(Self {
            round_trip,
            crowd,
            _responder: responder,
            gateway,
            _near: near,
            _wire: wire,
            _bed: bed,
        })
    }

    /// Sets tunnels up, or again if they were lost.
    fn turn(&mut self, set_up: SetUp, setups: usize, resumes: bool) -> Result<Distant> {
        let tap = Wiretap::open(&self.gateway)?;
        let at_once = 1 + self.round_trip.div_duration_f64(SPACE) as usize;
        let pace = Pace::Queue(at_once);
        let run = match set_up {
            SetUp::Full(_) => self.crowd.run(setups, pace)?,
            SetUp::Resumed(_) => self.crowd.run_again(setups, pace)?,
        };
        self.settle()?;
        let seen = tap.rest()?;
        let seen: Vec<_> = seen.iter().filter(|seen| is_of_a_set_up(seen)).collect();
        run.complete()?;
        let (resumed, wanted) = (run.resumed, usize::from(resumes) * setups);
        ensure!(
            resumed == wanted,
            "{resumed} and not {wanted} sessions were resumed"
        );
        self.crowd.echo()?;
        Ok(Distant {
            set_up,
            up_ms: run.setups.iter().copied().map(ms).collect(),
            messages: seen.len(),
            octets: seen.iter().map(|seen| seen.octets.len()).sum(),
        })
    }

    fn settle(&mut self) -> Result<()> {
        self.crowd.settle(self.round_trip + SILENCE)
    }
}

/// Returns true for a message that sets an IKE SA up, as opposed to one of an SA that is up or was
/// lost.
fn is_of_a_set_up(seen: &Seen) -> bool {
    let header = seen.ike().and_then(|message| Header::peek(message).ok());
    header.is_some_and(|header| {
        matches!(
            header.exchange,
            ExchangeType::IKE_SA_INIT
                | ExchangeType::IKE_AUTH
                | ExchangeType::IKE_SESSION_RESUME
                | ExchangeType::SKID_RESUME
        )
    })
}
