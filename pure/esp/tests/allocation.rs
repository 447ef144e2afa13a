//! Packets do not allocate, neither at an endpoint, plain or zoned, nor at a licensed node. Only
//! the first packet that an SA opens allocates its replay window.

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]

#[path = "data_plane/bench.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod bench;
#[path = "data_plane/datagram.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod datagram;
#[path = "../../node/tests/memory/mod.rs"]
mod memory;

use bench::*;
use esp::{DropReason, Licensed, Packet, Scratch, Sink, Worker};
use memory::allocations_of;
use model::{
    Class, CsaId, Grant, GrantHalf, Instant, LevelChoice, LevelGrant, Mode, Path, Span, Spi, ZoneId,
};
use std::time::Duration;

/// Keeps only the last packet's octets, in memory allocated before.
struct Relay {
    packet: Packet,
    done: u64,
}

impl Sink for Relay {
    fn transmit(&mut self, packet: &mut Packet, _path: Path) {
        self.packet.fill(packet.octets());
        self.done += 1;
    }

    fn deliver(&mut self, _packet: &mut Packet) {
        self.done += 1;
    }

    fn dropped(&mut self, _packet: &mut Packet, why: DropReason) {
        panic!("{why}");
    }
}

fn licensed() -> Licensed {
    let suite = model::ZoneSuite::Aes128Gcm16;
    let half = |spi| GrantHalf {
        spi: Spi(spi),
        zones: vec![(ZoneId(1), suite, key(spi, 1, suite))],
        overlay: None,
        injection: None,
    };
    let mut node = Licensed::new();
    node.install(Grant {
        map: model::MapKind::Changeable,
        csa: CsaId(1),
        line: CsaId(1),
        grant: 1,
        payload_zone: ZoneId(2),
        suites: vec![suite, model::ZoneSuite::Aes256Gcm16],
        window: 4096,
        lifetime: Duration::from_secs(60),
        onward: None,
        from_gateway: half(TO_ALICE),
        to_gateway: half(TO_BOB),
    })
    .unwrap();
    node
}

/// Two ends, with a licensed node between them if there is one.
struct Line {
    alice: Worker,
    bob: Worker,
    node: Option<(Licensed, Scratch)>,
    relay: Relay,
    batch: [Packet; 1],
}

impl Line {
    fn new(alice: Worker, bob: Worker, node: Option<Licensed>) -> Self {
        Self {
            alice,
            bob,
            node: node.map(|node| (node, Scratch::new())),
            relay: Relay {
                packet: Packet::with_capacity(2000),
                done: 0,
            },
            batch: [Packet::with_capacity(2000)],
        }
    }

    /// Counts the allocations while datagrams are sealed, shown to the node and opened.
    fn allocations(&mut self, datagrams: &[Vec<u8>], count: usize) -> u64 {
        let datagrams = datagrams.iter().cycle().take(count);
        allocations_of(|| datagrams.for_each(|datagram| self.carry(datagram)))
    }

    fn carry(&mut self, datagram: &[u8]) {
        let Self { relay, batch, .. } = self;
        batch[0].fill(datagram);
        self.alice.seal(batch, relay, Instant::ZERO);
        if let Some((node, scratch)) = &mut self.node {
            assert!(node.open(relay.packet.octets(), scratch).is_ok());
        }
        batch[0].fill(relay.packet.octets());
        self.bob.open(batch, relay, Instant::ZERO);
    }
}

/// A segment whose zones are contiguous, and one with an option in the payload zone.
fn segments() -> [Vec<u8>; 2] {
    [datagram::segment(), datagram::segment_with_secret()]
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations_of(|| drop(vec![0_u8; 10])), 1);
}

#[test]
fn no_packet_but_the_first_of_a_fixed_map_or_of_the_sa_beside_allocates() {
    let (alice, bob) = fixed_sas(&[(1, 52)]);
    let mut line = Line::new(endpoint(alice), endpoint(bob), None);
    assert_eq!(line.allocations(&segments(), 2), 2, "a window each");
    assert_eq!(line.allocations(&segments(), 1000), 0);
}

/// The rebuilt header is written into existing room.
#[test]
fn no_packet_but_the_first_without_an_ip_header_allocates() {
    let kind = two_zones();
    let (mut alice, mut bob) = (alices_sa(&kind), bobs_sa(&kind));
    for sa in [&mut alice, &mut bob] {
        sa.mode = Mode::Beet;
    }
    (alice.local, alice.remote) = (prefixes(&["10.1.0.1/32"]), prefixes(&["10.8.0.1/32"]));
    (bob.local, bob.remote) = (alice.remote.clone(), alice.local.clone());
    let mut line = Line::new(endpoint(alice), endpoint(bob), Some(licensed()));
    assert_eq!(line.allocations(&segments(), 1), 2, "a window each");
    assert_eq!(line.allocations(&segments(), 1000), 0);
}

#[test]
fn no_packet_but_the_first_that_goes_without_encryption_allocates() {
    let sas = (alices_sa(&two_zones()), bobs_sa(&two_zones()));
    let class = Class {
        ports: Span::new(0, u16::MAX),
        ..Class::default()
    };
    let grant = LevelGrant {
        class,
        packets: 900,
        seconds: 1000,
        renewals: 0,
    };
    let (alice, bob) = granting(sas, grant);
    let mut line = Line::new(endpoint(alice), endpoint(bob), None);
    let choice = LevelChoice {
        every: 10,
        ..LevelChoice::default()
    };
    line.alice.set_level(BOB, choice);
    let datagrams = [datagram::segment()];
    assert_eq!(line.allocations(&datagrams, 10), 2, "a window each");
    assert_eq!(line.allocations(&datagrams, 900), 0);
}

#[test]
fn no_packet_but_the_first_of_an_sa_allocates() {
    for kind in [EXPLICIT, IMPLICIT, two_zones(), three_zones(), old_zones()] {
        let (alice, bob) = pair(&kind);
        let has_node = matches!(&kind, Kind::Zoned(zones) if zones.len() == 2);
        let mut line = Line::new(alice, bob, has_node.then(licensed));
        let windows = if has_node { 2 } else { 1 };
        assert_eq!(line.allocations(&segments(), 1), windows, "{kind:?}");
        assert_eq!(line.allocations(&segments(), 1000), 0, "{kind:?}");
        assert_eq!(line.relay.done, 2002, "{kind:?}");
    }
}
