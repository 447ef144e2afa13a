//! Guessing the group, the initiator's half (RFC 7296 sections 1.2 and 2.7): its public value comes
//! before it knows which group the responder takes. A responder that takes another one names it,
//! and gets the same request with a value of that group; "the initiator MUST again propose its
//! full set of acceptable cryptographic suites", for anybody can send such a notify, and the
//! responder, whose choice AUTH covers, is to find all of them. How often we comply is bounded.

use crate::exchange::{find_notify, has};
use crate::menu::group_id;
use model::Group;
use wire::ike::{GroupId, Message, NotifyType, PayloadType};

/// How often one request is sent with another group: there and back, and once more.
pub(crate) const MAX_ROUNDS: u32 = 3;

/// The group a response asks for, if we offered it.
pub(crate) fn corrected(response: &Message, offered: &[Group]) -> Option<Group> {
    let notify = find_notify(response, NotifyType::INVALID_KE_PAYLOAD)?;
    let alone = !has(response, PayloadType::SA);
    let octets = notify.data.as_slice().try_into().ok().filter(|_| alone)?;
    let wanted = GroupId(u16::from_be_bytes(octets));
    offered.iter().copied().find(|&g| group_id(g) == wanted)
}
