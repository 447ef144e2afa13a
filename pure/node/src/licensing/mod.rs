//! Keys for licensed nodes: distributed by an endpoint, by the places of its tunnels, and migrated
//! from node to node.

pub(crate) mod distribution;
pub(crate) mod grants;
mod holders;
pub(crate) mod migration;
pub(crate) mod placement;
pub(crate) mod places;
mod site;
mod slots;

use crate::Ending;
use crate::config::Role;
use crate::effects::Turn;
use crate::event::TOKEN;
use crate::mobile_ip::{self, Attachment, Enclosed, MobileIp};
use crate::tunnels::Tunnels;
use crate::tunnels::live_paths::SlotUse;
use crypto::Secret;
use distribution::Distribution;
use grants::Grants;
use ike::{Slot, is_slot};
use migration::Migration;
use model::{
    ChildSa, ChildSaId, CsaId, Deadline, Identity, IkeSaId, Instant, Licence, PeerId, Right, Shared,
};
use placement::Placement;
use places::{Handover, Places};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::ike::MAX_LICENCES;

/// Licences and their keys.
pub(crate) struct Licensing {
    distribution: Distribution,
    placement: Placement,
    migration: Migration,
}

impl Licensing {
    pub fn new(
        lifetime: Duration,
        places: BTreeMap<PeerId, Shared<Places>>,
        neighbours: Vec<Identity>,
    ) -> Self {
        Self {
            distribution: Distribution::new(lifetime),
            placement: Placement::new(places, neighbours),
            migration: Migration::default(),
        }
    }

    pub const fn distribution(&mut self) -> &mut Distribution {
        &mut self.distribution
    }

    pub const fn placement(&mut self) -> &mut Placement {
        &mut self.placement
    }

    #[cfg(test)]
    pub const fn placed(&self) -> &Placement {
        &self.placement
    }

    pub const fn migration(&mut self) -> &mut Migration {
        &mut self.migration
    }

    pub const fn grants(&self) -> &Grants {
        self.distribution.grants()
    }

    // Child SAs.

    /// Enters a child SA before it is installed. Returns the licensed nodes that may receive its
    /// keys now, as peers and by identity.
    pub fn enter(
        &mut self,
        child: &ChildSa<Secret>,
        old: Option<ChildSaId>,
        turn: &mut Turn<'_>,
    ) -> Vec<(PeerId, Identity)> {
        let name = child.name.as_deref();
        let nodes = self.receivers(child, turn.ike);
        let onward = self.onward(child.peer, name, turn.ike);
        self.distribution.enter(child, onward, old, &nodes, turn);
        if is_slot(name) {
            self.placement.stir(child.peer);
        }
        self.distribution.report(child, turn);
        nodes
    }

    /// Distributes the keys of a child SA that is installed.
    pub fn installed(
        &mut self,
        id: ChildSaId,
        nodes: &[(PeerId, Identity)],
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        self.distribution
            .limit(id, &Ending::Reconfigured, tunnels, turn);
        for (node, _) in nodes {
            self.distribution.distribute(*node, tunnels, turn);
        }
    }

    /// Returns the licensed nodes that may receive the keys of a new child SA now, as peers and
    /// by identity.
    fn receivers(&self, child: &ChildSa<Secret>, ike: &ike::Engine) -> Vec<(PeerId, Identity)> {
        let licences = child.agreement.iter().flat_map(|agreed| &agreed.licences);
        let nodes: BTreeSet<_> = licences.map(|licence| &licence.node).collect();
        let name = child.name.as_deref();
        let given = nodes
            .into_iter()
            .filter(|node| self.is_given(child.peer, name, node, ike));
        let known = given.flat_map(|node| ike.peers_named(node));
        let licensed = known.filter(|peer| peer.role == Role::Licensed);
        licensed
            .map(|node| (node.id, node.identity.clone()))
            .collect()
    }

    /// Returns true if a node may receive the keys of a new child SA of a peer. For a shared slot
    /// this holds only for the selected nodes.
    fn is_given(
        &self,
        peer: PeerId,
        child: Option<&str>,
        node: &Identity,
        ike: &ike::Engine,
    ) -> bool {
        let slot = child.and_then(|child| ike.peer(peer)?.slot(child));
        let is_shared = slot.is_some_and(Slot::is_shared);
        !is_shared || self.placement.is_chosen(peer, node)
    }

    /// Returns true once the licensed nodes of a child SA hold its keys, as far as they are waited
    /// for. Returns `None` if we distribute no keys of it.
    pub fn settled(&self, child: ChildSaId) -> Option<bool> {
        let is_awaited = |peer: PeerId, node: &Identity| self.placement.is_awaited(peer, node);
        self.grants().settled(child, is_awaited)
    }

    /// Returns true if the SA is not deleted, and no node without a licence could read its payload.
    pub fn may_be_sent_on(&self, id: ChildSaId, tunnels: &Tunnels) -> bool {
        self.distribution.may_be_sent_on(id, tunnels)
    }

    /// Returns the child SA of the slot that sends for a peer, if a slot does.
    pub fn sent_on(&self, peer: PeerId) -> Option<ChildSaId> {
        self.placement.sent_on(peer)
    }

    /// Returns the use of a peer's slots, for a tunnel with several paths.
    pub fn slots(&self, peer: PeerId) -> SlotUse {
        self.placement.slots(peer)
    }

    // IKE SAs.

    /// Sends what a peer is owed that is up. `is_new` is true if it was not up before.
    pub fn ike_up(
        &mut self,
        sa: IkeSaId,
        peer: PeerId,
        is_new: bool,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        if let Some(known) = turn.ike.peer(peer).filter(|_| is_new) {
            self.placement.forget_neighbours(&known.identity);
        }
        self.placement.tell_neighbours(sa, turn);
        self.distribution.distribute(peer, tunnels, turn);
    }

    // Places.

    /// Selects the child SA for the location of each tunnel that may have moved. Returns true if
    /// there was any.
    pub fn follow(
        &mut self,
        tunnels: &Tunnels,
        mobile_ip: Option<&MobileIp>,
        turn: &mut Turn<'_>,
    ) -> bool {
        self.placement
            .follow(&mut self.distribution, tunnels, mobile_ip, turn)
    }

    /// Limits the licences of child SAs whose further path has moved to those of the new path.
    pub fn path_moved(&mut self, children: &[ChildSaId], tunnels: &Tunnels, turn: &mut Turn<'_>) {
        for child in children {
            self.distribution
                .limit(*child, &Ending::Moved, tunnels, turn);
        }
    }

    /// Marks the tunnels that an event of Mobile IP may have moved.
    pub fn note_mobile_ip(&mut self, event: &mobile_ip::Event) {
        self.placement.note_mobile_ip(event);
    }

    // Key migration.

    /// Issues pending tokens and presents received ones. Returns true if there were any.
    pub fn migrate(
        &mut self,
        mobile_ip: &mut MobileIp,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) -> bool {
        if let Some(at) = mobile_ip.poll_asked() {
            self.give_tokens(at, mobile_ip, tunnels, turn);
            return true;
        }
        let Some(Enclosed { station, octets }) = mobile_ip.poll_enclosed() else {
            return false;
        };
        self.migration.show(station, &octets, tunnels, turn);
        true
    }

    /// Issues tokens to the agent that is asked to serve us, for the SAs in use, if we license its
    /// node.
    fn give_tokens(
        &mut self,
        at: Attachment,
        mobile_ip: &mut MobileIp,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        let peers: Vec<_> = self.placement.migrating().collect();
        for (peer, child) in peers {
            for asker in self.placement.nodes_at(peer, at.care_of.into()) {
                let Some(csa) = self.distribution.grants().of(child) else {
                    continue;
                };
                let issued = self.migration.issue(at, csa, child, &asker, turn);
                let Some(given) = issued else {
                    continue;
                };
                if self.distribution.is_recording() {
                    self.migration.wait(given, csa, asker, turn);
                } else {
                    self.enclose(given, mobile_ip, tunnels, turn);
                }
            }
        }
    }

    /// Answers [`crate::Event::Giving`]: releases the keys or the token, or withholds them with a
    /// human-readable reason.
    pub fn give(
        &mut self,
        csa: CsaId,
        grant: u16,
        recorded: Result<(), String>,
        mobile_ip: Option<&mut MobileIp>,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        if grant != TOKEN {
            return self.distribution.give(csa, grant, recorded, turn);
        }
        // If the request has left in the meantime, the token goes with the next one.
        let given = self.migration.take_unrecorded(csa);
        let given = given.filter(|_| recorded.is_ok());
        if let (Some(given), Some(mobile_ip)) = (given, mobile_ip) {
            self.enclose(given, mobile_ip, tunnels, turn);
        }
    }

    fn enclose(
        &mut self,
        given: migration::Given,
        mobile_ip: &mut MobileIp,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        let Some(child) = tunnels.children().get(given.child) else {
            return;
        };
        if !mobile_ip.enclose(given.at, given.octets) {
            // The agent has answered or is not asked any more, so the token never leaves.
            return;
        }
        self.placement.note_token(child.peer, given.child, turn.now);
        turn.add(given.told);
    }

    /// Returns the licences of the nodes that may fetch keys from a slot's node: all nodes with
    /// another slot, as far as they may read.
    fn onward(&self, peer: PeerId, child: Option<&str>, ike: &ike::Engine) -> Vec<Licence> {
        onward(&self.placement, peer, child, ike)
    }

    // Configuration.

    /// Removes licensed nodes that are no longer configured. Returns the peers whose packets they
    /// could read.
    pub fn dismiss(&mut self, gone: &[&Licensed], tunnels: &Tunnels) -> BTreeSet<PeerId> {
        let mut read = BTreeSet::new();
        for (peer, node) in gone {
            let children = self.distribution.dismiss(*peer, node);
            let all = tunnels.children();
            let peers = children.iter().filter_map(|child| all.get(*child));
            read.extend(peers.map(|child| child.peer));
        }
        read
    }

    /// Applies the places, neighbours and lifetime of a changed configuration.
    pub fn relocate(
        &mut self,
        places: BTreeMap<PeerId, Shared<Places>>,
        neighbours: Vec<Identity>,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        self.placement.set_places(places);
        let (ike, placement) = (turn.ike, &self.placement);
        let onward = |peer: PeerId, child: Option<&str>| onward(placement, peer, child, ike);
        self.distribution.relicense_onward(onward, tunnels, turn);
        self.placement.set_neighbours(neighbours, tunnels, turn);
    }

    /// Applies the licences of a changed configuration to all child SAs.
    pub fn limit_all(&mut self, tunnels: &Tunnels, turn: &mut Turn<'_>) {
        for (child, _) in tunnels.children().iter() {
            self.distribution
                .limit(child, &Ending::Reconfigured, tunnels, turn);
        }
    }

    /// Adds a licensed node. It is owed grants at once for everything that already licenses it.
    pub fn admit(&mut self, peer: PeerId, node: &Identity, ike: &ike::Engine, now: Instant) {
        let Self {
            distribution,
            placement,
            ..
        } = self;
        let is_given = |of: PeerId, child: Option<&str>| {
            let slot = child.and_then(|child| ike.peer(of)?.slot(child));
            !slot.is_some_and(Slot::is_shared) || placement.is_chosen(of, node)
        };
        distribution.admit(peer, node, is_given, now);
    }

    // Time.

    pub fn handle_timeout(&mut self, now: Instant) {
        self.placement.handle_timeout(now);
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let deadlines = [
            self.distribution.poll_timeout(),
            self.placement.poll_timeout(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Returns the counters of key migration.
    pub const fn migrations(&self) -> &migration::MigrationCounters {
        self.migration.counters()
    }
}

/// A licensed node as a peer, and its identity.
pub(crate) type Licensed = (PeerId, Identity);

/// Returns the licensed nodes among the peers.
pub(crate) fn licensed(peers: &[ike::Peer]) -> BTreeSet<Licensed> {
    let nodes = peers.iter().filter(|peer| peer.role == Role::Licensed);
    let named = nodes.map(|node| (node.id, node.identity.clone()));
    named.collect()
}

/// Returns the licences of the nodes that may fetch keys from a slot's node.
fn onward(
    placement: &Placement,
    peer: PeerId,
    child: Option<&str>,
    ike: &ike::Engine,
) -> Vec<Licence> {
    let migrates = placement.handover(peer) == Some(Handover::Dkm) && is_slot(child);
    let slots = ike.peer(peer).filter(|_| migrates);
    let slots = slots.into_iter().flat_map(|peer| &peer.slots);
    let others = slots.filter(|slot| Some(slot.name.as_str()) != child);
    let licences = others.flat_map(|slot| {
        let licences = slot.zones.licences.iter();
        licences.filter(|licence| slot.is_of(&licence.node) && licence.right == Right::Read)
    });
    licences.take(MAX_LICENCES).cloned().collect()
}
