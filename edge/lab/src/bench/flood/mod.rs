//! `strata bench flood`: what strangers, and a member with bad will, take from those who are in.
//!
//! ```text
//!   near     192.0.2.1, 10.64.0.0/14 ------ 192.0.2.2     gateway, 10.8.0.1 inside
//!   flooder  198.18.0.2, 198.19.0.0/16 ---- 198.18.0.1
//!            2001:db8:f::/64 -------------- 2001:db8:e::1
//! ```
//!
//! A TCP connection (iperf3) passes an established tunnel from `near` to the gateway, and the engines
//! of a crowd set up 200 tunnels a second, while the flooder sends 20,000 packets or 50 Mb a second,
//! whichever is less. The control is the same with a rule at the gateway that drops the flood before
//! any socket, so that the cost of making and carrying the flood is in both. Flood and control take
//! turns in each round, and the first changes from round to round; a ratio is a round's.

mod member;
mod report;
mod scene;
mod stranger;
mod streams;
mod text;
mod throttle;

pub use report::{Report, Row};

use super::crowd::{Crowd, Pace, Run};
use super::iperf;
use crate::host::Host;
use crate::obstacle::Obstacle;
use crate::testbed::find_command;
use anyhow::Result;
use scene::Scene;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use throttle::Poured;

/// Set-ups a second of the crowd.
const SETUPS_PER_SECOND: u32 = 200;

/// Flooding before anything is measured: tables of half-open SAs and streams are full then.
const LEAD: Duration = Duration::from_secs(1);

/// A connection that ends later, when all set-ups have ended, was stopped by the flood.
const LATENESS: Duration = Duration::from_secs(10);

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// First messages whose public value is none, of every group in turn, from anywhere.
    PublicValues,
    /// IKE_AUTH with ten CA certificates of one name.
    Chains,
    /// First messages from one IPv6 /64, which brings cookies back.
    HalfOpen,
    /// TCP connections that say nothing.
    Streams,
    /// Good first messages from addresses that know nothing of them.
    Spoofed,
    /// Octets that are no message.
    Malformed,
    /// Requests of a peer that is in: repeated, and damaged.
    Member,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::PublicValues,
        Self::Chains,
        Self::HalfOpen,
        Self::Streams,
        Self::Spoofed,
        Self::Malformed,
        Self::Member,
    ];

    /// As a command line names it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::PublicValues => "public-values",
            Self::Chains => "chains",
            Self::HalfOpen => "half-open",
            Self::Streams => "streams",
            Self::Spoofed => "spoofed",
            Self::Malformed => "malformed",
            Self::Member => "member",
        }
    }

    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PublicValues => "bad public values",
            Self::Chains => "certificate chains",
            Self::HalfOpen => "half-open from a /64",
            Self::Streams => "idle streams",
            Self::Spoofed => "spoofed first messages",
            Self::Malformed => "malformed packets",
            Self::Member => "requests of a member",
        }
    }
}

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// The floods.
    pub kinds: Vec<Kind>,
    /// How often flood and control have a turn.
    pub rounds: u32,
    /// Length of each turn, in seconds.
    pub seconds: u32,
    /// Give the crowd another key than the gateway has: no set-up may be served.
    pub wrong_key: bool,
}

/// One turn: with the flood, or with the flood dropped before the sockets.
#[derive(Debug)]
struct Turn {
    /// 10^9 bits a second through the tunnel.
    gbps: f64,
    setups: Run,
    poured: Poured,
}

/// A round of a kind.
#[derive(Debug)]
struct Round {
    control: Turn,
    flooded: Turn,
}

/// Measures in namespaces that were entered ([`crate::testbed::enter`]). Set-ups that are not served
/// are part of the report.
///
/// # Errors
/// It cannot be measured on this machine.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    for (command, package) in [
        ("iperf3", "iperf3"),
        ("nft", "nftables"),
        ("openssl", "openssl"),
    ] {
        find_command(command, package)?;
    }
    let rounds = options
        .kinds
        .iter()
        .map(|&kind| Ok((kind, rounds(kind, options)?)));
    let rounds: Result<Vec<_>> = rounds.collect();
    rounds.map(|rounds| Report::new(&rounds)).map_err(|error| {
        let fix = "end what else keeps this machine busy, and try again";
        Obstacle::new(format!("{error:#}"), fix)
    })
}

fn rounds(kind: Kind, options: &Options) -> Result<Vec<Round>> {
    let setups = SETUPS_PER_SECOND * options.seconds;
    let mut scene = Scene::new(kind, (2 * options.rounds * setups) as usize)?;
    if options.wrong_key {
        scene.crowd.forget_the_key();
    }
    let turns = |round: u32| {
        let mut turn = |dropped| turn(&mut scene, dropped, options.seconds);
        Ok(match round % 2 {
            0 => Round {
                control: turn(true)?,
                flooded: turn(false)?,
            },
            _ => {
                let flooded = turn(false)?;
                let control = turn(true)?;
                Round { control, flooded }
            }
        })
    };
    (0..options.rounds).map(turns).collect()
}

fn turn(scene: &mut Scene, dropped: bool, seconds: u32) -> Result<Turn> {
    let (over, flood) = (AtomicBool::new(false), scene.flood()?);
    let _rule = dropped.then(|| scene.drop_floods()).transpose()?;
    let Scene {
        near,
        gateway,
        flooder,
        crowd,
        ..
    } = scene;
    thread::scope(|scope| {
        let pouring = scope.spawn(|| flooder.inside(|| throttle::pour(flood, &over)));
        thread::sleep(LEAD);
        let carried = carry(near, gateway, crowd, seconds);
        over.store(true, Ordering::Relaxed);
        let poured = pouring.join().expect("a flood returns its errors")?;
        let (gbps, setups) = carried?;
        Ok(Turn {
            gbps,
            setups,
            poured,
        })
    })
}

/// Carries TCP through the tunnel and sets others up meanwhile.
fn carry(near: &Host, gateway: &Host, crowd: &mut Crowd, seconds: u32) -> Result<(f64, Run)> {
    let _server = iperf::serve(gateway, scene::INSIDE)?;
    let mut client = iperf::send(near, scene::INSIDE, seconds, "")?;
    let pace = Pace::Every(Duration::from_secs(1) / SETUPS_PER_SECOND);
    let setups = crowd.run((SETUPS_PER_SECOND * seconds) as usize, pace)?;
    // A connection that a flood stops has no report, and has carried nothing.
    let told = match client.wait(LATENESS) {
        Ok(_) => iperf::report(&mut client, seconds)?,
        Err(_) => return Ok((0.0, setups)),
    };
    let bits = iperf::number(&told, "/end/sum_received/bits_per_second").unwrap_or(0.0);
    Ok((bits / 1e9, setups))
}
