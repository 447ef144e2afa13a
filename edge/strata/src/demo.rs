//! `strata demo`: hands what was typed to the lab.

use crate::args::Demo;
use crate::output::{Exit, Output};
use lab::demo::Options;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the demo in namespaces of our own. Must come before the first thread.
pub fn run(demo: &Demo, output: &Output) -> ExitCode {
    if let Err(error) = lab::testbed::enter() {
        // The text ends with what to do, as those of the demo itself.
        output.complain(&format!("error: {error:#}\n"));
        return Exit::Usage.into();
    }
    lab::demo::main(&options(demo, output.json))
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
        json,
        ..Options::default()
    }
}
