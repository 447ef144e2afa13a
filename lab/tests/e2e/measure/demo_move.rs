//! `strata-lab demo move` as users run it: a call goes on while its host walks out of a Wi-Fi and
//! back, the verdict fails without soft hand-overs, and nothing is left behind.
//!
//! The first test that needs the walks makes them, all at once, and the others share them.

use anyhow::{Context, Result, ensure};
use lab::process::until;
use lab::spectator::{FORBID, Folder, as_ordinary_user, refused};
use lab::testbed::{find_binary, find_command};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

// Works: demo-move
// Works: soft
#[lab::test(quiet, together)]
fn the_daemon_hands_the_tunnel_over_before_a_call_breaks_off() -> Result<()> {
    let run = &walks()?.soft;
    let report = run.report()?;
    ensure!(run.code == Some(0) && report["passed"] == true, "{report}");
    let [fading, back] = ["fading", "back"].map(|step| phase(&report, step));
    let why = fading["why"].as_str().unwrap_or_default();
    // A lost request and its lost retransmissions are silence.
    let is_measured = why.contains("loss") || why == "silence";
    ensure!(fading["path"] == "cellular" && is_measured, "{report}");
    ensure!(
        back["path"] == "Wi-Fi" && back["why"] == "the route",
        "{report}"
    );
    let sums = &report["download"];
    ensure!(sums["sha256"] == sums["sha256_of_server"], "{sums}");
    Ok(())
}

/// tshark reads the same packets outside of the demo.
// Works: demo-move
#[lab::test(quiet, together)]
fn only_esp_and_ike_are_on_the_wire() -> Result<()> {
    let walks = walks()?;
    let capture = walks.folder.path.join("wire.pcap");
    let count = |filter: &str| packets(&capture, filter);
    let (esp, ike) = (count("esp")?, count("isakmp")?);
    ensure!(esp > 1000 && ike > 10, "{esp} ESP, {ike} IKE");
    ensure!(count("!(esp || isakmp)")? == 0, "other packets are there");
    let wire = &walks.soft.report()?["wire"];
    ensure!(wire["tshark"]["esp"] == esp, "{wire}");
    ensure!(wire["found"] == 0 && wire["found_inside"] == true, "{wire}");
    Ok(())
}

// Works: demo-move
// Works: live-paths
#[lab::test(quiet, together)]
fn with_two_live_paths_a_call_survives_a_network_that_breaks_off() -> Result<()> {
    let walks = walks()?;
    let run = &walks.paths;
    ensure!(run.code == Some(0), "{}", run.output);
    for words in ["the tunnel is on cellular", "tunnel on both; ", "PASSED"] {
        ensure!(run.output.contains(words), "{words:?}: {}", run.output);
    }
    let plot = fs::read_to_string(walks.folder.path.join("walk.svg"))?;
    ensure!(
        plot.starts_with("<svg") && plot.contains("download"),
        "{plot}"
    );
    Ok(())
}

/// Control: the same walk with the same verdict.
// Works: demo-move
#[lab::test(quiet, together)]
fn without_a_soft_hand_over_the_call_is_silent_for_seconds_and_the_verdict_fails() -> Result<()> {
    let run = &walks()?.hard;
    let report = run.report()?;
    ensure!(run.code == Some(1) && report["passed"] == false, "{report}");
    let reasons = report["reasons"].to_string();
    ensure!(reasons.contains("was silent for"), "{reasons}");
    let gap = report["call"]["to_host"]["gap_ms"].as_u64();
    ensure!(gap > Some(2000), "{report}");
    let fading = phase(&report, "fading");
    ensure!(fading["path"] == "Wi-Fi", "{fading}");
    Ok(())
}

#[lab::test(quiet, together)]
fn the_json_has_stable_keys() -> Result<()> {
    let report = walks()?.soft.report()?;
    let top = "call download faded gap_allowed_ms loss_allowed_percent passed phases reasons seed \
               stay_seconds timeline way wire";
    ensure!(keys(&report) == top, "{}", keys(&report));
    let both = |value: &Value| {
        ensure!(keys(value) == "to_host to_server", "{value}");
        ensure!(keys(&value["to_host"]) == "gap_ms lost sent", "{value}");
        Ok(())
    };
    let phase = &report["phases"][0];
    ensure!(keys(phase) == "at_ms call goodput moved_after_ms path step why");
    let sample = &report["timeline"][0];
    ensure!(keys(sample) == "at_ms call goodput path wifi_lost_percent");
    [&report["call"], &phase["call"], &sample["call"]]
        .into_iter()
        .try_for_each(both)?;
    let download = "octets sha256 sha256_of_server size tcp_timeouts";
    ensure!(keys(&report["download"]) == download);
    let wire = "esp found found_inside ike other packets searched tshark";
    ensure!(keys(&report["wire"]) == wire, "{}", report["wire"]);
    ensure!(keys(&report["wire"]["tshark"]) == "esp first_other isakmp other");
    Ok(())
}

#[lab::test(quiet, together)]
fn a_walk_leaves_no_process_and_no_file() -> Result<()> {
    let walks = walks()?;
    for run in [&walks.soft, &walks.paths, &walks.hard] {
        // A search that never finds anything would prove nothing.
        ensure!(run.at_work > 4, "only {} processes", run.at_work);
        ensure!(run.left.is_empty(), "{:?}", run.left);
    }
    Ok(())
}

// Recovers: demo-move
#[lab::test]
fn an_interrupted_walk_leaves_no_process_and_no_file() -> Result<()> {
    let folder = Folder::new("move")?;
    let mut command = Command::new(find_binary("strata-lab")?);
    command.args(["demo", "move"]).env("TMPDIR", &folder.path);
    command.stderr(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn()?;
    folder.wait_for_processes(5, &mut child)?;
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

// Refuses: demo-move
#[lab::test]
fn where_users_may_not_make_namespaces_it_says_how_to_allow_it() -> Result<()> {
    let said = refused("demo move", &["--user", "--map-root-user"], FORBID)?;
    ensure!(
        said.contains("does not let users create namespaces"),
        "{said}"
    );
    ensure!(said.contains("fix: "), "{said}");
    Ok(())
}

// Refuses: demo-move
#[lab::test]
fn a_file_that_cannot_be_written_and_two_ways_at_once_are_refused() -> Result<()> {
    let nowhere = refused("demo move --capture /proc/1/no.pcap", &["--mount"], "")?;
    ensure!(
        nowhere.contains("cannot write /proc/1/no.pcap"),
        "{nowhere}"
    );
    ensure!(nowhere.contains("fix: name a writable file"), "{nowhere}");
    let both = refused("demo move --hard --paths", &["--mount"], "")?;
    ensure!(both.contains("--paths"), "{both}");
    Ok(())
}

/// The walks of this file, and the folder with their files.
struct Walks {
    folder: Folder,
    /// By an ordinary user.
    soft: Run,
    paths: Run,
    hard: Run,
}

/// A finished run of `strata-lab demo move`.
struct Run {
    code: Option<i32>,
    output: String,
    /// Number of processes seen during the run.
    at_work: usize,
    /// Processes and files left after the run.
    left: Vec<String>,
}

impl Run {
    fn new(mut command: Command, options: &str) -> Result<Self> {
        let folder = Folder::new("move")?;
        command.args(["demo", "move", "--stay", "4"]);
        command.args(options.split_whitespace());
        command.env("TMPDIR", &folder.path);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let at_work = folder.wait_for_processes(5, &mut child);
        let output = child.wait_with_output()?;
        Ok(Self {
            code: output.status.code(),
            at_work: at_work.with_context(|| format!("{output:?}"))?,
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            left: folder.left()?,
        })
    }

    fn report(&self) -> Result<Value> {
        serde_json::from_str(&self.output).with_context(|| self.output.clone())
    }
}

fn walks() -> Result<&'static Walks> {
    static WALKS: OnceLock<Walks> = OnceLock::new();
    if let Some(walks) = WALKS.get() {
        return Ok(walks);
    }
    let lab = find_binary("strata-lab")?;
    let (folder, programs) = (Folder::new("walks")?, Folder::new("binaries")?);
    let user = as_ordinary_user(&programs)?;
    let file = |name: &str| folder.path.join(name).display().to_string();
    let soft = format!("--json --capture {}", file("wire.pcap"));
    let paths = format!("--paths --plot {}", file("walk.svg"));
    let walks = thread::scope(|scope| {
        let soft = scope.spawn(|| Run::new(user, &soft));
        let paths = scope.spawn(|| Run::new(Command::new(&lab), &paths));
        let hard = Run::new(Command::new(&lab), "--hard --json");
        let [soft, paths] = [soft, paths].map(|run| run.join().expect("no panic"));
        Ok::<_, anyhow::Error>([soft?, paths?, hard?])
    })?;
    let [soft, paths, hard] = walks;
    Ok(WALKS.get_or_init(|| Walks {
        folder,
        soft,
        paths,
        hard,
    }))
}

/// Returns the number of packets of a capture that pass a filter of tshark.
fn packets(capture: &Path, filter: &str) -> Result<usize> {
    let mut command = Command::new(find_command("tshark", "tshark")?);
    command.arg("-n").arg("-r").arg(capture);
    command.args(["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    let output = command.output()?;
    ensure!(output.status.success(), "{output:?}");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(lines.lines().count())
}

fn phase(report: &Value, step: &str) -> Value {
    let phases = report["phases"].as_array().cloned().unwrap_or_default();
    let mut phases = phases.into_iter();
    phases
        .find(|phase| phase["step"] == step)
        .unwrap_or_default()
}

fn keys(value: &Value) -> String {
    let keys = value
        .as_object()
        .into_iter()
        .flat_map(|object| object.keys());
    keys.map(String::as_str).collect::<Vec<_>>().join(" ")
}
