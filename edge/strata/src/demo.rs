//! `strata demo`: hands what was typed to the lab, and prints what it found.

use crate::args::Demo;
use crate::output::{Exit, Output};
use control::Failure;
use lab::demo::{self, Options, Report};
use lab::interrupt;
use lab::obstacle::Obstacle;
use lab::testbed;
use std::time::Duration;

/// Runs the demo in namespaces of our own. Must come before the first thread.
pub fn run(demo: &Demo, output: &Output) -> Exit {
    match measure(&options(demo, output.json)) {
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
    demo::measure(options)
}

fn print(report: &Report, output: &Output) -> Exit {
    if output.json {
        let line = serde_json::to_string(report).expect("a report has only string keys");
        output.print_json(&line);
    } else {
        let paint = output.paint();
        let verdict = report.verdict();
        let verdict = match report.passed {
            true => paint.good(verdict.trim_end()),
            false => paint.bad(verdict.trim_end()),
        };
        output.print(&format!("{}\n{verdict}\n", report.body()));
    }
    match report.passed {
        true => Exit::Done,
        false => Exit::No,
    }
}

fn options(demo: &Demo, json: bool) -> Options {
    Options {
        duration: Duration::from_secs(demo.seconds),
        seed: demo.seed,
        ber: demo.bits_per_error,
        snoop: !demo.no_snoop,
        licence: !demo.no_licence,
        license_payload: demo.license_payload,
        keep: demo.keep,
        bars: !json,
        ..Options::default()
    }
}
