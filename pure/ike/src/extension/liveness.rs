//! Liveness check (RFC 7296 section 2.4). After a time without traffic from the peer, the engine
//! sends an empty INFORMATIONAL request. Without a response the SA is given up. Arriving ESP
//! packets count as traffic, so an active SA needs no checks. A request that is outstanding at that
//! time replaces the check: from then on, it gets as much time as the check would.

use model::{Deadline, Instant};
use std::time::Duration;

/// Returns the time of the next check for a peer that was last heard at `heard`, if checks are
/// enabled.
pub(crate) fn deadline(heard: Instant, patience: Duration) -> Option<Deadline> {
    (!patience.is_zero()).then(|| Deadline {
        at: heard + patience,
        reason: "check that the peer is alive",
    })
}
