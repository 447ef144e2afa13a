//! Licences that are gone while packets flow (DESIGN section 4, invariant 5).
//!
//! What a node has learnt cannot be taken back. So from the moment on in which we know that a licence is
//! gone, by our own configuration or because the peer agreed to less, nothing is sealed any more that
//! the node's keys open. New keys are being made, and until they are there datagrams are *opaque*: all of
//! them is in the payload zone, which every peer understands and nobody has to agree to. If the payload
//! itself is licensed to somebody, nothing is sealed with the old keys, and their successor is not waited
//! for: that is when datagrams may be lost.
//!
//! That the node is told, and what it says to it, is housekeeping.

use crate::Ending;
use crate::config::Role;
use crate::node::Node;
use ike::is_slot;
use model::{ChildSaId, Instant, Licence};

impl Node {
    /// The configuration may have other licences than before.
    pub(crate) fn limit_all(&mut self, now: Instant) {
        let children: Vec<_> = self.children.keys().copied().collect();
        for child in children {
            self.limit(child, Ending::Reconfigured, now);
        }
    }

    /// Leaves a child no licences but those of the configuration.
    pub(crate) fn limit(&mut self, child: ChildSaId, why: Ending, now: Instant) {
        let csa = self.grants.of(child);
        let allowed = csa.map(|csa| self.licences(&csa.peer, csa.child.as_deref()));
        self.limit_to(child, &allowed.unwrap_or_default(), &why, now);
    }

    /// Both ends have agreed on new keys: whoever has no licence any more reads no others either.
    pub(crate) fn limit_others(&mut self, new: ChildSaId, now: Instant) {
        let Some(csa) = self.grants.of(new) else {
            return;
        };
        let allowed = csa.agreement.licences.clone();
        let others = self.grants.beside(new);
        for other in &others {
            self.limit_to(*other, &allowed, &Ending::Rekeyed, now);
        }
        if others.iter().any(|other| self.grants.is_closed(*other)) {
            self.prefer(new);
        }
    }

    fn limit_to(&mut self, child: ChildSaId, allowed: &[Licence], why: &Ending, now: Instant) {
        let Some(gone) = self.grants.limit(child, allowed) else {
            return;
        };
        self.workers.make_opaque(child);
        if self.grants.is_closed(child) {
            self.workers.retire(child);
            self.whereabouts.stir(&gone.sa.peer);
        }
        self.take_back(gone, why, now);
    }

    /// The licences that the configuration has for a child of a peer's.
    pub(crate) fn licences(&self, peer: &str, child: Option<&str>) -> Vec<Licence> {
        let Some(peer) = self.peer(peer) else {
            return Vec::new();
        };
        let slot = child.and_then(|child| peer.slot(child));
        match (&peer.role, slot) {
            (Role::Vpn { .. }, Some(slot)) => slot.zones.licences.clone(),
            (Role::Vpn { zones, .. }, None) if !is_slot(child) => zones.licences.clone(),
            _ => Vec::new(),
        }
    }
}
