//! One line of the audit log (`[audit] file`): an event in the life of a licence or of its keys.

use crate::Zone;
use serde::{Deserialize, Serialize};

/// One line of the audit log. Fields that do not apply are left out. A record never contains a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Time of the event, in UTC, in RFC 3339 format.
    pub time: String,
    /// The event.
    pub event: AuditEvent,
    /// Endpoint: name of the peer's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Name of the child's table; `None` for the tunnel of the peer's own table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// Licensed node: name of the gateway's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// Identity of the licensed node. In a licensed node's own log: identity of the gateway, or of
    /// the node that it handed keys on to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Identifier that the gateway uses for the composite SA towards licensed nodes, as sixteen
    /// hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csa: Option<String>,
    /// SPI towards us, as eight hexadecimal digits; at a licensed node, of packets to the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spi_in: Option<String>,
    /// SPI towards the peer, as eight hexadecimal digits; at a licensed node, of packets from the
    /// gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spi_out: Option<String>,
    /// Number of the grant, unique within the composite SA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<u16>,
    /// The zones that both ends agreed on, or the zones that the keys are for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// Licences, one entry for each node and right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub licences: Vec<Permit>,
    /// Licensed node: serials of the zones that the keys open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<u8>,
    /// Time until the tunnel is rekeyed, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_seconds: Option<u64>,
    /// Time at which the node forgets the keys unless they are renewed, in UTC, in RFC 3339 format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Machine-readable cause of an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Human-readable cause of an end or of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Record {
    /// Returns the record as a line of the file, without the newline.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON")
    }

    /// Parses a line. Returns `None` if it is not an audit record.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// Kind of an audit event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditEvent {
    /// Endpoint: both ends agreed on licences.
    #[default]
    Agreed,
    /// Endpoint: the peer does not accept a licence that we configured.
    NotAgreed,
    /// Gateway: keys are sent to a licensed node. Licensed node: keys are handed on to another
    /// node.
    Given,
    /// The licensed node accepted the keys. Called `taken` by older versions.
    #[serde(alias = "taken")]
    Accepted,
    /// The licensed node had the keys already when the log was switched on, or changed to another
    /// file.
    Held,
    /// The licensed node refused the keys.
    Refused,
    /// The gateway revoked the keys.
    Revoked,
    /// The grant ended without a revocation.
    Ended,
    /// Licensed node: the lifetime of the keys ended.
    Expired,
    /// Endpoint: a tunnel is up that is authenticated and not encrypted.
    Unencrypted,
}

/// Cause of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The tunnel was rekeyed.
    Rekey,
    /// The configuration was reloaded.
    Reload,
    /// The lifetime of the tunnel's keys ended.
    Lifetime,
    /// The registration of the mobile node ended; at a home agent.
    Unbound,
    /// The path that the node was on has other addresses.
    Moved,
    /// The tunnel is down; at a licensed node: the IKE SA with its gateway is down.
    Down,
    /// The IKE SA with the licensed node is gone.
    NodeGone,
}

/// The right of one node to some zones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// Identity of the node.
    pub node: String,
    /// Names of the zones.
    pub zones: Vec<String>,
    /// The right: `read`, `write` or `inject`.
    pub right: String,
    /// Header fields that the node may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}
