//! Random walks of moves: a mobile node with three addresses, a gateway with two, NATs that appear,
//! vanish and lose their mappings, hosts that restart, and a third party without keys. After any
//! sequence both ends agree, all paths carry packets, and nothing was lost sight of on the way:
//!
//! * No number seals two packets of one SA.
//! * No packet goes to the third party, whatever source it writes into packets.
//! * A datagram arrives as it was sent, and once.
//!
//! Walks take place in tunnel mode, in transport mode, and on two paths at the same time. To run
//! other walks, or one that failed: `STRATA_MOVES=FIRST,COUNT cargo test -p node --lib moves`.

use super::datagram;
use super::outlet::Outlet;
use super::world::{GATEWAY, Hop, Hosts, MOBILE, Nat, Network, Policies, config};
use crate::{ChildStatus, Event, Node, Packet, PeerState, Rekey, Role, Stance};
use crypto::Rng;
use mobility::Way;
use model::{Instant, Mode, Path, Selectors, TrafficSelector};
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::esp::Datagram;
use wire::ip::Header;

/// Addresses of the mobile node, those by which a NAT shows each, and those of the gateway.
const LOCALS: [[u8; 4]; 3] = [[192, 0, 2, 2], [192, 0, 2, 130], [192, 0, 2, 200]];
const OUTSIDE: [[u8; 4]; 3] = [[203, 0, 113, 10], [203, 0, 113, 11], [203, 0, 113, 12]];
const REMOTES: [[u8; 4]; 2] = [[198, 51, 100, 1], [198, 51, 100, 2]];

/// Address of the third party.
const THIRD: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 66)), 4500);

const NAMES: [&str; 2] = ["gw", "alice"];
const ENDS: [usize; 2] = [MOBILE, GATEWAY];

/// Walks in the suite, and in its long form: 10,000 moves.
const WALKS: [u64; 2] = [125, 625];
const MOVES: u32 = 16;

/// Number of datagrams that are kept for replays.
const PAST: usize = 64;

/// Flows of a tunnel, which two paths share.
const FLOWS: u16 = 6;

/// Time in which all is well again once the network is.
const PATIENCE: Duration = Duration::from_secs(900);

const MS: Duration = Duration::from_millis(1);

#[derive(Clone)]
struct Flight {
    to: usize,
    /// The path as the receiver sees it.
    path: Path,
    payload: Vec<u8>,
}

/// A walk.
struct Walk {
    number: u64,
    now: Instant,
    nodes: [Node; 2],
    hop: Hop,
    network: Network<Flight>,
    /// Addresses of each host that have a link.
    there: [Vec<bool>; 2],
    /// Number that the NAT of each address adds to ports, if there is one.
    nats: [Option<u16>; 3],
    past: VecDeque<Flight>,
    witness: Witness,
    /// Number of datagrams that were sent.
    sent: u32,
    restarts: u8,
}

/// Packets and datagrams so far, by which a walk is judged.
#[derive(Default)]
struct Witness {
    /// Host, SPI and number of each packet.
    numbers: BTreeSet<(usize, [u8; 8])>,
    /// Datagrams of each host that have not arrived.
    under_way: [BTreeSet<Vec<u8>>; 2],
    /// Datagrams that arrived at each host.
    arrived: [usize; 2],
}

impl Witness {
    fn note_sealed(&mut self, who: usize, path: Path, payload: &[u8]) {
        let header = payload
            .first_chunk()
            .expect("ESP begins with SPI and number");
        assert!(self.numbers.insert((who, *header)), "a number came twice");
        assert_ne!(path.remote.ip(), THIRD.ip(), "the third party got a packet");
    }

    fn note_arrived(&mut self, who: usize, octets: &[u8]) {
        let was_sent = self.under_way[1 - who].remove(&content(octets));
        let flow = Header::parse(octets).map(|header| header.flow());
        assert!(was_sent, "it was not sent, or has arrived before: {flow:?}");
        self.arrived[who] += 1;
    }
}

/// Returns what the modes carry: transport mode rebuilds the header.
fn content(octets: &[u8]) -> Vec<u8> {
    let header = Header::parse(octets).expect("a datagram");
    let flow = format!("{:?}", header.flow());
    [flow.as_bytes(), header.payload()].concat()
}

fn mode(number: u64) -> Mode {
    match number % 3 {
        1 => Mode::Transport,
        _ => Mode::Tunnel,
    }
}

const fn paths(number: u64) -> u8 {
    1 + (number % 3 == 2) as u8
}

fn hosts(addresses: &[[u8; 4]]) -> Selectors {
    let host = |address: &[u8; 4]| TrafficSelector::from_prefix((*address).into(), 32);
    let hosts: Vec<_> = addresses.iter().filter_map(host).collect();
    hosts.into()
}

fn node(who: usize, number: u64, restarts: u8, now: Instant) -> Node {
    let policies = Policies {
        mobile: Vec::new(),
        gateway: Vec::new(),
        stance: Stance::Refuse,
        snoop: false,
        mode: mode(number),
        paths: paths(number),
        ..Policies::default()
    };
    let mut config = config(who, &policies);
    config.peers.truncate(1);
    if who == GATEWAY {
        config.addresses = REMOTES.map(IpAddr::from).to_vec();
    }
    let peer = &mut config.peers[0].ike;
    peer.window = [1, 4][usize::from(number.is_multiple_of(2))];
    peer.liveness = Duration::from_secs(20);
    if let (Mode::Transport, Role::Vpn { local, remote, .. }) = (mode(number), &mut peer.role) {
        let (walks, stays) = (hosts(&LOCALS), hosts(&REMOTES));
        (*local, *remote) = match who {
            MOBILE => (walks, stays),
            _ => (stays, walks),
        };
    }
    let mut seed = [restarts; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    seed[8] = who as u8;
    Node::new(config, seed, now)
}

impl Drop for Walk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.told());
        }
    }
}

impl Walk {
    fn new(number: u64) -> Self {
        let mut seed = [3; 32];
        seed[..8].copy_from_slice(&number.to_be_bytes());
        Self {
            number,
            now: Instant::ZERO,
            nodes: ENDS.map(|who| node(who, number, 0, Instant::ZERO)),
            hop: Hop::PERFECT,
            network: Network::new(Rng::from_seed(seed)),
            there: [vec![true; LOCALS.len()], vec![true; REMOTES.len()]],
            nats: [None; 3],
            past: VecDeque::new(),
            witness: Witness::default(),
            sent: 0,
            restarts: 0,
        }
    }

    /// Starts both hosts, and waits for the tunnel.
    fn connected(number: u64) -> Self {
        let mut walk = Self::new(number);
        walk.collect();
        walk.tell_ways();
        let is_up = walk.run_until(Duration::from_secs(60), Self::is_agreed);
        assert!(is_up, "no tunnel");
        walk
    }

    fn chance(&mut self, of: usize) -> usize {
        usize::from(self.network.rng.u16()) % of
    }

    fn told(&self) -> String {
        let number = self.number;
        let peers = self.nodes.each_ref().map(Node::peers);
        format!("walk {number}: STRATA_MOVES={number},1: {peers:?}")
    }

    /// Tells the mobile node by which addresses packets can leave, the best first.
    fn tell_ways(&mut self) {
        let first = self.number as usize % LOCALS.len();
        let order = (0..LOCALS.len()).map(|index| (index + first) % LOCALS.len());
        let locals = order.filter(|index| self.there[MOBILE][*index]);
        let ways: Vec<_> = locals
            .flat_map(|local| {
                REMOTES.map(|remote| Way {
                    local: LOCALS[local].into(),
                    remote: remote.into(),
                })
            })
            .collect();
        self.nodes[MOBILE].handle_ways(&ways, self.now);
        self.collect();
    }

    // The network.

    fn nat(&self, index: usize) -> Option<Nat> {
        let outside = OUTSIDE[index].into();
        self.nats[index].map(|shift| Nat { outside, shift })
    }

    /// Returns the source by which an address of the mobile node appears.
    fn outward(&self, local: SocketAddr) -> Option<SocketAddr> {
        let index = LOCALS
            .iter()
            .position(|known| local.ip() == IpAddr::from(*known))?;
        let linked = self.there[MOBILE][index].then_some(local)?;
        Some(self.nat(index).map_or(linked, |nat| nat.outward(linked)))
    }

    /// Returns the socket of the mobile node that gets a packet to a destination.
    fn inward(&self, destination: SocketAddr) -> Option<SocketAddr> {
        (0..LOCALS.len()).find_map(|index| {
            let local: IpAddr = LOCALS[index].into();
            let linked = self.there[MOBILE][index];
            match self.nat(index).filter(|_| linked) {
                Some(nat) => nat.inward(destination, local),
                None => (linked && destination.ip() == local).then_some(destination),
            }
        })
    }

    fn is_linked(&self, remote: IpAddr) -> bool {
        let index = REMOTES
            .iter()
            .position(|known| remote == IpAddr::from(*known));
        index.is_some_and(|index| self.there[GATEWAY][index])
    }

    fn depart(&mut self, from: usize, mut path: Path, payload: Vec<u8>) {
        if path.local.ip().is_unspecified() {
            let first = self.there[MOBILE]
                .iter()
                .position(|linked| *linked)
                .unwrap_or_default();
            path.local.set_ip([LOCALS[first], REMOTES[0]][from].into());
        }
        let seen = match from {
            MOBILE if self.is_linked(path.remote.ip()) => {
                let source = self.outward(path.local);
                source.map(|source| Path::udp(path.remote, source))
            }
            GATEWAY if self.is_linked(path.local.ip()) => {
                let local = self.inward(path.remote);
                local.map(|local| Path::udp(local, path.local))
            }
            _ => None,
        };
        let Some(path) = seen else { return };
        let to = 1 - from;
        let flight = Flight { to, path, payload };
        self.past.truncate(PAST - 1);
        self.past.push_front(flight.clone());
        self.network.send(flight, &self.hop, self.now);
    }

    fn sort(&mut self, who: usize, outlet: Outlet) {
        for octets in &outlet.delivered {
            self.witness.note_arrived(who, octets);
        }
        for (path, payload) in outlet.transmitted {
            self.witness.note_sealed(who, path, &payload);
            self.depart(who, path, payload);
        }
    }

    // Traffic.

    fn send(&mut self, from: usize, client: &str, server: &str) {
        self.sent += 1;
        let payload = self.sent.to_be_bytes();
        let (source, destination) = match from {
            MOBILE => (client, server),
            _ => (server, client),
        };
        let segment = datagram::tcp(source, destination, self.sent, 1, &payload);
        self.witness.under_way[from].insert(content(&segment));
        let mut batch = [Packet::with_capacity(2000)];
        batch[0].fill(&segment);
        let mut outlet = Outlet::default();
        self.nodes[from].seal(&mut batch, &mut outlet, self.now);
        self.sort(from, outlet);
        self.collect();
    }

    /// Both ends send a datagram of each flow: in transport mode one for each pair of addresses,
    /// of which one pair has a child SA.
    fn traffic(&mut self) {
        for from in ENDS {
            if mode(self.number) == Mode::Tunnel {
                for flow in 0..FLOWS {
                    self.send(from, &format!("10.1.0.2:{}", 40_000 + flow), "10.8.0.1:80");
                }
                continue;
            }
            for local in LOCALS {
                for remote in REMOTES {
                    let [local, remote] = [local, remote].map(IpAddr::from);
                    self.send(from, &format!("{local}:40000"), &format!("{remote}:80"));
                }
            }
        }
    }

    /// Returns true if all datagrams of a round arrive.
    fn flows(&mut self) -> bool {
        let before = self.witness.arrived;
        self.traffic();
        self.run_for(Duration::from_millis(200));
        let expected = match mode(self.number) {
            Mode::Tunnel => usize::from(FLOWS),
            Mode::Transport | Mode::Beet => 1,
        };
        self.witness.arrived == before.map(|before| before + expected)
    }

    // Steps.

    fn step(&mut self) {
        if self.chance(2) == 0 {
            self.happen();
        }
        let to = LOCALS[self.chance(LOCALS.len())].into();
        let (soft, now) = (self.chance(4) == 0, self.now);
        // There may be no tunnel, or no way.
        let node = &mut self.nodes[MOBILE];
        let _moved = match soft {
            true => node.hand_over_or_move(NAMES[MOBILE], to, now).is_ok(),
            false => node.move_peer(NAMES[MOBILE], Some(to), now).is_ok(),
        };
        self.collect();
        self.happen();
        let pause = [0, 3, 12, 40, 300, 2500, 12_000][self.chance(7)];
        self.traffic();
        self.run_for(MS * (pause / 2));
        self.traffic();
        self.run_for(MS * (pause / 2));
    }

    fn happen(&mut self) {
        match self.chance(12) {
            0 => self.toggle(MOBILE),
            1 => self.toggle(GATEWAY),
            2 | 3 => {
                let index = self.chance(self.nats.len());
                let shift = 1000 * (1 + self.chance(50) as u16);
                self.nats[index] = (self.chance(3) > 0).then_some(shift);
            }
            4 | 5 => {
                let [lost, repeated, delayed] = [(); 3].map(|()| self.chance(300) as u16);
                let hop = Hop::PERFECT.losing(lost);
                self.hop = hop.repeating(repeated).delaying(delayed);
            }
            6 => self.hop = Hop::PERFECT,
            7 => self.restart(),
            8 => self.rekey(),
            9 => drop(self.network.intercept()),
            10 => self.replay(false),
            _ => self.replay(true),
        }
    }

    /// Takes a link of a host down or up. One stays up.
    fn toggle(&mut self, who: usize) {
        let index = self.chance(self.there[who].len());
        self.there[who][index] ^= true;
        if !self.there[who].contains(&true) {
            self.there[who][index] = true;
        }
        if who == MOBILE {
            self.tell_ways();
        }
    }

    fn restart(&mut self) {
        let who = self.chance(2);
        self.restarts += 1;
        self.nodes[who] = node(who, self.number, self.restarts, self.now);
        self.collect();
        self.tell_ways();
    }

    fn rekey(&mut self) {
        let (who, now) = (self.chance(2), self.now);
        let what = [Rekey::Ike, Rekey::Children][self.chance(2)];
        // There may be nothing to rekey.
        let _begun = self.nodes[who].rekey(NAMES[who], what, now).is_ok();
        self.collect();
    }

    /// Delivers a datagram again, also as the third party's own. One that is under way may then be
    /// the newest.
    fn replay(&mut self, elsewhere: bool) {
        for _ in 0..4 {
            let which = self.chance(PAST);
            let Some(mut flight) = self.past.get(which).cloned() else {
                continue;
            };
            if elsewhere {
                flight.path.remote = THIRD;
            }
            self.receive(flight);
            self.collect();
        }
    }

    // The end.

    /// Restores the network. NATs stay, unless the mode does not pass them.
    fn calm_down(&mut self) {
        self.hop = Hop::PERFECT;
        self.there = [vec![true; LOCALS.len()], vec![true; REMOTES.len()]];
        if mode(self.number) == Mode::Transport {
            self.nats = [None; 3];
        }
        self.tell_ways();
    }

    fn children(&self, who: usize) -> Vec<ChildStatus> {
        let peers = self.nodes[who].peers();
        let up = peers.into_iter().filter(|peer| peer.state == PeerState::Up);
        let children = up.flat_map(|peer| peer.children);
        children.filter(|child| !child.draining).collect()
    }

    /// Returns true if both ends have the same child SAs, each on one path, and use all paths.
    fn is_agreed(&self) -> bool {
        let [ours, theirs] = ENDS.map(|who| self.children(who));
        let is_same = |child: &ChildStatus| {
            let mut others = theirs.iter();
            let other = others.find(|other| other.inbound == child.outbound);
            other.is_some_and(|other| self.fits(child, other))
        };
        let count = usize::from(paths(self.number));
        let works = |node: &Node| {
            let paths = node.paths();
            let mut live = paths.iter().flat_map(|tunnel| &tunnel.live);
            live.all(|live| live.works)
        };
        ours.len() == count
            && theirs.len() == count
            && ours.iter().all(is_same)
            && self.nodes.iter().all(works)
    }

    fn fits(&self, ours: &ChildStatus, theirs: &ChildStatus) -> bool {
        let seen = (theirs.path.local, Some(theirs.path.remote));
        let is_one_path = seen == (ours.path.remote, self.outward(ours.path.local));
        let is_one_traffic = ours.local == theirs.remote && ours.remote == theirs.local;
        ours.inbound == theirs.outbound && is_one_path && is_one_traffic
    }
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
        for who in ENDS {
            let (node, now) = (&mut self.nodes[who], self.now);
            let is_due = |node: &Node| node.poll_timeout().is_some_and(|due| due.at <= now);
            if !is_due(node) {
                continue;
            }
            node.handle_timeout(now);
            // A search for another path begins with a deadline that is due at once.
            if is_due(node) {
                node.handle_timeout(now);
            }
            while let Some(path) = node.poll_path_mtu() {
                node.handle_interface_mtu(path, 1500, now);
            }
            let mut outlet = Outlet::default();
            node.cover(&mut Packet::with_capacity(2000), &mut outlet);
            self.sort(who, outlet);
        }
    }

    fn receive(&mut self, flight: Flight) {
        let Flight { to, path, payload } = flight;
        let datagram = match path.local.port() {
            500 => Datagram::Ike(&payload),
            _ => Datagram::parse(&payload),
        };
        match datagram {
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
        for who in ENDS {
            while let Some(transmit) = self.nodes[who].poll_transmit() {
                self.depart(who, transmit.path, transmit.payload);
            }
            let mut asked = false;
            while let Some(event) = self.nodes[who].poll_event() {
                asked |= matches!(event, Event::WaysWanted { .. });
            }
            if asked && who == MOBILE {
                self.tell_ways();
            }
        }
    }
}

fn walk(number: u64) {
    let mut walk = Walk::connected(number);
    for _ in 0..MOVES {
        walk.step();
    }
    walk.calm_down();
    let settles = |walk: &mut Walk| walk.run_until(PATIENCE, Walk::is_agreed) && walk.flows();
    let settled = (0..3).any(|_| settles(&mut walk));
    assert!(settled, "both ends do not agree");
}

// Weakness: M1
// Weakness: M2
// Weakness: 202
#[test]
fn after_any_walk_of_moves_both_ends_agree_and_all_paths_carry_packets() {
    let walks = effort::runs("moves", WALKS[0], WALKS[1]);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let walks = walks.clone();
            scope.spawn(move || {
                let mine = walks.filter(|number| number % threads == thread);
                mine.for_each(walk);
            });
        }
    });
}

/// Negative control.
#[test]
#[should_panic(expected = "a number came twice")]
fn the_walk_sees_a_number_that_seals_two_packets() {
    let mut witness = Witness::default();
    let ends = [LOCALS[0], REMOTES[0]].map(|end| SocketAddr::new(end.into(), 4500));
    let path = Path::udp(ends[0], ends[1]);
    for _ in 0..2 {
        witness.note_sealed(MOBILE, path, &[1; 40]);
    }
}

/// Negative control.
#[test]
#[should_panic(expected = "the third party got a packet")]
fn the_walk_sees_a_packet_to_the_third_party() {
    let ours = SocketAddr::new(REMOTES[0].into(), 4500);
    Witness::default().note_sealed(GATEWAY, Path::udp(ours, THIRD), &[1; 40]);
}

/// Negative control.
#[test]
#[should_panic(expected = "it was not sent, or has arrived before")]
fn the_walk_sees_a_datagram_that_arrives_twice() {
    let segment = datagram::tcp("10.1.0.2:40000", "10.8.0.1:80", 1, 1, b"once");
    let mut witness = Witness::default();
    witness.under_way[MOBILE].insert(content(&segment));
    for _ in 0..2 {
        witness.note_arrived(GATEWAY, &segment);
    }
}

/// Negative control: the gateway has the mobile node elsewhere.
#[test]
fn the_walk_sees_ends_that_disagree() {
    let mut walk = Walk::connected(0);
    assert!(walk.is_agreed() && walk.flows());
    walk.nats[0] = Some(7000);
    assert!(!walk.is_agreed() && !walk.flows());
}
