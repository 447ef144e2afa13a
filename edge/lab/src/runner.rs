//! `main` of a test program that needs namespaces of its own.
//!
//! The kernel lets only a process with a single thread make a user namespace, and the standard
//! test harness starts threads before any test runs. So these test programs have
//! `harness = false` and a `main` that calls [`run`], which enters first. The command line is
//! understood as far as people use it: names to filter by, `--exact`, `--skip`, `--list`,
//! `--ignored` and `--include-ignored` (there are no ignored tests); other options are ignored.

use crate::testbed;
use anyhow::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

/// A test: its name and what it does.
pub type Test = (&'static str, fn() -> Result<()>);

/// Lists test functions by name.
#[macro_export]
macro_rules! tests {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name as fn() -> _)),*] };
}

/// Enters namespaces of our own, then runs the tests the command line asks for, one after
/// another: they measure time, and would disturb each other.
pub fn run(tests: &[Test]) -> ExitCode {
    run_each(tests, |(name, _)| (*name).to_owned(), |(_, test)| test())
}

/// The same for what has a name and can be tested.
pub fn run_each<T>(
    things: &[T],
    name: impl Fn(&T) -> String,
    test: impl Fn(&T) -> Result<()>,
) -> ExitCode {
    let choice = Choice::from_arguments(std::env::args().skip(1));
    let chosen: Vec<_> = things
        .iter()
        .map(|thing| (name(thing), thing))
        .filter(|(name, _)| choice.takes(name))
        .collect();
    if choice.list {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    if let Err(error) = testbed::enter() {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    println!("\nrunning {} tests", chosen.len());
    let failed = chosen
        .iter()
        .filter(|(name, thing)| !passes(name, || test(thing)));
    let failed = failed.count();
    let passed = chosen.len() - failed;
    println!("\ntest result: {passed} passed; {failed} failed\n");
    ExitCode::from(u8::from(failed > 0))
}

/// Runs one test. The panic's message has been printed by then.
fn passes(name: &str, test: impl Fn() -> Result<()>) -> bool {
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(test));
    let seconds = start.elapsed().as_secs_f64();
    let passed = matches!(outcome, Ok(Ok(())));
    let word = if passed { "ok" } else { "FAILED" };
    println!("test {name} ... {word} ({seconds:.1} s)");
    if let Ok(Err(error)) = outcome {
        println!("{error:#}");
    }
    passed
}

/// Which tests the command line asks for.
#[derive(Default)]
struct Choice {
    names: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    only_ignored: bool,
    list: bool,
}

impl Choice {
    fn from_arguments(arguments: impl Iterator<Item = String>) -> Self {
        let mut choice = Self::default();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--exact" => choice.exact = true,
                "--ignored" => choice.only_ignored = true,
                "--list" => choice.list = true,
                "--skip" => choice.skipped.extend(arguments.next()),
                "--format" | "--color" | "--test-threads" | "-Z" => drop(arguments.next()),
                option if option.starts_with('-') => {}
                name => choice.names.push(name.to_owned()),
            }
        }
        choice
    }

    fn takes(&self, name: &str) -> bool {
        let fits = |pattern: &String| match self.exact {
            true => name == pattern,
            false => name.contains(pattern.as_str()),
        };
        !self.only_ignored
            && (self.names.is_empty() || self.names.iter().any(fits))
            && !self.skipped.iter().any(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(arguments: &str) -> Vec<&'static str> {
        let words = arguments.split_whitespace().map(str::to_owned);
        let choice = Choice::from_arguments(words);
        let mut names = ["rate", "rate_and_delay", "loss"].to_vec();
        names.retain(|name| choice.takes(name));
        names
    }

    #[test]
    fn the_command_line_chooses_tests_as_cargo_does() {
        assert_eq!(chosen("").len(), 3);
        assert_eq!(chosen("rate"), ["rate", "rate_and_delay"]);
        assert_eq!(chosen("rate --exact"), ["rate"]);
        assert_eq!(chosen("--skip delay"), ["rate", "loss"]);
        assert_eq!(chosen("--test-threads 1 loss --nocapture"), ["loss"]);
        assert!(chosen("--ignored").is_empty());
    }
}
