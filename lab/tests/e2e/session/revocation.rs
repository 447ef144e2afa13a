//! Revoked certificates: a peer is refused when it connects and disconnected when the list arrives.
//! Lists come from `strata pki` and from openssl.

use anyhow::{Result, bail, ensure};
use lab::account::{expect_row, wait};
use lab::certified::{self, ALICE, CA, GATEWAY_CONFIG, GW, MOBILE_CONFIG, hand_out, strata};
use lab::host::Host;
use lab::openssl::{self, EC, GOOD, authority};
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, Tunnel, is_down, is_up, refusal};
use lab::transfer::transfer;
use serde_json::Value;
use std::time::Duration;

const CRL: &str = "crl = [\"ca.crl\"]";

const STRICT: &str = "crl = [\"ca.crl\"]\nrevocation = \"strict\"";

/// Gives mobile node and gateway certificates of one CA, and the gateway an empty revocation list.
fn issued(pair: Pair) -> Result<Pair> {
    let maker = &pair.mobile;
    strata(maker, "pki ca --name Root --out root")?;
    for (host, id) in [
        (&pair.mobile, "alice@example.net"),
        (&pair.gateway, "gw.example.net"),
    ] {
        strata(maker, &format!("pki issue --ca root --out made --id {id}"))?;
        hand_out(maker, host, id)?;
    }
    strata(maker, "pki crl --ca root")?;
    publish(&pair)?;
    Ok(pair)
}

/// Copies the newest list to the gateway.
fn publish(pair: &Pair) -> Result<()> {
    let list = std::fs::read_to_string(pair.mobile.directory().join("root/ca.crl"))?;
    pair.gateway.file("ca.crl", &list).map(drop)
}

fn revoke(pair: &Pair, id: &str) -> Result<()> {
    let told = strata(&pair.mobile, &format!("pki revoke --ca root made/{id}.pem"))?;
    ensure!(told.contains("wrote root/ca.crl"), "{told}");
    publish(pair)
}

/// Returns the gateway's configuration with these lines in `[node]`.
fn gateway_with(lines: &str) -> String {
    let ca = "ca = [\"ca.pem\"]";
    GATEWAY_CONFIG.replace(ca, &format!("{ca}\n{lines}"))
}

/// Starts both daemons with a short `liveness`; they are not connected yet.
fn start(pair: &Pair, lines: &str) -> Result<Tunnel> {
    let lively = |config: &str| format!("{config}liveness = \"1s\"\n");
    Ok(Tunnel {
        gateway: pair.gateway.stratad(&lively(&gateway_with(lines)))?,
        mobile: pair.mobile.stratad(&lively(MOBILE_CONFIG))?,
    })
}

fn up(pair: &Pair, lines: &str) -> Result<Tunnel> {
    let tunnel = start(pair, lines)?;
    tunnel.up()?;
    Ok(tunnel)
}

// Refuses: revocation-lists
#[lab::test]
fn a_revoked_certificate_is_refused_and_both_ends_say_so() -> Result<()> {
    let pair = issued(Pair::new("revocation")?)?;
    revoke(&pair, "alice@example.net")?;
    let tunnel = start(&pair, CRL)?;
    is_refused(
        &tunnel,
        "the certificate was revoked; issue a new one",
        "`CN=alice@example.net` was revoked by its CA on",
    )?;
    let explained = wait(&tunnel.gateway, "alice", "failed")?;
    let attempt = &explained["attempt"];
    expect_row(attempt, "peer certificate", "differs")?;
    let fixes = attempt["fixes"].to_string();
    ensure!(fixes.contains("for a new key"), "{fixes}");
    let explained = wait(&tunnel.mobile, "office", "failed")?;
    expect_row(&explained["attempt"], "our certificate", "suspect")
}

// Works: revocation-lists
#[lab::test]
fn a_list_that_comes_by_reload_ends_the_tunnel() -> Result<()> {
    let pair = issued(Pair::new("revocation")?)?;
    let mut tunnel = up(&pair, CRL)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    revoke(&pair, "alice@example.net")?;
    let text = tunnel.gateway.strata_text("reload")?;
    ensure!(text.contains("~ node.crl [CN=Root of "), "{text}");
    let ended = |status: &Value| is_down(status) && refusal(status).contains("was revoked by");
    tunnel.gateway.wait_until("status", DEADLINE, ended)?;
    let words = "`CN=alice@example.net` was revoked by its CA";
    tunnel.gateway.process().wait_for_log(words, DEADLINE)?;
    // The mobile node keeps trying and learns the reason of the refusal.
    let told =
        |status: &Value| !is_up(status) && refusal(status).contains("the certificate was revoked");
    tunnel.mobile.wait_until("status", DEADLINE, told)?;
    let metrics = tunnel.gateway.strata_text("metrics")?;
    let end = "strata_revocation_list_expiry_timestamp_seconds{issuer=\"CN=Root\"}";
    ensure!(metrics.contains(end), "{metrics}");
    // A new certificate with a new key is accepted.
    let again = "pki issue --ca root --out made --force --id alice@example.net";
    strata(&pair.mobile, again)?;
    hand_out(&pair.mobile, &pair.mobile, "alice@example.net")?;
    tunnel.mobile.strata_text("reload")?;
    tunnel.up()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)
}

// Works: revocation-lists
#[lab::test]
fn a_list_that_revokes_somebody_else_leaves_the_tunnel_alone() -> Result<()> {
    let pair = issued(Pair::new("revocation")?)?;
    let tunnel = up(&pair, STRICT)?;
    let before = tunnel.spis()?;
    let bob = "pki issue --ca root --out made --id bob@example.net";
    strata(&pair.mobile, bob)?;
    revoke(&pair, "bob@example.net")?;
    let text = tunnel.gateway.strata_text("reload")?;
    ensure!(text.contains("~ node.crl "), "{text}");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 100_000)?;
    ensure!(tunnel.spis()? == before, "other SPIs");
    Ok(())
}

// Refuses: revocation-lists
#[lab::test]
fn a_list_that_is_not_good_changes_nothing_and_says_what_to_do() -> Result<()> {
    let pair = issued(Pair::new("revocation")?)?;
    let tunnel = up(&pair, CRL)?;
    let before = tunnel.spis()?;
    for (spoil, says, fix) in [
        ("rm ca.crl", "cannot read", "name a PEM file"),
        (
            "cp ca.pem ca.crl",
            "not a version 2 revocation list",
            "X509 CRL",
        ),
    ] {
        pair.gateway.run(spoil)?;
        let Err(refused) = tunnel.gateway.strata_text("reload") else {
            bail!("after `{spoil}` it was accepted");
        };
        let text = format!("{refused:?}");
        ensure!(
            text.contains(says) && text.contains(fix),
            "after `{spoil}`: {text}"
        );
        ensure!(tunnel.spis()? == before, "other SPIs after `{spoil}`");
    }
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)
}

/// openssl creates the lists.
// Refuses: revocation-lists
#[lab::test]
fn strict_refuses_where_no_list_holds_and_relaxed_warns() -> Result<()> {
    let pair = Pair::new("revocation")?;
    authority(&pair.mobile, EC, CA)?;
    for file in ["ca.pem", "ca.key"] {
        let text = std::fs::read_to_string(pair.mobile.directory().join(file))?;
        pair.gateway.secret(file, &text)?;
    }
    let past = "-crl_lastupdate 20200101000000Z -crl_nextupdate 20200201000000Z";
    openssl::list(&pair.gateway, past)?;
    let gateway = certified::start(&pair.gateway, GW, GOOD, &gateway_with(STRICT))?;
    let mobile = certified::start(&pair.mobile, ALICE, GOOD, MOBILE_CONFIG)?;
    let tunnel = Tunnel { mobile, gateway };
    is_refused(
        &tunnel,
        "the peer cannot check its revocation",
        "expired on 2020-02-01 00:00 UTC, and `revocation` is strict",
    )?;
    let explained = wait(&tunnel.gateway, "alice", "failed")?;
    let fixes = explained["attempt"]["fixes"].to_string();
    ensure!(fixes.contains("node.crl"), "{fixes}");
    // An expired list still applies to the certificates on it. This certificate is not on it.
    let text = tunnel.gateway.change(&gateway_with(CRL))?;
    ensure!(
        text.contains("~ node.revocation strict -> relaxed"),
        "{text}"
    );
    tunnel.up()?;
    warned(&tunnel, &pair.gateway, true)?;
    tunnel.mobile.strata_text("down office")?;
    openssl::list(&pair.gateway, "-crldays 30")?;
    tunnel.gateway.change(&gateway_with(STRICT))?;
    tunnel.up()?;
    warned(&tunnel, &pair.gateway, false)
}

/// Fails unless `status`, `check` and `doctor` all warn about the expired list, or none does, as
/// expected.
fn warned(tunnel: &Tunnel, host: &Host, expected: bool) -> Result<()> {
    let words = "the revocation list of `CN=Lab CA` EXPIRED on 2020-02-01";
    let status = tunnel.gateway.strata("status")?["status"]["warnings"].to_string();
    let checked = strata(host, "check strata.toml")?;
    // The doctor may find other problems, because a test's network differs from a healthy
    // machine's.
    let examined = match strata(host, "doctor strata.toml") {
        Ok(text) => text,
        Err(error) => format!("{error:?}"),
    };
    for text in [status, checked, examined] {
        ensure!(text.contains(words) == expected, "{text}");
    }
    Ok(())
}

// Refuses: revocation-lists
#[lab::test]
fn strict_without_a_list_is_a_fault_of_the_file() -> Result<()> {
    let pair = issued(Pair::new("revocation")?)?;
    let config = gateway_with("revocation = \"strict\"");
    pair.gateway.file("strata.toml", &config)?;
    let Err(refused) = strata(&pair.gateway, "check strata.toml") else {
        bail!("it was taken");
    };
    let text = format!("{refused:?}");
    for words in ["node.revocation", "without `crl`", "strata pki crl"] {
        ensure!(text.contains(words), "{words:?} is not in {text}");
    }
    Ok(())
}

// Works: revocation-lists
#[lab::test]
fn lists_of_strata_pki_are_what_openssl_believes() -> Result<()> {
    let pair = issued(Pair::new("revocation")?)?;
    let host = &pair.mobile;
    let verify = |id: &str| {
        host.run(&format!(
            "openssl verify -x509_strict -crl_check -CAfile root/ca.pem -CRLfile root/ca.crl made/{id}.pem"
        ))
    };
    verify("alice@example.net")?;
    revoke(&pair, "alice@example.net")?;
    // A new list contains the entries of the last one.
    strata(host, "pki crl --ca root --days 7")?;
    verify("gw.example.net")?;
    let Err(revoked) = verify("alice@example.net") else {
        bail!("openssl believes a revoked certificate");
    };
    let text = format!("{revoked:?}");
    ensure!(text.contains("certificate revoked"), "{text}");
    let shown: Value = serde_json::from_str(&strata(host, "pki show root/ca.crl --json")?)?;
    let list = &shown["pki"]["lists"][0];
    ensure!(list["issuer"] == "CN=Root" && list["number"] == 3, "{list}");
    let alice = strata(host, "pki show made/alice@example.net.pem --json")?;
    let alice: Value = serde_json::from_str(&alice)?;
    ensure!(
        list["revoked"][0]["serial"] == alice["pki"]["certificates"][0]["serial"],
        "{list}"
    );
    ensure!(list["revoked"][1].is_null(), "{list}");
    Ok(())
}

// Refuses: revocation-lists
#[lab::test]
fn a_certificate_of_another_ca_cannot_be_revoked() -> Result<()> {
    let pair = issued(Pair::new("revocation")?)?;
    let host = &pair.mobile;
    strata(host, "pki ca --name Other --out other")?;
    let before = std::fs::read(host.directory().join("root/ca.crl"))?;
    let Err(refused) = strata(host, "pki revoke --ca other made/gw.example.net.pem") else {
        bail!("another CA revoked it");
    };
    let text = format!("{refused:?}");
    for words in ["was issued by `CN=Root`", "this CA is `CN=Other`", "--ca"] {
        ensure!(text.contains(words), "{words:?} is not in {text}");
    }
    ensure!(!host.directory().join("other/ca.crl").exists());
    ensure!(std::fs::read(host.directory().join("root/ca.crl"))? == before);
    Ok(())
}

/// The DELETE may be lost, and also the refusal of later attempts.
// Recovers: revocation-lists
#[lab::test]
fn a_revocation_takes_both_ends_down_over_a_lossy_hop() -> Result<()> {
    let hop = pair::hop(1.0 / 20_000.0);
    let pair = issued(Pair::with_lossy_hop("revocation", hop)?)?;
    let tunnel = start(&pair, CRL)?;
    tunnel.mobile.strata_text("up office --wait=60")?;
    tunnel.gateway.wait_until("status", DEADLINE, is_up)?;
    revoke(&pair, "alice@example.net")?;
    tunnel.gateway.strata_text("reload")?;
    let ended = |status: &Value| pair::children(status).is_empty();
    tunnel.gateway.wait_until("status", DEADLINE, ended)?;
    let told =
        |status: &Value| !is_up(status) && refusal(status).contains("the certificate was revoked");
    let patience = Duration::from_secs(60);
    tunnel.mobile.wait_until("status", patience, told)?;
    ensure!(ended(&tunnel.gateway.strata("status")?));
    Ok(())
}

/// Fails unless the mobile node is refused and both ends report the reason.
fn is_refused(tunnel: &Tunnel, here: &str, there: &str) -> Result<()> {
    let Err(refused) = tunnel.mobile.strata_text("up office --wait") else {
        bail!("the certificate was believed");
    };
    let text = format!("{refused:?}");
    ensure!(text.contains(here), "{here:?} is not in: {text}");
    let said = |status: &Value| status["status"].to_string().contains(there);
    let status = tunnel.gateway.wait_until("status", DEADLINE, said)?;
    ensure!(!is_up(&status), "{status}");
    Ok(())
}
