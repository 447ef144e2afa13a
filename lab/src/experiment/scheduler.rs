//! Runs many cells at once: as many as the machine carries without late emulators.
//!
//! The right number is unknown beforehand: it depends on the machine and on its other load. The
//! scheduler therefore behaves like TCP. It begins with a number, reduces it by a quarter when
//! cells were late (once for all that ran at the same time), and adds one after a full round
//! without late cells. Cells neither start nor end all at the same moment: creating and removing
//! networks keeps the kernel busy and delays the packets of others. A late cell is repeated. A cell
//! that is late every time keeps its last result, which records the lateness.
//!
//! A machine that stalls now and then delays few cells as much as many ([`crate::bystander`]). A
//! cell that was late with the machine is repeated as well, but only once, and the scheduler keeps
//! its number.

use super::cell::{Cell, Measured, REPEATS};
use super::trial::Kind;
use anyhow::{Error, Result};
use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Number of rounds of the scheduler by which a job may run ahead of its turn.
const LOOK_AHEAD: usize = 4;

/// Interval of the ticks that the watcher receives.
const TICK: Duration = Duration::from_millis(250);

/// An event for the watcher.
pub(super) enum News<'a> {
    /// Time has passed.
    Tick,
    /// A cell has its result.
    Done(&'a Measured),
    /// A cell failed and will be repeated.
    Again(&'a Cell, &'a Error),
    /// A cell was late, for this reason, and will be repeated. Until then this is its result.
    Late(&'a Measured, &'static str),
    /// A cell could not be measured.
    Failed(&'a Cell, &'a Error),
}

/// State of the scheduler.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// Number of running cells.
    pub running: usize,
    /// Number of cells that may run at once.
    pub width: usize,
}

/// A cell to be run.
#[derive(Debug, PartialEq)]
pub(super) struct Job {
    cell: Cell,
    /// Number of earlier repetitions.
    repeats: u32,
    /// Epoch of the scheduler at its start. `None` for the first job of a place: the creation of
    /// other networks disturbs it.
    epoch: Option<u32>,
}

impl Job {
    /// Creates a job for a cell that was never run.
    pub fn new(cell: Cell) -> Self {
        Self {
            cell,
            repeats: 0,
            epoch: None,
        }
    }

    /// Returns the cell to run.
    pub const fn cell(&self) -> &Cell {
        &self.cell
    }

    /// Creates a job that repeats a late cell.
    pub fn again(measured: &Measured) -> Self {
        Self {
            repeats: measured.repeats + 1,
            ..Self::new(measured.cell)
        }
    }
}

/// Runs all jobs, at most `most` at once, each at least `pace` after the one before, and reports
/// events to `watch`. Each place has a worker made by `hire`, and a thread that lives as long as
/// the scheduler. Resources that a worker creates for one job therefore remain for the next.
pub(super) fn work<W: FnMut(&Cell) -> Result<Measured>>(
    jobs: Vec<Job>,
    most: usize,
    pace: Duration,
    hire: impl Fn() -> W + Sync,
    mut watch: impl FnMut(News<'_>, State),
) {
    let mut jobs = VecDeque::from(jobs);
    let mut width = Width::new(most);
    let (done, results) = mpsc::channel();
    thread::scope(|scope| {
        let mut places: Vec<Place> = Vec::new();
        let mut next_start = Instant::now();
        loop {
            while busy(&places) < width.now && Instant::now() >= next_start && !jobs.is_empty() {
                let (number, job) = choose(&places, &mut jobs, width.most);
                if number == places.len() {
                    let (orders, received) = mpsc::channel();
                    let (hire, done) = (&hire, done.clone());
                    scope.spawn(move || attend(number, hire(), &received, &done));
                    places.push(Place::new(orders));
                }
                places[number].take(job, width.epoch);
                next_start = Instant::now() + pace;
            }
            let running = busy(&places);
            if running == 0 && jobs.is_empty() {
                return;
            }
            let finished = next(&results);
            let state = State {
                running: running - usize::from(finished.is_some()),
                width: width.now,
            };
            match finished {
                None => watch(News::Tick, state),
                Some((number, job, outcome)) => {
                    places[number].is_busy = false;
                    let again = judge(job, outcome, &mut width, |news| watch(news, state));
                    jobs.extend(again);
                }
            }
        }
    });
}

/// A thread with a worker.
struct Place {
    orders: Sender<Job>,
    is_busy: bool,
    /// Kind of network of its last job.
    kind: Option<Kind>,
}

impl Place {
    const fn new(orders: Sender<Job>) -> Self {
        Self {
            orders,
            is_busy: false,
            kind: None,
        }
    }

    fn take(&mut self, mut job: Job, epoch: u32) {
        job.epoch = self.kind.map(|_| epoch);
        self.is_busy = true;
        self.kind = Some(job.cell.kind());
        self.orders
            .send(job)
            .expect("a thread waits for orders as long as there is somebody to give them");
    }
}

fn busy(places: &[Place]) -> usize {
    places.iter().filter(|place| place.is_busy).count()
}

/// Picks a job and a place for it. A free place prefers a job that fits its network, within a
/// limited distance from the job's turn, so that an interrupted run has whole pairs. A number one
/// past the last is a new place.
fn choose(places: &[Place], jobs: &mut VecDeque<Job>, most: usize) -> (usize, Job) {
    let is_free = |&number: &usize| !places[number].is_busy;
    let free = || (0..places.len()).filter(is_free);
    let soon = || jobs.iter().take(LOOK_AHEAD * most).enumerate();
    let fitting = free().find_map(|number| {
        let fits = |job: &Job| Some(job.cell.kind()) == places[number].kind;
        let (at, _) = soon().find(|(_, job)| fits(job))?;
        Some((number, at))
    });
    let (number, at) = fitting.unwrap_or_else(|| {
        let new = places.len();
        let number = if new < most { Some(new) } else { free().next() };
        (number.unwrap_or(new), 0)
    });
    let job = jobs.remove(at).expect("a place was chosen for one of them");
    (number, job)
}

type Finished = (usize, Job, Result<Measured>);

/// Runs jobs until the channel of orders closes.
fn attend(
    number: usize,
    mut worker: impl FnMut(&Cell) -> Result<Measured>,
    orders: &Receiver<Job>,
    done: &Sender<Finished>,
) {
    for job in orders {
        let outcome = worker(&job.cell);
        done.send((number, job, outcome))
            .expect("whoever waits for results outlives the threads that send them");
    }
}

fn next(results: &Receiver<Finished>) -> Option<Finished> {
    match results.recv_timeout(TICK) {
        Ok(finished) => Some(finished),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => unreachable!("the scheduler holds a sender"),
    }
}

/// Reports the outcome of a job; returns the job if it must be repeated.
fn judge(
    mut job: Job,
    outcome: Result<Measured>,
    width: &mut Width,
    mut watch: impl FnMut(News<'_>),
) -> Option<Job> {
    match outcome {
        Ok(mut measured) => {
            measured.repeats = job.repeats;
            width.note(measured.is_overloaded(), job.epoch);
            let Some(reason) = measured.reason_to_repeat() else {
                watch(News::Done(&measured));
                return None;
            };
            watch(News::Late(&measured, reason));
            Some(Job::again(&measured))
        }
        Err(error) if job.repeats < REPEATS => {
            watch(News::Again(&job.cell, &error));
            job.repeats += 1;
            Some(job)
        }
        Err(error) => {
            watch(News::Failed(&job.cell, &error));
            None
        }
    }
}

/// Number of cells that may run at once.
struct Width {
    now: usize,
    most: usize,
    /// Number of punctual cells in a row.
    punctual: usize,
    /// Number of reductions so far.
    epoch: u32,
}

impl Width {
    fn new(most: usize) -> Self {
        let most = most.max(1);
        Self {
            now: most,
            most,
            punctual: 0,
            epoch: 0,
        }
    }

    /// Records a cell that was started in an epoch.
    fn note(&mut self, late: bool, epoch: Option<u32>) {
        self.punctual = if late { 0 } else { self.punctual + 1 };
        if late && epoch == Some(self.epoch) {
            self.now = (self.now * 3 / 4).max(1);
            self.epoch += 1;
        } else if self.punctual > self.now {
            self.punctual = 0;
            self.now = (self.now + 1).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::REPEATS_WITH_THE_MACHINE;
    use super::super::synthetic::{cell, measured};
    use super::*;
    use anyhow::bail;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

    fn late(cell: &Cell) -> Measured {
        let mut measured = measured(cell, 1e6);
        measured.hops.packets = 100;
        measured.hops.late = 1;
        measured
    }

    /// Runs three cells; returns the repetitions of each finished cell, and the numbers of repeated
    /// and failed ones.
    fn work_on_three(run: impl Fn(&Cell) -> Result<Measured> + Sync) -> (Vec<u32>, u32, u32) {
        let jobs = [1, 2, 3].map(|seed| Job::new(cell(seed))).into();
        let (mut done, mut again, mut failed) = (Vec::new(), 0, 0);
        work(
            jobs,
            2,
            Duration::ZERO,
            || &run,
            |news, _| match news {
                News::Tick => {}
                News::Done(measured) => done.push(measured.repeats),
                News::Again(..) | News::Late(..) => again += 1,
                News::Failed(..) => failed += 1,
            },
        );
        (done, again, failed)
    }

    #[test]
    fn every_cell_is_run_and_never_more_at_once_than_allowed() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (done, again, failed) = work_on_three(|cell| {
            most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            thread::yield_now();
            now.fetch_sub(1, SeqCst);
            Ok(measured(cell, 1e6))
        });
        assert_eq!((done, again, failed), (vec![0; 3], 0, 0));
        assert!(most.into_inner() <= 2);
    }

    #[test]
    fn a_place_goes_on_with_the_kind_of_network_it_has() {
        let of = |seed, snoop| {
            Job::new(Cell {
                snoop,
                ..cell(seed)
            })
        };
        let jobs = (1..=8).flat_map(|seed| [of(seed, true), of(seed, false)]);
        let changes = AtomicUsize::new(0);
        let hire = || {
            let mut last = None;
            let changes = &changes;
            move |cell: &Cell| {
                if last.is_some_and(|last| last != cell.kind()) {
                    changes.fetch_add(1, SeqCst);
                }
                last = Some(cell.kind());
                Ok(measured(cell, 1e6))
            }
        };
        work(jobs.collect(), 2, Duration::ZERO, hire, |_, _| {});
        // A place without jobs of its own kind takes one of another kind.
        assert!(changes.into_inner() <= 1);
    }

    #[test]
    fn a_late_cell_is_run_again_and_in_the_end_kept() {
        let first = AtomicU32::new(0);
        let (mut done, again, _) = work_on_three(|cell| {
            let once = cell.seed == 1 && first.fetch_add(1, SeqCst) == 0;
            match once || cell.seed == 2 {
                true => Ok(late(cell)),
                false => Ok(measured(cell, 1e6)),
            }
        });
        done.sort_unstable();
        assert_eq!((done, again), (vec![0, 1, REPEATS], 1 + REPEATS));
    }

    #[test]
    fn a_cell_as_late_as_the_machine_is_run_again_once() {
        let (done, again, _) = work_on_three(|cell| {
            let mut measured = late(cell);
            measured.machine.waited_for = 100;
            measured.machine.missed = 1;
            Ok(measured)
        });
        assert_eq!((done, again), (vec![REPEATS_WITH_THE_MACHINE; 3], 3));
    }

    #[test]
    fn a_cell_that_fails_is_tried_again_and_in_the_end_given_up() {
        let (done, again, failed) = work_on_three(|cell| match cell.seed {
            1 => bail!("no network"),
            _ => Ok(measured(cell, 1e6)),
        });
        assert_eq!((done.len(), again, failed), (2, REPEATS, 1));
    }

    #[test]
    fn lateness_narrows_the_crew_once_and_punctuality_widens_it_again() {
        let mut width = Width::new(16);
        width.note(true, None);
        assert_eq!(width.now, 16);
        (0..5).for_each(|_| width.note(true, Some(0)));
        assert_eq!(width.now, 12);
        width.note(true, Some(1));
        assert_eq!(width.now, 9);
        (2..100).for_each(|epoch| width.note(true, Some(epoch)));
        assert_eq!(width.now, 1);
        (0..200).for_each(|_| width.note(false, Some(100)));
        assert_eq!(width.now, 16);
    }
}
