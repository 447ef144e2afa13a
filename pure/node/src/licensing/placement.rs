//! The location of tunnels, and which licensed nodes may read them as a result (DESIGN section 5).
//!
//! A licence may hold only in certain places. Its node then has a *slot*: a child SA of its own for
//! the same traffic (`slot.rs` of `ike`). The child SA that sends determines which node may read.
//! The choice follows the location of the tunnel: the care-of address of the mobile node or,
//! without Mobile IP, the outer addresses. Each end determines the location by itself, without
//! negotiation, because packets are opened on any child SA. Where no slot exists, or not yet,
//! packets are sent on the first child, whose keys such nodes never have.
//!
//! Keys that a node received must not open later packets. A slot that was in use and left is
//! therefore *spent*. Nothing is sealed in it any more. When the mobile node returns, the slot is
//! rekeyed.
//!
//! The end that can distribute a node's keys requests its slot. The time depends on the
//! [`Handover`]:
//!
//! * **Push**: when the mobile node has moved to the node.
//! * **PKD**: when the mobile node may move to the node next, as announced by its current node for
//!   its neighbours. A move then changes only the SPI, without a message. Nodes may share a slot
//!   (`holders.rs`): a move among them changes nothing at all.
//! * **DKM**: as with push. In the meantime both ends continue in the slot of the previous node,
//!   for [`MIGRATION`] at most. The new node fetches its key from the previous one
//!   (`migration.rs`).
//!
//! An end may license all nodes of a domain. It learns the location of each node with the offer of
//! the node's slot, from the end that distributes keys ([`Placement::learn`]). Once a licence names
//! the node, what was learned does not count.
//!
//! For a mobile node in two places at once, the location that it sends from counts.
//!
//! A home agent whose mobile node is bound nowhere any more takes all keys of slots back. The
//! mobile node keeps its child SAs, and the slots have new keys when it is bound again. Its own end
//! keeps the last location: a registration ends there for a moment with every move.

use super::distribution::Distribution;
use super::places::{Handover, Places};
use super::site::Site;
use super::slots::Tunnel;
use crate::effects::{IkeCommand, Turn};
use crate::mobile_ip::{self, HomeEvent, MobileIp};
use crate::tunnels::Tunnels;
use crate::tunnels::live_paths::SlotUse;
use model::{ChildSaId, Deadline, Identity, IkeSaId, Instant, PeerId, Shared, TrafficSelector};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Time for which both ends continue in the previous slot, so that the new node can get its key
/// (DESIGN section 4, invariant 5).
pub(crate) const MIGRATION: Duration = Duration::from_secs(2);

/// Time for which an end that does not distribute keys leaves the rekey request to the end that
/// does.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// State of all tunnels with slots.
#[derive(Default)]
pub(crate) struct Placement {
    /// Locations of licensed nodes, by peer.
    places: BTreeMap<PeerId, Shared<Places>>,
    tunnels: BTreeMap<PeerId, Tunnel>,
    /// Deadlines of the tunnels.
    due: BTreeSet<(Instant, PeerId)>,
    /// Peers by their outer address, for the tunnels in `tunnels`.
    ends: BTreeMap<IpAddr, BTreeSet<PeerId>>,
    /// Peers whose tunnels have to be checked.
    stirred: BTreeSet<PeerId>,
    /// Neighbours that licensed nodes announced.
    neighbours: BTreeMap<Identity, Vec<Identity>>,
    /// Neighbours that we announce as a licensed node.
    ours: Vec<Identity>,
}

impl Placement {
    pub(crate) fn new(places: BTreeMap<PeerId, Shared<Places>>, ours: Vec<Identity>) -> Self {
        Self {
            places,
            ours,
            ..Self::default()
        }
    }

    /// Replaces the locations of the licensed nodes.
    pub(crate) fn set_places(&mut self, places: BTreeMap<PeerId, Shared<Places>>) {
        self.stir_all();
        self.places = places;
        self.stir_all();
    }

    /// Sets the locations of the licensed nodes of one peer.
    pub(crate) fn set_place(&mut self, peer: PeerId, places: Option<Shared<Places>>) {
        match places {
            Some(places) => drop(self.places.insert(peer, places)),
            None => drop(self.places.remove(&peer)),
        }
    }

    /// Sets the neighbours that we announce, to all peers that are up if they differ.
    pub(crate) fn set_neighbours(
        &mut self,
        neighbours: Vec<Identity>,
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        if self.ours != neighbours {
            self.ours = neighbours;
            let gateways = turn.ike.peers().iter();
            let gateways = gateways.filter_map(|peer| tunnels.established(peer.id));
            for sa in gateways.collect::<Vec<_>>() {
                turn.add(IkeCommand::TellNeighbours(sa, self.ours.clone()));
            }
        }
    }

    /// Announces our neighbours to a gateway, if we have any.
    pub(crate) fn tell_neighbours(&self, sa: IkeSaId, turn: &mut Turn<'_>) {
        if !self.ours.is_empty() {
            turn.add(IkeCommand::TellNeighbours(sa, self.ours.clone()));
        }
    }

    /// Selects the child SA for the location of each tunnel marked for a check. Returns true if
    /// there was any.
    pub(crate) fn follow(
        &mut self,
        distribution: &mut Distribution,
        tunnels: &Tunnels,
        mobile_ip: Option<&MobileIp>,
        turn: &mut Turn<'_>,
    ) -> bool {
        let stirred = std::mem::take(&mut self.stirred);
        let any = !stirred.is_empty();
        for peer in stirred {
            let mut tunnel = self.take(peer).unwrap_or_default();
            let places = self.places.get(&peer).cloned();
            let site = &mut Site::new(peer, distribution, tunnels, turn);
            match places.filter(|_| tunnels.established(peer).is_some()) {
                Some(places) => {
                    self.follow_tunnel(&places, &mut tunnel, mobile_ip, site);
                    self.put(peer, tunnel);
                }
                None => {
                    self.note_end(peer, tunnel.end(), None);
                    tunnel.let_go(site);
                }
            }
        }
        any
    }

    fn follow_tunnel(
        &mut self,
        places: &Places,
        tunnel: &mut Tunnel,
        mobile_ip: Option<&MobileIp>,
        site: &mut Site<'_, '_>,
    ) {
        let ends = site.outside();
        let end = ends.map(|[_, remote]| remote);
        let before = tunnel.set_end(end);
        self.note_end(site.peer, before, end);
        let is_unbound = |end| mobile_ip.is_some_and(|part| part.is_unbound(end));
        if end.is_some_and(is_unbound) {
            return tunnel.take_back(site);
        }
        let passes = ends.map_or_else(Vec::new, |ends| passes(ends, mobile_ip));
        // Packets cannot arrive until the location is known, and it may turn out to be the old one.
        if !passes.is_empty() {
            let learned = tunnel.learned().iter();
            let learned: Vec<_> = learned
                .filter(|(node, _)| site.is_in_domain(node))
                .collect();
            let here = places.at_any(&passes, &learned);
            tunnel.go_to(here, places.handover, site);
        }
        tunnel.leave_tokened(site);
        let mut near = self.near(places, tunnel.here());
        near.retain(|node| site.gives_to(node).is_some());
        places.limit(&mut near);
        tunnel.tend(&near, &places.limits, site);
        tunnel.share(places.holders, &near, site);
        tunnel.renew_spent(site);
        tunnel.choose(site);
    }

    /// Marks a peer's tunnel for a check.
    pub(crate) fn stir(&mut self, peer: PeerId) {
        if self.places.contains_key(&peer) {
            self.stirred.insert(peer);
        }
    }

    fn stir_all(&mut self) {
        self.stirred.extend(self.places.keys().cloned());
    }

    /// Marks the tunnels of the mobile node that may have moved. A home agent may have thousands of
    /// others, which are not checked.
    pub(crate) fn note_mobile_ip(&mut self, event: &mobile_ip::Event) {
        match event {
            mobile_ip::Event::HomeAgent(
                HomeEvent::Bound { home, .. }
                | HomeEvent::Renewed { home }
                | HomeEvent::Remapped { home, .. }
                | HomeEvent::Unbound { home },
            ) => {
                let peers = self.ends.get(&IpAddr::from(*home));
                self.stirred.extend(peers.into_iter().flatten().copied());
            }
            // The mobile node is this host.
            mobile_ip::Event::MobileNode(_) => self.stir_all(),
            mobile_ip::Event::HomeAgent(HomeEvent::Contested { .. })
            | mobile_ip::Event::ForeignAgent(_)
            | mobile_ip::Event::Refused(_) => {}
        }
    }

    /// Updates the index of outer addresses for a peer that has changed its address.
    fn note_end(&mut self, peer: PeerId, before: Option<IpAddr>, end: Option<IpAddr>) {
        if before == end {
            return;
        }
        if let Some(before) = before
            && let Some(peers) = self.ends.get_mut(&before)
        {
            peers.remove(&peer);
            if peers.is_empty() {
                self.ends.remove(&before);
            }
        }
        if let Some(end) = end {
            self.ends.entry(end).or_default().insert(peer);
        }
    }

    /// Records the location of a node of a licensed domain, which the peer offers that distributes
    /// the node's keys.
    pub(crate) fn learn(&mut self, peer: PeerId, node: Identity, place: Vec<TrafficSelector>) {
        if self.places.contains_key(&peer) {
            let mut tunnel = self.take(peer).unwrap_or_default();
            tunnel.learn(node, place);
            self.put(peer, tunnel);
            self.stirred.insert(peer);
        }
    }

    /// Records the neighbours that a licensed node announced.
    pub(crate) fn note_neighbours(&mut self, node: Identity, neighbours: Vec<Identity>) {
        if self.neighbours.get(&node) == Some(&neighbours) {
            return;
        }
        let stirred = self.tunnels.iter().filter(|(peer, tunnel)| {
            self.handover(**peer) == Some(Handover::Pkd) && tunnel.here().contains(&node)
        });
        let stirred: Vec<_> = stirred.map(|(peer, _)| *peer).collect();
        self.stirred.extend(stirred);
        self.neighbours.insert(node, neighbours);
    }

    /// Discards the neighbours of a licensed node that has reconnected. The node announces them
    /// again if it has any.
    pub(crate) fn forget_neighbours(&mut self, node: &Identity) {
        if self.neighbours.contains_key(node) {
            self.note_neighbours(node.clone(), Vec::new());
            self.neighbours.remove(node);
        }
    }

    /// Returns the child SA of the slot that sends for a peer, if a slot does.
    pub(crate) fn sent_on(&self, peer: PeerId) -> Option<ChildSaId> {
        self.tunnels.get(&peer)?.sent_on()
    }

    /// Returns the use of a peer's slots.
    pub(crate) fn slots(&self, peer: PeerId) -> SlotUse {
        let tunnel = self.tunnels.get(&peer);
        let sends = tunnel.and_then(Tunnel::sent_on);
        let has_node = tunnel.is_some_and(|tunnel| !tunnel.here().is_empty());
        SlotUse {
            sends,
            is_awaited: has_node && sends.is_none(),
        }
    }

    /// Returns the hand-over mode for a peer, if it has locations.
    pub(crate) fn handover(&self, peer: PeerId) -> Option<Handover> {
        Some(self.places.get(&peer)?.handover)
    }

    /// Returns the peers that continue in a slot while their tunnel moves, with the slot's child
    /// SA.
    pub(crate) fn migrating(&self) -> impl Iterator<Item = (PeerId, ChildSaId)> {
        let tunnels = self.tunnels.iter();
        tunnels.filter_map(|(peer, tunnel)| {
            let sent_on = tunnel.sent_on()?;
            (self.handover(*peer) == Some(Handover::Dkm)).then_some((*peer, sent_on))
        })
    }

    /// Records that another node may obtain the keys of the slot that sends. The slot is therefore
    /// left soon, even if the move fails.
    pub(crate) fn note_token(&mut self, peer: PeerId, child: ChildSaId, now: Instant) {
        if let Some(mut tunnel) = self.take(peer) {
            tunnel.token(child, now + MIGRATION, Some(now + PATIENCE));
            self.put(peer, tunnel);
        }
    }

    /// Returns the nodes on a peer's tunnel whose location has this address.
    pub(crate) fn nodes_at(&self, peer: PeerId, address: IpAddr) -> Vec<Identity> {
        let places = self.places.get(&peer);
        let nodes = places.into_iter().flat_map(|places| places.at(address));
        nodes.cloned().collect()
    }

    /// Removes a child SA that is gone.
    pub(crate) fn forget(&mut self, peer: PeerId, child: ChildSaId) {
        if let Some(tunnel) = self.tunnels.get_mut(&peer) {
            tunnel.forget(child);
        }
        self.stir(peer);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        self.stirred.extend(due.map(|(_, peer)| *peer));
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let (at, _) = self.due.first()?;
        Some(Deadline {
            at: *at,
            reason: "close or leave a slot",
        })
    }

    /// Takes the state of a tunnel out, to change it.
    fn take(&mut self, peer: PeerId) -> Option<Tunnel> {
        let tunnel = self.tunnels.remove(&peer)?;
        if let Some(at) = tunnel.next() {
            self.due.remove(&(at, peer));
        }
        Some(tunnel)
    }

    /// Puts the state of a tunnel back.
    fn put(&mut self, peer: PeerId, tunnel: Tunnel) {
        self.due.extend(tunnel.next().map(|at| (at, peer)));
        self.tunnels.insert(peer, tunnel);
    }

    /// Returns the nodes at the tunnel's location and those that it may move to next, the likeliest
    /// first.
    fn near(&self, places: &Places, here: &[Identity]) -> Vec<Identity> {
        let mut near = here.to_vec();
        if places.handover == Handover::Pkd {
            let next = here.iter().filter_map(|node| self.neighbours.get(node));
            for next in next.flatten() {
                let has_place = places.nodes.iter().any(|(node, _)| node == next);
                if has_place && !near.contains(next) {
                    near.push(next.clone());
                }
            }
        }
        near
    }

    /// Returns true if a node is selected for the keys of a peer's shared slot.
    pub(crate) fn is_chosen(&self, peer: PeerId, node: &Identity) -> bool {
        let tunnel = self.tunnels.get(&peer);
        tunnel.is_some_and(|tunnel| tunnel.is_chosen(node))
    }

    /// Returns true if sending with new keys waits until a node holds them. It does not wait for a
    /// node that shares a slot and is not on the tunnel.
    pub(crate) fn is_awaited(&self, peer: PeerId, node: &Identity) -> bool {
        let tunnel = self.tunnels.get(&peer);
        tunnel.is_none_or(|tunnel| tunnel.here().contains(node) || !tunnel.is_chosen(node))
    }
}

/// Returns the addresses that identify the location of a tunnel with these ends, the newest first.
fn passes([local, remote]: [IpAddr; 2], mobile_ip: Option<&MobileIp>) -> Vec<IpAddr> {
    let care_of = mobile_ip.and_then(|part| part.care_of(remote));
    care_of.unwrap_or_else(|| vec![remote, local])
}

#[cfg(test)]
#[path = "../tests/placement.rs"]
mod tests;
