//! What a result was measured on, and how well the machine kept time.

use super::results::Results;
use super::{Options, Plan};
use os::priority::processors;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The machine, the plan, and how its downloads were measured if it has any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Strata's version, and which build of it.
    pub build: String,
    /// The kernel's.
    pub kernel: String,
    /// Processors.
    pub cores: usize,
    /// Whether it was a quick run.
    pub quick: bool,
    /// Whether packets had zones where they should.
    pub zones: bool,
    /// Whether mobile nodes were in two places at once where they should.
    #[serde(default = "yes")]
    pub simultaneous: bool,
    /// Seconds this run took; cells that an earlier one finished cost nothing.
    pub wall_seconds: u64,
    /// Its downloads.
    #[serde(flatten)]
    pub downloads: Option<Downloads>,
}

/// As it was before it could be left off.
const fn yes() -> bool {
    true
}

/// How many downloads there were, and the emulators' punctuality.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Downloads {
    /// Runs of each condition.
    pub seeds: u64,
    /// Length of each download.
    pub seconds: u64,
    /// Whether SNOOP was on.
    pub snoop: bool,
    /// Networks at once, at most.
    pub at_once: usize,
    /// Cells measured.
    pub cells: usize,
    /// Times a cell was run again because packets were late.
    pub repeats: u64,
    /// Cells that were late even then.
    pub late_cells: usize,
    /// Packets on all emulated hops.
    pub packets: u64,
    /// Of them late by more than 5 ms, in the cells that count.
    pub late_packets: u64,
    /// The part of time in which the machine itself was late by as much, 0 to 1.
    pub machine_late: f64,
    /// Milliseconds the latest one was late.
    pub worst_ms: f64,
    /// Whether all emulators had real-time priority.
    pub real_time: bool,
}

impl Environment {
    pub(super) fn new(plan: &Plan, build: &str, wall: Duration) -> Self {
        Self {
            build: build.to_owned(),
            kernel: kernel(),
            cores: processors(),
            quick: plan.quick,
            zones: plan.zones,
            simultaneous: plan.simultaneous,
            wall_seconds: wall.as_secs(),
            downloads: None,
        }
    }

    /// The same with what is to be said of downloads.
    #[must_use]
    pub(super) fn with(self, results: &Results, options: &Options) -> Self {
        Self {
            downloads: Some(Downloads::new(results, options)),
            ..self
        }
    }
}

impl Downloads {
    fn new(results: &Results, options: &Options) -> Self {
        let Plan {
            seeds,
            seconds,
            snoop,
            ..
        } = options.plan;
        let cells = || results.iter();
        Self {
            seeds,
            seconds,
            snoop,
            at_once: options.at_once,
            cells: cells().count(),
            repeats: cells().map(|cell| u64::from(cell.repeats)).sum(),
            late_cells: cells().filter(|cell| cell.hops.is_late()).count(),
            packets: cells().map(|cell| cell.hops.packets).sum(),
            late_packets: cells().map(|cell| cell.hops.late).sum(),
            machine_late: {
                let share: f64 = cells().map(|cell| cell.machine.share()).sum();
                share / cells().count().max(1) as f64
            },
            worst_ms: cells().map(|cell| cell.hops.worst_ms).fold(0.0, f64::max),
            real_time: cells().all(|cell| cell.hops.real_time),
        }
    }

    /// How well time was kept, as a sentence.
    pub fn punctuality(&self) -> String {
        let per_mille = self.late_packets as f64 * 1000.0 / self.packets.max(1) as f64;
        let priority = match self.real_time {
            true => "at real-time priority",
            false => "not all at real-time priority",
        };
        let late = match self.late_cells {
            0 => "none stayed late".to_owned(),
            1 => "one stayed late and is counted as it is".to_owned(),
            number => format!("{number} stayed late and are counted as they are"),
        };
        format!(
            "{per_mille:.3} of 1000 packets were more than 5 ms late, the latest {:.1} ms; so was \
             the machine itself in {:.3} of 1000 moments, when a thread only waited for them; the \
             emulators ran {priority}; {} times a cell was run again because more than one packet \
             in 1000 was late, {late}",
            self.worst_ms,
            self.machine_late * 1000.0,
            self.repeats,
        )
    }
}

fn kernel() -> String {
    let release = os::sysctl::get("kernel.osrelease");
    release.unwrap_or_else(|_| "unknown".to_owned())
}
