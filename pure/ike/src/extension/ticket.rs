//! Tickets that resume an IKE SA (RFC 5723).
//!
//! A gateway gives its client a ticket once the client has authenticated. After the IKE SA is lost,
//! as the gateway was restarted or nothing passed for too long, the client presents the ticket
//! instead of a key exchange and a proof of identity:
//!
//! ```text
//!  HDR(IKE_SESSION_RESUME), Ni, N(TICKET_OPAQUE), ...  -->
//!                                                      <--  HDR(IKE_SESSION_RESUME), Nr, ...
//!  HDR(IKE_AUTH), SK { IDi, AUTH, ... }                -->
//!                                                      <--  HDR(IKE_AUTH), SK { IDr, AUTH, ... }
//! ```
//!
//! The keys come from SK_d of the lost IKE SA and both nonces, and AUTH proves that they are known
//! (`keys.rs`, `auth/mod.rs`). IKE_AUTH has everything else that it always has: child SA, addresses
//! and zones are agreed upon anew, and nothing licensed comes from the old IKE SA.
//!
//! Tickets are references: the gateway keeps the state in a store and gives away its name
//! (`resumption::Reference`). A ticket is presented once. It "is invalidated" by a rekey (section
//! 6.2), after which the client asks for another, and it dies when either end deletes the IKE SA.
//! A session that both ends lose without a Delete stays resumable.
//!
//! A refusal (TICKET_NACK) is not authenticated. It begins a full exchange beside the attempt, and
//! spends nothing else: a good answer that comes later still counts.

use crate::config::{Peer, Resumption};
use crate::exchange::{find_notify, notify};
use std::time::Duration;
use wire::ike::{Message, NotifyType, Payload};

/// Longest lifetime of a ticket that is believed.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// Longest ticket that is kept, in octets. A ticket by value of another implementation may have
/// certificates.
const LARGEST: usize = 2048;

/// A ticket as its gateway gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) ticket: Vec<u8>,
    pub(crate) lifetime: Duration,
}

/// Returns the notify that asks a peer for a ticket, if tickets are configured.
pub(crate) fn request(peer: &Peer) -> Option<Payload> {
    let wanted = peer.resumption == Resumption::Tickets;
    wanted.then(|| notify(NotifyType::TICKET_REQUEST, Vec::new()))
}

/// Returns true if a request asks for a ticket.
pub(crate) fn is_requested(request: &Message) -> bool {
    find_notify(request, NotifyType::TICKET_REQUEST).is_some()
}

/// Returns the notify that carries a ticket with its lifetime.
pub(crate) fn given(ticket: &[u8], lifetime: Duration) -> Payload {
    let seconds = u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX);
    let data = [&seconds.to_be_bytes(), ticket].concat();
    notify(NotifyType::TICKET_LT_OPAQUE, data)
}

/// Returns the refusal of a ticket, or of a request for one.
pub(crate) const fn refusal() -> Payload {
    notify(NotifyType::TICKET_NACK, Vec::new())
}

/// Returns the answer to a request in a rekey, whose keys are not in use yet: TICKET_ACK, "if it
/// cannot grant a ticket immediately" (section 4.1).
pub(crate) fn postponed(request: &Message) -> Option<Payload> {
    is_requested(request).then(|| notify(NotifyType::TICKET_ACK, Vec::new()))
}

/// Returns the ticket that a response carries. One without content or lifetime counts as absent.
pub(crate) fn received(response: &Message) -> Option<Given> {
    let notify = find_notify(response, NotifyType::TICKET_LT_OPAQUE)?;
    let (seconds, ticket) = notify.data.split_first_chunk::<4>()?;
    let lifetime = Duration::from_secs(u32::from_be_bytes(*seconds).into());
    let is_sound = (1..=LARGEST).contains(&ticket.len()) && !lifetime.is_zero();
    is_sound.then(|| Given {
        ticket: ticket.to_vec(),
        lifetime: lifetime.min(LONGEST),
    })
}

/// Returns the notify that presents a ticket.
pub(crate) fn presentation(ticket: &[u8]) -> Payload {
    notify(NotifyType::TICKET_OPAQUE, ticket.to_vec())
}

/// Returns the ticket that a first message presents.
pub(crate) fn presented(request: &Message) -> Option<&[u8]> {
    let notify = find_notify(request, NotifyType::TICKET_OPAQUE)?;
    Some(&notify.data)
}

/// Returns true if a response refuses a ticket.
pub(crate) fn is_refused(response: &Message) -> bool {
    find_notify(response, NotifyType::TICKET_NACK).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::saying;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_ticket_is_received_as_it_was_given() {
        let said = saying(vec![given(b"ticket", HOUR)]);
        let expected = Given {
            ticket: b"ticket".to_vec(),
            lifetime: HOUR,
        };
        assert_eq!(received(&said), Some(expected));
        assert_eq!(
            presented(&saying(vec![presentation(b"t")])),
            Some(&b"t"[..])
        );
    }

    #[test]
    fn a_ticket_that_is_empty_endless_or_too_long_is_none_or_cut() {
        let received_of =
            |data: Vec<u8>| received(&saying(vec![notify(NotifyType::TICKET_LT_OPAQUE, data)]));
        let with =
            |seconds: u32, length: usize| [&seconds.to_be_bytes()[..], &vec![7; length]].concat();
        for (seconds, length) in [(60, 0), (0, 32), (60, LARGEST + 1)] {
            assert_eq!(received_of(with(seconds, length)), None);
        }
        assert_eq!(received_of(vec![0, 0, 1]), None);
        let longest = received_of(with(u32::MAX, LARGEST)).unwrap();
        assert_eq!(longest.lifetime, LONGEST);
    }
}
