//! `strata ping`: packets through a tunnel and back, and where they were lost.

use serde::{Deserialize, Serialize};

/// The outcome of some pings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// Name of the peer's table.
    pub name: String,
    /// True if the peer is Strata. Others do not answer pings, and are sent none.
    pub strata: bool,
    /// Pings, also those that could not be sent.
    pub pings: u64,
    /// Pings that were sent.
    pub sent: u64,
    /// Pings that the peer received, by its own counters; `None` if it was not asked, as none was
    /// lost, or did not tell.
    pub received: Option<u64>,
    /// Pings that the peer answered, by its own counters.
    pub answered: Option<u64>,
    /// Answers that arrived here.
    pub returned: u64,
    /// Times of pings and their answers; `None` without any answer.
    pub round_trip: Option<RoundTrip>,
    /// Time of an IKE exchange before the pings, in microseconds; `None` if it was not answered.
    pub ike_micros: Option<u64>,
    /// Time since the last ESP packet of the peer, in seconds.
    pub heard_seconds: Option<u64>,
    /// Places at which pings or their answers were lost, in the order in which they pass them.
    pub lost: Vec<Loss>,
}

impl Ping {
    /// Returns true if all that could be expected has arrived.
    pub fn is_well(&self) -> bool {
        match self.strata {
            true => self.pings > 0 && self.returned == self.pings,
            false => self.ike_micros.is_some(),
        }
    }
}

/// Times of pings and their answers, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// The least.
    pub min_micros: u64,
    /// The mean.
    pub mean_micros: u64,
    /// The greatest.
    pub max_micros: u64,
}

/// Pings or answers that were lost at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The place.
    pub place: LossPlace,
    /// Number of packets.
    pub packets: u64,
    /// Human-readable reason.
    pub why: String,
    /// Proposed remedy.
    pub fix: String,
}

/// A place at which a ping or its answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossPlace {
    /// This host has not sent the ping.
    NotSent,
    /// The ping was sent, and has not arrived at the peer.
    NotReceived,
    /// The ping arrived at the peer, which has not answered it.
    NotAnswered,
    /// The answer was sent, and has not arrived here.
    AnswerLost,
    /// One of the two ways: the peer did not tell its counters.
    Unknown,
}
