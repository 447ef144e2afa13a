//! What the configuration protects: the routes into the tunnel, and what is locked.

use crate::inside::Inside;
use config::{Addressing, Config, Leak, Peer, Tcp};
use model::{Encapsulation, Mode, TrafficSelector};
use os::routes::{Plan, Service};
use os::{Lock, Prefix};
use std::net::{IpAddr, SocketAddr};

/// What is protected and what goes around the tunnel.
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
            // The address of ours that the tunnel carries is the one to be seen from.
            let carried =
                |address: &&IpAddr| local.iter().any(|local| local.contains(**address, 0, None));
            let outside: Vec<_> = local.iter().map(|local| local.first).collect();
            let ours = match (mode, &peer.addressing) {
                // The device does not have it, and need not.
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
    // Two tunnels may share a prefix; the route is one, and rather from an address of ours.
    plan.protected
        .sort_by_key(|(prefix, source)| (*prefix, source.is_none()));
    plan.protected.dedup_by_key(|(prefix, _)| *prefix);
    plan
}

/// What is led into a peer's tunnels, one by one, by which mode, and what of ours goes by each.
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

/// What is locked; `None` if every peer's prefixes may be open while no daemon runs.
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

/// Where streams lead that we begin.
fn streams(config: &Config) -> Vec<SocketAddr> {
    let begun = config.peers.iter().filter(|peer| peer.tcp != Tcp::Off);
    let ends = begun.flat_map(|peer| Some(SocketAddr::new(peer.address?, peer.tcp_port)));
    ends.collect()
}

/// The prefixes of peers whose `leak` is `never`.
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

/// What rules and nftables know of a protocol and its ports.
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
