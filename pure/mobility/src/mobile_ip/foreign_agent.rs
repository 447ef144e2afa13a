//! The foreign agent (RFC 5944 section 3.7): serves mobile nodes on a visited link.
//!
//! It sends advertisements, relays requests and replies, and keeps a list of visitors from the
//! replies. It identifies a mobile node by its home address only. While a visitor is here, its home
//! address therefore cannot be registered with another home agent, unless that one shows that it is
//! on the route of the address.

mod admission;
mod claims;
mod handover;
mod newcomers;
mod replies;
mod udp;

use super::beacon::Beacon;
use super::limiter::Denials;
use super::pending::{Pending, Waiting};
use super::transmit::{NEIGHBOUR, ROUTED};
use super::{
    Arrival, Association, Counters, Dropped, Nat, Remote, Station, TakenOut, Transmit,
    TunnelCounters, TunnelDrop, VisitorTunnel, is_host,
};
use claims::Claims;
use crypto::Rng;
use model::{Deadline, Instant, TrafficSelector};
use newcomers::Newcomers;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use wire::ecn::Ecn;
use wire::mobile_ip::{
    Advertisement, Agent, AgentFlags, Between, Code, Enclosure, Extensions, Lifetime, PORT, Reply,
    Request, Solicitation, message,
};

/// Limit on enclosures from visitors that wait to be polled.
const MOST_ENCLOSED: usize = 16;

/// The multicast address of all hosts on a link.
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// The configuration of a foreign agent.
#[derive(Clone, Debug)]
pub struct ForeignAgentConfig {
    /// The interface of the visited link.
    pub interface: u32,
    /// The agent's address on that link.
    pub address: Ipv4Addr,
    /// The care-of address, where tunnels to visitors end. It may equal `address`.
    pub care_of: Ipv4Addr,
    /// Interval between advertisements.
    pub interval: Duration,
    /// Longest lifetime of a registration.
    pub lifetime: Lifetime,
    /// Home agents that visitors may register with, each with the networks of its mobile nodes; no
    /// home agents means all. One without networks has the mobile nodes of no other's networks.
    pub home_agents: BTreeMap<Ipv4Addr, Vec<TrafficSelector>>,
    /// Networks that visitors' home addresses may belong to; empty means all.
    pub homes: Vec<TrafficSelector>,
    /// Keys shared with home agents, by their addresses.
    pub home_keys: BTreeMap<Ipv4Addr, Association>,
    /// Keys shared with mobile nodes, by their home addresses.
    pub mobile_keys: BTreeMap<Ipv4Addr, Association>,
    /// Neighbouring foreign agents that visitors come from and move to, with shared keys, by their
    /// care-of addresses. Each side forwards remaining packets after a move.
    pub neighbours: BTreeMap<Ipv4Addr, Association>,
    /// The policy for UDP tunnels, which this agent requests if it may be behind a NAT.
    pub nat: Nat,
    /// Idle time after which a UDP tunnel sends a keepalive: shorter than the NAT's timeout. A
    /// shorter interval from the home agent overrides it. `None` means the home agent's interval,
    /// or 110 s.
    pub keepalive: Option<Duration>,
    /// Limit on visitors.
    pub visitors: usize,
    /// Limit on pending requests.
    pub pending: usize,
}

impl ForeignAgentConfig {
    /// Creates the configuration of an agent without keys, for a few visitors of all home agents,
    /// whose care-of address is its own.
    pub const fn new(interface: u32, address: Ipv4Addr) -> Self {
        Self {
            interface,
            address,
            care_of: address,
            interval: Duration::from_secs(1),
            lifetime: Lifetime(600),
            home_agents: BTreeMap::new(),
            homes: Vec::new(),
            home_keys: BTreeMap::new(),
            mobile_keys: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            nat: Nat::Never,
            keepalive: None,
            visitors: 10,
            pending: 8,
        }
    }
}

/// A mobile node that this agent serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// Its home address.
    pub home: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// The interface of the visited link.
    pub interface: u32,
    /// Its station on that link, from the request that was granted; `None` if that is unknown.
    pub station: Option<Station>,
}

/// Octets that came with a request and are opaque to Mobile IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enclosed {
    /// The sender's station, if known.
    pub station: Option<Station>,
    /// The octets.
    pub octets: Vec<u8>,
}

/// An event of one visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignEvent {
    /// The visitor has registered.
    Came(Visitor),
    /// The visitor has renewed its registration.
    Renewed(Visitor),
    /// The visitor came from a neighbour, which now forwards its remaining packets. The home agent
    /// has not replied yet, so only those packets may be delivered.
    Followed(Visitor),
    /// The visitor has moved to a neighbour; its packets are forwarded there for a while.
    Gone {
        /// The visitor.
        visitor: Visitor,
        /// The new care-of address.
        to: Ipv4Addr,
    },
    /// No packets return through the visitor's UDP tunnel: the NAT has dropped the mapping, or the
    /// home agent is unreachable. Visitors are asked to register again.
    Unheard(Visitor),
    /// Another home agent has shown that it is on the route of the visitor's home address. The
    /// visitor leaves, and the mobile node of that home agent comes.
    Displaced {
        /// The visitor.
        visitor: Visitor,
        /// The other home agent.
        by: Ipv4Addr,
    },
    /// A registration was denied, because a visitor has its home address and another home agent,
    /// and packets for that address did not come through the tunnel of its own home agent.
    Unproved(Visitor),
    /// The visitor is no longer served here.
    Left(Visitor),
}

/// A foreign agent.
#[derive(Debug)]
pub struct ForeignAgent {
    config: ForeignAgentConfig,
    rng: Rng,
    beacon: Beacon,
    pending: Pending,
    visitors: BTreeMap<Ipv4Addr, Entry>,
    newcomers: Newcomers,
    claims: Claims,
    denials: Denials<Option<Station>>,
    tunnel: VisitorTunnel,
    /// True if a home agent has detected a NAT between it and us.
    is_behind_nat: bool,
    /// Home agents that were lost through their UDP tunnels, until they accept a registration
    /// again.
    unheard: BTreeSet<Ipv4Addr>,
    /// Addresses that the host needs itself.
    reserved: Vec<TrafficSelector>,
    counters: Counters,
    transmits: VecDeque<Transmit>,
    events: VecDeque<ForeignEvent>,
    enclosed: VecDeque<Enclosed>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    visitor: Visitor,
    /// The time since which the mobile node has been here without a break.
    since: Instant,
    until: Option<Instant>,
    /// The identification of the granted request.
    registration: u64,
    /// The move to another agent, if a note announced one.
    gone: Option<Gone>,
}

#[derive(Clone, Copy, Debug)]
struct Gone {
    to: Ipv4Addr,
    /// The time until which packets are forwarded; `None` once that has ended.
    until: Option<Instant>,
}

impl ForeignAgent {
    /// A foreign agent without visitors.
    pub fn new(config: ForeignAgentConfig, seed: [u8; 32], now: Instant) -> Self {
        let mut rng = Rng::from_seed(seed);
        Self {
            beacon: Beacon::new(config.interval, &mut rng, now),
            tunnel: VisitorTunnel::new(config.care_of, &mut rng),
            rng,
            pending: Pending::new(config.pending),
            visitors: BTreeMap::new(),
            newcomers: Newcomers::default(),
            claims: Claims::default(),
            denials: Denials::default(),
            is_behind_nat: false,
            unheard: BTreeSet::new(),
            reserved: Vec::new(),
            counters: Counters::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            enclosed: VecDeque::new(),
            config,
        }
    }

    // Commands.

    /// Sets the addresses that the host needs itself, in addition to the configured ones: its own,
    /// the networks of its interfaces, next hops, name servers and peers. No visitor may have such
    /// a home address; visitors that have one are removed.
    pub fn set_reserved(&mut self, reserved: Vec<TrafficSelector>) {
        self.reserved = reserved;
        let homes = self.visitors().map(|visitor| visitor.home);
        let homes = homes.chain(self.newcomers.homes());
        let gone: Vec<_> = homes.filter(|home| self.is_reserved(*home)).collect();
        gone.into_iter().for_each(|home| self.leave(home));
    }

    // Inputs.

    /// Handles an ICMP message: a solicitation. "A mobility agent that receives a Router
    /// Solicitation MUST NOT require that the IP Source Address is the address of a neighbor"
    /// (section 2.3).
    pub fn handle_solicitation(&mut self, interface: u32, octets: &[u8], now: Instant) {
        self.counters.received += 1;
        if interface != self.config.interface {
            self.counters.drop(Dropped::OtherInterface);
        } else if Solicitation::parse(octets).is_err() {
            self.counters.drop(Dropped::Malformed);
        } else {
            self.beacon.ask(&mut self.rng, now);
        }
        self.handle_timeout(now);
    }

    /// Handles a UDP datagram for port 434: a routed one from a home agent or another foreign
    /// agent, or a request from a visitor whose station is unknown.
    pub fn handle_datagram(&mut self, arrival: &Arrival, octets: &[u8], now: Instant) {
        self.handle(arrival, None, octets, now);
    }

    /// Handles a UDP datagram from a station of the visited link. Any host there can use any source
    /// address, so messages of agents are not accepted from that link.
    pub fn handle_nearby(
        &mut self,
        arrival: &Arrival,
        station: Station,
        octets: &[u8],
        now: Instant,
    ) {
        self.handle(arrival, Some(station), octets, now);
    }

    /// Decapsulates a packet from the other end of a tunnel: see [`VisitorTunnel::decapsulate`].
    /// Returns `None` for the test of a home address too.
    pub fn decapsulate<'a>(
        &mut self,
        from: Remote,
        ecn: Ecn,
        octets: &'a mut [u8],
        now: Instant,
    ) -> Result<Option<TakenOut<'a>>, TunnelDrop> {
        match self.tested(from, octets, now) {
            true => Ok(None),
            false => self.tunnel.decapsulate(from, ecn, octets, now),
        }
    }

    /// Runs all actions that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(sequence) = self.beacon.due(&mut self.rng, now) {
            self.advertise(sequence);
        }
        while let Some(late) = self.pending.pop_late(now) {
            self.deny(&late, Code::ForeignTimeout, now);
        }
        self.handle_claims(now);
        self.handle_handover(now);
        self.keep_alive(now);
        let entries = self.visitors.values();
        let over = entries.filter(|entry| entry.until.is_some_and(|until| until <= now));
        let over: Vec<_> = over.map(|entry| entry.visitor.home).collect();
        over.into_iter().for_each(|home| self.leave(home));
    }

    // Outputs.

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ForeignEvent> {
        self.events.pop_front()
    }

    /// Returns the next enclosure of a request that was relayed. Its sender is authenticated only
    /// if it shares a key with this agent.
    pub fn poll_enclosed(&mut self) -> Option<Enclosed> {
        self.enclosed.pop_front()
    }

    /// Returns the time of the next call to [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let beacon = (self.beacon.next(), "an advertisement is due");
        let pending = self
            .pending
            .next()
            .map(|at| (at, "a home agent has not answered"));
        let until = self.visitors.values().filter_map(|entry| entry.until).min();
        let visitor = until.map(|at| (at, "a registration ends"));
        let handover = self.next_of_handover();
        let handover = handover.map(|at| (at, "the handover of a visitor ends"));
        let claim = self.claims.next();
        let claim = claim.map(|at| (at, "the test of a home address is due"));
        let keepalive = self.tunnel.next();
        let keepalive = keepalive.map(|at| (at, "a UDP tunnel is idle"));
        let deadlines = [Some(beacon), pending, visitor, handover, claim, keepalive]
            .into_iter()
            .flatten();
        deadlines.min().map(|(at, reason)| Deadline { at, reason })
    }

    // Getters.

    /// Returns the foreign agent's end of its tunnels.
    pub const fn tunnel(&mut self) -> &mut VisitorTunnel {
        &mut self.tunnel
    }

    /// Returns the end of a visitor's registration; `None` if its lifetime is infinite.
    pub fn until(&self, home: Ipv4Addr) -> Option<Instant> {
        self.visitors.get(&home)?.until
    }

    /// Returns the care-of address that a visitor's packets are forwarded to, if they are.
    pub fn gone_to(&self, home: Ipv4Addr) -> Option<Ipv4Addr> {
        let gone = self.visitors.get(&home)?.gone?;
        gone.until.map(|_| gone.to)
    }

    /// Returns true if a visitor has a UDP tunnel.
    pub fn is_in_udp(&self, home: Ipv4Addr) -> bool {
        self.tunnel.is_in_udp(home)
    }

    /// Returns the packet counters of the tunnels.
    pub const fn tunnel_counters(&self) -> &TunnelCounters {
        self.tunnel.counters()
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &ForeignAgentConfig {
        &self.config
    }

    /// Returns all visitors.
    pub fn visitors(&self) -> impl Iterator<Item = Visitor> {
        self.visitors.values().map(|entry| entry.visitor)
    }

    /// Returns the message counters.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    // Advertisements.

    /// Sends an advertisement. It lists no router: the agent routes for its visitors only, which
    /// know its address.
    fn advertise(&mut self, sequence: u16) {
        let flags = AgentFlags::REGISTRATION_REQUIRED
            | AgentFlags::FOREIGN_AGENT
            | AgentFlags::REVERSE_TUNNEL;
        let advertisement = Advertisement {
            routes_for_all: false,
            lifetime: self.beacon.lifetime(),
            routers: Vec::new(),
            agent: Some(Agent {
                sequence,
                registration_lifetime: self.config.lifetime,
                flags: flags
                    .with_if(self.is_full(), AgentFlags::BUSY)
                    .with_if(self.is_behind_nat, AgentFlags::UDP_TUNNEL),
                care_of: vec![self.config.care_of],
            }),
        };
        self.transmits.push_back(Transmit::Icmp {
            interface: self.config.interface,
            destination: ALL_HOSTS,
            octets: advertisement.encode(),
        });
    }

    // Messages.

    fn handle(&mut self, arrival: &Arrival, station: Option<Station>, octets: &[u8], now: Instant) {
        self.counters.received += 1;
        self.handle_timeout(now);
        let handled = match (octets.first(), station) {
            (Some(&message::REQUEST), _) => self.request(arrival, station, octets, now),
            (Some(&(message::REPLY | message::EXPERIMENT)), Some(_)) => {
                Err(Dropped::OtherInterface)
            }
            (Some(&message::REPLY), None) => self.reply(arrival, octets, now),
            (Some(&message::EXPERIMENT), None) => self.notice(arrival, octets, now),
            _ => Err(Dropped::UnknownType),
        };
        if let Err(reason) = handled {
            self.counters.drop(reason);
        }
    }

    // Requests.

    fn request(
        &mut self,
        arrival: &Arrival,
        station: Option<Station>,
        octets: &[u8],
        now: Instant,
    ) -> Result<(), Dropped> {
        if arrival.interface != self.config.interface {
            return Err(Dropped::OtherInterface);
        }
        let (request, extensions) = Request::parse(octets).map_err(|_| Dropped::Malformed)?;
        let is_ours = arrival.destination == self.config.care_of;
        let waiting = Waiting {
            request,
            mobile: arrival.source,
            station,
            here: if is_ours {
                self.config.care_of
            } else {
                self.config.address
            },
            since: now,
        };
        // At most one of two lookalikes is authentic. The earlier one may be, so it is not
        // replaced.
        if self.pending.has_lookalike(&waiting) {
            return Err(Dropped::NotAuthenticMobile);
        }
        match self.accept(&waiting, extensions, arrival.ttl) {
            Ok(end) => {
                self.pass_on(waiting, octets[..end].to_vec());
                self.take_enclosed(station, extensions);
                // A failed notice does not stop the registration.
                self.pass_note(&waiting, extensions, now)
            }
            Err(code) => {
                self.deny(&waiting, code, now);
                Ok(())
            }
        }
    }

    /// Relays a request. Extensions behind the authorization are addressed to us and removed
    /// (section 3.7.2.2).
    fn pass_on(&mut self, waiting: Waiting, mut octets: Vec<u8>) {
        let request = &waiting.request;
        self.ask_for_udp(request, &mut octets);
        let key = self.config.home_keys.get(&request.home_agent);
        if let Some(key) = key.filter(|_| !request.is_deregistration()) {
            key.sign(&mut octets, Between::ForeignHome);
        }
        self.transmits.push_back(Transmit::Udp {
            interface: None,
            station: None,
            source: SocketAddrV4::new(self.config.care_of, PORT),
            destination: SocketAddrV4::new(request.home_agent, PORT),
            ttl: ROUTED,
            octets,
        });
        self.pending.push(waiting);
    }

    fn take_enclosed(&mut self, station: Option<Station>, extensions: Extensions<'_>) {
        for Enclosure(octets) in Enclosure::all(extensions) {
            let octets = octets.to_vec();
            match self.enclosed.len() < MOST_ENCLOSED {
                true => self.enclosed.push_back(Enclosed { station, octets }),
                false => self.counters.drop(Dropped::TooOften),
            }
        }
    }

    // Visitors.

    fn leave(&mut self, home: Ipv4Addr) {
        self.unfollow(home);
        if let Some(entry) = self.visitors.remove(&home) {
            self.tunnel.remove(home);
            self.events.push_back(ForeignEvent::Left(entry.visitor));
            let home_agent = entry.visitor.home_agent;
            if !self.serves_somebody_of(home_agent) {
                self.unheard.remove(&home_agent);
            }
        }
    }

    /// Returns the mobile node that has a home address here.
    fn holder(&self, home: Ipv4Addr) -> Option<Visitor> {
        let served = self.visitors.get(&home).map(|entry| entry.visitor);
        served.or_else(|| self.newcomers.followed(home))
    }

    /// Returns true if a mobile node of another home agent has the home address of a request.
    fn is_anothers(&self, request: &Request) -> bool {
        let holder = self.holder(request.home);
        holder.is_some_and(|holder| holder.home_agent != request.home_agent)
    }

    /// Returns true if an accepted request has to show that its home agent is on the route of the
    /// home address: a mobile node of another home agent has that address, or it is the address of
    /// a visitor's home agent, by what the visitor and its home agent say.
    fn is_disputed(&self, request: &Request) -> bool {
        self.is_anothers(request) || self.serves_somebody_of(request.home)
    }

    fn serves_somebody_of(&self, home_agent: Ipv4Addr) -> bool {
        let mut visitors = self.visitors();
        visitors.any(|visitor| visitor.home_agent == home_agent)
    }

    // Answers.

    fn deny(&mut self, waiting: &Waiting, code: Code, now: Instant) {
        self.counters.deny(code);
        let request = &waiting.request;
        let (home, station) = (request.home, waiting.station);
        if !is_host(home) || !self.denials.allow(station, home, now) {
            self.counters.drop(Dropped::TooOften);
            return;
        }
        let mut reply = Reply::to(request, code);
        if code == Code::ForeignLifetime {
            reply.lifetime = self.config.lifetime;
        }
        self.send(waiting, reply.encode());
    }

    /// Sends a reply to a mobile node on our link, to its home address (section 3.7.2.3), and to
    /// the station and port of its request.
    fn send(&mut self, waiting: &Waiting, mut octets: Vec<u8>) {
        let home = waiting.request.home;
        if let Some(key) = self.config.mobile_keys.get(&home) {
            key.sign(&mut octets, Between::MobileForeign);
        }
        self.transmits.push_back(Transmit::Udp {
            interface: Some(self.config.interface),
            station: waiting.station,
            source: SocketAddrV4::new(waiting.here, PORT),
            destination: SocketAddrV4::new(home, waiting.mobile.port()),
            ttl: NEIGHBOUR,
            octets,
        });
    }
}

impl Entry {
    /// Stops the forwarding of packets: they are delivered here again.
    fn stay(&mut self, tunnel: &mut VisitorTunnel) {
        if let Some(gone) = &mut self.gone {
            gone.until = None;
            tunnel.send_after(self.visitor.home, None);
        }
    }
}
