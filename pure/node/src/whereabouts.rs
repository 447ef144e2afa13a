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
//! For a mobile node in two places at once, the location that it sends from counts.
//!
//! A home agent whose mobile node is bound nowhere any more takes all keys of slots back. The
//! mobile node keeps its child SAs, and the slots have new keys when it is bound again. Its own end
//! keeps the last location: a registration ends there for a moment with every move.

mod slots;

use crate::config::Role;
use crate::holders::Sharing;
use crate::mobile_ip::{self, HomeEvent};
use crate::node::Node;
use model::{ChildSaId, Deadline, Identity, IkeSaId, Instant, TrafficSelector};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Time for which both ends continue in the previous slot, so that the new node can get its key
/// (DESIGN section 4, invariant 5).
pub(crate) const MIGRATION: Duration = Duration::from_secs(2);

/// Time for which an end that does not distribute keys leaves the rekey request to the end that
/// does.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time and source of the keys for the licensed nodes that a tunnel moves to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handover {
    /// After the move, from the gateway.
    #[default]
    Push,
    /// Before the move, from the gateway (proactive key distribution).
    Pkd,
    /// After the move, from the previous node (directed key migration).
    Dkm,
}

/// Locations of the licensed nodes on a peer's tunnel, for licences that hold only there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Time and source of the keys.
    pub handover: Handover,
    /// Limit of nodes that hold the keys of a shared slot; `None` if no slot is shared.
    pub holders: Option<usize>,
    /// The nodes, each with the addresses that identify its location.
    pub nodes: Vec<(Identity, Vec<TrafficSelector>)>,
}

impl Places {
    /// Returns the nodes at the location of an address.
    fn at(&self, address: IpAddr) -> impl Iterator<Item = &Identity> {
        let at = move |selectors: &[TrafficSelector]| {
            let mut selectors = selectors.iter();
            selectors.any(|selector| selector.contains(address, 0, None))
        };
        let nodes = self.nodes.iter();
        nodes.filter_map(move |(node, selectors)| at(selectors).then_some(node))
    }

    /// Returns the nodes at the location of any of these addresses.
    fn at_any(&self, addresses: &[IpAddr]) -> Vec<Identity> {
        let mut nodes = Vec::new();
        for node in addresses.iter().flat_map(|address| self.at(*address)) {
            if !nodes.contains(node) {
                nodes.push(node.clone());
            }
        }
        nodes
    }
}

/// State of all tunnels with slots.
#[derive(Default)]
pub(crate) struct Whereabouts {
    /// Locations of licensed nodes, by peer name.
    places: BTreeMap<String, Places>,
    tunnels: BTreeMap<String, Tunnel>,
    /// Deadlines of the tunnels.
    due: BTreeSet<(Instant, String)>,
    /// Peers by their outer address, for the tunnels in `tunnels`.
    ends: BTreeMap<IpAddr, BTreeSet<String>>,
    /// Peers whose tunnels have to be checked.
    stirred: BTreeSet<String>,
    /// Neighbours that licensed nodes announced.
    neighbours: BTreeMap<Identity, Vec<Identity>>,
    /// Neighbours that we announce as a licensed node.
    ours: Vec<Identity>,
}

/// State of one tunnel with slots.
#[derive(Default)]
struct Tunnel {
    /// Outer address of the peer, if known.
    end: Option<IpAddr>,
    /// Nodes that the tunnel passes, the likeliest first.
    here: Vec<Identity>,
    /// State of the shared slots.
    sharing: Sharing,
    /// Node that the traffic is sealed for.
    sealed_for: Option<Identity>,
    /// Child SA of the slot that sends; `None` if the first child sends.
    sent_on: Option<ChildSaId>,
    /// Child SAs that sent and were left, each with true once its rekey was requested.
    spent: BTreeMap<ChildSaId, bool>,
    /// Slots that we requested, with the time of closing for those that are not needed any more.
    opened: BTreeMap<String, Option<Instant>>,
    /// End of the time in which a slot that was left may still send.
    migrates_until: Option<Instant>,
    /// Slot whose keys another node may obtain with a token.
    tokened: Option<Tokened>,
    /// Time of the next check which of several ready slots the mobile node uses.
    glance: Option<Instant>,
    /// End of the time in which the rekey of spent slots is left to the other end, if that end
    /// distributes keys.
    asks_at: Option<Instant>,
}

/// A slot whose keys another node may obtain with a token.
struct Tokened {
    child: ChildSaId,
    /// End of the time in which the slot may send, wherever the tunnel is.
    until: Instant,
    /// Time of the rekey request if the tunnel stays or returns, so that the new keys are ready by
    /// `until`.
    asks_at: Option<Instant>,
    /// True if the rekey request is due.
    asks: bool,
}

impl Whereabouts {
    pub(crate) fn new(places: BTreeMap<String, Places>, ours: Vec<Identity>) -> Self {
        Self {
            places,
            ours,
            ..Self::default()
        }
    }

    /// Replaces the locations of the licensed nodes.
    fn set(&mut self, places: BTreeMap<String, Places>) {
        self.stir_all();
        self.places = places;
        self.stir_all();
    }

    /// Marks a peer's tunnel for a check.
    pub(crate) fn stir(&mut self, peer: &str) {
        if self.places.contains_key(peer) {
            self.stirred.insert(peer.to_owned());
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
                self.stirred.extend(peers.into_iter().flatten().cloned());
            }
            // The mobile node is this host.
            mobile_ip::Event::MobileNode(_) => self.stir_all(),
            mobile_ip::Event::HomeAgent(HomeEvent::Contested { .. })
            | mobile_ip::Event::ForeignAgent(_)
            | mobile_ip::Event::Refused(_) => {}
        }
    }

    /// Updates the index of outer addresses for a peer that has changed its address.
    fn note_end(&mut self, peer: &str, before: Option<IpAddr>, end: Option<IpAddr>) {
        if before == end {
            return;
        }
        if let Some(before) = before
            && let Some(peers) = self.ends.get_mut(&before)
        {
            peers.remove(peer);
            if peers.is_empty() {
                self.ends.remove(&before);
            }
        }
        if let Some(end) = end {
            self.ends.entry(end).or_default().insert(peer.to_owned());
        }
    }

    /// Records the neighbours that a licensed node announced.
    pub(crate) fn note_neighbours(&mut self, node: Identity, neighbours: Vec<Identity>) {
        if self.neighbours.get(&node) == Some(&neighbours) {
            return;
        }
        let stirred = self.tunnels.iter().filter(|(peer, tunnel)| {
            self.handover(peer) == Some(Handover::Pkd) && tunnel.here.contains(&node)
        });
        let stirred: Vec<_> = stirred.map(|(peer, _)| peer.clone()).collect();
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
    pub(crate) fn sent_on(&self, peer: &str) -> Option<ChildSaId> {
        self.tunnels.get(peer)?.sent_on
    }

    /// Returns the hand-over mode for a peer, if it has locations.
    pub(crate) fn handover(&self, peer: &str) -> Option<Handover> {
        Some(self.places.get(peer)?.handover)
    }

    /// Returns the peers that continue in a slot while their tunnel moves, with the slot's child
    /// SA.
    pub(crate) fn migrating(&self) -> impl Iterator<Item = (&str, ChildSaId)> {
        let tunnels = self.tunnels.iter();
        tunnels.filter_map(|(peer, tunnel)| {
            let sent_on = tunnel.sent_on?;
            (self.handover(peer) == Some(Handover::Dkm)).then_some((peer.as_str(), sent_on))
        })
    }

    /// Records that another node may obtain the keys of the slot that sends. The slot is therefore
    /// left soon, even if the move fails.
    pub(crate) fn note_token(&mut self, peer: &str, child: ChildSaId, now: Instant) {
        if let Some(mut tunnel) = self.take(peer) {
            tunnel.token(child, now + MIGRATION, Some(now + PATIENCE));
            self.put(peer, tunnel);
        }
    }

    /// Returns the nodes on a peer's tunnel whose location has this address.
    pub(crate) fn nodes_at(&self, peer: &str, address: IpAddr) -> Vec<Identity> {
        let places = self.places.get(peer);
        let nodes = places.into_iter().flat_map(|places| places.at(address));
        nodes.cloned().collect()
    }

    /// Removes a child SA that is gone.
    pub(crate) fn forget(&mut self, peer: &str, child: ChildSaId) {
        if let Some(tunnel) = self.tunnels.get_mut(peer) {
            tunnel.spent.remove(&child);
            tunnel.sent_on.take_if(|sent_on| *sent_on == child);
        }
        self.stir(peer);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        self.stirred.extend(due.map(|(_, peer)| peer.clone()));
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let (at, _) = self.due.first()?;
        Some(Deadline {
            at: *at,
            reason: "close or leave a slot",
        })
    }

    /// Takes the state of a tunnel out, to change it.
    fn take(&mut self, peer: &str) -> Option<Tunnel> {
        let tunnel = self.tunnels.remove(peer)?;
        if let Some(at) = tunnel.next() {
            self.due.remove(&(at, peer.to_owned()));
        }
        Some(tunnel)
    }

    /// Puts the state of a tunnel back.
    fn put(&mut self, peer: &str, tunnel: Tunnel) {
        self.due
            .extend(tunnel.next().map(|at| (at, peer.to_owned())));
        self.tunnels.insert(peer.to_owned(), tunnel);
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
    pub(crate) fn is_chosen(&self, peer: &str, node: &Identity) -> bool {
        let tunnel = self.tunnels.get(peer);
        tunnel.is_some_and(|tunnel| tunnel.sharing.is_chosen(node))
    }

    /// Returns true if sending with new keys waits until a node holds them. It does not wait for a
    /// node that shares a slot and is not on the tunnel.
    pub(crate) fn is_awaited(&self, peer: &str, node: &Identity) -> bool {
        let tunnel = self.tunnels.get(peer);
        tunnel.is_none_or(|tunnel| tunnel.here.contains(node) || !tunnel.sharing.is_chosen(node))
    }
}

impl Tunnel {
    fn next(&self) -> Option<Instant> {
        let closes = self.opened.values().flatten().copied();
        let tokened = self.tokened.iter();
        let tokened = tokened.flat_map(|tokened| [tokened.asks_at, Some(tokened.until)]);
        let timers = [
            self.migrates_until,
            self.glance,
            self.asks_at,
            self.sharing.next(),
        ];
        let timers = timers.into_iter().chain(tokened);
        closes.chain(timers.flatten()).min()
    }

    /// Cancels everything that is due.
    fn rest(&mut self) {
        self.opened.values_mut().for_each(|closes| *closes = None);
        (self.tokened, self.migrates_until) = (None, None);
        (self.glance, self.asks_at) = (None, None);
        self.sharing.rest();
    }

    /// Records that another node may obtain the keys of a slot from now on. Further tokens do not
    /// extend the time.
    fn token(&mut self, child: ChildSaId, until: Instant, asks_at: Option<Instant>) {
        self.tokened.take_if(|tokened| tokened.child != child);
        self.tokened.get_or_insert(Tokened {
            child,
            until,
            asks_at,
            asks: false,
        });
    }
}

impl Node {
    /// Applies the locations and neighbours of a changed configuration.
    pub(crate) fn relocate(
        &mut self,
        places: BTreeMap<String, Places>,
        neighbours: Vec<Identity>,
        now: Instant,
    ) {
        self.whereabouts.set(places);
        self.relicense_onward(now);
        if self.whereabouts.ours != neighbours {
            self.whereabouts.ours = neighbours;
            let gateways = self.ike.peers().iter();
            let gateways = gateways.filter_map(|peer| self.established(&peer.name));
            for sa in gateways.collect::<Vec<_>>() {
                let ours = self.whereabouts.ours.clone();
                self.ike.tell_neighbours(sa, ours, now);
            }
        }
    }

    /// Announces our neighbours to a gateway, if we have any.
    pub(crate) fn tell_neighbours(&mut self, sa: IkeSaId, now: Instant) {
        let ours = self.whereabouts.ours.clone();
        if !ours.is_empty() {
            self.ike.tell_neighbours(sa, ours, now);
        }
    }

    /// Selects the child SA for the location of each tunnel marked for a check. Returns true if
    /// there was any.
    pub(crate) fn follow(&mut self, now: Instant) -> bool {
        let stirred = std::mem::take(&mut self.whereabouts.stirred);
        for peer in &stirred {
            let mut tunnel = self.whereabouts.take(peer).unwrap_or_default();
            let places = self.whereabouts.places.get(peer).cloned();
            match places.filter(|_| self.established(peer).is_some()) {
                Some(places) => {
                    self.follow_tunnel(peer, &places, &mut tunnel, now);
                    self.whereabouts.put(peer, tunnel);
                }
                None => self.let_go(peer, &tunnel, now),
            }
        }
        !stirred.is_empty()
    }

    /// Releases the slots of a tunnel that is down or has no locations any more.
    fn let_go(&mut self, peer: &str, tunnel: &Tunnel, now: Instant) {
        self.whereabouts.note_end(peer, tunnel.end, None);
        for slot in tunnel.opened.keys() {
            // The slot may be gone already.
            let _ = self.ike.release_child(peer, slot, now);
        }
        tunnel
            .sent_on
            .iter()
            .for_each(|child| self.workers.retire(*child));
    }

    fn follow_tunnel(&mut self, peer: &str, places: &Places, tunnel: &mut Tunnel, now: Instant) {
        let ends = self.outside(peer);
        let end = ends.map(|[_, remote]| remote);
        let before = std::mem::replace(&mut tunnel.end, end);
        self.whereabouts.note_end(peer, before, end);
        if end.is_some_and(|end| self.is_unbound(end)) {
            return self.take_back_slots(peer, tunnel, now);
        }
        let passes = ends.map_or_else(Vec::new, |ends| self.passes(ends));
        let here = match passes.is_empty() {
            // Packets cannot arrive until the location is known, and it may turn out to be the old
            // one.
            true => tunnel.here.clone(),
            false => places.at_any(&passes),
        };
        if here != tunnel.here {
            if places.handover == Handover::Dkm {
                self.spend_unused(peer, tunnel, &here);
            }
            let goes_on = places.handover == Handover::Dkm && tunnel.sent_on.is_some();
            // A further move in the meantime does not extend the time.
            let until = goes_on.then(|| tunnel.migrates_until.unwrap_or(now + MIGRATION));
            if let (Some(until), Some(child)) = (until, tunnel.sent_on) {
                // Neither does a return to the same location.
                tunnel.token(child, until, None);
            }
            tunnel.migrates_until = until;
            tunnel.asks_at = Some(now + PATIENCE);
            tunnel.here = here;
        }
        self.leave_tokened(peer, tunnel, now);
        let mut near = self.whereabouts.near(places, &tunnel.here);
        near.retain(|node| self.gives_to(node).is_some());
        self.tend_slots(peer, &near, tunnel, now);
        let sharing = &mut tunnel.sharing;
        self.tend_holders(peer, places, (&near, &tunnel.here), sharing, now);
        self.renew_spent(peer, tunnel, now);
        self.choose_slot(peer, tunnel, now);
    }

    /// Returns the name of the licensed node with this identity, if we can distribute keys to it.
    pub(crate) fn gives_to(&self, node: &Identity) -> Option<&str> {
        let mut peers = self.ike.peers_named(node);
        let known = peers.find(|peer| peer.role == Role::Licensed);
        known.map(|peer| peer.name.as_str())
    }

    /// Returns our outer address and that of a peer's tunnel.
    fn outside(&self, peer: &str) -> Option<[IpAddr; 2]> {
        let path = self.ike.sa(self.established(peer)?)?.path;
        Some([path.local.ip(), path.remote.ip()])
    }

    /// Returns true if the peer at this address is a mobile node of ours that is bound nowhere.
    fn is_unbound(&self, peer: IpAddr) -> bool {
        let part = self.mobile_ip.as_ref();
        part.is_some_and(|part| part.is_unbound(peer))
    }

    /// Returns the addresses that identify the location of a tunnel with these ends, the newest
    /// first.
    fn passes(&self, [local, remote]: [IpAddr; 2]) -> Vec<IpAddr> {
        let part = self.mobile_ip.as_ref();
        let care_of = part.and_then(|part| part.care_of(remote));
        care_of.unwrap_or_else(|| vec![remote, local])
    }
}

#[cfg(test)]
#[path = "tests/whereabouts.rs"]
mod tests;
