//! The slots of one tunnel: requested, used for sending, and closed.

use super::Tunnel;
use crate::children::Child;
use crate::node::Node;
use crate::{Ending, Event};
use ike::{Slot, is_slot};
use model::{ChildSaId, Identity, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time for which a slot that was left still receives.
const STRAGGLERS: Duration = Duration::from_secs(2);

/// Interval of checks which of several ready slots the mobile node uses.
const GLANCE: Duration = Duration::from_millis(200);

impl Node {
    /// Returns the configured slots of a peer.
    pub(crate) fn slots(&self, peer: &str) -> &[Slot] {
        self.peer(peer).map_or(&[], |peer| &peer.slots)
    }

    /// Returns the slots of any of these nodes, in the order of the nodes.
    fn slots_of<'a>(&'a self, peer: &str, nodes: &'a [Identity]) -> impl Iterator<Item = &'a Slot> {
        let slots = self.slots(peer);
        let of = move |node: &Identity| slots.iter().find(|slot| slot.nodes.contains(node));
        let first = move |(at, node): (usize, &'a Identity)| {
            let slot = of(node)?;
            let earlier = nodes[..at].iter().any(|other| slot.nodes.contains(other));
            (!earlier).then_some(slot)
        };
        nodes.iter().enumerate().filter_map(first)
    }

    /// Returns the names of the slots of these nodes.
    fn slot_names(&self, peer: &str, nodes: &[Identity]) -> BTreeSet<String> {
        let slots = self.slots_of(peer, nodes);
        slots.map(|slot| slot.name.clone()).collect()
    }

    /// Marks slots as spent that are left without having sent here. The other end may have sent on
    /// them, so another node may hold their keys as well.
    pub(super) fn spend_unused(&self, peer: &str, tunnel: &mut Tunnel, here: &[Identity]) {
        let stays = self.slot_names(peer, here);
        let mut left = self.slot_names(peer, &tunnel.here);
        left.retain(|slot| !stays.contains(slot));
        for (id, child) in self.children.of_peer(peer) {
            let named = child.status.name.as_ref();
            let is_left = named.is_some_and(|name| left.contains(name));
            if is_left && tunnel.sent_on != Some(id) {
                tunnel.spent.entry(id).or_insert(false);
            }
        }
    }

    /// Takes the keys of all slots back from their nodes, because the mobile node is bound nowhere.
    /// No request is sent to the mobile node, which could not answer: its slots are spent, and are
    /// rekeyed when it is bound again.
    pub(super) fn take_back_slots(&mut self, peer: &str, tunnel: &mut Tunnel, now: Instant) {
        let children = self.children.of_peer(peer);
        let slots = children.filter(|(_, child)| is_slot(child.status.name.as_deref()));
        let slots: Vec<_> = slots.map(|(id, _)| id).collect();
        for slot in slots {
            tunnel.spent.entry(slot).or_insert(false);
            self.limit_to(slot, &[], &Ending::Unbound, now);
        }
        tunnel.rest();
        self.choose_slot(peer, tunnel, now);
    }

    /// Leaves a slot in time if another node may obtain its keys. If the move fails, only our rekey
    /// request informs the other end of that.
    pub(super) fn leave_tokened(&mut self, peer: &str, tunnel: &mut Tunnel, now: Instant) {
        let Some(tokened) = &mut tunnel.tokened else {
            return;
        };
        let child = tokened.child;
        let is_used = tunnel.sent_on == Some(child);
        tokened.asks |= tokened.asks_at.take_if(|at| *at <= now).is_some();
        let here = self.slot_names(peer, &tunnel.here);
        let stays = is_used && self.slot_of(child).is_some_and(|slot| here.contains(slot));
        if let Some(state) = self.children.get(child)
            && stays
            && std::mem::take(&mut tokened.asks)
        {
            self.ike.rekey_child(state.ike, child, now);
        }
        let over = tunnel.tokened.take_if(|tokened| tokened.until <= now);
        if over.is_some() && is_used {
            tunnel.spent.insert(child, false);
        }
    }

    /// Requests the slots that are wanted, and closes others. Covers only nodes that we can
    /// distribute keys to. All other slots are left to the peer.
    pub(super) fn tend_slots(
        &mut self,
        peer: &str,
        near: &[Identity],
        tunnel: &mut Tunnel,
        now: Instant,
    ) {
        let wanted = self.slot_names(peer, near);
        for slot in &wanted {
            let closes = tunnel.opened.insert(slot.clone(), None);
            if closes.is_none() {
                // Every node with a location has a slot.
                let _ = self.ike.open_child(peer, slot, now);
            }
        }
        let sent_on = tunnel.sent_on.and_then(|child| self.slot_of(child));
        for (slot, closes) in &mut tunnel.opened {
            let is_left = !wanted.contains(slot) && sent_on != Some(slot.as_str());
            if is_left && closes.is_none() {
                *closes = Some(now + STRAGGLERS);
            }
        }
        let due = |_: &String, closes: &mut Option<Instant>| closes.is_some_and(|at| at <= now);
        let closed: Vec<_> = tunnel.opened.extract_if(.., due).collect();
        for (slot, _) in closed {
            let _ = self.ike.release_child(peer, &slot, now);
        }
    }

    /// Requests a rekey of spent slots that are wanted again: at once if we distribute their keys,
    /// otherwise after the time reserved for the other end. The engine rekeys no child SA that the
    /// other end has rekeyed.
    pub(super) fn renew_spent(&mut self, peer: &str, tunnel: &mut Tunnel, now: Instant) {
        tunnel.asks_at.take_if(|at| *at <= now);
        let asks = tunnel.asks_at.is_none();
        let here = self.slot_names(peer, &tunnel.here);
        for (spent, renewed) in &mut tunnel.spent {
            let child = self.children.get(*spent).filter(|_| !*renewed);
            let is_wanted = |slot: &String| {
                let gives = matches!(tunnel.opened.get(slot), Some(None));
                gives || asks && here.contains(slot)
            };
            if let Some(child) = child
                && child.status.name.as_ref().is_some_and(is_wanted)
            {
                *renewed = true;
                self.ike.rekey_child(child.ike, *spent, now);
            }
        }
    }

    /// Sends on the slot of the tunnel's location, if one is ready.
    pub(super) fn choose_slot(&mut self, peer: &str, tunnel: &mut Tunnel, now: Instant) {
        let ready = self.slots_of(peer, &tunnel.here).filter_map(|slot| {
            let child = self.ready_child(peer, &slot.name, &tunnel.spent)?;
            let serves = self.serves(slot, child, &tunnel.here);
            serves.then(|| (child, self.workers.last_inbound(child)))
        });
        let ready: Vec<_> = ready.collect();
        tunnel.glance = (ready.len() > 1).then(|| now + GLANCE);
        // If several are ready: the one that received last or, if none did, the first.
        let chosen = ready
            .into_iter()
            .reduce(|best, next| match next.1 > best.1 {
                true => next,
                false => best,
            });
        tunnel
            .migrates_until
            .take_if(|until| *until <= now || chosen.is_some());
        let migrates = tunnel.migrates_until.is_some();
        let migrating = tunnel.sent_on.filter(|child| {
            migrates && !tunnel.spent.contains_key(child) && self.may_be_sent_on(*child)
        });
        let chosen = chosen.map(|(child, _)| child).or(migrating);
        let node = chosen.and_then(|child| self.node_of(peer, child, &tunnel.here));
        if chosen != tunnel.sent_on {
            self.send_on(peer, chosen, tunnel);
        } else if node == tunnel.sealed_for {
            return;
        }
        tunnel.sealed_for.clone_from(&node);
        let peer = peer.to_owned();
        self.events.push_back(Event::SealedFor { peer, node });
    }

    /// Leaves the slot that sends, for another slot or for the first child.
    fn send_on(&mut self, peer: &str, chosen: Option<ChildSaId>, tunnel: &mut Tunnel) {
        if let Some(left) = tunnel.sent_on {
            self.workers.retire(left);
            if self.slot_of(left) != chosen.and_then(|child| self.slot_of(child)) {
                tunnel.spent.insert(left, false);
                // The slot may be wanted again, with new keys.
                self.whereabouts.stirred.insert(peer.to_owned());
            }
        }
        if let Some(chosen) = chosen {
            self.workers.prefer(chosen);
        }
        tunnel.sent_on = chosen;
    }

    /// Returns the node that a slot's child SA serves. For a shared slot, that is the node at the
    /// tunnel's location.
    fn node_of(&self, peer: &str, child: ChildSaId, here: &[Identity]) -> Option<Identity> {
        let slot = self.peer(peer)?.slot(self.slot_of(child)?)?;
        let here = here.iter().find(|node| slot.nodes.contains(node));
        here.or(slot.nodes.first()).cloned()
    }

    /// Returns the newest child SA of a slot that is not spent, and that the peer and the nodes are
    /// ready for.
    fn ready_child(
        &self,
        peer: &str,
        slot: &str,
        spent: &BTreeMap<ChildSaId, bool>,
    ) -> Option<ChildSaId> {
        let mut children = self.slot_children(peer, slot).map(|(id, _)| id);
        children.find(|id| {
            let is_new = !spent.contains_key(id) && !self.succession.is_waiting(*id);
            is_new && self.may_be_sent_on(*id)
        })
    }

    /// Returns the child SAs of a slot that are not retired, the newest first.
    pub(crate) fn slot_children<'a>(
        &'a self,
        peer: &'a str,
        slot: &'a str,
    ) -> impl Iterator<Item = (ChildSaId, &'a Child)> {
        let children = self.children.of_peer(peer).rev();
        children
            .filter(move |(_, child)| child.status.name.as_deref() == Some(slot) && !child.retired)
    }

    fn slot_of(&self, child: ChildSaId) -> Option<&str> {
        let name = self.children.get(child)?.status.name.as_deref();
        name.filter(|name| is_slot(Some(name)))
    }
}
