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

/// A verified request that is answered once the store has answered.
pub(crate) struct Postponed {
    pub(crate) request: Message,
    octets: Vec<u8>,
    path: Path,
}

impl Postponed {
    pub(crate) fn new(request: Message, arrived: &Arrived<'_>) -> Box<Self> {
        Box::new(Self {
            request,
            octets: arrived.octets.to_vec(),
            path: arrived.path,
        })
    }

    /// Returns the datagram as it arrived.
    pub(crate) fn arrived(&self) -> Arrived<'_> {
        let datagram = Datagram::decode(&self.octets).expect("it was decoded when it came");
        Arrived::new(datagram, &self.octets, self.path)
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
