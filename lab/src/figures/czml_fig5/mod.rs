//! Figure 5 of "CZML-IPSec for satellite IP networks": the cost of opening the first zone at a
//! licensed node.

use super::cost::readable;
use super::cycles::{Cost, HEADERS, ZONES, check, estimate, filled, is_straight, straightness};
use crate::bare::{Calls, Ends, Legacy, Node, segment};
use crate::experiment::{Basis, Claim, Finding, Plan, Raw, Row, Table, median_ratio};
use crate::plot::{Axis, Lines, Look, Plot, Series};
use anyhow::Result;
use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "czml-fig5",
    title: "Cycles that a licensed node works on a packet, over the length of the first zone",
    claims: &[
        Claim {
            says: "A licensed node checks, decrypts and reads the first zone, of RC5-CBC and \
                   HMAC-MD5.",
            judged_by: &["packets in two zones whose headers a licensed node reads, over all"],
        },
        Claim {
            says: "What that costs grows with the length of the zone.",
            judged_by: &["a zone of 552 octets over one of 60", "the zone: *"],
        },
    ],
    setting: "The numbers of the paper are in a plot alone. The code that a licensed node runs \
              opens the first zone of 40 to 552 octets, with its replay window, and that of an end \
              opens both, of which the second, of Rijndael-CBC and HMAC-MD5, has 512; the \
              algorithms are those of RustCrypto in place of ours, and beside the node their calls \
              for the first zone are made alone (to seal it: CBC opens faster). All in turns and \
              in memory, in counts of the time stamp counter for one packet, the median of the \
              rounds. Packets are those of czml-table3. The node copies a packet before it opens \
              anything, for it is to go on as it was.",
    duration: |quick| ROUND * rounds(quick),
    rests_on: &[Basis::Zones],
    check,
    measure: |plan| Raw::from_result(measure(plan)),
    judge: |raw| {
        let cells: Vec<Cell> = raw.data()?;
        Ok(filled(
            &cells,
            Cell::row,
            findings(&cells),
            vec![plot(&cells)],
        ))
    },
};

/// Octets of links in the first zone, in addition to the headers.
const LINKS: [usize; 6] = [20, 40, 64, 128, 256, 512];
/// Octets of the second zone.
const PAGE: usize = 512;

/// Duration of a round, estimated generously.
const ROUND: Duration = Duration::from_millis(20);

const fn rounds(quick: bool) -> u32 {
    if quick { 50 } else { 500 }
}

/// Packets with a first zone of one length.
#[derive(Serialize, Deserialize)]
struct Cell {
    /// Octets of the zone.
    octets: usize,
    node: Cost,
    end: Vec<f64>,
    /// Number of packets whose first zone the node reads.
    read: usize,
    all: usize,
}

fn measure(plan: &Plan) -> Result<Vec<Cell>> {
    let benches = LINKS.map(|links| Bench::new(HEADERS + links, plan.zones));
    let mut benches = benches.into_iter().collect::<Result<Vec<_>>>()?;
    for _ in 0..rounds(plan.quick) {
        benches.iter_mut().try_for_each(Bench::round)?;
    }
    Ok(benches.into_iter().map(|bench| bench.cell).collect())
}

/// A cell during its measurement.
struct Bench {
    ends: Ends,
    node: Node,
    calls: Calls,
    datagrams: Vec<Vec<u8>>,
    cell: Cell,
}

impl Bench {
    fn new(octets: usize, zones: bool) -> Result<Self> {
        let two = Legacy::new(&ZONES, octets);
        let one = Legacy::new(&ZONES[1..], 0);
        Ok(Self {
            ends: Ends::with_legacy(if zones { &two } else { &one })?,
            node: Node::with_legacy(&two)?,
            calls: two.calls(&[octets]),
            datagrams: segment::datagrams(octets + PAGE),
            cell: Cell {
                octets,
                node: Cost::default(),
                end: Vec::new(),
                read: 0,
                all: 0,
            },
        })
    }

    fn round(&mut self) -> Result<()> {
        let alone = self.calls.sealing()?;
        let carried = self.ends.carry_in_cycles(&self.datagrams)?;
        let (opening, read) = self.node.open_in_cycles(&carried.sealed)?;
        self.cell.node.push(opening, alone);
        self.cell.end.push(carried.opening);
        self.cell.read += read;
        self.cell.all += carried.sealed.len();
        Ok(())
    }
}

impl Cell {
    fn row(&self) -> Row {
        let subject = "the node, cycles of a packet".to_owned();
        let name = format!("l={}", self.octets);
        self.node.row(subject, name, self.octets)
    }
}

fn findings(cells: &[Cell]) -> Vec<Finding> {
    let runs = cells.first().map_or(0, |cell| cell.end.len());
    let at = |links: usize| cells.iter().find(|cell| cell.octets == HEADERS + links);
    let cycles = |links| (links, at(links).and_then(|cell| cell.node.cycles()));
    let grows = match (cycles(512), cycles(20)) {
        ((_, Some(long)), (_, Some(short))) if short > 0.0 => Some(long / short),
        _ => None,
    };
    let ends = cells.iter().filter_map(|cell| {
        let pairs = cell.end.iter().copied().zip(cell.node.all.iter().copied());
        median_ratio(&pairs.collect::<Vec<_>>())
    });
    let least = ends.min_by(|a, b| a.value.total_cmp(&b.value));
    let [read, all] = [|cell: &Cell| cell.read, |cell: &Cell| cell.all]
        .map(|count| cells.iter().map(count).sum::<usize>());
    vec![
        Finding::at_least(
            "a zone of 552 octets over one of 60",
            2.0,
            estimate(grows, runs),
        ),
        is_straight(
            "the zone",
            straightness([cycles(20), cycles(256), cycles(512)]),
            runs,
        ),
        Finding::at_least(
            format!("an end that opens {PAGE} octets more over the node, the least of all lengths"),
            1.0,
            least,
        ),
        readable(read, all),
    ]
}

fn plot(cells: &[Cell]) -> Plot {
    let dots = cells.iter().filter_map(|cell| cell.node.dot(cell.octets));
    let dots: Vec<_> = dots.collect();
    let lines = Lines {
        title: "What opening the first zone costs a licensed node".to_owned(),
        x: Axis::from_zero("octets of the zone", dots.iter().map(|dot| dot.x)),
        y: Axis::from_zero("cycles", dots.iter().map(|dot| dot.y)),
        series: vec![Series {
            name: "the node".to_owned(),
            colour: RGBColor(0, 140, 100),
            look: Look::Marked,
            dots,
        }],
    };
    Plot::lines("cycles-node", lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Fails, Holds};

    fn made(cycles: impl Fn(f64) -> f64, end: f64, read: usize) -> Vec<Cell> {
        let cell = |links: usize| Cell {
            octets: HEADERS + links,
            node: Cost {
                all: vec![cycles((HEADERS + links) as f64); 3],
                alone: vec![1.0; 3],
            },
            end: vec![end; 3],
            read,
            all: 192,
        };
        LINKS.map(cell).into()
    }

    fn verdicts(cells: &[Cell]) -> Vec<Verdict> {
        let findings = findings(cells);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    fn right(octets: f64) -> f64 {
        1000.0 + 15.0 * octets
    }

    #[test]
    fn what_grows_straight_and_is_less_than_an_ends_work_holds() {
        assert_eq!(verdicts(&made(right, 20_000.0, 192)), [Holds; 4]);
    }

    #[test]
    fn a_cost_that_does_not_depend_on_the_zone_fails() {
        let constant = verdicts(&made(|_| 5000.0, 20_000.0, 192));
        assert_eq!(constant, [Fails, Fails, Holds, Holds]);
    }

    #[test]
    fn a_node_that_works_more_than_an_end_or_reads_nothing_fails() {
        let more = verdicts(&made(right, 9000.0, 192));
        assert_eq!(more, [Holds, Holds, Fails, Holds]);
        let nothing = verdicts(&made(right, 20_000.0, 0));
        assert_eq!(nothing, [Holds, Holds, Holds, Fails]);
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert_eq!(verdicts(&[]), [Fails; 4]);
    }
}
