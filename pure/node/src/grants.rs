//! The gateway's book of composite SAs and of who holds keys to them (DESIGN section 5).
//!
//! A composite SA whose agreement names licences is entered when it comes up. Every licensed node
//! that we know (`[licensed.NAME]`) and that has licences in it is owed a grant; the grant leaves
//! as soon as the IKE SA with that node is up, and again, under a fresh number, whenever that IKE
//! SA was lost in between and at half of its lifetime. Only zones and rights that the agreement licenses to the node's
//! authenticated identity are ever in a grant (invariant 4).
//!
//! A slot that nodes share licenses all of them, and is given to few at a time ([`Grants::choose`]). What counts there
//! is who was ever given the keys, for no node can be made to forget them.

use crate::event::Composite;
use crypto::{Rng, Secret};
use ike::{slot_name, token_key};
use model::{
    BesideSa, ChildSa, ChildSaId, CsaId, Deadline, Grant, GrantHalf, Half, Identity, IkeSaId,
    Instant, Keys, Licence, Onward, Right, Spi, Zone, ZoneAgreement, ZoneId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How far a grant has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantState {
    /// Waits for the IKE SA with the node.
    Pending,
    /// Sent, not yet answered.
    Sent,
    /// The node holds the keys.
    Held,
    /// The node refused; it is not asked again until its IKE SA is made anew.
    Refused,
}

/// All composite SAs of this endpoint.
#[derive(Default)]
pub(crate) struct Grants(BTreeMap<ChildSaId, Csa>);

/// One composite SA, as its endpoint sees it.
pub(crate) struct Csa {
    pub id: CsaId,
    /// The first of its line: a rekey makes another composite SA of the same line.
    line: CsaId,
    pub peer: String,
    pub child: Option<String>,
    pub agreement: ZoneAgreement,
    pub inbound: Half<Secret>,
    pub outbound: Half<Secret>,
    /// Where the opaque SA beside is received, here and there.
    pub opaque: Option<(Spi, Spi)>,
    /// The same of what goes without encryption.
    pub integrity: Option<(Spi, Spi)>,
    pub holders: Vec<Holder>,
    /// Whom a grant has left for, whether it has the keys still or not.
    given: BTreeSet<Identity>,
    /// What the keys of tokens are made of, if it is a slot.
    pub tokens: Option<Secret>,
    /// Who may have what from its node.
    onward: Vec<Licence>,
    /// Whether nothing may be sealed with its keys any more.
    pub closed: bool,
    /// Odd at the initiator and even at the responder: both may grant, and the key of an overlay is made
    /// of the number.
    next_grant: u16,
}

/// A node that is owed or holds a grant.
pub(crate) struct Holder {
    /// Name of the node's table.
    pub name: String,
    pub node: Identity,
    pub state: GrantState,
    /// The IKE SA it was sent on.
    sa: Option<IkeSaId>,
    /// Why it was refused, for a person.
    pub refusal: Option<String>,
    /// Whether it was refused here: it never left.
    withheld: bool,
    /// Whether the node has keys of an earlier grant, which it keeps when a renewal waits, is withheld or refused.
    has_keys: bool,
    pub since: Instant,
}

/// A grant that is to be sent.
pub(crate) struct Due {
    pub sa: Composite,
    pub node: Identity,
    pub rights: Vec<(Zone, Right)>,
    pub grant: Grant<Secret>,
}

/// Licences that are gone, or a whole composite SA.
pub(crate) struct Gone {
    pub sa: Composite,
    /// Names of the nodes that may hold keys to it.
    pub told: Vec<String>,
    /// Every node that had one of them, and whether it may hold keys of us.
    pub licensed: Vec<(Identity, bool)>,
}

impl Holder {
    fn new(name: &str, node: &Identity, now: Instant) -> Self {
        Self {
            name: name.to_owned(),
            node: node.clone(),
            state: GrantState::Pending,
            sa: None,
            refusal: None,
            withheld: false,
            has_keys: false,
            since: now,
        }
    }

    /// Whether it may have keys of us.
    const fn may_read(&self) -> bool {
        self.has_keys || matches!(self.state, GrantState::Sent | GrantState::Held)
    }

    /// It is owed a grant.
    fn owe(&mut self, now: Instant) {
        (self.state, self.withheld, self.since) = (GrantState::Pending, false, now);
    }

    /// When its grant is to be renewed, long before the node forgets it.
    fn renewal(&self, lifetime: Duration) -> Option<Instant> {
        (self.state == GrantState::Held).then(|| self.since + lifetime / 2)
    }
}

impl Csa {
    /// Licences of one node.
    pub fn licences<'a>(&'a self, node: &'a Identity) -> impl Iterator<Item = &'a Licence> {
        self.agreement
            .licences
            .iter()
            .filter(move |licence| licence.node == *node)
    }

    /// As it is told from others.
    pub fn name(&self) -> Composite {
        Composite {
            csa: self.id,
            peer: self.peer.clone(),
            child: self.child.clone(),
            inbound: self.inbound.spi,
            outbound: self.outbound.spi,
        }
    }

    /// Whether it is for the same traffic of the same peer as another one.
    pub fn is_beside(&self, other: &Self) -> bool {
        (&self.peer, &self.child) == (&other.peer, &other.child) && self.id != other.id
    }

    /// What is gone if these nodes lose their licences.
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
            told: told.map(|holder| holder.name.clone()).collect(),
            licensed: nodes
                .iter()
                .map(|node| (node.clone(), holds(node)))
                .collect(),
        }
    }

    /// What a node may do with which zone.
    fn rights(&self, node: &Identity) -> Vec<(Zone, Right)> {
        let zone = |id| self.agreement.zones.iter().find(|zone| zone.id == id);
        let licences = self.licences(node);
        licences
            .filter_map(|licence| Some((*zone(licence.zone)?, licence.right)))
            .collect()
    }

    /// Whether the outbound half of this composite SA names a node as reader of a zone.
    fn licensed_zones(&self, node: &Identity) -> Vec<ZoneId> {
        self.licences(node).map(|licence| licence.zone).collect()
    }

    /// The next grant for a node, or `None` if the grant numbers are used up (never used twice in
    /// a composite SA) or the node has no licence for the designated zone, without which it cannot
    /// tell one packet from another.
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

    /// What a node may hand on: the one whose slot it is, if there are others.
    fn onward(&self, node: &Identity) -> Option<Onward<Secret>> {
        let root = self.tokens.as_ref()?;
        let is_its_own = self.child.as_deref() == Some(&slot_name([node]));
        (is_its_own && !self.onward.is_empty()).then(|| Onward {
            key: token_key(root, node),
            licences: self.onward.clone(),
        })
    }
}

/// The keys of the licensed zones, and no others; and those of what a node makes itself, if it is to write or
/// to inject.
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
        self.0.iter()
    }

    /// Enters a composite SA, which may take the place of an `old` one, and who may have what of it from its node.
    /// `nodes` are the licensed nodes we can reach that may be given keys now, by name and identity.
    pub fn enter<'a>(
        &mut self,
        (child, onward): (&ChildSa<Secret>, Vec<Licence>),
        old: Option<ChildSaId>,
        nodes: impl Iterator<Item = (&'a String, &'a Identity)>,
        rng: &mut Rng,
        now: Instant,
    ) {
        let Some(agreement) = &child.agreement else {
            return;
        };
        let id = CsaId(rng.u64());
        let spis = |sa: &BesideSa<Secret>| (sa.inbound.spi, sa.outbound.spi);
        let old = old.and_then(|old| self.0.get(&old));
        let mut csa = Csa {
            id,
            line: old.map_or(id, |old| old.line),
            peer: child.peer.clone(),
            child: child.name.clone(),
            agreement: agreement.clone(),
            inbound: child.inbound.clone(),
            outbound: child.outbound.clone(),
            opaque: child.opaque.as_ref().map(spis),
            integrity: child.integrity.as_ref().map(spis),
            holders: Vec::new(),
            given: BTreeSet::new(),
            tokens: child.tokens.clone(),
            onward,
            closed: false,
            next_grant: if child.initiator { 1 } else { 2 },
        };
        csa.holders = nodes
            .filter(|(_, node)| csa.licences(node).next().is_some())
            .map(|(name, node)| Holder::new(name, node, now))
            .collect();
        self.0.insert(child.id, csa);
    }

    /// Whether nothing may be sealed with a child SA's keys any more.
    pub fn is_closed(&self, child: ChildSaId) -> bool {
        self.of(child).is_some_and(|csa| csa.closed)
    }

    /// A composite SA by its child SA.
    pub fn of(&self, child: ChildSaId) -> Option<&Csa> {
        self.0.get(&child)
    }

    /// Whether every node that is owed a grant, and is awaited by the peer's name, has taken or refused it. `None` if there
    /// is none to give one to: then licences, if there are any, are the other endpoint's to see to.
    pub fn settled(
        &self,
        child: ChildSaId,
        is_awaited: impl Fn(&str, &Identity) -> bool,
    ) -> Option<bool> {
        let csa = self.0.get(&child)?;
        let settled = |holder: &Holder| {
            let answered = matches!(holder.state, GrantState::Held | GrantState::Refused);
            answered || !is_awaited(&csa.peer, &holder.node)
        };
        (!csa.holders.is_empty()).then(|| csa.holders.iter().all(settled))
    }

    /// A licensed node has become known: it is owed every composite SA that licenses it and may be given to it now, as is
    /// said by the peer's name and the child's.
    pub fn admit(
        &mut self,
        name: &str,
        node: &Identity,
        is_given: impl Fn(&str, Option<&str>) -> bool,
        now: Instant,
    ) {
        let licensing = |csa: &&mut Csa| csa.licences(node).next().is_some();
        for csa in self.0.values_mut().filter(licensing) {
            if is_given(&csa.peer, csa.child.as_deref()) {
                csa.holders.push(Holder::new(name, node, now));
            }
        }
    }

    /// Of a slot that nodes share, these are to have the keys now, by name and identity; gives the names of those that are owed
    /// them only now. Whoever was never given them and is not among these is owed none any more. `None` if that would make
    /// more than `most` that have had them: then nobody else is owed any, and only new keys can be given to these.
    pub fn choose(
        &mut self,
        child: ChildSaId,
        chosen: &[(String, &Identity)],
        most: usize,
        now: Instant,
    ) -> Option<Vec<String>> {
        let Some(csa) = self.0.get_mut(&child) else {
            return Some(Vec::new());
        };
        let is_chosen = |node: &Identity| chosen.iter().any(|(_, chosen)| *chosen == node);
        csa.holders
            .retain(|holder| holder.may_read() || is_chosen(&holder.node));
        let new = chosen.iter().filter(|(_, node)| !csa.given.contains(node));
        if csa.given.len() + new.count() > most {
            return None;
        }
        let mut owed = Vec::new();
        for (name, node) in chosen {
            let has = csa.holders.iter().any(|holder| holder.node == **node);
            if !has && csa.licences(node).next().is_some() {
                csa.holders.push(Holder::new(name, node, now));
                owed.push(name.clone());
            }
        }
        Some(owed)
    }

    /// Whether a node is owed the keys of a composite SA, or has been given them.
    pub fn is_for(&self, child: ChildSaId, node: &Identity) -> bool {
        let holders = self.of(child).map_or(&[][..], |csa| &csa.holders);
        holders.iter().any(|holder| holder.node == *node)
    }

    /// Others may have what from nodes, as is said by the peer's name and the child's: whoever was told otherwise is
    /// owed a grant again.
    pub fn set_onward(
        &mut self,
        onward: impl Fn(&str, Option<&str>) -> Vec<Licence>,
        now: Instant,
    ) -> Vec<String> {
        let mut told = Vec::new();
        for csa in self.0.values_mut() {
            let onward = onward(&csa.peer, csa.child.as_deref());
            if std::mem::replace(&mut csa.onward, onward) == csa.onward {
                continue;
            }
            let holders = csa.holders.iter_mut();
            for holder in holders.filter(|holder| holder.may_read()) {
                holder.owe(now);
                told.push(holder.name.clone());
            }
        }
        told
    }

    /// A licensed node is known no more. Gives the child SAs whose keys it may hold: they have to
    /// be made anew, for what a node has learnt cannot be taken back (invariant 5).
    pub fn dismiss(&mut self, name: &str, node: &Identity) -> Vec<ChildSaId> {
        let mut read = Vec::new();
        for (child, csa) in &mut self.0 {
            if csa.given.contains(node) {
                read.push(*child);
            }
            csa.holders.retain(|holder| holder.name != name);
        }
        read
    }

    /// Leaves a composite SA no more than the licences that are allowed. A node that loses one loses all
    /// that it has there, for they are one grant. Where the payload is licensed to anybody the keys are
    /// of no use any more. `None` if there are no others than those.
    pub fn limit(&mut self, child: ChildSaId, allowed: &[Licence]) -> Option<Gone> {
        let csa = self.0.get_mut(&child)?;
        let payload = csa.agreement.payload_zone();
        let licences = &mut csa.agreement.licences;
        let lost = licences.iter().filter(|licence| !allowed.contains(licence));
        let nodes: BTreeSet<_> = lost.map(|licence| licence.node.clone()).collect();
        if nodes.is_empty() {
            return None;
        }
        csa.closed |= licences.iter().any(|licence| licence.zone == payload);
        licences.retain(|licence| !nodes.contains(&licence.node));
        let gone = csa.without(&nodes);
        csa.holders.retain(|holder| !nodes.contains(&holder.node));
        Some(gone)
    }

    /// Forgets a composite SA.
    pub fn remove(&mut self, child: ChildSaId) -> Option<Gone> {
        let csa = self.0.remove(&child)?;
        let licences = csa.agreement.licences.iter();
        let nodes = licences.map(|licence| licence.node.clone()).collect();
        Some(csa.without(&nodes))
    }

    /// The other composite SAs for the traffic of one, by their child SAs.
    pub fn beside(&self, child: ChildSaId) -> Vec<ChildSaId> {
        let Some(csa) = self.0.get(&child) else {
            return Vec::new();
        };
        let beside = self.0.iter().filter(|(_, other)| other.is_beside(csa));
        beside.map(|(other, _)| *other).collect()
    }

    /// Takes out the grants that wait for one node, to be sent on its IKE SA.
    pub fn take_pending(
        &mut self,
        name: &str,
        sa: IkeSaId,
        lifetime: Duration,
        now: Instant,
    ) -> Vec<Due> {
        let mut grants = Vec::new();
        for csa in self.0.values_mut() {
            let pending =
                |holder: &Holder| holder.name == name && holder.state == GrantState::Pending;
            let Some(index) = csa.holders.iter().position(pending) else {
                continue;
            };
            let node = csa.holders[index].node.clone();
            let grant = csa.grant(&node, lifetime);
            // One that cannot be made is shown as refused and not tried again.
            let state = if grant.is_some() {
                csa.given.insert(node.clone());
                GrantState::Sent
            } else {
                GrantState::Refused
            };
            let holder = &mut csa.holders[index];
            (holder.state, holder.sa, holder.since) = (state, Some(sa), now);
            let (sa, rights) = (csa.name(), csa.rights(&node));
            grants.extend(grant.map(|grant| Due {
                sa,
                node,
                rights,
                grant,
            }));
        }
        grants
    }

    /// Whether a grant may still be sent: its composite SA is there, and so is the IKE SA it is for.
    pub fn is_due(&self, id: CsaId, name: &str, sa: IkeSaId) -> bool {
        let mut holders = self.0.values().filter(|csa| csa.id == id);
        let mut holders = holders.next().into_iter().flat_map(|csa| &csa.holders);
        holders.any(|holder| {
            let sent = holder.state == GrantState::Sent;
            sent && holder.name == name && holder.sa == Some(sa)
        })
    }

    /// A grant does not leave, for a reason that a person can read.
    pub fn withhold(&mut self, name: &str, id: CsaId, why: String, now: Instant) {
        let answered = self.answered(name, id, Some(why), now);
        if answered.is_some()
            && let Some(holder) = self.holder(name, id)
        {
            holder.withheld = true;
        }
    }

    /// Owes every grant again that did not leave.
    pub fn owe_withheld(&mut self, now: Instant) {
        let holders = self.0.values_mut().flat_map(|csa| &mut csa.holders);
        let withheld = holders.filter(|holder| holder.withheld);
        withheld.for_each(|holder| holder.owe(now));
    }

    /// An IKE SA is gone: whatever was sent on it is owed again. Gives who may have had what.
    pub fn node_lost(&mut self, sa: IkeSaId, now: Instant) -> Vec<(Composite, Identity)> {
        let mut lost = Vec::new();
        let on_it = |holder: &Holder| holder.sa == Some(sa);
        for csa in self.0.values_mut() {
            let readers = csa.holders.iter();
            let readers = readers.filter(|holder| on_it(holder) && holder.may_read());
            lost.extend(readers.map(|holder| (csa.name(), holder.node.clone())));
            for holder in csa.holders.iter_mut().filter(|holder| on_it(holder)) {
                holder.has_keys = false;
                holder.owe(now);
            }
        }
        lost
    }

    /// Owes every grant again that was held for half of its lifetime; returns who holds them.
    pub fn renew(&mut self, lifetime: Duration, now: Instant) -> Vec<String> {
        let mut names = Vec::new();
        for holder in self.0.values_mut().flat_map(|csa| &mut csa.holders) {
            if holder.renewal(lifetime).is_some_and(|at| at <= now) {
                holder.owe(now);
                names.push(holder.name.clone());
            }
        }
        names
    }

    /// When to renew the next grant.
    pub fn poll_timeout(&self, lifetime: Duration) -> Option<Deadline> {
        let holders = self.0.values().flat_map(|csa| &csa.holders);
        let at = holders
            .filter_map(|holder| holder.renewal(lifetime))
            .min()?;
        Some(Deadline {
            at,
            reason: "renew a grant",
        })
    }

    /// A node answered, with the reason if it refused; returns the composite SA concerned and the
    /// node's identity.
    pub fn answered(
        &mut self,
        name: &str,
        id: CsaId,
        refusal: Option<String>,
        now: Instant,
    ) -> Option<(&Csa, Identity)> {
        let holder = self.holder(name, id)?;
        holder.since = now;
        holder.has_keys |= refusal.is_none();
        holder.state = match refusal {
            None => GrantState::Held,
            Some(_) => GrantState::Refused,
        };
        holder.refusal = refusal;
        let node = holder.node.clone();
        let csa = self.0.values().find(|csa| csa.id == id)?;
        Some((csa, node))
    }

    /// Whether a node has acknowledged the newest grant.
    pub fn is_held(&mut self, name: &str, id: CsaId) -> bool {
        let holder = self.holder(name, id);
        holder.is_some_and(|holder| holder.state == GrantState::Held)
    }

    fn holder(&mut self, name: &str, id: CsaId) -> Option<&mut Holder> {
        let csa = self.0.values_mut().find(|csa| csa.id == id)?;
        csa.holders.iter_mut().find(|holder| holder.name == name)
    }
}
