//! What a licensed node says in the name of one end to the other (DESIGN section 3, "injection"): a packet of a
//! single zone, of the node's own making.
//!
//! ```text
//! SPI (4) | Ctr (4) | 0 (2) | Grant (2) | CT | ICV (16)
//! PT    = the headers of a datagram without payload | Next Header (1)
//! other = SPI | 0 (4) | Ctr | 0 (2) | Grant | L (4)          L = octets of all of it
//! ```
//!
//! It has the SPI of the composite SA that the datagram would be on, and numbers of its own: where the packets
//! of that SA have the first word of their map, which never begins with two zeros, it names its grant. So
//! there are none in an SA with a fixed map. Whoever does not know of injections finds a map without a run.

use crate::esp::{HEADER_LEN, ICV_LEN};
use model::{Spi, ZoneId};

/// What stands for the zone in a grant.
pub const INJECTION_ZONE: ZoneId = ZoneId(254);
/// Header, and what stands there in place of a map.
const FRONT_LEN: usize = HEADER_LEN + 4;

/// What is in front of an injected packet, in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    /// Of the composite SA.
    pub spi: Spi,
    /// The grant whose key it is sealed with.
    pub grant: u16,
    /// Its number under that grant, from 1.
    pub counter: u32,
}

impl Injected {
    /// Octets in front of the text.
    pub const FRONT_LEN: usize = FRONT_LEN;

    /// Reads the front of a packet, from the SPI on. `None` if that is none of these.
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

    /// The octets in front of the text.
    pub fn octets(&self) -> [u8; FRONT_LEN] {
        let mut front = [0; FRONT_LEN];
        front[..4].copy_from_slice(&self.spi.0.to_be_bytes());
        front[4..8].copy_from_slice(&self.counter.to_be_bytes());
        front[10..].copy_from_slice(&self.grant.to_be_bytes());
        front
    }

    /// What the ICV of a packet of so many octets covers beside its text.
    pub fn covered(&self, len: usize) -> [u8; FRONT_LEN + 8] {
        let mut covered = [0; FRONT_LEN + 8];
        let front = self.octets();
        covered[..4].copy_from_slice(&front[..4]);
        covered[8..16].copy_from_slice(&front[4..]);
        covered[16..].copy_from_slice(&(len as u32).to_be_bytes());
        covered
    }

    /// Text and ICV of a packet that was read. `None` if there is no text.
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

    /// Where one ends the other begins: no packet is both.
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
