//! A mobile node with two access networks, each with a licensed agent, and a gateway behind both.
//!
//! ```text
//!         eth0 ---- wireless  fa  wired ---- a
//!  mobile 10.3.0.2  10.3.0.1      10.5.0.1      between  wired ---- eth0  gateway
//!         eth1 ---- wireless  fb  wired ---- b           192.0.2.2  192.0.2.1
//!         10.4.0.2  10.4.0.1      10.6.0.1
//!
//!  10.1.0.2 <=================== tunnel ====================> 10.8.0.1
//! ```
//!
//! Packets from an address of the mobile node pass the agent of that network, and answers return
//! there.

use crate::daemon::Daemon;
use crate::emulator::{Emulator, Settings};
use crate::host::Host;
use crate::pair::{
    GATEWAY, MOBILE, NODE_KEY, TUNNEL_KEY, Terms, Tunnel, add_way, gateway_config, licensed_config,
    mobile_config, restore_way,
};
use crate::plain::about_peer;
use crate::testbed::Testbed;
use crate::transfer::transfer;
use crate::wire;
use anyhow::Result;
use os::Family;

/// Addresses of the mobile node, the preferred one first.
pub const LOCALS: [&str; 2] = ["10.3.0.2", "10.4.0.2"];

/// Networks of these addresses: the places of the agents.
pub const PLACES: [&str; 2] = ["10.3.0.0/24", "10.4.0.0/24"];

/// Identities of the agents.
pub const AGENTS: [&str; 2] = ["fa.example.net", "fb.example.net"];

/// Interfaces of the mobile node, and the agents' addresses there.
const ACCESS: [[&str; 2]; 2] = [["eth0", "10.3.0.1"], ["eth1", "10.4.0.1"]];

/// The agents' addresses towards the gateway, and those of their router.
const UPLINKS: [[&str; 2]; 2] = [["10.5.0.1", "10.5.0.2"], ["10.6.0.1", "10.6.0.2"]];

/// The hosts.
pub struct Fork {
    _bed: Testbed,
    _hop: Option<Emulator>,
    /// The router between the agents and the gateway.
    _between: Host,
    /// The mobile node, which initiates.
    pub mobile: Host,
    /// The agents, by the order of [`LOCALS`].
    pub agents: [Host; 2],
    /// The gateway, which responds and distributes keys.
    pub gateway: Host,
}

impl Fork {
    /// Creates the hosts and the wires, with routes but without daemons.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new(name: &str) -> Result<Self> {
        Self::with_hop(name, None)
    }

    /// Creates the same network with an emulated wire to the first agent.
    ///
    /// # Errors
    /// As [`Fork::new`].
    pub fn with_lossy_hop(name: &str, hop: sim::Settings) -> Result<Self> {
        Self::with_hop(name, Some(hop))
    }

    fn with_hop(name: &str, mut hop: Option<sim::Settings>) -> Result<Self> {
        let bed = Testbed::new(name)?;
        let (mobile, gateway) = (bed.host("mobile")?, bed.host("gateway")?);
        let agents = [bed.host("fa")?, bed.host("fb")?];
        let between = bed.host("between")?;
        for router in agents.iter().chain([&between]) {
            router.sysctl("net.ipv4.ip_forward", "1")?;
        }
        let mut emulator = None;
        for (number, agent) in agents.iter().enumerate() {
            let [device, address] = ACCESS[number];
            let [near, far] = [LOCALS[number], address].map(|address| format!("{address}/24"));
            let (near, far) = ([near.as_str()], [far.as_str()]);
            let (near, far) = (mobile.end(device, &near), agent.end("wireless", &far));
            match hop.take() {
                None => wire::veth(near, far)?,
                Some(hop) => {
                    emulator = Some(wire::emulated(near, far, Settings::symmetric(hop), 1)?);
                }
            }
            let [near, far] = UPLINKS[number].map(|address| format!("{address}/24"));
            let device = ["a", "b"][number];
            wire::veth(agent.end("wired", &[&near]), between.end(device, &[&far]))?;
            agent.route("default", UPLINKS[number][1])?;
            between.route(PLACES[number], UPLINKS[number][0])?;
        }
        wire::veth(
            between.end("wired", &["192.0.2.2/24"]),
            gateway.end("eth0", &["192.0.2.1/24"]),
        )?;
        gateway.route("default", "192.0.2.2")?;
        mobile.route("default", ACCESS[0][1])?;
        add_way(&mobile, LOCALS[1], ACCESS[1][1])?;
        Ok(Self {
            _bed: bed,
            _hop: emulator,
            _between: between,
            mobile,
            agents,
            gateway,
        })
    }

    /// Starts the agents as licensed nodes, each with additional tables.
    ///
    /// # Errors
    /// Those of [`Host::stratad`].
    pub fn start_agents(&self, more: impl Fn(usize) -> String) -> Result<[Daemon; 2]> {
        let start = |number: usize| {
            self.agents[number].secret("node.psk", NODE_KEY)?;
            let config = licensed_config(AGENTS[number]);
            self.agents[number].stratad(&format!("{config}{}", more(number)))
        };
        Ok([start(0)?, start(1)?])
    }

    /// Starts both ends, each with its licences and these lines in the table of its peer, and
    /// brings the tunnel up.
    ///
    /// # Errors
    /// Those of [`Host::stratad`], or the tunnel does not come up.
    pub fn start_up(&self, licences: [&str; 2], lines: &str) -> Result<Tunnel> {
        for host in [&self.mobile, &self.gateway] {
            host.secret("tunnel.psk", TUNNEL_KEY)?;
        }
        self.gateway.secret("node.psk", NODE_KEY)?;
        let [mobile, gateway] = licences.map(Terms::requiring);
        let mobile = mobile_config(Family::V4, mobile, "manual");
        let gateway = gateway_config(gateway).replace("192.0.2.2", UPLINKS[0][0]);
        let second = format!(
            "[licensed.fb]\naddress = \"{}\"\nid = \"{}\"\npsk = \"node.psk\"\nliveness = \"1s\"\n",
            UPLINKS[1][0], AGENTS[1]
        );
        let gateway = self
            .gateway
            .stratad(&format!("{}{second}", about_peer(&gateway, lines)))?;
        let mobile = self.mobile.stratad(&about_peer(&mobile, lines))?;
        let tunnel = Tunnel { mobile, gateway };
        tunnel.up()?;
        Ok(tunnel)
    }

    /// Takes down the mobile node's interface of an access network, or brings it up with its
    /// routes.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_link(&self, number: usize, up: bool) -> Result<()> {
        let [device, via] = ACCESS[number];
        let state = if up { "up" } else { "down" };
        self.mobile.run(&format!("ip link set {device} {state}"))?;
        match (up, number) {
            (false, _) => Ok(()),
            (true, 0) => self.mobile.route("default", via),
            (true, _) => restore_way(&self.mobile, via),
        }
    }

    /// Carries octets of several TCP connections through the tunnel, one after the other, in turns
    /// from either end.
    ///
    /// # Errors
    /// An octet does not arrive.
    pub fn carry(&self, connections: usize, octets: u64) -> Result<()> {
        for number in 0..connections {
            match number % 2 {
                0 => transfer(&self.mobile, &self.gateway, GATEWAY[0], octets)?,
                _ => transfer(&self.gateway, &self.mobile, MOBILE[0], octets)?,
            }
        }
        Ok(())
    }
}

/// Returns licences to read headers for these agents, each at its place, as a configuration writes
/// them.
pub fn licences(agents: &[usize]) -> String {
    let licence = |number: &usize| {
        let (node, place) = (AGENTS[*number], PLACES[*number]);
        format!(
            "{{ node = \"{node}\", zones = [\"headers\"], right = \"read\", at = [\"{place}\"] }}"
        )
    };
    let all: Vec<_> = agents.iter().map(licence).collect();
    format!("[{}]", all.join(", "))
}
