//! Fragmentation of IPv4 datagrams (RFC 791 section 3.2), for packets that no router can fragment.

use crate::checksum::Sum;
use crate::ip::{Header, V4_HEADER_LEN};

/// Unit of fragment offsets, in octets.
const UNIT: usize = 8;
/// The More Fragments flag.
const MORE: u16 = 0x2000;
/// The bits of the offset.
const OFFSET: u16 = 0x1fff;

/// Returns the fragments of a whole datagram, of at most `mtu` octets each. There are none if the
/// datagram may not be fragmented, if it has options (which not every fragment repeats), or if
/// `mtu` is too small for a fragment.
pub fn fragments(datagram: &[u8], mtu: u16) -> impl Iterator<Item = Vec<u8>> {
    let header = Header::parse(datagram).ok();
    let header = header.filter(|header| header.may_be_fragmented() && !header.has_options());
    let room = usize::from(mtu).saturating_sub(V4_HEADER_LEN) / UNIT * UNIT;
    let payload = header.filter(|_| room > 0).map(|header| header.payload());
    let payload = payload.unwrap_or_default();
    let pieces = payload.chunks(room.max(UNIT)).enumerate();
    pieces.map(move |(number, piece)| {
        let begin = number * room;
        let is_last = begin + piece.len() == payload.len();
        fragment(datagram, begin, piece, is_last)
    })
}

/// Returns the fragment whose payload starts `begin` octets behind the header. The datagram may be
/// a fragment itself.
fn fragment(datagram: &[u8], begin: usize, piece: &[u8], is_last: bool) -> Vec<u8> {
    let mut octets = datagram[..V4_HEADER_LEN].to_vec();
    let was = u16::from_be_bytes([octets[6], octets[7]]);
    let offset = (was & OFFSET).wrapping_add((begin / UNIT) as u16) & OFFSET;
    let more = if is_last { was & MORE } else { MORE };
    let total_len = (V4_HEADER_LEN + piece.len()) as u16;
    octets[2..4].copy_from_slice(&total_len.to_be_bytes());
    octets[6..8].copy_from_slice(&(more | offset).to_be_bytes());
    octets[10..12].fill(0);
    let sum = Sum::default().with(&octets).finish();
    octets[10..12].copy_from_slice(&sum.to_be_bytes());
    octets.extend(piece);
    octets
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a datagram with these flags and fragment offset.
    fn datagram(payload: &[u8], flags: u16) -> Vec<u8> {
        let total_len = (V4_HEADER_LEN + payload.len()) as u16;
        let mut octets = vec![0x45, 0xb8];
        octets.extend(total_len.to_be_bytes());
        octets.extend([0, 7]);
        octets.extend(flags.to_be_bytes());
        octets.extend([64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = Sum::default().with(&octets).finish();
        octets[10..12].copy_from_slice(&sum.to_be_bytes());
        octets.extend(payload);
        octets
    }

    fn place(piece: &[u8]) -> (usize, bool) {
        let word = u16::from_be_bytes([piece[6], piece[7]]);
        (usize::from(word & OFFSET) * UNIT, word & MORE != 0)
    }

    proptest! {
        #[test]
        fn pieces_put_together_are_the_datagram(
            payload in proptest::collection::vec(any::<u8>(), 1..3000),
            mtu in 28..1500_u16,
            before in 0..100_u16,
            more in any::<bool>(),
        ) {
            let flags = before | if more { MORE } else { 0 };
            let begin = usize::from(before) * UNIT;
            let mut together: Vec<u8> = Vec::new();
            let whole = datagram(&payload, flags);
            let all: Vec<_> = fragments(&whole, mtu).collect();
            for (number, piece) in all.iter().enumerate() {
                let header = Header::parse(piece).unwrap();
                prop_assert!(header.checksum_is_right() && piece.len() <= mtu.into());
                prop_assert_eq!(header.tos(), 0xb8);
                let is_last = number + 1 == all.len();
                prop_assert_eq!(place(piece), (begin + together.len(), !is_last || more));
                together.extend(header.payload());
            }
            prop_assert_eq!(together, payload);
        }

        #[test]
        fn any_octets_are_cut_without_panic(
            mut octets in proptest::collection::vec(any::<u8>(), 0..80),
            mtu in any::<u16>(),
        ) {
            if let Some(first) = octets.first_mut() {
                *first = 0x45;
            }
            prop_assert!(fragments(&octets, mtu).count() <= 80);
        }
    }

    #[test]
    fn what_may_not_be_cut_or_has_no_room_gives_no_pieces() {
        const DONT_FRAGMENT: u16 = 0x4000;
        assert_eq!(
            fragments(&datagram(&[1; 100], DONT_FRAGMENT), 60).count(),
            0
        );
        assert_eq!(fragments(&datagram(&[1; 100], 0), 27).count(), 0);
        assert_eq!(fragments(&datagram(&[1; 100], 0), 28).count(), 13);
        let mut with_options = datagram(&[1; 100], 0);
        with_options[0] = 0x46;
        assert_eq!(fragments(&with_options, 60).count(), 0);
    }
}
