//! Zones, licences and what both ends agreed about them (DESIGN sections 1 and 3).

use crate::{Identity, Suite};
use std::fmt;

/// Serial of a zone: 1 is the designated (header) zone, the highest agreed one the payload zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ZoneId(pub u8);

impl ZoneId {
    /// The designated zone: what a licensed node needs first.
    pub const DESIGNATED: Self = Self(1);
}

impl fmt::Display for ZoneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Which octets of a datagram a zone asks for. What `classify` calls opaque goes to the payload
/// zone whatever the selector says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ZoneSelector {
    /// The IP header.
    Ip = 1,
    /// The transport header without secret options.
    Transport = 2,
    /// Both headers: what SNOOP needs.
    IpTransport = 3,
    /// Everything no other zone asks for; always and only the payload zone.
    Rest = 255,
}

/// One agreed zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zone {
    /// Its serial.
    pub id: ZoneId,
    /// The octets it asks for.
    pub selector: ZoneSelector,
    /// How it is protected.
    pub suite: Suite,
}

/// Whether the zone map is carried by each packet or fixed in the SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MapKind {
    /// Carried by each packet (CZML-IPSec).
    Changeable = 1,
}

/// What a licence allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Right {
    /// See the zone's octets.
    Read = 1,
}

/// The permission for one node to do one thing with one zone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Licence {
    /// The node's authenticated identity.
    pub node: Identity,
    /// The zone.
    pub zone: ZoneId,
    /// What it may do.
    pub right: Right,
}

/// Everything both endpoints agreed about the zones of a composite SA. It enters the key
/// derivation, so two ends that disagree share no key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ZoneAgreement {
    /// The zones in ascending serial from 1 without gaps; the last is the payload zone.
    pub zones: Vec<Zone>,
    /// Where the map is.
    pub map: MapKind,
    /// Replay window of both endpoints in packets, 4096 to 65536.
    pub window: u32,
    /// Licences both ends accepted, sorted and without duplicates.
    pub licences: Vec<Licence>,
}

impl ZoneAgreement {
    /// The payload zone's serial.
    pub fn payload_zone(&self) -> ZoneId {
        ZoneId(self.zones.len() as u8)
    }
}
