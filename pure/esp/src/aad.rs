//! What every zone's ICV covers besides its text (DESIGN section 3).
//!
//! ```text
//! AAD0  = SPI | 0(4) | Seq | map words | L(4)
//! AAD_z = AAD0 | z(1)                                  for z other than P
//! AAD_P = AAD0 | P(1) | bodies of all other zones, in wire order
//! overlay: AAD0 | 255(1) | ICV of the first body | OL(2)
//! ```
//!
//! So no zone can be lifted into another packet, SA, direction or place, no map and no length
//! changed, and only the holder of the payload key can make a whole that an endpoint accepts. All
//! of it is one buffer: `AAD_z` is its front with another zone octet.

use model::ZoneId;
use wire::esp::Header;
use wire::zoned::{Layout, MAX_MAP_LEN, OVERLAY_ZONE};

/// Where the number is, with its upper half of zeros, and where the map is.
const SEQ_AT: usize = 4;
const MAP_AT: usize = SEQ_AT + 8;
/// Octets of the packet's length.
const LEN_LEN: usize = 4;

/// The authenticated data of one packet, in a buffer that is used again.
pub(crate) struct Aad<'s> {
    octets: &'s mut Vec<u8>,
    zone_at: usize,
}

impl<'s> Aad<'s> {
    /// `AAD0` of a packet, without any body yet.
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

    /// Adds the sealed body of the next zone that is not the payload zone.
    pub fn add_body(&mut self, body: &[u8]) {
        self.octets.extend_from_slice(body);
    }

    /// What the ICV of a zone covers. For the payload zone every body has to be there already.
    pub fn of(&mut self, zone: ZoneId, payload_zone: ZoneId) -> &[u8] {
        self.octets[self.zone_at] = zone.0;
        match zone == payload_zone {
            true => self.octets,
            false => &self.octets[..=self.zone_at],
        }
    }

    /// What an overlay's ICV covers, after all that was added.
    pub fn of_overlay(self) -> &'s [u8] {
        self.octets[self.zone_at] = OVERLAY_ZONE.0;
        self.octets
    }
}
