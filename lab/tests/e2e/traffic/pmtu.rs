//! Path MTU discovery by ICMP alone (`probes.rs` has that by probes): a hop on the path has a
//! smaller MTU than the links at both ends. The host between sends the ICMP errors, kernel sockets
//! behind the mobile node must receive them, and the receiving kernels count the fragments.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, BEHIND, DEADLINE, GATEWAY, Pair, Terms, Tunnel};
use lab::plain;
use lab::process::until;
use lab::transfer::{connect, transfer};
use model::{Path, Spi};
use os::{Datagrams, Family};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::esp::Header;

const OCTETS: u64 = 1_000_000;

/// MTU of the hop, and the room in it for a datagram: without IPv4 and UDP headers, SPI, sequence
/// number, ICV and trailer.
pub(super) const NARROW: u32 = 1400;
pub(super) const ROOM: u16 = 1346;
/// The same with two zones: a map of up to seven words, a next header, and two ICVs.
pub(super) const ZONED_ROOM: u16 = 1400 - 28 - 8 - 28 - 1 - 32;

const ON: &str = "clamp = false\npath_mtu = \"icmp\"";
pub(super) const OFF: &str = "clamp = false\npath_mtu = \"off\"";

/// Limit on fragments: more than pass until both ends know the MTU.
const FEW: u64 = 150;

/// Counts fragments on arrival, before reassembly.
const COUNTERS: &str = "table inet pieces {
  chain came {
    type filter hook prerouting priority -450
    iifname \"eth0\" ip frag-off & 0x3fff != 0 counter
    iifname \"eth0\" exthdr frag exists counter
  }
}
";

/// A router that sends no ICMP errors.
pub(super) const SILENT: &str = "table inet silent {
  chain out {
    type filter hook output priority 0
    icmp type destination-unreachable icmp code frag-needed counter drop
  }
}
";

/// Returns the number of packets that rules have counted.
pub(super) fn counted(rules: &str) -> u64 {
    let counts = rules.split("counter packets ").skip(1);
    let counts = counts.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    counts.sum()
}

/// Returns both configurations. The mobile node is the router of a host behind it.
pub(super) fn configs(outer: Family, terms: Terms<'_>, tunnel: &str) -> [String; 2] {
    let network = "\"10.1.0.0/24\", \"fd00:1::/64\"";
    let hosts = "\"10.1.0.2/32\", \"fd00:1::2/128\"";
    let mobile = pair::mobile_config(outer, terms, "manual");
    let gateway = pair::gateway_config(terms);
    let table = |config: String| plain::in_table(&config, "[tunnel]", tunnel);
    [
        table(mobile).replace(
            &format!("local = [{hosts}]"),
            &format!("local = [{network}]"),
        ),
        table(gateway).replace(
            &format!("remote = [{hosts}]"),
            &format!("remote = [{network}]"),
        ),
    ]
}

/// Sets the MTU of the wire between the router and the gateway.
pub(super) fn narrow(pair: &Pair, mtu: u32) -> Result<()> {
    for (host, device) in [(&pair.between, "wired"), (&pair.gateway, "eth0")] {
        host.netns().netlink()?.set_mtu(device, mtu)?;
    }
    Ok(())
}

/// A tunnel that is up, over a narrow wire, with a host behind the mobile node.
pub(super) struct Scene {
    pub(super) pair: Pair,
    pub(super) behind: Host,
    pub(super) tunnel: Tunnel,
}

impl Scene {
    fn new(outer: Family, terms: Terms<'_>, tunnel: &str) -> Result<Self> {
        Self::build(Pair::new("pmtu")?, outer, terms, tunnel, NARROW)
    }

    pub(super) fn build(
        pair: Pair,
        outer: Family,
        terms: Terms<'_>,
        config: &str,
        mtu: u32,
    ) -> Result<Self> {
        narrow(&pair, mtu)?;
        let behind = pair.add_host_behind_mobile()?;
        for host in [&pair.mobile, &pair.gateway] {
            host.file("pieces.nft", COUNTERS)?;
            host.run("nft -f pieces.nft")?;
        }
        for host in [&pair.mobile, &pair.gateway] {
            host.secret("tunnel.psk", pair::TUNNEL_KEY)?;
        }
        pair.gateway.secret("node.psk", pair::NODE_KEY)?;
        let [mobile, gateway] = configs(outer, terms, config);
        let tunnel = Tunnel {
            gateway: pair.gateway.stratad(&gateway)?,
            mobile: pair.mobile.stratad(&mobile)?,
        };
        tunnel.up()?;
        Ok(Self {
            pair,
            behind,
            tunnel,
        })
    }

    /// Transfers octets in each direction and family. A kernel that knows the path MTU announces it
    /// in the MSS of its connections, so the first sender is a different end in each family.
    pub(super) fn pass(&self) -> Result<()> {
        let there = |address| transfer(&self.behind, &self.pair.gateway, address, OCTETS);
        let back = |address| transfer(&self.pair.gateway, &self.behind, address, OCTETS);
        there(GATEWAY[0])?;
        back(BEHIND[1])?;
        there(GATEWAY[1])?;
        back(BEHIND[0])
    }

    /// Returns the number of fragments that arrived at the gateway and at the mobile node.
    pub(super) fn pieces(&self) -> Result<[u64; 2]> {
        let came =
            |host: &Host| -> Result<u64> { Ok(counted(&host.run("nft list table inet pieces")?)) };
        Ok([came(&self.pair.gateway)?, came(&self.pair.mobile)?])
    }

    /// Returns the MTUs known to each end.
    fn known(&self) -> Result<[Value; 2]> {
        Ok([known(&self.tunnel.mobile)?, known(&self.tunnel.gateway)?])
    }

    /// Returns a socket behind the mobile node, the path to a socket at the gateway, and that
    /// socket.
    fn sockets(&self, family: usize) -> Result<(Datagrams, Path, Datagrams)> {
        let near = bind(&self.behind, BEHIND[family])?;
        let far = bind(&self.pair.gateway, GATEWAY[family])?;
        let path = Path::udp(near.local(), far.local());
        Ok((near, path, far))
    }

    /// Returns the path MTU to the gateway in the kernel of the host behind, in octets.
    fn heard(&self, path: Path) -> Result<u16> {
        self.behind.inside(|| Ok(os::path_mtu(path, None)?))
    }

    /// Sends datagrams of 1380 octets with DF until the kernel refuses them; returns the path MTU.
    fn insist(&self, family: usize) -> Result<u16> {
        let (near, path, _far) = self.sockets(family)?;
        let payload = vec![7; 1380 - HEADERS[family]];
        until("a word from the tunnel", DEADLINE, || {
            match near.send_whole(path, 0, &payload) {
                Err(error) if os::is_too_long(&error) => Ok(Some(())),
                sent => Ok(sent.map(|()| None)?),
            }
        })?;
        self.heard(path)
    }
}

/// Lengths of the IP and UDP headers, in octets.
pub(super) const HEADERS: [usize; 2] = [28, 48];

pub(super) fn bind(host: &Host, address: &str) -> Result<Datagrams> {
    let address: IpAddr = address.parse()?;
    host.inside(|| Ok(Datagrams::udp(SocketAddr::new(address, 0), None)?))
}

/// Returns the MTU of a daemon's tunnel and of its path, in octets.
pub(super) fn known(daemon: &Daemon) -> Result<Value> {
    let status = daemon.strata("status")?;
    let child = pair::children(&status).pop().context("no tunnel")?;
    Ok(serde_json::json!([child["mtu"], child["path_mtu"]]))
}

pub(super) fn count(daemon: &Daemon, what: &str) -> Result<u64> {
    let status = daemon.strata("status")?;
    let count = &status["status"]["path_mtu"][what];
    count.as_u64().with_context(|| status.to_string())
}

// Refuses: path-mtu
#[lab::test]
fn without_it_packets_are_cut_on_their_way() -> Result<()> {
    let scene = Scene::new(Family::V4, Terms::PLAIN, OFF)?;
    scene.pass()?;
    let [there, back] = scene.pieces()?;
    ensure!(there > 10 * FEW && back > 10 * FEW, "{there}, {back}");
    ensure!(scene.known()? == [(); 2].map(|()| serde_json::json!([null, null])));
    Ok(())
}

/// Fails unless everything arrives, almost without fragments, and both ends know the MTU.
fn go_whole(scene: &Scene, room: u16) -> Result<()> {
    scene.pass()?;
    let [there, back] = scene.pieces()?;
    ensure!(there < FEW && back < FEW, "{there}, {back} pieces");
    let known = scene.known()?;
    let expected = serde_json::json!([room, NARROW]);
    ensure!(known.iter().all(|known| *known == expected), "{known:?}");
    // Afterwards there are no fragments at all.
    scene.pass()?;
    ensure!(scene.pieces()? == [there, back], "{:?}", scene.pieces()?);
    let text = scene.tunnel.mobile.strata_text("status office")?;
    let line = format!("mtu       {room}, of {NARROW} outside");
    ensure!(text.contains(&line), "{text}");
    Ok(())
}

// Works: path-mtu
#[lab::test]
fn packets_go_whole_through_a_narrow_hop() -> Result<()> {
    let mut scene = Scene::new(Family::V4, Terms::PLAIN, ON)?;
    go_whole(&scene, ROOM)?;
    let log = scene.tunnel.mobile.process().log();
    let line = "peer office: path MTU 1400 octets, 1346 inside the tunnel";
    ensure!(log.matches(line).count() == 1, "{log}");
    // Except packets that a source sends before the ICMP error reaches it.
    let mut status = scene.tunnel.mobile.strata("status")?;
    if let Some(drops) = status["status"]["drops"].as_object_mut() {
        drops.remove("esp_too_long");
    }
    pair::no_drops(&status)
}

// Works: path-mtu
#[lab::test]
fn packets_go_whole_through_a_narrow_hop_in_zones() -> Result<()> {
    let scene = Scene::new(Family::V4, Terms::ZONED, ON)?;
    go_whole(&scene, ZONED_ROOM)
}

// Works: path-mtu
#[lab::test]
fn packets_go_whole_through_a_narrow_hop_over_ipv6() -> Result<()> {
    let scene = Scene::new(Family::V6, Terms::PLAIN, ON)?;
    go_whole(&scene, ROOM - 20)
}

/// The node is the router before the narrow hop, and forwards the packets that it opens
/// unfragmented.
// Works: path-mtu
#[lab::test]
fn a_licensed_node_passes_on_what_is_whole_and_says_what_is_too_long() -> Result<()> {
    let pair = Pair::new("pmtu")?;
    let licensed = pair.start_licensed(pair::LICENSED)?;
    let scene = Scene::build(pair, Family::V4, Terms::LICENSED, ON, NARROW)?;
    let holds = |zones: &Value| zones["zones"]["held"][0].is_object();
    licensed.wait_until("zones", DEADLINE, holds)?;
    go_whole(&scene, ZONED_ROOM)?;
    ensure!(pair::segments(&licensed)? > 0, "it has seen nothing");
    Ok(())
}

// Recovers: path-mtu
#[lab::test]
fn a_narrow_hop_that_loses_packets_is_passed() -> Result<()> {
    let hop = sim::Settings {
        rate: None,
        delay: Duration::from_millis(2),
        queue: 1000,
        bit_error_rate: 5e-6,
    };
    let pair = Pair::with_lossy_hop("pmtu", hop)?;
    let scene = Scene::build(pair, Family::V4, Terms::PLAIN, ON, NARROW)?;
    go_whole(&scene, ROOM)
}

/// Without probes, only routers can report the MTU, and this test shows the failure.
// Refuses: path-mtu
#[lab::test]
fn where_routers_are_silent_what_is_too_long_is_lost_until_a_reload() -> Result<()> {
    let scene = Scene::new(Family::V4, Terms::PLAIN, ON)?;
    scene.pair.between.file("silent.nft", SILENT)?;
    scene.pair.between.run("nft -f silent.nft")?;
    let (mut near, mut far) = connect(&scene.behind, &scene.pair.gateway, GATEWAY[0])?;
    near.write_all(&[7; 15_000])?;
    // TCP sends ten segments at once, and then retransmits the first one repeatedly.
    until("the third try", DEADLINE, || {
        let rules = scene.pair.between.run("nft list table inet silent")?;
        Ok((counted(&rules) >= 13).then_some(()))
    })?;
    far.set_nonblocking(true)?;
    let read = far.read(&mut [0; 1]).map_err(|error| error.kind());
    ensure!(read == Err(ErrorKind::WouldBlock), "{read:?}");
    let [mobile, _] = configs(Family::V4, Terms::PLAIN, OFF);
    scene.tunnel.mobile.change(&mobile)?;
    far.set_nonblocking(false)?;
    Ok(far.read_exact(&mut [0; 15_000])?)
}

// Works: path-mtu
#[lab::test]
fn sources_hear_how_long_datagrams_may_be() -> Result<()> {
    let scene = Scene::new(Family::V4, Terms::PLAIN, ON)?;
    for family in [0, 1] {
        ensure!(scene.insist(family)? == ROOM, "family {family}");
        // The reported MTU is exact: a datagram of this length passes without fragments.
        let (near, path, mut far) = scene.sockets(family)?;
        let before = scene.pieces()?;
        let payload = vec![7; usize::from(ROOM) - HEADERS[family]];
        near.send_whole(path, 0, &payload)?;
        until("the longest datagram", DEADLINE, || {
            let mut came = None;
            let _ = far.recv(|_, octets| came = Some(octets.len()));
            Ok(came)
        })?;
        ensure!(scene.pieces()? == before);
    }
    ensure!(count(&scene.tunnel.mobile, "too_long")? >= 2);
    Ok(())
}

/// Only IPv4 allows routers to fragment datagrams. The outer packet is fragmented, because that
/// needs no second sequence number.
// Works: path-mtu
#[lab::test]
fn a_datagram_that_may_be_cut_passes() -> Result<()> {
    let scene = Scene::new(Family::V4, Terms::PLAIN, ON)?;
    scene.insist(0)?;
    let (near, mut far) = (
        bind(&scene.behind, "10.1.0.130")?,
        bind(&scene.pair.gateway, "10.8.0.1")?,
    );
    let path = Path::udp(near.local(), far.local());
    near.send(path, 0, &[7; 1352])?;
    until("the datagram", DEADLINE, || {
        let mut came = None;
        let _ = far.recv(|_, octets| came = Some(octets.len()));
        Ok(came.filter(|len| *len == 1352))
    })?;
    Ok(())
}

// Works: path-mtu
#[lab::test]
fn connections_that_begin_later_fit_from_their_beginning() -> Result<()> {
    let scene = Scene::new(Family::V4, Terms::PLAIN, "path_mtu = \"icmp\"")?;
    scene.insist(0)?;
    let before = count(&scene.tunnel.mobile, "too_long")?;
    // The kernel of the host behind has received no ICMP error in this family.
    transfer(&scene.behind, &scene.pair.gateway, GATEWAY[1], OCTETS)?;
    let after = count(&scene.tunnel.mobile, "too_long")?;
    ensure!(before == after, "{before}, {after}");
    Ok(())
}

// Recovers: path-mtu
#[lab::test]
fn below_the_least_of_ipv6_packets_are_cut_and_all_arrives() -> Result<()> {
    let pair = Pair::new("pmtu")?;
    let scene = Scene::build(pair, Family::V4, Terms::PLAIN, ON, 1300)?;
    scene.pass()?;
    ensure!(scene.insist(1)? == 1280);
    let expected = serde_json::json!([1280, 1300]);
    let known = scene.known()?;
    ensure!(known.iter().all(|known| *known == expected), "{known:?}");
    Ok(())
}

/// Sends Destination Unreachable, code 4, or Packet Too Big, with the router's address, about a
/// packet from the mobile node to the gateway. An attacker can guess all but the ESP header.
pub(super) fn forge(pair: &Pair, outer: Family, quoted: Option<Header>, mtu: u16) -> Result<()> {
    let [high, low] = mtu.to_be_bytes();
    let mut message = match outer {
        Family::V4 => vec![3, 4, 0, 0, 0, 0, high, low],
        Family::V6 => vec![2, 0, 0, 0, 0, 0, high, low],
    };
    match outer {
        Family::V4 => {
            message.extend([0x45, 0, 5, 0, 0, 1, 0x40, 0, 64, 17, 0, 0]);
            message.extend([10, 3, 0, 2, 192, 0, 2, 1]);
        }
        Family::V6 => {
            message.extend([0x60, 0, 0, 0, 4, 0, 17, 64]);
            for end in outer_ends(outer)? {
                let IpAddr::V6(end) = end.ip() else {
                    anyhow::bail!("{end}");
                };
                message.extend(end.octets());
            }
        }
    }
    message.extend([0x11, 0x94, 0x11, 0x94, 4, 0, 0, 0]);
    message.extend(quoted.iter().flat_map(|header| header.octets()));
    let (domain, protocol) = match outer {
        Family::V4 => (Domain::IPV4, Protocol::ICMPV4),
        // The kernel computes its checksum.
        Family::V6 => (Domain::IPV6, Protocol::ICMPV6),
    };
    if outer == Family::V4 {
        let sum = wire::checksum::Sum::default().with(&message).finish();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    pair.between.inside(|| {
        let raw = Socket::new(domain, Type::RAW, Some(protocol))?;
        let [to, _] = outer_ends(outer)?;
        let to = SocketAddr::new(to.ip(), 0);
        Ok(raw.send_to(&message, &to.into()).map(drop)?)
    })
}

/// Returns the outer addresses and ports of the mobile node and of the gateway.
fn outer_ends(outer: Family) -> Result<[SocketAddr; 2]> {
    let ends = match outer {
        Family::V4 => ["10.3.0.2:4500", "192.0.2.1:4500"],
        Family::V6 => ["[2001:db8:3::2]:4500", "[2001:db8:2::1]:4500"],
    };
    let [mobile, gateway] = ends.map(str::parse);
    Ok([mobile?, gateway?])
}

/// Sends the forged error until the kernel has changed the path MTU; returns the new value.
pub(super) fn await_forged(scene: &Scene, outer: Family, forged: u16) -> Result<u16> {
    let [local, remote] = outer_ends(outer)?;
    let path = Path::udp(local, remote);
    until("the forged word", DEADLINE, || {
        forge(&scene.pair, outer, None, forged)?;
        let host = &scene.pair.mobile;
        let mtu = host.inside(|| Ok(os::path_mtu(path, Some(os::routes::MARK))?))?;
        Ok((mtu < 1500).then_some(mtu))
    })
}

/// Returns the ESP header of one of the last packets of a daemon's tunnel, as who is on the path
/// sees it.
pub(super) fn seen(daemon: &Daemon) -> Result<Header> {
    let status = daemon.strata("status")?;
    let child = pair::children(&status).pop().context("no tunnel")?;
    let spi = child["spi_out"].as_str().context("no SPI")?;
    let spi = u32::from_str_radix(spi.trim_start_matches("0x"), 16)?;
    let packets = child["sent"]["packets"].as_u64().context("no packets")?;
    Ok(Header::new(Spi(spi), packets))
}

/// An off-path attacker forges errors, and the kernel believes them. No packet depends on it: no
/// report quotes a packet of the tunnel. A router that has seen one and reports less than any path
/// has is not believed either.
// Refuses: path-mtu
// Weakness: 82
#[lab::test]
fn a_forged_router_makes_nothing_stand_still() -> Result<()> {
    let pair = Pair::new("pmtu")?;
    let mut scene = Scene::build(pair, Family::V4, Terms::PLAIN, ON, 1500)?;
    forge(&scene.pair, Family::V4, None, 0)?;
    scene.pass()?;
    ensure!(scene.known()?[0] == serde_json::json!([null, null]));
    await_forged(&scene, Family::V4, 68)?;
    scene.pass()?;
    ensure!(scene.known()?[0] == serde_json::json!([null, null]));
    ensure!(count(&scene.tunnel.mobile, "disbelieved")? >= 1);
    ensure!(scene.pieces()? == [0, 0], "{:?}", scene.pieces()?);
    let log = scene.tunnel.mobile.process().log();
    ensure!(!log.contains("below the minimum of IP"), "{log}");
    let seen = seen(&scene.tunnel.mobile)?;
    forge(&scene.pair, Family::V4, Some(seen), 68)?;
    let told = |log: &str| log.contains("below the minimum of IP").then_some(());
    let mobile = scene.tunnel.mobile.process();
    mobile.wait_for("a line about the report", DEADLINE, told)?;
    scene.pass()?;
    ensure!(scene.known()?[0] == serde_json::json!([null, null]));
    ensure!(scene.pieces()? == [0, 0], "{:?}", scene.pieces()?);
    Ok(())
}

/// A plausible value from who sees the packets is accepted, but the inner MTU does not go below
/// 1280 octets. Longer packets may then be fragmented, which no router on the real path needs to
/// do. The same from who does not see them changes nothing.
// Refuses: path-mtu
#[lab::test]
fn a_forged_router_that_could_be_one_costs_some_octets_of_each_packet() -> Result<()> {
    let pair = Pair::new("pmtu")?;
    let scene = Scene::build(pair, Family::V4, Terms::PLAIN, ON, 1500)?;
    scene.pass()?;
    ensure!(await_forged(&scene, Family::V4, 600)? == 600);
    scene.pass()?;
    ensure!(scene.known()?[0] == serde_json::json!([null, null]));
    forge(
        &scene.pair,
        Family::V4,
        Some(seen(&scene.tunnel.mobile)?),
        600,
    )?;
    until("the report", DEADLINE, || {
        let is_known = scene.known()?[0] != serde_json::json!([null, null]);
        Ok(is_known.then_some(()))
    })?;
    scene.pass()?;
    ensure!(scene.known()?[0] == serde_json::json!([1280, 600]));
    let [there, back] = scene.pieces()?;
    ensure!(there == 0 && back == 0, "{there}, {back} pieces");
    Ok(())
}

// Recovers: path-mtu
#[lab::test]
fn what_is_known_of_a_path_stays_there_when_the_tunnel_moves() -> Result<()> {
    let pair = Pair::new("pmtu")?;
    pair.add_second_wire()?;
    for (host, device) in [(&pair.between, "wireless"), (&pair.mobile, "eth0")] {
        host.netns().netlink()?.set_mtu(device, NARROW)?;
    }
    let scene = Scene::build(pair, Family::V4, Terms::PLAIN, ON, 1500)?;
    scene.pass()?;
    let narrow = serde_json::json!([ROOM, NARROW]);
    let unknown = serde_json::json!([null, null]);
    for (from, expected) in [("10.4.0.2", unknown), ("10.3.0.2", narrow)] {
        scene
            .tunnel
            .mobile
            .strata(&format!("move office --from {from}"))?;
        let known = known(&scene.tunnel.mobile)?;
        ensure!(known == expected, "{from}: {known}");
        scene.pass()?;
        ensure!(self::known(&scene.tunnel.mobile)? == expected, "{from}");
    }
    Ok(())
}

// Works: path-mtu
#[lab::test]
fn a_reload_turns_it_on_and_off() -> Result<()> {
    let scene = Scene::new(Family::V4, Terms::PLAIN, OFF)?;
    let reload = |config: &str, line: &str| {
        let [mobile, _] = configs(Family::V4, Terms::PLAIN, config);
        let text = scene.tunnel.mobile.change(&mobile)?;
        ensure!(text.contains(line), "{text}");
        scene.pass()
    };
    reload(ON, "~ tunnel.path_mtu off -> icmp (applied)")?;
    ensure!(known(&scene.tunnel.mobile)? == serde_json::json!([ROOM, NARROW]));
    reload(OFF, "~ tunnel.path_mtu icmp -> off (applied)")?;
    ensure!(known(&scene.tunnel.mobile)? == serde_json::json!([null, null]));
    Ok(())
}

// Refuses: path-mtu
#[lab::test]
fn what_turns_it_on_is_one_of_three_words() -> Result<()> {
    let scene = Scene::new(Family::V4, Terms::PLAIN, OFF)?;
    for (bad, fix) in [("\"on\"", "icmp"), ("1400", "quotes")] {
        let config = format!("path_mtu = {bad}");
        let [mobile, _] = configs(Family::V4, Terms::PLAIN, &config);
        scene.tunnel.mobile.configure(&mobile)?;
        scene.tunnel.mobile.refuses("reload", fix)?;
    }
    Ok(())
}
