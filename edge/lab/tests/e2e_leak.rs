//! No packet to or from a protected prefix ever leaves in clear, whatever state the tunnel is in.
//!
//! The host between the endpoints is tapped. The mobile node has a default route, so any packet
//! that the tunnel does not take would pass there. The last packet of each round is a marker that
//! is meant to leave in clear: once it was seen, so was everything sent before it.

use anyhow::{Result, bail, ensure};
use lab::host::Host;
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, Terms};
use lab::runner;
use lab::transfer::transfer;
use lab::wiretap::{Seen, Wiretap};
use os::Family;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

fn main() -> ExitCode {
    runner::run(lab::tests![
        without_a_daemon_the_tap_sees_clear_packets,
        an_open_tunnel_shows_only_esp,
        nothing_leaks_before_the_tunnel_comes_up,
        nothing_leaks_after_down,
        nothing_leaks_while_the_peer_is_dead,
        nothing_leaks_after_the_peer_was_refused,
        nothing_leaks_after_the_daemon_was_killed,
        nothing_leaks_while_a_killed_daemon_starts_again,
        the_gateway_leaks_nothing_after_it_was_killed,
    ])
}

/// In every packet that tests for leaks; never in the marker.
const SECRET: &str = "this must not be seen";

/// Ends each round, in each family; goes to the host between, which nobody protects.
const MARKER: &str = "the last packet of this round";
const BETWEEN: [&str; 2] = ["10.3.0.1", "2001:db8:3::1"];

/// Nobody listens there.
const DISCARD: u16 = 9;

/// The detector detects: the same packets, the same tap, but nobody protects them.
fn without_a_daemon_the_tap_sees_clear_packets() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let seen = round(&pair.mobile, &tap, &GATEWAY)?;
    for destination in GATEWAY {
        let destination: IpAddr = destination.parse()?;
        let secret_to_it = |seen: &Seen| seen.destination == destination && seen.has_text(SECRET);
        ensure!(seen.iter().any(secret_to_it), "not seen: {destination}");
    }
    ensure!(!leaks(&seen).is_empty(), "the detector is blind");
    Ok(())
}

/// And it does not cry wolf: a tunnel at work passes.
fn an_open_tunnel_shows_only_esp() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let _tunnel = pair.start_up(Terms::ZONED)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    let seen = round(&pair.mobile, &tap, &GATEWAY)?;
    let to_gateway = |seen: &&Seen| seen.destination.to_string() == "192.0.2.1";
    ensure!(
        seen.iter().filter(to_gateway).count() > 50,
        "the tunnel was not used"
    );
    no_leak(&seen)
}

fn nothing_leaks_before_the_tunnel_comes_up() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "manual")?;
    let status = mobile.strata("status")?;
    ensure!(pair::is_down(&status), "{status}");
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

fn nothing_leaks_after_down() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.mobile.strata("down office")?;
    tunnel
        .mobile
        .wait_until("status", DEADLINE, pair::is_down)?;
    tunnel
        .gateway
        .wait_until("status", DEADLINE, pair::is_down)?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    no_leak(&round_of_the_gateway(&pair, &tap)?)
}

fn nothing_leaks_while_the_peer_is_dead() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.gateway.process().crash()?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

fn nothing_leaks_after_the_peer_was_refused() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = pair.start(Family::V4, Terms::ZONED, Terms::PLAIN)?;
    if tunnel.up().is_ok() {
        bail!("zones were required of a peer that has none, and it came up");
    }
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

fn nothing_leaks_after_the_daemon_was_killed() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.mobile.process().crash()?;
    // The address inside went with the device; a program may still send from another.
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

/// Packets are sent all the while, not at one moment.
fn nothing_leaks_while_a_killed_daemon_starts_again() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    let mut mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "auto")?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    mobile.process().crash()?;
    let up = AtomicBool::new(false);
    thread::scope(|scope| {
        let tempting = scope.spawn(|| tempt_until(&pair.mobile, &up));
        let started = mobile.start_again();
        let started = started.and_then(|()| mobile.wait_until("status", DEADLINE, pair::is_up));
        up.store(true, Relaxed);
        tempting.join().expect("it returns its errors")?;
        started
    })?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

fn the_gateway_leaks_nothing_after_it_was_killed() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.gateway.process().crash()?;
    no_leak(&round_of_the_gateway(&pair, &tap)?)
}

/// Sends whatever might leak, then the markers; returns everything that passed the tap so far.
fn round(host: &Host, tap: &Wiretap, destinations: &[&str]) -> Result<Vec<Seen>> {
    destinations
        .iter()
        .try_for_each(|destination| tempt(host, destination))?;
    for address in BETWEEN {
        send(host, SocketAddr::new(address.parse()?, DISCARD), MARKER)?;
    }
    let mut seen = Vec::new();
    for address in BETWEEN {
        // One family may be slower, as long as its first packet waits for a neighbour's answer.
        let to: IpAddr = address.parse()?;
        let is_marker = |seen: &Seen| seen.destination == to && seen.has_text(MARKER);
        if !seen.iter().any(is_marker) {
            seen.extend(tap.read_until(DEADLINE, is_marker)?);
        }
    }
    Ok(seen)
}

/// The same at the other end: the marker comes from there.
fn round_of_the_gateway(pair: &Pair, tap: &Wiretap) -> Result<Vec<Seen>> {
    round(&pair.gateway, tap, &MOBILE)
}

/// A datagram and the start of a TCP connection to an address that is protected. Both may fail:
/// that is how a black hole looks from inside.
fn tempt(host: &Host, destination: &str) -> Result<()> {
    let destination = SocketAddr::new(destination.parse()?, DISCARD);
    let _ = send(host, destination, SECRET);
    host.inside(|| {
        let _ = TcpStream::connect_timeout(&destination, Duration::from_millis(20));
        Ok(())
    })
}

fn tempt_until(host: &Host, done: &AtomicBool) -> Result<()> {
    while !done.load(Relaxed) {
        GATEWAY
            .iter()
            .try_for_each(|address| tempt(host, address))?;
    }
    Ok(())
}

fn send(host: &Host, destination: SocketAddr, text: &str) -> Result<()> {
    let any = if destination.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    host.inside(|| {
        let socket = UdpSocket::bind(any)?;
        socket.send_to(text.as_bytes(), destination)?;
        Ok(())
    })
}

fn no_leak(seen: &[Seen]) -> Result<()> {
    let leaks = leaks(seen);
    ensure!(leaks.is_empty(), "seen in clear: {leaks:?}");
    Ok(())
}

/// What shows an address inside the tunnel, or the secret text.
fn leaks(seen: &[Seen]) -> Vec<&Seen> {
    let inside = pair::inside();
    let touches = |seen: &Seen| inside.iter().any(|prefix| seen.touches(*prefix));
    seen.iter()
        .filter(|seen| seen.has_text(SECRET) || touches(seen))
        .collect()
}
