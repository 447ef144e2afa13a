//! Several tunnels with the same traffic selectors (RFC 9611): as many as both ends want,
//! transparent to packets.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{
    self, DEADLINE, GATEWAY, MOBILE, NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel, gateway_config,
    is_up, mobile_config, refusal,
};
use lab::transfer::transfer;
use lab::volley::volleys;
use os::Family;
use serde_json::Value;
use std::num::NonZeroU64;
use std::time::Duration;

const MB: u64 = 1_000_000;

const FOUR: [&str; 4] = ["#2", "#3", "#4", "first"];

/// Starts both daemons with their numbers of tunnels. The default of one is not written to the
/// file.
fn start(pair: &Pair, ours: u8, theirs: u8) -> Result<Tunnel> {
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    pair.gateway.secret("node.psk", NODE_KEY)?;
    let with = |config: String, most: u8| {
        let key = format!("psk = \"tunnel.psk\"\nresources = {most}\n");
        match most {
            1 => config,
            _ => config.replace("psk = \"tunnel.psk\"\n", &key),
        }
    };
    let mobile = mobile_config(Family::V4, Terms::PLAIN, "auto");
    Ok(Tunnel {
        gateway: pair
            .gateway
            .stratad(&with(gateway_config(Terms::PLAIN), theirs))?,
        mobile: pair.mobile.stratad(&with(mobile, ours))?,
    })
}

fn start_up(pair: &Pair) -> Result<Tunnel> {
    let tunnel = start(pair, 4, 4)?;
    await_all(&tunnel)?;
    Ok(tunnel)
}

fn await_names(daemon: &Daemon, names: &[&str]) -> Result<Value> {
    let named = |status: &Value| {
        pair::names(status) == names && pair::children(status).len() == names.len()
    };
    daemon.wait_until("status", DEADLINE, named)
}

fn await_all(tunnel: &Tunnel) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        await_names(daemon, &FOUR)?;
    }
    Ok(())
}

// Works: several-sas
#[lab::test]
fn flows_go_by_several_tunnels_at_once() -> Result<()> {
    let pair = Pair::new("resource")?;
    let mut tunnel = start_up(&pair)?;
    for _ in 0..8 {
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
        transfer(&pair.gateway, &pair.mobile, MOBILE[0], MB)?;
    }
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        let children = pair::children(&status);
        let carried = |child: &&Value| child["sent"]["octets"].as_u64() > Some(MB / 2);
        let used = children.iter().filter(carried).count();
        ensure!(used > 1, "{status}");
        pair::no_drops(&status)?;
    }
    let text = tunnel.mobile.strata_text("status office")?;
    ensure!(text.contains("  child     #4\n"), "{text}");
    let log = tunnel.mobile.process();
    let told = |log: &str| log.contains("tunnel #4 up").then_some(());
    log.wait_for("a tunnel in the log", DEADLINE, told)
}

// Recovers: several-sas
#[lab::test]
fn no_flow_loses_a_packet_through_new_keys_and_proofs() -> Result<()> {
    let pair = Pair::new("resource")?;
    let tunnel = start_up(&pair)?;
    let (near, far) = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(near, far, || {
        volleys(near, far, || {
            volleys(near, far, || {
                renew(&tunnel, "rekey office")?;
                renew(&tunnel, "reauth office")
            })
        })
    })?;
    Ok(())
}

/// Rekeys; returns when all SPIs are new and the old SAs are gone.
fn renew(tunnel: &Tunnel, words: &str) -> Result<()> {
    let spi = |child: &Value| child["spi_in"].clone();
    let children = pair::children(&tunnel.mobile.strata("status")?);
    let old: Vec<_> = children.iter().map(spi).collect();
    tunnel.mobile.strata(words)?;
    let renewed = |status: &Value| {
        let children = pair::children(status);
        let other = |child: &Value| !old.contains(&spi(child));
        children.len() == 4 && children.iter().all(other)
    };
    tunnel.mobile.wait_until("status", DEADLINE, renewed)?;
    await_all(tunnel)
}

// Refuses: several-sas
#[lab::test]
fn a_peer_that_does_not_say_so_has_one_tunnel_and_is_told_why() -> Result<()> {
    let pair = Pair::new("resource")?;
    let tunnel = start(&pair, 4, 1)?;
    let told = |status: &Value| {
        let why = refusal(status);
        is_up(status) && why.contains("RFC 9611") && why.contains("`resources`")
    };
    let status = tunnel.mobile.wait_until("status", DEADLINE, told)?;
    ensure!(pair::names(&status) == ["first"], "{status}");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)
}

// Refuses: several-sas
#[lab::test]
fn the_end_that_wants_fewer_decides_and_the_other_says_so() -> Result<()> {
    let pair = Pair::new("resource")?;
    let tunnel = start(&pair, 4, 2)?;
    let told = |status: &Value| refusal(status).contains("creates no more tunnels");
    tunnel.mobile.wait_until("status", DEADLINE, told)?;
    await_names(&tunnel.mobile, &["#2", "first"])?;
    let status = await_names(&tunnel.gateway, &["#2", "first"])?;
    ensure!(refusal(&status).contains("already has all 2"), "{status}");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)
}

// Recovers: several-sas
#[lab::test]
fn a_killed_end_comes_back_with_all_of_them() -> Result<()> {
    let pair = Pair::new("resource")?;
    let mut tunnel = start_up(&pair)?;
    let spis = |status: &Value| {
        let children = pair::children(status);
        let spis = children.iter().map(|child| child["spi_in"].clone());
        spis.collect::<Vec<_>>()
    };
    let old = spis(&tunnel.mobile.strata("status")?);
    tunnel.gateway.process().crash()?;
    tunnel.gateway.start_again()?;
    let other = |status: &Value| !spis(status).iter().any(|spi| old.contains(spi));
    tunnel.mobile.wait_until("status", DEADLINE, other)?;
    await_all(&tunnel)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)
}

// Recovers: several-sas
#[lab::test]
fn all_of_them_come_up_and_carry_over_a_lossy_hop() -> Result<()> {
    let hop = sim::Settings {
        rate: NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        // One in sixteen full packets is lost.
        bit_error_rate: 1.0 / 200_000.0,
    };
    let pair = Pair::with_lossy_hop("resource", hop)?;
    let tunnel = start_up(&pair)?;
    renew(&tunnel, "rekey office")?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)
}
