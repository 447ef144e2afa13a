//! `strata`: what a person types.

mod answer;
mod args;
mod check;
mod output;
mod show;
mod text;

use args::{Args, Verb};
use clap::Parser;
use control::Request;
use output::{Exit, Output};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new(args.json);
    run(args, &output).into()
}

fn run(args: Args, output: &Output) -> Exit {
    let ask = |request| answer::ask(&args.socket, &request, output);
    match args.verb {
        Verb::Check { file } => check::run(&file, output),
        Verb::Up { peer, wait } => ask(Request::Up {
            peer,
            wait_seconds: wait,
        }),
        Verb::Down { peer } => ask(Request::Down { peer }),
        Verb::Status => ask(Request::Status),
        Verb::Zones => ask(Request::Zones),
        Verb::Flows => ask(Request::Flows),
        Verb::Keylog { directory } if directory == Path::new("off") => {
            ask(Request::Keylog { directory: None })
        }
        Verb::Keylog { directory } => match std::path::absolute(&directory) {
            // The daemon has another working directory than we.
            Ok(directory) => ask(Request::Keylog {
                directory: Some(directory),
            }),
            Err(error) => output.fail(
                Exit::Usage,
                &control::Failure::new(error.to_string(), "name a folder, or `off`"),
            ),
        },
        Verb::Metrics => ask(Request::Metrics),
        Verb::Version => ask(Request::Version),
    }
}
