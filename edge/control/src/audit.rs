//! A line of the audit log (`[audit] file`): what has become of a licence or of keys.

use crate::Zone;
use serde::{Deserialize, Serialize};

/// One line. What does not apply is left out. There is never a key in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When, in UTC, as RFC 3339 writes it.
    pub time: String,
    /// What happened.
    pub event: Deed,
    /// Endpoint: name of the peer's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Name of the child's table; none is the tunnel of the peer's own table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// Licensed node: name of the gateway's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// Identity of the licensed node; at that node, of the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The composite SA as its gateway calls it towards licensed nodes, sixteen hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csa: Option<String>,
    /// SPI towards us, eight hexadecimal digits; at a licensed node, of packets to the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spi_in: Option<String>,
    /// SPI towards the peer, eight hexadecimal digits; at a licensed node, of packets from the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spi_out: Option<String>,
    /// The number of the grant, which no other of the composite SA has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<u16>,
    /// All zones that were agreed on, or those that the keys are for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// Who may do what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub licences: Vec<Permit>,
    /// Licensed node: serials of the zones that it can open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<u8>,
    /// New keys are made after so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_seconds: Option<u64>,
    /// When the node forgets the keys, if it does not get them again until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Why something has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// The same for a person, or why something was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Record {
    /// As it stands in the file, without the end of the line.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON")
    }

    /// Reads a line. `None` if it is none of ours.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Endpoint: both ends agreed on licences.
    #[default]
    Agreed,
    /// Endpoint: a licence of ours is not the peer's as well.
    NotAgreed,
    /// Gateway: keys leave for a licensed node.
    Given,
    /// The node has them.
    Taken,
    /// The node did not take them.
    Refused,
    /// The gateway takes them back.
    Revoked,
    /// They have ended without that.
    Ended,
    /// Licensed node: their time was over.
    Expired,
}

/// Why something has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The tunnel has new keys.
    Rekey,
    /// The configuration was read again.
    Reload,
    /// The tunnel's keys were too old.
    Lifetime,
    /// The tunnel is down, or at a licensed node its gateway.
    Down,
    /// The licensed node is gone.
    NodeGone,
}

/// What one node may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// Its identity.
    pub node: String,
    /// The zones, by name.
    pub zones: Vec<String>,
    /// What it may do with them.
    pub right: String,
    /// The fields that it may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}
