//! Plain ESP in tunnel mode (RFC 4303): with an AEAD (RFC 4106, RFC 7634, RFC 8750), or with
//! AES-CBC and an HMAC (RFC 3602, RFC 4868), or without encryption (`unencrypted.rs`).
//!
//! ```text
//! SPI | Seq | IV(8) | datagram, padding 1 2 3 …, pad length, next header | ICV(16)      an AEAD
//! SPI | Seq | IV(16) | the same, a multiple of 16 octets | ICV(16, 24 or 32)            AES-CBC
//! ```
//!
//! The IV of an AEAD is the sequence number, which is sent unless the IV is implicit. The IV of
//! AES-CBC is the encrypted sequence number. The data that the ICV covers begins with SPI and
//! number. With extended numbers an AEAD covers all 64 bits there (RFC 4106 section 5). An HMAC
//! covers the lower half there, and the upper half at the end (RFC 4303 section 2.2.1). Nothing is
//! decrypted before its ICV is verified, so a forged packet reveals nothing about padding or
//! lengths.

use crate::drop::DropReason;
use crate::foreign::Foreign;
use crate::key::{Key, Unusable, hmac};
use crate::packet::Packet;
use crate::unencrypted::{Gmac, Null};
use crypto::{BLOCK_LEN, BadIcv, CbcHmac, Secret};
use model::{EspSuite, Sha2, Spi, Suite};
use std::ops::Range;
use wire::esp::{HEADER_LEN, Header};

pub(crate) const IV_LEN: usize = 8;
/// Octets of SPI and extended number.
const EXTENDED_LEN: usize = 12;
/// The place of the upper half among these.
const UPPER: Range<usize> = 4..8;
/// Octets of pad length and next header.
const TRAILER_LEN: usize = 2;
/// Least alignment of the encrypted octets (RFC 4303 section 2.4).
const ALIGNMENT: usize = 4;

/// One direction of a plain SA.
pub(crate) struct Plain {
    cipher: Cipher,
    icv_len: usize,
    /// True if sequence numbers are extended.
    esn: bool,
}

enum Cipher {
    Aead {
        key: Key,
        implicit_iv: bool,
    },
    /// Boxed because it is large, with tables for both directions, and rare.
    Cbc(Box<CbcHmac>),
    Null(Box<Null>),
    Gmac(Gmac),
    Foreign(Box<dyn Foreign>),
}

impl Plain {
    pub fn new(suite: EspSuite, implicit_iv: bool, key: &Secret) -> Result<Self, Unusable> {
        Ok(Self {
            cipher: Cipher::new(suite, implicit_iv, key)?,
            icv_len: suite.icv_len(),
            esn: false,
        })
    }

    /// Prefetches the key of an AEAD or of GMAC.
    pub fn prefetch(&self) {
        match &self.cipher {
            Cipher::Aead { key, .. } => key.prefetch(),
            Cipher::Gmac(gmac) => gmac.prefetch(),
            Cipher::Cbc(_) | Cipher::Null(_) | Cipher::Foreign(_) => {}
        }
    }

    /// Sets whether sequence numbers are extended.
    pub fn extended(self, esn: bool) -> Self {
        Self { esn, ..self }
    }

    /// Creates a plain SA direction with a foreign cipher, which uses 32-bit numbers.
    pub fn foreign(cipher: Box<dyn Foreign>) -> Self {
        Self {
            icv_len: cipher.frame().icv_len.into(),
            cipher: Cipher::Foreign(cipher),
            esn: false,
        }
    }

    /// Returns true if sequence numbers are extended.
    pub const fn is_extended(&self) -> bool {
        self.esn
    }

    /// Seals a datagram.
    pub fn seal(
        &self,
        packet: &mut Packet,
        spi: Spi,
        number: u64,
        next_header: u8,
    ) -> Result<(), DropReason> {
        let unpadded = packet.len() + TRAILER_LEN;
        let pad_len = unpadded.next_multiple_of(self.cipher.alignment()) - unpadded;
        packet.grow(self.text_at(), pad_len + TRAILER_LEN + self.icv_len)?;
        let octets = packet.octets_mut();
        octets[..HEADER_LEN].copy_from_slice(&Header::new(spi, number).octets());
        let trailer = self.text_at() + unpadded - TRAILER_LEN..octets.len() - self.icv_len;
        let trailer = &mut octets[trailer];
        for (octet, number) in trailer.iter_mut().zip(1..=pad_len as u8) {
            *octet = number;
        }
        trailer[pad_len..].copy_from_slice(&[pad_len as u8, next_header]);
        let aad = Aad::new(spi, number, self.esn);
        self.cipher.seal(number, &aad, octets, self.icv_len);
        Ok(())
    }

    /// Returns the length of the datagram that fills the packet of one of `size` octets.
    pub fn filling(&self, size: usize) -> usize {
        (size + TRAILER_LEN).next_multiple_of(self.cipher.alignment()) - TRAILER_LEN
    }

    /// Returns the longest datagram whose packet has at most `packet` octets.
    pub fn longest(&self, packet: usize) -> usize {
        let text = packet.saturating_sub(self.text_at() + self.icv_len);
        let alignment = self.cipher.alignment();
        (text / alignment * alignment).saturating_sub(TRAILER_LEN)
    }

    /// Authenticates and decrypts in place; returns the place of the text.
    pub fn verify(
        &self,
        packet: &mut [u8],
        spi: Spi,
        number: u64,
    ) -> Result<Range<usize>, DropReason> {
        let text_at = self.text_at();
        if packet.len() < text_at + TRAILER_LEN + self.icv_len {
            return Err(DropReason::Runt);
        }
        let aad = Aad::new(spi, number, self.esn);
        self.cipher
            .open(number, &aad, packet, self.icv_len)
            .map_err(|BadIcv| DropReason::BadIcv)?;
        Ok(text_at..packet.len() - self.icv_len)
    }

    fn text_at(&self) -> usize {
        HEADER_LEN + self.cipher.iv_len()
    }
}

impl Cipher {
    fn new(suite: EspSuite, implicit_iv: bool, key: &Secret) -> Result<Self, Unusable> {
        Ok(match suite {
            EspSuite::Encrypted(suite) => match suite.hash() {
                None => Self::Aead {
                    key: Key::new(suite, key)?,
                    implicit_iv,
                },
                Some(hash) => Self::Cbc(Box::new(cbc(suite, hash, key)?)),
            },
            EspSuite::Null(hash) => Self::Null(Box::new(Null::new(hash, key)?)),
            EspSuite::Aes128Gmac => Self::Gmac(Gmac::new(Suite::Aes128Gcm16, key)?),
            EspSuite::Aes256Gmac => Self::Gmac(Gmac::new(Suite::Aes256Gcm16, key)?),
        })
    }

    fn iv_len(&self) -> usize {
        match self {
            Self::Aead {
                implicit_iv: true, ..
            } => 0,
            Self::Aead { .. } | Self::Gmac(_) => IV_LEN,
            Self::Cbc(_) => BLOCK_LEN,
            Self::Null(_) => 0,
            Self::Foreign(foreign) => foreign.frame().iv_len.into(),
        }
    }

    fn alignment(&self) -> usize {
        match self {
            Self::Aead { .. } | Self::Null(_) | Self::Gmac(_) => ALIGNMENT,
            Self::Cbc(_) => BLOCK_LEN,
            Self::Foreign(foreign) => ALIGNMENT.max(foreign.frame().block_len.into()),
        }
    }

    /// Seals a whole packet, which has the header and the text.
    fn seal(&self, number: u64, aad: &Aad, octets: &mut [u8], icv_len: usize) {
        let iv_len = self.iv_len();
        match self {
            Self::Aead { key, .. } => {
                let Parts { iv, text, icv } = Parts::of(octets, iv_len, icv_len);
                iv.copy_from_slice(&number.to_be_bytes()[..iv_len]);
                icv.copy_from_slice(&key.seal(number, aad.of_aead(), text));
            }
            Self::Cbc(cbc) => {
                let Parts { iv, text, icv } = Parts::of(octets, iv_len, icv_len);
                let fresh = cbc.iv(number);
                iv.copy_from_slice(&fresh);
                cbc.seal_before(&fresh, aad.of_hmac(), text, icv);
            }
            Self::Null(null) => {
                let (covered, icv) = octets.split_at_mut(octets.len() - icv_len);
                null.sign(covered, aad.upper(), icv);
            }
            Self::Gmac(gmac) => gmac.seal(number, aad.upper(), octets),
            Self::Foreign(foreign) => {
                let Parts { iv, text, icv } = Parts::of(octets, iv_len, icv_len);
                foreign.seal(number as u32, aad.of_aead(), iv, text, icv);
            }
        }
    }

    /// Authenticates a whole packet, and decrypts its text in place.
    fn open(
        &self,
        number: u64,
        aad: &Aad,
        octets: &mut [u8],
        icv_len: usize,
    ) -> Result<(), BadIcv> {
        let iv_len = self.iv_len();
        match self {
            Self::Aead { key, .. } => {
                let Parts { iv, text, icv } = Parts::of(octets, iv_len, icv_len);
                let explicit = (&*iv).try_into().map(u64::from_be_bytes);
                key.open(explicit.unwrap_or(number), aad.of_aead(), text, icv)
            }
            Self::Cbc(cbc) => {
                let Parts { iv, text, icv } = Parts::of(octets, iv_len, icv_len);
                let iv = (&*iv).try_into().map_err(|_| BadIcv)?;
                cbc.open_before(iv, aad.of_hmac(), text, icv)
            }
            Self::Null(null) => {
                let (covered, icv) = octets.split_at(octets.len() - icv_len);
                null.verify(covered, aad.upper(), icv)
            }
            Self::Gmac(gmac) => gmac.open(aad.upper(), octets),
            Self::Foreign(foreign) => {
                let Parts { iv, text, icv } = Parts::of(octets, iv_len, icv_len);
                foreign.open(number as u32, aad.of_aead(), iv, text, icv)
            }
        }
    }
}

/// The parts of a packet behind its header.
struct Parts<'p> {
    iv: &'p mut [u8],
    text: &'p mut [u8],
    icv: &'p mut [u8],
}

impl<'p> Parts<'p> {
    fn of(octets: &'p mut [u8], iv_len: usize, icv_len: usize) -> Self {
        let (iv, rest) = octets[HEADER_LEN..].split_at_mut(iv_len);
        let (text, icv) = rest.split_at_mut(rest.len() - icv_len);
        Self { iv, text, icv }
    }
}

/// SPI and number in the form that ICVs cover.
struct Aad {
    /// SPI and lower half, as on the wire.
    header: [u8; HEADER_LEN],
    /// SPI, upper and lower half, if numbers are extended.
    extended: Option<[u8; EXTENDED_LEN]>,
}

impl Aad {
    fn new(spi: Spi, number: u64, esn: bool) -> Self {
        let extended = || {
            let mut octets = [0; EXTENDED_LEN];
            octets[..UPPER.start].copy_from_slice(&spi.0.to_be_bytes());
            octets[UPPER.start..].copy_from_slice(&number.to_be_bytes());
            octets
        };
        Self {
            header: Header::new(spi, number).octets(),
            extended: esn.then(extended),
        }
    }

    /// RFC 4106 section 5, RFC 7634 section 2.1.
    fn of_aead(&self) -> &[u8] {
        match &self.extended {
            Some(octets) => octets,
            None => &self.header,
        }
    }

    /// Returns the data before IV and text, and the data behind them (RFC 4303 section 2.2.1).
    fn of_hmac(&self) -> (&[u8], &[u8]) {
        (&self.header, self.upper())
    }

    /// Returns the upper half of an extended number, or nothing.
    fn upper(&self) -> &[u8] {
        let upper = self.extended.as_ref().map(|octets| &octets[UPPER]);
        upper.unwrap_or_default()
    }
}

/// Expands the cipher's key, followed by the HMAC's (RFC 7296 section 2.17).
fn cbc(suite: Suite, hash: Sha2, key: &Secret) -> Result<CbcHmac, Unusable> {
    let keys = key.expose().split_at_checked(suite.key_len());
    let (key, mac_key) = keys.ok_or(Unusable::KeyLength)?;
    Ok(CbcHmac::new(key, hmac(hash, mac_key)?)?)
}

/// Reduces an authentic packet to the content of its text, and returns the next header. The padding
/// must be as RFC 4303 section 2.4 prescribes.
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

    // Weakness: 73
    #[test]
    fn a_pad_length_beyond_the_text_is_bad_padding() {
        assert_eq!(unwrapped(&[1, 2, 3, 4]), Err(DropReason::BadPadding));
        assert_eq!(unwrapped(&[255, 4]), Err(DropReason::BadPadding));
    }

    /// Draft-mcgrew-gcm-test-01; SPI, IV and key are the draft's.
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
        opens(Suite::Aes128Gcm16.into(), key, &mut packet, &text);
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
        opens(Suite::ChaCha20Poly1305.into(), key, &mut packet, &text);
    }

    /// The GMAC packet of draft-mcgrew-gcm-test-01, and a change of each octet that it covers, the
    /// IV among them.
    // Weakness: 72
    #[test]
    fn the_known_answer_of_gmac_in_esp_opens_as_it_came_and_not_changed() {
        let key = hex("4c80cdefbb5d10da906ac73c3613a63422433c64");
        let text = hex(concat!(
            "45000030da3a00008001df3bc0a80005c0a800010800c6cd02000700616263646566676869",
            "6a6b6c6d6e6f707172737401020201",
        ));
        let header = hex("00004321000000070000000000000000");
        let icv = hex("f2a9a836e155106aa8dcd618e4099aaa");
        let packet = [header, text.clone(), icv].concat();
        opens(
            EspSuite::Aes128Gmac,
            key.clone(),
            &mut packet.clone(),
            &text,
        );
        let plain = Plain::new(EspSuite::Aes128Gmac, false, &Secret::new(key)).unwrap();
        for at in 8..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 0x10;
            let refused = plain.verify(&mut changed, Spi(0x4321), 7);
            assert_eq!(refused, Err(DropReason::BadIcv), "octet {at}");
        }
    }

    /// RFC 2410 section 3: "nothing" is done to the plaintext.
    #[test]
    fn without_encryption_the_datagram_is_in_the_packet_as_it_was() {
        let datagram: Vec<u8> = (0..50).collect();
        for suite in EspSuite::all() {
            let mut packet = Packet::from_slice(&datagram);
            plain(suite, false).seal(&mut packet, SPI, 1, 4).unwrap();
            let mut places = packet.octets().windows(datagram.len());
            let is_readable = places.any(|place| place == datagram);
            assert_eq!(is_readable, !suite.encrypts(), "{suite}");
        }
    }

    /// Cases 7 and 8, which use tunnel mode; Python computed the HMAC-SHA-256-128.
    #[test]
    fn the_packets_of_rfc_3602_section_4_open() {
        let key = hex(concat!(
            "0123456789abcdef0123456789abcdef",
            "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"
        ));
        let cases = [
            (
                concat!(
                    "45000054090400004001f988c0a87b03c0a87bc808009f76a90a0100b49c083d",
                    "02a2040008090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
                    "2425262728292a2b2c2d2e2f3031323334353637",
                ),
                "0102030405060708090a0a04",
                concat!(
                    "0000876500000002f4e765244f6407adf13dc1380f673f37",
                    "773b5241a4c449225e4f3ce5ed611b0c237ca96cf74a93013c1b0ea1a0cf70f8",
                    "e4ecaec78ac53aad7a0f022b859243c647752e94a859352b8a4d4d2decd136e5",
                    "c177f132ad3fbfb2201ac9904c74ee0a109e0ca1e4dfe9d5a100b842f1c22f0d",
                    "b53b4ab25be062bf1159d4e7b247dde6",
                ),
            ),
            (
                concat!(
                    "45000044090c00004001f990c0a87b03c0a87bc80800d63caa0a0200c69c083d",
                    "a3de0300ffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
                    "ffffffff",
                ),
                "0102030405060708090a0a04",
                concat!(
                    "000087650000000585d47224b5f3dd5d2101d4ea8dffab22",
                    "15b92683819596a8047232cc00f7048fe45318e11f8a0f62ede3c3fc61203bb5",
                    "0f980a08c9843fd3a1b06d5c07ff9639b7eb7dfb3512e5de435e7207ed971ef3",
                    "d2726d9b5ef6affc6d17a0decbb13892",
                    "314846b808cc0b45048f6900828e649c",
                ),
            ),
        ];
        for (datagram, trailer, packet) in cases {
            let text = hex(&format!("{datagram}{trailer}"));
            let suite = Suite::Aes128Cbc(Sha2::Sha256).into();
            opens(suite, key.clone(), &mut hex(packet), &text);
        }
    }

    /// For every suite and every length up to two blocks: a sealed datagram opens unchanged, and
    /// truncated or damaged packets always give the same errors.
    #[test]
    fn a_forged_packet_tells_nothing_about_its_padding() {
        for (suite, esn) in EspSuite::all().flat_map(|s| [(s, false), (s, true)]) {
            let plain = plain(suite, false).extended(esn);
            for len in 0..33 {
                let number = u64::from(esn) << 32 | (len + 1);
                let datagram = vec![9; len as usize];
                let mut packet = Packet::from_slice(&datagram);
                plain.seal(&mut packet, SPI, number, 4).unwrap();
                let sealed = packet.octets().to_vec();
                let place = plain.verify(packet.octets_mut(), SPI, number).unwrap();
                assert_eq!(unwrap(&mut packet, place), Ok(4));
                assert_eq!(packet.octets(), datagram);
                let shortest = plain.text_at() + TRAILER_LEN + plain.icv_len;
                for at in 8..sealed.len() {
                    let expected = match at < shortest {
                        true => DropReason::Runt,
                        false => DropReason::BadIcv,
                    };
                    let cut = plain.verify(&mut sealed[..at].to_vec(), SPI, number);
                    assert_eq!(cut, Err(expected), "{suite}, {at} octets");
                    let mut damaged = sealed.clone();
                    damaged[at] ^= 1;
                    let damaged = plain.verify(&mut damaged, SPI, number);
                    assert_eq!(damaged, Err(DropReason::BadIcv), "{suite}, octet {at}");
                }
            }
        }
    }

    /// RFC 4303 section 2.2.1. Without extended numbers the upper half does not exist.
    #[test]
    fn the_upper_half_of_an_extended_number_is_covered_and_not_sent() {
        for suite in EspSuite::all() {
            for implicit_iv in [false, suite.may_omit_iv()] {
                let seal = |plain: Plain, number| {
                    let mut packet = Packet::from_slice(&[9; 20]);
                    plain.seal(&mut packet, SPI, number, 4).unwrap();
                    packet.octets().to_vec()
                };
                let extended = || plain(suite, implicit_iv).extended(true);
                let without = seal(plain(suite, implicit_iv), 7);
                let sealed = [7, 1 << 32 | 7, 2 << 32 | 7].map(|number| seal(extended(), number));
                for (packet, upper) in sealed.iter().zip(0..) {
                    assert_eq!((packet.len(), &packet[..8]), (without.len(), &without[..8]));
                    let opens = |plain: Plain, number| {
                        plain.verify(&mut packet.clone(), SPI, number).is_ok()
                    };
                    for other in 0..4 {
                        let opened = opens(extended(), other << 32 | 7);
                        assert_eq!(opened, other == upper, "{suite}, {other}");
                    }
                    assert!(!opens(plain(suite, implicit_iv), 7), "{suite}");
                }
                assert!(extended().verify(&mut without.clone(), SPI, 7).is_err());
            }
        }
    }

    #[test]
    fn keys_of_another_length_than_the_suites_are_refused() {
        for suite in EspSuite::all() {
            let exact = suite.keymat_len();
            for len in [0, exact - 1, exact + 1] {
                let key = Secret::new(vec![1; len]);
                let refused = Plain::new(suite, false, &key).err();
                assert_eq!(refused, Some(Unusable::KeyLength), "{suite}, {len} octets");
            }
        }
    }

    const SPI: Spi = Spi(0x1000);

    fn plain(suite: EspSuite, implicit_iv: bool) -> Plain {
        let key = (0..suite.keymat_len()).map(|i| i as u8).collect();
        Plain::new(suite, implicit_iv, &Secret::new(key)).unwrap()
    }

    fn opens(suite: EspSuite, key: Vec<u8>, packet: &mut [u8], text: &[u8]) {
        let plain = Plain::new(suite, false, &Secret::new(key)).unwrap();
        let header = Header::parse(packet).unwrap();
        let place = plain.verify(packet, header.spi, header.seq.into()).unwrap();
        assert_eq!(&packet[place], text);
    }

    fn hex(text: &str) -> Vec<u8> {
        let octet = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(octet).collect()
    }
}
