//! Away: a host keeps its address, and what it sends goes to the agent that it is visiting.
//!
//! The address is the loopback interface's, so that it is there whichever interface is in use. What is sent from it, or by
//! whoever has not chosen an address, goes where the main table has a specific route, and everything else to the agent
//! instead of where that table's default route leads. Who sends from another address is not concerned.
//!
//! Both are asked behind the rules of [`crate::routes`]: what a tunnel of the host's own protects has gone into
//! it before, and the packets of that tunnel, which carry its mark, come here. A move puts one route in the place of
//! another, so that there is always one.
//!
//! Where there is a second agent the kernel has its route as well, behind the first. So when the first one's interface goes
//! nobody has to do anything: packets leave by the other, and what comes by it passes the check of reverse paths.

use super::{AWAY, METRIC, ROAMING_PRIORITY, SPARE_METRIC, SPECIFIC_PRIORITY, away, remove_all};
use crate::installed::Installed;
use crate::netlink::{Route, Rule, Via};
use crate::{Error, Family, LinkAddress, Netlink, Prefix, sysctl};
use nix::errno::Errno;
use std::net::{IpAddr, Ipv4Addr};

const LOOPBACK: &str = "lo";

/// What an interface has besides its addresses, if it has any: on one without an address the kernel takes nothing that
/// it would not answer by it, even where it checks reverse paths loosely. Link-local, and told to nobody.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 72, 94));

/// Who forwards what we send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its station, as it was heard.
    pub link: LinkAddress,
    /// The interface where it was heard.
    pub interface: String,
}

/// A host's address, and its way out.
pub struct Roaming {
    netlink: Netlink,
    home: Ipv4Addr,
    agent: Option<Agent>,
    spare: Option<Agent>,
}

impl Roaming {
    /// Gives the host its address in the calling thread's network namespace. It has no agent yet, and its packets take
    /// the ordinary way. Leftovers of a predecessor are removed first.
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

    /// Fails if an interface would drop what comes by it while packets are sent by another: with more than one agent at
    /// once the host is reached by each ([`Roaming::receive_by`]), and answers by one.
    pub fn check_several(interfaces: &[impl AsRef<str>]) -> Result<(), Error> {
        for interface in interfaces.iter().map(AsRef::as_ref) {
            if sysctl::strict_reverse_path(interface)? {
                let interface = interface.to_owned();
                return Err(Error::StrictSecondWay { interface });
            }
        }
        Ok(())
    }

    /// Takes what comes by an interface though packets are sent by another.
    pub fn receive_by(&self, interface: &str) -> Result<(), Error> {
        give(&self.netlink, interface, ADDRESS)
    }

    /// Sends by this agent from now on. That it was so before does no harm, and mends what others changed or went with the
    /// interface.
    ///
    /// # Errors
    /// The interface is down, or gone. Then the way is what it was.
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

    /// Has this agent ready for when the interface of the one that is followed goes; `None`: nobody.
    ///
    /// # Errors
    /// As [`Roaming::follow`]. Then nobody is ready.
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

    /// Sends by nobody: packets take the ordinary way.
    pub fn leave(&mut self) -> Result<(), Error> {
        self.hold_ready(None)?;
        let left = self.agent.take();
        if let Some(agent) = &left {
            self.netlink.drop_route(&self.way(agent, METRIC))?;
        }
        self.forget(left)
    }

    /// What ought to be there and is not, as ip(8) writes it. With an interface that is down its routes have gone.
    pub fn missing(&self) -> Result<Vec<String>, Error> {
        self.installed().missing(&self.netlink)
    }

    /// Puts that there.
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

    /// Agents by whose interfaces packets can leave, with the metrics of their routes.
    fn reachable(&self) -> impl Iterator<Item = (&Agent, u32)> {
        let followed = self.agent.iter().map(|agent| (agent, METRIC));
        let spare = self.spare.iter().map(|agent| (agent, SPARE_METRIC));
        let all = followed.chain(spare);
        all.filter(move |(agent, _)| self.netlink.is_up(&agent.interface).unwrap_or(false))
    }

    /// Stops, and leaves nothing: the host has the address no more.
    pub fn close(self) -> Result<(), Error> {
        remove_all(&self.netlink)
    }

    /// Forgets the station of an agent that is neither followed nor held ready.
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

/// For packets from the address, and for those whose source is still to be chosen.
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

/// Whose rule of ours this is, if it is one for packets from an address.
fn home(rule: &Rule) -> Option<Ipv4Addr> {
    let IpAddr::V4(from) = rule.from?.address else {
        return None;
    };
    let ours = (rule.priority, rule.table) == (ROAMING_PRIORITY, AWAY);
    (ours && !from.is_unspecified()).then_some(from)
}

/// Takes away what hosts of this kind have: a home, and addresses of interfaces.
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

/// It may be gone, and so may the interface.
fn take(netlink: &Netlink, interface: &str, address: IpAddr) -> Result<(), Error> {
    let taken = netlink.delete_address(interface, Prefix::host(address));
    unless(&[Errno::EADDRNOTAVAIL, Errno::ENODEV], taken)
}

/// What has been done already is done.
fn unless(done: &[Errno], result: Result<(), Error>) -> Result<(), Error> {
    let error = result.as_ref().err().and_then(Error::raw_os_error);
    match error.map(Errno::from_raw) {
        Some(errno) if done.contains(&errno) => Ok(()),
        _ => result,
    }
}
