//! Zones in transport and BEET mode, between kernel TCPs: a licensed node repairs the losses of a
//! hop, and unsupported configurations are refused.

use anyhow::{Context, Result, bail, ensure};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::pair::{
    self, DEADLINE, GATEWAY, HEADERS, LICENSED, MOBILE, NOBODY, NODE_KEY, Pair, TUNNEL_KEY, Tunnel,
    licensed_config,
};
use lab::transfer::{connect, transfer};
use lab::volley::volleys;
use lab::wiretap::Wiretap;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};

const OCTETS: u64 = 300_000;
/// Octets of a transfer that is long enough for the hop to lose packets.
const MANY: u64 = 2_000_000;

const ZONES: &str = "zones = \"require\"\n";
const LAYOUT: &str = "layout = [\"transport\", \"payload\"]\n";

/// A mode with the outer and inner addresses of mobile node and gateway.
#[derive(Clone, Copy)]
struct Ends {
    mode: &'static str,
    outside: [&'static str; 2],
    inside: [&'static str; 2],
}

const V4: [&str; 2] = ["10.3.0.2", "192.0.2.1"];
const V6: [&str; 2] = ["2001:db8:3::2", "2001:db8:2::1"];

const TRANSPORT: Ends = Ends {
    mode: "transport",
    outside: V4,
    inside: V4,
};

const BEET: Ends = Ends {
    mode: "beet",
    outside: V4,
    inside: [MOBILE[0], GATEWAY[0]],
};

fn host(address: &str) -> String {
    let length = if address.contains(':') { 128 } else { 32 };
    format!("{address}/{length}")
}

fn licences(list: &str) -> String {
    match list {
        NOBODY => ZONES.to_owned(),
        list => format!("{ZONES}licences = {list}\n"),
    }
}

impl Ends {
    /// Returns both configurations, with these lines in the peer's table.
    fn configs(&self, lines: [&str; 2]) -> [String; 2] {
        let names = ["alice@example.net", "gw.example.net"];
        [0, 1].map(|end| {
            let other = 1 - end;
            let own = match self.inside == self.outside {
                true => String::new(),
                false => format!("addresses = [\"{}\"]", host(self.inside[end])),
            };
            let table = ["office", "alice"][end];
            let node = ["", "[licensed.fa]\naddress = \"192.0.2.2\"\nid = \"fa.example.net\"\npsk = \"node.psk\"\nliveness = \"1s\"\n"][end];
            format!(
                "[node]\nid = \"{id}\"\n[tunnel]\n{own}\n[peer.{table}]\naddress = \"{address}\"\nid = \"{peer}\"\npsk = \"tunnel.psk\"\nlocal = [\"{local}\"]\nremote = [\"{remote}\"]\nmode = \"{mode}\"\nliveness = \"1s\"\nstart = \"manual\"\n{lines}{node}",
                id = names[end],
                address = self.outside[other],
                peer = names[other],
                local = host(self.inside[end]),
                remote = host(self.inside[other]),
                mode = self.mode,
                lines = lines[end],
            )
        })
    }

    fn start(&self, pair: &Pair, lines: [&str; 2]) -> Result<Tunnel> {
        pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
        pair.gateway.secret("tunnel.psk", TUNNEL_KEY)?;
        pair.gateway.secret("node.psk", NODE_KEY)?;
        let [mobile, gateway] = self.configs(lines);
        Ok(Tunnel {
            gateway: pair.gateway.stratad(&gateway)?,
            mobile: pair.mobile.stratad(&mobile)?,
        })
    }

    fn up(&self, pair: &Pair, lines: &str) -> Result<Tunnel> {
        let tunnel = self.start(pair, [lines; 2])?;
        tunnel.mobile.strata("up office --wait=60")?;
        let up = |status: &Value| pair::is_up(status);
        tunnel.gateway.wait_until("status", DEADLINE, up)?;
        Ok(tunnel)
    }

    /// The same through a licensed node, which waits for keys unless the list is empty.
    fn up_with_node(&self, pair: &Pair, list: &str) -> Result<(Daemon, Tunnel)> {
        let licensed = pair.start_licensed(LICENSED)?;
        let tunnel = self.up(pair, &licences(list))?;
        if list != NOBODY {
            licensed.wait_until("zones", DEADLINE, |zones| !held(zones).is_empty())?;
        }
        Ok((licensed, tunnel))
    }

    fn carry(&self, pair: &Pair) -> Result<()> {
        transfer(&pair.mobile, &pair.gateway, self.inside[1], OCTETS)?;
        transfer(&pair.gateway, &pair.mobile, self.inside[0], OCTETS)
    }
}

fn held(zones: &Value) -> Vec<Value> {
    let held = zones["zones"]["held"].as_array();
    held.cloned().unwrap_or_default()
}

/// Counts the first map words of zoned packets that passed, except opaque ones.
fn words(tap: &Wiretap) -> Result<BTreeMap<[u8; 4], usize>> {
    let mut words = BTreeMap::new();
    while let Some(seen) = tap.next()? {
        if let Some(word) = seen.esp().and_then(|packet| packet[8..].first_chunk())
            && word[0] & 15 > 1
        {
            *words.entry(*word).or_insert(0) += 1;
        }
    }
    Ok(words)
}

/// The TCP header of Linux's segments has 32 octets with both versions of IP.
fn in_zones(ends: Ends, lines: &str) -> Result<()> {
    let pair = Pair::new("zonemode")?;
    let tunnel = ends.up(&pair, lines)?;
    let tap = Wiretap::open(&pair.between)?;
    ends.carry(&pair)?;
    let seen = words(&tap)?;
    let segments = seen.get(&[0x42, 1, 0, 32]).copied();
    ensure!(segments > Some(100), "{seen:?}");
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        let children = pair::children(&status);
        let [child] = children.as_slice() else {
            bail!("not one: {status}");
        };
        ensure!(
            child["mode"] == ends.mode && child["kind"] == "zoned",
            "{child}"
        );
        pair::no_drops(&status)?;
        let zones = daemon.strata("zones")?;
        ensure!(zones["zones"]["composites"][0].is_object(), "{zones}");
    }
    Ok(())
}

// Works: zones-in-modes
#[lab::test]
fn transport_mode_is_in_zones_over_ipv4() -> Result<()> {
    in_zones(TRANSPORT, ZONES)
}

// Works: zones-in-modes
#[lab::test]
fn transport_mode_is_in_zones_over_ipv6() -> Result<()> {
    let ends = Ends {
        outside: V6,
        inside: V6,
        ..TRANSPORT
    };
    in_zones(ends, &[ZONES, LAYOUT].concat())
}

// Works: zones-in-modes
#[lab::test]
fn beet_mode_is_in_zones_with_ipv4_inside() -> Result<()> {
    let ends = Ends {
        outside: V6,
        ..BEET
    };
    in_zones(ends, &[ZONES, LAYOUT].concat())
}

// Works: zones-in-modes
#[lab::test]
fn beet_mode_is_in_zones_with_ipv6_inside() -> Result<()> {
    let ends = Ends {
        inside: [MOBILE[1], GATEWAY[1]],
        ..BEET
    };
    in_zones(ends, ZONES)
}

fn lossy() -> sim::Settings {
    pair::hop(1.0 / 300_000.0)
}

/// Downloads over a hop that loses one in twenty-five full packets; returns the node's
/// retransmissions.
fn download(ends: Ends, list: &str) -> Result<u64> {
    let pair = Pair::with_lossy_hop("zonemode", lossy())?;
    let (licensed, _tunnel) = ends.up_with_node(&pair, list)?;
    transfer(&pair.gateway, &pair.mobile, ends.inside[0], MANY)?;
    let seen = pair::segments(&licensed)?;
    ensure!((seen > 1000) == (list != NOBODY), "{seen} segments");
    pair::repaired(&licensed)
}

// Works: zones-in-modes
#[lab::test]
fn a_licensed_node_repairs_a_download_in_transport_mode() -> Result<()> {
    let count = download(TRANSPORT, HEADERS)?;
    ensure!(count > 10, "{count}");
    Ok(())
}

// Works: zones-in-modes
#[lab::test]
fn a_licensed_node_repairs_a_download_in_beet_mode() -> Result<()> {
    let count = download(BEET, HEADERS)?;
    ensure!(count > 10, "{count}");
    Ok(())
}

/// Negative control: the same node and hop without a key.
// Refuses: zones-in-modes
#[lab::test]
fn without_a_licence_nothing_is_repaired() -> Result<()> {
    for ends in [TRANSPORT, BEET] {
        let count = download(ends, NOBODY)?;
        ensure!(count == 0, "{count}");
    }
    Ok(())
}

/// Neither the packets nor the gateway reveal addresses to the node.
// Works: zones-in-modes
// Answers: licence-modes
#[lab::test]
fn a_licensed_node_sees_ports_and_no_address() -> Result<()> {
    for ends in [TRANSPORT, BEET] {
        let pair = Pair::new("zonemode")?;
        let (licensed, _tunnel) = ends.up_with_node(&pair, HEADERS)?;
        let (mut near, mut far) = connect(&pair.mobile, &pair.gateway, ends.inside[1])?;
        far.write_all(&[7; 10_000])?;
        near.read_exact(&mut [0; 10_000])?;
        let port = near.local_addr()?.port();
        let sees = |flows: &Value| flows.to_string().contains(&format!(":{port}\""));
        let flows = licensed.wait_until("flows", DEADLINE, sees)?;
        let text = licensed.strata_text("flows")?;
        ensure!(text.contains(&format!("*:{port}")), "{text}");
        let inside = ends
            .inside
            .iter()
            .any(|address| flows.to_string().contains(address));
        ensure!(!inside, "{flows}");
    }
    Ok(())
}

// Works: zones-in-modes
#[lab::test]
fn a_writer_lowers_the_window_in_beet_mode() -> Result<()> {
    const WRITE: &str = r#"[{ node = "fa.example.net", zones = ["headers"], right = "write" }]"#;
    let pair = Pair::new("zonemode")?;
    let config = licensed_config(LICENSED) + "[regulate]\nwindow = \"32KiB\"\n";
    let licensed = pair.start_licensed_as(&config)?;
    let tunnel = BEET.up(&pair, &licences(WRITE))?;
    licensed.wait_until("zones", DEADLINE, |zones| !held(zones).is_empty())?;
    transfer(&pair.gateway, &pair.mobile, BEET.inside[0], OCTETS)?;
    let status = tunnel.gateway.strata("status")?;
    ensure!(status["status"]["written"].as_u64() > Some(10), "{status}");
    pair::no_drops(&status)
}

// Works: zones-in-modes
#[lab::test]
fn a_fixed_map_is_of_the_transport_header_alone() -> Result<()> {
    let pair = Pair::new("zonemode")?;
    let lines = [ZONES, LAYOUT, "map = [\"32 transport\"]\n"].concat();
    let tunnel = TRANSPORT.up(&pair, &lines)?;
    let tap = Wiretap::open(&pair.between)?;
    TRANSPORT.carry(&pair)?;
    let zones = tunnel.mobile.strata("zones")?;
    let shown = &zones["zones"]["composites"][0];
    let spi = shown["spi_out"].as_str().context("no SPI")?.to_owned();
    let (mut on_it, mut others) = (0, 0);
    while let Some(seen) = tap.next()? {
        if let Some(packet) = seen.esp() {
            let own: String = packet[..4]
                .iter()
                .map(|octet| format!("{octet:02x}"))
                .collect();
            let counted = if own == spi { &mut on_it } else { &mut others };
            *counted += 1;
        }
    }
    ensure!(on_it > 50 && others > 0, "{on_it} and {others}: {shown}");
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

// Recovers: zones-in-modes
#[lab::test]
fn no_datagram_is_lost_while_there_are_new_keys() -> Result<()> {
    for ends in [TRANSPORT, BEET] {
        let pair = Pair::new("zonemode")?;
        let mut tunnel = ends.up(&pair, ZONES)?;
        volleys(
            (&pair.mobile, ends.inside[0]),
            (&pair.gateway, ends.inside[1]),
            || {
                (0..5).try_for_each(|round| {
                    tunnel.rekey(round)?;
                    ends.carry(&pair)
                })
            },
        )?;
        for daemon in [&tunnel.mobile, &tunnel.gateway] {
            pair::no_drops(&daemon.strata("status")?)?;
        }
    }
    Ok(())
}

/// The last segments of a connection pass the node after its last octet has arrived. The node's
/// counter is therefore read only when it holds no grant any more.
// Recovers: zones-in-modes
#[lab::test]
fn a_licence_taken_back_leaves_nothing_to_read() -> Result<()> {
    let pair = Pair::new("zonemode")?;
    let (licensed, tunnel) = TRANSPORT.up_with_node(&pair, HEADERS)?;
    TRANSPORT.carry(&pair)?;
    let [_, without] = TRANSPORT.configs([ZONES; 2]);
    tunnel.gateway.change(&without)?;
    licensed.wait_until("zones", DEADLINE, |zones| held(zones).is_empty())?;
    let before = pair::segments(&licensed)?;
    ensure!(before > 0, "the node has read nothing");
    TRANSPORT.carry(&pair)?;
    let after = pair::segments(&licensed)?;
    ensure!(after == before, "{after} segments, {before} before");
    Ok(())
}

// Refuses: zones-in-modes
#[lab::test]
fn zones_that_begin_elsewhere_are_told_with_the_fix() -> Result<()> {
    let pair = Pair::new("zonemode")?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    let blocks = "layout = [\"headers\", { zone = \"payload\", suite = \"aes128-sha256\" }]\n";
    for (ends, lines, words) in [
        (
            TRANSPORT,
            [ZONES, "layout = [\"ip\", \"payload\"]\n"].concat(),
            "write \"headers\" or \"transport\"",
        ),
        (
            BEET,
            [ZONES, "layout = [\"octets 1-3\", \"payload\"]\n"].concat(),
            "begin with \"headers\", \"transport\" or \"octets 0-3\"",
        ),
        (
            BEET,
            [&licences(HEADERS), blocks].concat(),
            "give the payload a suite without padding",
        ),
        (
            TRANSPORT,
            [ZONES, "tfc = \"mtu\"\n"].concat(),
            "write `tfc = \"off\"`, or `mode = \"tunnel\"`",
        ),
    ] {
        let [config, _] = ends.configs([&lines; 2]);
        pair.mobile.file("strata.toml", &config)?;
        let Err(refusal) = strata(&pair.mobile, "check strata.toml") else {
            bail!("it was taken: {config}");
        };
        ensure!(format!("{refusal:?}").contains(words), "{refusal:?}");
    }
    Ok(())
}

// Refuses: zones-in-modes
#[lab::test]
fn layouts_that_differ_make_nothing_where_zones_are_required() -> Result<()> {
    let pair = Pair::new("zonemode")?;
    let other = [ZONES, LAYOUT].concat();
    let tunnel = TRANSPORT.start(&pair, [ZONES, &other])?;
    tunnel.mobile.refuses("up office --wait=5", "zones")?;
    let none = |status: &Value| pair::children(status).is_empty();
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        daemon.wait_until("status", DEADLINE, none)?;
    }
    Ok(())
}

// Recovers: zones-in-modes
#[lab::test]
fn zones_that_come_with_a_reload_make_it_anew() -> Result<()> {
    let pair = Pair::new("zonemode")?;
    let tunnel = BEET.up(&pair, "")?;
    BEET.carry(&pair)?;
    let [mobile, gateway] = BEET.configs([ZONES; 2]);
    for (daemon, config) in [(&tunnel.gateway, &gateway), (&tunnel.mobile, &mobile)] {
        daemon.change(config)?;
    }
    tunnel.mobile.strata_text("up office --wait")?;
    let zoned = |status: &Value| {
        let children = pair::children(status);
        !children.is_empty() && children.iter().all(|child| child["kind"] == "zoned")
    };
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        daemon.wait_until("status", DEADLINE, zoned)?;
    }
    BEET.carry(&pair)
}
