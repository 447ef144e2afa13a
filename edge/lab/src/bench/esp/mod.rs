//! `strata bench esp`: what a packet costs the ends of a tunnel and a licensed node, beside the AEAD calls that
//! it needs.
//!
//! All of it is in memory ([`crate::bare`]). A round times every shape of packet, at every length and
//! every number of SAs, each with its AEAD calls just before; a share is a round's, and the median over
//! the rounds is told. What a second worker brings is measured by the clock (`workers`).

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

/// Octets of the datagrams of a row: one length, or several in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// Always so many.
    Octets(usize),
    /// Seven of 64, four of 576 and one of 1400: near what is met on the Internet.
    Imix,
}

impl Length {
    /// Those that are measured.
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

/// What can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How often everything is timed.
    pub rounds: u32,
    /// SAs of the rows that have many.
    pub sas: usize,
    /// Give the ends different keys: nothing may get through.
    pub wrong_key: bool,
}

/// Measures. Packets that do not get through are part of the report.
///
/// # Errors
/// It cannot be measured on this machine.
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

/// One row, while it is measured.
struct Bench {
    shape: Shape,
    length: Length,
    sas: usize,
    ends: Ends,
    raw: Raw,
    /// The licensed node, where there are zones that it could be licensed for.
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

/// Ends of which every SA has carried something: with its first packet it takes memory for its window.
fn used(shape: Shape, sas: usize) -> Result<Ends> {
    let mut ends = Ends::new(shape, sas)?.between_devices();
    for round in 0..sas.div_ceil(BATCH) as u32 {
        ends.pass(&segment::rows(&[HEADERS], sas, round))?;
    }
    Ok(ends)
}
