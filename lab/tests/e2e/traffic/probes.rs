//! Path MTU discovery as it is by default, by probes: a hop carries less than the links at both
//! ends, and no fragment passes. The kernels of hosts behind the ends transfer octets over TCP;
//! with `path_mtu = "off"` none arrive.

use super::pmtu::{
    HEADERS, NARROW, OFF, ROOM, SILENT, Scene, ZONED_ROOM, await_forged, bind, configs, count,
    counted, known, narrow,
};
use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, BEHIND, DEADLINE, GATEWAY, Pair, TUNNEL_KEY, Terms, Tunnel};
use lab::process::until;
use lab::transfer::{connect, transfer};
use model::Path;
use os::Family;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};

const OCTETS: u64 = 1_000_000;

/// The default, with segments that are too long for the path.
const DEFAULT: &str = "clamp = false";

/// Drops fragments on arrival, before reassembly.
const NO_FRAGMENTS: &str = "table inet whole {
  chain came {
    type filter hook prerouting priority -460
    iifname \"eth0\" ip frag-off & 0x3fff != 0 counter drop
    iifname \"eth0\" exthdr frag exists counter drop
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
    for host in [&pair.mobile, &pair.gateway] {
        host.file("whole.nft", NO_FRAGMENTS)?;
        host.run("nft -f whole.nft")?;
    }
    Ok(())
}

/// Returns the number of fragments that each end has dropped.
fn dropped(pair: &Pair) -> Result<[u64; 2]> {
    let dropped =
        |host: &Host| -> Result<u64> { Ok(counted(&host.run("nft list table inet whole")?)) };
    let [mobile, gateway] = [&pair.mobile, &pair.gateway].map(dropped);
    Ok([mobile?, gateway?])
}

fn silent(pair: &Pair) -> Result<()> {
    for (name, rules) in [("silent.nft", SILENT), ("silent6.nft", SILENT_V6)] {
        pair.between.file(name, rules)?;
        pair.between.run(&format!("nft -f {name}"))?;
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
    let text = scene.tunnel.mobile.strata_text("status")?;
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

/// Fails if a single octet arrives of a connection whose segments are too long.
fn arrives_nothing(scene: &Scene) -> Result<()> {
    let (mut near, mut far) = connect(&scene.behind, &scene.pair.gateway, GATEWAY[0])?;
    near.write_all(&[7; 15_000])?;
    // TCP sends ten segments at once, each in two fragments, and then repeats the first one.
    until("the third try", DEADLINE, || {
        let rules = scene.pair.gateway.run("nft list table inet whole")?;
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
        arrives_nothing(&scene)?;
        let [mobile, _] = configs(Family::V4, terms, DEFAULT);
        let text = scene.tunnel.mobile.change(&mobile)?;
        let line = "~ tunnel.path_mtu off -> probe (applied)";
        ensure!(text.contains(line), "{text}");
        transfer(&scene.behind, &scene.pair.gateway, GATEWAY[0], OCTETS)?;
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

/// An attacker can guess all that the kernel checks. The value has no effect, whether it is one
/// that a path can have or not: probes of the whole length come through.
// Refuses: path-mtu
// Weakness: 157
#[lab::test]
fn a_forged_report_shortens_nothing() -> Result<()> {
    let pair = Pair::new("probes")?;
    let scene = Scene::build(pair, Family::V4, Terms::PLAIN, DEFAULT, 1500)?;
    scene.pass()?;
    let whole = (ROOM + 100, 1500);
    await_mtu(&scene.tunnel.mobile, whole, "probed")?;
    ensure!(await_forged(&scene, 1300)? == 1300);
    scene.pass()?;
    await_mtu(&scene.tunnel.mobile, whole, "probed")?;
    ensure!(count(&scene.tunnel.mobile, "disbelieved")? >= 1);
    // Not even while it is in doubt.
    ensure!(scene.pieces()? == [0, 0], "{:?}", scene.pieces()?);
    Ok(())
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

/// Programs of both hosts learn the length from their own kernels.
fn in_transport_mode(zones: &str, tunnel: &str) -> Result<(Pair, Tunnel)> {
    let pair = Pair::new("probes")?;
    no_fragments(&pair)?;
    silent(&pair)?;
    narrow(&pair, NARROW)?;
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    let tunnel = Tunnel {
        gateway: pair.gateway.stratad(&transport(1, zones, tunnel))?,
        mobile: pair.mobile.stratad(&transport(0, zones, tunnel))?,
    };
    tunnel.mobile.strata("up other")?;
    Ok((pair, tunnel))
}

// Works: path-mtu
#[lab::test]
fn in_transport_mode_everything_arrives_over_a_wire_without_fragments() -> Result<()> {
    for zones in ["refuse", "require"] {
        let (pair, tunnel) = in_transport_mode(zones, DEFAULT)?;
        transfer(&pair.mobile, &pair.gateway, "192.0.2.1", OCTETS)?;
        transfer(&pair.gateway, &pair.mobile, "10.3.0.2", OCTETS)?;
        let is_found = |child: &Value| child["path_mtu"] == NARROW;
        let status = tunnel.mobile.strata("status")?;
        ensure!(pair::children(&status).iter().any(is_found), "{status}");
    }
    Ok(())
}

// Refuses: path-mtu
#[lab::test]
fn in_transport_mode_without_probes_nothing_arrives_over_a_wire_without_fragments() -> Result<()> {
    let (pair, _tunnel) = in_transport_mode("refuse", OFF)?;
    let (mut near, mut far) = connect(&pair.mobile, &pair.gateway, "192.0.2.1")?;
    near.write_all(&[7; 15_000])?;
    until("the third try", DEADLINE, || {
        let rules = pair.gateway.run("nft list table inet whole")?;
        Ok((counted(&rules) >= 24).then_some(()))
    })?;
    far.set_nonblocking(true)?;
    let read = far.read(&mut [0; 1]).map_err(|error| error.kind());
    ensure!(read == Err(ErrorKind::WouldBlock), "{read:?}");
    Ok(())
}
