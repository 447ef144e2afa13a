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
//! request   SA, ZONE_MAP, OFFER(nodes), Ni, [KEi,] TSi, TSr
//! response  SA, ZONE_MAP, Nr, [KEr,] TSi, TSr       accepted: each node is among the licences
//!           OFFER_REFUSED                           not by this end's policy
//! ```
//!
//! Nodes with equal licences may share a slot, if both ends agree (shared PKD). The offer then
//! names all of them, and the responder refuses unless it has a slot for exactly these nodes. The
//! caller decides which of them receives the keys, and when.
//!
//! The keys of a slot come from separate nonces and from a hash that covers the licence. No key can
//! leave for a node before both ends have agreed on its licence. A slot is created only on request
//! ([`crate::Engine::open_child`]).
//!
//! The engine treats slots like child SAs with a table of their own, under names that no table can
//! have.

use crate::config::Peer;
use crate::exchange::{find_notify, notify};
use crate::policy::Policy;
use crate::refusal::Refusal;
use model::{Identity, ZoneAgreement};
use std::collections::BTreeSet;
use wire::ike::{Message, NotifyType, Payload, decode_nodes, encode_nodes};

/// Returns the notify for the request of a slot, and nothing for other child SAs.
pub(crate) fn offer(peer: &Peer, name: Option<&str>) -> Option<Payload> {
    let slot = peer.slot(name?)?;
    Some(notify(NotifyType::OFFER, encode_nodes(&slot.nodes)))
}

/// Returns the nodes that a request offers to license, if it is for a slot. An empty or malformed
/// list matches no slot.
pub(crate) fn offered(request: &Message) -> Option<Vec<Identity>> {
    let notify = find_notify(request, NotifyType::OFFER)?;
    Some(decode_nodes(&notify.data).unwrap_or_default())
}

/// Returns the policy of the slot for an offer, if this end has a slot for exactly these nodes.
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

/// Returns `Ok` if the agreement licenses each node of the slot. Otherwise nodes without a licence
/// would share keys that the two ends never agreed to give them.
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
