//! Figure 1 of the paper on VPN servers: the time of concurrent transfers over the number of
//! clients, with IPsec and without.

mod cell;
mod findings;
mod network;
mod server;
mod trial;

use super::common::{dots, exactly};
use crate::bare::{Raw as Calls, Shape};
use crate::experiment::{Basis, Claim, Column, Filled, Grid, Plan, Raw, Table};
use crate::plot::{Axis, Lines, Look, Plot, Series};
use crate::testbed::{find_binary, find_command};
use anyhow::{Context, Result};
use cell::{COLUMNS, Cell, Measured};
use network::Network;
use server::{Link, Server};
use std::time::Duration;
use trial::Trial;

/// The table.
pub const TABLE: Table = Table {
    name: "vpn-fig1",
    title: "Concurrent transfers: native TCP, Strata's gateway and strongSwan's",
    claims: &[
        Claim {
            says: "The time of concurrent transfers grows more rapidly with IPsec than with native \
                   TCP/IP.",
            judged_by: &["*: growth of the time with each client, Strata over native TCP"],
        },
        Claim {
            says: "That is because IPsec is computationally bound.",
            judged_by: &[
                "*: processor time of the gateway, Strata over native TCP",
                findings::FULL,
            ],
        },
        Claim {
            says: "The average throughput of a client is close to that of a single one, divided by \
                   the number of clients.",
            judged_by: &["1 Gb/s, *: throughput of each beside single/N"],
        },
        Claim {
            says: "With 6 clients each has 375 kB/s, and with 25, by that law, about 88 kB/s.",
            judged_by: &[
                "1 Gb/s, Strata, 6 clients: throughput of each",
                "1 Gb/s, Strata, 25 clients: throughput of each",
            ],
        },
        Claim {
            says: "Cryptographic operations are 34 to 55 % of the work for ESP.",
            judged_by: &[findings::CRYPTOGRAPHY],
        },
    ],
    setting: "The paper's server has a processor of 1.66 GHz and IPsec in its kernel (Openswan, \
              AES-128 with HMAC-MD5), behind switches of 100 Mb/s and 1 Gb/s, and clients with a \
              machine each; its 25 clients are a projection. Here all hosts are namespaces of \
              one machine. The gateways of Strata and of strongSwan (ESP in user space, \
              kernel-libipsec) and a server without IPsec have a link each to one switch, with a \
              token bucket of 1 Gb/s at both ends, or none. nginx on the gateway itself has the file, \
              and curl at each client takes the time and counts the octets. The clients are the \
              same hosts for all: each runs stratad, with a tunnel to either gateway, so that \
              only the gateway differs. With two processors or more, everything on the gateways \
              has the first and all clients share the last, which the paper's do not: without a \
              limit (1, 3 and 6 clients), they may be what is slow. ESP is AES-128-GCM in UDP, and \
              no key is replaced. The three take turns. The file has the paper's 56.47 MB (28.2 MB in a \
              quick run); in full, each number of clients has 25 trials, and 25 clients have 5. \
              Times are from the start of a client's curl to its last octet, all started at \
              once: the time of a trial is that of its last client, and the throughput of each \
              is by their mean. Processor time is that of nginx and of the daemon with the calls \
              of their kernel, which carry a packet across the wire to the socket of the other \
              end. The cryptography alone is the sealing of packets of 1,380 octets by the same \
              AEAD, timed in each round; the processor of a gateway is full at the rate at which \
              its work for an octet takes as long as the octet. A debug build is \
              compared with native TCP alone.",
    duration: |quick| {
        let plan = if quick { Plan::QUICK } else { Plan::FULL };
        let rounds = (1..=rounds(&plan)).map(|round| {
            let links = Link::ALL.into_iter();
            let clients = links.flat_map(|link| clients(link, &plan, round));
            TRANSFER.mul_f64(clients.sum::<usize>() as f64 * octets(quick) as f64 / 1e6)
        });
        START + rounds.sum::<Duration>()
    },
    rests_on: &[Basis::Tunnels],
    check: || {
        find_command("tc", "iproute2")?;
        find_command("nginx", "nginx-light")?;
        find_command("curl", "curl")?;
        find_command("swanctl", "strongswan-swanctl")?;
        find_binary("strata")?;
        find_binary("stratad").map(drop)
    },
    measure,
    judge: |raw| Ok(judged(&complete(raw.data()?))),
};

/// Durations of all hosts with their daemons, and of a transfer of 10^6 octets from each of the
/// three servers.
const START: Duration = Duration::from_secs(15);
const TRANSFER: Duration = Duration::from_millis(50);

/// Most clients, and most of those that the paper measured.
const MOST: usize = 25;
const FEW: usize = 6;

/// A round in so many has the most clients.
const SELDOM: u64 = 5;

/// Octets of an inner packet, and of the file in it: without IP, and TCP with timestamps.
const PACKET: usize = 1380;
const PAYLOAD: usize = PACKET - 52;

/// Returns the rounds of a plan: 25, as in the paper, for ten runs of each condition.
const fn rounds(plan: &Plan) -> u64 {
    if plan.quick {
        plan.seeds
    } else {
        (plan.seeds * 5).div_ceil(2)
    }
}

const fn octets(quick: bool) -> u64 {
    if quick { 28_235_000 } else { 56_470_000 }
}

/// Returns the numbers of clients in a round.
fn clients(link: Link, plan: &Plan, round: u64) -> Vec<usize> {
    let few: &[usize] = match (link, plan.quick) {
        (Link::Gigabit, true) => &[1, 3, FEW],
        (Link::Unlimited, true) => &[1, FEW],
        (Link::Gigabit, false) => &[1, 2, 3, 4, 5, FEW],
        (Link::Unlimited, false) => &[1, 3, FEW],
    };
    let has_many = link == Link::Gigabit && !plan.quick && round % SELDOM == 1;
    let many = has_many.then_some(MOST);
    few.iter().copied().chain(many).collect()
}

/// Returns the cells of a plan, without trials.
fn empty(plan: &Plan) -> Measured {
    let of = |link: Link| {
        let clients = clients(link, plan, 1).into_iter();
        clients.flat_map(move |clients| {
            Server::ALL.map(|server| Cell {
                link,
                server,
                clients,
                trials: Vec::new(),
            })
        })
    };
    Measured {
        octets: octets(plan.quick),
        debug: cfg!(debug_assertions),
        cells: Link::ALL.into_iter().flat_map(of).collect(),
        cryptography: Vec::new(),
    }
}

/// Returns what was measured; all cells, without trials, if nothing was.
fn complete(measured: Measured) -> Measured {
    match measured.cells.is_empty() {
        true => Measured {
            debug: false,
            ..empty(&Plan::FULL)
        },
        false => measured,
    }
}

fn measure(plan: &Plan) -> Raw {
    let mut measured = empty(plan);
    let mut faults = Vec::new();
    let most = measured.cells.iter().map(|cell| cell.clients).max();
    match Network::new(most.unwrap_or_default(), measured.octets) {
        Ok(mut network) => faults.extend(take_turns(&mut network, plan, &mut measured)),
        Err(error) => faults.push(format!("{error:#}")),
    }
    Raw::new(&measured, faults)
}

/// Measures all rounds. Returns the reasons for what is missing.
fn take_turns(network: &mut Network, plan: &Plan, measured: &mut Measured) -> Vec<String> {
    let mut faults = Vec::new();
    for round in 1..=rounds(plan) {
        for cell in &mut measured.cells {
            if !clients(cell.link, plan, round).contains(&cell.clients) {
                continue;
            }
            let what = || {
                format!(
                    "{}, {}, round {round}",
                    cell.link.name(),
                    cell.server.name()
                )
            };
            match trial(network, cell, round, plan.tunnels).with_context(what) {
                Ok(trial) => cell.trials.push(trial),
                Err(error) => faults.push(format!("{error:#}")),
            }
        }
        match cryptography() {
            Ok(time) => measured.cryptography.push(time),
            Err(error) => faults.push(format!("{error:#}")),
        }
    }
    faults
}

fn trial(network: &mut Network, cell: &Cell, round: u64, tunnels: bool) -> Result<Trial> {
    network.set_rate(cell.link)?;
    let (times, work) = network.download(cell.server, cell.clients, tunnels)?;
    Ok(Trial { round, times, work })
}

/// Returns the time to seal an octet of the file, in nanoseconds: the least of several, because a
/// first batch meets cold caches.
fn cryptography() -> Result<f64> {
    let mut calls = Calls::new(Shape::Plain, &[PACKET])?;
    let mut least = Duration::MAX;
    for _ in 0..100 {
        least = least.min(calls.time()?.sealing);
    }
    Ok(least.as_nanos() as f64 / PAYLOAD as f64)
}

fn judged(measured: &Measured) -> Filled {
    Filled {
        grid: Grid {
            columns: COLUMNS.map(|(group, name)| Column::new(group, name)).into(),
            rows: measured
                .cells
                .iter()
                .map(|cell| measured.row(cell))
                .chain([measured.row_of_cryptography()])
                .collect(),
        },
        findings: findings::all(measured),
        faults: Vec::new(),
        plots: Link::ALL
            .into_iter()
            .flat_map(|link| [times(measured, link), throughput(measured, link)])
            .collect(),
    }
}

/// Plots the time of a trial over the number of clients.
fn times(measured: &Measured, link: Link) -> Plot {
    let clients = measured.clients(link);
    let series = Server::ALL.map(|server| Series {
        name: server.name().to_owned(),
        colour: server.colour(),
        look: Look::Marked,
        dots: dots(&clients, |clients| {
            measured.cell(link, server, clients)?.bar(Trial::time)
        }),
    });
    let title = format!("Until every client has its file, {}", link.name());
    Plot::lines(
        format!("time-{}", link.key()),
        lines(title, "s", &clients, series.into()),
    )
}

/// Plots the throughput of each client, and single/N as thin lines.
fn throughput(measured: &Measured, link: Link) -> Plot {
    let clients = measured.clients(link);
    let each = |server, clients| {
        let cell = measured.cell(link, server, clients)?;
        cell.bar(|trial| trial.each(measured.octets) / 1e6)
    };
    let of = |server: Server| {
        let law = |clients: usize| Some(exactly(each(server, 1)?.value / clients as f64));
        [
            Series {
                name: server.name().to_owned(),
                colour: server.colour(),
                look: Look::Marked,
                dots: dots(&clients, |clients| each(server, clients)),
            },
            Series {
                name: format!("{}, single/N", server.name()),
                colour: server.colour(),
                look: Look::Thin,
                dots: dots(&clients, law),
            },
        ]
    };
    let title = format!("Throughput of each client, {}", link.name());
    let series = Server::ALL.into_iter().flat_map(of).collect();
    Plot::lines(
        format!("throughput-{}", link.key()),
        lines(title, "MB/s", &clients, series),
    )
}

fn lines(title: String, unit: &str, clients: &[usize], series: Vec<Series>) -> Lines {
    let tops = series.iter().flat_map(|series| &series.dots);
    let tops: Vec<_> = tops
        .map(|dot| dot.interval.map_or(dot.y, |[_, most]| most))
        .collect();
    Lines {
        title,
        x: Axis::of_names("clients", clients.iter().map(usize::to_string).collect()),
        y: Axis::from_zero(unit, tops),
        series,
    }
}

#[cfg(test)]
mod tests;
