//! Neighbours on a link.
//!
//! A foreign agent keeps the station of a request with the request, and the answer goes there. The station becomes the
//! visitor's when the home agent accepts that very request. A mobile node keeps the station that it asks, which becomes its
//! agent's with the authentic reply that comes from there. Nothing else that comes in the name of either moves it.

/// The link-layer address of a neighbour, as the link showed it. Nothing is read from it here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Station(pub [u8; 6]);
