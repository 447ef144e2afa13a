//! A request of a mobile node that waits for its reply, and is repeated (RFC 5944 section 3.6.3).

use super::{Attachment, Station};
use model::Instant;
use std::time::Duration;
use wire::mobile_ip::Request;

/// "The minimum time between Registration Requests MUST NOT be less than 1 second."
pub(super) const SPACING: Duration = Duration::from_secs(1);
/// So often it is sent before the agent is taken for silent: for seven seconds where another is heard,
/// and for half a minute where none is.
const TRIES: [u32; 2] = [3, 5];

/// A request under way.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) at: Attachment,
    /// The station that was asked last: the reply comes from there.
    pub(super) station: Option<Station>,
    /// As it was sent last.
    pub(super) request: Request,
    pub(super) octets: Vec<u8>,
    /// For whom there is a note in it.
    pub(super) noted: Option<Attachment>,
    /// What is in it for the agent.
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

    /// It is sent again. "Each successive retransmission timeout period SHOULD be at least twice the
    /// previous period".
    pub(super) fn repeat(&mut self, now: Instant) {
        self.sent = now;
        self.next = now + SPACING * 2_u32.pow(self.tries.min(6));
        self.tries += 1;
    }

    /// How often it was sent before the last time, and not answered.
    pub(super) const fn unanswered(&self) -> u32 {
        self.tries - 1
    }

    pub(super) const fn is_hopeless(&self, there_are_others: bool) -> bool {
        self.tries >= TRIES[if there_are_others { 0 } else { 1 }]
    }
}
