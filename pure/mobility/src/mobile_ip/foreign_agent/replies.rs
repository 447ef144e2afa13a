//! What home agents answer, and what the list of visitors is by it.
//!
//! Home agents are where routes lead: what comes on the link of visitors is no answer of theirs, whatever its source
//! says.

use super::{Entry, ForeignAgent, ForeignEvent, Visitor};
use crate::mobile_ip::pending::Waiting;
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
        if !reply.code.is_accepted() {
            self.counters.deny(reply.code);
        } else if let Err(code) = self.update(&waiting, (&reply, udp), now) {
            self.deny(&waiting, code, now);
            return Ok(());
        } else {
            self.counters.accepted += 1;
        }
        self.send(&waiting, octets[..authorization.end()].to_vec());
        Ok(())
    }

    /// Brings the list of visitors to what an accepted reply says (section 3.7.3.2). While it was on its way,
    /// its place may have been taken.
    fn update(
        &mut self,
        waiting: &Waiting,
        (reply, udp): (&Reply, Option<UdpTunnelReply>),
        now: Instant,
    ) -> Result<(), Code> {
        let request = &waiting.request;
        if reply.lifetime.is_none() {
            // Another agent's care-of address may be given up through us.
            if [self.config.care_of, request.home].contains(&request.care_of) {
                self.leave(request.home);
            }
            return Ok(());
        }
        if request.is_deregistration() {
            // It grants what nobody has asked for.
            return Err(Code::ForeignPoorlyFormedReply);
        }
        let known = self.visitors.get(&request.home).copied();
        let is_anothers = |entry: Entry| entry.visitor.home_agent != request.home_agent;
        let is_reserved = self.is_reserved(request.home);
        if is_reserved || known.is_some_and(is_anothers) || self.takes_an_agents_place(request) {
            return Err(Code::ForeignProhibited);
        }
        if !self.has_place(waiting) {
            return Err(Code::ForeignResources);
        }
        // A copy of the request that was granted moves nobody, wherever it comes from.
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
            until: until.map(|lasting| now + lasting),
            registration: request.identification,
            gone: None,
        };
        let is_keyed = self.config.home_keys.contains_key(&visitor.home_agent);
        // One that shares a key was configured as one of ours, which passes marks on (RFC 6040 section 4.3).
        let egress = if is_keyed {
            Egress::PassesMarks
        } else {
            Egress::Unknown
        };
        let tunnel = self.tunnel_to(visitor.home_agent, udp, now);
        self.tunnel.insert(visitor.home, tunnel, egress, now);
        self.visitors.insert(visitor.home, entry);
        self.events.push_back(match known {
            None => ForeignEvent::Came(visitor),
            Some(_) => ForeignEvent::Renewed(visitor),
        });
        Ok(())
    }
}

/// Whether an answer needs none of the home agent's proof for us, as the request had none of ours: by it somebody
/// leaves, as was asked, or is denied that.
fn is_without_proof(request: &Request, reply: &Reply) -> bool {
    request.is_deregistration() && (reply.lifetime.is_none() || !reply.code.is_accepted())
}
