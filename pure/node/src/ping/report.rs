//! What became of the pings of one command.

use std::time::Duration;

/// The reason why a ping was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPinged {
    /// No SA sends to the peer.
    NoSa,
    /// Our packets are padded to hide lengths, which a ping would show.
    Hidden,
    /// The system has not accepted the packet.
    Refused,
}

/// The outcome of all pings of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PingReport {
    /// True if the peer answers pings: it has our vendor ID.
    pub is_ours: bool,
    /// Pings, also those that were not sent.
    pub pings: u64,
    /// Pings that were not sent.
    pub not_sent: u64,
    /// The reason for the last of these.
    pub why_not_sent: Option<NotPinged>,
    /// Pings that arrived at the peer, if it told its counters before and after.
    pub received: Option<u64>,
    /// Answers that the peer sent, if it told its counters.
    pub answered: Option<u64>,
    /// Pings that the peer did not answer in order to hide lengths, if it told its counters.
    pub withheld: Option<u64>,
    /// Answers that arrived here.
    pub returned: u64,
    /// Times of pings and their answers.
    pub round_trips: Option<RoundTrips>,
    /// Time of an IKE exchange, if the peer answered the first question.
    pub ike: Option<Duration>,
}

/// Least, mean and greatest round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    /// The least.
    pub least: Duration,
    /// The mean.
    pub mean: Duration,
    /// The greatest.
    pub most: Duration,
}

impl RoundTrips {
    /// Returns those of some times, if there are any.
    pub(super) fn new(times: &[Duration]) -> Option<Self> {
        let count = u32::try_from(times.len()).ok().filter(|count| *count > 0)?;
        Some(Self {
            least: *times.iter().min()?,
            mean: times.iter().sum::<Duration>() / count,
            most: *times.iter().max()?,
        })
    }
}
