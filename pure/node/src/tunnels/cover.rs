//! Cover traffic against traffic analysis (RFC 4303 section 2.6).
//!
//! If no packet was sealed for a peer during an interval, a dummy packet is sent that is
//! indistinguishable from all others. An observer therefore sees no pauses of the interval's length
//! or longer. More than one packet in an interval reveals real traffic.
//!
//! Only the clock counts. Intervals that passed while the host was suspended are not made up for.

use model::{Deadline, Instant, PeerId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// State of cover traffic.
#[derive(Default)]
pub(crate) struct Cover {
    intervals: BTreeMap<PeerId, Duration>,
    /// End of the current interval of each peer that has a tunnel.
    ends: BTreeMap<PeerId, Instant>,
    /// The same in the order of time.
    due: BTreeSet<(Instant, PeerId)>,
    /// Peers whose interval has ended.
    ended: BTreeSet<PeerId>,
}

impl Cover {
    /// Replaces the intervals. `up` lists the peers that have a tunnel.
    pub(crate) fn set(
        &mut self,
        intervals: BTreeMap<PeerId, Duration>,
        up: impl Iterator<Item = PeerId>,
        now: Instant,
    ) {
        *self = Self {
            intervals,
            ..Self::default()
        };
        up.for_each(|peer| self.begin(peer, now));
    }

    /// Sets the interval of one peer, which has no tunnel.
    pub(crate) fn set_interval(&mut self, peer: PeerId, interval: Option<Duration>) {
        match interval {
            Some(interval) => drop(self.intervals.insert(peer, interval)),
            None => drop(self.intervals.remove(&peer)),
        }
    }

    /// Starts the interval of a peer that has a tunnel.
    pub(crate) fn begin(&mut self, peer: PeerId, now: Instant) {
        if let Some(interval) = self.intervals.get(&peer) {
            let end = now + *interval;
            if !self.ends.contains_key(&peer) {
                self.set_end(peer, end);
            }
        }
    }

    /// Stops the interval of a peer that has no tunnel any more.
    pub(crate) fn end(&mut self, peer: PeerId) {
        if let Some(end) = self.ends.remove(&peer) {
            self.due.remove(&(end, peer));
        }
        self.ended.remove(&peer);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let due = self.due.iter().take_while(|(end, _)| *end <= now);
        for (end, peer) in due.copied().collect::<Vec<_>>() {
            let interval = self.intervals.get(&peer).copied().unwrap_or_default();
            self.ended.insert(peer);
            self.set_end(peer, (end + interval).max(now + interval / 2));
        }
    }

    /// Returns the next peer whose interval has ended.
    pub(crate) fn pop_ended(&mut self) -> Option<PeerId> {
        self.ended.pop_first()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let (at, _) = self.due.first()?;
        Some(Deadline {
            at: *at,
            reason: "send cover traffic",
        })
    }

    fn set_end(&mut self, peer: PeerId, end: Instant) {
        if let Some(before) = self.ends.insert(peer, end) {
            self.due.remove(&(before, peer));
        }
        self.due.insert((end, peer));
    }
}
