//! The home router: packets for absent hosts go into the tunnel.
//!
//! The hosts' home network has no link, so no other machine answers for them. While a host has no
//! binding, its packets have no route: on the default route they would leave, and return from the
//! place where this network is expected.

use super::{BLACKHOLE_METRIC, DEVICE, METRIC, host, installed, open_device, remove_all, to_hosts};
use crate::installed::Installed;
use crate::netlink::{Route, Via};
use crate::{Bulk, Error, Netlink};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The TUN, and the routes into it.
pub struct Homes {
    /// Packets read from the device are for absent hosts, and packets that these sent are written
    /// to it.
    pub device: Bulk,
    netlink: Netlink,
    homes: Vec<Ipv4Addr>,
    bound: BTreeSet<Ipv4Addr>,
}

impl Homes {
    /// Represents these hosts in the calling thread's network namespace; none is bound yet. `outer`
    /// is the longest packet of the tunnel in octets. A predecessor's remains are removed first.
    ///
    /// # Errors
    /// [`Error::NotForwarding`]; those of [`Bulk::open`].
    pub fn open(
        homes: impl IntoIterator<Item = Ipv4Addr>,
        outer: u16,
        offload: bool,
    ) -> Result<Self, Error> {
        let netlink = Netlink::open()?;
        let device = open_device(&netlink, outer, offload)?;
        let homes = Self {
            device,
            netlink,
            homes: homes.into_iter().collect(),
            bound: BTreeSet::new(),
        };
        homes.restore()?;
        Ok(homes)
    }

    /// Routes a host's packets into the tunnel. A repeated call is harmless, and restores a removed
    /// route.
    pub fn bind(&mut self, home: Ipv4Addr) -> Result<(), Error> {
        self.bound.insert(home);
        self.netlink.replace_route(&tunnelled(home))
    }

    /// Removes the route of a host's packets into the tunnel.
    pub fn unbind(&mut self, home: Ipv4Addr) -> Result<(), Error> {
        self.bound.remove(&home);
        self.netlink.drop_route(&tunnelled(home))
    }

    /// Returns missing kernel state, in the notation of ip(8).
    pub fn missing(&self) -> Result<Vec<String>, Error> {
        self.installed().missing(&self.netlink)
    }

    /// Restores missing kernel state.
    pub fn restore(&self) -> Result<(), Error> {
        self.installed().restore(&self.netlink)
    }

    fn installed(&self) -> Installed<'_> {
        let nowhere = self.homes.iter();
        let nowhere = nowhere.map(|home| host(*home, Via::Blackhole, BLACKHOLE_METRIC));
        let away = self.bound.iter().map(|home| tunnelled(*home));
        installed(nowhere.chain(away).collect(), vec![to_hosts()])
    }

    /// Removes all kernel state.
    pub fn close(self) -> Result<(), Error> {
        remove_all(&self.netlink)
    }
}

fn tunnelled(home: Ipv4Addr) -> Route {
    host(home, Via::Device(DEVICE.to_owned()), METRIC)
}
