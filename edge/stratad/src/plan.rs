//! The traffic that the configuration protects: the routes into the tunnel, and the lock.

use crate::inside::Inside;
use config::{Addressing, Config, Leak, Peer, Tcp};
use model::{Encapsulation, Mode, TrafficSelector};
use os::clear::{Flow, Guard, Target};
use os::routes::{Plan, Service};
use os::{Lock, Prefix};
use std::net::{IpAddr, SocketAddr};

/// Returns the protected prefixes and the exceptions that go around the tunnel.
pub fn plan(config: &Config, inside: &Inside) -> Plan {
    let addresses: Vec<IpAddr> = config
        .tunnel
        .addresses
        .iter()
        .map(|prefix| prefix.address())
        .collect();
    let protected = config.peers.iter().flat_map(|peer| {
        let addresses = &addresses;
        tunnels(peer, inside).flat_map(move |(mode, local, led)| {
            // The source is an address of ours that the tunnel carries.
            let carried =
                |address: &&IpAddr| local.iter().any(|local| local.contains(**address, 0, None));
            let outside: Vec<_> = local.iter().map(|local| local.first).collect();
            let ours = match (mode, &peer.addressing) {
                // The device does not have the outer address, and need not.
                (Mode::Transport, _) => outside.as_slice(),
                (_, Addressing::Requested) => inside.from(&peer.party.name),
                (_, Addressing::Fixed | Addressing::Lent(_)) => addresses.as_slice(),
            };
            let source = ours
                .iter()
                .filter(carried)
                .find(|a| a.is_ipv4() == led.first.is_ipv4())
                .copied();
            led.prefixes()
                .into_iter()
                .map(move |prefix| (prefix_of(prefix), source))
        })
    });
    let bypassed = config
        .policies
        .iter()
        .filter(|policy| policy.action == config::Action::Bypass);
    let (whole, parts): (Vec<_>, Vec<_>) = bypassed.partition(|policy| policy.remote.protocol == 0);
    let bypassed = whole.iter().flat_map(|policy| policy.remote.prefixes());
    let mut plan = Plan {
        protected: protected.collect(),
        bypassed: bypassed.map(prefix_of).collect(),
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
    plan
}

/// Returns the prefixes that are routed into a peer's tunnels, each with the mode of its tunnel and
/// our selectors.
fn tunnels<'c>(
    peer: &'c Peer,
    inside: &Inside,
) -> impl Iterator<Item = (Mode, &'c [TrafficSelector], TrafficSelector)> {
    let first = inside.led(peer).into_iter();
    let first = first.map(|led| (peer.mode, peer.local.as_slice(), led));
    let others = peer.children.iter().flat_map(|child| {
        let led = child.remote.iter().cloned();
        led.map(|led| (child.mode, child.local.as_slice(), led))
    });
    first.chain(others)
}

/// Returns the lock; `None` if the prefixes of all peers may be reachable while no daemon runs.
pub fn lock(config: &Config, inside: &Inside) -> Option<Lock> {
    let Plan {
        bypassed,
        services,
        held,
        ..
    } = plan(config, inside);
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
        streams: streams(config),
    })
}

/// Returns the traffic that is accepted only out of tunnels; `None` without peers.
pub fn guard(config: &Config, inside: &Inside) -> Option<Guard> {
    let Plan {
        bypassed, services, ..
    } = plan(config, inside);
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
        streams: streams(config),
        mobile: config.mobility.is_some(),
        transit: config.divert.is_some(),
    })
}

/// Returns the traffic that a peer's tunnels carry to us, also while they are down: all of
/// `remote`, to our selectors or, if the peer assigns our addresses, to those.
fn flows(peer: &Peer, inside: &Inside) -> Vec<Flow> {
    let lent = inside.from(&peer.party.name).iter();
    let lent = lent.filter_map(|address| {
        let length = Prefix::host(*address).length;
        TrafficSelector::from_prefix(*address, length)
    });
    let lent: Vec<_> = lent.collect();
    let first = (&peer.local, &peer.remote);
    let others = peer.children.iter();
    let others = others.map(|child| (&child.local, &child.remote));
    let tunnels = std::iter::once(first).chain(others);
    tunnels
        .flat_map(|(local, remote)| {
            let local = match peer.addressing {
                Addressing::Requested => &lent,
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
    let sources = remote.prefixes().into_iter().map(prefix_of);
    let flow = |source| Flow {
        source,
        target: target.clone(),
    };
    sources.map(flow).collect()
}

/// Returns the destinations of the TCP streams that we open.
fn streams(config: &Config) -> Vec<SocketAddr> {
    let begun = config.peers.iter().filter(|peer| peer.tcp != Tcp::Off);
    let ends = begun.flat_map(|peer| Some(SocketAddr::new(peer.address?, peer.tcp_port)));
    ends.collect()
}

/// Returns the prefixes of peers whose `leak` is `never`.
fn held(config: &Config) -> Vec<Prefix> {
    let never = |peer: &&Peer| peer.leak == Leak::Never;
    let remote = config.peers.iter().filter(never).flat_map(Peer::all_remote);
    let mut held: Vec<_> = remote
        .flat_map(|remote| remote.prefixes())
        .map(prefix_of)
        .collect();
    held.sort();
    held.dedup();
    held
}

/// Returns the form in which rules and nftables express a protocol and its ports.
fn services(selector: &TrafficSelector) -> impl Iterator<Item = Service> + '_ {
    let ports = (selector.ports != (0..=u16::MAX)).then(|| selector.ports.clone());
    let prefixes = selector.prefixes().into_iter().map(prefix_of);
    prefixes.map(move |prefix| Service {
        prefix,
        protocol: selector.protocol,
        ports: ports.clone(),
    })
}

fn prefix_of((address, length): (IpAddr, u8)) -> Prefix {
    Prefix { address, length }
}
