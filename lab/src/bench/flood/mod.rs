//! `strata-lab bench flood`: the damage that unknown peers, and a malicious member, do to
//! established peers.
//!
//! ```text
//!   near     192.0.2.1, 10.64.0.0/14 ------ 192.0.2.2     gateway, 10.8.0.1 inside
//!   flooder  198.18.0.2, 198.19.0.0/16 ---- 198.18.0.1
//!            2001:db8:f::/64 -------------- 2001:db8:e::1
//! ```
//!
//! A TCP connection (iperf3) passes an established tunnel from `near` to the gateway, and the
//! engines of a crowd set up 200 tunnels a second. Meanwhile the flooder sends 20,000 packets or 50
//! Mb a second, whichever is less. The control has a rule at the gateway that drops the flood
//! before any socket, so that both include the cost of making and carrying the flood. Flood and
//! control take turns in each round, and the order alternates from round to round; a ratio is taken
//! within a round. Other load of the machine moves single ratios: a flood is measured until enough
//! rounds are on one side of the goal, three times as long at most.

mod member;
mod report;
mod scene;
mod streams;
mod text;
mod throttle;
mod unknown_peer;

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

/// Set-ups per second of the crowd.
const SETUPS_PER_SECOND: u32 = 200;

/// Duration of the flood before the measurement, enough to fill the tables of half-open SAs and
/// streams.
const LEAD: Duration = Duration::from_secs(1);

/// Time after the last set-up at which an unfinished connection counts as stopped by the flood.
const LATENESS: Duration = Duration::from_secs(10);

/// Most blocks of rounds of a flood; each has hosts and daemons of its own.
const MOST_BLOCKS: u32 = 3;

/// Fewest rounds in a block for a decision. A shorter run is one block.
const FEWEST_ROUNDS: u32 = 5;

/// Kind of flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// First messages with invalid public values, of every group in turn, from random addresses.
    PublicValues,
    /// IKE_AUTH with ten CA certificates of one name.
    Chains,
    /// First messages from one IPv6 /64 that return their cookies.
    HalfOpen,
    /// TCP connections without data.
    Streams,
    /// Valid first messages from spoofed addresses.
    Spoofed,
    /// Octets that are not a message.
    Malformed,
    /// Requests of an authenticated peer, repeated and damaged.
    Member,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::PublicValues,
        Self::Chains,
        Self::HalfOpen,
        Self::Streams,
        Self::Spoofed,
        Self::Malformed,
        Self::Member,
    ];

    /// Returns the name on a command line.
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

    /// Returns the name for readers.
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

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Floods to measure.
    pub kinds: Vec<Kind>,
    /// Number of turns of flood and control in a block.
    pub rounds: u32,
    /// Length of each turn, in seconds.
    pub seconds: u32,
    /// True to give the crowd a key that the gateway does not have: no set-up may be served.
    pub wrong_key: bool,
}

/// One turn: with the flood, or with the flood dropped before the sockets.
#[derive(Debug)]
struct Turn {
    /// Throughput through the tunnel, in 10^9 bits per second.
    gbps: f64,
    setups: Run,
    poured: Poured,
}

/// One round of a kind of flood.
#[derive(Debug)]
struct Round {
    control: Turn,
    flooded: Turn,
}

/// Runs the benchmark in namespaces that were already entered ([`crate::testbed::enter`]). The
/// report includes set-ups that are not served.
///
/// # Errors
/// This machine cannot run the benchmark.
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
        .map(|&kind| Ok((kind, blocks(kind, options)?)));
    let rounds: Result<Vec<_>> = rounds.collect();
    rounds.map(|rounds| Report::new(&rounds)).map_err(|error| {
        let fix = "end what else keeps this machine busy, and try again";
        Obstacle::new(format!("{error:#}"), fix)
    })
}

/// Measures a flood until its ratio is decided.
fn blocks(kind: Kind, options: &Options) -> Result<Vec<Round>> {
    let most = match options.rounds < FEWEST_ROUNDS {
        true => 1,
        false => MOST_BLOCKS,
    };
    let mut measured = Vec::new();
    for _ in 0..most {
        measured.extend(rounds(kind, options)?);
        if report::is_decided(&measured) {
            break;
        }
    }
    Ok(measured)
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

/// Carries TCP through the tunnel while the crowd sets up other tunnels.
fn carry(near: &Host, gateway: &Host, crowd: &mut Crowd, seconds: u32) -> Result<(f64, Run)> {
    let _server = iperf::serve(gateway, scene::INSIDE)?;
    let mut client = iperf::send(near, scene::INSIDE, seconds, "")?;
    let pace = Pace::Every(Duration::from_secs(1) / SETUPS_PER_SECOND);
    let setups = crowd.run((SETUPS_PER_SECOND * seconds) as usize, pace)?;
    // A connection that a flood stops has no report, and counts as zero.
    let told = match client.wait(LATENESS) {
        Ok(_) => iperf::report(&mut client, seconds)?,
        Err(_) => return Ok((0.0, setups)),
    };
    let bits = iperf::number(&told, "/end/sum_received/bits_per_second").unwrap_or(0.0);
    Ok((bits / 1e9, setups))
}
