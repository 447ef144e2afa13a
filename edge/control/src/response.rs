//! What is answered.

use crate::{Explain, Flows, Leases, Moved, Paths, PeerState, Reload, Status, Zones};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One answer; on the wire an object with one key of the variant's name beside `version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// To [`crate::Request::Up`].
    Up(Changed),
    /// To [`crate::Request::Down`].
    Down(Changed),
    /// To [`crate::Request::Rekey`].
    Rekey(Changed),
    /// To [`crate::Request::Reauth`].
    Reauth(Changed),
    /// To [`crate::Request::Redirect`].
    Redirect(Changed),
    /// To [`crate::Request::Move`].
    Move(Moved),
    /// To [`crate::Request::Level`].
    Level(Changed),
    /// To [`crate::Request::Paths`].
    Paths(Paths),
    /// To [`crate::Request::Status`].
    Status(Status),
    /// To [`crate::Request::Zones`].
    Zones(Zones),
    /// To [`crate::Request::Flows`].
    Flows(Flows),
    /// To [`crate::Request::Leases`].
    Leases(Leases),
    /// To [`crate::Request::Keylog`].
    Keylog(Keylog),
    /// To [`crate::Request::Reload`].
    Reload(Reload),
    /// To [`crate::Request::Explain`].
    Explain(Explain),
    /// To [`crate::Request::Metrics`]: OpenMetrics text.
    Metrics(String),
    /// To [`crate::Request::Version`].
    Daemon(Daemon),
    /// To any request that cannot be done.
    Error(Failure),
}

/// The peers that a request was about, and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// In the order of their names.
    pub peers: Vec<PeerChanged>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerChanged {
    /// Name of the peer's table.
    pub name: String,
    /// How far it is now.
    pub state: PeerState,
    /// If it is not up: what failed last, for a person.
    pub reason: Option<String>,
}

/// Where keys go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keylog {
    /// The folder; `None` if keys are not written.
    pub directory: Option<PathBuf>,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    /// The daemon's version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
}

/// Why something cannot be done, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What is wrong.
    pub message: String,
    /// What to change.
    pub fix: String,
}

impl Failure {
    /// A failure with its fix.
    pub fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }
}
