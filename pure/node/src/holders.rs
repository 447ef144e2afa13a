//! Who has the keys of slots that nodes share (DESIGN section 5, shared PKD).
//!
//! A move among such nodes changes no key and no SPI. The price: whoever has the keys of a shared slot reads what is sealed in
//! it until it has new ones, whether the mobile node is there or not. So few have them, [`Places::holders`] at most:
//!
//! * the node where the mobile node is, and those that it names as its neighbours, as they become neighbours;
//! * those that were that before, since the slot has these keys. Who was given keys once has them: nobody can be made to
//!   forget them, and what a node says of that counts for nothing.
//!
//! Before there would be more, both ends agree on new keys (an ordinary rekey), which are for those that are near then and
//! for nobody else. Where even these are too many, the last ones named are left out, which is told: when the mobile node comes to
//! one of them, that is once more a reason for new keys. So an SA never has more holders than that, and each has new keys once
//! for that reason.
//!
//! While new keys are agreed on nothing waits. An end that gives keys does not seal in a slot that is of no use where the
//! mobile node is, but on the first child; the other end knows nothing of that, and goes on in the slot.

use crate::node::Node;
use crate::whereabouts::Places;
use ike::Slot;
use model::{ChildSaId, Identity, Instant};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often a slot has new keys at most for the sake of nodes to which nobody has come.
const PAUSE: Duration = Duration::from_secs(2);

/// What there is to know of a tunnel for that.
#[derive(Default)]
pub(crate) struct Sharing {
    /// The nodes that are to have keys.
    chosen: Vec<Identity>,
    /// Those that are near as well, and too many.
    left_out: Vec<Identity>,
    /// The children for which new keys were asked because of others that are near now, and when that was last so.
    asked: BTreeSet<ChildSaId>,
    asked_at: Option<Instant>,
    /// When it may be so again, if it is to be.
    waits_until: Option<Instant>,
}

impl Sharing {
    pub(crate) fn is_chosen(&self, node: &Identity) -> bool {
        self.chosen.contains(node)
    }

    pub(crate) const fn next(&self) -> Option<Instant> {
        self.waits_until
    }
}

impl Node {
    /// Whether a node may be given the keys of a child of a peer's that is made now. Of a slot that nodes share only those
    /// are that are to have them.
    pub(crate) fn is_given(&self, peer: &str, child: Option<&str>, node: &Identity) -> bool {
        let slot = child.and_then(|child| self.peer(peer)?.slot(child));
        let is_shared = slot.is_some_and(Slot::is_shared);
        !is_shared || self.whereabouts.is_chosen(peer, node)
    }

    /// Gives the keys of slots that nodes share to those of them that are near, as many as may have them.
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
                "{node} is near its tunnel as well, and {most} nodes share the keys already: it gets none before the tunnel passes it; allow more `holders`, or let nodes name fewer neighbours"
            );
            self.refused(Some(peer.to_owned()), why, now);
        }
    }

    /// Gives these nodes the keys of a slot that they share; gives its child if too many would have had them then.
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

    /// Asks for new keys of a shared slot, once. For whoever the mobile node has come to at once; for the sake of
    /// neighbours, where it is served, not at any time: it is nodes that say who these are.
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
        sharing.asked.retain(|old| self.children.contains_key(old));
        sharing.asked.insert(child);
        sharing.asked_at = Some(now);
        if let Some(ike) = self.children.get(&child).map(|child| child.ike) {
            self.ike.rekey_child(ike, child, now);
        }
    }

    /// Whether anybody where the tunnel is may read what is sealed in a slot's child, as far as we give its keys.
    pub(crate) fn serves(&self, slot: &Slot, child: ChildSaId, here: &[Identity]) -> bool {
        let ours = |node: &&Identity| slot.nodes.contains(node) && self.gives_to(node).is_some();
        let mut ours = here.iter().filter(ours).peekable();
        let for_others = !slot.is_shared() || ours.peek().is_none();
        for_others || ours.any(|node| self.grants.is_for(child, node))
    }

    /// The newest child of a slot, whether it is sent on yet or not.
    fn newest_child(&self, peer: &str, slot: &str) -> Option<ChildSaId> {
        let mut children = self.slot_children(peer, slot);
        let found = children.find(|(_, child)| !child.status.draining);
        found.map(|(id, _)| id)
    }
}
