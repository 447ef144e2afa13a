//! The node's state in the types of the API.

mod mobile_ip;
mod selected;
mod zones;

pub use mobile_ip::no_agent;
pub use zones::{flows, zones};

use crate::clear::Dropped;
use crate::config_view::ConfigView;
use crate::explain::{told, told_not_found};
use crate::journal;
use crate::signal;
use crate::sink::IoCounters;
use control::{
    Candidate, Carrier, Child, ChildKind, ChildMode, Chosen, Congestion, Fill, Lease, Leases,
    LivePath, Lookup, MtuOrigin, Paths, Peer, PeerState, Refusal, Selection, Standing, Status,
    Traffic, TunnelPaths, Users, Who, Window,
};
use mobile_ip::mobile_ip;
use model::{Allowance, Exchanges, Instant, TrafficSelector};
use node::{ChildStatus, Node, PathsStatus, PeerStatus};
use selected::selected;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Returns the next part of an answer to `strata status`.
pub fn more_peers(view: &ConfigView, node: &Node, selection: &Selection, now: Instant) -> Status {
    let part = selected(view, node, selection, now);
    Status {
        peers: part.peers,
        warnings: part.warnings,
        next: part.next,
        ..Status::default()
    }
}

/// Returns the answer to `strata status`, or the first part of it.
pub fn status(
    view: &ConfigView,
    node: &Node,
    selection: &Selection,
    counters: &IoCounters,
    dropped: &Dropped,
    now: Instant,
) -> Status {
    let part = more_peers(view, node, selection, now);
    let mut warnings = view.warnings();
    warnings.extend(part.warnings);
    Status {
        identity: view.identity.clone(),
        roles: view.roles.clone(),
        uptime_seconds: now.since(view.started).as_secs(),
        restart: view.restart(now),
        errors: no_agent(view, node)
            .into_iter()
            .chain(view.failures(dropped))
            .collect(),
        warnings,
        locked: view.locked.clone(),
        removed: view.removed.clone(),
        clear: view.claimants.claims(dropped),
        unguarded: view.unguarded.clone(),
        peers: part.peers,
        next: part.next,
        mobile_ip: mobile_ip(view, node, now),
        refused_stranger: node.refused_stranger().map(|refusal| refused(refusal, now)),
        drops: drops(node, counters),
        clamped: node.esp_counters().clamped,
        written: node.esp_counters().written,
        injected: node.esp_counters().injected,
        padded: traffic(node.esp_counters().padded),
        covered: node.esp_counters().covered,
        dummies: node.esp_counters().dummies(),
        path_mtu: control::PathMtu {
            too_long: node.esp_counters().too_long,
            disbelieved: node.disbelieved_path_mtus(),
            cut: node.esp_counters().cut,
            probes: node.probe_counts().sent,
            lost: node.probe_counts().lost,
            echoed: node.probe_counts().echoed,
        },
        congestion: congestion(node.esp_counters().congestion),
    }
}

/// Returns the warning about a peer that connects from two addresses in turns.
pub fn two_machines(peer: &PeerStatus, now: Instant) -> Option<String> {
    Some(journal::two_machines(&peer.name, &rivals(peer, now)?))
}

fn rivals(peer: &PeerStatus, now: Instant) -> Option<[SocketAddr; 2]> {
    let in_turns = peer.rivals.as_ref();
    let lasting = in_turns.filter(|in_turns| in_turns.lasts(now));
    lasting.map(|in_turns| in_turns.addresses)
}

/// Returns the answer to `strata leases`.
pub fn leases(view: &ConfigView, node: &Node) -> Leases {
    let all: Vec<_> = node.leases().collect();
    let pools = view.pools.iter().map(|pool| {
        let ours = all.iter().filter(|lease| lease.pool == pool.name);
        let lent = |is_ipv4| {
            let lent = ours
                .clone()
                .filter(|lease| lease.addresses.address(is_ipv4).is_some());
            Fill {
                lent: lent.count() as u64,
                size: u64::try_from(pool.size(is_ipv4)).unwrap_or(u64::MAX),
            }
        };
        control::Pool {
            name: pool.name.clone(),
            prefixes: pool.addresses.iter().map(ToString::to_string).collect(),
            ipv4: lent(true),
            ipv6: lent(false),
            leases: ours.clone().map(lease).collect(),
        }
    });
    Leases {
        pools: pools.collect(),
    }
}

fn lease(lease: &model::Lease) -> Lease {
    let kept = lease
        .free_from
        .map(|free_from| free_from.saturating_sub(config::today().0));
    Lease {
        identity: lease.identity.to_string(),
        addresses: lease.addresses.iter().collect(),
        in_use: lease.free_from.is_none(),
        kept_seconds: kept,
    }
}

/// Returns the state of a peer.
pub fn state(peer: &PeerStatus) -> PeerState {
    match peer.state {
        node::PeerState::Down => PeerState::Down,
        node::PeerState::Connecting => PeerState::Connecting,
        node::PeerState::Up => PeerState::Up,
    }
}

fn peer(view: &ConfigView, status: &PeerStatus, now: Instant) -> Peer {
    Peer {
        name: status.name.clone(),
        kind: view.kind(status.table.as_ref().unwrap_or(&status.name)),
        table: status.table.clone(),
        users: status.users.map(|users| Users {
            here: users.here,
            most: users.most,
        }),
        identity: status.identity.to_string(),
        state: state(status),
        remote: status.remote.map(without_scope),
        interface: status.remote.and_then(|remote| view.link(remote)),
        lookup: lookup(status, now),
        carrier: carrier(status.carrier),
        since_seconds: status.since.map(|since| now.since(since).as_secs()),
        heard_seconds: status.heard.map(|heard| now.since(heard).as_secs()),
        silent: status.silent,
        rivals: rivals(status, now).into_iter().flatten().collect(),
        last_refusal: status.refusal.as_ref().map(|refusal| refused(refusal, now)),
        ppk: status.ppk,
        clone: status.clones,
        ike_sas: status.sas,
        kem: status.kems.iter().map(ToString::to_string).collect(),
        window: status.windows.map(window),
        inside: status.addresses.iter().collect(),
        routes: view.routes(&status.name).cloned(),
        children: children(status, now),
        missing: status.missing.clone(),
    }
}

/// Returns what is known of the name of a peer, if its address is one.
pub fn lookup(status: &PeerStatus, now: Instant) -> Option<Lookup> {
    let naming = status.naming.as_ref()?;
    let last = naming.last.as_ref();
    let outcome = last.map(|(_, outcome)| outcome);
    let found = outcome.and_then(|outcome| outcome.as_ref().ok());
    let failure = outcome.and_then(|outcome| outcome.as_ref().err());
    Some(Lookup {
        name: naming.name.clone(),
        asking: naming.asking,
        seconds_ago: last.map(|(at, _)| now.since(*at).as_secs()),
        server: found.and_then(|found| found.by),
        addresses: found.map_or_else(Vec::new, |found| found.addresses.clone()),
        failure: failure.map(told_not_found),
        tried: naming.tried.iter().map(|tried| tried.address).collect(),
        last_up: naming.good,
    })
}

const fn window(windows: node::Windows) -> Window {
    Window {
        ours: windows.ours,
        theirs: windows.theirs,
        under_way: windows.under_way,
    }
}

fn refused(refused: &node::Refused, now: Instant) -> Refusal {
    Refusal {
        seconds_ago: now.since(refused.at).as_secs(),
        from: refused.from,
        reason: told(&refused.why),
    }
}

fn children(status: &PeerStatus, now: Instant) -> Vec<Child> {
    let children = status.children.iter();
    children.map(|status| child(status, now)).collect()
}

fn child(status: &ChildStatus, now: Instant) -> Child {
    let rates = status.rates(now);
    Child {
        name: status.name.clone(),
        spi_in: status.inbound.to_string(),
        spi_out: status.outbound.to_string(),
        kind: if status.zoned {
            ChildKind::Zoned
        } else {
            ChildKind::Plain
        },
        suite: status.suite.map(|suite| suite.to_string()),
        unencrypted: status.suite.is_some_and(|suite| !suite.encrypts()),
        packets_left: status.allowance.as_ref().map(Allowance::left),
        esn: status.esn,
        key_exchanges: exchanges(&status.exchanges),
        mode: match status.mode {
            model::Mode::Tunnel => ChildMode::Tunnel,
            model::Mode::Transport => ChildMode::Transport,
            model::Mode::Beet => ChildMode::Beet,
        },
        carrier: carrier(status.path.carrier),
        draining: status.draining,
        waiting: status.waiting,
        mtu: status.mtu,
        path_mtu: status.path_mtu,
        path_mtu_origin: status.path_mtu_origin.map(origin),
        local: texts(&status.local),
        remote: texts(&status.remote),
        received: traffic(status.received),
        sent: traffic(status.sent),
        received_per_second: rates.opened,
        sent_per_second: rates.sealed,
    }
}

fn exchanges(exchanges: &Exchanges) -> Vec<String> {
    let group = exchanges.group.iter().map(ToString::to_string);
    let kems = exchanges.kems.iter().map(ToString::to_string);
    group.chain(kems).collect()
}

/// Formats traffic selectors for people.
pub fn texts(selectors: &[TrafficSelector]) -> Vec<String> {
    selectors.iter().map(ToString::to_string).collect()
}

const fn traffic(carried: node::Traffic) -> Traffic {
    Traffic {
        packets: carried.packets,
        octets: carried.octets,
    }
}

const fn congestion(counted: node::Congestion) -> Congestion {
    Congestion {
        marked: counted.marked,
        dangerous: counted.dangerous,
        unused: counted.unused,
    }
}

/// Returns all drop counters, of every engine and of the system.
fn drops(node: &Node, counters: &IoCounters) -> BTreeMap<String, u64> {
    let esp = node.esp_counters();
    let esp = esp
        .drops()
        .map(|(why, count)| (format!("esp_{}", why.label()), count));
    let ike = node
        .ike_counters()
        .drops()
        .map(|(why, count)| (format!("ike_{}", why.label()), count));
    let system = counters
        .iter()
        .map(|(doing, count)| (format!("system_{doing}"), count));
    let mobile = node
        .mobile_ip_drops()
        .map(|(why, count)| (format!("mobile_{why}"), count));
    let mut drops = BTreeMap::new();
    for (why, count) in esp.chain(ike).chain(system).chain(mobile) {
        *drops.entry(why).or_default() += count;
    }
    drops.retain(|_, count| *count > 0);
    drops
}

/// Returns the answer to `strata paths`.
pub fn paths(view: &ConfigView, node: &Node) -> Paths {
    let tunnels = node.paths();
    let mut tunnels: Vec<_> = tunnels
        .iter()
        .map(|status| tunnel_paths(view, status, node))
        .collect();
    tunnels.sort_by(|a, b| a.name.cmp(&b.name));
    Paths { tunnels }
}

fn tunnel_paths(view: &ConfigView, status: &PathsStatus, node: &Node) -> TunnelPaths {
    let (local, remote) = (status.path.local, status.path.remote);
    let candidate = |candidate: &node::Candidate| {
        let node::Way {
            local: from,
            remote: to,
        } = candidate.way;
        let used = candidate.leads_along(status.path);
        Candidate {
            local: from,
            remote: to,
            interface: view.link(SocketAddr::new(to, 0)),
            carrier: carrier(candidate.carrier),
            standing: match candidate.standing {
                node::Standing::Silent => Standing::Silent,
                node::Standing::Refused => Standing::Refused,
                node::Standing::Fresh if used => Standing::Used,
                node::Standing::Fresh => Standing::Fresh,
            },
            round_trip_micros: candidate
                .quality
                .round_trip()
                .map(|took| took.as_micros() as u64),
            lost_percent: candidate.quality.lost(),
            signal: signal::strength(from, node),
        }
    };
    TunnelPaths {
        name: node.name(status.peer).to_owned(),
        local: without_scope(local),
        remote: without_scope(remote),
        interface: view.link(remote),
        carrier: carrier(status.path.carrier),
        moved_by: match status.moves {
            Some(true) => Who::Us,
            Some(false) => Who::Peer,
            None => Who::Neither,
        },
        why: status.why.map(why),
        faded_percent: match status.why {
            Some(node::Why::Faded(lost)) => Some(lost),
            _ => None,
        },
        candidates: status.candidates.iter().map(candidate).collect(),
        live: status.live.iter().map(live_path).collect(),
    }
}

const fn why(why: node::Why) -> Chosen {
    match why {
        node::Why::Route => Chosen::Route,
        node::Why::Asked => Chosen::Asked,
        node::Why::Faded(_) => Chosen::Faded,
        node::Why::Weak => Chosen::Weak,
        node::Why::Silent => Chosen::Silent,
        node::Why::Quicker => Chosen::Quicker,
    }
}

/// Returns a place without its scope, which has a name of its own ([`ConfigView::link`]).
pub fn without_scope(place: SocketAddr) -> SocketAddr {
    SocketAddr::new(place.ip(), place.port())
}

fn live_path(status: &node::LivePathStatus) -> LivePath {
    LivePath {
        local: status.path.local,
        remote: status.path.remote,
        works: status.works,
        avoided: status.is_avoided,
        traffic: status.traffic.iter().map(ToString::to_string).collect(),
        shared: status.is_shared,
    }
}

const fn origin(origin: node::Origin) -> MtuOrigin {
    match origin {
        node::Origin::Interface => MtuOrigin::Interface,
        node::Origin::Reported => MtuOrigin::Reported,
        node::Origin::Probed => MtuOrigin::Probed,
        node::Origin::Searching => MtuOrigin::Searching,
        node::Origin::Safe => MtuOrigin::Safe,
    }
}

/// Returns the encapsulation of packets.
pub const fn carrier(carrier: model::Carrier) -> Carrier {
    match carrier {
        model::Carrier::Udp => Carrier::Udp,
        model::Carrier::Tcp => Carrier::Tcp,
        model::Carrier::Ip => Carrier::Ip,
    }
}
