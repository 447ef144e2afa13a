//! The home agent's side: requests arrive by UDP from any address, and packets for absent mobile
//! nodes through the device.

use super::tunnel::Tunnel;
use super::{NotRead, outer_mtu, setup};
use crate::sink::IoCounters;
use model::{Instant, Path};
use node::mobile_ip::{Arrival, HomeEvent, PORT, Transmit};
use node::{Node, Packet};
use os::mobile::Homes;
use os::poll::Interest;
use os::{Datagrams, Error, Poller};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// Poller tokens.
const REQUESTS: u64 = 0;
const TUNNEL: u64 = 1;
const DEVICE: u64 = 2;

/// Time to live assumed for a datagram whose socket does not report it.
pub(super) const ROUTED: u8 = 64;

/// The agent's sockets, and the routes of its mobile nodes.
pub struct HomeAgent {
    homes: Homes,
    tunnel: Tunnel,
}

impl HomeAgent {
    pub fn open(terms: &config::HomeAgent, offload: bool) -> Result<Self, Error> {
        let tunnel = Tunnel::open(terms.address, PORT)?;
        let mobiles = terms.mobiles.iter().map(|one| one.mobile.home_address);
        Ok(Self {
            homes: Homes::open(mobiles, outer_mtu(terms.nat), offload)?,
            tunnel,
        })
    }

    pub fn watch(&self, poller: &Poller, first: u64) -> io::Result<()> {
        poller.add(self.tunnel.udp(), first + REQUESTS, Interest::Read)?;
        poller.add(self.tunnel.bare(), first + TUNNEL, Interest::Read)?;
        poller.add(&self.homes.device, first + DEVICE, Interest::Read)
    }

    pub fn handle(
        &mut self,
        token: u64,
        node: &mut Node,
        batch: &mut [Packet],
        counters: &mut IoCounters,
        now: Instant,
    ) -> Result<(), NotRead> {
        let device = &mut self.homes.device;
        match token {
            REQUESTS => (self.tunnel.read_udp(device, node, counters, now))
                .map_err(|error| ("the socket for registrations", error)),
            TUNNEL => (self.tunnel.take_out(device, node, counters, now))
                .map_err(|error| ("the socket for protocol 4", error)),
            _ => (self.tunnel.put_in(device, node, batch, counters, now))
                .map_err(|error| (os::mobile::DEVICE, error)),
        }
    }

    pub fn send(&self, transmit: &Transmit) -> io::Result<()> {
        send_routed(self.tunnel.udp(), transmit)
    }

    pub fn note(&mut self, event: &HomeEvent) -> Result<(), Error> {
        match event {
            HomeEvent::Bound { home, .. }
            | HomeEvent::Renewed { home }
            | HomeEvent::Remapped { home, .. } => self.homes.bind(*home),
            HomeEvent::Contested { .. } => Ok(()),
            HomeEvent::Unbound { home } => self.homes.unbind(*home),
        }
    }

    pub const fn homes(&self) -> &Homes {
        &self.homes
    }

    pub fn close(self) -> Result<(), Error> {
        self.homes.close()
    }
}

/// Returns the arrival of a routed datagram from a socket.
pub(super) fn routed(path: Path) -> Option<Arrival> {
    let (SocketAddr::V4(local), SocketAddr::V4(source)) = (path.local, path.remote) else {
        return None;
    };
    Some(Arrival {
        interface: setup::INTERFACE,
        source,
        destination: *local.ip(),
        ttl: ROUTED,
    })
}

/// Sends a message through routes.
pub(super) fn send_routed(socket: &Datagrams, transmit: &Transmit) -> io::Result<()> {
    let Transmit::Udp {
        source,
        destination,
        octets,
        ..
    } = transmit
    else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let source: Ipv4Addr = *source.ip();
    let local = SocketAddr::from((source, socket.local().port()));
    socket.send(Path::udp(local, (*destination).into()), 0, octets)
}
