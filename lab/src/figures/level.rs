//! Lengths of packets if only some of them are encrypted.

use super::cost::shape;
use crate::bare::{Ends, Shape, segment};
use crate::experiment::{Estimate, Plan, Raw};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Octets of a segment with headers: nearly the longest.
const SEGMENT: usize = 1380;

/// Octets of the IPv4 and UDP headers around a packet.
const OUTSIDE: usize = 28;

/// Periods: every n-th packet is encrypted; with 0, none is.
pub(super) const PERIODS: [u32; 7] = [1, 2, 3, 5, 10, 20, 0];

/// Number of batches of segments: a multiple of each period in packets.
const BATCHES: u32 = 15;

/// Mean octets per segment on the wire.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Lengths {
    pub every: u32,
    /// With all other packets only authenticated.
    pub here: f64,
    /// With all other packets in clear outside any tunnel, as in the paper.
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

/// Returns the mean octets of a packet on the wire.
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

/// Measures all periods.
pub(super) fn measure(plan: &Plan) -> Raw {
    let mut faults = Vec::new();
    let lengths = PERIODS.iter().filter_map(|every| {
        let lengths = Lengths::measure(*every, plan);
        lengths
            .map_err(|error| faults.push(format!("{}: {error:#}", name(*every))))
            .ok()
    });
    let lengths: Vec<_> = lengths.collect();
    Raw::new(&lengths, faults)
}

/// Returns the name of a row.
pub(super) fn name(every: u32) -> String {
    match every {
        0 => "no packet encrypted".to_owned(),
        1 => "every packet encrypted".to_owned(),
        every => format!("one of {every} packets encrypted"),
    }
}

/// Returns a ratio of computed values, which have no random error.
pub(super) fn ratio(above: Option<f64>, below: Option<f64>) -> Option<Estimate> {
    let (above, below) = above.zip(below)?;
    (below > 0.0).then_some(Estimate {
        value: above / below,
        interval: None,
        runs: 1,
    })
}

/// Returns the lengths of one period.
pub(super) fn of(lengths: &[Lengths], every: u32) -> Option<&Lengths> {
    lengths.iter().find(|lengths| lengths.every == every)
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

    /// The expected length counts SPI and sequence number, next header and ICV; two zones add a map
    /// and another ICV.
    #[test]
    fn what_is_not_encrypted_saves_a_map_and_an_icv() {
        let raw = measure(&Plan::QUICK);
        assert_eq!(raw.faults, [""; 0]);
        for Lengths { every, here, .. } in raw.data::<Vec<Lengths>>().unwrap() {
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
