//! Replies to a mobile node (RFC 5944 section 3.6.2): their authentication and their effects.

use super::{Attachment, Held, MOST_RESYNCHRONISATIONS, MobileEvent, MobileNode, Stage};
use crate::mobile_ip::agents::Origin;
use crate::mobile_ip::attempt::SPACING;
use crate::mobile_ip::{Dropped, Station};
use model::Instant;
use wire::mobile_ip::{Between, Code, Extensions, Party, Reply, Request, RequestFlags};

impl MobileNode {
    pub(super) fn reply(
        &mut self,
        origin: Origin,
        octets: &[u8],
        now: Instant,
    ) -> Result<(), Dropped> {
        let (reply, extensions) = Reply::parse(octets).map_err(|_| Dropped::Malformed)?;
        let attempt = self.attempt.as_ref().ok_or(Dropped::Unsolicited)?;
        let (at, request, noted) = (attempt.at, attempt.request, attempt.noted);
        let is_agents = (at.interface, at.agent) == (origin.interface, origin.agent);
        if !is_agents || attempt.station != Some(origin.station) {
            return Err(Dropped::WrongSource);
        }
        // Of the "most recent Registration Request" (section 3.6.2.1).
        let is_answer = reply.identification as u32 == request.identification as u32;
        if reply.home != request.home || !is_answer {
            return Err(Dropped::Unsolicited);
        }
        self.authenticate(at, &reply, extensions)?;
        let sent = attempt.sent;
        self.attempt = None;
        self.not_before = sent + SPACING;
        if reply.code.party() == Party::HomeAgent {
            let is_refused = reply.code == Code::HomeIdentification;
            self.identifications
                .learn(reply.identification, is_refused, now);
        }
        match reply.code.is_accepted() {
            true => {
                self.accepted(at, origin.station, &request, &reply, (sent, now));
                self.left.take_if(|left| Some(left.at) == noted);
            }
            false => self.denied(at, &request, &reply, now),
        }
        Ok(())
    }

    /// Verifies the authentication extensions of a reply (section 3.6.2.1).
    fn authenticate(
        &self,
        at: Attachment,
        reply: &Reply,
        extensions: Extensions<'_>,
    ) -> Result<(), Dropped> {
        if let Some(key) = self.config.agent_keys.get(&at.agent) {
            let proof = key.verify(extensions, Between::MobileForeign);
            proof.ok_or(Dropped::NotAuthenticForeign)?;
        }
        if reply.code.party() == Party::HomeAgent {
            let proof = self.config.key.verify(extensions, Between::MobileHome);
            proof.ok_or(Dropped::NotAuthenticMobile)?;
        }
        Ok(())
    }

    /// "Equivalent to the mobile node starting a timer for the granted Lifetime at the time it sent
    /// the Registration Request" (section 3.6.2.2).
    fn accepted(
        &mut self,
        at: Attachment,
        station: Station,
        request: &Request,
        reply: &Reply,
        (sent, now): (Instant, Instant),
    ) {
        self.resynchronisations = 0;
        let granted = reply.lifetime.min(request.lifetime);
        if self.stage == Stage::Serving && granted.is_none() {
            self.unbound(at, request, now);
            return;
        }
        self.counters.accepted += 1;
        if self.stage == Stage::Leaving {
            self.end(true);
            return;
        }
        self.agents.praise(at);
        self.search.succeed(at.interface);
        let lasting = granted.duration();
        let is_alone = reply.code == Code::AcceptedAlone;
        self.is_single |= is_alone && self.config.simultaneous;
        let stays = request.flags.has(RequestFlags::SIMULTANEOUS) && !is_alone;
        self.replaces = false;
        self.release(|held| held.at != at && !stays);
        let before = self.held.iter().find(|held| held.at == at).copied();
        self.held.retain(|held| held.at != at);
        self.held.push(Held {
            at,
            station,
            since: before.map_or(now, |before| before.since),
            until: lasting.map(|lasting| sent + lasting),
            renew: lasting.map(|lasting| sent + lasting * 3 / 4),
            registration: request.identification,
        });
        if before.is_none_or(|before| before.station != station) {
            self.events.push_back(MobileEvent::Found { at, station });
        }
        self.events.push_back(match before {
            None => MobileEvent::Registered(at),
            Some(_) => MobileEvent::Renewed(at),
        });
    }

    /// Handles a grant with lifetime zero, which was not requested: "A value of zero indicates that
    /// the mobile node has been deregistered" (section 3.4). It counts as a denial. The home
    /// agent's remaining bindings are then unknown.
    fn unbound(&mut self, at: Attachment, request: &Request, now: Instant) {
        let code = Code::HomeUnspecified;
        self.counters.deny(code);
        self.events.push_back(MobileEvent::Denied { at, code });
        let stays = request.flags.has(RequestFlags::SIMULTANEOUS);
        self.release(|held| held.at == at || !stays);
        for held in &mut self.held {
            held.renew = Some(now);
        }
        self.replaces = true;
        self.agents.strike(at, now);
    }

    fn denied(&mut self, at: Attachment, request: &Request, reply: &Reply, now: Instant) {
        let code = reply.code;
        self.counters.deny(code);
        self.events.push_back(MobileEvent::Denied { at, code });
        self.resynchronisations += 1;
        let can_be_mended = match code {
            Code::HomeIdentification => true,
            Code::ForeignLifetime => {
                self.agents.limit(at, reply.lifetime) && reply.lifetime < request.lifetime
            }
            Code::HomeTooManyBindings => {
                // The home agent's bindings differ from ours.
                self.replaces = true;
                request.flags.has(RequestFlags::SIMULTANEOUS)
            }
            _ => false,
        };
        if can_be_mended && self.resynchronisations <= MOST_RESYNCHRONISATIONS {
            return;
        }
        self.resynchronisations = 0;
        self.agents.strike(at, now);
        if self.stage == Stage::Leaving {
            self.end(false);
        }
    }
}
