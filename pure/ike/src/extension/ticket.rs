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
//! A ticket names an entry in the store of the gateway, or has it inside (`resumption::Ticket`). A
//! ticket is presented once. It "is invalidated" by a rekey (section
//! 6.2), after which the client asks for another, and it dies when either end deletes the IKE SA.
//! A session that both ends lose without a Delete stays resumable.
//!
//! A refusal (TICKET_NACK) is not authenticated. It begins a full exchange beside the attempt, and
//! spends nothing else: a good answer that comes later still counts.
//!
//! Peers that sent our vendor ID can resume by SKID3 as well (`skid.rs`). What they are given for
//! that has the same form and the same life as a ticket, in notifies of its own.

use crate::config::{Peer, Resumption};
use crate::exchange::{find_notify, notify};
use resumption::{Strategy, Way};
use std::time::Duration;
use wire::ike::{Message, NotifyType, Payload};

/// Silence after which a full exchange begins beside an attempt to resume a session. A gateway that
/// many clients have lost at once answers late, and full exchanges would only delay it further.
pub(crate) const LOST: Duration = Duration::from_secs(3);

/// Longest ticket that is kept, in octets. A ticket by value of another implementation may have
/// certificates.
const LARGEST: usize = 2048;

/// Kinds of SKID3 in SESSION_REQUEST and SESSION: without and with a key exchange.
const NO_PFS: u8 = 0;
const PFS: u8 = 1;

/// The notifies of a way to resume: what asks for a ticket, what carries one with its lifetime, and
/// what presents it.
struct Notifies {
    asks: NotifyType,
    gives: NotifyType,
    presents: NotifyType,
}

impl Notifies {
    const fn of(way: Way) -> Self {
        match way {
            Way::Ticket => Self {
                asks: NotifyType::TICKET_REQUEST,
                gives: NotifyType::TICKET_LT_OPAQUE,
                presents: NotifyType::TICKET_OPAQUE,
            },
            Way::Skid3 | Way::Skid3Pfs => Self {
                asks: NotifyType::SESSION_REQUEST,
                gives: NotifyType::SESSION,
                presents: NotifyType::SESSION,
            },
        }
    }
}

/// A ticket as its gateway gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) way: Way,
    pub(crate) ticket: Vec<u8>,
    pub(crate) lifetime: Duration,
}

/// Returns the notify that asks a peer for a ticket, if resumption is configured. `private`: the
/// peer understands our private numbers.
pub(crate) fn request(peer: &Peer, private: bool) -> Option<Payload> {
    let way = match peer.resumption {
        Resumption::Off => return None,
        Resumption::Skid3 if private => Way::Skid3,
        Resumption::Skid3 | Resumption::Tickets => Way::Ticket,
        Resumption::Skid3Pfs if private => Way::Skid3Pfs,
        Resumption::Skid3Pfs => return None,
    };
    let asked = match way {
        Way::Ticket | Way::Skid3 => Vec::new(),
        Way::Skid3Pfs => vec![PFS],
    };
    Some(notify(Notifies::of(way).asks, asked))
}

/// Returns the way to resume for which a request asks for a ticket, if it does.
pub(crate) fn requested(request: &Message, private: bool) -> Option<Way> {
    let asks = |way| find_notify(request, Notifies::of(way).asks);
    match asks(Way::Skid3).filter(|_| private) {
        Some(asked) if asked.data == [PFS] => Some(Way::Skid3Pfs),
        Some(_) => Some(Way::Skid3),
        None => asks(Way::Ticket).map(|_| Way::Ticket),
    }
}

/// Returns the notify that carries a ticket with its lifetime.
pub(crate) fn given(way: Way, ticket: &[u8], lifetime: Duration) -> Payload {
    let seconds = u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX);
    let kind: &[u8] = match way {
        Way::Ticket => &[],
        Way::Skid3 => &[NO_PFS],
        Way::Skid3Pfs => &[PFS],
    };
    let data = [&seconds.to_be_bytes(), kind, ticket].concat();
    notify(Notifies::of(way).gives, data)
}

/// Returns the refusal of a ticket, or of a request for one.
pub(crate) const fn refusal() -> Payload {
    notify(NotifyType::TICKET_NACK, Vec::new())
}

/// Returns the answer to a request in a rekey, whose keys are not in use yet: TICKET_ACK, "if it
/// cannot grant a ticket immediately" (section 4.1).
pub(crate) fn postponed(request: &Message) -> Option<Payload> {
    let is_asked = find_notify(request, NotifyType::TICKET_REQUEST).is_some();
    is_asked.then(|| notify(NotifyType::TICKET_ACK, Vec::new()))
}

/// Returns the ticket that a response carries. One without content or lifetime counts as absent.
pub(crate) fn received(response: &Message) -> Option<Given> {
    let ways = [Way::Skid3, Way::Ticket].into_iter();
    ways.filter_map(|way| received_by(way, response)).next()
}

/// Returns the ticket in the notify that belongs to a way.
fn received_by(way: Way, response: &Message) -> Option<Given> {
    let notify = find_notify(response, Notifies::of(way).gives)?;
    let (seconds, rest) = notify.data.split_first_chunk::<4>()?;
    let (way, ticket) = match (way, rest) {
        (Way::Ticket, ticket) => (Way::Ticket, ticket),
        (_, [NO_PFS, ticket @ ..]) => (Way::Skid3, ticket),
        (_, [PFS, ticket @ ..]) => (Way::Skid3Pfs, ticket),
        _ => return None,
    };
    let lifetime = Duration::from_secs(u32::from_be_bytes(*seconds).into());
    let is_sound = (1..=LARGEST).contains(&ticket.len()) && !lifetime.is_zero();
    is_sound.then(|| Given {
        way,
        ticket: ticket.to_vec(),
        lifetime: lifetime.min(Strategy::LONGEST),
    })
}

/// Returns the notify that presents a ticket.
pub(crate) fn presentation(way: Way, ticket: &[u8]) -> Payload {
    notify(Notifies::of(way).presents, ticket.to_vec())
}

/// Returns the ticket that a first message presents.
pub(crate) fn presented(way: Way, request: &Message) -> Option<&[u8]> {
    let notify = find_notify(request, Notifies::of(way).presents)?;
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
        for way in Way::ALL {
            let said = saying(vec![given(way, b"ticket", HOUR)]);
            let expected = Given {
                way,
                ticket: b"ticket".to_vec(),
                lifetime: HOUR,
            };
            assert_eq!(received(&said), Some(expected));
            let said = saying(vec![presentation(way, b"t")]);
            assert_eq!(presented(way, &said), Some(&b"t"[..]));
        }
    }

    /// RFC 5723 section 4.1. A peer asks in a rekey, whose keys are not in use yet.
    #[test]
    fn a_request_in_a_rekey_is_put_off_and_nothing_else_is_answered() {
        let asks = notify(NotifyType::TICKET_REQUEST, Vec::new());
        let later = notify(NotifyType::TICKET_ACK, Vec::new());
        assert_eq!(postponed(&saying(vec![asks])), Some(later.clone()));
        assert_eq!(postponed(&saying(vec![refusal()])), None);
        // The client goes on without a ticket until it asks again.
        assert_eq!(received(&saying(vec![later])), None);
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
        assert_eq!(longest.lifetime, Strategy::LONGEST);
    }
}
