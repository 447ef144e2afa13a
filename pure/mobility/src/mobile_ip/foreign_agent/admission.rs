//! Admission control: the checks on a request before it is relayed.

use super::{ForeignAgent, Visitor, Waiting};
use crate::mobile_ip::transmit::NEIGHBOUR;
use crate::mobile_ip::{Dropped, is_host};
use model::{TrafficSelector, most_crowded};
use std::net::Ipv4Addr;
use wire::mobile_ip::{Between, Code, Extensions, Request, RequestFlags, kind};

/// Limit on visitors at one station. A host has one address away from home; a bridge has a few
/// hosts behind it.
const MOST_AT_STATION: usize = 8;
/// Divisor that gives an unlisted home agent's share of all visitors, because any station can name
/// a home agent of its own. The same number of places is divided evenly among listed home agents,
/// and each one's part is closed to visitors of the others.
const SHARE: usize = 4;

/// A place for a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// One that is free, or that the mobile node has already.
    Free,
    /// That of the visitor with this home address, who leaves.
    Instead(Ipv4Addr),
}

impl ForeignAgent {
    /// Applies the checks of section 3.7.2.1 and of RFC 3024 section 4.2.1. Returns the end of the
    /// part that goes to the home agent.
    pub(super) fn accept(
        &mut self,
        waiting: &Waiting,
        extensions: Extensions<'_>,
        ttl: u8,
    ) -> Result<usize, Code> {
        let request = &waiting.request;
        if let Some(key) = self.config.mobile_keys.get(&request.home) {
            let proof = key.verify(extensions, Between::MobileForeign);
            proof.ok_or(Code::ForeignMobileAuthentication)?;
        }
        let authorization = extensions.only(Between::MobileHome);
        let end = authorization.ok_or(Code::ForeignPoorlyFormed)?.end();
        // "In all other circumstances, the IP source address MUST be the mobile node's home
        // address."
        if !is_host(request.home) || *waiting.mobile.ip() != request.home {
            return Err(Code::ForeignPoorlyFormed);
        }
        self.check_delivery(request, extensions, ttl)?;
        self.check_agents(request)?;
        self.check_home(request)?;
        self.check_room(waiting)?;
        Ok(end)
    }

    fn check_delivery(
        &self,
        request: &Request,
        extensions: Extensions<'_>,
        ttl: u8,
    ) -> Result<(), Code> {
        let flags = request.flags;
        if flags.asks_for_other_encapsulation() {
            return Err(Code::ForeignEncapsulation);
        }
        if flags.has(RequestFlags::CO_LOCATED) {
            return Err(Code::ForeignProhibited);
        }
        if extensions.has(kind::ENCAPSULATING_DELIVERY) {
            return Err(Code::ForeignDelivery);
        }
        if !flags.has(RequestFlags::REVERSE_TUNNEL) {
            return Err(Code::ForeignReverseTunnelWanted);
        }
        match ttl {
            NEIGHBOUR => Ok(()),
            _ => Err(Code::ForeignTooDistant),
        }
    }

    fn check_agents(&self, request: &Request) -> Result<(), Code> {
        let config = &self.config;
        let agent = request.home_agent;
        if !is_host(agent) || agent == config.address || agent == config.care_of {
            return Err(Code::ForeignHomeAgent);
        }
        let is_allowed = config.home_agents.is_empty() || self.vouches(agent, request.home);
        if !is_allowed {
            return Err(Code::ForeignProhibited);
        }
        if !request.is_deregistration() && request.care_of != config.care_of {
            return Err(Code::ForeignCareOf);
        }
        Ok(())
    }

    /// Returns true if a listed home agent may register a home address. Any station can have a
    /// request answered by a home agent in league with it, so none answers for mobile nodes of
    /// another.
    fn vouches(&self, agent: Ipv4Addr, home: Ipv4Addr) -> bool {
        let listed = &self.config.home_agents;
        listed
            .get(&agent)
            .is_some_and(|networks| match &networks[..] {
                [] => !listed.values().any(|others| is_in(others, home)),
                networks => is_in(networks, home),
            })
    }

    /// Checks the home address, which decides the route of packets that leave a tunnel. It must be
    /// allowed for visitors, and must not belong to an agent or be needed by the host itself.
    fn check_home(&self, request: &Request) -> Result<(), Code> {
        let (home, config) = (request.home, &self.config);
        let is_allowed = config.homes.is_empty() || is_in(&config.homes, home);
        let is_an_agents = home == request.home_agent
            || config.home_agents.contains_key(&home)
            || config.home_keys.contains_key(&home)
            || config.neighbours.contains_key(&home);
        match is_allowed && !self.is_reserved(home) && !is_an_agents {
            true => Ok(()),
            false => Err(Code::ForeignProhibited),
        }
    }

    /// Returns true if the host needs an address itself.
    pub(super) fn is_reserved(&self, address: Ipv4Addr) -> bool {
        let told = [self.config.address, self.config.care_of];
        told.contains(&address) || is_in(&self.reserved, address)
    }

    fn check_room(&mut self, waiting: &Waiting) -> Result<(), Code> {
        let request = &waiting.request;
        if request.lifetime > self.config.lifetime {
            return Err(Code::ForeignLifetime);
        }
        if !request.is_deregistration() && self.place(waiting).is_none() {
            return Err(Code::ForeignResources);
        }
        let visitors = &self.visitors;
        let is_visitors = |one: &Waiting| {
            let entry = visitors.get(&one.request.home);
            entry.is_some_and(|entry| entry.visitor.station == one.station)
        };
        if self.pending.make_room(waiting, is_visitors) {
            self.counters.drop(Dropped::GaveWay);
        }
        match self.pending.has_room(waiting) {
            true => Ok(()),
            false => Err(Code::ForeignResources),
        }
    }

    /// Returns the place that there is for a visitor: in total, at its station, and for its home
    /// agent.
    pub(super) fn place(&self, waiting: &Waiting) -> Option<Place> {
        let Request {
            home, home_agent, ..
        } = waiting.request;
        let others = |fits: &dyn Fn(Visitor) -> bool| {
            let others = self.visitors().filter(|visitor| visitor.home != home);
            others.filter(|visitor| fits(*visitor)).count()
        };
        let at_station = others(&|visitor| visitor.station == waiting.station);
        let is_free =
            self.visitors.contains_key(&home) || self.visitors.len() < self.config.visitors;
        let gives_way = match is_free {
            true => None,
            false => Some(self.gives_way(at_station, self.is_keyed(home, home_agent))?),
        };
        let stays = |visitor: Visitor| Some(visitor.home) != gives_way;
        let of_agent = others(&|visitor| visitor.home_agent == home_agent && stays(visitor));
        let has_room = at_station < MOST_AT_STATION && of_agent < self.most_of_agent(home_agent);
        has_room.then_some(gives_way.map_or(Place::Free, Place::Instead))
    }

    /// Returns the visitor that gives way to a newcomer: the visitor that has been longest at the
    /// station with the most, if that station has more even after the exchange. So one visitor at a
    /// station never gives way, and neither does a visitor with a key to a newcomer without.
    fn gives_way(&self, at_station: usize, is_keyed: bool) -> Option<Ipv4Addr> {
        let entries = self.visitors.values();
        let weaker = entries.filter(|entry| {
            let Visitor {
                home, home_agent, ..
            } = entry.visitor;
            is_keyed || !self.is_keyed(home, home_agent)
        });
        let mut oldest: Vec<_> = weaker.collect();
        oldest.sort_by_key(|entry| entry.since);
        let members = oldest
            .iter()
            .map(|entry| (entry.visitor.station, entry.visitor.home));
        let most = most_crowded(members).filter(|(_, most)| *most > at_station + 1);
        most.map(|(home, _)| home)
    }

    /// Returns true if there is no place for a mobile node at another station.
    pub(super) fn is_full(&self) -> bool {
        self.visitors.len() >= self.config.visitors && self.gives_way(0, false).is_none()
    }

    /// Returns true if a key proves that a mobile node has a home address, or that its home agent
    /// has accepted it.
    fn is_keyed(&self, home: Ipv4Addr, home_agent: Ipv4Addr) -> bool {
        let config = &self.config;
        config.mobile_keys.contains_key(&home) || config.home_keys.contains_key(&home_agent)
    }

    /// Returns the limit on visitors of one home agent.
    fn most_of_agent(&self, home_agent: Ipv4Addr) -> usize {
        let (listed, visitors) = (&self.config.home_agents, self.config.visitors);
        match listed.contains_key(&home_agent) {
            true => visitors - visitors / SHARE / listed.len() * (listed.len() - 1),
            false => (visitors / SHARE).max(MOST_AT_STATION),
        }
    }
}

fn is_in(networks: &[TrafficSelector], address: Ipv4Addr) -> bool {
    let mut networks = networks.iter();
    networks.any(|network| network.contains(address.into(), 0, None))
}
