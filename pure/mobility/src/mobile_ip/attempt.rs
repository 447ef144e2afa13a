//! A request of a mobile node that waits for its reply, and its retransmissions (RFC 5944 section
//! 3.6.3).

use super::{Attachment, Station};
use model::Instant;
use std::time::Duration;
use wire::mobile_ip::Request;

/// "The minimum time between Registration Requests MUST NOT be less than 1 second."
pub(super) const SPACING: Duration = Duration::from_secs(1);
/// Transmissions before an agent is considered silent: seven seconds if another agent is heard,
/// half a minute otherwise.
const TRIES: [u32; 2] = [3, 5];

/// A pending request.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) at: Attachment,
    /// The station that the request was last sent to; the reply must come from there.
    pub(super) station: Option<Station>,
    /// The request as last sent.
    pub(super) request: Request,
    pub(super) octets: Vec<u8>,
    /// The agent that the request carries a note for.
    pub(super) noted: Option<Attachment>,
    /// Enclosures for the agent in this request.
    pub(super) enclosed: Vec<Vec<u8>>,
    pub(super) sent: Instant,
    pub(super) next: Instant,
    tries: u32,
}

impl Attempt {
    pub(super) fn new(
        at: Attachment,
        station: Option<Station>,
        request: Request,
        (octets, noted): (Vec<u8>, Option<Attachment>),
        now: Instant,
    ) -> Self {
        Self {
            at,
            station,
            request,
            octets,
            noted,
            enclosed: Vec::new(),
            sent: now,
            next: now + SPACING,
            tries: 1,
        }
    }

    /// Records a retransmission. "Each successive retransmission timeout period SHOULD be at least
    /// twice the previous period".
    pub(super) fn repeat(&mut self, now: Instant) {
        self.sent = now;
        self.next = now + SPACING * 2_u32.pow(self.tries.min(6));
        self.tries += 1;
    }

    /// Returns the number of earlier transmissions, all unanswered.
    pub(super) const fn unanswered(&self) -> u32 {
        self.tries - 1
    }

    pub(super) const fn is_hopeless(&self, there_are_others: bool) -> bool {
        self.tries >= TRIES[if there_are_others { 0 } else { 1 }]
    }
}
