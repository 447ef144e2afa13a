//! The environment of a measurement, and the punctuality of its machine.

use super::Plan;
use super::record::Record;
use super::results::Results;
use crypto::UnixTime;
use os::priority::processors;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use std::{env, fs};

/// Variable in which `./x figures` tells the commit that it built.
const COMMIT: &str = "STRATA_COMMIT";

/// The machine, the plan, and the conditions of the downloads if there are any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version and build of Strata: `0.1.0, release build (...)`.
    pub build: String,
    /// Version of the kernel.
    pub kernel: String,
    /// Number of processors.
    pub cores: usize,
    /// Model of the processors.
    #[serde(default)]
    pub processor: String,
    /// End of the measurement, in UTC.
    #[serde(default)]
    pub date: String,
    /// The command that measured.
    #[serde(default)]
    pub command: String,
    /// Commit of the programs, as `./x figures` tells it; empty if another command built them.
    #[serde(default)]
    pub commit: String,
    /// True for a quick run.
    pub quick: bool,
    /// True if packets had zones in the setups that have them.
    pub zones: bool,
    /// True if mobile nodes had simultaneous bindings in the conditions that use them.
    #[serde(default = "yes")]
    pub simultaneous: bool,
    /// True if lost sessions were resumed.
    #[serde(default = "yes")]
    pub resumption: bool,
    /// True if tunnels moved.
    #[serde(default = "yes")]
    pub mobike: bool,
    /// True if child SAs were in transport mode where they were to be.
    #[serde(default = "yes")]
    pub transport: bool,
    /// True if IKE SAs were cloned for soft hand-overs.
    #[serde(default = "yes")]
    pub clones: bool,
    /// True if several paths carried packets at once where they were to.
    #[serde(default = "yes")]
    pub paths: bool,
    /// True if tunnels protected traffic where they were to.
    #[serde(default = "yes")]
    pub tunnels: bool,
    /// Duration of this run, in seconds, without cells that an earlier run finished.
    pub wall_seconds: u64,
    /// Conditions of the downloads.
    #[serde(flatten)]
    pub downloads: Option<Downloads>,
}

/// Default of files that were written before the option existed.
const fn yes() -> bool {
    true
}

/// Number of downloads, and punctuality of the emulators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Downloads {
    /// Number of runs of each condition.
    pub seeds: u64,
    /// Length of each download, in seconds.
    pub seconds: u64,
    /// True if SNOOP was on.
    pub snoop: bool,
    /// Largest number of networks at once.
    pub at_once: usize,
    /// Number of measured cells.
    pub cells: usize,
    /// Number of repetitions because of late packets.
    pub repeats: u64,
    /// Number of cells that stayed late after all repetitions.
    pub late_cells: usize,
    /// Packets on all emulated hops.
    pub packets: u64,
    /// Packets of the final cells that were late by more than 5 ms.
    pub late_packets: u64,
    /// Fraction of time in which the machine itself was late by as much, 0 to 1.
    pub machine_late: f64,
    /// Lateness of the latest packet, in milliseconds.
    pub worst_ms: f64,
    /// True if all emulators had real-time priority.
    pub real_time: bool,
}

impl Environment {
    pub(super) fn new(plan: &Plan, build: &str, wall: Duration) -> Self {
        Self {
            build: build.to_owned(),
            kernel: kernel(),
            cores: processors(),
            processor: processor(),
            date: now(),
            command: command(),
            commit: env::var(COMMIT).unwrap_or_default(),
            quick: plan.quick,
            zones: plan.zones,
            simultaneous: plan.simultaneous,
            resumption: plan.resumption,
            mobike: plan.mobike,
            transport: plan.transport,
            clones: plan.clones,
            paths: plan.paths,
            tunnels: plan.tunnels,
            wall_seconds: wall.as_secs(),
            downloads: None,
        }
    }

    /// Returns the environment with what a plan says of it.
    #[must_use]
    pub(super) fn of_plan(self, plan: &Plan) -> Self {
        Self {
            quick: plan.quick,
            zones: plan.zones,
            simultaneous: plan.simultaneous,
            resumption: plan.resumption,
            mobike: plan.mobike,
            transport: plan.transport,
            clones: plan.clones,
            paths: plan.paths,
            tunnels: plan.tunnels,
            ..self
        }
    }

    /// Returns the environment with a summary of the downloads.
    #[must_use]
    pub(super) fn with(self, results: &Results, record: &Record) -> Self {
        Self {
            downloads: Some(Downloads::new(results, record)),
            ..self
        }
    }
}

impl Downloads {
    fn new(results: &Results, record: &Record) -> Self {
        let Plan {
            seeds,
            seconds,
            snoop,
            ..
        } = record.plan;
        let cells = || results.iter();
        Self {
            seeds,
            seconds,
            snoop,
            at_once: record.at_once,
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

    /// Returns the punctuality as a sentence.
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

/// Returns the model of the first processor; empty if the kernel does not tell it.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models = text.lines().filter_map(|line| line.split_once(':'));
    let mut models = models.filter(|(key, _)| key.trim() == "model name");
    let model = models.next().map(|(_, model)| model.trim().to_owned());
    model.unwrap_or_default()
}

fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixTime(since.map_or(0, |since| since.as_secs())).to_string()
}

/// Returns the command line, without the folder of the program.
fn command() -> String {
    let mut words = env::args();
    let program = words.next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let words: Vec<_> = [program].into_iter().chain(words).collect();
    words.join(" ")
}

fn kernel() -> String {
    let release = os::sysctl::get("kernel.osrelease");
    release.unwrap_or_else(|_| "unknown".to_owned())
}
