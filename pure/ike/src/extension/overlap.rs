//! Overlapping requests (RFC 7296 section 2.3).
//!
//! "An IKE endpoint MUST wait for a response to each of its messages before sending a subsequent
//! message unless it has received a SET_WINDOW_SIZE Notify message from its peer". Either end
//! announces in IKE_AUTH how many responses it keeps. After a rekey of the IKE SA it announces this
//! again, in a separate request, because "the new IKE SA starts with window size 1 until it is
//! explicitly increased". Our own window also bounds the number of our outstanding requests, even
//! if the peer announces more.
//!
//! `session/queue.rs` decides which requests may overlap, and `window/` handles their order.

use crate::config::Peer;
use crate::exchange::{find_notify, notify};
use wire::ike::{Message, NotifyType, Payload};

/// Window sizes of an IKE SA, and the number of outstanding requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Maximum number of the peer's requests ahead of our first missing response.
    pub ours: u8,
    /// Maximum number of our outstanding requests.
    pub theirs: u8,
    /// Number of our outstanding requests.
    pub under_way: usize,
}

/// Returns the notify that announces how many responses we keep for a peer, if more than one.
pub(crate) fn announcement(peer: &Peer) -> Option<Payload> {
    (peer.window > 1).then(|| payload(peer.window))
}

/// Returns the notify for any window size.
pub(crate) fn payload(window: u8) -> Payload {
    let data = u32::from(window).to_be_bytes().to_vec();
    notify(NotifyType::SET_WINDOW_SIZE, data)
}

/// Returns the number of responses that the sender of a message keeps, if announced: "The data
/// associated with a SET_WINDOW_SIZE notification MUST be 4 octets long". Other data is ignored.
pub(crate) fn announced(message: &Message) -> Option<u32> {
    let notify = find_notify(message, NotifyType::SET_WINDOW_SIZE)?;
    let octets = notify.data.as_slice().try_into().ok()?;
    Some(u32::from_be_bytes(octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PeerRole;
    use crate::tests::{peer, saying};

    fn peer_with(window: u8) -> Peer {
        let mut peer = peer("gateway", PeerRole::Gateway);
        peer.window = window;
        peer
    }

    #[test]
    fn a_window_is_told_as_it_is_read_and_one_is_not_worth_a_word() {
        let said = announcement(&peer_with(64)).map(|said| saying(vec![said]));
        assert_eq!(said.as_ref().and_then(announced), Some(64));
        assert_eq!(announcement(&peer_with(1)), None);
    }

    #[test]
    fn a_window_of_another_length_than_four_octets_says_nothing() {
        for data in [&[][..], &[8], &[0, 0, 8], &[0, 0, 0, 8, 0]] {
            let said = saying(vec![notify(NotifyType::SET_WINDOW_SIZE, data.to_vec())]);
            assert_eq!(announced(&said), None);
        }
    }
}
