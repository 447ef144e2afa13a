//! Those who come from a neighbour: it is told until it answers, and then sends after them what it gets.
//!
//! Who asks here need not be who it says, so one that is told of takes nobody's place: neither that of another request
//! for the same mobile node, nor of what a neighbour has vouched for.

use super::Visitor;
use crate::mobile_ip::pending::{Waiting, share_of_station};
use model::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use wire::mobile_ip::Note;

/// After so long it is told again, and then after twice as long each time: what it could send after somebody
/// is what is under way.
const FIRST: Duration = Duration::from_millis(200);
/// So long it is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// A neighbour that has been told, and has not answered.
#[derive(Clone, Debug)]
pub(super) struct Told {
    visitor: Visitor,
    /// Whence it comes, by which request it was registered there, and what proves it there.
    note: (Ipv4Addr, u64, Vec<u8>),
    notice: Vec<u8>,
    /// When to tell it again, and how long that is after the last time.
    next: (Instant, Duration),
    until: Instant,
}

/// One after whom a neighbour sends.
#[derive(Clone, Copy, Debug)]
struct Followed {
    visitor: Visitor,
    previous: Ipv4Addr,
    registration: u64,
    until: Instant,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Newcomers {
    /// By the mobile node and the identification of its request here.
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
}

impl Newcomers {
    /// Whether the neighbour hears already, or has heard, what a note says.
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

    /// Whether a neighbour can be told of another one, with that identification.
    pub(super) fn has_room(&self, newcomer: &Waiting, most: usize) -> bool {
        let request = &newcomer.request;
        let told = self.told.values();
        let of_station = told.filter(|told| told.visitor.station == newcomer.station);
        of_station.count() < share_of_station(most)
            && self.told.len() < most
            && !(self.told).contains_key(&(request.home, request.identification))
    }

    /// The neighbour has been told.
    pub(super) fn insert(&mut self, identification: u64, told: Told) {
        self.told.insert((told.visitor.home, identification), told);
    }

    /// A neighbour answers: who comes from there, if that was asked.
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

    /// It is sent after until then.
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

    /// Those after whom a neighbour sends.
    pub(super) fn homes(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.followed.keys().copied()
    }

    /// Nobody sends after it any more.
    pub(super) fn unfollow(&mut self, home: Ipv4Addr) -> Option<Visitor> {
        self.followed.remove(&home).map(|one| one.visitor)
    }

    /// What to tell again, and to whom.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(Ipv4Addr, Vec<u8>)> {
        let due = self.told.values_mut().filter(|told| told.next.0 <= now);
        let again = due.map(|told| {
            let after = told.next.1 * 2;
            told.next = (now + after, after);
            (told.note.0, told.notice.clone())
        });
        again.collect()
    }

    /// Forgets neighbours that did not answer, and says how many there were.
    pub(super) fn give_up(&mut self, now: Instant) -> usize {
        let before = self.told.len();
        self.told.retain(|_, told| told.until > now);
        before - self.told.len()
    }

    /// One that has been sent after for long enough.
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
