//! Maps fixed in the SA (DESIGN section 3): packets do not carry a map, and packets that do not
//! match it use an opaque SA. A licensed node reads matching packets only.

use anyhow::{Context, Result, bail, ensure};
use lab::account::{expect_fix, expect_row, wait};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::pair::{
    self, DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, TUNNEL_KEY, Terms, Tunnel, segments,
};
use lab::plain;
use lab::transfer::transfer;
use lab::volley::volleys;
use lab::wiretap::Wiretap;
use os::Family;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

/// Headers of UDP over IPv4.
const UDP: &str = r#"["28 headers"]"#;

/// Headers of TCP over IPv4 with timestamps.
const TCP: &str = r#"["52 headers"]"#;

/// Length of the test datagrams, in octets.
const LENGTH: usize = 100;

/// Returns the mobile node's and the gateway's configuration with these maps. There are no probes
/// of the path, whose lengths would be among those of datagrams.
fn configs(terms: Terms<'_>, maps: [Option<&str>; 2]) -> [String; 2] {
    let zones = format!("zones = \"{}\"", terms.zones);
    let with = |config: String, map: Option<&str>| match map {
        Some(map) => config.replace(&zones, &format!("{zones}\nmap = {map}")),
        None => config,
    };
    let with = |config: String, map| {
        let config = with(config, map);
        plain::in_table(&config, "[tunnel]", "path_mtu = \"off\"")
    };
    [
        with(pair::mobile_config(Family::V4, terms, "manual"), maps[0]),
        with(pair::gateway_config(terms), maps[1]),
    ]
}

fn up(pair: &Pair, terms: Terms<'_>, map: Option<&str>) -> Result<Tunnel> {
    let tunnel = plain::start_with(pair, &configs(terms, [map; 2]))?;
    tunnel.up()?;
    Ok(tunnel)
}

/// Returns the newest composite SA of `strata zones`.
fn composite(daemon: &Daemon) -> Result<Value> {
    let zones = daemon.strata("zones")?;
    let composites = zones["zones"]["composites"].as_array();
    let newest = composites.and_then(|composites| composites.last());
    Ok(newest.context("no composite SA")?.clone())
}

/// Sends one datagram from the mobile node to the gateway.
fn send(pair: &Pair) -> Result<()> {
    let bind = |host: &lab::host::Host, address: &str| {
        let address: IpAddr = address.parse()?;
        host.inside(|| Ok(UdpSocket::bind((address, 0))?))
    };
    let (near, far) = (
        bind(&pair.mobile, MOBILE[0])?,
        bind(&pair.gateway, GATEWAY[0])?,
    );
    far.set_read_timeout(Some(DEADLINE))?;
    near.send_to(&[7; LENGTH], far.local_addr()?)?;
    let mut arrived = [0; LENGTH + 1];
    let count = far.recv(&mut arrived).context("it does not arrive")?;
    ensure!(arrived[..count] == [7; LENGTH], "{:?}", &arrived[..count]);
    Ok(())
}

/// Returns the lengths of the mobile node's ESP packets that passed, by SPI.
fn lengths(tap: &Wiretap) -> Result<BTreeMap<String, BTreeSet<usize>>> {
    let mut lengths = BTreeMap::<_, BTreeSet<_>>::new();
    while let Some(seen) = tap.next()? {
        if let Some(packet) = seen.esp() {
            let spi = packet[..4].iter().map(|octet| format!("{octet:02x}"));
            lengths
                .entry(spi.collect())
                .or_default()
                .insert(packet.len());
        }
    }
    Ok(lengths)
}

// Works: fixed-maps
// Answers: sight-none
#[lab::test]
fn packets_that_the_map_fits_are_four_octets_shorter_and_all_others_go_beside() -> Result<()> {
    let datagram = 20 + 8 + LENGTH;
    // SPI and sequence number, the next header, two ICVs; a map in the packet adds four octets.
    for (map, sealed) in [
        (Some(UDP), datagram + 8 + 1 + 32),
        (None, datagram + 12 + 1 + 32),
    ] {
        let pair = Pair::new("map")?;
        let tunnel = up(&pair, Terms::ZONED, map)?;
        let shown = composite(&tunnel.mobile)?;
        let text = |name: &str| shown[name].as_str().unwrap_or_default().to_owned();
        let (out, opaque) = (text("spi_out"), text("spi_opaque_out"));
        let tap = Wiretap::open(&pair.between)?;
        send(&pair)?;
        let seen = lengths(&tap)?;
        ensure!(
            seen.len() == 1 && seen[&out] == BTreeSet::from([sealed]),
            "{seen:?} {shown}"
        );
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 300_000)?;
        let segments = lengths(&tap)?;
        let spis = segments.keys();
        let ours: Vec<_> = spis.filter(|spi| [&out, &opaque].contains(spi)).collect();
        let expected = if map.is_some() { &opaque } else { &out };
        ensure!(ours == [expected], "segments on {ours:?}: {shown}");
        let known = tunnel.gateway.strata_text("zones")?;
        let told = known.contains("map     28 headers, in every packet") && known.contains(&opaque);
        ensure!(told == map.is_some(), "{known}");
    }
    Ok(())
}

/// The same node with the same keys, once with the header length of Linux's segments and once with
/// another length. With the latter it opens none.
// Works: fixed-maps
// Answers: licence-headers
#[lab::test]
fn a_node_reads_what_the_map_fits_and_nothing_else() -> Result<()> {
    for (map, reads) in [(TCP, true), (r#"["44 headers"]"#, false)] {
        let pair = Pair::new("map")?;
        let licensed = pair.start_licensed(LICENSED)?;
        let tunnel = up(&pair, Terms::LICENSED, Some(map))?;
        licensed.wait_until("zones", DEADLINE, |zones| !held(zones).is_empty())?;
        send(&pair)?;
        ensure!(segments(&licensed)? == 0, "a datagram of UDP is none");
        transfer(&pair.gateway, &pair.mobile, MOBILE[0], 1_000_000)?;
        let seen = segments(&licensed)?;
        ensure!(
            (seen > 500) == reads && (reads || seen == 0),
            "{map}: {seen}"
        );
        pair::no_drops(&tunnel.gateway.strata("status")?)?;
    }
    Ok(())
}

fn held(zones: &Value) -> Vec<Value> {
    zones["zones"]["held"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

/// Datagrams use one of the two SAs, segments and echoes the other.
// Recovers: fixed-maps
#[lab::test]
fn no_datagram_is_lost_while_both_get_new_keys() -> Result<()> {
    let pair = Pair::new("map")?;
    let mut tunnel = up(&pair, Terms::ZONED, Some(UDP))?;
    let before = composite(&tunnel.mobile)?;
    volleys(
        (&pair.mobile, MOBILE[0]),
        (&pair.gateway, GATEWAY[0]),
        || {
            (0..6).try_for_each(|round| {
                tunnel.rekey(round)?;
                transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 300_000)
            })
        },
    )?;
    let after = composite(&tunnel.mobile)?;
    for spi in ["spi_in", "spi_out", "spi_opaque_in", "spi_opaque_out"] {
        ensure!(
            after[spi].is_string() && after[spi] != before[spi],
            "{before} {after}"
        );
    }
    pair::no_drops(&tunnel.gateway.strata("status")?)?;
    pair::no_drops(&tunnel.mobile.strata("status")?)
}

/// Loses one in sixteen full packets. Acknowledgements with SACK have longer headers and use the
/// opaque SA.
// Recovers: fixed-maps
#[lab::test]
fn a_download_comes_through_a_lossy_hop() -> Result<()> {
    let hop = sim::Settings {
        rate: std::num::NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        bit_error_rate: 1.0 / 200_000.0,
    };
    let pair = Pair::with_lossy_hop("map", hop)?;
    let tunnel = up(&pair, Terms::ZONED, Some(TCP))?;
    let shown = composite(&tunnel.mobile)?;
    let tap = Wiretap::open(&pair.between)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 300_000)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 300_000)?;
    let seen = lengths(&tap)?;
    for spi in ["spi_out", "spi_opaque_out"] {
        let spi = shown[spi].as_str().context("no SPI")?;
        ensure!(seen.contains_key(spi), "nothing on {spi}: {seen:?}");
    }
    Ok(())
}

/// The last segments of a connection pass the node after its last octet has arrived. The node's
/// counter is therefore read only when it holds no grant any more.
// Works: fixed-maps
#[lab::test]
fn a_licence_taken_back_leaves_nothing_to_read() -> Result<()> {
    let pair = Pair::new("map")?;
    let licensed = pair.start_licensed(LICENSED)?;
    let configs = configs(Terms::LICENSED, [Some(TCP); 2]);
    let tunnel = plain::start_with(&pair, &configs)?;
    tunnel.up()?;
    licensed.wait_until("zones", DEADLINE, |zones| !held(zones).is_empty())?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 300_000)?;
    let licence = format!("licences = {}", pair::HEADERS);
    let without = configs[1].replace(&licence, "licences = []");
    ensure!(without != configs[1], "no licence in {}", configs[1]);
    tunnel.gateway.change(&without)?;
    licensed.wait_until("zones", DEADLINE, |zones| held(zones).is_empty())?;
    let before = segments(&licensed)?;
    ensure!(before > 0, "the node has read nothing");
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 300_000)?;
    let after = segments(&licensed)?;
    ensure!(after == before, "{after} segments, {before} before");
    ensure!(
        composite(&tunnel.mobile)?["map"][0] == "52 headers",
        "another map"
    );
    Ok(())
}

// Refuses: fixed-maps
#[lab::test]
fn maps_that_differ_make_no_tunnel_where_zones_are_required() -> Result<()> {
    for (maps, fix) in [
        ([Some(UDP), Some(TCP)], "write `map = [\"28 headers\"]`"),
        ([None, Some(TCP)], "the map is not fixed at the peer"),
    ] {
        let pair = Pair::new("map")?;
        let configs = configs(Terms::ZONED, maps);
        let tunnel = plain::start_with(&pair, &configs)?;
        let Err(refusal) = tunnel.up() else {
            bail!("a tunnel with maps that are not the same");
        };
        ensure!(format!("{refusal:?}").contains("zones"), "{refusal:?}");
        let explained = wait(&tunnel.gateway, "alice", "failed")?;
        expect_row(&explained["attempt"], "zones", "differs")?;
        expect_fix(&explained["attempt"], "peer.alice.map", &configs[1], fix)?;
        let explained = wait(&tunnel.mobile, "office", "failed")?;
        let there = "and `map` as the peer";
        expect_fix(
            &explained["attempt"],
            "peer.office.layout",
            &configs[0],
            there,
        )?;
    }
    Ok(())
}

// Recovers: fixed-maps
#[lab::test]
fn a_fixed_map_and_a_changeable_one_make_a_plain_tunnel_where_that_is_accepted() -> Result<()> {
    let accept = Terms {
        zones: "accept",
        ..Terms::ZONED
    };
    let pair = Pair::new("map")?;
    let tunnel = plain::start_with(&pair, &configs(accept, [Some(UDP), None]))?;
    tunnel.up()?;
    for child in tunnel.children()?.iter().flatten() {
        ensure!(child["kind"] == "plain", "{child}");
    }
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 300_000)
}

// Refuses: fixed-maps
#[lab::test]
fn a_map_that_no_packet_could_carry_is_told_with_the_fix() -> Result<()> {
    let pair = Pair::new("map")?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    for (map, words) in [
        (
            r#"["20 payload"]"#,
            "begin with the first zone, like \"52 headers\"",
        ),
        (r#"["20 headers", "20 payload"]"#, "remove the last entry"),
        (r#"["headers"]"#, "write a number of octets and a zone"),
    ] {
        let [config, _] = configs(Terms::ZONED, [Some(map), None]);
        pair.mobile.file("strata.toml", &config)?;
        let Err(refusal) = strata(&pair.mobile, "check strata.toml") else {
            bail!("it was taken: {config}");
        };
        ensure!(format!("{refusal:?}").contains(words), "{refusal:?}");
    }
    Ok(())
}
