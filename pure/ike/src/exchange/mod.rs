//! What the exchanges carry: the table of payloads, and finding them in a message.

pub(crate) mod auth;
pub(crate) mod create_child;
pub(crate) mod init;
pub(crate) mod rules;

use crypto::sha256;
use wire::ike::{
    KeyExchange, Message, Notify, NotifyType, Payload, PayloadType, Proposal, VENDOR_ID_TEXT,
};

/// A notify about the exchange itself.
pub(crate) const fn notify(kind: NotifyType, data: Vec<u8>) -> Payload {
    Payload::Notify(Notify::new(kind, data))
}

/// All notifies of a message.
pub(crate) fn notifies(message: &Message) -> impl Iterator<Item = &Notify> {
    message.payloads.iter().filter_map(|payload| match payload {
        Payload::Notify(notify) => Some(notify),
        _ => None,
    })
}

/// The first notify of a kind.
pub(crate) fn find_notify(message: &Message, kind: NotifyType) -> Option<&Notify> {
    notifies(message).find(|notify| notify.kind == kind)
}

/// The errors a message reports.
pub(crate) fn errors(message: &Message) -> impl Iterator<Item = NotifyType> {
    let kinds = notifies(message).map(|notify| notify.kind);
    kinds.filter(|kind| kind.is_error())
}

/// The first error a message reports.
pub(crate) fn first_error(message: &Message) -> Option<NotifyType> {
    errors(message).next()
}

/// Whether a message has a payload of a type.
pub(crate) fn has(message: &Message, kind: PayloadType) -> bool {
    message
        .payloads
        .iter()
        .any(|payload| payload.kind() == kind)
}

/// The first payload that `pick` takes.
pub(crate) fn find<'a, T>(
    message: &'a Message,
    pick: impl Fn(&'a Payload) -> Option<T>,
) -> Option<T> {
    message.payloads.iter().find_map(pick)
}

/// The proposals of its SA payload.
pub(crate) fn proposals(message: &Message) -> Option<&[Proposal]> {
    find(message, |payload| match payload {
        Payload::SecurityAssociation(proposals) => Some(proposals.as_slice()),
        _ => None,
    })
}

/// Its public value.
pub(crate) fn key_exchange(message: &Message) -> Option<&KeyExchange> {
    find(message, |payload| match payload {
        Payload::KeyExchange(key) => Some(key),
        _ => None,
    })
}

/// Its nonce.
pub(crate) fn nonce(message: &Message) -> Option<&[u8]> {
    find(message, |payload| match payload {
        Payload::Nonce(nonce) => Some(nonce.as_slice()),
        _ => None,
    })
}

/// Our vendor ID: private numbers are used only between ends that both sent it.
pub(crate) fn vendor_id() -> Payload {
    let hash = sha256(&[VENDOR_ID_TEXT.as_bytes()]);
    Payload::VendorId(hash[..16].to_vec())
}

/// Whether the peer understands our private numbers.
pub(crate) fn is_ours(message: &Message) -> bool {
    message.payloads.contains(&vendor_id())
}
