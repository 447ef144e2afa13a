//! The roaming host: it keeps its address, and sends its packets to the agent that it visits.
//!
//! The address is on the loopback interface, so it exists whichever interface is in use. Packets
//! from it, or without a chosen source address, use the main table's specific routes, and otherwise
//! the agent instead of that table's default route. Packets from other addresses are not affected.
//!
//! Both lookups come behind the rules of [`crate::routes`]: traffic that a tunnel of the host
//! protects has entered it before, and the packets of that tunnel, which carry its mark, arrive
//! here. A move replaces one route by another, so there is always one.
//!
//! A second agent has a route as well, behind the first. If the first one's interface disappears,
//! packets leave by the other at once, and packets that arrive there pass the check of reverse
//! paths.

use super::{AWAY, METRIC, ROAMING_PRIORITY, SPARE_METRIC, SPECIFIC_PRIORITY, away, remove_all};
use crate::installed::Installed;
use crate::netlink::{Route, Rule, Via};
use crate::{Error, Family, LinkAddress, Netlink, Prefix, sysctl};
use nix::errno::Errno;
use std::net::{IpAddr, Ipv4Addr};

const LOOPBACK: &str = "lo";

/// An address that an interface gets in addition to its own addresses, if it has any. On an
/// interface without an address, the kernel drops packets that it would not answer on the same
/// interface, even with loose reverse path checks. Link-local, and never announced.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 72, 94));

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
    agent: Option<Agent>,
    spare: Option<Agent>,
}

impl Roaming {
    /// Adds the host's address in the calling thread's network namespace. It has no agent yet, and
    /// its packets take the ordinary route. A predecessor's remains are removed first.
    pub fn open(home: Ipv4Addr) -> Result<Self, Error> {
        let netlink = Netlink::open()?;
        remove_all(&netlink)?;
        for rule in rules(home) {
            netlink.ensure_rule(&rule)?;
        }
        give(&netlink, LOOPBACK, home.into())?;
        Ok(Self {
            netlink,
            home,
            agent: None,
            spare: None,
        })
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

    /// Sends through this agent from now on. A repeated call is harmless, and restores state that
    /// others changed or that disappeared with the interface.
    ///
    /// # Errors
    /// The interface is down, or gone. The previous route stays.
    pub fn follow(&mut self, agent: Agent) -> Result<(), Error> {
        for rule in rules(self.home) {
            self.netlink.ensure_rule(&rule)?;
        }
        give(&self.netlink, LOOPBACK, self.home.into())?;
        let Agent {
            address,
            link,
            interface,
        } = &agent;
        self.receive_by(interface)?;
        self.netlink.set_neighbour(interface, *address, *link)?;
        let replaced = self.netlink.replace_route(&self.way(&agent, METRIC));
        let left = match replaced {
            Ok(()) => self.agent.replace(agent),
            Err(_) => Some(agent),
        };
        self.forget(left)?;
        replaced
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
            routes: routes.collect(),
            rules: rules(self.home).into(),
        }
    }

    /// Returns the agents whose interfaces are up, with the metrics of their routes.
    fn reachable(&self) -> impl Iterator<Item = (&Agent, u32)> {
        let followed = self.agent.iter().map(|agent| (agent, METRIC));
        let spare = self.spare.iter().map(|agent| (agent, SPARE_METRIC));
        let all = followed.chain(spare);
        all.filter(move |(agent, _)| self.netlink.is_up(&agent.interface).unwrap_or(false))
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

/// Returns the rules for packets from the address, and for packets without a chosen source.
fn rules(home: Ipv4Addr) -> [Rule; 4] {
    let nobody = Ipv4Addr::UNSPECIFIED;
    let specific = Rule::new(Family::V4, SPECIFIC_PRIORITY, Route::MAIN).but_default();
    let rest = Rule::new(Family::V4, ROAMING_PRIORITY, AWAY);
    [
        specific.clone().from(IpAddr::V4(home)),
        rest.clone().from(IpAddr::V4(home)),
        specific.from(IpAddr::V4(nobody)),
        rest.from(IpAddr::V4(nobody)),
    ]
}

/// Returns the home address of a rule of ours, if it is one for packets from an address.
fn home(rule: &Rule) -> Option<Ipv4Addr> {
    let IpAddr::V4(from) = rule.from?.address else {
        return None;
    };
    let ours = (rule.priority, rule.table) == (ROAMING_PRIORITY, AWAY);
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
