//! The gateway's table of composite SAs and of the licensed nodes that hold their keys
//! (DESIGN section 5).
//!
//! A composite SA with licences is entered when it comes up. Every known licensed node
//! (`[licensed.NAME]`) with a licence in the SA is owed a grant. The grant is sent as soon as the
//! IKE SA with the node is up. It is sent again, under a fresh number, after that IKE SA was lost
//! and at half of the grant's lifetime. A grant only ever contains zones and rights that the
//! agreement licenses to the node's authenticated identity (invariant 4).
//!
//! The agreement of a shared slot licenses all of its nodes, but only a few receive the keys
//! ([`Grants::choose`]). The limit counts every node that ever received the keys, because no node
//! can be made to forget them.

use crate::Cause;
use crate::event::Composite;
use crypto::{Rng, Secret};
use ike::{slot_name, token_key};
use model::{
    BesideSa, ChildSa, ChildSaId, CsaId, Deadline, Grant, GrantHalf, Half, Identity, IkeSaId,
    Instant, Keys, Licence, Onward, PeerId, Right, Spi, Zone, ZoneAgreement, ZoneId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// State of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantState {
    /// Waiting for the IKE SA with the node.
    Pending,
    /// Sent, and not yet acknowledged.
    Sent,
    /// Acknowledged: the node holds the keys.
    Held,
    /// The node refused, or the grant could not be sent. It is retried after the IKE SA with the
    /// node is re-established.
    Refused,
}

/// All composite SAs of this endpoint. What concerns one SA or one node visits no others.
#[derive(Default)]
pub(crate) struct Grants {
    all: BTreeMap<ChildSaId, Csa>,
    by_id: BTreeMap<CsaId, ChildSaId>,
    /// The composite SAs of which a node's state matters, by that state.
    index: BTreeSet<(Entry, ChildSaId)>,
    /// Number of visits to all composite SAs.
    #[cfg(test)]
    pub(crate) walks: std::cell::Cell<usize>,
}

/// State of a node that is looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    /// This node is owed a grant.
    Owed(PeerId),
    /// The last grant was sent on this IKE SA.
    SentOn(IkeSaId),
    /// The grant is held since this time.
    Held(Instant),
}

/// One composite SA of this endpoint.
pub(crate) struct Csa {
    pub id: CsaId,
    /// Identifier of the first SA of the line. A rekey adds a composite SA to the same line.
    line: CsaId,
    pub peer: PeerId,
    pub child: Option<String>,
    pub agreement: ZoneAgreement,
    pub inbound: Half<Secret>,
    pub outbound: Half<Secret>,
    /// Inbound and outbound SPI of the opaque companion SA.
    pub opaque: Option<(Spi, Spi)>,
    /// Inbound and outbound SPI of the companion SA for unencrypted packets.
    pub integrity: Option<(Spi, Spi)>,
    pub holders: Vec<Holder>,
    /// Nodes that were ever sent a grant, including those that no longer hold the keys.
    given: BTreeSet<Identity>,
    /// Root of the token keys, if this is a slot.
    pub tokens: Option<Secret>,
    /// Licences of other nodes that may fetch keys from this slot's node.
    onward: Vec<Licence>,
    /// True if nothing may be sealed with these keys any more.
    pub closed: bool,
    /// Odd at the initiator and even at the responder, because both may grant and the overlay key
    /// is derived from the number.
    next_grant: u16,
}

/// A node that is owed or holds a grant.
pub(crate) struct Holder {
    /// The node as a peer.
    pub peer: PeerId,
    pub node: Identity,
    pub state: GrantState,
    /// IKE SA on which the grant was sent.
    sa: Option<IkeSaId>,
    /// The cause of a refusal. Boxed because most holders have none.
    pub refusal: Option<Box<Cause>>,
    /// True if the grant was withheld here and never left.
    withheld: bool,
    /// True if the node holds keys of an earlier grant. It keeps them while a renewal is pending,
    /// withheld or refused.
    has_keys: bool,
    pub since: Instant,
}

/// A grant ready to be sent.
pub(crate) struct Due {
    pub sa: Composite,
    pub node: Identity,
    pub rights: Vec<(Zone, Right)>,
    pub grant: Grant<Secret>,
}

/// Licences that ended, all of one composite SA.
pub(crate) struct Gone {
    pub sa: Composite,
    /// The nodes to notify, because they may hold keys.
    pub told: Vec<PeerId>,
    /// Every node that lost a licence, and true if it may hold keys that we sent.
    pub licensed: Vec<(Identity, bool)>,
}

/// A node whose IKE SA ended while it may have held the keys of a child SA.
pub(crate) struct Lost {
    pub child: ChildSaId,
    pub sa: Composite,
    pub node: Identity,
}

impl Holder {
    fn new(peer: PeerId, node: &Identity, now: Instant) -> Self {
        Self {
            peer,
            node: node.clone(),
            state: GrantState::Pending,
            sa: None,
            refusal: None,
            withheld: false,
            has_keys: false,
            since: now,
        }
    }

    /// Returns true if the node may hold keys that we sent.
    const fn may_read(&self) -> bool {
        self.has_keys || matches!(self.state, GrantState::Sent | GrantState::Held)
    }

    /// Schedules a new grant for the node.
    fn owe(&mut self, now: Instant) {
        (self.state, self.withheld, self.since) = (GrantState::Pending, false, now);
    }

    fn entries(&self) -> impl Iterator<Item = Entry> {
        let state = match self.state {
            GrantState::Pending => Some(Entry::Owed(self.peer)),
            GrantState::Held => Some(Entry::Held(self.since)),
            GrantState::Sent | GrantState::Refused => None,
        };
        state.into_iter().chain(self.sa.map(Entry::SentOn))
    }
}

impl Csa {
    /// Returns the licences of a node.
    pub fn licences<'a>(&'a self, node: &'a Identity) -> impl Iterator<Item = &'a Licence> {
        self.agreement
            .licences
            .iter()
            .filter(move |licence| licence.node == *node)
    }

    /// Returns the names and SPIs that events report.
    pub fn name(&self) -> Composite {
        Composite {
            csa: self.id,
            peer: self.peer,
            child: self.child.clone(),
            inbound: self.inbound.spi,
            outbound: self.outbound.spi,
        }
    }

    /// Returns true if both SAs are for the same traffic of the same peer.
    pub fn is_beside(&self, other: &Self) -> bool {
        (self.peer, &self.child) == (other.peer, &other.child) && self.id != other.id
    }

    /// Returns the consequences of removing all licences of `nodes`.
    fn without(&self, nodes: &BTreeSet<Identity>) -> Gone {
        let concerned = |holder: &&Holder| nodes.contains(&holder.node);
        let told = |holder: &&Holder| holder.has_keys || holder.state != GrantState::Pending;
        let holds = |node: &Identity| {
            let holder = self.holders.iter().find(|holder| holder.node == *node);
            holder.is_some_and(Holder::may_read)
        };
        let told = self.holders.iter().filter(concerned).filter(told);
        Gone {
            sa: self.name(),
            told: told.map(|holder| holder.peer).collect(),
            licensed: nodes
                .iter()
                .map(|node| (node.clone(), holds(node)))
                .collect(),
        }
    }

    /// Carries out [`Grants::choose`].
    fn choose(
        &mut self,
        chosen: &[(PeerId, &Identity)],
        most: usize,
        now: Instant,
    ) -> Option<Vec<PeerId>> {
        let is_chosen = |node: &Identity| chosen.iter().any(|(_, chosen)| *chosen == node);
        self.holders
            .retain(|holder| holder.may_read() || is_chosen(&holder.node));
        let new = chosen.iter().filter(|(_, node)| !self.given.contains(node));
        if self.given.len() + new.count() > most {
            return None;
        }
        let mut owed = Vec::new();
        for (peer, node) in chosen {
            let has = self.holders.iter().any(|holder| holder.node == **node);
            if !has && self.licences(node).next().is_some() {
                self.holders.push(Holder::new(*peer, node, now));
                owed.push(*peer);
            }
        }
        Some(owed)
    }

    /// Carries out [`Grants::limit`].
    fn limit(&mut self, allowed: &[Licence]) -> Option<Gone> {
        let payload = self.agreement.payload_zone();
        let licences = &mut self.agreement.licences;
        let lost = licences.iter().filter(|licence| !allowed.contains(licence));
        let nodes: BTreeSet<_> = lost.map(|licence| licence.node.clone()).collect();
        if nodes.is_empty() {
            return None;
        }
        self.closed |= licences.iter().any(|licence| licence.zone == payload);
        licences.retain(|licence| !nodes.contains(&licence.node));
        let gone = self.without(&nodes);
        self.holders.retain(|holder| !nodes.contains(&holder.node));
        Some(gone)
    }

    /// Takes out the pending grant of a node, to be sent on its IKE SA.
    fn take_pending(
        &mut self,
        peer: PeerId,
        sa: IkeSaId,
        lifetime: Duration,
        now: Instant,
    ) -> Option<Due> {
        let pending = |holder: &Holder| holder.peer == peer && holder.state == GrantState::Pending;
        let index = self.holders.iter().position(pending)?;
        let node = self.holders[index].node.clone();
        let grant = self.grant(&node, lifetime);
        // A grant that cannot be created counts as refused and is not retried.
        let state = match grant {
            Some(_) => GrantState::Sent,
            None => GrantState::Refused,
        };
        let holder = &mut self.holders[index];
        (holder.state, holder.sa, holder.since) = (state, Some(sa), now);
        let grant = grant?;
        self.given.insert(node.clone());
        Some(Due {
            sa: self.name(),
            rights: self.rights(&node),
            node,
            grant,
        })
    }

    /// Returns the rights of a node, each with its zone.
    fn rights(&self, node: &Identity) -> Vec<(Zone, Right)> {
        let zone = |id| self.agreement.zones.iter().find(|zone| zone.id == id);
        let licences = self.licences(node);
        licences
            .filter_map(|licence| Some((*zone(licence.zone)?, licence.right)))
            .collect()
    }

    /// Returns the zones that a node is licensed for.
    fn licensed_zones(&self, node: &Identity) -> Vec<ZoneId> {
        self.licences(node).map(|licence| licence.zone).collect()
    }

    /// Returns the next grant for a node. Returns `None` if the grant numbers are used up (a number
    /// is never used twice in a composite SA), or if the node has no licence for the designated
    /// zone, without which it cannot distinguish packets.
    fn grant(&mut self, node: &Identity, lifetime: Duration) -> Option<Grant<Secret>> {
        let zones = self.licensed_zones(node);
        let own = [Right::Write, Right::Inject].map(|right| {
            let mut licences = self.licences(node);
            licences.any(|licence| licence.right == right)
        });
        let grant = self.next_grant;
        self.next_grant = grant.checked_add(2)?;
        zones.contains(&ZoneId::DESIGNATED).then(|| Grant {
            csa: self.id,
            line: self.line,
            grant,
            payload_zone: self.agreement.payload_zone(),
            suites: self.agreement.zones.iter().map(|zone| zone.suite).collect(),
            map: self.agreement.map.clone(),
            window: self.agreement.window,
            lifetime,
            onward: self.onward(node),
            from_gateway: share(&self.outbound, &zones, (grant, own)),
            to_gateway: share(&self.inbound, &zones, (grant, own)),
        })
    }

    /// Returns the licences that a node may serve with its own keys: only the node of the slot, and
    /// only if others are licensed.
    fn onward(&self, node: &Identity) -> Option<Onward<Secret>> {
        let root = self.tokens.as_ref()?;
        let is_its_own = self.child.as_deref() == Some(&slot_name([node]));
        (is_its_own && !self.onward.is_empty()).then(|| Onward {
            key: token_key(root, node),
            licences: self.onward.clone(),
        })
    }
}

/// Returns the keys of the licensed zones and no others. A node that may write or inject also
/// receives the key for its overlays or injected packets.
fn share(
    half: &Half<Secret>,
    zones: &[ZoneId],
    (grant, [writes, injects]): (u16, [bool; 2]),
) -> GrantHalf<Secret> {
    let keys = match &half.keys {
        Keys::Zoned(keys) => keys.as_slice(),
        Keys::Plain { .. } => &[],
    };
    let licensed = keys.iter().filter(|key| zones.contains(&key.zone));
    let own = |root: &Option<Secret>, may: bool| {
        let root = root.as_ref().filter(|_| may);
        root.map(|root| esp::grant_key(root, grant))
    };
    GrantHalf {
        spi: half.spi,
        zones: licensed
            .map(|key| (key.zone, key.suite, key.key.clone()))
            .collect(),
        overlay: own(&half.writers, writes),
        injection: own(&half.injectors, injects),
    }
}

impl Grants {
    pub fn iter(&self) -> impl Iterator<Item = (&ChildSaId, &Csa)> {
        #[cfg(test)]
        self.walks.update(|walks| walks + 1);
        self.all.iter()
    }

    /// Enters a composite SA, which may replace an `old` one. `onward` lists the licences of nodes
    /// that may fetch keys from the slot's node. `nodes` are its licensed nodes that may receive
    /// keys now, as peers and by identity.
    pub fn enter(
        &mut self,
        child: &ChildSa<Secret>,
        onward: Vec<Licence>,
        old: Option<ChildSaId>,
        nodes: &[(PeerId, Identity)],
        rng: &mut Rng,
        now: Instant,
    ) {
        let Some(agreement) = &child.agreement else {
            return;
        };
        let id = CsaId(rng.u64());
        let spis = |sa: &BesideSa<Secret>| (sa.inbound.spi, sa.outbound.spi);
        let old = old.and_then(|old| self.all.get(&old));
        let holders = nodes.iter();
        let csa = Csa {
            id,
            line: old.map_or(id, |old| old.line),
            peer: child.peer,
            child: child.name.clone(),
            agreement: agreement.clone(),
            inbound: child.inbound.clone(),
            outbound: child.outbound.clone(),
            opaque: child.opaque.as_ref().map(spis),
            integrity: child.integrity.as_ref().map(spis),
            holders: holders
                .map(|(peer, node)| Holder::new(*peer, node, now))
                .collect(),
            given: BTreeSet::new(),
            tokens: child.tokens.clone(),
            onward,
            closed: false,
            next_grant: if child.initiator { 1 } else { 2 },
        };
        self.by_id.insert(id, child.id);
        self.index.extend(indexed(child.id, &csa));
        self.all.insert(child.id, csa);
    }

    /// Returns true if nothing may be sealed with the keys of a child SA any more.
    pub fn is_closed(&self, child: ChildSaId) -> bool {
        self.of(child).is_some_and(|csa| csa.closed)
    }

    /// Returns the composite SA of a child SA.
    pub fn of(&self, child: ChildSaId) -> Option<&Csa> {
        self.all.get(&child)
    }

    /// Returns true if every awaited node has accepted or refused its grant. `is_awaited` takes the
    /// peer and the identity of the node. Returns `None` if no node is owed a grant
    /// here: any licences are then for the other endpoint to serve.
    pub fn settled(
        &self,
        child: ChildSaId,
        is_awaited: impl Fn(PeerId, &Identity) -> bool,
    ) -> Option<bool> {
        let csa = self.all.get(&child)?;
        let settled = |holder: &Holder| {
            let answered = matches!(holder.state, GrantState::Held | GrantState::Refused);
            answered || !is_awaited(csa.peer, &holder.node)
        };
        (!csa.holders.is_empty()).then(|| csa.holders.iter().all(settled))
    }

    /// Schedules grants for a new licensed node, for every composite SA that licenses the node and
    /// may be given to it now. `is_given` takes the peer and the name of the child.
    pub fn admit(
        &mut self,
        peer: PeerId,
        node: &Identity,
        is_given: impl Fn(PeerId, Option<&str>) -> bool,
        now: Instant,
    ) {
        self.change_all(|_, csa| {
            let is_licensed = csa.licences(node).next().is_some();
            if is_licensed && is_given(csa.peer, csa.child.as_deref()) {
                csa.holders.push(Holder::new(peer, node, now));
            }
        });
    }

    /// Selects the nodes that receive the keys of a shared slot, as peers and by identity. Returns
    /// the nodes that are owed a grant since this call. A node that never received the
    /// keys and is not selected is no longer owed them. Returns `None` if more than `most` nodes
    /// would have received the keys: no further node is then owed a grant, and only a rekey can
    /// serve the selected nodes.
    pub fn choose(
        &mut self,
        child: ChildSaId,
        chosen: &[(PeerId, &Identity)],
        most: usize,
        now: Instant,
    ) -> Option<Vec<PeerId>> {
        let owed = self.change(child, |csa| csa.choose(chosen, most, now));
        owed.unwrap_or_else(|| Some(Vec::new()))
    }

    /// Returns true if a node is owed the keys of a composite SA or has received them.
    pub fn is_for(&self, child: ChildSaId, node: &Identity) -> bool {
        let holders = self.of(child).map_or(&[][..], |csa| &csa.holders);
        holders.iter().any(|holder| holder.node == *node)
    }

    /// Updates the licences of nodes that may fetch keys from other nodes. `onward` takes the peer
    /// and the name of the child. Returns the nodes that are owed a new grant because their old one
    /// differs.
    pub fn set_onward(
        &mut self,
        onward: impl Fn(PeerId, Option<&str>) -> Vec<Licence>,
        now: Instant,
    ) -> Vec<PeerId> {
        let mut told = Vec::new();
        self.change_all(|_, csa| {
            let onward = onward(csa.peer, csa.child.as_deref());
            if std::mem::replace(&mut csa.onward, onward) == csa.onward {
                return;
            }
            let holders = csa.holders.iter_mut();
            for holder in holders.filter(|holder| holder.may_read()) {
                holder.owe(now);
                told.push(holder.peer);
            }
        });
        told
    }

    /// Removes a licensed node. Returns the child SAs whose keys the node may hold. They have to be
    /// rekeyed, because keys cannot be taken back from a node (invariant 5).
    pub fn dismiss(&mut self, peer: PeerId, node: &Identity) -> Vec<ChildSaId> {
        let mut read = Vec::new();
        self.change_all(|child, csa| {
            if csa.given.contains(node) {
                read.push(child);
            }
            csa.holders.retain(|holder| holder.peer != peer);
        });
        read
    }

    /// Limits the licences of a composite SA to the allowed ones. A node that loses one licence
    /// loses all of its licences there, because they form one grant. If any node was licensed for
    /// the payload, the keys become unusable. Returns `None` if no licence has to go.
    pub fn limit(&mut self, child: ChildSaId, allowed: &[Licence]) -> Option<Gone> {
        self.change(child, |csa| csa.limit(allowed)).flatten()
    }

    /// Forgets a composite SA.
    pub fn remove(&mut self, child: ChildSaId) -> Option<Gone> {
        let csa = self.all.remove(&child)?;
        self.by_id.remove(&csa.id);
        for entry in indexed(child, &csa) {
            self.index.remove(&entry);
        }
        let licences = csa.agreement.licences.iter();
        let nodes = licences.map(|licence| licence.node.clone()).collect();
        Some(csa.without(&nodes))
    }

    /// Takes out the pending grants of a node, to be sent on its IKE SA.
    pub fn take_pending(
        &mut self,
        peer: PeerId,
        sa: IkeSaId,
        lifetime: Duration,
        now: Instant,
    ) -> Vec<Due> {
        let pending = self.with(&Entry::Owed(peer));
        let due = pending.into_iter().filter_map(|child| {
            let due = self.change(child, |csa| csa.take_pending(peer, sa, lifetime, now));
            due.flatten()
        });
        due.collect()
    }

    /// Returns true if a grant may still be sent: its composite SA and the IKE SA for it still
    /// exist.
    pub fn is_due(&self, id: CsaId, peer: PeerId, sa: IkeSaId) -> bool {
        let csa = self.by_id.get(&id).and_then(|child| self.all.get(child));
        let mut holders = csa.into_iter().flat_map(|csa| &csa.holders);
        holders.any(|holder| {
            let sent = holder.state == GrantState::Sent;
            sent && holder.peer == peer && holder.sa == Some(sa)
        })
    }

    /// Marks a grant as withheld.
    pub fn withhold(&mut self, peer: PeerId, id: CsaId, why: Cause, now: Instant) {
        let answered = self.answered(peer, id, Some(why), now);
        if answered.is_some() {
            self.change_holder(peer, id, |holder| holder.withheld = true);
        }
    }

    /// Schedules every withheld grant again.
    pub fn owe_withheld(&mut self, now: Instant) {
        self.change_all(|_, csa| {
            let withheld = csa.holders.iter_mut().filter(|holder| holder.withheld);
            withheld.for_each(|holder| holder.owe(now));
        });
    }

    /// Handles the loss of an IKE SA: everything that was sent on it is owed again. Returns the
    /// nodes that may have held keys, with the composite SA of each.
    pub fn node_lost(&mut self, sa: IkeSaId, now: Instant) -> Vec<Lost> {
        let mut lost = Vec::new();
        let on_it = |holder: &Holder| holder.sa == Some(sa);
        for child in self.with(&Entry::SentOn(sa)) {
            self.change(child, |csa| {
                let readers = csa.holders.iter();
                let readers = readers.filter(|holder| on_it(holder) && holder.may_read());
                lost.extend(readers.map(|holder| Lost {
                    child,
                    sa: csa.name(),
                    node: holder.node.clone(),
                }));
                for holder in csa.holders.iter_mut().filter(|holder| on_it(holder)) {
                    holder.has_keys = false;
                    holder.owe(now);
                }
            });
        }
        lost
    }

    /// Schedules the renewal of every grant that was held for half of its lifetime. Returns the
    /// holders.
    pub fn renew(&mut self, lifetime: Duration, now: Instant) -> Vec<PeerId> {
        let is_due = |since: Instant| since + lifetime / 2 <= now;
        let due = self.held().take_while(|(since, _)| is_due(*since));
        let due: Vec<_> = due.map(|(_, child)| child).collect();
        let mut holders = Vec::new();
        for child in due {
            self.change(child, |csa| {
                let held = csa.holders.iter_mut();
                let held = held.filter(|holder| holder.state == GrantState::Held);
                for holder in held.filter(|holder| is_due(holder.since)) {
                    holder.owe(now);
                    holders.push(holder.peer);
                }
            });
        }
        holders
    }

    /// Returns the time of the next renewal.
    pub fn poll_timeout(&self, lifetime: Duration) -> Option<Deadline> {
        let (since, _) = self.held().next()?;
        Some(Deadline {
            at: since + lifetime / 2,
            reason: "renew a grant",
        })
    }

    /// Handles a node's answer, which has a cause if the node refused. Returns the composite SA
    /// concerned and the node's identity.
    pub fn answered(
        &mut self,
        peer: PeerId,
        id: CsaId,
        refusal: Option<Cause>,
        now: Instant,
    ) -> Option<(&Csa, Identity)> {
        let node = self.change_holder(peer, id, |holder| {
            holder.since = now;
            holder.has_keys |= refusal.is_none();
            holder.state = match refusal {
                None => GrantState::Held,
                Some(_) => GrantState::Refused,
            };
            holder.refusal = refusal.map(Box::new);
            holder.node.clone()
        })?;
        let csa = self.all.get(self.by_id.get(&id)?)?;
        Some((csa, node))
    }

    /// Returns true if a node has acknowledged the latest grant.
    pub fn is_held(&self, peer: PeerId, id: CsaId) -> bool {
        let csa = self.by_id.get(&id).and_then(|child| self.all.get(child));
        let mut holders = csa.into_iter().flat_map(|csa| &csa.holders);
        holders.any(|holder| holder.peer == peer && holder.state == GrantState::Held)
    }

    /// Returns the child SAs of the composite SAs with an entry in the index.
    fn with(&self, entry: &Entry) -> Vec<ChildSaId> {
        let from = (entry.clone(), ChildSaId(0));
        let found = self.index.range(from..);
        let found = found.take_while(|(other, _)| other == entry);
        found.map(|(_, child)| *child).collect()
    }

    /// Returns the composite SAs with a grant that is held, and since when, the oldest first.
    fn held(&self) -> impl Iterator<Item = (Instant, ChildSaId)> {
        let from = (Entry::Held(Instant::ZERO), ChildSaId(0));
        let held = self.index.range(from..);
        held.filter_map(|(entry, child)| match entry {
            Entry::Held(since) => Some((*since, *child)),
            Entry::Owed(_) | Entry::SentOn(_) => None,
        })
    }

    /// Changes one composite SA, and keeps the index consistent.
    fn change<T>(&mut self, child: ChildSaId, change: impl FnOnce(&mut Csa) -> T) -> Option<T> {
        let csa = self.all.get_mut(&child)?;
        let before = indexed(child, csa);
        let outcome = change(csa);
        let after = indexed(child, csa);
        for entry in before.difference(&after) {
            self.index.remove(entry);
        }
        self.index.extend(after.difference(&before).cloned());
        Some(outcome)
    }

    fn change_holder<T>(
        &mut self,
        peer: PeerId,
        id: CsaId,
        change: impl FnOnce(&mut Holder) -> T,
    ) -> Option<T> {
        let child = *self.by_id.get(&id)?;
        let changed = self.change(child, |csa| {
            let mut holders = csa.holders.iter_mut();
            holders.find(|holder| holder.peer == peer).map(change)
        });
        changed.flatten()
    }

    fn change_all(&mut self, mut change: impl FnMut(ChildSaId, &mut Csa)) {
        #[cfg(test)]
        self.walks.update(|walks| walks + 1);
        for child in self.all.keys().copied().collect::<Vec<_>>() {
            self.change(child, |csa| change(child, csa));
        }
    }
}

/// Returns the entries of a composite SA in the index.
fn indexed(child: ChildSaId, csa: &Csa) -> BTreeSet<(Entry, ChildSaId)> {
    let entries = csa.holders.iter().flat_map(Holder::entries);
    entries.map(|entry| (entry, child)).collect()
}
