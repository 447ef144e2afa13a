//! Cover traffic against traffic analysis (RFC 4303 section 2.6).
//!
//! If no packet was sealed for a peer during an interval, a dummy packet is sent that is
//! indistinguishable from all others. An observer therefore sees no pauses of the interval's length
//! or longer. More than one packet in an interval reveals real traffic.
//!
//! Only the clock counts. Intervals that passed while the host was suspended are not made up for.

use crate::Node;
use esp::{Packet, Sink};
use model::{Deadline, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// State of cover traffic, by peer name.
#[derive(Default)]
pub(crate) struct Cover {
    intervals: BTreeMap<String, Duration>,
    /// End of the current interval of each peer that has a tunnel.
    ends: BTreeMap<String, Instant>,
    /// Peers whose interval has ended.
    ended: BTreeSet<String>,
}

impl Cover {
    /// Replaces the intervals. `up` lists the peers that have a tunnel.
    pub(crate) fn set<'p>(
        &mut self,
        intervals: BTreeMap<String, Duration>,
        up: impl Iterator<Item = &'p str>,
        now: Instant,
    ) {
        *self = Self {
            intervals,
            ..Self::default()
        };
        up.for_each(|peer| self.begin(peer, now));
    }

    /// Starts the interval of a peer that has a tunnel.
    pub(crate) fn begin(&mut self, peer: &str, now: Instant) {
        if let Some(interval) = self.intervals.get(peer) {
            let end = now + *interval;
            self.ends.entry(peer.to_owned()).or_insert(end);
        }
    }

    /// Stops the interval of a peer that has no tunnel any more.
    pub(crate) fn end(&mut self, peer: &str) {
        self.ends.remove(peer);
        self.ended.remove(peer);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for (peer, end) in self.ends.iter_mut().filter(|(_, end)| **end <= now) {
            let interval = self.intervals.get(peer).copied().unwrap_or_default();
            *end = (*end + interval).max(now + interval / 2);
            self.ended.insert(peer.clone());
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.ends.values().min().copied()?;
        let reason = "send cover traffic";
        Some(Deadline { at, reason })
    }
}

impl Node {
    /// Sends the dummy packets that are due, using `packet` as the buffer. Call after each
    /// [`Node::handle_timeout`].
    pub fn cover(&mut self, packet: &mut Packet, sink: &mut impl Sink) {
        while let Some(peer) = self.cover.ended.pop_first() {
            if let Some(path) = self.workers.cover(&peer, packet) {
                sink.transmit(packet, path);
            }
        }
    }
}
