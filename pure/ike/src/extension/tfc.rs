//! Padding behind datagrams, which hides how long they are: whether an end takes it (RFC 7296 section 1.3.1).
//!
//! Who says ESP_TFC_PADDING_NOT_SUPPORTED beside a child "will not accept packets that contain Traffic Flow
//! Confidentiality (TFC) padding over the Child SA being negotiated"; who says nothing does, and each end
//! speaks for itself alone: "TFC padding can still be sent in the other direction". We take it in a
//! tunnel, plain or with zones, for the datagram says how long it is. In the other modes that header stays
//! behind, and we say that we do not.

use crate::exchange::{find_notify, notify};
use model::Mode;
use wire::ike::{Message, NotifyType, Payload};

/// What goes with a child of ours.
pub(crate) fn payload(mode: Mode) -> Option<Payload> {
    let refuses = mode != Mode::Tunnel;
    refuses.then(|| notify(NotifyType::ESP_TFC_PADDING_NOT_SUPPORTED, Vec::new()))
}

/// Whether the sender of a child's message takes padding.
pub(crate) fn is_taken(message: &Message) -> bool {
    find_notify(message, NotifyType::ESP_TFC_PADDING_NOT_SUPPORTED).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::saying;

    #[test]
    fn padding_is_taken_in_tunnels_alone() {
        for mode in Mode::ALL {
            let said = saying(payload(mode).into_iter().collect());
            assert_eq!(is_taken(&said), mode == Mode::Tunnel, "{mode}");
        }
    }
}
