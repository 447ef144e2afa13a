//! Cloning the IKE SA (RFC 7791): a parallel IKE SA without another authentication.
//!
//! Both ends announce in IKE_AUTH that they allow it (section 5.1). A request for a successor of
//! the IKE SA with CLONE_IKE_SA then creates a clone, which does not replace the original: "two
//! parallel IKE SAs are expected to coexist" (section 5.2), and the child SAs stay on the original.
//! `sa/cloning.rs` sends the requests.
//!
//! The engine uses clones for a soft hand-over. The end that chooses the path (RFC 4555) clones the
//! IKE SA, moves the clone, and creates the same child SAs on it. They replace the old child SAs
//! like the successors of a rekey. Then the old IKE SA goes down (`sa/leaving.rs`). Until all of
//! that has succeeded, the old IKE SA stays unchanged. On failure the clone is deleted, without any
//! effect on traffic.
//!
//! The other end cannot know the purpose of a clone, which may also be meant to stay, for a path of
//! its own. Therefore a child SA of the clone replaces one with the same selectors once a packet
//! arrives on it, and the old one remains as a fallback until the peer deletes it.

use crate::engine::Engine;
use crate::exchange::{find_notify, notify};
use crate::misuse::CannotMove;
use crate::sa::Sa;
use crate::sa::established::Established;
use model::{IkeSaId, Instant, Path};
use wire::ike::{Message, NotifyType, Payload};

/// Returns the notify for IKE_AUTH that announces that we allow clones.
pub(crate) const fn supported() -> Payload {
    notify(NotifyType::CLONE_IKE_SA_SUPPORTED, Vec::new())
}

/// Returns true if an IKE_AUTH message announces that its sender allows clones.
pub(crate) fn is_supported(message: &Message) -> bool {
    find_notify(message, NotifyType::CLONE_IKE_SA_SUPPORTED).is_some()
}

/// Returns the notify that turns a request for a successor into one for a clone.
pub(crate) const fn payload() -> Payload {
    notify(NotifyType::CLONE_IKE_SA, Vec::new())
}

/// Returns true if a request for a successor asks for a clone. "If the CLONE_IKE_SA notification
/// appears in any other message, it MUST be ignored": the callers check no other message.
pub(crate) fn is_asked_for(request: &Message) -> bool {
    find_notify(request, NotifyType::CLONE_IKE_SA).is_some()
}

/// Commands.
impl Engine {
    /// Moves an IKE SA with all child SAs to another path without interruption, by means of a
    /// clone. Ends in [`Event::IkeHandedOver`](crate::Event::IkeHandedOver), or in
    /// [`Event::Refused`](crate::Event::Refused) if everything stays on the old path.
    pub fn hand_over(&mut self, sa: IkeSaId, path: Path, now: Instant) -> Result<(), CannotMove> {
        let old = self.sas.get(&sa);
        let (old, up) = old
            .and_then(|old| Some((old, old.established()?)))
            .ok_or(CannotMove::NotUp)?;
        up.may_hand_over()?;
        // One at a time, so that the other end knows which of several SAs is in use.
        let busy = |up: &Established| up.is_leaving() || up.is_on_trial();
        let other = |sa: &Sa| sa.is_being_made() || sa.established().is_some_and(busy);
        let peer = old.core.name();
        if up.is_leaving() || self.sas_with(&peer).any(other) {
            return Err(CannotMove::UnderWay);
        }
        let mut asked = Ok(());
        self.with_established(sa, now, |up, turn| {
            asked = up.ask_for_clone(path, turn);
        });
        asked
    }
}

impl Engine {
    /// Lets a clone replace its original once it has the requested path and all child SAs. A clone
    /// that the peer requested does so with its first child SA of the same name as one of the
    /// original's.
    pub(crate) fn conclude_clone_trial(&mut self, id: IkeSaId, now: Instant) {
        let up = self.up(id).filter(|up| up.is_aside());
        let Some((up, old)) = up.and_then(|up| Some((up, up.follows?))) else {
            return;
        };
        let ours = up.is_on_trial();
        let settled = match self.up(old) {
            _ if ours => up.is_in_place(),
            None => true,
            Some(old) => !up.current_names().is_disjoint(&old.current_names()),
        };
        if !settled {
            return;
        }
        self.with_established(id, now, |up, turn| up.conclude_trial(turn));
        self.with_established(old, now, |up, turn| match ours {
            true => {
                up.relieve(turn.ctx);
                up.set_free(turn.ctx);
            }
            false => up.has_successor = true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::saying;
    use wire::ike::Notify;

    #[test]
    fn what_is_said_is_read_and_names_no_sa() {
        assert!(is_supported(&saying(vec![supported()])));
        assert!(is_asked_for(&saying(vec![payload()])));
        assert!(!is_asked_for(&saying(vec![supported()])));
        assert!(!is_supported(&saying(vec![payload()])));
        for said in [supported(), payload()] {
            let Payload::Notify(Notify {
                protocol,
                spi,
                data,
                ..
            }) = said
            else {
                panic!("a notify");
            };
            // Section 6: "Protocol ID (1 octet): Set to zero", and the same for the SPI size.
            assert_eq!(protocol, wire::ike::Protocol::NONE);
            assert!(spi.is_empty() && data.is_empty());
        }
    }
}
