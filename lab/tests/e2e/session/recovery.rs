//! Recovery without an operator after every crash, and no leftovers after every end.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, Terms, Tunnel};
use lab::plain::about_peer;
use lab::process::until;
use lab::transfer::transfer;
use nix::sys::signal::Signal;
use os::Family;
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

const OCTETS: u64 = 1_000_000;

/// A removed device stays readable forever, so a daemon that does not exit would spin.
#[lab::test]
fn a_daemon_whose_device_is_removed_ends_with_the_reason() -> Result<()> {
    let pair = Pair::new("recovery")?;
    let before = traces(&pair)?;
    let mut tunnel = start_by_itself(&pair, Terms::PLAIN)?;
    pair.mobile.run("ip link del strata0")?;
    let status = tunnel.mobile.process().wait(DEADLINE)?;
    let log = tunnel.mobile.process().log();
    ensure!(!status.success(), "{status}: {log}");
    ensure!(log.contains("strata0 was removed"), "{log}");
    let nobody = |status: &Value| pair::children(status).is_empty();
    tunnel.gateway.wait_until("status", DEADLINE, nobody)?;
    tunnel.gateway.stop()?;
    same(&before, &traces(&pair)?)
}

/// As with Ctrl-Z and then `fg`.
// Recovers: tunnel
#[lab::test]
fn whoever_is_suspended_while_he_waits_gets_his_answer() -> Result<()> {
    let pair = Pair::new("recovery")?;
    let mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "manual")?;
    let asking = mobile.command("up office --wait")?;
    let mut asking = pair.mobile.start("asking", asking)?;
    mobile.wait_until("status", DEADLINE, |status| {
        pair::peer(status)["state"] == "connecting"
    })?;
    let stat = format!("/proc/{}/stat", asking.pid());
    asking.signal(Signal::SIGSTOP)?;
    until("it is suspended", DEADLINE, || {
        Ok(fs::read_to_string(&stat)?.contains(") T ").then_some(()))
    })?;
    asking.signal(Signal::SIGCONT)?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    let status = asking.wait(DEADLINE)?;
    ensure!(status.success(), "{status}: {}", asking.log());
    Ok(())
}

// Works: inspection
// Recovers: tunnel
#[lab::test]
fn a_killed_mobile_node_comes_back_with_its_tunnel() -> Result<()> {
    let pair = Pair::new("recovery")?;
    let mut tunnel = start_by_itself(&pair, Terms::PLAIN)?;
    tunnel.mobile.process().crash()?;
    tunnel.mobile.start_again()?;
    tunnel.mobile.wait_until("status", DEADLINE, pair::is_up)?;
    each_way(&pair)?;
    // The gateway has detected that the old SA belongs to a dead process.
    let one = |status: &Value| pair::children(status).len() == 1;
    tunnel.gateway.wait_until("status", DEADLINE, one).map(drop)
}

/// The key changes first at the mobile node, which initiates, and at the gateway several refusals
/// later, with the default `liveness`.
// Recovers: tunnel
#[lab::test(quiet)]
fn a_key_that_both_ends_change_is_used_within_five_seconds() -> Result<()> {
    const OTHER: &str = "another key between mobile node and gateway";
    const MOST: Duration = Duration::from_secs(5);
    let pair = Pair::new("recovery")?;
    let [mobile, gateway] = [
        pair::mobile_config(Family::V4, Terms::PLAIN, "auto"),
        pair::gateway_config(Terms::PLAIN),
    ]
    .map(|config| config.replace("liveness = \"1s\"\n", ""));
    pair.gateway.secret("node.psk", pair::NODE_KEY)?;
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    }
    let gateway = pair.gateway.stratad(&gateway)?;
    let mut mobile = pair.mobile.stratad(&mobile)?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    pair.mobile.secret("tunnel.psk", OTHER)?;
    mobile.strata_text("reload")?;
    // Without the change, the pause before the next attempt would be 16 s.
    let refused =
        |log: &str| (log.matches("refused our authentication").count() >= 5).then_some(());
    let process = mobile.process();
    process.wait_for("five refusals", DEADLINE, refused)?;
    pair.gateway.secret("tunnel.psk", OTHER)?;
    gateway.strata_text("reload")?;
    let changed = Instant::now();
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    let took = changed.elapsed();
    println!(
        "a key that both ends changed: up after {} ms",
        took.as_millis()
    );
    ensure!(took < MOST, "{took:?}");
    each_way(&pair)
}

/// The answer that lacks the key is not authenticated, so the mobile node keeps trying, and the
/// gateway repeats that answer to a repeated request even after the reload.
// Recovers: ppk
#[lab::test(quiet)]
fn a_ppk_that_the_gateway_lacked_is_used_within_five_seconds() -> Result<()> {
    const PPK: &str = r#"ppk = { id = "office2026", key = "tunnel.ppk" }"#;
    const MOST: Duration = Duration::from_secs(5);
    let pair = Pair::new("recovery")?;
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", pair::TUNNEL_KEY)?;
        host.secret("tunnel.ppk", "k1l0dmVzdGVyIGlzIG5vdCBhIHF1YW50dW0ga2V5ISE=")?;
    }
    pair.gateway.secret("node.psk", pair::NODE_KEY)?;
    let by_default = |config: String| config.replace("liveness = \"1s\"\n", "");
    let mobile = by_default(pair::mobile_config(Family::V4, Terms::PLAIN, "auto"));
    let gateway_config = by_default(pair::gateway_config(Terms::PLAIN));
    let gateway = pair.gateway.stratad(&gateway_config)?;
    let mut mobile = pair.mobile.stratad(&about_peer(&mobile, PPK))?;
    // The attempts follow each other by 4 s then, and the request of one by up to 8 s.
    let lacks = |log: &str| (log.matches("a PPK is required here").count() >= 5).then_some(());
    let process = mobile.process();
    process.wait_for("five refusals", DEADLINE, lacks)?;
    ensure!(pair::is_down(&gateway.strata("status")?));
    gateway.configure(&about_peer(&gateway_config, PPK))?;
    gateway.strata_text("reload")?;
    let mended = Instant::now();
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    let took = mended.elapsed();
    println!(
        "a PPK that the gateway lacked: up after {} ms",
        took.as_millis()
    );
    ensure!(took < MOST, "{took:?}");
    ensure!(pair::peer(&mobile.strata("status")?)["ppk"] == true);
    each_way(&pair)
}

// Recovers: licences
#[lab::test]
fn a_killed_licensed_node_comes_back_with_its_licence() -> Result<()> {
    let pair = Pair::new("recovery")?;
    let mut licensed = pair.start_licensed(pair::LICENSED)?;
    let _tunnel = start_by_itself(&pair, Terms::LICENSED)?;
    licensed.wait_until("zones", DEADLINE, holds_keys)?;
    licensed.process().crash()?;
    // Without a diversion the kernel forwards the packets itself.
    each_way(&pair)?;
    licensed.start_again()?;
    licensed.wait_until("zones", DEADLINE, holds_keys)?;
    each_way(&pair)
}

// Works: liveness
// Recovers: licences
#[lab::test]
fn a_killed_gateway_comes_back_with_its_tunnel_and_its_licence() -> Result<()> {
    let pair = Pair::new("recovery")?;
    let licensed = pair.start_licensed(pair::LICENSED)?;
    let mut tunnel = start_by_itself(&pair, Terms::LICENSED)?;
    let before = licensed.wait_until("zones", DEADLINE, holds_keys)?;
    tunnel.gateway.process().crash()?;
    tunnel.gateway.start_again()?;
    let old = names(&before);
    let renewed = |zones: &Value| names(zones).iter().any(|name| !old.contains(name));
    licensed.wait_until("zones", DEADLINE, renewed)?;
    tunnel.mobile.wait_until("status", DEADLINE, pair::is_up)?;
    each_way(&pair)
}

// Recovers: licensed-node
#[lab::test]
fn what_a_killed_daemon_left_is_gone_after_the_next_start_and_stop() -> Result<()> {
    let pair = Pair::new("recovery")?;
    let before = traces(&pair)?;
    let mut licensed = pair.start_licensed(pair::LICENSED)?;
    let mut tunnel = start_by_itself(&pair, Terms::LICENSED)?;
    licensed.wait_until("zones", DEADLINE, holds_keys)?;
    for daemon in daemons(&mut tunnel, &mut licensed) {
        daemon.process().crash()?;
    }
    ensure!(
        traces(&pair)? != before,
        "a killed daemon leaves at least its black hole"
    );
    for daemon in daemons(&mut tunnel, &mut licensed) {
        daemon.start_again()?;
    }
    tunnel.mobile.wait_until("status", DEADLINE, pair::is_up)?;
    for daemon in daemons(&mut tunnel, &mut licensed) {
        daemon.stop()?;
    }
    same(&before, &traces(&pair)?)
}

#[lab::test]
fn sigterm_of_the_mobile_node_takes_the_gateways_end_down() -> Result<()> {
    let pair = Pair::new("recovery")?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.mobile.stop()?;
    tunnel
        .gateway
        .wait_until("status", DEADLINE, pair::is_down)
        .map(drop)
}

// Recovers: tunnel
#[lab::test]
fn sigterm_of_the_gateway_takes_the_mobile_nodes_end_down() -> Result<()> {
    let pair = Pair::new("recovery")?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.gateway.stop()?;
    let no_children = |status: &Value| pair::children(status).is_empty();
    tunnel
        .mobile
        .wait_until("status", DEADLINE, no_children)
        .map(drop)
}

#[lab::test]
fn sigterm_leaves_no_device_rule_route_or_socket() -> Result<()> {
    let pair = Pair::new("recovery")?;
    let before = traces(&pair)?;
    let mut licensed = pair.start_licensed(pair::LICENSED)?;
    let mut tunnel = start_by_itself(&pair, Terms::LICENSED)?;
    licensed.wait_until("zones", DEADLINE, holds_keys)?;
    each_way(&pair)?;
    let during = traces(&pair)?;
    for (host, (before, during)) in hosts(&pair).iter().zip(before.iter().zip(&during)) {
        ensure!(
            before != during,
            "nothing to leave behind on {}",
            host.name()
        );
    }
    for daemon in daemons(&mut tunnel, &mut licensed) {
        daemon.stop()?;
        let socket = daemon.socket();
        ensure!(!socket.exists(), "{} is still there", socket.display());
    }
    same(&before, &traces(&pair)?)
}

/// Starts a tunnel that comes up on its own.
fn start_by_itself(pair: &Pair, terms: Terms<'_>) -> Result<Tunnel> {
    let gateway = pair.start_gateway(terms)?;
    let mobile = pair.start_mobile(Family::V4, terms, "auto")?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    gateway.wait_until("status", DEADLINE, pair::is_up)?;
    Ok(Tunnel { mobile, gateway })
}

fn each_way(pair: &Pair) -> Result<()> {
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], OCTETS)
}

fn holds_keys(zones: &Value) -> bool {
    !names(zones).is_empty()
}

/// Returns the composite SAs whose keys a licensed node holds.
fn names(zones: &Value) -> Vec<Value> {
    let held = zones["zones"]["held"].as_array();
    held.map_or_else(Vec::new, |held| {
        held.iter().map(|held| held["csa"].clone()).collect()
    })
}

fn hosts(pair: &Pair) -> [&Host; 3] {
    [&pair.mobile, &pair.between, &pair.gateway]
}

fn daemons<'a>(tunnel: &'a mut Tunnel, licensed: &'a mut Daemon) -> [&'a mut Daemon; 3] {
    [&mut tunnel.mobile, licensed, &mut tunnel.gateway]
}

fn traces(pair: &Pair) -> Result<Vec<Vec<String>>> {
    hosts(pair).into_iter().map(pair::traces).collect()
}

fn same(before: &[Vec<String>], after: &[Vec<String>]) -> Result<()> {
    let differ = |(before, after): (&Vec<String>, &Vec<String>)| {
        let left: Vec<_> = after
            .iter()
            .filter(|line| !before.contains(line))
            .cloned()
            .collect();
        let lost: Vec<_> = before
            .iter()
            .filter(|line| !after.contains(line))
            .cloned()
            .collect();
        (left, lost)
    };
    let all: Vec<_> = before.iter().zip(after).map(differ).collect();
    ensure!(before == after, "(left, lost) for each host: {all:#?}");
    Ok(())
}
