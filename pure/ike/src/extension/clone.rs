//! Cloning the IKE SA (RFC 7791): another one beside it, without another authentication.
//!
//! Both ends say in IKE_AUTH that it may be done (section 5.1). A request for a successor of the IKE SA
//! that has CLONE_IKE_SA then makes one that does not take over: "two parallel IKE SAs are expected to
//! coexist" (section 5.2), and children stay where they are. How it is asked for is in `sa/cloning.rs`.
//!
//! Here it is what a soft hand-over is made of. Who decides where an IKE SA goes (RFC 4555) clones it,
//! moves the clone, and makes the same children in that, which take the places of the old ones like the
//! successors in a rekey. Then the old IKE SA leaves (`sa/leaving.rs`). Until all of that has come about
//! the old one stays as it is; if it does not, the clone goes, and nobody has noticed.
//!
//! The other end cannot know what a clone is for. It may as well be there to stay, for a path of its own.
//! So a child of it takes the place of one that carries the same when something came on it, and the
//! old one is there to fall back to until the peer deletes it.

use crate::engine::Engine;
use crate::exchange::{find_notify, notify};
use crate::misuse::CannotMove;
use crate::sa::Sa;
use crate::sa::established::Established;
use model::{IkeSaId, Instant, Path};
use wire::ike::{Message, NotifyType, Payload};

/// What says in IKE_AUTH that we allow it.
pub(crate) const fn supported() -> Payload {
    notify(NotifyType::CLONE_IKE_SA_SUPPORTED, Vec::new())
}

/// Whether a message of IKE_AUTH says so.
pub(crate) fn is_supported(message: &Message) -> bool {
    find_notify(message, NotifyType::CLONE_IKE_SA_SUPPORTED).is_some()
}

/// What makes a clone of a successor.
pub(crate) const fn payload() -> Payload {
    notify(NotifyType::CLONE_IKE_SA, Vec::new())
}

/// Whether a request for a successor wants a clone. "If the CLONE_IKE_SA notification appears in any other
/// message, it MUST be ignored": nobody asks this of another.
pub(crate) fn is_asked_for(request: &Message) -> bool {
    find_notify(request, NotifyType::CLONE_IKE_SA).is_some()
}

/// Commands.
impl Engine {
    /// Moves all that an IKE SA carries to another path, without a pause, and by another IKE SA. Ends in
    /// [`Event::IkeHandedOver`](crate::Event::IkeHandedOver), or in [`Event::Refused`](crate::Event::Refused), and then all stays where it is.
    pub fn hand_over(&mut self, sa: IkeSaId, path: Path, now: Instant) -> Result<(), CannotMove> {
        let old = self.sas.get(&sa);
        let (old, up) = old
            .and_then(|old| Some((old, old.established()?)))
            .ok_or(CannotMove::NotUp)?;
        up.may_hand_over()?;
        // One after the other: so the other end knows which of several SAs is in use.
        let busy = |up: &Established| up.is_leaving() || up.is_on_trial();
        let other = |sa: &Sa| sa.is_being_made() || sa.established().is_some_and(busy);
        let peer = old.core.name();
        if up.is_leaving() || self.sas_with(&peer).any(other) {
            return Err(CannotMove::UnderWay);
        }
        let mut asked = Ok(());
        self.with_established(sa, now, |core, up, ctx| {
            asked = up.ask_for_clone(path, core, ctx);
        });
        asked
    }
}

impl Engine {
    /// A clone that is where it was to be, with all that it was to have, takes the place of the IKE SA
    /// that it came of. One of the peer's does so with its first child that carries what the old one does.
    pub(crate) fn settle_clone(&mut self, id: IkeSaId, now: Instant) {
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
        self.with_established(id, now, |core, up, ctx| up.settle(core, ctx));
        self.with_established(old, now, |_, up, ctx| match ours {
            true => {
                up.relieve(ctx);
                up.set_free(ctx);
            }
            false => up.has_heir = true,
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
            // Section 6: "Protocol ID (1 octet): Set to zero", and the same for the size of an SPI.
            assert_eq!(protocol, wire::ike::Protocol::NONE);
            assert!(spi.is_empty() && data.is_empty());
        }
    }
}
