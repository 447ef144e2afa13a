//! Segmentation offload: packets that the kernel has not segmented yet, or will segment, as seen by
//! taps.

use anyhow::{Result, anyhow, ensure};
use lab::host::Host;
use lab::pair::{self, DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, Terms, Tunnel};
use lab::plain;
use lab::process::until;
use lab::transfer::transfer;
use lab::volley::volleys;
use lab::wiretap::{Seen, Wiretap};
use nix::sys::socket::{setsockopt, sockopt};
use os::Family;
use std::net::UdpSocket;

const MB: u64 = 1_000_000;

const OFF: &str = "offload = \"off\"";
const AUTO: &str = "offload = \"auto\"";

/// Default MTU of the tunnel, and MTU of the wires.
const INSIDE: usize = 1380;
const OUTSIDE: usize = 1500;

/// The discard port, on which no socket listens.
const DISCARD: u16 = 9;

/// TOS octets of two classes of service (RFC 2474): best effort and expedited forwarding.
const CLASSES: [u8; 2] = [0, 0xb8];
const BURSTS: usize = 20;
const BURST: usize = 10;

/// Returns both configurations, each with a line in `[tunnel]`.
fn configs(terms: Terms<'_>, lines: [&str; 2]) -> [String; 2] {
    let ends = [
        pair::mobile_config(Family::V4, terms, "manual"),
        pair::gateway_config(terms),
    ];
    [0, 1].map(|end| plain::in_table(&ends[end], "[tunnel]", lines[end]))
}

fn start(pair: &Pair, terms: Terms<'_>, lines: [&str; 2]) -> Result<Tunnel> {
    let tunnel = plain::start_with(pair, &configs(terms, lines))?;
    tunnel.up()?;
    Ok(tunnel)
}

fn each_way(pair: &Pair, octets: u64) -> Result<()> {
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], octets)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], octets)
}

/// Runs `act`; returns the longest packet at each of these hosts, inside the tunnel and outside.
fn longest<const N: usize>(
    hosts: [&Host; N],
    act: impl FnOnce() -> Result<()>,
) -> Result<[[usize; 2]; N]> {
    let taps = hosts.map(Wiretap::open);
    act()?;
    let mut all = [[0; 2]; N];
    for (tap, [inside, outside]) in taps.into_iter().zip(&mut all) {
        let tap = tap?;
        while let Some(seen) = tap.next()? {
            let is_inside = [GATEWAY[0], MOBILE[0]].contains(&seen.source.to_string().as_str());
            let longest = if is_inside {
                &mut *inside
            } else {
                &mut *outside
            };
            *longest = seen.octets.len().max(*longest);
        }
    }
    Ok(all)
}

fn are_uncut_inside(terms: Terms<'_>) -> Result<()> {
    let pair = Pair::new("offload")?;
    let tunnel = start(&pair, terms, [AUTO; 2])?;
    for [inside, outside] in longest([&pair.mobile, &pair.gateway], || each_way(&pair, MB))? {
        ensure!(inside > INSIDE, "{inside}");
        ensure!(outside <= OUTSIDE, "{outside}");
    }
    pair::no_drops(&tunnel.mobile.strata("status")?)?;
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

// Works: offload
#[lab::test]
fn taps_see_packets_that_are_not_cut_yet_inside() -> Result<()> {
    are_uncut_inside(Terms::PLAIN)
}

// Works: offload
#[lab::test]
fn taps_see_packets_that_are_not_cut_yet_inside_in_zones() -> Result<()> {
    are_uncut_inside(Terms::ZONED)
}

/// Lets a host's device accept unsegmented packets, as a device with segmentation offload does.
fn let_cut(host: &Host) -> Result<()> {
    host.run("ip link set eth0 gso_max_segs 64").map(drop)
}

/// Control of all other tests.
// Refuses: offload
#[lab::test]
fn off_taps_see_none() -> Result<()> {
    let pair = Pair::new("offload")?;
    let_cut(&pair.mobile)?;
    let _tunnel = start(&pair, Terms::PLAIN, [OFF; 2])?;
    for [inside, outside] in longest([&pair.mobile, &pair.gateway], || each_way(&pair, MB))? {
        ensure!((1000..=INSIDE).contains(&inside), "{inside}");
        ensure!((1000..=OUTSIDE).contains(&outside), "{outside}");
    }
    Ok(())
}

// Works: offload
#[lab::test]
fn what_leaves_together_is_not_cut_before_the_wire() -> Result<()> {
    for terms in [Terms::PLAIN, Terms::ZONED] {
        let pair = Pair::new("offload")?;
        let_cut(&pair.mobile)?;
        let tunnel = start(&pair, terms, [AUTO; 2])?;
        let [[_, outside]] = longest([&pair.mobile], || each_way(&pair, MB))?;
        ensure!(outside > OUTSIDE, "{outside}");
        pair::no_drops(&tunnel.gateway.strata("status")?)?;
    }
    Ok(())
}

// Works: offload
#[lab::test]
fn on_the_wire_nothing_is_longer_than_it_takes() -> Result<()> {
    let pair = Pair::new("offload")?;
    let _tunnel = start(&pair, Terms::PLAIN, [AUTO; 2])?;
    let [[inside, outside]] = longest([&pair.between], || each_way(&pair, MB))?;
    ensure!(inside == 0, "{inside} octets in clear");
    ensure!((1000..=OUTSIDE).contains(&outside), "{outside}");
    Ok(())
}

/// Packets that exceed the MTU of a wire leave in fragments, which segmentation offload cannot
/// produce.
// Recovers: offload
#[lab::test]
fn what_the_kernel_does_not_cut_leaves_one_by_one() -> Result<()> {
    for terms in [Terms::PLAIN, Terms::ZONED] {
        let pair = Pair::new("offload")?;
        pair.set_mtu(1280)?;
        let lines = [AUTO, "path_mtu = \"off\""].join("\n");
        let tunnel = start(&pair, terms, [&lines; 2])?;
        each_way(&pair, MB)?;
        for daemon in [&tunnel.mobile, &tunnel.gateway] {
            pair::no_drops(&daemon.strata("status")?)?;
            let metrics = daemon.strata_text("metrics")?;
            let lost = "strata_system_refused_total{doing=\"send\"} 0";
            ensure!(metrics.contains(lost), "{metrics}");
        }
    }
    Ok(())
}

/// Two streams of datagrams with different classes, sent in bursts. Each outer packet must have the
/// class of its datagram.
// Works: offload
#[lab::test]
fn classes_of_service_do_not_mix() -> Result<()> {
    let pair = Pair::new("offload")?;
    // A probe is a packet of its own, of the first class.
    let line = [AUTO, "path_mtu = \"off\""].join("\n");
    let lines = [line.as_str(); 2];
    let mut configs = configs(Terms::PLAIN, lines);
    for config in &mut configs {
        *config = config.replace(
            "psk = \"tunnel.psk\"",
            "psk = \"tunnel.psk\"\ndscp = \"copy\"",
        );
    }
    let tunnel = plain::start_with(&pair, &configs)?;
    tunnel.up()?;
    let sockets = CLASSES.map(|class| {
        pair.mobile.inside(|| {
            let socket = UdpSocket::bind((MOBILE[0], 0))?;
            setsockopt(&socket, sockopt::Ipv4Tos, &i32::from(class))?;
            Ok(socket)
        })
    });
    let tap = Wiretap::open(&pair.between)?;
    for _ in 0..BURSTS {
        for socket in &sockets {
            let socket = socket.as_ref().map_err(|error| anyhow!("{error:#}"))?;
            let send = || socket.send_to(&[7; 900], (GATEWAY[0], DISCARD));
            (0..BURST).try_for_each(|_| send().map(drop))?;
        }
    }
    let is_ours = |seen: &Seen, class| seen.esp().is_some() && seen.octets[1] == class;
    let mut counts = [0; 2];
    until("packets of both classes", DEADLINE, || {
        while let Some(seen) = tap.next()? {
            // Each packet passes two devices of that host.
            for (count, class) in counts.iter_mut().zip(CLASSES) {
                *count += usize::from(is_ours(&seen, class));
            }
        }
        let all = 2 * BURSTS * BURST;
        Ok(counts.iter().all(|count| *count >= all).then_some(()))
    })?;
    ensure!(counts[0] == counts[1], "{counts:?}");
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

/// Returns the longest packet behind a licensed node with this configuration line, if packets reach
/// the node unsegmented. Fails unless the node sees the headers of all segments.
fn longest_at_a_licensed_node(line: &str) -> Result<usize> {
    let pair = Pair::new("offload")?;
    let_cut(&pair.gateway)?;
    (pair.between).run("ip link set wireless gso_max_segs 64")?;
    let config = plain::in_table(&pair::licensed_config(LICENSED), "[divert]", line);
    let licensed = pair.start_licensed_as(&config)?;
    let tunnel = start(&pair, Terms::LICENSED, [AUTO; 2])?;
    licensed.wait_until("zones", DEADLINE, pair::holds_a_grant)?;
    let [[_, outside]] = longest([&pair.mobile], || each_way(&pair, MB))?;
    ensure!(pair::segments(&licensed)? > MB / INSIDE as u64);
    let metrics = licensed.strata_text("metrics")?;
    let lost = "strata_system_refused_total{doing=\"forward\"} 0";
    ensure!(metrics.contains(lost), "{metrics}");
    pair::no_drops(&tunnel.mobile.strata("status")?)?;
    pair::no_drops(&tunnel.gateway.strata("status")?)?;
    Ok(outside)
}

// Works: offload
#[lab::test]
fn a_licensed_node_hands_on_what_is_not_cut_yet() -> Result<()> {
    let outside = longest_at_a_licensed_node(AUTO)?;
    ensure!(outside > OUTSIDE, "{outside}");
    Ok(())
}

// Refuses: offload
#[lab::test]
fn a_licensed_node_cuts_where_offload_is_off() -> Result<()> {
    let outside = longest_at_a_licensed_node(OFF)?;
    ensure!((1000..=OUTSIDE).contains(&outside), "{outside}");
    Ok(())
}

// Recovers: offload
#[lab::test]
fn a_lossy_hop_is_passed_where_a_licensed_node_repairs() -> Result<()> {
    let hop = pair::hop(1.0 / 300_000.0);
    let pair = Pair::with_lossy_hop("offload", hop)?;
    let licensed = pair.start_licensed(LICENSED)?;
    let _tunnel = start(&pair, Terms::LICENSED, [AUTO; 2])?;
    licensed.wait_until("zones", DEADLINE, pair::holds_a_grant)?;
    each_way(&pair, MB)?;
    ensure!(pair::segments(&licensed)? > MB / INSIDE as u64);
    ensure!(pair::repaired(&licensed)? > 0);
    Ok(())
}

// Recovers: offload
#[lab::test]
fn keys_change_under_volleys_and_nothing_is_lost() -> Result<()> {
    for terms in [Terms::PLAIN, Terms::ZONED] {
        let pair = Pair::new("offload")?;
        let mut tunnel = start(&pair, terms, [AUTO; 2])?;
        let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
        volleys(ends.0, ends.1, || {
            (0..10).try_for_each(|round| tunnel.rekey(round))
        })?;
    }
    Ok(())
}

// Works: offload
#[lab::test]
fn one_end_may_have_it_and_the_other_not() -> Result<()> {
    for lines in [[AUTO, OFF], [OFF, AUTO]] {
        let pair = Pair::new("offload")?;
        let tunnel = start(&pair, Terms::ZONED, lines)?;
        each_way(&pair, MB)?;
        pair::no_drops(&tunnel.mobile.strata("status")?)?;
        pair::no_drops(&tunnel.gateway.strata("status")?)?;
    }
    Ok(())
}

// Refuses: offload
#[lab::test]
fn what_turns_it_off_is_one_of_two_words() -> Result<()> {
    let pair = Pair::new("offload")?;
    let tunnel = start(&pair, Terms::PLAIN, [AUTO; 2])?;
    for (bad, fix) in [
        ("\"on\"", "auto"),
        ("false", "quotes"),
        ("\"off\"", "restart"),
    ] {
        let line = format!("offload = {bad}");
        tunnel
            .mobile
            .configure(&configs(Terms::PLAIN, [&line, AUTO])[0])?;
        match bad {
            "\"off\"" => {
                let told = tunnel.mobile.strata_text("reload")?;
                ensure!(told.contains(fix), "{told}");
            }
            _ => tunnel.mobile.refuses("reload", fix)?,
        }
    }
    Ok(())
}
