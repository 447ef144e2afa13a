//! The cost of a tunnel does not depend on the number of others, counted in octets.

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]

mod memory;

use crypto::Secret;
use model::{Features, Identity, Instant, MapKind, Mode, Path, Shares, TrafficSelector, Transmit};
use node::{Addressing, Config, Node, Peer, PeerState, Role, Stance, ZonePolicy};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Address of the host with many peers.
const HUB: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Port of IKE after the first exchange, with a marker before each message.
const NATT: u16 = 4500;

/// Octets that a configured peer may take in a node, before it has been up.
const MOST_PER_PEER: i64 = 750;

/// A host with peers, and how many octets it has allocated.
struct Hub {
    node: Node,
    now: Instant,
    allocated: u64,
    /// True if the hub initiates.
    initiates: bool,
}

impl Hub {
    fn new(peers: u32, initiates: bool) -> Self {
        let mut shares = Shares::default();
        let of = |number| {
            let address = initiates.then(|| spoke(number));
            let mut peer = peer(&name(number), address, identity(number));
            shares.share(&mut peer.ike.terms);
            peer
        };
        let peers = (0..peers).map(of).collect();
        Self {
            node: Node::new(config(hub(), peers), [1; 32], Instant::ZERO),
            now: Instant::ZERO,
            allocated: 0,
            initiates,
        }
    }

    /// Sets up the tunnel to a peer. Returns the octets that this took here.
    fn set_up(&mut self, number: u32) -> u64 {
        let before = self.allocated;
        self.now += Duration::from_millis(1);
        let own = peer("hub", (!self.initiates).then_some(HUB), hub());
        let mut seed = [2; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        let mut spoke = Node::new(config(identity(number), vec![own]), seed, self.now);
        let mut inbound = Vec::new();
        let mut outbound = match self.initiates {
            true => self.count(|node, now| node.up(&name(number), now).unwrap()),
            false => {
                spoke.up("hub", self.now).unwrap();
                inbound = drained(&mut spoke);
                Vec::new()
            }
        };
        while !(inbound.is_empty() && outbound.is_empty()) {
            for sent in std::mem::take(&mut inbound) {
                let (path, message) = arrived(&sent, self::spoke(number), HUB);
                let answers = self.count(|node, now| node.handle_datagram(path, message, now));
                outbound.extend(answers);
            }
            for sent in std::mem::take(&mut outbound) {
                let (path, message) = arrived(&sent, HUB, self::spoke(number));
                spoke.handle_datagram(path, message, self.now);
                inbound.extend(drained(&mut spoke));
            }
        }
        self.allocated - before
    }

    /// Takes a tunnel down. Returns the octets that this took here.
    fn take_down(&mut self, number: u32) -> u64 {
        let before = self.allocated;
        self.count(|node, now| node.down(&name(number), now).unwrap());
        self.allocated - before
    }

    fn count(&mut self, run: impl FnOnce(&mut Node, Instant)) -> Vec<Transmit> {
        let before = memory::allocated();
        run(&mut self.node, self.now);
        let sent = drained(&mut self.node);
        self.allocated += memory::allocated() - before;
        sent
    }
}

/// Returns the messages that a node sends, after all of its output.
fn drained(node: &mut Node) -> Vec<Transmit> {
    let sent = std::iter::from_fn(|| node.poll_transmit()).collect();
    while node.poll_event().is_some() {}
    node.poll_timeout();
    sent
}

/// Returns a message as its receiver gets it.
fn arrived(sent: &Transmit, from: IpAddr, to: IpAddr) -> (Path, &[u8]) {
    let path = Path::udp(
        SocketAddr::new(to, sent.path.remote.port()),
        SocketAddr::new(from, sent.path.local.port()),
    );
    let marker = if path.local.port() == NATT { 4 } else { 0 };
    (path, &sent.payload[marker..])
}

fn name(number: u32) -> String {
    format!("spoke{number}")
}

fn identity(number: u32) -> Identity {
    format!("{number}.example.net").parse().unwrap()
}

fn hub() -> Identity {
    "hub.example.net".parse().unwrap()
}

fn spoke(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a00_0000 + number).into()
}

fn peer(name: &str, address: Option<IpAddr>, identity: Identity) -> Peer {
    let all = |net: [u8; 4]| {
        TrafficSelector::from_prefix(net.into(), 16)
            .into_iter()
            .collect()
    };
    let role = Role::Vpn {
        local: all([10, 8, 0, 0]),
        remote: all([10, 8, 0, 0]),
        addressing: Addressing::Fixed,
        zones: ZonePolicy {
            stance: Stance::Refuse,
            zones: Vec::new(),
            map: MapKind::Changeable,
            window: 4096,
            licences: Vec::new(),
            level: None,
        }
        .into(),
        mode: Mode::Tunnel,
    };
    let mut peer = Peer::new(name, identity, role);
    peer.ike.address = address;
    peer.ike.psk = Some(Secret::new(vec![7; 32]));
    peer.ike.features = Features::offered();
    peer
}

fn config(identity: Identity, peers: Vec<Peer>) -> Config {
    Config {
        grant_lifetime: Duration::from_secs(3600),
        ..Config::new(identity, peers)
    }
}

/// Returns the mean of a few costs.
fn mean(costs: impl ExactSizeIterator<Item = u64>) -> u64 {
    let number = costs.len() as u64;
    costs.sum::<u64>() / number
}

/// Neither is anything copied that grows with the number of tunnels.
// Weakness: 150
#[test]
fn a_set_up_and_an_end_take_as_many_octets_with_a_thousand_tunnels_as_with_sixteen() {
    const ALL: u32 = 1024;
    for initiates in [false, true] {
        let mut hub = Hub::new(ALL, initiates);
        let costs: Vec<_> = (0..ALL).map(|number| hub.set_up(number)).collect();
        let up = hub.node.peers();
        assert!(up.iter().all(|peer| peer.state == PeerState::Up));
        let (first, last) = (&costs[..16], &costs[costs.len() - 16..]);
        let [first, last] = [first, last].map(|costs| mean(costs.iter().copied()));
        assert!(
            last * 10 < first * 11,
            "{first} octets at first, {last} at last"
        );
        let ends: Vec<_> = (0..ALL).map(|number| hub.take_down(number)).collect();
        let (first, last) = (&ends[..16], &ends[ends.len() - 16..]);
        let [first, last] = [first, last].map(|costs| mean(costs.iter().copied()));
        assert!(
            first * 10 < last * 11,
            "{first} octets at first, {last} at last"
        );
    }
}

#[test]
fn a_configured_peer_that_is_not_up_takes_little_memory() {
    const ALL: i64 = 1000;
    let taken = |peers: i64| {
        let before = memory::in_use();
        let hub = Hub::new(peers as u32, false);
        let taken = memory::in_use() - before;
        drop(hub);
        taken
    };
    // Without the buffers that a node without peers has too.
    let each = (taken(ALL) - taken(0)) / ALL;
    assert!(each < MOST_PER_PEER, "{each} octets");
}
