//! Several paths that carry packets at the same time: what a stream of 1,000 datagrams a second
//! each way loses when one of two uplinks fails.

use anyhow::{Context, Result, ensure};
use lab::gaps::{Gaps, measure_flows};
use lab::host::Host;
use lab::pair::{self, GATEWAY, MOBILE, Pair, Tunnel};
use lab::plain::{configs, start, start_with};
use lab::process::DEADLINE;
use serde_json::Value;
use std::num::NonZeroU64;
use std::time::Duration;

/// Local addresses of the mobile node on its two networks.
const WIFI: &str = "10.3.0.2";
const CELL: &str = "10.4.0.2";

/// Number of flows, each of which stays on one path.
const FLOWS: usize = 20;

/// Datagrams of a stream each way before an event, and after a path has failed.
const FEW: u64 = 500;
const MANY: u64 = 2500;

/// Sends datagrams both ways through the tunnel, lets something happen, and sends more of them.
/// Returns what became of those to the gateway, and of those to the mobile node.
fn stream(pair: &Pair, more: u64, happen: impl FnOnce() -> Result<()>) -> Result<[Gaps; 2]> {
    let near = (&pair.mobile, MOBILE[0]);
    let far = (&pair.gateway, GATEWAY[0]);
    measure_flows(FLOWS, near, far, |counters| {
        counters.wait_for(FEW)?;
        happen()?;
        counters.wait_for(more)
    })
}

/// Checks that a stream loses nothing while something happens.
fn loses_nothing(pair: &Pair, happen: impl FnOnce() -> Result<()>) -> Result<()> {
    let [there, back] = stream(pair, FEW, happen)?;
    ensure!(there.lost + back.lost == 0, "{there}; {back}");
    Ok(())
}

/// Two uplinks with 25 ms each way.
fn hop() -> sim::Settings {
    sim::Settings {
        rate: NonZeroU64::new(100_000_000),
        delay: Duration::from_millis(25),
        queue: 1000,
        bit_error_rate: 0.0,
    }
}

/// Starts both ends with `paths` and waits until all paths are in use.
fn start_up(pair: &Pair, paths: u8) -> Result<Tunnel> {
    let key = format!("paths = {paths}");
    let tunnel = start_with(pair, &configs(&key, &key))?;
    tunnel.up()?;
    if paths > 1 {
        tunnel.await_live(&[WIFI, CELL])?;
    }
    Ok(tunnel)
}

/// Returns the packets that the kernel has sent on a device.
fn sent_on(host: &Host, device: &str) -> Result<u64> {
    let shown = host.run(&format!("ip -j -s link show {device}"))?;
    let shown: Value = serde_json::from_str(&shown)?;
    let packets = shown[0]["stats64"]["tx"]["packets"].as_u64();
    packets.context("`ip -s` shows no packets")
}

// Works: live-paths
#[lab::test(quiet)]
fn a_stream_loses_little_when_one_of_two_uplinks_is_taken_down() -> Result<()> {
    let mut lost = Vec::new();
    for paths in [2, 1] {
        let pair = Pair::with_lossy_hop("live", hop())?;
        let _second = pair.add_second_lossy_hop(hop())?;
        let tunnel = start_up(&pair, paths)?;
        let before = sent_on(&pair.mobile, "eth1")?;
        let [there, back] = stream(&pair, MANY, || {
            let on_second = sent_on(&pair.mobile, "eth1")? - before;
            // Of 500 datagrams.
            ensure!(
                (on_second > 50) == (paths > 1),
                "{on_second} packets on the second uplink"
            );
            pair.mobile.run("ip link set eth0 down").map(drop)
        })?;
        for (loss, way) in [(there, "to the gateway"), (back, "to the mobile node")] {
            println!("{paths} path(s), {way}: {loss}");
        }
        if paths > 1 {
            tunnel.await_live(&[CELL])?;
        }
        lost.push(there.lost + back.lost);
    }
    ensure!(lost[0] < 150, "{lost:?}");
    ensure!(
        3 * lost[0] < 2 * lost[1],
        "one path loses no more: {lost:?}"
    );
    Ok(())
}

// Recovers: live-paths
#[lab::test(quiet)]
fn a_silent_path_is_left_within_two_seconds_and_used_again_when_it_answers() -> Result<()> {
    let pair = Pair::new("live")?;
    pair.add_second_wire()?;
    let tunnel = start_up(&pair, 2)?;
    let rules = pair.between.file(
        "deaf.nft",
        "table inet deaf {\n  chain pass {\n    type filter hook forward priority 0\n    \
         iifname \"wireless2\" drop\n    oifname \"wireless2\" drop\n  }\n}\n",
    )?;
    let [there, back] = stream(&pair, MANY, || {
        pair.between
            .run(&format!("nft -f {}", rules.display()))
            .map(drop)
    })?;
    println!("silent path: {there}; {back}");
    for loss in [there, back] {
        ensure!(
            loss.longest > Duration::from_millis(500),
            "the path was not in use: {loss}"
        );
        ensure!(loss.longest < Duration::from_secs(2), "{loss}");
    }
    let silent = |paths: &Value| paths["paths"]["tunnels"][0]["live"][1]["works"] == false;
    let status = tunnel.mobile.strata("paths")?;
    ensure!(silent(&status), "{status}");
    pair.between.run("nft delete table inet deaf")?;
    tunnel.await_live(&[WIFI, CELL])?;
    loses_nothing(&pair, || tunnel.mobile.strata("rekey office").map(drop))
}

// Recovers: live-paths
#[lab::test]
fn an_uplink_that_comes_back_is_used_again() -> Result<()> {
    let pair = Pair::new("live")?;
    pair.add_second_wire()?;
    let tunnel = start_up(&pair, 2)?;
    pair.set_second_wire(false)?;
    tunnel.await_live(&[WIFI])?;
    pair.set_second_wire(true)?;
    tunnel.await_live(&[WIFI, CELL])
}

// Works: live-paths
#[lab::test]
fn a_path_behind_a_nat_is_used_and_shown() -> Result<()> {
    let pair = Pair::new("live")?;
    pair.add_second_wire()?;
    let rules = pair.between.file(
        "nat.nft",
        "table ip nat {\n  chain out {\n    type nat hook postrouting priority 100\n    \
         oifname \"wired\" masquerade\n  }\n}\n",
    )?;
    pair.between.run(&format!("nft -f {}", rules.display()))?;
    let key = "paths = 2";
    let tunnel = start_with(&pair, &configs(key, key))?;
    tunnel.up()?;
    let two = |paths: &Value| {
        let live = paths["paths"]["tunnels"][0]["live"].as_array();
        live.is_some_and(|live| live.len() == 2)
    };
    let shown = tunnel.gateway.wait_until("paths", DEADLINE, two)?;
    let live = &shown["paths"]["tunnels"][0]["live"];
    let [one, other] = [0, 1].map(|place| live[place]["remote"].as_str().unwrap_or_default());
    let is_outside = |end: &str| end.starts_with("192.0.2.2:");
    ensure!(
        is_outside(one) && is_outside(other) && one != other,
        "{shown}"
    );
    loses_nothing(&pair, || Ok(()))?;
    let text = tunnel.mobile.strata_text("paths")?;
    ensure!(
        text.contains("live: 10.4.0.2:4500 - 192.0.2.1:4500  carries packets"),
        "{text}"
    );
    Ok(())
}

// Refuses: live-paths
#[lab::test]
fn a_peer_that_allows_one_path_has_one_and_both_operators_learn_why() -> Result<()> {
    let pair = Pair::new("live")?;
    pair.add_second_wire()?;
    let tunnel = start(&pair, "paths = 2", "")?;
    tunnel.up()?;
    let refused = |words: &'static str| {
        move |status: &Value| pair::is_up(status) && pair::refusal(status).contains(words)
    };
    tunnel
        .mobile
        .wait_until("status", DEADLINE, refused("allows no further path"))?;
    tunnel
        .gateway
        .wait_until("status", DEADLINE, refused("allows only 1"))?;
    loses_nothing(&pair, || Ok(()))
}

// Refuses: live-paths
#[lab::test]
fn a_peer_without_mobike_has_one_path_and_the_operator_learns_why() -> Result<()> {
    let pair = Pair::new("live")?;
    pair.add_second_wire()?;
    let tunnel = start(&pair, "paths = 2", "mobike = \"off\"")?;
    tunnel.up()?;
    let told = |status: &Value| {
        let why = pair::refusal(status);
        pair::is_up(status) && why.contains("does not support several live paths")
    };
    tunnel.mobile.wait_until("status", DEADLINE, told).map(drop)
}
