//! Guessing the group, the initiator's half (RFC 7296 sections 1.2 and 2.7). The initiator sends
//! its public value before it knows which group the responder chooses. A responder that chooses
//! another group names it, and receives the same request with a value of that group. "The initiator
//! MUST again propose its full set of acceptable cryptographic suites", because an attacker can
//! send such a notify too. AUTH covers the responder's choice, which should be made among all
//! suites. The number of repetitions is bounded.

use crate::allowed_suites::group_id;
use crate::exchange::{find_notify, has};
use model::Group;
use wire::ike::{GroupId, Message, NotifyType, PayloadType};

/// Maximum number of times that one request is sent with another group: there and back, and once
/// more.
pub(crate) const MAX_ROUNDS: u32 = 3;

/// Returns the group that a response asks for, if we offered it.
pub(crate) fn corrected(response: &Message, offered: &[Group]) -> Option<Group> {
    let notify = find_notify(response, NotifyType::INVALID_KE_PAYLOAD)?;
    let alone = !has(response, PayloadType::SA);
    let octets = notify.data.as_slice().try_into().ok().filter(|_| alone)?;
    let wanted = GroupId(u16::from_be_bytes(octets));
    offered.iter().copied().find(|&g| group_id(g) == wanted)
}
