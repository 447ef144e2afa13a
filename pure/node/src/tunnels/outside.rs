//! Local addresses and ports of the outer packets.

use model::{Encapsulation, Path, PeerId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Addresses and ports that packets leave from.
pub(crate) struct Outside {
    encapsulation: Encapsulation,
    ike_port: u16,
    natt_port: u16,
    /// Ports of peers that do not listen on the usual ones.
    ports: BTreeMap<PeerId, u16>,
    /// Local address for each remote one, known before an initiation if NAT detection has to be
    /// truthful.
    sources: BTreeMap<IpAddr, IpAddr>,
}

impl Outside {
    pub(crate) const fn new(encapsulation: Encapsulation, ike_port: u16, natt_port: u16) -> Self {
        Self {
            encapsulation,
            ike_port,
            natt_port,
            ports: BTreeMap::new(),
            sources: BTreeMap::new(),
        }
    }

    /// Returns true if peers detect NATs by our address, which we then have to know.
    pub(crate) const fn is_honest(&self) -> bool {
        matches!(self.encapsulation, Encapsulation::ForNat)
    }

    pub(crate) const fn natt_port(&self) -> u16 {
        self.natt_port
    }

    /// Sets the ports of peers that do not listen on the usual ones. Returns the peers whose port
    /// is another one than before.
    pub(crate) fn set_ports(&mut self, ports: BTreeMap<PeerId, u16>) -> BTreeSet<PeerId> {
        let before = std::mem::replace(&mut self.ports, ports);
        let all = before.keys().chain(self.ports.keys());
        let changed = all.filter(|peer| before.get(peer) != self.ports.get(peer));
        changed.copied().collect()
    }

    /// Sets the local address for each remote one. A later entry overrides an earlier one.
    pub(crate) fn set_sources(&mut self, sources: impl Iterator<Item = (IpAddr, IpAddr)>) {
        self.sources = match self.encapsulation {
            Encapsulation::ForNat => sources.collect(),
            Encapsulation::Always => BTreeMap::new(),
        };
    }

    /// Returns the path of an initiation. The operating system chooses the local address, unless
    /// the peer needs it for NAT detection. A peer with a port of its own expects all messages
    /// there, with the non-ESP marker, which those from our port for IKE and ESP have.
    pub(crate) fn first_path(&self, peer: PeerId, remote: IpAddr) -> Path {
        let open = match remote {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let local = self.sources.get(&remote).copied().unwrap_or(open);
        let (ours, theirs) = match self.ports.get(&peer) {
            Some(port) => (self.natt_port, *port),
            None => (self.ike_port, ike::PORT),
        };
        Path::udp(
            SocketAddr::new(local, ours),
            SocketAddr::new(remote, theirs),
        )
    }
}
