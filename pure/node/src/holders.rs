//! Distribution of the keys of shared slots (DESIGN section 5, shared PKD).
//!
//! A move among the nodes of a shared slot changes no key and no SPI. The price: every holder of
//! the keys can read what is sealed in the slot until the next rekey, wherever the mobile node is.
//! The number of holders is therefore limited to [`Places::holders`]:
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

use crate::node::Node;
use crate::whereabouts::Places;
use ike::Slot;
use model::{ChildSaId, Identity, Instant};
use std::collections::BTreeSet;
use std::time::Duration;

/// Minimum interval between rekeys of a slot on behalf of nodes that the mobile node has not moved
/// to.
const PAUSE: Duration = Duration::from_secs(2);

/// State of the shared slots of one tunnel.
#[derive(Default)]
pub(crate) struct Sharing {
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
    pub(crate) fn is_chosen(&self, node: &Identity) -> bool {
        self.chosen.contains(node)
    }

    pub(crate) const fn next(&self) -> Option<Instant> {
        self.waits_until
    }

    /// Cancels the next request.
    pub(crate) const fn rest(&mut self) {
        self.waits_until = None;
    }
}

impl Node {
    /// Returns true if a node may receive the keys of a new child SA of a peer. For a shared slot
    /// this holds only for the selected nodes.
    pub(crate) fn is_given(&self, peer: &str, child: Option<&str>, node: &Identity) -> bool {
        let slot = child.and_then(|child| self.peer(peer)?.slot(child));
        let is_shared = slot.is_some_and(Slot::is_shared);
        !is_shared || self.whereabouts.is_chosen(peer, node)
    }

    /// Distributes the keys of shared slots to the nodes that are near, up to the limit.
    pub(crate) fn tend_holders(
        &mut self,
        peer: &str,
        places: &Places,
        (near, here): (&[Identity], &[Identity]),
        sharing: &mut Sharing,
        now: Instant,
    ) {
        sharing.waits_until.take_if(|until| *until <= now);
        let Some(most) = places.holders else {
            return sharing.chosen.clear();
        };
        let slots = self.slots(peer).iter();
        let shared: Vec<_> = slots.filter(|slot| slot.is_shared()).cloned().collect();
        let (mut all, mut left_out) = (Vec::new(), Vec::new());
        for slot in &shared {
            let near = near.iter().filter(|node| slot.nodes.contains(node));
            let mut chosen: Vec<_> = near.cloned().collect();
            left_out.extend(chosen.split_off(chosen.len().min(most)));
            if let Some(crowded) = self.give_shared((peer, slot), (&chosen, most), now) {
                let serves = self.serves(slot, crowded, here);
                self.renew_crowded(crowded, serves, sharing, now);
            }
            all.extend(chosen);
        }
        sharing.chosen = all;
        let before = std::mem::replace(&mut sharing.left_out, left_out);
        for node in sharing
            .left_out
            .iter()
            .filter(|node| !before.contains(node))
        {
            let why = format!(
                "{node} is near the tunnel too, but {most} nodes share the keys already: it receives none until the tunnel passes it; raise `holders`, or let nodes name fewer neighbours"
            );
            self.refused(Some(peer.to_owned()), why, now);
        }
    }

    /// Distributes the keys of a shared slot to these nodes. Returns its child SA if the limit
    /// would be exceeded.
    fn give_shared(
        &mut self,
        (peer, slot): (&str, &Slot),
        (chosen, most): (&[Identity], usize),
        now: Instant,
    ) -> Option<ChildSaId> {
        let child = self.newest_child(peer, &slot.name)?;
        let names = chosen.iter().filter_map(|node| {
            let name = self.gives_to(node)?.to_owned();
            Some((name, node))
        });
        let names: Vec<_> = names.collect();
        let Some(owed) = self.grants.choose(child, &names, most, now) else {
            return Some(child);
        };
        owed.iter().for_each(|name| self.distribute(name, now));
        None
    }

    /// Requests a rekey of a shared slot, once per child SA. The request is immediate if the mobile
    /// node has moved to a node without keys. On behalf of neighbours it is rate-limited, because
    /// nodes choose their neighbours.
    fn renew_crowded(
        &mut self,
        child: ChildSaId,
        serves: bool,
        sharing: &mut Sharing,
        now: Instant,
    ) {
        if sharing.asked.contains(&child) {
            return;
        }
        let again = sharing.asked_at.map(|at| at + PAUSE);
        sharing.waits_until = again.filter(|again| serves && *again > now);
        if sharing.waits_until.is_some() {
            return;
        }
        sharing
            .asked
            .retain(|old| self.children.get(*old).is_some());
        sharing.asked.insert(child);
        sharing.asked_at = Some(now);
        if let Some(ike) = self.children.get(child).map(|child| child.ike) {
            self.ike.rekey_child(ike, child, now);
        }
    }

    /// Returns true if a node that the tunnel passes can read the slot's child SA, as far as we
    /// distribute its keys.
    pub(crate) fn serves(&self, slot: &Slot, child: ChildSaId, here: &[Identity]) -> bool {
        let ours = |node: &&Identity| slot.nodes.contains(node) && self.gives_to(node).is_some();
        let mut ours = here.iter().filter(ours).peekable();
        let for_others = !slot.is_shared() || ours.peek().is_none();
        for_others || ours.any(|node| self.grants.is_for(child, node))
    }

    /// Returns the newest child SA of a slot, even if it does not send yet.
    fn newest_child(&self, peer: &str, slot: &str) -> Option<ChildSaId> {
        let mut children = self.slot_children(peer, slot);
        let found = children.find(|(_, child)| !child.status.draining);
        found.map(|(id, _)| id)
    }
}
