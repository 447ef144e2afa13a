mod attacks;
mod flow;
mod foreign_agent;
mod handover;
mod home_agent;
mod key;
mod mobile_node;
mod nat;
mod trio;
mod tunnel;
mod wireshark;
mod world;

use super::*;
use ::world::{Hop, Hosts};
use crypto::Secret;
use model::{Instant, TrafficSelector};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use wire::mobile_ip::{
    Advertisement, Agent, AgentFlags, Between, Code, Lifetime, PORT, Reply, Request, RequestFlags,
};

pub(super) const HOME: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 7);
pub(super) const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The foreign agents' interface on the visited link, and their other interface.
pub(super) const AIR: u32 = 3;
pub(super) const WIRE: u32 = 2;
/// The mobile node's station on a foreign agent's link.
pub(super) const STATION: Station = Station([2, 0, 0, 0, 0, 7]);
pub(super) fn network(address: Ipv4Addr, length: u8) -> TrafficSelector {
    TrafficSelector::from_prefix(address.into(), length).unwrap()
}

/// An agent's station on the mobile node's link.
pub(super) const fn station(agent: Ipv4Addr) -> Station {
    let [a, b, c, d] = agent.octets();
    Station([2, 9, a, b, c, d])
}

/// The mobile node's interfaces, most preferred first.
pub(super) const WLAN: [u32; 2] = [7, 8];

/// The address of a foreign agent, which is also its care-of address.
pub(super) const fn agent(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, 51, 100, number)
}

pub(super) const fn at(millis: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(millis))
}

pub(super) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) const fn ntp(now: Instant) -> NtpTime {
    NtpTime::from_unix(Duration::from_secs(1_790_000_000)).plus(now.since_origin())
}

pub(super) fn association(spi: u32) -> Association {
    Association {
        spi,
        algorithm: Algorithm::default(),
        key: Secret::new(vec![spi as u8; 32]),
        replay: Replay::default(),
    }
}

/// The key that mobile node and home agent share.
pub(super) fn mobile_home() -> Association {
    association(0x1001)
}

/// The key that a foreign agent and the home agent share.
pub(super) fn foreign_home() -> Association {
    association(0x2002)
}

/// The key that the mobile node and a foreign agent share.
pub(super) fn mobile_foreign(number: u8) -> Association {
    association(0x3000 + u32::from(number))
}

/// The key that two foreign agents share.
pub(super) fn between_agents() -> Association {
    association(0x4004)
}

/// A mobile node with keys for this number of agents.
pub(super) fn keyed_config(agents: u8) -> MobileNodeConfig {
    MobileNodeConfig {
        agent_keys: (0..agents)
            .map(|number| (agent(number), mobile_foreign(number)))
            .collect(),
        ..mobile_config()
    }
}

pub(super) fn mobile_config() -> MobileNodeConfig {
    MobileNodeConfig {
        home: HOME,
        home_agent: HOME_AGENT,
        key: mobile_home(),
        agent_keys: BTreeMap::new(),
        interfaces: WLAN.to_vec(),
        lifetime: Lifetime(300),
        simultaneous: false,
    }
}

pub(super) fn foreign_config(number: u8) -> ForeignAgentConfig {
    ForeignAgentConfig::new(AIR, agent(number))
}

pub(super) fn home_config() -> HomeAgentConfig {
    HomeAgentConfig::new(HOME_AGENT, BTreeMap::from([(HOME, mobile_home())]))
}

/// A request through a foreign agent, sent at `now`.
pub(super) fn request(number: u8, now: Instant) -> Request {
    Request {
        flags: RequestFlags::REVERSE_TUNNEL,
        lifetime: Lifetime(300),
        home: HOME,
        home_agent: HOME_AGENT,
        care_of: agent(number),
        identification: ntp(now).0,
    }
}

pub(super) fn signed(request: &Request) -> Vec<u8> {
    let mut octets = request.encode();
    mobile_home().sign(&mut octets, Between::MobileHome);
    octets
}

pub(super) fn reply_signed(reply: &Reply) -> Vec<u8> {
    let mut octets = reply.encode();
    mobile_home().sign(&mut octets, Between::MobileHome);
    octets
}

/// The arrival of a message from the mobile node on the link, or from elsewhere by routes.
pub(super) const fn arrival(source: Ipv4Addr, destination: Ipv4Addr) -> Arrival {
    let is_neighbour = source.to_bits() == HOME.to_bits();
    Arrival {
        interface: if is_neighbour { AIR } else { WIRE },
        source: SocketAddrV4::new(source, PORT),
        destination,
        ttl: if is_neighbour { 255 } else { 60 },
    }
}

pub(super) fn advertisement(number: u8, sequence: u16) -> Advertisement {
    Advertisement {
        routes_for_all: false,
        lifetime: 3,
        routers: Vec::new(),
        agent: Some(Agent {
            sequence,
            registration_lifetime: Lifetime(600),
            flags: AgentFlags::REGISTRATION_REQUIRED
                | AgentFlags::FOREIGN_AGENT
                | AgentFlags::REVERSE_TUNNEL,
            care_of: vec![agent(number)],
        }),
    }
}

/// The payloads of the UDP datagrams to send.
pub(super) fn datagrams(mut poll: impl FnMut() -> Option<Transmit>) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(transmit) = poll() {
        if let Transmit::Udp { octets, .. } = transmit {
            all.push(octets);
        }
    }
    all
}

/// The only reply to send.
pub(super) fn only_reply(poll: impl FnMut() -> Option<Transmit>) -> Reply {
    let datagrams = datagrams(poll);
    assert_eq!(datagrams.len(), 1, "there is one reply");
    Reply::parse(&datagrams[0]).unwrap().0
}

#[test]
fn ntp_times_are_compared_around_their_rollover() {
    let before = NtpTime(u64::MAX - 5);
    let after = before.plus(Duration::from_secs(2));
    assert!(after.is_after(before) && !before.is_after(after));
    assert!(after.is_near(before, Duration::from_secs(3)));
    assert!(!before.is_near(after, Duration::from_secs(1)));
}

#[test]
fn a_unix_time_is_an_ntp_time() {
    let half_past = NtpTime::from_unix(Duration::from_millis(500));
    assert_eq!(half_past.0, 0x83aa_7e80_8000_0000);
}
