//! An initiator's first message at the responder, in either exchange that begins an IKE SA.

use crate::counters::DropReason;
use model::Instant;
use wire::ike::NotifyType;

/// Conditions for answering an unauthenticated initiator.
#[derive(Clone, Copy)]
pub(crate) struct HalfOpenTerms {
    /// True if its source address is verified.
    pub(crate) paid: bool,
    /// Time by which it has to authenticate.
    pub(crate) until: Instant,
}

/// Reason for which a first message is not answered with a public value.
pub(crate) enum Rejected {
    /// The public value is invalid.
    BadValue,
    /// The message is dropped and counted.
    Dropped(DropReason),
    /// An unprotected notify answers the message.
    Answered(NotifyType, Vec<u8>),
    /// The answer would be longer than the request, whose source address is not verified.
    Unpaid,
}
