//! What a data path has observed of its SAs, for control to read.

use crate::level::LevelStatus;
use crate::link::Link;
use crate::pace::Pace;
use crate::report::SaTraffic;
use model::{Instant, Stray};

/// What a data path has observed of an SA. By default, of one that does not exist: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The time of the last new authentic packet, so that liveness checks cost nothing while
    /// traffic flows (RFC 7296 section 2.4).
    pub heard: Option<Instant>,
    /// The times of the first and the last datagram sealed since a packet arrived.
    pub unanswered: Option<[Instant; 2]>,
    /// The length of the longest datagram sealed since a packet arrived.
    pub longest_unanswered: Option<usize>,
    /// The path of the newest packet, if the SA sends elsewhere.
    pub stray: Option<Stray>,
    /// True if datagrams are padded to hide their lengths.
    pub hides_lengths: bool,
    /// The traffic of the SA.
    pub traffic: SaTraffic,
    /// Earlier samples of the same, which give its rates.
    pub pace: Pace,
    /// The state of unencrypted traffic, if a grant allows any.
    pub level: Option<LevelStatus>,
    /// The quality of the path on which packets arrive, if it affects the level.
    pub link: Option<Link>,
}
