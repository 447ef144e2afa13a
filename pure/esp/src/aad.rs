//! The additional data that every zone's ICV covers (DESIGN section 3).
//!
//! ```text
//! AAD0  = SPI | 0(4) | Seq | map words | L(4)
//! AAD_z = AAD0 | z(1)                                  for z other than P
//! AAD_P = AAD0 | P(1) | bodies of all other zones, in wire order
//! overlay: AAD0 | 255(1) | ICV of the first body | OL(2)
//! ```
//!
//! No zone can therefore be moved into another packet, SA, direction or place, and no map or length
//! changed. Only the holder of the payload key can create a packet that an endpoint accepts. All of
//! it is in one buffer: `AAD_z` is its front with another zone octet.

use model::ZoneId;
use wire::esp::Header;
use wire::zoned::{Layout, MAX_MAP_LEN, OVERLAY_ZONE};

/// Offsets of the sequence number, whose upper half is zero, and of the map.
const SEQ_AT: usize = 4;
const MAP_AT: usize = SEQ_AT + 8;
/// Length of the packet length field, in octets.
const LEN_LEN: usize = 4;

/// The additional data of one packet, in a reused buffer.
pub(crate) struct Aad<'s> {
    octets: &'s mut Vec<u8>,
    zone_at: usize,
}

impl<'s> Aad<'s> {
    /// Creates `AAD0` of a packet, without bodies.
    pub fn new(octets: &'s mut Vec<u8>, header: Header, layout: &Layout) -> Self {
        let map_end = MAP_AT + layout.map().len();
        let zone_at = map_end + LEN_LEN;
        let mut front = [0; MAP_AT + MAX_MAP_LEN + LEN_LEN + 1];
        front[..SEQ_AT].copy_from_slice(&header.spi.0.to_be_bytes());
        front[SEQ_AT..MAP_AT].copy_from_slice(&u64::from(header.seq).to_be_bytes());
        layout.map().write(&mut front[MAP_AT..]);
        front[map_end..zone_at].copy_from_slice(&(layout.packet_len() as u32).to_be_bytes());
        octets.clear();
        octets.extend_from_slice(&front[..=zone_at]);
        Self { octets, zone_at }
    }

    /// Appends the sealed body of the next zone other than the payload zone.
    pub fn add_body(&mut self, body: &[u8]) {
        self.octets.extend_from_slice(body);
    }

    /// Returns the additional data of a zone. For the payload zone all other bodies must have been
    /// added.
    pub fn for_zone(&mut self, zone: ZoneId, payload_zone: ZoneId) -> &[u8] {
        self.octets[self.zone_at] = zone.0;
        match zone == payload_zone {
            true => self.octets,
            false => &self.octets[..=self.zone_at],
        }
    }

    /// Returns the additional data of an overlay, including everything added before.
    pub fn of_overlay(self) -> &'s [u8] {
        self.octets[self.zone_at] = OVERLAY_ZONE.0;
        self.octets
    }
}
