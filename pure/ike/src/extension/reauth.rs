//! Re-authentication (RFC 7296 section 2.8.3), and the lifetime of an authentication (RFC 4478).
//!
//! A rekey proves no identity: an authenticated peer stays so while the IKE SA lives, even if its
//! key or certificate becomes invalid. "Reauthentication is done by creating a new IKE SA from
//! scratch (using IKE_SA_INIT/IKE_AUTH exchanges, without any REKEY_SA Notify payloads), creating
//! new Child SAs within the new IKE SA (without REKEY_SA Notify payloads), and finally deleting the
//! old IKE SA". Only the original initiator can do this, because the responder cannot request inner
//! addresses. The responder can announce the lifetime of an authentication, and closes an SA that
//! exceeds it.
//!
//! The new SA is established in parallel to the old one, on the same path, and the old one stays
//! until the new one works. The new SA's child SAs replace the old ones like the successors of a
//! rekey. If it cannot be established, the old SA stays until its lifetime is over, and
//! re-authentication is tried again. `sa/leaving.rs` describes the end of the old SA.

use crate::down_reason::DownReason;
use crate::engine::Engine;
use crate::event::Event;
use crate::exchange::{find_notify, notify};
use crate::misuse::{ApiMisuse, CannotReauthenticate};
use crate::sa::Sa;
use crate::sa::established::Established;
use model::{ChildSa, IkeSaId, Instant};
use std::collections::VecDeque;
use std::time::Duration;
use wire::ike::{Message, NotifyType, Payload};

/// Minimum lifetime of an authentication, regardless of the peer's announcement.
const LEAST: Duration = Duration::from_secs(10);

/// Returns the notify for IKE_AUTH by which a responder limits the lifetime of an authentication.
pub(crate) fn announcement(lifetime: Duration) -> Option<Payload> {
    let seconds = u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX);
    let data = seconds.max(1).to_be_bytes().to_vec();
    (!lifetime.is_zero()).then(|| notify(NotifyType::AUTH_LIFETIME, data))
}

/// Returns the time after which to re-authenticate, as announced by a responder: nine tenths of the
/// lifetime, because the responder may delete the IKE SA as soon as that is over.
pub(crate) fn announced(message: &Message) -> Option<Duration> {
    let notify = find_notify(message, NotifyType::AUTH_LIFETIME)?;
    let octets = notify.data.as_slice().try_into().ok()?;
    let lifetime = Duration::from_secs(u32::from_be_bytes(octets).into());
    Some((lifetime * 9 / 10).max(LEAST))
}

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
        let old = self.sas.get(&sa);
        let (core, up) = old
            .and_then(|old| Some((&old.core, old.established()?)))
            .ok_or(CannotReauthenticate::NotUp)?;
        if !up.contact.ours {
            return Err(CannotReauthenticate::NotOurs);
        }
        let (peer, path) = (core.name(), core.path);
        // One at a time, so that the other end knows which of several SAs is in use.
        let busy = |up: &Established| up.is_leaving() || up.is_on_trial();
        let other = |sa: &Sa| sa.established().is_some_and(busy);
        if busy(up) || self.sas_with(&peer).any(other) {
            return Err(CannotReauthenticate::UnderWay);
        }
        let begun = self.begin(&peer, path, true, None, now);
        begun.map_err(|misuse| match misuse {
            ApiMisuse::AlreadyInitiating => CannotReauthenticate::UnderWay,
            ApiMisuse::UnknownPeer => CannotReauthenticate::NotUp,
        })
    }
}

impl Engine {
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
            old.is_some_and(Established::was_heard)
        });
        let Some(old) = used.or(older.first()).copied() else {
            return news;
        };
        let children = self.up(old).map(Established::current_names);
        self.with_established(new, now, |up, turn| {
            up.follows = Some(old);
            if up.contact.ours {
                up.inherit_children(children.unwrap_or_default());
                up.maintain(turn);
            }
        });
        for &id in older {
            let ours = self.up(id).is_some_and(|up| up.contact.ours);
            if ours {
                self.with_established(id, now, |up, turn| up.relieve(turn.ctx));
            } else if id == old {
                self.with_established(id, now, |up, _| up.has_successor = true);
            } else {
                self.close_for(id, DownReason::Replaced, now);
            }
        }
        let retold = news.into_iter().map(|event| match event {
            Event::IkeUp { sa, peer, .. } => Event::IkeReplaced { old, sa, peer },
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
        let Some((up, old)) = up.and_then(|up| Some((up, up.follows?))) else {
            return news;
        };
        let (ours, tended) = (up.contact.ours, up.is_tended());
        let before = |new: &ChildSa<_>| self.up(old)?.current_child(new.name.as_deref());
        let retold = news.into_iter().map(|event| match event {
            Event::ChildUp(new) => match before(&new) {
                Some(old) => Event::ChildRekeyed { old, new },
                None => Event::ChildUp(new),
            },
            event => event,
        });
        let retold = retold.collect();
        if ours && tended {
            self.with_established(old, now, |up, turn| up.set_free(turn.ctx));
        }
        retold
    }

    pub(crate) fn up(&self, id: IkeSaId) -> Option<&Established> {
        self.sas.get(&id)?.established()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::saying;

    #[test]
    fn what_a_responder_announces_is_used_for_nine_tenths_of_it() {
        let hours = Duration::from_secs(8 * 3600);
        let said = announcement(hours).map(|said| saying(vec![said]));
        assert_eq!(said.as_ref().and_then(announced), Some(hours * 9 / 10));
        assert_eq!(announcement(Duration::ZERO), None);
    }

    #[test]
    fn an_announcement_that_is_too_short_or_misshapen_makes_nobody_hurry() {
        let said = |data: &[u8]| saying(vec![notify(NotifyType::AUTH_LIFETIME, data.to_vec())]);
        assert_eq!(announced(&said(&[0; 4])), Some(LEAST));
        assert!(announced(&said(&[0xff; 4])) > Some(LEAST));
        for misshapen in [&[][..], &[0, 0, 1], &[0, 0, 0, 1, 0]] {
            assert_eq!(announced(&said(misshapen)), None);
        }
    }
}
