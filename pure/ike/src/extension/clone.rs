//! Cloning the IKE SA (RFC 7791): a parallel IKE SA without another authentication.
//!
//! Both ends announce in IKE_AUTH that they allow it (section 5.1). A request for a successor of
//! the IKE SA with CLONE_IKE_SA then creates a clone, which does not replace the original: "two
//! parallel IKE SAs are expected to coexist" (section 5.2), and the child SAs stay on the original.
//! `task/clone.rs` sends the requests.
//!
//! The engine uses clones for a soft hand-over. The end that chooses the path (RFC 4555) clones the
//! IKE SA, moves the clone, and creates the same child SAs on it. They replace the old child SAs
//! like the successors of a rekey. Then the old IKE SA goes down (`task/leave.rs`). Until all of
//! that has succeeded, the old IKE SA stays unchanged. On failure the clone is deleted, without any
//! effect on traffic.
//!
//! The other end cannot know the purpose of a clone, which may also be meant to stay, for a path of
//! its own. Therefore a child SA of the clone replaces one with the same selectors once a packet
//! arrives on it, and the old one remains as a fallback until the peer deletes it.

use crate::exchange::{find_notify, notify};
use wire::ike::{Message, NotifyType, Payload};

/// Returns the notify for IKE_AUTH that announces that we allow clones.
pub(crate) const fn supported() -> Payload {
    notify(NotifyType::CLONE_IKE_SA_SUPPORTED, Vec::new())
}

/// Returns true if an IKE_AUTH message announces that its sender allows clones.
pub(crate) fn is_supported(message: &Message) -> bool {
    find_notify(message, NotifyType::CLONE_IKE_SA_SUPPORTED).is_some()
}

/// Returns the notify that turns a request for a successor into one for a clone.
pub(crate) const fn payload() -> Payload {
    notify(NotifyType::CLONE_IKE_SA, Vec::new())
}

/// Returns true if a request for a successor asks for a clone. "If the CLONE_IKE_SA notification
/// appears in any other message, it MUST be ignored": the callers check no other message.
pub(crate) fn is_asked_for(request: &Message) -> bool {
    find_notify(request, NotifyType::CLONE_IKE_SA).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::saying;
    use wire::ike::Notify;

    #[test]
    fn what_is_said_is_read_and_names_no_sa() {
        assert!(is_supported(&saying(vec![supported()])));
        assert!(is_asked_for(&saying(vec![payload()])));
        assert!(!is_asked_for(&saying(vec![supported()])));
        assert!(!is_supported(&saying(vec![payload()])));
        for said in [supported(), payload()] {
            let Payload::Notify(Notify {
                protocol,
                spi,
                data,
                ..
            }) = said
            else {
                panic!("a notify");
            };
            // Section 6: "Protocol ID (1 octet): Set to zero", and the same for the SPI size.
            assert_eq!(protocol, wire::ike::Protocol::NONE);
            assert!(spi.is_empty() && data.is_empty());
        }
    }
}
