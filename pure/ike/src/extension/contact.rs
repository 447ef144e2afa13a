//! Handling of several IKE SAs with one peer (RFC 7296 section 2.4, INITIAL_CONTACT).
//!
//! A peer that returns after a crash or from another network establishes a new IKE SA. Once that is
//! authenticated, the old one is useless. A peer that establishes a new SA from the same address,
//! and still has the old one, is re-authenticating (section 2.8.3): the new SA replaces the old
//! one, and its initiator deletes the old one once it has no outstanding exchanges. Two ends that
//! initiate at the same time establish two SAs, and one of them has to go: as with simultaneous
//! rekeys, the one with the lowest of the four nonces (section 2.8). Both ends see that and delete
//! it, so neither waits for the other.
//!
//! An initiator that is not answered begins again beside, and both attempts may come up. Their
//! messages cross, so each end may see another one last. Only the initiator decides, by deleting
//! the other one: INITIAL_CONTACT says nothing about an IKE SA that came up after its sender had
//! begun, and is not said while an attempt may be up at the peer.

use crate::exchange::{find_notify, notify};
use model::Instant;
use wire::ike::{Message, NotifyType, Payload};

/// Returns the notify of an initiator that has no other IKE SA with the peer.
pub(crate) const fn payload() -> Payload {
    notify(NotifyType::INITIAL_CONTACT, Vec::new())
}

/// Returns true if a request carries INITIAL_CONTACT.
pub(crate) fn is_initial(request: &Message) -> bool {
    find_notify(request, NotifyType::INITIAL_CONTACT).is_some()
}

/// Properties of an IKE SA that decide which one stays.
#[derive(Clone)]
pub(crate) struct Contact {
    /// True if we initiated it.
    pub(crate) ours: bool,
    /// Time at which its first message was sent or received.
    pub(crate) began: Instant,
    /// Time at which it came up.
    pub(crate) since: Instant,
    /// True if its initiator sent INITIAL_CONTACT.
    pub(crate) initial: bool,
    /// The lower of its two nonces.
    pub(crate) lowest_nonce: Vec<u8>,
}

/// Outcome for an IKE SA and a newer one with the same peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Both stay.
    Both,
    /// The new one replaces the old one, which its initiator deletes.
    Succeeded,
    /// The old one is deleted.
    OldGoes,
    /// The old one is dropped without a Delete, because the peer no longer knows it.
    OldForgotten,
    /// The new one is deleted.
    NewGoes,
}

/// Decides the fate of `old` now that `new` with the same peer is authenticated. `elsewhere`: the
/// peer has another address than before.
///
/// An initiator that still has the old SA does not send INITIAL_CONTACT. An initiator that sends it
/// either lost the old SA, or initiated before that was up.
pub(crate) fn fate(new: &Contact, old: &Contact, elsewhere: bool) -> Fate {
    let crossed = new.began <= old.since;
    let is_lost = new.initial && !new.ours && new.began >= old.since;
    match (new.ours == old.ours, crossed) {
        (true, _) if is_lost => Fate::OldForgotten,
        (true, _) if elsewhere => Fate::OldGoes,
        (true, _) => Fate::Succeeded,
        (false, true) if new.lowest_nonce > old.lowest_nonce => Fate::OldGoes,
        (false, true) => Fate::NewGoes,
        (false, false) if new.initial && !new.ours => Fate::OldForgotten,
        (false, false) => Fate::Both,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// An IKE SA that comes up a second after its first message.
    fn contact(ours: bool, began: u64, initial: bool, nonce: u8) -> Contact {
        let at = |seconds| Instant::from_origin(Duration::from_secs(seconds));
        Contact {
            ours,
            began: at(began),
            since: at(began + 1),
            initial,
            lowest_nonce: vec![nonce; 32],
        }
    }

    #[test]
    fn a_peer_that_begins_again_replaces_what_it_began_step_by_step() {
        for ours in [false, true] {
            let (new, old) = (contact(ours, 5, false, 0), contact(ours, 0, true, 9));
            assert_eq!(fate(&new, &old, false), Fate::Succeeded);
        }
    }

    #[test]
    fn a_peer_that_begins_again_from_elsewhere_replaces_what_it_began_at_once() {
        for ours in [false, true] {
            let (new, old) = (contact(ours, 5, false, 0), contact(ours, 0, true, 9));
            assert_eq!(fate(&new, &old, true), Fate::OldGoes);
        }
    }

    #[test]
    fn of_two_that_cross_the_one_with_the_lowest_nonce_goes_at_both_ends() {
        for ours in [false, true] {
            let (high, low) = (contact(ours, 1, true, 9), contact(!ours, 0, true, 1));
            assert_eq!(fate(&high, &low, false), Fate::OldGoes);
            let (high, low) = (contact(!ours, 0, true, 9), contact(ours, 1, true, 1));
            assert_eq!(fate(&low, &high, false), Fate::NewGoes);
        }
    }

    #[test]
    fn a_peer_that_forgot_everything_replaces_even_what_we_began() {
        for ours in [false, true] {
            let (new, old) = (contact(false, 2, true, 1), contact(ours, 0, true, 9));
            assert_eq!(fate(&new, &old, false), Fate::OldForgotten);
        }
    }

    /// Its initiator had begun both, and decides.
    #[test]
    fn an_sa_that_came_up_while_the_peer_began_again_is_not_forgotten() {
        let (new, old) = (contact(false, 1, true, 1), contact(false, 2, true, 9));
        assert_eq!(fate(&new, &old, false), Fate::Succeeded);
        let (new, old) = (contact(false, 3, true, 1), contact(false, 2, true, 9));
        assert_eq!(fate(&new, &old, false), Fate::OldForgotten);
    }

    #[test]
    fn a_peer_that_remembers_the_old_one_may_have_two() {
        let (new, old) = (contact(false, 2, false, 1), contact(true, 0, true, 9));
        assert_eq!(fate(&new, &old, false), Fate::Both);
    }
}
