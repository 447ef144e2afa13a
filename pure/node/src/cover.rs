//! Silence that is covered (RFC 4303 section 2.6): where nothing was sealed for a peer in an interval, a packet
//! is that looks like all others and carries nothing. So who is on the way sees no pauses of that length or
//! longer, and more than one packet in an interval is a peer that says more.
//!
//! It goes by the clock alone, and an interval that was slept through is not made up for.

use crate::Node;
use esp::{Packet, Sink};
use model::{Deadline, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Who is covered, by names.
#[derive(Default)]
pub(crate) struct Cover {
    intervals: BTreeMap<String, Duration>,
    /// When the interval ends of those that have a tunnel.
    ends: BTreeMap<String, Instant>,
    /// Those whose interval has ended.
    ended: BTreeSet<String>,
}

impl Cover {
    /// Other intervals from now on, for those of these peers that have a tunnel.
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

    /// A peer has a tunnel.
    pub(crate) fn begin(&mut self, peer: &str, now: Instant) {
        if let Some(interval) = self.intervals.get(peer) {
            let end = now + *interval;
            self.ends.entry(peer.to_owned()).or_insert(end);
        }
    }

    /// It has none any more.
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
        let reason = "cover silence";
        Some(Deadline { at, reason })
    }
}

impl Node {
    /// Covers what silence there was, with packets that are made in this one's room. To be called after
    /// each [`Node::handle_timeout`].
    pub fn cover(&mut self, packet: &mut Packet, sink: &mut impl Sink) {
        while let Some(peer) = self.cover.ended.pop_first() {
            if let Some(path) = self.workers.cover(&peer, packet) {
                sink.transmit(packet, path);
            }
        }
    }
}
