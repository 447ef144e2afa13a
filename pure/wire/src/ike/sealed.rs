//! The Encrypted payload (RFC 7296 section 3.14; with an AEAD, RFC 5282 section 3).
//!
//! ```text
//!  IKE header | (clear payloads, ignored) | generic header of SK | IV | ciphertext | ICV
//!  '----------------- associated data ---------------------------'
//!  ciphertext = payload chain | padding | pad length (1)
//! ```
//!
//! How long IV and ICV are, and of what the ciphertext is a multiple, is the cipher's [`Frame`].
//! SK is the last payload; the type field of its generic header names the first payload inside.
//! The layout is here, the cipher is the caller's.

use super::message::{Generic, MAX_PAYLOADS, encode_chain, first_type, read_chain};
use super::{HEADER_LEN, Header, Message, PayloadType};
use crate::codec::{LengthPrefixed, Malformed, Reader};
use zeroize::Zeroizing;

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

/// A message that has not been opened. Nothing in it can be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The header as received.
    pub header: Header,
    aad: &'a [u8],
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
        for _ in 0..=MAX_PAYLOADS {
            if kind == PayloadType::NONE {
                return Ok(None);
            }
            let aad_len = octets.len() - reader.left() + Generic::HEADER_LEN;
            let generic = Generic::read(&mut reader)?;
            if kind == PayloadType::SK {
                reader.finish()?;
                let aad = &octets[..aad_len];
                return Self::split(header, aad, generic.next, generic.body).map(Some);
            }
            kind = generic.next;
        }
        Err(Malformed::TooMany("the payload chain"))
    }

    fn split(
        header: Header,
        aad: &'a [u8],
        first: PayloadType,
        body: &'a [u8],
    ) -> Result<Self, Malformed> {
        if body.len() < SHORTEST {
            return Err(Malformed::Truncated("the Encrypted payload"));
        }
        Ok(Self {
            header,
            aad,
            first,
            body,
        })
    }

    /// Opens with `open(iv, associated data, text in place, icv)`. The plaintext is wiped after
    /// its payloads were read.
    pub fn open_with<E>(
        &self,
        frame: Frame,
        open: impl FnOnce(&[u8], &[u8], &mut [u8], &[u8]) -> Result<(), E>,
    ) -> Result<Message, NotOpened<E>> {
        let (iv, text, icv) = frame.split(self.body).ok_or(NotOpened::Unframed)?;
        let mut text = Zeroizing::new(text.to_vec());
        open(iv, self.aad, &mut text, icv).map_err(NotOpened::Refused)?;
        let payloads = read_inside(self.first, &text).map_err(NotOpened::Malformed)?;
        Ok(Message {
            header: self.header,
            payloads,
        })
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
}

impl Message {
    /// The wire form with all payloads sealed by `seal(associated data, text in place, ICV)`.
    pub fn seal_with(
        &self,
        frame: Frame,
        iv: &[u8],
        seal: impl FnOnce(&[u8], &mut [u8], &mut [u8]),
    ) -> Vec<u8> {
        // Large enough never to move: a moved buffer would leave keys behind in freed memory.
        let mut out = Vec::with_capacity(super::MAX_MESSAGE);
        self.header.encode(PayloadType::SK, &mut out);
        let aad_len = HEADER_LEN + Generic::HEADER_LEN;
        {
            let head = [first_type(&self.payloads).0, 0];
            let mut body = LengthPrefixed::after(&head, &mut out);
            body.extend_from_slice(iv);
            let before = body.len();
            encode_chain(&self.payloads, &mut body);
            let padding = frame.padding(body.len() - before);
            body.extend(std::iter::repeat_n(0, padding));
            body.push(padding as u8);
            body.extend(std::iter::repeat_n(0, frame.icv_len));
        }
        Header::set_length(&mut out);
        let icv_at = out.len() - frame.icv_len;
        let (rest, icv) = out.split_at_mut(icv_at);
        let (aad, body) = rest.split_at_mut(aad_len);
        seal(aad, &mut body[frame.iv_len..], icv);
        out.shrink_to_fit();
        out
    }
}

fn read_inside(first: PayloadType, text: &[u8]) -> Result<Vec<super::Payload>, Malformed> {
    let (&padding, rest) = text
        .split_last()
        .ok_or(Malformed::Truncated("the Encrypted payload"))?;
    let chain = rest
        .len()
        .checked_sub(padding.into())
        .ok_or(Malformed::Length("the padding"))?;
    read_chain(first, &mut Reader::new("the payload chain", &rest[..chain]))
}
