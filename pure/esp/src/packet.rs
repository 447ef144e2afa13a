//! A packet in a buffer of its own, with room on both sides for what sealing adds.

use crate::drop::DropReason;
use model::{Df, Path};
use wire::checksum::{self, Checksum};
use wire::ecn::Ecn;
use wire::zoned;

/// Free octets before a datagram: the largest zone map and the overhead of the most zones.
pub const HEADROOM: usize = zoned::MAX_OVERHEAD;

/// Free octets after a datagram: padding to an AES block, pad length, next header and the longest
/// ICV.
pub const TAILROOM: usize = zoned::MAX_PADDING + 1 + zoned::MAX_ICV_LEN;

/// One packet. The caller owns it, fills it, lends it to a batch and reuses it.
#[derive(Clone, Debug)]
pub struct Packet {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The path that it arrived on, if it came from the network.
    pub path: Option<Path>,
    /// The ECN field of the outer header, received or to be sent.
    pub ecn: Ecn,
    /// The DSCP of the outer header to be sent.
    pub dscp: u8,
    /// Its treatment if a link of the path is too short.
    pub df: Df,
    /// The state of the datagram's transport checksum. Offload leaves it to the device, and zones
    /// omit it; after a fill it counts as complete until this field is changed.
    pub checksum: Checksum,
}

impl Packet {
    /// Creates an empty packet with space for `max` octets.
    pub fn with_capacity(max: usize) -> Self {
        Self {
            buffer: vec![0; HEADROOM + max + TAILROOM].into(),
            start: HEADROOM,
            end: HEADROOM,
            path: None,
            ecn: Ecn::NotEct,
            dscp: 0,
            df: Df::Clear,
            checksum: Checksum::Made,
        }
    }

    /// Creates a packet that holds `octets` and has space for no more.
    pub fn from_slice(octets: &[u8]) -> Self {
        let mut packet = Self::with_capacity(octets.len());
        packet.fill(octets);
        packet
    }

    /// Clears the packet and returns its space for reading into. [`Packet::set_len`] then sets the
    /// length.
    pub fn space(&mut self) -> &mut [u8] {
        (self.start, self.end) = (HEADROOM, HEADROOM);
        self.checksum = Checksum::Made;
        let end = self.buffer.len() - TAILROOM;
        &mut self.buffer[HEADROOM..end]
    }

    /// Sets the content to the first `len` octets of the space, at most all of it.
    pub fn set_len(&mut self, len: usize) {
        self.start = HEADROOM;
        self.end = HEADROOM + len.min(self.buffer.len() - TAILROOM - HEADROOM);
    }

    /// Replaces the content by a copy of `octets`, truncated to the space.
    pub fn fill(&mut self, octets: &[u8]) {
        let space = self.space();
        let len = octets.len().min(space.len());
        space[..len].copy_from_slice(&octets[..len]);
        self.set_len(len);
    }

    /// Computes the datagram's transport checksum, if it was omitted.
    pub fn make_checksum(&mut self) -> Result<(), DropReason> {
        match std::mem::take(&mut self.checksum) {
            Checksum::Left if !checksum::restore(self.octets_mut()) => {
                Err(DropReason::ChecksumNotRestorable)
            }
            _ => Ok(()),
        }
    }

    /// Returns the outer type of service (IPv4) or traffic class (IPv6) to be sent.
    pub fn class(&self) -> u8 {
        self.dscp << 2 | self.ecn.bits()
    }

    /// Returns the content.
    pub fn octets(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the content, mutably.
    pub fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }

    /// Returns the number of octets in the content.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns true if the content is empty.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Extends the content on both sides. The new octets keep their previous values.
    pub(crate) fn grow(&mut self, front: usize, back: usize) -> Result<(), DropReason> {
        if front > self.start || back > self.buffer.len() - self.end {
            return Err(DropReason::TooBig);
        }
        self.start -= front;
        self.end += back;
        Ok(())
    }

    /// Reduces the content to `len` octets from offset `from`.
    pub(crate) fn cut(&mut self, from: usize, len: usize) {
        self.start = (self.start + from).min(self.end);
        self.end = (self.start + len).min(self.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_packet_is_as_good_as_a_new_one() {
        let mut packet = Packet::with_capacity(10);
        packet.fill(&[1; 10]);
        packet.grow(HEADROOM, TAILROOM).unwrap();
        packet.cut(100, 7);
        assert_eq!(packet.len(), 7);
        packet.checksum = Checksum::Left;
        assert_eq!(packet.space().len(), 10);
        assert_eq!(packet.checksum, Checksum::Made);
        packet.set_len(4);
        assert_eq!(packet.octets(), [1; 4]);
    }

    // Weakness: 71
    #[test]
    fn it_never_grows_beyond_its_buffer_nor_takes_more_than_it_has_space_for() {
        let mut packet = Packet::from_slice(&[7; 3]);
        assert_eq!(packet.grow(HEADROOM + 1, 0), Err(DropReason::TooBig));
        assert_eq!(packet.grow(0, TAILROOM + 1), Err(DropReason::TooBig));
        packet.set_len(99);
        assert_eq!(packet.octets(), [7; 3]);
        packet.fill(&[8; 9]);
        assert_eq!(packet.octets(), [8; 3]);
        packet.cut(9, 9);
        assert!(packet.is_empty());
    }
}
