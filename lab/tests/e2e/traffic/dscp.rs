//! Classes of service: the DSCP of outer packets on the wire, and of inner datagrams after
//! decapsulation.

use anyhow::{Context, Result, ensure};
use lab::host::Host;
use lab::pair::{DEADLINE, GATEWAY, MOBILE, Pair, Tunnel};
use lab::plain;
use lab::wiretap::{Seen, Wiretap};
use model::Path;
use os::Datagrams;
use std::net::{IpAddr, SocketAddr};
use wire::ip;

const COPY: &str = "dscp = \"copy\"";

/// DSCPs that programs set, and an ECN field next to them, which is not part of the DSCP.
const ASKED: [u8; 4] = [0, 10, 46, 63];
const ECT_1: u8 = 1;

const MARKER: &str = "a datagram of some class";

/// Maps the DSCP of a datagram to the expected DSCP of its outer packet.
type Outside = fn(u8) -> u8;

/// Returns the DSCP of a packet.
fn dscp(seen: &Seen) -> Result<u8> {
    Ok(ip::Header::parse_front(&seen.octets)?.tos() >> 2)
}

/// Sends a datagram with a DSCP through the tunnel; returns the DSCP of the outer packet and of the
/// received datagram.
fn classes(
    pair: &Pair,
    (from, source): (&Host, &str),
    destination: &str,
    asked: u8,
) -> Result<[u8; 2]> {
    let (between, far) = (Wiretap::open(&pair.between)?, Wiretap::open(&pair.gateway)?);
    let (source, destination): (IpAddr, IpAddr) = (source.parse()?, destination.parse()?);
    let near = from.inside(|| Ok(Datagrams::udp(SocketAddr::new(source, 0), None)?))?;
    let path = Path::udp(near.local(), SocketAddr::new(destination, 9));
    near.send(path, asked << 2 | ECT_1, MARKER.as_bytes())?;
    let outside = between.read_until(DEADLINE, |seen| seen.esp().is_some())?;
    let outside = outside.last().context("no packet outside")?;
    let comes_out = |seen: &Seen| seen.destination == destination && seen.has_text(MARKER);
    let inside = far.read_until(DEADLINE, comes_out)?;
    let inside = inside.last().context("no datagram inside")?;
    Ok([dscp(outside)?, dscp(inside)?])
}

/// Checks the mobile node's outer packets, with datagrams of both families.
fn ensure_outside(pair: &Pair, expected: impl Fn(u8) -> u8) -> Result<()> {
    for (mobile, gateway) in MOBILE.into_iter().zip(GATEWAY) {
        for asked in ASKED {
            let seen = classes(pair, (&pair.mobile, mobile), gateway, asked)?;
            let expected = [expected(asked), asked];
            ensure!(
                seen == expected,
                "{seen:?} and not {expected:?} to {gateway}"
            );
        }
    }
    Ok(())
}

fn start(mobile: &str) -> Result<(Pair, Tunnel)> {
    let pair = Pair::new("dscp")?;
    let tunnel = plain::start(&pair, mobile, "")?;
    tunnel.up()?;
    Ok((pair, tunnel))
}

// Works: dscp
// Answers: sight-none
#[lab::test]
fn each_packet_has_the_class_that_its_peer_is_configured_with() -> Result<()> {
    let cases: [(&str, Outside); 3] = [("", |_| 0), (COPY, |asked| asked), ("dscp = 46", |_| 46)];
    for (line, expected) in cases {
        let (pair, _tunnel) = start(line)?;
        ensure_outside(&pair, expected)?;
    }
    Ok(())
}

// Works: dscp
#[lab::test]
fn over_ipv6_it_is_the_same() -> Result<()> {
    let pair = Pair::new("dscp")?;
    let [mobile, gateway] = plain::configs(COPY, "");
    let mobile = mobile.replace("\"192.0.2.1\"", "\"2001:db8:2::1\"");
    let tunnel = plain::start_with(&pair, &[mobile, gateway])?;
    tunnel.up()?;
    ensure_outside(&pair, |asked| asked)
}

// Recovers: dscp
#[lab::test]
fn new_keys_keep_the_class() -> Result<()> {
    let (pair, mut tunnel) = start("dscp = 10")?;
    for round in 0..2 {
        tunnel.rekey(round)?;
        ensure_outside(&pair, |_| 10)?;
    }
    Ok(())
}

// Works: dscp
#[lab::test]
fn a_reload_gives_packets_another_class() -> Result<()> {
    let (pair, tunnel) = start("dscp = 46")?;
    ensure_outside(&pair, |_| 46)?;
    let before = tunnel.spis()?;
    let [mobile, _] = plain::configs(COPY, "");
    let text = tunnel.mobile.change(&mobile)?;
    ensure!(
        text.contains("~ peer.office.dscp 46 -> copy (applied)"),
        "{text}"
    );
    ensure_outside(&pair, |asked| asked)?;
    ensure!(tunnel.spis()? == before, "it was made anew");
    Ok(())
}

// Refuses: dscp
#[lab::test]
fn a_class_that_there_is_not_is_refused_with_the_fix() -> Result<()> {
    let (_pair, tunnel) = start("")?;
    for (line, fix) in [
        ("dscp = 64", "0 and 63"),
        ("dscp = \"cpoy\"", "did you mean `copy`?"),
        ("dscp = true", "expected a number"),
    ] {
        let [mobile, _] = plain::configs(line, "");
        tunnel.mobile.configure(&mobile)?;
        tunnel.mobile.refuses("reload", fix)?;
    }
    Ok(())
}
