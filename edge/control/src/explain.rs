//! `strata explain`: the reason why a peer is up or down, and the configuration line to change.

use crate::{Lookup, PeerState, Trouble};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The last attempt to connect to or from a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explain {
    /// Name of the peer's table.
    pub peer: String,
    /// Current state of the peer.
    pub state: PeerState,
    /// The name of the peer and its last lookup; `None` unless `address` is a name.
    #[serde(default)]
    pub lookup: Option<Lookup>,
    /// Causes on this host, which come before any at the peer.
    #[serde(default)]
    pub local: Vec<Trouble>,
    /// The last attempt; `None` if there was none since the daemon started.
    pub attempt: Option<Account>,
    /// The last attempt of an unauthenticated party, if this peer may be behind it.
    pub stranger: Option<Account>,
    /// Licensed nodes that refused keys for this peer's packets, or that this peer is itself.
    pub refused_grants: Vec<RefusedGrant>,
}

/// One attempt to set up an IKE SA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Result of the attempt.
    pub outcome: Outcome,
    /// Human-readable reason of a failure.
    pub reason: Option<String>,
    /// Time since the attempt began, in seconds.
    pub seconds_ago: u64,
    /// True if this host was the initiator.
    pub initiator: bool,
    /// Address and port of the remote end.
    pub remote: SocketAddr,
    /// Interface that a link-local address belongs to; `None` for other addresses.
    #[serde(default)]
    pub interface: Option<String>,
    /// Number of times that the last request was sent.
    pub tries: u32,
    /// Proposals of both ends, compared item by item.
    pub rows: Vec<Row>,
    /// Remarkable events that did not end the attempt.
    pub remarks: Vec<String>,
    /// Proposed changes; empty if none is necessary, or if the cause is on this host.
    pub fixes: Vec<Fix>,
}

/// Result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The IKE SA is up.
    Up,
    /// The attempt is in progress.
    Trying,
    /// The attempt failed, or its IKE SA has ended since.
    Failed,
}

/// One item that both ends have to agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the item.
    pub what: String,
    /// Our value.
    pub ours: String,
    /// Value of the remote end; `None` if unknown.
    pub theirs: Option<String>,
    /// Result of the comparison.
    pub verdict: Verdict,
}

/// Result of comparing both ends' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The values are compatible.
    Fits,
    /// The values differ.
    Differs,
    /// The remote value is unknown, and the attempt failed at this item.
    Suspect,
    /// The remote value is unknown.
    Unknown,
}

/// A proposed change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// Our configuration file; `None` if the fault is elsewhere.
    pub file: Option<String>,
    /// Line of the file, from 1.
    pub line: Option<usize>,
    /// The key in dotted form.
    pub key: Option<String>,
    /// Text to write, or action to take.
    pub change: String,
}

/// A licensed node that refused keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedGrant {
    /// Identity of the node.
    pub node: String,
    /// Human-readable reason.
    pub reason: String,
}
