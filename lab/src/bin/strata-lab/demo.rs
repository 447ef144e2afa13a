//! `strata-lab demo`: passes the arguments to the lab and prints its findings.

use crate::args::{Demo, Move, OtherDemo, Roam};
use crate::drawn::drawn;
use lab::demo::{self, Audience, Options, moves, roam};
use lab::interrupt;
use lab::obstacle::Obstacle;
use lab::testbed;
use serde::Serialize;
use std::time::Duration;
use terminal::{Exit, Output};

/// Runs a demo in namespaces of its own. Must be called before the first thread starts.
pub fn run(demo: &Demo, output: &Output) -> Result<Exit, Obstacle> {
    match &demo.other {
        None => enter()
            .and_then(|()| demo::measure(&options(demo, output.json)))
            .map(|report| {
                let texts = [report.body(), report.verdict()];
                print(&report, report.passed, texts, output)
            }),
        Some(OtherDemo::Roam(roam)) => enter()
            .and_then(|()| roam::measure(&walk(roam, output.json)))
            .map(|report| {
                let texts = [report.body(), report.verdict()];
                print(&report, report.passed, texts, output)
            }),
        Some(OtherDemo::Move(moved)) => {
            let measure = || enter().and_then(|()| moves::measure(&moving(moved, output.json)));
            drawn(moved.plot.as_deref(), measure, moves::Report::plot).map(|report| {
                let texts = [report.body(), report.verdict()];
                print(&report, report.passed, texts, output)
            })
        }
    }
}

fn enter() -> Result<(), Obstacle> {
    testbed::enter()?;
    interrupt::tidy()
}

fn print(
    report: &impl Serialize,
    passed: bool,
    [body, verdict]: [String; 2],
    output: &Output,
) -> Exit {
    if output.json {
        let line = serde_json::to_string(report).expect("a report has only string keys");
        output.print_json(&line);
    } else {
        let paint = output.paint();
        let verdict = match passed {
            true => paint.good(verdict.trim_end()),
            false => paint.bad(verdict.trim_end()),
        };
        output.print(&format!("{body}\n{verdict}\n"));
    }
    match passed {
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

fn walk(roam: &Roam, json: bool) -> roam::Options {
    let named = |handover: &&roam::Handover| handover.name() == roam.handover;
    roam::Options {
        handover: roam::Handover::ALL
            .iter()
            .find(named)
            .copied()
            .unwrap_or_default(),
        moves: roam.moves,
        stay: Duration::from_secs(roam.stay),
        everywhere: roam.everywhere,
        audience: audience(json),
        keep: roam.keep,
    }
}

fn moving(moved: &Move, json: bool) -> moves::Options {
    moves::Options {
        way: match (moved.paths, moved.hard) {
            (true, _) => moves::Way::Paths,
            (_, true) => moves::Way::Hard,
            _ => moves::Way::Soft,
        },
        stay: Duration::from_secs(moved.stay),
        seed: moved.seed,
        capture: moved.capture.clone(),
        audience: audience(json),
        keep: moved.keep,
    }
}

const fn audience(json: bool) -> Audience {
    match json {
        true => Audience::Nobody,
        false => Audience::Person,
    }
}
