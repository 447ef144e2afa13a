//! Raw public keys instead of certificates and secrets (RFC 7670).

use anyhow::{Context as _, Result, bail, ensure};
use lab::account::{expect_fix, expect_row, wait};
use lab::certified::{ALICE, CA, GATEWAY_CONFIG, MOBILE_CONFIG, strata};
use lab::host::Host;
use lab::openssl::{self, EC, GOOD, RSA, authority};
use lab::pair::{self, DEADLINE, GATEWAY, HEADERS, LICENSED, MOBILE, Pair, Tunnel, is_up, refusal};
use lab::transfer::transfer;
use serde_json::Value;

/// Converts an end's configuration from certificates to raw keys: its own, and its peer's.
fn with_keys(config: &str, peer: &str) -> String {
    let table = format!("[peer.{peer}]\n");
    config
        .replace("cert = \"chain.pem\"\n", "")
        .replace("ca = [\"ca.pem\"]\n", "")
        .replace(&table, &format!("{table}pubkey = \"{peer}.pub\"\n"))
}

fn mobile_config() -> String {
    with_keys(MOBILE_CONFIG, "office")
}

fn gateway_config() -> String {
    with_keys(GATEWAY_CONFIG, "alice")
}

/// Creates `end.key` and `end.pub` for a host.
fn make_key(host: &Host, kind: &str) -> Result<()> {
    strata(host, &format!("pki key --name end --force {kind}")).map(drop)
}

/// Gives one host's public key to another host.
fn introduce(host: &Host, to: &Host, name: &str) -> Result<()> {
    let key = std::fs::read_to_string(host.directory().join("end.pub"))?;
    to.file(&format!("{name}.pub"), &key).map(drop)
}

fn introduce_both(pair: &Pair) -> Result<()> {
    introduce(&pair.mobile, &pair.gateway, "alice")?;
    introduce(&pair.gateway, &pair.mobile, "office")
}

/// Starts both daemons; they are not connected yet.
fn start(pair: &Pair) -> Result<Tunnel> {
    Ok(Tunnel {
        gateway: pair.gateway.stratad(&gateway_config())?,
        mobile: pair.mobile.stratad(&mobile_config())?,
    })
}

// Works: raw-public-keys
#[lab::test]
fn ecdsa_keys_carry_a_tunnel() -> Result<()> {
    keys_carry_a_tunnel("--p256")
}

// Works: raw-public-keys
#[lab::test]
fn p384_keys_carry_a_tunnel() -> Result<()> {
    keys_carry_a_tunnel("--p384")
}

// Works: raw-public-keys
#[lab::test]
fn ed25519_keys_carry_a_tunnel() -> Result<()> {
    keys_carry_a_tunnel("--ed25519")
}

fn keys_carry_a_tunnel(kind: &str) -> Result<()> {
    let pair = Pair::new("pubkey")?;
    make_key(&pair.mobile, kind)?;
    make_key(&pair.gateway, kind)?;
    introduce_both(&pair)?;
    carries_data(&pair, &start(&pair)?)
}

/// openssl creates the keys and extracts the public keys.
// Works: raw-public-keys
#[lab::test]
fn rsa_keys_carry_a_tunnel() -> Result<()> {
    let pair = Pair::new("pubkey")?;
    for host in [&pair.mobile, &pair.gateway] {
        host.run(&format!("openssl genpkey -algorithm {RSA} -out end.key"))?;
        host.run("chmod 600 end.key")?;
        host.run("openssl pkey -in end.key -pubout -out end.pub")?;
    }
    introduce_both(&pair)?;
    carries_data(&pair, &start(&pair)?)
}

fn carries_data(pair: &Pair, tunnel: &Tunnel) -> Result<()> {
    tunnel.up()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 1_000_000)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 1_000_000)?;
    for (daemon, peer) in [(&tunnel.mobile, "office"), (&tunnel.gateway, "alice")] {
        let explained = wait(daemon, peer, "up")?;
        expect_row(&explained["attempt"], "authentication", "fits")?;
        expect_row(&explained["attempt"], "peer public key", "fits")?;
    }
    Ok(())
}

// Works: raw-public-keys
#[lab::test]
fn a_licensed_node_that_is_known_by_its_key_gets_its_grant() -> Result<()> {
    let pair = Pair::new("pubkey")?;
    for host in [&pair.mobile, &pair.gateway, &pair.between] {
        make_key(host, "")?;
    }
    introduce_both(&pair)?;
    introduce(&pair.between, &pair.gateway, "fa")?;
    introduce(&pair.gateway, &pair.between, "gw")?;
    let zones = format!("zones = \"require\"\nlicences = {HEADERS}\n");
    let node = format!(
        "[licensed.fa]\naddress = \"192.0.2.2\"\nid = \"{LICENSED}\"\npubkey = \"fa.pub\"\n"
    );
    let licensed = pair.between.stratad(LICENSED_CONFIG)?;
    let gateway = format!("{}{zones}{node}", gateway_config());
    let gateway = pair.gateway.stratad(&gateway)?;
    let mobile = pair
        .mobile
        .stratad(&format!("{}{zones}", mobile_config()))?;
    carries_data(&pair, &Tunnel { mobile, gateway })?;
    let held = |zones: &Value| {
        let held = zones["zones"]["held"].as_array();
        held.is_some_and(|held| held.len() == 1 && held[0]["identity"] == "gw.example.net")
    };
    licensed.wait_until("zones", DEADLINE, held).map(drop)
}

// Refuses: raw-public-keys
#[lab::test]
fn another_key_is_refused_and_both_ends_say_so() -> Result<()> {
    let pair = Pair::new("pubkey")?;
    make_key(&pair.mobile, "")?;
    make_key(&pair.gateway, "")?;
    introduce_both(&pair)?;
    make_key(&pair.mobile, "")?;
    let tunnel = start(&pair)?;
    is_refused(&tunnel, "the peer refused our public key")?;
    let explained = wait(&tunnel.gateway, "alice", "failed")?;
    let attempt = &explained["attempt"];
    let reason = attempt["reason"].as_str().context("no reason")?;
    ensure!(reason.contains("is configured"), "{reason}");
    expect_row(attempt, "peer public key", "differs")?;
    let config = gateway_config();
    expect_fix(attempt, "peer.alice.pubkey", &config, "strata pki pubkey")?;
    let explained = wait(&tunnel.mobile, "office", "failed")?;
    expect_row(&explained["attempt"], "our public key", "suspect")
}

// Refuses: raw-public-keys
#[lab::test]
fn a_certificate_where_a_key_is_expected_is_refused() -> Result<()> {
    let pair = Pair::new("pubkey")?;
    make_key(&pair.gateway, "")?;
    authority(&pair.mobile, EC, CA)?;
    openssl::order(&pair.mobile, ALICE, GOOD)?;
    pair.mobile
        .run("openssl pkey -in end.key -pubout -out end.pub")?;
    introduce(&pair.mobile, &pair.gateway, "alice")?;
    let ca = std::fs::read_to_string(pair.mobile.directory().join("ca.pem"))?;
    pair.gateway.file("ca.pem", &ca)?;
    let trusting = gateway_config().replace("[tunnel]", "ca = [\"ca.pem\"]\n[tunnel]");
    let tunnel = Tunnel {
        gateway: pair.gateway.stratad(&trusting)?,
        mobile: pair.mobile.stratad(MOBILE_CONFIG)?,
    };
    is_refused(&tunnel, "a pre-shared key or a public key there")?;
    let explained = wait(&tunnel.gateway, "alice", "failed")?;
    let reason = explained["attempt"]["reason"].to_string();
    ensure!(
        reason.contains("authenticate with its configured public key"),
        "{reason}"
    );
    expect_row(&explained["attempt"], "authentication", "differs")
}

// Works: raw-public-keys
#[lab::test]
fn a_key_that_changes_with_a_reload_makes_the_tunnel_anew() -> Result<()> {
    let pair = Pair::new("pubkey")?;
    make_key(&pair.mobile, "--ed25519")?;
    make_key(&pair.gateway, "")?;
    introduce_both(&pair)?;
    let tunnel = start(&pair)?;
    tunnel.up()?;
    make_key(&pair.mobile, "")?;
    introduce(&pair.mobile, &pair.gateway, "alice")?;
    let text = tunnel.gateway.strata_text("reload")?;
    let words = "~ peer.alice.pubkey Ed25519 ";
    ensure!(
        text.contains(words) && text.contains("reconnects"),
        "{text}"
    );
    let refused = |status: &Value| !is_up(status) && refusal(status).contains("our public key");
    tunnel.mobile.wait_until("status", DEADLINE, refused)?;
    tunnel.mobile.strata_text("reload")?;
    tunnel.up()?;
    carries_data(&pair, &tunnel)
}

// Refuses: raw-public-keys
#[lab::test]
fn what_is_no_public_key_is_a_fault_of_the_file() -> Result<()> {
    let pair = Pair::new("pubkey")?;
    make_key(&pair.mobile, "")?;
    pair.mobile.run("cp end.key office.pub")?;
    pair.mobile.file("strata.toml", &mobile_config())?;
    let Err(refused) = strata(&pair.mobile, "check strata.toml") else {
        bail!("it was taken");
    };
    let text = format!("{refused:?}");
    for words in ["peer.office.pubkey", "no public key", "strata pki pubkey"] {
        ensure!(text.contains(words), "{words:?} is not in {text}");
    }
    Ok(())
}

// Works: raw-public-keys
#[lab::test]
fn strata_pki_prints_the_public_key_that_openssl_prints() -> Result<()> {
    let pair = Pair::new("pubkey")?;
    let host = &pair.mobile;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for kind in ["--ed25519", "--p256", "--p384"] {
        make_key(host, kind)?;
        let openssl = lines(&host.run("openssl pkey -in end.key -pubout")?);
        ensure!(openssl.len() > 2, "{openssl:?}");
        let printed = strata(host, "pki pubkey end.key")?;
        ensure!(lines(&printed) == openssl, "{kind}: {printed}");
        let written = std::fs::read_to_string(host.directory().join("end.pub"))?;
        ensure!(lines(&written) == openssl, "{kind}: {written}");
    }
    let mode = host.run("stat -c %a end.key")?;
    ensure!(mode.trim() == "600", "{mode}");
    let Err(refused) = strata(host, "pki key --name end") else {
        bail!("a key was replaced");
    };
    let text = format!("{refused:?}");
    ensure!(text.contains("already exists"), "{text}");
    let Err(refused) = strata(host, "pki pubkey end.pub") else {
        bail!("a public key was taken for a private one");
    };
    let text = format!("{refused:?}");
    ensure!(text.contains("holds no private key"), "{text}");
    Ok(())
}

// Recovers: raw-public-keys
#[lab::test]
fn keys_come_through_a_lossy_hop_again_and_again() -> Result<()> {
    let hop = pair::hop(1.0 / 20_000.0);
    let pair = Pair::with_lossy_hop("pubkey", hop)?;
    make_key(&pair.mobile, "")?;
    make_key(&pair.gateway, "")?;
    introduce_both(&pair)?;
    let tunnel = start(&pair)?;
    for _ in 0..5 {
        tunnel.mobile.strata("up office --wait=60")?;
        tunnel.gateway.wait_until("status", DEADLINE, is_up)?;
        tunnel.mobile.strata("down office")?;
    }
    tunnel.mobile.strata("up office --wait=60")?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)
}

fn is_refused(tunnel: &Tunnel, here: &str) -> Result<()> {
    let Err(refused) = tunnel.mobile.strata_text("up office --wait") else {
        bail!("it was not refused");
    };
    let text = format!("{refused:?}");
    ensure!(text.contains(here), "{here:?} is not in: {text}");
    let status = tunnel.gateway.strata("status")?;
    ensure!(!is_up(&status), "{status}");
    Ok(())
}

const LICENSED_CONFIG: &str = r#"
[node]
id = "fa.example.net"
key = "end.key"
[gateway.gw]
id = "gw.example.net"
pubkey = "gw.pub"
[divert]
wired = "wired"
wireless = "wireless"
[snoop]
enabled = true
"#;
