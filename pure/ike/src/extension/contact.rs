//! Which of several IKE SAs with one peer stay (RFC 7296 section 2.4, INITIAL_CONTACT).
//!
//! A peer that comes back after a crash or from another network makes a new IKE SA; once that is
//! authenticated, the old one is of no use to it. But two ends that call each other at the same
//! moment must not throw away each other's SA, so one that *we* began shortly before stays.

use crate::exchange::{find_notify, notify};
use model::Instant;
use std::time::Duration;
use wire::ike::{Message, NotifyType, Payload};

/// Both ends began within this time of each other: neither has crashed in between.
const CROSSING: Duration = Duration::from_secs(10);

/// What an initiator adds to IKE_AUTH if it has no other IKE SA with the peer.
pub(crate) const fn payload() -> Payload {
    notify(NotifyType::INITIAL_CONTACT, Vec::new())
}

/// Whether a request says so.
pub(crate) fn is_initial(request: &Message) -> bool {
    find_notify(request, NotifyType::INITIAL_CONTACT).is_some()
}

/// An IKE SA as far as this question goes.
#[derive(Clone, Copy)]
pub(crate) struct Contact {
    /// Whether we began it.
    pub(crate) ours: bool,
    /// Since when it is up.
    pub(crate) since: Instant,
    /// Whether its initiator said that it has no other.
    pub(crate) initial: bool,
}

/// Whether `new`, just authenticated, takes the place of `old` with the same peer.
pub(crate) fn replaces(new: Contact, old: Contact) -> bool {
    let same_side = new.ours == old.ours;
    let peer_forgot = new.initial && !new.ours && new.since - old.since > CROSSING;
    same_side || peer_forgot
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(ours: bool, seconds: u64, initial: bool) -> Contact {
        let since = Instant::from_origin(Duration::from_secs(seconds));
        Contact {
            ours,
            since,
            initial,
        }
    }

    #[test]
    fn a_peer_that_begins_again_replaces_what_it_began() {
        assert!(replaces(contact(false, 1, false), contact(false, 0, true)));
        assert!(replaces(contact(true, 1, false), contact(true, 0, true)));
    }

    #[test]
    fn two_ends_that_call_each_other_at_once_keep_both() {
        assert!(!replaces(contact(false, 1, true), contact(true, 0, true)));
        assert!(!replaces(contact(true, 1, true), contact(false, 0, true)));
    }

    #[test]
    fn a_peer_that_forgot_everything_replaces_even_what_we_began() {
        assert!(replaces(contact(false, 11, true), contact(true, 0, true)));
        assert!(!replaces(contact(false, 11, false), contact(true, 0, true)));
    }
}
