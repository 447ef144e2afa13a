//! On a visit: packets of hosts that are at home elsewhere go into the tunnel, and what comes out of it goes to them.
//!
//! Packets from one visitor to another stay here: in the tunnel they would come back, and back into it. What a visitor sends
//! goes by no other way, also if the process dies, and the rule by its source leads there wherever it came in:
//! what passes through [`crate::divert`] comes out of another TUN. That nobody forges it elsewhere is what checks of reverse
//! paths are for.
//!
//! Rules are tried one after the other for every packet, and each visitor has one.

use super::{
    AWAY, BLACKHOLE_METRIC, DEVICE, METRIC, VISITOR_PRIORITY, away, host, lead_to_hosts,
    open_device, own_addresses, remove_all,
};
use crate::netlink::{Route, Rule, Via};
use crate::{Bulk, Error, Family, LinkAddress, Netlink};
use nix::errno::Errno;
use std::net::{IpAddr, Ipv4Addr};

/// The TUN, and the rules and routes around it.
pub struct Visitors {
    /// What is read from it visitors sent, and what is for them is written to it.
    pub device: Bulk,
    netlink: Netlink,
    interface: String,
}

impl Visitors {
    /// Receives visitors on an interface of the calling thread's network namespace. `outer` is how long a packet of the
    /// tunnel may be. Leftovers of a predecessor are removed first.
    ///
    /// # Errors
    /// [`Error::NotForwarding`]; an interface that does not exist; those of [`Bulk::open`].
    pub fn open(interface: &str, outer: u16, offload: bool) -> Result<Self, Error> {
        let netlink = Netlink::open()?;
        netlink.mtu(interface)?;
        let device = open_device(&netlink, outer, offload)?;
        netlink.add_route(&away(Via::Blackhole, BLACKHOLE_METRIC))?;
        let visitors = Self {
            device,
            netlink,
            interface: interface.to_owned(),
        };
        visitors.lead()?;
        Ok(visitors)
    }

    /// A visitor is here, at this station of the link. That it was before, perhaps at another one, does no harm, and mends
    /// what others changed or went with the interface.
    ///
    /// # Errors
    /// The address is the host's own: what the host sends would go into the tunnel, and what is for it to the visitor.
    pub fn admit(&self, home: Ipv4Addr, link: LinkAddress) -> Result<(), Error> {
        let admitted =
            (refuse_own(home).and_then(|()| self.lead())).and_then(|()| self.lead_to(home, link));
        if admitted.is_err() {
            // The first failure is what is told.
            let _ = self.dismiss(home);
        }
        admitted
    }

    /// It is not here any more.
    pub fn dismiss(&self, home: Ipv4Addr) -> Result<(), Error> {
        self.netlink.drop_route(&self.reached(home))?;
        self.netlink.forget_neighbour(&self.interface, home)?;
        self.netlink.drop_rule(&sent_by(home))
    }

    /// Stops, and leaves nothing.
    pub fn close(self) -> Result<(), Error> {
        remove_all(&self.netlink)?;
        Ok(())
    }

    /// What all of them need.
    fn lead(&self) -> Result<(), Error> {
        let tunnel = away(Via::Device(DEVICE.to_owned()), METRIC);
        self.netlink.replace_route(&tunnel)?;
        lead_to_hosts(&self.netlink)
    }

    /// Its packets first: from the moment that it is reached here they must not go by another way.
    fn lead_to(&self, home: Ipv4Addr, link: LinkAddress) -> Result<(), Error> {
        self.netlink.ensure_rule(&sent_by(home))?;
        self.netlink.set_neighbour(&self.interface, home, link)?;
        self.netlink.replace_route(&self.reached(home))
    }

    fn reached(&self, home: Ipv4Addr) -> Route {
        host(home, Via::Device(self.interface.clone()), METRIC)
    }
}

/// The address may have become the host's own since its visitor came.
fn refuse_own(home: Ipv4Addr) -> Result<(), Error> {
    let doing = format!("leading {home}, which is an address of this host, to a visitor");
    match own_addresses()?.contains(&home) {
        true => Err(Error::os(doing)(Errno::EADDRINUSE)),
        false => Ok(()),
    }
}

fn sent_by(home: Ipv4Addr) -> Rule {
    Rule::new(Family::V4, VISITOR_PRIORITY, AWAY).from(IpAddr::V4(home))
}
