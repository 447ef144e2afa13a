//! Several outstanding IKE requests: `window` in the table of a peer.

use anyhow::{Result, bail, ensure};
use lab::daemon::Daemon;
use lab::duo::{Duo, OURS, THEIRS};
use lab::pair::{
    self, DEADLINE, LICENSED, NODE_KEY, Pair, TUNNEL_KEY, Terms, gateway_config, licensed_config,
    mobile_config,
};
use lab::plain::{carry, start};
use os::Family;
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::time::Duration;

const WINDOW: &str = "window = 8";

/// Returns the limits on the peer's and on our outstanding requests.
fn widths(status: &Value) -> Value {
    let window = &pair::peer(status)["window"];
    json!([window["ours"], window["theirs"]])
}

fn is_wide(daemon: &Daemon, expected: &Value) -> Result<()> {
    let wide = |status: &Value| widths(status) == *expected;
    daemon.wait_until("status", DEADLINE, wide).map(drop)
}

/// Also on the successor of an IKE SA, which starts with a window of one.
// Works: window
#[lab::test]
fn both_ends_say_how_many_requests_they_take_at_once() -> Result<()> {
    let pair = Pair::new("window")?;
    let mut tunnel = start(&pair, WINDOW, "window = 4")?;
    tunnel.up()?;
    for round in [0, 4] {
        is_wide(&tunnel.mobile, &json!([8, 4]))?;
        is_wide(&tunnel.gateway, &json!([4, 4]))?;
        tunnel.rekey(round)?;
    }
    is_wide(&tunnel.mobile, &json!([8, 4]))?;
    is_wide(&tunnel.gateway, &json!([4, 4]))?;
    let text = tunnel.mobile.strata_text("status office")?;
    let told = "4 requests to the peer at once, 8 from it";
    ensure!(text.contains(told), "{text}");
    carry(&pair)
}

/// The licensed node takes the mobile node's usual place, behind the slow wire, and the mobile node
/// connects from the host between. When the node starts, the gateway sends it the keys of every
/// tunnel, also of draining ones.
// Works: window
#[lab::test]
fn grants_are_under_way_together_over_a_wire_that_is_late() -> Result<()> {
    let hop = sim::Settings {
        rate: NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(500),
        queue: 200,
        bit_error_rate: 0.0,
    };
    let pair = Pair::with_lossy_hop("window", hop)?;
    pair.add_second_wire()?;
    for family in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
        pair.mobile.sysctl(family, "1")?;
    }
    pair.between.secret("tunnel.psk", TUNNEL_KEY)?;
    pair.gateway.secret("tunnel.psk", TUNNEL_KEY)?;
    for host in [&pair.gateway, &pair.mobile] {
        host.secret("node.psk", NODE_KEY)?;
    }
    let grants = gateway_config(Terms::LICENSED).replace("192.0.2.2", "10.3.0.2");
    let gateway = pair.gateway.stratad(&format!("{grants}{WINDOW}\n"))?;
    let alice = mobile_config(Family::V4, Terms::LICENSED, "manual");
    let alice = pair.between.stratad(&alice)?;
    alice.strata("up office --wait")?;
    for count in 2..=4 {
        gateway.strata("rekey alice")?;
        let are = |status: &Value| pair::children(status).len() == count;
        gateway.wait_until("status", DEADLINE, are)?;
    }
    let takes = licensed_config(LICENSED)
        .replace(
            "psk = \"node.psk\"",
            &format!("psk = \"node.psk\"\n{WINDOW}"),
        )
        .replace("\"wired\"", "\"eth0\"")
        .replace("\"wireless\"", "\"eth1\"");
    let licensed = pair.mobile.stratad(&takes)?;
    let together = |status: &Value| {
        let peers = status["status"]["peers"].as_array();
        let mut peers = peers.into_iter().flatten();
        let node = peers.find(|peer| peer["kind"] == "licensed");
        let under_way = node.and_then(|node| node["window"]["under_way"].as_u64());
        under_way >= Some(3)
    };
    gateway.wait_until("status", DEADLINE, together)?;
    let held = |zones: &Value| {
        let held = zones["zones"]["held"].as_array();
        held.is_some_and(|held| held.len() >= 3)
    };
    licensed.wait_until("zones", DEADLINE, held).map(drop)
}

// Recovers: window
#[lab::test]
fn keys_are_replaced_under_wide_windows_over_a_lossy_hop() -> Result<()> {
    let hop = pair::hop(1.0 / 50_000.0);
    let pair = Pair::with_lossy_hop("window", hop)?;
    let mut tunnel = start(&pair, WINDOW, WINDOW)?;
    tunnel.mobile.strata("up office --wait=60")?;
    for round in 0..10 {
        tunnel.rekey(round)?;
    }
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        is_wide(daemon, &json!([8, 8]))?;
    }
    Ok(())
}

// Refuses: window
#[lab::test]
fn a_window_that_is_too_wide_is_told_with_the_limits() -> Result<()> {
    let pair = Pair::new("window")?;
    let Err(refused) = start(&pair, "window = 65", WINDOW) else {
        bail!("65 requests were accepted");
    };
    let refused = format!("{refused:?}");
    for words in ["peer.office.window", "choose a value from 1 to 64"] {
        ensure!(refused.contains(words), "{words:?} is not in {refused}");
    }
    Ok(())
}

/// strongSwan announces no window, so it gets one request at a time. Its own requests are
/// independent of that.
// Works: window
#[lab::test]
fn strongswan_takes_one_request_at_a_time_and_minds_nothing() -> Result<()> {
    let duo = Duo::new("window")?;
    let (mut strata, charon) = duo.start(&format!("{OURS}{WINDOW}\n"), &THEIRS)?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, pair::is_up)?;
    is_wide(&strata, &json!([8, 1]))?;
    charon.terminate()?;
    strata.wait_until("status", DEADLINE, pair::is_down)?;
    let keys = ["tunnel rekeyed", "IKE SA rekeyed"];
    strata.strata("up theirs --wait")?;
    for (words, told) in [("rekey theirs", keys[0]), ("rekey theirs --ike", keys[1])] {
        strata.strata(words)?;
        strata.process().wait_for_log(told, DEADLINE)?;
        is_wide(&strata, &json!([8, 1]))?;
    }
    charon.rekey()?;
    let twice = |log: &str| (log.matches(keys[1]).count() == 2).then_some(());
    let process = strata.process();
    process.wait_for(keys[1], DEADLINE, twice)?;
    is_wide(&strata, &json!([8, 1]))?;
    duo.carry(1_000_000)
}
