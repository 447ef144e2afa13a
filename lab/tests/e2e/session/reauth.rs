//! Re-authentication while packets flow: no packet is lost, and a failed authentication is
//! reported.

use anyhow::{Context, Result, bail, ensure};
use lab::certified::{CA, both};
use lab::lending::{ALICE, POOL, on_device};
use lab::openssl::{self, EC, GOOD};
use lab::pair::{
    self, DEADLINE, GATEWAY, MOBILE, NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel, children, is_up,
    mobile_config, refusal,
};
use lab::transfer::transfer;
use lab::volley::volleys;
use serde_json::Value;

/// Log message of both ends after a re-authentication.
const ANEW: &str = ": re-authenticated";

// Works: reauth
#[lab::test]
fn a_stream_loses_no_packet_through_four_authentications() -> Result<()> {
    let pair = Pair::new("reauth")?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        (0..4).try_for_each(|_| reauthenticate(&mut tunnel))
    })?;
    no_drops(&tunnel)
}

/// The gateway announces the lifetime of an authentication (RFC 4478), and the mobile node renews
/// it in time.
// Works: reauth
#[lab::test]
fn an_authentication_is_repeated_before_its_time_is_over() -> Result<()> {
    let pair = Pair::new("reauth")?;
    pair.gateway.secret("tunnel.psk", TUNNEL_KEY)?;
    pair.gateway.secret("node.psk", NODE_KEY)?;
    let gateway = pair::gateway_config(Terms::PLAIN);
    let (id, limit) = ("id = \"alice@example.net\"\n", "reauth = \"12s\"\n");
    let limited = gateway.replace(id, &[id, limit].concat());
    let gateway = pair.gateway.stratad(&limited)?;
    let mobile = pair.start_mobile(os::Family::V4, Terms::PLAIN, "manual")?;
    let mut tunnel = Tunnel { mobile, gateway };
    tunnel.up()?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        for daemon in [&mut tunnel.mobile, &mut tunnel.gateway] {
            let twice = |log: &str| (log.matches(ANEW).count() >= 2).then_some(());
            daemon.process().wait_for(ANEW, DEADLINE, twice)?;
        }
        Ok(())
    })?;
    no_drops(&tunnel)
}

// Works: reauth
#[lab::test]
fn a_lent_address_stays_the_same() -> Result<()> {
    let pair = Pair::new("reauth")?;
    let gateway = pair.start_lender(POOL)?;
    let mobile = pair.start_borrower(&pair.mobile, &ALICE)?;
    let mut tunnel = Tunnel { mobile, gateway };
    tunnel.up()?;
    let lent = on_device(&pair.mobile)?;
    ensure!(lent == ["10.9.0.1/32", "2001:db8:9::1/128"], "{lent:?}");
    let ends = ((&pair.mobile, "10.9.0.1"), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || reauthenticate(&mut tunnel))?;
    ensure!(on_device(&pair.mobile)? == lent, "other addresses");
    let leases = tunnel.gateway.strata_text("leases")?;
    ensure!(leases.contains("1 of 254 leased"), "{leases}");
    no_drops(&tunnel)
}

/// A rekey does not authenticate again, but re-authentication does.
// Refuses: reauth
#[lab::test]
fn a_peer_that_is_not_believed_any_more_is_told_and_the_tunnel_goes_on() -> Result<()> {
    let (pair, mut tunnel) = both(GOOD)?;
    tunnel.up()?;
    let ca = std::fs::read_to_string(pair.gateway.directory().join("ca.pem"))?;
    openssl::authority(&pair.gateway, EC, "Another CA")?;
    tunnel.gateway.strata_text("reload")?;
    let before = tunnel.children()?.map(|children| spi(&children));
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        tunnel.mobile.strata("reauth office")?;
        let told = |status: &Value| {
            let why = refusal(status);
            is_up(status)
                && why.contains("re-authentication failed")
                && why.contains("our CA is not trusted there")
        };
        tunnel.mobile.wait_until("status", DEADLINE, told)
    })?;
    let after = tunnel.children()?.map(|children| spi(&children));
    ensure!(before == after, "{before:?} {after:?}");
    pair.gateway.secret("ca.pem", &ca)?;
    let text = tunnel.gateway.strata_text("reload")?;
    ensure!(text.contains(&format!("-> [CN={CA}")), "{text}");
    reauthenticate(&mut tunnel)?;
    ensure!(refusal(&tunnel.mobile.strata("status")?).is_empty());
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)
}

// Refuses: reauth
#[lab::test]
fn what_cannot_be_repeated_is_refused_with_the_fix() -> Result<()> {
    let pair = Pair::new("reauth")?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    let short = mobile_config(os::Family::V4, Terms::PLAIN, "manual")
        .replace("liveness", "reauth = \"9s\"\nliveness");
    let Err(refused) = pair.mobile.stratad(&short) else {
        bail!("nine seconds were accepted");
    };
    let refused = format!("{refused:?}");
    ensure!(refused.contains("peer.office.reauth"), "{refused}");
    let tunnel = pair.start(os::Family::V4, Terms::PLAIN, Terms::PLAIN)?;
    tunnel.mobile.refuses("reauth nobody", "strata status")?;
    tunnel.mobile.refuses("reauth office", "strata up office")?;
    tunnel.up()?;
    tunnel.gateway.refuses("reauth alice", "at the other end")?;
    let asked = tunnel.mobile.strata_text("reauth office")?;
    ensure!(asked.contains("re-authentication started"), "{asked}");
    tunnel.mobile.refuses("reauth office", "wait a moment")
}

/// Re-authenticates; returns when both ends have logged it and the old IKE SA is gone.
fn reauthenticate(tunnel: &mut Tunnel) -> Result<()> {
    let told = |log: &str| log.matches(ANEW).count();
    let Tunnel { mobile, gateway } = tunnel;
    let before = [&mut *mobile, &mut *gateway].map(|daemon| told(&daemon.process().log()));
    mobile.strata("reauth office")?;
    for (daemon, before) in [&mut *mobile, &mut *gateway].into_iter().zip(before) {
        let again = |log: &str| (told(log) > before).then_some(());
        daemon.process().wait_for(ANEW, DEADLINE, again)?;
    }
    let one = |status: &Value| children(status).len() == 1;
    for daemon in [mobile, gateway] {
        let left = daemon.wait_until("status", DEADLINE, one);
        left.context("the old tunnel stays")?;
    }
    Ok(())
}

fn spi(children: &[Value]) -> Vec<String> {
    let spis = children.iter().map(|child| child["spi_in"].to_string());
    spis.collect()
}

fn no_drops(tunnel: &Tunnel) -> Result<()> {
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        pair::no_drops(&daemon.strata("status")?)?;
    }
    Ok(())
}
