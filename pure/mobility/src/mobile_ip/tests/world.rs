//! A mobile node, foreign agents and a home agent, one hop from each other.

use super::*;
use ::world::Network;
use crypto::Rng;
use wire::checksum::Sum;
use wire::ecn::Ecn;
use wire::mobile_ip::{TunnelData, message};

/// Hops of random walks.
pub(super) const BAD: Hop = Hop {
    jitter: 400,
    ..Hop::PERFECT.losing(235).repeating(157)
};

/// The sender or destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Mobile,
    Foreign(usize),
    Home,
}

/// A packet in transit.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) sent: Instant,
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) transmit: Transmit,
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) mobile: MobileNode,
    pub(super) foreign: Vec<ForeignAgent>,
    pub(super) home: HomeAgent,
    pub(super) hop: Hop,
    /// For each foreign agent, the interface of the mobile node that hears it.
    pub(super) heard: Vec<Option<u32>>,
    /// Foreign agents behind a NAT, with the external port of their mapping.
    pub(super) nats: BTreeMap<usize, u16>,
    /// True if a firewall keeps tests of home addresses away from home.
    pub(super) has_firewall: bool,
    /// Tests of home addresses that came out of a tunnel and went to a visitor.
    pub(super) delivered: usize,
    pub(super) events: Vec<MobileEvent>,
    /// All packets sent.
    pub(super) tap: Vec<Packet>,
    network: Network<Packet>,
}

impl World {
    pub(super) fn new(agents: u8, seed: u8) -> Self {
        Self::with(agents, seed, mobile_config(), home_config())
    }

    pub(super) fn with(
        agents: u8,
        seed: u8,
        mobile: MobileNodeConfig,
        home: HomeAgentConfig,
    ) -> Self {
        let now = at(0);
        let foreign = |number| {
            let mut config = foreign_config(number);
            if home.foreign.contains_key(&agent(number)) {
                config.home_keys.insert(HOME_AGENT, foreign_home());
            }
            if let Some(key) = mobile.agent_keys.get(&agent(number)) {
                // Agents with a key for the mobile node are each other's neighbours.
                config.mobile_keys.insert(HOME, key.clone());
                let others = mobile
                    .agent_keys
                    .keys()
                    .filter(|&&one| one != agent(number));
                config.neighbours = others.map(|&one| (one, between_agents())).collect();
            }
            ForeignAgent::new(config, [number ^ seed; 32], now)
        };
        let foreign = (0..agents).map(foreign).collect();
        let mut world = Self {
            now,
            mobile: MobileNode::new(mobile, [seed; 32], now),
            foreign,
            home: HomeAgent::new(home.clone(), [seed ^ 0xaa; 32]),
            hop: Hop::PERFECT,
            heard: vec![None; agents.into()],
            nats: BTreeMap::new(),
            has_firewall: false,
            delivered: 0,
            events: Vec::new(),
            tap: Vec::new(),
            network: Network::new(Rng::from_seed([seed ^ 0x55; 32])),
        };
        world.mobile.set_wall_clock(ntp(now), now);
        world.home.set_wall_clock(ntp(now), now);
        world
    }

    /// Lets the mobile node hear only these agents, all on its first interface.
    pub(super) fn move_to(&mut self, agents: &[usize]) {
        for (number, heard) in self.heard.iter_mut().enumerate() {
            *heard = agents.contains(&number).then_some(WLAN[0]);
        }
    }

    /// Sends a message to its destinations.
    pub(super) fn post(&mut self, from: Node, transmit: Transmit) {
        let to: Vec<Node> = match (from, &transmit) {
            (Node::Mobile, Transmit::Icmp { interface, .. }) => {
                let hears = |number: &usize| self.heard[*number] == Some(*interface);
                let all = (0..self.foreign.len()).filter(hears);
                all.map(Node::Foreign).collect()
            }
            (Node::Foreign(_), Transmit::Icmp { .. }) => vec![Node::Mobile],
            (_, Transmit::Udp { destination, .. }) => match *destination.ip() {
                HOME if is_routed(from, &transmit) => vec![Node::Home],
                HOME => vec![Node::Mobile],
                HOME_AGENT => vec![Node::Home],
                other => (0..self.foreign.len())
                    .filter(|&number| self.is_at(number, from, *destination, other))
                    .map(Node::Foreign)
                    .collect(),
            },
            (Node::Home, Transmit::Icmp { .. }) => Vec::new(),
        };
        for to in to {
            let packet = Packet {
                sent: self.now,
                from,
                to,
                transmit: transmit.clone(),
            };
            self.tap.push(packet.clone());
            self.network.send(packet, &self.hop, self.now);
        }
    }

    /// Returns true if a datagram to this address reaches a foreign agent. From the home agent it
    /// must pass the NAT.
    fn is_at(&self, number: usize, from: Node, to: SocketAddrV4, address: Ipv4Addr) -> bool {
        match self.nats.get(&number).filter(|_| from == Node::Home) {
            None => agent(number as u8) == address,
            Some(&port) => to == SocketAddrV4::new(outside(number), port),
        }
    }

    /// The source address of a foreign agent, as the home agent sees it.
    pub(super) fn seen(&self, number: usize) -> SocketAddrV4 {
        let port = self.nats.get(&number);
        port.map_or(SocketAddrV4::new(agent(number as u8), PORT), |&port| {
            SocketAddrV4::new(outside(number), port)
        })
    }

    /// The address of a foreign agent on the network towards home, or that of its NAT.
    fn uplink(&self, number: usize) -> Ipv4Addr {
        match self.nats.contains_key(&number) {
            true => outside(number),
            false => Ipv4Addr::new(10, 4, number as u8, 2),
        }
    }

    /// Delivers a UDP-encapsulated packet to the home agent, and its answer back.
    fn come_home(&mut self, from: SocketAddrV4, mut octets: Vec<u8>) {
        let tunnel = self.home.tunnel();
        let taken = tunnel.decapsulate(Remote::Udp(from), Ecn::NotEct, &mut octets);
        let Ok(TakenOut {
            datagram,
            onward: Some(envelope),
        }) = taken
        else {
            return;
        };
        let octets = [&TunnelData::IP_IN_UDP.octets()[..], datagram].concat();
        let transmit = Transmit::Udp {
            interface: None,
            station: None,
            source: SocketAddrV4::new(HOME_AGENT, PORT),
            destination: SocketAddrV4::new(envelope.outer.destination, envelope.port.unwrap()),
            ttl: 64,
            octets,
        };
        self.post(Node::Home, transmit);
    }

    /// Tunnels a datagram for the mobile node to where it is.
    fn intercept(&mut self, datagram: &[u8]) {
        let mut envelopes = Vec::new();
        if !self.has_firewall {
            let _ = (self.home.tunnel()).encapsulate(datagram, |envelope| envelopes.push(envelope));
        }
        for envelope in envelopes {
            let data = TunnelData::IP_IN_UDP.octets();
            let front = envelope.port.map_or(&[][..], |_| &data);
            let transmit = Transmit::Udp {
                interface: None,
                station: None,
                source: SocketAddrV4::new(HOME_AGENT, envelope.port.map_or(IP_IN_IP, |_| PORT)),
                destination: SocketAddrV4::new(
                    envelope.outer.destination,
                    envelope.port.unwrap_or(IP_IN_IP),
                ),
                ttl: 64,
                octets: [front, datagram].concat(),
            };
            self.post(Node::Home, transmit);
        }
    }

    pub(super) fn deliver(&mut self, packet: Packet) {
        let now = self.now;
        match (packet.from, packet.to, packet.transmit) {
            (Node::Foreign(number), Node::Mobile, transmit) => {
                let Some(interface) = self.heard[number] else {
                    return;
                };
                let source = agent(number as u8);
                let mobile = &mut self.mobile;
                match transmit {
                    Transmit::Icmp { octets, .. } => {
                        mobile.handle_advertisement(
                            interface,
                            source,
                            station(source),
                            &octets,
                            now,
                        );
                    }
                    Transmit::Udp { octets, .. } => {
                        mobile.handle_reply(interface, source, station(source), &octets, now);
                    }
                }
            }
            (from, Node::Foreign(number), transmit) => {
                if from == Node::Mobile && self.heard[number].is_none() {
                    return;
                }
                let foreign = &mut self.foreign[number];
                match transmit {
                    Transmit::Icmp { octets, .. } => {
                        foreign.handle_solicitation(AIR, &octets, now);
                    }
                    Transmit::Udp {
                        source, mut octets, ..
                    } if octets.first() == Some(&message::TUNNEL_DATA) => {
                        let from = Remote::Udp(source);
                        let _ = foreign.decapsulate(from, Ecn::NotEct, &mut octets, now);
                    }
                    Transmit::Udp {
                        source, mut octets, ..
                    } if source.port() == IP_IN_IP => {
                        let from = Remote::Ip(*source.ip());
                        let taken = foreign.decapsulate(from, Ecn::NotEct, &mut octets, now);
                        self.delivered += usize::from(matches!(taken, Ok(Some(_))));
                    }
                    Transmit::Udp { source, octets, .. } => {
                        let arrival = arrival(*source.ip(), agent(number as u8));
                        match from {
                            Node::Mobile => foreign.handle_nearby(&arrival, STATION, &octets, now),
                            Node::Foreign(_) | Node::Home => {
                                foreign.handle_datagram(&arrival, &octets, now);
                            }
                        }
                    }
                }
            }
            (
                from,
                Node::Home,
                Transmit::Udp {
                    octets,
                    destination,
                    ..
                },
            ) => {
                let Node::Foreign(number) = from else {
                    panic!("{from:?} speaks to the home agent");
                };
                let source = self.seen(number);
                if *destination.ip() == HOME {
                    let source = SocketAddrV4::new(self.uplink(number), PORT);
                    return self.intercept(&udp(source, destination, &octets));
                }
                if octets.first() == Some(&message::TUNNEL_DATA) {
                    return self.come_home(source, octets);
                }
                let arrival = Arrival {
                    source,
                    ..arrival(*source.ip(), HOME_AGENT)
                };
                self.home.handle_datagram(&arrival, &octets, now);
            }
            (from, to, transmit) => panic!("{transmit:?} from {from:?} to {to:?}"),
        }
    }

    /// The requests that a node has sent.
    pub(super) fn requests(&self, by: Node) -> Vec<Request> {
        self.timed_requests(by)
            .into_iter()
            .map(|(_, request)| request)
            .collect()
    }

    /// The requests that a node has sent, with their times.
    pub(super) fn timed_requests(&self, by: Node) -> Vec<(Instant, Request)> {
        let sent = self.tap.iter().filter(|packet| packet.from == by);
        let requests = sent.filter_map(|packet| match &packet.transmit {
            Transmit::Udp { octets, .. } => Some((packet.sent, Request::parse(octets).ok()?.0)),
            Transmit::Icmp { .. } => None,
        });
        requests.collect()
    }

    pub(super) fn has_visitor(&self, number: usize) -> bool {
        self.foreign[number]
            .visitors()
            .any(|visitor| visitor.home == HOME)
    }

    /// Asserts that all three parties have the mobile node at this agent only.
    pub(super) fn assert_at(&self, number: usize) {
        let care_of = agent(number as u8);
        let registered: Vec<_> = self.mobile.registrations().map(|at| at.care_of).collect();
        assert_eq!(registered, [care_of], "the mobile node");
        assert_eq!(self.home.care_of(HOME), [care_of], "the home agent");
        assert!(self.has_visitor(number), "the foreign agent");
    }
}

impl Hosts for World {
    type Packet = Packet;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Packet> {
        &mut self.network
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let foreign = self.foreign.iter().map(ForeignAgent::poll_timeout);
        let others = [self.mobile.poll_timeout(), self.home.poll_timeout()];
        let deadlines = foreign.chain(others).flatten();
        deadlines.map(|deadline| deadline.at).min()
    }

    fn handle_timeout(&mut self) {
        let now = self.now;
        self.mobile.handle_timeout(now);
        self.foreign
            .iter_mut()
            .for_each(|agent| agent.handle_timeout(now));
        self.home.handle_timeout(now);
    }

    fn receive(&mut self, packet: Packet) {
        self.deliver(packet);
    }

    fn collect(&mut self) {
        while let Some(event) = self.mobile.poll_event() {
            self.events.push(event);
        }
        while let Some(transmit) = self.mobile.poll_transmit() {
            self.post(Node::Mobile, transmit);
        }
        for number in 0..self.foreign.len() {
            while let Some(transmit) = self.foreign[number].poll_transmit() {
                self.post(Node::Foreign(number), transmit);
            }
        }
        while let Some(transmit) = self.home.poll_transmit() {
            self.post(Node::Home, transmit);
        }
    }
}

/// The port of a datagram that stands for one in IP in IP.
const IP_IN_IP: u16 = 0;

/// Returns true if routes decide where a datagram of a foreign agent goes.
fn is_routed(from: Node, transmit: &Transmit) -> bool {
    let is_routed = matches!(
        transmit,
        Transmit::Udp {
            interface: None,
            ..
        }
    );
    matches!(from, Node::Foreign(_)) && is_routed
}

/// A whole datagram around a UDP payload.
pub(super) fn udp(source: SocketAddrV4, destination: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut datagram = vec![0x45, 0];
    datagram.extend((20 + len).to_be_bytes());
    datagram.extend([0, 0, 0, 0, 60, 17, 0, 0]);
    datagram.extend(source.ip().octets());
    datagram.extend(destination.ip().octets());
    let sum = Sum::default().with(&datagram).finish();
    datagram[10..12].copy_from_slice(&sum.to_be_bytes());
    datagram.extend(source.port().to_be_bytes());
    datagram.extend(destination.port().to_be_bytes());
    datagram.extend(len.to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

/// The external address of a foreign agent's NAT.
pub(super) const fn outside(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, 70 + number as u8)
}
