//! The tickets by value that are void, in memory.

use crate::{Handle, Kept, Strategy};
use crypto::UnixTime;
use model::Identity;
use std::collections::{BTreeMap, BTreeSet};

/// Tickets that were used or ended, until they would have ended by themselves, and the times from
/// which the sessions of an identity or of everybody are revoked.
///
/// Each handle takes room. Without room, all sessions are revoked, and no handle is needed any
/// more: a session whose last full authentication is not later than that is void.
///
/// The clock may go back. Of two revocations, the later time counts, and a ticket whose mark was
/// forgotten while the clock was ahead is not good again.
pub(crate) struct Voided {
    handles: BTreeMap<Handle, UnixTime>,
    ends: BTreeSet<(UnixTime, Handle)>,
    most: usize,
    everybody: Option<UnixTime>,
    identities: BTreeMap<Identity, UnixTime>,
    /// Latest end of the tickets whose marks are forgotten.
    forgotten: UnixTime,
}

impl Voided {
    pub(crate) const fn new(most: usize) -> Self {
        Self {
            handles: BTreeMap::new(),
            ends: BTreeSet::new(),
            most,
            everybody: None,
            identities: BTreeMap::new(),
            forgotten: UnixTime(0),
        }
    }

    /// Returns true if a ticket is good for nothing.
    pub(crate) fn has(&self, kept: &Kept, now: UnixTime) -> bool {
        let entry = &kept.entry;
        let own = self.identities.get(&entry.identity);
        let mut revoked = self.everybody.into_iter().chain(own.copied());
        let since = entry.usage.since;
        entry.ends <= now.max(self.forgotten)
            || self.handles.contains_key(&kept.handle)
            || revoked.any(|revoked| since <= revoked)
    }

    /// Voids a ticket. Returns false if that took those of everybody.
    pub(crate) fn add(&mut self, handle: Handle, ends: UnixTime, now: UnixTime) -> bool {
        while let Some((end, ended)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.ends.pop_first();
            self.handles.remove(&ended);
            self.forgotten = self.forgotten.max(end);
        }
        let known = self.handles.get(&handle).copied();
        if known.is_none() && self.handles.len() >= self.most {
            self.revoke(None, now);
            return false;
        }
        if known.is_none_or(|known| known < ends) {
            if let Some(known) = self.handles.insert(handle, ends) {
                self.ends.remove(&(known, handle));
            }
            self.ends.insert((ends, handle));
        }
        true
    }

    pub(crate) fn revoke(&mut self, whom: Option<&Identity>, now: UnixTime) {
        let Some(whom) = whom else {
            let earlier = self.identities.values().copied().chain(self.everybody);
            *self = Self {
                everybody: earlier.chain([now]).max(),
                forgotten: self.forgotten,
                ..Self::new(self.most)
            };
            return;
        };
        let forgotten = &mut self.forgotten;
        self.identities.retain(|_, revoked| {
            let end = Strategy::latest_end(*revoked);
            let stays = now <= end;
            if !stays {
                *forgotten = end.max(*forgotten);
            }
            stays
        });
        let revoked = self.identities.entry(whom.clone()).or_insert(now);
        *revoked = now.max(*revoked);
    }
}
