//! End-to-end tests: real programs in network namespaces.
//!
//! A folder is a topic, a file a feature. `#[lab::test]` makes a function a test; the runner is
//! described in `lab::runner`.
//!
//! `cargo build --workspace --bins --tests && cargo test --workspace --test e2e -- zones::grant`
//! runs tests with this in their name.

mod interop;
mod measure;
mod mobility;
mod operate;
mod pages;
mod session;
mod traffic;
mod zones;

use std::process::ExitCode;

fn main() -> ExitCode {
    lab::runner::run()
}
