//! Decides when sending moves to a new child SA, after a rekey or a re-authentication.
//!
//! Both SAs receive. The old SA sends until two conditions hold: the peer is known to have the new
//! SA, and the licensed nodes hold its keys, because nodes cannot repair what they cannot read. The
//! wait for the second condition is limited to [`PATIENCE`].
//!
//! * The end that requested the rekey knows at once that the peer has the new SA. The other end
//!   knows when the first packet arrives on the new SA or when the old SA is deleted (RFC 7296
//!   section 2.8). `ike` assumes it for a peer that does neither.
//! * The end that distributes keys knows when the nodes hold them, and requests rekeys earlier than
//!   its peer. If the peer requests the rekey all the same, it does not know and waits for the full
//!   time.
//!
//! An additional SA for the same traffic (RFC 9611) waits in the same way, while the other SAs
//! carry its traffic. It replaces no SA.
//!
//! A child of a new IKE SA (RFC 7296 section 2.8.3) replaces the corresponding child of the old IKE
//! SA. If the old IKE SA rekeys that child in the meantime, the new child replaces the latest one.

use crypto::Secret;
use model::{ChildSa, ChildSaId, Deadline, Instant};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time that licensed nodes have to install new keys before packets are sent that need them.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// New SAs that do not send yet.
#[derive(Default)]
pub(crate) struct Succession(BTreeMap<ChildSaId, Waiting>);

/// An SA that will replace another one, or an additional SA.
pub(crate) struct Heir {
    pub old: Option<ChildSaId>,
    /// True if we requested the SA.
    pub ours: bool,
    /// True if the SA belongs to another IKE SA than the old one.
    pub anew: bool,
    /// True if the agreement has licences.
    pub licensed: bool,
}

impl Heir {
    /// Returns the entry of an SA for traffic that others carry until it is ready.
    pub fn beside(child: &ChildSa<Secret>) -> Self {
        let agreement = child.agreement.as_ref();
        Self {
            old: None,
            ours: child.initiator,
            anew: false,
            licensed: agreement.is_some_and(|agreement| !agreement.licences.is_empty()),
        }
    }
}

/// The conditions that a new SA waits for.
struct Waiting {
    heir: Heir,
    /// True if the peer is known to have the SA.
    confirmed: bool,
    /// End of the wait for licensed nodes; `None` if it is over.
    until: Option<Instant>,
}

impl Succession {
    /// Registers a new SA, with the old one that it will replace.
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

    /// Records that the peer sends on the new SA.
    pub fn confirm(&mut self, new: ChildSaId) {
        if let Some(waiting) = self.0.get_mut(&new) {
            waiting.confirmed = true;
        }
    }

    /// Returns true if an SA does not send yet.
    pub fn is_waiting(&self, id: ChildSaId) -> bool {
        self.0.contains_key(&id)
    }

    /// Returns the SA that will replace `old`.
    pub fn heir_of(&self, old: ChildSaId) -> Option<ChildSaId> {
        let found = self
            .0
            .iter()
            .find(|(_, waiting)| waiting.heir.old == Some(old));
        found.map(|(new, _)| *new)
    }

    /// Returns the SA that `new` was to replace, if it belongs to another IKE SA and `new` never
    /// sent.
    pub fn predecessor(&self, new: ChildSaId) -> Option<ChildSaId> {
        let heir = &self.0.get(&new)?.heir;
        heir.old.filter(|_| heir.anew)
    }

    /// Ends the wait of an SA that sends or is gone, and of all SAs before it.
    pub fn settle(&mut self, id: ChildSaId) {
        let mut settled = Some(id);
        while let Some(waiting) = settled.and_then(|id| self.0.remove(&id)) {
            settled = waiting.heir.old;
        }
    }

    /// Ends the wait of an SA that will never send. The SAs before it still wait.
    pub fn withdraw(&mut self, id: ChildSaId) {
        self.0.remove(&id);
    }

    /// Returns the SAs that can send now. `granted` returns true once the nodes of an SA hold its
    /// keys, or `None` if there are no nodes to distribute keys to.
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

    /// Returns the time at which the next wait for licensed nodes ends.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.0.values().filter_map(|waiting| waiting.until).min()?;
        Some(Deadline {
            at,
            reason: "send on a rekeyed SA, even if licensed nodes lack its keys",
        })
    }
}
