//! Requests of a mobile node (RFC 5944 section 3.6.1): construction, retransmission and sending.

use super::{Attachment, Held, MobileEvent, MobileNode, Stage};
use crate::mobile_ip::agents::DiscoveredAgent;
use crate::mobile_ip::attempt::{Attempt, SPACING};
use crate::mobile_ip::transmit::NEIGHBOUR;
use crate::mobile_ip::{Association, Station, Transmit};
use model::Instant;
use std::net::SocketAddrV4;
use wire::mobile_ip::{Between, Enclosure, Lifetime, PORT, Request, RequestFlags};

/// The purpose of a request. It never depends on a number from another node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// To be registered for at most this lifetime.
    ToStay(Lifetime),
    /// To end all registrations.
    ToLeave,
}

impl MobileNode {
    pub(super) fn retry(&mut self, now: Instant) {
        let Some(mut attempt) = self.attempt.take_if(|attempt| attempt.next <= now) else {
            return;
        };
        let is_other = |heard: &DiscoveredAgent| heard.at != attempt.at;
        let there_are_others = self.usable(now).iter().any(is_other);
        if attempt.is_hopeless(there_are_others) {
            self.events.push_back(MobileEvent::Silent(attempt.at));
            self.agents.strike(attempt.at, now);
            self.not_before = attempt.sent + SPACING;
            if self.stage == Stage::Leaving {
                self.end(false);
            }
            return;
        }
        if self.identifications.renews() {
            attempt.request.identification = self.identifications.next(&mut self.rng, now);
            let enclosed = &attempt.enclosed;
            (attempt.octets, attempt.noted) =
                self.write(&attempt.request, attempt.at, enclosed, now);
        }
        attempt.repeat(now);
        attempt.station = self.station(attempt.at, attempt.unanswered());
        self.send(attempt.at, attempt.station, attempt.octets.clone());
        self.attempt = Some(attempt);
    }

    pub(super) fn begin(&mut self, at: Attachment, purpose: Purpose, now: Instant) {
        let is_beside = self.held.iter().any(|held| held.at != at);
        let mut flags = RequestFlags::REVERSE_TUNNEL;
        // "In the special case in which a mobile node wishes to deregister all care-of addresses".
        let (lifetime, care_of, ends) = match purpose {
            Purpose::ToStay(lifetime) => (lifetime, at.care_of, false),
            Purpose::ToLeave => (Lifetime::NONE, self.config.home, true),
        };
        if is_beside && !self.is_single && !self.replaces && !ends {
            flags = flags | RequestFlags::SIMULTANEOUS;
        }
        let request = Request {
            flags,
            lifetime,
            home: self.config.home,
            home_agent: self.config.home_agent,
            care_of,
            identification: self.identifications.next(&mut self.rng, now),
        };
        let written = self.write(&request, at, &[], now);
        let station = self.station(at, 0);
        self.send(at, station, written.0.clone());
        let stays = flags.has(RequestFlags::SIMULTANEOUS);
        self.asked = (!ends && !stays && !self.is_held(at)).then_some(at);
        self.attempt = Some(Attempt::new(at, station, request, written, now));
    }

    /// Returns the octets of a request, and the agent that its note is for.
    pub(super) fn write(
        &self,
        request: &Request,
        at: Attachment,
        enclosed: &[Vec<u8>],
        now: Instant,
    ) -> (Vec<u8>, Option<Attachment>) {
        let mut octets = request.encode();
        self.config.key.sign(&mut octets, Between::MobileHome);
        for enclosed in enclosed {
            Enclosure(enclosed).append(&mut octets);
        }
        let previous = self.previous(request, at, now);
        if let Some((previous, key)) = previous {
            let of = (previous.at.care_of, previous.registration);
            key.append_note(&mut octets, of, (request.home, at.care_of));
        }
        if let Some(key) = self.config.agent_keys.get(&at.agent) {
            key.sign(&mut octets, Between::MobileForeign);
        }
        (octets, previous.map(|(previous, _)| previous.at))
    }

    /// Returns the registration through another agent that this request ends, or that ended before,
    /// if there is a key shared with that agent.
    fn previous(
        &self,
        request: &Request,
        at: Attachment,
        now: Instant,
    ) -> Option<(Held, &Association)> {
        if request.is_deregistration() {
            return None;
        }
        let stay = request.flags.has(RequestFlags::SIMULTANEOUS);
        let mut held = self.held.iter().filter(|held| !stay && held.at != at);
        let is_over = |left: &Held| left.until.is_some_and(|until| until <= now);
        let left = self
            .left
            .filter(|left| left.at != at && !self.is_held(left.at) && !is_over(left));
        let previous = held.next().copied().or(left)?;
        let key = self.config.agent_keys.get(&previous.at.agent)?;
        Some((previous, key))
    }

    fn send(&mut self, at: Attachment, station: Option<Station>, octets: Vec<u8>) {
        self.transmits.push_back(Transmit::Udp {
            interface: Some(at.interface),
            station,
            source: SocketAddrV4::new(self.config.home, PORT),
            destination: SocketAddrV4::new(at.agent, PORT),
            ttl: NEIGHBOUR,
            octets,
        });
    }
}
