//! Those who come from a neighbour: it is told until it answers, and then sends after them what it gets.

use super::Visitor;
use model::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

/// After so long it is told again, and then after twice as long each time: what it could send after somebody
/// is what is under way.
const FIRST: Duration = Duration::from_millis(200);
/// So long it is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Somebody who comes.
#[derive(Clone, Debug)]
pub(super) struct Newcomer {
    pub(super) visitor: Visitor,
    /// Whence.
    pub(super) previous: Ipv4Addr,
    /// By which request it was registered there.
    pub(super) registration: u64,
    /// By which it asks here.
    pub(super) identification: u64,
    /// What its neighbour is told.
    pub(super) notice: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Underway {
    newcomer: Newcomer,
    stage: Stage,
    until: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The neighbour is told, and next then, after so long.
    Telling(Instant, Duration),
    /// It has answered.
    Followed,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Newcomers(BTreeMap<Ipv4Addr, Underway>);

impl Newcomers {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the neighbour hears already, or has heard, what a note says.
    pub(super) fn knows(&self, home: Ipv4Addr, previous: Ipv4Addr, registration: u64) -> bool {
        let known = self.0.get(&home).map(|one| &one.newcomer);
        known.is_some_and(|known| (known.previous, known.registration) == (previous, registration))
    }

    /// The neighbour has been told.
    pub(super) fn insert(&mut self, newcomer: Newcomer, now: Instant) {
        let underway = Underway {
            stage: Stage::Telling(now + FIRST, FIRST),
            until: now + PATIENCE,
            newcomer,
        };
        self.0.insert(underway.newcomer.visitor.home, underway);
    }

    /// The one of whom an agent's first answer is.
    pub(super) fn asked_for(
        &self,
        home: Ipv4Addr,
        previous: Ipv4Addr,
        identification: u64,
    ) -> Option<Visitor> {
        let one = self.0.get(&home)?;
        let is_it = one.newcomer.previous == previous
            && one.newcomer.identification == identification
            && !one.is_followed();
        is_it.then_some(one.newcomer.visitor)
    }

    /// It is sent after.
    pub(super) fn follow(&mut self, home: Ipv4Addr, until: Instant) {
        if let Some(one) = self.0.get_mut(&home) {
            one.stage = Stage::Followed;
            one.until = until;
        }
    }

    pub(super) fn remove(&mut self, home: Ipv4Addr) {
        self.0.remove(&home);
    }

    /// The same, and says who it was if it was sent after.
    pub(super) fn take_followed(&mut self, home: Ipv4Addr) -> Option<Visitor> {
        let one = self.0.remove(&home)?;
        one.is_followed().then_some(one.newcomer.visitor)
    }

    /// What to tell again, and to whom.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(Ipv4Addr, Vec<u8>)> {
        let mut due = Vec::new();
        for one in self.0.values_mut() {
            if let Stage::Telling(next, after) = &mut one.stage
                && *next <= now
            {
                *after *= 2;
                *next = now + *after;
                due.push((one.newcomer.previous, one.newcomer.notice.clone()));
            }
        }
        due
    }

    /// One whose time is over, and whether it was sent after.
    pub(super) fn pop_over(&mut self, now: Instant) -> Option<(Visitor, bool)> {
        let over = self.0.values().find(|one| one.until <= now)?;
        let home = over.newcomer.visitor.home;
        let one = self.0.remove(&home)?;
        Some((one.newcomer.visitor, one.is_followed()))
    }

    pub(super) fn next(&self) -> Option<Instant> {
        let next = self.0.values().map(|one| match one.stage {
            Stage::Telling(next, _) => next.min(one.until),
            Stage::Followed => one.until,
        });
        next.min()
    }
}

impl Underway {
    const fn is_followed(&self) -> bool {
        matches!(self.stage, Stage::Followed)
    }
}
