//! What the slots of one tunnel depend on.

use super::distribution::Distribution;
use crate::Ending;
use crate::config::Role;
use crate::effects::{IkeCommand, Turn};
use crate::tunnels::Tunnels;
use crate::tunnels::children::Child;
use ike::{Slot, is_slot};
use model::{ChildSaId, Identity, IkeSaId, Licence, PeerId};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The surroundings of one tunnel with slots.
pub(super) struct Site<'a, 't> {
    /// The peer.
    pub peer: PeerId,
    pub turn: &'a mut Turn<'t>,
    distribution: &'a mut Distribution,
    tunnels: &'a Tunnels,
    /// Configured slots of the peer.
    slots: &'t [Slot],
}

impl<'a, 't> Site<'a, 't> {
    pub fn new(
        peer: PeerId,
        distribution: &'a mut Distribution,
        tunnels: &'a Tunnels,
        turn: &'a mut Turn<'t>,
    ) -> Self {
        let configured = turn.ike.peer(peer);
        Self {
            peer,
            slots: configured.map_or(&[], |peer| &peer.slots),
            turn,
            distribution,
            tunnels,
        }
    }

    /// Returns the configured slots of the peer.
    pub const fn slots(&self) -> &'t [Slot] {
        self.slots
    }

    /// Returns the slots of these nodes, in the order of the nodes.
    pub fn slots_of(&self, nodes: &[Identity]) -> Vec<&'t Slot> {
        let mut slots: Vec<&'t Slot> = Vec::new();
        for node in nodes {
            let of_node = self.slots.iter().filter(|slot| self.is_of(slot, node));
            for slot in of_node {
                if slots.iter().all(|known| known.name != slot.name) {
                    slots.push(slot);
                }
            }
        }
        slots
    }

    /// Returns true if a node is licensed by its domain.
    pub fn is_in_domain(&self, node: &Identity) -> bool {
        let mut domains = self.slots.iter().filter_map(|slot| slot.domain.as_ref());
        domains.any(|domain| domain.includes(node))
    }

    /// Returns true if a slot is for a node. The slot of a domain is for the nodes that the
    /// agreements of its child SAs name.
    fn is_of(&self, slot: &Slot, node: &Identity) -> bool {
        match slot.domain {
            None => slot.nodes.contains(node),
            Some(_) => {
                let mut children = self.slot_children(&slot.name);
                children.any(|(id, _)| self.node_in(slot, id) == Some(node))
            }
        }
    }

    /// Returns true if a slot's child SA is for a node that the tunnel passes. Only a slot of a
    /// domain has child SAs for different nodes.
    pub fn is_for(&self, slot: &Slot, child: ChildSaId, here: &[Identity]) -> bool {
        let node = || self.node_in(slot, child);
        slot.domain.is_none() || node().is_some_and(|node| here.contains(node))
    }

    /// Returns the node that the agreement of a child SA names, if the slot is for a domain.
    fn node_in(&self, slot: &Slot, child: ChildSaId) -> Option<&Identity> {
        let csa = self.distribution.grants().of(child)?;
        slot.node_of(&csa.agreement.licences)
    }

    /// Returns the slot of a child SA, if it is one.
    fn configured(&self, child: &Child) -> Option<&'t Slot> {
        let name = child.status.name.as_ref()?;
        self.slots.iter().find(|slot| slot.name == *name)
    }

    /// Returns the names of the slots of these nodes.
    pub fn slot_names(&self, nodes: &[Identity]) -> BTreeSet<String> {
        let slots = self.slots_of(nodes).into_iter();
        slots.map(|slot| slot.name.clone()).collect()
    }

    /// Returns our outer address and that of the tunnel's peer.
    pub fn outside(&self) -> Option<[IpAddr; 2]> {
        let sa = self.tunnels.established(self.peer)?;
        let path = self.turn.ike.sa(sa)?.path;
        Some([path.local.ip(), path.remote.ip()])
    }

    /// Returns the licensed node with this identity as a peer, if we can distribute keys to it.
    pub fn gives_to(&self, node: &Identity) -> Option<PeerId> {
        let mut peers = self.turn.ike.peers_named(node);
        let known = peers.find(|peer| peer.role == Role::Licensed);
        known.map(|peer| peer.id)
    }

    /// Returns true if a node that the tunnel passes can read the slot's child SA, as far as we
    /// distribute its keys.
    pub fn serves(&self, slot: &Slot, child: ChildSaId, here: &[Identity]) -> bool {
        let ours = |node: &&Identity| slot.nodes.contains(node) && self.gives_to(node).is_some();
        let mut ours = here.iter().filter(ours).peekable();
        let for_others = !slot.is_shared() || ours.peek().is_none();
        for_others || ours.any(|node| self.distribution.grants().is_for(child, node))
    }

    /// Returns the node that a slot's child SA serves. For a shared slot, that is the node at the
    /// tunnel's location, and for one of a domain the node that the agreement names.
    pub fn node_of(&self, child: ChildSaId, here: &[Identity]) -> Option<Identity> {
        let slot = self.configured(self.child(child)?)?;
        if slot.domain.is_some() {
            return self.node_in(slot, child).cloned();
        }
        let here = here.iter().find(|node| slot.nodes.contains(node));
        here.or(slot.nodes.first()).cloned()
    }

    /// Returns the child SAs of the peer, the oldest first.
    pub fn children(
        &self,
    ) -> impl DoubleEndedIterator<Item = (ChildSaId, &'a Child)> + use<'a, 't> {
        self.tunnels.children().of_peer(self.peer)
    }

    /// Returns the child SAs of a slot that are not retired, the newest first.
    pub fn slot_children<'s>(&self, slot: &'s str) -> impl Iterator<Item = (ChildSaId, &'a Child)> {
        let is_of = move |child: &Child| child.status.name.as_deref() == Some(slot);
        let children = self.children().rev();
        children.filter(move |(_, child)| is_of(child) && !child.retired)
    }

    /// Returns the newest child SA of a slot, even if it does not send yet.
    pub fn newest_child(&self, slot: &str) -> Option<ChildSaId> {
        let mut children = self.slot_children(slot);
        let found = children.find(|(_, child)| !child.status.draining);
        found.map(|(id, _)| id)
    }

    pub fn child(&self, id: ChildSaId) -> Option<&'a Child> {
        self.tunnels.children().get(id)
    }

    /// Returns the IKE SA of a child SA.
    pub fn ike_of(&self, id: ChildSaId) -> Option<IkeSaId> {
        self.child(id).map(|child| child.ike)
    }

    /// Returns the name of a child SA, if it is a slot.
    pub fn slot_of(&self, id: ChildSaId) -> Option<&'a str> {
        let name = self.child(id)?.status.name.as_deref();
        name.filter(|name| is_slot(Some(name)))
    }

    /// Returns true if a child SA does not send yet.
    pub fn is_waiting(&self, id: ChildSaId) -> bool {
        self.tunnels.is_waiting(id)
    }

    /// Returns true if a child SA is on a path that is not used.
    pub fn is_off(&self, id: ChildSaId) -> bool {
        self.tunnels.is_off(id)
    }

    pub fn may_be_sent_on(&self, id: ChildSaId) -> bool {
        self.distribution.may_be_sent_on(id, self.tunnels)
    }

    /// Requests a slot.
    pub fn open(&mut self, slot: &str) {
        let (peer, slot) = (self.peer, slot.to_owned());
        self.turn.add(IkeCommand::OpenSlot { peer, slot });
    }

    /// Closes a slot that we requested.
    pub fn release(&mut self, slot: &str) {
        let (peer, slot) = (self.peer, slot.to_owned());
        self.turn.add(IkeCommand::ReleaseSlot { peer, slot });
    }

    /// Limits the licences of a child SA to these.
    pub fn limit_to(&mut self, child: ChildSaId, allowed: &[Licence], why: &Ending) {
        self.distribution
            .limit_to(child, allowed, why, self.tunnels, self.turn);
    }

    /// Distributes the keys of a shared slot to these nodes, in place of others. Returns its child
    /// SA if more than `most` nodes would have received the keys.
    pub fn give_shared(
        &mut self,
        slot: &Slot,
        chosen: &[Identity],
        most: usize,
    ) -> Option<ChildSaId> {
        let child = self.newest_child(&slot.name)?;
        let peers = chosen.iter();
        let peers = peers.filter_map(|node| Some((self.gives_to(node)?, node)));
        let peers: Vec<_> = peers.collect();
        let chosen = self.distribution.choose(child, &peers, most, self.turn.now);
        let Some(owed) = chosen else {
            return Some(child);
        };
        for node in owed {
            self.distribution.distribute(node, self.tunnels, self.turn);
        }
        None
    }
}
