//! The visited router: packets of visiting hosts go into the tunnel, and packets out of the tunnel
//! go to them.
//!
//! A visitor's packets take no other route, even if the process dies.
//!
//! A station of the link claims its own home address, and its home agent may collude with it. So
//! these routes apply only to packets that come out of the tunnel, where the visitor's own home
//! agent has sent them, and to those of other visitors if all home agents are vouched for
//! ([`Between`]). The interface that a packet arrived on selects them. Packets of the host itself,
//! and those that it forwards for others, are routed as if there were no visitors, whatever their
//! addresses. Packets that pass through [`crate::divert`] arrive again on the TUN of the side that
//! they leave by. The host itself sends only ICMP errors about visitors' packets to them.
//!
//! The kernel tries rules one after the other for every packet, and each visitor has two.

use super::{
    AWAY, BLACKHOLE_METRIC, DEVICE, METRIC, VISITOR_PRIORITY, away, host, installed, open_device,
    own_addresses, remove_all, to_hosts,
};
use crate::divert::Side;
use crate::installed::Installed;
use crate::netlink::{Route, Rule, Via};
use crate::{Bulk, Error, Family, LinkAddress, Netlink};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

const ICMP: u8 = 1;
/// The types of ICMP errors: destination unreachable, and time exceeded. In a rule, type and code
/// take the place of ports, as one number (`flowi_uli` of the kernel).
const ERRORS: [RangeInclusive<u16>; 2] = [0x0300..=0x03ff, 0x0b00..=0x0bff];

/// Route of packets from one visitor to the home address of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Directly: a home agent that the operator trusts vouches for each home address.
    Direct,
    /// Through the tunnel, like all packets of visitors: a station may claim the address of any
    /// host, and would receive what visitors send to that host.
    Tunnel,
}

/// The TUN, and the rules and routes around it.
pub struct Visitors {
    /// Packets read from the device were sent by visitors, and packets for visitors are written to
    /// it.
    pub device: Bulk,
    netlink: Netlink,
    interface: String,
    between: Between,
    present: BTreeMap<Ipv4Addr, LinkAddress>,
}

impl Visitors {
    /// Receives visitors on an interface of the calling thread's network namespace. `outer` is the
    /// longest packet of the tunnel in octets. A predecessor's remains are removed first. The
    /// interface may be missing, now or later.
    ///
    /// # Errors
    /// [`Error::NotForwarding`]; those of [`Bulk::open`].
    pub fn open(
        interface: &str,
        between: Between,
        outer: u16,
        offload: bool,
    ) -> Result<Self, Error> {
        let netlink = Netlink::open()?;
        let device = open_device(&netlink, outer, offload)?;
        let visitors = Self {
            device,
            netlink,
            interface: interface.to_owned(),
            between,
            present: BTreeMap::new(),
        };
        visitors.restore()?;
        Ok(visitors)
    }

    /// Routes the packets of a visitor at this station of the link. A repeated call is harmless,
    /// also for another station, and restores state that others changed or that disappeared with
    /// the interface.
    ///
    /// # Errors
    /// The address is the host's own: the host's packets would go into the tunnel, and those for it
    /// to the visitor.
    pub fn admit(&mut self, home: Ipv4Addr, link: LinkAddress) -> Result<(), Error> {
        let admitted = (refuse_own(home).and_then(|()| self.install_shared()))
            .and_then(|()| self.install_visitor(home, link));
        if admitted.is_ok() {
            self.present.insert(home, link);
        } else {
            // The first error is returned.
            let _ = self.dismiss(home);
        }
        admitted
    }

    /// Removes the routes of a visitor that has left.
    pub fn dismiss(&mut self, home: Ipv4Addr) -> Result<(), Error> {
        self.present.remove(&home);
        for route in self.reached(home) {
            self.netlink.drop_route(&route)?;
        }
        self.netlink.forget_neighbour(&self.interface, home)?;
        let mut rules = self.sent_by(home).into_iter();
        rules.try_for_each(|rule| self.netlink.drop_rule(&rule))
    }

    /// Removes all kernel state.
    pub fn close(self) -> Result<(), Error> {
        remove_all(&self.netlink)?;
        Ok(())
    }

    /// Returns missing kernel state, in the notation of ip(8). An interface that is down has lost
    /// its routes.
    pub fn missing(&self) -> Result<Vec<String>, Error> {
        self.installed()?.missing(&self.netlink)
    }

    /// Restores missing kernel state.
    pub fn restore(&self) -> Result<(), Error> {
        if self.is_reachable() {
            for (home, link) in &self.present {
                self.netlink.set_neighbour(&self.interface, *home, *link)?;
            }
        }
        self.installed()?.restore(&self.netlink)
    }

    fn installed(&self) -> Result<Installed<'_>, Error> {
        let own = own_addresses()?;
        let present = self.present.keys().filter(|home| !own.contains(home));
        let reached = present.clone().filter(|_| self.is_reachable());
        let reached = reached.flat_map(|home| self.reached(*home));
        let routes = ways().into_iter().chain(reached);
        let sent = present.flat_map(|home| self.sent_by(*home));
        Ok(installed(
            routes.collect(),
            rules().into_iter().chain(sent).collect(),
        ))
    }

    fn is_reachable(&self) -> bool {
        self.netlink.is_up(&self.interface).unwrap_or(false)
    }

    /// Adds the routes and rules that all visitors share.
    fn install_shared(&self) -> Result<(), Error> {
        for route in ways() {
            self.netlink.replace_route(&route)?;
        }
        let mut rules = rules().into_iter();
        rules.try_for_each(|rule| self.netlink.ensure_rule(&rule))
    }

    /// Adds the routes and rules of a visitor. The rules for its own packets come first: once it is
    /// reachable here, they must not take another route.
    fn install_visitor(&self, home: Ipv4Addr, link: LinkAddress) -> Result<(), Error> {
        for rule in self.sent_by(home) {
            self.netlink.ensure_rule(&rule)?;
        }
        self.netlink.set_neighbour(&self.interface, home, link)?;
        let mut routes = self.reached(home).into_iter();
        routes.try_for_each(|route| self.netlink.replace_route(&route))
    }

    /// Returns the routes to a visitor: from the tunnel, and possibly from other visitors.
    fn reached(&self, home: Ipv4Addr) -> Vec<Route> {
        let from_tunnel = host(home, Via::Device(self.interface.clone()), METRIC);
        let from_visitors = Route {
            table: AWAY,
            ..from_tunnel.clone()
        };
        match self.between {
            Between::Direct => vec![from_visitors, from_tunnel],
            Between::Tunnel => vec![from_tunnel],
        }
    }

    fn sent_by(&self, home: Ipv4Addr) -> [Rule; 2] {
        let rule = Rule::new(Family::V4, VISITOR_PRIORITY, AWAY).from(IpAddr::V4(home));
        [&self.interface, Side::Wired.device()].map(|name| rule.clone().iif(name))
    }
}

/// Returns the routes of everything that visitors send: also if the process dies, no other.
fn ways() -> [Route; 2] {
    [
        away(Via::Blackhole, BLACKHOLE_METRIC),
        away(Via::Device(DEVICE.to_owned()), METRIC),
    ]
}

/// Returns the rules for packets from the tunnel, and for errors about visitors' packets.
fn rules() -> [Rule; 4] {
    let here = || to_hosts().iif("lo").protocol(ICMP);
    let [unreachable, exceeded] = ERRORS.map(|types| here().destination_ports(types));
    let [tunnel, diverted] = [DEVICE, Side::Wireless.device()].map(|name| to_hosts().iif(name));
    [tunnel, diverted, unreachable, exceeded]
}

/// Refuses an address that has become the host's own since its visitor came.
fn refuse_own(home: Ipv4Addr) -> Result<(), Error> {
    let doing = format!("routing {home}, which is an address of this host, to a visitor");
    match own_addresses()?.contains(&home) {
        true => Err(Error::os(doing)(Errno::EADDRINUSE)),
        false => Ok(()),
    }
}
