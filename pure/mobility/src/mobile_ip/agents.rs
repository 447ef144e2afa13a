//! The agents that a mobile node hears (RFC 5944 section 2.4).

use super::Station;
use model::Instant;
use std::cmp::Reverse;
use std::net::Ipv4Addr;
use std::time::Duration;
use wire::mobile_ip::{Advertisement, Agent, AgentFlags, Lifetime};

/// More than these are not remembered on an interface: advertisements are anybody's.
const MOST: usize = 16;
/// No advertisement is believed for longer: the most that a router may say (RFC 1256 section 4.1).
const LONGEST_BELIEVED: Duration = Duration::from_secs(9_000);
/// An agent in use that now says less than before is waited for as long as it said before, and no longer than this.
const PATIENCE: Duration = Duration::from_secs(30);
/// A shorter registration is of no use: between its renewal, at three quarters, and its end no second request fits.
const SHORTEST: Lifetime = Lifetime(5);
/// For how long an agent that denied or was silent is left alone at first, and at most.
const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(300);

/// Where a mobile node can be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attachment {
    /// The interface on which the agent is heard.
    pub interface: u32,
    /// The agent's address there, and the default router of who is registered.
    pub agent: Ipv4Addr,
    /// The care-of address.
    pub care_of: Ipv4Addr,
}

/// Where an advertisement came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) interface: u32,
    pub(super) agent: Ipv4Addr,
    pub(super) station: Station,
}

/// An agent that was heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) at: Attachment,
    /// The station of the last advertisement that was of use. Any station can advertise in its name.
    station: Station,
    /// The longest registration that it accepts, as it advertised last.
    advertised: Lifetime,
    /// The same as it said when it denied a longer one.
    limit: Option<Lifetime>,
    is_busy: bool,
    sequence: u16,
    since: Instant,
    last: Instant,
    until: Instant,
    /// How often it was of no use, and until when it is left alone for that.
    strikes: u32,
    rests: Option<Instant>,
}

/// What an advertisement has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing to be done.
    None,
    /// It has begun anew, and knows of no visitors (section 2.4.4).
    Rebooted,
    /// No foreign agent that is of use.
    Useless,
    /// There are too many: for this one another was forgotten, or it was not taken itself.
    TooMany,
}

/// All that are heard.
#[derive(Debug, Default)]
pub(super) struct Agents(Vec<Heard>);

impl Agents {
    /// Somebody advertises itself. One that is in use cannot be advertised away: what says so may be a
    /// forgery, and one that is gone is soon not heard any more. Where there are too many, those that are
    /// to be kept are.
    pub(super) fn hear(
        &mut self,
        origin: Origin,
        advertisement: &Advertisement,
        is_used: bool,
        is_kept: impl Fn(Attachment) -> bool,
        now: Instant,
    ) -> News {
        let Some(agent) = &advertisement.agent else {
            return News::Useless;
        };
        let offered = AgentFlags::FOREIGN_AGENT | AgentFlags::REVERSE_TUNNEL;
        let (true, Some(&care_of)) = (agent.flags.has(offered), agent.care_of.first()) else {
            return News::Useless;
        };
        let (interface, address) = (origin.interface, origin.agent);
        if advertisement.lifetime == 0 {
            if !is_used {
                self.forget(interface, address);
            }
            return News::None;
        }
        if agent.registration_lifetime < SHORTEST {
            return News::Useless;
        }
        let until = now + advertisement.lifetime().min(LONGEST_BELIEVED);
        let is_it = |heard: &&mut Heard| heard.at.is(interface, address);
        if let Some(heard) = self.0.iter_mut().find(is_it) {
            return heard.hear_again(agent, origin.station, is_used, (until, now));
        }
        let is_full = self.are_full(interface);
        if is_full && !self.replace_one(interface, is_kept) {
            return News::TooMany;
        }
        let at = Attachment {
            interface,
            agent: address,
            care_of,
        };
        self.0
            .push(Heard::new(at, origin.station, agent, (until, now)));
        match is_full {
            true => News::TooMany,
            false => News::None,
        }
    }

    /// Forgets those that were not heard for as long as they said.
    pub(super) fn expire(&mut self, now: Instant) {
        self.0.retain(|heard| heard.until > now);
    }

    pub(super) fn forget_interface(&mut self, interface: u32) {
        self.0.retain(|heard| heard.at.interface != interface);
    }

    fn are_full(&self, interface: u32) -> bool {
        let on_it = self
            .0
            .iter()
            .filter(|heard| heard.at.interface == interface);
        on_it.count() >= MOST
    }

    /// Forgets the one that is the least of use, so that a flood locks nobody out, and says whether there is one:
    /// the one most struck, and of these the one that was not heard for longest.
    fn replace_one(&mut self, interface: u32, is_kept: impl Fn(Attachment) -> bool) -> bool {
        let can_go = |heard: &&Heard| heard.at.interface == interface && !is_kept(heard.at);
        let candidates = self.0.iter().filter(can_go);
        let least = candidates.max_by_key(|heard| (heard.strikes, Reverse(heard.last)));
        let Some(at) = least.map(|heard| heard.at) else {
            return false;
        };
        self.forget(at.interface, at.agent);
        true
    }

    fn forget(&mut self, interface: u32, address: Ipv4Addr) {
        self.0.retain(|heard| !heard.at.is(interface, address));
    }

    pub(super) fn contains(&self, at: Attachment) -> bool {
        self.0.iter().any(|heard| heard.at == at)
    }

    /// Where an agent was heard last.
    pub(super) fn station(&self, at: Attachment) -> Option<Station> {
        let heard = self.0.iter().find(|heard| heard.at == at);
        heard.map(|heard| heard.station)
    }

    pub(super) fn are_on(&self, interface: u32) -> bool {
        self.0.iter().any(|heard| heard.at.interface == interface)
    }

    /// Those that can be used, the best first: those on an interface that is preferred, one that works
    /// before one that would have to, and the newest of the others, for who moves leaves the old behind.
    pub(super) fn usable(
        &self,
        interfaces: &[u32],
        is_held: impl Fn(Attachment) -> bool,
        now: Instant,
    ) -> Vec<Heard> {
        let fits = |heard: &&Heard| {
            heard.rests.is_none_or(|until| until <= now) && (!heard.is_busy || is_held(heard.at))
        };
        let mut usable: Vec<_> = self.0.iter().filter(fits).copied().collect();
        let rank = |interface| interfaces.iter().position(|&known| known == interface);
        usable.sort_by_key(|heard| {
            let is_new = !is_held(heard.at);
            (rank(heard.at.interface), is_new, Reverse(heard.since))
        });
        usable
    }

    /// One was of no use. It is left alone, the longer the more often that is so.
    pub(super) fn strike(&mut self, at: Attachment, now: Instant) {
        if let Some(heard) = self.find(at) {
            let rest = FIRST_REST * 2_u32.pow(heard.strikes.min(5));
            heard.strikes += 1;
            heard.rests = Some(now + rest.min(LONGEST_REST));
            heard.limit = None;
        }
    }

    /// One is of use.
    pub(super) fn praise(&mut self, at: Attachment) {
        if let Some(heard) = self.find(at) {
            (heard.strikes, heard.rests, heard.limit) = (0, None, None);
        }
    }

    /// One accepts nothing that is longer, it says; whether that is of use is returned. Nobody has proved it, so it
    /// ends with the request that is granted or fails. Advertisements do not end it: an agent that contradicts
    /// itself would be asked in vain for ever.
    pub(super) fn limit(&mut self, at: Attachment, lifetime: Lifetime) -> bool {
        if let Some(heard) = self.find(at) {
            heard.limit = Some(lifetime);
        }
        lifetime >= SHORTEST
    }

    /// When something changes without a message, after now.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let rests = self.0.iter().filter_map(|heard| heard.rests);
        let untils = self.0.iter().map(|heard| heard.until);
        untils.chain(rests).filter(|&at| at > now).min()
    }

    fn find(&mut self, at: Attachment) -> Option<&mut Heard> {
        self.0.iter_mut().find(|heard| heard.at == at)
    }
}

impl Heard {
    fn new(
        at: Attachment,
        station: Station,
        agent: &Agent,
        (until, now): (Instant, Instant),
    ) -> Self {
        Self {
            at,
            station,
            advertised: agent.registration_lifetime,
            limit: None,
            is_busy: agent.flags.has(AgentFlags::BUSY),
            sequence: agent.sequence,
            since: now,
            last: now,
            until,
            strikes: 0,
            rests: None,
        }
    }

    fn hear_again(
        &mut self,
        agent: &Agent,
        station: Station,
        is_used: bool,
        (until, now): (Instant, Instant),
    ) -> News {
        let rebooted = agent.sequence < self.sequence && agent.sequence < 256;
        let care_of_is_gone = !agent.care_of.contains(&self.at.care_of);
        if care_of_is_gone && is_used {
            // Not what we are registered through: whoever that was is not heard any more by this.
            return News::None;
        }
        if care_of_is_gone && let Some(&care_of) = agent.care_of.first() {
            self.at.care_of = care_of;
        }
        self.station = station;
        self.sequence = agent.sequence;
        self.is_busy = agent.flags.has(AgentFlags::BUSY);
        self.advertised = agent.registration_lifetime;
        self.last = now;
        self.until = match is_used {
            // A forgery makes it neither gone at once nor there for long after it was left.
            true => until.max(self.until.min(now + PATIENCE)),
            false => until,
        };
        if rebooted { News::Rebooted } else { News::None }
    }

    /// The longest registration that it accepts, as far as is known.
    pub(super) fn lifetime(&self) -> Lifetime {
        self.limit
            .map_or(self.advertised, |limit| limit.min(self.advertised))
    }
}

impl Attachment {
    fn is(&self, interface: u32, agent: Ipv4Addr) -> bool {
        self.interface == interface && self.agent == agent
    }
}
