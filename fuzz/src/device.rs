//! Whatever a device hands over is cut within its spaces or refused, and what of it and of a peer's packets is
//! joined for a device stands for the packets that came: oversized, merged, or with headers that lie.

use crate::cut::{Outline, cut};
use crate::join::Waiting;
use crate::virtio::{FRONT_LEN, Front};
use wire::checksum::{Checksum, restore};
use wire::ip::Header;

/// Packets that one joined can stand for, and octets of a space.
const MOST: usize = 128;
const SPACE: usize = 9_000;

/// Records of two octets of length and as much: the first is what a device hands over, behind virtio's header; the
/// others are packets of a peer, with their checksums.
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

/// What is cut out of something behind virtio's header.
fn divided(octets: &[u8], space: usize) -> Option<Vec<(Vec<u8>, Checksum)>> {
    let mut octets = octets.to_vec();
    let (front, packet) = Front::read(&mut octets)?;
    // All in one, of which the system gives no more than what is written to.
    let mut space_of_all = vec![0; MOST * space];
    let mut spaces: Vec<_> = space_of_all.chunks_exact_mut(space).collect();
    let mut outlines = [Outline::default(); MOST];
    let count = cut(front, packet, &mut spaces, &mut outlines)?;
    let pieces = spaces.iter().zip(outlines).take(count);
    let piece =
        |(space, outline): (&&mut [u8], Outline)| (space[..outline.len].to_vec(), outline.checksum);
    Some(pieces.map(piece).collect())
}

/// As whoever needs them whole makes them, without the numbers of IPv4's fragments.
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
