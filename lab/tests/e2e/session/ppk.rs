//! A post-quantum pre-shared key (PPK, RFC 8784): the same at both ends, different ones, and at one
//! end only.

use anyhow::{Context as _, Result, bail, ensure};
use lab::account::{expect_fix, expect_row, row, wait, wait_for};
use lab::certified::{self, ALICE, CA, GATEWAY_CONFIG, GW, MOBILE_CONFIG, strata};
use lab::daemon::Daemon;
use lab::openssl::{EC, GOOD, authority};
use lab::pair::{self, DEADLINE, GATEWAY, Pair, TUNNEL_KEY, Tunnel};
use lab::plain::{self, carry, configs};
use lab::transfer::transfer;
use serde_json::Value;

/// Two different keys of 256 bits, in base64.
const KEY: &str = "k1l0dmVzdGVyIGlzIG5vdCBhIHF1YW50dW0ga2V5ISE=";
const ANOTHER_KEY: &str = "YW5vdGhlciBrZXkgdGhhdCBpcyBsb25nIGVub3VnaCE=";

const REQUIRED: &str = r#"ppk = { id = "office2026", key = "tunnel.ppk" }"#;
const OPTIONAL: &str = r#"ppk = { id = "office2026", key = "tunnel.ppk", required = false }"#;
const OF_ANOTHER_NAME: &str =
    r#"ppk = { id = "office2027", key = "tunnel.ppk", required = false }"#;
const NONE: &str = "";

/// Configuration of one end: a line about the peer, and the key in the file that it names.
type End<'a> = (&'a str, &'a str);

/// Starts both daemons; they are not connected yet.
fn start(pair: &Pair, mobile: End<'_>, gateway: End<'_>) -> Result<Tunnel> {
    for (host, (_, key)) in [(&pair.mobile, mobile), (&pair.gateway, gateway)] {
        host.secret("tunnel.ppk", key)?;
    }
    plain::start(pair, mobile.0, gateway.0)
}

/// Returns both ends' explanations of a tunnel that does not come up.
fn refused(tunnel: &Tunnel) -> Result<[Value; 2]> {
    tunnel.mobile.strata_text("up office")?;
    let mobile = wait(&tunnel.mobile, "office", "failed")?;
    let gateway = wait(&tunnel.gateway, "alice", "failed")?;
    ensure!(refusals(&tunnel.gateway)? >= 1, "nothing was counted");
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        ensure!(pair::children(&status).is_empty(), "{status}");
    }
    Ok([mobile, gateway].map(|explained| explained["attempt"].clone()))
}

/// Returns the number of refused initiators.
fn refusals(daemon: &Daemon) -> Result<u64> {
    let metrics = daemon.strata_text("metrics")?;
    let name = "strata_ike_datagrams_total{kind=\"refused\"} ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    Ok(line.with_context(|| metrics.clone())?.parse()?)
}

/// Returns, for each end, true if it reports a PPK in the keys.
fn protected(tunnel: &Tunnel) -> Result<[bool; 2]> {
    let is = |daemon: &Daemon| -> Result<bool> {
        let status = daemon.strata("status")?;
        ensure!(pair::is_up(&status), "{status}");
        let text = pair::details(daemon)?;
        let shown = text.lines().any(|line| line.starts_with("  ppk "));
        let told = pair::peer(&status)["ppk"] == true;
        ensure!(shown == told, "{text}");
        Ok(told)
    };
    Ok([is(&tunnel.mobile)?, is(&tunnel.gateway)?])
}

// Works: ppk
#[lab::test]
fn a_ppk_is_in_the_keys_of_a_tunnel_and_stays_there_through_rekeys() -> Result<()> {
    let pair = Pair::new("ppk")?;
    let mut tunnel = start(&pair, (REQUIRED, KEY), (REQUIRED, KEY))?;
    tunnel.up()?;
    carry(&pair)?;
    for (daemon, peer) in [(&tunnel.mobile, "office"), (&tunnel.gateway, "alice")] {
        let explained = wait(daemon, peer, "up")?;
        expect_row(&explained["attempt"], "PPK", "fits")?;
        ensure!(explained["attempt"]["fixes"] == serde_json::json!([]));
    }
    for (words, told) in [
        ("rekey office --ike", "IKE SA rekeyed"),
        ("rekey office", "tunnel rekeyed"),
    ] {
        tunnel.mobile.strata(words)?;
        tunnel.gateway.process().wait_for_log(told, DEADLINE)?;
        tunnel.mobile.process().wait_for_log(told, DEADLINE)?;
    }
    ensure!(protected(&tunnel)? == [true, true]);
    carry(&pair)
}

/// The NO_PPK_AUTH notify then contains a signature as well.
// Works: ppk
#[lab::test]
fn a_ppk_beside_certificates_is_in_the_keys_too() -> Result<()> {
    let pair = Pair::new("ppk")?;
    authority(&pair.mobile, EC, CA)?;
    for file in ["ca.pem", "ca.key"] {
        let text = std::fs::read_to_string(pair.mobile.directory().join(file))?;
        pair.gateway.secret(file, &text)?;
    }
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.ppk", KEY)?;
    }
    let with_ppk = |config: &str| format!("{config}{OPTIONAL}\n");
    let gateway = certified::start(&pair.gateway, GW, GOOD, &with_ppk(GATEWAY_CONFIG))?;
    let mobile = certified::start(&pair.mobile, ALICE, GOOD, &with_ppk(MOBILE_CONFIG))?;
    let tunnel = Tunnel { mobile, gateway };
    tunnel.up()?;
    ensure!(protected(&tunnel)? == [true, true]);
    carry(&pair)
}

// Refuses: ppk
#[lab::test]
fn another_key_of_that_name_is_refused_and_both_ends_say_so() -> Result<()> {
    let pair = Pair::new("ppk")?;
    let tunnel = start(&pair, (REQUIRED, KEY), (REQUIRED, ANOTHER_KEY))?;
    both_ends_say_so(&tunnel, REQUIRED, "and the same key")
}

// Refuses: ppk
#[lab::test]
fn a_ppk_of_another_name_is_refused_and_both_ends_say_so() -> Result<()> {
    let pair = Pair::new("ppk")?;
    let tunnel = start(&pair, (REQUIRED, KEY), (OF_ANOTHER_NAME, KEY))?;
    both_ends_say_so(&tunnel, OF_ANOTHER_NAME, "write the same `id`")
}

/// Checks both ends' explanations. The mobile node learns only that authentication failed.
fn both_ends_say_so(tunnel: &Tunnel, of_gateway: &str, fix: &str) -> Result<()> {
    let [mobile, gateway] = refused(tunnel)?;
    let [mobile_config, gateway_config] = configs(REQUIRED, of_gateway);
    expect_row(&mobile, "PPK", "suspect")?;
    expect_fix(&mobile, "peer.office.ppk", &mobile_config, "the same key")?;
    let reason = mobile["reason"].as_str().unwrap_or("");
    ensure!(reason.contains("the PPK `office2026`"), "{reason}");
    expect_row(&gateway, "PPK", "differs")?;
    ensure!(row(&gateway, "PPK")["theirs"] == "office2026", "{gateway}");
    expect_fix(&gateway, "peer.alice.ppk", &gateway_config, fix)
}

/// An attacker may have removed the missing notify from the first answer, so the initiator reports
/// it and keeps trying.
// Refuses: ppk
#[lab::test]
fn a_ppk_that_only_the_mobile_node_requires_makes_no_tunnel() -> Result<()> {
    let pair = Pair::new("ppk")?;
    let tunnel = start(&pair, (REQUIRED, KEY), (NONE, KEY))?;
    tunnel.mobile.strata_text("up office")?;
    let lacks = |explained: &Value| {
        let remarks = explained["attempt"]["remarks"].to_string();
        remarks.contains("a PPK is required here")
    };
    let explained = wait_for(&tunnel.mobile, "office", lacks)?;
    let attempt = &explained["attempt"];
    let [config, _] = configs(REQUIRED, NONE);
    expect_row(attempt, "PPK", "suspect")?;
    expect_fix(attempt, "peer.office.ppk", &config, "required = false")?;
    let status = tunnel.gateway.strata("status")?;
    ensure!(pair::children(&status).is_empty(), "{status}");
    Ok(())
}

// Refuses: ppk
#[lab::test]
fn a_ppk_that_only_the_gateway_requires_makes_no_tunnel() -> Result<()> {
    let pair = Pair::new("ppk")?;
    let tunnel = start(&pair, (NONE, KEY), (REQUIRED, KEY))?;
    let [mobile, gateway] = refused(&tunnel)?;
    let [_, config] = configs(NONE, REQUIRED);
    expect_row(&gateway, "PPK", "suspect")?;
    expect_fix(&gateway, "peer.alice.ppk", &config, "required = false")?;
    let reason = mobile["reason"].as_str().unwrap_or("");
    ensure!(reason.contains("it requires a PPK"), "{reason}");
    Ok(())
}

// Works: ppk
#[lab::test]
fn an_optional_ppk_that_the_gateway_lacks_is_told_and_the_tunnel_is_up() -> Result<()> {
    let pair = Pair::new("ppk")?;
    let mut tunnel = start(&pair, (OPTIONAL, KEY), (NONE, KEY))?;
    tunnel.up()?;
    ensure!(protected(&tunnel)? == [false, false]);
    told_without(&mut tunnel.mobile, "office", &configs(OPTIONAL, NONE)[0])?;
    carry(&pair)
}

/// The ends have different PPKs, so NO_PPK_AUTH authenticates.
// Works: ppk
#[lab::test]
fn an_optional_ppk_of_another_name_is_told_and_the_tunnel_is_up() -> Result<()> {
    let pair = Pair::new("ppk")?;
    let mut tunnel = start(&pair, (OPTIONAL, KEY), (OF_ANOTHER_NAME, KEY))?;
    tunnel.up()?;
    ensure!(protected(&tunnel)? == [false, false]);
    let [mobile, gateway] = configs(OPTIONAL, OF_ANOTHER_NAME);
    told_without(&mut tunnel.mobile, "office", &mobile)?;
    told_without(&mut tunnel.gateway, "alice", &gateway)?;
    carry(&pair)
}

/// Checks that status, log and explanation report the missing PPK, with the line to change.
fn told_without(daemon: &mut Daemon, peer: &str, config: &str) -> Result<()> {
    let words = "not protected against quantum computers";
    let status = daemon.strata("status")?;
    ensure!(pair::refusal(&status).contains(words), "{status}");
    daemon.process().wait_for_log(words, DEADLINE)?;
    let explained = wait(daemon, peer, "up")?;
    let attempt = &explained["attempt"];
    let remarks = attempt["remarks"].to_string();
    ensure!(remarks.contains(words), "{attempt}");
    expect_fix(attempt, &format!("peer.{peer}.ppk"), config, "the same")
}

/// The established SA lacks the PPK that the file now requires (RFC 8784 section 4, upgrades).
// Works: ppk
#[lab::test]
fn a_ppk_that_comes_with_a_reload_makes_the_tunnel_anew() -> Result<()> {
    let pair = Pair::new("ppk")?;
    let tunnel = start(&pair, (OPTIONAL, KEY), (NONE, KEY))?;
    tunnel.up()?;
    ensure!(protected(&tunnel)? == [false, false]);
    let [_, gateway] = configs(OPTIONAL, REQUIRED);
    tunnel.gateway.configure(&gateway)?;
    tunnel.gateway.strata("reload")?;
    tunnel.mobile.wait_until("status", DEADLINE, |status| {
        pair::is_up(status) && pair::peer(status)["ppk"] == true
    })?;
    tunnel.gateway.wait_until("status", DEADLINE, pair::is_up)?;
    ensure!(protected(&tunnel)? == [true, true]);
    carry(&pair)
}

// Refuses: ppk
#[lab::test]
fn a_ppk_that_is_too_short_is_a_fault_of_the_file() -> Result<()> {
    let pair = Pair::new("ppk")?;
    let [config, _] = configs(REQUIRED, NONE);
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    pair.mobile.secret("tunnel.ppk", "c2hvcnQgYXMgYSBwc2s=")?;
    pair.mobile.file("strata.toml", &config)?;
    let Err(refusal) = strata(&pair.mobile, "check strata.toml") else {
        bail!("it was taken");
    };
    let refusal = format!("{refusal:?}");
    for words in ["peer.office.ppk.key", "256 bits of entropy", "head -c 32"] {
        ensure!(refusal.contains(words), "{words:?} is not in {refusal}");
    }
    Ok(())
}

// Recovers: ppk
#[lab::test]
fn a_ppk_comes_through_a_lossy_hop_again_and_again() -> Result<()> {
    let hop = pair::hop(1.0 / 50_000.0);
    let pair = Pair::with_lossy_hop("ppk", hop)?;
    let tunnel = start(&pair, (OPTIONAL, KEY), (REQUIRED, KEY))?;
    for _ in 0..5 {
        tunnel.mobile.strata("up office --wait=60")?;
        tunnel.gateway.wait_until("status", DEADLINE, pair::is_up)?;
        ensure!(protected(&tunnel)? == [true, true]);
        tunnel.mobile.strata("down office")?;
    }
    tunnel.mobile.strata("up office --wait=60")?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)
}
