//! The foreign agent (RFC 5944 section 3.7): serves mobile nodes on a link where they are not at home.
//!
//! It advertises itself, passes requests on to home agents and their replies back, and keeps a list of its
//! visitors by what the replies say. It knows a mobile node by nothing but its home address, so nobody can
//! have the home address of a visitor registered with another home agent while the visitor is here.

mod admission;
mod handover;
mod newcomers;
mod replies;
mod udp;

use super::beacon::Beacon;
use super::limiter::Limiter;
use super::pending::{Pending, Waiting};
use super::transmit::{NEIGHBOUR, ROUTED};
use super::{
    Arrival, Association, Counters, Dropped, Nat, Station, Transmit, TunnelCounters, VisitorTunnel,
    is_host,
};
use crypto::Rng;
use model::{Deadline, Instant, TrafficSelector};
use newcomers::Newcomers;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use wire::mobile_ip::{
    Advertisement, Agent, AgentFlags, Between, Code, Enclosure, Extensions, Lifetime, PORT, Reply,
    Request, Solicitation, message,
};

/// What visitors have given us waits to be polled; so much of it at most.
const MOST_ENCLOSED: usize = 16;

/// Everybody on a link.
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// What a foreign agent is told at its beginning.
#[derive(Clone, Debug)]
pub struct ForeignAgentConfig {
    /// Where its visitors are.
    pub interface: u32,
    /// Its address there.
    pub address: Ipv4Addr,
    /// Where tunnels to its visitors end, which may be the same.
    pub care_of: Ipv4Addr,
    /// How often it advertises itself.
    pub interval: Duration,
    /// The longest registration that it accepts.
    pub lifetime: Lifetime,
    /// The only home agents with which visitors may register; none means any.
    pub home_agents: Vec<Ipv4Addr>,
    /// The only networks in which visitors may be at home; none means any.
    pub homes: Vec<TrafficSelector>,
    /// Home agents with which it has a key.
    pub home_keys: BTreeMap<Ipv4Addr, Association>,
    /// Mobile nodes with which it has a key, by their home addresses.
    pub mobile_keys: BTreeMap<Ipv4Addr, Association>,
    /// Foreign agents from which visitors come and to which they go, by their care-of addresses: each and we
    /// send after a mobile node what still comes for it.
    pub neighbours: BTreeMap<Ipv4Addr, Association>,
    /// Whether it asks home agents for tunnels in UDP, for it may be behind a NAT.
    pub nat: Nat,
    /// After how long without a packet such a tunnel is kept alive: not less than the NAT remembers, and not more than
    /// home agents say. `None` for what they say, and else for 110 s.
    pub keepalive: Option<Duration>,
    /// How many visitors it serves at most.
    pub visitors: usize,
    /// How many requests may wait for their replies.
    pub pending: usize,
}

/// Somebody who is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// Its address.
    pub home: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// Where it is.
    pub interface: u32,
    /// At which station there, by the request that was granted; `None` if nobody has said how that came.
    pub station: Option<Station>,
}

/// Octets that came with a request, and mean nothing to Mobile IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enclosed {
    /// The station that they came from, if that is known.
    pub station: Option<Station>,
    /// The octets.
    pub octets: Vec<u8>,
}

/// What has become of a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignEvent {
    /// It is served from now on.
    Came(Visitor),
    /// It still is: its registration holds for longer.
    Renewed(Visitor),
    /// It comes from a neighbour, who sends after it what still comes there, while its home agent has not
    /// answered: that is given to it, and no more.
    Followed(Visitor),
    /// It has gone to a neighbour, and for a while what comes for it is sent there.
    Gone {
        /// Who.
        visitor: Visitor,
        /// The care-of address of where it is.
        to: Ipv4Addr,
    },
    /// Nothing comes back by its tunnel in UDP any more, for a NAT has forgotten it, or the home agent is out of
    /// reach: visitors are told to register again.
    Unheard(Visitor),
    /// It is not here any more.
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
    limiter: Limiter,
    tunnel: VisitorTunnel,
    /// A home agent has seen a NAT between it and us.
    is_behind_nat: bool,
    /// Home agents of which nothing comes by tunnels in UDP, since they last accepted somebody.
    unheard: BTreeSet<Ipv4Addr>,
    /// What the host needs itself.
    reserved: Vec<TrafficSelector>,
    counters: Counters,
    transmits: VecDeque<Transmit>,
    events: VecDeque<ForeignEvent>,
    enclosed: VecDeque<Enclosed>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    visitor: Visitor,
    until: Option<Instant>,
    /// The identification of the request that was granted.
    registration: u64,
    /// Where it has gone since, if it has said so.
    gone: Option<Gone>,
}

#[derive(Clone, Copy, Debug)]
struct Gone {
    to: Ipv4Addr,
    /// Until when what comes for it is sent there; `None` if that is over.
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
            limiter: Limiter::default(),
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

    /// Sets the addresses that the host needs itself, besides those in the configuration: its own, the networks of its
    /// interfaces, next hops, name servers, peers. No visitor is at home there, and one that was leaves.
    pub fn set_reserved(&mut self, reserved: Vec<TrafficSelector>) {
        self.reserved = reserved;
        let homes = self.visitors().map(|visitor| visitor.home);
        let homes = homes.chain(self.newcomers.homes());
        let gone: Vec<_> = homes.filter(|home| self.is_reserved(*home)).collect();
        gone.into_iter().for_each(|home| self.leave(home));
    }

    // Inputs.

    /// An ICMP message came: somebody asks who is here. "A mobility agent that receives a Router
    /// Solicitation MUST NOT require that the IP Source Address is the address of a neighbor" (section 2.3).
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

    /// A UDP datagram came for port 434 by routes, from a home agent or another foreign agent; or a request from a
    /// visitor of which nobody says at which station it is.
    pub fn handle_datagram(&mut self, arrival: &Arrival, octets: &[u8], now: Instant) {
        self.handle(arrival, None, octets, now);
    }

    /// The same from this station of the link where visitors are. Anybody there can name any source, so what agents say
    /// is not believed from there.
    pub fn handle_nearby(
        &mut self,
        arrival: &Arrival,
        station: Station,
        octets: &[u8],
        now: Instant,
    ) {
        self.handle(arrival, Some(station), octets, now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(sequence) = self.beacon.due(&mut self.rng, now) {
            self.advertise(sequence);
        }
        while let Some(late) = self.pending.pop_late(now) {
            self.deny(&late, Code::ForeignTimeout, now);
        }
        self.handle_handover(now);
        self.keep_alive(now);
        let entries = self.visitors.values();
        let over = entries.filter(|entry| entry.until.is_some_and(|until| until <= now));
        let over: Vec<_> = over.map(|entry| entry.visitor.home).collect();
        over.into_iter().for_each(|home| self.leave(home));
    }

    // Outputs.

    /// The next message to be sent.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// What has happened.
    pub fn poll_event(&mut self) -> Option<ForeignEvent> {
        self.events.pop_front()
    }

    /// What somebody has given us with a request that was passed on, and that means nothing here. Who it is has been
    /// proved only where we share a key with it.
    pub fn poll_enclosed(&mut self) -> Option<Enclosed> {
        self.enclosed.pop_front()
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let beacon = (self.beacon.next(), "an advertisement is due");
        let pending = self.pending.next().map(|at| (at, "a home agent is silent"));
        let until = self.visitors.values().filter_map(|entry| entry.until).min();
        let visitor = until.map(|at| (at, "a registration ends"));
        let handover = self.next_of_handover();
        let handover = handover.map(|at| (at, "a visitor has come or gone for long enough"));
        let keepalive = self.tunnel.next();
        let keepalive = keepalive.map(|at| (at, "a tunnel in UDP was not in use"));
        let deadlines = [Some(beacon), pending, visitor, handover, keepalive]
            .into_iter()
            .flatten();
        deadlines.min().map(|(at, reason)| Deadline { at, reason })
    }

    // Getters.

    /// The tables of its tunnels.
    pub const fn tunnel(&mut self) -> &mut VisitorTunnel {
        &mut self.tunnel
    }

    /// Until when a visitor is served unless it registers again; `None` if that does not end.
    pub fn until(&self, home: Ipv4Addr) -> Option<Instant> {
        self.visitors.get(&home)?.until
    }

    /// The care-of address of where a visitor has gone, while packets are sent after it.
    pub fn gone_to(&self, home: Ipv4Addr) -> Option<Ipv4Addr> {
        let gone = self.visitors.get(&home)?.gone?;
        gone.until.map(|_| gone.to)
    }

    /// Whether the tunnel of a visitor is in UDP.
    pub fn is_in_udp(&self, home: Ipv4Addr) -> bool {
        self.tunnel.is_in_udp(home)
    }

    /// What happened to packets in its tunnels.
    pub const fn tunnel_counters(&self) -> &TunnelCounters {
        self.tunnel.counters()
    }

    /// What it was told at its beginning.
    pub const fn config(&self) -> &ForeignAgentConfig {
        &self.config
    }

    /// Who is served.
    pub fn visitors(&self) -> impl Iterator<Item = Visitor> {
        self.visitors.values().map(|entry| entry.visitor)
    }

    /// What happened to messages.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    // Advertisements.

    /// It lists no router: it routes for its visitors alone, who know it by its address.
    fn advertise(&mut self, sequence: u16) {
        let is_full = self.visitors.len() >= self.config.visitors;
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
                    .with_if(is_full, AgentFlags::BUSY)
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
        // At most one of both is of the mobile node itself, and one that it has asked by is not given up for another.
        if self.pending.has_lookalike(&waiting) {
            return Err(Dropped::NotAuthenticMobile);
        }
        match self.accept(&waiting, extensions, arrival.ttl) {
            Ok(end) => {
                self.pass_on(waiting, octets[..end].to_vec());
                self.take_enclosed(station, extensions);
                // That nobody is told is no reason not to be registered.
                self.pass_note(&waiting, extensions, now)
            }
            Err(code) => {
                self.deny(&waiting, code, now);
                Ok(())
            }
        }
    }

    /// Extensions behind what authorizes were for us, and are taken off (section 3.7.2.2).
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

    fn serves_somebody_of(&self, home_agent: Ipv4Addr) -> bool {
        let mut visitors = self.visitors();
        visitors.any(|visitor| visitor.home_agent == home_agent)
    }

    // Answers.

    fn deny(&mut self, waiting: &Waiting, code: Code, now: Instant) {
        self.counters.deny(code);
        let request = &waiting.request;
        if !is_host(request.home) || !self.limiter.allows(request.home, now) {
            self.counters.drop(Dropped::TooOften);
            return;
        }
        let mut reply = Reply::to(request, code);
        if code == Code::ForeignLifetime {
            reply.lifetime = self.config.lifetime;
        }
        self.send(waiting, reply.encode());
    }

    /// Sends a reply to a mobile node on our link, at its home address (section 3.7.2.3) and where it has asked.
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
    /// From now on what comes for it stays here again.
    fn stay(&mut self, tunnel: &mut VisitorTunnel) {
        if let Some(gone) = &mut self.gone {
            gone.until = None;
            tunnel.send_after(self.visitor.home, None);
        }
    }
}
