//! The mobile node's side: it hears agents on its interfaces, which come and go, and sets the
//! kernel's route through one of them.

use super::link::{DESCRIPTORS, Sockets};
use super::{NotRead, send_local};
use model::Instant;
use node::Node;
use node::mobile_ip::{Arrival, Attachment, MobileEvent, Station, Transmit};
use os::discovery::Role;
use os::mobile::{Agent, Roaming};
use os::{Error, LinkAddress, Netlink, Poller};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;

/// The node's interfaces, and its routes.
pub struct MobileNode {
    home: Ipv4Addr,
    /// True if packets may arrive on one interface while they leave by another.
    simultaneous: bool,
    roaming: Roaming,
    netlink: Netlink,
    /// Interfaces by number.
    links: Vec<Link>,
    /// Link addresses of the agents of current registrations.
    stations: BTreeMap<Attachment, LinkAddress>,
    /// Agents that packets arrive through, and the agent that packets are sent through.
    registered: Vec<Attachment>,
    route: Option<Attachment>,
}

/// An interface.
struct Link {
    name: String,
    /// Kernel index of the interface while it is up, and its sockets.
    works: Option<(u32, Sockets)>,
    /// True if the node knows the state of the interface.
    is_told: bool,
}

impl MobileNode {
    pub fn open(terms: &config::MobileNode, listen: &config::Listen) -> Result<Self, Error> {
        let netlink = Netlink::open()?;
        if terms.simultaneous {
            let there = terms.interfaces.iter();
            let there = there.filter(|name| netlink.running(name).is_some());
            Roaming::check_several(&there.collect::<Vec<_>>())?;
        }
        let links = terms.interfaces.iter().map(|name| Link {
            name: name.clone(),
            works: None,
            is_told: false,
        });
        Ok(Self {
            home: terms.home_address,
            simultaneous: terms.simultaneous,
            roaming: Roaming::open(terms.home_address, &[listen.ike, listen.nat])?,
            netlink,
            links: links.collect(),
            stations: BTreeMap::new(),
            registered: Vec::new(),
            route: None,
        })
    }

    /// Registers the sockets with the poller. Links that are down are registered when they come up:
    /// [`MobileNode::look`].
    pub fn watch(&self, poller: &Poller, first: u64) -> io::Result<()> {
        for (link, token) in self
            .links
            .iter()
            .zip((first..).step_by(DESCRIPTORS as usize))
        {
            if let Some((_, sockets)) = &link.works {
                sockets.watch(poller, token)?;
            }
        }
        Ok(())
    }

    /// Opens the sockets of links that came up, and closes those of links that went down.
    pub fn look(&mut self, node: &mut Node, poller: &Poller, first: u64, now: Instant) {
        for (number, token) in (0..self.links.len()).zip((first..).step_by(DESCRIPTORS as usize)) {
            let link = &mut self.links[number];
            let index = self.netlink.running(&link.name);
            let known = link.works.as_ref().map(|(index, _)| *index);
            let was_told = std::mem::replace(&mut link.is_told, true);
            if known == index && was_told {
                continue;
            }
            let listen = || -> anyhow::Result<Sockets> {
                if self.simultaneous {
                    Roaming::check_several(&[&link.name])?;
                }
                let sockets = Sockets::open(&link.name, Role::Host, false)?;
                self.roaming.receive_by(&link.name)?;
                sockets.watch(poller, token)?;
                Ok(sockets)
            };
            let works = index.and_then(|index| match listen() {
                Ok(sockets) => Some((index, sockets)),
                Err(error) => {
                    tracing::warn!("cannot use {}: {error}", link.name);
                    None
                }
            });
            if let Some((_, sockets)) = std::mem::replace(&mut link.works, works) {
                close(sockets);
            }
            let works = link.works.is_some();
            let number = number as u32;
            node.handle_link(number, works, now);
        }
        // Before a request leaves: packets may arrive together with its reply.
        let working = self.links.iter().filter(|link| link.works.is_some());
        let working = working.map(|link| link.name.clone()).collect();
        if let Err(error) = self.roaming.accept_on(working) {
            tracing::warn!("cannot accept packets of tunnels on all interfaces: {error}");
        }
    }

    pub fn handle(&mut self, token: u64, node: &mut Node, now: Instant) -> Result<(), NotRead> {
        let (number, which) = (token / DESCRIPTORS, token % DESCRIPTORS);
        let link = self.links.get_mut(number as usize);
        let Some((_, sockets)) = link.and_then(|link| link.works.as_mut()) else {
            return Ok(());
        };
        let number = number as u32;
        let read = match which {
            0 => sockets.read_discovery(|ends, octets| {
                let LinkAddress(station) = ends.link;
                node.handle_discovery(number, ends.source, Station(station), octets, now);
            }),
            _ => sockets.read_local(|ends, port, octets| {
                let arrival = Arrival {
                    interface: number,
                    source: SocketAddrV4::new(ends.source, port),
                    destination: ends.destination,
                    ttl: ends.ttl,
                };
                let LinkAddress(station) = ends.link;
                node.handle_nearby(&arrival, Station(station), octets, now);
            }),
        };
        read.map_err(|error| ("a socket for agents", error))
    }

    pub fn send(&self, transmit: &Transmit) -> io::Result<()> {
        let nowhere = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        let sockets = |number: u32| {
            let link = self.links.get(number as usize);
            let sockets = link.and_then(|link| link.works.as_ref());
            sockets.map(|(_, sockets)| sockets).ok_or_else(nowhere)
        };
        match transmit {
            Transmit::Icmp {
                interface,
                destination,
                octets,
            } => {
                let discovery = &sockets(*interface)?.discovery;
                discovery.send_to_all(self.home, *destination, octets)
            }
            Transmit::Udp { interface, .. } => {
                let number = interface.ok_or_else(nowhere)?;
                send_local(&sockets(number)?.local, transmit)
            }
        }
    }

    /// Updates routes after an event. The agent that packets leave through changes only after the
    /// new route exists.
    pub fn note(&mut self, event: &MobileEvent) -> Result<(), Error> {
        match event {
            MobileEvent::Registered(at) => self.registered.push(*at),
            MobileEvent::Unregistered(at) => {
                self.registered.retain(|held| held != at);
                self.stations.remove(at);
            }
            // A later event updates the kernel.
            MobileEvent::Found { at, station } => {
                self.stations.insert(*at, LinkAddress(station.0));
                return Ok(());
            }
            MobileEvent::Route(route) => self.route = *route,
            MobileEvent::Renewed(_) => {}
            MobileEvent::Denied { .. }
            | MobileEvent::Silent(_)
            | MobileEvent::Deregistered { .. } => return Ok(()),
        }
        let leads = match event {
            MobileEvent::Route(_) => true,
            MobileEvent::Renewed(at) => self.route == Some(*at),
            _ => false,
        };
        if leads {
            match self.route.and_then(|at| self.agent(at)) {
                Some(agent) => self.roaming.follow(agent)?,
                None => self.roaming.leave()?,
            }
        }
        self.roaming.hold_ready(self.spare())
    }

    /// Returns the agent that replaces the current one until the node has noticed that its
    /// interface is gone.
    fn spare(&self) -> Option<Agent> {
        self.route?;
        let others = self.registered.iter();
        let mut others = others.filter(|at| Some(**at) != self.route);
        others.find_map(|at| self.agent(*at))
    }

    fn agent(&self, at: Attachment) -> Option<Agent> {
        Some(Agent {
            address: at.agent,
            link: *self.stations.get(&at)?,
            interface: self.links.get(at.interface as usize)?.name.clone(),
        })
    }

    pub const fn roaming(&self) -> &Roaming {
        &self.roaming
    }

    pub fn close(self) -> Result<(), Error> {
        self.roaming.close()
    }
}

/// Closes sockets on a thread of its own. The kernel blocks the closing thread for tens of
/// milliseconds, until no processor uses the socket, and that would delay a move.
fn close(sockets: Sockets) {
    // Without a thread the sockets are closed here.
    let _ = thread::Builder::new().spawn(move || drop(sockets));
}
