//! Padding of first messages, so that they are no shorter than their answers.
//!
//! Until an initiator's address is verified, a responder that sends more than it received amplifies
//! attacks with forged source addresses. A response to IKE_SA_INIT has one proposal where the
//! request has several, but it also contains payloads that only responders send: support for
//! childless SAs, and the trusted CAs. An initiator with a short offer therefore adds meaningless
//! octets, as QUIC does (RFC 9000 section 8.1). An unknown vendor ID is the one payload that every
//! responder skips and that needs no number (RFC 7296 section 3.12: "Unfamiliar Vendor IDs MUST be
//! ignored"). An initiator with a shorter request has to return a cookie before it gets the longer
//! answer.

use wire::ike::Payload;

/// Octets for the hashes of eight CAs, and for other payloads of responses.
const LENGTH: usize = 192;

/// Returns the padding that an initiator adds to IKE_SA_INIT.
pub(crate) fn payload() -> Payload {
    Payload::VendorId(vec![0; LENGTH])
}

/// Returns the padding of an otherwise empty request, so that INVALID_IKE_SPI with a token
/// (`extension/crash.rs`) is no longer.
pub(crate) fn of_check() -> Payload {
    Payload::VendorId(vec![0; 8])
}

/// Returns true if an answer may go to an unverified address.
pub(crate) const fn is_enough(request: &[u8], answer: &[u8]) -> bool {
    answer.len() <= request.len()
}
