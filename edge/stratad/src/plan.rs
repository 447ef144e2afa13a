//! The traffic that the configuration protects: the routes into the tunnel, and the lock.

use crate::assigned::AssignedAddresses;
use crate::naming::Outer;
use config::{Addressing, Config, Leak, Peer, Tcp};
use model::{Encapsulation, Mode, TrafficSelector};
use os::clear::{Flow, Guard, Target};
use os::routes::{RoutePlan, Service};
use os::{Lock, Prefix};
use std::net::{IpAddr, SocketAddr};

/// Returns the protected prefixes and the exceptions that go around the tunnel. `own` has the
/// addresses of this host's interfaces other than the tunnel device, the preferred ones first.
pub fn plan(config: &Config, inside: &AssignedAddresses, own: &[IpAddr]) -> RoutePlan {
    let addresses: Vec<IpAddr> = config
        .tunnel
        .addresses
        .iter()
        .map(|prefix| prefix.address())
        .collect();
    let protected = config.peers.iter().flat_map(|peer| {
        let addresses = &addresses;
        tunnels(peer, inside).flat_map(move |(mode, local, led)| {
            let source = match (mode, &peer.addressing) {
                // The outer address, which the device does not have.
                (Mode::Transport, _) => inside
                    .outside(&peer.party.name)
                    .filter(|used| own.contains(used) && used.is_ipv4() == led.first.is_ipv4())
                    .or_else(|| source(local, led.first, own.iter())),
                // Our own addresses are not in the tunnel's selectors, even if `local` covers them.
                (_, Addressing::Requested) => {
                    source(local, led.first, inside.from(&peer.party.name).iter())
                }
                (_, Addressing::Fixed | Addressing::Lent(_)) => {
                    source(local, led.first, addresses.iter().chain(own))
                }
            };
            prefixes(&led).map(move |prefix| (prefix, source))
        })
    });
    let bypassed = config
        .policies
        .iter()
        .filter(|policy| policy.action == config::Action::Bypass);
    let (whole, parts): (Vec<_>, Vec<_>) = bypassed.partition(|policy| policy.remote.protocol == 0);
    let bypassed = whole.iter().flat_map(|policy| prefixes(&policy.remote));
    let mut plan = RoutePlan {
        protected: protected.collect(),
        bypassed: bypassed.collect(),
        services: parts
            .iter()
            .flat_map(|policy| services(&policy.remote))
            .collect(),
        held: held(config),
    };
    // Two tunnels may share a prefix. The prefix gets one route, preferably with a source address
    // of ours.
    plan.protected
        .sort_by_key(|(prefix, source)| (*prefix, source.is_none()));
    plan.protected.dedup_by_key(|(prefix, _)| *prefix);
    // Kept for as long as the configuration.
    plan.protected.shrink_to_fit();
    plan
}

/// Returns the source address that packets to `remote` get if their program chooses none: an
/// address that the tunnel carries, or this host itself could not use the tunnel. The first prefix
/// of `local` that has an address decides.
fn source<'a>(
    local: &[TrafficSelector],
    remote: IpAddr,
    ours: impl Iterator<Item = &'a IpAddr> + Clone,
) -> Option<IpAddr> {
    let ours = ours.filter(|address| address.is_ipv4() == remote.is_ipv4());
    let mut carried = local.iter().filter_map(|local| {
        let mut ours = ours.clone();
        ours.find(|address| (local.first..=local.last).contains(*address))
    });
    carried.next().copied()
}

/// Returns the prefixes that are routed into a peer's tunnels, each with the mode of its tunnel and
/// our selectors.
fn tunnels<'c>(
    peer: &'c Peer,
    inside: &AssignedAddresses,
) -> impl Iterator<Item = (Mode, &'c [TrafficSelector], TrafficSelector)> {
    let first = inside.led(peer).into_iter();
    let first = first.map(|led| (peer.mode, &peer.local[..], led));
    let others = peer.children.iter().flat_map(|child| {
        let led = child.remote.iter().cloned();
        led.map(|led| (child.mode, child.local.as_slice(), led))
    });
    first.chain(others)
}

/// Returns the lock; `None` if the prefixes of all peers may be reachable while no daemon runs.
/// `outer` are hosts whose answers pass.
pub fn lock(config: &Config, inside: &AssignedAddresses, outer: &Outer) -> Option<Lock> {
    let RoutePlan {
        bypassed,
        services,
        held,
        ..
    } = plan(config, inside, &[]);
    let addresses = &config.tunnel.addresses;
    (!held.is_empty()).then(|| Lock {
        device: config.tunnel.name.clone(),
        protected: held,
        bypassed,
        services,
        inside: addresses
            .iter()
            .map(|prefix| prefix.address())
            .chain(inside.addresses())
            .collect(),
        ports: vec![config.listen.ike, config.listen.nat],
        esp: config.listen.encapsulation == Encapsulation::ForNat,
        stream_port: config.listen.tcp,
        streams: streams(config, outer),
        resolvers: outer.servers.clone(),
    })
}

/// Returns the traffic that is accepted only out of tunnels; `None` without peers. Messages of
/// Mobile IP arrive on the UDP ports `mobile`, and answers of the hosts `outer`.
pub fn guard(
    config: &Config,
    inside: &AssignedAddresses,
    outer: &Outer,
    mobile: &[u16],
) -> Option<Guard> {
    let RoutePlan {
        bypassed, services, ..
    } = plan(config, inside, &[]);
    (!config.peers.is_empty()).then(|| Guard {
        device: config.tunnel.name.clone(),
        protected: config
            .peers
            .iter()
            .flat_map(|peer| flows(peer, inside))
            .collect(),
        bypassed,
        services,
        ports: vec![config.listen.nat, config.listen.ike],
        stream_port: config.listen.tcp,
        streams: streams(config, outer),
        resolvers: outer.servers.clone(),
        mobile: mobile.to_vec(),
    })
}

/// Returns the traffic that a peer's tunnels carry to us, also while they are down: all of
/// `remote`, to our selectors or, if the peer assigns our addresses, to those.
fn flows(peer: &Peer, inside: &AssignedAddresses) -> Vec<Flow> {
    let lent = inside.from(&peer.party.name).iter();
    let lent = lent.filter_map(|address| {
        let length = Prefix::host(*address).length;
        TrafficSelector::from_prefix(*address, length)
    });
    let lent: Vec<_> = lent.collect();
    let first = (&peer.local[..], &peer.remote[..]);
    let others = peer.children.iter();
    let others = others.map(|child| (&child.local[..], &child.remote[..]));
    let tunnels = std::iter::once(first).chain(others);
    tunnels
        .flat_map(|(local, remote)| {
            let local = match peer.addressing {
                Addressing::Requested => &lent[..],
                Addressing::Fixed | Addressing::Lent(_) => local,
            };
            remote
                .iter()
                .flat_map(|remote| local.iter().flat_map(|local| flow(local, remote)))
        })
        .collect()
}

/// Returns the traffic that a pair of selectors has in common, one flow for each remote prefix.
fn flow(local: &TrafficSelector, remote: &TrafficSelector) -> Vec<Flow> {
    let protocol = match (local.protocol, remote.protocol) {
        (0, protocol) | (protocol, 0) => protocol,
        (ours, theirs) if ours == theirs => ours,
        _ => return Vec::new(),
    };
    if local.first.is_ipv4() != remote.first.is_ipv4() {
        return Vec::new();
    }
    let target = Target {
        first: local.first,
        last: local.last,
        protocol,
        from: (&remote.ports).into(),
        to: (&local.ports).into(),
    };
    let sources = prefixes(remote);
    let flow = |source| Flow {
        source,
        target: target.clone(),
    };
    sources.map(flow).collect()
}

/// Returns the destinations of the TCP streams that we open.
fn streams(config: &Config, outer: &Outer) -> Vec<SocketAddr> {
    let begun = config.peers.iter().filter(|peer| peer.tcp != Tcp::Off);
    let ends = begun.filter_map(|peer| {
        let address = peer.address.as_ref()?.ip()?;
        Some(SocketAddr::new(address, peer.tcp_port))
    });
    ends.chain(outer.streams.iter().copied()).collect()
}

/// Returns the prefixes of peers whose `leak` is `never`.
fn held(config: &Config) -> Vec<Prefix> {
    let never = |peer: &&Peer| peer.leak == Leak::Never;
    let remote = config.peers.iter().filter(never).flat_map(Peer::all_remote);
    let mut held: Vec<_> = remote.flat_map(prefixes).collect();
    held.sort();
    held.dedup();
    held
}

/// Returns the form in which rules and nftables express a protocol and its ports.
fn services(selector: &TrafficSelector) -> impl Iterator<Item = Service> + '_ {
    let ports = (selector.ports != (0..=u16::MAX)).then(|| selector.ports.clone());
    prefixes(selector).map(move |prefix| Service {
        prefix,
        protocol: selector.protocol,
        ports: ports.clone(),
    })
}

/// Returns the prefixes that a selector consists of.
fn prefixes(selector: &TrafficSelector) -> impl Iterator<Item = Prefix> + use<> {
    let prefixes = selector.prefixes().into_iter();
    prefixes.map(|(address, length)| Prefix { address, length })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Folder;

    const SITE: &str = r#"[node]
id = "west.example.net"
[peer.east]
address = "198.51.100.1"
id = "east.example.net"
psk = "a.psk"
local = ["172.16.1.0/24", "172.16.2.0/24", "fd00:16::/64"]
remote = ["10.8.0.0/16", "fd00:8::/64"]
"#;

    const OWN: [&str; 4] = ["192.0.2.101", "172.16.2.1", "172.16.1.1", "fd00:16::1"];

    /// Returns the routes into the tunnels of a file, each with its source.
    fn routes(name: &str, text: &str, inside: &AssignedAddresses, own: &[&str]) -> Vec<String> {
        let folder = Folder::new(&format!("plan-{name}"));
        folder.write_key("a.psk", "one key, long enough");
        let config = folder.load(text);
        let own = own.iter().map(|own| own.parse().expect("an address"));
        let plan = plan(&config, inside, &own.collect::<Vec<_>>());
        let route = |(prefix, source): &(Prefix, Option<IpAddr>)| match source {
            Some(source) => format!("{prefix} src {source}"),
            None => prefix.to_string(),
        };
        plan.protected.iter().map(route).collect()
    }

    fn site(name: &str, own: &[&str]) -> Vec<String> {
        routes(name, SITE, &AssignedAddresses::default(), own)
    }

    /// Otherwise the kernel chooses the address of another interface, which no tunnel carries.
    // Weakness: 143
    #[test]
    fn a_route_prefers_an_address_of_this_host_that_the_tunnel_carries() {
        let expected = ["10.8.0.0/16 src 172.16.1.1", "fd00:8::/64 src fd00:16::1"];
        assert_eq!(site("carried", &OWN), expected);
        let second = ["10.8.0.0/16 src 172.16.2.1", "fd00:8::/64"];
        assert_eq!(site("second", &OWN[..2]), second);
        assert_eq!(site("none", &OWN[..1]), ["10.8.0.0/16", "fd00:8::/64"]);
    }

    #[test]
    fn addresses_of_the_tunnel_come_before_those_of_other_interfaces() {
        let tunnel = "[tunnel]\naddresses = [\"172.16.1.9/32\"]\n";
        let text = format!("{SITE}{tunnel}");
        let routes = routes("tunnel", &text, &AssignedAddresses::default(), &OWN);
        assert_eq!(routes[0], "10.8.0.0/16 src 172.16.1.9");
    }

    #[test]
    fn a_tunnel_for_one_service_has_a_source_too() {
        let text = SITE.replace("172.16.1.0/24", "172.16.1.0/24 tcp 443");
        let routes = routes("service", &text, &AssignedAddresses::default(), &OWN);
        assert_eq!(routes[0], "10.8.0.0/16 src 172.16.1.1");
    }

    /// Its own addresses are not in the tunnel before the peer has assigned one.
    #[test]
    fn a_host_that_asks_for_an_address_does_not_use_another() {
        let local = r#"["172.16.1.0/24", "172.16.2.0/24", "fd00:16::/64"]"#;
        let text = SITE.replace(local, r#"["dynamic"]"#);
        let routes = routes("dynamic", &text, &AssignedAddresses::default(), &OWN);
        assert_eq!(routes, ["10.8.0.0/16", "fd00:8::/64"]);
    }

    /// With an address that no interface has, the kernel would refuse the route.
    #[test]
    fn a_transport_tunnel_waits_for_its_address() {
        let transport = SITE
            .replace(
                r#""172.16.1.0/24", "172.16.2.0/24", "fd00:16::/64""#,
                "\"192.0.2.101/32\"",
            )
            .replace(r#""10.8.0.0/16", "fd00:8::/64""#, "\"198.51.100.1/32\"")
            + "mode = \"transport\"\n";
        let nothing = AssignedAddresses::default();
        let early = routes("early", &transport, &nothing, &OWN[1..]);
        assert_eq!(early, ["198.51.100.1/32"]);
        let there = routes("there", &transport, &nothing, &OWN);
        assert_eq!(there, ["198.51.100.1/32 src 192.0.2.101"]);
    }
}
