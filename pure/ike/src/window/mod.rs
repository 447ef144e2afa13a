//! Message IDs and windows (RFC 7296 sections 2.1 to 2.3).
//!
//! Either end numbers its own requests. It repeats each octet by octet with growing pauses until the
//! answer comes or it gives up, and never answers an answer. The other end keeps its last answers and
//! gives them again when the same request comes again; it never repeats anything on its own, so that
//! a forged source address gains nothing.
//!
//! How many requests may be under way at once is for the other end to say, and one until it does:
//! "When the initiator needs to make a request X, it MUST wait until it has received responses to all
//! requests up through request X-N". So many answers that end keeps, and in whatever order so many
//! requests may come to it.
//!
//! A message in fragments (RFC 7383) is one message: all of them are repeated, and the peer knows it
//! again by the first. Since an answer may then be longer than what asks for it again, nobody at an
//! address that was not answered before gets more octets than came from there.

mod requests;
mod responses;

pub(crate) use requests::{Due, Requests};
pub(crate) use responses::{Arrival, Responses};
