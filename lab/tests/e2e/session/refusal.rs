//! A daemon that cannot start or work reports the reason and the fix, and its exit code names the
//! kind.

use anyhow::{Result, bail, ensure};
use lab::host::Host;
use lab::pair::{self, Pair, Terms};
use lab::process::DEADLINE;
use lab::testbed::{find_binary, find_command};
use os::Family;
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

/// Exit code of a failure.
const FAILED: i32 = 1;

/// Exit code of a wrong configuration.
const CONFIG: i32 = 2;

/// Exit code of a client that finds no daemon.
const UNREACHABLE: i32 = 3;

/// Exit code and complete output of a program.
type End = (i32, String);

// Refuses: tunnel
#[lab::test]
fn a_port_that_is_taken_is_told_with_the_fix() -> Result<()> {
    for port in [500, 4500] {
        let pair = Pair::new("refusal")?;
        let taken = pair
            .mobile
            .inside(|| Ok(UdpSocket::bind(("0.0.0.0", port))?))?;
        let end = start(&pair.mobile, &config())?;
        expect(
            end,
            FAILED,
            &[&format!("UDP port {port} is already taken"), "[listen]"],
        )?;
        drop(taken);
    }
    Ok(())
}

// Refuses: listen-addresses
#[lab::test]
fn an_address_that_is_not_there_is_told_with_the_fix() -> Result<()> {
    let pair = Pair::new("refusal")?;
    let before = pair::traces(&pair.mobile)?;
    pair.mobile
        .secret("tunnel.psk", "a key that nobody else knows")?;
    for address in ["10.3.0.77", "2001:db8:3::77"] {
        let listen = format!("{}[listen]\naddresses = [\"{address}\"]\n", config());
        let mut daemon = pair.mobile.stratad(&listen)?;
        let told = format!("waiting for the address {address} (`listen.addresses`)");
        let shown = daemon.strata_text("status")?;
        ensure!(shown.contains(&told), "{shown}");
        let mut doctor = pair.mobile.command(find_binary("strata")?);
        doctor.args(["doctor", "strata.toml"]);
        let (_, found) = run(&pair.mobile, doctor)?;
        let told = format!("no interface has the address {address}");
        ensure!(found.contains(&told), "{found}");
        ensure!(found.contains("fix: correct `listen.addresses`"), "{found}");
        daemon.stop()?;
    }
    ensure!(pair::traces(&pair.mobile)? == before, "something is left");
    Ok(())
}

// Refuses: tunnel
#[lab::test]
fn a_peer_that_begins_is_refused_while_its_tunnel_is_down_here() -> Result<()> {
    let pair = Pair::new("refusal")?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.gateway.strata_text("down alice")?;
    let told = |text: &'static str| move |status: &Value| status.to_string().contains(text);
    let notify = told("TEMPORARY_FAILURE");
    tunnel.mobile.wait_until("status", DEADLINE, notify)?;
    let explained = tunnel.mobile.strata_text("explain office")?;
    ensure!(explained.contains("strata up"), "{explained}");
    let here = told("taken down here");
    tunnel.gateway.wait_until("status", DEADLINE, here)?;
    let metrics = tunnel.gateway.ask("metrics", json!({}))?;
    let counted = r#"kind=\"refused\"} "#;
    let counted = metrics.split_once(counted).map_or("", |(_, rest)| rest);
    ensure!(counted.starts_with(|c| matches!(c, '1'..='9')), "{metrics}");
    // Without a name, `up` also accepts peers that initiate themselves.
    tunnel.gateway.strata_text("up")?;
    tunnel.mobile.wait_until("status", DEADLINE, pair::is_up)?;
    Ok(())
}

// Refuses: tunnel
#[lab::test]
fn missing_rights_are_told_with_the_fix() -> Result<()> {
    // Root without capabilities has no privileges.
    let end = start_through("setpriv", &["--bounding-set", "-all", "--"])?;
    expect(end, FAILED, &["no permission", "run as root"])
}

// Refuses: tunnel
#[lab::test]
fn a_missing_tun_device_is_told_with_the_fix() -> Result<()> {
    let without_tun = "mount -t tmpfs none /dev/net && exec \"$0\" \"$@\"";
    let end = start_through("unshare", &["--mount", "sh", "-c", without_tun])?;
    expect(end, FAILED, &["/dev/net/tun", "modprobe tun"])
}

// Refuses: check
#[lab::test]
fn an_unknown_key_is_told_with_its_place_and_the_key_that_was_meant() -> Result<()> {
    let pair = Pair::new("refusal")?;
    let config = config().replace("start = ", "strat = ");
    let line = config.lines().position(|line| line.starts_with("strat ="));
    let place = format!("strata.toml:{}:1", line.map_or(0, |line| line + 1));
    expect(
        start(&pair.mobile, &config)?,
        CONFIG,
        &[&place, "unknown key", "did you mean `start`?"],
    )
}

// Refuses: psk
#[lab::test]
fn a_key_file_that_others_can_read_is_refused() -> Result<()> {
    let pair = Pair::new("refusal")?;
    pair.mobile
        .file("open.psk", "a key that everybody can read")?;
    let config = config().replace("tunnel.psk", "open.psk");
    expect(
        start(&pair.mobile, &config)?,
        CONFIG,
        &["mode 0644", "chmod 0600"],
    )
}

// Refuses: inspection
#[lab::test]
fn a_cli_without_a_daemon_says_how_to_start_one() -> Result<()> {
    let pair = Pair::new("refusal")?;
    let mut command = pair.mobile.command(find_binary("strata")?);
    command.args(["--socket", "nobody.sock", "status"]);
    let end = run(&pair.mobile, command)?;
    expect(end, UNREACHABLE, &["stratad", "fix: "])
}

// Refuses: tunnel
#[lab::test]
fn a_peer_that_does_not_exist_is_told_with_those_that_do() -> Result<()> {
    let pair = Pair::new("refusal")?;
    let mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "manual")?;
    let Err(refusal) = mobile.strata_text("up offfice") else {
        bail!("`up` of a peer that does not exist succeeded");
    };
    let text = format!("{refusal:?}");
    ensure!(
        text.contains("offfice") && text.contains("name one of: office"),
        "{text}"
    );
    Ok(())
}

#[lab::test]
fn a_refused_start_leaves_nothing_behind() -> Result<()> {
    let pair = Pair::new("refusal")?;
    let taken = pair
        .mobile
        .inside(|| Ok(UdpSocket::bind("0.0.0.0:4500")?))?;
    let before = pair::traces(&pair.mobile)?;
    expect(start(&pair.mobile, &config())?, FAILED, &["already taken"])?;
    let after = pair::traces(&pair.mobile)?;
    ensure!(before == after, "{before:#?}\n{after:#?}");
    ensure!(
        !pair.mobile.directory().join("api.sock").exists(),
        "its socket is left"
    );
    drop(taken);
    Ok(())
}

/// Returns the mobile node's configuration.
fn config() -> String {
    pair::mobile_config(Family::V4, Terms::PLAIN, "manual")
}

fn write(host: &Host, config: &str) -> Result<PathBuf> {
    host.secret("tunnel.psk", "a key that nobody else knows")?;
    let socket = host.directory().join("api.sock");
    let control = format!("[control]\nsocket = \"{}\"\n", socket.display());
    host.file("strata.toml", &format!("{config}{control}"))
}

fn start(host: &Host, config: &str) -> Result<End> {
    write(host, config)?;
    run(host, stratad(host)?)
}

/// Starts `stratad` with a good configuration through a program of util-linux.
fn start_through(program: &str, words: &[&str]) -> Result<End> {
    let pair = Pair::new("refusal")?;
    write(&pair.mobile, &config())?;
    let mut command = pair.mobile.command(find_command(program, "util-linux")?);
    command.args(words).arg(find_binary("stratad")?);
    command.args(["--config", "strata.toml"]);
    run(&pair.mobile, command)
}

/// Returns a command that runs `stratad` with the host's configuration.
fn stratad(host: &Host) -> Result<Command> {
    let mut command = host.command(find_binary("stratad")?);
    command.args(["--config", "strata.toml"]);
    Ok(command)
}

fn run(host: &Host, command: Command) -> Result<End> {
    let mut process = host.start("refused", command)?;
    let status = process.wait(DEADLINE)?;
    match status.code() {
        Some(code) => Ok((code, process.log())),
        None => bail!("ended by signal {:?}: {}", status.signal(), process.log()),
    }
}

fn expect((code, text): End, wanted: i32, words: &[&str]) -> Result<()> {
    ensure!(code == wanted, "exit code {code}, not {wanted}: {text}");
    let missing = words.iter().find(|word| !text.contains(**word));
    ensure!(missing.is_none(), "{missing:?} is not in: {text}");
    Ok(())
}
