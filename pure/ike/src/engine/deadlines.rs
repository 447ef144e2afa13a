//! Deadlines of all SAs, in order. Finding the first costs the same with ten thousand SAs as with
//! one.

use model::{Deadline, IkeSaId, Instant};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct Deadlines {
    order: BTreeSet<(Deadline, IkeSaId)>,
    of: BTreeMap<IkeSaId, Deadline>,
}

impl Deadlines {
    /// Sets or clears the deadline of an SA.
    pub(crate) fn set(&mut self, id: IkeSaId, deadline: Option<Deadline>) {
        if self.of.get(&id).copied() == deadline {
            return;
        }
        let old = match deadline {
            Some(deadline) => self.of.insert(id, deadline),
            None => self.of.remove(&id),
        };
        if let Some(old) = old {
            self.order.remove(&(old, id));
        }
        if let Some(deadline) = deadline {
            self.order.insert((deadline, id));
        }
    }

    pub(crate) fn next(&self) -> Option<Deadline> {
        self.order.first().map(|(deadline, _)| *deadline)
    }

    /// Returns the SAs whose deadlines have expired.
    pub(crate) fn due(&self, now: Instant) -> impl Iterator<Item = IkeSaId> {
        let order = self.order.iter();
        let due = order.take_while(move |(deadline, _)| deadline.at <= now);
        due.map(|(_, id)| *id)
    }

    /// Removes and returns the first SA whose deadline has expired.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<IkeSaId> {
        let (deadline, id) = *self.order.first()?;
        (deadline.at <= now).then(|| {
            self.set(id, None);
            id
        })
    }
}
