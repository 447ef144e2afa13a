//! IKE SAs that replace others after re-authentication (`extension/reauth.rs`).

use super::Engine;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::misuse::CannotReauthenticate;
use crate::sa::Sa;
use crate::session::Session;
use crate::task::child::NewChild;
use crate::task::{leave, upkeep};
use model::{ChildSa, IkeSaId, Instant, Path, PeerId};
use std::collections::VecDeque;

/// Commands.
impl Engine {
    /// Re-authenticates: establishes a new IKE SA, which replaces the given one. Only its initiator
    /// can do this. Ends in [`Event::IkeReplaced`], or in [`Event::Refused`] if the old IKE SA
    /// stays.
    pub fn reauthenticate(
        &mut self,
        sa: IkeSaId,
        now: Instant,
    ) -> Result<IkeSaId, CannotReauthenticate> {
        let (peer, path) = self.replaceable(sa)?;
        let begun = self.begin(peer, path, true, None, now);
        begun.map_err(CannotReauthenticate::from)
    }
}

impl Engine {
    /// Returns peer and path of an IKE SA that another one may replace.
    fn replaceable(&self, sa: IkeSaId) -> Result<(PeerId, Path), CannotReauthenticate> {
        let old = self.sas.get(&sa);
        let (core, up) = old
            .and_then(|old| Some((&old.core, old.established()?)))
            .ok_or(CannotReauthenticate::NotUp)?;
        if !up.terms.contact.ours {
            return Err(CannotReauthenticate::NotOurs);
        }
        // One at a time, so that the other end knows which of several SAs is in use.
        let busy = |up: &Session| up.is_leaving() || up.is_on_trial();
        let other = |sa: &Sa| sa.established().is_some_and(busy);
        if busy(up) || self.sas_with(core.peer_id()).any(other) {
            return Err(CannotReauthenticate::UnderWay);
        }
        Ok((core.peer_id(), core.path))
    }

    /// Starts the replacements of SAs that the peer seems to have lost, as by a restart. It may
    /// have kept the sessions.
    pub(crate) fn replace_lost(&mut self, now: Instant) {
        for sa in std::mem::take(&mut self.out.lost) {
            if let Ok((peer, path)) = self.replaceable(sa) {
                // Ignored if it is in progress already.
                let _ = self.resume(peer, path, true, now);
            }
        }
    }

    /// Starts the re-authentications that SAs have requested.
    pub(crate) fn reauthenticate_due(&mut self, now: Instant) {
        for sa in std::mem::take(&mut self.out.unproved) {
            // Ignored if it is in progress already, or the SA is gone.
            let _ = self.reauthenticate(sa, now);
        }
    }

    /// Makes a new IKE SA the replacement of older ones, and returns the adapted events. Older SAs
    /// that we initiated go down by themselves. Of those that the peer initiated, the peer deletes
    /// the one in use. The engine closes all others, which were never used or which the peer has
    /// forgotten.
    pub(crate) fn succeed(
        &mut self,
        new: IkeSaId,
        older: &[IkeSaId],
        news: VecDeque<Event>,
        now: Instant,
    ) -> VecDeque<Event> {
        let used = older.iter().rev().find(|id| {
            let old = self.up(**id);
            old.is_some_and(Session::was_heard)
        });
        let Some(old) = used.or(older.first()).copied() else {
            return news;
        };
        let children = self.up(old).map(|up| up.children.current_names());
        self.with_established(new, now, |up, turn| {
            up.replacement.follows = Some(old);
            if up.terms.contact.ours {
                up.upkeep.inherit(children.unwrap_or_default());
                upkeep::maintain(up, turn);
            }
        });
        for &id in older {
            let ours = self.up(id).is_some_and(|up| up.terms.contact.ours);
            if ours {
                self.with_established(id, now, |up, turn| leave::relieve(up, turn.ctx));
            } else if id == old {
                self.with_established(id, now, |up, _| up.replacement.has_successor = true);
            } else {
                self.close_for(id, DownReason::Replaced, now);
            }
        }
        let retold = news.into_iter().map(|event| match event {
            Event::IkeUp {
                sa, peer, resumed, ..
            } => Event::IkeReplaced {
                old,
                sa,
                peer,
                resumed,
            },
            event => event,
        });
        retold.collect()
    }

    /// Adapts the events of an SA that replaces another one: its child SAs replace those of the old
    /// SA, which goes down once there are no more to come.
    pub(crate) fn retell(
        &mut self,
        id: IkeSaId,
        news: VecDeque<Event>,
        now: Instant,
    ) -> VecDeque<Event> {
        let up = self.up(id);
        let Some((up, old)) = up.and_then(|up| Some((up, up.replacement.follows?))) else {
            return news;
        };
        let (ours, tended) = (
            up.terms.contact.ours,
            up.queue.tasks_of::<NewChild>().next().is_none(),
        );
        let before = |new: &ChildSa<_>| self.up(old)?.children.current(new.name.as_deref());
        let retold = news.into_iter().map(|event| match event {
            Event::ChildUp(new) => match before(&new) {
                Some(old) => Event::ChildRekeyed { old, new },
                None => Event::ChildUp(new),
            },
            event => event,
        });
        let retold = retold.collect();
        if ours && tended {
            self.with_established(old, now, |up, turn| leave::set_free(up, turn.ctx));
        }
        retold
    }

    pub(crate) fn up(&self, id: IkeSaId) -> Option<&Session> {
        self.sas.get(&id)?.established()
    }
}
