//! Hand-overs that no operator asks for, and those that a connection manager asks for. Each test
//! has the same move without `clone` or without measurement as its negative control.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::gaps::{Counters, Gaps, measure};
use lab::pair::{
    self, DEADLINE, GATEWAY, MOBILE, NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel, children,
    gateway_config, mobile_config, peer,
};
use lab::process::until;
use os::Family;
use serde_json::{Value, json};

/// Local addresses of the mobile node on its two networks, of which the routes prefer the first.
const WIFI: &str = "10.3.0.2";
const CELL: &str = "10.4.0.2";

const CLONES: &str = "clone = true\nprobe_paths = \"1s\"\n";
const UNMEASURED: &str = "clone = true\nprobe_paths = \"off\"\n";

/// The router's end of the first network is taken down. Without the word before, packets are lost
/// until the silence is noticed.
// Works: soft
#[lab::test]
fn a_tunnel_that_a_connection_manager_moves_loses_nothing_when_the_old_network_dies() -> Result<()>
{
    let down = |pair: &Pair, counters: &Counters| {
        counters.wait_for(300)?;
        pair.between.run("ip link set wireless down")?;
        counters.wait_for(300)
    };
    let (pair, tunnel) = up([CLONES; 2])?;
    let soft = streams(&pair, |counters| {
        let moved = tunnel.mobile.strata("move office --to eth1")?;
        ensure!(moved["move"]["soft"] == true, "{moved}");
        stays_on(&tunnel, CELL, "asked")?;
        down(&pair, counters)
    })?;
    ensure!(soft.iter().all(|way| way.lost == 0), "soft: {}", both(soft));
    pair::no_drops(&tunnel.gateway.strata("status")?)?;
    drop((tunnel, pair));
    let (pair, tunnel) = up([CLONES; 2])?;
    let hard = streams(&pair, |counters| {
        down(&pair, counters)?;
        leaves_from(&tunnel.mobile, CELL)
    })?;
    eprintln!("soft: {}", both(soft));
    eprintln!("hard: {}", both(hard));
    ensure!(hard.iter().any(|way| way.lost > 0), "hard: {}", both(hard));
    Ok(())
}

// Works: soft
#[lab::test]
fn a_second_word_of_the_connection_manager_is_done_after_the_first() -> Result<()> {
    let (pair, tunnel) = up([CLONES; 2])?;
    let gaps = streams(&pair, |_| {
        for to in ["eth1", "eth0"] {
            tunnel.mobile.strata(&format!("move office --to {to}"))?;
        }
        until("two hand-overs", DEADLINE, || {
            Ok((handed_over(&tunnel.mobile)? == 2).then_some(()))
        })?;
        stays_on(&tunnel, WIFI, "asked")
    })?;
    ensure!(gaps.iter().all(|way| way.lost == 0), "{}", both(gaps));
    Ok(())
}

/// Both ways exist before and after: only their order changes.
// Works: soft
#[lab::test]
fn a_better_route_hands_the_tunnel_over_if_both_ends_allow_clones() -> Result<()> {
    let prefer = |pair: &Pair| {
        let better = "ip route add 192.0.2.1 via 10.4.0.1 dev eth1";
        pair.mobile.run(better).map(drop)
    };
    let (pair, tunnel) = up([CLONES; 2])?;
    let gaps = streams(&pair, |counters| {
        prefer(&pair)?;
        stays_on(&tunnel, CELL, "route")?;
        counters.wait_for(100)
    })?;
    eprintln!("{}", both(gaps));
    ensure!(gaps.iter().all(|way| way.lost == 0), "{}", both(gaps));
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        ensure!(handed_over(daemon)? == 1, "{}", daemon.log_path().display());
    }
    drop((tunnel, pair));
    let (pair, tunnel) = up([CLONES, ""])?;
    prefer(&pair)?;
    leaves_from(&tunnel.mobile, CELL)?;
    ensure!(
        handed_over(&tunnel.mobile)? == 0,
        "it has moved with a pause"
    );
    Ok(())
}

/// A firewall drops every third packet of each end: drawn at random, a few in a row would be
/// silence now and then. After the hand-over, the path is cut, and nothing of the tunnel is there
/// any more. Without measurement, the tunnel stays there.
// Works: soft
// Recovers: soft
#[lab::test]
fn a_path_that_loses_packets_is_left_before_it_is_dead() -> Result<()> {
    let (pair, tunnel) = up([CLONES; 2])?;
    lose_a_third(&pair)?;
    stays_on(&tunnel, CELL, "faded")?;
    let text = tunnel.mobile.strata_text("paths")?;
    ensure!(
        text.contains("because of loss on the path before ("),
        "{text}"
    );
    ensure!(text.contains(" ms  0 % lost"), "{text}");
    let metrics = tunnel.mobile.strata_text("metrics")?;
    for sample in [
        "strata_peer_hand_overs_total{peer=\"office\"} 1",
        "strata_peer_path_lost_ratio{peer=\"office\"} 0",
    ] {
        ensure!(metrics.contains(sample), "{metrics}");
    }
    let gaps = streams(&pair, |counters| {
        counters.wait_for(300)?;
        pair.between.run("ip link set wireless down")?;
        counters.wait_for(300)
    })?;
    eprintln!("after the hand-over: {}", both(gaps));
    ensure!(gaps.iter().all(|way| way.lost == 0), "{}", both(gaps));
    drop((tunnel, pair));
    let (pair, tunnel) = up([UNMEASURED; 2])?;
    lose_a_third(&pair)?;
    let gaps = streams(&pair, |counters| counters.wait_for_losses(4000))?;
    eprintln!("without measurement: {}", both(gaps));
    leaves_from(&tunnel.mobile, WIFI)
}

/// A source reports that the signal is weak, and then nothing of the first network arrives any
/// more. Without the report, the same silence loses packets.
// Works: soft
#[lab::test]
fn a_network_with_a_weak_signal_is_left_before_it_is_silent() -> Result<()> {
    let silence = |pair: &Pair, counters: &Counters| {
        pair.between.run("ip link set wireless down")?;
        counters.wait_for(300)
    };
    let (pair, tunnel) = up([CLONES; 2])?;
    let warned = streams(&pair, |counters| {
        counters.wait_for(300)?;
        let said = tunnel.mobile.strata("signal eth0 25 --by modemmanager")?;
        let signal = &said["signal"];
        ensure!(signal["weak"] == true, "{said}");
        ensure!(signal["tunnels"][0]["follows"] == true, "{said}");
        stays_on(&tunnel, CELL, "weak")?;
        let text = tunnel.mobile.strata_text("paths")?;
        for part in ["a weak signal on the path before", "(by modemmanager)"] {
            ensure!(text.contains(part), "{text}");
        }
        silence(&pair, counters)
    })?;
    ensure!(warned.iter().all(|way| way.lost == 0), "{}", both(warned));
    let log = std::fs::read_to_string(tunnel.mobile.log_path())?;
    ensure!(log.contains("is weak (25 %), says modemmanager"), "{log}");
    drop((tunnel, pair));
    let (pair, tunnel) = up([CLONES; 2])?;
    let unwarned = streams(&pair, |counters| {
        counters.wait_for(300)?;
        tunnel.mobile.strata("signal eth0 30")?;
        silence(&pair, counters)?;
        leaves_from(&tunnel.mobile, CELL)
    })?;
    eprintln!("with a report: {}", both(warned));
    eprintln!("without one: {}", both(unwarned));
    let lost = unwarned.iter().any(|way| way.lost > 0);
    ensure!(lost, "without one: {}", both(unwarned));
    Ok(())
}

/// The source dies after two reports, of which the second is above the bound, but not by enough.
// Recovers: soft
#[lab::test]
fn the_report_of_a_source_that_has_died_is_forgotten() -> Result<()> {
    let (_pair, tunnel) = up([CLONES; 2])?;
    let mobile = &tunnel.mobile;
    mobile.strata("signal eth0 10 --by iw")?;
    stays_on(&tunnel, CELL, "weak")?;
    let said = mobile.strata("signal eth0 44 --by iw")?;
    ensure!(said["signal"]["weak"] == true, "{said}");
    // Half a minute.
    let back = |paths: &Value| {
        let office = &paths["paths"]["tunnels"][0];
        office["local"] == format!("{WIFI}:4500").as_str() && office["why"] == "route"
    };
    let forgotten = mobile.wait_until("paths", DEADLINE, back);
    let paths = forgotten.context("the tunnel is not back on the first network")?;
    let candidates = &paths["paths"]["tunnels"][0]["candidates"];
    ensure!(candidates[0]["signal"].is_null(), "{paths}");
    let log = std::fs::read_to_string(mobile.log_path())?;
    ensure!(log.contains("is not reported any more"), "{log}");
    ensure!(handed_over(mobile)? == 2, "{log}");
    Ok(())
}

// Refuses: soft
#[lab::test]
fn a_signal_that_cannot_be_used_is_refused_with_the_fix() -> Result<()> {
    let (pair, tunnel) = up([CLONES, ""])?;
    let mobile = &tunnel.mobile;
    mobile.refuses("signal wwan7 25", "there is no interface wwan7")?;
    mobile.refuses("signal wwan7 25", "eth1")?;
    mobile.refuses("signal eth0 101", "2 * (dBm + 100)")?;
    mobile.refuses("signal eth0 -80", "2 * (dBm + 100)")?;
    mobile.refuses("signal eth0 25 --by network/manager", "--by modemmanager")?;
    let over = json!({"interface": "eth0", "percent": 101});
    let refused = mobile
        .ask("signal", over)
        .map_err(|error| format!("{error:?}"));
    let fix = |error: &String| error.contains("2 * (dBm + 100)");
    ensure!(refused.as_ref().is_err_and(fix), "{refused:?}");
    // Without clones at the other end, the tunnel stays, and the answer says why.
    let said = mobile.strata_text("signal eth0 0")?;
    ensure!(said.contains("office does not follow signals"), "{said}");
    ensure!(said.contains("clone = true"), "{said}");
    streams(&pair, |counters| counters.wait_for(6000))?;
    let paths = mobile.strata("paths")?;
    let local = &paths["paths"]["tunnels"][0]["local"];
    ensure!(*local == format!("{WIFI}:4500").as_str(), "{paths}");
    // At the other end, no tunnel is its own to move.
    let said = tunnel.gateway.strata("signal eth0 0")?;
    ensure!(said["signal"]["tunnels"] == json!([]), "{said}");
    pair.mobile.run("ip link set eth1 down")?;
    mobile.refuses("signal eth1 25", "ip link set eth1 up")
}

// Refuses: soft
#[lab::test]
fn an_interface_that_cannot_be_used_is_refused_with_the_fix() -> Result<()> {
    let (pair, tunnel) = up([CLONES, ""])?;
    let mobile = &tunnel.mobile;
    mobile.refuses("move office --to wwan7", "there is no interface wwan7")?;
    mobile.refuses("move office --to wwan7", "eth1")?;
    mobile.refuses("move office --to lo", CELL)?;
    mobile.refuses("move nobody --to eth1", "strata status")?;
    mobile.refuses("move office --to eth1 --soft", "clone = true")?;
    // Without clones at the other end, there is a pause.
    let moved = mobile.strata("move office --to eth1")?;
    ensure!(moved["move"]["soft"] == false, "{moved}");
    leaves_from(mobile, CELL)?;
    pair.mobile.run("ip link set eth0 down")?;
    mobile.refuses("move office --to eth0", "ip link set eth0 up")?;
    tunnel
        .gateway
        .refuses("move alice --to eth0", "at the other end")
}

/// Starts both ends, with these lines in their tables of each other. Both local addresses have
/// routes of their own.
fn up([mobile, gateway]: [&str; 2]) -> Result<(Pair, Tunnel)> {
    let pair = Pair::new("soft")?;
    pair.add_second_wire()?;
    for command in [
        "route add default via 10.3.0.1 table 101",
        "rule add from 10.3.0.2 lookup 101",
    ] {
        pair.mobile.run(&format!("ip {command}"))?;
    }
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    pair.gateway.secret("node.psk", NODE_KEY)?;
    let with = |config: String, line| config.replacen("psk =", &format!("{line}psk ="), 1);
    let gateway = with(gateway_config(Terms::PLAIN), gateway);
    let gateway = pair.gateway.stratad(&gateway)?;
    let mobile = with(mobile_config(Family::V4, Terms::PLAIN, "manual"), mobile);
    let mobile = pair.mobile.stratad(&mobile)?;
    let tunnel = Tunnel { mobile, gateway };
    tunnel.up()?;
    leaves_from(&tunnel.mobile, WIFI)?;
    Ok((pair, tunnel))
}

fn streams(pair: &Pair, meanwhile: impl FnOnce(&Counters) -> Result<()>) -> Result<[Gaps; 2]> {
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    measure(ends.0, ends.1, meanwhile)
}

/// Returns the number of hand-overs in a daemon's log.
fn handed_over(daemon: &Daemon) -> Result<usize> {
    let log = std::fs::read_to_string(daemon.log_path())?;
    Ok(log.matches("tunnel handed over").count())
}

fn both([to, from]: [Gaps; 2]) -> String {
    format!("to the gateway {to}; from it {from}")
}

/// Has the router drop every third packet of the first network, in both directions.
fn lose_a_third(pair: &Pair) -> Result<()> {
    let rules = pair.between.file(
        "lossy.nft",
        "table ip lossy {\n  chain forward {\n    type filter hook forward priority 0\n    \
         iifname \"wireless\" numgen inc mod 3 == 0 drop\n    \
         oifname \"wireless\" numgen inc mod 3 == 0 drop\n  }\n}\n",
    )?;
    pair.between
        .run(&format!("nft -f {}", rules.display()))
        .map(drop)
}

/// Waits until the tunnel uses a local address for a reason, and the old IKE SA is gone.
fn stays_on(tunnel: &Tunnel, address: &str, why: &str) -> Result<()> {
    let local = format!("{address}:4500");
    let there = |paths: &Value| {
        let office = &paths["paths"]["tunnels"][0];
        office["local"] == local.as_str() && office["why"] == why
    };
    let paths = tunnel.mobile.wait_until("paths", DEADLINE, there);
    paths.with_context(|| format!("the tunnel is not on {address} because of {why}"))?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let is_alone = |status: &Value| children(status).len() == 1 && peer(status)["ike_sas"] == 1;
        let left = daemon.wait_until("status", DEADLINE, is_alone);
        left.context("the old IKE SA stays")?;
    }
    Ok(())
}

/// Waits until the mobile node's tunnel uses a local address.
fn leaves_from(mobile: &Daemon, address: &str) -> Result<()> {
    let local = format!("{address}:4500");
    let there = |paths: &Value| paths["paths"]["tunnels"][0]["local"] == local.as_str();
    mobile.wait_until("paths", DEADLINE, there).map(drop)
}
