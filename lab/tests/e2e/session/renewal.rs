//! Certificates, keys and CAs that change under a running daemon: `strata reload` loads them,
//! established SAs stay, and later authentications use the new ones.

use anyhow::{Context, Result, bail, ensure};
use lab::account::{row, wait};
use lab::certified::{ALICE, CA, GW, both};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::openssl::{self, EC, ED25519, GOOD, Order};
use lab::pair::{DEADLINE, GATEWAY, MOBILE, Pair, Tunnel, is_up, refusal};
use lab::transfer::transfer;
use lab::volley::volleys;
use serde_json::Value;

/// The key is also new, and of another kind.
// Works: certificates
#[lab::test]
fn a_renewed_certificate_loses_no_packet_and_proves_what_comes_afterwards() -> Result<()> {
    let (pair, tunnel) = up()?;
    let before = tunnel.spis()?;
    let first = [end(&pair.mobile)?, end(&pair.gateway)?];
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    let texts = volleys(ends.0, ends.1, || {
        renew(&pair.mobile, ALICE)?;
        renew(&pair.gateway, GW)?;
        let reload = |daemon: &Daemon| daemon.strata_text("reload");
        Ok([reload(&tunnel.mobile)?, reload(&tunnel.gateway)?])
    })?;
    let renewed = [end(&pair.mobile)?, end(&pair.gateway)?];
    for ((text, first), renewed) in texts.iter().zip(&first).zip(&renewed) {
        ensure!(first != renewed, "{first}");
        for words in [&format!("until {first}"), &format!("until {renewed}")] {
            ensure!(text.contains(words), "no {words:?}: {text}");
        }
        ensure!(text.contains("~ node.key changed (applied)\n"), "{text}");
    }
    ensure!(tunnel.spis()? == before, "other SPIs");
    ensure!(proved_until(&tunnel)? == first, "nobody proved anything");
    again(&tunnel)?;
    ensure!(tunnel.spis()? != before, "the same SPIs");
    ensure!(proved_until(&tunnel)? == renewed, "proved with the old one");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)
}

// Refuses: certificates
#[lab::test]
fn a_certificate_that_is_not_good_changes_nothing_and_says_what_to_do() -> Result<()> {
    let (pair, tunnel) = up()?;
    let before = tunnel.spis()?;
    let first = proved_until(&tunnel)?;
    let folder = pair.mobile.directory();
    let read = |file: &str| std::fs::read_to_string(folder.join(file));
    let (key, chain, ca) = (read("end.key")?, read("chain.pem")?, read("ca.pem")?);
    let strangers = "openssl genpkey -algorithm ed25519 -out end.key";
    for (spoil, says, fix) in [
        (strangers, "not for the key in `key`", "name the key"),
        ("chmod 644 end.key", "mode 0644", "chmod 0600"),
        ("rm end.key", "there is no such file", "strata pki issue"),
        ("rm chain.pem", "cannot read", "name a PEM file"),
        ("cp end.csr chain.pem", "no X.509 certificate", "PEM file"),
        ("cp end.pem ca.pem", "not the certificate of a CA", "name"),
    ] {
        pair.mobile.run(spoil)?;
        let Err(refused) = tunnel.mobile.strata_text("reload") else {
            bail!("after `{spoil}` it was accepted");
        };
        let text = format!("{refused:?}");
        ensure!(
            text.contains(says) && text.contains(fix),
            "after `{spoil}`: {text}"
        );
        ensure!(tunnel.spis()? == before, "other SPIs after `{spoil}`");
        pair.mobile.secret("end.key", &key)?;
        pair.mobile.run("chmod 600 end.key")?;
        pair.mobile.file("chain.pem", &chain)?;
        pair.mobile.file("ca.pem", &ca)?;
    }
    // The daemon authenticates with its loaded credentials and needs no files.
    pair.mobile.run("rm end.key chain.pem ca.pem")?;
    again(&tunnel)?;
    ensure!(proved_until(&tunnel)? == first, "another certificate");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)
}

/// A rekey does not authenticate again (RFC 7296 section 2.8.3), so the tunnel survives even
/// rekeys.
// Refuses: certificates
#[lab::test]
fn a_ca_that_is_taken_out_refuses_what_comes_and_leaves_what_is_up() -> Result<()> {
    let (pair, tunnel) = up()?;
    openssl::authority(&pair.gateway, EC, "Another CA")?;
    let before = tunnel.spis()?;
    let text = tunnel.gateway.strata_text("reload")?;
    ensure!(
        text.contains(&format!("~ node.ca [CN={CA} until")) && text.contains("-> [CN=Another CA"),
        "{text}"
    );
    ensure!(tunnel.spis()? == before, "other SPIs");
    tunnel.mobile.strata_text("rekey office --ike")?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    tunnel.mobile.strata_text("down office")?;
    let Err(refused) = tunnel.mobile.strata_text("up office --wait") else {
        bail!("a CA that was taken out was believed");
    };
    let text = format!("{refused:?}");
    ensure!(text.contains("our CA is not trusted there"), "{text}");
    let said = |status: &Value| refusal(status).contains("does not chain to any CA in `ca`");
    tunnel.gateway.wait_until("status", DEADLINE, said)?;
    let ca = std::fs::read_to_string(pair.mobile.directory().join("ca.pem"))?;
    pair.gateway.secret("ca.pem", &ca)?;
    tunnel.gateway.strata_text("reload")?;
    tunnel.up()
}

/// Starts a tunnel and brings it up.
fn up() -> Result<(Pair, Tunnel)> {
    let (pair, tunnel) = both(GOOD)?;
    tunnel.up()?;
    Ok((pair, tunnel))
}

/// Takes the tunnel down and up, so that both ends authenticate again.
fn again(tunnel: &Tunnel) -> Result<()> {
    tunnel.mobile.strata_text("down office")?;
    tunnel
        .gateway
        .wait_until("status", DEADLINE, |status| !is_up(status))?;
    tunnel.up()
}

/// Issues a certificate with a longer validity from the same CA.
fn renew(host: &Host, name: &str) -> Result<()> {
    let order = Order {
        key: ED25519,
        validity: "-days 700",
        ..GOOD
    };
    openssl::order(host, name, order)
}

/// Returns the day on which a host's certificate expires, according to openssl.
fn end(host: &Host) -> Result<String> {
    let told = host.run("openssl x509 -in chain.pem -noout -enddate -dateopt iso_8601")?;
    day(&told, "notAfter=")
}

/// Returns the expiry of the certificates that the mobile node and the gateway authenticated with,
/// as seen by the other end.
fn proved_until(tunnel: &Tunnel) -> Result<[String; 2]> {
    let seen = |daemon: &Daemon, peer: &str| {
        let explained = wait(daemon, peer, "up")?;
        let seen = &row(&explained["attempt"], "peer certificate")["theirs"];
        day(seen.as_str().unwrap_or(""), ", until ")
    };
    Ok([
        seen(&tunnel.gateway, "alice")?,
        seen(&tunnel.mobile, "office")?,
    ])
}

/// Returns the day that follows some words: `2031-01-01`.
fn day(text: &str, words: &str) -> Result<String> {
    let behind = text
        .split_once(words)
        .and_then(|(_, behind)| behind.get(..10));
    Ok(behind
        .with_context(|| format!("no day in {text:?}"))?
        .to_owned())
}
