//! `strata zones`: who can read what.

use crate::Permit;
use serde::{Deserialize, Serialize};

/// Zones as this host knows them: at an endpoint the composite SAs it has, at a licensed node the
/// keys it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zones {
    /// Endpoint: one for each composite SA.
    pub composites: Vec<Composite>,
    /// Licensed node: one for each grant that is held.
    pub held: Vec<Held>,
}

/// A composite SA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Composite {
    /// Its name towards licensed nodes, sixteen hexadecimal digits.
    pub csa: String,
    /// Name of the peer's table.
    pub peer: String,
    /// SPI towards us, eight hexadecimal digits.
    pub spi_in: String,
    /// SPI towards the peer, eight hexadecimal digits.
    pub spi_out: String,
    /// How many octets of which zones every packet has whose zones are told apart, before the rest, which is
    /// the payload's. Empty: each packet says it itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub map: Vec<String>,
    /// SPI towards us of all other packets, if the map is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spi_opaque_in: Option<String>,
    /// Theirs towards the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spi_opaque_out: Option<String>,
    /// What may go without encryption, if anything may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<LevelGrant>,
    /// What the operator wants of the levels: `auto`, `zoned`, `opaque` or `integrity`.
    #[serde(default)]
    pub signal: String,
    /// How good its way is, if that says which level it is (`opaque_below`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Replay window of both ends, in packets.
    pub window: u32,
    /// The zones, in ascending serial; the last is the payload.
    pub zones: Vec<Zone>,
    /// Everybody with a licence. Empty: nobody but the two ends reads anything.
    pub holders: Vec<Holder>,
    /// What the configuration licenses here and the other end does not, so that nobody has it.
    pub not_agreed: Vec<Permit>,
}

/// What may go without encryption, in each direction, and what is left of that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelGrant {
    /// Which datagrams, for people.
    pub class: String,
    /// SPI towards us of those that come so.
    pub spi_in: String,
    /// SPI towards the peer of those that go so.
    pub spi_out: String,
    /// How many may be sent so.
    pub packets: u32,
    /// For how many seconds.
    pub seconds: u32,
    /// How many times new keys give as much again.
    pub renewals: u16,
    /// Packets that were sent so.
    pub sent: u32,
    /// Packets that came so.
    pub received: u64,
    /// Packets that may still be sent so.
    pub packets_left: u32,
    /// For how many seconds they may.
    pub seconds_left: u64,
}

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Its serial, from 1.
    pub serial: u8,
    /// What it covers, as the configuration's `layout` has it: `headers`, `octets 0-27`, `payload`.
    pub name: String,
    /// How it is protected.
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
    /// Its identity.
    pub node: String,
    /// The zones it may read, by name.
    pub zones: Vec<String>,
    /// What it may do with them.
    pub right: String,
    /// Whether it has the keys. `None` at the end that does not give them out: it cannot know.
    pub state: Option<GrantState>,
    /// For how long that has been so, in seconds.
    pub since_seconds: Option<u64>,
    /// Why it has not the keys, if they were refused.
    pub refusal: Option<String>,
}

/// How far a grant has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantState {
    /// It waits for the IKE SA with the node.
    Pending,
    /// It was sent and is not yet answered.
    Sent,
    /// The node has the keys.
    Held,
    /// The node refused them.
    Refused,
}

/// How good the way is on which the packets of a composite SA come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// How many of ten thousand packets were missing when that was looked at last; `None` before.
    pub missing: Option<u16>,
    /// Whether that is so little that what leaves is opaque.
    pub good: bool,
}

/// Keys that a licensed node holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The composite SA, sixteen hexadecimal digits.
    pub csa: String,
    /// Name of the gateway's table.
    pub gateway: String,
    /// The gateway's identity.
    pub identity: String,
    /// SPI of packets from the gateway, eight hexadecimal digits.
    pub spi_from_gateway: String,
    /// SPI of packets to the gateway, eight hexadecimal digits.
    pub spi_to_gateway: String,
    /// Serials of the zones it can open.
    pub opens: Vec<u8>,
    /// The fields that it may change.
    #[serde(default)]
    pub writes: Vec<String>,
    /// Whether it may say in the name of one end what that has said before.
    #[serde(default)]
    pub injects: bool,
    /// Serial of the payload zone.
    pub payload_zone: u8,
    /// Seconds until the keys are forgotten.
    pub lifetime_left_seconds: u64,
}
