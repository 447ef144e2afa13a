//! Which of two child SAs between the same ends is sent on, after a rekey or when both ends proved anew
//! who they are.
//!
//! Both are received on. The old one is sent on until two things are certain: that the peer has the
//! new one, and that the licensed nodes hold its keys, for what they cannot read they cannot repair.
//! The second is waited for [`PATIENCE`] at most.
//!
//! * Who asked for the rekey knows at once that the peer has the new SA. The other end knows it when
//!   the first packet comes on it, or when the old one is deleted (RFC 7296 section 2.8); `ike` knows
//!   it of a peer that does neither.
//! * Who gives keys to the nodes knows when they hold them, and asks for rekeys earlier than its
//!   peer. If the peer does it all the same, it does not know, and waits.
//!
//! One that is made beside others for the same traffic (RFC 9611) waits in the same way, for the others carry
//! what it would. It takes the place of none.
//!
//! A new SA of another IKE SA (RFC 7296 section 2.8.3) takes the place of whatever the old IKE SA has: if
//! that makes new keys meanwhile, it takes the place of the newest.

use model::{ChildSaId, Deadline, Instant};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long licensed nodes may take to get new keys before packets are sent that need them.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The new SAs that are not sent on yet.
#[derive(Default)]
pub(crate) struct Succession(BTreeMap<ChildSaId, Waiting>);

/// An SA that is to take the place of another, or one beside others.
pub(crate) struct Heir {
    pub old: Option<ChildSaId>,
    /// Whether we asked for it.
    pub ours: bool,
    /// Whether it belongs to another IKE SA than the old one.
    pub anew: bool,
    /// Whether licensed nodes are named in what was agreed.
    pub licensed: bool,
}

/// What it waits for.
struct Waiting {
    heir: Heir,
    /// Whether the peer is known to have it.
    confirmed: bool,
    /// Until when it waits for nodes. `None`: no longer.
    until: Option<Instant>,
}

impl Succession {
    /// A new SA is to take the place of an old one.
    pub fn begin(&mut self, new: ChildSaId, heir: Heir, now: Instant) {
        let of_another = |other: &&mut Waiting| other.heir.anew && other.heir.old == heir.old;
        if !heir.anew && heir.old.is_some() {
            for other in self.0.values_mut().filter(of_another) {
                other.heir.old = Some(new);
            }
        }
        let waiting = Waiting {
            confirmed: heir.ours,
            until: Some(now + PATIENCE),
            heir,
        };
        self.0.insert(new, waiting);
    }

    /// The peer sends on the new SA.
    pub fn confirm(&mut self, new: ChildSaId) {
        if let Some(waiting) = self.0.get_mut(&new) {
            waiting.confirmed = true;
        }
    }

    /// Whether an SA is not sent on yet.
    pub fn is_waiting(&self, id: ChildSaId) -> bool {
        self.0.contains_key(&id)
    }

    /// The SA that takes the place of one that is deleted, if it has not yet.
    pub fn heir_of(&self, old: ChildSaId) -> Option<ChildSaId> {
        let found = self
            .0
            .iter()
            .find(|(_, waiting)| waiting.heir.old == Some(old));
        found.map(|(new, _)| *new)
    }

    /// The SA of another IKE SA whose place one was to take that was never sent on.
    pub fn predecessor(&self, new: ChildSaId) -> Option<ChildSaId> {
        let heir = &self.0.get(&new)?.heir;
        heir.old.filter(|_| heir.anew)
    }

    /// An SA is sent on, or is gone: nothing is waited for any more, nor for those before it.
    pub fn settle(&mut self, id: ChildSaId) {
        let mut settled = Some(id);
        while let Some(waiting) = settled.and_then(|id| self.0.remove(&id)) {
            settled = waiting.heir.old;
        }
    }

    /// An SA is not to be sent on any more. Those before it are waited for as before.
    pub fn withdraw(&mut self, id: ChildSaId) {
        self.0.remove(&id);
    }

    /// The SAs that can be sent on now. `granted` says of each whether its nodes hold their keys, or
    /// that there are none to give keys to.
    pub fn ready(
        &mut self,
        granted: impl Fn(ChildSaId) -> Option<bool>,
        now: Instant,
    ) -> Vec<ChildSaId> {
        let mut ready = Vec::new();
        for (new, waiting) in &mut self.0 {
            waiting.until = waiting.until.filter(|until| *until > now);
            let heir = &waiting.heir;
            let readable = granted(*new).unwrap_or(!heir.licensed || !heir.ours);
            if waiting.confirmed && (readable || waiting.until.is_none()) {
                ready.push(*new);
            }
        }
        ready
    }

    /// When somebody's time for new keys is over.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.0.values().filter_map(|waiting| waiting.until).min()?;
        Some(Deadline {
            at,
            reason: "a rekeyed SA is sent on, with or without licensed nodes",
        })
    }
}
