//! Table 1 of "CZML-IPSec for satellite IP networks": lengths of packets in IPsec and in zones.

mod capture;
mod cost;
mod here;
mod paper;
mod row;

use super::common::PAPER;
use crate::experiment::{Basis, Claim, Estimate, Filled, Finding, Grid, Plan, Raw, Table};
use crate::obstacle::Obstacle;
use crate::pair::Terms;
use crate::plot::{Axis, Dot, Lines, Look, Plot, Series};
use crate::testbed::{find_binary, find_command};
use anyhow::Result;
use cost::Cost;
use model::{Sha2, Suite};
use os::Family;
use plotters::style::RGBColor;
use row::{Row, Subject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "czml-table1",
    title: "Octets of a packet in IPsec, and what zones add",
    claims: &[
        Claim {
            says: "In two zones a packet of the paper's suite takes 20 or 36 or 52 octets more \
                   than in IPsec, whatever its length.",
            judged_by: &[
                "*: octets that zones add, mean of all lengths",
                "*: what zones add, padding left out: least over most of all lengths",
            ],
        },
        Claim {
            says: "On average it is 36 octets, which is 6.7 % of a packet of 536 octets.",
            judged_by: &[
                "*: octets that zones add, mean of all lengths, over the paper's mean",
                "*: share that zones add to a packet of 536 octets",
                "*, 578 octets: packet in zones over plain, as the paper",
            ],
        },
    ],
    setting: "Printed is what the formulas of the paper's table 1 give for tunnel mode and IPv4, \
              with brackets that round down, for only then is its table 2 right; they leave out \
              every ICV. Corrected is the same with all of AES-CBC and HMAC-MD5-96: zones have one \
              ICV more, and add 32, 48 or 64 octets. Computed is what stratad should send for a \
              TCP segment of that length with bare headers, which are all of the first zone (m = \
              0), over UDP: IPv4 in IPv4, IPv6 in IPv6. Measured are the IP packets of segments \
              between two stratad, captured by the kernel and read by tshark, in a plain and a \
              zoned tunnel of the same suite. Plain packets of two stratad have implicit IVs (RFC \
              8750), zones with an AEAD have neither IVs nor padding: they add 4 octets of map and \
              an ICV of 16, and save a pad length. AES-CBC with HMAC-SHA2 is nearest to what the \
              paper has: an IV, an ICV and a pad length for each zone. What the paper measured \
              with has 64-bit blocks or ICVs of 12 octets: computed only.",
    duration: |quick| TUNNEL * (4 * suites(quick).len() as u32),
    rests_on: &[Basis::Zones],
    check,
    measure: measure_all,
    judge: |raw| Ok(judged(&rows(&raw.data::<Vec<_>>()?))),
};

/// Duration of a tunnel: namespaces, daemons, a key exchange, two runs of tshark.
const TUNNEL: Duration = Duration::from_millis(1200);

/// Suites of the tunnels, the same in all zones.
const SUITES: [Suite; 4] = [
    Suite::Aes128Gcm16,
    Suite::Aes256Gcm16,
    Suite::ChaCha20Poly1305,
    Suite::Aes128Cbc(Sha2::Sha256),
];

/// Lengths of the segments, headers included: bare headers, each amount of padding, and long ones.
const SEGMENTS: [(Family, [usize; 6]); 2] = [
    (Family::V4, [40, 64, 65, 67, MIDDLE, capture::MTU]),
    (Family::V6, [60, 64, 65, 67, MIDDLE, capture::MTU]),
];

/// Length for which the ratio is compared as well.
const MIDDLE: usize = 578;

fn suites(quick: bool) -> &'static [Suite] {
    &SUITES[..if quick { 1 } else { SUITES.len() }]
}

fn check() -> Result<(), Obstacle> {
    find_binary("stratad")?;
    find_binary("strata")?;
    find_command("tshark", "tshark").map(drop)
}

/// Measured lengths of a suite over an IP version.
#[derive(Serialize, Deserialize)]
struct Tunnels {
    /// Name of the suite.
    suite: String,
    v6: bool,
    /// Lengths of the packets, by that of the segment.
    costs: BTreeMap<usize, Cost>,
}

fn measure_all(plan: &Plan) -> Raw {
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    for suite in suites(plan.quick) {
        for (family, segments) in SEGMENTS {
            let costs = measure(*suite, family, &segments, plan.zones).unwrap_or_else(|error| {
                faults.push(format!("{}: {error:#}", suite.name()));
                BTreeMap::new()
            });
            all.push(Tunnels {
                suite: suite.name().to_owned(),
                v6: family == Family::V6,
                costs,
            });
        }
    }
    Raw::new(&all, faults)
}

/// Returns the rows of the paper, then those of the measured suites. Without any measurement, all
/// suites are missing.
fn rows(measured: &[Tunnels]) -> Vec<Row> {
    let mut rows: Vec<_> = [&paper::AES_CBC, &paper::SHORT_BLOCKS]
        .into_iter()
        .flat_map(|suite| SEGMENTS[0].1.map(|octets| Row::of_the_paper(suite, octets)))
        .collect();
    for suite in SUITES {
        let its = || measured.iter().filter(|one| one.suite == suite.name());
        if its().next().is_none() && !measured.is_empty() {
            continue;
        }
        for (family, segments) in SEGMENTS {
            let costs = its().find(|one| one.v6 == (family == Family::V6));
            let row = |octets: usize| {
                let cost = costs.and_then(|one| one.costs.get(&octets));
                Row::of_ours(suite, family, octets, cost)
            };
            rows.extend(segments.map(row));
        }
    }
    rows
}

/// Measures segments of these lengths. Without zones both tunnels are plain, and the table must
/// fail.
fn measure(
    suite: Suite,
    family: Family,
    segments: &[usize],
    zones: bool,
) -> Result<BTreeMap<usize, Cost>> {
    let terms = if zones { Terms::ZONED } else { Terms::PLAIN };
    let plain = capture::lengths(suite, family, Terms::PLAIN, segments)?;
    let zoned = capture::lengths(suite, family, terms, segments)?;
    let cost = |(octets, &plain): (&usize, &usize)| {
        let zoned = *zoned.get(octets)?;
        Some((*octets, Cost { plain, zoned }))
    };
    Ok(plain.iter().filter_map(cost).collect())
}

/// Returns the table of these rows, with the claims about them.
fn judged(rows: &[Row]) -> Filled {
    let subjects = rows.chunk_by(|a, b| a.subject == b.subject);
    let ours = subjects.filter(|rows| matches!(rows[0].subject, Subject::Ours(_)));
    let (findings, plots): (Vec<_>, Vec<_>) =
        ours.map(|rows| (findings(rows), plots(rows))).unzip();
    Filled {
        grid: Grid {
            columns: Row::columns(),
            rows: rows.iter().map(Row::shown).collect(),
        },
        findings: findings.concat(),
        faults: rows.iter().filter_map(Row::fault).collect(),
        plots: plots.into_iter().flatten().collect(),
    }
}

/// Returns the claims about a suite.
fn findings(rows: &[Row]) -> Vec<Finding> {
    let name = rows[0].subject.name();
    let right = rows.iter().filter(|row| row.fault().is_none()).count();
    let estimate = |value| Estimate {
        value,
        interval: None,
        runs: rows.len(),
    };
    let share = right as f64 / rows.len() as f64;
    let mut findings = vec![
        Finding::at_least(
            format!("{name}: rows in which both packets are as long as computed, over all rows"),
            1.0,
            Some(estimate(share)),
        )
        .detail(format!("{right} of {} rows", rows.len())),
        constancy(name, rows, estimate),
    ];
    findings.extend(as_the_paper(name, rows, estimate));
    findings.extend(rows.iter().filter_map(|row| {
        let printed = row.printed.filter(|_| row.octets == MIDDLE)?;
        let ratio = |cost: Cost| cost.zoned as f64 / cost.plain as f64;
        // The paper's values have three readable digits.
        let paper = (ratio(printed) * 1000.0).round() / 1000.0;
        let what = format!("{name}, {MIDDLE} octets: packet in zones over plain, as the paper");
        let measured = row.measured.map(|cost| estimate(ratio(cost)));
        Some(Finding::compared(what, paper, measured))
    }));
    findings
}

/// Shows what zones add beside what the paper says of its own suite. Ours need no blocks.
fn as_the_paper(name: &str, rows: &[Row], estimate: impl Fn(f64) -> Estimate) -> [Finding; 3] {
    let added: Option<Vec<_>> = rows
        .iter()
        .map(|row| Some(row.measured?.added() as f64))
        .collect();
    let mean = added.map(|added| added.iter().sum::<f64>() / added.len() as f64);
    let of = |value: fn(f64) -> f64| mean.map(|mean| estimate(value(mean)));
    let what = format!("{name}: octets that zones add, mean of all lengths");
    let share = format!("{name}: share that zones add to a packet of 536 octets");
    let over = format!("{what}, over the paper's mean");
    [
        Finding::quantity(what, "octets", "20 to 52", of(|mean| mean)),
        Finding::beside(over, 1, of(|mean| mean / MEAN)),
        Finding::quantity(share, "%", 6.7, of(|mean| mean / 536.0 * 100.0)),
    ]
}

/// Mean of the octets that zones add in the paper.
const MEAN: f64 = 36.0;

/// Claims that zones add the same positive length to each packet, apart from the padding of its
/// plain form.
fn constancy(name: &str, rows: &[Row], estimate: impl Fn(f64) -> Estimate) -> Finding {
    let added: Option<Vec<i64>> = rows.iter().map(Row::added_without_padding).collect();
    let added = added.unwrap_or_default();
    let ends = added.iter().min().zip(added.iter().max());
    let ratio = ends.map(|(least, most)| match most {
        ..=0 => estimate(0.0),
        most => estimate(*least as f64 / *most as f64),
    });
    let what = format!("{name}: what zones add, padding left out: least over most of all lengths");
    let finding = Finding::at_least(what, 1.0, ratio).paper("1");
    match ends {
        Some((least, most)) => finding.detail(format!("{least} / {most} octets")),
        None => finding,
    }
}

const CORRECTED: RGBColor = RGBColor(213, 148, 0);
const COMPUTED: RGBColor = RGBColor(190, 85, 140);
const MEASURED: RGBColor = RGBColor(0, 140, 100);

/// Plots the octets that zones add over the inner length, one plot for each IP version.
fn plots(rows: &[Row]) -> Vec<Plot> {
    rows.chunk_by(|a, b| a.family == b.family)
        .map(plot)
        .collect()
}

fn plot(rows: &[Row]) -> Plot {
    let series = |name: &str, colour, look, cost: fn(&Row) -> Option<Cost>| Series {
        name: name.to_owned(),
        colour,
        look,
        dots: dots(rows, cost),
    };
    let series = vec![
        series("paper, printed", PAPER, Look::Diamonds, |row| row.printed),
        series("corrected", CORRECTED, Look::Diamonds, |row| row.corrected),
        series("measured", MEASURED, Look::Marked, |row| row.measured),
        series("computed", COMPUTED, Look::Crosses, |row| row.computed),
    ];
    let tops = series.iter().flat_map(|series| &series.dots);
    let tops: Vec<_> = tops.map(|dot| dot.y).collect();
    let (name, version) = (rows[0].subject.name(), rows[0].version());
    let names = rows.iter().map(|row| row.octets.to_string());
    let lines = Lines {
        title: format!("What two zones add to a packet, {name}, {version}"),
        x: Axis::of_names("octets of the segment", names.collect()),
        y: Axis::from_zero("octets added", tops),
        series,
    };
    Plot::lines(format!("added-{name}-{version}").to_lowercase(), lines)
}

fn dots(rows: &[Row], cost: impl Fn(&Row) -> Option<Cost>) -> Vec<Dot> {
    let dot = |(place, row): (usize, &Row)| {
        Some(Dot {
            x: place as f64,
            y: cost(row)?.added() as f64,
            interval: None,
        })
    };
    rows.iter().enumerate().filter_map(dot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict;

    /// Returns the rows of a measurement without faults.
    fn right() -> Vec<Row> {
        let rows = SEGMENTS.into_iter().flat_map(|(family, segments)| {
            segments.map(|octets| {
                let suite = Suite::Aes128Gcm16;
                let cost = here::computed(suite, family, octets);
                Row::of_ours(suite, family, octets, cost.as_ref())
            })
        });
        rows.collect()
    }

    fn verdicts(rows: &[Row]) -> (Vec<Verdict>, Vec<String>) {
        let filled = judged(rows);
        let verdicts = filled.findings.iter().map(|finding| finding.verdict);
        (verdicts.collect(), filled.faults)
    }

    #[test]
    fn packets_as_long_as_computed_hold() {
        let (verdicts, faults) = verdicts(&right());
        assert_eq!(faults, [""; 0]);
        assert_eq!(
            verdicts,
            [
                Verdict::Holds,
                Verdict::Holds,
                Verdict::Consistent,
                Verdict::Consistent,
                Verdict::Consistent,
                Verdict::Consistent
            ]
        );
    }

    #[test]
    fn one_octet_more_in_one_computed_length_fails() {
        for change in [
            |cost: &mut Cost| cost.plain += 1,
            |cost: &mut Cost| cost.zoned += 1,
        ] {
            let mut rows = right();
            rows[7].computed.iter_mut().for_each(change);
            let (verdicts, faults) = verdicts(&rows);
            assert_eq!(verdicts[0], Verdict::Fails);
            assert_eq!(faults.len(), 1);
            assert!(
                faults[0].starts_with("aes128gcm16, IPv6, 64 octets: "),
                "{faults:?}"
            );
        }
    }

    #[test]
    fn packets_without_zones_fail_in_every_row_and_cost_nothing() {
        let mut rows = right();
        for cost in rows.iter_mut().filter_map(|row| row.measured.as_mut()) {
            cost.zoned = cost.plain;
        }
        let (verdicts, faults) = verdicts(&rows);
        assert_eq!([verdicts[0], verdicts[1], verdicts[5]], [Verdict::Fails; 3]);
        assert_eq!(faults.len(), rows.len());
    }

    /// The claim must fail even if the measured lengths equal the computed ones, when both are
    /// wrong.
    #[test]
    fn a_cost_that_grows_with_the_length_fails() {
        let mut rows = right();
        for row in &mut rows {
            let more = row.octets / 500;
            for cost in row.measured.iter_mut().chain(&mut row.computed) {
                cost.zoned += more;
            }
        }
        let (verdicts, faults) = verdicts(&rows);
        assert_eq!(faults, [""; 0]);
        assert_eq!(verdicts[..2], [Verdict::Holds, Verdict::Fails]);
    }

    #[test]
    fn what_was_not_measured_fails() {
        let mut rows = right();
        rows[4].measured = None;
        let (verdicts, faults) = verdicts(&rows);
        assert_eq!(verdicts, [Verdict::Fails; 6]);
        assert_eq!(faults, ["aes128gcm16, IPv4, 578 octets: not measured"]);
    }

    #[test]
    fn what_the_paper_used_is_computed_only_and_nothing_to_fail() {
        let row = Row::of_the_paper(&paper::SHORT_BLOCKS, 576);
        assert_eq!(
            (row.printed, row.computed, row.measured),
            (None, None, None)
        );
        let filled = judged(&[row]);
        assert!(filled.findings.is_empty() && filled.faults.is_empty());
        assert!(filled.grid.rows[0].subject.contains("computed only"));
    }
}
