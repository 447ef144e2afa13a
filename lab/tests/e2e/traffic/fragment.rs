//! IKE messages in fragments (RFC 7383): certificates on a path that drops IP fragments, with the
//! extension and without.

use anyhow::{Context as _, Result, bail, ensure};
use lab::account::{expect_fix, wait_for};
use lab::certified::{self, ALICE, CA, GATEWAY_CONFIG, GW, MOBILE_CONFIG};
use lab::daemon::Daemon;
use lab::openssl::{self, EC, GOOD, Order, authority};
use lab::pair::{self, DEADLINE, GATEWAY, Pair, Tunnel, is_up};
use lab::transfer::transfer;

/// A certificate extension that exceeds the MTU on its own.
fn long() -> String {
    format!("nsComment={}", "long ".repeat(300))
}

/// Starts both daemons with long certificates and a size limit for IKE messages each; they are not
/// connected yet.
fn start(pair: Pair, mobile: u16, gateway: u16) -> Result<(Pair, Tunnel)> {
    authority(&pair.mobile, EC, CA)?;
    for file in ["ca.pem", "ca.key"] {
        let text = std::fs::read_to_string(pair.mobile.directory().join(file))?;
        pair.gateway.secret(file, &text)?;
    }
    let extensions = &long();
    let order = Order { extensions, ..GOOD };
    openssl::order(&pair.mobile, ALICE, order)?;
    let gateway = limited(GATEWAY_CONFIG, gateway);
    let gateway = certified::start(&pair.gateway, GW, order, &gateway)?;
    let mobile = pair.mobile.stratad(&limited(MOBILE_CONFIG, mobile))?;
    Ok((pair, Tunnel { mobile, gateway }))
}

fn limited(config: &str, fragment: u16) -> String {
    format!("{config}[listen]\nfragment = {fragment}\n")
}

/// Makes the host between drop and count packets that match an nftables rule.
fn drop_on_the_way(pair: &Pair, what: &str) -> Result<()> {
    let hook = "type filter hook forward priority 0";
    let rules = format!("table ip path {{\nchain pass {{\n{hook}\n{what} counter drop\n}}\n}}\n");
    pair.between.file("path.nft", &rules)?;
    pair.between.run("nft -f path.nft").map(drop)
}

/// Returns true if the host between has dropped a packet.
fn has_dropped(pair: &Pair) -> Result<bool> {
    let rules = pair.between.run("nft list table ip path")?;
    ensure!(rules.contains("counter packets"), "{rules}");
    Ok(!rules.contains("counter packets 0 "))
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

const IP_FRAGMENTS: &str = "ip frag-off & 0x3fff != 0";

// Works: ike-fragments
#[lab::test]
fn certificates_pass_where_ip_fragments_are_dropped() -> Result<()> {
    let (pair, tunnel) = start(Pair::new("fragment")?, 1280, 1280)?;
    drop_on_the_way(&pair, IP_FRAGMENTS)?;
    tunnel.up()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 1_000_000)?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        for kind in ["sent_in_fragments", "put_together"] {
            ensure!(count(daemon, kind)? >= 1, "{kind}");
        }
        ensure!(count(daemon, "cut_smaller")? == 0, "1280 octets pass");
    }
    ensure!(!has_dropped(&pair)?, "IP had to cut something");
    Ok(())
}

/// The test follows the proposed fix, and the tunnel comes up.
// Refuses: ike-fragments
#[lab::test]
fn without_fragments_they_do_not_and_a_person_is_told_what_to_write() -> Result<()> {
    let (pair, tunnel) = start(Pair::new("fragment")?, 0, 1280)?;
    drop_on_the_way(&pair, IP_FRAGMENTS)?;
    let explained = is_lost(&pair, &tunnel)?;
    let config = limited(MOBILE_CONFIG, 0);
    expect_fix(&explained, "listen.fragment", &config, "fragment = 1280")?;
    tunnel.mobile.strata("down office")?;
    tunnel.mobile.configure(&limited(MOBILE_CONFIG, 1280))?;
    tunnel.mobile.strata("reload")?;
    tunnel.up()
}

// Refuses: ike-fragments
#[lab::test]
fn a_peer_that_does_not_fragment_is_what_a_person_is_told() -> Result<()> {
    let (pair, tunnel) = start(Pair::new("fragment")?, 1280, 0)?;
    drop_on_the_way(&pair, IP_FRAGMENTS)?;
    let explained = is_lost(&pair, &tunnel)?;
    let fixes = explained["fixes"].to_string();
    ensure!(
        fixes.contains("enable IKE fragmentation (RFC 7383)"),
        "{fixes}"
    );
    Ok(())
}

/// Fails unless dropped IP fragments keep the tunnel down; returns the output of `explain`.
fn is_lost(pair: &Pair, tunnel: &Tunnel) -> Result<serde_json::Value> {
    if tunnel.mobile.strata("up office --wait=5").is_ok() {
        bail!("IP fragments came through");
    }
    let explained = wait_for(&tunnel.mobile, "office", |explained| {
        explained["attempt"]["fixes"].to_string().contains("7383")
            || explained["attempt"]["fixes"]
                .to_string()
                .contains("fragment")
    })?;
    ensure!(has_dropped(pair)?, "nothing was dropped");
    let status = tunnel.gateway.strata("status")?;
    ensure!(!is_up(&status), "{status}");
    Ok(explained["attempt"].clone())
}

/// RFC 7383 section 2.5.2: fragments of 1280 octets do not pass, those of 576 octets do.
// Recovers: ike-fragments
#[lab::test]
fn messages_that_are_too_long_for_the_path_are_cut_smaller() -> Result<()> {
    let (pair, tunnel) = start(Pair::new("fragment")?, 1280, 1280)?;
    drop_on_the_way(&pair, "udp dport 4500 ip length > 800")?;
    tunnel.mobile.strata("up office --wait=60")?;
    tunnel.gateway.wait_until("status", DEADLINE, is_up)?;
    ensure!(count(&tunnel.mobile, "cut_smaller")? == 1);
    ensure!(has_dropped(&pair)?, "nothing was dropped");
    Ok(())
}

// Recovers: ike-fragments
#[lab::test]
fn fragments_come_through_a_lossy_hop_again_and_again() -> Result<()> {
    let hop = pair::hop(1.0 / 50_000.0);
    let (pair, tunnel) = start(Pair::with_lossy_hop("fragment", hop)?, 576, 576)?;
    for _ in 0..5 {
        tunnel.mobile.strata("down office")?;
        tunnel.mobile.strata("up office --wait=60")?;
    }
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)
}
