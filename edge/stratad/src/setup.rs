//! Conversion of the configuration to that of a [`node::Node`].

use crate::mobile;
use config::{Action, Address, Addressing, Child, Config, Handover, Party, Peer, Stance, Start};
use crypto::{Secret, TrustStore};
use model::{Allowance, Features, LevelChoice, Shared, Shares};
use resumption::Strategy;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time that a licensed node may keep a grant's keys without hearing from its gateway.
const GRANT_LIFETIME: Duration = Duration::from_secs(8 * 3600);

/// Replay window of composite SAs: room for a cache of a second at 4,000 packets/s.
const WINDOW: u32 = 4096;

/// Returns the node's configuration.
pub fn node(config: &Config) -> node::Config {
    let mut common = Common::default();
    let vpn: Vec<_> = config
        .peers
        .iter()
        .map(|from| common.share(vpn_peer(from, config)))
        .collect();
    let licensed = config.licensed.iter().map(|licensed| {
        let address = Some(&licensed.address);
        peer(&licensed.party, address, node::Role::Licensed)
    });
    let gateways = config.gateways.iter().map(|gateway| {
        peer(
            &gateway.party,
            gateway.address.as_ref(),
            node::Role::Gateway,
        )
    });
    let adjacent = config.adjacent.iter().map(|neighbour| {
        let address = neighbour.address.as_ref();
        peer(&neighbour.party, address, node::Role::Neighbour)
    });
    let start = config.peers.iter().filter(|peer| peer.start == Start::Auto);
    let snoop = config.snoop.clone().unwrap_or_default();
    node::Config {
        identity: config.identity.clone(),
        credential: config.credential.as_ref().map(credential),
        trust: TrustStore::new(config.authorities.clone())
            .with_revocation(config.lists.clone(), config.revocation),
        start: start.map(|peer| peer.party.name.clone()).collect(),
        peers: vpn
            .into_iter()
            .chain(licensed)
            .chain(gateways)
            .chain(adjacent)
            .collect(),
        encapsulation: config.listen.encapsulation,
        ike_port: config.listen.ike,
        natt_port: config.listen.nat,
        workers: config.tunnel.workers,
        // A node that listens at all addresses announces none: that would disclose every network it
        // is in (RFC 4555 section 5.5).
        addresses: config.listen.addresses.clone(),
        fragment: config.listen.fragment,
        resumption: strategy(config),
        elsewhere: config.redirect.as_ref().map(|redirect| node::Elsewhere {
            to: destination(&redirect.to),
            at_once: redirect.when == config::When::Init,
        }),
        policies: config.policies.iter().map(policy).collect(),
        neighbours: config.neighbours.clone(),
        clamp: config.tunnel.clamp.then_some(config.tunnel.mtu),
        path_mtu: match config.tunnel.path_mtu {
            config::PathMtu::Off => node::Discovery::Off,
            config::PathMtu::Icmp => node::Discovery::Icmp,
            config::PathMtu::Probe => node::Discovery::Probe,
        },
        snoop: config
            .divert
            .as_ref()
            .filter(|_| snoop.enabled)
            .map(|_| snoop_config(&snoop)),
        window: config.regulate.filter(|_| config.divert.is_some()),
        stand_in: config
            .stand_in
            .filter(|_| config.divert.is_some())
            .map(|stand_in| node::Patience {
                after: stand_in.after,
                limit: stand_in.limit,
            }),
        mobile_ip: config.mobility.as_ref().map(mobile::part),
        grant_lifetime: GRANT_LIFETIME,
        key_log: false,
    }
}

/// The parts of peers that many have in common, and share.
#[derive(Default)]
struct Common {
    terms: Shares<node::PeerTerms>,
    zones: Shares<node::ZonePolicy>,
    pools: Shares<node::Pool>,
}

impl Common {
    fn share(&mut self, mut peer: node::Peer) -> node::Peer {
        self.terms.share(&mut peer.ike.terms);
        if let node::Role::Vpn {
            addressing, zones, ..
        } = &mut peer.ike.role
        {
            self.zones.share(zones);
            if let node::Addressing::Lent(pool) = addressing {
                self.pools.share(pool);
            }
        }
        peer
    }
}

/// Returns the places of nodes whose licences apply nowhere else.
fn places(peer: &Peer, config: &Config) -> node::Places {
    let slots = peer.zones.slots.iter();
    let named = slots.map(|slot| (slot.node.clone(), slot.at.clone()));
    let domains = &peer.zones.domains;
    let members = domains.iter();
    let members = members.flat_map(|domain| domain.members(config, peer));
    let members = members.map(|node| (node.party.identity.clone(), node.place()));
    let limits = domains.iter().map(|domain| node::Limit {
        slots: domain
            .members(config, peer)
            .map(|node| node::slot_name([&node.party.identity]))
            .collect(),
        most: domain.most.into(),
    });
    node::Places {
        handover: match peer.zones.handover {
            Handover::Push => node::Handover::Push,
            Handover::Pkd => node::Handover::Pkd,
            Handover::Dkm => node::Handover::Dkm,
        },
        holders: peer.zones.holders,
        nodes: named.chain(members).collect(),
        limits: limits.collect(),
    }
}

/// Returns the slots of a peer.
fn slots(peer: &Peer, config: &Config, zones: &node::ZonePolicy) -> Vec<node::Slot> {
    let named = peer.zones.groups().into_iter().map(|group| {
        let nodes = group.iter().map(|slot| slot.node.clone()).collect();
        let licences = group.iter().flat_map(|slot| slot.licences.iter().cloned());
        // With several paths, a node is on those with an address of its place.
        let places = group.iter().filter(|_| peer.features.paths > 1);
        node::Slot {
            paths: places.flat_map(|slot| slot.at.iter().cloned()).collect(),
            ..node::Slot::shared(nodes, licences, zones)
        }
    });
    let domains = peer.zones.domains.iter();
    let domains = domains.flat_map(|domain| slots_of_domain(domain, peer, config, zones));
    named.chain(domains).collect()
}

/// Returns the slots of a domain: one for each of its nodes if we distribute their keys, otherwise
/// as many as nodes may have keys at once.
fn slots_of_domain(
    from: &config::Domain,
    peer: &Peer,
    config: &Config,
    zones: &node::ZonePolicy,
) -> Vec<node::Slot> {
    let domain = node::Domain {
        names: from.names(),
        named: from.named(peer),
        rights: from.rights(),
    };
    let of_node = |node: &config::Licensed| {
        let identity = &node.party.identity;
        let licences = domain.licences(identity);
        node::Slot {
            place: node.place(),
            ..node::Slot::new(identity.clone(), licences, zones)
        }
    };
    let own: Vec<_> = from.members(config, peer).map(of_node).collect();
    if !own.is_empty() {
        return own;
    }
    let any = |number| node::Slot::of_domain(&from.node, number, domain.clone(), zones);
    (1..=from.most).map(any).collect()
}

fn level_choice(peer: &Peer) -> LevelChoice {
    LevelChoice {
        every: peer.levels.every,
        opaque_below: peer.levels.opaque_below,
        ..LevelChoice::default()
    }
}

/// Returns the interval between packets at a rate per second.
fn interval(rate: u16) -> Duration {
    Duration::from_secs(1) / u32::from(rate.max(1))
}

/// Returns how long peers may resume their sessions.
pub const fn strategy(config: &Config) -> Strategy {
    Strategy {
        clocked: config.sessions.clocked,
        established: config.sessions.established,
        data: config.sessions.data,
        by_value: config.sessions.tickets_by_value,
    }
}

fn vpn_peer(from: &Peer, config: &Config) -> node::Peer {
    let zones = node::ZonePolicy {
        stance: match from.zones.stance {
            Stance::Accept => node::Stance::Accept,
            Stance::Require => node::Stance::Require,
            Stance::Refuse => node::Stance::Refuse,
        },
        zones: from.layout().collect(),
        map: from.zones.map.clone(),
        window: WINDOW,
        licences: from.zones.licences.clone(),
        level: from.levels.integrity,
    };
    let slots = slots(from, config, &zones);
    let role = node::Role::Vpn {
        local: from.local.clone(),
        remote: from.remote.clone(),
        addressing: match (&from.addressing, config.pool(from)) {
            (Addressing::Requested, _) => node::Addressing::Requested,
            (_, Some(from)) => node::Addressing::Lent(pool(from, config).into()),
            (_, None) => node::Addressing::Fixed,
        },
        zones: zones.into(),
        mode: from.mode,
    };
    let mut peer = peer(&from.party, from.address.as_ref(), role);
    peer.dscp = from.dscp;
    peer.sizes = from.tfc.sizes(config.tunnel.mtu);
    peer.cover = from.cover.map(interval);
    peer.level = level_choice(from);
    let has_places = !from.zones.slots.is_empty() || !from.zones.domains.is_empty();
    peer.places = has_places.then(|| places(from, config));
    peer.ike.ppk = from.ppk.as_deref().map(ppk).map(Box::new);
    let unencrypted = from.unencrypted.as_ref();
    peer.ike.unencrypted = unencrypted.map(|from| {
        Box::new(node::Unencrypted {
            suites: from.suites.clone(),
            until: from.until,
            packets: Allowance::new(from.packets),
        })
    });
    let users = from.user_identities();
    peer.ike.users = users.map(|identities| {
        Box::new(node::UserPolicy {
            identities,
            most: from.users,
        })
    });
    let terms = &mut peer.ike.terms;
    terms.unique = from.unique;
    terms.lifetimes.child = from.rekey;
    terms.lifetimes.pfs = from.pfs;
    // Each of several paths has one tunnel.
    let resources = match from.features.paths {
        1 => config.tunnel.workers.get(),
        _ => 1,
    };
    terms.features = Features {
        resources: from.resources.unwrap_or(resources),
        ..from.features
    };
    terms.redirects.clone_from(&from.redirects);
    terms.tcp = match from.tcp {
        config::Tcp::Off => node::Tcp::Off,
        config::Tcp::Fallback => node::Tcp::Fallback(from.tcp_port),
        config::Tcp::Always => node::Tcp::Always(from.tcp_port),
    };
    terms.resumption = match from.resume {
        config::Resume::Off => node::Resumption::Off,
        config::Resume::Ticket => node::Resumption::Tickets,
        config::Resume::Skid3 => node::Resumption::Skid3,
        config::Resume::Skid3Pfs => node::Resumption::Skid3Pfs,
    };
    terms.children = from.children.iter().map(child).collect();
    terms.rules = from.traffic.iter().map(rule).collect();
    terms.slots = slots;
    peer
}

fn rule(from: &config::InterfaceTraffic) -> node::PathRule {
    node::PathRule {
        interface: from.interface.clone(),
        remote: from.remote.clone(),
    }
}

fn child(from: &Child) -> node::ChildPolicy {
    node::ChildPolicy {
        name: from.name.clone(),
        local: from.local.clone(),
        remote: from.remote.clone(),
        mode: from.mode,
        lifetime: from.rekey,
        pfs: from.pfs,
        auto: from.start == Start::Auto,
    }
}

fn ppk(from: &config::Ppk) -> node::Ppk {
    node::Ppk {
        id: from.id.clone(),
        secret: Secret::new(from.key.expose().to_vec()),
        required: from.required,
    }
}

/// Returns the pools of a configuration.
pub fn pools(config: &Config) -> Vec<node::Pool> {
    let pools = config.pools.iter();
    pools.map(|from| pool(from, config)).collect()
}

/// Converts a pool. Our own addresses are never leased, nor addresses that no host may have: the
/// first and last of an IPv4 prefix (RFC 1122 section 3.2.1.3), and the first of an IPv6 prefix
/// (RFC 4291 section 2.6.1).
fn pool(from: &config::Pool, config: &Config) -> node::Pool {
    let wide = |prefix: &&config::Prefix| match prefix.address() {
        IpAddr::V4(_) => prefix.length() < 31,
        IpAddr::V6(_) => prefix.length() < 127,
    };
    let edges = from.addresses.iter().filter(wide).flat_map(|prefix| {
        let all = prefix.selector();
        [Some(all.first), all.first.is_ipv4().then_some(all.last)]
    });
    let own = config.tunnel.addresses.iter().map(|own| own.address());
    node::Pool {
        name: from.name.clone(),
        addresses: from.selectors(),
        reserved: edges.flatten().chain(own).collect(),
        dns: from.dns.clone(),
        subnets: from
            .subnets
            .iter()
            .map(|prefix| prefix.selector())
            .collect(),
        lease: from.lease,
    }
}

fn peer(party: &Party, address: Option<&Address>, role: node::Role) -> node::Peer {
    let psk = party.psk.as_ref();
    let mut peer = node::Peer::new(&party.name, party.identity.clone(), role);
    peer.ike.address = address.and_then(Address::ip);
    peer.host = address.and_then(Address::name).map(Into::into);
    peer.port = address.and_then(|address| address.port);
    peer.ike.psk = psk.map(|psk| Secret::new(psk.expose().to_vec()));
    peer.ike.key.clone_from(&party.pubkey);
    peer.ike.terms = Shared::from(node::PeerTerms {
        suites: party.suites.clone(),
        groups: party.groups.clone(),
        kems: party.kems.clone(),
        liveness: party.liveness,
        lifetimes: node::Lifetimes {
            ike: party.ike_rekey,
            reauth: party.reauth.unwrap_or_default(),
            ..node::Lifetimes::default()
        },
        window: party.window,
        certificate: node::CertificateTerms {
            authorities: party.authorities.clone(),
            unit: party.unit.clone(),
        },
        ..node::PeerTerms::default()
    });
    peer
}

fn destination(host: &config::Host) -> node::Destination {
    match host {
        config::Host::Ip(address) => node::Destination::Address(*address),
        config::Host::Link(on) => node::Destination::Address(on.address.into()),
        config::Host::Name(name) => node::Destination::Name(name.clone()),
    }
}

fn credential(from: &config::Credential) -> node::Credential {
    node::Credential {
        chain: from.chain.iter().map(|one| one.der.clone()).collect(),
        key: from.key.raw().clone(),
        algorithm: from.key.public().kind.signs_with(),
        signer: Arc::new(Key(from.key.clone())),
    }
}

/// The private key, as the node uses it.
#[derive(Debug)]
struct Key(Arc<config::PrivateKey>);

impl node::Signer for Key {
    fn sign(&self, octets: &[u8]) -> Option<Vec<u8>> {
        self.0.sign(octets)
    }
}

fn policy(policy: &config::Policy) -> node::Policy {
    let action = match policy.action {
        Action::Bypass => node::Action::Bypass,
        Action::Discard => node::Action::Discard,
    };
    node::Policy {
        action,
        remote: policy.remote.clone(),
    }
}

fn snoop_config(snoop: &config::Snoop) -> node::SnoopConfig {
    node::SnoopConfig {
        flows: snoop.flows as usize,
        packets_per_flow: snoop.packets as usize,
        octets: usize::try_from(snoop.octets).unwrap_or(usize::MAX),
        ..node::SnoopConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::assigned::AssignedAddresses;
    use crate::config_view::ConfigView;
    use crate::naming::Outer;
    use crate::sample::Folder;
    use crate::{memory, plan, setup};
    use model::{Identity, Instant};
    use node::Node;
    use std::collections::BTreeSet;
    use std::fmt::Write;
    use std::sync::Arc;

    /// Octets that a daemon may request for a configured peer, before the peer has been up. The
    /// allocator and the kernel's pages add to this: `strata-lab bench ike --tunnels` measures all.
    const MOST_PER_PEER: i64 = 1050;

    fn text(peers: usize) -> String {
        let mut text = "[node]\nid = \"hub.example.net\"\n".to_owned();
        for number in 0..peers {
            let [high, low] = (number as u16).to_be_bytes();
            let peer = format!(
                "[peer.i{number}]\nid = \"{number:05}.example\"\npsk = \"a.psk\"\n\
                 local = [\"10.8.0.0/16\"]\nremote = [\"172.16.{high}.{low}/32\"]\n"
            );
            text.write_str(&peer).expect("a string has room");
        }
        text
    }

    /// A licence by name holds for its node, in place of those of the domain.
    #[test]
    fn a_domain_is_without_the_nodes_that_the_peer_names() {
        const FILE: &str = r#"[node]
id = "alice@example.net"
[peer.gw]
address = "192.0.2.1"
id = "gw.example.net"
psk = "a.psk"
local = ["10.1.0.2/32"]
remote = ["10.8.0.0/16"]
zones = "require"
licences = [
    { node = "*.sat.example.net", zones = ["headers"], right = "read" },
    { node = "a.sat.example.net", zones = ["headers"], right = "read", at = ["10.9.0.0/24"] },
    { node = "a.example.net", zones = ["headers"], right = "read", at = ["10.10.0.0/24"] },
]
"#;
        let folder = Folder::new("setup-domain");
        folder.write_key("a.psk", "one key, long enough");
        let node = setup::node(&folder.load(FILE));
        let slots = node.peers[0].ike.slots.iter();
        let domains: Vec<_> = slots.filter_map(|slot| slot.domain.as_ref()).collect();
        let named: BTreeSet<Identity> = ["a.sat.example.net".parse().unwrap()].into();
        assert_eq!(domains.len(), 4);
        assert!(domains.iter().all(|domain| domain.named == named));
    }

    /// All that the daemon keeps of its configuration, with the plan of routes.
    #[test]
    fn a_configured_peer_takes_little_memory() {
        const PEERS: i64 = 1000;
        let folder = Folder::new("setup-memory");
        folder.write_key("a.psk", "a key of the usual length, 43 letters or so");
        let taken = |peers: i64| {
            let text = text(peers as usize);
            let before = memory::in_use();
            let config = Arc::new(folder.load(&text));
            let view = ConfigView::new(&config, Instant::ZERO);
            let plan = plan::plan(&config, &AssignedAddresses::default(), &[]);
            let outer = Outer::default();
            let guard = plan::guard(&config, &AssignedAddresses::default(), &outer, &[]);
            let node = Node::new(setup::node(&config), [1; 32], Instant::ZERO);
            let taken = memory::in_use() - before;
            drop((config, view, plan, guard, node));
            taken
        };
        let each = (taken(PEERS + 1) - taken(1)) / PEERS;
        assert!(each <= MOST_PER_PEER, "{each} octets");
    }
}
