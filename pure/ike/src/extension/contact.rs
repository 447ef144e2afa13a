//! Which of several IKE SAs with one peer stay (RFC 7296 section 2.4, INITIAL_CONTACT).
//!
//! A peer that comes back after a crash or from another network makes a new IKE SA; once that is
//! authenticated, the old one is of no use to it. One that makes a new SA from where it is and knows
//! the old one wants to prove itself anew (section 2.8.3): then the new SA takes the old one's place,
//! and its initiator deletes that when nothing is under way on it. Two ends that call each other at
//! the same moment make two SAs, and one of them has to go: as where two rekeyings cross, that with
//! the lowest of the four nonces (section 2.8). Both ends see that and delete it, so none waits for
//! the other.

use crate::exchange::{find_notify, notify};
use model::Instant;
use wire::ike::{Message, NotifyType, Payload};

/// What an initiator adds to IKE_AUTH if it has no other IKE SA with the peer.
pub(crate) const fn payload() -> Payload {
    notify(NotifyType::INITIAL_CONTACT, Vec::new())
}

/// Whether a request says so.
pub(crate) fn is_initial(request: &Message) -> bool {
    find_notify(request, NotifyType::INITIAL_CONTACT).is_some()
}

/// An IKE SA as far as this question goes.
#[derive(Clone)]
pub(crate) struct Contact {
    /// Whether we began it.
    pub(crate) ours: bool,
    /// When its first message was sent or came.
    pub(crate) began: Instant,
    /// Since when it is up.
    pub(crate) since: Instant,
    /// Whether its initiator said that it has no other.
    pub(crate) initial: bool,
    /// The lower of its two nonces.
    pub(crate) lowest_nonce: Vec<u8>,
}

/// What becomes of an IKE SA and of a newer one with the same peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Both stay.
    Both,
    /// The new one takes the place of the old one, which its initiator will delete.
    Succeeded,
    /// The old one goes.
    OldGoes,
    /// The old one goes, and the peer would not understand that we delete it: it has forgotten it.
    OldForgotten,
    /// The new one goes.
    NewGoes,
}

/// What becomes of `old` now that `new` with the same peer is authenticated. `elsewhere`: the peer is
/// not where it was.
///
/// An initiator that has the old one does not say that it has no other. So one that says so either
/// forgot it, or began before it was up.
pub(crate) fn fate(new: &Contact, old: &Contact, elsewhere: bool) -> Fate {
    let crossed = new.began <= old.since;
    match (new.ours == old.ours, crossed) {
        (true, _) if new.initial && !new.ours => Fate::OldForgotten,
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

    /// One that takes a second from its first message until it is up.
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

    #[test]
    fn a_peer_that_remembers_the_old_one_may_have_two() {
        let (new, old) = (contact(false, 2, false, 1), contact(true, 0, true, 9));
        assert_eq!(fate(&new, &old, false), Fate::Both);
    }
}
