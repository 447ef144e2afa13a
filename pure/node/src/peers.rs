//! Which peers should be up, and when to try again.
//!
//! A peer that is wanted and has an address is initiated at once; after a failure it is tried
//! again with exponential back-off from one second to one minute, for as long as it is wanted.

use model::{Deadline, IkeSaId, Instant};
use std::collections::BTreeMap;
use std::time::Duration;

const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);

/// The wishes and their state, by name of the peer's table.
#[derive(Default)]
pub(crate) struct Peers(BTreeMap<String, Entry>);

/// One peer's state.
#[derive(Default)]
pub(crate) struct Entry {
    /// We can initiate: its address is known.
    pub reachable: bool,
    /// It should be up.
    pub wanted: bool,
    /// The IKE SA in progress or established.
    pub sa: Option<IkeSaId>,
    /// Since when the IKE SA is established.
    pub up_since: Option<Instant>,
    /// The newest refusal or failure, kept for `strata status` until the next success.
    pub refusal: Option<(Instant, String)>,
    retry_at: Option<Instant>,
    failures: u32,
}

impl Peers {
    /// Enters a peer, or learns whether it can be reached now.
    pub fn know(&mut self, name: &str, reachable: bool) {
        self.0.entry(name.to_owned()).or_default().reachable = reachable;
    }

    /// Forgets every peer that is not among these.
    pub fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| keeps(name));
    }

    /// A peer's IKE SA is on its way out because its terms changed: it has none any more, and is
    /// initiated at once if it is wanted.
    pub fn renew(&mut self, name: &str, now: Instant) {
        if let Some(entry) = self.0.get_mut(name) {
            let (reachable, wanted) = (entry.reachable, entry.wanted);
            *entry = Entry {
                reachable,
                wanted,
                retry_at: (wanted && reachable).then_some(now),
                ..Entry::default()
            };
        }
    }

    /// A peer is not to be brought back when it goes; if it is up it stays.
    pub fn release(&mut self, name: &str) {
        if let Some(entry) = self.0.get_mut(name) {
            (entry.wanted, entry.retry_at) = (false, None);
        }
    }

    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &Entry)> {
        self.0.iter()
    }

    /// Marks a peer as wanted or not. `None`: no such peer.
    pub fn want(&mut self, name: &str, wanted: bool, now: Instant) -> Option<()> {
        let entry = self.0.get_mut(name)?;
        entry.wanted = wanted;
        entry.failures = 0;
        entry.retry_at = (wanted && entry.reachable && entry.sa.is_none()).then_some(now);
        Some(())
    }

    /// Peers to initiate now.
    pub fn due(&mut self, now: Instant) -> Vec<String> {
        let due = |entry: &Entry| entry.retry_at.is_some_and(|at| at <= now);
        let names = self.0.iter_mut().filter(|(_, entry)| due(entry));
        names
            .map(|(name, entry)| (entry.retry_at = None, name.clone()).1)
            .collect()
    }

    /// An initiation was started.
    pub fn started(&mut self, name: &str, sa: IkeSaId) {
        if let Some(entry) = self.0.get_mut(name) {
            entry.sa = Some(sa);
        }
    }

    /// An IKE SA is established, by either side; it replaces an older one.
    pub fn up(&mut self, name: &str, sa: IkeSaId, now: Instant) {
        if let Some(entry) = self.0.get_mut(name) {
            *entry = Entry {
                reachable: entry.reachable,
                wanted: entry.wanted,
                sa: Some(sa),
                up_since: Some(now),
                ..Entry::default()
            };
        }
    }

    /// An IKE SA ended. Says nothing about a newer one.
    pub fn down(&mut self, name: &str, sa: Option<IkeSaId>, why: String, now: Instant) {
        let Some(entry) = self
            .0
            .get_mut(name)
            .filter(|entry| sa.is_none() || entry.sa == sa)
        else {
            return;
        };
        entry.sa = None;
        entry.up_since = None;
        entry.refusal = Some((now, why));
        if entry.wanted && entry.reachable {
            let delay = FIRST_RETRY
                .saturating_mul(1 << entry.failures.min(6))
                .min(LAST_RETRY);
            entry.failures = entry.failures.saturating_add(1);
            entry.retry_at = Some(now + delay);
        }
    }

    /// A refusal that did not end an IKE SA of ours (we refused, or a child was refused).
    pub fn refused(&mut self, name: &str, why: String, now: Instant) {
        if let Some(entry) = self.0.get_mut(name) {
            entry.refusal = Some((now, why));
        }
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.0.values().filter_map(|entry| entry.retry_at).min()?;
        Some(Deadline {
            at,
            reason: "initiate a peer",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_peer_is_tried_again_with_exponential_back_off_up_to_a_minute() {
        let mut peers = Peers::default();
        peers.know("gw", true);
        let mut now = Instant::ZERO;
        assert_eq!(peers.want("gw", true, now), Some(()));
        let mut waits = Vec::new();
        for attempt in 0..9 {
            let at = peers.poll_timeout().expect("a retry is planned").at;
            waits.push((at - now).as_secs());
            now = at;
            assert_eq!(peers.due(now), ["gw"]);
            peers.started("gw", IkeSaId(attempt));
            peers.down("gw", Some(IkeSaId(attempt)), "no answer".to_owned(), now);
        }
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_end_of_an_old_ike_sa_does_not_touch_the_one_that_replaced_it() {
        let mut peers = Peers::default();
        peers.know("alice", false);
        peers.up("alice", IkeSaId(2), Instant::ZERO);
        peers.down(
            "alice",
            Some(IkeSaId(1)),
            "replaced".to_owned(),
            Instant::ZERO,
        );
        assert_eq!(
            peers.get("alice").and_then(|entry| entry.sa),
            Some(IkeSaId(2))
        );
    }
}
