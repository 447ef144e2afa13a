//! The peers to keep up, and the times of the next attempts.
//!
//! A wanted peer with an address is initiated at once. After a failure it is retried with
//! exponential back-off from one second to one minute, for as long as it is wanted. A refusal
//! without proof is no failure: the attempt continues, and another one begins beside it after the
//! same pause. An index by time finds the next peer without visiting the others: there may be ten
//! thousand.

use crate::Cause;
use model::{Deadline, IkeSaId, Instant, PeerId};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);

/// Longest pause after a refusal: a setting may be changing at both ends.
const HURRIED_RETRY: Duration = Duration::from_secs(4);

/// Number of attempts with this pause: two minutes.
const HURRIED: u32 = 30;

/// A command named a peer that is not configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has no such peer")]
pub struct UnknownPeer;

/// State of the connection to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// There is no IKE SA.
    Down,
    /// An IKE SA is being established, or the address of the peer is looked for.
    Connecting,
    /// The IKE SA is established.
    Up,
}

/// Longest pause between attempts to initiate.
#[derive(Clone, Copy)]
pub(crate) enum Retry {
    /// A minute.
    Usual,
    /// [`HURRIED_RETRY`] for the first [`HURRIED`] attempts.
    Hurried,
}

impl From<&ike::DownReason> for Retry {
    fn from(why: &ike::DownReason) -> Self {
        match why.is_disagreement() {
            true => Self::Hurried,
            false => Self::Usual,
        }
    }
}

/// State of all peers, with an index by time.
#[derive(Default)]
pub(crate) struct Peers {
    entries: FxHashMap<PeerId, Entry>,
    /// Times of the next initiations, equal to `retry_at` of the entries.
    due: BTreeSet<(Instant, PeerId)>,
}

/// A refusal or failure, as `strata status` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Time of the refusal.
    pub at: Instant,
    /// Source of the refused message, if its sender is not authenticated.
    pub from: Option<SocketAddr>,
    /// The cause.
    pub why: Cause,
}

/// State of one peer.
#[derive(Default)]
pub(crate) struct Entry {
    /// True if we can initiate, because the address is known.
    pub reachable: bool,
    /// True if the peer should be up.
    pub wanted: bool,
    /// The IKE SA in progress or established.
    pub sa: Option<IkeSaId>,
    /// Time at which the IKE SA was established.
    pub up_since: Option<Instant>,
    /// The latest refusal or failure, kept for `strata status` until the next success. Boxed
    /// because most peers have none.
    pub refusal: Option<Box<Refused>>,
    retry_at: Option<Instant>,
    failures: u32,
}

impl Entry {
    /// Returns the state of the connection.
    pub const fn state(&self) -> PeerState {
        match (self.up_since, self.sa) {
            (Some(_), _) => PeerState::Up,
            (None, Some(_)) => PeerState::Connecting,
            (None, None) => PeerState::Down,
        }
    }

    /// Plans the next attempt, if the peer should be up.
    fn plan(&mut self, retry: Retry, now: Instant) {
        if self.wanted && self.reachable {
            let longest = match retry {
                Retry::Hurried if self.failures < HURRIED => HURRIED_RETRY,
                Retry::Hurried | Retry::Usual => LAST_RETRY,
            };
            let delay = FIRST_RETRY.saturating_mul(1 << self.failures.min(6));
            self.failures = self.failures.saturating_add(1);
            self.retry_at = Some(now + delay.min(longest));
        }
    }
}

impl Peers {
    /// Creates the state of these peers, each with true if we can initiate.
    pub fn new(peers: impl Iterator<Item = (PeerId, bool)>) -> Self {
        let entry = |reachable| Entry {
            reachable,
            ..Entry::default()
        };
        Self {
            entries: peers
                .map(|(peer, reachable)| (peer, entry(reachable)))
                .collect(),
            due: BTreeSet::new(),
        }
    }

    /// Adds a peer, or updates its reachability.
    pub fn know(&mut self, peer: PeerId, reachable: bool) {
        let entry = self.entries.entry(peer).or_default();
        entry.reachable = reachable;
    }

    /// Removes a peer, which is not initiated.
    pub fn forget(&mut self, peer: PeerId) {
        self.change(peer, |entry| entry.retry_at = None);
        self.entries.remove(&peer);
    }

    /// Removes every peer that `keeps` rejects.
    pub fn retain(&mut self, keeps: impl Fn(PeerId) -> bool) {
        self.entries.retain(|peer, _| keeps(*peer));
        self.due.retain(|(_, peer)| keeps(*peer));
    }

    /// Resets a peer whose IKE SA ends because its terms changed. A wanted peer is initiated at
    /// once.
    pub fn renew(&mut self, peer: PeerId, now: Instant) {
        self.change(peer, |entry| {
            let (reachable, wanted) = (entry.reachable, entry.wanted);
            *entry = Entry {
                reachable,
                wanted,
                retry_at: (wanted && reachable).then_some(now),
                ..Entry::default()
            };
        });
    }

    /// Stops keeping a peer up. If the peer is up it stays.
    pub fn release(&mut self, peer: PeerId) {
        self.change(peer, |entry| {
            (entry.wanted, entry.retry_at) = (false, None);
        });
    }

    pub fn get(&self, peer: PeerId) -> Option<&Entry> {
        self.entries.get(&peer)
    }

    /// Returns the state of all peers, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Marks a peer as wanted or not. Returns `None` if there is no such peer.
    pub fn want(&mut self, peer: PeerId, wanted: bool, now: Instant) -> Option<()> {
        self.change(peer, |entry| {
            entry.wanted = wanted;
            entry.failures = 0;
            entry.retry_at = (wanted && entry.reachable && entry.sa.is_none()).then_some(now);
        })
    }

    /// Returns the peers to initiate now.
    pub fn due(&mut self, now: Instant) -> Vec<PeerId> {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        let peers: Vec<_> = due.map(|(_, peer)| *peer).collect();
        for peer in &peers {
            self.change(*peer, |entry| entry.retry_at = None);
        }
        peers
    }

    /// Has a peer initiated at once that waits for its next attempt.
    pub fn hasten(&mut self, peer: PeerId, now: Instant) {
        self.change(peer, |entry| {
            entry.retry_at = entry.retry_at.map(|at| at.min(now));
        });
    }

    /// Plans another attempt beside the one in progress, which was refused without proof.
    pub fn retry_beside(&mut self, peer: PeerId, now: Instant) {
        self.change(peer, |entry| {
            if entry.up_since.is_none() && entry.retry_at.is_none() {
                entry.plan(Retry::Hurried, now);
            }
        });
    }

    /// Records that an initiation was started.
    pub fn started(&mut self, peer: PeerId, sa: IkeSaId) {
        self.change(peer, |entry| entry.sa = Some(sa));
    }

    /// Records that either side established an IKE SA, which replaces an older one.
    pub fn up(&mut self, peer: PeerId, sa: IkeSaId, now: Instant) {
        self.change(peer, |entry| {
            *entry = Entry {
                reachable: entry.reachable,
                wanted: entry.wanted,
                sa: Some(sa),
                up_since: Some(now),
                ..Entry::default()
            };
        });
    }

    /// Records that an IKE SA ended. Has no effect if a newer one exists.
    pub fn down(
        &mut self,
        peer: PeerId,
        sa: Option<IkeSaId>,
        why: Cause,
        retry: Retry,
        now: Instant,
    ) {
        self.change(peer, |entry| {
            if sa.is_some() && entry.sa != sa {
                return;
            }
            entry.sa = None;
            entry.up_since = None;
            entry.refusal = Some(Box::new(Refused {
                at: now,
                from: None,
                why,
            }));
            entry.plan(retry, now);
        });
    }

    /// Records a refusal that did not end an IKE SA of ours: we refused, or a child was refused.
    pub fn refused(&mut self, peer: PeerId, refused: Refused) {
        self.change(peer, |entry| entry.refusal = Some(Box::new(refused)));
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let (at, _) = self.due.first()?;
        Some(Deadline {
            at: *at,
            reason: "initiate a peer",
        })
    }

    /// Changes the entry of a peer and keeps the index by time consistent. Returns `None` if there
    /// is no such peer.
    fn change(&mut self, peer: PeerId, change: impl FnOnce(&mut Entry)) -> Option<()> {
        let entry = self.entries.get_mut(&peer)?;
        let before = entry.retry_at;
        change(entry);
        if before != entry.retry_at {
            if let Some(before) = before {
                self.due.remove(&(before, peer));
            }
            self.due.extend(entry.retry_at.map(|at| (at, peer)));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::KeyKind;
    use ike::{BadProof, DownReason, NotVerified};
    use wire::ike::NotifyType;

    const GW: PeerId = PeerId(0);

    const OTHER: PeerId = PeerId(1);

    /// Returns the seconds before each attempt to initiate with a peer that never gets up.
    fn waits(attempts: u64, retry: Retry) -> Vec<u64> {
        let mut peers = Peers::default();
        peers.know(GW, true);
        let mut now = Instant::ZERO;
        assert_eq!(peers.want(GW, true, now), Some(()));
        let mut waits = Vec::new();
        for attempt in 0..attempts {
            let at = peers.poll_timeout().expect("a retry is planned").at;
            waits.push((at - now).as_secs());
            now = at;
            assert_eq!(peers.due(now), [GW]);
            let sa = IkeSaId(attempt);
            peers.started(GW, sa);
            peers.down(GW, Some(sa), "no answer".to_owned().into(), retry, now);
        }
        waits
    }

    #[test]
    fn a_wanted_peer_is_tried_again_with_exponential_back_off_up_to_a_minute() {
        assert_eq!(waits(9, Retry::Usual), [0, 1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn while_settings_may_be_being_changed_a_peer_is_tried_every_few_seconds() {
        let ours: model::Identity = "alice@example.net".parse().expect("an identity");
        let refused = |notify| DownReason::ChildRefused { notify };
        let reasons = [
            DownReason::AuthenticationRefused { ours: ours.clone() },
            DownReason::CertificateRefused {
                ours: ours.clone(),
                why: None,
            },
            DownReason::KeyRefused { ours: ours.clone() },
            DownReason::PpkRefused {
                ours: ours.clone(),
                id: "office2026".to_owned(),
            },
            DownReason::WrongKey,
            DownReason::WrongIdentity {
                theirs: ours.clone(),
                expected: ours,
            },
            BadProof::WrongSignature.into(),
            BadProof::WrongKey.into(),
            NotVerified::NoHashes(KeyKind::Ed25519).into(),
            DownReason::NoPpk,
            DownReason::Refused {
                notify: NotifyType::NO_PROPOSAL_CHOSEN,
            },
            refused(NotifyType::NO_PROPOSAL_CHOSEN),
            refused(NotifyType::TS_UNACCEPTABLE),
            DownReason::NoAddress,
            DownReason::ZonesRequired,
        ];
        for why in reasons {
            let waits = waits(34, Retry::from(&why));
            assert_eq!(waits[..6], [0, 1, 2, 4, 4, 4], "{why}");
            assert_eq!(waits[30..], [4, 60, 60, 60], "{why}");
        }
        let others = [
            DownReason::ClosedByPeer,
            DownReason::PeerGone { attempts: 5 },
            refused(NotifyType::TEMPORARY_FAILURE),
        ];
        for why in others {
            assert_eq!(waits(9, Retry::from(&why))[5..], [16, 32, 60, 60], "{why}");
        }
    }

    #[test]
    fn one_attempt_is_planned_beside_one_that_was_refused_and_none_beside_one_that_is_up() {
        let mut peers = Peers::default();
        peers.know(GW, true);
        peers.want(GW, true, Instant::ZERO);
        let mut now = Instant::ZERO;
        for (attempt, seconds) in [(1, 0), (2, 1), (3, 2), (4, 4), (5, 4)] {
            let due = peers.poll_timeout().map(|deadline| deadline.at);
            assert_eq!(due, Some(now + Duration::from_secs(seconds)));
            now += Duration::from_secs(seconds);
            assert_eq!(peers.due(now), [GW]);
            peers.started(GW, IkeSaId(attempt));
            peers.retry_beside(GW, now);
            peers.retry_beside(GW, now);
        }
        peers.up(GW, IkeSaId(4), now);
        peers.retry_beside(GW, now);
        assert_eq!(peers.poll_timeout(), None);
    }

    #[test]
    fn a_peer_that_is_released_forgotten_or_up_is_not_initiated() {
        let now = Instant::ZERO;
        let leaving: [fn(&mut Peers); 3] = [
            |peers| peers.release(GW),
            |peers| peers.retain(|peer| peer != GW),
            |peers| peers.up(GW, IkeSaId(1), Instant::ZERO),
        ];
        for leave in leaving {
            let mut peers = Peers::default();
            for peer in [GW, OTHER] {
                peers.know(peer, true);
                peers.want(peer, true, now);
            }
            leave(&mut peers);
            assert_eq!(peers.due(now), [OTHER]);
            assert_eq!(peers.poll_timeout(), None);
        }
    }

    #[test]
    fn the_end_of_an_old_ike_sa_does_not_touch_the_one_that_replaced_it() {
        let mut peers = Peers::default();
        peers.know(GW, false);
        peers.up(GW, IkeSaId(2), Instant::ZERO);
        peers.down(
            GW,
            Some(IkeSaId(1)),
            "replaced".to_owned().into(),
            Retry::Usual,
            Instant::ZERO,
        );
        assert_eq!(peers.get(GW).and_then(|entry| entry.sa), Some(IkeSaId(2)));
    }
}
