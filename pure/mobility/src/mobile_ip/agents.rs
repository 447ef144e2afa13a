//! The agents that a mobile node discovers (RFC 5944 section 2.4).

use super::Station;
use model::Instant;
use std::cmp::Reverse;
use std::net::Ipv4Addr;
use std::time::Duration;
use wire::mobile_ip::{Advertisement, Agent, AgentFlags, Lifetime};

/// Limit on remembered agents per interface, because any host can advertise.
const MOST: usize = 16;
/// Longest lifetime that an advertisement is given: the maximum a router may announce (RFC 1256
/// section 4.1).
const LONGEST_BELIEVED: Duration = Duration::from_secs(9_000);
/// Longest extension of an agent in use whose new advertisement has a shorter lifetime. Within this
/// limit, the earlier lifetime stays in force.
const PATIENCE: Duration = Duration::from_secs(30);
/// Shortest useful registration: between its renewal, at three quarters, and its end there would be
/// no time for a second request.
const SHORTEST: Lifetime = Lifetime(5);
/// First and longest pause before an agent that denied a request or was silent is tried again.
const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(300);

/// A point of attachment: an agent through which a mobile node can register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attachment {
    /// The interface on which the agent is heard.
    pub interface: u32,
    /// The agent's address on that link, and the default router of its visitors.
    pub agent: Ipv4Addr,
    /// The care-of address.
    pub care_of: Ipv4Addr,
}

/// The source of an advertisement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) interface: u32,
    pub(super) agent: Ipv4Addr,
    pub(super) station: Station,
}

/// A discovered agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiscoveredAgent {
    pub(super) at: Attachment,
    /// The station of the last useful advertisement. Any station can advertise in the agent's name.
    station: Station,
    /// The longest registration that the agent accepts, by its last advertisement.
    advertised: Lifetime,
    /// The longest registration that the agent accepts, by its denial of a longer one.
    limit: Option<Lifetime>,
    is_busy: bool,
    sequence: u16,
    since: Instant,
    last: Instant,
    until: Instant,
    /// Failures in a row, and the end of the pause that they caused.
    strikes: u32,
    rests: Option<Instant>,
}

/// The outcome of an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// No action is necessary.
    None,
    /// The agent has restarted and lost its list of visitors (section 2.4.4).
    Rebooted,
    /// The sender is not a usable foreign agent.
    Useless,
    /// The table was full: this agent replaced another, or was not stored itself.
    TooMany,
}

/// All discovered agents.
#[derive(Debug, Default)]
pub(super) struct Agents(Vec<DiscoveredAgent>);

impl Agents {
    /// Handles an advertisement. An agent in use is never removed by one: the advertisement may be
    /// forged, and an agent that has left soon falls silent. If the table is full, agents that
    /// match `is_kept` stay.
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
        let is_it = |heard: &&mut DiscoveredAgent| heard.at.is(interface, address);
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
        self.0.push(DiscoveredAgent::new(
            at,
            origin.station,
            agent,
            (until, now),
        ));
        match is_full {
            true => News::TooMany,
            false => News::None,
        }
    }

    /// Removes agents whose advertised lifetime has ended.
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

    /// Removes the least useful agent, so that a flood of advertisements cannot block real ones.
    /// That is the agent with the most failures, and among equals the one silent for longest.
    /// Returns `false` if no agent can be removed.
    fn replace_one(&mut self, interface: u32, is_kept: impl Fn(Attachment) -> bool) -> bool {
        let can_go =
            |heard: &&DiscoveredAgent| heard.at.interface == interface && !is_kept(heard.at);
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

    /// Returns the station of an agent's last advertisement.
    pub(super) fn station(&self, at: Attachment) -> Option<Station> {
        let heard = self.0.iter().find(|heard| heard.at == at);
        heard.map(|heard| heard.station)
    }

    pub(super) fn are_on(&self, interface: u32) -> bool {
        self.0.iter().any(|heard| heard.at.interface == interface)
    }

    /// Returns the usable agents, best first: by interface preference, then agents with a
    /// registration, then the most recently discovered, because a moving host leaves the old ones
    /// behind.
    pub(super) fn usable(
        &self,
        interfaces: &[u32],
        is_held: impl Fn(Attachment) -> bool,
        now: Instant,
    ) -> Vec<DiscoveredAgent> {
        let fits = |heard: &&DiscoveredAgent| {
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

    /// Records a failure of an agent. The agent is not tried again for a pause that doubles with
    /// each failure.
    pub(super) fn strike(&mut self, at: Attachment, now: Instant) {
        if let Some(heard) = self.find(at) {
            let rest = FIRST_REST * 2_u32.pow(heard.strikes.min(5));
            heard.strikes += 1;
            heard.rests = Some(now + rest.min(LONGEST_REST));
            heard.limit = None;
        }
    }

    /// Records a success of an agent.
    pub(super) fn praise(&mut self, at: Attachment) {
        if let Some(heard) = self.find(at) {
            (heard.strikes, heard.rests, heard.limit) = (0, None, None);
        }
    }

    /// Records the longest registration that an agent accepts by its own denial, and returns true
    /// if that is long enough. Denials are not authenticated, so the limit ends with the request
    /// that is granted or fails. Advertisements do not end it: an agent that contradicts itself
    /// would otherwise be asked in vain for ever.
    pub(super) fn limit(&mut self, at: Attachment, lifetime: Lifetime) -> bool {
        if let Some(heard) = self.find(at) {
            heard.limit = Some(lifetime);
        }
        lifetime >= SHORTEST
    }

    /// Returns the next time after `now` at which an entry changes without a message.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let rests = self.0.iter().filter_map(|heard| heard.rests);
        let untils = self.0.iter().map(|heard| heard.until);
        untils.chain(rests).filter(|&at| at > now).min()
    }

    fn find(&mut self, at: Attachment) -> Option<&mut DiscoveredAgent> {
        self.0.iter_mut().find(|heard| heard.at == at)
    }
}

impl DiscoveredAgent {
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
            // We are registered with another care-of address; this message does not prove that it
            // is still there.
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
            // A forgery neither ends an agent in use at once nor keeps it long after the mobile
            // node left.
            true => until.max(self.until.min(now + PATIENCE)),
            false => until,
        };
        if rebooted { News::Rebooted } else { News::None }
    }

    /// Returns the longest registration that the agent is known to accept.
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
