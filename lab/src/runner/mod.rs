//! The test runner of the lab: each test in its own process and namespaces, several at once.
//!
//! [`crate::test`] registers a test. [`run`] is `main` of a test program (`harness = false`). The
//! program starts itself again for each test: the kernel grants a user namespace only to a process
//! with a single thread, and a test that hangs or crashes must not affect others.
//!
//! * Tests run two per processor, since most of them wait for most of their time. The longest (by
//!   [`Test::limit`]) start first.
//! * A test that measures a link is [`Test::quiet`]: quiet tests run next, one per processor.
//! * A test that measures the machine runs [`Test::alone`], after these.
//! * Tests of a module that inspect one run of the product are [`Test::together`] in one process.
//! * A test that exceeds its limit is killed and has failed.
//! * A test against a foreign implementation may be [`Test::repeated`] once; its result then ends
//!   in `, repeated`. Any other test that fails is repeated too, as often as `--repeats` allows.
//!   One of seven hundred that loses a race on a busy machine is reported; more than that are a
//!   fault.
//!
//! The output of a test is shown if it fails, or always with `--nocapture`. The command line is
//! described in `choice`.

mod choice;
mod report;
mod unit;

pub use inventory;

use crate::testbed;
use anyhow::Result;
use choice::Choice;
use clap::{Parser, ValueEnum};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::time::TimeValLike;
use report::{Cost, Report};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use unit::{Outcome, Unit};

inventory::collect!(Test);

/// Load from other tests that a test tolerates at the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Company {
    /// Two tests per processor.
    Busy,
    /// One test per processor.
    Quiet,
    None,
}

/// A registered test.
pub struct Test {
    path: &'static str,
    function: fn() -> Result<()>,
    limit: Duration,
    company: Company,
    together: bool,
    repeated: bool,
}

impl Test {
    /// Creates a test with its module path and name, limited to three minutes.
    pub const fn new(path: &'static str, function: fn() -> Result<()>) -> Self {
        Self {
            path,
            function,
            limit: Duration::from_secs(180),
            company: Company::Busy,
            together: false,
            repeated: false,
        }
    }

    /// Fails the test after this many seconds.
    pub const fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Runs at most one test per processor while this one runs.
    pub const fn quiet(mut self) -> Self {
        self.company = Company::Quiet;
        self
    }

    /// Runs no other test at the same time as this one.
    pub const fn alone(mut self) -> Self {
        self.company = Company::None;
        self
    }

    /// Runs the test in one process with the other tests of its module that have this mark.
    pub const fn together(mut self) -> Self {
        self.together = true;
        self
    }

    /// Runs the test a second time if it fails.
    pub const fn repeated(mut self) -> Self {
        self.repeated = true;
        self
    }

    /// Returns topic, module and function, as in `zones::grant::a_grant_is_renewed`.
    fn name(&self) -> &'static str {
        self.path
            .split_once("::")
            .map_or(self.path, |(_, name)| name)
    }

    /// Returns topic and module.
    fn module(&self) -> &'static str {
        self.name()
            .rsplit_once("::")
            .map_or("", |(module, _)| module)
    }
}

/// Runs the registered tests that the command line asks for.
pub fn run() -> ExitCode {
    let choice = Choice::parse_from(std::env::args().skip(1));
    let mut chosen: Vec<_> = inventory::iter::<Test>()
        .filter(|test| choice.takes(test))
        .collect();
    chosen.sort_by_key(|test| test.name());
    let passed = if choice.list {
        chosen
            .iter()
            .for_each(|test| println!("{}: test", test.name()));
        true
    } else if choice.here {
        run_here(&chosen)
    } else {
        run_apart(&chosen, &choice)
    };
    ExitCode::from(u8::from(!passed))
}

/// Runs tests in this process, one after another, after entering namespaces.
fn run_here(tests: &[&Test]) -> bool {
    // A runner that is killed must not leave tests behind.
    let entered = set_pdeathsig(Signal::SIGKILL)
        .map_err(anyhow::Error::from)
        .and_then(|()| Ok(testbed::enter()?));
    if let Err(error) = entered {
        eprintln!("error: {error:#}");
        return false;
    }
    let mut all_passed = true;
    for test in tests {
        all_passed &= passes(test);
    }
    all_passed
}

/// Runs one test and prints its result. The message of a panic is already printed.
fn passes(test: &Test) -> bool {
    let (start, begun) = (Instant::now(), computed());
    let outcome = catch_unwind(AssertUnwindSafe(test.function));
    if let Ok(Err(error)) = &outcome {
        println!("{error:#}");
    }
    let passed = matches!(outcome, Ok(Ok(())));
    let cost = Cost {
        took: start.elapsed(),
        computed: computed().saturating_sub(begun),
    };
    // The last line of the test's output may lack its line feed.
    println!("\n{}", report::line(test.name(), passed, cost));
    passed
}

/// Returns the processor time of this process and of its children that have ended.
fn computed() -> Duration {
    let who = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN];
    let usage = who.into_iter().flat_map(getrusage);
    usage
        .flat_map(|usage| [usage.user_time(), usage.system_time()])
        .map(|time| Duration::from_micros(time.num_microseconds().unsigned_abs()))
        .sum()
}

/// Runs tests in processes of their own, the most tolerant first.
fn run_apart(tests: &[&'static Test], choice: &Choice) -> bool {
    println!("\nrunning {} tests", tests.len());
    let report = Mutex::new(Report::default());
    let repeats = AtomicUsize::new(choice.repeats);
    let mut units = unit::units(tests);
    for company in [Company::Busy, Company::Quiet, Company::None] {
        let (now, later) = units
            .into_iter()
            .partition(|unit| unit.company() == company);
        let threads = match company {
            Company::Busy => choice.threads(),
            Company::Quiet => choice.threads().div_ceil(2),
            Company::None => 1,
        };
        run_units(now, threads, choice, &repeats, &report);
        units = later;
    }
    let report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{report}");
    report.passed()
}

/// Runs units on `threads` threads, the longest limit first.
fn run_units(
    mut units: Vec<Unit>,
    threads: usize,
    choice: &Choice,
    repeats: &AtomicUsize,
    report: &Mutex<Report>,
) {
    units.sort_by_key(|unit| std::cmp::Reverse(unit.limit()));
    let queue = Mutex::new(VecDeque::from(units));
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    };
    let spend = |left: usize| left.checked_sub(1);
    let spare = || repeats.fetch_update(Relaxed, Relaxed, spend).is_ok();
    let work = || {
        while let Some(unit) = next() {
            let mut outcome = unit.run(choice.nocapture);
            if !outcome.passed() && (unit.is_repeated() || spare()) {
                let first = std::mem::replace(&mut outcome, unit.run(choice.nocapture));
                outcome.repeats(first);
            }
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.add(outcome);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}
