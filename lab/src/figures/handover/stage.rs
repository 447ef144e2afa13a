//! Four hosts in one process with immediate delivery of messages, and the time that each works on
//! them.
//!
//! A host is its [`Node`], as in `stratad`: the stage passes it the messages that sockets would
//! receive, and reads the clock before and after. Virtual time advances only when nothing is under
//! way, so no host ever waits.

use super::parties::{self, ADDRESSES, AIR, FAR, HOME, LINKS, MOBILE, NEAR, Tunnel, WIRE, config};
use model::{Instant, Path};
use node::mobile_ip::{Arrival, NtpTime, Station, Status, Transmit};
use node::{DropReason, Event, Node, Packet, Sink};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::ike::{ExchangeType, Header};
use world::{Hosts, Network};

/// Link-layer address of every host on a link.
const STATION: Station = Station([2, 0, 0, 0, 0, 1]);
/// Time of day at the start, as Unix time.
const EPOCH: Duration = Duration::from_secs(1_800_000_000);

/// Octets of a non-ESP marker (RFC 3948 section 2.2).
const MARKER: usize = 4;

/// Kind of work of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Handling of another host's request, including the answer.
    Request(ExchangeType, usize),
    /// Handling of another host's answer.
    Answer(ExchangeType, usize),
    /// Handling of a Mobile IP message.
    Registration,
    /// Handling of a timer or an operator's command.
    Begun,
    /// Sending of recorded keys to a licensed node.
    Given(usize),
}

/// Duration of one piece of work.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// Index of the host.
    pub who: usize,
    /// Kind of work.
    pub work: Work,
    /// Duration.
    pub took: Duration,
}

/// A message under way.
#[derive(Debug)]
pub enum Flight {
    Ike {
        from: usize,
        to: usize,
        path: Path,
        payload: Vec<u8>,
        /// True if the message must pass an agent first, after messages that are already under way
        /// there.
        passes: bool,
    },
    Discovery {
        to: usize,
        interface: u32,
        source: Ipv4Addr,
        octets: Vec<u8>,
    },
    Registration {
        to: usize,
        arrival: Arrival,
        octets: Vec<u8>,
    },
}

/// Largest size of a sealed packet, in octets.
const ROOM: usize = 512;

/// Returns a datagram from behind the gateway to the mobile node.
fn word() -> [u8; 28] {
    let mut datagram = [0; 28];
    datagram[..4].copy_from_slice(&[0x45, 0, 0, 28]);
    datagram[8..10].copy_from_slice(&[64, 17]);
    datagram[12..20].copy_from_slice(&[10, 8, 0, 1, 10, 1, 0, 2]);
    datagram[20..26].copy_from_slice(&[0, 9, 0, 9, 0, 8]);
    datagram
}

/// A sink that collects packets for the peer and ignores delivered ones.
#[derive(Default)]
struct PacketSink(Vec<(Path, Vec<u8>)>);

impl Sink for PacketSink {
    fn transmit(&mut self, packet: &mut Packet, path: Path) {
        self.0.push((path, packet.octets().to_vec()));
    }

    fn deliver(&mut self, _packet: &mut Packet) {}

    fn dropped(&mut self, _packet: &mut Packet, _why: DropReason) {}
}

/// The hosts, and the messages under way between them.
pub struct Stage {
    now: Instant,
    nodes: Vec<Node>,
    /// True for each working link of the mobile node.
    links: [bool; 2],
    network: Network<Flight>,
    /// All work since [`Stage::forget`].
    pub work: Vec<Timed>,
    /// Events since then: the host, the amount of work before it, and the event.
    pub events: Vec<(usize, usize, Event)>,
}

impl Stage {
    /// Creates hosts that have not sent anything. The mobile node hears only the first agent.
    pub fn new(tunnel: Tunnel, seed: u64) -> Self {
        let now = Instant::from_origin(Duration::from_secs(1000));
        let mut octets = [7; 32];
        octets[..8].copy_from_slice(&seed.to_be_bytes());
        let node = |who: usize| {
            octets[8] = who as u8;
            Node::new(config(who, tunnel), octets, now)
        };
        let mut stage = Self {
            now,
            nodes: [MOBILE, HOME, NEAR, FAR].map(node).into(),
            links: [true, false],
            network: Network::default(),
            work: Vec::new(),
            events: Vec::new(),
        };
        // Agents need the time of day for tokens.
        for who in [MOBILE, HOME, NEAR, FAR] {
            stage.nodes[who].set_time_of_day(NtpTime::from_unix(EPOCH), now);
        }
        // Keys leave once they are recorded; the time of that work is measured then.
        stage.nodes[HOME].set_recording(true, now);
        stage.nodes[MOBILE].handle_link(LINKS[1], false, now);
        stage
    }

    /// Runs a command at a host, timed as work.
    pub fn command<T>(&mut self, who: usize, say: impl FnOnce(&mut Node, Instant) -> T) -> T {
        let now = self.now;
        self.time(who, Work::Begun, |node| say(node, now))
    }

    /// Brings the mobile node's link to an agent up or down.
    pub fn set_link(&mut self, link: usize, works: bool) {
        self.links[link] = works;
        self.command(MOBILE, |node, now| {
            node.handle_link(LINKS[link], works, now);
        });
    }

    /// Discards the work and events so far.
    pub fn forget(&mut self) {
        self.work.clear();
        self.events.clear();
    }

    /// Returns the amount of work until both ends sealed for an agent; `None` if they do not.
    pub fn sealed_for(&self, agent: usize) -> Option<usize> {
        let sealed = |end: usize| {
            self.events.iter().find_map(|(who, after, event)| {
                let Event::SealedFor { node, .. } = event else {
                    return None;
                };
                let is_it = *who == end && node.as_ref().and_then(parties::who) == Some(agent);
                is_it.then_some(*after)
            })
        };
        Some(sealed(MOBILE)?.max(sealed(HOME)?))
    }

    /// Returns the amount of work until an agent first got keys.
    pub fn held_by(&self, agent: usize) -> Option<usize> {
        self.events.iter().find_map(|(who, after, event)| {
            let is_it = *who == agent && matches!(event, Event::GrantHeld(_));
            is_it.then_some(*after)
        })
    }

    /// Returns the care-of addresses of the mobile node.
    fn care_of(&self) -> Vec<Ipv4Addr> {
        match self.nodes[MOBILE].mobile_ip() {
            Some((Status::MobileNode { registrations, .. }, _)) => {
                registrations.iter().map(|one| one.at.care_of).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Sends a datagram from home to the mobile node. An end that has to wait for a packet on a new
    /// SA before it sends on that SA gets one (RFC 7296 section 2.8).
    fn speak(&mut self) {
        let mut sink = PacketSink::default();
        let mut batch = [Packet::with_capacity(ROOM)];
        batch[0].fill(&word());
        self.nodes[HOME].seal(&mut batch, &mut sink, self.now);
        if self.care_of().is_empty() {
            return;
        }
        for (path, octets) in std::mem::take(&mut sink.0) {
            let local = SocketAddr::new(ADDRESSES[HOME].into(), path.local.port());
            let path = Path { local, ..path };
            let mut packet = Packet::from_slice(&octets);
            packet.path = Some(path.reversed());
            self.nodes[MOBILE].open(&mut [packet], &mut sink, self.now);
        }
    }

    fn arrive(&mut self, flight: Flight) {
        let now = self.now;
        match flight {
            Flight::Ike {
                from,
                to,
                path,
                payload,
                passes: true,
            } => self.depart(Flight::Ike {
                from,
                to,
                path,
                payload,
                passes: false,
            }),
            Flight::Ike {
                from,
                to,
                path,
                payload,
                passes: false,
            } => {
                if to == MOBILE && self.care_of().is_empty() {
                    return;
                }
                let message = match path.local.port() {
                    500 => &payload[..],
                    _ => &payload[MARKER..],
                };
                let Ok(header) = Header::peek(message) else {
                    return;
                };
                let work = match header.flags.response {
                    true => Work::Answer(header.exchange, from),
                    false => Work::Request(header.exchange, from),
                };
                self.time(to, work, |node| node.handle_datagram(path, message, now));
            }
            Flight::Discovery {
                to,
                interface,
                source,
                octets,
            } => self.time(to, Work::Registration, |node| {
                node.handle_discovery(interface, source, STATION, &octets, now);
            }),
            Flight::Registration {
                to,
                arrival,
                octets,
            } => self.time(to, Work::Registration, |node| match to {
                MOBILE => node.handle_nearby(&arrival, STATION, &octets, now),
                _ => node.handle_registration(&arrival, &octets, now),
            }),
        }
    }

    /// Sends a message, which arrives at once.
    fn depart(&mut self, flight: Flight) {
        self.network.deliver(flight, self.now);
    }

    fn time<T>(&mut self, who: usize, work: Work, act: impl FnOnce(&mut Node) -> T) -> T {
        let begun = std::time::Instant::now();
        let result = act(&mut self.nodes[who]);
        let took = begun.elapsed();
        self.work.push(Timed { who, work, took });
        result
    }

    /// Sends an IKE message. A mobile node without a registration cannot send any.
    fn send(&mut self, from: usize, path: Path, payload: Vec<u8>) {
        let to = ADDRESSES
            .iter()
            .position(|address| path.remote.ip() == *address);
        let leaves = from != MOBILE || !self.care_of().is_empty();
        if let Some(to) = to.filter(|_| leaves) {
            self.depart(Flight::Ike {
                from,
                to,
                path: path.reversed(),
                payload,
                passes: from == MOBILE || to == MOBILE,
            });
        }
    }

    fn register(&mut self, from: usize, transmit: Transmit) {
        let link = |agent: usize| agent - NEAR;
        match transmit {
            Transmit::Icmp {
                interface, octets, ..
            } => {
                let (to, on) = match from {
                    MOBILE => {
                        let Some(link) = LINKS.iter().position(|known| *known == interface) else {
                            return;
                        };
                        (NEAR + link, AIR)
                    }
                    agent => (MOBILE, LINKS[link(agent)]),
                };
                let agent = from.max(to);
                if self.links[link(agent)] {
                    self.depart(Flight::Discovery {
                        to,
                        interface: on,
                        source: ADDRESSES[from],
                        octets,
                    });
                }
            }
            Transmit::Udp {
                source,
                destination,
                ttl,
                octets,
                ..
            } => {
                let to = ADDRESSES
                    .iter()
                    .position(|address| address == destination.ip());
                let Some(to) = to else {
                    return;
                };
                let interface = match (from, to) {
                    (MOBILE, _) => AIR,
                    (agent, MOBILE) => LINKS[link(agent)],
                    _ => WIRE,
                };
                let over_air = from == MOBILE || to == MOBILE;
                if over_air && !self.links[link(from.max(to))] {
                    return;
                }
                self.depart(Flight::Registration {
                    to,
                    arrival: Arrival {
                        interface,
                        source,
                        destination: *destination.ip(),
                        ttl,
                    },
                    octets,
                });
            }
        }
    }
}

impl Hosts for Stage {
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
        for who in 0..self.nodes.len() {
            let deadline = self.nodes[who].poll_timeout();
            if deadline.is_some_and(|deadline| deadline.at <= self.now) {
                self.command(who, Node::handle_timeout);
            }
        }
    }

    fn receive(&mut self, flight: Flight) {
        self.arrive(flight);
        self.speak();
        self.collect();
    }

    fn collect(&mut self) {
        for (who, address) in ADDRESSES.into_iter().enumerate().take(self.nodes.len()) {
            // Grants are sent first.
            while let Some(event) = self.nodes[who].poll_event() {
                if let Event::Giving {
                    sa, node, grant, ..
                } = &event
                    && let Some(to) = parties::who(node)
                {
                    let (csa, grant, now) = (sa.csa, *grant, self.now);
                    let given = Work::Given(to);
                    self.time(who, given, |node| node.give(csa, grant, Ok(()), now));
                }
                self.events.push((who, self.work.len(), event));
            }
            // Registrations leave directly. Messages to the mobile node go through a tunnel, and
            // are read from its device first.
            while let Some(transmit) = self.nodes[who].poll_registration() {
                self.register(who, transmit);
            }
            while let Some(transmit) = self.nodes[who].poll_transmit() {
                let local = SocketAddr::new(address.into(), transmit.path.local.port());
                let path = Path {
                    local,
                    ..transmit.path
                };
                self.send(who, path, transmit.payload);
            }
        }
    }
}
