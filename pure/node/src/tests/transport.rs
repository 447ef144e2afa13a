//! Transport mode that moves (MOBIKE-X), with packets: at every moment a packet is between the
//! addresses of the tunnel, or dropped.
//!
//! The host that walks has three addresses, of which the other one lists two. A packet in clear has
//! nowhere to go here: the data plane transmits what it has sealed, and nothing else.

use super::datagram;
use super::outlet::Outlet;
use super::world::{GATEWAY, Hop, Hosts, MOBILE, Network, Policies, config};
use crate::{CannotMove, DropReason, Event, Node, NotMovable, Packet, PeerState, Stance};
use crypto::Rng;
use mobility::Way;
use model::{Instant, Mode, Path, Selectors, TrafficSelector};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::time::Duration;
use wire::esp::Datagram;
use wire::ip::Header;

const WIFI: &str = "192.0.2.2";
const CELL: &str = "192.0.2.130";
const TRAIN: &str = "192.0.2.200";
const SERVER: &str = "198.51.100.1";
const NAMES: [&str; 2] = ["gw", "alice"];

/// The host that walks, the server, and the network between them.
struct Walk {
    now: Instant,
    nodes: [Node; 2],
    events: [Vec<Event>; 2],
    delivered: [Vec<Vec<u8>>; 2],
    dropped: [Vec<DropReason>; 2],
    /// Paths of the ESP packets that each host sent.
    sealed: [Vec<Path>; 2],
    hop: Hop,
    network: Network<Flight>,
}

#[derive(Clone)]
struct Flight {
    to: usize,
    path: Path,
    payload: Vec<u8>,
}

impl Hosts for Walk {
    type Packet = Flight;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Flight> {
        &mut self.network
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.nodes.iter().filter_map(Node::poll_timeout);
        due.map(|deadline| deadline.at).min()
    }

    fn handle_timeout(&mut self) {
        let now = self.now;
        for node in &mut self.nodes {
            node.handle_timeout(now);
        }
    }

    fn receive(&mut self, flight: Flight) {
        let Flight { to, path, payload } = flight;
        match Datagram::parse(&payload) {
            _ if path.local.port() == 500 => {
                self.nodes[to].handle_datagram(path, &payload, self.now);
            }
            Datagram::Ike(message) => self.nodes[to].handle_datagram(path, message, self.now),
            Datagram::Keepalive => {}
            Datagram::Esp(packet) => {
                let mut packet = Packet::from_slice(packet);
                packet.path = Some(path);
                let mut outlet = Outlet::default();
                self.nodes[to].open(&mut [packet], &mut outlet, self.now);
                self.sort(to, outlet);
            }
        }
    }

    fn collect(&mut self) {
        for who in [MOBILE, GATEWAY] {
            while let Some(transmit) = self.nodes[who].poll_transmit() {
                self.depart(who, transmit.path, transmit.payload);
            }
            while let Some(event) = self.nodes[who].poll_event() {
                match event {
                    Event::WaysWanted { .. } if who == MOBILE => self.tell_ways(),
                    event => self.events[who].push(event),
                }
            }
        }
    }
}

fn hosts(addresses: &[&str]) -> Selectors {
    let host = |address: &&str| TrafficSelector::from_prefix(address.parse().unwrap(), 32);
    let hosts: Vec<_> = addresses.iter().filter_map(host).collect();
    hosts.into()
}

impl Walk {
    /// Brings the tunnel up. Each host has several workers, so some packets are sealed by another
    /// worker than the one that gets them.
    fn connected(listed: &[&str], seed: u8) -> Self {
        let policies = Policies {
            mobile: Vec::new(),
            gateway: Vec::new(),
            stance: Stance::Refuse,
            mode: Mode::Transport,
            ..Policies::default()
        };
        let node = |who| {
            let mut config = config(who, &policies);
            config.workers = NonZeroU8::new(3).unwrap();
            config.peers.truncate(1);
            let crate::Role::Vpn { local, remote, .. } = &mut config.peers[0].ike.role else {
                panic!("the first peer is the other end of the tunnel");
            };
            let (walks, stays) = (hosts(&[WIFI, CELL, TRAIN]), hosts(&[SERVER]));
            (*local, *remote) = match who {
                MOBILE => (walks, stays),
                _ => (stays, hosts(listed)),
            };
            Node::new(
                config,
                [seed.wrapping_mul(2) + who as u8; 32],
                Instant::ZERO,
            )
        };
        let mut walk = Self {
            now: Instant::ZERO,
            nodes: [MOBILE, GATEWAY].map(node),
            events: Default::default(),
            delivered: Default::default(),
            dropped: Default::default(),
            sealed: Default::default(),
            hop: Hop::default(),
            network: Network::new(Rng::from_seed([seed; 32])),
        };
        walk.collect();
        walk.tell_ways();
        walk.collect();
        let is_up = |walk: &Self| {
            walk.nodes
                .iter()
                .all(|node| node.peers()[0].state == PeerState::Up)
        };
        assert!(walk.run_until(Duration::from_secs(20), is_up));
        walk.run_for(Duration::from_secs(1));
        walk
    }

    fn tell_ways(&mut self) {
        let way = |local: &str| Way {
            local: local.parse().unwrap(),
            remote: SERVER.parse().unwrap(),
        };
        self.nodes[MOBILE].handle_ways(&[WIFI, CELL, TRAIN].map(way), self.now);
    }

    fn depart(&mut self, from: usize, path: Path, payload: Vec<u8>) {
        let to = 1 - from;
        let mut seen = path.reversed();
        // An address that was not chosen yet is the first.
        if seen.remote.ip().is_unspecified() {
            let own = [WIFI, SERVER][from];
            seen.remote.set_ip(own.parse().unwrap());
        }
        let flight = Flight {
            to,
            path: seen,
            payload,
        };
        self.network.send(flight, &self.hop, self.now);
    }

    fn sort(&mut self, who: usize, outlet: Outlet) {
        self.delivered[who].extend(outlet.delivered);
        self.dropped[who].extend(outlet.dropped);
        for (path, payload) in outlet.transmitted {
            self.sealed[who].push(path);
            self.depart(who, path, payload);
        }
    }

    /// Sends a segment between an address of the walking host and the server.
    fn segment(&mut self, from: usize, walker: &str, number: u32) -> Vec<u8> {
        let (walker, server) = (format!("{walker}:40000"), format!("{SERVER}:80"));
        let ends = match from {
            MOBILE => [walker, server],
            _ => [server, walker],
        };
        let [source, destination] = ends.each_ref().map(String::as_str);
        let segment = datagram::tcp(source, destination, number, 1, &number.to_be_bytes());
        let mut batch = [Packet::with_capacity(2000)];
        batch[0].fill(&segment);
        let mut outlet = Outlet::default();
        self.nodes[from].seal(&mut batch, &mut outlet, self.now);
        self.sort(from, outlet);
        segment
    }

    fn move_from(&mut self, from: &str) -> Result<(), CannotMove> {
        let from: IpAddr = from.parse().unwrap();
        let moved = self.nodes[MOBILE].move_peer(NAMES[MOBILE], Some(from), self.now);
        self.collect();
        moved.map(drop)
    }

    /// Returns true if both ends carry the traffic of this address alone.
    fn is_at(&self, address: &str) -> bool {
        let children = self
            .nodes
            .each_ref()
            .map(|node| node.peers()[0].children.clone());
        let address: IpAddr = address.parse().unwrap();
        let [ours, theirs] = &children;
        let at = |selectors: &[TrafficSelector]| {
            selectors
                .iter()
                .all(|one| (one.first, one.last) == (address, address))
        };
        at(&ours[0].local)
            && at(&theirs[0].remote)
            && ours[0].path.local.ip() == address
            && theirs[0].path.remote.ip() == address
    }
}

/// Returns true if a delivered datagram is this one, apart from the header that was rebuilt.
fn is_same(sent: &[u8], came: &[u8]) -> bool {
    let [sent, came] = [sent, came].map(|octets| Header::parse(octets).unwrap());
    sent.flow() == came.flow() && sent.payload() == came.payload()
}

#[test]
fn after_a_move_packets_of_the_new_address_pass_and_those_of_the_old_one_do_not() {
    let mut walk = Walk::connected(&[WIFI, CELL], 1);
    for (number, address, other) in [(1, WIFI, CELL), (2, CELL, WIFI), (3, WIFI, CELL)] {
        if number > 1 {
            assert_eq!(walk.move_from(address), Ok(()));
            walk.run_for(Duration::from_secs(1));
        }
        assert!(walk.is_at(address));
        for (from, to) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
            let [delivered, dropped] = [walk.delivered[to].len(), walk.dropped[from].len()];
            let sent = walk.segment(from, address, number);
            walk.segment(from, other, number);
            walk.run_for(Duration::from_secs(1));
            assert_eq!(walk.delivered[to].len(), delivered + 1);
            assert!(is_same(&sent, &walk.delivered[to][delivered]));
            // What the configuration protects never leaves in clear.
            assert_eq!(walk.dropped[from][dropped..], [DropReason::NoSa]);
        }
    }
    let moved = |event: &&Event| matches!(event, Event::PathMoved { .. });
    assert_eq!(
        walk.events
            .each_ref()
            .map(|events| events.iter().filter(moved).count()),
        [2; 2]
    );
    let rekeyed =
        |event: &Event| matches!(event, Event::ChildUp { .. } | Event::ChildRekeyed { .. });
    assert_eq!(
        walk.events
            .each_ref()
            .map(|e| e.iter().filter(|e| rekeyed(e)).count()),
        [1; 2]
    );
}

// Refuses: mobikex
#[test]
fn an_address_that_the_other_end_does_not_list_gets_nothing_and_the_tunnel_stays() {
    let mut walk = Walk::connected(&[WIFI, CELL], 2);
    assert_eq!(walk.move_from(TRAIN), Ok(()));
    walk.run_for(Duration::from_secs(5));
    // The refusal leads to the best way that is left.
    assert!(walk.is_at(WIFI));
    let to_train = |path: &&Path| path.remote.ip() == TRAIN.parse::<IpAddr>().unwrap();
    assert_eq!(walk.sealed[GATEWAY].iter().filter(to_train).count(), 0);
    let refused = |event: &Event| matches!(event, Event::Refused { .. });
    assert!(walk.events.iter().all(|events| events.iter().any(refused)));
    let nowhere = walk.move_from("192.0.2.77");
    let unplaced = matches!(nowhere, Err(CannotMove::Ike(NotMovable::Unplaced(_))));
    assert!(unplaced, "{nowhere:?}");
    let sent = walk.segment(MOBILE, WIFI, 7);
    walk.run_for(Duration::from_secs(1));
    assert!(is_same(&sent, walk.delivered[GATEWAY].last().unwrap()));
}

/// While the host walks, both ends send all the time, for all addresses. Whatever the hop loses,
/// repeats and delays, a datagram arrives as it was sent, between its own addresses, or not at all.
// Recovers: mobikex
#[test]
fn over_bad_hops_a_datagram_arrives_between_its_own_addresses_or_not_at_all() {
    for seed in 0..8 {
        let mut walk = Walk::connected(&[WIFI, CELL], seed);
        walk.hop = Hop::default().losing(200).repeating(200).delaying(300);
        let mut sent = [Vec::new(), Vec::new()];
        for number in 0..400_u32 {
            if number % 50 == 10 {
                let to = [CELL, WIFI][number as usize / 50 % 2];
                assert_eq!(walk.move_from(to), Ok(()));
            }
            for from in [MOBILE, GATEWAY] {
                for (index, address) in [WIFI, CELL].into_iter().enumerate() {
                    let segment = walk.segment(from, address, number * 2 + index as u32);
                    sent[from].push(segment);
                }
            }
            walk.run_for(Duration::from_millis(11));
        }
        walk.run_for(Duration::from_secs(60));
        for (from, to) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
            let mut left: Vec<_> = sent[from].iter().collect();
            for came in &walk.delivered[to] {
                let at = left.iter().position(|sent| is_same(sent, came));
                left.remove(at.expect("it was sent, and did not come before"));
            }
            assert!(walk.delivered[to].len() > 50, "seed {seed}");
            // Packets in flight during a move have the addresses of before.
            let mismatch = DropReason::InnerSelectorMismatch;
            let allowed = [
                mismatch,
                DropReason::NoSa,
                DropReason::Replayed,
                DropReason::Dummy,
            ];
            assert!(
                walk.dropped[to].iter().all(|why| allowed.contains(why)),
                "{:?}",
                walk.dropped[to]
            );
        }
        assert!(walk.is_at(WIFI) || walk.is_at(CELL), "seed {seed}");
        // A child SA has the path of its packets as its addresses, whenever it sends.
        let server: IpAddr = SERVER.parse().unwrap();
        for path in &walk.sealed[GATEWAY] {
            assert_eq!(path.local, SocketAddr::new(server, 4500));
        }
    }
}
