//! End-to-end tests: real programs in network namespaces.
//!
//! A folder is a topic, a file a feature. `#[lab::test]` makes a function a test; the runner is
//! described in `lab::runner`.
//!
//! `cargo test -p lab --test e2e -- zones::grant` runs what has this in its name.

mod interop;
mod measure;
mod mobility;
mod operate;
mod session;
mod traffic;
mod zones;

use std::process::ExitCode;

fn main() -> ExitCode {
    lab::runner::run()
}
