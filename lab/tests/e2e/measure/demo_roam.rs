//! `strata-lab demo roam` as users run it: keys follow the mobile node, the verdict fails if an
//! agent keeps reading after a move, and a walk continues past an agent that was killed.

use anyhow::{Context, Result, bail, ensure};
use lab::process::until;
use lab::spectator::{FORBID, Folder, refused};
use lab::testbed::find_binary;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Limit on the time until an agent reads that has had keys before, in milliseconds.
const AT_ONCE: u64 = 1000;

// Works: demo-roam
#[lab::test(quiet)]
fn keys_arrive_with_the_mobile_node_and_who_was_left_reads_nothing() -> Result<()> {
    let (code, report) = measured("--moves 3 --stay 5")?;
    ensure!(code == Some(0) && report["passed"] == true, "{report}");
    for (number, names) in ["AB", "BC", "CA"].into_iter().enumerate() {
        let step = &report["moves"][number];
        let (from, to) = names.split_at(1);
        ensure!(step["from"] == from && step["to"] == to, "{step}");
        let after = &step["after"];
        ensure!(after[to]["read"].as_u64() > Some(0), "{step}");
        ensure!(after[from]["shown"].as_u64() > Some(0), "{step}");
        ensure!(after[from]["read"] == 0, "{step}");
    }
    Ok(())
}

// Works: demo-roam
#[lab::test(quiet)]
fn neighbours_have_keys_before_the_mobile_node_comes() -> Result<()> {
    let (code, report) = measured("--handover pkd --moves 2 --stay 5")?;
    ensure!(code == Some(0) && report["passed"] == true, "{report}");
    for step in report["moves"].as_array().context("no moves")? {
        ensure!(step["keys_ms"] == 0, "{step}");
        ensure!(step["reads_ms"].as_u64() < Some(AT_ONCE), "{step}");
    }
    Ok(())
}

// Works: demo-roam
#[lab::test(quiet)]
fn keys_are_fetched_from_the_agent_before() -> Result<()> {
    let (code, report) = measured("--handover dkm --moves 2 --stay 6")?;
    ensure!(code == Some(0) && report["passed"] == true, "{report}");
    ensure!(report["allowance_ms"] == 2100, "{report}");
    Ok(())
}

/// Control: the previous agent sees copies of the packets, and the demo detects that it reads them.
// Works: demo-roam
#[lab::test(quiet)]
fn agents_that_are_licensed_everywhere_read_on_and_the_verdict_fails() -> Result<()> {
    let (code, report) = measured("--everywhere --moves 1 --stay 5")?;
    ensure!(code == Some(1) && report["passed"] == false, "{report}");
    let after = &report["moves"][0]["after"]["A"];
    ensure!(after["shown"].as_u64() > Some(0), "{report}");
    ensure!(after["read"].as_u64() > Some(0), "{report}");
    let reasons = report["reasons"].as_array().context("reasons is a list")?;
    let [reason] = &reasons[..] else {
        bail!("{reasons:?}");
    };
    let words = "packets that were sealed after that";
    ensure!(reason.to_string().contains(words), "{reason}");
    Ok(())
}

/// The agent is killed while the mobile node visits it. The mobile node stays there until it hears
/// the next agent.
// Recovers: demo-roam
#[lab::test(quiet)]
fn a_walk_goes_on_past_an_agent_that_was_killed() -> Result<()> {
    let mut run = Run::new("--moves 2 --stay 6")?;
    run.line_with("B reads")?;
    kill(run.folder.process("/far/strata.toml")?, Signal::SIGKILL)?;
    run.line_with("agent B does not answer any more")?;
    run.line_with("the link to B goes as that to C comes")?;
    run.line_with("C reads")?;
    run.line_with("FAILED")?;
    run.line_with("* agent B does not answer any more")?;
    run.ends(1)
}

// Recovers: demo-roam
#[lab::test]
fn an_interrupted_walk_leaves_no_process_and_no_file() -> Result<()> {
    let mut run = Run::new("")?;
    run.line_with("the mobile node is at A")?;
    let process = Pid::from_raw(run.child.id() as i32);
    kill(process, Signal::SIGINT)?;
    run.ends(130)
}

// Refuses: demo-roam
#[lab::test]
fn where_users_may_not_make_namespaces_it_says_how_to_allow_it() -> Result<()> {
    let said = refused("demo roam", &["--user", "--map-root-user"], FORBID)?;
    ensure!(
        said.contains("does not let users create namespaces"),
        "{said}"
    );
    ensure!(said.contains("fix: "), "{said}");
    Ok(())
}

// Refuses: demo-roam
#[lab::test]
fn what_is_no_handover_is_refused_with_those_there_are() -> Result<()> {
    let mut command = Command::new(find_binary("strata-lab")?);
    command.args(["demo", "roam", "--handover", "pigeon"]);
    let output = command.output()?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains("push, pkd, dkm"), "{said}");
    Ok(())
}

/// Runs a walk with these options and `--json`; returns its exit status and report.
fn measured(options: &str) -> Result<(Option<i32>, Value)> {
    let folder = Folder::new("roam")?;
    let mut command = demo(&folder, options)?;
    let output = command.arg("--json").output()?;
    let left = folder.left()?;
    ensure!(left.is_empty(), "{left:?}");
    let report = serde_json::from_slice(&output.stdout);
    let report = report.with_context(|| format!("{output:?}"))?;
    Ok((output.status.code(), report))
}

fn demo(folder: &Folder, options: &str) -> Result<Command> {
    let mut command = Command::new(find_binary("strata-lab")?);
    command.args(["demo", "roam"]);
    command.args(options.split_whitespace());
    command.env("TMPDIR", &folder.path);
    Ok(command)
}

/// A walk whose output is read line by line.
struct Run {
    folder: Folder,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Run {
    fn new(options: &str) -> Result<Self> {
        let folder = Folder::new("roam")?;
        let mut command = demo(&folder, options)?;
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("it has no output")?;
        Ok(Self {
            folder,
            child,
            lines: BufReader::new(out).lines(),
        })
    }

    /// Reads output up to a line that contains these words.
    fn line_with(&mut self, words: &str) -> Result<()> {
        let mut before = String::new();
        for line in self.lines.by_ref() {
            let line = line?;
            if line.contains(words) {
                return Ok(());
            }
            before += &format!("{line}\n");
        }
        bail!("{words:?} is not in:\n{before}")
    }

    /// Waits for the end of the run, and checks its exit status and that it left nothing.
    fn ends(mut self, code: i32) -> Result<()> {
        self.lines.by_ref().for_each(drop);
        let status = self.child.wait()?;
        ensure!(status.code() == Some(code), "{status}");
        // The kernel kills the processes without a notification.
        until("the end of its processes", Duration::from_secs(10), || {
            Ok(self.folder.processes()?.is_empty().then_some(()))
        })?;
        let left = self.folder.left()?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    }
}
