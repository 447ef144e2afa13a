//! Figure 4 of the paper on end-to-end security (E2E): what IPsec adds to the time that a program
//! takes to go on by another interface when that in use is lost.

mod cell;
mod findings;

use super::common::{PAPER, dots, exactly};
use super::moves::{Contender, FIRST, Protection, SECOND, Stage, Terms, Way, in_turn};
use crate::experiment::{Basis, Claim, Column, Filled, Grid, Plan, Raw, Table};
use crate::plot::{Axis, Lines, Look, Plot, Series};
use crate::testbed::{find_binary, find_command};
use anyhow::{Context, Result};
use cell::{Cell, Quantity};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "e2e-fig4",
    title: "What IPsec adds to a lost interface: no protection, ESP and NULL, in both modes",
    claims: &[
        Claim {
            says: "The negotiation of IKEv2 takes 0.25 s to 0.26 s in every configuration.",
            judged_by: &[
                "ESP transport, Strata: T_IKE",
                "ESP tunnel, Strata: T_IKE",
                "NULL *: T_IKE",
            ],
        },
        Claim {
            says: "The system notices a lost interface 161.85 ms later with IPsec in transport \
                   mode, and 163.48 ms later in tunnel mode.",
            judged_by: &[
                "* transport, Strata: T_SYS over that without IPsec",
                "* tunnel, Strata: T_SYS over that without IPsec",
            ],
        },
        Claim {
            says: "It does so 1.01 to 2.90 times as fast in transport mode as in tunnel mode.",
            judged_by: &["*, Strata: T_SYS, tunnel over transport"],
        },
        Claim {
            says: "Traffic is stalled for 30.0325 ms without IPsec, and for 199.587 ms with it.",
            judged_by: &["none: T_STALLED", "ESP *: T_STALLED", "NULL *: T_STALLED"],
        },
        Claim {
            says: "IPsec clearly impacts how long traffic is stalled.",
            judged_by: &["*, Strata: T_STALLED over that without IPsec"],
        },
    ],
    setting: "A program sends a datagram of 64 octets each millisecond from a mobile node with two \
              wires, and a server behind a router, at the 0.355 ms a round trip of the paper's \
              hosts, sends one each millisecond to the address of the last datagram that it got. \
              The interface in use goes down while the other is up. The paper's program uses SCTP, \
              whose association has both addresses; SCTP is not in this lab yet, so T_SCTP \
              (figure 4b) is missing, and this program stands in its place: it needs no exchange \
              to go on, and its times are those of the system and of IPsec alone. Without \
              IPsec (none) that is what the kernel does: it removes the routes of the interface, \
              and the next datagram has the other interface's address, to which the server \
              answers. In transport mode the program's address changes as well, once both ends of \
              the tunnel have agreed (MOBIKE-X); in tunnel mode it keeps its inner address \
              (MOBIKE). The paper moves between SAs that both exist, without messages of IKE; here \
              they are part of the times. ESP is AES-GCM, NULL is HMAC-SHA2-256 without encryption \
              (`unencrypted`); the paper's are AES-128 and none with HMAC-SHA1. strongSwan of \
              Debian has ESP in user space in tunnel mode only. The kernel's packet sockets at \
              both ends have the times of all packets, and another subscriber to netlink that \
              of the change. T_IKE is from the first message of IKE to the first packet of ESP \
              with a datagram, with a pre-shared key, and so includes the set-up of the SAs, in \
              steps of the millisecond between datagrams. T_SYS is from the change to the first \
              packet from the other address, first data to the first one that carries a datagram, \
              T_STALLED the longest silence of datagrams to the node, and lost those that never \
              came.",
    duration: |quick| {
        let plan = if quick { Plan::QUICK } else { Plan::FULL };
        let one = START + (SET_UP + MOVE) * rounds(quick) as u32;
        one * (Subject::ALL.len() as u32 * plan.seeds as u32)
    },
    rests_on: &[Basis::Mobike],
    check: || {
        find_command("swanctl", "strongswan-swanctl")?;
        find_binary("strata")?;
        find_binary("stratad").map(drop)
    },
    measure,
    judge: |raw| Ok(judged(&complete(&raw.data::<Vec<Cell>>()?))),
};

/// Durations of hosts and daemons, of a set-up, and of a move with the silence before and after it.
const START: Duration = Duration::from_secs(3);
const SET_UP: Duration = Duration::from_millis(500);
const MOVE: Duration = Duration::from_millis(1500);

/// Set-ups and moves with each tunnel.
const fn rounds(quick: bool) -> usize {
    if quick { 1 } else { 6 }
}

/// Round trip of the paper's hosts.
const ROUND_TRIP: Duration = Duration::from_micros(355);

/// A bar of the figure: what protects the traffic, and by which daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subject {
    protection: Protection,
    contender: Contender,
}

impl Subject {
    const ALL: [Self; 7] = [
        Self::strata(Protection::None),
        Self::strata(Protection::EspTransport),
        Self::strata(Protection::EspTunnel),
        Self::strata(Protection::NullTransport),
        Self::strata(Protection::NullTunnel),
        Self::strongswan(Protection::EspTunnel),
        Self::strongswan(Protection::NullTunnel),
    ];

    const fn strata(protection: Protection) -> Self {
        Self {
            protection,
            contender: Contender::Strata,
        }
    }

    const fn strongswan(protection: Protection) -> Self {
        Self {
            protection,
            contender: Contender::Strongswan,
        }
    }

    fn name(self) -> String {
        match self.protection {
            Protection::None => self.protection.name().to_owned(),
            _ => format!("{}, {}", self.protection.name(), self.contender.name()),
        }
    }
}

/// Adds the subjects that were not measured, all in the order of [`Subject::ALL`].
fn complete(cells: &[Cell]) -> Vec<Cell> {
    let of = |subject: Subject| {
        let measured = cells.iter().find(|cell| cell.subject() == subject);
        measured.cloned().unwrap_or_else(|| Cell::new(subject))
    };
    Subject::ALL.map(of).into()
}

fn measure(plan: &Plan) -> Raw {
    let mut cells = complete(&[]);
    let mut faults = Vec::new();
    for seed in 1..=plan.seeds {
        for cell in &mut cells {
            let name = cell.subject().name();
            let travelled = travel(cell, plan).with_context(|| format!("{name}, run {seed}"));
            faults.extend(travelled.err().map(|why| format!("{why:#}")));
        }
    }
    Raw::new(&cells, faults)
}

/// Sets the tunnel up, and loses its interface. Without MOBIKE, where a move takes a quarter of a
/// minute, it makes one, of ESP in tunnel mode.
fn travel(cell: &mut Cell, plan: &Plan) -> Result<()> {
    let subject = cell.subject();
    if !plan.mobike && subject != Subject::strata(Protection::EspTunnel) {
        return Ok(());
    }
    let mut stage = Stage::new(Terms {
        contender: subject.contender,
        protection: subject.protection,
        round_trip: ROUND_TRIP,
        recorded: Duration::ZERO,
        more: if plan.mobike {
            ""
        } else {
            "mobike = \"off\"\n"
        },
    })?;
    let rounds = if plan.mobike { rounds(plan.quick) } else { 1 };
    if subject.protection != Protection::None {
        for _ in 0..rounds {
            cell.set_ups.push(stage.set_up_again()?);
        }
    }
    for number in 0..rounds {
        let (from, to) = in_turn(number, FIRST, SECOND);
        cell.moves.push(stage.hand_over(Way::Lost, from, to)?);
    }
    Ok(())
}

fn judged(cells: &[Cell]) -> Filled {
    let quartiles = ["first", "median", "third"].map(|name| Column::new("quartile", name));
    let columns = [Column::new("", "times")].into_iter().chain(quartiles);
    let rows = Quantity::ALL.into_iter();
    Filled {
        grid: Grid {
            columns: columns.chain([Column::new("", "longest")]).collect(),
            rows: rows
                .flat_map(|quantity| cells.iter().flat_map(move |cell| cell.rows(quantity)))
                .collect(),
        },
        findings: findings::all(cells),
        faults: Vec::new(),
        plots: Quantity::PLOTTED
            .map(|quantity| plot(cells, quantity))
            .into(),
    }
}

/// Plots the quartiles of a quantity, with the paper's values.
fn plot(cells: &[Cell], quantity: Quantity) -> Plot {
    let measured = Contender::ALL.map(|contender| Series {
        name: contender.name().to_owned(),
        colour: contender.colour(),
        look: Look::Marked,
        dots: dots(&Protection::ALL, |protection| {
            let subject = Subject {
                protection,
                contender,
            };
            let cell = cells.iter().find(|cell| cell.subject() == subject);
            cell.and_then(|cell| cell.bar(quantity))
        }),
    });
    let paper = Series {
        name: "paper".to_owned(),
        colour: PAPER,
        look: Look::Diamonds,
        dots: dots(&Protection::ALL, |protection| {
            quantity.paper(protection).map(exactly)
        }),
    };
    let series: Vec<_> = measured.into_iter().chain([paper]).collect();
    let tops = series.iter().flat_map(|series| &series.dots);
    let tops: Vec<_> = tops
        .map(|dot| dot.interval.map_or(dot.y, |[_, third]| third))
        .collect();
    let lines = Lines {
        title: format!("{}; bars are quartiles", quantity.name()),
        x: Axis::of_names("", Protection::ALL.map(|one| one.name().to_owned()).into()),
        y: Axis::from_zero("ms", tops),
        series,
    };
    Plot::lines(quantity.name().to_lowercase().replace('_', "-"), lines)
}

#[cfg(test)]
mod tests;
