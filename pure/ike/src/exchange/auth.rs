//! IKE_AUTH (RFC 7296 section 1.2): identities, proofs, and the first child SA.

use crate::exchange::{find, has, proposals};
use model::{Identity, TrafficSelector};
use wire::ike::{Authentication, Identification, Message, Payload, PayloadType, Proposal};

/// The identity that the sender claims, and its proof.
pub(crate) struct Presented<'a> {
    pub(crate) id: &'a Identification,
    pub(crate) proof: &'a Authentication,
}

impl<'a> Presented<'a> {
    /// Reads IDi and AUTH of the initiator.
    pub(crate) fn of_initiator(message: &'a Message) -> Option<Self> {
        Self::with(initiator_id(message)?, message)
    }

    /// Reads IDr and AUTH of the responder.
    pub(crate) fn of_responder(message: &'a Message) -> Option<Self> {
        Self::with(responder_id(message)?, message)
    }

    fn with(id: &'a Identification, message: &'a Message) -> Option<Self> {
        let proof = find(message, |payload| match payload {
            Payload::Authentication(proof) => Some(proof),
            _ => None,
        })?;
        Some(Self { id, proof })
    }
}

/// Returns IDi, the identity that the initiator claims.
pub(crate) fn initiator_identity(message: &Message) -> Option<&Identity> {
    initiator_id(message).map(|id| &id.identity)
}

fn initiator_id(message: &Message) -> Option<&Identification> {
    find(message, |payload| match payload {
        Payload::IdInitiator(id) => Some(id),
        _ => None,
    })
}

/// Returns IDr: in a request, the identity that the initiator expects.
pub(crate) fn responder_identity(message: &Message) -> Option<&Identity> {
    responder_id(message).map(|id| &id.identity)
}

fn responder_id(message: &Message) -> Option<&Identification> {
    find(message, |payload| match payload {
        Payload::IdResponder(id) => Some(id),
        _ => None,
    })
}

/// The child SA that an IKE_AUTH message offers or answers.
pub(crate) struct Child<'a> {
    pub(crate) proposals: &'a [Proposal],
    pub(crate) initiator: &'a [TrafficSelector],
    pub(crate) responder: &'a [TrafficSelector],
}

impl<'a> Child<'a> {
    /// Returns true if a message has no payload of a child SA (RFC 6023 section 5).
    pub(crate) fn is_absent(message: &Message) -> bool {
        let kinds = [PayloadType::SA, PayloadType::TSI, PayloadType::TSR];
        !kinds.iter().any(|kind| has(message, *kind))
    }

    /// Reads all three payloads, or returns `None` if one is missing.
    pub(crate) fn read(message: &'a Message) -> Option<Self> {
        Some(Self {
            proposals: proposals(message)?,
            initiator: find(message, |payload| match payload {
                Payload::TsInitiator(selectors) => Some(selectors.0.as_slice()),
                _ => None,
            })?,
            responder: find(message, |payload| match payload {
                Payload::TsResponder(selectors) => Some(selectors.0.as_slice()),
                _ => None,
            })?,
        })
    }
}
