//! Local addresses and ports of the outer packets.

use model::{Encapsulation, Path};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Addresses and ports that packets leave from.
pub(crate) struct Outside {
    encapsulation: Encapsulation,
    ike_port: u16,
    natt_port: u16,
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

    /// Sets the local address for each remote one. A later entry overrides an earlier one.
    pub(crate) fn set_sources(&mut self, sources: impl Iterator<Item = (IpAddr, IpAddr)>) {
        self.sources = match self.encapsulation {
            Encapsulation::ForNat => sources.collect(),
            Encapsulation::Always => BTreeMap::new(),
        };
    }

    /// Returns the path of an initiation. The operating system chooses the local address, unless
    /// the peer needs it for NAT detection.
    pub(crate) fn first_path(&self, remote: IpAddr) -> Path {
        let open = match remote {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let local = self.sources.get(&remote).copied().unwrap_or(open);
        Path::udp(
            SocketAddr::new(local, self.ike_port),
            SocketAddr::new(remote, ike::PORT),
        )
    }
}
