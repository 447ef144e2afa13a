//! A packet in a buffer of its own, with room on both sides for what sealing adds.

use crate::drop::DropReason;
use model::Path;
use wire::checksum::{self, Checksum};
use wire::ecn::Ecn;
use wire::zoned;

/// Octets free before a datagram: what the largest zone map and the most zones add.
pub const HEADROOM: usize = zoned::MAX_OVERHEAD;

/// Octets free after a datagram: padding to a block of AES, pad length, next header and the longest
/// ICV.
pub const TAILROOM: usize = zoned::MAX_PADDING + 1 + zoned::MAX_ICV_LEN;

/// One packet. The caller owns it, fills it, lends it to a batch and uses it again.
#[derive(Clone, Debug)]
pub struct Packet {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Where it came from, if it came from the network.
    pub path: Option<Path>,
    /// The ECN field of the header outside: as it came, or as it is to be sent.
    pub ecn: Ecn,
    /// The DSCP that the header outside is to have.
    pub dscp: u8,
    /// Whether it is to be sent so that nobody on the way cuts it into fragments.
    pub whole: bool,
    /// Whether the datagram's transport checksum is there. Devices leave it to whoever is behind them, and zones
    /// leave it out; what is filled with octets has it until somebody says otherwise.
    pub checksum: Checksum,
}

impl Packet {
    /// An empty packet with space for `max` octets.
    pub fn with_capacity(max: usize) -> Self {
        Self {
            buffer: vec![0; HEADROOM + max + TAILROOM].into(),
            start: HEADROOM,
            end: HEADROOM,
            path: None,
            ecn: Ecn::NotEct,
            dscp: 0,
            whole: false,
            checksum: Checksum::Made,
        }
    }

    /// A packet that holds `octets` and has space for no more.
    pub fn from_slice(octets: &[u8]) -> Self {
        let mut packet = Self::with_capacity(octets.len());
        packet.fill(octets);
        packet
    }

    /// Forgets what it holds and gives the space to read into; [`Packet::set_len`] says afterwards
    /// how much of it counts.
    pub fn space(&mut self) -> &mut [u8] {
        (self.start, self.end) = (HEADROOM, HEADROOM);
        self.checksum = Checksum::Made;
        let end = self.buffer.len() - TAILROOM;
        &mut self.buffer[HEADROOM..end]
    }

    /// Makes it hold the first `len` octets of its space, or all of it if there is less.
    pub fn set_len(&mut self, len: usize) {
        self.start = HEADROOM;
        self.end = HEADROOM + len.min(self.buffer.len() - TAILROOM - HEADROOM);
    }

    /// Makes it hold a copy of `octets`, cut to its space.
    pub fn fill(&mut self, octets: &[u8]) {
        let space = self.space();
        let len = octets.len().min(space.len());
        space[..len].copy_from_slice(&octets[..len]);
        self.set_len(len);
    }

    /// Makes the checksum of the datagram that it holds, if that was left.
    pub fn make_checksum(&mut self) -> Result<(), DropReason> {
        match std::mem::take(&mut self.checksum) {
            Checksum::Left if !checksum::restore(self.octets_mut()) => {
                Err(DropReason::ChecksumNotRestorable)
            }
            _ => Ok(()),
        }
    }

    /// The octet of IPv4's type of service, or IPv6's traffic class, that it is to be sent with.
    pub fn class(&self) -> u8 {
        self.dscp << 2 | self.ecn.bits()
    }

    /// What it holds.
    pub fn octets(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// What it holds.
    pub fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }

    /// Octets it holds.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Takes octets on both sides into the packet. Their content is whatever was there.
    pub(crate) fn grow(&mut self, front: usize, back: usize) -> Result<(), DropReason> {
        if front > self.start || back > self.buffer.len() - self.end {
            return Err(DropReason::TooBig);
        }
        self.start -= front;
        self.end += back;
        Ok(())
    }

    /// Leaves only `len` octets, from the one at `from`.
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
