//! Mobile IPv4 (RFC 5944): a mobile node keeps its address and its tunnel on every network.

use anyhow::{Context, Result, bail, ensure};
use lab::pair::{self, GATEWAY, MOBILE, Terms};
use lab::process::DEADLINE;
use lab::transfer::transfer;
use lab::volley::{Volleys, volleys};
use lab::walk::{
    CARE_OF, Capture, Ends, HOME_ADDRESS, HOME_AGENT, HOME_KEY, NEIGHBOUR_KEY, Walk, bound,
    download, refusal, registered, sent_on,
};
use lab::wiretap::{Seen, Wiretap};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::Duration;

const MB: usize = 1_000_000;

/// The discard port: packets to it get no answer.
const DISCARD: u16 = 9;

// Works: mobile-ip
#[lab::test]
fn a_tunnel_stays_while_its_mobile_node_moves() -> Result<()> {
    let walk = Walk::new("mobile")?;
    walk.check_reverse_paths("1")?;
    let _agents = [walk.start_agent(0)?, walk.start_agent(1)?];
    let mut ends = Ends::start(&walk, "")?;
    ends.is_at(CARE_OF[0])?;
    let before = ends.tunnel()?;
    download(&walk, |part| {
        let (up, there) = [(false, CARE_OF[1]), (true, CARE_OF[0])][part];
        walk.set_link(0, up)?;
        ends.is_at(there)
    })?;
    ensure!(ends.tunnel()? == before, "the tunnel was made anew");
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB as u64)?;
    let metrics = ends.home.strata_text("metrics")?;
    ensure!(metrics.contains("strata_mobile_places 1"), "{metrics}");
    let shown = ends.mobile.strata_text("status")?;
    let agent = format!("agent     {} on m0", CARE_OF[0]);
    ensure!(shown.contains(&agent), "{shown}");
    Ok(())
}

/// A better agent appears, and later the link to the first one goes down. Packets use both links as
/// long as both are up.
// Works: mobile-ip
#[lab::test]
fn with_simultaneous_bindings_a_move_loses_nothing() -> Result<()> {
    let walk = Walk::new("mobile")?;
    walk.check_reverse_paths("2")?;
    let _far = walk.start_agent(1)?;
    let mut ends = Ends::start(&walk, "simultaneous = true")?;
    ends.is_at(CARE_OF[1])?;
    let before = ends.tunnel()?;
    let (near, far) = ((&walk.mobile, MOBILE[0]), (&walk.home, GATEWAY[0]));
    let _near = volleys(near, far, || {
        let near = walk.start_agent(0)?;
        let both = |status: &Value| registered(status) == CARE_OF[..2];
        ends.mobile.wait_until("status", DEADLINE, both)?;
        let bound = |status: &Value| bound(status).len() == 2;
        ends.home.wait_until("status", DEADLINE, bound)?;
        Ok(near)
    })?;
    volleys(near, far, || {
        walk.set_link(1, false)?;
        ends.is_at(CARE_OF[0])
    })?;
    ensure!(ends.tunnel()? == before, "the tunnel was made anew");
    Ok(())
}

// Recovers: mobile-ip
#[lab::test]
fn home_is_told_when_the_daemon_stops() -> Result<()> {
    let walk = Walk::new("mobile")?;
    let before = pair::traces(&walk.mobile)?;
    let _agent = walk.start_agent(0)?;
    let mut ends = Ends::start(&walk, "")?;
    ends.mobile.stop()?;
    let log = ends.mobile.process().log();
    ensure!(log.contains("mobile node: deregistered"), "{log}");
    let status = ends.home.strata("status")?;
    ensure!(bound(&status).is_empty(), "{status}");
    let left = pair::traces(&walk.mobile)?;
    ensure!(left == before, "left behind: {left:?}, of {before:?}");
    Ok(())
}

// Refuses: mobile-ip
#[lab::test]
fn another_key_is_not_registered() -> Result<()> {
    let walk = Walk::new("mobile")?;
    let _agent = walk.start_agent(0)?;
    let home = walk.start_home(Terms::PLAIN)?;
    let other = "a key that nobody else has";
    let mobile = walk.start_mobile(other, "", Terms::PLAIN)?;
    let why = "could not authenticate the mobile node";
    let denied = |status: &Value| refusal(status).contains(why);
    let status = home.wait_until("status", DEADLINE, denied)?;
    ensure!(bound(&status).is_empty(), "{status}");
    let unproved = |status: &Value| refusal(status).contains("failed to authenticate");
    let status = mobile.wait_until("status", DEADLINE, unproved)?;
    ensure!(registered(&status).is_empty(), "{status}");
    let shown = mobile.strata_text("status")?;
    ensure!(shown.contains("not registered"), "{shown}");
    let metrics = home.strata_text("metrics")?;
    let counter = "strata_mobile_registrations_total{code=\"131\"}";
    ensure!(metrics.contains(counter), "{metrics}");
    Ok(())
}

// Recovers: mobile-ip
#[lab::test]
fn a_foreign_agent_that_dies_is_left_for_another() -> Result<()> {
    let walk = Walk::new("mobile")?;
    let (mut near, _far) = (walk.start_agent(0)?, walk.start_agent(1)?);
    let mut ends = Ends::start(&walk, "")?;
    ends.is_at(CARE_OF[0])?;
    let before = ends.tunnel()?;
    near.process().crash()?;
    ends.is_at(CARE_OF[1])?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB as u64)?;
    ensure!(ends.tunnel()? == before, "the tunnel was made anew");
    Ok(())
}

// Refuses: mobile-ip
#[lab::test]
fn two_ways_at_once_are_refused_where_reverse_paths_are_strict() -> Result<()> {
    let walk = Walk::new("mobile")?;
    walk.check_reverse_paths("1")?;
    let Err(refusal) = walk.start_mobile(HOME_KEY, "simultaneous = true", Terms::PLAIN) else {
        bail!("it runs");
    };
    let refusal = format!("{refusal:?}");
    ensure!(refusal.contains("rp_filter"), "{refusal}");
    Ok(())
}

/// First the foreign agent, whose advertisements restart their sequence numbers. Then the home
/// agent, which learns of the node when the registration is renewed.
// Recovers: mobile-ip
#[lab::test]
fn agents_that_were_killed_and_are_back_know_their_mobile_node_again() -> Result<()> {
    let walk = Walk::new("mobile")?;
    let mut agent = walk.start_agent(0)?;
    let mut ends = Ends::start(&walk, "lifetime = \"10s\"")?;
    ends.is_at(CARE_OF[0])?;
    agent.process().crash()?;
    agent.start_again()?;
    let has_visitor = |status: &Value| {
        let visitor = &status["status"]["mobile_ip"]["visitors"][0];
        visitor["home_address"] == HOME_ADDRESS
    };
    agent.wait_until("status", DEADLINE, has_visitor)?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB as u64)?;
    ends.home.process().crash()?;
    ends.home.start_again()?;
    ends.is_at(CARE_OF[0])?;
    let up = |status: &Value| pair::is_up(status);
    ends.home.wait_until("status", DEADLINE, up)?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB as u64)
}

/// Returns true if `strata explain` has the missing agent as a cause on this host.
fn names_no_agent(explained: &Value) -> bool {
    let causes = explained["explain"]["local"].as_array();
    let mut causes = causes.into_iter().flatten();
    causes.any(|cause| cause["task"] == "agent")
}

/// The mobile node has an ordinary address and route on the link. Traffic for the tunnel must not
/// use them. `strata status` and `strata explain` name the missing agent for as long as none is
/// there.
// Refuses: mobile-ip
// Works: failures
#[lab::test]
fn without_an_agent_nothing_leaves_in_clear() -> Result<()> {
    let walk = Walk::new("mobile")?;
    let netlink = walk.mobile.netns().netlink()?;
    netlink.add_address("m0", "198.51.100.7/24".parse()?)?;
    walk.mobile.route("default", CARE_OF[0])?;
    let _home = walk.start_home(Terms::PLAIN)?;
    let tap = Wiretap::open(&walk.agents[0])?;
    let mobile = walk.start_mobile(HOME_KEY, "", Terms::PLAIN)?;
    let send = |from: &str, to: &str| {
        walk.mobile.inside(|| {
            // A missing route is the correct result.
            let _ = UdpSocket::bind((from, 0))?.send_to(b"inside", (to, DISCARD));
            Ok(())
        })
    };
    for _ in 0..10 {
        send(MOBILE[0], GATEWAY[0])?;
        send("0.0.0.0", GATEWAY[0])?;
    }
    send("198.51.100.7", CARE_OF[0])?;
    let is_marker =
        |seen: &Seen| seen.has_text("inside") && seen.destination.to_string() == CARE_OF[0];
    let seen = tap.read_until(DEADLINE, is_marker)?;
    let clear = seen
        .iter()
        .find(|seen| pair::inside().iter().any(|prefix| seen.touches(*prefix)));
    ensure!(clear.is_none(), "in clear: {clear:?}");
    let status = mobile.strata("status")?;
    ensure!(pair::has_error(&status, "agent"), "{status}");
    let explained = mobile.strata("explain office")?;
    ensure!(names_no_agent(&explained), "{explained}");
    let text = mobile.strata_text("explain office")?;
    let cause = "cause: nothing can be sent: no foreign agent on m0, m1 has accepted this host";
    ensure!(text.contains(cause) && !text.contains("psk"), "{text}");
    let _agent = walk.start_agent(0)?;
    let there = |status: &Value| registered(status) == [CARE_OF[0]] && pair::is_up(status);
    let status = mobile.wait_until("status", DEADLINE, there)?;
    ensure!(!pair::has_error(&status, "agent"), "{status}");
    let explained = mobile.strata("explain office")?;
    ensure!(!names_no_agent(&explained), "{explained}");
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB as u64)
}

/// About a third of the messages on this path is lost.
// Recovers: mobile-ip
#[lab::test]
fn a_registration_comes_through_a_network_that_loses_much() -> Result<()> {
    let hop = sim::Settings {
        rate: std::num::NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(20),
        queue: 100,
        bit_error_rate: 1.0 / 3000.0,
    };
    let walk = Walk::with_hop("mobile", hop)?;
    let _agent = walk.start_agent(0)?;
    let home = walk.start_home(Terms::PLAIN)?;
    let more = "lifetime = \"10s\"\nreplay = \"timestamps\"";
    let mobile = walk.start_mobile(HOME_KEY, more, Terms::PLAIN)?;
    let here = |status: &Value| registered(status) == [CARE_OF[0]];
    mobile.wait_until("status", DEADLINE, here)?;
    let known = |status: &Value| bound(status) == [CARE_OF[0]];
    home.wait_until("status", DEADLINE, known)?;
    ensure!(walk.lost() > 0, "nothing was lost");
    Ok(())
}

/// The MTU of the path between the agents is smaller than a packet of the tunnel. Packets that may
/// be fragmented are, and the home agent reassembles them. With `path_mtu` the mobile node learns
/// the size that fits.
// Works: mobile-ip
#[lab::test]
fn who_sends_what_has_no_room_on_the_way_of_the_tunnel_is_told() -> Result<()> {
    const ROOM: u32 = 1300;
    let walk = Walk::new("mobile")?;
    for (host, device) in [(&walk.agents[0], "up"), (&walk.between, "a0")] {
        host.netns().netlink()?.set_mtu(device, ROOM)?;
    }
    let _agent = walk.start_agent(0)?;
    let mut ends = Ends::start(&walk, "")?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB as u64)?;
    ends.mobile.stop()?;
    let config = std::fs::read_to_string(walk.mobile.directory().join("strata.toml"))?;
    let config = config.replace("[tunnel]\n", "[tunnel]\npath_mtu = \"icmp\"\n");
    let (config, _) = config.split_once("[control]").context("a [control]")?;
    let mobile = walk.mobile.stratad(config)?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB as u64)?;
    let knows = |status: &Value| {
        let outside = pair::children(status)[0]["path_mtu"].as_u64();
        outside == Some(u64::from(ROOM) - 20)
    };
    mobile.wait_until("status", DEADLINE, knows).map(drop)
}

// Works: mobile-ip
#[lab::test]
fn a_foreign_agent_that_is_licensed_sees_the_headers_of_its_visitors() -> Result<()> {
    let walk = Walk::new("mobile")?;
    let agent = walk.start_licensed_agent(0)?;
    let _home = walk.start_home(Terms::LICENSED)?;
    let mobile = walk.start_mobile(HOME_KEY, "", Terms::LICENSED)?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    agent.wait_until("zones", DEADLINE, pair::holds_a_grant)?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB as u64)?;
    transfer(&walk.home, &walk.mobile, MOBILE[0], MB as u64)?;
    let segments = pair::segments(&agent)?;
    ensure!(segments > 100, "it has seen {segments} segments");
    Ok(())
}

/// A path with a long delay, so that the mobile node moves while packets from home are in flight.
fn far() -> sim::Settings {
    sim::Settings {
        rate: std::num::NonZeroU64::new(100_000_000),
        delay: Duration::from_millis(400),
        queue: 1000,
        bit_error_rate: 0.0,
    }
}

/// Numbered datagrams sent from home back to back.
struct Burst {
    home: UdpSocket,
    mobile: UdpSocket,
}

impl Burst {
    /// Number of datagrams in a burst. A socket's queue holds all of them, even if the receiver is
    /// busy.
    const DATAGRAMS: u32 = 60;

    fn new(walk: &Walk) -> Result<Self> {
        let bind = |host: &lab::host::Host, address: &'static str| {
            host.inside(|| Ok(UdpSocket::bind((address, 0))?))
        };
        let home = bind(&walk.home, GATEWAY[0])?;
        let mobile = bind(&walk.mobile, MOBILE[0])?;
        home.connect(mobile.local_addr()?)?;
        mobile.set_read_timeout(Some(DEADLINE))?;
        Ok(Self { home, mobile })
    }

    fn leave(&self, first: u32) -> Result<()> {
        for number in first..first + Self::DATAGRAMS {
            let mut datagram = [0; 500];
            datagram[..4].copy_from_slice(&number.to_be_bytes());
            self.home.send(&datagram)?;
        }
        Ok(())
    }

    /// Waits for all datagrams of a burst; returns the number of other datagrams that arrived
    /// before the last.
    fn arrive(&self, first: u32) -> Result<usize> {
        let mut missing: BTreeSet<_> = (first..first + Self::DATAGRAMS).collect();
        let mut others = 0;
        while !missing.is_empty() {
            let mut datagram = [0; 500];
            let read = self.mobile.recv(&mut datagram);
            read.with_context(|| format!("{} of a burst are missing", missing.len()))?;
            let [a, b, c, d, ..] = datagram;
            others += usize::from(!missing.remove(&u32::from_be_bytes([a, b, c, d])));
        }
        Ok(others)
    }
}

/// Packets that home sent before it learns of the move go to the old agent.
// Works: mobile-ip-forwarding
#[lab::test]
fn what_is_under_way_when_a_mobile_node_moves_is_sent_after_it() -> Result<()> {
    let walk = Walk::far_from_home("mobile", far())?;
    let near = walk.start_neighbour(0, NEIGHBOUR_KEY)?;
    let _far = walk.start_neighbour(1, NEIGHBOUR_KEY)?;
    let home = walk.start_home(Terms::PLAIN)?;
    let mobile = walk.start_mobile_with_keys()?;
    let mut ends = Ends { home, mobile };
    ends.mobile.wait_until("status", DEADLINE, pair::is_up)?;
    ends.is_at(CARE_OF[0])?;
    let before = ends.tunnel()?;
    let burst = Burst::new(&walk)?;
    burst.leave(0)?;
    walk.set_link(0, false)?;
    burst.arrive(0)?;
    let gone = |status: &Value| sent_on(status) == Some(CARE_OF[1]);
    near.wait_until("status", DEADLINE, gone)?;
    let shown = near.strata_text("status")?;
    let told = format!("packets are forwarded to {}", CARE_OF[1]);
    ensure!(shown.contains(&told), "{shown}");
    let metrics = near.strata_text("metrics")?;
    let counter = "strata_mobile_packets_total{direction=\"sent_on\"} ";
    let (_, count) = metrics.split_once(counter).context("a count")?;
    let count: u32 = count.lines().next().unwrap_or_default().parse()?;
    ensure!(count >= Burst::DATAGRAMS, "{count} were sent on");
    ends.is_at(CARE_OF[1])?;
    ensure!(ends.tunnel()? == before, "the tunnel was made anew");
    // Forwarding at the old agent ends after some seconds.
    let over = |status: &Value| sent_on(status).is_none();
    near.wait_until("status", DEADLINE, over)?;
    burst.leave(Burst::DATAGRAMS)?;
    burst.arrive(Burst::DATAGRAMS).map(drop)
}

/// The agents have different keys for each other. Packets in flight are lost, and both agents
/// report the reason.
// Refuses: mobile-ip-forwarding
#[lab::test]
fn agents_that_do_not_believe_each_other_send_nothing_on() -> Result<()> {
    let walk = Walk::far_from_home("mobile", far())?;
    let near = walk.start_neighbour(0, NEIGHBOUR_KEY)?;
    let far = walk.start_neighbour(1, "another key than the first one has")?;
    let home = walk.start_home(Terms::PLAIN)?;
    let mobile = walk.start_mobile_with_keys()?;
    let ends = Ends { home, mobile };
    ends.mobile.wait_until("status", DEADLINE, pair::is_up)?;
    ends.is_at(CARE_OF[0])?;
    let burst = Burst::new(&walk)?;
    burst.leave(0)?;
    walk.set_link(0, false)?;
    ends.is_at(CARE_OF[1])?;
    for (agent, why) in [
        (&near, "the foreign agent failed to authenticate"),
        (
            &far,
            "the previous agent of the mobile node does not answer",
        ),
    ] {
        agent.wait_until("status", DEADLINE, |status| refusal(status) == why)?;
    }
    burst.leave(Burst::DATAGRAMS)?;
    let others = burst.arrive(Burst::DATAGRAMS)?;
    ensure!(others == 0, "{others} were sent on");
    Ok(())
}

/// The old agent is unreachable until its neighbour has sent the notice in vain.
// Recovers: mobile-ip-forwarding
#[lab::test]
fn a_notice_that_is_lost_is_said_again() -> Result<()> {
    let walk = Walk::new("mobile")?;
    let near = walk.start_neighbour(0, NEIGHBOUR_KEY)?;
    let _far = walk.start_neighbour(1, NEIGHBOUR_KEY)?;
    let home = walk.start_home(Terms::PLAIN)?;
    let mobile = walk.start_mobile_with_keys()?;
    let ends = Ends { home, mobile };
    ends.mobile.wait_until("status", DEADLINE, pair::is_up)?;
    ends.is_at(CARE_OF[0])?;
    walk.set_way(0, false)?;
    walk.set_link(0, false)?;
    ends.is_at(CARE_OF[1])?;
    walk.set_way(0, true)?;
    let gone = |status: &Value| sent_on(status) == Some(CARE_OF[1]);
    near.wait_until("status", DEADLINE, gone).map(drop)
}

/// Wireshark can decode the messages between agents and mobile node, and the tunnel.
// Works: mobile-ip
#[lab::test]
fn tshark_reads_what_is_said_of_a_registration() -> Result<()> {
    let walk = Walk::new("mobile")?;
    let agent = walk.start_agent(0)?;
    let tap = Wiretap::open(&walk.agents[0])?;
    let _ends = Ends::start(&walk, "")?;
    let mut volleys = Volleys::new((&walk.mobile, MOBILE[0]), (&walk.home, GATEWAY[0]))?;
    volleys.fly()?;
    let status = agent.strata("status")?;
    let visitor = &status["status"]["mobile_ip"]["visitors"][0];
    ensure!(visitor["home_address"] == HOME_ADDRESS, "{status}");
    let seen = tap.rest()?;
    let capture = Capture::write(&walk.agents[0], "registration.pcap", seen)?;
    capture.has(&[
        ("mip.type == 1", "mip.homeaddr", HOME_ADDRESS),
        ("mip.type == 1", "mip.haaddr", HOME_AGENT),
        ("mip.type == 1", "mip.coa", CARE_OF[0]),
        ("mip.type == 3", "mip.code", "0"),
        ("mip.type == 3", "mip.homeaddr", HOME_ADDRESS),
        ("icmp.type == 9", "icmp.mip.coa", CARE_OF[0]),
    ])?;
    let tunnelled = capture.read("ip.proto == 4", "ip.src")?;
    ensure!(!tunnelled.is_empty(), "nothing was in a tunnel");
    capture.is_well_formed("mip || icmp.type == 9")
}
