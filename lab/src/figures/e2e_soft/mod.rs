//! Section VI of the paper on end-to-end security (E2E): hard hand-overs beside soft ones, which
//! the paper expects to interrupt nothing and does not measure.

use super::common::PAPER;
use super::moves::{
    Contender, Curve, FIRST, Passage, Protection, SECOND, Stage, Terms, Way, in_turn, quartiles,
};
use crate::experiment::{
    Basis, Claim, Column, Estimate, Filled, Finding, Grid, Plan, Raw, Row, Table, median_ratio,
};
use crate::plot::{Axis, Dot, Lines, Look, Plot, Series};
use crate::testbed::find_binary;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "e2e-soft",
    title: "What hand-overs lose: hard ones, and soft ones by a clone of the IKE SA",
    claims: &[
        Claim {
            says: "A hard hand-over stalls traffic for 300 ms.",
            judged_by: &["hard: silence, to the node"],
        },
        Claim {
            says: "So does the loss of an interface.",
            judged_by: &["lost: silence, to the node"],
        },
        Claim {
            says: "A soft hand-over is expected to interrupt nothing and to lose no packet.",
            judged_by: &[
                "soft: moves that lose no datagram, over all",
                "silence of datagrams to the node: hard over soft",
                "silence of the download: hard over soft",
            ],
        },
    ],
    setting: "The paper has no soft hand-overs, for which it needs MOBIKE-X; these are by a clone \
              of the IKE SA (RFC 7791). A mobile node with stratad has two wires to a router, and \
              a gateway 15 ms a round trip behind it. In all three ways the interface in use goes \
              down: without a warning (lost), right after `strata move` (hard), or when `strata \
              move --soft` has replaced the IKE SA and its tunnel on the other interface (soft). A \
              datagram of 64 octets is sent each millisecond each way, and a TCP download runs \
              beside them whose reader takes 32 KiB at once. Lost are the datagrams that never \
              came out of the tunnel, by the kernel's packet sockets at both ends. A silence is \
              the longest time without a datagram, or without an octet of the download, that ends \
              after the move was begun, in microseconds, with whatever the machine was late.",
    duration: |quick| {
        let plan = if quick { Plan::QUICK } else { Plan::FULL };
        (START + MOVE * moves(quick) as u32) * (Way::ALL.len() as u32 * plan.seeds as u32)
    },
    rests_on: &[Basis::Clones],
    check: || {
        find_binary("strata")?;
        find_binary("stratad").map(drop)
    },
    measure,
    judge: |raw| Ok(judged(&complete(raw.data()?))),
};

/// Durations of hosts and daemons, and of a move with the silence of IKE before and after it.
const START: Duration = Duration::from_secs(3);
const MOVE: Duration = Duration::from_millis(1500);

/// Hand-overs with each tunnel.
const fn moves(quick: bool) -> usize {
    if quick { 2 } else { 6 }
}

/// Round trip of the paper's public hot spot.
const ROUND_TRIP: Duration = Duration::from_millis(15);

/// Stalled traffic in the paper, in milliseconds.
const PAPER_STALLED: f64 = 300.0;

/// Ratio by which the silence of a hard hand-over must exceed that of a soft one, beyond the
/// machine's own delays.
const SHRINKS: f64 = 1.2;

/// Returns the hand-over that is made; without clones, none is soft.
const fn made_as(way: Way, clones: bool) -> Way {
    match way {
        Way::Soft if !clones => Way::Hard,
        _ => way,
    }
}

/// Hand-overs of one way.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cell {
    way: Way,
    moves: Vec<Passage>,
    /// Silences of the download, in microseconds.
    gaps: Vec<f64>,
    /// The download around the first hand-over.
    curve: Curve,
}

/// Adds the ways that were not measured.
fn complete(mut cells: Vec<Cell>) -> Vec<Cell> {
    for way in Way::ALL {
        if cells.iter().all(|cell| cell.way != way) {
            cells.push(Cell {
                way,
                moves: Vec::new(),
                gaps: Vec::new(),
                curve: Curve::default(),
            });
        }
    }
    cells
}

fn measure(plan: &Plan) -> Raw {
    let mut cells = complete(Vec::new());
    let mut faults = Vec::new();
    for seed in 1..=plan.seeds {
        for cell in &mut cells {
            let name = cell.way.name();
            let travelled = travel(cell, plan).with_context(|| format!("{name}, run {seed}"));
            faults.extend(travelled.err().map(|why| format!("{why:#}")));
        }
    }
    Raw::new(&cells, faults)
}

fn travel(cell: &mut Cell, plan: &Plan) -> Result<()> {
    let mut stage = Stage::new(Terms {
        contender: Contender::Strata,
        protection: Protection::EspTunnel,
        round_trip: ROUND_TRIP,
        recorded: Curve::AFTER,
        more: match (cell.way, plan.clones) {
            (Way::Soft, true) => "clone = true\n",
            _ => "",
        },
    })?;
    stage.start_download()?;
    for number in 0..moves(plan.quick) {
        let (from, to) = in_turn(number, FIRST, SECOND);
        cell.moves
            .push(stage.hand_over(made_as(cell.way, plan.clones), from, to)?);
        let curve = stage.curve().context("a download is under way")?;
        cell.gaps.extend(curve.gap);
        if cell.curve == Curve::default() {
            cell.curve = curve;
        }
    }
    Ok(())
}

/// Traffic of a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    To,
    From,
    Download,
}

impl Traffic {
    const ALL: [Self; 3] = [Self::To, Self::From, Self::Download];

    const fn name(self) -> &'static str {
        match self {
            Self::To => "datagrams to the node",
            Self::From => "datagrams from the node",
            Self::Download => "the download",
        }
    }
}

impl Cell {
    /// Returns the silences, in microseconds.
    fn silences(&self, traffic: Traffic) -> Vec<f64> {
        let of = |end: usize| self.moves.iter().filter_map(move |one| one.stalled[end]);
        match traffic {
            Traffic::To => of(0).collect(),
            Traffic::From => of(1).collect(),
            Traffic::Download => self.gaps.clone(),
        }
    }

    /// Returns the datagrams that were lost in each move.
    fn lost(&self, traffic: Traffic) -> Vec<f64> {
        let of = |end: usize| self.moves.iter().filter_map(move |one| one.lost[end]);
        match traffic {
            Traffic::To => of(0).collect(),
            Traffic::From => of(1).collect(),
            Traffic::Download => Vec::new(),
        }
    }

    fn row(&self, traffic: Traffic) -> Row {
        let (silences, lost) = (self.silences(traffic), self.lost(traffic));
        let moves = silences.len();
        let all = (!lost.is_empty()).then(|| lost.iter().sum::<f64>());
        let [_, _, _, most] = quartiles(lost);
        let [_, median, _, longest] = quartiles(silences);
        let numbers = [Some(moves as f64), all, most, median, longest];
        Row {
            subject: traffic.name().to_owned(),
            name: self.way.name().to_owned(),
            numbers: numbers
                .map(|number| number.map(|number| number.round() as i64))
                .into(),
        }
    }

    /// Claims that no move loses a datagram.
    fn loses_nothing(&self) -> Finding {
        let is_whole = |one: &&Passage| one.lost == [Some(0.0); 2];
        let (whole, all) = (self.moves.iter().filter(is_whole).count(), self.moves.len());
        let share = (all > 0).then(|| Estimate {
            value: whole as f64 / all as f64,
            interval: None,
            runs: all,
        });
        let what = format!("{}: moves that lose no datagram, over all", self.way.name());
        Finding::at_least(what, 1.0, share).detail(format!("{whole} of {all}"))
    }

    /// Claims that a move loses datagrams; otherwise there would be nothing to gain.
    fn loses(&self) -> Finding {
        let what = format!(
            "{}: datagrams to the node that a move loses",
            self.way.name()
        );
        Finding::at_least(what, 1.0, middle(self.lost(Traffic::To), 1.0))
    }

    /// Shows the silence beside the paper's.
    fn silence(&self) -> Finding {
        let what = format!("{}: silence, to the node", self.way.name());
        let middle = middle(self.silences(Traffic::To), 1e3);
        Finding::quantity(what, "ms", PAPER_STALLED, middle)
    }

    fn series(&self) -> Series {
        let dot = |(x, octets): (f64, u64)| Dot {
            x,
            y: octets as f64 / 1e3,
            interval: None,
        };
        Series {
            name: self.way.name().to_owned(),
            colour: self.way.colour(),
            look: Look::Thin,
            dots: self.curve.points().map(dot).collect(),
        }
    }
}

/// Returns the median of values, each divided by `unit`.
fn middle(values: Vec<f64>, unit: f64) -> Option<Estimate> {
    let pairs: Vec<_> = values.into_iter().map(|value| (value, unit)).collect();
    median_ratio(&pairs)
}

fn judged(cells: &[Cell]) -> Filled {
    let lost = ["all", "most"].map(|name| Column::new("lost", name));
    let silence = ["median", "longest"].map(|name| Column::new("silence us", name));
    let columns = [Column::new("", "moves")].into_iter().chain(lost);
    let rows = Traffic::ALL.into_iter();
    Filled {
        grid: Grid {
            columns: columns.chain(silence).collect(),
            rows: rows
                .flat_map(|traffic| cells.iter().map(move |cell| cell.row(traffic)))
                .collect(),
        },
        findings: findings(cells),
        faults: Vec::new(),
        plots: vec![plot(cells)],
    }
}

fn findings(cells: &[Cell]) -> Vec<Finding> {
    let of = |way: Way| cells.iter().find(move |cell| cell.way == way);
    let shrinks = |traffic: Traffic, bound: f64| {
        let silences = |way| of(way).map(|cell| cell.silences(traffic));
        let both = silences(Way::Hard).zip(silences(Way::Soft));
        let pairs = both
            .into_iter()
            .flat_map(|(hard, soft)| hard.into_iter().zip(soft));
        let what = format!("silence of {}: hard over soft", traffic.name());
        Finding::at_least(what, bound, median_ratio(&pairs.collect::<Vec<_>>()))
    };
    let hard = || [Way::Lost, Way::Hard].into_iter().filter_map(of);
    let soft = of(Way::Soft).map(Cell::loses_nothing);
    soft.into_iter()
        .chain([
            shrinks(Traffic::To, SHRINKS),
            shrinks(Traffic::Download, 1.0),
        ])
        .chain(hard().map(Cell::loses))
        .chain(hard().map(Cell::silence))
        .collect()
}

/// Plots the octets of the download over time.
fn plot(cells: &[Cell]) -> Plot {
    let series: Vec<_> = cells.iter().map(Cell::series).collect();
    let dots = || series.iter().flat_map(|series| &series.dots);
    let ends = dots().fold([0.0f64, 1.0], |[first, last], dot| {
        [first.min(dot.x), last.max(dot.x)]
    });
    let y = Axis::from_zero("kB", dots().map(|dot| dot.y).collect::<Vec<_>>());
    let begun = Series {
        name: "begun".to_owned(),
        colour: PAPER,
        look: Look::Thin,
        dots: [y.range.start, y.range.end / 2.0, y.range.end]
            .map(|y| Dot {
                x: 0.0,
                y,
                interval: None,
            })
            .into(),
    };
    let mut x = Axis::from_zero("ms since the hand-over was begun", [1.0]);
    x.range = ends[0]..ends[1];
    let lines = Lines {
        title: "A download during a hand-over".to_owned(),
        x,
        y,
        series: series.into_iter().chain([begun]).collect(),
    };
    Plot::lines("download", lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    /// Returns hand-overs of which soft ones lose this many datagrams, and are silent for that many
    /// milliseconds.
    fn made(lost: f64, silence: f64) -> Vec<Cell> {
        let cell = |way: Way| {
            let (lost, silence) = match way {
                Way::Lost | Way::Hard => (30.0, 32.0),
                Way::Soft => (lost, silence),
            };
            let passage = Passage {
                stalled: [Some(silence * 1e3); 2],
                lost: [Some(lost), Some(0.0)],
                ..Passage::default()
            };
            Cell {
                way,
                moves: vec![passage; 3],
                gaps: vec![silence * 10.0 * 1e3; 3],
                curve: Curve {
                    gap: None,
                    octets: vec![0, 10, 20],
                },
            }
        };
        Way::ALL.map(cell).into()
    }

    fn verdicts(cells: &[Cell]) -> Vec<Verdict> {
        let findings = judged(cells).findings;
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn soft_hand_overs_that_lose_nothing_hold() {
        let verdicts = verdicts(&made(0.0, 2.0));
        assert_eq!(verdicts[..5], [Holds; 5]);
        assert_eq!(verdicts[5..], [Consistent; 2]);
    }

    #[test]
    fn one_lost_datagram_fails() {
        let verdicts = verdicts(&made(1.0, 2.0));
        assert_eq!(verdicts[..3], [Fails, Holds, Holds]);
    }

    /// So it is without clones.
    #[test]
    fn hand_overs_that_are_all_hard_fail() {
        assert_eq!(verdicts(&made(30.0, 32.0))[..3], [Fails, Fails, Holds]);
        assert_eq!(made_as(Way::Soft, false), Way::Hard);
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert_eq!(verdicts(&complete(Vec::new())), [Fails; 7]);
    }

    #[test]
    fn each_way_has_a_row_for_all_traffic() {
        let rows = judged(&made(0.0, 2.0)).grid.rows;
        assert_eq!(rows.len(), 9);
        let hard = [3, 90, 30, 32_000, 32_000].map(Some);
        assert_eq!((&*rows[1].name, &rows[1].numbers[..]), ("hard", &hard[..]));
        let download = [Some(3), None, None, Some(20_000), Some(20_000)];
        assert_eq!(rows[8].numbers, download);
    }
}
