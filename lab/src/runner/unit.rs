//! A unit of scheduling: one process, for one test or for the tests of a module that run together.

use super::report::Line;
use super::{Company, Test};
use crate::process::until;
use crate::testbed;
use anyhow::Result;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Tests that run in one process.
pub(super) struct Unit {
    tests: Vec<&'static Test>,
}

/// The results of a unit.
pub(super) struct Outcome {
    pub lines: Vec<Line>,
    /// Everything that the process wrote.
    pub output: String,
    /// True if the output was shown while the process ran.
    pub was_shown: bool,
    /// Output of the first attempt, if this is the second.
    pub first: Option<String>,
}

/// Divides tests, sorted by name, into units.
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

    /// Returns the least tolerant company among the tests.
    pub fn company(&self) -> Company {
        let companies = self.tests.iter().map(|test| test.company);
        companies.max().unwrap_or(Company::Busy)
    }

    pub fn is_repeated(&self) -> bool {
        self.tests.iter().any(|test| test.repeated)
    }

    /// Returns the sum of the tests' limits, times 100 in the long form of the suite.
    pub fn limit(&self) -> Duration {
        let is_long = std::env::var_os("STRATA_LONG").is_some();
        self.usual_limit() * if is_long { 100 } else { 1 }
    }

    fn usual_limit(&self) -> Duration {
        self.tests.iter().map(|test| test.limit).sum()
    }

    /// Runs the process to its end, or kills it after its limit.
    pub fn run(&self, no_capture: bool) -> Outcome {
        let mut output = String::new();
        let ended = self.start(no_capture, &mut output);
        let names = self.tests.iter().map(|test| test.name());
        let mut lines: Vec<_> = names.map(|name| Line::read(name, &output)).collect();
        let all_passed = lines.iter().all(|line| line.passed);
        let complaint = match ended {
            Ok(status) if status.success() || !all_passed => None,
            // All tests passed, but the process itself failed.
            Ok(status) => Some(format!("the process ended with {status}")),
            Err(error) => Some(format!("{error:#}")),
        };
        if let Some(complaint) = complaint {
            output.push_str(&format!("{complaint}\n"));
            lines.iter_mut().for_each(|line| line.passed = false);
        }
        Outcome {
            lines,
            output,
            was_shown: no_capture,
            first: None,
        }
    }

    fn start(&self, no_capture: bool, output: &mut String) -> Result<ExitStatus> {
        let file = File::from(memfd_create(c"output", MFdFlags::MFD_CLOEXEC)?);
        fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--here", "--exact"])
            .args(self.tests.iter().map(|test| test.name()))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file.try_clone()?);
        let mut child = command.spawn()?;
        let mut octets = Vec::new();
        let ended = until("the test", self.limit(), || {
            let status = child.try_wait()?;
            if no_capture {
                let known = octets.len();
                read_on(&file, &mut octets)?;
                io::stdout().write_all(&octets[known..])?;
            }
            Ok(status)
        });
        if ended.is_err() {
            child.kill()?;
            child.wait()?;
        }
        let exited = ended.as_ref().is_ok_and(|status| status.signal().is_none());
        if !exited {
            testbed::remove_of(child.id());
        }
        read_on(&file, &mut octets)?;
        output.push_str(&String::from_utf8_lossy(&octets));
        ended
    }
}

/// Appends the part of the file beyond the known octets. The file offset stays: other processes
/// write at it.
fn read_on(file: &File, octets: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match file.read_at(&mut buffer, octets.len() as u64)? {
            0 => return Ok(()),
            count => octets.extend(&buffer[..count]),
        }
    }
}

impl Outcome {
    pub fn passed(&self) -> bool {
        self.lines.iter().all(|line| line.passed)
    }

    /// Records that this is the second attempt.
    pub fn repeats(&mut self, first: Self) {
        self.first = Some(first.output);
    }

    /// Returns the names of the tests.
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
        assert_eq!(units[1].usual_limit(), Duration::from_secs(200));
    }
}
