//! At home: packets for hosts that are away go into the tunnel.
//!
//! The network that the hosts are at home in has no link, so nobody else answers for them. While one is bound nowhere its
//! packets have no way: on the default route they would leave, and come back from where this network is
//! looked for.

use super::{BLACKHOLE_METRIC, DEVICE, METRIC, host, installed, open_device, remove_all, to_hosts};
use crate::installed::Installed;
use crate::netlink::{Route, Via};
use crate::{Bulk, Error, Netlink};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The TUN, and the routes that fill it.
pub struct Homes {
    /// What is read from it is for hosts that are away, and what they sent is written to it.
    pub device: Bulk,
    netlink: Netlink,
    homes: Vec<Ipv4Addr>,
    bound: BTreeSet<Ipv4Addr>,
}

impl Homes {
    /// Stands in for these hosts in the calling thread's network namespace, of which none is bound. `outer` is how long
    /// a packet of the tunnel may be. Leftovers of a predecessor are removed first.
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

    /// Leads a host's packets into the tunnel. That it is so already does no harm, and mends what others changed.
    pub fn bind(&mut self, home: Ipv4Addr) -> Result<(), Error> {
        self.bound.insert(home);
        self.netlink.replace_route(&tunnelled(home))
    }

    /// Leads them nowhere again.
    pub fn unbind(&mut self, home: Ipv4Addr) -> Result<(), Error> {
        self.bound.remove(&home);
        self.netlink.drop_route(&tunnelled(home))
    }

    /// What ought to be there and is not, as ip(8) writes it.
    pub fn missing(&self) -> Result<Vec<String>, Error> {
        self.installed().missing(&self.netlink)
    }

    /// Puts that there.
    pub fn restore(&self) -> Result<(), Error> {
        self.installed().restore(&self.netlink)
    }

    fn installed(&self) -> Installed<'_> {
        let nowhere = self.homes.iter();
        let nowhere = nowhere.map(|home| host(*home, Via::Blackhole, BLACKHOLE_METRIC));
        let away = self.bound.iter().map(|home| tunnelled(*home));
        installed(nowhere.chain(away).collect(), vec![to_hosts()])
    }

    /// Stops, and leaves nothing.
    pub fn close(self) -> Result<(), Error> {
        remove_all(&self.netlink)
    }
}

fn tunnelled(home: Ipv4Addr) -> Route {
    host(home, Via::Device(DEVICE.to_owned()), METRIC)
}
