//! Is the peer still there? (RFC 7296 section 2.4). After a time without a sign of life, an empty
//! INFORMATIONAL is sent; without an answer to it the SA is given up. ESP that arrives is a sign
//! of life as good as any, so asking costs nothing while traffic flows. A request that is under way by
//! then is as good a question: it gets as many more attempts as that one would, and no more.

use model::{Deadline, Instant};
use std::time::Duration;

/// When to ask a peer that was last heard then, if ever.
pub(crate) fn deadline(heard: Instant, patience: Duration) -> Option<Deadline> {
    (!patience.is_zero()).then(|| Deadline {
        at: heard + patience,
        reason: "the peer is asked whether it is there",
    })
}
