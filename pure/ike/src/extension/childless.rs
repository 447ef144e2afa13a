//! IKE SAs that begin without a child (RFC 6023): for the conversation with a licensed node, or of two of
//! them, and for every peer that asks for its children later.
//!
//! The responder says in IKE_SA_INIT that it supports them, before it knows who is asking, and then
//! "MUST process a modified IKE_AUTH request" (section 3), whoever that is.

use crate::config::PeerRole;
use crate::exchange::{find_notify, notify};
use wire::ike::{Message, NotifyType, Payload};

/// What a responder adds to IKE_SA_INIT.
pub(crate) const fn payload() -> Payload {
    notify(NotifyType::CHILDLESS_IKEV2_SUPPORTED, Vec::new())
}

/// Whether the responder of this message supports it.
pub(crate) fn is_supported(message: &Message) -> bool {
    find_notify(message, NotifyType::CHILDLESS_IKEV2_SUPPORTED).is_some()
}

/// Whether IKE SAs with a peer of this role have no child.
pub(crate) const fn is_wanted(role: &PeerRole) -> bool {
    matches!(
        role,
        PeerRole::Licensed | PeerRole::Gateway | PeerRole::Neighbour
    )
}
