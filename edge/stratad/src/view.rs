//! The node's state in the words of the API.

use crate::audit::permits;
use crate::inside::Inside;
use crate::outlet::Losses;
use crate::{plan, setup};
use config::{Config, Mobility, Places, Routing};
use control::{
    Candidate, Carrier, Child, ChildKind, ChildMode, Composite, Congestion, Fill, Flow, Flows,
    GrantState, Held, Holder, Lease, Leases, MobileBinding, MobileHome, MobileIp, MobilePart,
    MobileRegistration, MobileVisitor, Paths, Peer, PeerKind, PeerState, Refusal, Role, Routes,
    RoutesReason, SnoopCounters, Standing, Status, Traffic, TunnelPaths, Who, Window, Zone, Zones,
};
use crypto::{Certificate, RevocationList};
use model::{Exchanges, Identity, Instant, Right, TrafficSelector};
use node::mobile_ip;
use node::{ChildStatus, CsaStatus, HeldGrant, Node, PathsStatus, PeerStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// What the configuration says and the node does not know.
pub struct Facts {
    identity: String,
    roles: Vec<Role>,
    warnings: Vec<String>,
    /// Ours and those of CAs, whose end is to be told beforehand.
    certificates: Vec<Certificate>,
    lists: Vec<RevocationList>,
    locked: Vec<String>,
    pools: Vec<node::Pool>,
    started: Instant,
    /// Names of VPN peers, and whether we can connect to them.
    tunnels: BTreeMap<String, bool>,
    /// A mobile node's, by number.
    interfaces: Vec<String>,
    /// Names of those that we connect to by UDP and nothing else.
    by_udp: BTreeSet<String>,
    /// What is led into the tunnels whose peers are asked what that is.
    routes: BTreeMap<String, Routes>,
    licensed: BTreeSet<String>,
    adjacent: BTreeSet<String>,
    /// Where the keys of the file stand.
    places: Places,
}

impl Facts {
    /// The facts of a daemon that starts now.
    pub fn new(config: &Config, now: Instant) -> Self {
        let roles = [
            (!config.peers.is_empty(), Role::Endpoint),
            (!config.licensed.is_empty(), Role::Gateway),
            (
                !config.gateways.is_empty() || config.divert.is_some(),
                Role::LicensedNode,
            ),
        ];
        let mobile = config.mobility.as_ref().map(|mobility| match mobility {
            Mobility::MobileNode(_) => Role::MobileNode,
            Mobility::ForeignAgent(_) => Role::ForeignAgent,
            Mobility::HomeAgent(_) => Role::HomeAgent,
        });
        let tunnels = config
            .peers
            .iter()
            .map(|peer| (peer.party.name.clone(), peer.address.is_some()));
        Self {
            identity: config.identity.to_string(),
            roles: roles
                .into_iter()
                .filter(|(has, _)| *has)
                .map(|(_, role)| role)
                .chain(mobile)
                .collect(),
            warnings: config.warnings.iter().map(ToString::to_string).collect(),
            locked: plan::plan(config, &Inside::default())
                .held
                .iter()
                .map(ToString::to_string)
                .collect(),
            certificates: config.certificates().cloned().collect(),
            lists: config.lists.clone(),
            pools: setup::pools(config),
            started: now,
            tunnels: tunnels.collect(),
            interfaces: match &config.mobility {
                Some(Mobility::MobileNode(node)) => node.interfaces.clone(),
                _ => Vec::new(),
            },
            by_udp: config
                .peers
                .iter()
                .filter(|peer| peer.address.is_some() && peer.tcp == config::Tcp::Off)
                .map(|peer| peer.party.name.clone())
                .collect(),
            routes: routes(config, &Inside::default()),
            licensed: config
                .licensed
                .iter()
                .map(|licensed| licensed.party.name.clone())
                .collect(),
            adjacent: config
                .adjacent
                .iter()
                .map(|neighbour| neighbour.party.name.clone())
                .collect(),
            places: config.places.clone(),
        }
    }

    /// Whether something is locked.
    pub fn is_locked(&self) -> bool {
        !self.locked.is_empty()
    }

    /// What a person should look at today.
    fn warnings(&self) -> Vec<String> {
        let expiry = config::expiry(&self.certificates, &self.lists, config::today());
        let expiry = expiry.iter().map(ToString::to_string);
        expiry.chain(self.warnings.iter().cloned()).collect()
    }

    /// Our certificates and those of CAs.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// What CAs have revoked.
    pub fn lists(&self) -> &[RevocationList] {
        &self.lists
    }

    /// The facts of another configuration of the same daemon.
    pub fn reconfigure(&mut self, config: &Config) {
        *self = Self::new(config, self.started);
    }

    /// What is led into the tunnels is another.
    pub fn lead(&mut self, config: &Config, inside: &Inside) {
        self.routes = routes(config, inside);
    }

    /// What is led into the tunnel with a peer that is asked what that is.
    pub fn routes(&self, peer: &str) -> Option<&Routes> {
        self.routes.get(peer)
    }

    /// The name of a mobile node's interface.
    fn interface(&self, number: u32) -> String {
        let name = self.interfaces.get(number as usize);
        name.cloned().unwrap_or_default()
    }

    /// Names of all VPN peers.
    pub fn tunnels(&self) -> Vec<String> {
        self.tunnels.keys().cloned().collect()
    }

    /// Names of the VPN peers that we can connect to.
    pub fn reachable(&self) -> Vec<String> {
        self.tunnels
            .iter()
            .filter(|(_, reachable)| **reachable)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Whether we connect to a peer by UDP and nothing else.
    pub fn is_by_udp(&self, peer: &str) -> bool {
        self.by_udp.contains(peer)
    }

    /// Where the keys of the file stand.
    pub const fn places(&self) -> &Places {
        &self.places
    }

    /// The table of a peer in dotted form.
    pub fn table(&self, name: &str) -> String {
        let kind = match self.kind(name) {
            PeerKind::Vpn => "peer",
            PeerKind::Licensed => "licensed",
            PeerKind::Gateway => "gateway",
            PeerKind::Neighbour => "neighbour",
        };
        format!("{kind}.{name}")
    }

    fn kind(&self, name: &str) -> PeerKind {
        if self.tunnels.contains_key(name) {
            PeerKind::Vpn
        } else if self.licensed.contains(name) {
            PeerKind::Licensed
        } else if self.adjacent.contains(name) {
            PeerKind::Neighbour
        } else {
            PeerKind::Gateway
        }
    }
}

/// `strata status`.
pub fn status(facts: &Facts, node: &Node, losses: &Losses, now: Instant) -> Status {
    let mut peers: Vec<_> = node
        .peers()
        .iter()
        .map(|status| peer(facts, status, now))
        .collect();
    peers.sort_by(|a, b| a.name.cmp(&b.name));
    Status {
        identity: facts.identity.clone(),
        roles: facts.roles.clone(),
        uptime_seconds: now.since(facts.started).as_secs(),
        warnings: facts.warnings(),
        locked: facts.locked.clone(),
        peers,
        mobile_ip: mobile_ip(facts, node, now),
        refused_stranger: node.refused_stranger().map(|refusal| refused(refusal, now)),
        drops: drops(node, losses),
        clamped: node.esp_counters().clamped,
        written: node.esp_counters().written,
        injected: node.esp_counters().injected,
        padded: traffic(node.esp_counters().padded),
        covered: node.esp_counters().covered,
        dummies: node.esp_counters().dummies(),
        path_mtu: control::PathMtu {
            too_long: node.esp_counters().too_long,
            disbelieved: node.disbelieved_path_mtus(),
        },
        congestion: congestion(node.esp_counters().congestion),
    }
}

fn mobile_ip(facts: &Facts, node: &Node, now: Instant) -> Option<MobileIp> {
    let (status, refusal) = node.mobile_ip()?;
    let left = |until: Option<Instant>| until.map(|until| until.since(now).as_secs());
    let part = match status {
        mobile_ip::Status::MobileNode {
            home,
            home_agent,
            registrations,
            route,
        } => MobilePart::MobileNode {
            home_address: home,
            home_agent,
            registrations: registrations
                .into_iter()
                .map(|one| MobileRegistration {
                    agent: one.at.agent,
                    care_of: one.at.care_of,
                    interface: facts.interface(one.at.interface),
                    sends: route == Some(one.at),
                    since_seconds: now.since(one.since).as_secs(),
                    left_seconds: left(one.until),
                })
                .collect(),
        },
        mobile_ip::Status::ForeignAgent { care_of, visitors } => MobilePart::ForeignAgent {
            care_of,
            visitors: visitors
                .into_iter()
                .map(|stay| MobileVisitor {
                    home_address: stay.visitor.home,
                    home_agent: stay.visitor.home_agent,
                    in_udp: stay.is_in_udp,
                    left_seconds: left(stay.until),
                    gone_to: stay.gone_to,
                })
                .collect(),
        },
        mobile_ip::Status::HomeAgent { address, homes } => MobilePart::HomeAgent {
            address,
            mobiles: homes
                .into_iter()
                .map(|(home_address, bindings)| MobileHome {
                    home_address,
                    bindings: bindings
                        .into_iter()
                        .map(|place| MobileBinding {
                            care_of: place.care_of,
                            udp: place.udp,
                            left_seconds: left(place.until),
                        })
                        .collect(),
                })
                .collect(),
        },
    };
    let last_refusal = refusal.map(|refusal| refused(refusal, now));
    Some(MobileIp { part, last_refusal })
}

/// `strata leases`.
pub fn leases(facts: &Facts, node: &Node) -> Leases {
    let all: Vec<_> = node.leases().collect();
    let pools = facts.pools.iter().map(|pool| {
        let ours = all.iter().filter(|lease| lease.pool == pool.name);
        let lent = |is_ipv4| {
            let lent = ours
                .clone()
                .filter(|lease| lease.addresses.of(is_ipv4).is_some());
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

fn routes(config: &Config, inside: &Inside) -> BTreeMap<String, Routes> {
    let asked = config.peers.iter();
    let asked = asked.filter(|peer| peer.routes == Routing::Subnets);
    let routes = asked.map(|peer| {
        let behind = inside.behind(peer);
        let reason = match behind.map(|behind| &behind.reachable) {
            None => RoutesReason::Awaited,
            Some(None) => RoutesReason::Unsaid,
            Some(Some(_)) => RoutesReason::Subnets,
        };
        let routes = Routes {
            reason,
            prefixes: texts(&inside.led(peer)),
            beyond: texts(behind.map_or(&[], |behind| &behind.beyond)),
        };
        (peer.party.name.clone(), routes)
    });
    routes.collect()
}

/// How far a peer is.
pub fn state(peer: &PeerStatus) -> PeerState {
    match peer.state {
        node::PeerState::Down => PeerState::Down,
        node::PeerState::Connecting => PeerState::Connecting,
        node::PeerState::Up => PeerState::Up,
    }
}

fn peer(facts: &Facts, status: &PeerStatus, now: Instant) -> Peer {
    Peer {
        name: status.name.clone(),
        kind: facts.kind(&status.name),
        identity: status.identity.to_string(),
        state: state(status),
        remote: status.remote,
        carrier: carrier(status.carrier),
        since_seconds: status.since.map(|since| now.since(since).as_secs()),
        last_refusal: status.refusal.as_ref().map(|refusal| refused(refusal, now)),
        ppk: status.ppk,
        clone: status.clones,
        ike_sas: status.sas,
        kem: status.kems.iter().map(ToString::to_string).collect(),
        window: status.windows.map(window),
        inside: status.addresses.iter().collect(),
        routes: facts.routes(&status.name).cloned(),
        children: status.children.iter().map(child).collect(),
        missing: status.missing.clone(),
    }
}

const fn window(windows: node::Windows) -> Window {
    Window {
        ours: windows.ours,
        theirs: windows.theirs,
        under_way: windows.under_way,
    }
}

fn refused((at, reason): &(Instant, String), now: Instant) -> Refusal {
    Refusal {
        seconds_ago: now.since(*at).as_secs(),
        reason: reason.clone(),
    }
}

fn child(status: &ChildStatus) -> Child {
    Child {
        name: status.name.clone(),
        spi_in: status.inbound.to_string(),
        spi_out: status.outbound.to_string(),
        kind: if status.zoned {
            ChildKind::Zoned
        } else {
            ChildKind::Plain
        },
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
        local: texts(&status.local),
        remote: texts(&status.remote),
        received: traffic(status.received),
        sent: traffic(status.sent),
    }
}

fn exchanges(exchanges: &Exchanges) -> Vec<String> {
    let group = exchanges.group.iter().map(ToString::to_string);
    let kems = exchanges.kems.iter().map(ToString::to_string);
    group.chain(kems).collect()
}

fn texts(selectors: &[TrafficSelector]) -> Vec<String> {
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

/// Everything that was dropped, whoever dropped it.
fn drops(node: &Node, losses: &Losses) -> BTreeMap<String, u64> {
    let esp = node.esp_counters();
    let esp = esp
        .drops()
        .map(|(why, count)| (format!("esp_{}", why.label()), count));
    let ike = node
        .ike_counters()
        .drops()
        .map(|(why, count)| (format!("ike_{}", why.label()), count));
    let system = losses
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

/// `strata paths`.
pub fn paths(node: &Node) -> Paths {
    let mut tunnels: Vec<_> = node.paths().iter().map(tunnel_paths).collect();
    tunnels.sort_by(|a, b| a.name.cmp(&b.name));
    Paths { tunnels }
}

fn tunnel_paths(status: &PathsStatus) -> TunnelPaths {
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
            carrier: carrier(candidate.carrier),
            standing: match candidate.standing {
                node::Standing::Silent => Standing::Silent,
                node::Standing::Refused => Standing::Refused,
                node::Standing::Fresh if used => Standing::Used,
                node::Standing::Fresh => Standing::Fresh,
            },
        }
    };
    TunnelPaths {
        name: status.name.clone(),
        local,
        remote,
        carrier: carrier(status.path.carrier),
        moved_by: match status.moves {
            Some(true) => Who::Us,
            Some(false) => Who::Peer,
            None => Who::Nobody,
        },
        candidates: status.candidates.iter().map(candidate).collect(),
    }
}

pub const fn carrier(carrier: model::Carrier) -> Carrier {
    match carrier {
        model::Carrier::Udp => Carrier::Udp,
        model::Carrier::Tcp => Carrier::Tcp,
        model::Carrier::Ip => Carrier::Ip,
    }
}

/// `strata zones`.
pub fn zones(node: &Node, now: Instant) -> Zones {
    Zones {
        composites: node
            .composite_sas()
            .iter()
            .map(|csa| composite(csa, now))
            .collect(),
        held: node
            .held_grants()
            .iter()
            .map(|held| held_grant(held, now))
            .collect(),
    }
}

fn composite(status: &CsaStatus, now: Instant) -> Composite {
    let licences = &status.agreement.licences;
    let nodes = licences
        .iter()
        .map(|licence| (&licence.node, licence.right));
    let nodes: BTreeSet<_> = nodes.collect();
    Composite {
        csa: format!("{:016x}", status.csa.0),
        peer: status.peer.clone(),
        spi_in: status.inbound.to_string(),
        spi_out: status.outbound.to_string(),
        map: status.agreement.fixed_runs(),
        spi_opaque_in: status.opaque.map(|(inbound, _)| inbound.to_string()),
        spi_opaque_out: status.opaque.map(|(_, outbound)| outbound.to_string()),
        level: level(status, now),
        signal: status.signal.to_string(),
        link: status.link.map(|link| control::Link {
            missing: link.missing,
            good: link.good,
        }),
        window: status.agreement.window,
        zones: status.agreement.zones.iter().map(Zone::from).collect(),
        holders: nodes
            .into_iter()
            .map(|(node, right)| holder(status, node, right, now))
            .collect(),
        not_agreed: permits(&status.missing, &status.agreement.zones),
    }
}

/// What may go without encryption.
fn level(status: &CsaStatus, now: Instant) -> Option<control::LevelGrant> {
    let (level, (inbound, outbound)) = status.level.zip(status.integrity)?;
    let grant = level.grant;
    Some(control::LevelGrant {
        class: grant.class.to_string(),
        spi_in: inbound.to_string(),
        spi_out: outbound.to_string(),
        packets: grant.packets,
        seconds: grant.seconds,
        renewals: grant.renewals,
        sent: level.sealed,
        received: level.opened,
        packets_left: level.packets_left(),
        seconds_left: level.seconds_left(now),
    })
}

/// A licensed node and what it may do, with the state of its grant if we are the one who grants.
fn holder(status: &CsaStatus, node: &Identity, right: Right, now: Instant) -> Holder {
    let licences = &status.agreement.licences;
    let may = |zone: &&model::Zone| {
        let mut licences = licences.iter();
        licences.any(|l| (&l.node, l.zone, l.right) == (node, zone.id, right))
    };
    let licensed = status.agreement.zones.iter().filter(may);
    let grant = status.grants.iter().find(|grant| grant.node == *node);
    Holder {
        node: node.to_string(),
        zones: licensed.map(|zone| zone.selector.to_string()).collect(),
        right: right.name().to_owned(),
        state: grant.map(|grant| grant_state(grant.state)),
        since_seconds: grant.map(|grant| now.since(grant.since).as_secs()),
        refusal: grant.and_then(|grant| grant.refusal.clone()),
    }
}

fn held_grant(held: &HeldGrant, now: Instant) -> Held {
    Held {
        csa: format!("{:016x}", held.csa.0),
        gateway: held.gateway.clone(),
        identity: held.identity.to_string(),
        spi_from_gateway: held.from_gateway.to_string(),
        spi_to_gateway: held.to_gateway.to_string(),
        opens: held.zones.iter().map(|zone| zone.0).collect(),
        writes: writes(held),
        injects: held.injects,
        payload_zone: held.payload_zone.0,
        lifetime_left_seconds: held.until.since(now).as_secs(),
    }
}

fn writes(held: &HeldGrant) -> Vec<String> {
    let fields = Right::Write.fields().iter().filter(|_| held.writes);
    fields.map(|field| (*field).to_owned()).collect()
}

const fn grant_state(state: node::GrantState) -> GrantState {
    match state {
        node::GrantState::Pending => GrantState::Pending,
        node::GrantState::Sent => GrantState::Sent,
        node::GrantState::Held => GrantState::Held,
        node::GrantState::Refused => GrantState::Refused,
    }
}

/// `strata flows`.
pub fn flows(node: &Node) -> Flows {
    let counters = node.snoop_counters();
    let total = counters.map_or_else(SnoopCounters::default, |counters| SnoopCounters {
        cached: counters.cached,
        retransmitted: counters.retransmitted_lost
            + counters.retransmitted_timeout
            + counters.retransmitted_persist,
        suppressed: counters.suppressed,
    });
    Flows {
        snoop: counters.is_some(),
        total,
        flows: node.flows().iter().map(flow).collect(),
    }
}

fn flow(status: &node::FlowStatus) -> Flow {
    let model::Flow {
        source,
        destination,
        source_port,
        destination_port,
        ..
    } = status.flow;
    Flow {
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
        zoned: status.line.is_some(),
        state: status.state.to_string(),
        cached_packets: status.packets as u64,
        cached_octets: status.octets as u64,
        round_trip_micros: status.srtt.map(|srtt| srtt.as_micros() as u64),
        retransmitted: status.retransmitted,
        suppressed: status.suppressed,
    }
}
