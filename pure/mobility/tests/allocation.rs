//! Packets pass a Mobile IP tunnel without allocation, in both directions and at both ends.

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]
#![allow(
    unsafe_code,
    reason = "a global allocator can only be implemented with it"
)]

use crypto::Secret;
use mobility::mobile_ip::{
    Algorithm, Arrival, Association, ForeignAgent, ForeignAgentConfig, HomeAgent, HomeAgentConfig,
    Nat, Remote, Replay, Transmit,
};
use model::Instant;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use wire::checksum::Sum;
use wire::ecn::Ecn;
use wire::mobile_ip::{Between, Code, Lifetime, PORT, Reply, Request, RequestFlags};

struct Counting;

thread_local! {
    /// Counted per thread, so that allocations of the test harness do not interfere.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls go to the system allocator unchanged. The counter is a thread-local integer and
// allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
        address: HOME_AGENT,
        lifetime: Lifetime(600),
        bindings: 1,
        reverse_tunnel_required: true,
        mobiles: BTreeMap::from([(HOME, key())]),
        foreign: BTreeMap::new(),
        nat: Nat::Never,
        nat_lifetime: Lifetime(60),
        keepalive: None,
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
        interface: 3,
        address: FOREIGN_AGENT,
        care_of: FOREIGN_AGENT,
        interval: Duration::from_secs(1),
        lifetime: Lifetime(600),
        home_agents: BTreeMap::new(),
        homes: Vec::new(),
        home_keys: BTreeMap::new(),
        mobile_keys: BTreeMap::new(),
        neighbours: BTreeMap::new(),
        nat: Nat::Never,
        keepalive: None,
        visitors: 1,
        pending: 1,
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
    let before = ALLOCATIONS.get();
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
    assert_eq!(ALLOCATIONS.get(), before);
    assert_eq!(
        (home.counters().sent, home.counters().received),
        (1000, 1000)
    );
}

/// Negative control.
#[test]
fn an_allocation_is_noticed() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(vec![0_u8; 100]));
    assert_eq!(ALLOCATIONS.get(), before + 1);
}
