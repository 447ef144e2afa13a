//! A mobile node, a gateway and a licensed node between them.
//!
//! All packets between mobile node and gateway pass the `transit` of the licensed node, as IP
//! packets. The wireless hop is the one between mobile node and licensed node. A NAT may be in
//! front of the mobile node. Sent packets are kept for a while, so that tests can replay them.
//!
//! At every step the world checks that each input of a host appears in its counters exactly once,
//! and that no timer stays due.

use super::outlet::Outlet;
use super::watch::Watch;
use super::{accounts, datagram};
use crate::{
    Addressing, ChildPolicy, Config, DropReason, Event, Node, Packet, Peer, Places, Role, Side,
    Slot, Stance, Verdict, ZonePolicy,
};
use crypto::{Rng, Secret, UnixTime};
use ike::Resumption;
use model::{
    Features, Identity, Instant, LevelChoice, LevelGrant, Licence, MapKind, Mode, Path, Right, Run,
    Selectors, Sizes, Spi, TrafficSelector, ZoneId, ZoneSelector, ZoneSuite,
};
use resumption::{Memory, Store};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::ecn::Ecn;
use wire::esp::{Datagram, Header};
use wire::quoted::Quoted;

pub use ::world::{Hop, Hosts, Nat, Network};

pub const MOBILE: usize = 0;
pub const GATEWAY: usize = 1;
pub const LICENSED: usize = 2;

/// Further addresses of the mobile node.
pub const SECOND: &str = "192.0.2.102";
pub const THIRD: &str = "192.0.2.103";

const ADDRESSES: [&str; 3] = ["192.0.2.2", "198.51.100.1", "203.0.113.3"];
pub const NAMES: [&str; 3] = ["alice@example.net", "gw.example.net", "fa.example.net"];

pub const PSK: &str = "correct horse battery staple";

/// Policies of the endpoints.
#[derive(Clone)]
pub struct Policies {
    pub mobile: Vec<Licence>,
    pub gateway: Vec<Licence>,
    pub stance: Stance,
    pub snoop: bool,
    /// True if the gateway knows the mobile node's address and initiates as well.
    pub both_begin: bool,
    /// True for a second tunnel, to the telephones.
    pub voice: bool,
    /// True if both ends use ML-KEM in addition to the group, also in rekeys of child SAs.
    pub kem: bool,
    /// Number of tunnels for the same traffic.
    pub resources: u8,
    /// Number of paths that carry packets at the same time.
    pub paths: u8,
    /// Addresses of the mobile node at which the licensed node may read the headers; if there are
    /// any, its licence holds nowhere else.
    pub at: Vec<IpAddr>,
    /// True if extended sequence numbers are requested: by the mobile node, and by the gateway.
    pub esn: [bool; 2],
    /// Mode of the first tunnel. Other modes than tunnel run between two hosts.
    pub mode: Mode,
    /// Kind of zone map.
    pub map: MapKind,
    /// Limit, in octets, to which the licensed node lowers windows.
    pub window: Option<u32>,
    /// Limits within which the licensed node acts for a silent mobile node.
    pub stand_in: Option<pep::Patience>,
    /// Interval of cover traffic; both ends then pad as well.
    pub cover: Option<Duration>,
    /// Grants for unencrypted packets: of the mobile node, and of the gateway.
    pub levels: [Option<LevelGrant>; 2],
    /// Of the packets that may go unencrypted, every n-th is encrypted all the same.
    pub every: u32,
    /// Packets are opaque while the loss of incoming packets is below this value, in
    /// ten-thousandths.
    pub opaque_below: u16,
    /// How the tunnel is resumed.
    pub resumption: Resumption,
}

impl Default for Policies {
    /// Both ends license the header zone to the licensed node.
    fn default() -> Self {
        let licences = vec![licence(NAMES[LICENSED], 1)];
        Self {
            mobile: licences.clone(),
            gateway: licences,
            stance: Stance::Require,
            snoop: true,
            both_begin: false,
            voice: false,
            kem: false,
            resources: 1,
            paths: 1,
            at: Vec::new(),
            esn: [false; 2],
            mode: Mode::Tunnel,
            map: MapKind::Changeable,
            window: None,
            stand_in: None,
            cover: None,
            levels: [None; 2],
            every: 0,
            opaque_below: 0,
            resumption: Resumption::Off,
        }
    }
}

/// Returns a fixed map with this number of header octets.
pub fn fixed_map(len: u16) -> MapKind {
    let zone = ZoneId::DESIGNATED;
    MapKind::Fixed(vec![Run { zone, len }])
}

pub fn licence(node: &str, zone: u8) -> Licence {
    Licence {
        node: node.parse().unwrap(),
        zone: ZoneId(zone),
        right: Right::Read,
    }
}

/// Returns licences for the licensed node to read the headers and to exercise one more right.
pub fn licence_to(right: Right) -> Vec<Licence> {
    vec![Licence {
        right,
        ..licence(NAMES[LICENSED], 1)
    }]
}

/// Asserts that the node exercises no right beyond reading that only one end licenses.
pub fn one_end_alone_gives_nothing(more: &Licence, policies: impl Fn(Vec<Licence>) -> Policies) {
    for who in [MOBILE, GATEWAY] {
        let mut policies = policies(vec![licence(NAMES[LICENSED], 1)]);
        match who {
            MOBILE => policies.mobile = vec![more.clone()],
            _ => policies.gateway = vec![more.clone()],
        }
        let world = World::connected(policies);
        assert!(world.nodes[LICENSED].held_grants().is_empty());
    }
}

/// The three hosts and the network.
pub struct World {
    pub now: Instant,
    pub nodes: Vec<Node>,
    /// Datagrams delivered by each host's tunnel.
    pub delivered: [Vec<Vec<u8>>; 3],
    /// Events of each host.
    pub events: [Vec<Event>; 3],
    /// Every ESP packet that left an endpoint, with the endpoint.
    pub sealed: Vec<(usize, Vec<u8>)>,
    /// Every ESP packet that the licensed node originated or retransmitted.
    pub resent: Vec<Vec<u8>>,
    /// Every IKE message that left a host, without a marker, with the host.
    pub ike: Vec<(usize, Vec<u8>)>,
    /// Packets dropped by each host's data plane.
    pub dropped: [Vec<DropReason>; 3],
    pub wireless: Hop,
    pub wired: Hop,
    /// Additional loss of IKE messages, in per mille.
    pub ike_lost: u16,
    /// Hosts whose ESP packets are lost on the way, while their IKE messages pass.
    pub esp_lost: [bool; 3],
    /// Hosts that are switched off.
    pub off: [bool; 3],
    /// A host that receives no message of one exchange, with the number of the exchange.
    pub silent_in: Option<(usize, u8)>,
    /// Hosts that receive no packets addressed to them.
    pub deaf: [bool; 3],
    /// Addresses without a link: no packet leaves from there or arrives.
    pub cut: Vec<IpAddr>,
    /// An address from which no answer to an INFORMATIONAL request leaves.
    pub mute: Option<IpAddr>,
    /// How the mobile node appears; without a NAT, under its own address and ports.
    pub nat: Nat,
    /// Number that the NAT adds to the ports of ESP packets in addition.
    pub apart: u16,
    /// ECN field of the outer header with which every packet arrives.
    pub mark: Ecn,
    /// MTU of the hosts' interfaces, and the length that a packet between the endpoints may have.
    pub interface: u16,
    pub carries: u16,
    /// True if routers report the packets that are too long for them.
    pub reports: bool,
    /// Sent datagrams, the newest last.
    pub past: VecDeque<Flight>,
    /// State changes of peers and grants.
    pub watch: Watch,
    pub policies: Policies,
    /// The sessions of each host, which outlive its process.
    pub stores: [Memory; 3],
    network: Network<Flight>,
}

/// A UDP datagram in flight.
#[derive(Clone)]
pub struct Flight {
    pub path: Path,
    pub payload: Vec<u8>,
    /// True if the datagram has passed the licensed node, or does not cross it.
    pub passed: bool,
}

fn is_esp(payload: &[u8]) -> bool {
    matches!(Datagram::parse(payload), Datagram::Esp(_))
}

/// Number of sent datagrams that are kept.
const PAST: usize = 256;

impl World {
    pub fn new(policies: Policies) -> Self {
        Self::seeded(policies, 7)
    }

    pub fn seeded(policies: Policies, seed: u64) -> Self {
        let mut octets = [7; 32];
        octets[..8].copy_from_slice(&seed.to_be_bytes());
        let mut rng = Rng::from_seed(octets);
        let nodes = (0..3)
            .map(|who| Node::new(config(who, &policies), rng.array(), Instant::ZERO))
            .collect();
        let mut world = Self {
            now: Instant::ZERO,
            nodes,
            delivered: Default::default(),
            events: Default::default(),
            resent: Vec::new(),
            sealed: Vec::new(),
            ike: Vec::new(),
            dropped: Default::default(),
            wireless: Hop::default(),
            wired: Hop::default(),
            ike_lost: 0,
            esp_lost: [false; 3],
            off: [false; 3],
            silent_in: None,
            deaf: [false; 3],
            cut: Vec::new(),
            mute: None,
            nat: Nat {
                outside: address(MOBILE),
                shift: 0,
            },
            apart: 0,
            mark: Ecn::NotEct,
            interface: 1500,
            carries: u16::MAX,
            reports: false,
            past: VecDeque::new(),
            watch: Watch::default(),
            policies,
            stores: [(); 3].map(|()| Memory::new(100)),
            network: Network::new(rng),
        };
        (0..3).for_each(|who| world.look(who, "the start"));
        world.collect();
        world
    }

    /// Creates a world in which the tunnel is up and the licensed node holds its keys.
    pub fn connected(policies: Policies) -> Self {
        let mut world = Self::new(policies);
        world.run_for(Duration::from_secs(10));
        assert!(world.tunnel_is_up(), "{:?}", world.events);
        world
    }

    pub fn tunnel_is_up(&self) -> bool {
        [MOBILE, GATEWAY].iter().all(|who| {
            self.nodes[*who].peers().iter().any(|peer| {
                let firsts = usize::from(self.policies.resources);
                peer.children.len() == firsts + usize::from(self.policies.voice)
            })
        })
    }

    /// Kills a host's process and starts it again.
    pub fn restart(&mut self, who: usize) {
        self.nodes[who] = Node::new(
            config(who, &self.policies),
            self.network.rng.array(),
            self.now,
        );
        self.watch.forget(who);
        self.look(who, "the start");
        self.collect();
    }

    /// Runs an operator's command on a host.
    pub fn command<T>(&mut self, who: usize, say: impl FnOnce(&mut Node, Instant) -> T) -> T {
        let answer = say(&mut self.nodes[who], self.now);
        self.look(who, "a command");
        self.collect();
        answer
    }

    /// Returns the SPIs of an endpoint's tunnels, the SPI towards the mobile node first.
    pub fn spis(&self, who: usize) -> Vec<(Spi, Spi)> {
        let peers = self.nodes[who].peers();
        let children = peers.iter().flat_map(|peer| &peer.children);
        let mut spis: Vec<_> = children
            .map(|child| match who {
                MOBILE => (child.inbound, child.outbound),
                _ => (child.outbound, child.inbound),
            })
            .collect();
        spis.sort();
        spis
    }

    /// Reconfigures a running host. Returns the peers whose SAs are replaced.
    pub fn reconfigure(&mut self, who: usize, change: impl FnOnce(&mut Config)) -> Vec<String> {
        let mut config = config(who, &self.policies);
        change(&mut config);
        let anew = self.nodes[who].reconfigure(config, self.now);
        self.look(who, "a changed configuration");
        self.collect();
        let node = &self.nodes[who];
        anew.into_iter()
            .map(|id| node.name(id).to_owned())
            .collect()
    }

    /// Sends one datagram into a host's tunnel.
    pub fn send(&mut self, from: usize, datagram: &[u8]) {
        let mut outlet = Outlet::default();
        let mut batch = [Packet::with_capacity(2000)];
        batch[0].fill(datagram);
        let before = accounts::sealing(&self.nodes[from]);
        self.nodes[from].seal(&mut batch, &mut outlet, self.now);
        assert_eq!(accounts::sealing(&self.nodes[from]), before + 1);
        // The delivered packet informs the source that the datagram is too long.
        let fates = [
            outlet.transmitted.len(),
            outlet.dropped.len(),
            outlet.delivered.len(),
        ];
        assert_eq!(fates.iter().sum::<usize>(), 1);
        self.sort(from, outlet);
        self.collect();
    }

    /// Seals packets of any number of pieces.
    #[allow(dead_code, reason = "one of the programs that share this file")]
    pub fn seal_batch(&mut self, from: usize, batch: &mut [Packet]) {
        let mut outlet = Outlet::default();
        self.nodes[from].seal(batch, &mut outlet, self.now);
        self.sort(from, outlet);
        self.collect();
    }

    /// Returns the mobile node's address of a connection, and that of a server behind the gateway.
    pub fn ends(&self) -> [&'static str; 2] {
        match self.policies.mode {
            Mode::Transport => ["192.0.2.2:40000", "198.51.100.1:80"],
            Mode::Tunnel | Mode::Beet => ["10.1.0.2:40000", "10.8.0.1:80"],
        }
    }

    /// Returns the part of a datagram that the mode carries: without the header if the receiver
    /// rebuilds it.
    pub fn carried(&self, datagram: &[u8]) -> Vec<u8> {
        let header = wire::ip::Header::parse(datagram).unwrap();
        match self.policies.mode {
            Mode::Tunnel => datagram.to_vec(),
            Mode::Transport | Mode::Beet => header.payload().to_vec(),
        }
    }

    /// Sends a TCP segment from the mobile node to a server behind the gateway, or back.
    pub fn segment(&mut self, from: usize, seq: u32, payload: &[u8]) -> Vec<u8> {
        let [client, server] = self.ends();
        let segment = match from {
            MOBILE => datagram::tcp(client, server, seq, 1, payload),
            _ => datagram::tcp(server, client, seq, 1, payload),
        };
        self.send(from, &segment);
        segment
    }

    /// Sends a segment in a flow of its own, identified by its port.
    pub fn flow(&mut self, from: usize, port: u16, seq: u32) {
        let client = format!("10.1.0.2:{port}");
        let (client, server) = (client.as_str(), "10.8.0.1:80");
        let payload = seq.to_be_bytes();
        let segment = match from {
            MOBILE => datagram::tcp(client, server, seq, 1, &payload),
            _ => datagram::tcp(server, client, seq, 1, &payload),
        };
        self.send(from, &segment);
    }

    /// Sends a segment to or from a telephone behind the gateway.
    pub fn call(&mut self, from: usize, seq: u32, payload: &[u8]) -> Vec<u8> {
        let (client, phone) = ("10.1.0.2:40000", "10.9.0.1:5060");
        let segment = match from {
            MOBILE => datagram::tcp(client, phone, seq, 1, payload),
            _ => datagram::tcp(phone, client, seq, 1, payload),
        };
        self.send(from, &segment);
        segment
    }

    /// Delivers a datagram to a host on a path as the host sees it, and checks that it is counted
    /// once.
    pub fn hand_over(&mut self, who: usize, path: Path, payload: &[u8]) {
        let datagram = match path.local.port() {
            500 => Datagram::Ike(payload),
            _ => Datagram::parse(payload),
        };
        match datagram {
            Datagram::Ike(message) => {
                let before = accounts::ike(&self.nodes[who]);
                self.nodes[who].handle_datagram(path, message, self.now);
                assert_eq!(accounts::ike(&self.nodes[who]), before + 1);
            }
            Datagram::Keepalive => {}
            Datagram::Esp(packet) => {
                let mut packet = Packet::from_slice(packet);
                (packet.path, packet.ecn) = (Some(path), self.mark);
                let mut outlet = Outlet::default();
                let before = accounts::opening(&self.nodes[who]);
                self.nodes[who].open(&mut [packet], &mut outlet, self.now);
                assert_eq!(accounts::opening(&self.nodes[who]), before + 1);
                assert_eq!(outlet.delivered.len() + outlet.dropped.len(), 1);
                self.sort(who, outlet);
            }
        }
    }

    /// Passes a packet between the endpoints to the licensed node.
    fn pass(&mut self, flight: Flight) {
        let from = if owner(flight.path.remote.ip()) == Some(GATEWAY) {
            Side::Wireless
        } else {
            Side::Wired
        };
        let packet = datagram::udp(flight.path.local, flight.path.remote, &flight.payload);
        if self.off[LICENSED] || self.transit(from, &packet) == Verdict::Forward {
            let passed = true;
            self.fly(Flight { passed, ..flight }, self.hop_on(from.opposite()));
        }
    }

    /// Passes a transit packet to the licensed node.
    pub fn transit(&mut self, from: Side, packet: &[u8]) -> Verdict {
        let before = accounts::transit(&self.nodes[LICENSED]);
        let verdict = self.nodes[LICENSED].transit(from, packet, self.now);
        assert_eq!(accounts::transit(&self.nodes[LICENSED]), before + 1);
        verdict
    }

    /// Passes requests of the hosts to their stores, which answer at once.
    fn ask_stores(&mut self) {
        for (who, store) in self.stores.iter_mut().enumerate() {
            while let Some(operation) = self.nodes[who].poll_store() {
                store.submit(operation, UnixTime::default());
                while let Some(outcome) = store.poll() {
                    self.nodes[who].handle_stored(outcome, self.now);
                    self.watch.look(who, &self.nodes[who], "an IKE message");
                }
            }
        }
    }

    fn look(&mut self, who: usize, cause: &str) {
        self.watch.look(who, &self.nodes[who], cause);
    }

    fn sort(&mut self, who: usize, outlet: Outlet) {
        self.delivered[who].extend(outlet.delivered);
        self.dropped[who].extend(outlet.dropped);
        for (path, payload) in outlet.transmitted {
            self.sealed.push((who, payload.clone()));
            if self.esp_lost[who] {
                continue;
            }
            let local = local_end(who, path);
            self.depart(who, Path { local, ..path }, payload);
        }
    }

    fn depart(&mut self, who: usize, mut path: Path, payload: Vec<u8>) {
        // With the headers of IP and UDP.
        let is_long = payload.len() + 28 > self.carries.into();
        if is_long && is_esp(&payload) && self.reports {
            let report = Quoted {
                path,
                header: Header::parse(&payload),
                mtu: self.carries,
            };
            self.nodes[who].handle_too_big(report, self.now);
        }
        let is_cut = [path.local, path.remote]
            .iter()
            .any(|end| self.cut.contains(&end.ip()));
        if self.off[who] || is_cut || (is_long && is_esp(&payload)) {
            return;
        }
        if who == MOBILE && path.local.ip() == address(MOBILE) {
            let esp = path.local.port() != 500 && is_esp(&payload);
            let apart = if esp { self.apart } else { 0 };
            path.local = self.nat.outward(path.local);
            path.local.set_port(path.local.port() + apart);
        }
        let between_ends = who != LICENSED && owner(path.remote.ip()) != Some(LICENSED);
        let side = if who == MOBILE {
            Side::Wireless
        } else {
            Side::Wired
        };
        let flight = Flight {
            path,
            payload,
            passed: !between_ends,
        };
        if self.past.len() == PAST {
            self.past.pop_front();
        }
        self.past.push_back(flight.clone());
        self.fly(flight, self.hop_on(side));
    }

    /// Sends a datagram of an attacker, which always arrives.
    pub fn inject(&mut self, flight: Flight) {
        self.fly(flight, Hop::PERFECT);
    }

    /// Returns the host that receives at an address, and its local address.
    fn receiver(&self, remote: SocketAddr) -> Option<(usize, SocketAddr)> {
        if is_further(remote.ip()) {
            return Some((MOBILE, remote));
        }
        if let Some(mut inside) = self.nat.inward(remote, address(MOBILE)) {
            if ![500, 4500].contains(&inside.port()) {
                inside.set_port(inside.port().checked_sub(self.apart)?);
            }
            return Some((MOBILE, inside));
        }
        let who = owner(remote.ip()).filter(|who| *who != MOBILE)?;
        Some((who, remote))
    }

    const fn hop_on(&self, side: Side) -> Hop {
        match side {
            Side::Wireless => self.wireless,
            Side::Wired => self.wired,
        }
    }

    fn fly(&mut self, flight: Flight, hop: Hop) {
        self.network.send(flight, &hop, self.now);
    }
}

impl Hosts for World {
    type Packet = Flight;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Flight> {
        &mut self.network
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = self.nodes.iter().filter_map(Node::poll_timeout);
        deadlines.map(|deadline| deadline.at).min()
    }

    fn handle_timeout(&mut self) {
        let mut covers = Vec::new();
        for (who, (node, name)) in self.nodes.iter_mut().zip(NAMES).enumerate() {
            let is_due = |node: &Node| {
                let deadline = node.poll_timeout();
                deadline.is_some_and(|deadline| deadline.at <= self.now)
            };
            if is_due(node) {
                node.handle_timeout(self.now);
                // A search for another path begins with a deadline that is due at once.
                if is_due(node) {
                    node.handle_timeout(self.now);
                }
                while let Some(path) = node.poll_path_mtu() {
                    node.handle_interface_mtu(path, self.interface, self.now);
                }
                let mut outlet = Outlet::default();
                node.cover(&mut Packet::with_capacity(2000), &mut outlet);
                covers.push((who, outlet));
                self.watch.look(who, node, "a deadline");
                let next = node.poll_timeout();
                assert!(!is_due(node), "{name} is due for ever: {next:?}");
            }
        }
        for (who, outlet) in covers {
            self.sort(who, outlet);
        }
    }

    fn receive(&mut self, flight: Flight) {
        if !flight.passed {
            return self.pass(flight);
        }
        let Some((who, local)) = self.receiver(flight.path.remote) else {
            return;
        };
        if self.off[who] || self.deaf[who] {
            return;
        }
        let remote = flight.path.local;
        self.hand_over(who, Path::udp(local, remote), &flight.payload);
        self.look(who, "an IKE message");
    }

    fn collect(&mut self) {
        self.ask_stores();
        for who in 0..ADDRESSES.len() {
            while let Some(transmit) = self.nodes[who].poll_transmit() {
                let local = local_end(who, transmit.path);
                let path = Path {
                    local,
                    ..transmit.path
                };
                let message = datagram::ike(&transmit).to_vec();
                // Of an INFORMATIONAL exchange (37), a message with the flag of a response.
                let is_answer = message[18] == 37 && message[19] & 0x20 != 0;
                let is_mute = is_answer && self.mute == Some(local.ip());
                let silent = self.silent_in == Some((who, message[18])) || is_mute;
                self.ike.push((who, message));
                if silent {
                    continue;
                }
                if self.ike_lost == 0 || self.network.rng.u16() % 1000 >= self.ike_lost {
                    self.depart(who, path, transmit.payload);
                }
            }
            while let Some((to, packet)) = self.nodes[who].poll_resend() {
                let socket = |address: usize, port: usize| {
                    let address = <[u8; 4]>::try_from(&packet[address..address + 4]).unwrap();
                    let port = u16::from_be_bytes([packet[port], packet[port + 1]]);
                    SocketAddr::new(IpAddr::from(address), port)
                };
                let path = Path::udp(socket(12, 20), socket(16, 22));
                let payload = datagram::udp_payload(&packet).to_vec();
                self.resent.push(payload.clone());
                let flight = Flight {
                    path,
                    payload,
                    passed: true,
                };
                self.fly(flight, self.hop_on(to));
            }
            while let Some(event) = self.nodes[who].poll_event() {
                self.events[who].push(event);
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.watch.assert_documented();
        }
    }
}

fn is_further(address: IpAddr) -> bool {
    [SECOND, THIRD].contains(&address.to_string().as_str())
}

/// Returns the local end of a packet: the mobile node has several addresses, and a host's first one
/// is used where the system would choose.
fn local_end(who: usize, path: Path) -> SocketAddr {
    let local = match is_further(path.local.ip()) {
        true => path.local.ip(),
        false => address(who),
    };
    SocketAddr::new(local, path.local.port())
}

pub fn address(who: usize) -> IpAddr {
    ADDRESSES[who].parse().unwrap()
}

fn owner(address: IpAddr) -> Option<usize> {
    ADDRESSES
        .iter()
        .position(|known| address.to_string() == *known)
}

pub fn config(who: usize, policies: &Policies) -> Config {
    let inner = |text: &str, length| {
        let inner = TrafficSelector::from_prefix(text.parse().unwrap(), length);
        Selectors::from(vec![inner.unwrap()])
    };
    let (mobile_side, server_side) = match policies.mode {
        Mode::Tunnel => (inner("10.1.0.2", 32), inner("10.8.0.0", 16)),
        Mode::Beet => (inner("10.1.0.2", 32), inner("10.8.0.1", 32)),
        Mode::Transport => (inner(ADDRESSES[MOBILE], 32), inner(ADDRESSES[GATEWAY], 32)),
    };
    let zones = |licences: &[Licence]| ZonePolicy {
        map: policies.map.clone(),
        stance: policies.stance,
        zones: vec![
            (ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
            (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
        ],
        window: 4096,
        licences: licences.to_vec(),
        level: policies.levels[usize::from(who != MOBILE)],
    };
    let address = |who: usize| Some(ADDRESSES[who].parse().unwrap());
    let mut peers = match who {
        MOBILE => vec![peer(
            "gw",
            GATEWAY,
            address(GATEWAY),
            Role::Vpn {
                local: mobile_side,
                remote: server_side,
                addressing: Addressing::Fixed,
                zones: zones(&policies.mobile).into(),
                mode: policies.mode,
            },
        )],
        GATEWAY => vec![
            peer(
                "alice",
                MOBILE,
                policies
                    .both_begin
                    .then(|| ADDRESSES[MOBILE].parse().unwrap()),
                Role::Vpn {
                    local: server_side,
                    remote: mobile_side,
                    addressing: Addressing::Fixed,
                    zones: zones(&policies.gateway).into(),
                    mode: policies.mode,
                },
            ),
            peer("fa", LICENSED, address(LICENSED), Role::Licensed),
        ],
        _ => vec![peer("gw", GATEWAY, None, Role::Gateway)],
    };
    if policies.voice && who != LICENSED {
        let (mobile_side, phones) = (inner("10.1.0.2", 32), inner("10.9.0.0", 16));
        let (local, remote) = match who {
            MOBILE => (mobile_side, phones),
            _ => (phones, mobile_side),
        };
        peers[0].ike.children = vec![ChildPolicy {
            name: "voice".to_owned(),
            local: local.to_vec(),
            remote: remote.to_vec(),
            mode: Mode::Tunnel,
            lifetime: Duration::from_secs(3600),
            pfs: true,
            auto: true,
        }];
    }
    if who != LICENSED {
        peers[0].ike.resumption = policies.resumption;
        peers[0].ike.features.resources = policies.resources;
        peers[0].ike.features.paths = policies.paths;
        place(&mut peers[0], &policies.at);
        peers[0].ike.features.esn = policies.esn[usize::from(who == GATEWAY)];
    }
    if policies.kem && who != LICENSED {
        peers[0].ike.kems = vec![Some(model::Kem::MlKem512), None];
    }
    if who != LICENSED {
        peers[0].sizes = policies.cover.map(|_| Sizes::one(1000));
        peers[0].cover = policies.cover;
        peers[0].level = LevelChoice {
            every: policies.every,
            opaque_below: policies.opaque_below,
            ..LevelChoice::default()
        };
    }
    Config {
        start: match who {
            MOBILE => vec!["gw".to_owned()],
            GATEWAY if policies.both_begin => vec!["alice".to_owned()],
            _ => Vec::new(),
        },
        // Hosts have different numbers of workers, which must not affect any result.
        workers: std::num::NonZeroU8::MIN.saturating_add(who as u8),
        snoop: (policies.snoop && who == LICENSED).then(pep::Config::default),
        window: policies.window.filter(|_| who == LICENSED),
        stand_in: policies.stand_in.filter(|_| who == LICENSED),
        grant_lifetime: Duration::from_secs(3600),
        ..Config::new(identity(who), peers)
    }
}

/// Licenses the licensed node at these addresses of the mobile node, if there are any, and nowhere
/// else.
fn place(peer: &mut Peer, at: &[IpAddr]) {
    let Role::Vpn { zones, .. } = &mut peer.ike.role else {
        return;
    };
    if at.is_empty() {
        return;
    }
    let licences = std::mem::take(&mut zones.licences);
    let at = at
        .iter()
        .filter_map(|at| TrafficSelector::from_prefix(*at, 32));
    let at: Vec<_> = at.collect();
    let slot = Slot {
        paths: at.clone(),
        ..Slot::new(identity(LICENSED), licences, zones)
    };
    peer.ike.slots = vec![slot];
    peer.places = Some(Places {
        nodes: vec![(identity(LICENSED), at)],
        ..Places::default()
    });
}

pub fn peer(name: &str, who: usize, address: Option<IpAddr>, role: Role) -> Peer {
    let mut peer = Peer::new(name, identity(who), role);
    peer.ike.address = address;
    peer.ike.psk = Some(Secret::new(PSK.as_bytes().to_vec()));
    peer.ike.features = Features::offered();
    peer.ike.features.clones = true;
    peer
}

/// Reloads an endpoint's configuration, with or without its licences.
pub fn license(world: &mut World, who: usize, licensed: bool) {
    world.reconfigure(who, |config| {
        let Role::Vpn { zones, .. } = &mut config.peers[0].ike.role else {
            panic!("the first peer of an endpoint is the other end of the tunnel");
        };
        zones.licences.retain(|_| licensed);
    });
}

pub fn identity(who: usize) -> Identity {
    NAMES[who].parse().unwrap()
}
