//! Figure 4 of "CZML-IPSec for satellite IP networks": the cost of sealing a packet in IPsec, by
//! its algorithms.

use super::cycles::{Cost, check, filled, is_straight, straightness};
use crate::bare::{Calls, Ends, Legacy, segment};
use crate::experiment::{Claim, Estimate, Finding, Raw, Row, Table, mean, median, median_ratio};
use crate::legacy::{Algorithms, Encryption, Integrity};
use crate::plot::{Axis, Lines, Look, Plot, Series};
use anyhow::Result;
use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "czml-fig4",
    title: "Cycles of sealing a packet in plain IPsec, by its algorithms",
    claims: &[
        Claim {
            says: "Of DES, Triple-DES, Rijndael and RC5 the better choices are RC5 and Rijndael.",
            judged_by: &[
                "3DES-CBC over DES-CBC, 1024 octets, *",
                "DES-CBC over Rijndael-CBC, 1024 octets, *",
                "DES-CBC over RC5-CBC, 1024 octets, *",
            ],
        },
        Claim {
            says: "With HMAC-MD5 they take less than with HMAC-SHA1.",
            judged_by: &[
                "RC5-CBC, 1024 octets: HMAC-SHA1 over HMAC-MD5",
                "Rijndael-CBC, 1024 octets: HMAC-SHA1 over HMAC-MD5",
            ],
        },
        Claim {
            says: "At 64 octets, with HMAC-MD5, RC5 takes 966.6 cycles less than Rijndael.",
            judged_by: &["64 octets, HMAC-MD5: Rijndael-CBC less RC5-CBC"],
        },
    ],
    setting: "All but one number of the paper are in a plot alone. The worker that stratad runs \
              seals batches of 64 datagrams in memory in plain ESP, with policies and counters, \
              and with these algorithms of RustCrypto in place of ours; beside it their calls are \
              made alone. All in turns, in counts of the time stamp counter for one packet, the \
              median of the rounds; the paper reads the same counter, which here counts at one \
              rate whatever that of the processor is. What must hold is what does not depend on \
              the processor: Triple-DES is the dearest, DES dearer than what came after it, and \
              each octet costs the same. Which of RC5 and Rijndael and which HMAC takes less is \
              shown beside the paper: today's processors have instructions for Rijndael and for \
              SHA-1, and none for RC5 and MD5.",
    duration: |quick| ROUND * rounds(quick),
    rests_on: &[],
    check,
    measure: |plan| Raw::from_result(measure(rounds(plan.quick), &LENGTHS, |named| named)),
    judge: |raw| {
        let cells: Vec<Cell> = raw.data()?;
        let plots = Integrity::ALL.map(|integrity| plot(&cells, integrity));
        Ok(filled(&cells, Cell::row, findings(&cells), plots.into()))
    },
};

/// Octets of the datagrams.
const LENGTHS: [usize; 5] = [64, 128, 256, 512, LONGEST];
const LONGEST: usize = 1024;

/// Duration of a round, estimated generously.
const ROUND: Duration = Duration::from_millis(250);

const fn rounds(quick: bool) -> u32 {
    if quick { 20 } else { 200 }
}

/// Datagrams of one length under one pair of algorithms.
#[derive(Serialize, Deserialize)]
struct Cell {
    /// Name of the cell, and algorithms of its packets.
    algorithms: Algorithms,
    octets: usize,
    cost: Cost,
}

fn all() -> impl Iterator<Item = Algorithms> {
    Integrity::ALL.into_iter().flat_map(|integrity| {
        Encryption::ALL
            .into_iter()
            .map(move |encryption| encryption.with(integrity))
    })
}

/// Measures datagrams of these lengths under all algorithms. `used` maps the named algorithms to
/// those in use.
fn measure(
    rounds: u32,
    lengths: &[usize],
    used: fn(Algorithms) -> Algorithms,
) -> Result<Vec<Cell>> {
    let mut benches = Vec::new();
    for algorithms in all() {
        let legacy = Legacy::new(&[used(algorithms)], 0);
        for &octets in lengths {
            benches.push(Bench {
                ends: Ends::with_legacy(&legacy)?,
                calls: legacy.calls(&[octets]),
                datagrams: segment::datagrams(octets),
                cell: Cell {
                    algorithms,
                    octets,
                    cost: Cost::default(),
                },
            });
        }
    }
    for _ in 0..rounds {
        benches.iter_mut().try_for_each(Bench::round)?;
    }
    Ok(benches.into_iter().map(|bench| bench.cell).collect())
}

/// A cell during its measurement.
struct Bench {
    ends: Ends,
    calls: Calls,
    datagrams: Vec<Vec<u8>>,
    cell: Cell,
}

impl Bench {
    fn round(&mut self) -> Result<()> {
        let alone = self.calls.sealing()?;
        let carried = self.ends.carry_in_cycles(&self.datagrams)?;
        self.cell.cost.push(carried.sealing, alone);
        Ok(())
    }
}

impl Cell {
    fn row(&self) -> Row {
        let subject = format!("{}, cycles of a packet", self.algorithms.name());
        self.cost.row(subject, String::new(), self.octets)
    }
}

fn findings(cells: &[Cell]) -> Vec<Finding> {
    let [md5, sha1] = Integrity::ALL.map(|integrity| orders(cells, integrity));
    // The worst of eight would be the one with the most interruptions.
    let straight: Vec<_> = all().filter_map(|pair| bend(cells, pair)).collect();
    let middle = median(&straight).filter(|_| straight.len() == all().count());
    let runs = cells.first().map_or(0, |cell| cell.cost.all.len());
    let linear = is_straight("the middle of all pairs of algorithms", middle, runs);
    let orders = [md5, sha1].into_iter().flatten();
    orders
        .chain([linear])
        .chain([Encryption::Rc5, Encryption::Rijndael].map(|one| macs(cells, one)))
        .chain([rc5(cells)])
        .collect()
}

/// Shows which HMAC takes less. The paper gives no number.
fn macs(cells: &[Cell], encryption: Encryption) -> Finding {
    let all = |integrity| Some(&cost(cells, encryption.with(integrity), LONGEST)?.all);
    let pairs = all(Integrity::Sha1).zip(all(Integrity::Md5));
    let ratio = pairs.and_then(|(sha1, md5)| {
        let pairs = sha1.iter().copied().zip(md5.iter().copied());
        median_ratio(&pairs.collect::<Vec<_>>())
    });
    let [sha1, md5] = [Integrity::Sha1, Integrity::Md5].map(Integrity::name);
    let name = encryption.name();
    let what = format!("{name}, {LONGEST} octets: {sha1} over {md5}");
    Finding::beside(what, "more than 1", ratio)
}

/// Shows the cycles that RC5 saves for a short packet.
fn rc5(cells: &[Cell]) -> Finding {
    let all = |encryption: Encryption| Some(&cost(cells, encryption.with(Integrity::Md5), 64)?.all);
    let pairs = all(Encryption::Rijndael).zip(all(Encryption::Rc5));
    let saved = pairs.and_then(|(rijndael, rc5)| middle(rijndael, rc5));
    let what = "64 octets, HMAC-MD5: Rijndael-CBC less RC5-CBC";
    Finding::quantity(what, "cycles", 966.6, saved)
}

/// Returns the mean difference of two ciphers, which were measured in turns.
fn middle(above: &[f64], below: &[f64]) -> Option<Estimate> {
    let mut saved: Vec<_> = above.iter().zip(below).map(|(a, b)| a - b).collect();
    saved.sort_by(f64::total_cmp);
    // Rounds with an interruption are at both ends.
    let quarter = saved.len() / 4;
    mean(&saved[quarter..saved.len() - quarter])
}

/// Claims an order of costs between the ciphers.
fn orders(cells: &[Cell], integrity: Integrity) -> [Finding; 3] {
    use Encryption::{Des, Rc5, Rijndael, TripleDes};
    // Triple-DES takes three times the work of DES, but the HMAC stays the same.
    [(TripleDes, Des, 1.5), (Des, Rijndael, 1.0), (Des, Rc5, 1.0)].map(|(dear, cheap, bound)| {
        let all = |encryption: Encryption| {
            let cost = cost(cells, encryption.with(integrity), LONGEST);
            cost.map(|cost| cost.all.iter().copied())
        };
        let pairs = all(dear).zip(all(cheap));
        let ratio =
            pairs.and_then(|(dear, cheap)| median_ratio(&dear.zip(cheap).collect::<Vec<_>>()));
        let [dear, cheap] = [dear, cheap].map(Encryption::name);
        let what = format!(
            "{dear} over {cheap}, {LONGEST} octets, {}",
            integrity.name()
        );
        Finding::at_least(what, bound, ratio)
    })
}

fn bend(cells: &[Cell], algorithms: Algorithms) -> Option<f64> {
    let at = |octets| {
        (
            octets,
            cost(cells, algorithms, octets).and_then(Cost::cycles),
        )
    };
    straightness([at(64), at(512), at(LONGEST)])
}

fn cost(cells: &[Cell], algorithms: Algorithms, octets: usize) -> Option<&Cost> {
    let mut cells = cells.iter();
    let cell = cells.find(|cell| (cell.algorithms, cell.octets) == (algorithms, octets));
    cell.map(|cell| &cell.cost)
}

fn plot(cells: &[Cell], integrity: Integrity) -> Plot {
    let series = Encryption::ALL.map(|encryption| Series {
        name: encryption.name().to_owned(),
        colour: colour(encryption),
        look: Look::Marked,
        dots: LENGTHS
            .iter()
            .filter_map(|&octets| cost(cells, encryption.with(integrity), octets)?.dot(octets))
            .collect(),
    });
    let tops: Vec<_> = series
        .iter()
        .flat_map(|series| &series.dots)
        .map(|dot| dot.y)
        .collect();
    let name = integrity.name();
    let lines = Lines {
        title: format!("What sealing a packet in IPsec costs, {name}"),
        x: Axis::from_zero("octets of the datagram", [LONGEST as f64]),
        y: Axis::from_zero("cycles", tops),
        series: series.into(),
    };
    Plot::lines(format!("cycles-{name}").to_lowercase(), lines)
}

const fn colour(encryption: Encryption) -> RGBColor {
    match encryption {
        Encryption::Des => RGBColor(213, 148, 0),
        Encryption::TripleDes => RGBColor(190, 85, 140),
        Encryption::Rijndael => RGBColor(0, 114, 178),
        Encryption::Rc5 => RGBColor(0, 140, 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Contradiction;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    /// Returns cells with these costs per octet of each cipher, in addition to an HMAC.
    fn made(octet: fn(Encryption) -> f64) -> Vec<Cell> {
        let lengths = |algorithms: Algorithms| LENGTHS.map(|octets| (algorithms, octets));
        let cell = |(algorithms, octets): (Algorithms, usize)| Cell {
            algorithms,
            octets,
            cost: Cost {
                all: vec![1000.0 + octet(algorithms.encryption) * octets as f64; 3],
                alone: vec![1.0; 3],
            },
        };
        all().flat_map(lengths).map(cell).collect()
    }

    const fn right(encryption: Encryption) -> f64 {
        match encryption {
            Encryption::Des => 50.0,
            Encryption::TripleDes => 130.0,
            Encryption::Rijndael => 8.0,
            Encryption::Rc5 => 15.0,
        }
    }

    fn verdicts(cells: &[Cell]) -> Vec<Verdict> {
        let findings = findings(cells);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn what_grows_straight_and_in_the_papers_order_holds() {
        let verdicts = verdicts(&made(right));
        assert_eq!(verdicts[..7], [Holds; 7]);
        assert_eq!(verdicts[7..], [Consistent; 3]);
    }

    #[test]
    fn what_costs_more_and_more_for_each_octet_fails() {
        let mut cells = made(right);
        for cell in cells.iter_mut().filter(|cell| cell.octets == LONGEST) {
            cell.cost.all.fill(200_000.0);
        }
        assert_eq!(verdicts(&cells)[6], Fails);
    }

    #[test]
    fn a_cipher_that_takes_more_where_the_paper_saves_contradicts_it() {
        let mut cells = made(|encryption| match encryption {
            Encryption::Rijndael => 0.0,
            other => right(other),
        });
        let last = |cells: &[Cell]| findings(cells).pop().unwrap().contradiction();
        assert_eq!(last(&cells), Some(Contradiction::Opposite));
        for cell in &mut cells {
            if cell.algorithms.encryption == Encryption::Rijndael {
                cell.cost.all.fill(1000.0 + 15.0 * 64.0 + 966.6);
            }
        }
        assert_eq!(last(&cells), None);
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert_eq!(verdicts(&[]), [Fails; 10]);
    }

    /// The negative control: all ciphers are RC5, whatever their names. On a busy machine a single
    /// round says nothing, so there are many of the one length that these verdicts compare; and one
    /// cipher may appear expensive once, but with the named ones it would be expensive every time.
    #[test]
    fn algorithms_that_are_all_the_same_fail() {
        let fails = |_| {
            let same = |named: Algorithms| Encryption::Rc5.with(named.integrity);
            let cells = measure(60, &[LONGEST], same).unwrap();
            let verdicts = verdicts(&cells);
            [verdicts[0], verdicts[3]] == [Fails; 2]
        };
        assert!((0..10).any(fails));
    }
}
