//! `strata bench sas`: what a gateway carries for very many at once, beside what it carries for one.
//!
//! ```text
//!   crowd  192.0.2.1, 10.64.0.0/14 ------ veth ------ 192.0.2.2  gateway, 10.8.0.1 inside
//! ```
//!
//! The gateway is a `stratad` as anybody runs it, on a core of its own; everybody in the crowd has an address, an
//! identity and a tunnel with it (`crowd`). They ask for echoes (RFC 792) of the gateway's address
//! inside, in turns: what comes back was opened and sealed by the gateway and answered by its kernel. Who asks is
//! either always the same, or one of a few, or another one each time, in turns in one run with everybody's
//! tunnel up, so that nothing differs but how many SAs are in use. Their own part, sealing and opening, is
//! done before and after what is timed.
//!
//! With one, packets of the same two addresses follow each other, and leave the gateway with one call of the system for
//! many (UDP GSO); with few in turns they do not, as they do not with all. So one tells what many cost who come one
//! packet at a time, and few what their SAs cost.

mod clients;
mod report;
mod text;

pub use report::{Report, Row};

use super::cores::Seat;
use super::crowd::{Crowd, Pace};
use super::responder::{Place, Responder};
use crate::host::Host;
use crate::obstacle::Obstacle;
use crate::testbed::{Testbed, find_binary};
use crate::wire;
use anyhow::Result;
use clients::Clients;
use report::Turn;
use std::net::{IpAddr, Ipv4Addr};

/// The gateway and the first of the crowd.
const PLACE: Place = Place {
    responder: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
    first: Ipv4Addr::new(10, 64, 0, 2),
};

/// Of a loopback device, whose whole network is the host's own.
const CROWD: &str = "10.64.0.1/14";

/// Tunnels that come up at once: few enough that no cookies are asked for.
const AT_ONCE: usize = 16;

/// How many a few are: as many as the packets of a batch, so that no two of one are in it.
const FEW: usize = 64;

/// What can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many tunnels, each of which has an SA for each direction.
    pub sas: usize,
    /// How often one, few and all have a turn.
    pub rounds: u32,
    /// Give the crowd another key than the gateway has: nobody may get in.
    pub wrong_key: bool,
}

/// Measures. Tunnels that do not come up, and echoes that do not come back, are part of the report.
///
/// # Errors
/// It cannot be measured on this machine.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    find_binary("stratad")?;
    run(options).map_err(|error| {
        let fix = "end what else keeps this machine busy, or try fewer (--sas)";
        Obstacle::new(format!("{error:#}"), fix)
    })
}

fn run(options: &Options) -> Result<Report> {
    let bed = Testbed::new("bench")?;
    let hosts = [bed.host("crowd")?, bed.host("gateway")?];
    connect(&hosts)?;
    let [near, far] = &hosts;
    let responder = Responder::start(far, options.sas)?;
    let seat = Seat::apart_from(responder.pid())?;
    let mut crowd = Crowd::new(near, PLACE)?;
    if options.wrong_key {
        crowd.forget_the_key();
    }
    let run = crowd.run(options.sas, Pace::Queue(AT_ONCE))?;
    let mut report = Report::new(options.sas, seat.is_apart());
    if let Some(why) = run.failure {
        report.failure = Some(format!("{} of {} are up: {why}", run.up, run.wanted));
        return Ok(report);
    }
    let mut clients = Clients::new(crowd)?;
    report.failure = turns(options, &responder, &mut clients, &mut report)
        .err()
        .map(|error| format!("{error:#}"));
    Ok(report.finished())
}

/// The first round is not told: with its first packet an SA takes memory.
fn turns(
    options: &Options,
    responder: &Responder,
    clients: &mut Clients,
    report: &mut Report,
) -> Result<()> {
    for first in (0..options.sas).step_by(Clients::VOLLEY) {
        clients.volley(first, options.sas)?;
    }
    for round in 0..options.rounds as usize {
        let mut turns = [1, FEW, options.sas].map(Turn::of);
        for turn in &mut turns {
            let before = responder.spent()?;
            turn.lasted = clients.volley(round * Clients::VOLLEY, turn.sas)?;
            turn.spent = responder.spent()?.saturating_sub(before);
        }
        report.turns.push(turns);
    }
    Ok(())
}

fn connect([near, far]: &[Host; 2]) -> Result<()> {
    wire::veth(
        near.end("eth0", &["192.0.2.1/24"]),
        far.end("eth0", &["192.0.2.2/24"]),
    )?;
    near.netns().netlink()?.add_address("lo", CROWD.parse()?)?;
    far.route("10.64.0.0/14", "192.0.2.1")
}
