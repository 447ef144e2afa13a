//! `strata-lab bench esp`: the cost of a packet at the ends of a tunnel and at a licensed node,
//! compared with the AEAD calls that it needs.
//!
//! All measurements are in memory ([`crate::bare`]). A round times every shape of packet at every
//! length and number of SAs, each right after its AEAD calls. A share is taken within a round, and
//! the report has the median over the rounds. The gain from a second worker is measured in
//! wall-clock time (`workers`).

mod report;
mod text;
mod workers;

pub use report::{Report, Row};
pub use workers::Gain;

use crate::bare::segment::{self, HEADERS};
use crate::bare::{BATCH, Ends, Node, Raw, Shape};
use crate::obstacle::Obstacle;
use anyhow::Result;
use report::Timed;
use serde::Serialize;

/// Octets of the datagrams of a row: one length, or several lengths in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// A fixed number of octets.
    Octets(usize),
    /// Seven of 64, four of 576 and one of 1400 octets: close to the mix on the Internet.
    Imix,
}

impl Length {
    /// The measured lengths.
    pub const ALL: [Self; 5] = [
        Self::Octets(64),
        Self::Octets(256),
        Self::Octets(576),
        Self::Octets(1400),
        Self::Imix,
    ];

    fn octets(self) -> Vec<usize> {
        match self {
            Self::Octets(octets) => vec![octets],
            Self::Imix => [[64; 7].as_slice(), &[576; 4], &[1400]].concat(),
        }
    }
}

/// Options of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of rounds.
    pub rounds: u32,
    /// Number of SAs in the rows that have many.
    pub sas: usize,
    /// True to give the ends different keys: no packet may get through.
    pub wrong_key: bool,
}

/// Runs the benchmark. The report includes packets that do not get through.
///
/// # Errors
/// This machine cannot run the benchmark.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    run(options).map_err(|error| {
        let fix = "end what else keeps this machine busy, or try fewer SAs (--sas)";
        Obstacle::new(format!("{error:#}"), fix)
    })
}

fn run(options: &Options) -> Result<Report> {
    if options.wrong_key {
        let mut ends = Ends::strangers(Shape::Two)?;
        let failure = ends.pass(&segment::row(1400, 0)).err();
        return Ok(Report::failed(failure.map(|error| error.to_string())));
    }
    let mut benches = Vec::new();
    for shape in Shape::ALL {
        for length in Length::ALL {
            benches.push(Bench::new(shape, length, 1)?);
        }
    }
    for shape in [Shape::Plain, Shape::Two] {
        benches.push(Bench::new(shape, Length::Octets(1400), options.sas)?);
    }
    for round in 0..options.rounds {
        for bench in &mut benches {
            bench.round(round)?;
        }
    }
    let rows = benches.iter().map(Bench::row).collect();
    Ok(Report::new(rows, workers::gains(options.rounds)?))
}

/// One row during its measurement.
struct Bench {
    shape: Shape,
    length: Length,
    sas: usize,
    ends: Ends,
    raw: Raw,
    /// The licensed node, if there are zones to license.
    node: Option<Node>,
    times: Vec<Timed>,
}

impl Bench {
    fn new(shape: Shape, length: Length, sas: usize) -> Result<Self> {
        let licensed = matches!(shape, Shape::Two | Shape::Three) && sas == 1;
        Ok(Self {
            shape,
            length,
            sas,
            ends: used(shape, sas)?,
            raw: Raw::new(shape, &length.octets())?,
            node: licensed.then(|| Node::new(shape)).transpose()?,
            times: Vec::new(),
        })
    }

    fn round(&mut self, number: u32) -> Result<()> {
        let datagrams = segment::rows(&self.length.octets(), self.sas, number);
        let alone = self.raw.time()?;
        let carried = self.ends.carry(&datagrams)?;
        let node = match &mut self.node {
            Some(node) => {
                let (time, read) = node.open(&carried.sealed)?;
                anyhow::ensure!(read == datagrams.len(), "a node read only {read} packets");
                Some(time)
            }
            None => None,
        };
        self.times.push(Timed {
            alone,
            sealing: carried.sealing,
            opening: carried.opening,
            node,
        });
        Ok(())
    }

    fn row(&self) -> Row {
        Row::new((self.shape, self.length, self.sas), &self.times)
    }
}

/// Creates ends whose SAs have all carried a packet: the first packet allocates the replay window.
fn used(shape: Shape, sas: usize) -> Result<Ends> {
    let mut ends = Ends::new(shape, sas)?.between_devices();
    for round in 0..sas.div_ceil(BATCH) as u32 {
        ends.pass(&segment::rows(&[HEADERS], sas, round))?;
    }
    Ok(ends)
}
