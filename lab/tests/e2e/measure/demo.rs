//! `strata-lab demo` as users run it: its claims hold, its verdict fails once SNOOP or the licence
//! is disabled, and it leaves nothing behind.
//!
//! The first test that needs a run makes it, and the others share it. Runs of a group are
//! concurrent.

use anyhow::{Context, Result, bail, ensure};
use lab::process::until;
use lab::spectator::{FORBID, Folder, as_ordinary_user, refused};
use lab::testbed::{find_binary, find_command};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// Length of a run in seconds. It limits chance: runs of half a minute scatter by a third.
const LONG: &str = "30";

// Works: demo
// Works: licensed-node
// Works: snoop
#[lab::test(quiet, together)]
fn snoop_makes_a_zoned_download_at_least_three_times_as_fast() -> Result<()> {
    passed(&as_claimed()?.0)
}

/// As root, this runs the demo as an unprivileged user; for an ordinary user it repeats the first
/// run.
// Works: demo
#[lab::test(quiet, together)]
fn an_ordinary_user_sees_the_same() -> Result<()> {
    passed(&as_claimed()?.1)
}

/// 2.3 % of the segments are lost; the round trip takes 0.21 s. Padhye's two formulas predict 326
/// and 470 kb/s.
#[lab::test(quiet, together)]
fn with_errors_reno_gets_what_padhye_says() -> Result<()> {
    let runs = as_claimed()?;
    for run in [&runs.0, &runs.1] {
        let goodput = run.goodput("none")?;
        ensure!((1.8e5..7.0e5).contains(&goodput), "{goodput} b/s");
    }
    Ok(())
}

#[lab::test(quiet, together)]
fn the_json_has_stable_keys() -> Result<()> {
    let report = &as_claimed()?.0.report;
    let top = "gain gain_needed one_error_in passed payload_licensed reasons runs seconds seed";
    ensure!(keys(report) == top, "{}", keys(report));
    let runs = &report["runs"];
    ensure!(keys(runs) == "ipsec none snoop zoned zoned_snoop");
    let run = &runs["zoned_snoop"]["measured"];
    ensure!(keys(run) == "goodput lossy node octets wired");
    let link = "delivered delivered_octets late lateness lost_bit_error lost_queue offered real_time \
                refused";
    for direction in 0..2 {
        ensure!(keys(&run["lossy"][direction]) == link);
        ensure!(keys(&run["wired"][direction]) == link);
    }
    ensure!(keys(&run["lossy"][0]["lateness"]) == "count max_us p50_us p999_us p99_us");
    ensure!(keys(&run["node"]) == "flows payload zones");
    ensure!(keys(&run["node"]["payload"]) == "first found searched unreadable");
    Ok(())
}

#[lab::test(quiet, together)]
fn a_run_leaves_no_process_and_no_file() -> Result<()> {
    let runs = as_claimed()?;
    for run in [&runs.0, &runs.1] {
        // A search that never finds anything would prove nothing.
        let at_work = run.at_work;
        ensure!(at_work > 10, "only {at_work} processes were seen at work");
        let left = &run.left;
        ensure!(left.is_empty(), "{left:?}");
    }
    Ok(())
}

// Refuses: snoop
#[lab::test(quiet, together)]
fn with_snoop_off_the_verdict_fails() -> Result<()> {
    failed_for_lack_of_gain(&controls()?.no_snoop)
}

#[lab::test(quiet, together)]
fn without_the_licence_the_verdict_fails() -> Result<()> {
    let run = &controls()?.no_licence;
    failed_for_lack_of_gain(run)?;
    let held = &run.report["runs"]["zoned_snoop"]["measured"]["node"]["zones"]["held"];
    ensure!(held.as_array().is_some_and(Vec::is_empty), "{held}");
    Ok(())
}

#[lab::test(quiet, together)]
fn without_bit_errors_the_verdict_fails() -> Result<()> {
    failed_for_lack_of_gain(&controls()?.no_errors)
}

#[lab::test(quiet, together)]
fn without_errors_reno_fills_the_lossy_hop() -> Result<()> {
    // 1448 octets of 1500 are payload.
    let goodput = controls()?.no_errors.goodput("none")?;
    ensure!((1.85e6..1.94e6).contains(&goodput), "{goodput} b/s");
    Ok(())
}

// Refuses: demo
#[lab::test]
fn without_nginx_it_says_how_to_get_it() -> Result<()> {
    let nginx = find_command("nginx", "nginx-light")?;
    let folder = nginx.parent().context("a command is in a folder")?;
    // Not only removed from PATH, because the demo also searches the administrators' folders.
    let hide = format!("mount -t tmpfs none {}", folder.display());
    let said = refused("demo", &["--mount"], &hide)?;
    ensure!(said.contains("error: nginx is missing"), "{said}");
    ensure!(
        said.contains("fix: run `sudo apt-get install nginx-light`"),
        "{said}"
    );
    Ok(())
}

#[lab::test]
fn without_the_tun_device_it_says_how_to_get_it() -> Result<()> {
    let said = refused("demo", &["--mount"], "mount -t tmpfs none /dev/net")?;
    ensure!(said.contains("error: /dev/net/tun is missing"), "{said}");
    ensure!(said.contains("fix: run `modprobe tun`"), "{said}");
    Ok(())
}

/// Root of a namespace that may not create further namespaces and has no other rights.
// Refuses: demo
#[lab::test]
fn where_users_may_not_make_namespaces_it_says_how_to_allow_it() -> Result<()> {
    let said = refused("demo", &["--user", "--map-root-user"], FORBID)?;
    ensure!(
        said.contains("error: this machine does not let users create namespaces"),
        "{said}"
    );
    ensure!(
        said.contains("`sysctl -w user.max_user_namespaces=10000`"),
        "{said}"
    );
    Ok(())
}

#[lab::test]
fn an_obstacle_is_json_where_json_is_asked_for() -> Result<()> {
    let mut command = Command::new(find_binary("strata-lab")?);
    command.args(["demo", "--json"]).env("TMPDIR", "/proc/1");
    let output = command.output()?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    ensure!(output.stderr.is_empty(), "{output:?}");
    let error = &document(&output)?["error"];
    ensure!(keys(error) == "fix message", "{error}");
    ensure!(error["message"].to_string().contains("/proc/1"), "{error}");
    ensure!(error["fix"].to_string().contains("TMPDIR"), "{error}");
    Ok(())
}

// Recovers: demo
#[lab::test]
fn an_interrupted_run_leaves_no_process_and_no_file() -> Result<()> {
    let folder = Folder::new("interrupted")?;
    let mut command = Command::new(find_binary("strata-lab")?);
    command
        .args(["demo", "--seconds", "60"])
        .env("TMPDIR", &folder.path);
    let mut child = command
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    folder.wait_for_processes(10, &mut child)?;
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT)?;
    let status = child.wait()?;
    ensure!(status.code() == Some(130), "{status}");
    // The kernel kills the processes without a notification.
    until("the end of its processes", Duration::from_secs(10), || {
        Ok(folder.processes()?.is_empty().then_some(()))
    })?;
    let left = folder.left()?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

/// A run of `strata-lab demo --json`.
struct Run {
    code: Option<i32>,
    report: Value,
    /// Number of processes seen during the run.
    at_work: usize,
    /// Processes and files left after the run.
    left: Vec<String>,
}

impl Run {
    fn new(mut command: Command, options: &str) -> Result<Self> {
        let folder = Folder::new("run")?;
        command.args(["demo", "--json"]);
        command.args(options.split_whitespace());
        command.env("TMPDIR", &folder.path);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let at_work = folder.wait_for_processes(11, &mut child);
        let output = child.wait_with_output()?;
        let at_work = at_work.with_context(|| format!("{output:?}"))?;
        Ok(Self {
            code: output.status.code(),
            report: document(&output)?,
            at_work,
            left: folder.left()?,
        })
    }

    fn goodput(&self, setup: &str) -> Result<f64> {
        let goodput = &self.report["runs"][setup]["measured"]["goodput"];
        goodput.as_f64().with_context(|| self.report.to_string())
    }
}

/// Parses standard output, which must be one JSON document.
fn document(output: &Output) -> Result<Value> {
    serde_json::from_slice(&output.stdout).with_context(|| format!("{output:?}"))
}

fn passed(run: &Run) -> Result<()> {
    let report = &run.report;
    ensure!(run.code == Some(0) && report["passed"] == true, "{report}");
    ensure!(report["gain"].as_f64() >= Some(3.0), "{report}");
    Ok(())
}

/// Fails unless the verdict failed, and only because of the missing gain.
fn failed_for_lack_of_gain(run: &Run) -> Result<()> {
    let report = &run.report;
    ensure!(run.code == Some(1) && report["passed"] == false, "{report}");
    let reasons = report["reasons"].as_array().context("reasons is a list")?;
    let [reason] = &reasons[..] else {
        bail!("{reasons:?}");
    };
    ensure!(reason.to_string().contains("not 3 times"), "{reason}");
    Ok(())
}

fn keys(value: &Value) -> String {
    let keys = value
        .as_object()
        .into_iter()
        .flat_map(|object| object.keys());
    keys.map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Runs the default demo as the user of this test and as an ordinary user.
fn as_claimed() -> Result<&'static (Run, Run)> {
    static RUNS: OnceLock<(Run, Run)> = OnceLock::new();
    if let Some(runs) = RUNS.get() {
        return Ok(runs);
    }
    let lab = find_binary("strata-lab")?;
    let options = format!("--seconds {LONG}");
    let folder = Folder::new("binaries")?;
    let user = as_ordinary_user(&folder)?;
    let runs = thread::scope(|scope| {
        let plain = scope.spawn(|| Run::new(Command::new(&lab), &options));
        let user = Run::new(user, &options);
        Ok::<_, anyhow::Error>((plain.join().expect("no panic")?, user?))
    })?;
    Ok(RUNS.get_or_init(|| runs))
}

struct Controls {
    no_snoop: Run,
    no_licence: Run,
    no_errors: Run,
}

/// Runs the negative controls, concurrently.
fn controls() -> Result<&'static Controls> {
    static CONTROLS: OnceLock<Controls> = OnceLock::new();
    if let Some(controls) = CONTROLS.get() {
        return Ok(controls);
    }
    let lab = find_binary("strata-lab")?;
    let run = |without: &str| {
        let options = format!("--seconds {LONG} {without}");
        Run::new(Command::new(&lab), &options)
    };
    let controls = thread::scope(|scope| {
        let no_snoop = scope.spawn(|| run("--no-snoop"));
        let no_licence = scope.spawn(|| run("--no-licence"));
        let no_errors = run("--bits-per-error 0");
        Ok::<_, anyhow::Error>(Controls {
            no_snoop: no_snoop.join().expect("no panic")?,
            no_licence: no_licence.join().expect("no panic")?,
            no_errors: no_errors?,
        })
    })?;
    Ok(CONTROLS.get_or_init(|| controls))
}
