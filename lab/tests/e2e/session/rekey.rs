//! Rekeys while packets flow: no packet is lost, and a licensed node keeps reading.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::gaps::measure;
use lab::pair::{self, DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, Terms, Tunnel};
use lab::transfer::transfer;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Number of packets each way between two rekeys.
const BETWEEN: u64 = 60;

const MB: u64 = 1_000_000;

/// A thousand numbered packets per second each way, each of which must arrive exactly once. A
/// licensed node may read their headers.
// Works: rekey
#[lab::test]
fn a_stream_loses_no_packet_through_twenty_rekeys() -> Result<()> {
    let (pair, _licensed, mut tunnel) = licensed(Pair::new("rekey")?)?;
    let near = (&pair.mobile, MOBILE[0]);
    let gaps = measure(near, (&pair.gateway, GATEWAY[0]), |counters| {
        (0..20).try_for_each(|round| {
            tunnel.rekey(round)?;
            counters.wait_for(BETWEEN)
        })
    })?;
    for way in gaps {
        ensure!(way.lost == 0, "{way}");
    }
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

/// Compares every octet, in both directions, with SNOOP between the ends.
// Works: rekey
#[lab::test]
fn downloads_go_on_through_twenty_rekeys_with_a_licensed_node() -> Result<()> {
    let (pair, licensed, mut tunnel) = licensed(Pair::new("rekey")?)?;
    let downloads = meanwhile(
        |stop| downloads(&pair, 20 * MB, stop),
        || (0..20).try_for_each(|round| tunnel.rekey(round)),
    )?;
    ensure!(downloads > 0, "no download came to its end");
    reads_the_newest(&licensed, &tunnel)
}

/// IKE packets are lost as well. This delays a rekey and has no other effect.
// Recovers: rekey
#[lab::test]
fn downloads_go_on_through_rekeys_over_a_lossy_hop() -> Result<()> {
    let hop = pair::hop(1.0 / 256_000.0);
    let (pair, licensed, mut tunnel) = licensed(Pair::with_lossy_hop("rekey", hop)?)?;
    meanwhile(
        |stop| downloads(&pair, MB, stop),
        || (0..6).try_for_each(|round| tunnel.rekey(round)),
    )?;
    reads_the_newest(&licensed, &tunnel)
}

// Refuses: rekey
#[lab::test]
fn rekeys_that_cannot_be_are_refused_with_the_fix() -> Result<()> {
    let pair = Pair::new("rekey")?;
    let tunnel = pair.start(os::Family::V4, Terms::ZONED, Terms::ZONED)?;
    tunnel.mobile.refuses("rekey nobody", "strata status")?;
    tunnel.mobile.refuses("rekey office", "strata up office")?;
    tunnel.up()?;
    let licensed = pair.start_licensed(LICENSED)?;
    let is_up = |status: &Value| status["status"]["peers"][1]["state"] == "up";
    tunnel.gateway.wait_until("status", DEADLINE, is_up)?;
    tunnel.gateway.refuses("rekey fa", "--ike")?;
    tunnel.gateway.strata("rekey fa --ike")?;
    let mut licensed = licensed;
    let process = licensed.process();
    process.wait_for_log("IKE SA rekeyed", DEADLINE)
}

/// Starts a tunnel with a licensed node that reads its headers.
fn licensed(pair: Pair) -> Result<(Pair, Daemon, Tunnel)> {
    let licensed = pair.start_licensed(LICENSED)?;
    let tunnel = pair.start_up(Terms::LICENSED)?;
    licensed.wait_until("zones", DEADLINE, |zones| !held(zones).is_empty())?;
    Ok((pair, licensed, tunnel))
}

/// Runs `run` until `act` is done.
fn meanwhile<T: Send>(
    run: impl FnOnce(&AtomicBool) -> Result<T> + Send,
    act: impl FnOnce() -> Result<()>,
) -> Result<T> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let running = scope.spawn(|| run(&stop));
        let acted = act();
        stop.store(true, Relaxed);
        let outcome = running.join().expect("it returns its errors");
        acted?;
        outcome
    })
}

/// Downloads and uploads until `stop`; returns the number of complete rounds.
fn downloads(pair: &Pair, octets: u64, stop: &AtomicBool) -> Result<u64> {
    let mut count = 0;
    while !stop.load(Relaxed) {
        transfer(&pair.gateway, &pair.mobile, MOBILE[0], octets)?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], octets / 10)?;
        count += 1;
    }
    Ok(count)
}

/// Waits until the licensed node holds the keys of the current SA.
fn reads_the_newest(licensed: &Daemon, tunnel: &Tunnel) -> Result<()> {
    let status = tunnel.gateway.strata("status")?;
    let children = pair::children(&status);
    let current = children.iter().find(|child| child["draining"] == false);
    let spi = current.map(|child| child["spi_in"].clone());
    let spi = spi.context("the gateway has no tunnel")?;
    let reads = |zones: &Value| {
        held(zones)
            .iter()
            .any(|grant| grant.to_string().contains(spi.as_str().unwrap_or("none")))
    };
    licensed.wait_until("zones", DEADLINE, reads).map(drop)
}

/// Returns the grants that a licensed node holds.
fn held(zones: &Value) -> Vec<Value> {
    let held = zones["zones"]["held"].as_array();
    held.cloned().unwrap_or_default()
}
