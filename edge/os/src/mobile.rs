//! How the packets of hosts that keep their address wherever they are get there and back: what is asked of the kernel
//! of the host itself ([`Roaming`]), of the router it is visiting ([`Visitors`]), and of the one that stands in for it
//! at home ([`Homes`]). A machine is one of the three.
//!
//! Between the two routers packets are in a tunnel that somebody else makes. What is to enter it the kernel routes into a
//! TUN, and what comes out is written there, and the kernel routes it on as if it had arrived. The TUN's MTU is what
//! the tunnel carries, so the kernel cuts, or tells sources of, what is longer.
//!
//! There are two tables. One has a route for each single host. The other says where everything goes that is sent *by* such a
//! host, and rules lead its packets there by their source. Both are found and emptied by the next start, with the rest of
//! what a process leaves that was killed.
//!
//! At home the operator says which hosts there are, and every packet looks for single hosts first. A router that is visited
//! has it from the visitors, so what it sends itself and what it forwards for others never asks either table: see
//! [`Visitors`].
//!
//! Reverse paths are looked up by the same rules, for an answer has the addresses of the packet the other way round. So
//! strict checks (`rp_filter` 1) pass wherever a packet comes the way its answer goes.

mod homes;
mod roaming;
mod visitors;

pub use homes::Homes;
pub use roaming::{Agent, Roaming};
pub use visitors::Visitors;

use crate::installed::Installed;
use crate::netlink::{Route, Rule, Via};
use crate::{Bulk, Error, Family, Netlink, Prefix, resolver, sysctl};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

/// The name of the TUN.
pub const DEVICE: &str = "strata-mobile";

/// The table of single hosts.
pub const HOSTS: u32 = 7294;

/// The table of what such hosts send.
pub const AWAY: u32 = 7293;

/// The priorities of the rules: behind those of [`crate::divert`], whose packets have not passed yet, and for the two
/// routers before those of [`crate::routes`]. Where everything goes that a roaming host sends is asked behind those: into a
/// tunnel of its own, and that tunnel's packets away.
const HOSTS_PRIORITY: u32 = 7293;
const VISITOR_PRIORITY: u32 = 7294;
const SPECIFIC_PRIORITY: u32 = 7297;
const ROAMING_PRIORITY: u32 = 7298;

/// Link-local, for the kernel judges packets on an interface without any address more harshly.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 72, 93));

/// Octets of the IPv4 header that the tunnel puts in front (RFC 2003 section 3.1).
const OUTER: u16 = 20;

/// What the black hole's metric must be worse than.
const METRIC: u32 = 10;
const SPARE_METRIC: u32 = 11;
const BLACKHOLE_METRIC: u32 = 4096;

/// The addresses of the host itself in the calling thread's network namespace.
pub fn own_addresses() -> Result<BTreeSet<Ipv4Addr>, Error> {
    let all = getifaddrs().map_err(Error::os("listing this host's addresses"))?;
    let addresses = all.filter_map(|one| Some(one.address?.as_sockaddr_in()?.ip()));
    Ok(addresses.collect())
}

/// What the host needs itself, in the calling thread's network namespace: the networks of its interfaces with its own
/// addresses in them, the next hops of its routes, and its name servers.
pub fn reserved() -> Result<Vec<Prefix>, Error> {
    let all = getifaddrs().map_err(Error::os("listing this host's addresses"))?;
    let ends = all.flat_map(|one| {
        let v4 = |end: Option<SockaddrStorage>| Some(end?.as_sockaddr_in()?.ip());
        let mask = v4(one.netmask).map_or(32, |mask| mask.to_bits().leading_ones());
        let network = v4(one.address).map(|address| Prefix::from((address.into(), mask as u8)));
        let peer = v4(one.destination).map(|peer| Prefix::host(peer.into()));
        network.into_iter().chain(peer)
    });
    let mut reserved: Vec<_> = ends.filter(|prefix| prefix.length > 0).collect();
    let routes = Netlink::open()?.routes(Route::MAIN)?.into_iter();
    let next_hops = routes.filter_map(|route| match route.via {
        Via::Gateway(gateway) | Via::Onlink { gateway, .. } => Some(gateway),
        Via::Device(_) | Via::Blackhole | Via::Throw => None,
    });
    let others = next_hops.chain(resolver::servers()).filter(IpAddr::is_ipv4);
    reserved.extend(others.map(Prefix::host));
    Ok(reserved)
}

/// Removes what a predecessor left, on a machine that is none of the three any more.
pub fn remove_leftovers() -> Result<(), Error> {
    remove_all(&Netlink::open()?)
}

/// Removes rules and routes, and before them what nobody knows but they: the neighbours that were noted for them, and
/// the address that a roaming host has.
fn remove_all(netlink: &Netlink) -> Result<(), Error> {
    for route in netlink.routes(HOSTS)? {
        if let (Via::Device(device), IpAddr::V4(host)) = (&route.via, route.prefix.address) {
            netlink.forget_neighbour(device, host)?;
        }
    }
    for route in netlink.routes(AWAY)? {
        if let Via::Onlink {
            gateway: IpAddr::V4(agent),
            device,
        } = &route.via
        {
            netlink.forget_neighbour(device, *agent)?;
        }
    }
    roaming::remove_addresses(netlink)?;
    netlink.cleanup(HOSTS, PRIORITIES.0)?;
    netlink.cleanup(AWAY, PRIORITIES.1)?;
    Ok(())
}

/// All of those above.
const PRIORITIES: (RangeInclusive<u32>, RangeInclusive<u32>) = (
    HOSTS_PRIORITY..=VISITOR_PRIORITY,
    SPECIFIC_PRIORITY..=ROAMING_PRIORITY,
);

/// What a router needs around its TUN.
fn installed<'a>(routes: Vec<Route>, rules: Vec<Rule>) -> Installed<'a> {
    Installed {
        devices: vec![DEVICE],
        addresses: vec![(DEVICE, Prefix::host(ADDRESS))],
        routes,
        rules,
    }
}

/// Whether a table is of one of the three.
pub(crate) const fn is_table(table: u32) -> bool {
    matches!(table, HOSTS | AWAY)
}

/// Whether a rule with this priority is of one of the three.
pub(crate) fn is_priority(priority: u32) -> bool {
    PRIORITIES.0.contains(&priority) || PRIORITIES.1.contains(&priority)
}

/// Opens the TUN of a router for a tunnel whose packets may have `outer` octets with the header in front. The machine must
/// forward.
fn open_device(netlink: &Netlink, outer: u16, offload: bool) -> Result<Bulk, Error> {
    sysctl::require_forwarding(Family::V4)?;
    let device = Bulk::open(DEVICE, outer.saturating_sub(OUTER), offload, false)?;
    // Not before: whoever has the device has rules that are in use.
    remove_all(netlink)?;
    // Our own device needs no check of reverse paths; that of `all` may still be in force.
    sysctl::set(&format!("net/ipv4/conf/{}/rp_filter", device.name()), "0")?;
    netlink.add_address(device.name(), Prefix::host(ADDRESS))?;
    Ok(device)
}

/// Has packets ask for single hosts.
const fn to_hosts() -> Rule {
    Rule::new(Family::V4, HOSTS_PRIORITY, HOSTS)
}

/// The way to a single host.
fn host(address: Ipv4Addr, via: Via, metric: u32) -> Route {
    Route {
        table: HOSTS,
        metric,
        ..Route::new(IpAddr::V4(address), via)
    }
}

/// The way of everything that such a host sends.
fn away(via: Via, metric: u32) -> Route {
    Route {
        table: AWAY,
        metric,
        ..Route::new(Prefix::everything(Family::V4), via)
    }
}
