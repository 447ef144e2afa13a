//! A mobile node between two to four foreign agents, and its home agent, which is also the gateway
//! of its tunnel. This is the network of the tests of Mobile IPv4 and of the roaming demo.
//!
//! ```text
//!            m0 ---- wl0  near   up ----  a0
//!   mobile   m1 ---- wl0  far    up ----  a1  between  b ... eth0  home   10.8.0.1
//!            m2 ---- wl0  third  up ----  a2                       192.0.2.1
//!            m3 ---- wl0  fourth up ----  a3
//!   10.66.0.7      198.51.100.2, 203.0.113.2, 198.18.0.2, 198.18.1.2
//! ```
//!
//! In front of the first foreign agent there may be a NAT. The agent's addresses then belong to a
//! network that is unknown outside.
//!
//! The mobile node has no address on a link and no route except by registering.

mod capture;
mod ends;
pub mod tables;

pub use capture::Capture;
pub use ends::{Ends, both_ways, download};

use crate::daemon::Daemon;
use crate::emulator::{Emulator, Settings};
use crate::host::Host;
use crate::pair::{NODE_KEY, TUNNEL_KEY, Terms, await_addresses};
use crate::testbed::Testbed;
use crate::wire;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;

/// Home address of the mobile node, for packets outside its tunnel.
pub const HOME_ADDRESS: &str = "10.66.0.7";

/// Home network of the mobile node.
const HOME_NETWORK: &str = "10.66.0.0/24";

/// Address of its home agent.
pub const HOME_AGENT: &str = "192.0.2.1";

/// Largest number of foreign agents.
pub const MOST_AGENTS: usize = 4;

/// Care-of addresses of the foreign agents; the first is the preferred one.
pub const CARE_OF: [&str; MOST_AGENTS] =
    ["198.51.100.2", "203.0.113.2", "198.18.0.2", "198.18.1.2"];

/// Identities of the foreign agents, if they are licensed nodes as well.
pub const AGENTS: [&str; MOST_AGENTS] = [
    "fa.example.net",
    "fb.example.net",
    "fc.example.net",
    "fd.example.net",
];

/// Interfaces of the mobile node, in the same order.
pub const INTERFACES: [&str; MOST_AGENTS] = ["m0", "m1", "m2", "m3"];

/// A line of `[mobile_node]` with a short lifetime, so that a home agent that has lost its bindings
/// soon learns them again.
pub const OFTEN: &str = "lifetime = \"10s\"";

/// Secret of the mobile node and the foreign agents.
const AGENT_KEY: &str = "a key between mobile node and foreign agents";

/// Secret of a foreign agent and the home agent, if they have one.
const FOREIGN_KEY: &str = "a key between foreign agents and home agent";

/// Secret among foreign agents.
pub const NEIGHBOUR_KEY: &str = "a key between foreign agents";

/// Secret of the mobile node and the home agent.
pub const HOME_KEY: &str = "a key between mobile node and home agent";

/// Names of the foreign agents' hosts.
const NAMES: [&str; MOST_AGENTS] = ["near", "far", "third", "fourth"];

/// Addresses on the networks towards home, of the foreign agent and of the host between.
pub const UPLINKS: [[&str; 2]; MOST_AGENTS] = [
    ["10.4.1.2", "10.4.1.1"],
    ["10.4.2.2", "10.4.2.1"],
    ["10.4.3.2", "10.4.3.1"],
    ["10.4.4.2", "10.4.4.1"],
];

/// Addresses on the network between the NAT and the host between, of each.
const OUTSIDE: [&str; 2] = [NAT, "10.5.1.1"];

/// Outside address of the NAT.
pub const NAT: &str = "10.5.1.2";

/// Masquerades UDP with a new random port each time, and drops packets of other protocols from the
/// foreign agent, as a NAT does that cannot translate their answers back.
const TRANSLATION: &str = "table ip nat {
  chain out {
    type nat hook postrouting priority 100
    oifname \"outside\" meta l4proto udp masquerade to :20000-30000 random
  }
  chain through {
    type filter hook forward priority 0
    iifname \"inside\" meta l4proto != udp drop
  }
}
";

/// The hosts.
pub struct Walk {
    bed: Testbed,
    /// Emulated wires: between foreign agents and the host between, and at home.
    hops: Vec<Emulator>,
    /// The mobile node.
    pub mobile: Host,
    /// The foreign agents.
    pub agents: Vec<Host>,
    /// The NAT between the first foreign agent and the host between, if there is one.
    pub nat: Option<Host>,
    /// A router between the foreign agents and home.
    pub between: Host,
    /// The home agent.
    pub home: Host,
}

impl Walk {
    /// Creates two foreign agents, the other hosts and the wires, without daemons.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new(name: &str) -> Result<Self> {
        Self::in_bed(Testbed::new(name)?, &[None, None])
    }

    /// Creates the network with the first foreign agent behind a NAT.
    ///
    /// # Errors
    /// As [`Walk::new`].
    pub fn behind_nat(name: &str) -> Result<Self> {
        let bed = Testbed::new(name)?;
        let nat = bed.host("nat")?;
        Self::build(bed, &[None, None], None, Some(nat))
    }

    /// Creates the network with the first foreign agent far from home: on a slow wire with errors.
    ///
    /// # Errors
    /// As [`Walk::new`].
    pub fn with_hop(name: &str, hop: sim::Settings) -> Result<Self> {
        Self::in_bed(Testbed::new(name)?, &[Some(hop), None])
    }

    /// Creates the network with both foreign agents far from home, and near each other.
    ///
    /// # Errors
    /// As [`Walk::new`].
    pub fn far_from_home(name: &str, hop: sim::Settings) -> Result<Self> {
        Self::build(Testbed::new(name)?, &[None, None], Some(hop), None)
    }

    /// Creates the network in an existing testbed, with one foreign agent for each of these wires
    /// towards home. `None` is an ideal wire.
    ///
    /// # Errors
    /// As [`Walk::new`].
    pub fn in_bed(bed: Testbed, hops: &[Option<sim::Settings>]) -> Result<Self> {
        Self::build(bed, hops, None, None)
    }

    /// Creates the network with the wires of the agents, the wire of home, and a NAT.
    fn build(
        bed: Testbed,
        hops: &[Option<sim::Settings>],
        home_hop: Option<sim::Settings>,
        nat: Option<Host>,
    ) -> Result<Self> {
        let (mobile, between, home) =
            (bed.host("mobile")?, bed.host("between")?, bed.host("home")?);
        let names = NAMES.iter().take(hops.len());
        let agents: Vec<_> = names.map(|name| bed.host(name)).collect::<Result<_>>()?;
        for router in agents.iter().chain([&between, &home]) {
            router.sysctl("net.ipv4.ip_forward", "1")?;
        }
        let (near, far) = (
            between.end("b", &["192.0.2.2/24"]),
            home.end("eth0", &["192.0.2.1/24"]),
        );
        let mut emulators = Vec::new();
        match home_hop {
            None => wire::veth(near, far)?,
            Some(hop) => emulators.push(wire::emulated(near, far, Settings::symmetric(hop), 1)?),
        }
        home.route("default", "192.0.2.2")?;
        for (number, (agent, hop)) in agents.iter().zip(hops).enumerate() {
            let link = format!("{}/24", CARE_OF[number]);
            wire::veth(
                mobile.end(INTERFACES[number], &[]),
                agent.end("wl0", &[&link]),
            )?;
            let [here, there] = UPLINKS[number].map(|address| format!("{address}/24"));
            let (here, there) = ([here.as_str()], [there.as_str()]);
            let near = agent.end("up", &here);
            let device = format!("a{number}");
            if let Some(nat) = nat.as_ref().filter(|_| number == 0) {
                wire::veth(near, nat.end("inside", &there))?;
                translate(nat, &between, &device)?;
                agent.route("default", UPLINKS[number][1])?;
                continue;
            }
            let far = between.end(&device, &there);
            match hop {
                None => wire::veth(near, far)?,
                Some(hop) => {
                    emulators.push(wire::emulated(near, far, Settings::symmetric(*hop), 1)?);
                }
            }
            agent.route("default", UPLINKS[number][1])?;
            between.route(&network(number), UPLINKS[number][0])?;
        }
        await_addresses(&mobile, agents.len())?;
        Ok(Self {
            bed,
            hops: emulators,
            mobile,
            agents,
            nat,
            between,
            home,
        })
    }

    /// Returns the folder of the testbed.
    pub fn directory(&self) -> &Path {
        self.bed.directory()
    }

    /// Starts the daemon of a foreign agent, by its number.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_agent(&self, number: usize) -> Result<Daemon> {
        self.agents[number].stratad(&agent_config(number))
    }

    /// Starts a foreign agent with additional lines of `[foreign_agent]`, and a key shared with the
    /// home agent.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_agent_with(&self, number: usize, more: &str) -> Result<Daemon> {
        self.agents[number].secret("foreign.key", FOREIGN_KEY)?;
        let home = keyed("foreign_agent.home.office", HOME_AGENT);
        self.agents[number].stratad(&format!("{}{more}\n{home}", agent_config(number)))
    }

    /// Starts a foreign agent that shares a key with the mobile node, and this key with the other
    /// agent.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_neighbour(&self, number: usize, key: &str) -> Result<Daemon> {
        self.agents[number].secret("mobile.key", AGENT_KEY)?;
        self.agents[number].secret("neighbour.key", key)?;
        let (config, other) = (agent_config(number), CARE_OF[1 - number]);
        self.agents[number].stratad(&format!(
            r#"
{config}
[foreign_agent.mobile.alice]
home_address = "{HOME_ADDRESS}"
key = {{ spi = 4098, secret = "mobile.key" }}
[foreign_agent.neighbour.other]
address = "{other}"
key = {{ spi = 4099, secret = "neighbour.key" }}
"#
        ))
    }

    /// Starts a foreign agent that is also a licensed node, for the packets of its visitors.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_licensed_agent(&self, number: usize) -> Result<Daemon> {
        self.start_licensed_agent_with(number, "")
    }

    /// Starts a foreign agent that is also a licensed node, with additional tables.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_licensed_agent_with(&self, number: usize, more: &str) -> Result<Daemon> {
        self.agents[number].secret("node.psk", NODE_KEY)?;
        self.agents[number].stratad(&format!("{}{LICENSED}{more}", agent_config(number)))
    }

    /// Starts all agents as licensed nodes, each with its own additional tables.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_licensed_agents(&self, more: impl Fn(usize) -> String) -> Result<Vec<Daemon>> {
        let numbers = 0..self.agents.len();
        let agents = numbers.map(|number| self.start_licensed_agent_with(number, &more(number)));
        agents.collect()
    }

    /// Starts the home agent's daemon.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_home(&self, terms: Terms<'_>) -> Result<Daemon> {
        self.start_home_as(&self.home_config(terms))
    }

    /// Returns the configuration of the home agent's daemon.
    pub fn home_config(&self, terms: Terms<'_>) -> String {
        home_config(self.agents.len(), terms)
    }

    /// Returns the home agent's configuration with additional lines of `[home_agent]`, and keys
    /// shared with the foreign agents.
    pub fn home_config_with(&self, more: &str) -> String {
        let table = "[home_agent]\n";
        let config = self.home_config(Terms::PLAIN);
        let config = config.replace(table, &format!("{table}{more}\n"));
        let agents = NAMES.iter().zip(CARE_OF).take(self.agents.len());
        let foreign =
            agents.map(|(name, address)| keyed(&format!("home_agent.foreign.{name}"), address));
        format!("{config}{}", foreign.collect::<String>())
    }

    /// Starts the home agent with additional lines of `[home_agent]`, and keys shared with the
    /// foreign agents.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_home_with(&self, more: &str) -> Result<Daemon> {
        self.start_home_as(&self.home_config_with(more))
    }

    /// Starts the home agent with this configuration.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_home_as(&self, config: &str) -> Result<Daemon> {
        self.home.secret("home.key", HOME_KEY)?;
        self.home.secret("foreign.key", FOREIGN_KEY)?;
        self.home.secret("tunnel.psk", TUNNEL_KEY)?;
        self.home.secret("node.psk", NODE_KEY)?;
        self.home.stratad(config)
    }

    /// Starts the mobile node's daemon with this key; `more` are lines of `[mobile_node]`.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_mobile(&self, key: &str, more: &str, terms: Terms<'_>) -> Result<Daemon> {
        self.start_mobile_as(key, &self.mobile_config(more, terms))
    }

    /// Starts the mobile node's daemon with keys shared with both foreign agents.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_mobile_with_keys(&self) -> Result<Daemon> {
        self.mobile.secret("mobile.key", AGENT_KEY)?;
        let agent = |name, address| {
            format!(
                r#"
[mobile_node.agent.{name}]
address = "{address}"
key = {{ spi = 4098, secret = "mobile.key" }}
"#
            )
        };
        let more = [agent("near", CARE_OF[0]), agent("far", CARE_OF[1])].concat();
        self.start_mobile(HOME_KEY, &more, Terms::PLAIN)
    }

    /// Returns the configuration of the mobile node's daemon.
    pub fn mobile_config(&self, more: &str, terms: Terms<'_>) -> String {
        mobile_config(&INTERFACES[..self.agents.len()], more, terms)
    }

    /// Starts the mobile node with this configuration.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_mobile_as(&self, key: &str, config: &str) -> Result<Daemon> {
        self.mobile.secret("home.key", key)?;
        self.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
        self.mobile.stratad(config)
    }

    /// Adds or removes the route of the host between to a foreign agent's network.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_way(&self, number: usize, there: bool) -> Result<()> {
        let network = network(number);
        match there {
            true => self.between.route(&network, UPLINKS[number][0]),
            false => self
                .between
                .run(&format!("ip route del {network}"))
                .map(drop),
        }
    }

    /// Returns the number of packets that the emulated wires have lost by bit errors.
    pub fn lost(&self) -> u64 {
        let directions = self.hops.iter().flat_map(Emulator::statistics);
        directions.map(|direction| direction.lost_bit_error).sum()
    }

    /// Sets `rp_filter` on all hosts but the NAT: 1 accepts a packet if its answer would leave by
    /// the same interface, 2 if there is any route back.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn check_reverse_paths(&self, how: &str) -> Result<()> {
        let hosts = [&self.mobile, &self.between, &self.home];
        for host in hosts.into_iter().chain(&self.agents) {
            for of in ["all", "default"] {
                host.sysctl(&format!("net.ipv4.conf.{of}.rp_filter"), how)?;
            }
        }
        Ok(())
    }

    /// Makes the NAT lose all its mappings, as after a power failure.
    ///
    /// # Errors
    /// There is no NAT, or the kernel refuses.
    pub fn forget(&self) -> Result<()> {
        let nat = self.nat.as_ref().context("a NAT")?;
        let netlink = nat.netns().netlink()?;
        netlink.link_down("outside")?;
        netlink.link_up("outside")?;
        nat.route("default", OUTSIDE[1])
    }

    /// Takes down all links of the mobile node except the one to this agent.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn leave_link(&self, number: usize) -> Result<()> {
        self.set_link(number, true)?;
        let mut others = (0..self.agents.len()).filter(|other| *other != number);
        others.try_for_each(|other| self.set_link(other, false))
    }

    /// Takes a link of the mobile node down, or brings it up.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_link(&self, number: usize, up: bool) -> Result<()> {
        let netlink = self.mobile.netns().netlink()?;
        let device = INTERFACES[number];
        match up {
            true => netlink.link_up(device)?,
            false => netlink.link_down(device)?,
        }
        Ok(())
    }
}

/// Returns the care-of addresses that a mobile node is registered with, by its `strata status`. The
/// one that it sends through comes first.
pub fn registered(status: &Value) -> Vec<&str> {
    let all = status["status"]["mobile_ip"]["registrations"].as_array();
    let mut all: Vec<_> = all.into_iter().flatten().collect();
    all.sort_by_key(|one| one["sends"] != true);
    let care_of = all.iter().map(|one| one["care_of"].as_str());
    care_of.flatten().collect()
}

/// Returns the care-of addresses that a home agent has bound for its only mobile node, by its
/// `strata status`.
pub fn bound(status: &Value) -> Vec<&str> {
    let bindings = &status["status"]["mobile_ip"]["mobiles"][0]["bindings"];
    let all = bindings.as_array().into_iter().flatten();
    all.filter_map(|one| one["care_of"].as_str()).collect()
}

/// Returns the reason of the last refusal.
pub fn refusal(status: &Value) -> &str {
    let refusal = &status["status"]["mobile_ip"]["last_refusal"];
    refusal["reason"].as_str().unwrap_or("")
}

/// Returns the source that a NAT gives to the packets of a home agent's only mobile node, by the
/// agent's `strata status`.
pub fn in_udp(status: &Value) -> Option<&str> {
    status["status"]["mobile_ip"]["mobiles"][0]["bindings"][0]["udp"].as_str()
}

/// Returns the address to which a foreign agent forwards packets for a visitor that has left, by
/// its `strata status`.
pub fn sent_on(status: &Value) -> Option<&str> {
    status["status"]["mobile_ip"]["visitors"][0]["gone_to"].as_str()
}

/// Joins a NAT, whose inside is already connected, to the host between.
fn translate(nat: &Host, between: &Host, device: &str) -> Result<()> {
    let [here, there] = OUTSIDE.map(|address| format!("{address}/24"));
    wire::veth(nat.end("outside", &[&here]), between.end(device, &[&there]))?;
    nat.sysctl("net.ipv4.ip_forward", "1")?;
    nat.route("default", OUTSIDE[1])?;
    nat.route(&network(0), UPLINKS[0][0])?;
    nat.file("nat.nft", TRANSLATION)?;
    nat.run("nft -f nat.nft").map(drop)
}

/// Returns the network of a foreign agent.
fn network(number: usize) -> String {
    format!("{}0/24", CARE_OF[number].trim_end_matches('2'))
}

/// Additional tables of a foreign agent that is also a licensed node.
const LICENSED: &str = r#"
[gateway.gw]
id = "gw.example.net"
psk = "node.psk"
liveness = "1s"
[divert]
wired = "strata-mobile"
wireless = "wl0"
[snoop]
enabled = true
"#;

/// Returns the configuration of a foreign agent's daemon.
pub fn agent_config(number: usize) -> String {
    let (id, address) = (AGENTS[number], CARE_OF[number]);
    format!(
        r#"
[node]
id = "{id}"
[foreign_agent]
interface = "wl0"
address = "{address}"
homes = ["{HOME_NETWORK}"]
"#
    )
}

/// Returns a table of another agent with which a key is shared.
fn keyed(table: &str, address: &str) -> String {
    format!(
        r#"
[{table}]
address = "{address}"
key = {{ spi = 4100, secret = "foreign.key" }}
"#
    )
}

fn home_config(agents: usize, terms: Terms<'_>) -> String {
    let terms = terms.text();
    let licensed: String = (0..agents).map(licensed).collect();
    format!(
        r#"
[node]
id = "gw.example.net"
[tunnel]
addresses = ["10.8.0.1/16"]
[home_agent]
address = "{HOME_AGENT}"
[home_agent.mobile.alice]
home_address = "{HOME_ADDRESS}"
key = {{ spi = 4097, secret = "home.key" }}
[peer.alice]
id = "alice@example.net"
psk = "tunnel.psk"
local = ["10.8.0.0/16"]
remote = ["10.1.0.2/32"]
mobike = "off"
liveness = "1s"
{terms}
{licensed}
"#
    )
}

/// Returns the gateway's table of a foreign agent that is also a licensed node.
fn licensed(number: usize) -> String {
    let (id, address) = (AGENTS[number], CARE_OF[number]);
    let (name, _) = id.split_once('.').unwrap_or((id, ""));
    format!(
        r#"
[licensed.{name}]
address = "{address}"
id = "{id}"
psk = "node.psk"
liveness = "1s"
"#
    )
}

fn mobile_config(interfaces: &[&str], more: &str, terms: Terms<'_>) -> String {
    let terms = terms.text();
    format!(
        r#"
[node]
id = "alice@example.net"
[tunnel]
addresses = ["10.1.0.2/32"]
[mobile_node]
home_address = "{HOME_ADDRESS}"
home_agent = "{HOME_AGENT}"
interfaces = {interfaces:?}
key = {{ spi = 4097, secret = "home.key" }}
{more}
[peer.office]
address = "{HOME_AGENT}"
id = "gw.example.net"
psk = "tunnel.psk"
local = ["10.1.0.2/32"]
remote = ["10.8.0.0/16"]
mobike = "off"
liveness = "5s"
{terms}
"#
    )
}
