//! Messages of IKE from initiators that have proved nothing, which ESP never waits for.
//!
//! A key agreement or the check of a signature takes as long as hundreds of packets. So such messages wait in
//! a queue of bounded length, shared fairly among the networks that they come from. While packets flow they
//! get one part in [`PART`] of the thread's time; without packets all that nothing else needs.

use config::Config;
use model::{Entry, Instant, Origin, Path, Room, Strangers};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Messages that may wait. One network that fills its places loses what comes next, as from a full socket.
const ROOM: Room = Room {
    total: 512,
    per_site: 256,
    per_host: 128,
    patience: Duration::MAX,
};

/// Which part of the time they get while packets flow.
const PART: u32 = 8;

/// Time that may be used at once, if none was used for [`PART`] times as long.
const BURST: Duration = Duration::from_millis(1);

/// After so long the thread looks whether anything else is to be done.
pub const SLICE: Duration = Duration::from_micros(500);

/// What waits, and how much of the time was used.
#[derive(Default)]
pub struct Unproved {
    /// By the order in which they came.
    messages: BTreeMap<u64, (Path, Vec<u8>)>,
    senders: Strangers<u64>,
    arrivals: u64,
    /// Addresses of configured peers, which have places of their own.
    peers: BTreeSet<IpAddr>,
    /// When all time that was used is made up for.
    even: Instant,
    /// Messages that found no place, or gave way to others.
    pub lost: u64,
}

/// Where peers are that have an address.
pub fn addresses(config: &Config) -> BTreeSet<IpAddr> {
    let addresses = config.peers.iter().filter_map(|peer| peer.address);
    addresses.collect()
}

impl Unproved {
    /// Has these peers from now on.
    pub fn reconfigure(&mut self, config: &Config) {
        self.peers = addresses(config);
    }

    /// Has a message wait, if there is a place.
    pub fn push(&mut self, path: Path, message: &[u8], now: Instant) {
        let from = Origin::new(path.remote.ip(), &self.peers);
        match self.senders.entry(from, &ROOM, now) {
            Entry::Free => {}
            Entry::Instead(oldest) => {
                self.lost += 1;
                self.senders.remove(oldest);
                self.messages.remove(&oldest);
            }
            Entry::Refused => {
                self.lost += 1;
                return;
            }
        }
        self.arrivals += 1;
        self.senders.insert(self.arrivals, from, now);
        self.messages
            .insert(self.arrivals, (path, message.to_vec()));
    }

    /// The next message, if it is to be handled now; `busy` if packets flow.
    pub fn pop(&mut self, busy: bool, now: Instant) -> Option<(Path, Vec<u8>)> {
        if busy && self.even > now + BURST * PART {
            return None;
        }
        let (arrival, message) = self.messages.pop_first()?;
        self.senders.remove(arrival);
        Some(message)
    }

    /// It has been handled, in this time.
    pub fn took(&mut self, began: Instant, ended: Instant) {
        let used = (ended - began) * PART;
        self.even = self.even.clamp(began, began + BURST * PART) + used;
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv6Addr, SocketAddr};

    /// A thread with a clock of its own.
    struct Thread {
        unproved: Unproved,
        now: Instant,
        /// How long packets and messages took.
        packets: Duration,
        messages: Duration,
        /// When messages of which sender were handled.
        handled: Vec<(IpAddr, Instant)>,
    }

    impl Thread {
        fn new() -> Self {
            Self {
                unproved: Unproved::default(),
                now: Instant::from_origin(Duration::from_secs(9)),
                packets: Duration::ZERO,
                messages: Duration::ZERO,
                handled: Vec::new(),
            }
        }

        fn arrive(&mut self, from: IpAddr) {
            let local = SocketAddr::from(([192, 0, 2, 1], 500));
            let path = Path::udp(local, SocketAddr::new(from, 500));
            self.unproved.push(path, &[7; 400], self.now);
        }

        /// Packets, and then messages that take so long each.
        fn turn(&mut self, packets: Duration, each: Duration) {
            self.now += packets;
            self.packets += packets;
            let begun = self.now;
            while let Some((path, _)) = self.unproved.pop(!packets.is_zero(), self.now) {
                let began = self.now;
                self.now += each;
                self.messages += each;
                self.unproved.took(began, self.now);
                self.handled.push((path.remote.ip(), self.now));
                if self.now - begun >= SLICE {
                    break;
                }
            }
        }
    }

    fn subnet(n: u128) -> IpAddr {
        Ipv6Addr::from_bits(0x2001_0db8 << 96 | n << 80).into()
    }

    #[test]
    fn packets_get_seven_parts_of_eight_of_the_time_whatever_a_message_costs() {
        for micros in [7, 74, 1500, 80_000] {
            let (each, mut thread) = (Duration::from_micros(micros), Thread::new());
            for n in 0..4000 {
                for m in 0..30 {
                    thread.arrive(subnet((n * 30 + m) & 0xffff));
                }
                thread.turn(Duration::from_millis(1), each);
            }
            let most = (thread.packets + thread.messages) / PART + BURST + each;
            assert!(
                thread.messages <= most,
                "{micros} µs: {:?}",
                thread.messages
            );
            assert!(thread.messages >= most * 9 / 10 - each, "and they get that");
        }
    }

    #[test]
    fn without_packets_messages_are_handled_as_they_come_and_owe_little_for_it() {
        let (each, mut thread) = (Duration::from_millis(2), Thread::new());
        for _ in 0..1000 {
            thread.arrive(subnet(1));
            thread.turn(Duration::ZERO, each);
        }
        assert_eq!(thread.handled.len(), 1000);
        // When packets come, the next message waits for those of the last few milliseconds alone.
        thread.arrive(subnet(1));
        for _ in 0..24 {
            thread.turn(Duration::from_millis(1), each);
        }
        assert_eq!(thread.handled.len(), 1001);
    }

    #[test]
    fn a_network_that_fills_the_queue_keeps_no_other_out_and_memory_is_bounded() {
        let mut thread = Thread::new();
        for n in 0..10_000 {
            thread.arrive(subnet(n % 5));
        }
        assert_eq!(thread.unproved.messages.len(), ROOM.total);
        assert_eq!(thread.unproved.lost, 10_000 - ROOM.total as u64);
        let honest = "192.0.2.66".parse().unwrap();
        thread.arrive(honest);
        for n in 0..10_000 {
            thread.arrive(subnet(n % 5));
        }
        while !thread.unproved.is_empty() {
            thread.turn(Duration::ZERO, Duration::from_micros(7));
        }
        assert!(thread.handled.iter().any(|(from, _)| *from == honest));
        assert!(thread.unproved.senders.is_empty());
    }

    #[test]
    fn messages_are_handled_in_the_order_they_came() {
        let mut thread = Thread::new();
        (0..100).for_each(|n| thread.arrive(subnet(n)));
        for _ in 0..100 {
            thread.turn(Duration::ZERO, SLICE);
        }
        let order: Vec<_> = thread.handled.iter().map(|(from, _)| *from).collect();
        assert_eq!(order, (0..100).map(subnet).collect::<Vec<_>>());
    }
}
