//! Replies of home agents, and their effect on the list of visitors.
//!
//! Home agents are reached by routes. A reply from the visited link is never theirs, whatever its
//! source address.

use super::admission::Place;
use super::claims::Grant;
use super::{Entry, ForeignAgent, ForeignEvent, Visitor};
use crate::mobile_ip::{Arrival, Dropped};
use model::Instant;
use wire::ip_in_ip::Egress;
use wire::mobile_ip::{Between, Code, Reply, Request, UdpTunnelReply};

impl ForeignAgent {
    pub(super) fn reply(
        &mut self,
        arrival: &Arrival,
        octets: &[u8],
        now: Instant,
    ) -> Result<(), Dropped> {
        let (reply, extensions) = Reply::parse(octets).map_err(|_| Dropped::Malformed)?;
        let waiting = self.pending.find(reply.home, reply.identification);
        let waiting = waiting.ok_or(Dropped::Unsolicited)?;
        let request = &waiting.request;
        if *arrival.source.ip() != request.home_agent {
            return Err(Dropped::WrongSource);
        }
        self.pending.remove(request);
        let key = self.config.home_keys.get(&request.home_agent);
        let key = key.filter(|_| !is_without_proof(request, &reply));
        let proof = key.map(|key| key.verify(extensions, Between::ForeignHome));
        if proof == Some(None) {
            self.deny(&waiting, Code::ForeignHomeAuthentication, now);
            return Err(Dropped::NotAuthenticForeign);
        }
        let proved = proof.flatten().map(|proof| extensions.before(&proof));
        let udp = UdpTunnelReply::find(proved.unwrap_or(extensions));
        let Some(authorization) = extensions.only(Between::MobileHome) else {
            self.deny(&waiting, Code::ForeignPoorlyFormedReply, now);
            return Err(Dropped::Malformed);
        };
        let octets = octets[..authorization.end()].to_vec();
        if !reply.code.is_accepted() {
            self.counters.deny(reply.code);
            self.send(&waiting, octets);
            return Ok(());
        }
        let grant = Grant {
            waiting: self.claims.original(waiting),
            reply,
            udp,
            octets,
        };
        match grant.is_for_service() && self.is_disputed(&grant.waiting.request) {
            true => self.contest(grant, now),
            false => self.apply(grant, now),
        }
        Ok(())
    }

    /// Applies an accepted reply, and relays it to the mobile node.
    pub(super) fn apply(&mut self, grant: Grant, now: Instant) {
        self.claims.end(&grant);
        match self.update(&grant, now) {
            Ok(()) => {
                self.counters.accepted += 1;
                self.send(&grant.waiting, grant.octets);
            }
            Err(code) => self.deny(&grant.waiting, code, now),
        }
    }

    /// Updates the list of visitors from an accepted reply (section 3.7.3.2). The place may have
    /// been taken since the request was relayed. If the claim was disputed, it was tested.
    fn update(&mut self, grant: &Grant, now: Instant) -> Result<(), Code> {
        let (waiting, reply) = (&grant.waiting, &grant.reply);
        let request = &waiting.request;
        if reply.lifetime.is_none() {
            // A mobile node may also release another agent's care-of address through us.
            let is_here = [self.config.care_of, request.home].contains(&request.care_of);
            if is_here && !self.is_anothers(request) {
                self.leave(request.home);
            }
            return Ok(());
        }
        if request.is_deregistration() {
            // The reply grants a lifetime that was not requested.
            return Err(Code::ForeignPoorlyFormedReply);
        }
        if self.is_reserved(request.home) {
            return Err(Code::ForeignProhibited);
        }
        let place = self.place(waiting).ok_or(Code::ForeignResources)?;
        if let Place::Instead(other) = place {
            self.counters.drop(Dropped::GaveWay);
            self.leave(other);
        }
        self.displace(request);
        let known = self.visitors.get(&request.home).copied();
        // A copy of the granted request moves no visitor, whatever its source.
        let granted = known.filter(|entry| entry.registration == request.identification);
        let visitor = Visitor {
            home: request.home,
            home_agent: request.home_agent,
            interface: self.config.interface,
            station: granted.map_or(waiting.station, |entry| entry.visitor.station),
        };
        let lifetime = reply.lifetime.min(request.lifetime);
        let until = lifetime.min(self.config.lifetime).duration();
        let entry = Entry {
            visitor,
            since: known.map_or(now, |entry| entry.since),
            until: until.map(|lasting| now + lasting),
            registration: request.identification,
            gone: None,
        };
        let is_keyed = self.config.home_keys.contains_key(&visitor.home_agent);
        // An agent with a shared key was configured as one of ours, which passes marks on (RFC 6040
        // section 4.3).
        let egress = if is_keyed {
            Egress::PassesMarks
        } else {
            Egress::Unknown
        };
        let tunnel = self.tunnel_to(visitor.home_agent, grant.udp, now);
        self.tunnel.insert(visitor.home, tunnel, egress, now);
        self.visitors.insert(visitor.home, entry);
        self.events.push_back(match known {
            None => ForeignEvent::Came(visitor),
            Some(_) => ForeignEvent::Renewed(visitor),
        });
        Ok(())
    }
}

/// Returns true if a reply needs no authentication by the home agent, because its request had none
/// either: the reply confirms or denies a deregistration.
fn is_without_proof(request: &Request, reply: &Reply) -> bool {
    request.is_deregistration() && (reply.lifetime.is_none() || !reply.code.is_accepted())
}
