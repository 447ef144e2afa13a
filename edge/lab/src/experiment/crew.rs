//! Many cells at once: as many as the machine carries without its emulators being late.
//!
//! How many that is, nobody knows beforehand: it depends on the machine and on what else runs on
//! it. So the crew does as TCP does: it begins with a number, takes a quarter away when cells were
//! late (once for all that ran at the same time), and dares one more after a full round without
//! any. The first cells do not begin at the same moment, nor do all end so: to make networks and to
//! take them down keeps the kernel busy, and the packets of others waiting. A late cell is run
//! again; one that is late again and again keeps its last result, and the result says so.
//!
//! A machine that stands still now and then delays few cells as much as many
//! ([`crate::bystander`]). A cell that was late with it is run again as well, but once only, and
//! the crew keeps its number.

use super::cell::{Cell, Measured, REPEATS};
use super::trial::Kind;
use anyhow::{Error, Result, anyhow};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How many rounds of the crew a job may be done before its turn.
const LOOK_AHEAD: usize = 4;

/// How often whoever watches is told that time passes.
const TICK: Duration = Duration::from_millis(250);

/// What whoever watches learns.
pub(super) enum News<'a> {
    /// Time passes.
    Tick,
    /// A cell has its result.
    Done(&'a Measured),
    /// A cell failed and is run again.
    Again(&'a Cell, &'a Error),
    /// A cell was late, for this reason, and is run again; until then this is its result.
    Late(&'a Measured, &'static str),
    /// A cell cannot be measured.
    Failed(&'a Cell, &'a Error),
}

/// What the crew is doing.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// Cells that run now.
    pub running: usize,
    /// Cells that may run at once.
    pub width: usize,
}

/// A cell to be run.
#[derive(Debug, PartialEq)]
pub(super) struct Job {
    cell: Cell,
    /// How often it was run again before.
    repeats: u32,
    /// When it was started, in narrowings of the crew; `None` for the first one at its place, which
    /// others disturb that make their networks.
    epoch: Option<u32>,
}

impl Job {
    /// A cell that was never run.
    pub fn new(cell: Cell) -> Self {
        Self {
            cell,
            repeats: 0,
            epoch: None,
        }
    }

    /// What is run.
    pub const fn cell(&self) -> &Cell {
        &self.cell
    }

    /// One that was, and not well.
    pub fn again(measured: &Measured) -> Self {
        Self {
            repeats: measured.repeats + 1,
            ..Self::new(measured.cell)
        }
    }
}

/// Does all jobs with at most `most` at once, none sooner than `pace` after the one before, and
/// tells `watch` what happens. Each place has a worker that `hire` makes, and a thread that lives as
/// long as the crew: what a worker starts for one job is there for the next.
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
                    scope.spawn(move || attend(number, hire, &received, &done));
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
    /// What its last job needed.
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

/// Picks a job and who does it. Whoever is free goes on with what it has; not far out of turn, so
/// that a run that is broken off has whole pairs. A number one past the last is a new place.
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

/// Does jobs until there will be no more. A worker that panicked is replaced.
fn attend<W: FnMut(&Cell) -> Result<Measured>>(
    number: usize,
    hire: impl Fn() -> W,
    orders: &Receiver<Job>,
    done: &Sender<Finished>,
) {
    let mut worker = hire();
    for job in orders {
        let outcome = catch_unwind(AssertUnwindSafe(|| worker(&job.cell)));
        let outcome = outcome.unwrap_or_else(|_| {
            worker = hire();
            Err(anyhow!("it panicked"))
        });
        done.send((number, job, outcome))
            .expect("whoever waits for results outlives the threads that send them");
    }
}

fn next(results: &Receiver<Finished>) -> Option<Finished> {
    match results.recv_timeout(TICK) {
        Ok(finished) => Some(finished),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => unreachable!("the crew holds a sender"),
    }
}

/// Tells what became of a job; returns it if it has to be done again.
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

/// How many cells may run at once.
struct Width {
    now: usize,
    most: usize,
    /// Cells in a row that were not late.
    punctual: usize,
    /// How often it became less.
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

    /// Takes note of a cell that was started in an epoch.
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

    /// Runs three cells; returns what was done, repeated and given up.
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
        // Who has nothing left of its own helps the other.
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
            2 => panic!("a bug"),
            _ => Ok(measured(cell, 1e6)),
        });
        assert_eq!((done.len(), again, failed), (1, 2 * REPEATS, 2));
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
