//! Slots: children for the same traffic as the first, each of which licenses one node more, or several (DESIGN section 5).
//!
//! What a mobile node is served by changes from network to network. So each licensed node that is met in some
//! place has a child of its own there, a *slot*, and the first child licenses none of them: which child is sent on
//! says who may read, and what a node has learnt is of no use for what goes on another. A slot is asked for as
//! any child is, by CREATE_CHILD_SA, with a notify that names its node:
//!
//! ```text
//! request   SA, ZONE_MAP, OFFER(nodes), Ni, [KEi,] TSi, TSr
//! response  SA, ZONE_MAP, Nr, [KEr,] TSi, TSr       accepted: each node is among the licences
//!           OFFER_REFUSED                           not by this end's policy
//! ```
//!
//! Nodes that have equal licences may share one, if both ends say so (shared PKD): then the offer names all of them, and
//! who is asked has a slot of exactly these or refuses. Which of them are given its keys, and when, is for who gives them.
//!
//! So a node's keys come of nonces of their own and of a hash over its licence, and no key can leave for it before
//! both ends have agreed that it may. Slots come and go; none is asked for but by who says so
//! ([`crate::Engine::open_child`]).
//!
//! To us they are as children with a table of their own, and have names that no table can have.

use crate::config::{Peer, Slot};
use crate::exchange::{find_notify, notify};
use crate::policy::Policy;
use crate::refusal::Refusal;
use model::{Identity, ZoneAgreement};
use std::collections::BTreeSet;
use wire::ike::{Message, NotifyType, Payload, decode_nodes, encode_nodes};

/// What the slot of these nodes is called, which are in order.
pub fn name<'a>(nodes: impl IntoIterator<Item = &'a Identity>) -> String {
    let nodes = nodes.into_iter().map(|node| node.canonical().to_string());
    let nodes: Vec<_> = nodes.collect();
    format!("@{}", nodes.join("+"))
}

/// Whether a child of a name is a slot.
pub fn is_slot(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.starts_with('@'))
}

/// What goes with the request for a slot; nothing for another child.
pub(crate) fn offer(peer: &Peer, name: Option<&str>) -> Option<Payload> {
    let slot = peer.slot(name?)?;
    Some(notify(NotifyType::OFFER, encode_nodes(&slot.nodes)))
}

/// Whom a request offers to license, if it is for a slot: somebody, or it cannot be meant.
pub(crate) fn offered(request: &Message) -> Option<Vec<Identity>> {
    let notify = find_notify(request, NotifyType::OFFER)?;
    Some(decode_nodes(&notify.data).unwrap_or_default())
}

/// The slot that an offer is for, if this end has it as well: one of all these nodes, and of no others.
pub(crate) fn meant(
    peer: &Peer,
    offered: Vec<Identity>,
) -> Result<Policy<'_>, (NotifyType, Refusal)> {
    let nodes: BTreeSet<_> = offered.iter().cloned().collect();
    let mut slots = peer.slots.iter();
    let slot = slots.find(|slot| !nodes.is_empty() && slot.nodes == nodes);
    let policy = slot.and_then(|slot| peer.policy(Some(&slot.name)));
    policy.ok_or((NotifyType::OFFER_REFUSED, Refusal::OfferRefused(offered)))
}

/// Whether what is agreed on licenses each node of the slot that it is for: otherwise those that it does not would
/// share keys that both ends never let them have.
pub(crate) fn check(
    peer: &Peer,
    name: Option<&str>,
    agreement: Option<&ZoneAgreement>,
) -> Result<(), (NotifyType, Refusal)> {
    let Some(slot) = name.and_then(|name| peer.slot(name)) else {
        return Ok(());
    };
    let licences = agreement.map_or(&[][..], |agreement| &agreement.licences);
    let lacks = |node: &&Identity| !licences.iter().any(|licence| licence.node == **node);
    let lacking: Vec<_> = slot.nodes.iter().filter(lacks).cloned().collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err((NotifyType::OFFER_REFUSED, Refusal::OfferRefused(lacking))),
    }
}

impl Peer {
    /// One of its slots, by what the child is called.
    pub fn slot(&self, name: &str) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.name == name)
    }
}

impl<'p> Policy<'p> {
    /// The slots beside this child.
    pub(crate) fn slots(self, slots: &'p [Slot]) -> impl Iterator<Item = Policy<'p>> {
        slots.iter().map(move |slot| Policy {
            name: Some(&slot.name),
            zones: &slot.zones,
            auto: false,
            ..self
        })
    }
}
