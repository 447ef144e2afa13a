//! The command line of a test program.
//!
//! Names to filter by, `--exact`, `--skip`, `--list`, `--nocapture` and `--test-threads` work as in
//! the standard harness. `--company busy,quiet,none` selects tests by the load that they tolerate,
//! `--repeats N` allows N tests to fail once, and the runner starts itself with `--here`. No test
//! is ignored, so `--ignored` selects none. Other options have no effect.

use super::{Company, Test};
use std::thread::available_parallelism;

/// Tests selected by the command line, and the way to run them.
#[derive(Default)]
pub(super) struct Choice {
    names: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    only_ignored: bool,
    companies: Vec<Company>,
    pub list: bool,
    pub here: bool,
    pub no_capture: bool,
    pub threads: usize,
    /// Number of tests, in addition to [`Test::repeated`] ones, that run a second time if they
    /// fail.
    pub repeats: usize,
}

impl Choice {
    pub fn from_arguments(arguments: impl Iterator<Item = String>) -> Self {
        let processors = available_parallelism().map_or(2, usize::from);
        let mut choice = Self {
            threads: 2 * processors,
            ..Self::default()
        };
        // `--skip=NAME` is the same as `--skip NAME`.
        let split = arguments.flat_map(|argument| match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => {
                vec![option.to_owned(), value.to_owned()]
            }
            _ => vec![argument],
        });
        let mut arguments = split;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--exact" => choice.exact = true,
                "--ignored" => choice.only_ignored = true,
                "--list" => choice.list = true,
                "--here" => choice.here = true,
                "--company" => {
                    let words = arguments.next().unwrap_or_default();
                    choice
                        .companies
                        .extend(words.split(',').filter_map(company));
                }
                "--skip" => choice.skipped.extend(arguments.next()),
                "--test-threads" => {
                    let threads = arguments.next().and_then(|number| number.parse().ok());
                    choice.threads = threads.unwrap_or(choice.threads).max(1);
                }
                "--repeats" => {
                    let repeats = arguments.next().and_then(|number| number.parse().ok());
                    choice.repeats = repeats.unwrap_or(0);
                }
                "--nocapture" | "--no-capture" => (choice.no_capture, choice.threads) = (true, 1),
                "--format" | "--color" | "-Z" => drop(arguments.next()),
                option if option.starts_with('-') => {}
                name => choice.names.push(name.to_owned()),
            }
        }
        choice
    }

    pub fn takes(&self, test: &Test) -> bool {
        let name = test.name();
        let fits = |pattern: &String| match self.exact {
            true => name == pattern,
            false => name.contains(pattern.as_str()),
        };
        !self.only_ignored
            && (self.companies.is_empty() || self.companies.contains(&test.company))
            && (self.names.is_empty() || self.names.iter().any(fits))
            && !self.skipped.iter().any(fits)
    }
}

fn company(word: &str) -> Option<Company> {
    match word {
        "busy" => Some(Company::Busy),
        "quiet" => Some(Company::Quiet),
        "none" => Some(Company::None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(arguments: &str) -> Vec<&'static str> {
        let words = arguments.split_whitespace().map(str::to_owned);
        let choice = Choice::from_arguments(words);
        let test = |path| Test::new(path, || Ok(()));
        let tests = [
            test("e2e::wire::rate"),
            test("e2e::wire::rate_and_delay"),
            test("e2e::wire::loss").alone(),
        ];
        let taken = tests.iter().filter(|test| choice.takes(test));
        taken.map(Test::name).collect()
    }

    #[test]
    fn the_command_line_chooses_tests_as_cargo_does() {
        let [rate, delay, loss] = ["wire::rate", "wire::rate_and_delay", "wire::loss"];
        assert_eq!(chosen(""), [rate, delay, loss]);
        assert_eq!(chosen("rate"), [rate, delay]);
        assert_eq!(chosen("wire::rate --exact"), [rate]);
        assert_eq!(chosen("--skip delay"), [rate, loss]);
        assert_eq!(chosen("--test-threads 1 loss --nocapture"), [loss]);
        assert_eq!(chosen("--skip=rate --test-threads=1"), [loss]);
        assert!(chosen("--ignored").is_empty());
    }

    #[test]
    fn no_test_is_repeated_unless_asked() {
        let repeats = |arguments: &str| {
            let words = arguments.split_whitespace().map(str::to_owned);
            Choice::from_arguments(words).repeats
        };
        assert_eq!(["", "--repeats", "--repeats 2"].map(repeats), [0, 0, 2]);
        assert_eq!(chosen("--repeats 2 loss"), ["wire::loss"]);
    }

    #[test]
    fn tests_of_a_kind_can_be_chosen() {
        assert_eq!(chosen("--company none"), ["wire::loss"]);
        assert_eq!(chosen("--company=busy loss").len(), 0);
        assert_eq!(chosen("--company busy").len(), 2);
        assert_eq!(chosen("--company busy,none").len(), 3);
        // An option of the standard harness.
        assert_eq!(chosen("--quiet").len(), 3);
    }
}
