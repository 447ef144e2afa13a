//! A station that is the first to claim a mobile node's home address, with a home agent of its own
//! that accepts every request, keeps that mobile node out only until the route of the address
//! shows which home agent is the right one.
//!
//! ```text
//!   mobile  m0 --- port0                                  ---- home   192.0.2.1
//!                         wl0  near  up ---- a0  between
//!   thief   m0 --- port1                                  ---- rogue  198.18.9.1
//! ```

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, GATEWAY, Terms};
use lab::process::DEADLINE;
use lab::testbed::Testbed;
use lab::transfer::transfer;
use lab::walk::{
    CARE_OF, Capture, Ends, HOME_ADDRESS, HOME_AGENT, HOME_KEY, OFTEN, Walk, bound, refusal,
    registered,
};
use lab::wire;
use lab::wiretap::Wiretap;
use serde_json::Value;

const MB: u64 = 1_000_000;

/// The home agent in league with the thief.
const ROGUE: &str = "198.18.9.1";
const THEIR_KEY: &str = "a key between thief and rogue";

/// The refusal at a mobile node whose home agent did not show that it is on the route.
const DENIED: &str = "could not authenticate the home agent";

/// A walk with a second station on the first agent's link, and the network of a rogue.
struct Theft {
    walk: Walk,
    thief: Host,
    rogue: Host,
}

impl Theft {
    fn new() -> Result<Self> {
        let bed = Testbed::new("claims")?;
        let (thief, rogue) = (bed.host("thief")?, bed.host("rogue")?);
        let walk = Walk::in_bed(bed, &[None, None])?;
        let near = &walk.agents[0];
        wire::veth(thief.end("m0", &[]), near.end("port1", &[]))?;
        for line in [
            "ip link set wl0 down",
            "ip addr flush dev wl0",
            "ip link set wl0 name port0",
            "ip link add wl0 type bridge",
            "ip link set port0 master wl0",
            "ip link set port1 master wl0",
            "ip link set port0 up",
            "ip link set port1 up",
            "ip link set wl0 up",
            &format!("ip addr add {}/24 dev wl0", CARE_OF[0]),
        ] {
            near.run(line)?;
        }
        let (here, there) = ([format!("{ROGUE}/24")], ["198.18.9.2/24"]);
        let here: Vec<_> = here.iter().map(String::as_str).collect();
        wire::veth(rogue.end("eth0", &here), walk.between.end("r", &there))?;
        rogue.route("default", "198.18.9.2")?;
        rogue.sysctl("net.ipv4.ip_forward", "1")?;
        Ok(Self { walk, thief, rogue })
    }

    /// Adds the route to the home network, which its home agent intercepts.
    fn announce_home(&self) -> Result<()> {
        self.walk.between.route("10.66.0.0/24", HOME_AGENT)
    }

    /// Starts the rogue and the thief, and waits until the agent has the thief as its visitor.
    fn begin(&self, agent: &Daemon) -> Result<[Daemon; 2]> {
        for host in [&self.thief, &self.rogue] {
            host.secret("home.key", THEIR_KEY)?;
        }
        let key = "key = { spi = 4097, secret = \"home.key\" }";
        let rogue = self.rogue.stratad(&format!(
            "[node]\nid = \"rogue.example.net\"\n[home_agent]\naddress = \"{ROGUE}\"\n\
             [home_agent.mobile.thief]\nhome_address = \"{HOME_ADDRESS}\"\n{key}\n"
        ))?;
        let thief = self.thief.stratad(&format!(
            "[node]\nid = \"thief.example.net\"\n[mobile_node]\nhome_address = \"{HOME_ADDRESS}\"\n\
             home_agent = \"{ROGUE}\"\ninterfaces = [\"m0\"]\n{key}\n{OFTEN}\n"
        ))?;
        let here = |status: &Value| registered(status) == [CARE_OF[0]];
        thief.wait_until("status", DEADLINE, here)?;
        agent.wait_until("status", DEADLINE, |status| holder(status) == Some(ROGUE))?;
        let station = self.station(&self.thief)?;
        ensure!(self.reached()?.contains(&station), "the thief is alone");
        Ok([thief, rogue])
    }

    /// The link-layer address of a host on the agent's link.
    fn station(&self, host: &Host) -> Result<String> {
        let shown = host.run("ip -o link show dev m0")?;
        let (_, rest) = shown.split_once("link/ether ").context("an address")?;
        Ok(rest.split(' ').next().unwrap_or_default().to_owned())
    }

    /// The neighbour that the agent's kernel delivers packets for the home address to.
    fn reached(&self) -> Result<String> {
        self.walk.agents[0].run(&format!("ip neigh show {HOME_ADDRESS} dev wl0"))
    }
}

/// The home agent of the agent's only visitor, by its `strata status`.
fn holder(status: &Value) -> Option<&str> {
    status["status"]["mobile_ip"]["visitors"][0]["home_agent"].as_str()
}

/// The number of claims that were denied, by `strata metrics`.
fn denied(agent: &Daemon) -> Result<u64> {
    let metrics = agent.strata_text("metrics")?;
    let counter = "strata_mobile_dropped_total{reason=\"not_routed\"} ";
    let count = metrics.split_once(counter).map_or("0", |(_, rest)| rest);
    let count = count.lines().next().unwrap_or_default();
    Ok(count.parse()?)
}

// Works: claimed-home-address
// Weakness: 164
#[lab::test]
fn who_claims_a_home_address_first_does_not_keep_its_mobile_node_out() -> Result<()> {
    let theft = Theft::new()?;
    theft.announce_home()?;
    let walk = &theft.walk;
    let mut agent = walk.start_agent(0)?;
    let [thief, _rogue] = theft.begin(&agent)?;
    let tap = Wiretap::open(&walk.home)?;
    let ends = Ends::start(walk, OFTEN)?;
    ends.is_at(CARE_OF[0])?;
    agent.wait_until("status", DEADLINE, |status| {
        holder(status) == Some(HOME_AGENT)
    })?;
    let reached = theft.reached()?;
    let station = theft.station(&walk.mobile)?;
    ensure!(reached.contains(&station), "{reached} is not {station}");
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB)?;
    // The test came by the route of the home address, and went back in the tunnel.
    let capture = Capture::write(&walk.home, "claims.pcap", tap.rest()?)?;
    let both = format!("{},{HOME_ADDRESS}", CARE_OF[0]);
    let is_test = "udp.dstport == 434 && udp.payload[0:2] == ff:03";
    capture.has(&[
        (
            &format!("{is_test} && !(ip.proto == 4)"),
            "ip.dst",
            HOME_ADDRESS,
        ),
        (&format!("{is_test} && ip.proto == 4"), "ip.dst", &both),
    ])?;
    // The thief renews its registration, and is denied each time.
    let told = |status: &Value| refusal(status).contains(DENIED);
    thief.wait_until("status", DEADLINE, told)?;
    let told = |status: &Value| refusal(status).contains("is not on its route");
    let status = agent.wait_until("status", DEADLINE, told)?;
    ensure!(holder(&status) == Some(HOME_AGENT), "{status}");
    ensure!(denied(&agent)? > 0, "it is counted");
    transfer(&walk.mobile, &walk.home, GATEWAY[0], MB)?;
    let log = agent.process().log();
    for line in [
        format!("{HOME_ADDRESS} is the mobile node of {HOME_AGENT} now"),
        format!("the home agent {ROGUE} is not on the route"),
    ] {
        ensure!(log.contains(&line), "{line:?} is not in {log}");
    }
    Ok(())
}

/// The control: the test reaches no home agent, and the first claim stands. The mobile node is told
/// why, and so is the operator of the agent.
// Refuses: claimed-home-address
// Weakness: 164
#[lab::test]
fn where_the_route_of_a_home_address_shows_nothing_the_first_claim_stands() -> Result<()> {
    let theft = Theft::new()?;
    let walk = &theft.walk;
    let agent = walk.start_agent(0)?;
    let _theirs = theft.begin(&agent)?;
    let _home = walk.start_home(Terms::PLAIN)?;
    let mobile = walk.start_mobile(HOME_KEY, OFTEN, Terms::PLAIN)?;
    let told = |status: &Value| refusal(status).contains(DENIED);
    let status = mobile.wait_until("status", DEADLINE, told)?;
    ensure!(registered(&status).is_empty(), "{status}");
    let told = |status: &Value| {
        refusal(status).contains(&format!("the home agent {HOME_AGENT} is not on"))
    };
    let status = agent.wait_until("status", DEADLINE, told)?;
    ensure!(holder(&status) == Some(ROGUE), "{status}");
    ensure!(denied(&agent)? > 0, "it is counted");
    let station = theft.station(&theft.thief)?;
    ensure!(theft.reached()?.contains(&station), "the thief has it");
    Ok(())
}

/// The path drops the first test.
// Recovers: claimed-home-address
#[lab::test]
fn the_test_of_a_home_address_that_is_lost_is_sent_again() -> Result<()> {
    let theft = Theft::new()?;
    theft.announce_home()?;
    let walk = &theft.walk;
    let hook = "type filter hook forward priority 0";
    let lost = format!("ip daddr {HOME_ADDRESS} udp dport 434 quota until 60 bytes counter drop");
    let rules = format!("table ip path {{\nchain pass {{\n{hook}\n{lost}\n}}\n}}\n");
    walk.between.file("path.nft", &rules)?;
    walk.between.run("nft -f path.nft")?;
    let agent = walk.start_agent(0)?;
    let _theirs = theft.begin(&agent)?;
    let ends = Ends::start(walk, "")?;
    agent.wait_until("status", DEADLINE, |status| {
        holder(status) == Some(HOME_AGENT)
    })?;
    let status = ends.home.strata("status")?;
    ensure!(bound(&status) == [CARE_OF[0]], "{status}");
    let ruleset = walk.between.run("nft list ruleset")?;
    ensure!(ruleset.contains("counter packets 1 bytes 52"), "{ruleset}");
    ensure!(pair::is_up(&ends.mobile.strata("status")?), "no tunnel");
    Ok(())
}
