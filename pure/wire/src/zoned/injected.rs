//! Packets that a licensed node sends to one end on behalf of the other (DESIGN section 3,
//! "injection"): packets of a single zone that the node builds itself.
//!
//! ```text
//! SPI (4) | Ctr (4) | 0 (2) | Grant (2) | CT | ICV (16)
//! PT    = the headers of a datagram without payload | Next Header (1)
//! other = SPI | 0 (4) | Ctr | 0 (2) | Grant | L (4)          L = octets of all of it
//! ```
//!
//! An injected packet has the SPI of the composite SA that the datagram would use, but its own
//! counter. In place of the first map word, which never starts with two zeros, it names its grant.
//! An SA with a fixed map therefore has no injected packets. To a receiver without support for
//! injection, it is a packet whose map has no run.

use crate::esp::{HEADER_LEN, ICV_LEN};
use model::{Spi, ZoneId};

/// Zone number that stands for injection in a grant.
pub const INJECTION_ZONE: ZoneId = ZoneId(254);
/// Octets of the ESP header and of the field in place of the map.
const FRONT_LEN: usize = HEADER_LEN + 4;

/// Unencrypted front of an injected packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    /// SPI of the composite SA.
    pub spi: Spi,
    /// Grant whose key seals the packet.
    pub grant: u16,
    /// Number of the packet under that grant, from 1.
    pub counter: u32,
}

impl Injected {
    /// Octets in front of the ciphertext.
    pub const FRONT_LEN: usize = FRONT_LEN;

    /// Reads the front of a packet, from the SPI on. `None` if it is not an injected packet.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let front: &[u8; FRONT_LEN] = packet.first_chunk()?;
        let [s0, s1, s2, s3, c0, c1, c2, c3, 0, 0, g0, g1] = *front else {
            return None;
        };
        Some(Self {
            spi: Spi(u32::from_be_bytes([s0, s1, s2, s3])),
            grant: u16::from_be_bytes([g0, g1]),
            counter: u32::from_be_bytes([c0, c1, c2, c3]),
        })
    }

    /// Returns the octets in front of the ciphertext.
    pub fn octets(&self) -> [u8; FRONT_LEN] {
        let mut front = [0; FRONT_LEN];
        front[..4].copy_from_slice(&self.spi.0.to_be_bytes());
        front[4..8].copy_from_slice(&self.counter.to_be_bytes());
        front[10..].copy_from_slice(&self.grant.to_be_bytes());
        front
    }

    /// Returns the additional authenticated data of a packet of `len` octets.
    pub fn covered(&self, len: usize) -> [u8; FRONT_LEN + 8] {
        let mut covered = [0; FRONT_LEN + 8];
        let front = self.octets();
        covered[..4].copy_from_slice(&front[..4]);
        covered[8..16].copy_from_slice(&front[4..]);
        covered[16..].copy_from_slice(&(len as u32).to_be_bytes());
        covered
    }

    /// Splits a packet into ciphertext and ICV. `None` if there is no ciphertext.
    pub fn parts(packet: &mut [u8]) -> Option<(&mut [u8], &mut [u8; ICV_LEN])> {
        let (_, rest) = packet.split_at_mut_checked(FRONT_LEN)?;
        let (text, icv) = rest.split_last_chunk_mut()?;
        (!text.is_empty()).then_some((text, icv))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zoned::{BadMap, Map};

    const FRONT: Injected = Injected {
        spi: Spi(0x0102_0304),
        grant: 0x0506,
        counter: 0x0708_090a,
    };

    #[test]
    fn a_front_is_read_as_it_is_written() {
        let octets = FRONT.octets();
        assert_eq!(octets, [1, 2, 3, 4, 7, 8, 9, 10, 0, 0, 5, 6]);
        assert_eq!(Injected::read(&octets), Some(FRONT));
        assert_eq!(Injected::read(&octets[..11]), None);
        let covered = [1, 2, 3, 4, 0, 0, 0, 0, 7, 8, 9, 10, 0, 0, 5, 6, 0, 0, 1, 44];
        assert_eq!(FRONT.covered(300), covered);
    }

    /// The fronts differ in the first map word, so no packet is both.
    #[test]
    fn what_has_a_map_is_not_injected() {
        let mut packet = [&FRONT.octets()[..], &[0; 40]].concat();
        assert_eq!(Map::parse(&packet[8..], ZoneId(2)), Err(BadMap::RunCount));
        for (at, value) in [(8, 0x80), (8, 1), (9, 1), (9, 2)] {
            packet[at] = value;
            assert_eq!(Injected::read(&packet), None);
            packet[at] = 0;
        }
    }

    #[test]
    fn a_packet_without_text_has_no_parts() {
        let mut packet = [0; FRONT_LEN + ICV_LEN + 1];
        assert!(Injected::parts(&mut packet).is_some());
        assert!(Injected::parts(&mut packet[1..]).is_none());
        assert!(Injected::parts(&mut []).is_none());
    }
}
