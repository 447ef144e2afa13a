//! Table 6 of "Mobile multi-layered IPsec": the time that an end works on a packet.

use super::cost::{in_percent, nanoseconds, readable, shape};
use crate::bare::{Ends, Node, Raw, Shape, segment};
use crate::experiment::{
    Basis, Claim, Column, Filled, Finding, Grid, Plan, Raw as Kept, Row, Table, median,
    median_ratio,
};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "mml-table6",
    title: "Time that an end works on a packet, and what a second zone adds",
    claims: &[
        Claim {
            says: "Sealing a packet of two zones takes 1.78 times as long as without the second \
                   zone.",
            judged_by: &["sealing 1380 octets: time in two zones over time in plain ESP"],
        },
        Claim {
            says: "Opening it takes 16 % more.",
            judged_by: &["opening 1380 octets: time in two zones over time in plain ESP"],
        },
        Claim {
            says: "Of sealing 88 % is cryptography, of opening it is 27 %.",
            judged_by: &[
                "sealing 1380 octets in two zones: share of cryptography",
                "opening 1380 octets in two zones: share of cryptography",
            ],
        },
    ],
    setting: "The worker that stratad runs seals and opens batches of 64 TCP segments in memory, \
              with replay window, policies and counters, plain and in two zones of AES-128-GCM; \
              the AEAD calls that a packet needs are timed beside it. All of it in turns, in \
              nanoseconds of processor time of one packet, the median of the rounds. A packet of \
              1380 octets takes 119,280 ns on the paper's Ethernet of 100 Mb/s, hundreds of times \
              as long as here, so that it judges nothing. The paper's machine and 3DES are not rebuilt; it does not \
              say how long its packets were, and its time without the second zone is computed as \
              there, by halving the cryptography: sealing takes 104 µs there, of which 91 are \
              cryptography, opening 44, of which 12 are, and one zone fewer would save 46 and 6. \
              Its packets take what 3DES takes; ours what a call takes, of which two zones have \
              two: so the ratio of both is larger here.",
    duration: |quick| ROUND * (2 * LENGTHS.len() as u32 * rounds(quick)),
    rests_on: &[Basis::Zones],
    check: || Ok(()),
    measure: measure_all,
    judge: |raw| Ok(judged(&raw.data::<Vec<_>>()?)),
};

/// Octets of the datagrams: a bare acknowledgement, two in between, and nearly the longest.
const LENGTHS: [usize; 4] = [40, 256, 576, 1380];
const LONGEST: usize = LENGTHS[LENGTHS.len() - 1];

/// Duration of a round, estimated generously.
const ROUND: Duration = Duration::from_micros(500);

const fn rounds(quick: bool) -> u32 {
    if quick { 200 } else { 2000 }
}

/// Times of the paper for two zones, in nanoseconds: total, and its cryptography.
const PAPER_SEALING: [i64; 2] = [104_000, 91_000];
const PAPER_OPENING: [i64; 2] = [44_000, 12_000];

/// Returns the time without the second zone, which saves half of the cryptography.
const fn of_one_zone([all, cryptography]: [i64; 2]) -> f64 {
    (all - cryptography / 2) as f64
}

/// Times of one round, in nanoseconds per packet.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Round {
    sealing: f64,
    opening: f64,
    /// Time of the AEAD calls for each.
    sealing_calls: f64,
    opening_calls: f64,
}

/// Selects one of these times.
type Time = fn(&Round) -> f64;

/// All rounds of one length, without zones and with them.
#[derive(Serialize, Deserialize)]
struct Cell {
    octets: usize,
    plain: Vec<Round>,
    zoned: Vec<Round>,
    /// Number of packets, among those that should be in zones, whose headers a licensed node reads.
    read: usize,
    all: usize,
}

fn measure_all(plan: &Plan) -> Kept {
    let mut faults = Vec::new();
    let cells = LENGTHS.iter().filter_map(|octets| {
        let cell = measure(*octets, plan);
        cell.map_err(|error| faults.push(format!("{octets} octets: {error:#}")))
            .ok()
    });
    let cells: Vec<_> = cells.collect();
    Kept::new(&cells, faults)
}

fn judged(cells: &[Cell]) -> Filled {
    Filled {
        grid: Grid {
            columns: columns(),
            rows: ["sealing", "opening"]
                .into_iter()
                .flat_map(|work| cells.iter().flat_map(move |cell| cell.rows(work)))
                .collect(),
        },
        findings: findings(cells),
        faults: Vec::new(),
        plots: Vec::new(),
    }
}

fn measure(octets: usize, plan: &Plan) -> Result<Cell> {
    let of = |shape| Ok::<_, anyhow::Error>((Ends::new(shape, 1)?, Raw::new(shape, &[octets])?));
    let (mut plain, mut zoned) = (of(Shape::Plain)?, of(shape(plan))?);
    let mut node = Node::new(Shape::Two)?;
    let mut cell = Cell {
        octets,
        plain: Vec::new(),
        zoned: Vec::new(),
        read: 0,
        all: 0,
    };
    for number in 0..rounds(plan.quick) {
        let datagrams = segment::row(octets, number);
        for ((ends, raw), times, in_zones) in [
            (&mut plain, &mut cell.plain, false),
            (&mut zoned, &mut cell.zoned, true),
        ] {
            let carried = ends.carry(&datagrams)?;
            let alone = raw.time()?;
            times.push(Round {
                sealing: nanoseconds(carried.sealing),
                opening: nanoseconds(carried.opening),
                sealing_calls: nanoseconds(alone.sealing),
                opening_calls: nanoseconds(alone.opening),
            });
            if in_zones {
                cell.all += carried.sealed.len();
                cell.read += node.open(&carried.sealed)?.1;
            }
        }
    }
    Ok(cell)
}

fn columns() -> Vec<Column> {
    let of = |group| ["all", "cryptography"].map(|name| Column::new(group, name));
    [Column::new("", "octets")]
        .into_iter()
        .chain(of("paper"))
        .chain(of("measured"))
        .chain([Column::new("longest", "all")])
        .collect()
}

impl Cell {
    fn rows(&self, work: &'static str) -> [Row; 2] {
        let row = |name: &str, rounds: &[Round], paper: Option<[i64; 2]>| {
            let [all, calls]: [Time; 2] = match work {
                "sealing" => [|round| round.sealing, |round| round.sealing_calls],
                _ => [|round| round.opening, |round| round.opening_calls],
            };
            let times = |of: Time| rounds.iter().map(of).collect::<Vec<_>>();
            let whole = |time: f64| time.round() as i64;
            let longest = times(all).into_iter().max_by(f64::total_cmp);
            Row {
                subject: format!("{work}, ns a packet"),
                name: name.to_owned(),
                numbers: vec![
                    Some(self.octets as i64),
                    paper.map(|paper| paper[0]),
                    paper.map(|paper| paper[1]),
                    median(&times(all)).map(whole),
                    median(&times(calls)).map(whole),
                    longest.map(whole),
                ],
            }
        };
        let paper = match work {
            "sealing" => PAPER_SEALING,
            _ => PAPER_OPENING,
        };
        // The paper does not give a length; most of a download's packets are long.
        let paper = (self.octets == LONGEST).then_some(paper);
        [
            row("plain", &self.plain, None),
            row("two zones", &self.zoned, paper),
        ]
    }
}

fn findings(cells: &[Cell]) -> Vec<Finding> {
    let long = cells.iter().find(|cell| cell.octets == LONGEST);
    let ratio = |above: Time, below: Time, zoned: bool| {
        let long = long?;
        let others = if zoned { &long.zoned } else { &long.plain };
        let pairs = long.zoned.iter().zip(others);
        let pairs: Vec<_> = pairs.map(|(a, b)| (above(a), below(b))).collect();
        median_ratio(&pairs)
    };
    let works: [(&str, _, [Time; 2]); 2] = [
        (
            "sealing",
            PAPER_SEALING,
            [|round| round.sealing, |round| round.sealing_calls],
        ),
        (
            "opening",
            PAPER_OPENING,
            [|round| round.opening, |round| round.opening_calls],
        ),
    ];
    let mut findings = Vec::new();
    for (work, paper, [all, calls]) in works {
        let what = format!("{work} {LONGEST} octets: time in two zones over time in plain ESP");
        let there = (paper[0] as f64 / of_one_zone(paper) * 100.0).round() / 100.0;
        findings.push(Finding::compared(what, there, ratio(all, all, false)));
        let what = format!("{work} {LONGEST} octets in two zones: share of cryptography");
        let there = (paper[1] as f64 / paper[0] as f64 * 100.0).round();
        let share = ratio(calls, all, true).map(in_percent);
        findings.push(Finding::quantity(what, "%", there, share));
    }
    let [read, all] = [|cell: &Cell| cell.read, |cell: &Cell| cell.all]
        .map(|count| cells.iter().map(count).sum::<usize>());
    findings.push(readable(read, all));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    fn round(sealing: f64, opening: f64) -> Round {
        Round {
            sealing,
            opening,
            sealing_calls: 50.0,
            opening_calls: 50.0,
        }
    }

    fn cell(zoned: Round, read: usize) -> Cell {
        Cell {
            octets: LONGEST,
            plain: vec![round(100.0, 100.0); 3],
            zoned: vec![zoned; 3],
            read,
            all: 192,
        }
    }

    fn verdicts(cell: Cell) -> Vec<Verdict> {
        let findings = findings(&[cell]);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn the_papers_share_of_an_extra_zone_is_46_and_6_microseconds() {
        assert_eq!(of_one_zone(PAPER_SEALING), 104_000.0 - 45_500.0);
        assert_eq!(of_one_zone(PAPER_OPENING), 44_000.0 - 6_000.0);
    }

    #[test]
    fn packets_that_the_node_cannot_read_fail() {
        let read = |read| verdicts(cell(round(130.0, 180.0), read));
        assert_eq!(
            read(192),
            [Consistent, Consistent, Consistent, Consistent, Holds]
        );
        assert_eq!(read(191)[4], Fails);
    }

    #[test]
    fn packets_that_are_in_no_zones_fail() {
        let plain = cell(round(99.0, 99.0), 0);
        assert_eq!(
            verdicts(plain),
            [Fails, Consistent, Fails, Consistent, Fails]
        );
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert!(findings(&[]).iter().all(|finding| finding.verdict == Fails));
    }
}
