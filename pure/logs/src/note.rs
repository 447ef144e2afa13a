//! What one line or record of a log says about a session.

use crate::{Octets, Session};
use crypto::UnixTime;
use std::net::IpAddr;
use std::time::Duration;

/// What a record says about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The session began.
    Begun,
    /// The session is up. `octets` are those since its begin.
    Seen,
    /// The session has carried `octets` in addition to earlier ones.
    Carried,
    /// The session goes on under another `id`: the open one of the same user and address.
    Continued,
    /// The session ended.
    Ended,
    /// The session ended if it was up; the record may also concern an attempt to connect.
    Lost,
    /// What began under this `id` was no session: the gateway has not admitted the client.
    Refused,
    /// The user's earlier sessions at this gateway ended, as the latest one replaces them.
    Replaced,
    /// The gateway stopped, and with it its sessions.
    Stopped,
    /// The gateway restarted: none of its sessions is up.
    Restarted,
}

/// A statement about a session.
#[derive(Clone, Copy, Debug)]
pub struct Note<'a> {
    /// What happened.
    pub kind: Kind,
    /// Time of the record.
    pub at: UnixTime,
    /// Gateway, or empty.
    pub gateway: &'a str,
    /// Identifier of the session at its gateway. A later session may have the same one.
    pub id: &'a str,
    /// User, or empty if the record does not have it.
    pub user: &'a str,
    /// Address of the client.
    pub address: Option<IpAddr>,
    /// Time for which the session has been up.
    pub lasted: Option<Duration>,
    /// Octets.
    pub octets: Option<Octets>,
}

impl<'a> Note<'a> {
    /// Returns a note that says nothing but this.
    pub const fn new(kind: Kind, at: UnixTime, id: &'a str) -> Self {
        Self {
            kind,
            at,
            gateway: "",
            id,
            user: "",
            address: None,
            lasted: None,
            octets: None,
        }
    }
}

/// Where readers leave what they have read.
pub trait Notes {
    /// Takes a statement about a session.
    fn note(&mut self, note: Note<'_>);

    /// Takes a session that one record describes as a whole.
    fn session(&mut self, session: Session);
}
