//! Fuzzes segmentation and coalescing for a device. Anything a device hands over is split within
//! its buffers or refused. Packets joined for a device stand for the same packets, even if those
//! are oversized, merged, or have false headers.

use crate::cut::{Outline, cut};
use crate::join::Waiting;
use crate::virtio::{FRONT_LEN, Front};
use wire::checksum::{Checksum, restore};
use wire::ip::Header;

/// Most packets that a joined one can stand for, and the octets of a buffer.
const MOST: usize = 128;
const SPACE: usize = 9_000;

/// Runs on records, each preceded by two octets of length. The first record comes from a device,
/// with its virtio header. The others are packets of a peer, with their checksums.
pub fn run(octets: &[u8]) {
    let mut records = Records(octets);
    let Some(handed) = records.next() else {
        return;
    };
    let mut packets = divided(handed, SPACE).unwrap_or_default();
    packets.extend(records.take(MOST).map(|of| (of.to_vec(), Checksum::Made)));
    let mut waiting = Waiting::new(true);
    for (packet, checksum) in &packets {
        waiting.push(packet, *checksum);
    }
    let mut after = Vec::new();
    let lost = waiting.write(|octets| {
        assert!(octets.len() <= FRONT_LEN + usize::from(u16::MAX));
        after.extend(divided(octets, octets.len()).expect("what was joined can be cut"));
        true
    });
    assert_eq!((lost, waiting.packets()), (0, 0));
    assert!(sorted(packets) == sorted(after), "packets became others");
}

/// Returns the packets split out of octets with a virtio header, or `None` if they are refused.
fn divided(octets: &[u8], space: usize) -> Option<Vec<(Vec<u8>, Checksum)>> {
    let mut octets = octets.to_vec();
    let (front, packet) = Front::read(&mut octets)?;
    // One allocation for all buffers: the system provides only the pages that are written.
    let mut space_of_all = vec![0; MOST * space];
    let mut spaces: Vec<_> = space_of_all.chunks_exact_mut(space).collect();
    let mut outlines = [Outline::default(); MOST];
    let count = cut(front, packet, &mut spaces, &mut outlines)?;
    let pieces = spaces.iter().zip(outlines).take(count);
    let piece =
        |(space, outline): (&&mut [u8], Outline)| (space[..outline.len].to_vec(), outline.checksum);
    Some(pieces.map(piece).collect())
}

/// Returns the packets with restored checksums and without IPv4 identifications, sorted.
fn sorted(packets: Vec<(Vec<u8>, Checksum)>) -> Vec<Vec<u8>> {
    let whole = |(mut packet, checksum): (Vec<u8>, Checksum)| {
        if checksum == Checksum::Left {
            assert!(
                restore(&mut packet),
                "a checksum was left that nobody can make"
            );
        }
        if packet.first() == Some(&0x45) && packet.len() >= 20 {
            let right = Header::parse(&packet).is_ok_and(|header| header.checksum_is_right());
            packet[4..6].fill(0);
            packet[10..12].fill(u8::from(right));
        }
        packet
    };
    let mut packets: Vec<_> = packets.into_iter().map(whole).collect();
    packets.sort();
    packets
}

struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.0.split_first_chunk()?;
        let len = usize::from(u16::from_be_bytes(*len)).min(rest.len());
        let record;
        (record, self.0) = rest.split_at(len);
        (!record.is_empty()).then_some(record)
    }
}
