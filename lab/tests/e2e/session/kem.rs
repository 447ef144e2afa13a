//! An additional key exchange with ML-KEM (RFC 9370): configured at both ends or at one, and over
//! hops that lose messages or limit their length.

use anyhow::{Context as _, Result, bail, ensure};
use lab::account::{expect_fix, expect_row, row, wait, wait_for};
use lab::certified::{self, ALICE, CA, GATEWAY_CONFIG, GW, MOBILE_CONFIG, strata};
use lab::daemon::Daemon;
use lab::openssl::{EC, GOOD, authority};
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, TUNNEL_KEY, Tunnel};
use lab::plain::{carry, configs, start};
use lab::transfer::transfer;
use lab::tshark;
use lab::volley::volleys;
use lab::wiretap::{Wiretap, write_capture};
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::path::Path;

const REQUIRED: &str = r#"kem = "mlkem768""#;
const OPTIONAL: &str = r#"kem = ["mlkem768", "none"]"#;
const LARGEST: &str = r#"kem = "mlkem1024""#;
const NONE: &str = "";

/// Payload of the last packet of the capture, in clear.
const MARKER: &str = "the last packet";

/// Key exchanges of a child SA's own, with a KEM configured.
const HYBRID: [&str; 2] = ["x25519", "mlkem768"];

/// Fails unless both ends are up and report these KEMs in all keys.
fn ensure_in_keys(tunnel: &Tunnel, kems: &[&str]) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        ensure!(pair::is_up(&status), "{status}");
        ensure!(pair::peer(&status)["kem"] == json!(kems), "{status}");
        let text = pair::details(daemon)?;
        let line = text.lines().find(|line| line.starts_with("  kem "));
        let expected =
            (!kems.is_empty()).then(|| format!("  kem       {} in all keys", kems.join(", ")));
        ensure!(line == expected.as_deref(), "{text}");
    }
    Ok(())
}

/// Fails if there is a tunnel at either end.
fn ensure_nothing_up(tunnel: &Tunnel) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        ensure!(pair::children(&status).is_empty(), "{status}");
    }
    Ok(())
}

/// Returns a counter of fragmented IKE messages.
fn count(daemon: &Daemon, kind: &str) -> Result<u64> {
    let metrics = daemon.strata_text("metrics")?;
    let name = format!("strata_ike_fragmented_total{{kind=\"{kind}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    Ok(line
        .with_context(|| format!("{name}: {metrics}"))?
        .parse()?)
}

// Works: ml-kem
#[lab::test]
fn a_kem_is_in_the_keys_of_a_tunnel_and_stays_there_through_rekeys() -> Result<()> {
    let pair = Pair::new("kem")?;
    let mut tunnel = start(&pair, REQUIRED, OPTIONAL)?;
    tunnel.up()?;
    carry(&pair)?;
    for (daemon, peer) in [(&tunnel.mobile, "office"), (&tunnel.gateway, "alice")] {
        let explained = wait(daemon, peer, "up")?;
        expect_row(&explained["attempt"], "KEM", "fits")?;
        ensure!(explained["attempt"]["fixes"] == json!([]), "{explained}");
    }
    for (words, told) in [
        ("rekey office --ike", "IKE SA rekeyed"),
        ("rekey office", "tunnel rekeyed"),
    ] {
        tunnel.mobile.strata(words)?;
        tunnel.gateway.process().wait_for_log(told, DEADLINE)?;
        tunnel.mobile.process().wait_for_log(told, DEADLINE)?;
    }
    ensure_in_keys(&tunnel, &["mlkem768"])?;
    carry(&pair)
}

/// The messages exceed the limit on a datagram.
// Works: ml-kem
#[lab::test]
fn the_largest_kem_beside_certificates_comes_in_fragments() -> Result<()> {
    let pair = Pair::new("kem")?;
    authority(&pair.mobile, EC, CA)?;
    for file in ["ca.pem", "ca.key"] {
        let text = std::fs::read_to_string(pair.mobile.directory().join(file))?;
        pair.gateway.secret(file, &text)?;
    }
    let with_kem = |config: &str| format!("{config}{LARGEST}\n");
    let gateway = certified::start(&pair.gateway, GW, GOOD, &with_kem(GATEWAY_CONFIG))?;
    let mobile = certified::start(&pair.mobile, ALICE, GOOD, &with_kem(MOBILE_CONFIG))?;
    let tunnel = Tunnel { mobile, gateway };
    tunnel.up()?;
    ensure_in_keys(&tunnel, &["mlkem1024"])?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        for kind in ["sent_in_fragments", "put_together"] {
            ensure!(count(daemon, kind)? >= 1, "{kind}");
        }
    }
    carry(&pair)
}

/// The refusal is unauthenticated at that point, so the initiator reports it and keeps trying.
// Refuses: ml-kem
#[lab::test]
fn a_kem_that_only_the_mobile_node_requires_makes_no_tunnel() -> Result<()> {
    let pair = Pair::new("kem")?;
    let tunnel = start(&pair, REQUIRED, NONE)?;
    tunnel.mobile.strata_text("up office")?;
    let refused = |explained: &Value| row(&explained["attempt"], "KEM")["verdict"] == "suspect";
    let explained = wait_for(&tunnel.mobile, "office", refused)?;
    let [config, _] = configs(REQUIRED, NONE);
    expect_fix(
        &explained["attempt"],
        "peer.office.kem",
        &config,
        "\"none\"",
    )?;
    // The initiator is not authenticated yet, so its attempt is listed as an unknown peer's.
    let told = |explained: &Value| !explained["stranger"].is_null();
    let explained = wait_for(&tunnel.gateway, "alice", told)?;
    expect_row(&explained["stranger"], "KEM", "differs")?;
    ensure_nothing_up(&tunnel)
}

// Refuses: ml-kem
#[lab::test]
fn a_kem_that_only_the_gateway_requires_makes_no_tunnel() -> Result<()> {
    let pair = Pair::new("kem")?;
    let tunnel = start(&pair, NONE, REQUIRED)?;
    tunnel.mobile.strata_text("up office")?;
    let mobile = wait(&tunnel.mobile, "office", "failed")?;
    let gateway = wait(&tunnel.gateway, "alice", "failed")?;
    let reason = mobile["attempt"]["reason"].as_str().unwrap_or("");
    ensure!(reason.contains("`kem` and `mode` if set"), "{reason}");
    let attempt = &gateway["attempt"];
    let [_, config] = configs(NONE, REQUIRED);
    expect_row(attempt, "KEM", "suspect")?;
    expect_fix(attempt, "peer.alice.kem", &config, "\"none\"")?;
    ensure_nothing_up(&tunnel)
}

// Refuses: ml-kem
#[lab::test]
fn another_kem_than_the_gateway_requires_makes_no_tunnel_and_both_say_so() -> Result<()> {
    let pair = Pair::new("kem")?;
    let tunnel = start(&pair, r#"kem = ["mlkem1024", "none"]"#, REQUIRED)?;
    tunnel.mobile.strata_text("up office")?;
    let gateway = wait(&tunnel.gateway, "alice", "failed")?;
    let attempt = &gateway["attempt"];
    let [_, config] = configs(NONE, REQUIRED);
    expect_row(attempt, "KEM", "differs")?;
    expect_fix(attempt, "peer.alice.kem", &config, "kem = \"mlkem1024\"")?;
    wait(&tunnel.mobile, "office", "failed")?;
    ensure_nothing_up(&tunnel)
}

// Works: ml-kem
#[lab::test]
fn a_kem_that_nobody_requires_and_the_gateway_lacks_is_told_and_the_tunnel_is_up() -> Result<()> {
    let pair = Pair::new("kem")?;
    let mut tunnel = start(&pair, OPTIONAL, NONE)?;
    tunnel.up()?;
    ensure_in_keys(&tunnel, &[])?;
    let words = "not protected against quantum computers";
    let status = tunnel.mobile.strata("status")?;
    ensure!(pair::refusal(&status).contains(words), "{status}");
    tunnel.mobile.process().wait_for_log(words, DEADLINE)?;
    let explained = wait(&tunnel.mobile, "office", "up")?;
    let fixes = explained["attempt"]["fixes"].to_string();
    ensure!(fixes.contains("the same `kem`"), "{explained}");
    carry(&pair)
}

// Works: ml-kem
#[lab::test]
fn a_kem_that_comes_with_a_reload_makes_the_tunnel_anew() -> Result<()> {
    let pair = Pair::new("kem")?;
    let tunnel = start(&pair, OPTIONAL, NONE)?;
    tunnel.up()?;
    ensure_in_keys(&tunnel, &[])?;
    let [_, gateway] = configs(OPTIONAL, REQUIRED);
    tunnel.gateway.configure(&gateway)?;
    tunnel.gateway.strata("reload")?;
    tunnel.mobile.wait_until("status", DEADLINE, |status| {
        pair::is_up(status) && pair::peer(status)["kem"] == json!(["mlkem768"])
    })?;
    tunnel.gateway.wait_until("status", DEADLINE, pair::is_up)?;
    ensure_in_keys(&tunnel, &["mlkem768"])?;
    carry(&pair)
}

// Refuses: ml-kem
#[lab::test]
fn a_kem_that_nobody_knows_is_a_fault_of_the_file() -> Result<()> {
    let pair = Pair::new("kem")?;
    let [config, _] = configs(r#"kem = "mlkem786""#, NONE);
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    pair.mobile.file("strata.toml", &config)?;
    let Err(refusal) = strata(&pair.mobile, "check strata.toml") else {
        bail!("it was taken");
    };
    let refusal = format!("{refusal:?}");
    for words in ["peer.office.kem", "did you mean `mlkem768`?"] {
        ensure!(refusal.contains(words), "{words:?} is not in {refusal}");
    }
    Ok(())
}

/// RFC 7383 section 2.5.2: from the gateway, fragments of 1280 octets do not pass and those of 576
/// octets do. The gateway already has the new keys when it fragments its answer again.
// Recovers: ml-kem
#[lab::test]
fn a_kem_that_is_too_long_for_the_path_is_cut_smaller() -> Result<()> {
    let pair = Pair::new("kem")?;
    let tunnel = start(&pair, REQUIRED, REQUIRED)?;
    let hook = "type filter hook forward priority 0";
    let rule = "ip saddr 192.0.2.1 ip protocol udp ip length > 800 counter drop";
    let rules = format!("table ip path {{\nchain pass {{\n{hook}\n{rule}\n}}\n}}\n");
    pair.between.file("path.nft", &rules)?;
    pair.between.run("nft -f path.nft")?;
    tunnel.mobile.strata("up office --wait=60")?;
    tunnel.gateway.wait_until("status", DEADLINE, pair::is_up)?;
    ensure_in_keys(&tunnel, &["mlkem768"])?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        ensure!(count(daemon, "cut_smaller")? == 1);
    }
    let rules = pair.between.run("nft list table ip path")?;
    ensure!(!rules.contains("counter packets 0 "), "{rules}");
    Ok(())
}

// Recovers: ml-kem
#[lab::test]
fn a_kem_comes_through_a_lossy_hop_again_and_again() -> Result<()> {
    let hop = pair::hop(1.0 / 50_000.0);
    let pair = Pair::with_lossy_hop("kem", hop)?;
    let tunnel = start(&pair, OPTIONAL, REQUIRED)?;
    for _ in 0..5 {
        tunnel.mobile.strata("up office --wait=60")?;
        tunnel.gateway.wait_until("status", DEADLINE, pair::is_up)?;
        ensure_in_keys(&tunnel, &["mlkem768"])?;
        tunnel.mobile.strata("down office")?;
    }
    tunnel.mobile.strata("up office --wait=60")?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)
}

/// Checks the key exchanges of the current child SA at both ends.
fn ensure_exchanges(tunnel: &Tunnel, expected: &[&str]) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        let children = pair::children(&status);
        let current = children.iter().find(|child| child["draining"] == false);
        let current = current.with_context(|| format!("no tunnel: {status}"))?;
        ensure!(current["key_exchanges"] == json!(expected), "{status}");
        let text = pair::details(daemon)?;
        let line = format!("  pfs       {}\n", expected.join(", "));
        ensure!(expected.is_empty() || text.contains(&line), "{text}");
    }
    Ok(())
}

/// RFC 9370 section 2.2.4. The keys of the first child SA derive from the IKE SA, which used a KEM.
// Works: ml-kem-rekey
#[lab::test]
fn new_keys_of_a_tunnel_have_a_kem_of_their_own_and_no_packet_is_lost() -> Result<()> {
    let pair = Pair::new("kem")?;
    let mut tunnel = start(&pair, REQUIRED, OPTIONAL)?;
    tunnel.up()?;
    ensure_exchanges(&tunnel, &[])?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        (0..10).try_for_each(|round| tunnel.rekey(round))
    })?;
    ensure_exchanges(&tunnel, &HYBRID)?;
    let log = tunnel.mobile.process().log();
    let told = log
        .matches("tunnel rekeyed, from x25519 and mlkem768")
        .count();
    ensure!(told == 8, "{log}");
    ensure!(!log.contains(" WARN "), "{log}");
    carry(&pair)
}

// Works: ml-kem-rekey
#[lab::test]
fn both_ends_ask_at_once_for_new_keys_with_a_kem_and_no_packet_is_lost() -> Result<()> {
    let pair = Pair::new("kem")?;
    let mut tunnel = start(&pair, REQUIRED, REQUIRED)?;
    tunnel.up()?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        for round in 1..=10 {
            std::thread::scope(|scope| {
                let mobile = scope.spawn(|| tunnel.mobile.strata("rekey office"));
                let gateway = tunnel.gateway.strata("rekey alice");
                mobile.join().expect("it returns its errors").and(gateway)
            })?;
            let words = "tunnel rekeyed, from x25519 and mlkem768";
            for daemon in [&mut tunnel.mobile, &mut tunnel.gateway] {
                let told = |log: &str| (log.matches(words).count() >= round).then_some(());
                daemon.process().wait_for(words, DEADLINE, told)?;
            }
        }
        Ok(())
    })?;
    ensure_exchanges(&tunnel, &HYBRID)
}

// Works: ml-kem-rekey
#[lab::test]
fn new_keys_of_a_tunnel_do_without_a_kem_that_the_gateway_lacks() -> Result<()> {
    let pair = Pair::new("kem")?;
    let mut tunnel = start(&pair, OPTIONAL, NONE)?;
    tunnel.up()?;
    (0..4).try_for_each(|round| tunnel.rekey(round))?;
    ensure_exchanges(&tunnel, &["x25519"])?;
    carry(&pair)
}

/// `pfs` enables a key exchange of the child SA's own, and `kem` determines its method.
// Works: ml-kem-rekey
#[lab::test]
fn new_keys_of_a_tunnel_without_pfs_have_no_kem_of_their_own() -> Result<()> {
    let pair = Pair::new("kem")?;
    let without = format!("{REQUIRED}\npfs = false");
    let mut tunnel = start(&pair, &without, &without)?;
    tunnel.up()?;
    (0..2).try_for_each(|round| tunnel.rekey(round))?;
    ensure_exchanges(&tunnel, &[])?;
    ensure_in_keys(&tunnel, &["mlkem768"])?;
    carry(&pair)
}

// Recovers: ml-kem-rekey
#[lab::test]
fn new_keys_of_a_tunnel_with_a_kem_come_through_a_lossy_hop() -> Result<()> {
    let hop = pair::hop(1.0 / 50_000.0);
    let pair = Pair::with_lossy_hop("kem", hop)?;
    let mut tunnel = start(&pair, REQUIRED, REQUIRED)?;
    tunnel.mobile.strata("up office --wait=60")?;
    tunnel.gateway.wait_until("status", DEADLINE, pair::is_up)?;
    for round in 0..4 {
        tunnel.rekey(round)?;
        ensure_exchanges(&tunnel, &HYBRID)?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)?;
    }
    Ok(())
}

/// Debian's tshark has no names for the exchange and its notify, but shows their numbers: with the
/// keys of this IKE SA, and not without.
// Works: ml-kem-rekey
#[lab::test]
fn tshark_sees_the_key_exchange_that_follows() -> Result<()> {
    let pair = Pair::new("kem")?;
    let mut tunnel = start(&pair, REQUIRED, REQUIRED)?;
    let folder = pair.mobile.directory();
    let keys = folder.join("keys");
    let keylog = format!("keylog {}", keys.display());
    tunnel.mobile.strata_text(&keylog)?;
    let tap = Wiretap::open(&pair.between)?;
    tunnel.up()?;
    tunnel.rekey(1)?;
    pair.mobile.inside(|| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        Ok(socket.send_to(MARKER.as_bytes(), "192.0.2.1:9")?)
    })?;
    let seen = tap.read_until(DEADLINE, |seen| seen.has_text(MARKER))?;
    write_capture(&folder.join("wire.pcap"), &seen)?;
    let fields = |keys: &Path, field: &str| {
        let exchange = "isakmp.exchangetype == 44";
        let fields = tshark::fields(&pair.mobile, keys, "wire.pcap", &[], exchange, field)?;
        let mut told: Vec<_> = fields.into_iter().filter(|text| !text.is_empty()).collect();
        // The tap sees every packet twice, and request and answer use the same method.
        told.dedup();
        Ok::<_, anyhow::Error>(told)
    };
    for (keys, notifies, methods) in [
        (keys, vec!["16441"], vec!["36"]),
        (folder.join("no-keys"), vec![], vec![]),
    ] {
        let told = fields(&keys, "isakmp.notify.msgtype")?;
        let exchanged = fields(&keys, "isakmp.key_exchange.dh_group")?;
        ensure!(told == notifies, "{told:?}");
        ensure!(exchanged == methods, "{exchanged:?}");
    }
    Ok(())
}
