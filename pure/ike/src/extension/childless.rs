//! IKE SAs without a child (RFC 6023), for the conversation with a licensed node, or of two of them.
//!
//! The responder says in IKE_SA_INIT that it supports them, before it knows who is asking; a VPN
//! peer that then comes without a child is refused in IKE_AUTH.

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
