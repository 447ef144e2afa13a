//! The Encrypted payload (RFC 7296 section 3.14; with an AEAD, RFC 5282 section 3), and the fragments
//! of one (RFC 7383 section 2.5).
//!
//! ```text
//!  IKE header | (clear payloads, ignored) | generic header of SK | IV | ciphertext | ICV
//!  '----------------- associated data ---------------------------'
//!  ciphertext = content | padding | pad length (1)
//!
//!  ... | generic header of SKF | Fragment Number (2) | Total Fragments (2) | IV | ciphertext | ICV
//!  '----------------- associated data --------------------------------'
//! ```
//!
//! How long IV and ICV are, and of what the ciphertext is a multiple, is the cipher's [`Frame`].
//! Either is the last payload; the type field of its generic header names the first payload inside.
//! The [`Content`] of SK is a payload chain; that of SKF a piece of one, cut anywhere. The layout is
//! here, the cipher is the caller's.

use super::message::{Generic, MAX_PAYLOADS, encode_chain, first_type, read_chain};
use super::{HEADER_LEN, Header, Message, Payload, PayloadType};
use crate::codec::{LengthPrefixed, Malformed, Reader};
use zeroize::{Zeroize, Zeroizing};

/// What a cipher puts around a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Octets of the IV before it.
    pub iv_len: usize,
    /// Its length is a multiple of so many octets.
    pub block_len: usize,
    /// Octets of the ICV behind it.
    pub icv_len: usize,
}

impl Frame {
    /// That of the AEADs: a stream of octets needs no padding (RFC 5282 sections 3 and 4).
    pub const AEAD: Self = Self {
        iv_len: 8,
        block_len: 1,
        icv_len: 16,
    };
}

/// No cipher puts less around a text, nor is there a text without the length of its padding.
const SHORTEST: usize = Frame::AEAD.iv_len + Frame::AEAD.icv_len;

/// Octets before the IV.
const BEFORE: usize = HEADER_LEN + Generic::HEADER_LEN;

/// Octets of a fragment's two numbers, which come before the IV as well.
const NUMBERS_LEN: usize = 4;

/// Where the header says of what type the first payload is.
const NEXT_PAYLOAD: usize = 16;

/// Which piece of a message a fragment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// From 1.
    pub number: u16,
    /// How many there are.
    pub total: u16,
}

/// What an Encrypted payload has inside, or the piece of it that a fragment has. Wiped when dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The type of the first payload; nothing in fragments but the first.
    pub first: PayloadType,
    /// The payload chain.
    pub octets: Zeroizing<Vec<u8>>,
}

/// A message, or a fragment of one, that has not been opened. Nothing in it can be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The header as received.
    pub header: Header,
    /// Which fragment it is, if it is one.
    pub fragment: Option<Fragment>,
    aad: &'a [u8],
    /// Where in it the type of the Encrypted payload stands.
    kind_at: usize,
    first: PayloadType,
    body: &'a [u8],
}

/// Why a sealed message gave no payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened<E> {
    /// The cipher refused it: forged, damaged, or not for these keys.
    #[error("{0}")]
    Refused(E),
    /// It does not have the cipher's frame: nobody with these keys sealed it.
    #[error("it is too short, or not whole blocks")]
    Unframed,
    /// The peer itself sealed something that cannot be read.
    #[error("{0}")]
    Malformed(Malformed),
}

impl<'a> Sealed<'a> {
    /// Looks for the Encrypted payload in a message whose length was checked. Payloads before it
    /// are authenticated by it but never looked at.
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

    /// Opens a whole message with `open(iv, associated data, text in place, icv)`. The plaintext is
    /// wiped after its payloads were read.
    pub fn open_with<E>(
        &self,
        frame: Frame,
        open: impl FnOnce(&[u8], &[u8], &mut [u8], &[u8]) -> Result<(), E>,
    ) -> Result<Message, NotOpened<E>> {
        let content = self.content_with(frame, open)?;
        content.message(self.header).map_err(NotOpened::Malformed)
    }

    /// What stands before the IV, as if nothing had been cut: the first fragment is told from a message
    /// by the type of its Encrypted payload and by its numbers. The lengths are those that it came with.
    pub fn before_iv(&self) -> Vec<u8> {
        let numbers_len = self.fragment.map_or(0, |_| NUMBERS_LEN);
        let mut before = self.aad[..self.aad.len() - numbers_len].to_vec();
        before[self.kind_at] = PayloadType::SK.0;
        before
    }

    /// Opens a message or a fragment in the same way, and reads nothing but the padding.
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
    /// `None` if there are no numbers. "MUST be silently discarded" (RFC 7383 section 2.6): a number
    /// of zero, or one beyond the total.
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
    /// IV, text and ICV.
    fn split(self, body: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
        let (iv, rest) = body.split_at_checked(self.iv_len)?;
        let (text, icv) = rest.split_at_checked(rest.len().checked_sub(self.icv_len)?)?;
        (text.len().is_multiple_of(self.block_len)).then_some((iv, text, icv))
    }

    /// Octets of padding between `len` octets and the length of the padding.
    const fn padding(self, len: usize) -> usize {
        (len + 1).next_multiple_of(self.block_len) - (len + 1)
    }

    /// Octets around a text, before the IV those of the headers.
    const fn around(self, before: usize) -> usize {
        before + self.iv_len + self.icv_len
    }
}

impl Message {
    /// The wire form with all payloads sealed by `seal(associated data, text in place, ICV)`.
    pub fn seal_with(
        &self,
        frame: Frame,
        iv: &[u8],
        seal: impl FnOnce(&[u8], &mut [u8], &mut [u8]),
    ) -> Vec<u8> {
        Content::of(&self.payloads).seal_with(&self.header, None, frame, iv, seal)
    }
}

impl Content {
    /// What a message with these payloads has inside.
    pub fn of(payloads: &[Payload]) -> Self {
        // Large enough never to move: a moved buffer would leave keys behind in freed memory. Only what
        // was written is wiped: all of it would take longer than anything else that is done here.
        let mut written = Vec::with_capacity(super::MAX_MESSAGE);
        encode_chain(payloads, &mut written);
        let octets = Zeroizing::new(written.clone());
        written.as_mut_slice().zeroize();
        Self {
            first: first_type(payloads),
            octets,
        }
    }

    /// The message that has this inside.
    pub fn message(&self, header: Header) -> Result<Message, Malformed> {
        let mut reader = Reader::new("the payload chain", &self.octets);
        let payloads = read_chain(self.first, header.exchange, &mut reader)?;
        Ok(Message { header, payloads })
    }

    /// What authentication covers of a message of IKE_INTERMEDIATE: all of it but IV, padding and ICV,
    /// with lengths to match (RFC 9242 section 3.3.2). `before` is what stands before the IV.
    pub fn bare(&self, mut before: Vec<u8>) -> Zeroizing<Vec<u8>> {
        let length = Generic::HEADER_LEN + self.octets.len();
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        let at = before.len() - size_of::<u16>();
        before[at..].copy_from_slice(&length.to_be_bytes());
        // Large enough never to move, as below.
        let mut bare = Zeroizing::new(Vec::with_capacity(before.len() + self.octets.len()));
        bare.extend_from_slice(&before);
        bare.extend_from_slice(&self.octets);
        Header::set_length(&mut bare);
        bare
    }

    /// What stands before the IV of a message that has it inside.
    pub fn before_iv(&self, header: &Header) -> Vec<u8> {
        let mut before = Vec::with_capacity(BEFORE);
        header.encode(PayloadType::SK, &mut before);
        before.extend_from_slice(&[self.first.0, 0, 0, 0]);
        before
    }

    /// Octets of the message that has it inside.
    pub fn sealed_len(&self, frame: Frame) -> usize {
        let length = self.octets.len();
        frame.around(BEFORE) + length + frame.padding(length) + 1
    }

    /// Its pieces, so large that none makes a message of more than `room` octets. "The content is
    /// treated as a binary blob and is split regardless of the boundaries of inner payloads"; only
    /// the first piece says of what type the first payload is (RFC 7383 section 2.5).
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

    /// The wire form of a message, or of a fragment of one.
    pub fn seal_with(
        &self,
        header: &Header,
        fragment: Option<Fragment>,
        frame: Frame,
        iv: &[u8],
        seal: impl FnOnce(&[u8], &mut [u8], &mut [u8]),
    ) -> Vec<u8> {
        // Large enough never to move, as above.
        let mut out = Vec::with_capacity(self.sealed_len(frame) + NUMBERS_LEN);
        let kind = fragment.map_or(PayloadType::SK, |_| PayloadType::SKF);
        header.encode(kind, &mut out);
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
        let (aad, body) = rest.split_at_mut(BEFORE + numbers.len());
        seal(aad, &mut body[frame.iv_len..], icv);
        out
    }
}

const SHORT: Malformed = Malformed::Truncated("the Encrypted payload");

/// How long a text is before its padding.
fn without_padding(text: &[u8]) -> Result<usize, Malformed> {
    let (&padding, rest) = text.split_last().ok_or(SHORT)?;
    rest.len()
        .checked_sub(padding.into())
        .ok_or(Malformed::Length("the padding"))
}
