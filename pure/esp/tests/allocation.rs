//! Packets allocate nothing: neither at an endpoint, plain or zoned, nor at a licensed node. Only the first
//! that an SA opens makes its replay window.

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]
#![allow(
    unsafe_code,
    reason = "a global allocator can only be implemented with it"
)]

#[path = "data_plane/bench.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod bench;
#[path = "data_plane/datagram.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod datagram;

use bench::*;
use esp::{DropReason, Licensed, Packet, Scratch, Sink, Worker};
use model::{CsaId, Grant, GrantHalf, Instant, Path, Spi, ZoneId};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

struct Counting;

thread_local! {
    /// Per thread, so that the test harness may do what it likes.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator as it came; the counter is a plain
// thread-local integer, which itself allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Keeps nothing but the first packet's octets, in memory it already has.
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

fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

fn licensed() -> Licensed {
    let suite = model::ZoneSuite::Aes128Gcm16;
    let half = |spi| GrantHalf {
        spi: Spi(spi),
        zones: vec![(ZoneId(1), suite, key(spi, 1, suite))],
    };
    let mut node = Licensed::new();
    node.install(Grant {
        csa: CsaId(1),
        line: CsaId(1),
        grant: 1,
        payload_zone: ZoneId(2),
        suites: vec![suite, model::ZoneSuite::Aes256Gcm16],
        window: 4096,
        lifetime: Duration::from_secs(60),
        from_gateway: half(TO_ALICE),
        to_gateway: half(TO_BOB),
    })
    .unwrap();
    node
}

/// Seals, shows to a node if there is one, opens.
fn carry(
    (alice, bob): (&mut Worker, &mut Worker),
    mut node: Option<(&mut Licensed, &mut Scratch)>,
    batch: &mut [Packet; 1],
    relay: &mut Relay,
    datagram: &[u8],
) {
    batch[0].fill(datagram);
    alice.seal(batch, relay);
    if let Some((node, scratch)) = &mut node {
        assert!(node.open(relay.packet.octets(), scratch).is_ok());
    }
    batch[0].fill(relay.packet.octets());
    bob.open(batch, relay, Instant::ZERO);
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations_of(|| drop(vec![0_u8; 10])), 1);
}

#[test]
fn no_packet_but_the_first_of_an_sa_allocates() {
    for kind in [EXPLICIT, IMPLICIT, two_zones(), three_zones(), old_zones()] {
        let (mut alice, mut bob) = pair(&kind);
        let (mut node, mut scratch) = (licensed(), Scratch::new());
        let mut relay = Relay {
            packet: Packet::with_capacity(2000),
            done: 0,
        };
        let mut batch = [Packet::with_capacity(2000)];
        let datagrams = [datagram::segment(), datagram::segment_with_secret()];
        let has_node = matches!(&kind, Kind::Zoned(zones) if zones.len() == 2);
        let mut carried = |count: usize| {
            for datagram in datagrams.iter().cycle().take(count) {
                let node = has_node.then_some((&mut node, &mut scratch));
                carry(
                    (&mut alice, &mut bob),
                    node,
                    &mut batch,
                    &mut relay,
                    datagram,
                );
            }
        };
        let windows = if has_node { 2 } else { 1 };
        assert_eq!(allocations_of(|| carried(1)), windows, "{kind:?}");
        assert_eq!(allocations_of(|| carried(1000)), 0, "{kind:?}");
        assert_eq!(relay.done, 2002, "{kind:?}");
    }
}
