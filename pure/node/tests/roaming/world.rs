//! Five hosts and the network between them.
//!
//! ```text
//!            link 0 ---- agent A ----.
//!   mobile   link 1 ---- agent B ------ network ---- home (gateway, home agent)
//!            link 2 ---- agent C ----'
//! ```
//!
//! Packets of the mobile node pass its current agent, which shows them to its licensed node and
//! puts them into its tunnel. Packets to the mobile node take the same way back.
//!
//! Witnesses observe sealed packets and holders of keys (`witness.rs`), and shared keys
//! (`holders.rs`).

use super::datagram;
use super::holders::Holders;
use super::hosts::{
    ADDRESSES, AGENT, AGENTS, GATEWAY, HOME, HOSTS, MOBILE, NAMES, Policies, config,
};
use super::outlet::Outlet;
use super::witness::Witness;
use crypto::Rng;
use model::{Instant, Path, Spi};
use node::mobile_ip::{Arrival, Envelope, NtpTime, Remote, Station, Status, Transmit};
use node::{DropReason, Event, Node, Packet, Side, Verdict};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::ecn::Ecn;
use wire::esp::Datagram;
use wire::ike::{ExchangeType, Header as IkeHeader};

pub use ::world::{Hop, Hosts, Network};

/// Start of each world by the hosts' clocks, and in calendar time.
const START: Duration = Duration::from_secs(1000);
const TODAY: Duration = Duration::from_secs(1_800_000_000);

/// Link-layer address of every station on a link.
const STATION: Station = Station([2, 0, 0, 0, 0, 1]);

/// A packet in flight.
#[derive(Clone)]
pub enum Flight {
    /// On a link, from the mobile node.
    Up(usize, Vec<u8>),
    /// On a link, to the mobile node.
    Down(usize, Vec<u8>),
    /// In a tunnel, between a care-of address and home.
    Tunnel(Ipv4Addr, Ipv4Addr, Vec<u8>),
    /// IKE between home and an agent.
    Direct(usize, Path, Vec<u8>),
    /// Agent discovery of Mobile IP: receiver, link, source and message.
    Discovery(usize, u32, Ipv4Addr, Vec<u8>),
    Registration(usize, Arrival, Vec<u8>),
}

/// An entry of the story.
pub enum Message {
    /// An IKE message left a host.
    Ike {
        to: usize,
        exchange: ExchangeType,
        response: bool,
    },
    /// A registration message left a host.
    Registration { to: usize, reply: bool },
    /// A host reported an event to its driver.
    Told(Event),
}

pub struct World {
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub policies: Policies,
    pub delivered: [Vec<Vec<u8>>; 2],
    pub events: Vec<Vec<Event>>,
    /// The story in order: time, host and entry.
    pub story: Vec<(Instant, usize, Message)>,
    pub dropped: Vec<DropReason>,
    pub links: [bool; AGENTS],
    pub wireless: Hop,
    pub wired: Hop,
    /// Hosts that are switched off.
    pub off: [bool; HOSTS],
    /// Hosts that receive no message of one exchange, with the number of the exchange.
    pub silent_in: Option<(usize, u8)>,
    /// A host whose clock stands still: none of its timeouts is handled.
    pub timeless: Option<usize>,
    pub witness: Witness,
    pub holders: Holders,
    /// Location of the mobile node, to home's knowledge.
    place: BTreeSet<usize>,
    pub network: Network<Flight>,
}

impl World {
    /// Creates all hosts; the mobile node has no link yet.
    pub fn new(policies: Policies, seed: u64) -> Self {
        let mut octets = [7; 32];
        octets[..8].copy_from_slice(&seed.to_be_bytes());
        let mut rng = Rng::from_seed(octets);
        let now = Instant::from_origin(START);
        let witness = Witness::new(policies.handover);
        let nodes = (0..HOSTS).map(|who| Node::new(config(who, &policies), rng.array(), now));
        let mut world = Self {
            now,
            nodes: nodes.collect(),
            policies,
            delivered: Default::default(),
            events: vec![Vec::new(); HOSTS],
            story: Vec::new(),
            dropped: Vec::new(),
            links: [false; AGENTS],
            wireless: Hop::default(),
            wired: Hop::default(),
            off: [false; HOSTS],
            silent_in: None,
            timeless: None,
            witness,
            holders: Holders::default(),
            place: BTreeSet::new(),
            network: Network::new(rng),
        };
        (0..HOSTS).for_each(|who| world.tell_time(who));
        (0..AGENTS).for_each(|link| world.set_link(link, false));
        world
    }

    /// Creates a world with the mobile node at an agent, which reads its tunnel.
    pub fn at(policies: Policies, agent: usize) -> Self {
        let mut world = Self::new(policies, 7);
        world.set_link(agent, true);
        world.run_for(Duration::from_secs(10));
        assert_eq!(world.readers(), [Some(agent); 2], "{:?}", world.events);
        world
    }

    /// Leaves the mobile node on this link only.
    pub fn move_to(&mut self, agent: usize) {
        (0..AGENTS).for_each(|link| self.set_link(link, link == agent));
    }

    pub fn set_link(&mut self, link: usize, up: bool) {
        self.links[link] = up;
        self.nodes[MOBILE].handle_link(link as u32, up, self.now);
        self.collect();
    }

    /// Kills a host's process and starts it again.
    pub fn restart(&mut self, who: usize) {
        self.nodes[who] = Node::new(
            config(who, &self.policies),
            self.network.rng.array(),
            self.now,
        );
        self.tell_time(who);
        if who == MOBILE {
            (0..AGENTS).for_each(|link| self.set_link(link, self.links[link]));
        }
        self.collect();
    }

    /// Switches a host off, as if it were suspended, or on again.
    pub fn switch(&mut self, who: usize) {
        self.off[who] = !self.off[who];
        if !self.off[who] {
            // Timeouts that passed in the meantime are handled first.
            self.nodes[who].handle_timeout(self.now);
            self.collect();
        }
    }

    pub fn command<T>(&mut self, who: usize, say: impl FnOnce(&mut Node, Instant) -> T) -> T {
        let answer = say(&mut self.nodes[who], self.now);
        self.collect();
        answer
    }

    /// Sends a TCP segment from the mobile node to a server at home, or back.
    pub fn segment(&mut self, from: usize, seq: u32) -> Vec<u8> {
        let (client, server) = ("10.1.0.2:40000", "10.8.0.1:80");
        let payload = [0x5a; 100];
        let segment = match from {
            MOBILE => datagram::tcp(client, server, seq, 1, &payload),
            _ => datagram::tcp(server, client, seq, 1, &payload),
        };
        let mut outlet = Outlet::default();
        let mut batch = [Packet::with_capacity(2000)];
        batch[0].fill(&segment);
        self.nodes[from].seal(&mut batch, &mut outlet, self.now);
        self.sort(from, outlet);
        self.collect();
        segment
    }

    /// Returns true if both ends know that the mobile node is at this agent only.
    pub fn is_at(&self, agent: usize) -> bool {
        [MOBILE, HOME]
            .iter()
            .all(|end| self.places(*end) == [agent].into())
    }

    /// Sends a segment each way. Returns true if both arrive.
    pub fn traffic_flows(&mut self) -> bool {
        let seq = self.network.sent() as u32;
        let (up, down) = (self.segment(MOBILE, seq), self.segment(HOME, seq));
        self.run_for(Duration::from_secs(1));
        self.delivered[HOME].contains(&up) && self.delivered[MOBILE].contains(&down)
    }

    /// Returns the agents that hold the keys in use at the mobile node and at home.
    pub fn readers(&self) -> [Option<usize>; 2] {
        [MOBILE, HOME].map(|who| {
            let spi = self.slot(who)?;
            (0..AGENTS).find(|agent| {
                let held = self.nodes[AGENT + agent].held_grants();
                held.iter()
                    .any(|held| [held.from_gateway, held.to_gateway].contains(&spi))
            })
        })
    }

    /// Returns true if an agent holds the keys in use at both ends.
    pub fn reads(&self, agent: usize) -> bool {
        let held = self.nodes[AGENT + agent].held_grants();
        let holds = |spi: Spi| {
            let mut held = held.iter();
            held.any(|held| [held.from_gateway, held.to_gateway].contains(&spi))
        };
        [MOBILE, HOME].map(|who| self.slot(who).is_some_and(holds)) == [true; 2]
    }

    /// Returns the number of rekeys of slots reported by an end.
    pub fn rekeyed(&self, who: usize) -> usize {
        let events = self.events[who].iter();
        let new = events.filter(
            |event| matches!(event, Event::ChildRekeyed { child, .. } if node::is_slot(child.as_deref())),
        );
        new.count()
    }

    /// Returns the SPI that an end sends on, if that is in a slot.
    pub fn slot(&self, who: usize) -> Option<Spi> {
        let peers = self.nodes[who].peers();
        let children = peers.iter().flat_map(|peer| &peer.children);
        let mut used = children.filter(|child| {
            node::is_slot(child.name.as_deref()) && !child.waiting && !child.draining
        });
        used.next().map(|child| child.outbound)
    }

    /// Returns the number of segments that an agent has read.
    pub fn read(&self, agent: usize) -> u64 {
        self.nodes[AGENT + agent].transit_counters().segments
    }

    /// Returns the number of packets that an agent could not open.
    pub fn unread(&self, agent: usize) -> u64 {
        self.nodes[AGENT + agent].transit_counters().unlicensed
    }

    /// Returns the packets in flight that match.
    pub fn under_way(&self, is_so: impl Fn(&Flight) -> bool) -> Vec<Flight> {
        let flights = self.network.in_flight();
        flights.filter(|flight| is_so(flight)).cloned().collect()
    }

    // Internals.

    fn tell_time(&mut self, who: usize) {
        let passed = self.now.since(Instant::from_origin(START));
        let time = NtpTime::from_unix(TODAY).plus(passed);
        self.nodes[who].set_time_of_day(time, self.now);
    }

    fn has_time(&self, who: usize) -> bool {
        !self.off[who] && self.timeless != Some(who)
    }

    /// Returns true if the receiver of a packet is on and, if it is the mobile node, has that link.
    fn is_heard(&self, flight: &Flight) -> bool {
        let (who, link) = match flight {
            Flight::Up(link, _) => (Some(AGENT + link), 0),
            Flight::Down(link, _) => (Some(MOBILE), *link),
            Flight::Tunnel(_, to, _) => (owner(*to), 0),
            Flight::Direct(who, ..) => (Some(*who), 0),
            Flight::Discovery(who, link, ..) => (Some(*who), *link as usize),
            Flight::Registration(who, arrival, _) => (Some(*who), arrival.interface as usize),
        };
        who.is_some_and(|who| !self.off[who] && (who != MOBILE || self.links[link]))
    }

    /// Shows a packet to an agent's licensed node. Returns true if the packet is forwarded
    /// unchanged.
    fn shown(&mut self, link: usize, from: Side, packet: &[u8]) -> bool {
        let verdict = self.nodes[AGENT + link].transit(from, packet, self.now);
        verdict == Verdict::Forward
    }

    fn encapsulate(&mut self, who: usize, packet: Vec<u8>) {
        let mut outers = Vec::new();
        let each = |envelope: Envelope| outers.push(envelope.outer);
        self.nodes[who].encapsulate(&packet, each, self.now);
        for outer in outers {
            let flight = Flight::Tunnel(outer.source, outer.destination, packet.clone());
            self.fly(flight, self.wired);
        }
    }

    /// Delivers an IP packet with UDP inside to an end.
    pub fn hand_over(&mut self, who: usize, packet: &[u8]) {
        let address = |at: usize| <[u8; 4]>::try_from(&packet[at..at + 4]).unwrap();
        let port = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let remote = SocketAddr::from((address(12), port(20)));
        let local = SocketAddr::from((address(16), port(22)));
        let payload = datagram::udp_payload(packet).to_vec();
        self.deliver(who, Path::udp(local, remote), &payload);
    }

    fn deliver(&mut self, who: usize, path: Path, payload: &[u8]) {
        let datagram = match path.local.port() {
            500 => Datagram::Ike(payload),
            _ => Datagram::parse(payload),
        };
        match datagram {
            Datagram::Ike(message) => self.nodes[who].handle_datagram(path, message, self.now),
            Datagram::Keepalive => {}
            Datagram::Esp(packet) => {
                let mut packet = Packet::from_slice(packet);
                packet.path = Some(path);
                let mut outlet = Outlet::default();
                self.nodes[who].open(&mut [packet], &mut outlet, self.now);
                self.sort(who, outlet);
            }
        }
    }

    fn sort(&mut self, who: usize, outlet: Outlet) {
        self.dropped.extend(outlet.dropped);
        if let Some(delivered) = self.delivered.get_mut(who) {
            delivered.extend(outlet.delivered);
        }
        for (path, payload) in outlet.transmitted {
            let places = self.places(who);
            self.witness.note_sealed(who, &payload, places, self.now);
            self.depart(who, path, payload);
        }
    }

    /// Returns the agents that the mobile node is at, to the knowledge of an end.
    pub fn places(&self, who: usize) -> BTreeSet<usize> {
        let care_of: Vec<_> = match self.nodes[who].mobile_ip() {
            Some((Status::MobileNode { route, .. }, _)) => {
                route.map(|at| at.care_of).into_iter().collect()
            }
            Some((Status::HomeAgent { homes, .. }, _)) => {
                let bindings = homes.into_iter().flat_map(|(_, bindings)| bindings);
                bindings.map(|place| place.care_of).collect()
            }
            _ => Vec::new(),
        };
        let agents = care_of.into_iter().filter_map(owner);
        agents.map(|who| who - AGENT).collect()
    }

    fn depart(&mut self, who: usize, path: Path, payload: Vec<u8>) {
        if self.off[who] {
            return;
        }
        let local = SocketAddr::new(ADDRESSES[who].into(), path.local.port());
        let remote = owner_of(path.remote.ip());
        match (who, remote) {
            (MOBILE, _) => {
                let Some((
                    Status::MobileNode {
                        route: Some(at), ..
                    },
                    _,
                )) = self.nodes[MOBILE].mobile_ip()
                else {
                    return self.witness.note_lost(self.now);
                };
                let link = at.interface as usize;
                match self.links[link] {
                    true => {
                        let packet = datagram::udp(local, path.remote, &payload);
                        self.fly(Flight::Up(link, packet), self.wireless);
                    }
                    false => self.witness.note_lost(self.now),
                }
            }
            (HOME, Some(MOBILE)) => {
                let packet = datagram::udp(local, path.remote, &payload);
                self.encapsulate(HOME, packet);
            }
            (_, Some(to)) => {
                let path = Path::udp(path.remote, local);
                self.fly(Flight::Direct(to, path, payload), self.wired);
            }
            (_, None) => {}
        }
    }

    fn register(&mut self, who: usize, transmit: Transmit) {
        if self.off[who] {
            return;
        }
        match transmit {
            Transmit::Icmp {
                interface, octets, ..
            } => {
                let (to, link) = match who {
                    MOBILE => (AGENT + interface as usize, 0),
                    agent => (MOBILE, (agent - AGENT) as u32),
                };
                let is_up = who == MOBILE && !self.links[interface as usize];
                if !is_up {
                    let flight = Flight::Discovery(to, link, ADDRESSES[who], octets);
                    self.fly(flight, self.wireless);
                }
            }
            Transmit::Udp {
                interface,
                source,
                destination,
                ttl,
                octets,
                ..
            } => {
                let to = match (who, owner(*destination.ip())) {
                    (MOBILE, _) => AGENT + interface.unwrap_or(0) as usize,
                    (_, Some(to)) => to,
                    (_, None) => return,
                };
                let reply = octets.first() == Some(&3);
                let told = Message::Registration { to, reply };
                self.story.push((self.now, who, told));
                let on_link = who == MOBILE || to == MOBILE;
                let link = match to {
                    MOBILE => (who - AGENT) as u32,
                    _ => 0,
                };
                let arrival = Arrival {
                    interface: link,
                    source,
                    destination: *destination.ip(),
                    ttl,
                };
                let hop = if on_link { self.wireless } else { self.wired };
                self.fly(Flight::Registration(to, arrival, octets), hop);
            }
        }
    }

    pub fn fly(&mut self, flight: Flight, hop: Hop) {
        if !self.network.send(flight, &hop, self.now) {
            self.witness.note_lost(self.now);
        }
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
        let hosts = (0..HOSTS).filter(|who| self.has_time(*who));
        let deadlines = hosts.filter_map(|who| self.nodes[who].poll_timeout());
        deadlines.map(|deadline| deadline.at).min()
    }

    fn handle_timeout(&mut self) {
        let now = self.now;
        let is_due = |node: &Node| node.poll_timeout().is_some_and(|due| due.at <= now);
        for (who, name) in NAMES.into_iter().enumerate() {
            if self.has_time(who) && is_due(&self.nodes[who]) {
                let node = &mut self.nodes[who];
                node.handle_timeout(now);
                let next = node.poll_timeout();
                assert!(!is_due(node), "{name} is due for ever: {next:?}");
            }
        }
    }

    fn receive(&mut self, flight: Flight) {
        if !self.is_heard(&flight) {
            return self.witness.note_lost(self.now);
        }
        match flight {
            Flight::Up(link, packet) => {
                if self.shown(link, Side::Wireless, &packet) {
                    self.encapsulate(AGENT + link, packet);
                }
            }
            Flight::Down(_, packet) => self.hand_over(MOBILE, &packet),
            Flight::Tunnel(from, to, mut inner) => {
                let who = owner(to).expect("it is heard");
                let node = &mut self.nodes[who];
                let from = Remote::Ip(from);
                let packet = node.decapsulate(from, Ecn::NotEct, &mut inner, self.now);
                let Some(packet) = packet else {
                    return;
                };
                let packet = packet.datagram.to_vec();
                match who {
                    HOME => self.hand_over(HOME, &packet),
                    agent => {
                        let link = agent - AGENT;
                        if self.shown(link, Side::Wired, &packet) {
                            self.fly(Flight::Down(link, packet), self.wireless);
                        }
                    }
                }
            }
            Flight::Direct(who, path, payload) => self.deliver(who, path, &payload),
            Flight::Discovery(who, link, source, octets) => {
                self.nodes[who].handle_discovery(link, source, STATION, &octets, self.now);
            }
            Flight::Registration(who, arrival, octets) => {
                let node = &mut self.nodes[who];
                match who {
                    MOBILE => node.handle_nearby(&arrival, STATION, &octets, self.now),
                    _ => node.handle_registration(&arrival, &octets, self.now),
                }
            }
        }
        self.collect();
    }

    fn collect(&mut self) {
        for who in 0..HOSTS {
            while let Some(transmit) = self.nodes[who].poll_registration() {
                self.register(who, transmit);
            }
            while let Some(transmit) = self.nodes[who].poll_transmit() {
                let message = datagram::ike(&transmit).to_vec();
                let silent = self.silent_in == Some((who, message[18]));
                let to = owner_of(transmit.path.remote.ip()).expect("it is one of them");
                let header = IkeHeader::peek(&message).expect("it was made just now");
                let told = Message::Ike {
                    to,
                    exchange: header.exchange,
                    response: header.flags.response,
                };
                self.story.push((self.now, who, told));
                if !silent {
                    self.depart(who, transmit.path, transmit.payload);
                }
            }
            while let Some((side, packet)) = self.nodes[who].poll_resend() {
                match side {
                    Side::Wireless => self.fly(Flight::Down(who - AGENT, packet), self.wireless),
                    Side::Wired => self.encapsulate(who, packet),
                }
            }
            while let Some(event) = self.nodes[who].poll_event() {
                self.witness.note_event(&event, self.now);
                if let (MOBILE | HOME, Event::MobileIp(_)) = (who, &event) {
                    let places = self.places(who);
                    self.witness.note_places(who, &places, self.now);
                }
                self.story
                    .push((self.now, who, Message::Told(event.clone())));
                if who == HOME {
                    self.holders.note_event(&event, self.now);
                }
                self.events[who].push(event);
            }
        }
        let places = self.places(HOME);
        // Without a known location the mobile node may be where it was.
        if !places.is_empty() {
            self.place = places;
        }
        let near = self.policies.near(&self.place);
        self.holders.note_near(&near, self.now);
        for agent in (0..AGENTS).filter(|agent| !self.off[AGENT + agent]) {
            let node = &self.nodes[AGENT + agent];
            let (grants, gateway) = (node.held_grants(), node.names().id(GATEWAY));
            self.witness.note_held(agent, gateway, &grants, self.now);
            self.holders.note_held(agent, &grants);
        }
    }
}

pub fn owner(address: Ipv4Addr) -> Option<usize> {
    ADDRESSES.iter().position(|known| *known == address)
}

fn owner_of(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(address) => owner(address),
        IpAddr::V6(_) => None,
    }
}
