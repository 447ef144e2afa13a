//! The mobile node (RFC 5944 section 3.6): sees to it that its home agent knows where it is.
//!
//! It is registered through the best agent that it hears, or through the two best at once. What is to be
//! done is decided anew after everything that happens ([`MobileNode::plan`]): one request is under way at
//! a time, and none begins within a second of the last. A registration is given up when its agent is not
//! heard any more (section 2.4.2.1) or its lifetime ends, and a packet finds no other way until then.
//!
//! Whoever is left and shares a key with it is told by a note in the next request, so that it sends on what still
//! comes ([`wire::mobile_ip::Note`]).

mod reply;
mod request;

use super::agents::{Agents, Heard, News, Origin};
use super::attempt::{Attempt, SPACING};
use super::freshness::Maker;
use super::search::Search;
use super::{Association, Counters, Dropped, NtpTime, Station, Transmit, is_host};
use crypto::Rng;
use model::{Deadline, Instant};
use request::Wish;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use wire::mobile_ip::{Advertisement, Code, Lifetime, Solicitation};

pub use super::agents::Attachment;

/// Every router on a link.
const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// So often a home agent may say that a request is not new before it is left alone.
const MOST_RESYNCHRONISATIONS: u32 = 3;
/// After so many requests without an answer an agent in use may have come to another station of its link.
const MOST_UNANSWERED: u32 = 3;

/// What a mobile node is told at its beginning.
#[derive(Clone, Debug)]
pub struct MobileNodeConfig {
    /// Its address, wherever it is.
    pub home: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// What it shares with its home agent.
    pub key: Association,
    /// Foreign agents with which it has a key.
    pub agent_keys: BTreeMap<Ipv4Addr, Association>,
    /// Where it looks for agents, the preferred interface first.
    pub interfaces: Vec<u32>,
    /// For how long it wants to be registered; agents may want less.
    pub lifetime: Lifetime,
    /// Whether it is registered through two agents at once where it hears two.
    pub simultaneous: bool,
}

/// What has become of a mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MobileEvent {
    /// Packets come by this agent from now on.
    Registered(Attachment),
    /// They still do: the registration holds for longer.
    Renewed(Attachment),
    /// They do not any more.
    Unregistered(Attachment),
    /// The agent is at this station of its link: a request that was sent there was granted by an authentic reply that came
    /// from there.
    Found {
        /// The agent.
        at: Attachment,
        /// Its station.
        station: Station,
    },
    /// What it sends is to go to this agent from now on; to nobody if there is none.
    Route(Option<Attachment>),
    /// An agent, or the home agent through it, has said no.
    Denied {
        /// Through whom it was asked.
        at: Attachment,
        /// Why.
        code: Code,
    },
    /// Nothing came back.
    Silent(Attachment),
    /// It has done with it all, as it was told to.
    Deregistered {
        /// Whether the home agent has said so. If not, what it knows ends by itself.
        confirmed: bool,
    },
}

/// A mobile node.
#[derive(Debug)]
pub struct MobileNode {
    config: MobileNodeConfig,
    rng: Rng,
    identifications: Maker,
    agents: Agents,
    search: Search,
    held: Vec<Held>,
    /// What was given up last, while whom it was through has not been told.
    left: Option<Held>,
    attempt: Option<Attempt>,
    /// Who is asked, while nobody has been told.
    asked: Option<Attachment>,
    /// No request may leave earlier.
    not_before: Instant,
    stage: Stage,
    /// Through whom everything is ended.
    farewell: Option<Attachment>,
    /// When something was heard or done last.
    now: Instant,
    /// What the home agent has bound is to be replaced.
    replaces: bool,
    /// There is one registration at a time: it was told so, or the home agent binds one care-of address alone.
    is_single: bool,
    /// Denials in a row that could be mended.
    resynchronisations: u32,
    route: Option<Attachment>,
    counters: Counters,
    transmits: VecDeque<Transmit>,
    events: VecDeque<MobileEvent>,
}

/// A registration that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Through whom.
    pub at: Attachment,
    /// Since when packets come by it.
    pub since: Instant,
    /// When it ends unless it is renewed; `None` if it does not.
    pub until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    at: Attachment,
    /// Where the request that was granted went, and the reply came from.
    station: Station,
    since: Instant,
    until: Option<Instant>,
    renew: Option<Instant>,
    /// The identification of the request that was granted.
    registration: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    Leaving,
    Gone,
}

impl MobileNode {
    /// One that has heard nobody yet, and takes all its interfaces to be there.
    pub fn new(config: MobileNodeConfig, seed: [u8; 32], now: Instant) -> Self {
        let mut rng = Rng::from_seed(seed);
        Self {
            identifications: Maker::new(config.key.replay, now),
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

    /// Tells the time of day, by which a home agent sees that requests are new. Who is not told learns it
    /// from the home agent, with one request more.
    pub const fn set_wall_clock(&mut self, time: NtpTime, now: Instant) {
        self.identifications.set_clock(time, now);
    }

    // Commands.

    /// Ends all registrations, and begins none.
    pub fn deregister(&mut self, now: Instant) {
        if self.stage != Stage::Serving {
            return;
        }
        self.stage = Stage::Leaving;
        let attempt = self.attempt.take();
        if let Some(attempt) = &attempt {
            self.not_before = attempt.sent + SPACING;
        }
        // What was asked for may be granted by now.
        self.farewell = self.best_held().or(attempt.map(|attempt| attempt.at));
        self.drive(now);
    }

    /// Gives an agent something with the request that is under way to it: octets of no more than
    /// [`wire::mobile_ip::Enclosure::LONGEST`], that mean nothing here. Before the next [`Self::poll_transmit`] they go
    /// with the request that waits there, and later with a repetition: nothing waits for them.
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

    /// An interface is there, or on another link than before.
    pub fn interface_found(&mut self, interface: u32, now: Instant) {
        if self.config.interfaces.contains(&interface) {
            self.agents.forget_interface(interface);
            self.search.begin(interface, &mut self.rng, now);
        }
        self.drive(now);
    }

    /// An interface is gone, and with it whoever was heard on it.
    pub fn interface_lost(&mut self, interface: u32, now: Instant) {
        self.search.lose(interface);
        self.agents.forget_interface(interface);
        self.drive(now);
    }

    /// An ICMP message came from a station: an agent, or any router, says that it is here.
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

    /// A UDP datagram came from port 434 of an address, and from a station.
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

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.drive(now);
    }

    // Outputs.

    /// The next message to be sent.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// What has happened.
    pub fn poll_event(&mut self) -> Option<MobileEvent> {
        self.events.pop_front()
    }

    /// An agent that is asked to serve it from now on, and no other beside; told once, for whoever has something to [`Self::enclose`].
    pub const fn poll_asked(&mut self) -> Option<Attachment> {
        self.asked.take()
    }

    /// When to call [`Self::handle_timeout`].
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
            (search, "nobody is heard"),
            (
                self.agents.next(now),
                "an agent is not heard any more, or tried again",
            ),
            (until, "a registration ends"),
            (plan, "a registration is due"),
        ];
        let deadlines = deadlines
            .into_iter()
            .filter_map(|(at, reason)| Some((at?, reason)));
        deadlines.min().map(|(at, reason)| Deadline { at, reason })
    }

    // Getters.

    /// Where it is registered.
    pub fn registrations(&self) -> impl Iterator<Item = Attachment> {
        self.held.iter().map(|held| held.at)
    }

    /// The same, with how long each holds.
    pub fn standing(&self) -> impl Iterator<Item = Registration> {
        self.held.iter().map(|held| Registration {
            at: held.at,
            since: held.since,
            until: held.until,
        })
    }

    /// By whom it sends.
    pub const fn route(&self) -> Option<Attachment> {
        self.route
    }

    /// What it was told at its beginning.
    pub const fn config(&self) -> &MobileNodeConfig {
        &self.config
    }

    /// What happened to messages.
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

    // What is to be done.

    /// Brings everything to what is true now.
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

    /// Gives up what does not hold any more.
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
        // The home agent still sends to it what goes to the others: a request without S tells it.
        if lost && let Some(held) = self.held.first_mut() {
            held.renew = Some(now);
            self.replaces = true;
        }
        let is_heard = |at| self.agents.contains(at);
        if self.stage == Stage::Leaving && !self.farewell.is_some_and(is_heard) {
            self.end(false);
        }
    }

    /// Begins the next request, if one is due and may be.
    fn plan(&mut self, now: Instant) {
        if self.attempt.is_some() || now < self.not_before || self.stage == Stage::Gone {
            return;
        }
        if self.stage == Stage::Leaving {
            if let Some(at) = self.farewell {
                self.begin(at, Wish::ToLeave, now);
            }
            return;
        }
        let is_due = |heard: &Heard| self.due(heard.at).is_some_and(|due| due <= now);
        let wanted = self.wanted(now).into_iter().find(is_due);
        if let Some(heard) = wanted {
            let lifetime = heard.lifetime().min(self.config.lifetime);
            self.begin(heard.at, Wish::ToStay(lifetime), now);
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

    // What is known.

    fn usable(&self, now: Instant) -> Vec<Heard> {
        let interfaces = &self.config.interfaces;
        self.agents.usable(interfaces, |at| self.is_held(at), now)
    }

    /// The agents through which to be registered.
    fn wanted(&self, now: Instant) -> Vec<Heard> {
        let mut wanted = self.usable(now);
        wanted.truncate(if self.is_single { 1 } else { 2 });
        wanted
    }

    /// When a request to an agent is due; `None` if its registration needs none.
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

    /// Where a request to an agent goes that was left unanswered so often. Of an agent in use advertisements say nothing of
    /// that, for any station can advertise in its name.
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

    // What follows from it.

    /// Gives up registrations, and says whether there were any.
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
