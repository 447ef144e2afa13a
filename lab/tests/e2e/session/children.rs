//! Several tunnels with one peer: each carries its own traffic, and comes and goes independently.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::duo::add_inner_address;
use lab::pair::{
    self, DEADLINE, GATEWAY, MOBILE, NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel, gateway_config,
    is_up, mobile_config, refusal,
};
use lab::transfer::transfer;
use lab::volley::volleys;
use os::Family;
use serde_json::Value;
use std::num::NonZeroU64;
use std::thread;
use std::time::Duration;

const MB: u64 = 1_000_000;

/// An address behind the gateway, reached through the second tunnel.
const VOICE: &str = "10.9.0.1";

const OURS: &str = "[peer.office.child.voice]\nremote = [\"10.9.0.0/24\"]\n";
const THEIRS: &str = "[peer.alice.child.voice]\nlocal = [\"10.9.0.0/24\"]\n";

fn mobile(child: &str) -> String {
    mobile_config(Family::V4, Terms::PLAIN, "auto") + child
}

fn gateway(child: &str) -> String {
    gateway_config(Terms::PLAIN) + child
}

/// Starts both daemons, with these tables of children.
fn start(pair: &Pair, ours: &str, theirs: &str) -> Result<Tunnel> {
    add_inner_address(&pair.gateway, "10.9.0.1/32")?;
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    pair.gateway.secret("node.psk", NODE_KEY)?;
    Ok(Tunnel {
        gateway: pair.gateway.stratad(&gateway(theirs))?,
        mobile: pair.mobile.stratad(&mobile(ours))?,
    })
}

/// Starts both daemons and waits until both tunnels are up at both ends.
fn start_up(pair: &Pair) -> Result<Tunnel> {
    let tunnel = start(pair, OURS, THEIRS)?;
    await_both(&tunnel)?;
    Ok(tunnel)
}

fn await_both(tunnel: &Tunnel) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        daemon.wait_until("status", DEADLINE, |status| {
            pair::names(status) == ["first", "voice"]
        })?;
    }
    Ok(())
}

fn await_first_alone(daemon: &Daemon) -> Result<()> {
    let alone =
        |status: &Value| pair::names(status) == ["first"] && pair::children(status).len() == 1;
    daemon.wait_until("status", DEADLINE, alone).map(drop)
}

fn named<'s>(children: &'s [Value], name: Option<&str>) -> Result<&'s Value> {
    let mut children = children.iter();
    let found = children.find(|child| child["name"].as_str() == name);
    found.context("no such tunnel")
}

fn spi(daemon: &Daemon, name: Option<&str>) -> Result<Value> {
    let children = pair::children(&daemon.strata("status")?);
    Ok(named(&children, name)?["spi_in"].clone())
}

fn no_drops(tunnel: &Tunnel) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        pair::no_drops(&daemon.strata("status")?)?;
    }
    Ok(())
}

// Works: children
#[lab::test]
fn two_tunnels_carry_octets_at_the_same_time() -> Result<()> {
    let pair = Pair::new("children")?;
    let tunnel = start_up(&pair)?;
    let (mobile, gateway) = (&pair.mobile, &pair.gateway);
    thread::scope(|scope| {
        let first = scope.spawn(|| transfer(mobile, gateway, GATEWAY[0], 5 * MB));
        let voice = scope.spawn(|| transfer(mobile, gateway, VOICE, 2 * MB));
        let joined = [first, voice].map(|carried| carried.join().expect("it returns its errors"));
        joined.into_iter().collect::<Result<()>>()
    })?;
    let children = pair::children(&tunnel.mobile.strata("status")?);
    for (name, least, most) in [(None, 5 * MB, 6 * MB), (Some("voice"), 2 * MB, 3 * MB)] {
        let child = named(&children, name)?;
        let sent = child["sent"]["octets"].as_u64();
        ensure!((Some(least)..Some(most)).contains(&sent), "{child}");
    }
    let text = tunnel.mobile.strata_text("status office")?;
    ensure!(text.contains("  child     voice\n"), "{text}");
    transfer(gateway, mobile, MOBILE[0], MB)
}

// Works: children
#[lab::test]
fn neither_loses_a_packet_through_new_keys_and_proofs() -> Result<()> {
    let pair = Pair::new("children")?;
    let mut tunnel = start_up(&pair)?;
    let near = (&pair.mobile, MOBILE[0]);
    volleys(near, (&pair.gateway, GATEWAY[0]), || {
        volleys(near, (&pair.gateway, VOICE), || {
            renew(&mut tunnel, "rekey office")?;
            renew(&mut tunnel, "rekey office --ike")?;
            renew(&mut tunnel, "rekey office")?;
            renew(&mut tunnel, "reauth office")
        })
    })?;
    no_drops(&tunnel)
}

/// Runs a command that rekeys. Returns when both tunnels have new SPIs and the old SAs are gone;
/// for the IKE SA, when its rekey is logged.
fn renew(tunnel: &mut Tunnel, words: &str) -> Result<()> {
    let old = [None, Some("voice")].map(|name| spi(&tunnel.mobile, name));
    let old = old.into_iter().collect::<Result<Vec<_>>>()?;
    tunnel.mobile.strata(words)?;
    if words.ends_with("--ike") {
        let log = tunnel.mobile.process();
        let done = |log: &str| log.contains("IKE SA rekeyed").then_some(());
        return log.wait_for("new keys of the IKE SA", DEADLINE, done);
    }
    let renewed = |status: &Value| {
        let children = pair::children(status);
        let other = |child: &Value| !old.contains(&child["spi_in"]);
        children.len() == 2 && pair::names(status).len() == 2 && children.iter().all(other)
    };
    tunnel.mobile.wait_until("status", DEADLINE, renewed)?;
    let two = |status: &Value| pair::children(status).len() == 2;
    tunnel.gateway.wait_until("status", DEADLINE, two).map(drop)
}

// Refuses: children
#[lab::test]
fn one_is_refused_with_a_reason_and_the_other_stays() -> Result<()> {
    let pair = Pair::new("children")?;
    let tunnel = start(&pair, OURS, "")?;
    let told = |status: &Value| {
        let why = refusal(status);
        is_up(status) && why.contains("`voice`: TS_UNACCEPTABLE") && why.contains("compare `local`")
    };
    let status = tunnel.mobile.wait_until("status", DEADLINE, told)?;
    let missing = pair::peer(&status)["missing"].to_string();
    ensure!(missing == "[\"voice\"]", "{missing}");
    let text = tunnel.mobile.strata_text("status office")?;
    ensure!(text.contains("  child     voice, down\n"), "{text}");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
    // The initiator retries until the other end has the child too.
    tunnel.gateway.change(&gateway(THEIRS))?;
    await_both(&tunnel)?;
    transfer(&pair.mobile, &pair.gateway, VOICE, MB)
}

// Works: children
#[lab::test]
fn one_is_taken_down_and_let_in_again_by_either_end() -> Result<()> {
    let pair = Pair::new("children")?;
    let tunnel = start_up(&pair)?;
    let ends = [
        (&tunnel.mobile, &tunnel.gateway, "office"),
        (&tunnel.gateway, &tunnel.mobile, "alice"),
    ];
    for (here, there, peer) in ends {
        let first = spi(here, None)?;
        here.strata(&format!("down {peer} --child voice"))?;
        await_first_alone(here)?;
        await_first_alone(there)?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
        here.strata(&format!("up {peer} --child voice --wait"))?;
        await_both(&tunnel)?;
        transfer(&pair.mobile, &pair.gateway, VOICE, MB)?;
        ensure!(spi(here, None)? == first, "the first did notice");
    }
    // A tunnel that the operator of the other end took down is reported as such.
    tunnel.gateway.strata("down alice --child voice")?;
    let fix = "the tunnel was taken down there";
    await_first_alone(&tunnel.mobile)?;
    tunnel
        .mobile
        .refuses("up office --child voice --wait=5", fix)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)
}

// Works: children
#[lab::test]
fn tunnels_come_and_go_with_the_file_one_by_one() -> Result<()> {
    let pair = Pair::new("children")?;
    let tunnel = start_up(&pair)?;
    let first = spi(&tunnel.mobile, None)?;
    let [ours, theirs] = [OURS, THEIRS].map(|table| table.replace("voice", "video"));
    let [ours, theirs] = [ours, theirs].map(|table| table.replace("10.9.0", "10.9.1"));
    add_inner_address(&pair.gateway, "10.9.1.1/32")?;
    for (daemon, config) in [
        (&tunnel.gateway, gateway(&theirs)),
        (&tunnel.mobile, mobile(&ours)),
    ] {
        let said = daemon.change(&config)?;
        ensure!(
            said.contains(".child.video") && said.contains(".child.voice"),
            "{said}"
        );
    }
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let video = |status: &Value| pair::names(status) == ["first", "video"];
        daemon.wait_until("status", DEADLINE, video)?;
    }
    transfer(&pair.mobile, &pair.gateway, "10.9.1.1", MB)?;
    ensure!(spi(&tunnel.mobile, None)? == first, "the first did notice");
    Ok(())
}

// Refuses: children
#[lab::test]
fn what_is_not_configured_is_refused_with_the_fix() -> Result<()> {
    let pair = Pair::new("children")?;
    let tunnel = start(&pair, OURS, THEIRS)?;
    let fix = "add the table and run `strata reload`";
    tunnel.mobile.refuses("up office --child video", fix)?;
    tunnel.mobile.refuses("down office --child video", fix)?;
    tunnel.mobile.refuses("down --child voice", "PEER")?;
    let both = format!("{OURS}[peer.office.child.video]\nremote = [\"10.9.0.0/16\"]\n");
    tunnel.mobile.configure(&mobile(&both))?;
    tunnel
        .mobile
        .refuses("reload", "remove it from `local` or `remote`")
}

// Recovers: children
#[lab::test]
fn a_killed_end_comes_back_with_both_tunnels() -> Result<()> {
    let pair = Pair::new("children")?;
    let mut tunnel = start_up(&pair)?;
    tunnel.mobile.process().crash()?;
    tunnel.mobile.start_again()?;
    await_both(&tunnel)?;
    transfer(&pair.mobile, &pair.gateway, VOICE, MB)?;
    let old = spi(&tunnel.mobile, Some("voice"))?;
    tunnel.gateway.process().crash()?;
    tunnel.gateway.start_again()?;
    let other = |status: &Value| {
        let children = pair::children(status);
        let voice = named(&children, Some("voice"));
        voice.is_ok_and(|voice| voice["spi_in"] != old)
    };
    tunnel.mobile.wait_until("status", DEADLINE, other)?;
    await_both(&tunnel)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
    transfer(&pair.mobile, &pair.gateway, VOICE, MB)
}

// Recovers: children
#[lab::test]
fn two_tunnels_come_up_and_carry_over_a_lossy_hop() -> Result<()> {
    let hop = sim::Settings {
        rate: NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        // One in sixteen full packets is lost.
        bit_error_rate: 1.0 / 200_000.0,
    };
    let pair = Pair::with_lossy_hop("children", hop)?;
    let mut tunnel = start_up(&pair)?;
    for words in ["rekey office", "reauth office"] {
        renew(&mut tunnel, words)?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB)?;
        transfer(&pair.mobile, &pair.gateway, VOICE, MB)?;
    }
    Ok(())
}
