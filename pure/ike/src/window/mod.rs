//! Message IDs and windows (RFC 7296 sections 2.1 to 2.3).
//!
//! Each end numbers its own requests. It retransmits each one unchanged with growing delays until
//! the response arrives or it gives up, and never answers a response. The other end keeps its last
//! responses and sends them again on a retransmission of the same request. It never retransmits on
//! its own, so a forged source address gains nothing. The delays follow the measured round trip of
//! the path. The time after which a request is given up does not: a slow path, or one that loses
//! much, has as much of it as any other.
//!
//! The other end determines how many requests may be outstanding at once, and one is the default:
//! "When the initiator needs to make a request X, it MUST wait until it has received responses to
//! all requests up through request X-N". That end keeps as many responses, and accepts as many
//! requests in any order.
//!
//! A message in fragments (RFC 7383) is one message. All fragments are retransmitted, and the first
//! one identifies a retransmission. A response may be longer than the fragment that causes its
//! retransmission. Therefore an address that did not get the first response receives no more octets
//! than it sent.

mod requests;
mod responses;
mod timeout;

pub(crate) use requests::{Due, Requests};
pub(crate) use responses::{Arrival, Responses};
