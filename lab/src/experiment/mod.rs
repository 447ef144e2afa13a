//! Experiments: the cells of figures, each on a network of its own, and the conclusions from them;
//! and tables, which are measured once.
//!
//! A [`Figure`] names [`Condition`]s and claims about them. A plan turns each condition into cells,
//! one for each seed. Cells that an earlier run finished are read from the output folder; a
//! scheduler runs the others, several at once. A [`Table`] measures by itself: its numbers are the
//! same each time and need no seeds. Each result is then judged, and written as CSV, JSON and SVG.

mod cell;
mod claim;
mod csv;
mod environment;
mod exhibit;
mod finding;
mod progress;
mod recompute;
mod record;
mod report;
mod results;
mod scheduler;
mod simulation;
mod statistics;
mod store;
#[cfg(test)]
pub(crate) mod synthetic;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod trial;

pub use cell::{Cell, Condition, Hops, Measured, Sample, bits};
#[cfg(test)]
pub(crate) use claim::unjudged;
pub use claim::{Claim, Standing, Statement};
pub use environment::{Downloads, Environment};
pub use exhibit::Exhibit;
pub use finding::{CONTRADICTION, Contradiction, Finding, Verdict};
pub use recompute::{files, recompute};
pub use report::{Evidence, Point, Report};
pub use results::Results;
pub use simulation::{Agreement, Apart};
pub use statistics::Estimate;
pub(crate) use statistics::{extremes, mean, median, median_ratio, ratio};
pub use table::{Basis, Column, Filled, Grid, Raw, Row, Table};

use crate::bystander::Bystander;
use crate::canary::Marked;
use crate::obstacle::Obstacle;
use crate::plot::Plot;
use crate::scene::Sender;
use crate::testbed::{find_binary, find_command};
use crate::vigil::Vigil;
use anyhow::{Error, Result};
use os::priority::processors;
use progress::Progress;
use record::Record;
use report::Outcome;
use scheduler::{Job, News};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use store::Store;
use trial::Bench;

/// Networks per processor that run at once.
pub(crate) const NETWORKS_PER_CORE: usize = 13;

/// Time that a cell takes in addition to its download: namespaces, daemons, key exchanges.
const OVERHEAD: Duration = Duration::from_secs(4);

/// One cell in this many is late and is repeated on an otherwise idle machine.
const REPEATED: usize = 3;

/// Folder of measured cells.
const MEASURED: &str = "cells";

/// Folder of simulated cells.
const SIMULATED: &str = "simulated";

/// Seed of the marked stream of every download.
const CONTENT: u64 = 1;

/// A figure: a claim of a paper, and its reproduction here.
pub struct Figure {
    /// Its name on the command line.
    pub name: &'static str,
    /// Title of the figure.
    pub title: &'static str,
    /// Claims of the paper, with their numbers.
    pub claims: &'static [Claim],
    /// Reproduction of the figure here, with the differences.
    pub setting: &'static str,
    /// Parameters of the paper, beside those that run.
    pub parameters: &'static [Parameter],
    /// Conditions to measure; fewer for a quick run.
    pub conditions: fn(quick: bool) -> Vec<Condition>,
    /// Conclusions that must hold.
    pub findings: fn(&Results) -> Vec<Finding>,
    /// Plots of the results.
    pub plots: fn(&Results) -> Vec<Plot>,
    /// True if the samples over time are written too.
    pub traces: bool,
    /// True if the figure depends on zones, so that it must fail without them. The other figures
    /// depend on SNOOP.
    pub zones: bool,
}

/// Extent of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Fewer conditions.
    pub quick: bool,
    /// Number of runs of each condition.
    pub seeds: u64,
    /// Length of each download, in seconds.
    pub seconds: u64,
    /// Number of clients that lose their gateway at once.
    pub clients: u32,
    /// True if SNOOP works in the setups that have it.
    pub snoop: bool,
    /// True if packets have zones in the setups that have them.
    pub zones: bool,
    /// True if mobile nodes have simultaneous bindings in the conditions that use them.
    pub simultaneous: bool,
    /// True if lost sessions are resumed.
    pub resumption: bool,
    /// True if tunnels move (MOBIKE) where they are to.
    pub mobike: bool,
    /// True if child SAs are in transport mode where they are to be.
    pub transport: bool,
    /// True if IKE SAs are cloned for soft hand-overs.
    pub clones: bool,
    /// True if several paths carry packets at once where they are to.
    pub paths: bool,
    /// True if tunnels protect traffic where they are to.
    pub tunnels: bool,
}

impl Plan {
    /// A plan for a first impression.
    pub const QUICK: Self = Self {
        quick: true,
        seeds: 3,
        seconds: 20,
        clients: 200,
        snoop: true,
        zones: true,
        simultaneous: true,
        resumption: true,
        mobike: true,
        transport: true,
        clones: true,
        paths: true,
        tunnels: true,
    };

    /// A plan for a verdict.
    pub const FULL: Self = Self {
        quick: false,
        seeds: 10,
        seconds: 30,
        clients: 10_000,
        snoop: true,
        zones: true,
        simultaneous: true,
        resumption: true,
        mobike: true,
        transport: true,
        clones: true,
        paths: true,
        tunnels: true,
    };
}

/// A parameter of a paper, beside the one that runs here.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// Its value in the paper.
    pub paper: &'static str,
    /// Its value here.
    pub here: &'static str,
    /// Reason of a difference; empty if there is none.
    pub why: &'static str,
}

impl Figure {
    /// Returns the cells of a plan, seed by seed: an interrupted run has whole pairs.
    pub fn cells(&self, plan: &Plan) -> Vec<Cell> {
        let conditions = (self.conditions)(plan.quick);
        let seeds = 1..=plan.seeds;
        seeds
            .flat_map(|seed| {
                let cell = move |&condition: &Condition| Cell::new(condition, seed, plan);
                conditions.iter().map(cell).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Estimates the duration of a plan with this many networks at once if no cell was measured
    /// before.
    pub fn estimate(&self, plan: &Plan, at_once: usize) -> Duration {
        let cells = self.cells(plan).len();
        let rounds = (cells + cells / REPEATED).div_ceil(at_once);
        (Duration::from_secs(plan.seconds) + OVERHEAD) * rounds as u32
    }

    /// Judges the results. The simulator's results are judged by the same rules and added to the
    /// findings.
    fn judge(&self, results: &Results, simulated: &Results) -> Vec<Finding> {
        let others = (self.findings)(simulated);
        let mut findings = (self.findings)(results);
        for finding in &mut findings {
            let other = others.iter().find(|other| other.what == finding.what);
            finding.simulated = other.and_then(|other| Some(other.measured?.value));
        }
        findings
    }

    /// Returns everything that follows from measured and simulated cells.
    fn outcome(
        &'static self,
        record: &Record,
        [results, simulated]: [&Results; 2],
        environment: Environment,
    ) -> Result<Outcome> {
        let report = Report::new(
            Exhibit::Figure(self),
            self.judge(results, simulated),
            record.unmeasured()?.to_vec(),
            Evidence::of_downloads(results, simulated),
            environment.with(results, record),
        );
        Ok(Outcome {
            report,
            files: self.files(results),
            plots: (self.plots)(results),
        })
    }

    /// Returns the files for other programs.
    fn files(&self, results: &Results) -> Vec<(&'static str, String)> {
        let mut files = vec![("cells.csv", csv::cells(results))];
        if self.traces {
            files.push(("traces.csv", csv::traces(results)));
        }
        files
    }
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Extent of the measurement.
    pub plan: Plan,
    /// The output folder.
    pub out: PathBuf,
    /// Largest number of networks at once.
    pub at_once: usize,
    /// True to draw progress bars if standard error is a terminal.
    pub bars: bool,
}

impl Options {
    /// Returns the time from the start of one cell to that of the next. The first round starts
    /// within half the duration of a cell.
    fn pace(&self) -> Duration {
        let one = Duration::from_secs(self.plan.seconds) + OVERHEAD;
        one / (2 * self.at_once.max(1) as u32)
    }
}

/// Returns the number of networks that this machine should carry.
pub fn networks_at_once() -> usize {
    NETWORKS_PER_CORE * processors()
}

/// Measures missing cells, then judges and writes each exhibit, in namespaces that were already
/// entered ([`crate::testbed::enter`]).
///
/// # Errors
/// The machine cannot carry the networks, the plan disables a feature that an exhibit does not
/// depend on, or the output folder cannot be written.
pub fn run(exhibits: &[Exhibit], options: &Options) -> Result<Vec<Report>, Obstacle> {
    let check = |exhibit: &Exhibit| exhibit.check(&options.plan);
    exhibits.iter().try_for_each(check)?;
    let figures: Vec<_> = exhibits.iter().filter_map(|one| one.figure()).collect();
    let mut reports = match figures.is_empty() {
        true => Vec::new(),
        false => download(&figures, options)?,
    };
    for table in exhibits.iter().filter_map(|one| one.table()) {
        reports.push(table.report(options).map_err(unwritable)?);
    }
    let turn = |report: &Report| exhibits.iter().position(|one| one.name() == report.figure);
    reports.sort_by_key(turn);
    Ok(reports)
}

fn unwritable(error: Error) -> Obstacle {
    let fix = "choose another folder with --out, or make room there";
    Obstacle::new(format!("{error:#}"), fix)
}

/// Runs figures, which share their cells.
fn download(figures: &[&'static Figure], options: &Options) -> Result<Vec<Report>, Obstacle> {
    let store = Store::open(&options.out, MEASURED).map_err(unwritable)?;
    let virtual_store = Store::open(&options.out, SIMULATED).map_err(unwritable)?;
    let cells: BTreeSet<_> = figures
        .iter()
        .flat_map(|figure| figure.cells(&options.plan))
        .collect();
    let mut cells: Vec<_> = cells.into_iter().collect();
    cells.sort_by_key(Cell::turn);
    let start = Instant::now();
    let mut failures = measure(&cells, &store, options)?;
    failures.extend(simulate(&cells, &virtual_store, options));
    let mut reports = Vec::new();
    for figure in figures {
        let cells = figure.cells(&options.plan);
        let [results, simulated]: [Results; 2] = [&store, &virtual_store]
            .map(|store| cells.iter().filter_map(|cell| store.load(cell)).collect());
        let environment = Environment::new(&options.plan, store.build(), start.elapsed());
        let unmeasured = failures.iter().filter(|(cell, _)| cells.contains(cell));
        let unmeasured = unmeasured.map(|(cell, why)| format!("{}: {why}", cell.key()));
        let record = Record::of_figure(options, unmeasured.collect());
        let report = record
            .kept(&options.out, figure.name)
            .and_then(|record| figure.outcome(&record, [&results, &simulated], environment))
            .and_then(|outcome| outcome.write(&options.out))
            .map_err(unwritable)?;
        reports.push(report);
    }
    Ok(reports)
}

/// Cells that could not be measured, each with the reason.
type Failures = Vec<(Cell, String)>;

/// Runs the cells that are not in the store on networks, as many at once as stay on time.
fn measure(cells: &[Cell], store: &Store, options: &Options) -> Result<Failures, Obstacle> {
    let jobs = store.jobs(cells);
    if jobs.is_empty() {
        return Ok(Failures::new());
    }
    check(jobs.iter().map(Job::cell))?;
    let stream = Marked::new(CONTENT);
    let (bystander, _vigil) = (Bystander::start(), Vigil::start());
    let hire = || {
        let mut bench = Bench::new(&stream, &bystander);
        move |cell: &Cell| bench.run(cell)
    };
    let progress = Progress::new("cells", jobs.len(), options);
    let scheduler = (options.at_once, options.pace());
    Ok(fill(jobs, store, scheduler, progress, hire))
}

/// Runs the cells that the simulator supports in virtual time, once no emulator can be disturbed.
fn simulate(cells: &[Cell], store: &Store, options: &Options) -> Failures {
    let cells: Vec<_> = cells.iter().copied().filter(simulation::has).collect();
    let jobs = store.jobs(&cells);
    let progress = Progress::new("simulations", jobs.len(), options);
    fill(
        jobs,
        store,
        (processors(), Duration::ZERO),
        progress,
        || simulation::run,
    )
}

/// Runs jobs and stores their results; returns the cells that could not be measured or stored.
fn fill<W: FnMut(&Cell) -> Result<Measured>>(
    jobs: Vec<Job>,
    store: &Store,
    (at_once, pace): (usize, Duration),
    mut progress: Progress,
    hire: impl Fn() -> W + Sync,
) -> Failures {
    let mut failures = Failures::new();
    scheduler::work(jobs, at_once, pace, hire, |news, state| {
        match &news {
            News::Done(measured) | News::Late(measured, _) => {
                if let Err(error) = store.save(measured) {
                    failures.push((measured.cell, format!("{error:#}")));
                }
            }
            News::Failed(cell, error) => failures.push((**cell, format!("{error:#}"))),
            News::Tick | News::Again(..) => {}
        }
        progress.note(&news, state);
    });
    failures
}

/// Checks all requirements of the cells before the first one runs.
fn check<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> Result<(), Obstacle> {
    if cells.clone().any(|cell| cell.condition.setup.has_daemons()) {
        find_binary("stratad")?;
        find_binary("strata")?;
    }
    if cells.clone().any(Cell::has_plaintext) {
        find_command("nft", "nftables")?;
    }
    let available = os::sysctl::get("net.ipv4.tcp_available_congestion_control")?;
    let senders: BTreeSet<Sender> = cells.map(|cell| cell.condition.sender).collect();
    for sender in senders {
        if !available
            .split_whitespace()
            .any(|name| name == sender.key())
        {
            let name = sender.key().to_owned();
            return Err(os::Error::NoCongestionControl { name }.into());
        }
    }
    Ok(())
}
