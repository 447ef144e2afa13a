//! Rekeys while packets flow: no packet is lost, and a licensed node keeps reading.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, Terms, Tunnel};
use lab::process::until;
use lab::transfer::transfer;
use serde_json::Value;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two packets of the stream.
const PAUSE: Duration = Duration::from_millis(1);

/// Read timeout of the receiver. After the last packet it also waits this long for duplicates.
const LOOK: Duration = Duration::from_millis(200);

/// Time after the last packet sent and the last one received until missing packets count as lost.
const SILENCE: Duration = Duration::from_secs(20);

/// Number of packets sent between two rekeys.
const BETWEEN: u64 = 60;

const MB: u64 = 1_000_000;

/// A thousand numbered packets per second, from the mobile node to the gateway; each must arrive
/// exactly once. A licensed node may read their headers.
// Works: rekey
#[lab::test]
fn a_stream_loses_no_packet_through_twenty_rekeys() -> Result<()> {
    let (pair, _licensed, mut tunnel) = licensed(Pair::new("rekey")?)?;
    let sent = AtomicU64::new(0);
    let arrived = meanwhile(
        |stop| stream(&pair.mobile, &pair.gateway, &sent, stop),
        || {
            (0..20).try_for_each(|round| {
                tunnel.rekey(round)?;
                let enough = sent.load(Relaxed) + BETWEEN;
                until("packets with new keys", DEADLINE, || {
                    Ok((sent.load(Relaxed) >= enough).then_some(()))
                })
            })
        },
    )?;
    let sent = sent.into_inner();
    ensure!(arrived == sent, "{arrived} of {sent} packets arrived");
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

/// Sends and counts packets until `stop`; returns the number of packets that arrived.
fn stream(from: &Host, to: &Host, sent: &AtomicU64, stop: &AtomicBool) -> Result<u64> {
    let address = (GATEWAY[0].parse::<std::net::IpAddr>()?, 0);
    let inward = to.inside(|| Ok(UdpSocket::bind(address)?))?;
    inward.set_read_timeout(Some(LOOK))?;
    let target = inward.local_addr()?;
    let out = from.inside(|| Ok(UdpSocket::bind((MOBILE[0], 0))?))?;
    let all_sent = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&inward, sent, &all_sent));
        let mut due = Instant::now();
        let mut refused = None;
        while !stop.load(Relaxed) && refused.is_none() {
            let number = sent.fetch_add(1, Relaxed);
            refused = out.send_to(&number.to_be_bytes(), target).err();
            due += PAUSE;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        all_sent.store(true, Relaxed);
        let received = receiving.join().expect("a receiver returns its errors");
        refused.map_or(received, |error| Err(error.into()))
    })
}

/// Counts packets until all have arrived or none arrives any more; fails on a duplicate.
fn receive(socket: &UdpSocket, sent: &AtomicU64, all_sent: &AtomicBool) -> Result<u64> {
    let mut seen = std::collections::BTreeSet::new();
    let mut number = [0; 8];
    let mut heard = Instant::now();
    loop {
        let over = all_sent.load(Relaxed);
        if socket.recv(&mut number).is_ok() {
            let number = u64::from_be_bytes(number);
            ensure!(seen.insert(number), "packet {number} came twice");
            heard = Instant::now();
        } else if over {
            let count = seen.len() as u64;
            if count == sent.load(Relaxed) || heard.elapsed() > SILENCE {
                return Ok(count);
            }
        }
    }
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
