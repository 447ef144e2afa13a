//! Results of tests: one line as each test ends, then the slowest tests and the counts.

use super::Outcome;
use std::fmt;
use std::time::Duration;

/// Number of slowest tests to name.
const SLOWEST: usize = 20;

/// Results so far.
#[derive(Default)]
pub(super) struct Report {
    results: Vec<Line>,
}

/// The result of one test.
pub(super) struct Line {
    pub name: &'static str,
    pub passed: bool,
    /// Cost of the test, if it ran to its end.
    pub cost: Option<Cost>,
}

/// Time that a test takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cost {
    pub took: Duration,
    /// Processor time.
    pub computed: Duration,
}

impl Report {
    /// Prints and keeps the results of a unit, with its output if a test failed.
    pub fn add(&mut self, outcome: Outcome) {
        if !outcome.passed() && !outcome.was_shown {
            println!("\n---- {}\n{}----", outcome.names(), outcome.output);
        }
        if let Some(first) = &outcome.first {
            println!("\n---- {}, first attempt\n{first}----", outcome.names());
        }
        // A test of many cells reports by itself which cells it repeated.
        let is_repeated = |line: &&str| line.starts_with("cell ") && line.contains(", repeated");
        let cells = outcome.output.lines().filter(is_repeated);
        cells.for_each(|line| println!("{line}"));
        let repeated = outcome.first.as_ref().map_or("", |_| ", repeated");
        for line in &outcome.lines {
            println!("{}{repeated}", line.text());
        }
        self.results.extend(outcome.lines);
    }

    /// Returns true if no test failed.
    pub fn passed(&self) -> bool {
        self.results.iter().all(|line| line.passed)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut slowest: Vec<_> = self.results.iter().collect();
        slowest.sort_by_key(|line| std::cmp::Reverse(line.cost));
        writeln!(f, "\nslowest:")?;
        for line in slowest.iter().take(SLOWEST) {
            let cost = line.cost.unwrap_or_default();
            writeln!(f, "{:8.1} s  {}", cost.took.as_secs_f64(), line.name)?;
        }
        let failed = self.results.iter().filter(|line| !line.passed);
        writeln!(f, "\nfailed:")?;
        failed
            .clone()
            .try_for_each(|line| writeln!(f, "    {}", line.name))?;
        let failed = failed.count();
        let passed = self.results.len() - failed;
        writeln!(f, "\ntest result: {passed} passed; {failed} failed")
    }
}

impl Line {
    fn text(&self) -> String {
        match self.cost {
            Some(cost) => line(self.name, self.passed, cost),
            None => format!("test {} ... FAILED (did not end)", self.name),
        }
    }

    /// Parses the line that [`line`] wrote about this test in the output of its process.
    pub fn read(name: &'static str, output: &str) -> Self {
        let head = format!("test {name} ... ");
        let result = output.lines().find_map(|line| line.strip_prefix(&head));
        let cost = result.and_then(|result| {
            let (_, cost) = result.strip_suffix(')')?.split_once('(')?;
            let (took, computed) = cost.split_once(COMPUTING)?;
            let seconds = |text: &str| {
                let seconds = text.strip_suffix(" s")?.parse().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            };
            Some(Cost {
                took: seconds(took)?,
                computed: seconds(computed)?,
            })
        });
        Self {
            name,
            passed: result.is_some_and(|result| result.starts_with("ok")),
            cost,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [took, computed] = [self.took, self.computed].map(|time| time.as_secs_f64());
        write!(f, "{took:.1} s{COMPUTING}{computed:.1} s")
    }
}

/// Separator of the two parts of a cost.
const COMPUTING: &str = ", computing ";

/// Formats the result of a test as the standard harness does, with its cost.
pub(super) fn line(name: &str, passed: bool, cost: Cost) -> String {
    let word = if passed { "ok" } else { "FAILED" };
    format!("test {name} ... {word} ({cost})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let cost = Cost {
            took: Duration::from_millis(1500),
            computed: Duration::from_millis(500),
        };
        for passed in [true, false] {
            let read = Line::read("a::b", &line("a::b", passed, cost));
            assert_eq!((read.passed, read.cost), (passed, Some(cost)));
        }
    }

    #[test]
    fn a_test_without_a_result_has_failed() {
        let other = line("a::bc", true, Cost::default());
        let read = Line::read("a::b", &other);
        assert!(!read.passed && read.cost.is_none());
    }
}
