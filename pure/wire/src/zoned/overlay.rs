//! Overlays: changes that a writer appends to a packet, because it must not modify the bodies
//! (DESIGN section 3).
//!
//! ```text
//! Overlay = Grant (2) | Ctr (6) | CT (3 to 64) | ICV (16) | OL (2)      OL = octets of all of it
//! PT      = one or more of offset (1) | n (1) | n octets
//! ```
//!
//! Offsets count the octets of the designated zone's runs. Writes ascend and do not overlap, and
//! adjacent writes are merged: the same change has only one form. Bit W of the map's first word
//! marks an overlay behind the last body. The bit is clear in all data that the endpoints
//! authenticate, so a receiver that clears it and removes the overlay gets the sealed packet.

use crate::esp::{HEADER_LEN, ICV_LEN};
use model::ZoneId;

/// Bit W, in the first octet of the map.
pub(super) const BIT: u8 = 0x80;
/// Zone number that stands for overlays in their authenticated data and in a grant.
pub const OVERLAY_ZONE: ZoneId = ZoneId(255);
/// Octets of the shortest text: a write of one octet.
const MIN_TEXT: usize = 3;
const MAX_TEXT: usize = 64;
/// Octets of grant and counter.
const FRONT_LEN: usize = 8;
const LEN_LEN: usize = 2;
/// Octets of an overlay in addition to its text.
const AROUND: usize = FRONT_LEN + ICV_LEN + LEN_LEN;
/// Highest counter, which has 48 bits.
const MAX_COUNTER: u64 = (1 << 48) - 1;

/// Octets of an overlay with one write of two octets: the room to reserve behind a packet.
pub const ONE_FIELD_LEN: usize = AROUND + 2 + 2;

/// An overlay. Its text may be encrypted or decrypted, as it was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    grant: u16,
    counter: u64,
    text: [u8; MAX_TEXT],
    text_len: usize,
    /// ICV that covers the overlay and the packet that it belongs to.
    pub icv: [u8; ICV_LEN],
}

/// The octets are not an overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the overlay at the end of the packet is malformed")]
pub struct BadOverlay;

impl Overlay {
    /// Returns an overlay with plaintext. `None` if the counter is too large, or the text too long
    /// or too short.
    pub fn new(grant: u16, counter: u64, plain: &[u8]) -> Option<Self> {
        let fits = counter <= MAX_COUNTER && (MIN_TEXT..=MAX_TEXT).contains(&plain.len());
        fits.then(|| Self::with(grant, counter, plain, [0; ICV_LEN]))
    }

    fn with(grant: u16, counter: u64, octets: &[u8], icv: [u8; ICV_LEN]) -> Self {
        let mut text = [0; MAX_TEXT];
        text[..octets.len()].copy_from_slice(octets);
        Self {
            grant,
            counter,
            text,
            text_len: octets.len(),
            icv,
        }
    }

    /// Reads the overlay of a packet, from the SPI on. Returns the length of the packet without it
    /// as well, or `None` if it has none.
    pub fn read(packet: &[u8]) -> Result<Option<(usize, Self)>, BadOverlay> {
        if packet.get(HEADER_LEN).is_none_or(|flags| flags & BIT == 0) {
            return Ok(None);
        }
        let len: &[u8; LEN_LEN] = packet.last_chunk().ok_or(BadOverlay)?;
        let len = usize::from(u16::from_be_bytes(*len));
        let start = packet.len().checked_sub(len).ok_or(BadOverlay)?;
        if start <= HEADER_LEN || !(AROUND + MIN_TEXT..=AROUND + MAX_TEXT).contains(&len) {
            return Err(BadOverlay);
        }
        let (front, rest) = packet[start..].split_first_chunk().ok_or(BadOverlay)?;
        let (text, rest) = rest.split_at(len - AROUND);
        let icv = rest.first_chunk().ok_or(BadOverlay)?;
        let number = u64::from_be_bytes(*front);
        let overlay = Self::with((number >> 48) as u16, number & MAX_COUNTER, text, *icv);
        Ok(Some((start, overlay)))
    }

    /// Appends the overlay to a packet, behind its last body.
    pub fn append(&self, packet: &mut Vec<u8>) {
        packet.extend_from_slice(&self.number().to_be_bytes());
        packet.extend_from_slice(&self.text[..self.text_len]);
        packet.extend_from_slice(&self.icv);
        packet.extend_from_slice(&(self.wire_len() as u16).to_be_bytes());
    }

    /// Returns the grant whose key seals the overlay.
    pub fn grant(&self) -> u16 {
        self.grant
    }

    /// Returns grant and counter as on the wire, a combination that never repeats in a direction of
    /// an SA.
    pub fn number(&self) -> u64 {
        u64::from(self.grant) << 48 | self.counter
    }

    /// Returns the octets on the wire.
    pub fn wire_len(&self) -> usize {
        AROUND + self.text_len
    }

    /// Returns the text, encrypted or not.
    pub fn text(&self) -> &[u8] {
        &self.text[..self.text_len]
    }

    /// Returns text and ICV, to seal or open them.
    pub fn parts(&mut self) -> (&mut [u8], &mut [u8; ICV_LEN]) {
        (&mut self.text[..self.text_len], &mut self.icv)
    }
}

/// Sets or clears bit W of a packet, from the SPI on.
pub fn mark(packet: &mut [u8], overlay: bool) {
    if let Some(flags) = packet.get_mut(HEADER_LEN) {
        *flags = *flags & !BIT | if overlay { BIT } else { 0 };
    }
}

/// A change of consecutive octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write<'a> {
    /// Offset in the runs of the designated zone.
    pub offset: usize,
    /// New octets.
    pub octets: &'a [u8],
}

/// Iterates over the writes of a decrypted text. It ends after the first malformed one.
pub fn writes(text: &[u8]) -> Writes<'_> {
    Writes { text, free: 0 }
}

/// Iterator of [`writes`].
#[derive(Clone, Debug)]
pub struct Writes<'a> {
    text: &'a [u8],
    /// The lowest offset that the next write may have.
    free: usize,
}

impl<'a> Writes<'a> {
    fn read(&mut self) -> Option<Write<'a>> {
        let (&[offset, len], rest) = self.text.split_first_chunk()?;
        let (offset, len) = (usize::from(offset), usize::from(len));
        let (octets, rest) = rest.split_at_checked(len)?;
        let write = (len > 0 && offset >= self.free).then_some(Write { offset, octets });
        (self.text, self.free) = (rest, offset + len + 1);
        write
    }
}

impl<'a> Iterator for Writes<'a> {
    type Item = Result<Write<'a>, BadOverlay>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.text.is_empty() {
            return None;
        }
        let write = self.read();
        if write.is_none() {
            self.text = &[];
        }
        Some(write.ok_or(BadOverlay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(flags: u8) -> Vec<u8> {
        let mut packet = vec![7; HEADER_LEN];
        packet.extend([flags, 1, 0, 40]);
        packet.extend([9; 60]);
        packet
    }

    #[test]
    fn an_overlay_is_where_the_design_draws_it() {
        let mut overlay = Overlay::new(0x0102, 0x0304_0506_0708, &[34, 2, 1, 0]).unwrap();
        overlay.icv = [0xee; ICV_LEN];
        let mut octets = packet(0x82);
        let len = octets.len();
        overlay.append(&mut octets);
        let expected = [
            &[1, 2, 3, 4, 5, 6, 7, 8, 34, 2, 1, 0][..],
            &[0xee; 16],
            &[0, ONE_FIELD_LEN as u8],
        ];
        assert_eq!(octets[len..], expected.concat());
        assert_eq!(octets.len() - len, ONE_FIELD_LEN);
        assert_eq!(Overlay::read(&octets), Ok(Some((len, overlay))));
    }

    #[test]
    fn without_bit_w_there_is_none() {
        assert_eq!(Overlay::read(&packet(0x02)), Ok(None));
        assert_eq!(Overlay::read(&[0xff; 8]), Ok(None));
        let mut marked = packet(0x42);
        mark(&mut marked, true);
        assert_eq!(marked[8], 0xc2);
        mark(&mut marked, false);
        assert_eq!(marked, packet(0x42));
    }

    #[test]
    fn a_length_that_is_none_or_leads_out_of_the_packet_is_malformed() {
        for len in [0, 26, 28, 91, 65, 64, 0xffff_u16] {
            let mut octets = packet(0x82);
            octets.extend(len.to_be_bytes());
            if usize::from(len) < octets.len() - HEADER_LEN && (29..=90).contains(&len) {
                continue;
            }
            assert_eq!(Overlay::read(&octets), Err(BadOverlay), "{len}");
        }
        assert_eq!(Overlay::read(&packet(0x82)[..9]), Err(BadOverlay));
    }

    #[test]
    fn no_counter_beyond_48_bits_and_no_text_beyond_its_bounds() {
        assert!(Overlay::new(1, MAX_COUNTER, &[0; 3]).is_some());
        assert_eq!(Overlay::new(1, MAX_COUNTER + 1, &[0; 3]), None);
        assert_eq!(Overlay::new(1, 1, &[0; 2]), None);
        assert_eq!(Overlay::new(1, 1, &[0; 65]), None);
    }

    #[test]
    fn writes_ascend_and_neither_overlap_nor_touch() {
        fn all(text: &[u8]) -> Result<Vec<Write<'_>>, BadOverlay> {
            writes(text).collect()
        }
        fn write(offset: usize, octets: &[u8]) -> Write<'_> {
            Write { offset, octets }
        }
        assert_eq!(
            all(&[3, 1, 9, 5, 2, 7, 8]),
            Ok(vec![write(3, &[9]), write(5, &[7, 8])])
        );
        for bad in [
            &[3][..],               // cut short
            &[3, 0],                // empty
            &[3, 2, 9],             // longer than there is
            &[5, 1, 9, 3, 1, 9],    // descending
            &[3, 2, 9, 9, 4, 1, 9], // overlapping
            &[3, 1, 9, 4, 1, 9],    // two that are one
        ] {
            assert_eq!(all(bad), Err(BadOverlay), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_read_without_a_panic_and_written_back(
            mut octets in proptest::collection::vec(any::<u8>(), 0..200),
            len in 20..100_u16,
        ) {
            if let Some(flags) = octets.get_mut(HEADER_LEN) {
                *flags |= BIT;
            }
            octets.extend(len.to_be_bytes());
            let _ = writes(&octets).count();
            if let Ok(Some((end, overlay))) = Overlay::read(&octets) {
                let mut written = octets[..end].to_vec();
                overlay.append(&mut written);
                prop_assert_eq!(written, octets);
            }
        }
    }
}
