//! `strata bench peers`: what a tunnel between two hosts carries, beside their wire alone and beside others.
//!
//! ```text
//!   near  192.0.2.1 ------ veth ------ 192.0.2.2  far
//!   10.1.0.1   an end            an end    10.2.0.1
//! ```
//!
//! A licensed node is between them where there is one, as in [`crate::pair`].
//!
//! Everybody has a turn in each round, with daemons of his own; a ratio is a round's, and the median over the
//! rounds is told, with the least and the most. iperf3 sends and counts, so nobody measures himself. Who is
//! not on this machine has no turn, and the report says so.

mod entrant;
mod line;
mod load;
mod picture;
mod report;
mod roofline;
mod text;
mod wireguard;

pub use entrant::Entrant;
pub use report::{Ratio, Report, Row};

use crate::obstacle::Obstacle;
use line::Line;
use load::Sample;
use std::collections::BTreeMap;

/// Everybody's turn.
type Round = BTreeMap<Entrant, Sample>;

/// What can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How often everybody has a turn.
    pub rounds: u32,
    /// How long each load lasts.
    pub seconds: u32,
    /// Give the ends different keys: nothing may get through.
    pub wrong_key: bool,
}

/// Measures. Tunnels that do not come up are part of the report.
///
/// # Errors
/// It cannot be measured on this machine.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    crate::testbed::find_command("iperf3", "iperf3")?;
    if options.wrong_key {
        // Above its last line is the command that said it.
        let why = |error: anyhow::Error| error.to_string().lines().last().map(str::to_owned);
        return Ok(Report::failed(Line::strangers().err().and_then(why)));
    }
    run(options).map_err(|error| {
        let fix =
            "end what else keeps this machine busy, or install what is missing (`./x bench peers`)";
        Obstacle::new(format!("{error:#}"), fix)
    })
}

fn run(options: &Options) -> anyhow::Result<Report> {
    let here = Entrant::ALL.into_iter().filter(|one| one.is_here());
    let here: Vec<_> = here.collect();
    let turns = |_| {
        let turns = here.iter();
        let turns = turns.map(|&entrant| Ok((entrant, turn(entrant, options.seconds)?)));
        turns.collect::<anyhow::Result<Round>>()
    };
    let rounds: anyhow::Result<Vec<_>> = (0..options.rounds).map(turns).collect();
    Ok(Report::new(&rounds?))
}

fn turn(entrant: Entrant, seconds: u32) -> anyhow::Result<Sample> {
    use anyhow::Context;
    let of = || format!("with {}", entrant.name());
    let line = Line::new(entrant).with_context(of)?;
    load::measure(&line, seconds).with_context(of)
}
