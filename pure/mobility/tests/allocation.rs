//! Packets pass a Mobile IP tunnel without allocation, in both directions and at both ends.

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]

#[path = "../../node/tests/memory/mod.rs"]
mod memory;

use crypto::Secret;
use mobility::mobile_ip::{
    Algorithm, Arrival, Association, ForeignAgent, ForeignAgentConfig, HomeAgent, HomeAgentConfig,
    Remote, Replay, Transmit,
};
use model::Instant;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use wire::checksum::Sum;
use wire::ecn::Ecn;
use wire::mobile_ip::{Between, Code, Lifetime, PORT, Reply, Request, RequestFlags};

const HOME: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 7);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FOREIGN_AGENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const PEER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

fn key() -> Association {
    Association {
        spi: 0x1001,
        algorithm: Algorithm::default(),
        key: Secret::new(vec![1; 32]),
        replay: Replay::Nonces,
    }
}

fn arrival(source: Ipv4Addr) -> Arrival {
    Arrival {
        interface: 3,
        source: SocketAddrV4::new(source, PORT),
        destination: FOREIGN_AGENT,
        ttl: 255,
    }
}

fn request(identification: u64) -> Request {
    Request {
        flags: RequestFlags::REVERSE_TUNNEL,
        lifetime: Lifetime(300),
        home: HOME,
        home_agent: HOME_AGENT,
        care_of: FOREIGN_AGENT,
        identification,
    }
}

fn signed(mut message: Vec<u8>) -> Vec<u8> {
    key().sign(&mut message, Between::MobileHome);
    message
}

/// A home agent with a binding for the mobile node; its first reply supplied the nonce.
fn home() -> HomeAgent {
    let config = HomeAgentConfig {
        bindings: 1,
        ..HomeAgentConfig::new(HOME_AGENT, BTreeMap::from([(HOME, key())]))
    };
    let mut home = HomeAgent::new(config, [1; 32]);
    let mut nonce = 0;
    for _ in 0..2 {
        let octets = signed(request(nonce).encode());
        home.handle_datagram(&arrival(FOREIGN_AGENT), &octets, Instant::ZERO);
        let Some(Transmit::Udp { octets, .. }) = home.poll_transmit() else {
            panic!("there is a reply");
        };
        nonce = Reply::parse(&octets).unwrap().0.identification;
    }
    assert_eq!(home.care_of(HOME), [FOREIGN_AGENT]);
    home
}

fn foreign() -> ForeignAgent {
    let config = ForeignAgentConfig {
        visitors: 1,
        pending: 1,
        ..ForeignAgentConfig::new(3, FOREIGN_AGENT)
    };
    let mut foreign = ForeignAgent::new(config, [1; 32], Instant::ZERO);
    let asked = signed(request(1).encode());
    foreign.handle_datagram(&arrival(HOME), &asked, Instant::ZERO);
    let reply = signed(Reply::to(&request(1), Code::Accepted).encode());
    foreign.handle_datagram(&arrival(HOME_AGENT), &reply, Instant::ZERO);
    assert_eq!(foreign.visitors().count(), 1);
    foreign
}

fn datagram(source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    let mut octets = vec![0x45, 2, 5, 0, 0, 1, 0x40, 0, 64, 253, 0, 0];
    octets.extend([source.octets(), destination.octets()].concat());
    octets.resize(1280, 7);
    let sum = Sum::default().with(&octets[..20]).finish();
    octets[10..12].copy_from_slice(&sum.to_be_bytes());
    octets
}

#[test]
fn packets_in_tunnels_allocate_nothing() {
    let (mut home, mut foreign) = (home(), foreign());
    let (mut there, mut back) = (datagram(PEER, HOME), datagram(HOME, PEER));
    let (home, foreign) = (home.tunnel(), foreign.tunnel());
    let now = Instant::ZERO;
    let work = || {
        for _ in 0..1000 {
            let mut sent = 0;
            home.encapsulate(&there, |_| sent += 1).unwrap();
            assert_eq!(sent, 1);
            foreign
                .decapsulate(Remote::Ip(HOME_AGENT), Ecn::Ce, &mut there, now)
                .unwrap();
            foreign.encapsulate(&back, now).unwrap();
            home.decapsulate(Remote::Ip(FOREIGN_AGENT), Ecn::Ce, &mut back)
                .unwrap();
        }
    };
    assert_eq!(memory::allocations_of(work), 0);
    assert_eq!(
        (home.counters().sent, home.counters().received),
        (1000, 1000)
    );
}

/// Negative control.
#[test]
fn an_allocation_is_noticed() {
    let work = || drop(std::hint::black_box(vec![0_u8; 100]));
    assert_eq!(memory::allocations_of(work), 1);
}
