//! Path MTU discovery as it is by default, by probes: a hop carries less than the links at both
//! ends, and no fragment passes. The kernels of hosts behind the ends transfer octets over TCP;
//! with `path_mtu = "off"` none arrive.

use super::pmtu::{
    HEADERS, NARROW, OFF, ROOM, SILENT, Scene, ZONED_ROOM, await_forged, bind, configs, count,
    counted, forge, known, narrow, seen,
};
use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, BEHIND, DEADLINE, GATEWAY, Pair, TUNNEL_KEY, Terms, Tunnel};
use lab::process::until;
use lab::transfer::{connect, in_parts, transfer};
use model::Path;
use os::Family;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

const OCTETS: u64 = 1_000_000;

/// The default, with segments that are too long for the path.
const DEFAULT: &str = "clamp = false";

/// Drops fragments on arrival, before reassembly.
const NO_FRAGMENTS: &str = "table inet whole {
  chain came {
    type filter hook prerouting priority -460
    iifname { \"eth0\", \"eth1\" } ip frag-off & 0x3fff != 0 counter drop
    iifname { \"eth0\", \"eth1\" } exthdr frag exists counter drop
  }
}
";

/// A router that sends no errors of ICMPv6 either.
const SILENT_V6: &str = "table inet silent6 {
  chain out {
    type filter hook output priority 0
    icmpv6 type packet-too-big counter drop
  }
}
";

fn no_fragments(pair: &Pair) -> Result<()> {
    drop_fragments(&pair.mobile)?;
    drop_fragments(&pair.gateway)
}

pub(super) fn drop_fragments(host: &Host) -> Result<()> {
    host.file("whole.nft", NO_FRAGMENTS)?;
    host.run("nft -f whole.nft").map(drop)
}

/// Returns the number of fragments that each end has dropped.
fn dropped(pair: &Pair) -> Result<[u64; 2]> {
    let dropped =
        |host: &Host| -> Result<u64> { Ok(counted(&host.run("nft list table inet whole")?)) };
    let [mobile, gateway] = [&pair.mobile, &pair.gateway].map(dropped);
    Ok([mobile?, gateway?])
}

fn silent(pair: &Pair) -> Result<()> {
    silence(&pair.between)
}

/// Has a router report no packet as too long.
pub(super) fn silence(router: &Host) -> Result<()> {
    for (name, rules) in [("silent.nft", SILENT), ("silent6.nft", SILENT_V6)] {
        router.file(name, rules)?;
        router.run(&format!("nft -f {name}"))?;
    }
    Ok(())
}

/// Returns the origin of the MTU of a daemon's path.
fn origin(daemon: &Daemon) -> Result<String> {
    let status = daemon.strata("status")?;
    let child = pair::children(&status).pop().context("no tunnel")?;
    let origin = child["path_mtu_origin"].as_str();
    Ok(origin.with_context(|| status.to_string())?.to_owned())
}

/// Waits until a daemon's path has this MTU outside and inside, from this origin.
fn await_mtu(daemon: &Daemon, (room, mtu): (u16, u32), from: &str) -> Result<()> {
    let expected = serde_json::json!([room, mtu]);
    until(&format!("{expected} {from}"), DEADLINE, || {
        let found = known(daemon)? == expected && origin(daemon)? == from;
        Ok(found.then_some(()))
    })
}

/// Passes octets over a wire of 1400 that drops fragments, in each direction and family.
fn pass(outer: Family, terms: Terms<'_>, is_silent: bool, room: u16) -> Result<()> {
    let pair = Pair::new("probes")?;
    no_fragments(&pair)?;
    if is_silent {
        silent(&pair)?;
    }
    let scene = Scene::build(pair, outer, terms, DEFAULT, NARROW)?;
    scene.pass()?;
    let from = if is_silent { "probed" } else { "reported" };
    await_mtu(&scene.tunnel.mobile, (room, NARROW), from)?;
    // This end has the narrow interface.
    await_mtu(&scene.tunnel.gateway, (room, NARROW), "probed")?;
    // No packet that leaves from now on is a fragment, or becomes one.
    let before = dropped(&scene.pair)?;
    scene.pass()?;
    let after = dropped(&scene.pair)?;
    ensure!(after == before, "{before:?}, {after:?}");
    let text = scene.tunnel.mobile.strata_text("status office")?;
    let line = format!("mtu       {room}, of {NARROW} outside ({from})");
    ensure!(text.contains(&line), "{text}");
    Ok(())
}

// Works: path-mtu
#[lab::test]
fn over_a_wire_without_fragments_everything_arrives() -> Result<()> {
    pass(Family::V4, Terms::PLAIN, false, ROOM)
}

// Works: path-mtu
#[lab::test]
fn over_a_wire_without_fragments_everything_arrives_in_zones() -> Result<()> {
    pass(Family::V4, Terms::ZONED, false, ZONED_ROOM)
}

// Works: path-mtu
// Weakness: 156
#[lab::test]
fn without_a_word_of_the_router_everything_arrives() -> Result<()> {
    pass(Family::V4, Terms::PLAIN, true, ROOM)
}

// Works: path-mtu
#[lab::test]
fn without_a_word_of_the_router_everything_arrives_in_zones() -> Result<()> {
    pass(Family::V4, Terms::ZONED, true, ZONED_ROOM)
}

// Works: path-mtu
#[lab::test]
fn without_a_word_of_the_router_everything_arrives_over_ipv6() -> Result<()> {
    pass(Family::V6, Terms::PLAIN, true, ROOM - 20)
}

/// Fails if a single octet arrives of a connection whose segments are too long. The host that they
/// are for drops fragments.
pub(super) fn arrives_nothing(from: &Host, to: &Host, address: &str) -> Result<()> {
    let (mut near, mut far) = connect(from, to, address)?;
    near.write_all(&[7; 15_000])?;
    // TCP sends ten segments at once, each in two fragments, and then repeats the first one.
    until("the third try", DEADLINE, || {
        let rules = to.run("nft list table inet whole")?;
        Ok((counted(&rules) >= 24).then_some(()))
    })?;
    far.set_nonblocking(true)?;
    let read = far.read(&mut [0; 1]).map_err(|error| error.kind());
    ensure!(read == Err(ErrorKind::WouldBlock), "{read:?}");
    Ok(())
}

/// The control, plain and in zones. A reload with the default then mends it.
// Refuses: path-mtu
// Weakness: 156
#[lab::test]
fn without_probes_nothing_arrives_over_a_wire_without_fragments() -> Result<()> {
    for terms in [Terms::PLAIN, Terms::ZONED] {
        let pair = Pair::new("probes")?;
        no_fragments(&pair)?;
        let scene = Scene::build(pair, Family::V4, terms, OFF, NARROW)?;
        arrives_nothing(&scene.behind, &scene.pair.gateway, GATEWAY[0])?;
        let [mobile, _] = configs(Family::V4, terms, DEFAULT);
        let text = scene.tunnel.mobile.change(&mobile)?;
        let line = "~ tunnel.path_mtu off -> probe (applied)";
        ensure!(text.contains(line), "{text}");
        transfer(&scene.behind, &scene.pair.gateway, GATEWAY[0], OCTETS)?;
    }
    Ok(())
}

/// Octets in a UDP datagram that is longer than the wire with its headers.
const LONG: usize = 1390;

/// Sends a UDP datagram without DF from one host to an address of another. Returns false if it does
/// not arrive within `time`.
fn arrives(from: &Host, to: &Host, addresses: [&str; 2], time: Duration) -> Result<bool> {
    let near = bind(from, addresses[0])?;
    let mut far = bind(to, addresses[1])?;
    near.send(Path::udp(near.local(), far.local()), 0, &[7; LONG])?;
    let end = Instant::now() + time;
    while Instant::now() < end {
        let mut came = None;
        let _ = far.recv(|_, octets| came = Some(octets.len()));
        if came == Some(LONG) {
            return Ok(true);
        }
        thread::yield_now();
    }
    Ok(false)
}

/// The first packets of a tunnel, for longer than a probe takes to be given up.
fn from_the_first_packet_on(terms: Terms<'_>) -> Result<()> {
    let scene = || {
        let pair = Pair::new("probes")?;
        no_fragments(&pair)?;
        silent(&pair)?;
        Scene::build(pair, Family::V4, terms, DEFAULT, NARROW)
    };
    let datagrams = scene()?;
    let (behind, gateway) = (&datagrams.behind, &datagrams.pair.gateway);
    let begun = Instant::now();
    let mut sent = 0;
    while begun.elapsed() < Duration::from_secs(4) {
        for (from, to, ends) in [
            (behind, gateway, [BEHIND[0], GATEWAY[0]]),
            (gateway, behind, [GATEWAY[0], BEHIND[0]]),
        ] {
            ensure!(arrives(from, to, ends, DEADLINE)?, "datagram {sent}");
        }
        sent += 1;
    }
    let lost = dropped(&datagrams.pair)?;
    ensure!(lost == [0, 0], "{lost:?}");
    // A connection has a search of its own.
    let connections = scene()?;
    connections.pass()?;
    let lost = dropped(&connections.pair)?;
    ensure!(lost == [0, 0], "{lost:?}");
    // Nothing but probes was too long for the router.
    let rules = connections.pair.between.run("nft list table inet silent")?;
    let probes = count(&connections.tunnel.mobile, "probes")?;
    ensure!(counted(&rules) <= probes, "{rules}, {probes} probes");
    Ok(())
}

// Works: path-mtu
// Weakness: 167
#[lab::test]
fn a_wire_without_fragments_loses_nothing_from_the_first_packet_on() -> Result<()> {
    from_the_first_packet_on(Terms::PLAIN)
}

// Works: path-mtu
#[lab::test]
fn a_wire_without_fragments_loses_nothing_from_the_first_packet_on_in_zones() -> Result<()> {
    from_the_first_packet_on(Terms::ZONED)
}

/// The control of the datagrams.
#[lab::test]
fn without_probes_a_long_datagram_is_lost_on_a_wire_without_fragments() -> Result<()> {
    let pair = Pair::new("probes")?;
    no_fragments(&pair)?;
    let scene = Scene::build(pair, Family::V4, Terms::PLAIN, OFF, NARROW)?;
    let (behind, gateway) = (&scene.behind, &scene.pair.gateway);
    let ends = [BEHIND[0], GATEWAY[0]];
    ensure!(!arrives(behind, gateway, ends, Duration::from_secs(1))?);
    ensure!(dropped(&scene.pair)?[1] > 0);
    Ok(())
}

/// Adds a second wire whose path carries less, although no interface shows it.
fn add_narrow_path(pair: &Pair) -> Result<()> {
    pair.add_second_wire()?;
    for command in [
        format!("route add 192.0.2.1/32 dev wired mtu lock {NARROW} table 200"),
        "rule add from 10.4.0.2 lookup 200".to_owned(),
        format!("route add 10.4.0.2/32 dev wireless2 mtu lock {NARROW}"),
    ] {
        pair.between.run(&format!("ip {command}"))?;
    }
    Ok(())
}

/// MOBIKE, under a connection: what came through on the old path does not on the new one.
fn move_to_a_narrow_path(terms: Terms<'_>, room: u16) -> Result<()> {
    let pair = Pair::new("probes")?;
    add_narrow_path(&pair)?;
    no_fragments(&pair)?;
    silent(&pair)?;
    let scene = Scene::build(pair, Family::V4, terms, DEFAULT, 1500)?;
    scene.pass()?;
    let tunnel = &scene.tunnel;
    let daemons = [&tunnel.mobile, &tunnel.gateway];
    let await_both = |room: u16, mtu: u32| {
        let mut daemons = daemons.into_iter();
        daemons.try_for_each(|daemon| await_mtu(daemon, (room, mtu), "probed"))
    };
    await_both(room + 100, 1500)?;
    let ends = (&scene.pair.gateway, &scene.behind);
    in_parts(ends, BEHIND[0], (8, 200_000), |part| match part {
        2 => tunnel
            .mobile
            .strata("move office --from 10.4.0.2")
            .map(drop),
        _ => Ok(()),
    })?;
    scene.pass()?;
    await_both(room, NARROW)?;
    // Nothing is lost any more.
    let before = dropped(&scene.pair)?;
    scene.pass()?;
    let after = dropped(&scene.pair)?;
    ensure!(after == before, "{before:?}, {after:?}");
    // And the wide path is used when the tunnel is back.
    tunnel.mobile.strata("move office --from 10.3.0.2")?;
    scene.pass()?;
    await_both(room + 100, 1500)
}

// Recovers: path-mtu
// Weakness: 167
#[lab::test]
fn a_move_to_a_path_that_carries_less_is_no_black_hole() -> Result<()> {
    move_to_a_narrow_path(Terms::PLAIN, ROOM)
}

// Recovers: path-mtu
#[lab::test]
fn a_move_to_a_path_that_carries_less_is_no_black_hole_in_zones() -> Result<()> {
    move_to_a_narrow_path(Terms::ZONED, ZONED_ROOM)
}

/// The control: after the move no segment arrives.
// Weakness: 167
#[lab::test]
fn without_probes_a_move_to_a_path_that_carries_less_is_a_black_hole() -> Result<()> {
    let pair = Pair::new("probes")?;
    add_narrow_path(&pair)?;
    no_fragments(&pair)?;
    let scene = Scene::build(pair, Family::V4, Terms::PLAIN, OFF, 1500)?;
    transfer(&scene.behind, &scene.pair.gateway, GATEWAY[0], OCTETS)?;
    scene.tunnel.mobile.strata("move office --from 10.4.0.2")?;
    arrives_nothing(&scene.behind, &scene.pair.gateway, GATEWAY[0])
}

/// The gateway sees another address and port. Reports quote them as the NAT translates them back.
// Works: path-mtu
#[lab::test]
fn behind_a_nat_everything_arrives_over_a_wire_without_fragments() -> Result<()> {
    for is_silent in [true, false] {
        let pair = Pair::new("probes")?;
        pair.between.file("nat.nft", NAT)?;
        pair.between.run("nft -f nat.nft")?;
        no_fragments(&pair)?;
        if is_silent {
            silent(&pair)?;
        }
        let scene = Scene::build(pair, Family::V4, Terms::PLAIN, DEFAULT, NARROW)?;
        scene.pass()?;
        let from = if is_silent { "probed" } else { "reported" };
        await_mtu(&scene.tunnel.mobile, (ROOM, NARROW), from)?;
        let status = scene.tunnel.gateway.strata("status")?;
        let remote = pair::peer(&status)["remote"].as_str().unwrap_or_default();
        ensure!(remote.starts_with("192.0.2.2:"), "{status}");
        ensure!(count(&scene.tunnel.mobile, "disbelieved")? == 0);
    }
    Ok(())
}

/// Known at once: nothing was sent, and no probe is needed to shorten packets.
// Works: path-mtu
#[lab::test]
fn the_mtu_of_the_machines_own_interface_counts_at_once() -> Result<()> {
    let pair = Pair::new("probes")?;
    no_fragments(&pair)?;
    let own = |mtu: u32| -> Result<()> {
        for (host, device) in [(&pair.between, "wireless"), (&pair.mobile, "eth0")] {
            host.netns().netlink()?.set_mtu(device, mtu)?;
        }
        Ok(())
    };
    own(NARROW)?;
    let behind = pair.add_host_behind_mobile()?;
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    pair.gateway.secret("node.psk", pair::NODE_KEY)?;
    let [mobile, gateway] = configs(Family::V4, Terms::PLAIN, DEFAULT);
    let tunnel = Tunnel {
        gateway: pair.gateway.stratad(&gateway)?,
        mobile: pair.mobile.stratad(&mobile)?,
    };
    tunnel.up()?;
    let (at_once, more) = (ROOM, ROOM - 60);
    await_mtu(&tunnel.mobile, (at_once, NARROW), "interface")?;
    ensure!(count(&tunnel.mobile, "probes")? == 0);
    transfer(&behind, &pair.gateway, GATEWAY[0], OCTETS)?;
    await_mtu(&tunnel.mobile, (at_once, NARROW), "probed")?;
    // And when it changes.
    own(NARROW - 60)?;
    transfer(&behind, &pair.gateway, GATEWAY[0], OCTETS)?;
    await_mtu(&tunnel.mobile, (more, NARROW - 60), "probed")?;
    transfer(&pair.gateway, &behind, BEHIND[0], OCTETS)
}

/// An attacker can guess all that the kernel checks, and the kernel believes the report. It quotes
/// no packet of the tunnel, so it changes nothing, and causes not even a probe. The control, from
/// who has seen a packet, causes probes, and shortens nothing either.
fn forge_in(outer: Family, room: u16) -> Result<()> {
    let pair = Pair::new("probes")?;
    let scene = Scene::build(pair, outer, Terms::PLAIN, DEFAULT, 1500)?;
    scene.pass()?;
    let (mobile, whole) = (&scene.tunnel.mobile, (room, 1500));
    await_mtu(mobile, whole, "probed")?;
    let before = count(mobile, "probes")?;
    ensure!(await_forged(&scene, outer, 1300)? == 1300);
    until("the report", DEADLINE, || {
        Ok((count(mobile, "disbelieved")? >= 1).then_some(()))
    })?;
    scene.pass()?;
    ensure!(known(mobile)? == serde_json::json!([whole.0, whole.1]));
    ensure!((count(mobile, "probes")?, origin(mobile)?) == (before, "probed".to_owned()));
    ensure!(scene.pieces()? == [0, 0], "{:?}", scene.pieces()?);
    forge(&scene.pair, outer, Some(seen(mobile)?), 1300)?;
    until("a probe", DEADLINE, || {
        Ok((count(mobile, "probes")? > before).then_some(()))
    })?;
    await_mtu(mobile, whole, "probed")?;
    scene.pass()?;
    ensure!(known(mobile)? == serde_json::json!([whole.0, whole.1]));
    ensure!(scene.pieces()? == [0, 0], "{:?}", scene.pieces()?);
    Ok(())
}

// Refuses: path-mtu
// Weakness: 157
// Weakness: 166
#[lab::test]
fn a_forged_report_shortens_nothing() -> Result<()> {
    forge_in(Family::V4, ROOM + 100)
}

// Refuses: path-mtu
// Weakness: 166
#[lab::test]
fn a_forged_report_shortens_nothing_over_ipv6() -> Result<()> {
    forge_in(Family::V6, ROOM + 80)
}

/// One probe per end and path, and none while the tunnel carries nothing.
#[lab::test]
fn a_path_that_carries_what_the_interface_does_is_probed_once() -> Result<()> {
    let pair = Pair::new("probes")?;
    let scene = Scene::build(pair, Family::V4, Terms::PLAIN, DEFAULT, 1500)?;
    let daemons = [&scene.tunnel.mobile, &scene.tunnel.gateway];
    for daemon in daemons {
        await_mtu(daemon, (ROOM + 100, 1500), "interface")?;
        ensure!(count(daemon, "probes")? == 0);
    }
    scene.pass()?;
    for daemon in daemons {
        await_mtu(daemon, (ROOM + 100, 1500), "probed")?;
        let counts = ["probes", "lost", "echoed"].map(|what| count(daemon, what));
        let [probes, lost, echoed] = counts;
        ensure!([probes?, lost?, echoed?] == [1, 0, 1]);
    }
    Ok(())
}

/// The wire becomes narrow under a transfer's feet, with a router that reports and with one that
/// does not.
// Recovers: path-mtu
#[lab::test]
fn a_wire_that_becomes_narrow_is_noticed() -> Result<()> {
    for is_silent in [false, true] {
        let pair = Pair::new("probes")?;
        no_fragments(&pair)?;
        let scene = Scene::build(pair, Family::V4, Terms::PLAIN, DEFAULT, 1500)?;
        scene.pass()?;
        if is_silent {
            silent(&scene.pair)?;
        }
        narrow(&scene.pair, NARROW)?;
        transfer(&scene.behind, &scene.pair.gateway, GATEWAY[0], OCTETS)?;
    }
    Ok(())
}

/// IPv4 without DF: fragmented before it is sealed, so that no fragment is on the wire.
// Works: path-mtu
#[lab::test]
fn a_datagram_that_may_be_cut_is_cut_inside() -> Result<()> {
    let pair = Pair::new("probes")?;
    no_fragments(&pair)?;
    let scene = Scene::build(pair, Family::V4, Terms::ZONED, DEFAULT, NARROW)?;
    transfer(&scene.behind, &scene.pair.gateway, GATEWAY[0], OCTETS)?;
    await_mtu(&scene.tunnel.mobile, (ZONED_ROOM, NARROW), "reported")?;
    let near = bind(&scene.behind, BEHIND[0])?;
    let mut far = bind(&scene.pair.gateway, GATEWAY[0])?;
    let path = Path::udp(near.local(), far.local());
    let len = 1380 - HEADERS[0];
    near.send(path, 0, &vec![7; len])?;
    until("the datagram", DEADLINE, || {
        let mut came = None;
        let _ = far.recv(|_, octets| came = Some(octets.len()));
        Ok(came.filter(|came| *came == len))
    })?;
    ensure!(count(&scene.tunnel.mobile, "cut")? >= 1);
    Ok(())
}

fn transport(end: usize, zones: &str, tunnel: &str) -> String {
    let names = ["alice@example.net", "gw.example.net"];
    let addresses = ["10.3.0.2", "192.0.2.1"];
    let other = 1 - end;
    format!(
        r#"
[node]
id = "{}"
[tunnel]
{tunnel}
[peer.other]
address = "{}"
id = "{}"
psk = "tunnel.psk"
local = ["{}/32"]
remote = ["{}/32"]
mode = "transport"
zones = "{zones}"
start = "manual"
"#,
        names[end], addresses[other], names[other], addresses[end], addresses[other]
    )
}

/// A NAT in front of the mobile node.
const NAT: &str = "table ip nat {
  chain out {
    type nat hook postrouting priority 100
    oifname \"wired\" meta l4proto udp masquerade to :20000-30000
  }
}
";

/// Programs of both hosts learn the length from their own kernels.
fn in_transport_mode(zones: &str, tunnel: &str, is_silent: bool) -> Result<(Pair, Tunnel)> {
    let pair = Pair::new("probes")?;
    no_fragments(&pair)?;
    if is_silent {
        silent(&pair)?;
    }
    narrow(&pair, NARROW)?;
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    let tunnel = Tunnel {
        gateway: pair.gateway.stratad(&transport(1, zones, tunnel))?,
        mobile: pair.mobile.stratad(&transport(0, zones, tunnel))?,
    };
    tunnel.mobile.strata("up other --wait")?;
    Ok((pair, tunnel))
}

// Works: path-mtu
#[lab::test]
fn in_transport_mode_everything_arrives_over_a_wire_without_fragments() -> Result<()> {
    for (zones, is_silent) in [
        ("refuse", true),
        ("refuse", false),
        ("require", true),
        ("require", false),
    ] {
        let (pair, tunnel) = in_transport_mode(zones, DEFAULT, is_silent)?;
        transfer(&pair.mobile, &pair.gateway, "192.0.2.1", OCTETS)?;
        transfer(&pair.gateway, &pair.mobile, "10.3.0.2", OCTETS)?;
        // From the first packet on.
        ensure!(dropped(&pair)? == [0, 0], "{:?}", dropped(&pair)?);
        let is_found = |child: &Value| child["path_mtu"] == NARROW;
        let found = |status: &Value| pair::children(status).iter().any(is_found);
        tunnel.mobile.wait_until("status", DEADLINE, found)?;
    }
    Ok(())
}

/// "Transport mode ESP is applied only to whole IP datagrams (not to IP fragments)" (RFC 4303
/// section 3.3.4): the kernel fragments a datagram that is longer than the route into the tunnel,
/// and the fragments are dropped and counted. A smaller MTU of this route would only have it
/// fragment, and lose, more. Without the tunnel the same wire loses the same datagram.
// Refuses: path-mtu
#[lab::test]
fn in_transport_mode_no_datagram_is_fragmented_before_it_is_sealed() -> Result<()> {
    let bare = Pair::new("probes")?;
    no_fragments(&bare)?;
    narrow(&bare, NARROW)?;
    let (ends, second) = (["10.3.0.2", "192.0.2.1"], Duration::from_secs(1));
    ensure!(!arrives(&bare.mobile, &bare.gateway, ends, second)?);
    ensure!(dropped(&bare)?[1] > 0);
    let (pair, tunnel) = in_transport_mode("refuse", DEFAULT, true)?;
    ensure!(!arrives(&pair.mobile, &pair.gateway, ends, second)?);
    let status = tunnel.mobile.strata("status")?;
    let fragments = status["status"]["drops"]["esp_fragment"].as_u64();
    ensure!(fragments >= Some(2), "{status}");
    ensure!(dropped(&pair)? == [0, 0], "{:?}", dropped(&pair)?);
    Ok(())
}

// Refuses: path-mtu
#[lab::test]
fn in_transport_mode_without_probes_nothing_arrives_over_a_wire_without_fragments() -> Result<()> {
    let (pair, _tunnel) = in_transport_mode("refuse", OFF, true)?;
    arrives_nothing(&pair.mobile, &pair.gateway, "192.0.2.1")
}
