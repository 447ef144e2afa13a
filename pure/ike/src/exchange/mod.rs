//! Messages of the exchanges: the table of required payloads, and finding payloads in a message.

pub(crate) mod auth;
pub(crate) mod create_child;
pub(crate) mod init;
pub(crate) mod rules;

use crypto::sha256;
use std::sync::LazyLock;
use wire::ike::{
    KeyExchange, Message, Notify, NotifyType, Payload, PayloadType, Proposal, VENDOR_ID_TEXT,
};

/// Returns a notify about the exchange itself.
pub(crate) const fn notify(kind: NotifyType, data: Vec<u8>) -> Payload {
    Payload::Notify(Notify::new(kind, data))
}

/// Returns all notifies of a message.
pub(crate) fn notifies(message: &Message) -> impl Iterator<Item = &Notify> {
    message.payloads.iter().filter_map(|payload| match payload {
        Payload::Notify(notify) => Some(notify),
        _ => None,
    })
}

/// Returns the first notify of a kind.
pub(crate) fn find_notify(message: &Message, kind: NotifyType) -> Option<&Notify> {
    notifies(message).find(|notify| notify.kind == kind)
}

/// Returns the errors that a message reports.
pub(crate) fn errors(message: &Message) -> impl Iterator<Item = NotifyType> {
    let kinds = notifies(message).map(|notify| notify.kind);
    kinds.filter(|kind| kind.is_error())
}

/// Returns the first error that a message reports.
pub(crate) fn first_error(message: &Message) -> Option<NotifyType> {
    errors(message).next()
}

/// Returns true if a message has a payload of a type.
pub(crate) fn has(message: &Message, kind: PayloadType) -> bool {
    message
        .payloads
        .iter()
        .any(|payload| payload.kind() == kind)
}

/// Returns the first payload that `pick` accepts.
pub(crate) fn find<'a, T>(
    message: &'a Message,
    pick: impl Fn(&'a Payload) -> Option<T>,
) -> Option<T> {
    message.payloads.iter().find_map(pick)
}

/// Returns the proposals of the SA payload.
pub(crate) fn proposals(message: &Message) -> Option<&[Proposal]> {
    find(message, |payload| match payload {
        Payload::SecurityAssociation(proposals) => Some(proposals.as_slice()),
        _ => None,
    })
}

/// Returns the Key Exchange payload.
pub(crate) fn key_exchange(message: &Message) -> Option<&KeyExchange> {
    find(message, |payload| match payload {
        Payload::KeyExchange(key) => Some(key),
        _ => None,
    })
}

/// Returns the nonce.
pub(crate) fn nonce(message: &Message) -> Option<&[u8]> {
    find(message, |payload| match payload {
        Payload::Nonce(nonce) => Some(nonce.as_slice()),
        _ => None,
    })
}

/// The beginning of a hash of our name.
static VENDOR_ID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let hash = sha256(&[VENDOR_ID_TEXT.as_bytes()]);
    hash[..16].to_vec()
});

/// Returns our vendor ID. Private numbers are used only if both ends sent it.
pub(crate) fn vendor_id() -> Payload {
    Payload::VendorId(VENDOR_ID.clone())
}

/// Returns true if a message has our vendor ID, so that its sender understands our private numbers.
pub(crate) fn is_ours(message: &Message) -> bool {
    let is_ours = |payload: &Payload| matches!(payload, Payload::VendorId(id) if *id == *VENDOR_ID);
    message.payloads.iter().any(is_ours)
}
