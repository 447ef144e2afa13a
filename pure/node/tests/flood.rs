//! Floods a host with malformed, damaged and replayed datagrams, in every state that it can be in.
//! Each datagram is counted once, memory does not grow, and the next honest handshake takes less
//! than a second.
//!
//! The datagrams come from a conversation with the host's own keys, so a single changed octet is
//! all that makes them invalid. The suite sends 50,000 of them, its long form a million.

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]

#[path = "../src/tests/accounts.rs"]
mod accounts;
#[path = "../src/tests/datagram.rs"]
mod datagram;
mod memory;
#[path = "../src/tests/outlet.rs"]
mod outlet;
#[path = "../src/tests/watch.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod watch;
#[path = "../src/tests/world.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod world;

// Names that the shared modules use from the crate.
use node::{
    Addressing, ChildPolicy, Config, DropReason, Event, GrantState, Node, Packet, Peer, Places,
    Role, Side, Sink, Slot, Stance, Verdict, ZonePolicy,
};

use model::Path;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use world::{Flight, GATEWAY, Hosts, LICENSED, MOBILE, Policies, World};

const WARM_UP: u64 = 20_000;

/// Short enough that a million datagrams fit before any state changes on its own.
const PAUSE: Duration = Duration::from_micros(1);

/// Limit of memory growth in octets: a leak of 6 per datagram exceeds it.
const MOST_GROWTH: i64 = 1 << 18;

/// A fast pseudorandom generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) as usize % below.max(1)
    }

    fn octets(&mut self, out: &mut [u8]) {
        for octet in out {
            *octet = self.roll(256) as u8;
        }
    }
}

/// A host under attack.
struct Siege {
    world: World,
    who: usize,
    /// Genuine datagrams of this conversation, up to its current state and beyond.
    genuine: Vec<Flight>,
    /// Genuine datagrams that were already delivered.
    had: Vec<Flight>,
    dice: Dice,
}

impl Siege {
    /// `world` has run the same handshake until the host is in the desired state.
    fn new(mut world: World, who: usize) -> Self {
        world.watch.over = true;
        let mut whole = World::connected(Policies::default());
        for n in 0..20 {
            whole.segment(MOBILE, n * 500, &[1; 500]);
            whole.segment(GATEWAY, n * 500, &[2; 500]);
        }
        Self {
            genuine: whole.past.iter().cloned().collect(),
            had: world.past.iter().cloned().collect(),
            world,
            who,
            dice: Dice(0x5eed_0000_0000_0001),
        }
    }

    /// Throws datagrams. The world checks the counters after each.
    fn throw(&mut self, count: u64) {
        for _ in 0..count {
            let (path, payload) = self.next();
            match self.who == LICENSED && self.dice.roll(2) == 0 {
                true => self.pass(path.local.port(), &payload),
                false => self.world.hand_over(self.who, path, &payload),
            }
            self.settle();
        }
    }

    fn next(&mut self) -> (Path, Vec<u8>) {
        let again = self.dice.roll(16) == 0;
        let from = if again { &self.had } else { &self.genuine };
        let flight = &from[self.dice.roll(from.len())];
        let (mut remote, port) = (flight.path.local, flight.path.remote.port());
        let mut payload = flight.payload.clone();
        if !again {
            self.maul(&mut payload);
        }
        if self.dice.roll(2) == 0 {
            let anywhere = Ipv4Addr::from_bits(self.dice.roll(1 << 32) as u32);
            remote.set_ip(IpAddr::V4(anywhere));
        }
        let local = SocketAddr::new(world::address(self.who), port);
        (Path::udp(local, remote), payload)
    }

    /// Damages a datagram.
    fn maul(&mut self, payload: &mut Vec<u8>) {
        let len = payload.len();
        match self.dice.roll(9) {
            0 => payload.truncate(self.dice.roll(len)),
            1 => payload.resize(len + 1 + self.dice.roll(64), len as u8),
            2 => self.dice.octets(payload),
            3 => self.dice.octets(&mut payload[len.min(40)..]),
            4 => {
                let other = &self.genuine[self.dice.roll(self.genuine.len())].payload;
                let cut = self.dice.roll(len.min(other.len()));
                payload.truncate(cut);
                payload.extend_from_slice(&other[cut..]);
            }
            5 => self.forge_fragment(payload),
            _ => {
                for _ in 0..=self.dice.roll(6) {
                    let at = self.dice.roll(len);
                    payload[at] ^= 1 + self.dice.roll(255) as u8;
                }
            }
        }
    }

    /// Turns a protected message into a fragment of a longer one that was never sealed (RFC 7383).
    fn forge_fragment(&mut self, payload: &mut Vec<u8>) {
        const MARKER: usize = 4;
        const NEXT_PAYLOAD: usize = MARKER + 16;
        const NUMBERS: usize = MARKER + 28 + 4;
        if payload.get(NEXT_PAYLOAD) != Some(&46) {
            return;
        }
        payload[NEXT_PAYLOAD] = 53;
        let numbers = [0, self.dice.roll(4) as u8, 0, self.dice.roll(4) as u8];
        payload.splice(NUMBERS..NUMBERS, numbers);
        let length = (payload.len() - MARKER) as u16;
        payload[MARKER + 26..MARKER + 28].copy_from_slice(&length.to_be_bytes());
        payload[NUMBERS - 2..NUMBERS].copy_from_slice(&(length - 28).to_be_bytes());
    }

    /// Passes a payload through the licensed node, with outer headers that may be damaged as well.
    fn pass(&mut self, port: u16, payload: &[u8]) {
        let end = |who| SocketAddr::new(world::address(who), port);
        let mut packet = datagram::udp(end(MOBILE), end(GATEWAY), payload);
        if self.dice.roll(4) == 0 {
            let at = self.dice.roll(28);
            packet[at] ^= 1 + self.dice.roll(255) as u8;
        }
        let _ = self.world.transit(Side::Wireless, &packet);
    }

    /// Lets time pass and discards the output of the host.
    fn settle(&mut self) {
        let (world, who) = (&mut self.world, self.who);
        world.now += PAUSE;
        let node = &mut world.nodes[who];
        let deadline = node.poll_timeout();
        if deadline.is_some_and(|deadline| deadline.at <= world.now) {
            node.handle_timeout(world.now);
        }
        while node.poll_transmit().is_some() {}
        while node.poll_resend().is_some() {}
        while node.poll_event().is_some() {}
        world.dropped[who].clear();
        world.delivered[who].clear();
    }

    /// Returns the duration of the next honest handshake with this host, if it is below a second.
    fn set_up(&mut self) -> Option<Duration> {
        let world = &mut self.world;
        world.off = [false; 3];
        match self.who {
            MOBILE => {
                world
                    .command(MOBILE, |node, now| node.down("gw", now))
                    .unwrap();
                world.run_for(Duration::from_secs(10));
                world
                    .command(MOBILE, |node, now| node.up("gw", now))
                    .unwrap();
            }
            GATEWAY => world.restart(MOBILE),
            _ => [GATEWAY, MOBILE].iter().for_each(|who| world.restart(*who)),
        }
        let begun = world.now;
        while world.now - begun < Duration::from_secs(1) {
            world.run_for(Duration::from_millis(5));
            if world.tunnel_is_up() && (self.who != LICENSED || is_granted(world)) {
                return Some(world.now - begun);
            }
        }
        None
    }
}

fn is_granted(world: &World) -> bool {
    let csas = world.nodes[GATEWAY].composite_sas();
    let mut grants = csas.iter().flat_map(|csa| &csa.grants);
    grants.any(|grant| grant.state == GrantState::Held)
}

fn stands(world: World, who: usize) {
    let count = effort::count("flood", 50_000, 1_000_000);
    let mut siege = Siege::new(world, who);
    siege.throw(WARM_UP);
    let before = memory::in_use();
    siege.throw(count);
    let growth = memory::in_use() - before;
    println!("{count} datagrams, {growth} octets more");
    assert!(growth < MOST_GROWTH, "{growth} octets more");
    let took = siege.set_up();
    println!("the next honest set-up took {took:?}");
    assert!(took.is_some(), "no honest set-up within a second");
}

/// Returns a world whose handshake ran for a time before one host was cut off.
fn stopped(after: u64, off: usize) -> World {
    let mut world = World::new(Policies::default());
    world.run_for(Duration::from_millis(after));
    world.off[off] = true;
    world.run_for(Duration::from_millis(15));
    assert!(!world.tunnel_is_up());
    world
}

/// Returns a world in which the mobile node closed the tunnel some time ago.
fn ending(after: u64, off: [bool; 3]) -> World {
    let mut world = World::connected(Policies::default());
    world.off = off;
    world
        .command(MOBILE, |node, now| node.down("gw", now))
        .unwrap();
    world.run_for(Duration::from_millis(after));
    assert!(!world.tunnel_is_up());
    world
}

#[test]
fn an_initiator_that_waits_for_ike_sa_init() {
    stands(stopped(0, GATEWAY), MOBILE);
}

#[test]
fn an_initiator_that_waits_for_ike_auth() {
    let world = stopped(15, GATEWAY);
    let last = &world.past[world.past.len() - 1];
    assert_eq!(last.path.remote.port(), 4500, "IKE_AUTH was sent");
    stands(world, MOBILE);
}

// Weakness: 29
#[test]
fn a_responder_with_somebody_half_open() {
    stands(stopped(15, MOBILE), GATEWAY);
}

#[test]
fn an_initiator_that_is_up() {
    stands(World::connected(Policies::default()), MOBILE);
}

// Weakness: 29
#[test]
fn a_responder_that_is_up() {
    stands(World::connected(Policies::default()), GATEWAY);
}

#[test]
fn a_host_that_waits_for_the_answer_to_its_delete() {
    stands(ending(0, [false, true, false]), MOBILE);
}

#[test]
fn a_host_whose_peer_has_deleted_the_sa() {
    stands(ending(50, [false; 3]), GATEWAY);
}

#[test]
fn a_licensed_node_with_keys() {
    let world = World::connected(Policies::default());
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 1);
    stands(world, LICENSED);
}

#[test]
fn a_licensed_node_without_keys() {
    stands(stopped(0, GATEWAY), LICENSED);
}
