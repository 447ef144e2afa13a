//! Keys of licensed zones: distributed to licensed nodes, renewed, limited and revoked.
//!
//! Keys cannot be taken back from a node (DESIGN section 4, invariant 5). A licence ends when our
//! configuration drops it or the peer agrees to less. From then on nothing is sealed with keys that
//! the node can use. A rekey starts, and until it completes datagrams are *opaque*: they are sealed
//! as a whole in the payload zone, which every peer accepts without negotiation. If the payload
//! itself was licensed to a node, nothing is sealed with the old keys, and sending does not wait
//! for the new ones. In this case datagrams may be lost.
//!
//! The notification of the node and its answer are housekeeping.

use super::grants::{Csa, Gone, Grants, Lost};
use crate::config::Role;
use crate::effects::{Effect, IkeCommand, Turn};
use crate::tunnels::Tunnels;
use crate::{Cause, Ending, Event};
use crypto::Secret;
use esp::Command;
use ike::{is_slot, path_of};
use model::{
    ChildSa, ChildSaId, CsaId, Deadline, Grant, Identity, IkeSaId, Instant, Licence, Path, PeerId,
};
use std::time::Duration;

/// The composite SAs of this endpoint, and the grants that are sent.
pub(crate) struct Distribution {
    grants: Grants,
    /// Time for which a licensed node may keep the keys of a grant.
    lifetime: Duration,
    /// True if keys leave only after their grant was recorded.
    recording: bool,
    /// Grants that wait for their record.
    unrecorded: Vec<Unrecorded>,
}

/// A grant that waits for its record.
struct Unrecorded {
    /// The node.
    peer: PeerId,
    /// IKE SA to send the grant on.
    sa: IkeSaId,
    grant: Grant<Secret>,
}

impl Distribution {
    pub fn new(lifetime: Duration) -> Self {
        Self {
            grants: Grants::default(),
            lifetime,
            recording: false,
            unrecorded: Vec::new(),
        }
    }

    pub const fn grants(&self) -> &Grants {
        &self.grants
    }

    pub const fn set_lifetime(&mut self, lifetime: Duration) {
        self.lifetime = lifetime;
    }

    pub const fn is_recording(&self) -> bool {
        self.recording
    }

    /// Enters a child SA with licences, which may replace an `old` one: see [`Grants::enter`].
    pub fn enter(
        &mut self,
        child: &ChildSa<Secret>,
        onward: Vec<Licence>,
        old: Option<ChildSaId>,
        nodes: &[(PeerId, Identity)],
        turn: &mut Turn<'_>,
    ) {
        let now = turn.now;
        self.grants.enter(child, onward, old, nodes, turn.rng, now);
    }

    /// Reports the licences of a child SA, if it has any.
    pub fn report(&self, child: &ChildSa<Secret>, turn: &mut Turn<'_>) {
        let agreed = self.grants.of(child.id);
        let Some(csa) = agreed.filter(|csa| !csa.agreement.licences.is_empty()) else {
            return;
        };
        let peer = turn.ike.peer(child.peer);
        let lifetime = peer.map_or_else(Default::default, |peer| {
            let mut beside = peer.children.iter();
            let own = beside.find(|policy| child.name.as_ref() == Some(&policy.name));
            own.map_or(peer.lifetimes.child, |policy| policy.lifetime)
        });
        turn.add(Event::Licensed {
            sa: csa.name(),
            agreement: csa.agreement.clone(),
            lifetime,
        });
    }

    /// Revokes the keys of a child SA that is gone.
    pub fn revoke(
        &mut self,
        child: ChildSaId,
        why: &Ending,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        if let Some(gone) = self.grants.remove(child) {
            take_back(gone, why, tunnels, turn);
        }
    }

    /// Sends a licensed node all grants that it is owed, if its IKE SA is up.
    pub fn distribute(&mut self, node: PeerId, tunnels: &Tunnels, turn: &mut Turn<'_>) {
        let Some(sa) = tunnels.established(node) else {
            return;
        };
        for due in self.grants.take_pending(node, sa, self.lifetime, turn.now) {
            if !self.recording {
                turn.add(IkeCommand::Distribute(sa, Box::new(due.grant)));
                continue;
            }
            turn.add(Event::Giving {
                sa: due.sa,
                node: due.node,
                rights: due.rights,
                lifetime: due.grant.lifetime,
                grant: due.grant.grant,
            });
            self.unrecorded.push(Unrecorded {
                peer: node,
                sa,
                grant: due.grant,
            });
        }
    }

    /// Turns recording on or off. Grants that were withheld so far are offered again.
    pub fn set_recording(&mut self, on: bool, tunnels: &Tunnels, turn: &mut Turn<'_>) {
        self.recording = on;
        self.grants.owe_withheld(turn.now);
        for node in turn.ike.licensed() {
            self.distribute(node.id, tunnels, turn);
        }
    }

    /// Releases the keys of a grant that was recorded, or withholds them with a human-readable
    /// reason.
    pub fn give(
        &mut self,
        csa: CsaId,
        grant: u16,
        recorded: Result<(), String>,
        turn: &mut Turn<'_>,
    ) {
        let asked = |due: &Unrecorded| (due.grant.csa, due.grant.grant) == (csa, grant);
        let Some(index) = self.unrecorded.iter().position(asked) else {
            return;
        };
        let Unrecorded { peer, sa, grant } = self.unrecorded.remove(index);
        match recorded {
            _ if !self.grants.is_due(csa, peer, sa) => {}
            Ok(()) => turn.add(IkeCommand::Distribute(sa, Box::new(grant))),
            Err(why) => self.grants.withhold(peer, csa, why.into(), turn.now),
        }
    }

    /// Handles a licensed node's answer to KEY_DISTRIBUTE. `refusal` is the cause if the node
    /// refused.
    pub fn answered(
        &mut self,
        sa: IkeSaId,
        csa: CsaId,
        refusal: Option<Cause>,
        turn: &mut Turn<'_>,
    ) {
        let Some(peer) = turn.peer(sa) else { return };
        let answered = self.grants.answered(peer, csa, refusal.clone(), turn.now);
        let Some((csa, node)) = answered else {
            return;
        };
        let rights = csa
            .licences(&node)
            .map(|licence| (licence.zone, licence.right))
            .collect();
        let sa = csa.name();
        turn.add(match refusal {
            None => Event::Granted { sa, node, rights },
            Some(why) => Event::GrantRefused { sa, node, why },
        });
    }

    /// Handles a notification that a licensed node has discarded a grant. The notification does not
    /// prove that the node cannot read any more.
    pub fn given_back(&mut self, sa: IkeSaId, csa: CsaId, turn: &mut Turn<'_>) {
        let peer = turn.peer(sa);
        if peer.is_some_and(|peer| self.grants.is_held(peer, csa)) {
            let why = "the node discarded the keys, as their lifetime was over there".to_owned();
            self.answered(sa, csa, Some(why.into()), turn);
        }
    }

    /// Handles the end of the IKE SA with a node. If what the node has proved counts no more,
    /// nothing is sealed for it from now on. It keeps its licence, and gets new keys once it has
    /// proved its identity again.
    pub fn node_lost(
        &mut self,
        sa: IkeSaId,
        why: &ike::DownReason,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        let ending = Ending::NodeGone(why.clone().into());
        for Lost { child, sa, node } in self.grants.node_lost(sa, turn.now) {
            if why.ends_trust() {
                self.shut_out(child, &node, &ending, tunnels, turn);
                continue;
            }
            turn.add(Event::GrantEnded {
                sa,
                node,
                given: true,
                why: ending.clone(),
            });
        }
    }

    /// Seals nothing more that a node opens, and has the keys replaced.
    fn shut_out(
        &mut self,
        child: ChildSaId,
        node: &Identity,
        why: &Ending,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        let Some(csa) = self.grants.of(child) else {
            return;
        };
        let mut allowed = csa.agreement.licences.clone();
        allowed.retain(|licence| licence.node != *node);
        self.limit_to(child, &allowed, why, tunnels, turn);
        if let Some(ike) = tunnels.children().get(child).map(|child| child.ike) {
            turn.add(IkeCommand::ReplaceChild(ike, child));
        }
    }

    /// Sends everything that was sent on an IKE SA again, on the one that has its place.
    pub fn go_by(&mut self, old: IkeSaId, node: PeerId, tunnels: &Tunnels, turn: &mut Turn<'_>) {
        self.grants.node_lost(old, turn.now);
        self.distribute(node, tunnels, turn);
    }

    /// Selects the nodes that receive the keys of a shared slot: see [`Grants::choose`].
    pub fn choose(
        &mut self,
        child: ChildSaId,
        chosen: &[(PeerId, &Identity)],
        most: usize,
        now: Instant,
    ) -> Option<Vec<PeerId>> {
        self.grants.choose(child, chosen, most, now)
    }

    /// Removes licensed nodes that are no longer configured. Returns the child SAs whose keys they
    /// may hold.
    pub fn dismiss(&mut self, peer: PeerId, node: &Identity) -> Vec<ChildSaId> {
        self.grants.dismiss(peer, node)
    }

    /// Adds a licensed node: see [`Grants::admit`].
    pub fn admit(
        &mut self,
        peer: PeerId,
        node: &Identity,
        is_given: impl Fn(PeerId, Option<&str>) -> bool,
        now: Instant,
    ) {
        self.grants.admit(peer, node, is_given, now);
    }

    /// Updates the licences of nodes that may fetch keys from other nodes: see
    /// [`Grants::set_onward`].
    pub fn relicense_onward(
        &mut self,
        onward: impl Fn(PeerId, Option<&str>) -> Vec<Licence>,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        for node in self.grants.set_onward(onward, turn.now) {
            self.distribute(node, tunnels, turn);
        }
    }

    /// Returns true if the SA is not deleted, and no node without a licence could read its payload.
    pub fn may_be_sent_on(&self, id: ChildSaId, tunnels: &Tunnels) -> bool {
        let child = tunnels.children().get(id);
        child.is_some_and(|child| !child.retired) && !self.grants.is_closed(id)
    }

    // Licences that end while packets flow.

    /// Limits the licences of a child SA to those of the configuration, on the path that it has.
    pub fn limit(
        &mut self,
        child: ChildSaId,
        why: &Ending,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        let csa = self.grants.of(child);
        let path = tunnels.children().get(child);
        let path = path.map(|child| child.status.path);
        let allowed = csa.map(|csa| licences(csa, path, turn.ike));
        self.limit_to(child, &allowed.unwrap_or_default(), why, tunnels, turn);
    }

    /// Limits the older SAs for the same traffic to the licences that both ends agreed on in a
    /// rekey.
    pub fn limit_others(&mut self, new: ChildSaId, tunnels: &Tunnels, turn: &mut Turn<'_>) {
        let Some(csa) = self.grants.of(new) else {
            return;
        };
        let allowed = csa.agreement.licences.clone();
        let others = tunnels.children().of_peer(csa.peer);
        let is_beside = |other: &ChildSaId| {
            let other = self.grants.of(*other);
            other.is_some_and(|other| other.is_beside(csa))
        };
        let others: Vec<_> = others.map(|(id, _)| id).filter(is_beside).collect();
        for other in &others {
            self.limit_to(*other, &allowed, &Ending::Rekeyed, tunnels, turn);
        }
        if others.iter().any(|other| self.grants.is_closed(*other)) {
            turn.add(Effect::Prefer(new));
        }
    }

    /// Limits the licences of a child SA to these, and takes back the keys of the others.
    pub fn limit_to(
        &mut self,
        child: ChildSaId,
        allowed: &[Licence],
        why: &Ending,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        let Some(gone) = self.grants.limit(child, allowed) else {
            return;
        };
        turn.add(Command::MakeOpaque(child));
        if self.grants.is_closed(child) {
            turn.add(Command::Retire(child));
            turn.check(gone.sa.peer);
        }
        take_back(gone, why, tunnels, turn);
    }

    // Time.

    /// Renews the grants that are due.
    pub fn handle_timeout(&mut self, tunnels: &Tunnels, turn: &mut Turn<'_>) {
        for node in self.grants.renew(self.lifetime, turn.now) {
            self.distribute(node, tunnels, turn);
        }
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.grants.poll_timeout(self.lifetime)
    }

    #[cfg(test)]
    pub const fn grants_mut(&mut self) -> &mut Grants {
        &mut self.grants
    }
}

/// Notifies licensed nodes, and reports events, that licences ended.
fn take_back(gone: Gone, why: &Ending, tunnels: &Tunnels, turn: &mut Turn<'_>) {
    for node in gone.told {
        if let Some(sa) = tunnels.established(node) {
            turn.add(IkeCommand::Revoke(sa, gone.sa.csa));
        }
    }
    for (node, given) in gone.licensed {
        turn.add(Event::GrantEnded {
            sa: gone.sa.clone(),
            node,
            given,
            why: why.clone(),
        });
    }
}

/// Returns the configured licences of a composite SA on a path.
pub(crate) fn licences(csa: &Csa, path: Option<Path>, ike: &ike::Engine) -> Vec<Licence> {
    let Some(peer) = ike.peer(csa.peer) else {
        return Vec::new();
    };
    let child = csa.child.as_deref();
    let is_further = path_of(child).is_some_and(|number| number > 1);
    let further = path.filter(|_| is_further);
    let slot = match further {
        Some(path) => peer.slot_on(path),
        None => child.and_then(|child| peer.slot(child)),
    };
    match (&peer.role, slot) {
        (Role::Vpn { .. }, Some(slot)) => {
            let zones = slot.zones_for(&csa.agreement.licences);
            zones.licences.clone()
        }
        (Role::Vpn { zones, .. }, None) if !is_slot(child) => zones.licences.clone(),
        _ => Vec::new(),
    }
}

/// Reports the licences of ours that a peer does not accept.
pub(crate) fn report_not_licensed(peer: PeerId, why: &ike::Refusal, turn: &mut Turn<'_>) {
    let Some(peer) = turn.ike.peer(peer) else {
        return;
    };
    let Role::Vpn { zones, .. } = &peer.role else {
        return;
    };
    let licences = match why {
        ike::Refusal::LicenceNotAccepted(licence) => std::slice::from_ref(licence),
        ike::Refusal::ZonesNotAgreed => &zones.licences[..],
        _ => return,
    };
    for licence in licences {
        let place = usize::from(licence.zone.0).checked_sub(1);
        let zone = place.and_then(|place| zones.zones.get(place));
        if let Some((zone, ..)) = zone {
            turn.add(Event::NotLicensed {
                peer: peer.id,
                licence: licence.clone(),
                zone: *zone,
                why: why.clone().into(),
            });
        }
    }
}
