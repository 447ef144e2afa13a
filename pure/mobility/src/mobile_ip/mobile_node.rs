//! The mobile node (RFC 5944 section 3.6): keeps its registration with the home agent current.
//!
//! It registers through the best agent that it hears, or through the best two at once. After every
//! input the next action is decided from the current state ([`MobileNode::plan`]). One request is
//! pending at a time, and each starts at least a second after the last. A registration ends when
//! its agent is no longer heard (section 2.4.2.1) or its lifetime ends. Until then its packets have
//! no other route.
//!
//! If the mobile node shares a key with the agent it leaves, the next request carries a note for
//! that agent, which then forwards the remaining packets ([`wire::mobile_ip::Note`]).

mod reply;
mod request;

use super::agents::{Agents, DiscoveredAgent, News, Origin};
use super::attempt::{Attempt, SPACING};
use super::freshness::IdentificationGenerator;
use super::search::Search;
use super::{Association, Counters, Dropped, NtpTime, Station, Transmit, is_host};
use crypto::Rng;
use model::{Deadline, Instant};
use request::Purpose;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use wire::mobile_ip::{Advertisement, Code, Lifetime, Solicitation};

pub use super::agents::Attachment;

/// The multicast address of all routers on a link.
const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// Correctable denials in a row before the agent is paused.
const MOST_RESYNCHRONISATIONS: u32 = 3;
/// Unanswered requests after which an agent in use may have moved to another station of its link.
const MOST_UNANSWERED: u32 = 3;

/// The configuration of a mobile node.
#[derive(Clone, Debug)]
pub struct MobileNodeConfig {
    /// Its home address.
    pub home: Ipv4Addr,
    /// Address of its home agent.
    pub home_agent: Ipv4Addr,
    /// The key that it shares with its home agent.
    pub key: Association,
    /// Keys that it shares with foreign agents, by their addresses.
    pub agent_keys: BTreeMap<Ipv4Addr, Association>,
    /// Interfaces to search for agents, most preferred first.
    pub interfaces: Vec<u32>,
    /// Requested lifetime of a registration; agents may grant less.
    pub lifetime: Lifetime,
    /// True if it registers through two agents at once when it hears two.
    pub simultaneous: bool,
}

/// An event of a mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MobileEvent {
    /// A registration with a new agent is in force; packets now arrive through it.
    Registered(Attachment),
    /// An existing registration was renewed.
    Renewed(Attachment),
    /// A registration has ended; packets no longer arrive through this agent.
    Unregistered(Attachment),
    /// The agent's station is proved: a request went there, and an authentic reply that granted it
    /// came back from there.
    Found {
        /// The agent.
        at: Attachment,
        /// Its station.
        station: Station,
    },
    /// The agent that outbound packets must be routed to has changed; `None` if no agent remains.
    Route(Option<Attachment>),
    /// A foreign agent, or the home agent through it, denied a request.
    Denied {
        /// The agent that the request went through.
        at: Attachment,
        /// The reason.
        code: Code,
    },
    /// Requests through this agent got no reply.
    Silent(Attachment),
    /// All registrations have ended, after a call to [`MobileNode::deregister`].
    Deregistered {
        /// True if the home agent confirmed it. Otherwise its bindings end with their lifetimes.
        confirmed: bool,
    },
}

/// A mobile node.
#[derive(Debug)]
pub struct MobileNode {
    config: MobileNodeConfig,
    rng: Rng,
    identifications: IdentificationGenerator,
    agents: Agents,
    search: Search,
    held: Vec<Held>,
    /// The last registration that ended, until its agent has been notified.
    left: Option<Held>,
    attempt: Option<Attempt>,
    /// The agent of a new request, until the caller polls it.
    asked: Option<Attachment>,
    /// The earliest time of the next request.
    not_before: Instant,
    stage: Stage,
    /// The agent that the deregistration goes through.
    farewell: Option<Attachment>,
    /// Time of the last input.
    now: Instant,
    /// True if the next request must replace all bindings at the home agent.
    replaces: bool,
    /// True if there is only one registration at a time, by configuration or because the home agent
    /// supports one care-of address only.
    is_single: bool,
    /// Correctable denials in a row.
    resynchronisations: u32,
    route: Option<Attachment>,
    counters: Counters,
    transmits: VecDeque<Transmit>,
    events: VecDeque<MobileEvent>,
}

/// A registration in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The agent it goes through.
    pub at: Attachment,
    /// The time since which packets arrive through it.
    pub since: Instant,
    /// The time at which it ends unless renewed; `None` if its lifetime is infinite.
    pub until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    at: Attachment,
    /// The station that the granted request went to and the reply came from.
    station: Station,
    since: Instant,
    until: Option<Instant>,
    renew: Option<Instant>,
    /// The identification of the granted request.
    registration: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    Leaving,
    Gone,
}

impl MobileNode {
    /// Creates a mobile node that knows no agents. All configured interfaces are taken to be up.
    pub fn new(config: MobileNodeConfig, seed: [u8; 32], now: Instant) -> Self {
        let mut rng = Rng::from_seed(seed);
        Self {
            identifications: IdentificationGenerator::new(config.key.replay, now),
            agents: Agents::default(),
            search: Search::new(&config.interfaces, &mut rng, now),
            rng,
            held: Vec::new(),
            left: None,
            attempt: None,
            asked: None,
            not_before: now,
            stage: Stage::Serving,
            farewell: None,
            now,
            replaces: true,
            is_single: !config.simultaneous,
            resynchronisations: 0,
            route: None,
            counters: Counters::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            config,
        }
    }

    /// Sets the time of day, by which a home agent sees that requests are new. Without it, the
    /// mobile node learns the time from the home agent, at the cost of one more request.
    pub const fn set_wall_clock(&mut self, time: NtpTime, now: Instant) {
        self.identifications.set_clock(time, now);
    }

    // Commands.

    /// Ends all registrations, and starts no new ones.
    pub fn deregister(&mut self, now: Instant) {
        if self.stage != Stage::Serving {
            return;
        }
        self.stage = Stage::Leaving;
        let attempt = self.attempt.take();
        if let Some(attempt) = &attempt {
            self.not_before = attempt.sent + SPACING;
        }
        // The pending request may have been granted already.
        self.farewell = self.best_held().or(attempt.map(|attempt| attempt.at));
        self.drive(now);
    }

    /// Adds octets for an agent to the pending request, and returns `false` if no request to that
    /// agent is pending. The octets are opaque and at most [`wire::mobile_ip::Enclosure::LONGEST`]
    /// long. Before the next [`Self::poll_transmit`] they join the queued request, later a
    /// retransmission. They never delay a request.
    pub fn enclose(&mut self, at: Attachment, octets: Vec<u8>) -> bool {
        let Some(mut attempt) = self.attempt.take_if(|attempt| attempt.at == at) else {
            return false;
        };
        attempt.enclosed.push(octets);
        let (written, noted) = self.write(&attempt.request, at, &attempt.enclosed, self.now);
        for waiting in &mut self.transmits {
            match waiting {
                Transmit::Udp { octets, .. } if *octets == attempt.octets => {
                    octets.clone_from(&written);
                }
                Transmit::Udp { .. } | Transmit::Icmp { .. } => {}
            }
        }
        (attempt.octets, attempt.noted) = (written, noted);
        self.attempt = Some(attempt);
        true
    }

    // Inputs.

    /// Records that an interface came up or moved to another link.
    pub fn interface_found(&mut self, interface: u32, now: Instant) {
        if self.config.interfaces.contains(&interface) {
            self.agents.forget_interface(interface);
            self.search.begin(interface, &mut self.rng, now);
        }
        self.drive(now);
    }

    /// Records that an interface is gone, and forgets the agents on it.
    pub fn interface_lost(&mut self, interface: u32, now: Instant) {
        self.search.lose(interface);
        self.agents.forget_interface(interface);
        self.drive(now);
    }

    /// Handles an ICMP message from a station: the advertisement of an agent, or of any router.
    pub fn handle_advertisement(
        &mut self,
        interface: u32,
        source: Ipv4Addr,
        station: Station,
        octets: &[u8],
        now: Instant,
    ) {
        self.counters.received += 1;
        let origin = Origin {
            interface,
            agent: source,
            station,
        };
        if let Err(reason) = self.hear(origin, octets, now) {
            self.counters.drop(reason);
        }
        self.drive(now);
    }

    /// Handles a UDP datagram from port 434 of an address, and from a station.
    pub fn handle_reply(
        &mut self,
        interface: u32,
        source: Ipv4Addr,
        station: Station,
        octets: &[u8],
        now: Instant,
    ) {
        self.counters.received += 1;
        let origin = Origin {
            interface,
            agent: source,
            station,
        };
        if let Err(reason) = self.reply(origin, octets, now) {
            self.counters.drop(reason);
        }
        self.drive(now);
    }

    /// Runs all actions that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.drive(now);
    }

    // Outputs.

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<MobileEvent> {
        self.events.pop_front()
    }

    /// Returns, once per request, the agent of a new request that would leave no other
    /// registration. The caller may then call [`Self::enclose`].
    pub const fn poll_asked(&mut self) -> Option<Attachment> {
        self.asked.take()
    }

    /// Returns the time of the next call to [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        if self.stage == Stage::Gone {
            return None;
        }
        let now = self.now;
        let is_quiet = |interface| self.is_quiet(interface);
        let search = self
            .search
            .next(is_quiet)
            .filter(|_| self.stage == Stage::Serving);
        let until = self.held.iter().filter_map(|held| held.until).min();
        let plan = match &self.attempt {
            Some(attempt) => Some(attempt.next),
            None if self.stage == Stage::Leaving => Some(self.not_before),
            None => self
                .wanted(now)
                .iter()
                .filter_map(|heard| self.due(heard.at))
                .min(),
        };
        let deadlines = [
            (search, "no agent is heard"),
            (self.agents.next(now), "an agent expires, or is tried again"),
            (until, "a registration ends"),
            (plan, "a registration is due"),
        ];
        let deadlines = deadlines
            .into_iter()
            .filter_map(|(at, reason)| Some((at?, reason)));
        deadlines.min().map(|(at, reason)| Deadline { at, reason })
    }

    // Getters.

    /// Returns the agents with a registration.
    pub fn registrations(&self) -> impl Iterator<Item = Attachment> {
        self.held.iter().map(|held| held.at)
    }

    /// Returns the registrations with their lifetimes.
    pub fn standing(&self) -> impl Iterator<Item = Registration> {
        self.held.iter().map(|held| Registration {
            at: held.at,
            since: held.since,
            until: held.until,
        })
    }

    /// Returns the agent that outbound packets go through.
    pub const fn route(&self) -> Option<Attachment> {
        self.route
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &MobileNodeConfig {
        &self.config
    }

    /// Returns the message counters.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    // Advertisements.

    fn hear(&mut self, origin: Origin, octets: &[u8], now: Instant) -> Result<(), Dropped> {
        let (interface, source) = (origin.interface, origin.agent);
        if !self.search.contains(interface) {
            return Err(Dropped::OtherInterface);
        }
        let advertisement = Advertisement::parse(octets).map_err(|_| Dropped::Malformed)?;
        if !is_host(source) || source == self.config.home {
            return Err(Dropped::WrongSource);
        }
        let is_it = |at: Attachment| at.interface == interface && at.agent == source;
        let is_used = self.held.iter().any(|held| is_it(held.at));
        let others = [
            self.farewell,
            self.attempt.as_ref().map(|attempt| attempt.at),
        ];
        let is_held = |at| self.held.iter().any(|held| held.at == at);
        let is_kept = |at| is_held(at) || others.contains(&Some(at));
        let news = self
            .agents
            .hear(origin, &advertisement, is_used, is_kept, now);
        match news {
            News::None => {}
            News::Rebooted => {
                let held = self.held.iter_mut().find(|held| is_it(held.at));
                if let Some(held) = held {
                    held.renew = Some(now);
                }
            }
            News::Useless => return Err(Dropped::NoForeignAgent),
            News::TooMany => return Err(Dropped::TooManyAgents),
        }
        Ok(())
    }

    // Reconciliation.

    /// Brings registrations, requests and the route in line with the current state.
    fn drive(&mut self, now: Instant) {
        self.now = now;
        if self.stage != Stage::Gone {
            self.agents.expire(now);
            self.let_go(now);
            self.retry(now);
            self.plan(now);
            self.solicit(now);
        }
        self.choose_route();
    }

    /// Ends registrations that have expired or lost their agent.
    fn let_go(&mut self, now: Instant) {
        let agents = std::mem::take(&mut self.agents);
        let is_over = |held: &Held| held.until.is_some_and(|until| until <= now);
        let lost = self.release(|held| is_over(held) || !agents.contains(held.at));
        if let Some(attempt) = &self.attempt
            && !agents.contains(attempt.at)
        {
            self.not_before = attempt.sent + SPACING;
            self.attempt = None;
        }
        self.agents = agents;
        // The home agent still sends copies to the lost agent; a request without S removes that
        // binding.
        if lost && let Some(held) = self.held.first_mut() {
            held.renew = Some(now);
            self.replaces = true;
        }
        let is_heard = |at| self.agents.contains(at);
        if self.stage == Stage::Leaving && !self.farewell.is_some_and(is_heard) {
            self.end(false);
        }
    }

    /// Starts the next request if one is due and allowed.
    fn plan(&mut self, now: Instant) {
        if self.attempt.is_some() || now < self.not_before || self.stage == Stage::Gone {
            return;
        }
        if self.stage == Stage::Leaving {
            if let Some(at) = self.farewell {
                self.begin(at, Purpose::ToLeave, now);
            }
            return;
        }
        let is_due = |heard: &DiscoveredAgent| self.due(heard.at).is_some_and(|due| due <= now);
        let wanted = self.wanted(now).into_iter().find(is_due);
        if let Some(heard) = wanted {
            let lifetime = heard.lifetime().min(self.config.lifetime);
            self.begin(heard.at, Purpose::ToStay(lifetime), now);
        }
    }

    fn solicit(&mut self, now: Instant) {
        if self.stage != Stage::Serving {
            return;
        }
        let agents = &self.agents;
        let is_quiet = |interface| !agents.are_on(interface);
        for interface in self.search.due(is_quiet, &mut self.rng, now) {
            self.transmits.push_back(Transmit::Icmp {
                interface,
                destination: ALL_ROUTERS,
                octets: Solicitation.encode(),
            });
        }
    }

    fn choose_route(&mut self) {
        let route = self.best_held();
        if route != self.route {
            self.route = route;
            self.events.push_back(MobileEvent::Route(route));
        }
    }

    // Queries.

    fn usable(&self, now: Instant) -> Vec<DiscoveredAgent> {
        let interfaces = &self.config.interfaces;
        self.agents.usable(interfaces, |at| self.is_held(at), now)
    }

    /// Returns the agents to register through.
    fn wanted(&self, now: Instant) -> Vec<DiscoveredAgent> {
        let mut wanted = self.usable(now);
        wanted.truncate(if self.is_single { 1 } else { 2 });
        wanted
    }

    /// Returns the time at which a request to an agent is due; `None` if its registration needs
    /// none.
    fn due(&self, at: Attachment) -> Option<Instant> {
        let held = self.held.iter().find(|held| held.at == at);
        match held {
            Some(held) => held.renew.map(|renew| renew.max(self.not_before)),
            None => Some(self.not_before),
        }
    }

    fn is_held(&self, at: Attachment) -> bool {
        self.held.iter().any(|held| held.at == at)
    }

    /// Returns the station to send a request to. For an agent in use that is the station of the
    /// granted registration, until too many requests stay unanswered. Advertisements do not change
    /// it earlier, because any station can advertise in the agent's name.
    fn station(&self, at: Attachment, unanswered: u32) -> Option<Station> {
        let in_use = self.held.iter().find(|held| held.at == at);
        let in_use = in_use.filter(|_| unanswered < MOST_UNANSWERED);
        let heard = || self.agents.station(at);
        in_use.map(|held| held.station).or_else(heard)
    }

    fn is_quiet(&self, interface: u32) -> bool {
        !self.agents.are_on(interface)
    }

    fn best_held(&self) -> Option<Attachment> {
        let interfaces = &self.config.interfaces;
        let rank = |held: &&Held| {
            interfaces
                .iter()
                .position(|&known| known == held.at.interface)
        };
        self.held.iter().min_by_key(rank).map(|held| held.at)
    }

    // Effects.

    /// Ends registrations, and returns true if there were any.
    fn release(&mut self, is_lost: impl Fn(&Held) -> bool) -> bool {
        let before = self.held.len();
        for held in self.held.iter().filter(|held| is_lost(held)) {
            self.events.push_back(MobileEvent::Unregistered(held.at));
            self.left = Some(*held);
        }
        self.held.retain(|held| !is_lost(held));
        self.held.len() < before
    }

    fn end(&mut self, confirmed: bool) {
        self.release(|_| true);
        self.attempt = None;
        self.stage = Stage::Gone;
        self.events
            .push_back(MobileEvent::Deregistered { confirmed });
    }
}
