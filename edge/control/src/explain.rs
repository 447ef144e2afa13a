//! `strata explain`: why a peer is up or not, and which line to change.

use crate::PeerState;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// What is known of the last attempt with a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explain {
    /// Name of the peer's table.
    pub peer: String,
    /// How far it is now.
    pub state: PeerState,
    /// The last attempt; `None` if there was none since the start.
    pub attempt: Option<Account>,
    /// The last attempt of somebody who has not proved to be any peer, if it may have been this one.
    pub stranger: Option<Account>,
    /// Licensed nodes that did not take the keys to its packets, and why.
    pub refused_grants: Vec<RefusedGrant>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed.
    pub reason: Option<String>,
    /// When it began.
    pub seconds_ago: u64,
    /// Whether we began it.
    pub initiator: bool,
    /// Where the other end is.
    pub remote: SocketAddr,
    /// How often the last request was sent.
    pub tries: u32,
    /// What both ends wanted.
    pub rows: Vec<Row>,
    /// What was remarkable beside.
    pub remarks: Vec<String>,
    /// What to change; empty if nothing has to be.
    pub fixes: Vec<Fix>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The IKE SA is up.
    Up,
    /// It is under way.
    Trying,
    /// It failed, or what it made is gone.
    Failed,
}

/// One thing that both ends have to agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What.
    pub what: String,
    /// What we want.
    pub ours: String,
    /// What the other end wants; `None` if it did not say.
    pub theirs: Option<String>,
    /// Whether that fits.
    pub verdict: Verdict,
}

/// Whether two ends agree on something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// They do.
    Fits,
    /// They do not.
    Differs,
    /// The other end did not say, but it is what failed.
    Suspect,
    /// The other end did not say.
    Unknown,
}

/// What to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// The file of our configuration; `None` if the fault is not here.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: Option<usize>,
    /// The key in dotted form.
    pub key: Option<String>,
    /// What to write, or to do.
    pub change: String,
}

/// A node that did not take keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedGrant {
    /// The node.
    pub node: String,
    /// Why, for a person.
    pub reason: String,
}
