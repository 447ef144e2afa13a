//! One `stratad` per network namespace: a second one names the first and exits without any change.

use anyhow::{Context, Result, ensure};
use lab::bait::{self, leak, no_leak, round};
use lab::host::Host;
use lab::pair::{self, DEADLINE, GATEWAY, Pair, Terms};
use lab::process::Process;
use lab::testbed::find_binary;
use lab::transfer::transfer;
use lab::wiretap::Wiretap;
use nix::sys::signal::Signal;
use os::{Family, claim};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Another daemon for the mobile node, whose configuration shares no resource with the first.
const SECOND: &str = r#"
[node]
id = "bob@example.net"
[listen]
addresses = ["10.3.0.2"]
ike = 5500
nat = 5501
[tunnel]
name = "second0"
addresses = ["10.7.0.2/32"]
[peer.branch]
address = "192.0.2.77"
id = "branch.example.net"
psk = "tunnel.psk"
local = ["10.7.0.2/32"]
remote = ["10.9.0.0/16"]
start = "manual"
"#;

/// Log message of the second daemon when it works.
const WORKS: &str = "runs as bob@example.net";

// Refuses: no-leak
// Weakness: 87
#[lab::test]
fn a_second_daemon_is_refused_and_the_first_goes_on() -> Result<()> {
    let pair = Pair::new("single")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    let before = pair::traces(&pair.mobile)?;
    let told = bait::lay_while(&pair.mobile, &GATEWAY, || {
        refusal(start(&pair.mobile, "second", SECOND)?)
    })?;
    let first = format!("process {}, ", tunnel.mobile.pid());
    let file = pair.mobile.directory().join("strata.toml");
    let file = file.display().to_string();
    for words in [
        "another stratad",
        &first,
        &file,
        "systemctl stop",
        "ip netns exec",
    ] {
        ensure!(told.contains(words), "{words:?} is not in: {told}");
    }
    ensure!(
        pair::traces(&pair.mobile)? == before,
        "something was changed"
    );
    ensure!(
        !socket(&pair.mobile, "second").exists(),
        "its socket is left"
    );
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    ensure!(pair::is_up(&tunnel.mobile.strata("status")?));
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)
}

/// Control: only the claim keeps the second daemon from the routes of the first.
#[lab::test]
fn without_the_claim_a_second_daemon_opens_what_the_first_protects() -> Result<()> {
    let pair = Pair::new("single")?;
    let tap = Wiretap::open(&pair.between)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    // A running daemon would restore the claim.
    tunnel.mobile.process().signal(Signal::SIGSTOP)?;
    pair.mobile
        .run(&format!("ip link delete {}", claim::DEVICE))?;
    let mut second = start(&pair.mobile, "second", SECOND)?;
    second.wait_for_log(WORKS, DEADLINE)?;
    leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

// Recovers: no-leak
#[lab::test]
fn after_kill_9_another_daemon_starts() -> Result<()> {
    let pair = Pair::new("single")?;
    let mut first = pair.start_mobile(Family::V4, Terms::PLAIN, "manual")?;
    first.process().crash()?;
    let mut second = start(&pair.mobile, "second", SECOND)?;
    second.wait_for_log(WORKS, DEADLINE)?;
    let status = second.terminate(DEADLINE)?;
    ensure!(status.success(), "{status}: {}", second.log());
    first.start_again()
}

/// Namespaces may share their files.
// Refuses: inspection
#[lab::test]
fn two_namespaces_have_a_daemon_each_with_a_socket_of_its_own() -> Result<()> {
    let pair = Pair::new("single")?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    for host in [&pair.mobile, &pair.gateway] {
        let device = host.run(&format!("ip link show {}", claim::DEVICE))?;
        ensure!(device.contains("alias stratad (process "), "{device}");
    }
    pair.between.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let same = with_socket(SECOND, tunnel.mobile.socket()).replace("10.3.0.2", "10.3.0.1");
    let file = pair.between.file("same.toml", &same)?;
    let told = refusal(run(
        &pair.between,
        "same",
        &format!("--config {}", file.display()),
    )?)?;
    for words in ["another network namespace", "its own `socket` in [control]"] {
        ensure!(told.contains(words), "{words:?} is not in: {told}");
    }
    ensure!(pair::is_up(&tunnel.mobile.strata("status")?));
    let other = SECOND.replace("10.3.0.2", "10.3.0.1");
    start(&pair.between, "second", &other)?.wait_for_log(WORKS, DEADLINE)
}

/// The node has no tunnel, but rules that `--unlock` would remove.
// Refuses: no-leak
// Weakness: 87
#[lab::test]
fn a_licensed_node_at_work_keeps_its_rules() -> Result<()> {
    let pair = Pair::new("single")?;
    let node = pair.start_licensed(pair::LICENSED)?;
    let before = pair::traces(&pair.between)?;
    let named = format!("process {}, ", node.pid());
    pair.between.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let locked = pair
        .between
        .file("locked.toml", &format!("{SECOND}leak = \"never\"\n"))?;
    let lock = format!("--lock --config {}", locked.display());
    for (name, arguments) in [("unlock", "--unlock"), ("lock", &lock)] {
        let told = refusal(run(&pair.between, name, arguments)?)?;
        ensure!(
            told.contains(&named) && told.contains("stop it first"),
            "{told}"
        );
    }
    ensure!(
        pair::traces(&pair.between)? == before,
        "something was changed"
    );
    Ok(())
}

/// As after an update of the kernel that removed the modules of the running one.
// Refuses: no-leak
#[lab::test]
fn without_tun_devices_a_lock_can_be_opened_unless_a_daemon_runs() -> Result<()> {
    const HIDE: &str = "mount -t tmpfs none /dev/net && exec \"$0\" --unlock";
    let pair = Pair::new("single")?;
    let unlock = || -> Result<Process> {
        let mut command = pair.mobile.command("unshare");
        command.args(["--mount", "sh", "-c", HIDE]);
        command.arg(find_binary("stratad")?);
        pair.mobile.start("unlock", command)
    };
    let before = pair::traces(&pair.mobile)?;
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "manual");
    let mut mobile = pair
        .mobile
        .stratad(&format!("{config}leak = \"never\"\n"))?;
    let told = refusal(unlock()?)?;
    ensure!(
        told.contains(&format!("process {}, ", mobile.pid())),
        "{told}"
    );
    mobile.stop()?;
    ensure!(pair::traces(&pair.mobile)? != before, "nothing was locked");
    let status = unlock()?.wait(DEADLINE)?;
    ensure!(status.success(), "{status}");
    ensure!(pair::traces(&pair.mobile)? == before, "something is left");
    Ok(())
}

// Weakness: 88
#[lab::test]
fn a_user_without_rights_cannot_keep_a_daemon_from_starting() -> Result<()> {
    let pair = Pair::new("single")?;
    let make = format!("ip tuntap add dev {} mode tun", claim::DEVICE);
    let attempt = pair
        .mobile
        .run(&format!("setpriv --bounding-set -all {make}"));
    ensure!(attempt.is_err(), "a device can be made by everybody");
    pair.mobile.run(&make).context("nor with rights")?;
    pair.mobile
        .run(&format!("ip link delete {}", claim::DEVICE))?;
    pair.start_mobile(Family::V4, Terms::PLAIN, "manual")
        .map(drop)
}

/// A command on the wrong socket names the running daemon.
// Refuses: inspection
#[lab::test]
fn status_and_doctor_name_a_daemon_that_has_another_socket() -> Result<()> {
    let pair = Pair::new("single")?;
    let mut first = pair.start_mobile(Family::V4, Terms::PLAIN, "manual")?;
    let named = format!("process {}, ", first.pid());
    let second = configure(&pair.mobile, "second", SECOND)?;
    let strata = find_binary("strata")?;
    let socket = socket(&pair.mobile, "second");
    let status = format!("{} --socket {} status", strata.display(), socket.display());
    let refused = |line: &str| -> Result<String> {
        let refusal = pair.mobile.run(line).err();
        Ok(format!("{:#}", refusal.context("it was answered")?))
    };
    let told = refused(&status)?;
    ensure!(told.contains(&named) && told.contains("--socket"), "{told}");
    let doctor = || -> Result<Value> {
        let line = format!("{} doctor {} --json", strata.display(), second.display());
        let report: Value = serde_json::from_str(&pair.mobile.run(&line)?)?;
        let findings = report["doctor"]["findings"].as_array();
        let mut findings = findings.into_iter().flatten();
        let daemon = findings.find(|finding| finding["check"] == "daemon");
        daemon.cloned().with_context(|| report.to_string())
    };
    let finding = doctor()?;
    let seen = finding["seen"].as_str().unwrap_or_default();
    ensure!(
        finding["verdict"] == "warn" && seen.contains(&named),
        "{finding}"
    );
    first.stop()?;
    let finding = doctor()?;
    ensure!(finding["verdict"] == "ok", "{finding}");
    let told = refused(&status)?;
    ensure!(!told.contains(&named), "{told}");
    Ok(())
}

fn start(host: &Host, name: &str, config: &str) -> Result<Process> {
    let file = configure(host, name, config)?;
    run(host, name, &format!("--config {}", file.display()))
}

/// Writes a configuration with a socket of its own.
fn configure(host: &Host, name: &str, config: &str) -> Result<PathBuf> {
    host.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let config = with_socket(config, &socket(host, name));
    host.file(&format!("{name}.toml"), &config)
}

fn with_socket(config: &str, socket: &Path) -> String {
    format!("{config}[control]\nsocket = \"{}\"\n", socket.display())
}

fn socket(host: &Host, name: &str) -> PathBuf {
    host.directory().join(format!("{name}.sock"))
}

fn run(host: &Host, name: &str, arguments: &str) -> Result<Process> {
    let mut command = host.command(find_binary("stratad")?);
    command.args(arguments.split_whitespace());
    host.start(name, command)
}

/// Returns the error of a process that must fail.
fn refusal(mut process: Process) -> Result<String> {
    let status = process.wait(DEADLINE)?;
    ensure!(status.code() == Some(1), "{status}: {}", process.log());
    Ok(process.log())
}
