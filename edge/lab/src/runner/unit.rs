//! A unit of scheduling: one process, for one test or for those of a module that go together.

use super::report::Line;
use super::{Company, Test};
use crate::process::until;
use crate::testbed;
use anyhow::Result;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Tests that run in one process.
pub(super) struct Unit {
    tests: Vec<&'static Test>,
}

/// What came of a unit.
pub(super) struct Outcome {
    pub lines: Vec<Line>,
    /// Everything that its process wrote.
    pub output: String,
    /// Output of the first attempt, if this is the second.
    pub first: Option<String>,
}

/// Divides tests, which are sorted by name, into units.
pub(super) fn units(tests: &[&'static Test]) -> Vec<Unit> {
    let shared = |a: &&Test, b: &&Test| a.together && b.together && a.module() == b.module();
    let (together, single): (Vec<_>, Vec<_>) = tests.iter().copied().partition(|t| t.together);
    let mut units: Vec<_> = single.chunks(1).map(Unit::new).collect();
    units.extend(together.chunk_by(shared).map(Unit::new));
    units
}

impl Unit {
    fn new(tests: &[&'static Test]) -> Self {
        Self {
            tests: tests.to_vec(),
        }
    }

    /// That of the test which stands least.
    pub fn company(&self) -> Company {
        let companies = self.tests.iter().map(|test| test.company);
        companies.max().unwrap_or(Company::Busy)
    }

    pub fn is_repeated(&self) -> bool {
        self.tests.iter().any(|test| test.repeated)
    }

    /// Limits of its tests together; in the long form of the suite a hundred times that.
    pub fn limit(&self) -> Duration {
        let limit: Duration = self.tests.iter().map(|test| test.limit).sum();
        let is_long = std::env::var_os("STRATA_LONG").is_some();
        if is_long { 100 * limit } else { limit }
    }

    /// Runs the process to its end, or kills it when its limit has passed.
    pub fn run(&self, no_capture: bool) -> Outcome {
        let mut output = String::new();
        if let Err(error) = self.start(no_capture, &mut output) {
            output.push_str(&format!("{error:#}\n"));
        }
        let names = self.tests.iter().map(|test| test.name());
        Outcome {
            lines: names.map(|name| Line::read(name, &output)).collect(),
            output,
            first: None,
        }
    }

    fn start(&self, no_capture: bool, output: &mut String) -> Result<()> {
        let mut file = File::from(memfd_create(c"output", MFdFlags::MFD_CLOEXEC)?);
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--here", "--exact"])
            .args(self.tests.iter().map(|test| test.name()))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?);
        if !no_capture {
            command.stderr(file.try_clone()?);
        }
        let mut child = command.spawn()?;
        let ended = until("the test", self.limit(), || Ok(child.try_wait()?));
        if ended.is_err() {
            child.kill()?;
            child.wait()?;
            testbed::remove_of(child.id());
        }
        file.rewind()?;
        let mut octets = Vec::new();
        file.read_to_end(&mut octets)?;
        output.push_str(&String::from_utf8_lossy(&octets));
        if no_capture {
            print!("{output}");
        }
        ended.map(drop)
    }
}

impl Outcome {
    pub fn passed(&self) -> bool {
        self.lines.iter().all(|line| line.passed)
    }

    /// Notes that this is the second attempt.
    pub fn repeats(&mut self, first: Self) {
        self.first = Some(first.output);
    }

    /// Names of its tests.
    pub fn names(&self) -> String {
        let names: Vec<_> = self.lines.iter().map(|line| line.name).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static SHARED: [Test; 2] = [
        Test::new("e2e::canary::a", || Ok(())).together(),
        Test::new("e2e::canary::c", || Ok(())).together().limit(20),
    ];
    static OTHERS: [Test; 2] = [
        Test::new("e2e::canary::b", || Ok(())),
        Test::new("e2e::demo::a", || Ok(())).together(),
    ];

    #[test]
    fn tests_that_go_together_share_a_process_and_add_up_their_limits() {
        let tests = [&SHARED[0], &OTHERS[0], &SHARED[1], &OTHERS[1]];
        let units = units(&tests);
        let sizes: Vec<_> = units.iter().map(|unit| unit.tests.len()).collect();
        assert_eq!(sizes, [1, 2, 1]);
        assert_eq!(units[1].limit(), Duration::from_secs(200));
    }
}
