//! Networks in which the pages of `docs/operate` are followed. A page names its network in a
//! comment, `<!-- network road -->`, and `none` removes it.

use anyhow::{Result, bail};
use lab::host::{End, Host};
use lab::testbed::Testbed;
use lab::wire;
use std::collections::BTreeMap;
use std::slice;

/// Host, device and address of one end of a wire. An empty address is none.
type Place = (&'static str, &'static str, &'static str);

/// Wires between hosts, routes, and the hosts that forward packets.
struct Network {
    wires: &'static [[Place; 2]],
    /// Host, prefix and neighbour.
    routes: &'static [(&'static str, &'static str, &'static str)],
    routers: &'static [&'static str],
}

/// The hosts of the examples: alice with two uplinks, bob, and a node between them and the gateway.
const ROAD: Network = Network {
    wires: &[
        [
            ("alice", "eth0", "10.3.0.2/24"),
            ("node", "wlan0", "10.3.0.1/24"),
        ],
        [
            ("alice", "eth1", "10.4.0.2/24"),
            ("node", "wlan1", "10.4.0.1/24"),
        ],
        [
            ("bob", "eth0", "10.5.0.2/24"),
            ("node", "wlan2", "10.5.0.1/24"),
        ],
        [
            ("node", "eth0", "192.0.2.2/24"),
            ("gateway", "eth0", "192.0.2.1/24"),
        ],
    ],
    routes: &[
        ("alice", "default", "10.3.0.1"),
        ("bob", "default", "10.5.0.1"),
        ("gateway", "default", "192.0.2.2"),
    ],
    routers: &["node"],
};

/// Two gateways, each with a host behind it.
const SITES: Network = Network {
    wires: &[
        [
            ("west", "eth0", "192.0.2.1/24"),
            ("internet", "eth0", "192.0.2.2/24"),
        ],
        [
            ("east", "eth0", "198.51.100.1/24"),
            ("internet", "eth1", "198.51.100.2/24"),
        ],
        [
            ("west", "lan0", "10.20.0.1/16"),
            ("printer", "eth0", "10.20.0.9/16"),
        ],
        [
            ("east", "lan0", "10.10.0.1/16"),
            ("server", "eth0", "10.10.0.9/16"),
        ],
    ],
    routes: &[
        ("west", "default", "192.0.2.2"),
        ("east", "default", "198.51.100.2"),
        ("printer", "default", "10.20.0.1"),
        ("server", "default", "10.10.0.1"),
    ],
    routers: &["internet"],
};

/// Alice hears two foreign agents; the gateway is her home agent. Alice has no outer address.
const WALK: Network = Network {
    wires: &[
        [
            ("alice", "wlan0", ""),
            ("agent", "wlan0", "198.51.100.2/24"),
        ],
        [("alice", "wlan1", ""), ("next", "wlan0", "203.0.113.2/24")],
        [
            ("agent", "eth0", "10.4.1.2/24"),
            ("internet", "eth1", "10.4.1.1/24"),
        ],
        [
            ("next", "eth0", "10.4.2.2/24"),
            ("internet", "eth2", "10.4.2.1/24"),
        ],
        [
            ("internet", "eth0", "192.0.2.2/24"),
            ("gateway", "eth0", "192.0.2.1/24"),
        ],
    ],
    routes: &[
        ("agent", "default", "10.4.1.1"),
        ("next", "default", "10.4.2.1"),
        ("internet", "198.51.100.0/24", "10.4.1.2"),
        ("internet", "203.0.113.0/24", "10.4.2.2"),
        ("gateway", "default", "192.0.2.2"),
    ],
    routers: &["agent", "next", "internet", "gateway"],
};

/// Builds the network of this name, and returns its hosts.
pub fn build(bed: &Testbed, name: &str) -> Result<BTreeMap<String, Host>> {
    let network = match name {
        "road" => ROAD,
        "sites" => SITES,
        "walk" => WALK,
        "none" => return Ok(BTreeMap::new()),
        _ => bail!("no network is called {name}"),
    };
    let mut hosts = BTreeMap::new();
    for (name, _, _) in network.wires.iter().flatten() {
        if !hosts.contains_key(*name) {
            hosts.insert((*name).to_owned(), bed.host(name)?);
        }
    }
    for [a, b] in network.wires {
        wire::veth(end(&hosts, a), end(&hosts, b))?;
    }
    for (host, prefix, via) in network.routes {
        hosts[*host].route(prefix, via)?;
    }
    for router in network.routers {
        hosts[*router].sysctl("net.ipv4.ip_forward", "1")?;
    }
    Ok(hosts)
}

fn end<'a>(hosts: &'a BTreeMap<String, Host>, (host, device, address): &'a Place) -> End<'a> {
    let addresses = slice::from_ref(address);
    let count = usize::from(!address.is_empty());
    hosts[*host].end(device, &addresses[..count])
}
