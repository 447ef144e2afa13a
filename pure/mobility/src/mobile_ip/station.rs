//! Neighbours on a link.
//!
//! A foreign agent stores the sender's station with each request, and replies to that station. The
//! visitor gets this station when the home agent accepts the same request. A mobile node stores the
//! station that it sends a request to; the agent gets this station when an authentic reply comes
//! from it. No other message changes the station of either.

/// The link-layer address of a neighbour, as the link reported it. Its octets are never interpreted
/// here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Station(pub [u8; 6]);
