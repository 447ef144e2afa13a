//! A running daemon applies exactly the changes of a new configuration.

use anyhow::{Context, Result, bail, ensure};
use lab::daemon::Daemon;
use lab::pair::{
    self, DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, Terms, Tunnel, gateway_config, is_down, is_up,
    licensed_config, mobile_config, segments,
};
use lab::process::until;
use lab::transfer::transfer;
use lab::volley::volleys;
use nix::sys::signal::Signal;
use os::Family;
use serde_json::{Value, json};
use std::net::UdpSocket;

/// An unrelated peer.
const BOB: &str = r#"
[peer.bob]
id = "bob@example.net"
psk = "tunnel.psk"
local = ["10.8.0.0/16"]
remote = ["10.77.0.0/16"]
"#;

// Works: reload
#[lab::test]
fn a_tunnel_that_did_not_change_loses_no_packet_and_keeps_its_spis() -> Result<()> {
    let (pair, tunnel) = start(Terms::ZONED)?;
    let before = tunnel.spis()?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    let text = volleys(ends.0, ends.1, || {
        for _ in 0..5 {
            tunnel.gateway.change(&with_bob())?;
            tunnel.gateway.change(&gateway_config(Terms::ZONED))?;
        }
        tunnel.gateway.change(&with_bob())
    })?;
    for line in ["+ peer.bob", "~ peer.alice.liveness 1s -> 7s (applied)"] {
        ensure!(text.lines().any(|had| had == line), "no {line:?}: {text}");
    }
    ensure!(tunnel.spis()? == before, "other SPIs");
    let status = tunnel.gateway.strata("status")?;
    ensure!(names(&status) == ["alice", "bob", "fa"], "{status}");
    ensure!(drops(&status) == 0, "{status}");
    Ok(())
}

// Works: reload
#[lab::test]
fn sighup_does_the_same_and_tells_the_journal() -> Result<()> {
    let (pair, mut tunnel) = start(Terms::PLAIN)?;
    let before = tunnel.spis()?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    tunnel
        .gateway
        .configure(&format!("{}{BOB}", gateway_config(Terms::PLAIN)))?;
    let gateway = &mut tunnel.gateway;
    volleys(ends.0, ends.1, || {
        gateway.process().signal(Signal::SIGHUP)?;
        gateway
            .process()
            .wait_for_log("configuration: + peer.bob", DEADLINE)
    })?;
    ensure!(tunnel.spis()? == before, "other SPIs");
    tunnel.gateway.configure("[node]\nid = 3\n")?;
    tunnel.gateway.process().signal(Signal::SIGHUP)?;
    tunnel.gateway.process().wait_for_log(
        "strata.toml:2:6: node.id: expected a string, found integer",
        DEADLINE,
    )?;
    tunnel
        .gateway
        .process()
        .wait_for_log("nothing changed", DEADLINE)?;
    ensure!(tunnel.spis()? == before, "other SPIs");
    Ok(())
}

// Refuses: reload
#[lab::test]
fn a_file_with_faults_changes_nothing_and_names_them_all() -> Result<()> {
    let (pair, tunnel) = start(Terms::PLAIN)?;
    let before = tunnel.spis()?;
    let faulty = gateway_config(Terms::PLAIN)
        .replace("[peer.alice]", "[peer.renamed]")
        .replace("node.psk", "nowhere.psk")
        .replace("zones = \"refuse\"", "zones = \"refuze\"");
    let text = refused(&tunnel.gateway, &faulty)?;
    for words in [
        "peer.renamed.zones",
        "did you mean `refuse`?",
        "licensed.fa.psk",
        "2 errors",
    ] {
        ensure!(text.contains(words), "no {words:?}: {text}");
    }
    ensure!(tunnel.spis()? == before, "other SPIs");
    let status = tunnel.gateway.strata("status")?;
    ensure!(names(&status) == ["alice", "fa"], "{status}");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)
}

// Recovers: reload
#[lab::test]
fn a_file_that_is_gone_changes_nothing() -> Result<()> {
    let (pair, tunnel) = start(Terms::PLAIN)?;
    std::fs::remove_file(pair.gateway.directory().join("strata.toml"))?;
    let Err(error) = tunnel.gateway.strata_text("reload") else {
        bail!("a file that does not exist was read");
    };
    ensure!(format!("{error:?}").contains("cannot read"), "{error:?}");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)
}

#[lab::test]
fn a_dry_run_shows_the_difference_and_changes_nothing() -> Result<()> {
    let (_pair, tunnel) = start(Terms::ZONED)?;
    tunnel.gateway.configure(&with_bob())?;
    for _ in 0..2 {
        let text = tunnel.gateway.strata_text("reload --dry-run")?;
        ensure!(text.contains("+ peer.bob\n"), "{text}");
        ensure!(text.contains("not applied yet"), "{text}");
        ensure!(names(&tunnel.gateway.strata("status")?) == ["alice", "fa"]);
    }
    let answer = tunnel.gateway.strata("reload --dry-run")?;
    ensure!(answer["reload"]["applied"] == false, "{answer}");
    Ok(())
}

// Refuses: reload
#[lab::test]
fn what_needs_a_restart_is_told_until_it_is_done() -> Result<()> {
    let (pair, mut tunnel) = start(Terms::PLAIN)?;
    let other = format!("{}[listen]\nnat = 4501\n", gateway_config(Terms::PLAIN));
    for _ in 0..2 {
        let text = tunnel.gateway.change(&other)?;
        ensure!(
            text.contains("! listen.nat 4500 -> 4501 (needs a restart)\n"),
            "{text}"
        );
        ensure!(text.contains("restart stratad for 1"), "{text}");
    }
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    tunnel.gateway.stop()?;
    tunnel.gateway.start_again()?;
    let text = tunnel.gateway.strata_text("reload")?;
    ensure!(text.ends_with("no changes\n"), "{text}");
    Ok(())
}

// Works: reload
#[lab::test]
fn a_removed_peer_goes_with_its_routes() -> Result<()> {
    let (pair, tunnel) = start(Terms::ZONED)?;
    tunnel.gateway.change(&with_bob())?;
    let only_bob = gateway_config(Terms::ZONED);
    let (head, tail) = (
        only_bob.find("[peer.alice]"),
        only_bob.find("[licensed.fa]"),
    );
    let (head, tail) = (head.context("a peer")?, tail.context("a node")?);
    let only_bob = format!("{}{BOB}{}", &only_bob[..head], &only_bob[tail..]);
    let text = tunnel.gateway.change(&only_bob)?;
    ensure!(text.contains("- peer.alice\n"), "{text}");
    ensure!(names(&tunnel.gateway.strata("status")?) == ["bob", "fa"]);
    tunnel.mobile.wait_until("status", DEADLINE, |status| {
        !is_up(status) && pair::refusal(status).contains("closed")
    })?;
    let routes = pair.gateway.run("ip route show table 7296")?;
    ensure!(!routes.contains("10.1.0.2"), "{routes}");
    ensure!(routes.contains("10.77.0.0/16"), "{routes}");
    Ok(())
}

// Works: reload
#[lab::test]
fn an_added_peer_comes_up() -> Result<()> {
    let pair = Pair::new("reload")?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    pair.mobile
        .secret("tunnel.psk", "a key for somebody else")?;
    let office = mobile_config(Family::V4, Terms::PLAIN, "auto");
    let elsewhere = office
        .replace("office", "elsewhere")
        .replace("192.0.2.1", "192.0.2.99")
        .replace("auto", "manual");
    let mobile = pair.mobile.stratad(&elsewhere)?;
    pair.mobile
        .secret("tunnel.psk", "a key between mobile node and gateway")?;
    let text = mobile.change(&office)?;
    ensure!(text.contains("- peer.elsewhere\n+ peer.office\n"), "{text}");
    mobile.wait_until("status", DEADLINE, is_up)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)
}

#[lab::test]
fn the_first_tunnel_and_the_last_come_and_go_with_the_device() -> Result<()> {
    let pair = Pair::new("reload")?;
    let between = pair.start_licensed(LICENSED)?;
    pair.between
        .secret("tunnel.psk", "a key for a tunnel of its own")?;
    // The daemon answers once set-up is complete.
    between.strata("status")?;
    let before = pair::traces(&pair.between)?;
    let (node, own) = (
        licensed_config(LICENSED),
        BOB.replace("10.8.0.0/16", "10.9.0.0/16"),
    );
    for _ in 0..2 {
        between.change(&format!("{node}{own}"))?;
        let routes = pair.between.run("ip route show table 7296")?;
        ensure!(routes.contains("dev strata0"), "{routes}");
        between.change(&node)?;
        let after = pair::traces(&pair.between)?;
        ensure!(after == before, "{before:#?}\n{after:#?}");
    }
    Ok(())
}

#[lab::test]
fn a_new_key_is_taken_up_and_never_shown() -> Result<()> {
    const SECRET: &str = "a key that nobody has ever seen";
    let (pair, mut tunnel) = start(Terms::PLAIN)?;
    let before = tunnel.spis()?;
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", SECRET)?;
    }
    for daemon in [&tunnel.gateway, &tunnel.mobile] {
        let text = daemon.strata_text("reload --dry-run")?;
        let json = daemon.strata("reload")?.to_string();
        ensure!(text.contains(".psk changed (reconnects)\n"), "{text}");
        ensure!(json.contains("made_anew"), "{json}");
        ensure!(
            !text.contains(SECRET) && !json.contains(SECRET),
            "{text}{json}"
        );
    }
    tunnel.mobile.wait_until("status", DEADLINE, is_up)?;
    tunnel.gateway.wait_until("status", DEADLINE, is_up)?;
    ensure!(tunnel.spis()? != before, "the same SPIs");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    for daemon in [&mut tunnel.gateway, &mut tunnel.mobile] {
        ensure!(!daemon.process().log().contains(SECRET), "in the journal");
    }
    Ok(())
}

#[lab::test]
fn policies_hold_at_once() -> Result<()> {
    let (pair, tunnel) = start(Terms::PLAIN)?;
    let before = tunnel.spis()?;
    let discard = "[[policy]]\naction = \"discard\"\nremote = \"10.8.0.0/16\"\n";
    let config = mobile_config(Family::V4, Terms::PLAIN, "manual");
    let text = tunnel.mobile.change(&format!("{config}{discard}"))?;
    ensure!(text.contains("+ policy[0]\n"), "{text}");
    let discarded = |status: &Value| status["status"]["drops"]["esp_discard_policy"].is_u64();
    let socket = pair
        .mobile
        .inside(|| Ok(UdpSocket::bind((MOBILE[0], 0))?))?;
    socket.send_to(b"nowhere", (GATEWAY[0], 9))?;
    tunnel.mobile.wait_until("status", DEADLINE, discarded)?;
    tunnel.mobile.change(&config)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    ensure!(tunnel.spis()? == before, "other SPIs");
    Ok(())
}

#[lab::test]
fn the_log_says_as_much_as_it_is_told_to() -> Result<()> {
    let (_pair, mut tunnel) = start(Terms::PLAIN)?;
    let config = mobile_config(Family::V4, Terms::PLAIN, "manual");
    tunnel
        .mobile
        .change(&format!("{config}[log]\nlevel = \"error\"\n"))?;
    let before = tunnel.mobile.process().log();
    tunnel.mobile.strata_text("down office")?;
    tunnel.mobile.wait_until("status", DEADLINE, is_down)?;
    ensure!(tunnel.mobile.process().log() == before, "it still talks");
    tunnel.mobile.change(&config)?;
    tunnel.up()?;
    let after = tunnel.mobile.process().log();
    ensure!(
        after.len() > before.len() && after.contains("peer office: up"),
        "{after}"
    );
    Ok(())
}

// Works: licence-changes
// Works: reload
#[lab::test]
fn after_a_licence_is_removed_the_node_opens_nothing() -> Result<()> {
    let (pair, tunnel) = start(Terms::LICENSED)?;
    let licensed = pair.start_licensed(LICENSED)?;
    licensed.wait_until("zones", DEADLINE, pair::holds_a_grant)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    let before = tunnel.spis()?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        let text = tunnel.gateway.change(&gateway_config(Terms::ZONED))?;
        let line = "~ peer.alice.licences [fa.example.net read headers] -> [] (rekeys)\n";
        ensure!(text.contains(line), "{text}");
        until("new keys at both ends", DEADLINE, || {
            let now = tunnel.spis()?;
            let mut ends = now.iter().zip(&before);
            let new = ends.all(|(now, before)| now.iter().any(|spis| !before.contains(spis)));
            Ok(new.then_some(()))
        })
    })?;
    licensed.wait_until("zones", DEADLINE, |zones| !pair::holds_a_grant(zones))?;
    let opened = segments(&licensed)?;
    ensure!(opened > 0, "it never opened anything");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 1_000_000)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 1_000_000)?;
    ensure!(segments(&licensed)? == opened, "it opened packets");
    let zones = tunnel.gateway.strata("zones")?;
    ensure!(
        zones["zones"]["composites"][0]["holders"] == json!([]),
        "{zones}"
    );
    Ok(())
}

#[lab::test]
fn a_licensed_node_that_is_added_reads_from_then_on() -> Result<()> {
    let pair = Pair::new("reload")?;
    let licensed = pair.start_licensed(LICENSED)?;
    let full = gateway_config(Terms::LICENSED);
    let node = full.find("[licensed.fa]").context("a node")?;
    pair.gateway
        .secret("tunnel.psk", "a key between mobile node and gateway")?;
    pair.gateway
        .secret("node.psk", "a key between gateway and licensed node")?;
    let gateway = pair.gateway.stratad(&full[..node])?;
    let mobile = pair.start_mobile(Family::V4, Terms::LICENSED, "manual")?;
    let tunnel = Tunnel { mobile, gateway };
    tunnel.up()?;
    let before = tunnel.spis()?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        tunnel.gateway.change(&full)?;
        licensed.wait_until("zones", DEADLINE, pair::holds_a_grant)
    })?;
    ensure!(tunnel.spis()? == before, "other SPIs");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    ensure!(segments(&licensed)? > 0, "it opened nothing");
    Ok(())
}

/// Starts a tunnel and brings it up.
fn start(terms: Terms<'_>) -> Result<(Pair, Tunnel)> {
    let pair = Pair::new("reload")?;
    let tunnel = pair.start_up(terms)?;
    Ok((pair, tunnel))
}

/// Returns the gateway's configuration with one more peer, and one change that applies in place.
fn with_bob() -> String {
    let config = gateway_config(Terms::ZONED);
    let config = config.replacen("liveness = \"1s\"", "liveness = \"7s\"", 1);
    format!("{config}{BOB}")
}

/// Applies a configuration with faults; returns the error message.
fn refused(daemon: &Daemon, config: &str) -> Result<String> {
    match daemon.change(config) {
        Ok(text) => bail!("it was accepted: {text}"),
        Err(error) => Ok(format!("{error:?}")),
    }
}

fn names(status: &Value) -> Vec<&str> {
    let peers = status["status"]["peers"].as_array();
    let names = peers
        .into_iter()
        .flatten()
        .filter_map(|peer| peer["name"].as_str());
    names.collect()
}

/// Returns the number of packets that the data plane dropped.
fn drops(status: &Value) -> u64 {
    let drops = status["status"]["drops"].as_object();
    let drops = drops.into_iter().flatten();
    let esp = drops.filter(|(reason, _)| reason.starts_with("esp_"));
    esp.filter_map(|(_, count)| count.as_u64()).sum()
}
