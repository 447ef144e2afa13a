//! Hand-over by clones of an IKE SA (`extension/clone.rs`).

use super::Engine;
use crate::misuse::CannotMove;
use crate::sa::{Sa, established};
use crate::session::Session;
use crate::task::{clone, leave};
use model::{IkeSaId, Instant, Path};

/// Commands.
impl Engine {
    /// Returns true if an IKE SA can be handed over: both ends allow clones, and the path is ours.
    pub fn can_hand_over(&self, sa: IkeSaId) -> bool {
        let up = self.up(sa);
        up.is_some_and(|up| clone::is_possible(up).is_ok())
    }

    /// Moves an IKE SA with all child SAs to another path without interruption, by means of a
    /// clone. Ends in [`Event::IkeHandedOver`](crate::Event::IkeHandedOver), or in
    /// [`Event::Refused`](crate::Event::Refused) if everything stays on the old path.
    pub fn hand_over(&mut self, sa: IkeSaId, path: Path, now: Instant) -> Result<(), CannotMove> {
        let old = self.sas.get(&sa);
        let (old, up) = old
            .and_then(|old| Some((old, old.established()?)))
            .ok_or(CannotMove::NotUp)?;
        clone::is_possible(up)?;
        // One at a time, so that the other end knows which of several SAs is in use.
        let busy = |up: &Session| up.is_leaving() || up.is_on_trial();
        let other = |sa: &Sa| sa.is_being_made() || sa.established().is_some_and(busy);
        let peer = old.core.peer_id();
        if up.is_leaving() || self.sas_with(peer).any(other) {
            return Err(CannotMove::UnderWay);
        }
        let mut asked = Ok(());
        self.with_established(sa, now, |up, turn| {
            asked = clone::request(up, path, turn);
        });
        asked
    }
}

impl Engine {
    /// Lets a clone replace its original once it has the requested path and all child SAs. A clone
    /// that the peer requested does so with its first child SA of the same name as one of the
    /// original's.
    pub(crate) fn conclude_clone_trial(&mut self, id: IkeSaId, now: Instant) {
        let up = self.up(id).filter(|up| up.replacement.aside.is_some());
        let Some((up, old)) = up.and_then(|up| Some((up, up.replacement.follows?))) else {
            return;
        };
        let ours = up.is_on_trial();
        let settled = match self.up(old) {
            _ if ours => clone::is_in_place(up),
            None => true,
            Some(old) => !up
                .children
                .current_names()
                .is_disjoint(&old.children.current_names()),
        };
        if !settled {
            return;
        }
        self.with_established(id, now, established::conclude_trial);
        self.with_established(old, now, |up, turn| match ours {
            true => {
                leave::relieve(up, turn.ctx);
                leave::set_free(up, turn.ctx);
            }
            false => up.replacement.has_successor = true,
        });
    }
}
