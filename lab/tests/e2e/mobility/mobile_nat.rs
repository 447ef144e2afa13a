//! Mobile IPv4 through a NAT (RFC 3519): a foreign agent behind a NAT tunnels its visitors' packets
//! in UDP.

use anyhow::{Context, Result, ensure};
use lab::pair::{GATEWAY, MOBILE, Terms};
use lab::process::DEADLINE;
use lab::transfer::transfer;
use lab::volley::Volleys;
use lab::walk::{
    CARE_OF, Capture, Ends, HOME_ADDRESS, HOME_KEY, NAT, Walk, bound, download, in_udp, refusal,
    registered,
};
use lab::wiretap::{Seen, Wiretap};
use serde_json::Value;

const MB: u64 = 1_000_000;

const DETECT: &str = "nat = \"detect\"";

/// The refusal of the home agent in such a case.
const PROHIBITED: &str = "the home agent does not allow the registration";

/// Returns true if the home agent sees the binding's tunnel behind the NAT.
fn is_translated(status: &Value) -> bool {
    in_udp(status).is_some_and(|end| end.starts_with(&format!("{NAT}:")))
}

// Works: mobile-ip-nat
#[lab::test]
fn a_tunnel_stays_while_its_mobile_node_moves_out_of_a_nat_and_back() -> Result<()> {
    let walk = Walk::behind_nat("mobile-nat")?;
    let near = walk.start_agent_with(0, DETECT)?;
    // This agent requests UDP too, and learns that UDP is unnecessary.
    let _far = walk.start_agent_with(1, DETECT)?;
    let mut ends = Ends::start_with(&walk, walk.start_home_with(DETECT)?, "")?;
    ends.is_at(CARE_OF[0])?;
    ends.home.wait_until("status", DEADLINE, is_translated)?;
    let shown = near.strata_text("status")?;
    ensure!(shown.contains(" in UDP, "), "{shown}");
    let before = ends.tunnel()?;
    download(&walk, |part| {
        let (up, there) = [(false, CARE_OF[1]), (true, CARE_OF[0])][part];
        walk.set_link(0, up)?;
        ends.is_at(there)?;
        let status = ends.home.strata("status")?;
        ensure!(is_translated(&status) == up, "at {there}: {status}");
        Ok(())
    })?;
    ensure!(ends.tunnel()? == before, "the tunnel was made anew");
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB)?;
    let shown = ends.home.strata_text("status")?;
    let place = format!("at {} in UDP from {NAT}:", CARE_OF[0]);
    ensure!(shown.contains(&place), "{shown}");
    Ok(())
}

/// Control: with another policy at the home agent, registration through the NAT fails. Without a
/// NAT the policy has no effect.
// Refuses: mobile-ip-nat
#[lab::test]
fn without_udp_at_home_nobody_is_registered_through_a_nat() -> Result<()> {
    for policy in ["nat = \"never\"", ""] {
        let walk = Walk::behind_nat("mobile-nat")?;
        let _near = walk.start_agent_with(0, DETECT)?;
        let home = walk.start_home_with(policy)?;
        let mobile = walk.start_mobile(HOME_KEY, "", Terms::PLAIN)?;
        for daemon in [&home, &mobile] {
            let denied = |status: &Value| refusal(status) == PROHIBITED;
            let status = daemon.wait_until("status", DEADLINE, denied)?;
            ensure!(bound(&status).is_empty(), "{status}");
            ensure!(registered(&status).is_empty(), "{status}");
        }
        let metrics = home.strata_text("metrics")?;
        let counter = "strata_mobile_registrations_total{code=\"129\"}";
        ensure!(metrics.contains(counter), "{metrics}");
        let _far = walk.start_agent_with(1, DETECT)?;
        let there = |status: &Value| registered(status) == [CARE_OF[1]];
        mobile.wait_until("status", DEADLINE, there)?;
    }
    Ok(())
}

/// A firewall between the agent and home may pass UDP only, without being a NAT.
// Works: mobile-ip-nat
#[lab::test]
fn udp_may_be_demanded_where_the_home_agent_allows_it() -> Result<()> {
    let walk = Walk::new("mobile-nat")?;
    let always = "nat = \"always\"";
    let _agent = walk.start_agent_with(0, always)?;
    let mut home = walk.start_home_with(DETECT)?;
    let mobile = walk.start_mobile(HOME_KEY, "", Terms::PLAIN)?;
    let denied = |status: &Value| refusal(status) == PROHIBITED;
    home.wait_until("status", DEADLINE, denied)?;
    home.stop()?;
    let home = walk.start_home_with(always)?;
    let forced = |status: &Value| {
        in_udp(status).is_some_and(|end| end.starts_with(&format!("{}:", CARE_OF[0])))
    };
    home.wait_until("status", DEADLINE, forced)?;
    mobile.wait_until("status", DEADLINE, lab::pair::is_up)?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB)
}

/// Registrations have a long lifetime, so only lost keepalives cause a new one.
// Recovers: mobile-ip-nat
#[lab::test]
fn a_nat_that_forgets_is_noticed_by_keepalives() -> Result<()> {
    let walk = Walk::behind_nat("mobile-nat")?;
    let near = walk.start_agent_with(0, "nat = \"detect\"\nkeepalive = \"10s\"")?;
    let home = walk.start_home_with("nat = \"detect\"\nnat_lifetime = \"10m\"")?;
    let ends = Ends::start_with(&walk, home, "")?;
    let status = ends.home.wait_until("status", DEADLINE, is_translated)?;
    let before = in_udp(&status).map(str::to_owned);
    walk.forget()?;
    let moved = |status: &Value| is_translated(status) && in_udp(status) != before.as_deref();
    ends.home.wait_until("status", DEADLINE, moved)?;
    let why = "nothing comes back in UDP";
    let status = near.strata("status")?;
    ensure!(refusal(&status).starts_with(why), "{status}");
    let metrics = near.strata_text("metrics")?;
    let counter = "strata_mobile_keepalives_total{result=\"lost\"} 1";
    ensure!(metrics.contains(counter), "{metrics}");
    ends.mobile
        .wait_until("status", DEADLINE, lab::pair::is_up)?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB)
}

/// Not every NAT passes fragments of UDP datagrams (RFC 3519 section 4.8). Therefore the inner
/// packets are fragmented, and the outer ones are not. The ends do not search for the MTU of their
/// path: they would forbid both.
// Works: mobile-ip-nat
#[lab::test]
fn what_has_no_room_behind_a_nat_is_cut_before_it_is_in_udp() -> Result<()> {
    const ROOM: u32 = 1300;
    let walk = Walk::behind_nat("mobile-nat")?;
    let nat = walk.nat.as_ref().context("a NAT")?;
    for (host, device) in [(nat, "outside"), (&walk.between, "a0")] {
        host.netns().netlink()?.set_mtu(device, ROOM)?;
    }
    let _near = walk.start_agent_with(0, DETECT)?;
    let blind = |config: String| config.replace("[tunnel]\n", "[tunnel]\npath_mtu = \"off\"\n");
    let home = walk.start_home_as(&blind(walk.home_config_with(DETECT)))?;
    let config = blind(walk.mobile_config("", Terms::PLAIN));
    let _ends = Ends::when_up(home, walk.start_mobile_as(HOME_KEY, &config)?)?;
    let tap = Wiretap::open(nat)?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB)?;
    transfer(&walk.home, &walk.mobile, MOBILE[0], MB)?;
    let seen = tap.rest()?;
    let pieces = |seen: &&Seen| seen.is_fragment();
    let count = seen.iter().filter(pieces).count();
    ensure!(count == 0, "{count} pieces outside");
    // The inner datagram starts after 32 octets. A fragment sets the more-fragments bit there.
    let is_cut = |seen: &&Seen| {
        let inner = seen.octets.get(32..40);
        seen.octets[9] == 17 && inner.is_some_and(|inner| inner[0] == 0x45 && inner[6] & 0x20 != 0)
    };
    let count = seen.iter().filter(is_cut).count();
    ensure!(count > 100, "{count} pieces inside");
    Ok(())
}

// Works: mobile-ip-nat
#[lab::test]
fn tshark_reads_what_goes_through_a_nat() -> Result<()> {
    let walk = Walk::behind_nat("mobile-nat")?;
    let tap = Wiretap::open(&walk.between)?;
    let near = walk.start_agent_with(0, "nat = \"detect\"\nkeepalive = \"10s\"")?;
    let home = walk.start_home_with("nat = \"detect\"\nkeepalive = \"77s\"")?;
    let mut ends = Ends::start_with(&walk, home, "")?;
    let mut volleys = Volleys::new((&walk.mobile, MOBILE[0]), (&walk.home, GATEWAY[0]))?;
    volleys.fly()?;
    // Without an answer from the home agent, the agent sends keepalives.
    ends.home.process().crash()?;
    let asked =
        |metrics: &str| metrics.contains("strata_mobile_keepalives_total{result=\"lost\"} 1");
    near.wait_until("status", DEADLINE, |_| {
        near.strata_text("metrics")
            .is_ok_and(|metrics| asked(&metrics))
    })?;
    let seen = tap.rest()?;
    let capture = Capture::write(&walk.between, "nat.pcap", seen)?;
    capture.has(&[
        // A dead home agent's host may answer by ICMP, which contains the request.
        (
            "mip.type == 1 && mip.ext.utrq.subtype && !icmp",
            "ip.src",
            NAT,
        ),
        ("mip.type == 1", "mip.ext.utrq.encaptype", "4"),
        ("mip.type == 1", "mip.ext.utrq.reserved3", "0x0000"),
        ("mip.type == 1", "mip.coa", CARE_OF[0]),
        ("mip.type == 3", "mip.ext.utrp.code", "0"),
        ("mip.type == 3", "mip.ext.utrp.keepalive", "77"),
        ("mip.type == 4", "mip.nattt.nexthdr", "4"),
        ("mip.type == 4 && icmp.type == 8", "mip.nattt.nexthdr", "4"),
    ])?;
    let inside =
        format!("mip.type == 4 && ip.addr == {HOME_ADDRESS} && (isakmp || esp || udpencap)");
    ensure!(
        !capture.read(&inside, "ip.src")?.is_empty(),
        "no tunnel is inside"
    );
    let bare = capture.read("ip.proto == 4 && !udp", "ip.src")?;
    ensure!(bare.is_empty(), "in IP: {bare:?}");
    capture.is_well_formed("mip")
}
