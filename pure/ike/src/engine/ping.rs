//! Counters of pings (`extension/ping.rs`).

use super::Engine;
use crate::task::ping;
use model::{IkeSaId, Instant};
use wire::ike::PingCounts;

/// Commands.
impl Engine {
    /// Asks the peer of an IKE SA for its counters of pings. A peer without our vendor ID is asked
    /// for a sign of life. Ends in [`crate::Event::PingCounts`] with the number of the question, if
    /// the peer answers.
    pub fn ask_ping_counts(&mut self, sa: IkeSaId, question: u64, now: Instant) {
        self.with_established(sa, now, |state, turn| ping::ask(state, question, turn));
    }

    /// Adds to our counters, which the peer of an IKE SA may ask for.
    pub fn note_pings(&mut self, sa: IkeSaId, more: PingCounts) {
        let up = self.sas.get_mut(&sa).and_then(|sa| sa.established_mut());
        if let Some((_, up)) = up {
            up.pings.received += more.received;
            up.pings.answered += more.answered;
            up.pings.withheld += more.withheld;
        }
    }
}
