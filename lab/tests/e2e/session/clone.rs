//! Soft hand-overs (RFC 7791): a clone of the IKE SA moves a tunnel to another path without a
//! pause. A failed hand-over leaves the tunnel where it was.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{
    self, DEADLINE, GATEWAY, MOBILE, NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel, children,
    gateway_config, is_up, mobile_config, peer, refusal,
};
use lab::transfer::transfer;
use lab::volley::volleys;
use os::Family;
use serde_json::Value;
use std::time::Duration;

/// Log message of both ends after a hand-over.
const HANDED_OVER: &str = "tunnel handed over";

/// Local addresses of the mobile node on its two networks.
const WIFI: &str = "10.3.0.2";
const CELL: &str = "10.4.0.2";

// Works: clone
#[lab::test]
fn a_stream_loses_no_packet_through_four_hand_overs() -> Result<()> {
    let (pair, mut tunnel) = up()?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        let mut ways = [CELL, WIFI, CELL, WIFI].into_iter();
        ways.try_for_each(|from| hand_over(&mut tunnel, from))
    })?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        pair::no_drops(&status)?;
        ensure!(peer(&status)["clone"] == true, "{status}");
    }
    Ok(())
}

// Recovers: clone
#[lab::test]
fn a_tunnel_is_handed_over_over_hops_that_lose_packets() -> Result<()> {
    let hop = sim::Settings {
        rate: std::num::NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        // One in sixteen full packets is lost.
        bit_error_rate: 1.0 / 200_000.0,
    };
    let pair = Pair::with_lossy_hop("clone", hop)?;
    let _hop = pair.add_second_lossy_hop(hop)?;
    let mut tunnel = start(&pair, [ALLOWED; 2])?;
    for from in [CELL, WIFI, CELL] {
        hand_over(&mut tunnel, from)?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    }
    Ok(())
}

/// The old path carries no part of the tunnel any more, so its loss is not even noticed.
// Works: clone
#[lab::test]
fn a_path_that_dies_after_a_hand_over_takes_nothing_with_it() -> Result<()> {
    let (pair, mut tunnel) = up()?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        hand_over(&mut tunnel, CELL)?;
        pair.between.run("ip link set wireless down")
    })?;
    leaves_from(&tunnel.mobile, CELL)
}

/// The first hand-over is in progress, or the old IKE SA is draining.
// Recovers: clone
#[lab::test]
fn a_hand_over_that_is_asked_for_during_another_is_done_after_it() -> Result<()> {
    let (pair, mut tunnel) = up()?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        for from in [CELL, WIFI] {
            let asked = format!("move office --soft --from {from}");
            tunnel.mobile.strata(&asked)?;
        }
        let twice = |log: &str| (log.matches(HANDED_OVER).count() == 2).then_some(());
        let mobile = tunnel.mobile.process();
        mobile.wait_for("two hand-overs", DEADLINE, twice)?;
        for daemon in [&tunnel.mobile, &tunnel.gateway] {
            daemon.wait_until("status", DEADLINE, is_alone)?;
        }
        Ok(())
    })?;
    leaves_from(&tunnel.mobile, WIFI)
}

// Recovers: clone
#[lab::test]
fn a_hand_over_to_where_nobody_answers_leaves_all_as_it_was() -> Result<()> {
    let (pair, tunnel) = up()?;
    let before = tunnel.spis()?;
    // The mobile node gets no indication: its packets vanish.
    pair.between.run("ip link set wireless2 up")?;
    let rules = pair.between.file(
        "deaf.nft",
        "table ip deaf {\n  chain forward {\n    type filter hook prerouting priority 0\n    \
         iifname \"wireless2\" drop\n  }\n}\n",
    )?;
    pair.between.run(&format!("nft -f {}", rules.display()))?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        let asked = format!("move office --soft --from {CELL}");
        tunnel.mobile.strata(&asked)?;
        let told = |status: &Value| {
            let one = peer(status)["ike_sas"] == 1;
            one && refusal(status).contains("the tunnel stays on its path") && is_up(status)
        };
        tunnel.mobile.wait_until("status", DEADLINE, told)?;
        tunnel.gateway.wait_until("status", DEADLINE, is_alone)
    })?;
    ensure!(tunnel.spis()? == before, "{before:?}");
    leaves_from(&tunnel.mobile, WIFI)
}

// Refuses: clone
#[lab::test]
fn what_cannot_be_handed_over_is_refused_with_the_fix() -> Result<()> {
    let pair = Pair::new("clone")?;
    pair.add_second_wire()?;
    let tunnel = start(&pair, ["", ALLOWED])?;
    tunnel
        .mobile
        .refuses("move office --soft", "clone = true")?;
    tunnel
        .gateway
        .refuses("move alice --soft", "at the other end")?;
    tunnel
        .mobile
        .refuses("move nobody --soft", "strata status")?;
    let nowhere = "move office --soft --from 10.1.0.2";
    tunnel.mobile.refuses(nowhere, CELL)?;
    tunnel.mobile.strata("down office")?;
    tunnel
        .mobile
        .refuses("move office --soft", "strata up office")
}

// Refuses: clone
#[lab::test]
fn where_one_end_does_not_allow_it_the_tunnel_stays() -> Result<()> {
    let pair = Pair::new("clone")?;
    pair.add_second_wire()?;
    let tunnel = start(&pair, [ALLOWED, ""])?;
    let before = tunnel.spis()?;
    tunnel
        .mobile
        .refuses("move office --soft", "clone = true")?;
    let status = tunnel.mobile.strata("status")?;
    ensure!(peer(&status)["clone"] == false, "{status}");
    ensure!(tunnel.spis()? == before, "{before:?}");
    // An ordinary move works, with a pause.
    tunnel
        .mobile
        .strata(&format!("move office --from {CELL}"))?;
    leaves_from(&tunnel.mobile, CELL)
}

const ALLOWED: &str = "clone = true\n";

fn up() -> Result<(Pair, Tunnel)> {
    let pair = Pair::new("clone")?;
    pair.add_second_wire()?;
    let tunnel = start(&pair, [ALLOWED; 2])?;
    Ok((pair, tunnel))
}

/// Starts both ends, with these lines in their tables of each other.
fn start(pair: &Pair, [mobile, gateway]: [&str; 2]) -> Result<Tunnel> {
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
    Ok(tunnel)
}

/// Moves the tunnel to another path; returns when the move is complete and the old IKE SA is gone.
fn hand_over(tunnel: &mut Tunnel, from: &str) -> Result<()> {
    let told = |log: &str| log.matches(HANDED_OVER).count();
    let Tunnel { mobile, gateway } = tunnel;
    let before = [&mut *mobile, &mut *gateway].map(|daemon| told(&daemon.process().log()));
    let asked = format!("move office --soft --from {from}");
    let moved = mobile.strata(&asked)?;
    let local = format!("{from}:4500");
    ensure!(moved["move"]["local"] == local.as_str(), "{moved}");
    for (daemon, before) in [&mut *mobile, &mut *gateway].into_iter().zip(before) {
        let again = |log: &str| (told(log) > before).then_some(());
        daemon.process().wait_for(HANDED_OVER, DEADLINE, again)?;
    }
    for daemon in [&*mobile, &*gateway] {
        let left = daemon.wait_until("status", DEADLINE, is_alone);
        left.context("the old IKE SA stays")?;
    }
    leaves_from(mobile, from)
}

/// Returns true if there is one IKE SA with one tunnel.
fn is_alone(status: &Value) -> bool {
    children(status).len() == 1 && peer(status)["ike_sas"] == 1
}

/// Waits until the mobile node's tunnel uses a local address.
fn leaves_from(mobile: &Daemon, address: &str) -> Result<()> {
    let local = format!("{address}:4500");
    let there = |paths: &Value| paths["paths"]["tunnels"][0]["local"] == local.as_str();
    mobile.wait_until("paths", DEADLINE, there).map(drop)
}
