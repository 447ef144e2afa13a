//! Figure 6 of the paper on end-to-end security (E2E): how long tunnels take to move to another
//! address of the same interface, and to another interface when theirs is lost.

use super::common::PAPER;
use super::moves::{
    Contender, FIRST, Kind, Passage, Protection, RENUMBERED, SECOND, Stage, Terms, Way, in_turn,
    quartiles,
};
use crate::experiment::{
    Basis, Claim, Column, Estimate, Filled, Finding, Grid, Plan, Raw, Row, Table, median_ratio,
};
use crate::plot::{Axis, Dot, Lines, Look, Plot, Series};
use crate::testbed::{find_binary, find_command};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "e2e-fig6",
    title: "How long a tunnel takes to move: MOBIKE of Strata and of strongSwan",
    claims: &[
        Claim {
            says: "The system takes 103.71 ms to begin a move to another address, and 44.48 ms \
                   more where an interface is lost.",
            judged_by: &["mobility, *: T_SYS", "multihoming, *: T_SYS"],
        },
        Claim {
            says: "The exchange with UPDATE_SA_ADDRESSES takes 13.60 ms.",
            judged_by: &["multihoming, *: T_UPDATE"],
        },
        Claim {
            says: "The return routability check takes 66.011 ms.",
            judged_by: &["multihoming, *: T_RRC"],
        },
        Claim {
            says: "Traffic is stalled for 289.318 ms by a move to another address, and for \
                   305.9345 ms where an interface is lost.",
            judged_by: &["mobility, *: T_STALLED", "multihoming, *: T_STALLED"],
        },
        Claim {
            says: "Hard hand-overs always stall traffic, however they are optimised.",
            judged_by: &["multihoming, *: lost, to the node"],
        },
    ],
    setting: "The paper's times are those of strongSwan 4.3 in the kernel, between hosts with a \
              round trip of 0.355 ms; for 15 ms it adds one round trip to T_STALLED of mobility, \
              and two to that of multihoming. Here a mobile node has two wires to a router, and \
              behind it, at this round trip, is a gateway. Both ends are Strata or both are \
              strongSwan of Debian with ESP in user space, in turns on the same wires. Multihoming \
              is the loss of the interface in use while the other is up; mobility is another \
              address in another subnet on the only interface, whose old address is removed \
              first. A datagram of 64 octets is sent each millisecond each way. The kernel's \
              packet sockets at both ends have the times of all packets, and another subscriber \
              to netlink that of the change. T_SYS is from the change to the first packet from the \
              new address, first ESP to the first one that carries traffic, T_UPDATE and T_RRC \
              from the first request to the first response, T_STALLED the longest silence of \
              traffic that has come out of the tunnel, and lost the datagrams that never did. \
              Strata's gateway checks an address that it was told of, as it does not send to one \
              unchecked; strongSwan's mobile node checks it before it tells the gateway, as its \
              log says, and then rekeys, as its ESP in user space cannot give an SA another \
              address. Until then it sends from the old address on the other wire, which this \
              router passes and others would drop. The paper's T_STALLED is that of a download. \
              Each move is one of several between two places, and no way back is preferred.",
    duration: |quick| {
        let plan = if quick { Plan::QUICK } else { Plan::FULL };
        let stages = (distances(quick).len() * Contender::ALL.len()) as u32 * plan.seeds as u32;
        (START + MOVE * (2 * moves(quick)) as u32) * stages
    },
    rests_on: &[Basis::Mobike],
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

/// Moves of each kind with each tunnel, an even number.
const fn moves(quick: bool) -> usize {
    if quick { 2 } else { 6 }
}

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

/// Time after which the first packet of traffic leaves at the latest, beyond a round trip.
const REACTION: Duration = Duration::from_millis(5);

/// Ratio of strongSwan's reaction to ours: Strata takes at most a fifth.
const FIFTH: f64 = 5.0;

/// Quantities of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    System,
    First,
    Update,
    Check,
    StalledTo,
    StalledFrom,
    LostTo,
    LostFrom,
}

impl Quantity {
    const ALL: [Self; 8] = [
        Self::System,
        Self::First,
        Self::Update,
        Self::Check,
        Self::StalledTo,
        Self::StalledFrom,
        Self::LostTo,
        Self::LostFrom,
    ];

    /// Those that the paper has too.
    const PRINTED: [Self; 4] = [Self::System, Self::Update, Self::Check, Self::StalledTo];

    const fn name(self) -> &'static str {
        match self {
            Self::System => "T_SYS",
            Self::First => "first ESP",
            Self::Update => "T_UPDATE",
            Self::Check => "T_RRC",
            Self::StalledTo => "T_STALLED",
            Self::StalledFrom => "T_STALLED from the node",
            Self::LostTo => "lost, to the node",
            Self::LostFrom => "lost, from the node",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::LostTo | Self::LostFrom => "datagrams",
            _ => "us",
        }
    }

    /// Returns its value in a move, in microseconds if it is a time.
    const fn of(self, passage: &Passage) -> Option<f64> {
        match self {
            Self::System => passage.system,
            Self::First => passage.first,
            Self::Update => passage.update,
            Self::Check => passage.check,
            Self::StalledTo => passage.stalled[0],
            Self::StalledFrom => passage.stalled[1],
            Self::LostTo => passage.lost[0],
            Self::LostFrom => passage.lost[1],
        }
    }

    /// Returns the time of the paper in milliseconds. At a hot spot it has no others than those of
    /// the system and those that it computes.
    fn paper(self, kind: Kind, round_trip: Duration) -> Option<f64> {
        let is_near = round_trip == NEAR;
        match (self, kind) {
            (Self::System, Kind::Mobility) => Some(103.71),
            (Self::System, Kind::Multihoming) => Some(148.19),
            (Self::Update, _) => is_near.then_some(13.60),
            (Self::Check, Kind::Multihoming) => is_near.then_some(66.011),
            (Self::StalledTo, Kind::Mobility) => Some(if is_near { 289.318 } else { 303.96 }),
            (Self::StalledTo, Kind::Multihoming) => Some(if is_near { 305.9345 } else { 335.234 }),
            _ => None,
        }
    }
}

/// Moves of one kind, at one distance.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cell {
    kind: Kind,
    round_trip: Duration,
    strata: Vec<Passage>,
    strongswan: Vec<Passage>,
}

fn empty(round_trips: &[Duration]) -> Vec<Cell> {
    let cell = |round_trip| {
        Kind::ALL.map(|kind| Cell {
            kind,
            round_trip,
            strata: Vec::new(),
            strongswan: Vec::new(),
        })
    };
    round_trips.iter().copied().flat_map(cell).collect()
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
        for round_trip in distances(plan.quick) {
            for contender in Contender::ALL {
                let note = |kind, passage| {
                    let mut cells = cells.iter_mut();
                    let its =
                        |cell: &&mut Cell| (cell.kind, cell.round_trip) == (kind, *round_trip);
                    let moves = cells.find(its).map(|cell| cell.moves_mut(contender));
                    moves.into_iter().for_each(|moves| moves.push(passage));
                };
                let terms = Terms {
                    contender,
                    protection: Protection::EspTunnel,
                    round_trip: *round_trip,
                    recorded: Duration::ZERO,
                    more: if plan.mobike {
                        ""
                    } else {
                        "mobike = \"off\"\n"
                    },
                };
                let travelled = travel(terms, plan, note);
                let name = || format!("{}, {}, run {seed}", contender.name(), far(*round_trip));
                let fault = travelled.with_context(name).err();
                faults.extend(fault.map(|why| format!("{why:#}")));
            }
        }
    }
    Raw::new(&cells, faults)
}

/// Makes this many moves of each kind, an even number: the tunnel ends where it began. Without
/// MOBIKE, where a move takes a quarter of a minute, it makes one.
fn travel(terms: Terms, plan: &Plan, mut note: impl FnMut(Kind, Passage)) -> Result<()> {
    let mut stage = Stage::new(terms)?;
    if !plan.mobike {
        note(
            Kind::Multihoming,
            stage.hand_over(Way::Lost, FIRST, SECOND)?,
        );
        return Ok(());
    }
    let moves = moves(plan.quick);
    for number in 0..moves {
        let (from, to) = in_turn(number, FIRST, SECOND);
        note(Kind::Multihoming, stage.hand_over(Way::Lost, from, to)?);
    }
    stage.take_down(SECOND)?;
    for number in 0..moves {
        let (from, to) = in_turn(number, FIRST, RENUMBERED);
        note(Kind::Mobility, stage.renumber(from, to)?);
    }
    Ok(())
}

/// Returns a round trip in words.
fn far(round_trip: Duration) -> String {
    format!("{} ms a round trip", round_trip.as_secs_f64() * 1e3)
}

impl Cell {
    const fn moves_mut(&mut self, contender: Contender) -> &mut Vec<Passage> {
        match contender {
            Contender::Strata => &mut self.strata,
            Contender::Strongswan => &mut self.strongswan,
        }
    }

    fn name(&self) -> String {
        format!("{}, {}", self.kind.name(), far(self.round_trip))
    }

    /// Returns all values of a quantity.
    fn values(&self, contender: Contender, quantity: Quantity) -> Vec<f64> {
        let moves = match contender {
            Contender::Strata => &self.strata,
            Contender::Strongswan => &self.strongswan,
        };
        moves.iter().filter_map(|one| quantity.of(one)).collect()
    }

    fn paper(&self, quantity: Quantity) -> Option<f64> {
        quantity.paper(self.kind, self.round_trip)
    }

    fn rows(&self) -> Vec<Row> {
        let subject = |quantity: Quantity| {
            format!("{}: {}, {}", self.name(), quantity.name(), quantity.unit())
        };
        let row = |quantity, name: &str, count: Option<i64>, values: [Option<f64>; 4]| Row {
            subject: subject(quantity),
            name: name.to_owned(),
            numbers: [count]
                .into_iter()
                .chain(values.map(|value| value.map(|value| value.round() as i64)))
                .collect(),
        };
        let rows = |quantity| {
            let printed = self.paper(quantity).map(|ms| {
                let values = [None, Some(ms * 1e3), None, None];
                row(quantity, "the paper", None, values)
            });
            let measured = Contender::ALL.map(|contender| {
                let values = self.values(contender, quantity);
                let count = values.len() as i64;
                row(quantity, contender.name(), Some(count), quartiles(values))
            });
            printed.into_iter().chain(measured)
        };
        Quantity::ALL.into_iter().flat_map(rows).collect()
    }

    /// Claims how Strata reacts.
    fn judged(&self) -> Vec<Finding> {
        let bound = match self.kind {
            Kind::Mobility => 1.0,
            Kind::Multihoming => FIFTH,
        };
        let name = self.name();
        let over = |quantity: Quantity, bound: f64| {
            let [ours, theirs] = Contender::ALL.map(|one| self.values(one, quantity));
            let pairs: Vec<_> = theirs.into_iter().zip(ours).collect();
            let what = format!("{name}: {}, strongSwan over Strata", quantity.name());
            Finding::at_least(what, bound, median_ratio(&pairs))
        };
        vec![
            over(Quantity::System, bound),
            over(Quantity::First, bound),
            over(Quantity::StalledTo, 1.0),
            self.prompt(),
        ]
    }

    /// Claims that traffic leaves from the new address within a round trip and 5 ms.
    fn prompt(&self) -> Finding {
        let allowed = (self.round_trip + REACTION).as_secs_f64() * 1e6;
        let times = self.values(Contender::Strata, Quantity::First);
        let [_, _, _, longest] = quartiles(times.clone());
        let pairs: Vec<_> = times.into_iter().map(|time| (allowed, time)).collect();
        let what = format!(
            "{}: a round trip and 5 ms over Strata's first ESP",
            self.name()
        );
        let finding = Finding::at_least(what, 1.0, median_ratio(&pairs));
        match longest {
            Some(longest) => finding.detail(format!("{:.1} ms at the longest", longest / 1e3)),
            None => finding,
        }
    }

    /// Shows the medians beside the paper's.
    fn beside(&self) -> Vec<Finding> {
        let shown = |contender: Contender, quantity: Quantity| {
            let paper = self.paper(quantity)?;
            let what = format!(
                "{}, {}, {}: {}",
                self.kind.name(),
                far(self.round_trip),
                contender.name(),
                quantity.name()
            );
            let middle = middle(self.values(contender, quantity), 1e3);
            Some(Finding::quantity(what, "ms", paper, middle))
        };
        let both = |quantity| Contender::ALL.map(|contender| shown(contender, quantity));
        let all = Quantity::PRINTED.into_iter().flat_map(both);
        all.flatten().chain([self.loses()]).collect()
    }

    /// Claims that a hard hand-over loses datagrams, or nothing was stalled.
    fn loses(&self) -> Finding {
        let what = format!("{}, Strata: lost, to the node", self.name());
        let values = self.values(Contender::Strata, Quantity::LostTo);
        Finding::at_least(what, 1.0, middle(values, 1.0))
    }

    /// Plots the quartiles.
    fn plot(&self) -> Plot {
        let shown = [
            Quantity::System,
            Quantity::First,
            Quantity::Update,
            Quantity::Check,
            Quantity::StalledTo,
        ];
        let measured = Contender::ALL.map(|contender| Series {
            name: contender.name().to_owned(),
            colour: contender.colour(),
            look: Look::Marked,
            dots: dots(&shown, |quantity| {
                let [first, median, third, _] = quartiles(self.values(contender, quantity));
                Some((median?, Some([first?, third?])))
            }),
        });
        let paper = Series {
            name: "paper".to_owned(),
            colour: PAPER,
            look: Look::Diamonds,
            dots: dots(&shown, |quantity| Some((self.paper(quantity)? * 1e3, None))),
        };
        let series: Vec<_> = measured.into_iter().chain([paper]).collect();
        let tops = series.iter().flat_map(|series| &series.dots);
        let tops: Vec<_> = tops
            .map(|dot| dot.interval.map_or(dot.y, |[_, third]| third))
            .collect();
        let lines = Lines {
            title: format!("{}; bars are quartiles", self.name()),
            x: Axis::of_names("", shown.map(|one| one.name().to_owned()).into()),
            y: Axis::from_zero("ms", tops),
            series,
        };
        let micros = self.round_trip.as_micros();
        Plot::lines(format!("{}-{micros}us", self.kind.name()), lines)
    }
}

/// Returns the dots of values and quartiles in microseconds, in milliseconds.
fn dots(
    shown: &[Quantity],
    value: impl Fn(Quantity) -> Option<(f64, Option<[f64; 2]>)>,
) -> Vec<Dot> {
    let dot = |(place, quantity): (usize, &Quantity)| {
        let (value, quartiles) = value(*quantity)?;
        Some(Dot {
            x: place as f64,
            y: value / 1e3,
            interval: quartiles.map(|ends| ends.map(|end| end / 1e3)),
        })
    };
    shown.iter().enumerate().filter_map(dot).collect()
}

/// Returns the median of values, each divided by `unit`.
fn middle(values: Vec<f64>, unit: f64) -> Option<Estimate> {
    let pairs: Vec<_> = values.into_iter().map(|value| (value, unit)).collect();
    median_ratio(&pairs)
}

fn judged(cells: &[Cell]) -> Filled {
    let quartiles = ["first", "median", "third"].map(|name| Column::new("quartile", name));
    let columns = [Column::new("", "moves")].into_iter().chain(quartiles);
    let findings = cells.iter().map(Cell::judged);
    let beside = cells.iter().map(Cell::beside);
    Filled {
        grid: Grid {
            columns: columns.chain([Column::new("", "longest")]).collect(),
            rows: cells.iter().flat_map(Cell::rows).collect(),
        },
        findings: findings.chain(beside).flatten().collect(),
        faults: Vec::new(),
        plots: cells.iter().map(Cell::plot).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    /// Returns moves in which Strata reacts after this many milliseconds and strongSwan after 110.
    fn made(reaction: f64) -> Vec<Cell> {
        let passage = |reaction: f64| {
            let micros = reaction * 1e3;
            Passage {
                system: Some(micros),
                first: Some(micros),
                update: Some(16_000.0),
                check: Some(16_000.0),
                stalled: [Some(micros + 40_000.0); 2],
                lost: [Some(reaction + 40.0), Some(reaction)],
            }
        };
        let mut cells = empty(distances(true));
        for cell in &mut cells {
            cell.strata = vec![passage(reaction); 3];
            cell.strongswan = vec![passage(110.0); 3];
        }
        cells
    }

    /// Returns the verdicts about reactions: of a move to another address, and of a lost interface.
    fn verdicts(cells: &[Cell]) -> [Vec<Verdict>; 2] {
        let verdicts = |cell: &Cell| {
            let findings = cell.judged();
            findings.iter().map(|one| one.verdict).collect()
        };
        [verdicts(&cells[0]), verdicts(&cells[1])]
    }

    #[test]
    fn a_reaction_within_a_round_trip_and_a_fifth_of_strongswans_holds() {
        let cells = made(3.0);
        assert_eq!(verdicts(&cells), [vec![Holds; 4], vec![Holds; 4]]);
        let beside = cells[1].beside();
        let verdicts: Vec<_> = beside.iter().map(|one| one.verdict).collect();
        assert_eq!(
            verdicts,
            [Consistent, Consistent, Consistent, Consistent, Holds]
        );
    }

    #[test]
    fn a_reaction_that_takes_longer_fails() {
        let expected = [
            vec![Holds, Holds, Holds, Fails],
            vec![Fails, Fails, Holds, Fails],
        ];
        assert_eq!(verdicts(&made(30.0)), expected);
    }

    /// So it is without MOBIKE: silence is found after seconds.
    #[test]
    fn a_tunnel_that_is_set_up_again_fails() {
        assert_eq!(verdicts(&made(3000.0)), [vec![Fails; 4], vec![Fails; 4]]);
    }

    #[test]
    fn what_was_not_measured_fails() {
        let findings = judged(&complete(Vec::new())).findings;
        assert!(findings.iter().all(|one| one.verdict == Fails));
    }

    #[test]
    fn each_quantity_has_a_row_for_each_contender_and_for_the_paper() {
        let cells = made(3.0);
        let rows = cells[1].rows();
        assert_eq!(rows.len(), 2 + 2 * Quantity::ALL.len());
        let paper = [None, None, Some(148_190), None, None];
        assert_eq!(
            (&*rows[0].name, &rows[0].numbers[..]),
            ("the paper", &paper[..])
        );
        let ours = [3, 3000, 3000, 3000, 3000].map(Some);
        assert_eq!(
            (&*rows[1].name, &rows[1].numbers[..]),
            ("Strata", &ours[..])
        );
    }
}
