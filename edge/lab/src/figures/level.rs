//! How long packets are of which only some are encrypted.

use super::cost::shape;
use crate::bare::{Ends, Shape, segment};
use crate::experiment::{Column, Estimate, Filled, Finding, Grid, Plan, Row};
use anyhow::{Result, ensure};

/// Octets of the segments with headers: nearly the longest.
const SEGMENT: usize = 1380;

/// IPv4 and UDP around a packet.
const OUTSIDE: usize = 28;

/// Every so many-th packet is encrypted, the last with 0, which is none.
pub(super) const PERIODS: [u32; 7] = [1, 2, 3, 5, 10, 20, 0];

/// How many batches of segments: a multiple of each period in packets.
const BATCHES: u32 = 15;

/// Octets on the wire of the segments of a run, on the average.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    pub every: u32,
    /// With all others only authenticated.
    pub here: f64,
    /// With all others as they are, outside of any tunnel: what the paper did.
    pub plaintext: f64,
    /// In IPsec without zones.
    pub plain: f64,
}

impl Lengths {
    fn measure(every: u32, plan: &Plan) -> Result<Self> {
        let here = average(&mut Ends::with_level(shape(plan), every)?)?;
        let zoned = average(&mut Ends::new(shape(plan), 1)?)?;
        let share = 1_f64 / f64::from(every);
        let share = if every == 0 { 0.0 } else { share };
        Ok(Self {
            every,
            here,
            plaintext: share * zoned + (1.0 - share) * SEGMENT as f64,
            plain: average(&mut Ends::new(Shape::Plain, 1)?)?,
        })
    }
}

/// Octets on the wire of a packet.
fn average(ends: &mut Ends) -> Result<f64> {
    let (mut octets, mut count) = (0, 0);
    for round in 0..BATCHES {
        let carried = ends.carry(&segment::row(SEGMENT, round))?;
        octets += carried.sealed.iter().map(Vec::len).sum::<usize>();
        count += carried.sealed.len();
    }
    ensure!(count > 0, "no packet was sealed");
    Ok(octets as f64 / count as f64 + OUTSIDE as f64)
}

/// All periods, and why some are not there.
pub(super) fn measure(plan: &Plan) -> (Vec<Lengths>, Vec<String>) {
    let mut faults = Vec::new();
    let lengths = PERIODS.iter().filter_map(|every| {
        let lengths = Lengths::measure(*every, plan);
        lengths
            .map_err(|error| faults.push(format!("{}: {error:#}", name(*every))))
            .ok()
    });
    (lengths.collect(), faults)
}

/// How a row is called.
pub(super) fn name(every: u32) -> String {
    match every {
        0 => "no packet encrypted".to_owned(),
        1 => "every packet encrypted".to_owned(),
        every => format!("one of {every} packets encrypted"),
    }
}

/// The table of these numbers, of which each row has as many as there are columns.
pub(super) fn filled(
    subject: &str,
    columns: Vec<Column>,
    (lengths, faults): (&[Lengths], Vec<String>),
    numbers: impl Fn(&Lengths) -> Vec<Option<i64>>,
    findings: Vec<Finding>,
) -> Filled {
    let row = |lengths: &Lengths| Row {
        subject: subject.to_owned(),
        name: name(lengths.every),
        numbers: numbers(lengths),
    };
    Filled {
        grid: Grid {
            columns,
            rows: lengths.iter().map(row).collect(),
        },
        findings,
        faults,
        plots: Vec::new(),
    }
}

/// A ratio of what is computed, which chance has no part in.
pub(super) fn ratio(above: Option<f64>, below: Option<f64>) -> Option<Estimate> {
    let (above, below) = above.zip(below)?;
    (below > 0.0).then_some(Estimate {
        value: above / below,
        interval: None,
        runs: 1,
    })
}

/// Those of one period.
pub(super) fn of(lengths: &[Lengths], every: u32) -> Option<&Lengths> {
    lengths.iter().find(|lengths| lengths.every == every)
}

/// What a figure's verdicts are, with zones or without.
#[cfg(test)]
pub(super) fn verdicts(fill: fn(&Plan) -> Filled, zones: bool) -> Vec<crate::experiment::Verdict> {
    let plan = Plan {
        zones,
        ..Plan::QUICK
    };
    let findings = fill(&plan).findings;
    findings.iter().map(|finding| finding.verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_every_period_a_whole_number_of_times() {
        let packets = BATCHES * crate::bare::BATCH as u32;
        for every in PERIODS.into_iter().filter(|every| *every > 0) {
            assert_eq!(packets % every, 0, "{every}");
        }
    }

    /// SPI and number, the next header and an ICV; in two zones a map and another ICV besides.
    #[test]
    fn what_is_not_encrypted_saves_a_map_and_an_icv() {
        let (lengths, faults) = measure(&Plan::QUICK);
        assert_eq!(faults, [""; 0]);
        for Lengths { every, here, .. } in lengths {
            let share = if every == 0 {
                0.0
            } else {
                1.0 / f64::from(every)
            };
            let expected = (SEGMENT + OUTSIDE + 25) as f64 + share * 20.0;
            assert!((here - expected).abs() < 0.001, "{every}: {here}");
        }
    }
}
