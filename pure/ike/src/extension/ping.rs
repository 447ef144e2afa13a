//! The counters of pings. A ping is a dummy packet of a child SA, which the other end answers by
//! another one (`docs/protocol.md` section 5.17). If one is lost, the counters of the other end
//! tell where: an INFORMATIONAL exchange asks for them, before the first ping and after the last.
//!
//! ```text
//!  HDR, SK { N(PING_COUNTS) }  -->
//!                              <--  HDR, SK { N(PING_COUNTS, received, answered, withheld) }
//! ```
//!
//! Only peers that sent our vendor ID are asked. To others, the request is a liveness check.

use crate::exchange::{find_notify, notify};
use wire::ike::{Message, NotifyType, Payload, PingCounts};

/// Returns the question for the peer's counters.
pub(crate) const fn question() -> Payload {
    notify(NotifyType::PING_COUNTS, Vec::new())
}

/// Returns true if a request asks for our counters.
pub(crate) fn is_asked(request: &Message) -> bool {
    find_notify(request, NotifyType::PING_COUNTS).is_some()
}

/// Returns our counters.
pub(crate) fn counts(counts: &PingCounts) -> Payload {
    notify(NotifyType::PING_COUNTS, counts.encode())
}

/// Returns the peer's counters, if the response has them.
pub(crate) fn told(response: &Message) -> Option<PingCounts> {
    let notify = find_notify(response, NotifyType::PING_COUNTS)?;
    PingCounts::decode(&notify.data).ok()
}
