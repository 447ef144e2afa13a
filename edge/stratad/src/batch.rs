//! The packets of one batch, in reusable buffers.

use model::Path;
use node::Packet;
use os::{Bulk, Outline, SEGMENTS};
use std::io;
use wire::ecn::Ecn;

/// Packets passed to the node at once. Longer batches delay others, shorter ones cost calls.
pub const BATCH: usize = 2 * SEGMENTS;

/// Batches read from one descriptor before the others are served.
pub const TURNS: usize = 4;

/// Buffers that are kept for the next burst. One system call with GRO may return far more packets,
/// and each buffer has room for the longest packet.
const KEPT: usize = 2 * BATCH;

/// Length of the longest IP packet, in octets.
const LONGEST: usize = 65_535;

/// Returns empty packets, each with room for the longest.
pub fn buffers() -> Vec<Packet> {
    (0..BATCH).map(|_| Packet::with_capacity(LONGEST)).collect()
}

/// Fills packets from a tunnel device. Returns their number, and the error that ended the read.
pub fn fill(batch: &mut [Packet], tun: &mut Bulk) -> (usize, Option<io::Error>) {
    let mut outlines = [Outline::default(); BATCH];
    let mut packets = batch.iter_mut();
    let mut spaces: [&mut [u8]; BATCH] =
        std::array::from_fn(|_| packets.next().map_or(&mut [][..], Packet::space));
    let (filled, failed) = tun.recv(&mut spaces, &mut outlines);
    for (packet, outline) in batch.iter_mut().zip(outlines).take(filled) {
        packet.set_len(outline.len);
        packet.checksum = outline.checksum;
    }
    (filled, failed)
}

/// Packets copied out of the receive buffers, in reusable buffers: as many as a common burst needs.
#[derive(Default)]
pub struct Arrived {
    packets: Vec<Packet>,
    filled: usize,
}

impl Arrived {
    pub fn push(&mut self, path: Path, ecn: Ecn, octets: &[u8]) {
        if self.filled == self.packets.len() {
            self.packets.push(Packet::with_capacity(LONGEST));
        }
        let packet = &mut self.packets[self.filled];
        packet.fill(octets);
        (packet.path, packet.ecn) = (Some(path), ecn);
        self.filled += 1;
    }

    pub fn packets(&mut self) -> &mut [Packet] {
        &mut self.packets[..self.filled]
    }

    pub fn clear(&mut self) {
        self.packets.truncate(KEPT);
        self.filled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_burst_is_taken_whole_and_its_buffers_are_not_kept() {
        let end = std::net::SocketAddr::from(([192, 0, 2, 1], 4500));
        let path = Path::udp(end, end);
        let mut arrived = Arrived::default();
        for round in 0..3_u8 {
            for _ in 0..2048 {
                arrived.push(path, Ecn::NotEct, &[round; 40]);
            }
            let packets = arrived.packets();
            assert_eq!(packets.len(), 2048);
            assert!(packets.iter().all(|packet| packet.octets() == [round; 40]));
            arrived.clear();
            assert_eq!((arrived.packets.len(), arrived.filled), (KEPT, 0));
        }
    }
}
