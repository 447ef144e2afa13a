//! The Encrypted payload (RFC 7296 section 3.14; with an AEAD, RFC 5282 section 3) and the
//! Encrypted Fragment payload (RFC 7383 section 2.5).
//!
//! ```text
//!  IKE header | (clear payloads) | generic header of SK | IV | ciphertext | ICV
//!  '----------------- associated data ---------------------------'
//!  ciphertext = content | padding | pad length (1)
//!
//!  ... | generic header of SKF | Fragment Number (2) | Total Fragments (2) | IV | ciphertext | ICV
//!  '----------------- associated data --------------------------------'
//! ```
//!
//! The cipher's [`Frame`] defines the lengths of IV and ICV, and the block length of the
//! ciphertext. SK or SKF is the last payload; the type field of its generic header names the first
//! payload inside. Only SKID_RESUME has clear payloads before it; in other messages they are
//! ignored. The [`Content`] of SK is a payload chain; that of SKF is a piece of one, cut
//! anywhere. This module defines the layout, and the caller supplies the cipher.

use super::message::{Generic, MAX_PAYLOADS, encode_chain, first_type, read_chain};
use super::{HEADER_LEN, Header, Message, Payload, PayloadType};
use crate::codec::{LengthPrefixed, Malformed, Reader};
use zeroize::{Zeroize, Zeroizing};

/// Lengths that a cipher adds to a plaintext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Octets of the IV.
    pub iv_len: usize,
    /// Block length: the ciphertext is a multiple of it.
    pub block_len: usize,
    /// Octets of the ICV.
    pub icv_len: usize,
}

impl Frame {
    /// Frame of the AEADs. A stream of octets needs no padding (RFC 5282 sections 3 and 4).
    pub const AEAD: Self = Self {
        iv_len: 8,
        block_len: 1,
        icv_len: 16,
    };
}

/// Fewest octets of IV and ICV: the AEADs add the fewest. An empty ciphertext is refused after it
/// was opened, because it lacks the length of its padding.
const SHORTEST: usize = Frame::AEAD.iv_len + Frame::AEAD.icv_len;

/// Octets before the IV.
const BEFORE: usize = HEADER_LEN + Generic::HEADER_LEN;

/// Octets of a fragment's two numbers, which precede the IV.
const NUMBERS_LEN: usize = 4;

/// Offset of the first payload's type in the header.
const NEXT_PAYLOAD: usize = 16;

/// Position of a fragment in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Number of the fragment, from 1.
    pub number: u16,
    /// Number of fragments.
    pub total: u16,
}

/// Plaintext of an Encrypted payload, or of a fragment of one. Wiped when dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Type of the first payload; `NONE` in all fragments but the first.
    pub first: PayloadType,
    /// The payload chain, or a piece of it.
    pub octets: Zeroizing<Vec<u8>>,
}

/// An encrypted message or fragment. Its content is not authenticated yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The header as received.
    pub header: Header,
    /// Number and total, if it is a fragment.
    pub fragment: Option<Fragment>,
    aad: &'a [u8],
    /// Offset in `aad` of the type of the Encrypted payload.
    kind_at: usize,
    first: PayloadType,
    body: &'a [u8],
}

/// The reason why an encrypted message could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened<E> {
    /// The cipher refused it: forged, damaged, or encrypted with other keys.
    #[error("{0}")]
    Refused(E),
    /// The length does not fit the cipher's frame, so no holder of these keys encrypted it.
    #[error("the encrypted data is too short, or not a whole number of blocks")]
    Unframed,
    /// The peer itself encrypted content that cannot be parsed.
    #[error("{0}")]
    Malformed(Malformed),
}

impl<'a> Sealed<'a> {
    /// Finds the Encrypted payload in a message whose length was checked. It authenticates the
    /// payloads before it, which [`Self::clear`] reads.
    pub(super) fn find(
        header: Header,
        octets: &'a [u8],
        first: PayloadType,
    ) -> Result<Option<Self>, Malformed> {
        let mut reader = Reader::new("the message", octets);
        reader.take(HEADER_LEN)?;
        let mut kind = first;
        let mut kind_at = NEXT_PAYLOAD;
        for _ in 0..=MAX_PAYLOADS {
            if kind == PayloadType::NONE {
                return Ok(None);
            }
            let start = octets.len() - reader.left();
            let aad_len = start + Generic::HEADER_LEN;
            let generic = Generic::read(&mut reader)?;
            let numbers_len = match kind {
                PayloadType::SK => 0,
                PayloadType::SKF => NUMBERS_LEN,
                _ => {
                    (kind, kind_at) = (generic.next, start);
                    continue;
                }
            };
            reader.finish()?;
            let (numbers, body) = generic.body.split_at_checked(numbers_len).ok_or(SHORT)?;
            if body.len() < SHORTEST {
                return Err(SHORT);
            }
            return Ok(Some(Self {
                header,
                fragment: Fragment::read(numbers)?,
                aad: &octets[..aad_len + numbers_len],
                kind_at,
                first: generic.next,
                body,
            }));
        }
        Err(Malformed::TooMany("the payload chain"))
    }

    /// Returns the clear payloads before the Encrypted one. They are as authentic as the content
    /// once that is open.
    pub fn clear(&self) -> Result<Message, Malformed> {
        let mut reader = Reader::new("the clear payloads", self.aad);
        let (header, mut kind, _) = Header::read_with_chain(&mut reader)?;
        let mut payloads = Vec::new();
        while !matches!(kind, PayloadType::SK | PayloadType::SKF) {
            let generic = Generic::read(&mut reader)?;
            payloads.push(generic.payload(kind, header.exchange)?);
            kind = generic.next;
        }
        Ok(Message { header, payloads })
    }

    /// Opens a whole message with `open(iv, associated data, text in place, icv)`. The plaintext is
    /// wiped after its payloads have been read.
    pub fn open_with<E>(
        &self,
        frame: Frame,
        open: impl FnOnce(&[u8], &[u8], &mut [u8], &[u8]) -> Result<(), E>,
    ) -> Result<Message, NotOpened<E>> {
        let content = self.content_with(frame, open)?;
        content.message(self.header).map_err(NotOpened::Malformed)
    }

    /// Returns the octets before the IV as if the message had not been fragmented. The first
    /// fragment differs from a message by its payload type and its numbers. The length fields stay
    /// as received.
    pub fn before_iv(&self) -> Vec<u8> {
        let numbers_len = self.fragment.map_or(0, |_| NUMBERS_LEN);
        let mut before = self.aad[..self.aad.len() - numbers_len].to_vec();
        before[self.kind_at] = PayloadType::SK.0;
        before
    }

    /// Opens a message or a fragment in the same way. Only the padding is parsed.
    pub fn content_with<E>(
        &self,
        frame: Frame,
        open: impl FnOnce(&[u8], &[u8], &mut [u8], &[u8]) -> Result<(), E>,
    ) -> Result<Content, NotOpened<E>> {
        let (iv, text, icv) = frame.split(self.body).ok_or(NotOpened::Unframed)?;
        let mut octets = Zeroizing::new(text.to_vec());
        open(iv, self.aad, &mut octets, icv).map_err(NotOpened::Refused)?;
        let length = without_padding(&octets).map_err(NotOpened::Malformed)?;
        octets.truncate(length);
        let first = self.first;
        Ok(Content { first, octets })
    }
}

impl Fragment {
    /// Reads the two numbers, or returns `None` if there are none. A number of zero or beyond the
    /// total "MUST be silently discarded" (RFC 7383 section 2.6).
    fn read(numbers: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut reader = Reader::new("the fragment's numbers", numbers);
        if reader.is_empty() {
            return Ok(None);
        }
        let (number, total) = (reader.u16()?, reader.u16()?);
        match number != 0 && number <= total {
            true => Ok(Some(Self { number, total })),
            false => Err(Malformed::Value("the fragment's numbers")),
        }
    }
}

impl Frame {
    /// Splits a body into IV, ciphertext and ICV.
    fn split(self, body: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
        let (iv, rest) = body.split_at_checked(self.iv_len)?;
        let (text, icv) = rest.split_at_checked(rest.len().checked_sub(self.icv_len)?)?;
        (text.len().is_multiple_of(self.block_len)).then_some((iv, text, icv))
    }

    /// Returns the octets of padding between `len` octets and the length of the padding.
    const fn padding(self, len: usize) -> usize {
        (len + 1).next_multiple_of(self.block_len) - (len + 1)
    }

    /// Returns the octets around a text: `before` octets of headers, IV and ICV.
    const fn around(self, before: usize) -> usize {
        before + self.iv_len + self.icv_len
    }
}

impl Message {
    /// Returns the wire form, with all payloads encrypted by
    /// `seal(associated data, text in place, ICV)`.
    pub fn seal_with(
        &self,
        frame: Frame,
        iv: &[u8],
        seal: impl FnOnce(&[u8], &mut [u8], &mut [u8]),
    ) -> Vec<u8> {
        Content::new(&self.payloads).seal_with(&self.header, &[], None, frame, iv, seal)
    }
}

impl Content {
    /// Returns the content of a message with these payloads.
    pub fn new(payloads: &[Payload]) -> Self {
        // The buffer is large enough never to move: a move would leave keys in freed memory. Only
        // the written part is wiped, because wiping all of it would take longer than the rest of
        // this function.
        let mut written = Vec::with_capacity(super::MAX_MESSAGE);
        encode_chain(payloads, PayloadType::NONE, &mut written);
        let octets = Zeroizing::new(written.clone());
        written.as_mut_slice().zeroize();
        Self {
            first: first_type(payloads),
            octets,
        }
    }

    /// Returns the message with this content.
    pub fn message(&self, header: Header) -> Result<Message, Malformed> {
        let mut reader = Reader::new("the payload chain", &self.octets);
        let payloads = read_chain(self.first, header.exchange, &mut reader)?;
        Ok(Message { header, payloads })
    }

    /// Returns the octets of an IKE_INTERMEDIATE message that authentication covers: all except IV,
    /// padding and ICV, with adjusted lengths (RFC 9242 section 3.3.2). `before` holds the octets
    /// before the IV.
    pub fn bare(&self, mut before: Vec<u8>) -> Zeroizing<Vec<u8>> {
        let length = Generic::HEADER_LEN + self.octets.len();
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        let at = before.len() - size_of::<u16>();
        before[at..].copy_from_slice(&length.to_be_bytes());
        // The buffer is large enough never to move, as above.
        let mut bare = Zeroizing::new(Vec::with_capacity(before.len() + self.octets.len()));
        bare.extend_from_slice(&before);
        bare.extend_from_slice(&self.octets);
        Header::set_length(&mut bare);
        bare
    }

    /// Returns the octets before the IV of a message with this content.
    pub fn before_iv(&self, header: &Header) -> Vec<u8> {
        let mut before = Vec::with_capacity(BEFORE);
        header.encode(PayloadType::SK, &mut before);
        before.extend_from_slice(&[self.first.0, 0, 0, 0]);
        before
    }

    /// Returns the length of the message with this content, in octets.
    pub fn sealed_len(&self, frame: Frame) -> usize {
        let length = self.octets.len();
        frame.around(BEFORE) + length + frame.padding(length) + 1
    }

    /// Splits the content into fragments whose messages have at most `room` octets. "The content is
    /// treated as a binary blob and is split regardless of the boundaries of inner payloads". Only
    /// the first fragment names the type of the first payload (RFC 7383 section 2.5).
    pub fn pieces(&self, frame: Frame, room: usize) -> Vec<(Fragment, Self)> {
        let text = room.saturating_sub(frame.around(BEFORE + NUMBERS_LEN));
        let blocks = text / frame.block_len * frame.block_len;
        let pieces = self.octets.chunks(blocks.saturating_sub(1).max(1));
        let total = u16::try_from(pieces.len()).unwrap_or(u16::MAX);
        let named = (1..=total).zip(pieces).map(|(number, octets)| {
            let piece = Self {
                first: match number {
                    1 => self.first,
                    _ => PayloadType::NONE,
                },
                octets: Zeroizing::new(octets.to_vec()),
            };
            (Fragment { number, total }, piece)
        });
        named.collect()
    }

    /// Returns the wire form of a message behind clear payloads, or of a fragment of one.
    pub fn seal_with(
        &self,
        header: &Header,
        clear: &[Payload],
        fragment: Option<Fragment>,
        frame: Frame,
        iv: &[u8],
        seal: impl FnOnce(&[u8], &mut [u8], &mut [u8]),
    ) -> Vec<u8> {
        // The buffer is large enough never to move, as above.
        let mut before = Vec::with_capacity(BEFORE);
        let kind = fragment.map_or(PayloadType::SK, |_| PayloadType::SKF);
        header.encode(clear.first().map_or(kind, Payload::kind), &mut before);
        encode_chain(clear, kind, &mut before);
        let before_len = before.len() + Generic::HEADER_LEN;
        let mut out = Vec::with_capacity(before_len + self.sealed_len(frame) + NUMBERS_LEN);
        out.append(&mut before);
        let numbers = fragment.map(|at| [at.number.to_be_bytes(), at.total.to_be_bytes()].concat());
        let numbers = numbers.unwrap_or_default();
        {
            let mut body = LengthPrefixed::after(&[self.first.0, 0], &mut out);
            body.extend_from_slice(&numbers);
            body.extend_from_slice(iv);
            body.extend_from_slice(&self.octets);
            let padding = frame.padding(self.octets.len());
            body.extend(std::iter::repeat_n(0, padding));
            body.push(padding as u8);
            body.extend(std::iter::repeat_n(0, frame.icv_len));
        }
        Header::set_length(&mut out);
        let icv_at = out.len() - frame.icv_len;
        let (rest, icv) = out.split_at_mut(icv_at);
        let (aad, body) = rest.split_at_mut(before_len + numbers.len());
        seal(aad, &mut body[frame.iv_len..], icv);
        out
    }
}

const SHORT: Malformed = Malformed::Truncated("the Encrypted payload");

/// Returns the length of a plaintext without its padding.
fn without_padding(text: &[u8]) -> Result<usize, Malformed> {
    let (&padding, rest) = text.split_last().ok_or(SHORT)?;
    rest.len()
        .checked_sub(padding.into())
        .ok_or(Malformed::Length("the padding"))
}
