//! The configurations of both ends determine the zones of a packet. The tests check the maps, which
//! are in clear on the wire, and the view of a licensed node with keys for some zones.

use anyhow::{Context, Result, bail, ensure};
use lab::account::{expect_fix, expect_row, wait};
use lab::host::Host;
use lab::pair::{
    self, DEADLINE, GATEWAY, LICENSED, MOBILE, NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel,
};
use lab::transfer::{connect, transfer};
use lab::wiretap::{Seen, Wiretap};
use os::Family;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

const OCTETS: u64 = 300_000;

const THREE: &str = r#"["ip", "transport", "payload"]"#;

const MIXED: &str = r#"[
    { zone = "ip", suite = "chacha20poly1305" },
    { zone = "transport", suite = "aes128gcm16" },
    { zone = "payload", suite = "aes256gcm16" },
]"#;

/// Suites without an AEAD: GMAC, a stream cipher and a block cipher, with a truncated and a full
/// HMAC.
const OLD: &str = r#"[
    { zone = "ip", suite = "aes128gmac" },
    { zone = "transport", suite = "aes256ctr-sha256" },
    { zone = "payload", suite = "aes128-sha512_512" },
]"#;

const BLOCKS: &str = r#"[
    { zone = "headers", suite = "aes256-sha384" },
    { zone = "payload", suite = "aes128-sha256_256" },
]"#;

const EIGHT: &str = r#"["octets 0-7", "octets 8-11", "octets 12-19", "octets 20-23", "octets 24-31",
    "octets 32-35", "transport", "payload"]"#;

const MEDIA: &str = r#"["headers", "rtp 5004-5007", "payload"]"#;

/// A packet whose first octets mark it as RTP: version 2, two contributors, payload type 96.
const RTP: [u8; 40] = {
    let mut packet = [0x55; 40];
    (packet[0], packet[1]) = (0x82, 96);
    packet
};

/// Length of the RTP header with its two contributors.
const RTP_HEADER: u16 = 12 + 2 * 4;

/// Header lengths of a TCP segment with timestamps.
const IP: u16 = 20;
const TCP: u16 = 20 + 12;
const UDP: u16 = 8;

/// Returns the mobile node's and the gateway's configuration with these layouts.
fn configs(terms: Terms<'_>, layouts: [&str; 2]) -> [String; 2] {
    let configs = [
        pair::mobile_config(Family::V4, terms, "manual"),
        pair::gateway_config(terms),
    ];
    let zones = format!("zones = \"{}\"", terms.zones);
    let mut layouts = layouts.into_iter();
    configs.map(|config| {
        let layout = layouts.next().unwrap_or_default();
        config.replace(&zones, &format!("{zones}\nlayout = {layout}"))
    })
}

fn start(pair: &Pair, [mobile, gateway]: &[String; 2]) -> Result<Tunnel> {
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    pair.gateway.secret("tunnel.psk", TUNNEL_KEY)?;
    pair.gateway.secret("node.psk", NODE_KEY)?;
    Ok(Tunnel {
        gateway: pair.gateway.stratad(gateway)?,
        mobile: pair.mobile.stratad(mobile)?,
    })
}

// Works: zones
// Answers: sight-none
#[lab::test]
fn headers_are_cut_apart_and_each_zone_has_its_suite() -> Result<()> {
    let pair = Pair::new("layout")?;
    let tunnel = start(&pair, &configs(Terms::ZONED, [MIXED, MIXED]))?;
    let tap = Wiretap::open(&pair.between)?;
    tunnel.up()?;
    each_way(&pair)?;
    let maps = maps(&tap)?;
    ensure!(
        maps.iter().any(|map| map[..] == [(1, IP), (2, TCP)]),
        "no segment is cut apart: {maps:?}"
    );
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let zones = daemon.strata("zones")?;
        let shown = &zones["zones"]["composites"][0]["zones"];
        let expected = json!([
            { "serial": 1, "name": "ip", "suite": "chacha20poly1305" },
            { "serial": 2, "name": "transport", "suite": "aes128gcm16" },
            { "serial": 3, "name": "payload", "suite": "aes256gcm16" },
        ]);
        ensure!(shown == &expected, "{zones}");
        let text = daemon.strata_text("zones")?;
        ensure!(text.contains("transport"), "{text}");
    }
    Ok(())
}

/// Loses one in sixteen full packets.
const LOSSY: sim::Settings = sim::Settings {
    rate: std::num::NonZeroU64::new(20_000_000),
    delay: Duration::from_millis(5),
    queue: 100,
    bit_error_rate: 1.0 / 200_000.0,
};

// Recovers: zones
#[lab::test]
fn eight_zones_carry_a_download_over_a_lossy_hop() -> Result<()> {
    let pair = Pair::with_lossy_hop("layout", LOSSY)?;
    let tunnel = start(&pair, &configs(Terms::ZONED, [EIGHT, EIGHT]))?;
    let tap = Wiretap::open(&pair.between)?;
    tunnel.up()?;
    each_way(&pair)?;
    let runs = [
        (1, 8),
        (2, 4),
        (3, 8),
        (4, 4),
        (5, 8),
        (6, 4),
        (7, TCP - 16),
    ];
    let maps = maps(&tap)?;
    ensure!(maps.iter().any(|map| map[..] == runs), "{maps:?}");
    Ok(())
}

/// The payload has padding, so the node takes the length of a segment from its IP header.
// Works: zones
#[lab::test]
fn suites_of_every_kind_are_mixed_and_a_node_reads_its_own() -> Result<()> {
    let licences =
        format!(r#"[{{ node = "{LICENSED}", zones = ["ip", "transport"], right = "read" }}]"#);
    let terms = Terms {
        zones: "require",
        licences: &licences,
    };
    let pair = Pair::new("layout")?;
    let node = pair.start_licensed(LICENSED)?;
    let tunnel = start(&pair, &configs(terms, [OLD, OLD]))?;
    tunnel.up()?;
    let holds = |zones: &Value| !zones["zones"]["held"][0].is_null();
    node.wait_until("zones", DEADLINE, holds)?;
    each_way(&pair)?;
    let cached = |flows: &Value| flows["flows"]["total"]["cached"].as_u64() > Some(50);
    node.wait_until("flows", DEADLINE, cached)?;
    let zones = tunnel.gateway.strata("zones")?;
    let suites = ["aes128gmac", "aes256ctr-sha256", "aes128-sha512_512"];
    for (place, suite) in suites.iter().enumerate() {
        let zone = &zones["zones"]["composites"][0]["zones"][place];
        ensure!(zone["suite"] == *suite, "{zones}");
    }
    Ok(())
}

// Recovers: zones
#[lab::test]
fn blocks_carry_a_download_over_a_lossy_hop() -> Result<()> {
    let pair = Pair::with_lossy_hop("layout", LOSSY)?;
    let tunnel = start(&pair, &configs(Terms::ZONED, [BLOCKS, BLOCKS]))?;
    tunnel.up()?;
    each_way(&pair)?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        pair::no_drops(&daemon.strata("status")?)?;
    }
    Ok(())
}

/// GMAC leaves the inner addresses of the IP header in clear; a suite that encrypts hides them.
// Works: zones
// Answers: sight-gmac
#[lab::test]
fn a_zone_with_gmac_is_read_by_whoever_stands_on_the_way() -> Result<()> {
    let encrypted = OLD.replace("aes128gmac", "aes128ctr-sha256");
    for (layout, shown) in [(OLD, true), (&encrypted, false)] {
        let pair = Pair::new("layout")?;
        let tunnel = start(&pair, &configs(Terms::ZONED, [layout, layout]))?;
        let tap = Wiretap::open(&pair.between)?;
        tunnel.up()?;
        each_way(&pair)?;
        let inside = [MOBILE[0], GATEWAY[0]].map(|address| address.parse::<Ipv4Addr>());
        let [mobile, gateway] = inside;
        let addresses = [mobile?.octets(), gateway?.octets()].concat();
        let mut seen = 0;
        while let Some(packet) = tap.next()? {
            let found = packet.octets.windows(8).any(|part| part == addresses);
            seen += u32::from(found);
        }
        ensure!(
            (seen > 100) == shown && (seen == 0) != shown,
            "{seen} packets"
        );
    }
    Ok(())
}

/// A node with the IP header alone sees no connection; with the transport header it does.
// Works: zones
// Answers: licence-smaller
#[lab::test]
fn a_node_reads_the_zones_of_its_licence_and_no_other() -> Result<()> {
    for (zones, opens) in [
        (r#"["ip"]"#, json!([1])),
        (r#"["ip", "transport"]"#, json!([1, 2])),
    ] {
        let licences = format!(r#"[{{ node = "{LICENSED}", zones = {zones}, right = "read" }}]"#);
        let terms = Terms {
            zones: "require",
            licences: &licences,
        };
        let pair = Pair::new("layout")?;
        let node = pair.start_licensed(LICENSED)?;
        let tunnel = start(&pair, &configs(terms, [THREE, THREE]))?;
        tunnel.up()?;
        let holds = |zones: &Value| !zones["zones"]["held"][0].is_null();
        let zones = node.wait_until("zones", DEADLINE, holds)?;
        let grant = &zones["zones"]["held"][0];
        ensure!(
            grant["opens"] == opens && grant["payload_zone"] == 3,
            "{grant}"
        );
        let (mut near, mut far) = connect(&pair.mobile, &pair.gateway, GATEWAY[0])?;
        far.write_all(&[7; 10_000])?;
        near.read_exact(&mut [0; 10_000])?;
        let sees = |flows: &Value| flows["flows"]["flows"].as_array().map(Vec::len) > Some(0);
        match opens == json!([1]) {
            // The received packets passed the node earlier.
            true => ensure!(!sees(&node.strata("flows")?), "it reads transport headers"),
            false => drop(node.wait_until("flows", DEADLINE, sees)?),
        }
    }
    Ok(())
}

// Works: zones
#[lab::test]
fn rtp_is_a_zone_of_its_own_between_the_media_ports() -> Result<()> {
    let pair = Pair::new("layout")?;
    let tunnel = start(&pair, &configs(Terms::ZONED, [MEDIA, MEDIA]))?;
    tunnel.up()?;
    let media = vec![(1, IP + UDP), (2, RTP_HEADER)];
    let other = vec![(1, IP + UDP)];
    let rtcp = [[0x80, 200].as_slice(), &RTP[2..]].concat();
    for (ports, octets, expected) in [
        ([5004, 5006], &RTP[..], &media),
        ([5004, 5353], &RTP[..], &other),
        ([5005, 5007], &rtcp[..], &other),
    ] {
        let tap = Wiretap::open(&pair.between)?;
        let bind = |host: &Host, address: &str, port: u16| {
            let address: IpAddr = address.parse()?;
            host.inside(|| Ok(UdpSocket::bind((address, port))?))
        };
        let near = bind(&pair.mobile, MOBILE[0], ports[0])?;
        let far = bind(&pair.gateway, GATEWAY[0], ports[1])?;
        far.set_read_timeout(Some(DEADLINE))?;
        near.send_to(octets, far.local_addr()?)?;
        let mut arrived = [0; 100];
        let count = far.recv(&mut arrived).context("it does not arrive")?;
        ensure!(arrived[..count] == *octets, "{:?}", &arrived[..count]);
        let maps = maps(&tap)?;
        ensure!(
            maps.iter().all(|map| map == expected),
            "{ports:?}: {maps:?}"
        );
    }
    Ok(())
}

// Refuses: zones
#[lab::test]
fn layouts_that_differ_make_no_tunnel_where_zones_are_required() -> Result<()> {
    no_tunnel([THREE, r#"["headers", "payload"]"#], "zone = \"ip\"")
}

// Refuses: zones
#[lab::test]
fn a_suite_that_differs_makes_no_tunnel() -> Result<()> {
    no_tunnel([MIXED, THREE], "suite = \"chacha20poly1305\"")
}

/// Both ends report the zones as the reason. The gateway knows both layouts and reports the line to
/// write.
fn no_tunnel(layouts: [&str; 2], fix: &str) -> Result<()> {
    let pair = Pair::new("layout")?;
    let configs = configs(Terms::ZONED, layouts);
    let tunnel = start(&pair, &configs)?;
    let Err(refusal) = tunnel.up() else {
        bail!("a tunnel with zones that are not the same");
    };
    ensure!(format!("{refusal:?}").contains("zones"), "{refusal:?}");
    let explained = wait(&tunnel.gateway, "alice", "failed")?;
    expect_row(&explained["attempt"], "zones", "differs")?;
    expect_fix(&explained["attempt"], "peer.alice.layout", &configs[1], fix)?;
    let explained = wait(&tunnel.mobile, "office", "failed")?;
    let there = "write the same `layout` and `map` as the peer";
    expect_fix(
        &explained["attempt"],
        "peer.office.layout",
        &configs[0],
        there,
    )
}

// Recovers: zones
#[lab::test]
fn layouts_that_differ_make_a_plain_tunnel_where_that_is_accepted() -> Result<()> {
    let accept = Terms {
        zones: "accept",
        ..Terms::ZONED
    };
    let pair = Pair::new("layout")?;
    let tunnel = start(&pair, &configs(accept, [THREE, MEDIA]))?;
    tunnel.up()?;
    for child in tunnel.children()?.iter().flatten() {
        ensure!(child["kind"] == "plain", "{child}");
    }
    each_way(&pair)
}

fn each_way(pair: &Pair) -> Result<()> {
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], OCTETS)
}

/// Returns the maps of all zoned packets that passed: zone and length of each run but the last.
/// Maps are in clear (DESIGN section 3), so every node on the path can read them.
fn maps(tap: &Wiretap) -> Result<Vec<Vec<(u8, u16)>>> {
    let mut maps = Vec::new();
    while let Some(seen) = tap.next()? {
        maps.extend(map(&seen));
    }
    ensure!(!maps.is_empty(), "no sealed packet passed");
    Ok(maps)
}

/// Returns `None` for IKE, which starts with four zero octets, for an opaque packet, and for other
/// protocols.
fn map(seen: &Seen) -> Option<Vec<(u8, u16)>> {
    const TO_ESP: usize = 20 + 8;
    let [17, ..] = seen.octets.get(9..)? else {
        return None;
    };
    let [a, b, c, d] = *seen.octets.get(TO_ESP..)?.first_chunk()?;
    let words = seen.octets.get(TO_ESP + 8..)?;
    let count = usize::from(words.first()? & 0x0f).checked_sub(1)?;
    let word = |word: &[u8]| (word[1], u16::from_be_bytes([word[2], word[3]]));
    let runs = words.get(..4 * count)?.chunks_exact(4).map(word);
    ([a, b, c, d] != [0; 4] && count > 0).then(|| runs.collect())
}
