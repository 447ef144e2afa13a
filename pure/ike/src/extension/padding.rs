//! First messages that are not shorter than their answers.
//!
//! Until an initiator's address is proved, a responder that sends more than came to it helps whoever
//! forges addresses to flood their owners. An answer to IKE_SA_INIT has one proposal where the request
//! has several, but also what only responders say: that they know SAs without children, and what CAs
//! they trust. An initiator that offers little adds octets that say nothing, as QUIC's do (RFC 9000
//! section 8.1); the one payload that everybody skips and that needs no number is an unknown vendor ID
//! (RFC 7296 section 3.12: "Unfamiliar Vendor IDs MUST be ignored"). Whoever sends a shorter request is
//! asked for a cookie before it gets the longer answer.

use wire::ike::Payload;

/// Room for the hashes of eight CAs, and for what else only answers have.
const LENGTH: usize = 192;

/// What an initiator adds to IKE_SA_INIT.
pub(crate) fn payload() -> Payload {
    Payload::VendorId(vec![0; LENGTH])
}

/// Whether an answer may go to an address that is not proved.
pub(crate) const fn is_enough(request: &[u8], answer: &[u8]) -> bool {
    answer.len() <= request.len()
}
