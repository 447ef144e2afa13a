//! Slots: children for the same traffic as the first, each of which licenses one node more (DESIGN section 5).
//!
//! What a mobile node is served by changes from network to network. So each licensed node that is met in some
//! place has a child of its own there, a *slot*, and the first child licenses none of them: which child is sent on
//! says who may read, and what a node has learnt is of no use for what goes on another. A slot is asked for as
//! any child is, by CREATE_CHILD_SA, with a notify that names its node:
//!
//! ```text
//! request   SA, ZONE_MAP, OFFER(node), Ni, [KEi,] TSi, TSr
//! response  SA, ZONE_MAP, Nr, [KEr,] TSi, TSr       accepted: node is among the licences
//!           OFFER_REFUSED                           not by this end's policy
//! ```
//!
//! So a node's keys come of nonces of their own and of a hash over its licence, and no key can leave for it before
//! both ends have agreed that it may. Slots come and go; none is asked for but by who says so
//! ([`crate::Engine::open_child`]).
//!
//! To us they are as children with a table of their own, and have names that no table can have.

use crate::config::{Peer, Slot};
use crate::event::Refusal;
use crate::exchange::{find_notify, notify};
use crate::policy::Policy;
use model::Identity;
use wire::ike::{Message, NotifyType, Payload, decode_nodes, encode_nodes};

/// What the slot of a node is called.
pub fn name(node: &Identity) -> String {
    format!("@{node}")
}

/// Whether a child of a name is a slot.
pub fn is_slot(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.starts_with('@'))
}

/// What goes with the request for a slot; nothing for another child.
pub(crate) fn offer(peer: &Peer, name: Option<&str>) -> Option<Payload> {
    let slot = peer.slot(name?)?;
    Some(notify(NotifyType::OFFER, encode_nodes([&slot.node])))
}

/// Whom a request offers to license, if it is for a slot: one node, or it cannot be meant.
pub(crate) fn offered(request: &Message) -> Option<Vec<Identity>> {
    let notify = find_notify(request, NotifyType::OFFER)?;
    Some(decode_nodes(&notify.data).unwrap_or_default())
}

/// The slot that an offer is for, if this end has it as well.
pub(crate) fn meant(
    peer: &Peer,
    offered: Vec<Identity>,
) -> Result<Policy<'_>, (NotifyType, Refusal)> {
    let policy = match &offered[..] {
        [node] => peer.policy(Some(&name(node))),
        _ => None,
    };
    policy.ok_or((NotifyType::OFFER_REFUSED, Refusal::OfferRefused(offered)))
}

impl Peer {
    /// One of its slots.
    fn slot(&self, name: &str) -> Option<&Slot> {
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
