//! Table 3 of "CZML-IPSec for satellite IP networks": the cost of sealing a packet of two zones,
//! over the lengths of both.

mod paper;

use super::common::PAPER;
use super::cost::readable;
use super::cycles::{
    Cost, HEADERS, ZONES, check, dot, estimate, is_straight, slope, straightness, whole,
};
use crate::bare::{Calls, Ends, Legacy, Node, segment};
use crate::experiment::{
    Basis, Claim, Column, Estimate, Filled, Finding, Grid, Plan, Raw, Row, Table,
};
use crate::plot::{Axis, Lines, Look, Plot, Series};
use anyhow::Result;
use paper::{LINKS, PAGE};
use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "czml-table3",
    title: "Cycles of sealing a packet in two zones, over the lengths of both",
    claims: &[
        Claim {
            says: "A packet takes at most 64.5 cycles for each octet.",
            judged_by: &["cycles for each octet of a packet, the most of all lengths"],
        },
        Claim {
            says: "So each Mb/s takes a clock of 8.225 MHz (64.5 / 8 is 8.06).",
            judged_by: &["clock for each Mb/s"],
        },
        Claim {
            says: "Each octet costs the same.",
            judged_by: &[
                "the first zone: *",
                "the second zone: *",
                "a packet of m = n = 256 and what its zones cost each, the smaller over the larger",
            ],
        },
        Claim {
            says: "An octet in the first zone costs a little more than one in the second.",
            judged_by: &["an octet in the first zone over one in the second"],
        },
    ],
    setting: "A datagram has 40 octets of headers, m of object links and n of page information. \
              Headers and links are in a zone of RC5-CBC and HMAC-MD5, the page in one of \
              Rijndael-CBC and HMAC-MD5. The paper recommends 12 MHz for each Mb/s. The worker \
              that stratad runs seals batches of 64 datagrams in memory in two zones, with \
              policies and counters, and with these algorithms of RustCrypto in place of ours; \
              beside it their calls are made alone. All in turns, in counts of the time stamp \
              counter for one packet, the median of the rounds; the paper reads the same counter, \
              which here counts at one rate whatever that of the processor is. A packet is of UDP, \
              and behind its header 12 + m octets are in the first zone, so that it has 40 + m as \
              in the paper, whose prototype is told m as well: no zone of ours that peers can \
              agree on has links. Ours does more for a packet: the ICV of the second zone covers \
              the first as well, as it was sent, and with n = 0 the second is there nevertheless.",
    duration: |quick| ROUND * rounds(quick),
    rests_on: &[Basis::Zones],
    check,
    measure: |plan| Raw::from_result(measure(plan)),
    judge: |raw| Ok(judged(&raw.data::<Vec<_>>()?)),
};

/// Duration of a round, estimated generously.
const ROUND: Duration = Duration::from_millis(150);

const fn rounds(quick: bool) -> u32 {
    if quick { 20 } else { 200 }
}

/// Packets with these octets of links and of page information.
#[derive(Serialize, Deserialize)]
struct Cell {
    links: usize,
    page: usize,
    cost: Cost,
    /// Number of packets whose first zone a licensed node reads.
    read: usize,
    all: usize,
}

fn judged(cells: &[Cell]) -> Filled {
    Filled {
        grid: matrices(cells),
        findings: findings(cells),
        faults: Vec::new(),
        plots: vec![
            plot(cells, "links", [0, 256], |links, page| (links, page)),
            plot(cells, "page", [20, 256], |page, links| (links, page)),
        ],
    }
}

/// Returns one matrix after the other, with a row for each length of page information and a column
/// for each of links.
fn matrices(cells: &[Cell]) -> Grid {
    type Value = fn(&Cell) -> Option<f64>;
    let all: [(&str, Value); 4] = [
        ("cycles of a packet in the paper", |cell| {
            paper::cycles(cell.links, cell.page)
        }),
        ("here, the median", |cell| cell.cost.cycles()),
        ("here, the longest round", |cell| cell.cost.longest()),
        ("calls of the algorithms alone", |cell| cell.cost.calls()),
    ];
    let number = |value: Value, links, page| {
        let mut cells = cells.iter();
        whole(value(
            cells.find(|cell| (cell.links, cell.page) == (links, page))?,
        ))
    };
    let mut rows = Vec::new();
    for (subject, value) in all {
        rows.extend(PAGE.map(|page| Row {
            subject: subject.to_owned(),
            name: format!("n={page}"),
            numbers: LINKS.map(|links| number(value, links, page)).into(),
        }));
    }
    Grid {
        columns: LINKS
            .map(|links| Column::new("octets of links", &format!("m={links}")))
            .into(),
        rows,
    }
}

fn measure(plan: &Plan) -> Result<Vec<Cell>> {
    let mut benches = Vec::new();
    for page in PAGE {
        for links in LINKS {
            if paper::cycles(links, page).is_some() {
                benches.push(Bench::new(links, page, plan.zones)?);
            }
        }
    }
    for _ in 0..rounds(plan.quick) {
        benches.iter_mut().try_for_each(Bench::round)?;
    }
    Ok(benches.into_iter().map(|bench| bench.cell).collect())
}

/// A cell during its measurement.
struct Bench {
    ends: Ends,
    calls: Calls,
    node: Node,
    datagrams: Vec<Vec<u8>>,
    cell: Cell,
}

impl Bench {
    fn new(links: usize, page: usize, zones: bool) -> Result<Self> {
        let first = HEADERS + links;
        let two = Legacy::new(&ZONES, first);
        let one = Legacy::new(&ZONES[1..], 0);
        let (legacy, lengths) = match zones {
            true => (&two, vec![first, page]),
            false => (&one, vec![first + page]),
        };
        Ok(Self {
            ends: Ends::with_legacy(legacy)?,
            calls: legacy.calls(&lengths),
            node: Node::with_legacy(&two)?,
            datagrams: segment::datagrams(first + page),
            cell: Cell {
                links,
                page,
                cost: Cost::default(),
                read: 0,
                all: 0,
            },
        })
    }

    fn round(&mut self) -> Result<()> {
        let alone = self.calls.sealing()?;
        let carried = self.ends.carry_in_cycles(&self.datagrams)?;
        self.cell.cost.push(carried.sealing, alone);
        self.cell.all += carried.sealed.len();
        self.cell.read += self.node.open(&carried.sealed)?.1;
        Ok(())
    }
}

impl Cell {
    /// Returns the cycles for each octet of the datagram.
    fn each(&self) -> Option<f64> {
        Some(self.cost.cycles()? / (HEADERS + self.links + self.page) as f64)
    }
}

/// Returns the cycles of a packet with these lengths.
type Cycles<'c> = &'c dyn Fn(usize, usize) -> Option<f64>;

fn findings(cells: &[Cell]) -> Vec<Finding> {
    let runs = cells.first().map_or(0, |cell| cell.cost.all.len());
    let here: Cycles<'_> = &|links, page| cost(cells, links, page)?.cycles();
    let there: Cycles<'_> = &paper::cycles;
    let digits = |ratio: Option<f64>| ratio.map_or(0.0, |ratio| (ratio * 100.0).round() / 100.0);
    let told = |finding: Finding, of: fn(Cycles<'_>) -> Option<f64>| {
        finding.paper(digits(of(there)).to_string())
    };
    let [read, all] = [|cell: &Cell| cell.read, |cell: &Cell| cell.all]
        .map(|count| cells.iter().map(count).sum::<usize>());
    let dearer = "an octet in the first zone over one in the second";
    vec![
        told(
            is_straight("the first zone", along_links(here), runs),
            along_links,
        ),
        told(
            is_straight("the second zone", along_page(here), runs),
            along_page,
        ),
        told(
            Finding::at_least(
                "a packet of m = n = 256 and what its zones cost each, the smaller over the larger",
                0.8,
                estimate(sum(here), runs),
            ),
            sum,
        ),
        Finding::compared(dearer, digits(zones(there)), estimate(zones(here), runs)),
        Finding::quantity(
            "cycles for each octet of a packet, the most of all lengths",
            "cycles",
            paper::EACH,
            most(cells, runs),
        ),
        Finding::quantity(
            "clock for each Mb/s",
            "MHz",
            paper::CLOCK,
            most(cells, runs).map(|most| Estimate {
                value: most.value / 8.0,
                ..most
            }),
        ),
        readable(read, all),
    ]
}

/// Returns the most cycles for an octet.
fn most(cells: &[Cell], runs: usize) -> Option<Estimate> {
    let each = cells.iter().filter_map(Cell::each);
    estimate(each.max_by(f64::total_cmp), runs)
}

fn along_links(cycles: Cycles<'_>) -> Option<f64> {
    straightness([20, 512, 1024].map(|links| (links, cycles(links, 0))))
}

fn along_page(cycles: Cycles<'_>) -> Option<f64> {
    straightness([20, 512, 1024].map(|page| (page, cycles(20, page))))
}

/// Returns the ratio by which the costs of both zones add up.
fn sum(cycles: Cycles<'_>) -> Option<f64> {
    let together = cycles(256, 256)?;
    let each = cycles(256, 20)? + cycles(20, 256)? - cycles(20, 20)?;
    Some(together.min(each) / together.max(each))
}

fn zones(cycles: Cycles<'_>) -> Option<f64> {
    let ends = [20, 1024];
    let first = slope(ends.map(|links| (links, cycles(links, 20))))?;
    let second = slope(ends.map(|page| (page, cycles(20, page))))?;
    (second > 0.0).then(|| first / second)
}

fn cost(cells: &[Cell], links: usize, page: usize) -> Option<&Cost> {
    let mut cells = cells.iter();
    let cell = cells.find(|cell| (cell.links, cell.page) == (links, page));
    cell.map(|cell| &cell.cost)
}

/// Plots cycles over one length, for two values of the other. `of` orders the two lengths as links
/// and page.
fn plot(
    cells: &[Cell],
    along: &str,
    others: [usize; 2],
    of: fn(usize, usize) -> (usize, usize),
) -> Plot {
    let other = if along == "links" { "n" } else { "m" };
    let colours = [RGBColor(0, 140, 100), RGBColor(190, 85, 140)];
    let mut series = Vec::new();
    for (fixed, colour) in others.into_iter().zip(colours) {
        let dots = LINKS.iter().filter_map(|&octets| {
            let (links, page) = of(octets, fixed);
            cost(cells, links, page)?.dot(octets)
        });
        series.push(Series {
            name: format!("{other} = {fixed}"),
            colour,
            look: Look::Marked,
            dots: dots.collect(),
        });
    }
    let printed = LINKS.iter().filter_map(|&octets| {
        let (links, page) = of(octets, others[0]);
        dot(octets, paper::cycles(links, page)?)
    });
    series.push(Series {
        name: format!("paper, {other} = {}", others[0]),
        colour: PAPER,
        look: Look::Diamonds,
        dots: printed.collect(),
    });
    let tops = series.iter().flat_map(|series| &series.dots);
    let tops: Vec<_> = tops.map(|dot| dot.y).collect();
    let lines = Lines {
        title: format!("What sealing two zones costs, over the octets of {along}"),
        x: Axis::from_zero(format!("octets of {along}"), [1024.0]),
        y: Axis::from_zero("cycles", tops),
        series,
    };
    Plot::lines(format!("cycles-{along}"), lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    fn made(cycles: impl Fn(usize, usize) -> f64, read: usize) -> Vec<Cell> {
        let all = PAGE
            .iter()
            .flat_map(|page| LINKS.map(|links| (links, *page)));
        let cell = |(links, page)| {
            let all = vec![cycles(links, page); 3];
            let alone = vec![1.0; 3];
            paper::cycles(links, page).map(|_| Cell {
                links,
                page,
                cost: Cost { all, alone },
                read,
                all: 192,
            })
        };
        all.filter_map(cell).collect()
    }

    fn verdicts(cells: &[Cell]) -> Vec<Verdict> {
        let findings = findings(cells);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    const GOOD: [Verdict; 7] = [
        Holds, Holds, Holds, Consistent, Consistent, Consistent, Holds,
    ];

    #[test]
    fn what_the_paper_measured_holds() {
        let paper = |links, page| paper::cycles(links, page).unwrap_or_default();
        let cells = made(paper, 192);
        assert_eq!(verdicts(&cells), GOOD);
        let findings = findings(&cells);
        let contradictions = findings.iter().filter_map(Finding::contradiction);
        assert_eq!(contradictions.count(), 0, "{findings:?}");
    }

    #[test]
    fn zones_that_cost_more_together_than_each_fail() {
        let squared = |links: usize, page: usize| (100 * (links + page) + links * page) as f64;
        assert_eq!(verdicts(&made(squared, 192))[2], Fails);
    }

    #[test]
    fn a_first_zone_that_is_cheaper_than_the_second_fails() {
        let reversed = |links: usize, page: usize| (1000 + 10 * links + 20 * page) as f64;
        assert_eq!(verdicts(&made(reversed, 192))[3], Fails);
    }

    #[test]
    fn packets_that_are_in_no_zones_fail() {
        let one = |links: usize, page: usize| (1000 + 10 * (links + page)) as f64;
        let verdicts = verdicts(&made(one, 0));
        assert_eq!(verdicts[..4], [Holds, Holds, Holds, Fails]);
        assert_eq!(verdicts[6], Fails);
    }

    #[test]
    fn the_grid_has_a_matrix_of_8_rows_and_7_columns_for_each_quantity() {
        let paper = |links, page| paper::cycles(links, page).unwrap_or_default();
        let grid = matrices(&made(paper, 192));
        let [printed, here] = [0, 1].map(|at| &grid.rows[8 * at..8 * at + 8]);
        assert_eq!((grid.columns.len(), grid.rows.len()), (7, 32));
        for (printed, here) in printed.iter().zip(here) {
            assert_eq!(printed.numbers, here.numbers);
        }
        assert_eq!(printed[1].numbers[0], Some(5117));
        assert_eq!(printed[7].numbers[6], None);
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert_eq!(verdicts(&[]), [Fails; 7]);
    }
}
