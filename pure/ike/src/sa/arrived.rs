//! A datagram of an IKE SA, and its content once it is open.

use crate::down_reason::PeerMisbehaved;
use model::Path;
use std::cell::Cell;
use wire::ike::{Content, Datagram, Message, Notify, NotifyType};

/// A datagram that belongs to an SA.
pub(crate) struct Arrived<'a> {
    pub(crate) datagram: Datagram<'a>,
    pub(crate) octets: &'a [u8],
    pub(crate) path: Path,
    /// The content, from `Sa::screen` to the state, so that a message is decrypted once.
    pub(crate) opened: Cell<Option<Unlocked>>,
}

impl<'a> Arrived<'a> {
    pub(crate) fn new(datagram: Datagram<'a>, octets: &'a [u8], path: Path) -> Self {
        Self {
            datagram,
            octets,
            path,
            opened: Cell::default(),
        }
    }
}

/// The error of an authentic message that is invalid.
pub(crate) struct Complaint {
    pub(crate) why: PeerMisbehaved,
    /// The notify for the answer, if the message was a request.
    pub(crate) notify: Notify,
}

impl Complaint {
    pub(crate) fn syntax(why: PeerMisbehaved) -> Self {
        let notify = Notify::new(NotifyType::INVALID_SYNTAX, Vec::new());
        Self { why, notify }
    }
}

/// Content of an authentic message or fragment, which may still be malformed.
pub(crate) type Unlocked = Result<Content, Complaint>;

/// An authentic message, or the error of an authentic but invalid one.
pub(crate) type Genuine = Result<Message, Complaint>;
