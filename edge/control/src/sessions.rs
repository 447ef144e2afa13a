//! `strata sessions`: sessions that peers may resume.

use serde::{Deserialize, Serialize};

/// All sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sessions {
    /// The sessions, sorted by identity.
    pub sessions: Vec<Session>,
}

/// A session that its peer may resume without a full exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// First four octets of its name in the store, in hexadecimal.
    pub name: String,
    /// Identity of the peer.
    pub identity: String,
    /// Seconds since the peer's last full exchange.
    pub age_seconds: u64,
    /// Seconds for which its tunnels were up since. Of a daemon that was killed, the last tunnel
    /// counts with nothing, or, where this time is limited, with up to ten minutes too much.
    pub established_seconds: u64,
    /// Octets of all packets that its tunnels carried since. They are counted every ten seconds,
    /// and only where they are limited.
    pub carried_octets: u64,
    /// Seconds for which the session can still be resumed.
    pub left_seconds: u64,
}
