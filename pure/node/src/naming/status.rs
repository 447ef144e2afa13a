//! What is told of the name of a peer.

use super::lookup::{Found, NotFound};
use model::{IkeSaId, Instant};
use std::net::IpAddr;

/// The state of a name, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameStatus {
    /// The name.
    pub name: String,
    /// True while a lookup is under way.
    pub asking: bool,
    /// Time and outcome of the last lookup.
    pub last: Option<(Instant, Result<Found, NotFound>)>,
    /// The addresses tried since the last attempt began, the newest last.
    pub tried: Vec<Tried>,
    /// The address at which the peer was last up.
    pub good: Option<IpAddr>,
}

/// An address that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The address.
    pub address: IpAddr,
    /// Time of the attempt.
    pub at: Instant,
    /// The IKE SA of the attempt.
    pub sa: IkeSaId,
}
