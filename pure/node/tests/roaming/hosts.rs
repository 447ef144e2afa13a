//! The five hosts and their configurations.

use crypto::Secret;
use model::{
    Identity, Licence, MapKind, Mode, Right, TrafficSelector, Wildcard, ZoneId, ZoneSelector,
    ZoneSuite,
};
use node::mobile_ip::{
    Algorithm, Association, Config as Part, ForeignAgentConfig, HomeAgentConfig, Lifetime,
    MobileNodeConfig, Replay,
};
use node::{
    Addressing, Config, Domain, Handover, Lifetimes, Limit, Peer, Places, Role, Slot, Stance,
    ZonePolicy, slot_name,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

pub const MOBILE: usize = 0;
pub const HOME: usize = 1;
/// Index of the first agent; the others follow.
pub const AGENT: usize = 2;
pub const AGENTS: usize = 3;
pub const HOSTS: usize = AGENT + AGENTS;

pub const NAMES: [&str; HOSTS] = [
    "alice@example.net",
    "gw.example.net",
    "fa.example.net",
    "fb.example.net",
    "fc.example.net",
];

/// Name of home at the agents.
pub const GATEWAY: &str = "gw";

/// The home address, the home agent's address and the care-of addresses.
pub const ADDRESSES: [Ipv4Addr; HOSTS] = [
    Ipv4Addr::new(10, 66, 0, 7),
    Ipv4Addr::new(192, 0, 2, 1),
    Ipv4Addr::new(198, 51, 100, 2),
    Ipv4Addr::new(203, 0, 113, 2),
    Ipv4Addr::new(198, 18, 0, 2),
];

/// Differences between worlds.
#[derive(Clone)]
pub struct Policies {
    pub handover: Handover,
    /// Number of agents that share keys, if any do: at the mobile node, and at the gateway.
    pub holders: [Option<usize>; 2],
    /// Neighbours configured at each agent.
    pub neighbours: [Vec<usize>; AGENTS],
    pub simultaneous: bool,
    /// Agents, numbered from 0, that are licensed by the mobile node, and by the gateway.
    pub licensed: [Vec<usize>; 2],
    /// Lifetime of child SAs.
    pub child_lifetime: Duration,
    /// Silence after which an end asks whether the other one is there.
    pub liveness: Duration,
    /// True if agents may read payloads as well.
    pub payload: bool,
    /// Most agents with keys at once at the mobile node and at home, if both ends license the
    /// agents by their domain.
    pub domain: Option<[u8; 2]>,
    /// True if the agents of the domain may write.
    pub writes: bool,
    /// An agent that the mobile node names beside the domain, and the agent at whose place.
    pub named: Option<[usize; 2]>,
}

impl Policies {
    pub fn new(handover: Handover) -> Self {
        Self {
            handover,
            holders: [None, None],
            neighbours: [vec![1, 2], vec![0, 2], vec![0, 1]],
            simultaneous: false,
            licensed: [vec![0, 1, 2], vec![0, 1, 2]],
            child_lifetime: Lifetimes::default().child,
            liveness: Duration::from_secs(5),
            payload: false,
            domain: None,
            writes: false,
            named: None,
        }
    }

    /// Lets both ends license the agents by their domain, up to a number of them at once.
    pub fn by_domain(handover: Handover, most: u8) -> Self {
        Self {
            domain: Some([most; 2]),
            ..Self::new(handover)
        }
    }

    /// Lets agents share keys up to a limit. The neighbour of A is B, that of B is C, and that of C
    /// is A.
    pub fn shared(holders: usize) -> Self {
        Self {
            holders: [Some(holders); 2],
            neighbours: [vec![1], vec![2], vec![0]],
            ..Self::new(Handover::Pkd)
        }
    }

    /// Returns the agents near a mobile node at these agents: the agents and their neighbours.
    pub fn near(&self, places: &BTreeSet<usize>) -> BTreeSet<usize> {
        let next = places.iter().flat_map(|place| &self.neighbours[*place]);
        places.iter().chain(next).copied().collect()
    }

    const fn right(&self) -> Right {
        if self.writes {
            Right::Write
        } else {
            Right::Read
        }
    }

    /// Returns the slots of an end.
    fn slots(&self, end: usize) -> Vec<Slot> {
        let agents = &self.licensed[end];
        if let Some(most) = self.domain.filter(|_| end == MOBILE) {
            return slots_of_domain(most[MOBILE], self.right(), self.named);
        }
        match self.holders[end] {
            None => {
                let zones = if self.payload { 1..=2 } else { 1..=1 };
                let slot = |agent: &usize| {
                    let licences = zones.clone().map(|zone| Licence {
                        zone: ZoneId(zone),
                        right: self.right(),
                        ..licence(agent)
                    });
                    let slot = Slot::new(identity(AGENT + agent), licences, &self::zones());
                    let place = self.domain.map(|_| place(*agent));
                    Slot {
                        place: place.unwrap_or_default(),
                        ..slot
                    }
                };
                agents.iter().map(slot).collect()
            }
            Some(_) => {
                let nodes = agents.iter().map(|agent| identity(AGENT + agent)).collect();
                let licences = agents.iter().map(licence);
                vec![Slot::shared(nodes, licences, &zones())]
            }
        }
    }
}

/// Returns the slots of the mobile node for the domain of the agents, and for one that it names.
fn slots_of_domain(most: u8, right: Right, named: Option<[usize; 2]>) -> Vec<Slot> {
    let pattern = "*.example.net".parse().unwrap();
    let agent = named.map(|[agent, _]| agent);
    let domain = Domain {
        names: Wildcard::read(&pattern).unwrap(),
        named: agent.iter().map(|agent| identity(AGENT + agent)).collect(),
        rights: vec![(ZoneId::DESIGNATED, right)],
    };
    let slot = |number| Slot::of_domain(&pattern, number, domain.clone(), &zones());
    let by_name = |agent| Slot::new(identity(AGENT + agent), [licence(&agent)], &zones());
    let named = agent.into_iter().map(by_name);
    named.chain((1..=most).map(slot)).collect()
}

/// Returns the limit at home of the agents with keys at once.
fn limit(agents: &[usize], most: u8) -> Limit {
    let slots = agents
        .iter()
        .map(|agent| slot_name([&identity(AGENT + agent)]));
    Limit {
        slots: slots.collect(),
        most: most.into(),
    }
}

/// Returns the addresses that identify the location of an agent.
fn place(agent: usize) -> Vec<TrafficSelector> {
    let at = TrafficSelector::from_prefix(ADDRESSES[AGENT + agent].into(), 32);
    at.into_iter().collect()
}

pub fn identity(who: usize) -> Identity {
    NAMES[who].parse().unwrap()
}

/// Returns the configuration of a host.
pub fn config(who: usize, policies: &Policies) -> Config {
    let end = |who, mut peer: Peer| {
        peer.ike.lifetimes.child = policies.child_lifetime;
        peer.ike.liveness = policies.liveness;
        peer.ike.slots = policies.slots(who);
        peer
    };
    let mut peers = match who {
        MOBILE => {
            let role = vpn("10.1.0.2", 32, "10.8.0.0", 16);
            vec![end(MOBILE, peer("office", HOME, Some(HOME), role))]
        }
        HOME => {
            let role = vpn("10.8.0.0", 16, "10.1.0.2", 32);
            let alice = end(HOME, peer("alice", MOBILE, None, role));
            let agents =
                (AGENT..HOSTS).map(|agent| peer(NAMES[agent], agent, Some(agent), Role::Licensed));
            std::iter::once(alice).chain(agents).collect()
        }
        _ => {
            // The later agent initiates.
            let neighbour = |other: usize| {
                let at = Some(other).filter(|other| *other < who);
                peer(NAMES[other], other, at, Role::Neighbour)
            };
            let others = (AGENT..HOSTS).filter(|other| *other != who);
            let others = others.filter(|_| policies.handover == Handover::Dkm);
            let gateway = peer(GATEWAY, HOME, None, Role::Gateway);
            std::iter::once(gateway)
                .chain(others.map(neighbour))
                .collect()
        }
    };
    if who < AGENT {
        let agents = policies.licensed[who].iter();
        let known = agents.filter(|_| who == HOME || policies.domain.is_none());
        let known = known.map(|agent| [*agent; 2]);
        let named = policies.named.filter(|_| who == MOBILE);
        let nodes = known.chain(named);
        let nodes = nodes.map(|[agent, at]| (identity(AGENT + agent), place(at)));
        let limits = policies.domain.iter().filter(|_| who == HOME);
        let limits = limits.map(|most| limit(&policies.licensed[who], most[who]));
        peers[0].places = Some(Places {
            handover: policies.handover,
            holders: policies.holders[who],
            nodes: nodes.collect(),
            limits: limits.collect(),
        });
    }
    let own = who.checked_sub(AGENT);
    let neighbours = own.map(|own| policies.neighbours[own].iter());
    let neighbours = neighbours.into_iter().flatten();
    let neighbours = neighbours.map(|agent| identity(AGENT + agent)).collect();
    Config {
        start: if who == MOBILE {
            vec!["office".to_owned()]
        } else {
            Vec::new()
        },
        snoop: (who >= AGENT).then(node::SnoopConfig::default),
        mobile_ip: Some(part(who, policies)),
        neighbours,
        grant_lifetime: Duration::from_secs(3600),
        ..Config::new(identity(who), peers)
    }
}

fn part(who: usize, policies: &Policies) -> Part {
    let key = || Association {
        spi: 4097,
        algorithm: Algorithm::HmacSha256,
        key: Secret::new(vec![7; 32]),
        replay: Replay::TIMESTAMPS,
    };
    match who {
        MOBILE => Part::MobileNode(MobileNodeConfig {
            home: ADDRESSES[MOBILE],
            home_agent: ADDRESSES[HOME],
            key: key(),
            agent_keys: BTreeMap::new(),
            interfaces: (0..AGENTS as u32).collect(),
            lifetime: Lifetime(60),
            simultaneous: policies.simultaneous,
        }),
        HOME => Part::HomeAgent(HomeAgentConfig::new(
            ADDRESSES[HOME],
            BTreeMap::from([(ADDRESSES[MOBILE], key())]),
        )),
        agent => Part::ForeignAgent(ForeignAgentConfig::new(0, ADDRESSES[agent])),
    }
}

fn zones() -> ZonePolicy {
    ZonePolicy {
        map: MapKind::Changeable,
        stance: Stance::Require,
        zones: vec![
            (ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
            (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
        ],
        window: 4096,
        licences: Vec::new(),
        level: None,
    }
}

fn licence(agent: &usize) -> Licence {
    Licence {
        node: identity(AGENT + agent),
        zone: ZoneId::DESIGNATED,
        right: Right::Read,
    }
}

fn vpn(local: &str, local_len: u8, remote: &str, remote_len: u8) -> Role {
    let selectors = |text: &str, length| {
        let selector = TrafficSelector::from_prefix(text.parse().unwrap(), length);
        selector.into_iter().collect()
    };
    Role::Vpn {
        local: selectors(local, local_len),
        remote: selectors(remote, remote_len),
        addressing: Addressing::Fixed,
        zones: zones().into(),
        mode: Mode::Tunnel,
    }
}

fn peer(name: &str, who: usize, at: Option<usize>, role: Role) -> Peer {
    let mut peer = Peer::new(name, identity(who), role);
    peer.ike.address = at.map(|at| ADDRESSES[at].into());
    peer.ike.psk = Some(Secret::new(b"correct horse battery staple".to_vec()));
    peer.ike.liveness = Duration::from_secs(5);
    peer
}
