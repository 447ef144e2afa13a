//! The roaming host: it keeps its address, and sends its packets to the agent that it visits.
//!
//! The address is on the loopback interface, so it exists whichever interface is in use. Packets
//! from it, or without a chosen source address, use the main table's specific routes, and otherwise
//! the agent instead of that table's default route. Packets from other addresses are not affected.
//!
//! Both lookups come behind the rules of [`crate::routes`]: traffic that a tunnel of the host
//! protects has entered it before, and the packets of that tunnel, which carry its mark, arrive
//! here. A move adds the next route before it deletes the previous one, so there is always one.
//!
//! A second agent has a route as well, behind the first. If the first one's interface disappears,
//! packets leave by the other at once, and packets that arrive there pass the check of reverse
//! paths.
//!
//! Packets may arrive through a new agent before there is a route to it: home sends as soon as it
//! has granted the registration, and the kernel checks the reverse path when a packet arrives, not
//! when it is read. An IKE message that it drops is late by a retransmission timeout. So the
//! reverse paths of the host's own tunnels do not depend on its agent. The kernel looks them up
//! without our mark, which the packets that these tunnels send have: a rule for unmarked packets
//! from the tunnels' ports matches reverse paths only. It leads to a route through all interfaces.

use super::{
    ARRIVAL_PRIORITY, ARRIVALS, AWAY, METRIC, ROAMING_PRIORITY, SPARE_METRIC, SPECIFIC_PRIORITY,
    away, remove_all,
};
use crate::installed::Installed;
use crate::netlink::{Mark, Route, Rule, Via};
use crate::{Error, Family, LinkAddress, Netlink, Prefix, sysctl};
use nix::errno::Errno;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use wire::udp;

const LOOPBACK: &str = "lo";

/// An address that an interface gets in addition to its own addresses, if it has any. On an
/// interface without an address, the kernel drops packets that it would not answer on the same
/// interface, even with loose reverse path checks. Link-local, and never announced.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 72, 94));

/// Ports that a rule can have.
const POSSIBLE: RangeInclusive<u16> = 1..=u16::MAX - 1;

/// An agent that forwards our packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The agent's address.
    pub address: Ipv4Addr,
    /// The agent's link address, as heard.
    pub link: LinkAddress,
    /// The interface on which the agent was heard.
    pub interface: String,
}

/// A host's address, and its routes out.
pub struct Roaming {
    netlink: Netlink,
    home: Ipv4Addr,
    ports: Vec<u16>,
    agent: Option<Agent>,
    spare: Option<Agent>,
    /// Interfaces on which the packets of tunnels are accepted.
    accepts: Vec<String>,
}

impl Roaming {
    /// Adds the host's address in the calling thread's network namespace. It has no agent yet, and
    /// its packets take the ordinary route. `ports` are the UDP ports of its own tunnels, of IKE
    /// and of ESP in UDP. A predecessor's remains are removed first.
    pub fn open(home: Ipv4Addr, ports: &[u16]) -> Result<Self, Error> {
        let netlink = Netlink::open()?;
        remove_all(&netlink)?;
        let roaming = Self {
            netlink,
            home,
            ports: ports.to_vec(),
            agent: None,
            spare: None,
            accepts: Vec::new(),
        };
        roaming.ensure()?;
        Ok(roaming)
    }

    /// Adds the rules and the address, unless they exist.
    fn ensure(&self) -> Result<(), Error> {
        for rule in self.rules() {
            self.netlink.ensure_rule(&rule)?;
        }
        give(&self.netlink, LOOPBACK, self.home.into())
    }

    /// Returns an error if an interface would drop packets that arrive on it while packets leave by
    /// another. With more than one agent the host is reached through each
    /// ([`Roaming::receive_by`]), and answers through one.
    pub fn check_several(interfaces: &[impl AsRef<str>]) -> Result<(), Error> {
        for interface in interfaces.iter().map(AsRef::as_ref) {
            if sysctl::strict_reverse_path(interface)? {
                let interface = interface.to_owned();
                return Err(Error::StrictSecondWay { interface });
            }
        }
        Ok(())
    }

    /// Accepts packets on an interface although packets leave by another.
    pub fn receive_by(&self, interface: &str) -> Result<(), Error> {
        give(&self.netlink, interface, ADDRESS)
    }

    /// Accepts the packets of the host's own tunnels (IKE, and ESP in UDP) on these interfaces,
    /// which are up, whichever one packets leave by. Such packets are authenticated wherever they
    /// arrive. A repeated call with the same interfaces does nothing.
    ///
    /// # Errors
    /// An interface is down, or gone. The previous ones stay.
    pub fn accept_on(&mut self, interfaces: Vec<String>) -> Result<(), Error> {
        if self.accepts == interfaces {
            return Ok(());
        }
        match arrivals(interfaces.clone()) {
            Some(route) => self.netlink.replace_route(&route)?,
            None => {
                let before = arrivals(std::mem::take(&mut self.accepts));
                before.map_or(Ok(()), |route| self.netlink.drop_route(&route))?;
            }
        }
        self.accepts = interfaces;
        Ok(())
    }

    /// Sends through this agent from now on. A repeated call is harmless, and restores state that
    /// others changed or that disappeared with the interface.
    ///
    /// # Errors
    /// The interface is down, or gone. The previous route stays.
    pub fn follow(&mut self, agent: Agent) -> Result<(), Error> {
        self.ensure()?;
        let is_repeated = self.agent.as_ref() == Some(&agent);
        let Agent {
            address,
            link,
            interface,
        } = &agent;
        self.receive_by(interface)?;
        self.netlink.set_neighbour(interface, *address, *link)?;
        let way = self.way(&agent, METRIC);
        let replaced = match &self.agent {
            Some(left) => self.netlink.move_route(&self.way(left, METRIC), &way),
            None => self.netlink.replace_route(&way),
        };
        let left = match replaced {
            Ok(()) => self.agent.replace(agent),
            Err(_) => Some(agent),
        };
        self.forget(left)?;
        replaced?;
        // A move does not change reverse paths, and has no time for them.
        if is_repeated && let Some(route) = self.reverse_paths() {
            self.netlink.replace_route(&route)?;
        }
        Ok(())
    }

    /// Prepares a second agent for the loss of the first one's interface; `None` prepares none.
    ///
    /// # Errors
    /// As [`Roaming::follow`]. No agent is prepared then.
    pub fn hold_ready(&mut self, spare: Option<Agent>) -> Result<(), Error> {
        if self.spare == spare {
            return Ok(());
        }
        let left = self.spare.take();
        if let Some(agent) = &left {
            self.netlink.drop_route(&self.way(agent, SPARE_METRIC))?;
        }
        self.forget(left)?;
        let Some(agent) = spare else {
            return Ok(());
        };
        let Agent {
            address,
            link,
            interface,
        } = &agent;
        self.receive_by(interface)?;
        self.netlink.set_neighbour(interface, *address, *link)?;
        (self.netlink).replace_route(&self.way(&agent, SPARE_METRIC))?;
        self.spare = Some(agent);
        Ok(())
    }

    /// Stops using an agent: packets take the ordinary route.
    pub fn leave(&mut self) -> Result<(), Error> {
        self.hold_ready(None)?;
        let left = self.agent.take();
        if let Some(agent) = &left {
            self.netlink.drop_route(&self.way(agent, METRIC))?;
        }
        self.forget(left)
    }

    /// Returns missing kernel state, in the notation of ip(8). An interface that is down has lost
    /// its routes.
    pub fn missing(&self) -> Result<Vec<String>, Error> {
        self.installed().missing(&self.netlink)
    }

    /// Restores missing kernel state.
    pub fn restore(&self) -> Result<(), Error> {
        for (agent, _) in self.reachable() {
            (self.netlink).set_neighbour(&agent.interface, agent.address, agent.link)?;
        }
        self.installed().restore(&self.netlink)
    }

    fn installed(&self) -> Installed<'_> {
        let agents: Vec<_> = self.reachable().collect();
        let interfaces = agents.iter();
        let interfaces =
            interfaces.map(|(agent, _)| (agent.interface.as_str(), Prefix::host(ADDRESS)));
        let home = (LOOPBACK, Prefix::host(self.home.into()));
        let routes = agents
            .iter()
            .map(|(agent, metric)| self.way(agent, *metric));
        Installed {
            devices: Vec::new(),
            addresses: [home].into_iter().chain(interfaces).collect(),
            routes: routes.chain(self.reverse_paths()).collect(),
            rules: self.rules(),
        }
    }

    /// Returns the route of reverse paths through the interfaces that are up.
    fn reverse_paths(&self) -> Option<Route> {
        let accepts = self.accepts.iter();
        let up = accepts.filter(|interface| self.is_up(interface));
        arrivals(up.cloned().collect())
    }

    fn is_up(&self, interface: &str) -> bool {
        self.netlink.is_up(interface).unwrap_or(false)
    }

    /// Returns the agents whose interfaces are up, with the metrics of their routes.
    fn reachable(&self) -> impl Iterator<Item = (&Agent, u32)> {
        let followed = self.agent.iter().map(|agent| (agent, METRIC));
        let spare = self.spare.iter().map(|agent| (agent, SPARE_METRIC));
        let all = followed.chain(spare);
        all.filter(move |(agent, _)| self.is_up(&agent.interface))
    }

    /// Removes all kernel state, including the host's address.
    pub fn close(self) -> Result<(), Error> {
        remove_all(&self.netlink)
    }

    /// Forgets the link address of an agent that is neither in use nor prepared.
    fn forget(&self, left: Option<Agent>) -> Result<(), Error> {
        let is_known = |agent: &Agent| {
            let place = |agent: &Agent| (agent.address, agent.interface.clone());
            let mut known = self.agent.iter().chain(&self.spare);
            known.any(|known| place(known) == place(agent))
        };
        match left.filter(|agent| !is_known(agent)) {
            Some(agent) => (self.netlink).forget_neighbour(&agent.interface, agent.address),
            None => Ok(()),
        }
    }

    /// Returns the rules for packets from the address, for packets without a chosen source, and for
    /// the reverse paths of tunnels.
    fn rules(&self) -> Vec<Rule> {
        let (home, unspecified) = (IpAddr::V4(self.home), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let specific = Rule::new(Family::V4, SPECIFIC_PRIORITY, Route::MAIN).but_default();
        let rest = Rule::new(Family::V4, ROAMING_PRIORITY, AWAY);
        let arrival = Rule::new(Family::V4, ARRIVAL_PRIORITY, ARRIVALS);
        let arrival = arrival.from(home).mark(Mark::Is(0)).protocol(udp::PROTOCOL);
        let ports = self.ports.iter().filter(|port| POSSIBLE.contains(port));
        let arrivals = ports.map(|port| arrival.clone().source_ports(*port..=*port));
        let others = [
            specific.clone().from(home),
            rest.clone().from(home),
            specific.from(unspecified),
            rest.from(unspecified),
        ];
        others.into_iter().chain(arrivals).collect()
    }

    fn way(&self, agent: &Agent, metric: u32) -> Route {
        let via = Via::Onlink {
            gateway: agent.address.into(),
            device: agent.interface.clone(),
        };
        Route {
            source: Some(self.home.into()),
            ..away(via, metric)
        }
    }
}

/// Returns the route of reverse paths through these interfaces, if there are any.
fn arrivals(interfaces: Vec<String>) -> Option<Route> {
    (!interfaces.is_empty()).then(|| Route {
        table: ARRIVALS,
        ..Route::new(Prefix::everything(Family::V4), Via::any(interfaces))
    })
}

/// Returns the home address of a rule of ours, if it is one for packets from an address.
fn home(rule: &Rule) -> Option<Ipv4Addr> {
    let IpAddr::V4(from) = rule.from?.address else {
        return None;
    };
    let ours =
        (SPECIFIC_PRIORITY..=ROAMING_PRIORITY).contains(&rule.priority) && rule.table == AWAY;
    (ours && !from.is_unspecified()).then_some(from)
}

/// Removes the addresses of roaming hosts: a home address, and those of interfaces.
pub(super) fn remove_addresses(netlink: &Netlink) -> Result<(), Error> {
    let mut homes = netlink.rules()?.into_iter().filter_map(|rule| home(&rule));
    homes.try_for_each(|home| take(netlink, LOOPBACK, home.into()))?;
    let mut interfaces = netlink.links()?.into_iter();
    interfaces.try_for_each(|interface| take(netlink, &interface, ADDRESS))
}

fn give(netlink: &Netlink, interface: &str, address: IpAddr) -> Result<(), Error> {
    let given = netlink.add_address(interface, Prefix::host(address));
    unless(&[Errno::EEXIST], given)
}

/// Removes an address that may be gone already, as may the interface.
fn take(netlink: &Netlink, interface: &str, address: IpAddr) -> Result<(), Error> {
    let taken = netlink.delete_address(interface, Prefix::host(address));
    unless(&[Errno::EADDRNOTAVAIL, Errno::ENODEV], taken)
}

/// Ignores errors that mean that the work is already done.
fn unless(done: &[Errno], result: Result<(), Error>) -> Result<(), Error> {
    let error = result.as_ref().err().and_then(Error::raw_os_error);
    match error.map(Errno::from_raw) {
        Some(errno) if done.contains(&errno) => Ok(()),
        _ => result,
    }
}
