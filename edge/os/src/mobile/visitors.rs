//! On a visit: packets of hosts that are at home elsewhere go into the tunnel, and what comes out of it goes to them.
//!
//! Packets from one visitor to another stay here: in the tunnel they would come back, and back into it. What a visitor sends
//! goes by no other way, also if the process dies.
//!
//! A station of the link says itself at which address it is at home, and its home agent may be a friend of its own. So these
//! routes are for packets alone that come out of the tunnel or from a visitor, by the interface that each came in through:
//! what the host sends itself and what it forwards for others goes as if there were no visitors, whatever their addresses.
//! What passes through [`crate::divert`] comes in again by the TUN of the side that it leaves by. The one thing that the host
//! sends to visitors itself are ICMP errors about their packets.
//!
//! Rules are tried one after the other for every packet, and each visitor has two.

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
/// The types of ICMP errors: destination unreachable, and time exceeded. In a rule a type and its code stand where ports do,
/// as one number (`flowi_uli` of the kernel).
const ERRORS: [RangeInclusive<u16>; 2] = [0x0300..=0x03ff, 0x0b00..=0x0bff];

/// The TUN, and the rules and routes around it.
pub struct Visitors {
    /// What is read from it visitors sent, and what is for them is written to it.
    pub device: Bulk,
    netlink: Netlink,
    interface: String,
    present: BTreeMap<Ipv4Addr, LinkAddress>,
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
        let visitors = Self {
            device,
            netlink,
            interface: interface.to_owned(),
            present: BTreeMap::new(),
        };
        visitors.restore()?;
        Ok(visitors)
    }

    /// A visitor is here, at this station of the link. That it was before, perhaps at another one, does no harm, and mends
    /// what others changed or went with the interface.
    ///
    /// # Errors
    /// The address is the host's own: what the host sends would go into the tunnel, and what is for it to the visitor.
    pub fn admit(&mut self, home: Ipv4Addr, link: LinkAddress) -> Result<(), Error> {
        let admitted =
            (refuse_own(home).and_then(|()| self.lead())).and_then(|()| self.lead_to(home, link));
        if admitted.is_ok() {
            self.present.insert(home, link);
        } else {
            // The first failure is what is told.
            let _ = self.dismiss(home);
        }
        admitted
    }

    /// It is not here any more.
    pub fn dismiss(&mut self, home: Ipv4Addr) -> Result<(), Error> {
        self.present.remove(&home);
        for route in self.reached(home) {
            self.netlink.drop_route(&route)?;
        }
        self.netlink.forget_neighbour(&self.interface, home)?;
        let mut rules = self.sent_by(home).into_iter();
        rules.try_for_each(|rule| self.netlink.drop_rule(&rule))
    }

    /// Stops, and leaves nothing.
    pub fn close(self) -> Result<(), Error> {
        remove_all(&self.netlink)?;
        Ok(())
    }

    /// What ought to be there and is not, as ip(8) writes it. With an interface that is down its routes have gone.
    pub fn missing(&self) -> Result<Vec<String>, Error> {
        self.installed()?.missing(&self.netlink)
    }

    /// Puts that there.
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

    /// What all of them need.
    fn lead(&self) -> Result<(), Error> {
        for route in ways() {
            self.netlink.replace_route(&route)?;
        }
        let mut rules = rules().into_iter();
        rules.try_for_each(|rule| self.netlink.ensure_rule(&rule))
    }

    /// Its packets first: from the moment that it is reached here they must not go by another way.
    fn lead_to(&self, home: Ipv4Addr, link: LinkAddress) -> Result<(), Error> {
        for rule in self.sent_by(home) {
            self.netlink.ensure_rule(&rule)?;
        }
        self.netlink.set_neighbour(&self.interface, home, link)?;
        let mut routes = self.reached(home).into_iter();
        routes.try_for_each(|route| self.netlink.replace_route(&route))
    }

    /// By what comes out of the tunnel, and by what other visitors send.
    fn reached(&self, home: Ipv4Addr) -> [Route; 2] {
        let route = host(home, Via::Device(self.interface.clone()), METRIC);
        let table = AWAY;
        [
            Route {
                table,
                ..route.clone()
            },
            route,
        ]
    }

    fn sent_by(&self, home: Ipv4Addr) -> [Rule; 2] {
        let rule = Rule::new(Family::V4, VISITOR_PRIORITY, AWAY).from(IpAddr::V4(home));
        [&self.interface, Side::Wired.device()].map(|name| rule.clone().iif(name))
    }
}

/// Where everything goes that visitors send: also if the process dies, by no other way.
fn ways() -> [Route; 2] {
    [
        away(Via::Blackhole, BLACKHOLE_METRIC),
        away(Via::Device(DEVICE.to_owned()), METRIC),
    ]
}

/// For what comes out of the tunnel, and for errors about packets of visitors.
fn rules() -> [Rule; 4] {
    let here = || to_hosts().iif("lo").protocol(ICMP);
    let [unreachable, exceeded] = ERRORS.map(|types| here().destination_ports(types));
    let [tunnel, diverted] = [DEVICE, Side::Wireless.device()].map(|name| to_hosts().iif(name));
    [tunnel, diverted, unreachable, exceeded]
}

/// The address may have become the host's own since its visitor came.
fn refuse_own(home: Ipv4Addr) -> Result<(), Error> {
    let doing = format!("leading {home}, which is an address of this host, to a visitor");
    match own_addresses()?.contains(&home) {
        true => Err(Error::os(doing)(Errno::EADDRINUSE)),
        false => Ok(()),
    }
}
