//! Routes for the packets of hosts that keep their address wherever they are: the kernel state of
//! the host itself ([`Roaming`]), of the router it visits ([`Visitors`]), and of the router that
//! represents it at home ([`Homes`]). A machine has one of the three roles.
//!
//! Between the two routers packets are in a tunnel, which is not made here. The kernel routes
//! packets for the tunnel into a TUN, and routes packets written to the TUN as if they had arrived
//! there. The TUN's MTU is what the tunnel carries, so the kernel fragments longer packets, or
//! notifies their sources.
//!
//! There are two tables. One has a route for each single host. The other routes everything sent
//! *by* such a host, and rules select its packets by their source. The next start finds and empties
//! both, with all other remains of a killed process.
//!
//! At home the operator lists the hosts, and every packet looks for single hosts first. A visited
//! router learns addresses from the visitors, so its own packets and those that it forwards for
//! others never use either table: see [`Visitors`].
//!
//! Reverse paths are looked up by the same rules, with the addresses exchanged. So strict checks
//! (`rp_filter` 1) pass if a packet arrives on the interface that its answer leaves by. A roaming
//! host accepts the packets of its own tunnels on more interfaces: see [`Roaming::accept_on`].

mod homes;
mod roaming;
mod visitors;

pub use homes::Homes;
pub use roaming::{Agent, Roaming};
pub use visitors::{Between, Visitors};

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

/// The table of packets sent by such hosts.
pub const AWAY: u32 = 7293;

/// The table of reverse paths to a roaming host's tunnels. Nothing is sent by it.
pub const ARRIVALS: u32 = 7295;

/// Priorities of the rules: behind those of [`crate::divert`], whose packets have not passed yet,
/// and for the two routers before those of [`crate::routes`]. A roaming host's packets are routed
/// behind those: they enter a tunnel of its own first, and that tunnel's packets leave by these
/// rules.
const HOSTS_PRIORITY: u32 = 7293;
const VISITOR_PRIORITY: u32 = 7294;
const SPECIFIC_PRIORITY: u32 = 7297;
const ARRIVAL_PRIORITY: u32 = 7298;
const ROAMING_PRIORITY: u32 = 7299;

/// Link-local address of the TUN. The kernel drops more packets on an interface without any
/// address.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 72, 93));

/// Octets of the IPv4 header that the tunnel adds (RFC 2003 section 3.1).
const OUTER: u16 = 20;

/// Metric of routes; the black hole's must be worse.
const METRIC: u32 = 10;
const SPARE_METRIC: u32 = 11;
const BLACKHOLE_METRIC: u32 = 4096;

/// Returns the addresses of the host itself in the calling thread's network namespace.
pub fn own_addresses() -> Result<BTreeSet<Ipv4Addr>, Error> {
    let all = getifaddrs().map_err(Error::os("listing this host's addresses"))?;
    let addresses = all.filter_map(|one| Some(one.address?.as_sockaddr_in()?.ip()));
    Ok(addresses.collect())
}

/// Returns the prefixes that the host itself needs in the calling thread's network namespace: the
/// networks of its interfaces with its own addresses in them, the next hops of its routes, and its
/// name servers.
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
        Via::Device(_) | Via::Devices(_) | Via::Blackhole | Via::Throw => None,
    });
    let others = next_hops.chain(resolver::servers()).filter(IpAddr::is_ipv4);
    reserved.extend(others.map(Prefix::host));
    Ok(reserved)
}

/// Removes a predecessor's remains, on a machine that no longer has any of the three roles.
pub fn remove_leftovers() -> Result<(), Error> {
    remove_all(&Netlink::open()?)
}

/// Removes rules and routes. State that only they identify goes first: the neighbours entered for
/// them, and the address of a roaming host.
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
    netlink.cleanup(ARRIVALS, PRIORITIES.1)?;
    Ok(())
}

/// Priorities of all rules above.
const PRIORITIES: (RangeInclusive<u32>, RangeInclusive<u32>) = (
    HOSTS_PRIORITY..=VISITOR_PRIORITY,
    SPECIFIC_PRIORITY..=ROAMING_PRIORITY,
);

/// Returns the kernel state around a router's TUN.
fn installed<'a>(routes: Vec<Route>, rules: Vec<Rule>) -> Installed<'a> {
    Installed {
        devices: vec![DEVICE],
        addresses: vec![(DEVICE, Prefix::host(ADDRESS))],
        routes,
        rules,
    }
}

/// Returns true if a table belongs to one of the three roles.
pub(crate) const fn is_table(table: u32) -> bool {
    matches!(table, HOSTS | AWAY | ARRIVALS)
}

/// Returns true if the priority of a rule belongs to one of the three roles.
pub(crate) fn is_priority(priority: u32) -> bool {
    PRIORITIES.0.contains(&priority) || PRIORITIES.1.contains(&priority)
}

/// Opens the TUN of a router for a tunnel whose packets may have `outer` octets including the outer
/// header. The machine must forward.
fn open_device(netlink: &Netlink, outer: u16, offload: bool) -> Result<Bulk, Error> {
    sysctl::require_forwarding(Family::V4)?;
    let device = Bulk::open(DEVICE, outer.saturating_sub(OUTER), offload, false)?;
    // Only now: another process with this device has rules in use.
    remove_all(netlink)?;
    // Our own device needs no check of reverse paths; that of `all` may still be in force.
    sysctl::set(&format!("net/ipv4/conf/{}/rp_filter", device.name()), "0")?;
    netlink.add_address(device.name(), Prefix::host(ADDRESS))?;
    Ok(device)
}

/// Returns the rule that looks up single hosts.
const fn to_hosts() -> Rule {
    Rule::new(Family::V4, HOSTS_PRIORITY, HOSTS)
}

/// Returns the route to a single host.
fn host(address: Ipv4Addr, via: Via, metric: u32) -> Route {
    Route {
        table: HOSTS,
        metric,
        ..Route::new(IpAddr::V4(address), via)
    }
}

/// Returns the route of everything that such hosts send.
fn away(via: Via, metric: u32) -> Route {
    Route {
        table: AWAY,
        metric,
        ..Route::new(Prefix::everything(Family::V4), via)
    }
}
