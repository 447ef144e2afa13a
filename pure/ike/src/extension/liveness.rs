//! Is the peer still there? (RFC 7296 section 2.4). After a time without a sign of life, an empty
//! INFORMATIONAL is sent; without an answer to it the SA is given up. ESP that arrives is a sign
//! of life as good as any, so asking costs nothing while traffic flows. A request that is under way by
//! then is as good a question: it gets as many more attempts as that one would, and no more.
//!
//! A responder is authenticated to the initiator only when that has taken the answer to IKE_AUTH. "If authentication has
//! succeeded in the IKE_AUTH exchange, the IKE SA is established" (section 2.21.2), and the initiator may send at once, so
//! the responder's SA is up as soon as it answers. An initiator that sends nothing then is asked soon.

use model::{Deadline, Instant};
use std::time::Duration;

/// Silence after which an initiator is asked that has sent nothing since it was answered.
pub(crate) const CONFIRMATION: Duration = Duration::from_secs(5);

/// When to ask a peer that was last heard then, if ever.
pub(crate) fn deadline(heard: Instant, patience: Duration) -> Option<Deadline> {
    (!patience.is_zero()).then(|| Deadline {
        at: heard + patience,
        reason: "the peer is asked whether it is there",
    })
}
