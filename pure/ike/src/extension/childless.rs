//! IKE SAs without a first child SA (RFC 6023): for SAs between an endpoint and a licensed node, or
//! between two licensed nodes, and for peers that request child SAs later.
//!
//! The responder announces support in IKE_SA_INIT, before it knows the initiator. It then "MUST
//! process a modified IKE_AUTH request" (section 3) from any initiator.

use crate::config::PeerRole;
use crate::exchange::{find_notify, notify};
use wire::ike::{Message, NotifyType, Payload};

/// Returns the notify that a responder adds to IKE_SA_INIT.
pub(crate) const fn payload() -> Payload {
    notify(NotifyType::CHILDLESS_IKEV2_SUPPORTED, Vec::new())
}

/// Returns true if the responder of this message supports childless IKE SAs.
pub(crate) fn is_supported(message: &Message) -> bool {
    find_notify(message, NotifyType::CHILDLESS_IKEV2_SUPPORTED).is_some()
}

/// Returns true if IKE SAs with a peer of this role have no child SA.
pub(crate) const fn is_wanted(role: &PeerRole) -> bool {
    matches!(
        role,
        PeerRole::Licensed | PeerRole::Gateway | PeerRole::Neighbour
    )
}
