//! Figure 7 of the paper on end-to-end security (E2E): the same moves as those of figure 6 with
//! MOBIKE-X, which moves transport mode and uses several interfaces.

mod cell;
mod findings;
mod manner;

use super::common::{PAPER, dots, exactly};
use super::moves::{FIRST, Kind, Passage, RENUMBERED, SECOND, Stage, Terms, Way, in_turn};
use crate::experiment::{Basis, Claim, Column, Filled, Grid, Plan, Raw, Table};
use crate::plot::{Axis, Lines, Look, Plot, Series};
use crate::testbed::{find_binary, find_command};
use anyhow::{Context, Result};
use cell::{Cell, Quantity, Subject};
use manner::Manner;
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "e2e-fig7",
    title: "MOBIKE-X: moves in transport mode, with several live paths, and by soft hand-over",
    claims: &[
        Claim {
            says: "The system takes 110.9095 ms to find the new interface and to begin the move.",
            judged_by: &["transport mode, mobility, 0.355 ms a round trip: T_SYS"],
        },
        Claim {
            says: "The exchange that updates the addresses takes 36.6035 ms.",
            judged_by: &["transport mode, mobility, 0.355 ms a round trip: T_UPDATE"],
        },
        Claim {
            says: "That is 2.69 times as long as in tunnel mode.",
            judged_by: &["0.355 ms a round trip: T_UPDATE, transport mode over MOBIKE"],
        },
        Claim {
            says: "The return routability check takes 39.943 ms.",
            judged_by: &["transport mode, mobility, 0.355 ms a round trip: T_RRC"],
        },
        Claim {
            says: "Traffic is stalled for 264 ms.",
            judged_by: &["transport mode, mobility, 0.355 ms a round trip: T_STALLED"],
        },
        Claim {
            says: "A move takes between 9.3 % and 15.6 % less time than those of MOBIKE.",
            judged_by: &[
                "0.355 ms a round trip: T_STALLED, MOBIKE, mobility over transport mode",
                "0.355 ms a round trip: T_STALLED, MOBIKE, multihoming over transport mode",
            ],
        },
        Claim {
            says: "A soft hand-over, which several interfaces allow, loses no packet.",
            judged_by: &[
                "soft hand-over, *: moves that lose no datagram, over all",
                "live paths, *: two round trips over T_STALLED",
            ],
        },
    ],
    setting: "The paper measures a move of MOBIKE-X in transport mode to another address, by pings \
              between hosts with a round trip of 0.355 ms, and says of soft hand-overs what it \
              expects. Here are the moves of e2e-fig6 on the same wires: another address on the \
              only interface (mobility), and the loss of the interface in use (multihoming). \
              MOBIKE is Strata in tunnel mode, transport mode is MOBIKE-X of Strata, which always \
              checks return routability, as the paper's does; strongSwan has ESP in user space, \
              which has tunnel mode only, so beside it stands its MOBIKE. With live paths (`paths \
              = 2`) both interfaces carry packets, and that of the stream is lost; a soft \
              hand-over (`clone = true`, `strata move --soft`) is done before its interface is \
              lost. A program sends a datagram of 64 octets each millisecond, and a server sends \
              one each millisecond to the address of the last one that it got: in transport mode \
              the program's address changes with the tunnel, which the paper leaves to SCTP. \
              T_SYS is from the change, as the kernel reports it, to the first packet from the new \
              address, T_UPDATE and T_RRC from the first request to the first response, T_STALLED \
              the longest silence of datagrams to the node, and lost those that never came, by the \
              kernel's packet sockets at both ends. A move by live paths or a soft hand-over is \
              not timed by its messages: packets leave from the other interface before it.",
    duration: |quick| {
        let plan = if quick { Plan::QUICK } else { Plan::FULL };
        let moves = |manner: &Manner| START + MOVE * manner.moves(quick) as u32;
        let all = Subject::ALL.iter().map(|subject| moves(&subject.manner));
        all.sum::<Duration>() * (distances(quick).len() as u32 * plan.seeds as u32)
    },
    rests_on: &[Basis::Mobike, Basis::Clones, Basis::Paths],
    check: || {
        find_command("swanctl", "strongswan-swanctl")?;
        find_binary("strata")?;
        find_binary("stratad").map(drop)
    },
    measure,
    judge: |raw| Ok(judged(&complete(raw.data()?))),
};

/// Durations of hosts and daemons, and of a move with the silence before and after it.
const START: Duration = Duration::from_secs(3);
const MOVE: Duration = Duration::from_millis(1500);

/// Round trips of the paper: its hosts, and a public hot spot.
const NEAR: Duration = Duration::from_micros(355);
const HOT_SPOT: Duration = Duration::from_millis(15);

/// Returns the round trips of a run.
const fn distances(quick: bool) -> &'static [Duration] {
    if quick {
        &[HOT_SPOT]
    } else {
        &[NEAR, HOT_SPOT]
    }
}

fn empty(round_trips: &[Duration]) -> Vec<Cell> {
    let cells = |round_trip: &Duration| Subject::ALL.map(|one| Cell::new(one, *round_trip));
    round_trips.iter().flat_map(cells).collect()
}

/// Returns the cells of a run; all, without moves, if there was none.
fn complete(cells: Vec<Cell>) -> Vec<Cell> {
    match cells.is_empty() {
        true => empty(distances(false)),
        false => cells,
    }
}

fn measure(plan: &Plan) -> Raw {
    let mut cells = empty(distances(plan.quick));
    let mut faults = Vec::new();
    for seed in 1..=plan.seeds {
        for cell in &mut cells {
            let name = cell.name();
            let travelled = travel(cell, plan).with_context(|| format!("{name}, run {seed}"));
            faults.extend(travelled.err().map(|why| format!("{why:#}")));
        }
    }
    Raw::new(&cells, faults)
}

/// Moves a tunnel. Without MOBIKE, where a move takes a quarter of a minute, it makes one move.
fn travel(cell: &mut Cell, plan: &Plan) -> Result<()> {
    let Subject { manner, kind } = cell.subject();
    let mut stage = Stage::new(Terms {
        contender: manner.contender(),
        protection: manner.protection(),
        round_trip: cell.round_trip,
        recorded: Duration::ZERO,
        more: manner.lines(plan),
    })?;
    if kind == Kind::Mobility {
        stage.take_down(SECOND)?;
    }
    let moves = if plan.mobike {
        manner.moves(plan.quick)
    } else {
        1
    };
    for number in 0..moves {
        let passage = one_move(&mut stage, cell.subject(), plan, number)?;
        cell.moves.push(passage);
    }
    Ok(())
}

fn one_move(stage: &mut Stage, subject: Subject, plan: &Plan, number: usize) -> Result<Passage> {
    if subject.kind == Kind::Mobility {
        let (from, to) = in_turn(number, FIRST, RENUMBERED);
        return stage.renumber(from, to);
    }
    let (from, to) = in_turn(number, FIRST, SECOND);
    match subject.manner {
        Manner::Soft if plan.mobike => {
            let way = if plan.clones { Way::Soft } else { Way::Hard };
            stage.hand_over(way, from, to)
        }
        Manner::LivePaths if plan.mobike && plan.paths => match stage.await_live_paths(2)? {
            SECOND => stage.hand_over(Way::Lost, SECOND, FIRST),
            _ => stage.hand_over(Way::Lost, FIRST, SECOND),
        },
        _ => stage.hand_over(Way::Lost, from, to),
    }
}

fn judged(cells: &[Cell]) -> Filled {
    let quartiles = ["first", "median", "third"].map(|name| Column::new("quartile", name));
    let columns = [Column::new("", "moves")].into_iter().chain(quartiles);
    let mut round_trips: Vec<_> = cells.iter().map(|cell| cell.round_trip).collect();
    round_trips.dedup();
    Filled {
        grid: Grid {
            columns: columns.chain([Column::new("", "longest")]).collect(),
            rows: cells.iter().flat_map(Cell::rows).collect(),
        },
        findings: findings::all(cells, &round_trips),
        faults: Vec::new(),
        plots: round_trips
            .iter()
            .flat_map(|far| Kind::ALL.map(|kind| plot(cells, kind, *far)))
            .collect(),
    }
}

/// Plots the quartiles of moves of one kind at a distance, with a line for each manner.
fn plot(cells: &[Cell], kind: Kind, round_trip: Duration) -> Plot {
    let its = |cell: &&Cell| cell.subject().kind == kind && cell.round_trip == round_trip;
    let measured = cells.iter().filter(its).map(|cell| Series {
        name: cell.subject().manner.brief().to_owned(),
        colour: cell.subject().manner.colour(),
        look: Look::Marked,
        dots: dots(&Quantity::PLOTTED, |quantity| cell.bar(quantity)),
    });
    let paper = Series {
        name: "paper".to_owned(),
        colour: PAPER,
        look: Look::Diamonds,
        dots: dots(&Quantity::PLOTTED, |quantity| {
            let subject = Subject {
                manner: Manner::Transport,
                kind,
            };
            quantity.paper(subject, round_trip).map(exactly)
        }),
    };
    let is_printed = !paper.dots.is_empty();
    let series: Vec<_> = measured.chain(is_printed.then_some(paper)).collect();
    let tops = series.iter().flat_map(|series| &series.dots);
    let tops: Vec<_> = tops
        .map(|dot| dot.interval.map_or(dot.y, |[_, third]| third))
        .collect();
    let names = Quantity::PLOTTED.map(|one| one.name().to_owned());
    let lines = Lines {
        title: format!(
            "{}, {}; bars are quartiles",
            kind.name(),
            cell::far(round_trip)
        ),
        x: Axis::of_names("", names.into()),
        y: Axis::from_zero("ms", tops),
        series,
    };
    let micros = round_trip.as_micros();
    Plot::lines(format!("{}-{micros}us", kind.name()), lines)
}

#[cfg(test)]
mod tests;
