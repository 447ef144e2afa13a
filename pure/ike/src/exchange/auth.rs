//! IKE_AUTH (RFC 7296 section 1.2): who the ends are, and the first child.

use crate::exchange::{find, proposals};
use model::{Identity, TrafficSelector};
use wire::ike::{Authentication, Message, Payload, Proposal};

/// Who the sender says it is, and its proof.
pub(crate) struct Proof<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) proof: &'a Authentication,
}

impl<'a> Proof<'a> {
    /// From the initiator: IDi and AUTH.
    pub(crate) fn of_initiator(message: &'a Message) -> Option<Self> {
        let identity = find(message, |payload| match payload {
            Payload::IdInitiator(identity) => Some(identity),
            _ => None,
        })?;
        Self::with(identity, message)
    }

    /// From the responder: IDr and AUTH.
    pub(crate) fn of_responder(message: &'a Message) -> Option<Self> {
        Self::with(responder_identity(message)?, message)
    }

    fn with(identity: &'a Identity, message: &'a Message) -> Option<Self> {
        let proof = find(message, |payload| match payload {
            Payload::Authentication(proof) => Some(proof),
            _ => None,
        })?;
        Some(Self { identity, proof })
    }
}

/// IDr: in a request, whom the initiator wants to talk to.
pub(crate) fn responder_identity(message: &Message) -> Option<&Identity> {
    find(message, |payload| match payload {
        Payload::IdResponder(identity) => Some(identity),
        _ => None,
    })
}

/// The child that an IKE_AUTH message offers or answers.
pub(crate) struct Child<'a> {
    pub(crate) proposals: &'a [Proposal],
    pub(crate) initiator: &'a [TrafficSelector],
    pub(crate) responder: &'a [TrafficSelector],
}

impl<'a> Child<'a> {
    /// All three payloads, or none: a part of them is no child.
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
