//! `strata-lab bench sas`: the throughput of a gateway with very many tunnels, compared with a
//! single one.
//!
//! ```text
//!   crowd  192.0.2.1, 10.64.0.0/14 ------ veth ------ 192.0.2.2  gateway, 10.8.0.1 inside
//! ```
//!
//! The gateway is an ordinary `stratad` on its own core. Each client of the crowd has an address,
//! an identity and a tunnel to it (`crowd`). The clients send echo requests (RFC 792) to the
//! gateway's inner address in turns: the gateway opens each request, its kernel answers, and the
//! gateway seals the reply. Requests come from one client, from a few in turns, or from all in
//! turns, within one run and with all tunnels up, so that only the number of SAs in use differs.
//! The clients' own sealing and opening is outside the timed part.
//!
//! With one client, consecutive packets have the same two addresses and leave the gateway with one
//! system call for many (UDP GSO). With a few or all clients in turns they do not. So the
//! comparison with one shows the cost of clients that send one packet at a time, and the comparison
//! with a few shows the cost of the SAs.

mod clients;
mod report;
mod text;

pub use report::{Report, Row};

use super::cores::OwnCore;
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

/// Addresses of the gateway and of the first client.
const PLACE: Place = Place {
    responder: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
    first: Ipv4Addr::new(10, 64, 0, 2),
};

/// Address on a loopback device, whose whole network is local to the host.
const CROWD: &str = "10.64.0.1/14";

/// Tunnels that are set up at once: few enough that the responder requests no cookies.
const AT_ONCE: usize = 16;

/// Number of clients that count as a few. It equals the packets of a batch, so that no client has
/// two packets in a batch.
const FEW: usize = 64;

/// Options of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of tunnels, each with an SA per direction.
    pub sas: usize,
    /// Number of turns of one, few and all.
    pub rounds: u32,
    /// True to give the crowd a key that the gateway does not have: no client may get in.
    pub wrong_key: bool,
}

/// Runs the benchmark. The report includes tunnels that do not come up, and echoes that do not come
/// back.
///
/// # Errors
/// This machine cannot run the benchmark.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    find_binary("stratad")?;
    find_binary("strata")?;
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
    let core = OwnCore::apart_from(&[responder.pid()])?;
    let mut crowd = Crowd::new(near, PLACE)?;
    if options.wrong_key {
        crowd.forget_the_key();
    }
    let run = crowd.run(options.sas, Pace::Queue(AT_ONCE))?;
    let mut report = Report::new(options.sas, core.is_apart());
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

/// Runs all rounds. A first pass over all SAs is not reported, because the first packet of an SA
/// allocates memory.
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
        let mut turns = [1, FEW, options.sas].map(Turn::new);
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
