//! TFC padding behind datagrams, which hides their length: support of both ends (RFC 7296 section
//! 1.3.1).
//!
//! An end that sends ESP_TFC_PADDING_NOT_SUPPORTED with a child SA "will not accept packets that
//! contain Traffic Flow Confidentiality (TFC) padding over the Child SA being negotiated". An end
//! without the notify accepts padding. Each end decides for its own direction: "TFC padding can
//! still be sent in the other direction". We accept padding in tunnel mode, plain or with zones,
//! because the inner header carries the length of the datagram. In the other modes that header is
//! not sent, and we send the notify.

use crate::exchange::{find_notify, notify};
use model::Mode;
use wire::ike::{Message, NotifyType, Payload};

/// Returns the notify that accompanies a child SA of ours.
pub(crate) fn payload(mode: Mode) -> Option<Payload> {
    let refuses = mode != Mode::Tunnel;
    refuses.then(|| notify(NotifyType::ESP_TFC_PADDING_NOT_SUPPORTED, Vec::new()))
}

/// Returns true if the sender of a child SA's message accepts padding.
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
