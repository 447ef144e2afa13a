//! The interface that `strata move --to` or `strata signal` names.

use control::Failure;
use node::Node;
use os::Netlink;
use std::net::IpAddr;

/// Returns the address of an interface from which packets to a peer leave, or any other address of
/// it: the refusal then names the usable ones of other interfaces.
pub fn address_of(interface: &str, peer: &str, node: &Node) -> Result<IpAddr, Failure> {
    let addresses = addresses(interface)?;
    let paths = node.paths();
    let of_peer = paths.iter().filter(|path| node.name(path.peer) == peer);
    let ways = of_peer.flat_map(|path| &path.candidates);
    let mut locals = ways.map(|candidate| candidate.way.local);
    let usable = locals.find(|local| addresses.contains(local));
    Ok(usable.unwrap_or(addresses[0]))
}

/// Returns the addresses of an interface that can carry packets, at least one.
pub fn addresses(interface: &str) -> Result<Vec<IpAddr>, Failure> {
    let read = |error: os::Error| Failure::new(error.to_string(), "try again");
    let shown = interface.escape_debug();
    let netlink = Netlink::open().map_err(read)?;
    let all = netlink.links().map_err(read)?;
    if !all.iter().any(|name| name == interface) {
        let message = format!("there is no interface {shown}");
        let fix = format!("name one of: {}", all.join(", "));
        return Err(Failure::new(message, fix));
    }
    if netlink.running(interface).is_none() {
        let message = format!("the interface {shown} is down, or has no carrier");
        let fix = format!("run `ip link set {shown} up`, and check its cable or network");
        return Err(Failure::new(message, fix));
    }
    let addresses = netlink.addresses(interface).map_err(read)?;
    if addresses.is_empty() {
        let fix = format!("wait for one, or run `ip address add ADDRESS dev {shown}`");
        let message = format!("the interface {shown} has no address");
        return Err(Failure::new(message, fix));
    }
    Ok(addresses.iter().map(|prefix| prefix.address).collect())
}
