//! Plain ESP in tunnel mode with an AEAD (RFC 4303, RFC 4106, RFC 7634, RFC 8750).
//!
//! ```text
//! SPI | Seq | IV(8) | datagram, padding 1 2 3 …, pad length, next header | ICV(16)
//! ```
//!
//! The IV is the sequence number, on the wire or, if it is implicit, not.

use crate::drop::DropReason;
use crate::key::{Key, Unusable};
use crate::packet::Packet;
use crypto::Secret;
use model::Suite;
use std::ops::Range;
use wire::esp::{HEADER_LEN, Header, ICV_LEN};

const IV_LEN: usize = 8;
/// Pad length and next header.
const TRAILER_LEN: usize = 2;
/// What the encrypted octets are padded to (RFC 4303 section 2.4).
const ALIGNMENT: usize = 4;

/// One direction of a plain SA.
pub(crate) struct Plain {
    key: Key,
    implicit_iv: bool,
}

impl Plain {
    pub fn new(suite: Suite, implicit_iv: bool, key: &Secret) -> Result<Self, Unusable> {
        Ok(Self {
            key: Key::new(suite, key)?,
            implicit_iv,
        })
    }

    /// Turns a datagram into a packet.
    pub fn seal(
        &self,
        packet: &mut Packet,
        header: Header,
        next_header: u8,
    ) -> Result<(), DropReason> {
        let datagram_len = packet.len();
        let pad_len =
            (datagram_len + TRAILER_LEN).next_multiple_of(ALIGNMENT) - (datagram_len + TRAILER_LEN);
        packet.grow(self.text_at(), pad_len + TRAILER_LEN + ICV_LEN)?;
        let (front, rest) = packet.octets_mut().split_at_mut(self.text_at());
        let iv = u64::from(header.seq);
        front[..HEADER_LEN].copy_from_slice(&header.octets());
        front[HEADER_LEN..].copy_from_slice(&iv.to_be_bytes()[..self.iv_len()]);
        let (text, icv) = rest.split_at_mut(rest.len() - ICV_LEN);
        let trailer = &mut text[datagram_len..];
        trailer[..pad_len].copy_from_slice(&[1, 2, 3][..pad_len]);
        trailer[pad_len..].copy_from_slice(&[pad_len as u8, next_header]);
        icv.copy_from_slice(&self.key.seal(iv, &header.octets(), text));
        Ok(())
    }

    /// Authenticates and decrypts in place; says where the text is.
    pub fn verify(&self, packet: &mut [u8], header: Header) -> Result<Range<usize>, DropReason> {
        let text_at = self.text_at();
        if packet.len() < text_at + TRAILER_LEN + ICV_LEN {
            return Err(DropReason::Runt);
        }
        let (front, rest) = packet.split_at_mut(text_at);
        let iv = match front[HEADER_LEN..].first_chunk() {
            Some(explicit) => u64::from_be_bytes(*explicit),
            None => u64::from(header.seq),
        };
        let (text, icv) = rest.split_at_mut(rest.len() - ICV_LEN);
        self.key
            .open(iv, &header.octets(), text, icv)
            .map_err(|_| DropReason::BadIcv)?;
        Ok(text_at..text_at + text.len())
    }

    fn text_at(&self) -> usize {
        HEADER_LEN + self.iv_len()
    }

    fn iv_len(&self) -> usize {
        if self.implicit_iv { 0 } else { IV_LEN }
    }
}

/// Cuts an authentic packet down to what its text holds, and says what that is. The padding has to
/// be the one RFC 4303 section 2.4 prescribes.
pub(crate) fn unwrap(packet: &mut Packet, text: Range<usize>) -> Result<u8, DropReason> {
    let octets = &packet.octets()[text.clone()];
    let [padded @ .., pad_len, next_header] = octets else {
        return Err(DropReason::BadPadding);
    };
    let len = padded
        .len()
        .checked_sub(usize::from(*pad_len))
        .ok_or(DropReason::BadPadding)?;
    if !padded[len..].iter().copied().eq(1..=*pad_len) {
        return Err(DropReason::BadPadding);
    }
    let next_header = *next_header;
    packet.cut(text.start, len);
    Ok(next_header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrapped(text: &[u8]) -> Result<(Vec<u8>, u8), DropReason> {
        let mut packet = Packet::from_slice(text);
        let next_header = unwrap(&mut packet, 0..text.len())?;
        Ok((packet.octets().to_vec(), next_header))
    }

    #[test]
    fn padding_counts_up_from_one() {
        assert_eq!(unwrapped(&[9, 8, 1, 2, 2, 4]), Ok((vec![9, 8], 4)));
        assert_eq!(unwrapped(&[0, 41]), Ok((vec![], 41)));
        assert_eq!(unwrapped(&[9, 8, 0, 0, 2, 4]), Err(DropReason::BadPadding));
        assert_eq!(unwrapped(&[9, 8, 2, 1, 2, 4]), Err(DropReason::BadPadding));
    }

    #[test]
    fn a_pad_length_beyond_the_text_is_bad_padding() {
        assert_eq!(unwrapped(&[1, 2, 3, 4]), Err(DropReason::BadPadding));
        assert_eq!(unwrapped(&[255, 4]), Err(DropReason::BadPadding));
    }

    /// Draft-mcgrew-gcm-test-01, a packet whose SPI, IV and key are no others' choice.
    #[test]
    fn the_known_answer_of_gcm_in_esp_opens() {
        let key = hex("feffe9928665731c6d6a8f9467308308cafebabe");
        let text = hex(concat!(
            "4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d0010000010000",
            "00000000037369700963796265726369747902646b00000100010001",
        ));
        let mut packet = hex(concat!(
            "0000a5f80000000afacedbaddecaf888deb22cd9b07c72c16e3a65beeb8df304a5a5897d33ae530f",
            "1ba76d5d114d2a5c3de81827c10e9a4f51330d0eec416642cfbb85a5b47e48a4ec3b9ba95d918bd1",
            "83b70d3aa8bc6ee4c309e9d85a41ad4a",
        ));
        opens(Suite::Aes128Gcm16, key, &mut packet, &text);
    }

    #[test]
    fn the_packet_of_rfc_7634_appendix_a_opens() {
        let key = (0x80..=0xa3).collect();
        let text = hex(concat!(
            "45000054a6f200004001e778c6336405c000020508005b7a3a080000553bec10",
            "0007362708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
            "2425262728292a2b2c2d2e2f303132333435363701020204",
        ));
        let mut packet = hex(concat!(
            "0102030400000005101112131415161724039428b97f417e3c13753a4f05087b",
            "67c352e6a7fab1b982d466ef407ae5c614ee8099d52844eb61aa95dfab4c02f7",
            "2aa71e7c4c4f64c9befe2facc638e8f3cbec163fac469b502773f6fb94e664da",
            "9165b82829f641e076aaa8266b7fb0f7b11b369907e1ad43",
        ));
        opens(Suite::ChaCha20Poly1305, key, &mut packet, &text);
    }

    fn opens(suite: Suite, key: Vec<u8>, packet: &mut [u8], text: &[u8]) {
        let plain = Plain::new(suite, false, &Secret::new(key)).unwrap();
        let header = Header::parse(packet).unwrap();
        let place = plain.verify(packet, header).unwrap();
        assert_eq!(&packet[place], text);
    }

    fn hex(text: &str) -> Vec<u8> {
        let octet = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(octet).collect()
    }
}
