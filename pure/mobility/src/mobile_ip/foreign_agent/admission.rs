//! Which requests are passed on.

use super::{ForeignAgent, Waiting};
use crate::mobile_ip::is_host;
use crate::mobile_ip::transmit::NEIGHBOUR;
use std::net::Ipv4Addr;
use wire::mobile_ip::{Between, Code, Extensions, Request, RequestFlags, kind};

impl ForeignAgent {
    /// The checks of section 3.7.2.1 and of RFC 3024 section 4.2.1. Gives where that ends which the home agent
    /// is to see.
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
        // "In all other circumstances, the IP source address MUST be the mobile node's home address."
        if !is_host(request.home) || *waiting.mobile.ip() != request.home {
            return Err(Code::ForeignPoorlyFormed);
        }
        self.check_delivery(request, extensions, ttl)?;
        self.check_agents(request)?;
        self.check_home(request)?;
        self.check_room(request)?;
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
        let is_allowed = config.home_agents.is_empty() || config.home_agents.contains(&agent);
        let known = self.visitors.get(&request.home);
        if !is_allowed || known.is_some_and(|entry| entry.visitor.home_agent != agent) {
            return Err(Code::ForeignProhibited);
        }
        if !request.is_deregistration() && request.care_of != config.care_of {
            return Err(Code::ForeignCareOf);
        }
        Ok(())
    }

    /// The host's packets go where visitors are, by their home addresses: so nobody is at home where an agent is, lest
    /// its packets go to whoever says so.
    fn check_home(&self, request: &Request) -> Result<(), Code> {
        let (home, config) = (request.home, &self.config);
        let is_an_agents = config.home_agents.contains(&home)
            || config.home_keys.contains_key(&home)
            || config.neighbours.contains_key(&home);
        // Of home agents that are asked, whom anybody can name, it is seen to when one of them has answered.
        match self.is_ours(home) || is_an_agents || self.takes_an_agents_place(request) {
            true => Err(Code::ForeignProhibited),
            false => Ok(()),
        }
    }

    /// Whether an address is the host's own.
    pub(super) fn is_ours(&self, address: Ipv4Addr) -> bool {
        let told = [self.config.address, self.config.care_of];
        told.contains(&address) || self.own.contains(&address)
    }

    /// Whether somebody would be at home where a home agent is whose tunnels end here.
    pub(super) fn takes_an_agents_place(&self, request: &Request) -> bool {
        request.home == request.home_agent
            || self.visitors.contains_key(&request.home_agent)
            || self.serves_somebody_of(request.home)
    }

    fn check_room(&mut self, request: &Request) -> Result<(), Code> {
        if request.lifetime > self.config.lifetime {
            return Err(Code::ForeignLifetime);
        }
        let visitors = &self.visitors;
        let is_known = visitors.contains_key(&request.home) || request.is_deregistration();
        let has_room = is_known || visitors.len() < self.config.visitors;
        let is_served = |home| visitors.contains_key(&home);
        match has_room && self.pending.make_room(request, is_served) {
            true => Ok(()),
            false => Err(Code::ForeignResources),
        }
    }
}
