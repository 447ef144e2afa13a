//! Padding that hides lengths (RFC 4303 section 2.7): a tap between the ends sees packets of one
//! length only.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{
    self, DEADLINE, GATEWAY, LICENSED, MOBILE, NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel,
};
use lab::plain;
use lab::transfer::transfer;
use lab::wiretap::{Seen, Wiretap};
use model::Path;
use os::{Datagrams, Family};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

const MTU: &str = "tfc = \"mtu\"";
const BUCKETS: &str = "tfc = \"buckets\"";
const OFF: &str = "";
const COVER: &str = "tfc = \"mtu\"\ncover = 50";

/// Default MTU of the tunnel.
const LONGEST: usize = 1380;

/// A few dozen packets, whose acknowledgements are short.
const FEW: u64 = 50_000;
const MANY: u64 = 1_000_000;

/// Payload of the last packet that is evaluated, in clear.
const MARKER: &str = "the last packet";

/// Returns the configurations of both ends, each with a line about the other end.
fn configs(terms: Terms<'_>, [mobile, gateway]: [&str; 2]) -> [String; 2] {
    let ours = pair::mobile_config(Family::V4, terms, "manual");
    let theirs = pair::gateway_config(terms);
    [
        plain::about_peer(&ours, mobile),
        plain::about_peer(&theirs, gateway),
    ]
}

fn start_in(pair: &Pair, terms: Terms<'_>, lines: [&str; 2]) -> Result<Tunnel> {
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    pair.gateway.secret("node.psk", NODE_KEY)?;
    let [mobile, gateway] = configs(terms, lines);
    let tunnel = Tunnel {
        gateway: pair.gateway.stratad(&gateway)?,
        mobile: pair.mobile.stratad(&mobile)?,
    };
    tunnel.up()?;
    Ok(tunnel)
}

fn start(terms: Terms<'_>, lines: [&str; 2]) -> Result<(Pair, Tunnel)> {
    let pair = Pair::new("tfc")?;
    let tunnel = start_in(&pair, terms, lines)?;
    Ok((pair, tunnel))
}

/// Sends all sorts of datagrams in each direction. Returns the lengths of the packets seen between,
/// from and to the mobile node.
fn lengths(pair: &Pair) -> Result<[BTreeSet<usize>; 2]> {
    let tap = Wiretap::open(&pair.between)?;
    for (mobile, gateway) in MOBILE.into_iter().zip(GATEWAY) {
        transfer(&pair.mobile, &pair.gateway, gateway, FEW)?;
        transfer(&pair.gateway, &pair.mobile, mobile, FEW)?;
        // No socket listens, so each datagram causes an ICMP error; the last one leaves in
        // fragments.
        for octets in [0, 1, 100, 600, 1300, 3000] {
            send(pair, mobile, gateway, &vec![7; octets])?;
        }
    }
    send(pair, "10.3.0.2", "10.3.0.1", MARKER.as_bytes())?;
    let seen = tap.read_until(DEADLINE, |seen| seen.has_text(MARKER))?;
    let mobile: IpAddr = "10.3.0.2".parse()?;
    let of = |from: bool| {
        let theirs = seen.iter().filter(|seen| (seen.source == mobile) == from);
        theirs.filter_map(Seen::esp).map(<[u8]>::len).collect()
    };
    Ok([true, false].map(of))
}

/// Sends a UDP datagram from the mobile node.
fn send(pair: &Pair, source: &str, destination: &str, payload: &[u8]) -> Result<()> {
    let (source, destination): (IpAddr, IpAddr) = (source.parse()?, destination.parse()?);
    let near = pair
        .mobile
        .inside(|| Ok(Datagrams::udp(SocketAddr::new(source, 0), None)?))?;
    let path = Path::udp(near.local(), SocketAddr::new(destination, 9));
    Ok(near.send(path, 0, payload)?)
}

/// Returns the number of padded datagrams.
fn hidden(daemon: &Daemon) -> Result<u64> {
    let status = daemon.strata("status")?;
    let padded = &status["status"]["padded"]["packets"];
    padded.as_u64().with_context(|| status.to_string())
}

fn ensure_one_length(pair: &Pair, overhead: usize) -> Result<()> {
    let seen = lengths(pair)?;
    let one = BTreeSet::from([LONGEST + overhead]);
    ensure!(seen == [one.clone(), one], "{seen:?}");
    Ok(())
}

fn ensure_many_lengths(pair: &Pair) -> Result<()> {
    let seen = lengths(pair)?;
    ensure!(seen.iter().all(|seen| seen.len() > 5), "{seen:?}");
    Ok(())
}

/// SPI, sequence number, padding to four octets, pad length, next header and ICV; the IV is
/// implicit.
const PLAIN: usize = 8 + 2 + 2 + 16;
/// SPI, sequence number, map, next header and two ICVs.
const ZONED: usize = 8 + 4 + 1 + 32;

// Works: tfc
#[lab::test]
fn all_packets_of_a_tunnel_are_of_one_length() -> Result<()> {
    let (pair, tunnel) = start(Terms::PLAIN, [MTU; 2])?;
    ensure_one_length(&pair, PLAIN)?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        ensure!(hidden(daemon)? > 10);
        pair::no_drops(&daemon.strata("status")?)?;
        let metrics = daemon.strata_text("metrics")?;
        let counted = "strata_esp_hiding_total{kind=\"padded\"}";
        ensure!(metrics.contains(counted), "{metrics}");
    }
    Ok(())
}

/// The same for datagrams in several zones and in one zone, such as fragments and ICMP.
// Works: tfc
// Weakness: S15
// Answers: sight-none
#[lab::test]
fn in_zones_they_are_too() -> Result<()> {
    let (pair, tunnel) = start(Terms::ZONED, [MTU; 2])?;
    ensure_one_length(&pair, ZONED)?;
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

/// Control of both tests.
#[lab::test]
fn without_it_lengths_are_seen() -> Result<()> {
    for terms in [Terms::PLAIN, Terms::ZONED] {
        let (pair, tunnel) = start(terms, [OFF; 2])?;
        ensure_many_lengths(&pair)?;
        ensure!(hidden(&tunnel.mobile)? == 0, "something was padded");
    }
    Ok(())
}

// Works: tfc
#[lab::test]
fn buckets_leave_five_lengths_at_most() -> Result<()> {
    for (terms, overhead) in [(Terms::PLAIN, PLAIN), (Terms::ZONED, ZONED)] {
        let (pair, _tunnel) = start(terms, [BUCKETS; 2])?;
        let sizes = [128, 256, 512, 1024, LONGEST].map(|size| size + overhead);
        let seen = lengths(&pair)?;
        let few = |seen: &BTreeSet<usize>| seen.iter().all(|len| sizes.contains(len));
        ensure!(seen.iter().all(few) && seen[0].len() > 2, "{seen:?}");
    }
    Ok(())
}

// Recovers: tfc
#[lab::test]
fn new_keys_keep_the_length() -> Result<()> {
    let (pair, mut tunnel) = start(Terms::ZONED, [MTU; 2])?;
    for round in 0..2 {
        tunnel.rekey(round)?;
        ensure_one_length(&pair, ZONED)?;
    }
    Ok(())
}

// Works: tfc
#[lab::test]
fn a_reload_turns_it_on_and_off() -> Result<()> {
    let (pair, tunnel) = start(Terms::PLAIN, [OFF, MTU])?;
    let before = tunnel.spis()?;
    for (line, change) in [(MTU, "off -> mtu"), (OFF, "mtu -> off")] {
        let [mobile, _] = configs(Terms::PLAIN, [line, MTU]);
        let text = tunnel.mobile.change(&mobile)?;
        let told = format!("~ peer.office.tfc {change} (applied)");
        ensure!(text.contains(&told), "{text}");
        match line {
            MTU => ensure_one_length(&pair, PLAIN)?,
            _ => ensure!(lengths(&pair)?[0].len() > 5),
        }
    }
    ensure!(tunnel.spis()? == before, "it was made anew");
    Ok(())
}

/// The padding of each direction is the sender's choice.
#[lab::test]
fn what_the_other_end_pads_is_accepted_by_who_does_not() -> Result<()> {
    for terms in [Terms::PLAIN, Terms::ZONED] {
        let (pair, tunnel) = start(terms, [OFF, MTU])?;
        let [from, to] = lengths(&pair)?;
        ensure!(from.len() > 5 && to.len() == 1, "{from:?}, {to:?}");
        // An end that pads echoes no probe, so for some seconds the other one tells TCP what every
        // path carries.
        let status = tunnel.mobile.strata("status")?;
        let drops = status["status"]["drops"].as_object().context("no drops")?;
        let is_told = |why: &String| why == "esp_too_long" || why.starts_with("ike_");
        ensure!(drops.keys().all(is_told), "{drops:?}");
    }
    Ok(())
}

/// The node finds the end of a segment in the IP header, and so recognises pure acknowledgements.
// Recovers: tfc
#[lab::test]
fn a_transfer_passes_a_lossy_hop_where_a_licensed_node_repairs() -> Result<()> {
    let hop = pair::hop(1.0 / 300_000.0);
    let pair = Pair::with_lossy_hop("tfc", hop)?;
    let licensed = pair.start_licensed(LICENSED)?;
    let tunnel = start_in(&pair, Terms::LICENSED, [MTU; 2])?;
    licensed.wait_until("zones", DEADLINE, pair::holds_a_grant)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], MANY)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MANY)?;
    ensure!(pair::segments(&licensed)? > MANY / LONGEST as u64);
    ensure!(pair::repaired(&licensed)? > 0);
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        ensure!(hidden(daemon)? > 100);
    }
    Ok(())
}

/// Packets that exceed the MTU of a wire leave in fragments, as without padding.
// Recovers: tfc
#[lab::test]
fn wires_that_take_less_are_passed() -> Result<()> {
    for terms in [Terms::PLAIN, Terms::ZONED] {
        let pair = Pair::new("tfc")?;
        pair.set_mtu(1280)?;
        let _tunnel = start_in(&pair, terms, [MTU; 2])?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MANY)?;
        transfer(&pair.gateway, &pair.mobile, MOBILE[0], MANY)?;
    }
    Ok(())
}

// Refuses: tfc
#[lab::test]
fn transport_mode_and_misspelt_words_are_refused_with_the_fix() -> Result<()> {
    let (_pair, tunnel) = start(Terms::PLAIN, [OFF; 2])?;
    for (lines, fix) in [
        ("tfc = \"bucket\"", "did you mean `buckets`?"),
        ("tfc = 1380", "expected"),
        (
            "tfc = \"mtu\"\nmode = \"beet\"",
            "write `tfc = \"off\"`, or `mode = \"tunnel\"`",
        ),
    ] {
        let [mobile, _] = configs(Terms::PLAIN, [lines, OFF]);
        tunnel.mobile.configure(&mobile)?;
        tunnel.mobile.refuses("reload", fix)?;
    }
    Ok(())
}

/// Returns the lengths of a number of packets from the mobile node; fails if there are fewer.
fn lengths_of(pair: &Pair, count: usize) -> Result<BTreeSet<usize>> {
    let tap = Wiretap::open(&pair.between)?;
    let mobile: IpAddr = "10.3.0.2".parse()?;
    let left = Cell::new(count);
    let last = |seen: &Seen| {
        if seen.source == mobile && seen.esp().is_some() {
            left.set(left.get().saturating_sub(1));
        }
        left.get() == 0
    };
    let seen = tap.read_until(DEADLINE, last)?;
    let theirs = seen.iter().filter(|seen| seen.source == mobile);
    Ok(theirs.filter_map(Seen::esp).map(<[u8]>::len).collect())
}

// Works: tfc
// Weakness: S15
#[lab::test]
fn silence_is_covered_by_packets_of_the_same_length() -> Result<()> {
    for (terms, overhead) in [(Terms::PLAIN, PLAIN), (Terms::ZONED, ZONED)] {
        let (pair, tunnel) = start(terms, [COVER; 2])?;
        let one = BTreeSet::from([LONGEST + overhead]);
        let seen = lengths_of(&pair, 100)?;
        ensure!(seen == one, "{seen:?}");
        ensure_one_length(&pair, overhead)?;
        for daemon in [&tunnel.mobile, &tunnel.gateway] {
            let status = daemon.strata("status")?;
            for kind in ["covered", "dummies"] {
                let count = status["status"][kind].as_u64();
                ensure!(count > Some(20), "{kind}: {status}");
            }
            pair::no_drops(&status)?;
        }
    }
    Ok(())
}

// Works: tfc
#[lab::test]
fn a_reload_covers_silence_and_octets_pass() -> Result<()> {
    let (pair, tunnel) = start(Terms::ZONED, [MTU; 2])?;
    let [mobile, _] = configs(Terms::ZONED, [COVER, MTU]);
    let text = tunnel.mobile.change(&mobile)?;
    let told = "~ peer.office.cover none -> 50 (applied)";
    ensure!(text.contains(told), "{text}");
    lengths_of(&pair, 50)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MANY)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], MANY)?;
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

// Refuses: tfc
#[lab::test]
fn dummies_without_padding_are_refused_with_the_fix() -> Result<()> {
    let (_pair, tunnel) = start(Terms::PLAIN, [OFF; 2])?;
    for (lines, fix) in [
        ("cover = 50", "add `tfc = \"mtu\"`"),
        ("tfc = \"mtu\"\ncover = 1001", "1 and 1000"),
    ] {
        let [mobile, _] = configs(Terms::PLAIN, [lines, OFF]);
        tunnel.mobile.configure(&mobile)?;
        tunnel.mobile.refuses("reload", fix)?;
    }
    Ok(())
}
