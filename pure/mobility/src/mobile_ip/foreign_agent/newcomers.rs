//! Mobile nodes that come from a neighbour. The neighbour is notified until it answers, and then
//! forwards the packets that it still receives for them.
//!
//! The sender of a request is not authenticated here. A notice therefore never displaces another
//! request for the same mobile node, or a neighbour's confirmation.

use super::Visitor;
use crate::mobile_ip::Station;
use crate::mobile_ip::pending::{Waiting, share_of_station};
use model::{Instant, most_crowded};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use wire::mobile_ip::Note;

/// Delay before a notice is repeated; it doubles each time. It is short because only packets in
/// transit can be forwarded.
const FIRST: Duration = Duration::from_millis(200);
/// Time after which a neighbour is considered silent.
const PATIENCE: Duration = Duration::from_secs(3);

/// A notice that the neighbour has not answered.
#[derive(Clone, Debug)]
pub(super) struct Told {
    visitor: Visitor,
    /// The previous care-of address, the identification of the registration there, and the note's
    /// authenticator.
    note: (Ipv4Addr, u64, Vec<u8>),
    notice: Vec<u8>,
    /// The time of the next repetition, and its delay.
    next: (Instant, Duration),
    until: Instant,
}

/// A mobile node whose packets a neighbour forwards.
#[derive(Clone, Copy, Debug)]
struct Followed {
    visitor: Visitor,
    previous: Ipv4Addr,
    registration: u64,
    until: Instant,
}

/// All mobile nodes that come from a neighbour.
#[derive(Debug, Default)]
pub(super) struct Newcomers {
    /// Unanswered notices, by home address and identification of the request.
    told: BTreeMap<(Ipv4Addr, u64), Told>,
    followed: BTreeMap<Ipv4Addr, Followed>,
}

impl Told {
    pub(super) fn new(visitor: Visitor, note: &Note<'_>, notice: Vec<u8>, now: Instant) -> Self {
        Self {
            visitor,
            note: (
                note.previous,
                note.registration,
                note.authenticator.to_vec(),
            ),
            notice,
            next: (now + FIRST, FIRST),
            until: now + PATIENCE,
        }
    }

    pub(super) const fn visitor(&self) -> Visitor {
        self.visitor
    }
}

impl Newcomers {
    /// Returns true if the neighbour has been notified of this note, or is being notified.
    pub(super) fn knows(&self, home: Ipv4Addr, note: &Note<'_>) -> bool {
        let followed = self.followed.get(&home);
        let is_followed = followed.is_some_and(|one| {
            (one.previous, one.registration) == (note.previous, note.registration)
        });
        let mut told = self.told.range((home, 0)..=(home, u64::MAX));
        is_followed
            || told.any(|(_, told)| {
                let (previous, registration, authenticator) = &told.note;
                (*previous, *registration) == (note.previous, note.registration)
                    && authenticator == note.authenticator
            })
    }

    /// Returns true if there is room for another notice: in total, for this station, and with this
    /// identification.
    pub(super) fn has_room(&self, newcomer: &Waiting, most: usize) -> bool {
        let request = &newcomer.request;
        self.of_station(newcomer.station) < share_of_station(most)
            && self.told.len() < most
            && !(self.told).contains_key(&(request.home, request.identification))
    }

    /// If there is no room in total, removes the oldest notice for the station with the most, if it
    /// has more than the newcomer's. Returns true if one gave way.
    pub(super) fn make_room(&mut self, newcomer: &Waiting, most: usize) -> bool {
        if self.told.len() < most {
            return false;
        }
        let own = self.of_station(newcomer.station);
        let mut oldest: Vec<_> = self.told.iter().collect();
        oldest.sort_by_key(|(_, told)| told.until);
        let members = oldest
            .iter()
            .map(|(key, told)| (told.visitor.station, **key));
        let gives_way = most_crowded(members).filter(|(_, most)| *most > own);
        gives_way.is_some_and(|(key, _)| self.told.remove(&key).is_some())
    }

    fn of_station(&self, station: Option<Station>) -> usize {
        let told = self.told.values();
        told.filter(|told| told.visitor.station == station).count()
    }

    /// Adds a notice that was sent.
    pub(super) fn insert(&mut self, identification: u64, told: Told) {
        self.told.insert((told.visitor.home, identification), told);
    }

    /// Removes and returns the notice that a neighbour answers, if it was sent there.
    pub(super) fn answered(
        &mut self,
        (home, identification): (Ipv4Addr, u64),
        previous: Ipv4Addr,
    ) -> Option<Told> {
        let key = (home, identification);
        let told = self.told.remove(&key)?;
        if told.note.0 != previous {
            self.told.insert(key, told);
            return None;
        }
        Some(told)
    }

    /// Marks a mobile node as followed by its neighbour until a time.
    pub(super) fn follow(&mut self, told: &Told, until: Instant) -> Visitor {
        let followed = Followed {
            visitor: told.visitor,
            previous: told.note.0,
            registration: told.note.1,
            until,
        };
        self.followed.insert(told.visitor.home, followed);
        told.visitor
    }

    /// Returns the mobile nodes whose packets a neighbour forwards.
    pub(super) fn homes(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.followed.keys().copied()
    }

    /// Returns a mobile node, if a neighbour forwards its packets.
    pub(super) fn followed(&self, home: Ipv4Addr) -> Option<Visitor> {
        self.followed.get(&home).map(|one| one.visitor)
    }

    /// Ends the forwarding for a mobile node.
    pub(super) fn unfollow(&mut self, home: Ipv4Addr) -> Option<Visitor> {
        self.followed.remove(&home).map(|one| one.visitor)
    }

    /// Returns the notices to repeat, with their destinations.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(Ipv4Addr, Vec<u8>)> {
        let due = self.told.values_mut().filter(|told| told.next.0 <= now);
        let again = due.map(|told| {
            let after = told.next.1 * 2;
            told.next = (now + after, after);
            (told.note.0, told.notice.clone())
        });
        again.collect()
    }

    /// Removes notices that a neighbour has not answered in time, and returns their number.
    pub(super) fn give_up(&mut self, now: Instant) -> usize {
        let before = self.told.len();
        self.told.retain(|_, told| told.until > now);
        before - self.told.len()
    }

    /// Returns a mobile node whose forwarding has ended.
    pub(super) fn over(&self, now: Instant) -> Option<Ipv4Addr> {
        let over = self.followed.values().find(|one| one.until <= now);
        over.map(|one| one.visitor.home)
    }

    pub(super) fn next(&self) -> Option<Instant> {
        let told = self.told.values().map(|told| told.next.0.min(told.until));
        let followed = self.followed.values().map(|one| one.until);
        told.chain(followed).min()
    }
}
