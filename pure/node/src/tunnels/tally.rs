//! Counts that outlive the SAs that they are about, for metrics: the traffic of each peer, its
//! rekeys, and how long set-ups took.

use esp::SaTraffic;
use model::PeerId;
use rustc_hash::FxHashMap;
use std::time::Duration;

/// Upper bounds of the durations that [`SetUps::within`] counts.
pub const SET_UP_BOUNDS: [Duration; 9] = [
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2500),
    Duration::from_secs(10),
];

/// Counts of all peers. A peer that was never up has none.
#[derive(Default)]
pub(crate) struct Tally {
    peers: FxHashMap<PeerId, PeerTally>,
    set_ups: SetUps,
}

/// Counts of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerTally {
    /// Traffic of the child SAs that are gone.
    pub gone: SaTraffic,
    /// Rekeys of the IKE SA and of child SAs.
    pub rekeys: u64,
    /// Moves to another path without a pause.
    pub hand_overs: u64,
}

/// Durations of set-ups, from the first message of an IKE SA until it is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetUps {
    /// Number of set-ups.
    pub count: u64,
    /// Sum of the durations.
    pub total: Duration,
    /// Number of set-ups that took no longer than each of [`SET_UP_BOUNDS`].
    pub within: [u64; SET_UP_BOUNDS.len()],
}

impl Tally {
    /// Counts an IKE SA that came up.
    pub fn set_up(&mut self, took: Duration) {
        self.set_ups.count += 1;
        self.set_ups.total += took;
        for (count, bound) in self.set_ups.within.iter_mut().zip(SET_UP_BOUNDS) {
            *count += u64::from(took <= bound);
        }
    }

    pub fn rekeyed(&mut self, peer: PeerId) {
        self.peers.entry(peer).or_default().rekeys += 1;
    }

    pub fn handed_over(&mut self, peer: PeerId) {
        self.peers.entry(peer).or_default().hand_overs += 1;
    }

    /// Adds the traffic of a child SA that is about to be removed.
    pub fn settle(&mut self, peer: PeerId, traffic: SaTraffic) {
        self.peers.entry(peer).or_default().gone.add(traffic);
    }

    /// Removes the counts of every peer that `keeps` rejects.
    pub fn retain(&mut self, keeps: impl Fn(PeerId) -> bool) {
        self.peers.retain(|peer, _| keeps(*peer));
    }

    /// Removes the counts of a peer that is no more.
    pub fn forget(&mut self, peer: PeerId) {
        self.peers.remove(&peer);
    }

    pub fn of(&self, peer: PeerId) -> PeerTally {
        self.peers.get(&peer).copied().unwrap_or_default()
    }

    pub const fn set_ups(&self) -> &SetUps {
        &self.set_ups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_up_is_within_every_bound_that_it_does_not_exceed() {
        let mut tally = Tally::default();
        for millis in [10, 11, 900, 60_000] {
            tally.set_up(Duration::from_millis(millis));
        }
        let set_ups = tally.set_ups();
        assert_eq!(set_ups.within, [1, 2, 2, 2, 2, 2, 3, 3, 3]);
        assert_eq!((set_ups.count, set_ups.total.as_millis()), (4, 60_921));
    }

    #[test]
    fn a_peer_that_is_gone_is_counted_anew_if_it_returns() {
        let mut tally = Tally::default();
        tally.rekeyed(PeerId(1));
        tally.rekeyed(PeerId(2));
        tally.retain(|peer| peer == PeerId(2));
        assert_eq!([1, 2].map(|id| tally.of(PeerId(id)).rekeys), [0, 1]);
        tally.forget(PeerId(2));
        assert_eq!(tally.of(PeerId(2)), PeerTally::default());
    }
}
