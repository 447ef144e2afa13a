//! Four hosts in one process, between which every message arrives at once, and how long each worked on it.
//!
//! A host is its [`Node`], as it is in `stratad`: what comes by sockets is handed to it, and the clock is read before
//! and after. Time itself goes on only when nothing is under way, so no host ever waits.

use super::parties::{self, ADDRESSES, AIR, FAR, HOME, LINKS, MOBILE, NEAR, Tunnel, WIRE, config};
use model::{Instant, Path};
use node::mobile_ip::{Arrival, NtpTime, Station, Status, Transmit};
use node::{DropReason, Event, Node, Packet, Sink};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::ike::{ExchangeType, Header};

/// The time of day at the beginning.
/// Where everybody is that is on a link.
const STATION: Station = Station([2, 0, 0, 0, 0, 1]);
const EPOCH: Duration = Duration::from_secs(1_800_000_000);

/// What a non-ESP marker takes (RFC 3948 section 2.2).
const MARKER: usize = 4;

/// What a host worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A request of another host came, and was answered.
    Request(ExchangeType, usize),
    /// An answer of another host came.
    Answer(ExchangeType, usize),
    /// A message of Mobile IP came.
    Registration,
    /// Something was due, or an operator said so.
    Begun,
    /// Keys that are recorded left for a licensed node.
    Given(usize),
}

/// How long who worked on what.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// Who.
    pub who: usize,
    /// On what.
    pub work: Work,
    /// How long.
    pub took: Duration,
}

/// A message that is under way.
enum Flight {
    Ike {
        from: usize,
        to: usize,
        path: Path,
        payload: Vec<u8>,
        /// It has to pass an agent first, behind what is under way there.
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

/// Octets of a sealed packet, at most.
const ROOM: usize = 512;

/// A datagram from behind the gateway to the mobile node.
fn word() -> [u8; 28] {
    let mut datagram = [0; 28];
    datagram[..4].copy_from_slice(&[0x45, 0, 0, 28]);
    datagram[8..10].copy_from_slice(&[64, 17]);
    datagram[12..20].copy_from_slice(&[10, 8, 0, 1, 10, 1, 0, 2]);
    datagram[20..26].copy_from_slice(&[0, 9, 0, 9, 0, 8]);
    datagram
}

/// What is to be sent to the peer. What is delivered is of no interest.
#[derive(Default)]
struct Outlet(Vec<(Path, Vec<u8>)>);

impl Sink for Outlet {
    fn transmit(&mut self, packet: &mut Packet, path: Path) {
        self.0.push((path, packet.octets().to_vec()));
    }

    fn deliver(&mut self, _packet: &mut Packet) {}

    fn dropped(&mut self, _packet: &mut Packet, _why: DropReason) {}
}

/// The hosts, and what is under way between them.
pub struct Stage {
    now: Instant,
    nodes: Vec<Node>,
    /// Which links of the mobile node work.
    links: [bool; 2],
    flights: VecDeque<Flight>,
    /// All work since [`Stage::forget`].
    pub work: Vec<Timed>,
    /// What was told since then: by whom, after how much of that work, and what.
    pub events: Vec<(usize, usize, Event)>,
}

impl Stage {
    /// Hosts that have said nothing yet; the mobile node hears the first agent alone.
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
            flights: VecDeque::new(),
            work: Vec::new(),
            events: Vec::new(),
        };
        // An agent needs it for tokens.
        for who in [MOBILE, HOME, NEAR, FAR] {
            stage.nodes[who].set_time_of_day(NtpTime::from_unix(EPOCH), now);
        }
        // Keys leave when they are recorded: that is when the time of their leaving is taken.
        stage.nodes[HOME].set_recording(true, now);
        stage.nodes[MOBILE].handle_link(LINKS[1], false, now);
        stage
    }

    /// What a host is told to do, as work of its own.
    pub fn command<T>(&mut self, who: usize, say: impl FnOnce(&mut Node, Instant) -> T) -> T {
        let now = self.now;
        self.time(who, Work::Begun, |node| say(node, now))
    }

    /// The mobile node's link to an agent works from now on, or does not.
    pub fn set_link(&mut self, link: usize, works: bool) {
        self.links[link] = works;
        self.command(MOBILE, |node, now| {
            node.handle_link(LINKS[link], works, now);
        });
    }

    /// What was done is of no interest any more.
    pub fn forget(&mut self) {
        self.work.clear();
        self.events.clear();
    }

    /// How much work was done when both ends sealed for an agent; `None` if they do not.
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

    /// How much work was done when an agent was first given keys.
    pub fn held_by(&self, agent: usize) -> Option<usize> {
        self.events.iter().find_map(|(who, after, event)| {
            let is_it = *who == agent && matches!(event, Event::GrantHeld(_));
            is_it.then_some(*after)
        })
    }

    /// Lets time pass.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.settle();
        loop {
            let due = self.nodes.iter().filter_map(Node::poll_timeout);
            let Some(next) = due
                .map(|deadline| deadline.at)
                .min()
                .filter(|next| *next <= end)
            else {
                break;
            };
            self.now = self.now.max(next);
            for who in 0..self.nodes.len() {
                let deadline = self.nodes[who].poll_timeout();
                if deadline.is_some_and(|deadline| deadline.at <= self.now) {
                    self.command(who, Node::handle_timeout);
                }
            }
            self.settle();
        }
        self.now = end;
    }

    /// Where the mobile node is registered.
    fn care_of(&self) -> Vec<Ipv4Addr> {
        match self.nodes[MOBILE].mobile_ip() {
            Some((Status::MobileNode { registrations, .. }, _)) => {
                registrations.iter().map(|one| one.at.care_of).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Everything that is under way arrives.
    fn settle(&mut self) {
        loop {
            self.collect();
            let Some(flight) = self.flights.pop_front() else {
                return;
            };
            self.arrive(flight);
            self.speak();
        }
    }

    /// Home has something for the mobile node at any time: who is to send on an SA that the other end has asked for does
    /// so when a packet has come on it (RFC 7296 section 2.8).
    fn speak(&mut self) {
        let mut outlet = Outlet::default();
        let mut batch = [Packet::with_capacity(ROOM)];
        batch[0].fill(&word());
        self.nodes[HOME].seal(&mut batch, &mut outlet, self.now);
        if self.care_of().is_empty() {
            return;
        }
        for (path, octets) in std::mem::take(&mut outlet.0) {
            let local = SocketAddr::new(ADDRESSES[HOME].into(), path.local.port());
            let path = Path { local, ..path };
            let mut packet = Packet::from_slice(&octets);
            packet.path = Some(path.reversed());
            self.nodes[MOBILE].open(&mut [packet], &mut outlet, self.now);
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
            } => self.flights.push_back(Flight::Ike {
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

    fn time<T>(&mut self, who: usize, work: Work, act: impl FnOnce(&mut Node) -> T) -> T {
        let begun = std::time::Instant::now();
        let result = act(&mut self.nodes[who]);
        let took = begun.elapsed();
        self.work.push(Timed { who, work, took });
        result
    }

    fn collect(&mut self) {
        for (who, address) in ADDRESSES.into_iter().enumerate().take(self.nodes.len()) {
            // First: what is given leaves.
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
            // These leave at once; what is for the mobile node goes into a tunnel, and is read from its device before.
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

    /// Who is registered nowhere has no way out.
    fn send(&mut self, from: usize, path: Path, payload: Vec<u8>) {
        let to = ADDRESSES
            .iter()
            .position(|address| path.remote.ip() == *address);
        let leaves = from != MOBILE || !self.care_of().is_empty();
        if let Some(to) = to.filter(|_| leaves) {
            self.flights.push_back(Flight::Ike {
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
                    self.flights.push_back(Flight::Discovery {
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
                self.flights.push_back(Flight::Registration {
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
