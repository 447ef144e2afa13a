//! Failures between two daemons, and the output of `strata explain` at either end.

use anyhow::{Result, bail, ensure};
use lab::account::{expect_fix, expect_row, row, wait, wait_for};
use lab::certified::{self, ALICE, CA, GATEWAY_CONFIG, GW, MOBILE_CONFIG, both};
use lab::daemon::Daemon;
use lab::openssl::{EC, GOOD, Order, authority};
use lab::pair::{
    DEADLINE, HEADERS, LICENSED, Pair, TUNNEL_KEY, Terms, Tunnel, gateway_config, licensed_config,
    mobile_config,
};
use os::Family;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Returns the mobile node's and the gateway's configuration.
fn configs(terms: Terms<'_>) -> [String; 2] {
    let mobile = mobile_config(Family::V4, terms, "auto");
    [mobile, gateway_config(terms)]
}

// Works: explain
#[lab::test]
fn a_tunnel_that_is_up() -> Result<()> {
    let (pair, tunnel) = start(configs(Terms::PLAIN))?;
    for (daemon, peer) in ends(&tunnel) {
        let explained = wait(daemon, peer, "up")?;
        let attempt = &explained["attempt"];
        expect_row(attempt, "peer identity", "fits")?;
        expect_row(attempt, "prefixes here", "fits")?;
        ensure!(attempt["fixes"] == serde_json::json!([]), "{attempt}");
        let text = daemon.strata_text(&format!("explain {peer}"))?;
        ensure!(text.contains(" ago: up") && !text.contains("<=="), "{text}");
    }
    drop(pair);
    Ok(())
}

// Works: explain
#[lab::test]
fn suites_without_a_common_one() -> Result<()> {
    let (_pair, tunnel) = suites_that_differ("aes128gcm16", "aes256gcm16", "IKE cipher")?;
    let text = tunnel.gateway.strata_text("explain alice")?;
    ensure!(text.contains("AES_GCM_16-128"), "{text}");
    ensure!(text.contains("<== this differs"), "{text}");
    Ok(())
}

/// The same cipher with another HMAC.
// Refuses: suites
#[lab::test]
fn suites_without_a_common_hmac() -> Result<()> {
    suites_that_differ("aes128-sha256", "aes128-sha512", "IKE integrity").map(drop)
}

/// Starts both ends with a suite each, which differ in one row, and checks both explanations.
fn suites_that_differ(ours: &str, theirs: &str, differs: &str) -> Result<(Pair, Tunnel)> {
    let [mobile, gateway] = configs(Terms::PLAIN);
    let ours = format!("suite = \"{ours}\"");
    let mobile = with(&mobile, &ours);
    // The gateway refuses no suite before authentication, because another peer may use it.
    let gateway = gateway.replace("psk = ", &format!("suite = \"{theirs}\"\npsk = "));
    let (pair, tunnel) = start([mobile.clone(), gateway.clone()])?;
    // An unauthenticated error proves nothing, so the initiator keeps trying.
    let explained = wait_for(&tunnel.mobile, "office", |explained| {
        row(&explained["attempt"], "IKE cipher")["verdict"] == "suspect"
    })?;
    expect_fix(&explained["attempt"], "peer.office.suite", &mobile, "")?;
    let explained = wait_for(&tunnel.gateway, "alice", |e| !e["stranger"].is_null())?;
    expect_row(&explained["stranger"], differs, "differs")?;
    expect_fix(&explained["stranger"], "peer.alice.suite", &gateway, &ours)?;
    Ok((pair, tunnel))
}

/// Another peer may use that group, so the gateway refuses it only after authentication.
#[lab::test]
fn groups_without_a_common_one() -> Result<()> {
    let [mobile, gateway] = configs(Terms::PLAIN);
    let mobile = with(&mobile, "groups = \"p256\"");
    let gateway = with(&gateway, "groups = \"x25519\"");
    let (_pair, tunnel) = start([mobile.clone(), gateway.clone()])?;
    let explained = wait(&tunnel.gateway, "alice", "failed")?;
    let attempt = &explained["attempt"];
    expect_row(attempt, "IKE cipher", "fits")?;
    expect_row(attempt, "key exchange", "differs")?;
    expect_fix(attempt, "peer.alice.groups", &gateway, "groups = \"p256\"")?;
    let explained = wait(&tunnel.mobile, "office", "failed")?;
    expect_fix(&explained["attempt"], "peer.office.groups", &mobile, "")
}

// Works: explain
#[lab::test]
fn another_key() -> Result<()> {
    let [mobile, gateway] = configs(Terms::PLAIN);
    let pair = Pair::new("explain")?;
    pair.gateway
        .secret("tunnel.psk", "a key that nobody else has")?;
    pair.gateway.secret("node.psk", "a key that nobody needs")?;
    let gateway_daemon = pair.gateway.stratad(&gateway)?;
    let mobile_daemon = pair.start_mobile(Family::V4, Terms::PLAIN, "auto")?;
    let explained = wait(&mobile_daemon, "office", "failed")?;
    expect_row(&explained["attempt"], "authentication", "differs")
        .or_else(|_| expect_row(&explained["attempt"], "authentication", "suspect"))?;
    expect_fix(
        &explained["attempt"],
        "peer.office.psk",
        &mobile,
        "the same key",
    )?;
    let explained = wait(&gateway_daemon, "alice", "failed")?;
    expect_row(&explained["attempt"], "authentication", "differs")?;
    expect_row(&explained["attempt"], "peer identity", "fits")?;
    expect_fix(
        &explained["attempt"],
        "peer.alice.psk",
        &gateway,
        "the same key",
    )
}

// Works: explain
#[lab::test]
fn an_identity_that_nobody_has() -> Result<()> {
    let [mobile, gateway] = configs(Terms::PLAIN);
    let mobile = mobile.replace("alice@example.net", "alise@example.net");
    let (_pair, mut tunnel) = start([mobile, gateway.clone()])?;
    let explained = wait_for(&tunnel.gateway, "alice", |e| !e["stranger"].is_null())?;
    let stranger = &explained["stranger"];
    ensure!(
        row(stranger, "peer identity")["theirs"] == "alise@example.net",
        "{stranger}"
    );
    expect_fix(
        stranger,
        "peer.alice.id",
        &gateway,
        "id = \"alise@example.net\"",
    )?;
    ensure!(explained["attempt"].is_null(), "{explained}");
    // Tools that block addresses read both.
    let remote = stranger["remote"].as_str().unwrap_or_default();
    ensure!(remote.starts_with("10.3.0.2:"), "{stranger}");
    let line = "unidentified host at 10.3.0.2:";
    tunnel.gateway.process().wait_for_log(line, DEADLINE)?;
    let explained = wait(&tunnel.mobile, "office", "failed")?;
    let reason = explained["attempt"]["reason"].as_str().unwrap_or("");
    ensure!(reason.contains("alise@example.net"), "{reason}");
    Ok(())
}

#[lab::test]
fn another_identity_than_the_one_expected() -> Result<()> {
    let [mobile, gateway] = configs(Terms::PLAIN);
    let mobile = mobile.replace("gw.example.net", "gateway.example.net");
    let (_pair, tunnel) = start([mobile.clone(), gateway.clone()])?;
    let explained = wait_for(&tunnel.gateway, "alice", |e| !e["stranger"].is_null())?;
    let stranger = &explained["stranger"];
    expect_row(stranger, "our identity", "differs")?;
    expect_fix(
        stranger,
        "node.id",
        &gateway,
        "id = \"gateway.example.net\"",
    )?;
    let explained = wait(&tunnel.mobile, "office", "failed")?;
    let attempt = &explained["attempt"];
    expect_row(attempt, "peer identity", "suspect")?;
    expect_fix(attempt, "peer.office.id", &mobile, "[node] of the peer")
}

// Works: explain
#[lab::test]
fn selectors_without_a_common_packet() -> Result<()> {
    let [mobile, gateway] = configs(Terms::PLAIN);
    let remote = "remote = [\"10.1.0.2/32\", \"fd00:1::2/128\"]";
    ensure!(gateway.contains(remote), "{gateway}");
    let gateway = gateway.replace(remote, "remote = [\"10.2.0.2/32\"]");
    let (_pair, tunnel) = start([mobile.clone(), gateway.clone()])?;
    let explained = wait(&tunnel.gateway, "alice", "failed")?;
    let attempt = &explained["attempt"];
    expect_row(attempt, "prefixes here", "fits")?;
    expect_row(attempt, "prefixes there", "differs")?;
    let write = "remote = [\"10.1.0.2/32\", \"fd00:1::2/128\"]";
    expect_fix(attempt, "peer.alice.remote", &gateway, write)?;
    let explained = wait(&tunnel.mobile, "office", "failed")?;
    expect_row(&explained["attempt"], "prefixes here", "suspect")?;
    expect_fix(&explained["attempt"], "peer.office.local", &mobile, "")
}

// Works: explain
#[lab::test]
fn zones_that_only_one_end_requires() -> Result<()> {
    let [_, zoned] = configs(Terms::ZONED);
    let [plain, _] = configs(Terms::PLAIN);
    let (_pair, tunnel) = start([plain.clone(), zoned.clone()])?;
    let explained = wait(&tunnel.gateway, "alice", "failed")?;
    expect_row(&explained["attempt"], "zones", "differs")?;
    expect_fix(
        &explained["attempt"],
        "peer.alice.zones",
        &zoned,
        "zones = \"accept\"",
    )?;
    let explained = wait(&tunnel.mobile, "office", "failed")?;
    expect_row(&explained["attempt"], "zones", "suspect")?;
    expect_fix(
        &explained["attempt"],
        "peer.office.zones",
        &plain,
        "zones = \"require\"",
    )
}

// Works: explain
#[lab::test]
fn a_licence_that_only_one_end_gives() -> Result<()> {
    let [mobile, _] = configs(Terms::LICENSED);
    let [_, gateway] = configs(Terms::ZONED);
    let (_pair, tunnel) = start([mobile.clone(), gateway])?;
    let explained = wait(&tunnel.mobile, "office", "up")?;
    let attempt = &explained["attempt"];
    expect_row(attempt, "zones", "fits")?;
    let remarks = attempt["remarks"].to_string();
    ensure!(remarks.contains(LICENSED), "{remarks}");
    expect_fix(attempt, "peer.office.licences", &mobile, LICENSED)
}

#[lab::test]
fn certificates_that_are_believed() -> Result<()> {
    let (_pair, tunnel) = both(GOOD)?;
    tunnel.up()?;
    for (daemon, peer) in ends(&tunnel) {
        let explained = wait(daemon, peer, "up")?;
        let attempt = &explained["attempt"];
        expect_row(attempt, "authentication", "fits")?;
        expect_row(attempt, "peer certificate", "fits")?;
        // A peer reports no result of verifying our certificate, other than being up.
        expect_row(attempt, "our certificate", "unknown")?;
        let wanted = row(attempt, "peer certificate")["ours"].to_string();
        ensure!(wanted.contains(&format!("by CN={CA}")), "{wanted}");
        ensure!(attempt["fixes"] == serde_json::json!([]), "{attempt}");
    }
    Ok(())
}

// Works: explain
#[lab::test]
fn an_expired_certificate() -> Result<()> {
    let (_pair, tunnel) = both(Order {
        validity: "-startdate 20200101000000Z -enddate 20200201000000Z",
        ..GOOD
    })?;
    let [mobile, gateway] = refused(&tunnel)?;
    let theirs = row(&gateway, "peer certificate");
    ensure!(
        theirs["theirs"].to_string().contains("until 2020-02-01"),
        "{theirs}"
    );
    expect_row(&gateway, "peer identity", "fits")?;
    expect_row(&gateway, "peer certificate", "differs")?;
    ensure!(
        gateway["fixes"]
            .to_string()
            .contains("issue a new certificate"),
        "{gateway}"
    );
    expect_row(&mobile, "our certificate", "suspect")?;
    expect_fix(
        &mobile,
        "node.cert",
        MOBILE_CONFIG,
        "issue it for alice@example.net",
    )
}

// Works: explain
#[lab::test]
fn a_certificate_of_the_future() -> Result<()> {
    let (_pair, tunnel) = both(Order {
        validity: "-startdate 20500101000000Z -enddate 20510101000000Z",
        ..GOOD
    })?;
    let [mobile, gateway] = refused(&tunnel)?;
    expect_row(&gateway, "peer certificate", "differs")?;
    expect_row(&mobile, "our certificate", "suspect")?;
    for end in [&mobile, &gateway] {
        let fixes = end["fixes"].to_string();
        ensure!(fixes.contains("compare the clocks"), "{end}");
        ensure!(!fixes.contains("issue"), "{end}");
    }
    Ok(())
}

// Works: explain
#[lab::test]
fn a_certificate_of_an_unknown_ca() -> Result<()> {
    let pair = Pair::new("explain")?;
    authority(&pair.gateway, EC, CA)?;
    authority(&pair.mobile, EC, "Another CA")?;
    let gateway = certified::start(&pair.gateway, GW, GOOD, GATEWAY_CONFIG)?;
    let mobile = certified::start(&pair.mobile, ALICE, GOOD, MOBILE_CONFIG)?;
    let [mobile, gateway] = refused(&Tunnel { mobile, gateway })?;
    expect_row(&gateway, "peer certificate", "differs")?;
    let add = "add the CA `CN=Another CA`";
    expect_fix(&gateway, "node.ca", GATEWAY_CONFIG, add)?;
    expect_row(&mobile, "our certificate", "suspect")?;
    let there = format!("{add} to `ca`");
    ensure!(mobile["fixes"][0]["change"] == there, "{mobile}");
    expect_fix(&mobile, "node.cert", MOBILE_CONFIG, "intermediates")
}

#[lab::test]
fn a_psk_where_a_certificate_is_expected() -> Result<()> {
    let pair = Pair::new("explain")?;
    authority(&pair.gateway, EC, CA)?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    let config = mobile_config(Family::V4, Terms::PLAIN, "manual");
    let mobile = pair.mobile.stratad(&config)?;
    let gateway = certified::start(&pair.gateway, GW, GOOD, GATEWAY_CONFIG)?;
    let [mobile, gateway] = refused(&Tunnel { mobile, gateway })?;
    expect_row(&gateway, "authentication", "differs")?;
    let proof = row(&gateway, "authentication");
    ensure!(
        proof["ours"] == "a certificate" && proof["theirs"] == "a pre-shared key",
        "{proof}"
    );
    expect_fix(&gateway, "peer.alice.psk", GATEWAY_CONFIG, "add the line")?;
    expect_row(&mobile, "authentication", "suspect")?;
    expect_fix(&mobile, "peer.office.psk", &config, "the same key")
}

/// A gateway that accepts only pre-shared keys announces no hash algorithms. It gets an ECDSA
/// signature in the format that predates RFC 7427, and refuses it without a reason.
#[lab::test]
fn a_certificate_where_a_psk_is_expected() -> Result<()> {
    let pair = Pair::new("explain")?;
    authority(&pair.mobile, EC, CA)?;
    let gateway = pair.start_gateway(Terms::PLAIN)?;
    let mobile = certified::start(&pair.mobile, ALICE, GOOD, MOBILE_CONFIG)?;
    let [mobile, gateway] = refused(&Tunnel { mobile, gateway })?;
    expect_row(&gateway, "authentication", "differs")?;
    expect_row(&mobile, "our certificate", "suspect")
}

// Works: failures
// Recovers: explain
#[lab::test]
fn no_answer_at_all() -> Result<()> {
    let pair = Pair::new("explain")?;
    let begun = Instant::now();
    let mut mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "auto")?;
    let explained = wait_for(&mobile, "office", |explained| {
        explained["attempt"]["tries"].as_u64() > Some(2)
    })?;
    ensure!(explained["local"] == serde_json::json!([]), "{explained}");
    let attempt = &explained["attempt"];
    ensure!(attempt["outcome"] == "trying", "{attempt}");
    ensure!(attempt["remote"] == "192.0.2.1:500", "{attempt}");
    let config = mobile_config(Family::V4, Terms::PLAIN, "auto");
    expect_fix(attempt, "peer.office.address", &config, "192.0.2.1")?;
    let text = mobile.strata_text("explain office")?;
    ensure!(text.contains("UDP ports 500 and 4500"), "{text}");
    let text = mobile.strata_text("status")?;
    ensure!(text.contains("no answer yet"), "{text}");
    let line = "peer office: no answer yet from 192.0.2.1:500";
    mobile.process().wait_for_log(line, DEADLINE)?;
    let took = begun.elapsed();
    println!("told after {} ms", took.as_millis());
    ensure!(took < OVERDUE * 2, "{took:?}");
    Ok(())
}

/// Time without an answer after which a line of the log tells that.
const OVERDUE: Duration = Duration::from_secs(5);

// Works: failures
#[lab::test]
fn a_cause_on_this_host_comes_before_any_at_the_peer() -> Result<()> {
    let pair = Pair::new("explain")?;
    pair.mobile.run("ip route delete default")?;
    let mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "auto")?;
    let explained = wait_for(&mobile, "office", |explained| {
        explained["attempt"]["tries"].as_u64() > Some(1)
    })?;
    ensure!(explained["local"][0]["task"] == "wait", "{explained}");
    let fixes = &explained["attempt"]["fixes"];
    ensure!(*fixes == serde_json::json!([]), "{explained}");
    let text = mobile.strata_text("explain office")?;
    let cause = "waiting for a route to 192.0.2.1 (`peer.office`)";
    ensure!(text.contains(&format!("cause: {cause}")), "{text}");
    ensure!(!text.contains("at the peer"), "{text}");
    let status = mobile.strata("status")?;
    let errors = status["status"]["errors"].as_array();
    let what: Vec<_> = errors
        .into_iter()
        .flatten()
        .map(|error| &error["what"])
        .collect();
    ensure!(what == [cause], "one failure, one error: {status}");
    Ok(())
}

// Works: failures
// Weakness: 152
#[lab::test]
fn two_machines_with_one_key_are_told_as_that() -> Result<()> {
    let pair = Pair::new("explain")?;
    let Tunnel {
        mobile,
        mut gateway,
    } = pair.start_up(Terms::PLAIN)?;
    pair.between.secret("tunnel.psk", TUNNEL_KEY)?;
    let same = mobile_config(Family::V4, Terms::PLAIN, "manual");
    let other = pair.between.stratad(&same)?;
    other.strata_text("up office --wait")?;
    mobile.strata_text("down office")?;
    mobile.strata_text("up office --wait")?;
    let told = "as if two machines used its identity and key";
    gateway.process().wait_for_log(told, DEADLINE)?;
    let status = gateway.strata("status")?;
    let rivals = status["status"]["peers"][0]["rivals"].as_array();
    ensure!(rivals.is_some_and(|rivals| rivals.len() == 2), "{status}");
    for words in ["status", "explain alice"] {
        let text = gateway.strata_text(words)?;
        ensure!(text.contains(told), "{text}");
    }
    Ok(())
}

// Works: failures
// Weakness: 155
#[lab::test]
fn a_firewall_of_this_host_is_named_until_it_lets_messages_pass() -> Result<()> {
    let pair = Pair::new("explain")?;
    pair.mobile.run("nft add table inet filter")?;
    let chain =
        "add chain inet filter output { type filter hook output priority 0 ; policy drop ; }";
    let rules = pair.mobile.file("rules.nft", chain)?;
    pair.mobile.run(&format!("nft -f {}", rules.display()))?;
    let mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "auto")?;
    wait_for(&mobile, "office", |explained| {
        explained["local"][0]["task"] == "send"
    })?;
    let text = mobile.strata_text("explain office")?;
    let cause = "nothing can be sent to 192.0.2.1: a firewall of this host forbids it";
    ensure!(text.contains(&format!("cause: {cause}")), "{text}");
    let text = mobile.strata_text("status")?;
    ensure!(text.contains(&format!("error: {cause}")), "{text}");
    pair.mobile.run("nft delete table inet filter")?;
    let none = serde_json::json!([]);
    mobile.wait_until("status", DEADLINE, |status| {
        status["status"]["errors"] == none
    })?;
    Ok(())
}

/// The node is on the path and has the right key, but configures the gateway in the wrong kind of
/// table.
#[lab::test]
fn a_node_that_refuses_a_grant() -> Result<()> {
    let pair = Pair::new("explain")?;
    let terms = Terms {
        zones: "require",
        licences: HEADERS,
    };
    let tunnel = pair.start(Family::V4, terms, terms)?;
    pair.between
        .secret("node.psk", "a key between gateway and licensed node")?;
    let node =
        licensed_config(LICENSED).replace("[gateway.gw]", "[licensed.gw]\naddress = \"192.0.2.1\"");
    let _between = pair.between.stratad(&node)?;
    tunnel.up()?;
    for peer in ["alice", "fa"] {
        let explained = wait_for(&tunnel.gateway, peer, |explained| {
            !explained["refused_grants"][0].is_null()
        })?;
        let refused = &explained["refused_grants"][0];
        ensure!(refused["node"] == LICENSED, "{refused}");
        let reason = refused["reason"].as_str().unwrap_or("");
        ensure!(reason.contains("[gateway.NAME]"), "{reason}");
    }
    Ok(())
}

// Refuses: explain
#[lab::test]
fn a_peer_that_nobody_knows_is_told_with_those_known() -> Result<()> {
    let pair = Pair::new("explain")?;
    let mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "manual")?;
    let Err(error) = mobile.strata_text("explain offfice") else {
        bail!("somebody was explained who does not exist");
    };
    let text = format!("{error:?}");
    ensure!(text.contains("name one of: office"), "{text}");
    let text = mobile.strata_text("explain office")?;
    ensure!(text.contains("no attempt since"), "{text}");
    Ok(())
}

/// Starts both ends with these configurations; the mobile node connects on its own.
fn start([mobile, gateway]: [String; 2]) -> Result<(Pair, Tunnel)> {
    let pair = Pair::new("explain")?;
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", "a key between mobile node and gateway")?;
    }
    pair.gateway.secret("node.psk", "a key that nobody needs")?;
    let gateway = pair.gateway.stratad(&gateway)?;
    let mobile = pair.mobile.stratad(&mobile)?;
    Ok((pair, Tunnel { mobile, gateway }))
}

/// Returns both ends' explanations of a tunnel that does not come up.
fn refused(tunnel: &Tunnel) -> Result<[Value; 2]> {
    tunnel.mobile.strata_text("up office")?;
    let mobile = wait(&tunnel.mobile, "office", "failed")?;
    let gateway = wait(&tunnel.gateway, "alice", "failed")?;
    Ok([mobile, gateway].map(|explained| explained["attempt"].clone()))
}

fn ends(tunnel: &Tunnel) -> [(&Daemon, &'static str); 2] {
    [(&tunnel.mobile, "office"), (&tunnel.gateway, "alice")]
}

/// Adds a line to the first table of a peer.
fn with(config: &str, line: &str) -> String {
    config.replacen(
        "psk = \"tunnel.psk\"",
        &format!("psk = \"tunnel.psk\"\n{line}"),
        1,
    )
}
