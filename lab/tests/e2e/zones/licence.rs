//! A licensed node reads the zones that both ends allow, and nothing without the agreement of both.

use anyhow::{Result, bail, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, GATEWAY, HEADERS, LICENSED, MOBILE, NOBODY, Pair, Terms, Tunnel};
use lab::plain;
use lab::transfer::{connect, transfer};
use lab::wiretap::Wiretap;
use os::Family;
use serde_json::{Value, json};
use std::io::{Read, Write};

const OCTETS: u64 = 1_000_000;

const ALL: &str =
    r#"[{ node = "fa.example.net", zones = ["headers", "payload"], right = "read" }]"#;

/// Terms that require zones and accept these licences.
const fn licensing(licences: &str) -> Terms<'_> {
    Terms {
        zones: "require",
        licences,
    }
}

// Works: licences
// Works: licensed-node
#[lab::test]
fn a_licensed_node_opens_the_headers_and_no_payload() -> Result<()> {
    let (pair, licensed, tunnel) = start(LICENSED, HEADERS, HEADERS)?;
    tunnel.up()?;
    let zones = licensed.wait_until("zones", DEADLINE, |zones| held(zones).len() == 1)?;
    let grant = &held(&zones)[0];
    ensure!(
        grant["opens"] == json!([1]) && grant["payload_zone"] == 2,
        "{grant}"
    );
    ensure!(grant["identity"] == "gw.example.net", "{grant}");
    let has_it = |zones: &Value| {
        holders(zones)
            .iter()
            .any(|holder| holder["state"] == "held")
    };
    let zones = tunnel.gateway.wait_until("zones", DEADLINE, has_it)?;
    for zones in [zones, tunnel.mobile.strata("zones")?] {
        let [holder] = &holders(&zones)[..] else {
            bail!("not one holder: {zones}");
        };
        ensure!(
            holder["node"] == LICENSED && holder["zones"] == json!(["headers"]),
            "{holder}"
        );
    }
    each_way(&pair)
}

// Works: licences
// Answers: licence-payload
#[lab::test]
fn a_payload_licensed_by_name_is_opened() -> Result<()> {
    let (pair, licensed, tunnel) = start(LICENSED, ALL, ALL)?;
    tunnel.up()?;
    let zones = licensed.wait_until("zones", DEADLINE, |zones| held(zones).len() == 1)?;
    ensure!(held(&zones)[0]["opens"] == json!([1, 2]), "{zones}");
    each_way(&pair)
}

// Works: snoop
// Answers: licence-headers
#[lab::test]
fn the_licensed_node_sees_the_flow_inside() -> Result<()> {
    let (pair, licensed, tunnel) = start(LICENSED, HEADERS, HEADERS)?;
    tunnel.up()?;
    licensed.wait_until("zones", DEADLINE, |zones| held(zones).len() == 1)?;
    let (mut near, mut far) = connect(&pair.mobile, &pair.gateway, GATEWAY[0])?;
    far.write_all(&[7; 10_000])?;
    near.read_exact(&mut [0; 10_000])?;
    let port = near.local_addr()?.port();
    let inside = format!("{}:{port}", MOBILE[0]);
    let sees = |flows: &Value| {
        let flows = flows["flows"]["flows"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let ends = |flow: &Value| flow["source"] == *inside || flow["destination"] == *inside;
        flows.iter().any(|flow| ends(flow) && flow["zoned"] == true)
    };
    licensed.wait_until("flows", DEADLINE, sees).map(drop)
}

// Refuses: licences
// Answers: consent-end
#[lab::test]
fn no_key_leaves_if_the_mobile_node_does_not_agree() -> Result<()> {
    nothing_is_read(LICENSED, NOBODY, HEADERS)
}

// Refuses: licences
// Answers: consent-end
#[lab::test]
fn no_key_leaves_if_the_gateway_does_not_agree() -> Result<()> {
    nothing_is_read(LICENSED, HEADERS, NOBODY)
}

// Refuses: licences
#[lab::test]
fn no_key_leaves_for_more_zones_than_both_agree_on() -> Result<()> {
    for (mobile, gateway) in [(HEADERS, ALL), (ALL, HEADERS)] {
        let (pair, licensed, tunnel) = start(LICENSED, mobile, gateway)?;
        tunnel.up()?;
        let zones = licensed.wait_until("zones", DEADLINE, |zones| held(zones).len() == 1)?;
        ensure!(held(&zones)[0]["opens"] == json!([1]), "{zones}");
        each_way(&pair)?;
    }
    Ok(())
}

/// The node knows the gateway's key and is on the path, but has another identity.
// Refuses: licences
// Weakness: S7
// Answers: consent-end
#[lab::test]
fn no_key_leaves_to_a_node_of_another_identity() -> Result<()> {
    let (pair, licensed, tunnel) = start("mallory.example.net", HEADERS, HEADERS)?;
    tunnel.up()?;
    let refused = |status: &Value| {
        let node = peer_of_kind(status, "licensed");
        node["last_refusal"]["reason"].is_string()
    };
    let status = tunnel.gateway.wait_until("status", DEADLINE, refused)?;
    let node = peer_of_kind(&status, "licensed");
    ensure!(node["state"] != "up", "{node}");
    each_way(&pair)?;
    ensure!(held(&licensed.strata("zones")?).is_empty(), "it got keys");
    Ok(())
}

// Works: licences
// Answers: end-itself
#[lab::test]
fn down_takes_the_keys_away() -> Result<()> {
    let (_pair, licensed, tunnel) = start(LICENSED, HEADERS, HEADERS)?;
    tunnel.up()?;
    licensed.wait_until("zones", DEADLINE, |zones| held(zones).len() == 1)?;
    tunnel.mobile.strata("down office")?;
    licensed
        .wait_until("zones", DEADLINE, |zones| held(zones).is_empty())
        .map(drop)
}

// Refuses: zones
#[lab::test]
fn required_zones_that_the_gateway_refuses_are_told() -> Result<()> {
    zones_are_missed(Terms::ZONED, Terms::PLAIN)
}

// Refuses: zones
#[lab::test]
fn required_zones_that_the_mobile_node_refuses_are_told() -> Result<()> {
    zones_are_missed(Terms::PLAIN, Terms::ZONED)
}

// Recovers: zones
#[lab::test]
fn accepted_zones_that_the_peer_refuses_make_a_plain_tunnel() -> Result<()> {
    let accept = Terms {
        zones: "accept",
        licences: NOBODY,
    };
    let pair = Pair::new("licence")?;
    let tunnel = pair.start(Family::V4, accept, Terms::PLAIN)?;
    tunnel.up()?;
    for child in tunnel.children()?.iter().flatten() {
        ensure!(child["kind"] == "plain", "{child}");
    }
    each_way(&pair)
}

// Works: licensed-node
#[lab::test]
fn a_plain_tunnel_passes_a_licensed_node() -> Result<()> {
    let pair = Pair::new("licence")?;
    let licensed = pair.start_licensed(LICENSED)?;
    let _tunnel = pair.start_up(Terms::PLAIN)?;
    each_way(&pair)?;
    ensure!(
        held(&licensed.strata("zones")?).is_empty(),
        "keys of a plain tunnel"
    );
    Ok(())
}

/// Sealed packets exceed the MTU. Fragments show no port, and the node forwards them unopened.
// Works: licensed-node
#[lab::test]
fn fragments_pass_a_licensed_node() -> Result<()> {
    let pair = Pair::new("licence")?;
    let licensed = pair.start_licensed(LICENSED)?;
    let configs = [
        pair::mobile_config(Family::V4, licensing(HEADERS), "manual"),
        pair::gateway_config(licensing(HEADERS)),
    ];
    let configs = configs.map(|config| plain::in_table(&config, "[tunnel]", "path_mtu = \"off\""));
    let tunnel = plain::start_with(&pair, &configs)?;
    pair.set_mtu(1280)?;
    let tap = Wiretap::open(&pair.between)?;
    tunnel.up()?;
    licensed.wait_until("zones", DEADLINE, |zones| held(zones).len() == 1)?;
    each_way(&pair)?;
    let mut seen = std::iter::from_fn(|| tap.next().transpose());
    ensure!(
        seen.any(|seen| seen.is_ok_and(|seen| seen.is_fragment())),
        "no fragment was seen"
    );
    Ok(())
}

/// Starts a licensed node between two endpoints that accept these licences.
fn start(identity: &str, mobile: &str, gateway: &str) -> Result<(Pair, Daemon, Tunnel)> {
    let pair = Pair::new("licence")?;
    let licensed = pair.start_licensed(identity)?;
    let tunnel = pair.start(Family::V4, licensing(mobile), licensing(gateway))?;
    Ok((pair, licensed, tunnel))
}

/// Fails unless the tunnel works without a licence, and no key reaches the node.
fn nothing_is_read(identity: &str, mobile: &str, gateway: &str) -> Result<()> {
    let (pair, licensed, tunnel) = start(identity, mobile, gateway)?;
    tunnel.up()?;
    each_way(&pair)?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let zones = daemon.strata("zones")?;
        ensure!(
            zones["zones"]["composites"].as_array().map(Vec::len) == Some(1),
            "{zones}"
        );
        ensure!(holders(&zones).is_empty(), "{zones}");
    }
    ensure!(held(&licensed.strata("zones")?).is_empty(), "it got keys");
    Ok(())
}

/// One end requires zones, the other refuses them: the tunnel fails, and both ends report the
/// reason.
fn zones_are_missed(mobile: Terms<'_>, gateway: Terms<'_>) -> Result<()> {
    let pair = Pair::new("licence")?;
    let tunnel = pair.start(Family::V4, mobile, gateway)?;
    let Err(refusal) = tunnel.up() else {
        bail!("a tunnel without the zones that are required");
    };
    ensure!(format!("{refusal:?}").contains("zones"), "{refusal:?}");
    let status = tunnel.mobile.strata("status")?;
    ensure!(pair::refusal(&status).contains("zones"), "{status}");
    let [mobile, gateway] = tunnel.children()?;
    ensure!(
        mobile.is_empty() && gateway.is_empty(),
        "{mobile:?} {gateway:?}"
    );
    Ok(())
}

fn each_way(pair: &Pair) -> Result<()> {
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], OCTETS)
}

/// Returns the grants that a licensed node holds.
fn held(zones: &Value) -> Vec<Value> {
    zones["zones"]["held"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

/// Returns the nodes with a licence for the only composite SA of an endpoint.
fn holders(zones: &Value) -> Vec<Value> {
    let holders = zones["zones"]["composites"][0]["holders"].as_array();
    holders.cloned().unwrap_or_default()
}

fn peer_of_kind<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let peers = status["status"]["peers"].as_array();
    let found = peers.and_then(|peers| peers.iter().find(|peer| peer["kind"] == kind));
    found.unwrap_or(&Value::Null)
}
