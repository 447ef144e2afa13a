//! Configurations of the four hosts of a hand-over: like those of `stratad`, with Mobile IP and a
//! tunnel.

use crypto::Secret;
use model::{Identity, Licence, Mode, Right, TrafficSelector, ZoneId, ZoneSelector, ZoneSuite};
use node::mobile_ip::{
    self, Algorithm, Association, ForeignAgentConfig, HomeAgentConfig, Lifetime, MobileNodeConfig,
    Replay,
};
use node::{Addressing, Config, Handover, Peer, Places, Role, Slot, Stance, ZonePolicy};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Indices of the hosts.
pub const MOBILE: usize = 0;
pub const HOME: usize = 1;
pub const NEAR: usize = 2;
pub const FAR: usize = 3;

/// Addresses of the hosts: the mobile node's home address, the home agent's address, and the
/// agents' care-of addresses.
pub const ADDRESSES: [Ipv4Addr; 4] = [
    Ipv4Addr::new(10, 66, 0, 7),
    Ipv4Addr::new(192, 0, 2, 1),
    Ipv4Addr::new(198, 51, 100, 2),
    Ipv4Addr::new(203, 0, 113, 2),
];

const NAMES: [&str; 4] = [
    "alice@example.net",
    "gw.example.net",
    "fa.example.net",
    "fb.example.net",
];

/// Names that the ends have for each other.
pub const GATEWAY: &str = "office";
pub const ALICE: &str = "alice";

/// Interfaces of the mobile node on which it hears the agents, and the two interfaces of an agent.
pub const LINKS: [u32; 2] = [7, 8];
pub const AIR: u32 = 3;
pub const WIRE: u32 = 2;

/// Kind of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// Plain ESP: only the ends have its keys.
    Plain,
    /// In zones. Both agents may read the headers, each at its own address, and get the keys in
    /// this way.
    Zoned(Handover),
}

/// Returns the configuration of a host.
pub fn config(who: usize, is: Tunnel) -> Config {
    let tunnel = |local: [u8; 4], local_length, remote: [u8; 4], remote_length| Role::Vpn {
        local: vec![selector(local, local_length)].into(),
        remote: vec![selector(remote, remote_length)].into(),
        addressing: Addressing::Fixed,
        zones: policy(is).into(),
        mode: Mode::Tunnel,
    };
    let end = |name, other, begins, role| {
        let mut end = peer(name, other, begins, role);
        end.ike.slots = slots(is);
        end.places = places(is);
        end
    };
    let (mobile, office) = ([10, 1, 0, 2], [10, 8, 0, 0]);
    let peers = match who {
        MOBILE => vec![end(GATEWAY, HOME, true, tunnel(mobile, 32, office, 16))],
        HOME => vec![
            end(ALICE, MOBILE, false, tunnel(office, 16, mobile, 32)),
            peer("fa", NEAR, true, Role::Licensed),
            peer("fb", FAR, true, Role::Licensed),
        ],
        agent => {
            let gateway = peer("gw", HOME, false, Role::Gateway);
            let begins = agent == FAR;
            let other = NEAR + FAR - agent;
            let asked = is == Tunnel::Zoned(Handover::Dkm);
            let neighbour = asked.then(|| peer("neighbour", other, begins, Role::Neighbour));
            [gateway].into_iter().chain(neighbour).collect()
        }
    };
    Config {
        mobile_ip: Some(part(who)),
        neighbours: match who {
            NEAR => vec![identity(FAR)],
            FAR => vec![identity(NEAR)],
            _ => Vec::new(),
        },
        ..Config::new(identity(who), peers)
    }
}

/// The agents, each licensed at its own address.
const AGENTS: [usize; 2] = [NEAR, FAR];

/// Returns a slot for each agent. The first child has no licences.
fn slots(is: Tunnel) -> Vec<Slot> {
    let slot = |who: usize| {
        let licence = Licence {
            node: identity(who),
            zone: ZoneId::DESIGNATED,
            right: Right::Read,
        };
        Slot::new(identity(who), [licence], &policy(is))
    };
    match is {
        Tunnel::Plain => Vec::new(),
        Tunnel::Zoned(_) => AGENTS.map(slot).into(),
    }
}

/// Returns the agents' addresses, for the tunnel of either end.
fn places(is: Tunnel) -> Option<Places> {
    let Tunnel::Zoned(handover) = is else {
        return None;
    };
    let place = |agent: usize| {
        (
            identity(agent),
            vec![selector(ADDRESSES[agent].octets(), 32)],
        )
    };
    let nodes = AGENTS.map(place).into();
    Some(Places {
        handover,
        holders: None,
        nodes,
        limits: Vec::new(),
    })
}

fn policy(is: Tunnel) -> ZonePolicy {
    ZonePolicy {
        map: model::MapKind::Changeable,
        stance: match is {
            Tunnel::Plain => Stance::Refuse,
            Tunnel::Zoned(_) => Stance::Require,
        },
        zones: vec![
            (ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
            (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
        ],
        window: 4096,
        level: None,
        licences: Vec::new(),
    }
}

fn peer(name: &str, who: usize, begins: bool, role: Role) -> Peer {
    let mut peer = Peer::new(name, identity(who), role);
    peer.ike.address = begins.then_some(IpAddr::V4(ADDRESSES[who]));
    peer.ike.psk = Some(Secret::new(b"a key for measurements only".to_vec()));
    peer
}

/// Returns the Mobile IP role of a host.
fn part(who: usize) -> mobile_ip::Config {
    match who {
        MOBILE => mobile_ip::Config::MobileNode(MobileNodeConfig {
            home: ADDRESSES[MOBILE],
            home_agent: ADDRESSES[HOME],
            key: key(),
            agent_keys: BTreeMap::new(),
            interfaces: LINKS.to_vec(),
            lifetime: Lifetime(300),
            simultaneous: false,
        }),
        HOME => mobile_ip::Config::HomeAgent(HomeAgentConfig::new(
            ADDRESSES[HOME],
            BTreeMap::from([(ADDRESSES[MOBILE], key())]),
        )),
        agent => mobile_ip::Config::ForeignAgent(ForeignAgentConfig::new(AIR, ADDRESSES[agent])),
    }
}

fn key() -> Association {
    Association {
        spi: 4097,
        algorithm: Algorithm::HmacSha256,
        key: Secret::new(vec![1; 32]),
        replay: Replay::TIMESTAMPS,
    }
}

/// Returns the index of the host with this identity.
pub fn who(identity: &Identity) -> Option<usize> {
    let name = identity.to_string();
    NAMES.iter().position(|known| *known == name)
}

fn identity(who: usize) -> Identity {
    NAMES[who].parse().expect("a name is an identity")
}

fn selector(address: [u8; 4], length: u8) -> TrafficSelector {
    let selector = TrafficSelector::from_prefix(Ipv4Addr::from(address).into(), length);
    selector.expect("the lengths above fit IPv4")
}
