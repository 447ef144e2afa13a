//! Slots: child SAs for the traffic of the first one, each of which licenses one or more additional
//! nodes (DESIGN section 5).
//!
//! A mobile node meets different licensed nodes as it moves. Each licensed node therefore has a
//! child SA of its own, a *slot*, and the first child SA licenses none of them. The choice of the
//! child SA for sending determines which node can read a packet. Keys of one slot do not open
//! packets of another. A slot is requested like any child SA, by CREATE_CHILD_SA, with a notify
//! that names its node:
//!
//! ```text
//! request   SA, ZONE_MAP, OFFER(nodes), [PLACE,] Ni, [KEi,] TSi, TSr
//! response  SA, ZONE_MAP, Nr, [KEr,] TSi, TSr       accepted: each node is among the licences
//!           OFFER_REFUSED                           not by this end's policy
//! ```
//!
//! Nodes with equal licences may share a slot, if both ends agree (shared PKD). The offer then
//! names all of them, and the responder refuses unless it has a slot for exactly these nodes. The
//! caller decides which of them receives the keys, and when.
//!
//! An end may license all nodes of a domain (`domain.rs`). Each of them then gets one of a few
//! slots that this end has for the domain, if the other end offers the node alone, by its name, and
//! with the addresses that identify its place. The agreement names the node, and a rekey keeps it.
//!
//! The keys of a slot come from separate nonces and from a hash that covers the licence. No key can
//! leave for a node before both ends have agreed on its licence. A slot is created only on request
//! ([`crate::Engine::open_child`]).
//!
//! The engine treats slots like child SAs with a table of their own, under names that no table can
//! have.

use crate::config::{Peer, Slot};
use crate::exchange::{find_notify, notify};
use crate::policy::Policy;
use crate::refusal::Refusal;
use model::{Identity, Licence, TrafficSelector, ZoneAgreement};
use std::collections::BTreeSet;
use wire::ike::{
    Message, NotifyType, Payload, decode_nodes, decode_place, encode_nodes, encode_place,
};

/// Returns the notifies for the request of a slot, and nothing for other child SAs.
pub(crate) fn offer(peer: &Peer, name: Option<&str>) -> Vec<Payload> {
    let Some(slot) = name.and_then(|name| peer.slot(name)) else {
        return Vec::new();
    };
    let offer = notify(NotifyType::OFFER, encode_nodes(&slot.nodes));
    let place = || notify(NotifyType::PLACE, encode_place(&slot.place));
    let place = (!slot.place.is_empty()).then(place);
    std::iter::once(offer).chain(place).collect()
}

/// The nodes that the peer offers to license in a slot.
pub(crate) struct Offered {
    /// The nodes. An empty or malformed list matches no slot.
    nodes: Vec<Identity>,
    /// The place of a single node. It is empty if the notify is absent or malformed.
    place: Vec<TrafficSelector>,
}

impl Offered {
    /// Reads the offer of a request, if the request is for a slot.
    pub(crate) fn read(request: &Message) -> Option<Self> {
        let nodes = find_notify(request, NotifyType::OFFER)?;
        let place = find_notify(request, NotifyType::PLACE);
        let place = place.and_then(|place| decode_place(&place.data).ok());
        Some(Self {
            nodes: decode_nodes(&nodes.data).unwrap_or_default(),
            place: place.unwrap_or_default(),
        })
    }

    /// Returns the single node that is offered.
    const fn node(&self) -> Option<&Identity> {
        match self.nodes.as_slice() {
            [node] => Some(node),
            _ => None,
        }
    }

    /// Returns the single node that is offered, and its place.
    pub(crate) fn placed(&self) -> Option<(Identity, Vec<TrafficSelector>)> {
        Some((self.node()?.clone(), self.place.clone()))
    }

    fn refused(self) -> (NotifyType, Refusal) {
        (NotifyType::OFFER_REFUSED, Refusal::OfferRefused(self.nodes))
    }
}

/// Returns the policy of the slot for an offer, if this end has a slot for exactly these nodes, or
/// one for a domain of the node. `asked` returns the licences that we asked for with a slot.
pub(crate) fn meant<'p, 's>(
    peer: &'p Peer,
    offered: Offered,
    asked: impl Fn(&str) -> &'s [Licence],
) -> Result<Policy<'p>, (NotifyType, Refusal)> {
    let nodes: BTreeSet<_> = offered.nodes.iter().cloned().collect();
    let mut slots = peer.slots.iter();
    let slot = match slots.find(|slot| !nodes.is_empty() && slot.nodes == nodes) {
        None => of_domain(peer, &offered, asked)?,
        slot => slot,
    };
    let policy = slot.and_then(|slot| peer.policy(Some(&slot.name)));
    policy.ok_or_else(|| offered.refused())
}

/// Returns the slot of a domain for a single node: the one that the node has already, otherwise one
/// that no node has. Returns `None` if the node is in no domain.
fn of_domain<'p, 's>(
    peer: &'p Peer,
    offered: &Offered,
    asked: impl Fn(&str) -> &'s [Licence],
) -> Result<Option<&'p Slot>, (NotifyType, Refusal)> {
    let Some(node) = offered.node() else {
        return Ok(None);
    };
    let stands_for = |slot: &&Slot| {
        let domain = slot.domain.as_ref();
        domain.is_some_and(|domain| domain.includes(node))
    };
    let slots: Vec<_> = peer.slots.iter().filter(stands_for).collect();
    if slots.is_empty() {
        return Ok(None);
    }
    let refuse = |why| Err((NotifyType::OFFER_REFUSED, why));
    if offered.place.is_empty() {
        return refuse(Refusal::OfferWithoutPlace(node.clone()));
    }
    let own = |slot: &&&Slot| slot.node_of(asked(&slot.name)) == Some(node);
    let free = |slot: &&&Slot| asked(&slot.name).is_empty();
    match slots.iter().find(own).or_else(|| slots.iter().find(free)) {
        Some(slot) => Ok(Some(*slot)),
        None => refuse(Refusal::TooManyOfDomain {
            node: node.clone(),
            most: slots.len(),
        }),
    }
}

/// Returns our licences of the single node that is offered, if the slot is for a domain.
pub(crate) fn licences(policy: &Policy<'_>, offered: Option<&Offered>) -> Vec<Licence> {
    let domain = policy.domain.zip(offered);
    let licences = domain.and_then(|(domain, offered)| Some(domain.licences(offered.node()?)));
    licences.unwrap_or_default()
}

/// Returns `Ok` if the agreement licenses each node of the slot. Otherwise nodes without a licence
/// would share keys that the two ends never agreed to give them.
pub(crate) fn check(
    peer: &Peer,
    name: Option<&str>,
    offered: Option<&Offered>,
    agreement: Option<&ZoneAgreement>,
) -> Result<(), (NotifyType, Refusal)> {
    let Some(slot) = name.and_then(|name| peer.slot(name)) else {
        return Ok(());
    };
    let nodes = match slot.domain {
        None => slot.nodes.iter().cloned().collect(),
        Some(_) => offered.map_or_else(Vec::new, |offered| offered.nodes.clone()),
    };
    let licences = agreement.map_or(&[][..], |agreement| &agreement.licences);
    let lacks = |node: &Identity| !licences.iter().any(|licence| licence.node == *node);
    let lacking: Vec<_> = nodes.into_iter().filter(lacks).collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err((NotifyType::OFFER_REFUSED, Refusal::OfferRefused(lacking))),
    }
}
