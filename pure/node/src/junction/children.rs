//! Child SAs: established, replaced step by step, and ended.

use crate::children::Child;
use crate::config::Role;
use crate::node::Node;
use crate::status::ChildStatus;
use crate::succession::Heir;
use crate::{Ending, Event, KeyLog, keylog};
use crypto::Secret;
use ike::is_slot;
use model::{ChildSa, ChildSaId, Identity, Instant};
use std::collections::BTreeSet;

impl Node {
    pub(super) fn child_up(&mut self, child: ChildSa<Secret>, now: Instant) {
        self.events.push_back(Event::ChildUp {
            peer: child.peer.clone(),
            child: child.name.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            zoned: child.agreement.is_some(),
            mode: child.mode,
        });
        let id = child.id;
        if child.resource.is_some_and(|number| number > 0) || is_slot(child.name.as_deref()) {
            self.succession.begin(id, beside(&child), now);
            return self.install(child, None, now);
        }
        self.install(child, None, now);
        self.prefer(id);
    }

    /// Begins the replacement of a child SA by another.
    pub(super) fn child_rekeyed(&mut self, old: ChildSaId, child: ChildSa<Secret>, now: Instant) {
        self.events.push_back(Event::ChildRekeyed {
            peer: child.peer.clone(),
            child: child.name.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            exchanges: child.exchanges.clone(),
        });
        let before = self.children.get(old);
        let heir = Heir {
            old: Some(old),
            anew: before.is_some_and(|before| before.ike != child.ike),
            ..beside(&child)
        };
        let new = child.id;
        self.succession.begin(new, heir, now);
        self.set_draining(old, true);
        self.install(child, Some(old), now);
        self.limit_others(new, now);
    }

    /// Handles the deletion of a child SA. A successor carries all traffic from now on. A child SA
    /// without a successor counts as missing once no packet of it can arrive any more.
    pub(super) fn child_retired(&mut self, old: ChildSaId) {
        if let Some(new) = self.succession.heir_of(old) {
            self.prefer(new);
        }
        self.workers.retire(old);
        // After a simultaneous rekey, the SA that goes may be one that never sent.
        self.succession.withdraw(old);
        if let Some(child) = self.children.get_mut(old) {
            child.retired = true;
            self.whereabouts.stir(&child.peer);
        }
    }

    fn set_draining(&mut self, child: ChildSaId, draining: bool) {
        if let Some(child) = self.children.get_mut(child) {
            child.status.draining = draining;
        }
    }

    /// Starts sending on the successors that peers and licensed nodes are ready for.
    pub(super) fn switch(&mut self, now: Instant) {
        let is_awaited = |peer: &str, node: &Identity| self.whereabouts.is_awaited(peer, node);
        let settled = |id| self.grants.settled(id, is_awaited);
        for id in self.succession.ready(settled, now) {
            self.prefer(id);
        }
    }

    /// Returns true if the SA is not deleted, and no node without a licence could read its payload.
    pub(crate) fn may_be_sent_on(&self, id: ChildSaId) -> bool {
        let child = self.children.get(id);
        child.is_some_and(|child| !child.retired) && !self.grants.is_closed(id)
    }

    /// Starts sending on a child SA. A slot sends only where its node is, and then before the first
    /// child.
    pub(crate) fn prefer(&mut self, id: ChildSaId) {
        self.succession.settle(id);
        let Some(child) = self.children.get(id) else {
            return;
        };
        if is_slot(child.status.name.as_deref()) {
            return self.whereabouts.stir(&child.peer);
        }
        if self.may_be_sent_on(id) {
            self.workers.prefer(id);
        }
        let slot = self.whereabouts.sent_on(&child.peer);
        if let Some(slot) = slot.filter(|slot| self.may_be_sent_on(*slot)) {
            self.workers.prefer(slot);
        }
    }

    /// Installs a child SA everywhere. Packets that arrive on it are opened from now on.
    pub(super) fn install(&mut self, child: ChildSa<Secret>, old: Option<ChildSaId>, now: Instant) {
        if self.key_log {
            let lines = keylog::esp_lines(&child);
            self.events.extend(
                lines
                    .into_iter()
                    .map(|line| Event::KeyLog(KeyLog::Esp(line))),
            );
        }
        let name = child.name.as_deref();
        let licensed = self.receivers(&child);
        let onward = self.onward(&child.peer, name);
        self.grants
            .enter(&child, onward, old, &licensed, &mut self.rng, now);
        if is_slot(name) {
            self.whereabouts.stir(&child.peer);
        }
        self.licensed(&child);
        let status = ChildStatus::new(&child);
        let (id, peer, ike) = (child.id, child.peer.clone(), child.ike);
        let zoned = child.agreement.is_some();
        if let Err(unusable) = self.workers.install_beside(child) {
            self.refused(Some(peer), unusable.to_string(), now);
            return self.ike.close(ike, now);
        }
        self.workers.watch(id);
        self.cover.begin(&peer, now);
        self.children.insert(
            id,
            Child {
                peer,
                ike,
                heard: None,
                retired: false,
                status,
            },
        );
        self.measure(id);
        // An SA without zones has no grants.
        if zoned {
            self.limit(id, Ending::Reconfigured, now);
            for (node, _) in &licensed {
                self.distribute(node, now);
            }
        }
    }

    /// Returns the licensed nodes that may receive the keys of a new child SA now, by name and
    /// identity.
    fn receivers(&self, child: &ChildSa<Secret>) -> Vec<(String, Identity)> {
        let licences = child.agreement.iter().flat_map(|agreed| &agreed.licences);
        let nodes: BTreeSet<_> = licences.map(|licence| &licence.node).collect();
        let name = child.name.as_deref();
        let given = nodes
            .into_iter()
            .filter(|node| self.is_given(&child.peer, name, node));
        let known = given.flat_map(|node| self.ike.peers_named(node));
        let licensed = known.filter(|peer| peer.role == Role::Licensed);
        licensed
            .map(|node| (node.name.clone(), node.identity.clone()))
            .collect()
    }

    pub(super) fn child_down(&mut self, id: ChildSaId, why: Ending, now: Instant) {
        let heir = self.succession.heir_of(id);
        if let Some(new) = heir {
            self.prefer(new);
        }
        // If the SA never replaced its predecessor, the predecessor stays in use.
        let before = self.succession.predecessor(id);
        if let Some(old) = before {
            self.set_draining(old, false);
        }
        self.succession.settle(id);
        self.workers.remove(id);
        let replaced = self.children.get(id);
        let replaced =
            replaced.is_some_and(|child| child.status.draining || self.is_doubled(id, child));
        self.revoke(id, if replaced { Ending::Rekeyed } else { why }, now);
        if let Some(child) = self.children.remove(id) {
            let _presumption = self.leave_path(id, child.status.path);
            self.whereabouts.forget(&child.peer, id);
            if self.children.of_peer(&child.peer).next().is_none() {
                self.cover.end(&child.peer);
            }
            // An SA that was replaced is not missing. Neither is an SA whose predecessor or
            // successor still exists.
            let missed = !replaced && heir.or(before).is_none();
            let missed = missed && !self.is_relieved(&child);
            if missed {
                self.events.push_back(Event::ChildDown {
                    peer: child.peer,
                    child: child.status.name,
                });
            }
        }
    }

    /// Returns true if another SA carries the same traffic: after a simultaneous rekey one of the
    /// two goes.
    fn is_doubled(&self, id: ChildSaId, child: &Child) -> bool {
        let mut beside = self.children.of_peer(&child.peer);
        beside.any(|(other, beside)| {
            let is_used = !beside.retired && !beside.status.draining;
            other != id && beside.is_for_the_same(child) && is_used
        })
    }

    /// Returns true if a child SA of the original IKE SA takes over. That happens when a clone
    /// ends, and the original carries everything again.
    fn is_relieved(&mut self, gone: &Child) -> bool {
        let takes_over = |child: &Child| {
            child.is_for_the_same(gone) && child.ike != gone.ike && child.status.draining
        };
        let other = self
            .children
            .of_peer(&gone.peer)
            .find(|(_, child)| takes_over(child))
            .map(|(other, _)| other);
        let other = other.and_then(|other| self.children.get_mut(other));
        other.map(|other| other.status.draining = false).is_some()
    }
}

/// Returns the succession entry of an SA for traffic that others carry until it is ready.
fn beside(child: &ChildSa<Secret>) -> Heir {
    let agreement = child.agreement.as_ref();
    Heir {
        old: None,
        ours: child.initiator,
        anew: false,
        licensed: agreement.is_some_and(|agreement| !agreement.licences.is_empty()),
    }
}
