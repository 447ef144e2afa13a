//! Hand-over of a mobile node between two neighbouring foreign agents. The previous agent forwards
//! packets that still arrive for it to the new agent, so that none in transit are lost.
//!
//! The request at the new agent carries a note for the previous one. The note names the
//! registration there, and the key that mobile node and previous agent share authenticates it. The
//! new agent relays the note in a notice, authenticated with the key between the agents, before any
//! home agent has replied, because forwarding matters only until then. The previous agent accepts
//! one note per registration, forwards packets for some seconds, and confirms. The new agent then
//! delivers them to the sender of the request, since its neighbour has verified the note.

use super::newcomers::Told;
use super::{ForeignAgent, ForeignEvent, Gone, Visitor, Waiting};
use crate::mobile_ip::transmit::ROUTED;
use crate::mobile_ip::{Arrival, Dropped, Transmit};
use model::Instant;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use wire::mobile_ip::{Between, Extensions, Lifetime, Note, Notice, PORT, Step};

/// Longest time that packets are forwarded. All packets in transit have arrived by then, and after
/// a denied registration the mobile node is served here again.
const LONGEST: Duration = Duration::from_secs(5);

impl ForeignAgent {
    // At the new agent.

    /// Notifies a neighbour if a relayed request carries a note for it.
    pub(super) fn pass_note(
        &mut self,
        waiting: &Waiting,
        extensions: Extensions<'_>,
        now: Instant,
    ) -> Result<(), Dropped> {
        let request = &waiting.request;
        let Some(note) = Note::find(extensions).filter(|_| !request.is_deregistration()) else {
            return Ok(());
        };
        let (home, previous) = (request.home, note.previous);
        let key = self.config.neighbours.get(&previous);
        let key = key.ok_or(Dropped::StrangeNeighbour)?;
        if self.newcomers.knows(home, &note) {
            return Ok(());
        }
        if self.newcomers.make_room(waiting, self.config.pending) {
            self.counters.drop(Dropped::GaveWay);
        }
        if !self.newcomers.has_room(waiting, self.config.pending) {
            return Err(Dropped::TooOften);
        }
        let identification = request.identification;
        let notice = Notice {
            step: Step::Told,
            lifetime: Lifetime::NONE,
            home,
            identification,
        };
        let mut octets = notice.encode();
        note.append(&mut octets);
        key.sign(&mut octets, Between::ForeignHome);
        self.tell(previous, octets.clone());
        let visitor = Visitor {
            home,
            home_agent: request.home_agent,
            interface: self.config.interface,
            station: waiting.station,
        };
        let told = Told::new(visitor, &note, octets, now);
        self.newcomers.insert(identification, told);
        Ok(())
    }

    /// Handles the previous agent's answer.
    fn answered(&mut self, from: Ipv4Addr, notice: &Notice, now: Instant) -> Result<(), Dropped> {
        let home = notice.home;
        let told = self.newcomers.answered((home, notice.identification), from);
        let told = told.ok_or(Dropped::Unsolicited)?;
        let lasting = notice.lifetime.duration().unwrap_or(LONGEST);
        let visitors = self.visitors.get(&home);
        // Its packets would go to the mobile node of the other home agent.
        let is_anothers =
            visitors.is_some_and(|entry| entry.visitor.home_agent != told.visitor().home_agent);
        if notice.lifetime.is_none() || is_anothers {
            return Err(Dropped::NotSentOn);
        }
        let visitor = self.newcomers.follow(&told, now + lasting.min(LONGEST));
        self.tunnel.follow(home, Some(from));
        match self.visitors.get_mut(&home) {
            None => self.events.push_back(ForeignEvent::Followed(visitor)),
            // The mobile node has returned from that neighbour.
            Some(entry) if entry.gone.is_some_and(|gone| gone.to == from) => {
                entry.stay(&mut self.tunnel);
            }
            Some(_) => {}
        }
        Ok(())
    }

    // At the previous agent.

    /// Handles a notice from a neighbour.
    pub(super) fn notice(
        &mut self,
        arrival: &Arrival,
        octets: &[u8],
        now: Instant,
    ) -> Result<(), Dropped> {
        let (notice, extensions) = Notice::parse(octets).map_err(|_| Dropped::Malformed)?;
        let from = *arrival.source.ip();
        let key = self.config.neighbours.get(&from);
        let key = key.ok_or(Dropped::StrangeNeighbour)?;
        let proof = key.verify(extensions, Between::ForeignHome);
        proof.ok_or(Dropped::NotAuthenticForeign)?;
        match notice.step {
            Step::Answered => self.answered(from, &notice, now),
            Step::Told => {
                let judged = self.told(from, notice.home, extensions, now);
                let lifetime = judged.unwrap_or(Lifetime::NONE);
                let answer = Notice {
                    step: Step::Answered,
                    lifetime,
                    ..notice
                };
                let mut octets = answer.encode();
                if let Some(key) = self.config.neighbours.get(&from) {
                    key.sign(&mut octets, Between::ForeignHome);
                }
                self.tell(from, octets);
                judged.map(drop)
            }
        }
    }

    /// Checks a note. Returns the time for which packets are forwarded to its writer.
    fn told(
        &mut self,
        from: Ipv4Addr,
        home: Ipv4Addr,
        extensions: Extensions<'_>,
        now: Instant,
    ) -> Result<Lifetime, Dropped> {
        let note = Note::find(extensions).ok_or(Dropped::Malformed)?;
        let entry = self.visitors.get_mut(&home);
        let entry = entry.ok_or(Dropped::UnknownMobile)?;
        let key = self.config.mobile_keys.get(&home);
        let key = key.ok_or(Dropped::NoNoteKey)?;
        if note.previous != self.config.care_of || !key.has_written(&note, home, from) {
            return Err(Dropped::NotAuthenticMobile);
        }
        if note.registration != entry.registration {
            return Err(Dropped::OldNote);
        }
        match entry.gone {
            Some(gone) if gone.to != from => return Err(Dropped::OldNote),
            // Our answer was lost.
            Some(gone) => {
                let left = gone.until.map_or(Duration::ZERO, |until| until.since(now));
                return Ok(Lifetime::from_duration(left));
            }
            None => {}
        }
        let rest = entry.until.map_or(LONGEST, |until| until.since(now));
        let lifetime = Lifetime::from_duration(rest.min(LONGEST));
        let lasting = lifetime.duration().unwrap_or(LONGEST);
        entry.gone = Some(Gone {
            to: from,
            until: Some(now + lasting),
        });
        let visitor = entry.visitor;
        self.tunnel.send_after(home, Some(from));
        self.unfollow(home);
        self.events
            .push_back(ForeignEvent::Gone { visitor, to: from });
        Ok(lifetime)
    }

    // At both agents.

    /// Runs all actions that are due.
    pub(super) fn handle_handover(&mut self, now: Instant) {
        for (neighbour, octets) in self.newcomers.due(now) {
            self.tell(neighbour, octets);
        }
        for _ in 0..self.newcomers.give_up(now) {
            self.counters.drop(Dropped::NeighbourSilent);
        }
        while let Some(home) = self.newcomers.over(now) {
            self.unfollow(home);
        }
        for entry in self.visitors.values_mut() {
            let until = entry.gone.and_then(|gone| gone.until);
            if until.is_some_and(|until| until <= now) {
                entry.stay(&mut self.tunnel);
            }
        }
    }

    /// Returns the time of the next call to [`Self::handle_handover`].
    pub(super) fn next_of_handover(&self) -> Option<Instant> {
        let gone = self.visitors.values().filter_map(|entry| entry.gone?.until);
        gone.chain(self.newcomers.next()).min()
    }

    /// Withdraws the permission to forward packets for a mobile node.
    pub(super) fn unfollow(&mut self, home: Ipv4Addr) {
        if let Some(visitor) = self.newcomers.unfollow(home) {
            self.tunnel.follow(home, None);
            if !self.visitors.contains_key(&home) {
                self.events.push_back(ForeignEvent::Left(visitor));
            }
        }
    }

    fn tell(&mut self, neighbour: Ipv4Addr, octets: Vec<u8>) {
        self.transmits.push_back(Transmit::Udp {
            interface: None,
            station: None,
            source: SocketAddrV4::new(self.config.care_of, PORT),
            destination: SocketAddrV4::new(neighbour, PORT),
            ttl: ROUTED,
            octets,
        });
    }
}
