//! `strata zones`: zones, licences and granted keys.

use crate::Permit;
use serde::{Deserialize, Serialize};

/// Zones known to this host: at an endpoint its composite SAs, at a licensed node the keys it
/// holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zones {
    /// Endpoint: one entry per composite SA.
    pub composites: Vec<Composite>,
    /// Licensed node: one entry per grant.
    pub held: Vec<Held>,
}

/// A composite SA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Composite {
    /// Identifier of the composite SA towards licensed nodes, as sixteen hexadecimal digits.
    pub csa: String,
    /// Name of the peer's table.
    pub peer: String,
    /// Name of the tunnel among those of the peer: that of its table, `path 2` for the second of
    /// several live paths, or `@NODE` for a node with a place, and `@*.DOMAIN#1` at an end that has
    /// the node's domain alone. None for the first tunnel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// SPI towards us, as eight hexadecimal digits.
    pub spi_in: String,
    /// SPI towards the peer, as eight hexadecimal digits.
    pub spi_out: String,
    /// Fixed zone map: runs of octets and their zones, in order. The rest of the datagram belongs
    /// to the payload zone. Empty if each packet carries its own map.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub map: Vec<String>,
    /// SPI towards us of packets that do not match the fixed map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spi_opaque_in: Option<String>,
    /// SPI towards the peer of packets that do not match the fixed map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spi_opaque_out: Option<String>,
    /// Grant to send some packets unencrypted (integrity only); `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<LevelGrant>,
    /// Protection chosen by the operator: `auto`, `zoned`, `opaque` or `integrity`.
    #[serde(default)]
    pub signal: String,
    /// Quality of the path, if it selects the protection (`opaque_below`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Replay window of both ends, in packets.
    pub window: u32,
    /// The zones in ascending serial; the last one is the payload zone.
    pub zones: Vec<Zone>,
    /// Nodes with a licence. Empty if only the two endpoints can read the packets.
    pub holders: Vec<Holder>,
    /// Licences configured here that the peer does not accept, so they are not in force.
    pub not_agreed: Vec<Permit>,
}

/// Grant to send packets unencrypted (integrity only), per direction, with its remaining budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelGrant {
    /// Human-readable description of the datagrams that it covers.
    pub class: String,
    /// SPI towards us of unencrypted packets.
    pub spi_in: String,
    /// SPI towards the peer of unencrypted packets.
    pub spi_out: String,
    /// Limit on unencrypted packets.
    pub packets: u32,
    /// Limit on the time since the first unencrypted packet, in seconds.
    pub seconds: u32,
    /// Number of rekeys that renew these limits.
    pub renewals: u16,
    /// Unencrypted packets sent.
    pub sent: u32,
    /// Unencrypted packets received.
    pub received: u64,
    /// Unencrypted packets that this host may still send.
    pub packets_left: u32,
    /// Time for which this host may still send them, in seconds.
    pub seconds_left: u64,
}

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Serial of the zone, from 1.
    pub serial: u8,
    /// Contents of the zone, as in the configuration's `layout`: `headers`, `octets 0-27`,
    /// `payload`.
    pub name: String,
    /// Cipher suite of the zone.
    pub suite: String,
}

impl From<&model::Zone> for Zone {
    fn from(zone: &model::Zone) -> Self {
        Self {
            serial: zone.id.0,
            name: zone.selector.to_string(),
            suite: zone.suite.to_string(),
        }
    }
}

/// A node with a licence that both ends accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Identity of the node.
    pub node: String,
    /// Names of the licensed zones.
    pub zones: Vec<String>,
    /// The right: `read`, `write` or `inject`.
    pub right: String,
    /// State of the grant; `None` at the endpoint that does not distribute the keys.
    pub state: Option<GrantState>,
    /// Time since the grant is in this state, in seconds.
    pub since_seconds: Option<u64>,
    /// Human-readable reason why the node refused the keys.
    pub refusal: Option<String>,
}

/// State of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantState {
    /// The IKE SA with the node is not up yet.
    Pending,
    /// The keys were sent and not acknowledged yet.
    Sent,
    /// The node has the keys.
    Held,
    /// The node refused the keys.
    Refused,
}

/// Quality of the path on which a composite SA's packets arrive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Share of missing packets at the last measurement, in 1/10000; `None` before the first.
    pub missing: Option<u16>,
    /// True if the loss is low enough to seal packets opaque.
    pub good: bool,
}

/// Keys that a licensed node holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Identifier of the composite SA, as sixteen hexadecimal digits.
    pub csa: String,
    /// Name of the gateway's table.
    pub gateway: String,
    /// Identity of the gateway.
    pub identity: String,
    /// SPI of packets from the gateway, as eight hexadecimal digits.
    pub spi_from_gateway: String,
    /// SPI of packets to the gateway, as eight hexadecimal digits.
    pub spi_to_gateway: String,
    /// Serials of the zones that the keys open.
    pub opens: Vec<u8>,
    /// Header fields that the node may change.
    #[serde(default)]
    pub writes: Vec<String>,
    /// True if the node may inject acknowledgements on behalf of one endpoint (`right = "inject"`).
    #[serde(default)]
    pub injects: bool,
    /// Serial of the payload zone.
    pub payload_zone: u8,
    /// Time until the node forgets the keys, in seconds.
    pub lifetime_left_seconds: u64,
}
