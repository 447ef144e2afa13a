//! A session: one connection of a user to a gateway.

use crypto::UnixTime;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// One connection of a user to a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Name or identity of the user, as in the log.
    pub user: Arc<str>,
    /// Name or address of the gateway. Empty if the log has none.
    pub gateway: Arc<str>,
    /// Address of the client: the outer one if the log has both.
    pub address: Option<IpAddr>,
    /// Begin and end, as far as they are known.
    pub span: Span,
    /// Octets that the session carried, if the log has them.
    pub octets: Option<Octets>,
}

/// Octets that the gateway has received from a client, and sent to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Octets {
    /// Uploaded by the client.
    pub received: u64,
    /// Downloaded by the client.
    pub sent: u64,
}

impl Octets {
    /// Returns the octets of both directions.
    pub const fn total(self) -> u64 {
        self.received.saturating_add(self.sent)
    }

    /// Returns the octets of two stretches.
    pub const fn and(self, more: Self) -> Self {
        Self {
            received: self.received.saturating_add(more.received),
            sent: self.sent.saturating_add(more.sent),
        }
    }
}

/// Begin and end of a session, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Both are known. The end is not before the begin.
    Whole {
        /// Begin.
        begin: UnixTime,
        /// End.
        end: UnixTime,
    },
    /// The session began before the log, at an unknown time.
    BeganBefore {
        /// End.
        end: UnixTime,
    },
    /// The log does not have the end.
    NotEnded {
        /// Begin.
        begin: UnixTime,
    },
}

impl Span {
    /// Returns the begin, if it is known.
    pub const fn begin(self) -> Option<UnixTime> {
        match self {
            Self::Whole { begin, .. } | Self::NotEnded { begin } => Some(begin),
            Self::BeganBefore { .. } => None,
        }
    }

    /// Returns the duration, if it is known.
    pub const fn duration(self) -> Option<Duration> {
        match self {
            Self::Whole { begin, end } => Some(Duration::from_secs(end.0.saturating_sub(begin.0))),
            Self::BeganBefore { .. } | Self::NotEnded { .. } => None,
        }
    }
}
