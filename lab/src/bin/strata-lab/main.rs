//! `strata-lab`: demos, benchmarks, figures of papers, logs of gateways, and tests with other
//! implementations.

mod args;
mod bench;
mod demo;
mod drawn;
mod figures;
mod interop;
mod logs;

use args::{Args, Verb};
use clap::Parser;
use control::Failure;
use std::process::ExitCode;
use terminal::{Exit, Output};

fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new(args.json);
    let exit = match args.verb {
        Verb::Demo(demo) => demo::run(&demo, &output),
        Verb::Bench(bench) => bench::run(&bench, &output),
        Verb::Figures(figures) => figures::run(&figures, &output),
        Verb::Logs(logs) => logs::run(&logs, &output),
        Verb::Interop(interop) => interop::run(&interop, &output),
    };
    let exit = exit.unwrap_or_else(|obstacle| {
        let failure = Failure::new(obstacle.message, obstacle.fix);
        output.fail(Exit::Usage, &failure)
    });
    exit.into()
}
