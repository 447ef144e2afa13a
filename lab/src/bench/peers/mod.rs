//! `strata-lab bench peers`: the throughput of a tunnel between two hosts, compared with the bare
//! wire and with other programs.
//!
//! ```text
//!   near  192.0.2.1 ------ veth ------ 192.0.2.2  far
//!   10.1.0.1   an end            an end    10.2.0.1
//! ```
//!
//! The rows with a licensed node have it between the hosts, as in [`crate::pair`].
//!
//! Each program has a turn in each round, with its own daemons. A ratio is taken within a round;
//! the report has the median over the rounds, with the smallest and largest. iperf3 sends and
//! counts for all, so no program measures itself. A program that is missing on this machine has no
//! turn, and the report lists it.

mod entrant;
mod line;
mod load;
mod picture;
mod report;
mod roofline;
mod text;
mod wireguard;

pub use entrant::Entrant;
pub use report::{Report, Row};

use crate::obstacle::Obstacle;
use line::Line;
use load::Sample;
use std::collections::BTreeMap;

/// Samples of one round, by program.
type Round = BTreeMap<Entrant, Sample>;

/// Options of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of rounds.
    pub rounds: u32,
    /// Length of each load, in seconds.
    pub seconds: u32,
    /// True to give the ends different keys: no packet may get through.
    pub wrong_key: bool,
}

/// Runs the benchmark. The report includes tunnels that do not come up.
///
/// # Errors
/// This machine cannot run the benchmark.
pub fn measure(options: &Options) -> Result<Report, Obstacle> {
    crate::testbed::find_command("iperf3", "iperf3")?;
    if options.wrong_key {
        // The reason is the last line; the lines above show the command.
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
