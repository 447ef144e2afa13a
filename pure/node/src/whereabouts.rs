//! Where tunnels pass, and so who may read them (DESIGN section 5).
//!
//! A licence may hold in some places alone. Its node has a *slot* then, a child of its own for the same traffic
//! (`slot.rs` of `ike`), and which child is sent on says who may read. That follows from where the tunnel passes:
//! from the care-of address of the mobile node, or, where Mobile IP has no part in it, from the addresses outside.
//! Each end sees that for itself and says nothing of it, for what comes is opened on whichever child. Where there is no
//! slot, or none yet, packets go on the first child, whose keys such nodes never have.
//!
//! What a node has had is of no use for what comes later: a slot that was sent on and left is *spent*. Nothing is
//! sealed in it any more, and when the mobile node is back it has new keys, or gets them.
//!
//! Whoever can give a node its keys asks for its slot. When, says the [`Handover`]:
//!
//! * **Push**: when the mobile node has come to it.
//! * **PKD**: when the mobile node may come to it next, by what the node where it is says of its neighbours. So a
//!   move changes the SPI and nothing has to be said.
//!   Nodes may share a slot (`holders.rs`): then a move among them changes nothing at all.
//! * **DKM**: as push. Meanwhile both ends go on in the slot of the node before, whose key the new one gets from that
//!   node (`migration.rs`), but for [`MIGRATION`] at most.
//!
//! Of a mobile node that is in two places at once, the side that it sends by is taken.

mod slots;

use crate::config::Role;
use crate::holders::Sharing;
use crate::mobile_ip::{self, HomeEvent};
use crate::node::Node;
use model::{ChildSaId, Deadline, Identity, IkeSaId, Instant, TrafficSelector};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// How long both ends go on in the slot that was left, for the new node to get its key (DESIGN section 4, invariant 5).
pub(crate) const MIGRATION: Duration = Duration::from_secs(2);

/// How long an end that gives keys to nodes has to ask for new ones before the other one does.
const PATIENCE: Duration = Duration::from_secs(1);

/// When licensed nodes get the keys of a tunnel that comes to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handover {
    /// When it has come, from the gateway.
    #[default]
    Push,
    /// Before it comes, from the gateway (proactive key distribution).
    Pkd,
    /// When it has come, from the node where it was (directed key migration).
    Dkm,
}

/// Where the licensed nodes of a peer's tunnel are, for those whose licences hold only there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// When they get keys.
    pub handover: Handover,
    /// How many may have the keys of a slot that they share, if they share any.
    pub holders: Option<usize>,
    /// Each with the addresses by which it is known that the tunnel passes it.
    pub nodes: Vec<(Identity, Vec<TrafficSelector>)>,
}

impl Places {
    /// The nodes that are where this address says.
    fn at(&self, address: IpAddr) -> impl Iterator<Item = &Identity> {
        let at = move |selectors: &[TrafficSelector]| {
            let mut selectors = selectors.iter();
            selectors.any(|selector| selector.contains(address, 0, None))
        };
        let nodes = self.nodes.iter();
        nodes.filter_map(move |(node, selectors)| at(selectors).then_some(node))
    }

    /// The nodes that are where any of these addresses says.
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

/// All tunnels that have slots.
#[derive(Default)]
pub(crate) struct Whereabouts {
    /// By the names of peers.
    places: BTreeMap<String, Places>,
    tunnels: BTreeMap<String, Tunnel>,
    /// The peers at the other end of them, by their addresses outside.
    ends: BTreeMap<IpAddr, BTreeSet<String>>,
    /// Peers of whose tunnels something may be different now.
    stirred: BTreeSet<String>,
    /// What licensed nodes have said.
    neighbours: BTreeMap<Identity, Vec<Identity>>,
    /// What we say, being one.
    ours: Vec<Identity>,
}

/// One of them.
#[derive(Default)]
struct Tunnel {
    /// The address of the peer, if it is known.
    end: Option<IpAddr>,
    /// The nodes that it passes, the likeliest first.
    here: Vec<Identity>,
    /// Who has the keys of slots that nodes share.
    sharing: Sharing,
    /// Whom what is sealed is for.
    sealed_for: Option<Identity>,
    /// The child of the slot that is sent on; otherwise it is the first child.
    sent_on: Option<ChildSaId>,
    /// Those that were sent on and left, and whether new keys were asked for.
    spent: BTreeMap<ChildSaId, bool>,
    /// The slots that we have asked for, and when those are closed that are not wanted any more.
    opened: BTreeMap<String, Option<Instant>>,
    /// Until when it may go on in a slot that was left.
    migrates_until: Option<Instant>,
    /// A slot whose keys another node may have by a token.
    tokened: Option<Tokened>,
    /// When it is looked again by which of several ways the mobile node sends.
    glance: Option<Instant>,
    /// Until when it is for the other end to ask for new keys of what is spent, if that gives them to nodes.
    asks_at: Option<Instant>,
}

/// A slot whose keys another node may have by a token.
struct Tokened {
    child: ChildSaId,
    /// Until when it may be sent on, wherever the tunnel is.
    until: Instant,
    /// From when on new keys are asked for where the tunnel is still or again, so that they are there by then.
    asks_at: Option<Instant>,
    /// Whether that is now.
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

    /// Other places from now on.
    fn set(&mut self, places: BTreeMap<String, Places>) {
        self.stir_all();
        self.places = places;
        self.stir_all();
    }

    /// Something may be different with a peer's tunnel.
    pub(crate) fn stir(&mut self, peer: &str) {
        if self.places.contains_key(peer) {
            self.stirred.insert(peer.to_owned());
        }
    }

    fn stir_all(&mut self) {
        self.stirred.extend(self.places.keys().cloned());
    }

    /// A mobile node may be somewhere else now. Of others, of which a home agent may have thousands, nothing is different.
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
            // We are the one.
            mobile_ip::Event::MobileNode(_) => self.stir_all(),
            mobile_ip::Event::HomeAgent(HomeEvent::Contested { .. })
            | mobile_ip::Event::ForeignAgent(_)
            | mobile_ip::Event::Refused(_) => {}
        }
    }

    /// A peer is at this address, and not where it was.
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

    /// A licensed node has said where mobile nodes may go from it.
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

    /// A licensed node is there anew. If it has neighbours it says so.
    pub(crate) fn forget_neighbours(&mut self, node: &Identity) {
        if self.neighbours.contains_key(node) {
            self.note_neighbours(node.clone(), Vec::new());
            self.neighbours.remove(node);
        }
    }

    /// The slot's child that a peer's packets go on, if they do.
    pub(crate) fn sent_on(&self, peer: &str) -> Option<ChildSaId> {
        self.tunnels.get(peer)?.sent_on
    }

    /// When the nodes of a peer's tunnel get their keys, if there are places.
    pub(crate) fn handover(&self, peer: &str) -> Option<Handover> {
        Some(self.places.get(peer)?.handover)
    }

    /// The peers of which both ends go on in a slot while its tunnel moves, and that slot's child.
    pub(crate) fn migrating(&self) -> impl Iterator<Item = (&str, ChildSaId)> {
        let tunnels = self.tunnels.iter();
        tunnels.filter_map(|(peer, tunnel)| {
            let sent_on = tunnel.sent_on?;
            (self.handover(peer) == Some(Handover::Dkm)).then_some((peer.as_str(), sent_on))
        })
    }

    /// Another node may have the keys of the slot that is sent on: so it is left soon, even if nothing comes of the move.
    pub(crate) fn note_token(&mut self, peer: &str, child: ChildSaId, now: Instant) {
        if let Some(tunnel) = self.tunnels.get_mut(peer) {
            tunnel.token(child, now + MIGRATION, Some(now + PATIENCE));
        }
    }

    /// The nodes of a peer's tunnel that it passes if this is an address by which that is known.
    pub(crate) fn nodes_at(&self, peer: &str, address: IpAddr) -> Vec<Identity> {
        let places = self.places.get(peer);
        let nodes = places.into_iter().flat_map(|places| places.at(address));
        nodes.cloned().collect()
    }

    /// A child is gone.
    pub(crate) fn forget(&mut self, peer: &str, child: ChildSaId) {
        if let Some(tunnel) = self.tunnels.get_mut(peer) {
            tunnel.spent.remove(&child);
            tunnel.sent_on.take_if(|sent_on| *sent_on == child);
        }
        self.stir(peer);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let due = self.tunnels.iter();
        let due = due.filter(|(_, tunnel)| tunnel.next().is_some_and(|at| at <= now));
        self.stirred.extend(due.map(|(peer, _)| peer.clone()));
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let next = self.tunnels.values().filter_map(Tunnel::next);
        Some(Deadline {
            at: next.min()?,
            reason: "a slot is closed, or left",
        })
    }

    /// The nodes of where a peer's tunnel is, and of where it may go next, the likeliest first.
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

    /// Whether a node is to have the keys of a shared slot of a peer's.
    pub(crate) fn is_chosen(&self, peer: &str, node: &Identity) -> bool {
        let tunnel = self.tunnels.get(peer);
        tunnel.is_some_and(|tunnel| tunnel.sharing.is_chosen(node))
    }

    /// Whether new keys of a peer's tunnel wait for a node to have them: not for one that shares them and to which nobody
    /// has come.
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

    /// Another node may have the keys of a slot from now on. Whoever else may have them gives no more time.
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
    /// The configuration has other places and neighbours, perhaps.
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
            let gateways = self.peers.iter();
            let gateways = gateways.filter_map(|peer| self.established(&peer.name));
            for sa in gateways.collect::<Vec<_>>() {
                let ours = self.whereabouts.ours.clone();
                self.ike.tell_neighbours(sa, ours, now);
            }
        }
    }

    /// Says our neighbours, if we have any, to a gateway; to anybody else nothing.
    pub(crate) fn tell_neighbours(&mut self, sa: IkeSaId, now: Instant) {
        let ours = self.whereabouts.ours.clone();
        if !ours.is_empty() {
            self.ike.tell_neighbours(sa, ours, now);
        }
    }

    /// Has each tunnel go on the child that is for where it passes, if anything may be different with it; whether
    /// that was so with any.
    pub(crate) fn follow(&mut self, now: Instant) -> bool {
        let stirred = std::mem::take(&mut self.whereabouts.stirred);
        for peer in &stirred {
            let mut tunnel = self.whereabouts.tunnels.remove(peer).unwrap_or_default();
            let places = self.whereabouts.places.get(peer).cloned();
            match places.filter(|_| self.established(peer).is_some()) {
                Some(places) => {
                    self.follow_tunnel(peer, &places, &mut tunnel, now);
                    self.whereabouts.tunnels.insert(peer.clone(), tunnel);
                }
                None => self.let_go(peer, &tunnel, now),
            }
        }
        !stirred.is_empty()
    }

    /// A tunnel is down, or is to have no slots any more.
    fn let_go(&mut self, peer: &str, tunnel: &Tunnel, now: Instant) {
        self.whereabouts.note_end(peer, tunnel.end, None);
        for slot in tunnel.opened.keys() {
            // It may be gone already.
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
        let passes = ends.map_or_else(Vec::new, |ends| self.passes(ends));
        let here = match passes.is_empty() {
            // Nothing arrives anywhere until that is known, and it may be where it was.
            true => tunnel.here.clone(),
            false => places.at_any(&passes),
        };
        if here != tunnel.here {
            if places.handover == Handover::Dkm {
                self.spend_unused(peer, tunnel, &here);
            }
            let goes_on = places.handover == Handover::Dkm && tunnel.sent_on.is_some();
            // Where it goes meanwhile gives it no more time.
            let until = goes_on.then(|| tunnel.migrates_until.unwrap_or(now + MIGRATION));
            if let (Some(until), Some(child)) = (until, tunnel.sent_on) {
                // Nor does it if it comes back.
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

    /// The licensed node of this identity that we can give keys to, if there is one.
    pub(crate) fn gives_to(&self, node: &Identity) -> Option<&str> {
        let mut peers = self.peers.iter();
        let known = peers.find(|peer| peer.role == Role::Licensed && peer.identity == *node);
        known.map(|peer| peer.name.as_str())
    }

    /// Our address and a peer's outside its tunnel.
    fn outside(&self, peer: &str) -> Option<[IpAddr; 2]> {
        let path = self.ike.sa(self.established(peer)?)?.path;
        Some([path.local.ip(), path.remote.ip()])
    }

    /// By which addresses it is known where a tunnel with these ends passes, the newest first.
    fn passes(&self, [local, remote]: [IpAddr; 2]) -> Vec<IpAddr> {
        let part = self.mobile_ip.as_ref();
        let care_of = part.and_then(|part| part.care_of(remote));
        care_of.unwrap_or_else(|| vec![remote, local])
    }
}

#[cfg(test)]
#[path = "tests/whereabouts.rs"]
mod tests;
