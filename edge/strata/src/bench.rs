//! `strata bench`: hands what was typed to the lab, and prints what it measured.

use crate::args::{Bench, BenchIke};
use crate::output::{Exit, Output};
use control::Failure;
use lab::bench::{self, Load, Options, Report};
use lab::obstacle::Obstacle;
use lab::{interrupt, testbed};

/// Rounds, and set-ups in each.
const ROUNDS: (usize, u32) = (7, 400);
const QUICK_ROUNDS: (usize, u32) = (3, 100);

/// Set-ups that are under way at once: few enough that no cookies are asked for.
const AT_ONCE: usize = 16;

/// Seconds of each half of a flood.
const SECONDS: u32 = 10;
const QUICK_SECONDS: u32 = 3;

/// Measures in namespaces of our own. Must come before the first thread.
pub fn run(Bench::Ike(ike): &Bench, output: &Output) -> Exit {
    match measure(&options(ike)) {
        Ok(report) => print(&report, output),
        Err(obstacle) => {
            let failure = Failure::new(obstacle.message, obstacle.fix);
            output.fail(Exit::Usage, &failure)
        }
    }
}

fn measure(options: &Options) -> Result<Report, Obstacle> {
    testbed::enter()?;
    interrupt::tidy()?;
    bench::measure(options)
}

fn print(report: &Report, output: &Output) -> Exit {
    let complete = report.is_complete();
    if output.json {
        let line = serde_json::to_string(report).expect("a report has only string keys");
        output.print_json(&line);
    } else {
        let (paint, verdict) = (output.paint(), report.verdict());
        let verdict = match complete {
            true => verdict,
            false => paint.bad(verdict.trim_end()) + "\n",
        };
        output.print(&format!("{}\n{verdict}", report.body()));
    }
    match complete {
        true => Exit::Done,
        false => Exit::No,
    }
}

fn options(ike: &BenchIke) -> Options {
    Options {
        load: load(ike),
        wrong_key: ike.wrong_key,
    }
}

fn load(ike: &BenchIke) -> Load {
    let (rounds, setups) = if ike.quick { QUICK_ROUNDS } else { ROUNDS };
    let seconds = if ike.quick { QUICK_SECONDS } else { SECONDS };
    match (ike.simultaneous, ike.flood) {
        (Some(initiators), _) => Load::Simultaneous {
            initiators: initiators as usize,
        },
        (None, Some(spoofed)) => Load::Flood {
            spoofed,
            seconds: ike.seconds.unwrap_or(seconds),
        },
        (None, None) => Load::Rate {
            rounds,
            setups: ike.setups.unwrap_or(setups) as usize,
            at_once: AT_ONCE,
        },
    }
}
