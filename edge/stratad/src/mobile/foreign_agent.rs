//! The foreign agent's side: visitors are on its link, without a route before their registration;
//! home agents are reached through routes.
//!
//! An accepted request determines the visitor's station on the link: the node keeps the station
//! with the request, and returns it. Another station with the visitor's address cannot receive its
//! packets.
//!
//! Neighbours use port 434 at both ends. Only their notices are accepted from the routed socket of
//! that port, because it also receives messages from the visitors' link that the kernel takes as
//! its own.

use super::home_agent::{routed, send_routed};
use super::link::{DESCRIPTORS, Sockets};
use super::tunnel::Tunnel;
use super::{NotRead, outer_mtu, send_local, setup};
use crate::batch::TURNS;
use crate::sink::IoCounters;
use model::{Instant, TrafficSelector};
use node::mobile_ip::{Arrival, ForeignEvent, PORT, Station, Transmit, message};
use node::{Node, Packet};
use os::discovery::Role;
use os::mobile::{Between, Visitors};
use os::poll::Interest;
use os::routes::MARK;
use os::{Datagrams, Error, LinkAddress, Netlink, Poller};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Poller tokens.
const DISCOVERY: u64 = 0;
const VISITORS: u64 = 1;
const HOMES: u64 = DESCRIPTORS;
const NEIGHBOURS: u64 = HOMES + 1;
const TUNNEL: u64 = HOMES + 2;
const DEVICE: u64 = HOMES + 3;

/// The agent's sockets, and the routes of its visitors.
pub struct ForeignAgent {
    address: Ipv4Addr,
    visitors: Visitors,
    netlink: Netlink,
    interface: String,
    /// Kernel index of the interface while it is up, and its sockets.
    link: Option<(u32, Sockets)>,
    neighbours: Option<Box<Neighbours>>,
    /// The tunnels to home agents, with another UDP port than 434, which serves visitors.
    tunnel: Tunnel,
    /// A socket to send from the address that the route decides. Nothing is read from it.
    anywhere: Datagrams,
}

/// Other foreign agents, if there are any.
struct Neighbours {
    socket: Datagrams,
    addresses: Vec<Ipv4Addr>,
}

impl ForeignAgent {
    pub fn open(terms: &config::ForeignAgent, offload: bool) -> Result<Self, Error> {
        let netlink = Netlink::open()?;
        let has_neighbours = !terms.neighbours.is_empty();
        let link = match netlink.running(&terms.interface) {
            Some(index) => Some((index, open(&terms.interface, has_neighbours)?)),
            None => None,
        };
        let tunnel = Tunnel::open(terms.address, 0)?;
        // Only listed home agents can register visitors, or every one if none is listed.
        let between = match terms.home_agents.is_empty() {
            true => Between::Tunnel,
            false => Between::Direct,
        };
        let outer = outer_mtu(terms.nat);
        Ok(Self {
            address: terms.address,
            visitors: Visitors::open(&terms.interface, between, outer, offload)?,
            netlink,
            interface: terms.interface.clone(),
            link,
            neighbours: Neighbours::open(terms)?,
            tunnel,
            anywhere: Datagrams::udp((Ipv4Addr::UNSPECIFIED, 0).into(), Some(MARK))?,
        })
    }

    /// Returns the UDP port on which home agents answer.
    pub fn port(&self) -> u16 {
        self.tunnel.udp().local().port()
    }

    pub fn watch(&self, poller: &Poller, first: u64) -> io::Result<()> {
        if let Some((_, sockets)) = &self.link {
            sockets.watch(poller, first + DISCOVERY)?;
        }
        poller.add(self.tunnel.udp(), first + HOMES, Interest::Read)?;
        if let Some(neighbours) = &self.neighbours {
            poller.add(&neighbours.socket, first + NEIGHBOURS, Interest::Read)?;
        }
        poller.add(self.tunnel.bare(), first + TUNNEL, Interest::Read)?;
        poller.add(&self.visitors.device, first + DEVICE, Interest::Read)
    }

    /// Returns the token of the socket with the messages that decide where packets of this one go.
    pub const fn decided_by(token: u64) -> Option<u64> {
        match token {
            TUNNEL => Some(HOMES),
            _ => None,
        }
    }

    pub fn handle(
        &mut self,
        token: u64,
        node: &mut Node,
        batch: &mut [Packet],
        counters: &mut IoCounters,
        now: Instant,
    ) -> Result<(), NotRead> {
        let device = &mut self.visitors.device;
        match token {
            DISCOVERY => self
                .read_discovery(node, now)
                .map_err(|error| ("the socket for router discovery", error)),
            VISITORS => self
                .read_visitors(node, now)
                .map_err(|error| ("the socket for visitors", error)),
            HOMES => (self.tunnel.read_udp(device, node, counters, now))
                .map_err(|error| ("the socket for home agents", error)),
            NEIGHBOURS => (self.neighbours.as_mut())
                .map_or(Ok(()), |neighbours| neighbours.read(node, now))
                .map_err(|error| ("the socket for neighbours", error)),
            TUNNEL => (self.tunnel.take_out(device, node, counters, now))
                .map_err(|error| ("the socket for protocol 4", error)),
            _ => (self.tunnel.put_in(device, node, batch, counters, now))
                .map_err(|error| (os::mobile::DEVICE, error)),
        }
    }

    fn read_discovery(&mut self, node: &mut Node, now: Instant) -> io::Result<()> {
        let Some((_, sockets)) = &mut self.link else {
            return Ok(());
        };
        sockets.read_discovery(|ends, octets| {
            let LinkAddress(station) = ends.link;
            let station = Station(station);
            node.handle_discovery(setup::INTERFACE, ends.source, station, octets, now);
        })
    }

    fn read_visitors(&mut self, node: &mut Node, now: Instant) -> io::Result<()> {
        let Some((_, sockets)) = &mut self.link else {
            return Ok(());
        };
        sockets.read_local(|ends, port, octets| {
            let LinkAddress(station) = ends.link;
            let arrival = Arrival {
                interface: setup::INTERFACE,
                source: SocketAddrV4::new(ends.source, port),
                destination: ends.destination,
                ttl: ends.ttl,
            };
            node.handle_nearby(&arrival, Station(station), octets, now);
        })
    }

    /// Handles a change of the host's interfaces, addresses or routes.
    pub fn look(&mut self, node: &mut Node, poller: &Poller, first: u64, now: Instant) {
        self.follow_interface(poller, first + DISCOVERY);
        match os::mobile::reserved() {
            Ok(reserved) => {
                let selector = |prefix: os::Prefix| {
                    TrafficSelector::from_prefix(prefix.address, prefix.length)
                };
                node.set_reserved(reserved.into_iter().filter_map(selector).collect(), now);
            }
            Err(error) => tracing::warn!("cannot read the addresses of this host: {error}"),
        }
    }

    /// Opens the sockets of the interface when it comes up, and closes them when it goes down. A
    /// new interface may have the name of another that is gone.
    fn follow_interface(&mut self, poller: &Poller, token: u64) {
        let index = self.netlink.running(&self.interface);
        if index == self.link.as_ref().map(|(index, _)| *index) {
            return;
        }
        // Its port is free only once it is closed.
        self.link = None;
        let Some(index) = index else {
            return;
        };
        let sockets = open(&self.interface, self.neighbours.is_some());
        let watched = sockets.map_err(anyhow::Error::from).and_then(|sockets| {
            sockets.watch(poller, token)?;
            Ok(sockets)
        });
        match watched {
            Ok(sockets) => self.link = Some((index, sockets)),
            Err(error) => tracing::warn!("cannot use {}: {error}", self.interface),
        }
    }

    fn sockets(&self) -> io::Result<&Sockets> {
        let nowhere = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        self.link
            .as_ref()
            .map(|(_, sockets)| sockets)
            .ok_or_else(nowhere)
    }

    pub fn send(&self, transmit: &Transmit) -> io::Result<()> {
        match transmit {
            Transmit::Icmp {
                destination,
                octets,
                ..
            } => {
                let discovery = &self.sockets()?.discovery;
                discovery.send_to_all(self.address, *destination, octets)
            }
            Transmit::Udp {
                interface: None,
                source,
                ..
            } if source.ip().is_unspecified() => send_routed(&self.anywhere, transmit),
            Transmit::Udp {
                interface: None,
                destination,
                ..
            } => {
                let neighbours = self.neighbours.as_ref();
                let theirs = neighbours.filter(|all| all.addresses.contains(destination.ip()));
                let socket = theirs.map_or(self.tunnel.udp(), |neighbours| &neighbours.socket);
                send_routed(socket, transmit)
            }
            Transmit::Udp { .. } => send_local(&self.sockets()?.local, transmit),
        }
    }

    pub fn note(&mut self, event: &ForeignEvent) -> Result<(), Error> {
        match event {
            ForeignEvent::Came(visitor)
            | ForeignEvent::Renewed(visitor)
            | ForeignEvent::Followed(visitor) => match visitor.station {
                Some(Station(station)) => self.visitors.admit(visitor.home, LinkAddress(station)),
                None => Ok(()),
            },
            // The engine chooses the destination of each packet, and `Left` follows `Displaced`.
            ForeignEvent::Gone { .. }
            | ForeignEvent::Unheard(_)
            | ForeignEvent::Displaced { .. }
            | ForeignEvent::Unproved(_) => Ok(()),
            ForeignEvent::Left(visitor) => self.visitors.dismiss(visitor.home),
        }
    }

    pub const fn visitors(&self) -> &Visitors {
        &self.visitors
    }

    pub fn close(self) -> Result<(), Error> {
        self.visitors.close()
    }
}

/// Opens the sockets of the interface for visitors.
fn open(interface: &str, has_neighbours: bool) -> Result<Sockets, Error> {
    Sockets::open(interface, Role::Router, has_neighbours)
}

impl Neighbours {
    fn open(terms: &config::ForeignAgent) -> Result<Option<Box<Self>>, Error> {
        let neighbours = terms.neighbours.iter();
        let addresses: Vec<_> = neighbours.map(|neighbour| neighbour.address).collect();
        if addresses.is_empty() {
            return Ok(None);
        }
        let socket = Datagrams::udp_beside(SocketAddr::from((terms.address, PORT)), Some(MARK))?;
        Ok(Some(Box::new(Self { socket, addresses })))
    }

    fn read(&mut self, node: &mut Node, now: Instant) -> io::Result<()> {
        let addresses = &self.addresses;
        for _ in 0..TURNS {
            self.socket.recv(|arrival, octets| {
                let arrival = routed(arrival.path);
                let is_notice = octets.first() == Some(&message::EXPERIMENT);
                let is_theirs =
                    |arrival: &Arrival| is_notice && addresses.contains(arrival.source.ip());
                if let Some(arrival) = arrival.filter(is_theirs) {
                    node.handle_registration(&arrival, octets, now);
                }
            })?;
        }
        Ok(())
    }
}
