//! The command line of a test program.

use super::{Company, Test};
use clap::{ArgAction, Parser};
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

/// End-to-end tests in network namespaces. The options are those of the standard harness that mean
/// something here, and a few of our own.
#[derive(Parser)]
#[command(no_binary_name = true)]
pub(super) struct Choice {
    /// Parts of names of the tests to run (default: all)
    names: Vec<String>,
    /// Skip tests with this part of a name
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
    /// Compare whole names
    #[arg(long)]
    exact: bool,
    /// Run tests that are ignored, of which there are none
    #[arg(long)]
    ignored: bool,
    /// Select tests by the load from other tests that they tolerate
    #[arg(long, value_enum, value_delimiter = ',')]
    company: Vec<Company>,
    /// Print the names and run nothing
    #[arg(long)]
    pub list: bool,
    /// Run the tests in this process, as the program starts itself
    #[arg(long, hide = true)]
    pub here: bool,
    /// Show what tests print, and run one at a time
    #[arg(long, alias = "no-capture")]
    pub nocapture: bool,
    /// Tests at a time (default: two per processor)
    #[arg(long, value_name = "N")]
    test_threads: Option<NonZeroUsize>,
    /// Tests that may fail once and then run again, beside those that always may
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub repeats: usize,
    /// Accepted for the sake of the standard harness
    #[arg(short, long, hide = true, action = ArgAction::Count)]
    quiet: u8,
}

impl Choice {
    /// Returns the number of tests at a time.
    pub fn threads(&self) -> usize {
        let processors = available_parallelism().map_or(2, usize::from);
        match self.nocapture {
            true => 1,
            false => self.test_threads.map_or(2 * processors, NonZeroUsize::get),
        }
    }

    pub fn takes(&self, test: &Test) -> bool {
        let name = test.name();
        let fits = |pattern: &String| match self.exact {
            true => name == pattern,
            false => name.contains(pattern.as_str()),
        };
        !self.ignored
            && (self.company.is_empty() || self.company.contains(&test.company))
            && (self.names.is_empty() || self.names.iter().any(fits))
            && !self.skip.iter().any(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(arguments: &str) -> Result<Choice, clap::Error> {
        Choice::try_parse_from(arguments.split_whitespace())
    }

    fn chosen(arguments: &str) -> Vec<&'static str> {
        let choice = choice(arguments).unwrap();
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
        let repeats = |arguments| choice(arguments).unwrap().repeats;
        assert_eq!(["", "--repeats 2"].map(repeats), [0, 2]);
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

    #[test]
    fn an_option_or_a_value_that_does_not_exist_runs_nothing() {
        for wrong in ["--compnay none", "--company loud", "--repeats", "--help"] {
            assert!(choice(wrong).is_err(), "{wrong}");
        }
    }
}
