//! Distribution of the keys of shared slots (DESIGN section 5, shared PKD).
//!
//! A move among the nodes of a shared slot changes no key and no SPI. The price: every holder of
//! the keys can read what is sealed in the slot until the next rekey, wherever the mobile node is.
//! The number of holders is therefore limited to
//! [`Places::holders`](super::places::Places::holders):
//!
//! * The current node of the mobile node, and the nodes that it announces as its neighbours, from
//!   their announcement on.
//! * All nodes that met this condition earlier with the same keys. A node that received keys keeps
//!   them: it cannot be made to forget them, and its own statements about that do not count.
//!
//! Before the limit would be exceeded, both ends rekey. The new keys go to the nodes that are near
//! at that time, and to no others. If even these are too many, the last announced nodes are left
//! out, and this is reported. When the mobile node moves to one of them, the slot is rekeyed again.
//! An SA therefore never exceeds the limit, and each SA is rekeyed at most once for this reason.
//!
//! Traffic does not wait for the rekey. An end that distributes keys stops sealing in a slot that
//! the mobile node's current node cannot read, and uses the first child instead. The other end does
//! not know this and continues to use the slot.

use super::site::Site;
use crate::Cause;
use crate::effects::IkeCommand;
use model::{ChildSaId, Identity, Instant};
use std::collections::BTreeSet;
use std::time::Duration;

/// Minimum interval between rekeys of a slot on behalf of nodes that the mobile node has not moved
/// to.
const PAUSE: Duration = Duration::from_secs(2);

/// State of the shared slots of one tunnel.
#[derive(Default)]
pub(super) struct Sharing {
    /// Nodes that receive keys.
    chosen: Vec<Identity>,
    /// Nodes that are near but exceed the limit.
    left_out: Vec<Identity>,
    /// Child SAs whose rekey was requested because the nearby nodes changed, and the time of the
    /// last request.
    asked: BTreeSet<ChildSaId>,
    asked_at: Option<Instant>,
    /// Time of the next such request, if one is due but too early.
    waits_until: Option<Instant>,
}

impl Sharing {
    pub(super) fn is_chosen(&self, node: &Identity) -> bool {
        self.chosen.contains(node)
    }

    pub(super) const fn next(&self) -> Option<Instant> {
        self.waits_until
    }

    /// Cancels the next request.
    pub(super) const fn rest(&mut self) {
        self.waits_until = None;
    }

    /// Distributes the keys of shared slots to the nodes that are near, up to the limit.
    pub(super) fn tend(
        &mut self,
        most: Option<usize>,
        near: &[Identity],
        here: &[Identity],
        site: &mut Site<'_, '_>,
    ) {
        let now = site.turn.now;
        self.waits_until.take_if(|until| *until <= now);
        let Some(most) = most else {
            return self.chosen.clear();
        };
        let (mut all, mut left_out) = (Vec::new(), Vec::new());
        for slot in site.slots().iter().filter(|slot| slot.is_shared()) {
            let near = near.iter().filter(|node| slot.nodes.contains(node));
            let mut chosen: Vec<_> = near.cloned().collect();
            left_out.extend(chosen.split_off(chosen.len().min(most)));
            if let Some(crowded) = site.give_shared(slot, &chosen, most) {
                let serves = site.serves(slot, crowded, here);
                self.renew_crowded(crowded, serves, site);
            }
            all.extend(chosen);
        }
        self.chosen = all;
        let before = std::mem::replace(&mut self.left_out, left_out);
        for node in self.left_out.iter().filter(|node| !before.contains(node)) {
            let node = node.clone();
            let why = Cause::LeftOut { node, most };
            site.turn.refuse(Some(site.peer), why);
        }
    }

    /// Requests a rekey of a shared slot, once per child SA. The request is immediate if the mobile
    /// node has moved to a node without keys. On behalf of neighbours it is rate-limited, because
    /// nodes choose their neighbours.
    fn renew_crowded(&mut self, child: ChildSaId, serves: bool, site: &mut Site<'_, '_>) {
        let now = site.turn.now;
        if self.asked.contains(&child) {
            return;
        }
        let again = self.asked_at.map(|at| at + PAUSE);
        self.waits_until = again.filter(|again| serves && *again > now);
        if self.waits_until.is_some() {
            return;
        }
        self.asked.retain(|old| site.child(*old).is_some());
        self.asked.insert(child);
        self.asked_at = Some(now);
        if let Some(ike) = site.ike_of(child) {
            site.turn.add(IkeCommand::RekeyChild(ike, child));
        }
    }
}
