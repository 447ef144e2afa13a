//! SKID3: a session is resumed in one round trip (paper 004, section V and figure 7).
//!
//! ```text
//!  HDR(SKID_RESUME), Ni, N(SESSION), ..., SK0 { IDi, IDr, SAi2, TSi, TSr, ... }  -->
//!                             <--  HDR(SKID_RESUME), Nr, ..., SK { IDr, SAr2, TSi, TSr, ... }
//!  HDR(SKID_RESUME), SK { AUTH, N(SESSION_REQUEST) }  -->
//!                             <--  HDR(SKID_RESUME), SK { N(SESSION) }
//! ```
//!
//! SESSION presents a reference, as TICKET_OPAQUE does (`ticket.rs`). The first two messages have
//! what IKE_SA_INIT and IKE_AUTH have otherwise: the clear payloads those that both ends need
//! before they know the keys, the sealed ones all that the first IKE_AUTH exchange agrees on. All
//! of both messages is authenticated. The first one is sealed with keys of the entry (`keys.rs`),
//! so the responder verifies it before it does anything else; the second one with keys that come
//! from the entry, both nonces and the whole first message. It proves the responder, so the
//! initiator sends packets together with the third message.
//!
//! A first message may be a copy of a recorded one. The responder therefore leases, removes and
//! creates nothing, and leaves the entry in the store, until the third message has proved the
//! initiator (`auth/transcript.rs`). The third message is a request: it is repeated until it is
//! answered, and the same octets get the same answer.
//!
//! With a key exchange, the first message has the initiator's public value in its sealed payloads,
//! and the second one the responder's among the clear ones, as the keys depend on it. The entry
//! says whether there is one, so an attacker cannot remove it. An additional key exchange such as
//! ML-KEM follows in a rekey (`task/renew.rs`).
//!
//! The paper authenticates with a key of the lost SA's packets and uses its keys again. Here the
//! secret is made for resumption alone, each session has new keys, and identities are not shown.

use crate::exchange::notify;
use wire::ike::{ExchangeType, Header, Message, NotifyType, Payload};

/// Maximum number of octets of an answer for each octet of a request whose source address is not
/// verified (DESIGN section 4, invariant 13).
const AMPLIFICATION: usize = 3;

/// Returns the message of clear and of sealed payloads.
pub(crate) fn whole(header: Header, clear: &[Payload], sealed: Vec<Payload>) -> Message {
    let payloads = [clear, &sealed].concat();
    Message { header, payloads }
}

/// Returns true if an answer may go to an address that is not verified.
pub(crate) const fn is_short_enough(request: &[u8], answer: &[u8]) -> bool {
    answer.len() <= AMPLIFICATION * request.len()
}

/// Returns true for an exchange that resumes a session by SKID3.
pub(crate) fn is_meant(header: &Header) -> bool {
    header.exchange == ExchangeType::SKID_RESUME
}

/// Returns the answer to an initiator that has not proved itself, or came too late.
pub(crate) fn failure() -> Payload {
    notify(NotifyType::AUTHENTICATION_FAILED, Vec::new())
}
