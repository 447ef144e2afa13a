//! Extended sequence numbers (RFC 4303 section 2.2.1): tunnels continue where 32-bit numbers are
//! exhausted.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, Tunnel};
use lab::plain;
use lab::transfer::transfer;
use lab::volley::volleys;
use serde_json::Value;
use std::num::NonZeroU64;
use std::time::Duration;

const ESN: &str = "esn = true";

const MB: u64 = 1_000_000;

/// Number of packets that every SA has left in the first cycle of sequence numbers.
const LEFT: u64 = 200;

/// Starts both daemons, with these lines for their peers, and brings the tunnel up.
fn start(pair: &Pair, ours: &str, theirs: &str) -> Result<Tunnel> {
    let faults = format!("numbers={}", (1_u64 << 32) - LEFT);
    let late = ["--faults", faults.as_str()];
    let tunnel = plain::start_told(pair, &plain::configs(ours, theirs), [&late; 2])?;
    up(&tunnel)?;
    Ok(tunnel)
}

fn up(tunnel: &Tunnel) -> Result<()> {
    tunnel.mobile.strata("up office --wait")?;
    tunnel
        .gateway
        .wait_until("status", DEADLINE, pair::is_up)
        .map(drop)
}

fn child(daemon: &Daemon) -> Result<Value> {
    let status = daemon.strata("status")?;
    let child = pair::children(&status).into_iter().next();
    child.with_context(|| format!("no child: {status}"))
}

/// Returns true if both ends report extended numbers. All reports, JSON and text, must agree.
fn is_extended(tunnel: &Tunnel) -> Result<bool> {
    let mut said = Vec::new();
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        said.push(child(daemon)?["esn"] == true);
        let text = pair::details(daemon)?;
        said.push(text.contains(", ESN,"));
    }
    ensure!(said.iter().all(|one| *one == said[0]), "{said:?}");
    Ok(said[0])
}

// Works: esn
#[lab::test]
fn a_tunnel_goes_on_beyond_the_last_number_that_is_on_the_wire() -> Result<()> {
    let pair = Pair::new("esn")?;
    let tunnel = start(&pair, ESN, ESN)?;
    ensure!(is_extended(&tunnel)?);
    let before = child(&tunnel.mobile)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 4 * MB)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 4 * MB)?;
    let after = child(&tunnel.mobile)?;
    ensure!(
        before["spi_in"] == after["spi_in"],
        "it is another: {after}"
    );
    for way in ["sent", "received"] {
        let packets = after[way]["packets"].as_u64();
        ensure!(packets > Some(2 * LEFT), "{way}: {packets:?}");
    }
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        pair::no_drops(&daemon.strata("status")?)?;
    }
    Ok(())
}

/// Control: without the extension these sequence numbers are the last ones.
#[lab::test]
fn without_extended_numbers_it_does_not() -> Result<()> {
    let pair = Pair::new("esn")?;
    let tunnel = start(&pair, "", "")?;
    ensure!(!is_extended(&tunnel)?);
    let flown = volleys(
        (&pair.mobile, MOBILE[0]),
        (&pair.gateway, GATEWAY[0]),
        || Ok(()),
    );
    ensure!(flown.is_err(), "where do they get their numbers from?");
    let used_up = |status: &Value| {
        let drops = &status["status"]["drops"]["esp_sequence_exhausted"];
        drops.as_u64() > Some(0)
    };
    let status = tunnel.mobile.strata("status")?;
    ensure!(used_up(&status), "{status}");
    Ok(())
}

// Recovers: esn
#[lab::test]
fn new_keys_and_both_cycles_lose_nothing_under_volleys() -> Result<()> {
    let pair = Pair::new("esn")?;
    let tunnel = start(&pair, ESN, ESN)?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let before = child(daemon)?;
        let near = (&pair.mobile, MOBILE[0]);
        volleys(near, (&pair.gateway, GATEWAY[0]), || {
            let peer = ["office", "alice"][usize::from(std::ptr::eq(daemon, &tunnel.gateway))];
            daemon.strata(&format!("rekey {peer}"))?;
            let other = |status: &Value| {
                let children = pair::children(status);
                children.len() == 1 && children[0]["spi_in"] != before["spi_in"]
            };
            daemon.wait_until("status", DEADLINE, other)?;
            Ok(())
        })?;
        // After this exchange each of the SAs is in its second cycle.
        volleys(near, (&pair.gateway, GATEWAY[0]), || Ok(()))?;
        ensure!(is_extended(&tunnel)?);
    }
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        pair::no_drops(&daemon.strata("status")?)?;
    }
    Ok(())
}

// Recovers: esn
#[lab::test]
fn they_carry_over_a_lossy_hop() -> Result<()> {
    let hop = sim::Settings {
        rate: NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        // One in sixteen full packets is lost.
        bit_error_rate: 1.0 / 200_000.0,
    };
    let pair = Pair::with_lossy_hop("esn", hop)?;
    let tunnel = start(&pair, ESN, ESN)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
    tunnel.mobile.strata("rekey office")?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], MB)?;
    ensure!(is_extended(&tunnel)?);
    Ok(())
}

// Refuses: esn
#[lab::test]
fn one_end_alone_has_numbers_of_32_bits() -> Result<()> {
    for (ours, theirs) in [(ESN, ""), ("", ESN)] {
        let pair = Pair::new("esn")?;
        let tunnel = plain::start(&pair, ours, theirs)?;
        up(&tunnel)?;
        ensure!(!is_extended(&tunnel)?);
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
    }
    Ok(())
}

// Refuses: esn
#[lab::test]
fn beside_zones_they_are_refused_with_the_fix() -> Result<()> {
    let pair = Pair::new("esn")?;
    let tunnel = start(&pair, ESN, ESN)?;
    for zones in ["accept", "require"] {
        let [mobile, _] = plain::configs(ESN, "");
        let zoned = format!("zones = \"{zones}\"");
        let mobile = mobile.replace("zones = \"refuse\"", &zoned);
        ensure!(mobile.contains(&zoned), "{mobile}");
        tunnel.mobile.configure(&mobile)?;
        tunnel.mobile.refuses("reload", "`zones = \"refuse\"`")?;
    }
    ensure!(is_extended(&tunnel)?, "the tunnel is as it was");
    Ok(())
}
