//! Is the peer still there? (RFC 7296 section 2.4). After a time without a sign of life, an empty
//! INFORMATIONAL is sent; without an answer to it the SA is given up. ESP that arrives is a sign
//! of life as good as any, so asking costs nothing while traffic flows.

use crate::config::Timers;
use model::{Deadline, Instant};

/// When to ask, if the peer was last heard then.
pub(crate) fn deadline(heard: Instant, timers: &Timers) -> Option<Deadline> {
    (!timers.liveness.is_zero()).then(|| Deadline {
        at: heard + timers.liveness,
        reason: "the peer is asked whether it is there",
    })
}
