//! Fuzzes a mobile node, a foreign agent and a home agent. Whatever they receive, forged or signed
//! with their keys, they keep their limits and no timer stays due.

use crypto::Secret;
use mobility::mobile_ip::{
    Algorithm, Arrival, Association, ForeignAgent, ForeignAgentConfig, HomeAgent, HomeAgentConfig,
    MobileNode, MobileNodeConfig, Nat, NtpTime, Remote, Replay, Station, TakenOut, Transmit,
};
use model::Instant;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use wire::checksum::Sum;
use wire::ecn::Ecn;
use wire::mobile_ip::{Between, Lifetime, PORT, TunnelData, message};
use world::{Hosts, Network};

const HOME: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 7);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FOREIGN_AGENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// A foreign agent that visitors come from and move to.
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
/// An agent that the mobile node may hear as well and shares a key with.
const OTHER_AGENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// A NAT between the foreign agent and the home agent.
const NAT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);
const AIR: u32 = 3;
const WIRE: u32 = 2;
/// The step that delivers the messages between the parties.
const CARRY: u8 = 6;
/// Offsets of the identification in a request, a reply and a notice. Extensions begin right after
/// it.
const IDENTIFICATION: [usize; 3] = [16, 12, 8];

/// The three parties.
struct Trio {
    mobile: MobileNode,
    foreign: ForeignAgent,
    home: HomeAgent,
    now: Instant,
    network: Network<Transmit>,
    /// True if messages arrive, at once. Otherwise they are lost.
    arrives: bool,
    /// The identification that the mobile node used last.
    identification: [u8; 8],
    /// The foreign agent's address as the home agent sees it: its own, or that of a NAT.
    outside: Ipv4Addr,
}

/// Runs steps: an octet for the kind, one for the delay, one for the length, then the body.
pub fn run(octets: &[u8]) {
    let Some((&first, mut rest)) = octets.split_first() else {
        return;
    };
    let mut trio = Trio::new(first);
    for _ in 0..200 {
        let Some((&[kind, later, len], tail)) = rest.split_first_chunk() else {
            return;
        };
        let (body, tail) = tail.split_at(usize::from(len).min(tail.len()));
        rest = tail;
        trio.arrives = kind & 7 == CARRY;
        trio.run_for(Duration::from_millis(1 << (later % 18)));
        trio.act(kind, body);
        trio.check();
    }
}

impl Trio {
    fn new(first: u8) -> Self {
        let replay = match first & 1 {
            0 => Replay::default(),
            _ => Replay::Nonces,
        };
        let agent_key = key(3);
        let key = Association { replay, ..key(1) };
        let now = Instant::ZERO;
        let mobile = MobileNodeConfig {
            home: HOME,
            home_agent: HOME_AGENT,
            key: key.clone(),
            agent_keys: match first & 4 {
                0 => BTreeMap::new(),
                _ => [FOREIGN_AGENT, OTHER_AGENT]
                    .map(|agent| (agent, agent_key.clone()))
                    .into(),
            },
            interfaces: vec![AIR],
            lifetime: Lifetime(300),
            simultaneous: first & 2 != 0,
        };
        let home = HomeAgentConfig {
            address: HOME_AGENT,
            lifetime: Lifetime(600),
            bindings: 2,
            reverse_tunnel_required: false,
            mobiles: BTreeMap::from([(HOME, key)]),
            foreign: BTreeMap::new(),
            nat: policy(first >> 3),
            nat_lifetime: Lifetime(60),
            keepalive: None,
        };
        let mut trio = Self {
            mobile: MobileNode::new(mobile, [1; 32], now),
            foreign: ForeignAgent::new(
                ForeignAgentConfig {
                    nat: policy(first >> 5),
                    ..foreign_config(first & 4 != 0)
                },
                [2; 32],
                now,
            ),
            home: HomeAgent::new(home, [3; 32]),
            now,
            network: Network::default(),
            arrives: false,
            identification: [0; 8],
            outside: if first & 0x10 == 0 {
                FOREIGN_AGENT
            } else {
                NAT
            },
        };
        trio.mobile.set_wall_clock(NtpTime(1 << 62), now);
        trio.home.set_wall_clock(NtpTime(1 << 62), now);
        trio
    }

    fn act(&mut self, kind: u8, body: &[u8]) {
        let now = self.now;
        // Two bits of `kind` have the message signed and make it answer the last request.
        let request = || self.forged(kind, body, IDENTIFICATION[0]);
        let reply = || self.forged(kind, body, IDENTIFICATION[1]);
        match kind & 7 {
            0 => {
                let source = body
                    .first()
                    .map_or(FOREIGN_AGENT, |&last| [10, 0, 0, last].into());
                self.mobile
                    .handle_advertisement(AIR, source, STATION, &mended(body), now);
            }
            1 => {
                let reply = reply();
                self.mobile
                    .handle_reply(AIR, FOREIGN_AGENT, STATION, &reply, now);
            }
            2 => {
                let request = request();
                self.foreign.handle_datagram(&arrival(HOME), &request, now);
            }
            3 if kind & 0x40 != 0 => {
                let notice = self.notice(kind, body);
                self.foreign
                    .handle_datagram(&arrival(NEIGHBOUR), &notice, now);
            }
            3 => {
                let reply = reply();
                self.foreign
                    .handle_datagram(&arrival(HOME_AGENT), &reply, now);
            }
            4 => {
                let request = request();
                self.home
                    .handle_datagram(&arrival(self.outside), &request, now);
            }
            5 => self.foreign.handle_solicitation(AIR, &mended(body), now),
            CARRY => self.run_for(Duration::ZERO),
            _ => self.command(kind, body),
        }
        self.arrives = false;
        self.collect();
    }

    fn command(&mut self, kind: u8, body: &[u8]) {
        let now = self.now;
        match kind >> 3 {
            0 => self.mobile.deregister(now),
            1 => self.mobile.interface_lost(AIR, now),
            2 => self.mobile.interface_found(AIR, now),
            _ => {
                let mut inner = body.to_vec();
                let _ = self.home.tunnel().encapsulate(body, |_| ());
                let _ = self.foreign.tunnel().encapsulate(body, now);
                let udp = |address| Remote::Udp(SocketAddrV4::new(address, PORT));
                for from in [Remote::Ip(FOREIGN_AGENT), udp(FOREIGN_AGENT), udp(NAT)] {
                    let home = self.home.tunnel();
                    if let Ok(taken) = home.decapsulate(from, Ecn::Ce, &mut inner) {
                        // An answer goes back to the source of the keepalive.
                        let onward = taken.onward.map(|envelope| envelope.outer.destination);
                        assert!(onward.is_none_or(|to| to == from.address()));
                    }
                }
                let foreign = &mut self.foreign;
                for from in [Remote::Ip(HOME_AGENT), udp(HOME_AGENT)] {
                    let _ = foreign.decapsulate(from, Ecn::Ce, &mut inner, now);
                }
                // A packet that a neighbour forwards after a visitor is not forwarded again.
                let neighbour = Remote::Ip(NEIGHBOUR);
                if let Ok(Some(taken)) = foreign.decapsulate(neighbour, Ecn::Ce, &mut inner, now) {
                    assert_eq!(taken.onward, None);
                }
            }
        }
    }

    fn forged(&self, kind: u8, body: &[u8], at: usize) -> Vec<u8> {
        let mut message = body.to_vec();
        if kind & 0x10 != 0
            && let Some(place) = message.get_mut(at..at + 8)
        {
            place.copy_from_slice(&self.identification);
        }
        if kind & 0x20 != 0 {
            key(1).sign(&mut message, Between::MobileHome);
            // The foreign agent's authenticator, for runs in which it has a key too.
            key(3).sign(&mut message, Between::MobileForeign);
        }
        message
    }

    /// Returns a forged notice. A neighbour does not have the keys of mobile nodes, but it may
    /// repeat their identifications.
    fn notice(&self, kind: u8, body: &[u8]) -> Vec<u8> {
        let mut message = body.to_vec();
        if kind & 0x10 != 0
            && let Some(place) = message.get_mut(IDENTIFICATION[2]..IDENTIFICATION[2] + 8)
        {
            place.copy_from_slice(&self.identification);
        }
        if kind & 0x20 != 0 {
            key(2).sign(&mut message, Between::ForeignHome);
        }
        message
    }

    fn see(&mut self, transmit: &Transmit) {
        if let Transmit::Udp { source, octets, .. } = transmit
            && *source.ip() == HOME
        {
            self.identification
                .copy_from_slice(&octets[IDENTIFICATION[0]..][..8]);
        }
    }

    /// Carries a keepalive to the home agent and its answer back.
    fn tunnel(&mut self, octets: &[u8], now: Instant) {
        let mut octets = octets.to_vec();
        let from = Remote::Udp(SocketAddrV4::new(self.outside, PORT));
        let taken = self
            .home
            .tunnel()
            .decapsulate(from, Ecn::NotEct, &mut octets);
        let Ok(TakenOut {
            datagram,
            onward: Some(_),
        }) = taken
        else {
            return;
        };
        let mut answer = [&TunnelData::IP_IN_UDP.octets()[..], datagram].concat();
        let from = Remote::Udp(SocketAddrV4::new(HOME_AGENT, PORT));
        let taken = (self.foreign).decapsulate(from, Ecn::NotEct, &mut answer, now);
        assert!(matches!(taken, Ok(None) | Err(_)), "{taken:?}");
    }

    fn check(&self) {
        assert!(self.foreign.visitors().count() <= 4);
        assert!(self.home.care_of(HOME).len() <= 2);
        assert!(self.mobile.registrations().count() <= 3);
    }
}

impl Hosts for Trio {
    type Packet = Transmit;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Transmit> {
        &mut self.network
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = [
            self.mobile.poll_timeout(),
            self.foreign.poll_timeout(),
            self.home.poll_timeout(),
        ];
        due.into_iter().flatten().map(|deadline| deadline.at).min()
    }

    fn handle_timeout(&mut self) {
        self.mobile.handle_timeout(self.now);
        self.foreign.handle_timeout(self.now);
        self.home.handle_timeout(self.now);
    }

    fn receive(&mut self, transmit: Transmit) {
        let now = self.now;
        match transmit {
            Transmit::Icmp { octets, .. } => {
                self.mobile
                    .handle_advertisement(AIR, FOREIGN_AGENT, STATION, &octets, now);
                self.foreign.handle_solicitation(AIR, &octets, now);
            }
            Transmit::Udp {
                source,
                destination,
                octets,
                ..
            } => match *destination.ip() {
                HOME => self
                    .mobile
                    .handle_reply(AIR, *source.ip(), STATION, &octets, now),
                // A keepalive or its answer.
                _ if octets.first() == Some(&message::TUNNEL_DATA) => self.tunnel(&octets, now),
                HOME_AGENT => {
                    self.home
                        .handle_datagram(&arrival(self.outside), &octets, now);
                }
                _ => self
                    .foreign
                    .handle_datagram(&arrival(*source.ip()), &octets, now),
            },
        }
    }

    fn collect(&mut self) {
        let mobile = std::iter::from_fn(|| self.mobile.poll_transmit());
        let foreign = std::iter::from_fn(|| self.foreign.poll_transmit());
        let home = std::iter::from_fn(|| self.home.poll_transmit());
        let all: Vec<_> = mobile.chain(foreign).chain(home).collect();
        assert!(all.len() < 10_000);
        for transmit in all {
            self.see(&transmit);
            if self.arrives {
                self.network.deliver(transmit, self.now);
            }
        }
        while self.mobile.poll_event().is_some() {}
        while self.foreign.poll_event().is_some() {}
        while self.home.poll_event().is_some() {}
    }
}

fn policy(bits: u8) -> Nat {
    [Nat::Never, Nat::Detect, Nat::Always, Nat::Detect][usize::from(bits & 3)]
}

fn foreign_config(is_keyed: bool) -> ForeignAgentConfig {
    let keyed = |address, number| is_keyed.then(|| (address, key(number)));
    ForeignAgentConfig {
        interface: AIR,
        address: FOREIGN_AGENT,
        care_of: FOREIGN_AGENT,
        interval: Duration::from_secs(10),
        lifetime: Lifetime(600),
        home_agents: BTreeMap::new(),
        homes: Vec::new(),
        home_keys: BTreeMap::new(),
        mobile_keys: keyed(HOME, 3).into_iter().collect(),
        neighbours: keyed(NEIGHBOUR, 2).into_iter().collect(),
        nat: Nat::Never,
        keepalive: None,
        visitors: 4,
        pending: 4,
    }
}

fn key(number: u8) -> Association {
    Association {
        spi: 0x1000 + u32::from(number),
        algorithm: Algorithm::HmacMd5,
        key: Secret::new(vec![number; 16]),
        replay: Replay::default(),
    }
}

fn arrival(source: Ipv4Addr) -> Arrival {
    Arrival {
        interface: if source == HOME { AIR } else { WIRE },
        source: SocketAddrV4::new(source, PORT),
        destination: FOREIGN_AGENT,
        ttl: 255,
    }
}

/// Link-layer address of the foreign agent.
const STATION: Station = Station([2, 0, 0, 0, 0, 1]);

/// Returns an ICMP message with a valid checksum.
fn mended(octets: &[u8]) -> Vec<u8> {
    let mut octets = octets.to_vec();
    if octets.len() >= 4 {
        octets[2..4].fill(0);
        let sum = Sum::default().with(&octets).finish();
        octets[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    octets
}
