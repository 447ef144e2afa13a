//! Which of two child SAs between the same ends is sent on, after a rekey.
//!
//! Both are received on. The old one is sent on until two things are certain: that the peer has the
//! new one, and that the licensed nodes hold its keys, for what they cannot read they cannot repair.
//! The second is waited for [`PATIENCE`] at most.
//!
//! * Who asked for the rekey knows at once that the peer has the new SA. The other end knows it when
//!   the first packet comes on it, or when the old one is deleted (RFC 7296 section 2.8).
//! * Who gives keys to the nodes knows when they hold them, and asks for rekeys earlier than its
//!   peer. If the peer does it all the same, it does not know, and waits.

use model::{ChildSaId, Deadline, Instant};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long licensed nodes may take to get new keys before packets are sent that need them.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The new SAs that are not sent on yet.
#[derive(Default)]
pub(crate) struct Succession(BTreeMap<ChildSaId, Heir>);

/// One of them.
struct Heir {
    old: ChildSaId,
    /// Whether we asked for it.
    ours: bool,
    /// Whether licensed nodes are named in what was agreed.
    licensed: bool,
    /// Whether the peer is known to have it.
    confirmed: bool,
    /// Until when it waits for nodes. `None`: no longer.
    until: Option<Instant>,
}

impl Succession {
    /// A new SA is to take the place of an old one.
    pub fn begin(
        &mut self,
        new: ChildSaId,
        old: ChildSaId,
        ours: bool,
        licensed: bool,
        now: Instant,
    ) {
        let heir = Heir {
            old,
            ours,
            licensed,
            confirmed: ours,
            until: Some(now + PATIENCE),
        };
        self.0.insert(new, heir);
    }

    /// The peer sends on the new SA.
    pub fn confirm(&mut self, new: ChildSaId) {
        if let Some(heir) = self.0.get_mut(&new) {
            heir.confirmed = true;
        }
    }

    /// The SA that takes the place of one that is deleted, if it has not yet.
    pub fn heir_of(&self, old: ChildSaId) -> Option<ChildSaId> {
        let found = self.0.iter().find(|(_, heir)| heir.old == old);
        found.map(|(new, _)| *new)
    }

    /// An SA is sent on, or is gone: nothing is waited for any more, nor for those before it.
    pub fn settle(&mut self, id: ChildSaId) {
        let mut settled = Some(id);
        while let Some(heir) = settled.and_then(|id| self.0.remove(&id)) {
            settled = Some(heir.old);
        }
    }

    /// The SAs that can be sent on now. `granted` says of each whether its nodes hold their keys, or
    /// that there are none to give keys to.
    pub fn ready(
        &mut self,
        granted: impl Fn(ChildSaId) -> Option<bool>,
        now: Instant,
    ) -> Vec<ChildSaId> {
        let mut ready = Vec::new();
        for (new, heir) in &mut self.0 {
            heir.until = heir.until.filter(|until| *until > now);
            let readable = granted(*new).unwrap_or(!heir.licensed || !heir.ours);
            if heir.confirmed && (readable || heir.until.is_none()) {
                ready.push(*new);
            }
        }
        ready
    }

    /// When somebody's time for new keys is over.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.0.values().filter_map(|heir| heir.until).min()?;
        Some(Deadline {
            at,
            reason: "a rekeyed SA is sent on, with or without licensed nodes",
        })
    }
}
