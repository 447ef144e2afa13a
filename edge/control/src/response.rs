//! Answers of the daemon.

use crate::{
    Explain, Flows, Leases, Moved, Paths, PeerState, Ping, Reload, Sessions, Signal, Status, Zones,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An answer. In JSON, an object with `version` and one key, the name of the variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// Answer to [`crate::Request::Up`].
    Up(Changed),
    /// Answer to [`crate::Request::Down`].
    Down(Changed),
    /// Answer to [`crate::Request::Rekey`].
    Rekey(Changed),
    /// Answer to [`crate::Request::Reauth`].
    Reauth(Changed),
    /// Answer to [`crate::Request::Redirect`].
    Redirect(Changed),
    /// Answer to [`crate::Request::Move`].
    Move(Moved),
    /// Answer to [`crate::Request::Signal`].
    Signal(Signal),
    /// Answer to [`crate::Request::Ping`].
    Ping(Ping),
    /// Answer to [`crate::Request::Level`].
    Level(Changed),
    /// Answer to [`crate::Request::Paths`].
    Paths(Paths),
    /// Answer to [`crate::Request::Status`].
    Status(Status),
    /// Answer to [`crate::Request::Zones`].
    Zones(Zones),
    /// Answer to [`crate::Request::Flows`].
    Flows(Flows),
    /// Answer to [`crate::Request::Leases`].
    Leases(Leases),
    /// Answer to [`crate::Request::Sessions`].
    Sessions(Sessions),
    /// Answer to [`crate::Request::Keylog`].
    Keylog(Keylog),
    /// Answer to [`crate::Request::Reload`].
    Reload(Reload),
    /// Answer to [`crate::Request::Explain`].
    Explain(Explain),
    /// Answer to [`crate::Request::Metrics`]: the text format of Prometheus.
    Metrics(String),
    /// Answer to [`crate::Request::Version`].
    Daemon(Daemon),
    /// Answer to any request that failed.
    Error(Failure),
}

/// Peers that a request was about, with their state after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The peers, sorted by name.
    pub peers: Vec<PeerChanged>,
}

/// State of one peer after a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerChanged {
    /// Name of the peer's table.
    pub name: String,
    /// Current state of the peer.
    pub state: PeerState,
    /// Human-readable reason of the last failure, if the peer is not up.
    pub reason: Option<String>,
}

/// Destination of the key log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keylog {
    /// Folder of the key log; `None` if no keys are written.
    pub directory: Option<PathBuf>,
}

/// The daemon that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    /// Version of the daemon.
    pub version: String,
    /// Process id of the daemon.
    pub pid: u32,
}

/// An error, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Description of the error.
    pub message: String,
    /// Proposed remedy.
    pub fix: String,
}

impl Failure {
    /// Creates a failure from a message and its remedy.
    pub fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }
}
