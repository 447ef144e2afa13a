//! Licences that end while packets flow (DESIGN section 4, invariant 5).
//!
//! Keys cannot be taken back from a node. A licence ends when our configuration drops it or the
//! peer agrees to less. From then on nothing is sealed with keys that the node can use. A rekey
//! starts, and until it completes datagrams are *opaque*: they are sealed as a whole in the payload
//! zone, which every peer accepts without negotiation. If the payload itself was licensed to a
//! node, nothing is sealed with the old keys, and sending does not wait for the new ones. In this
//! case datagrams may be lost.
//!
//! The notification of the node and its answer are housekeeping.

use crate::Ending;
use crate::config::Role;
use crate::node::Node;
use ike::is_slot;
use model::{ChildSaId, Instant, Licence};

impl Node {
    /// Applies the licences of a changed configuration to all child SAs.
    pub(crate) fn limit_all(&mut self, now: Instant) {
        let children: Vec<_> = self.children.iter().map(|(child, _)| child).collect();
        for child in children {
            self.limit(child, Ending::Reconfigured, now);
        }
    }

    /// Limits the licences of a child SA to those of the configuration.
    pub(crate) fn limit(&mut self, child: ChildSaId, why: Ending, now: Instant) {
        let csa = self.grants.of(child);
        let allowed = csa.map(|csa| self.licences(&csa.peer, csa.child.as_deref()));
        self.limit_to(child, &allowed.unwrap_or_default(), &why, now);
    }

    /// Limits the older SAs for the same traffic to the licences that both ends agreed on in a
    /// rekey.
    pub(crate) fn limit_others(&mut self, new: ChildSaId, now: Instant) {
        let Some(csa) = self.grants.of(new) else {
            return;
        };
        let allowed = csa.agreement.licences.clone();
        let others = self.children.of_peer(&csa.peer).map(|(other, _)| other);
        let is_beside = |other: &ChildSaId| {
            let other = self.grants.of(*other);
            other.is_some_and(|other| other.is_beside(csa))
        };
        let others: Vec<_> = others.filter(is_beside).collect();
        for other in &others {
            self.limit_to(*other, &allowed, &Ending::Rekeyed, now);
        }
        if others.iter().any(|other| self.grants.is_closed(*other)) {
            self.prefer(new);
        }
    }

    /// Limits the licences of a child SA to these, and takes back the keys of the others.
    pub(crate) fn limit_to(
        &mut self,
        child: ChildSaId,
        allowed: &[Licence],
        why: &Ending,
        now: Instant,
    ) {
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

    /// Returns the configured licences of a peer's child SA.
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
