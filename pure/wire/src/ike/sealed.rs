//! The Encrypted payload (RFC 7296 section 3.14) with an AEAD (RFC 5282 section 3).
//!
//! ```text
//!  IKE header | (clear payloads, ignored) | generic header of SK | IV (8) | ciphertext | ICV (16)
//!  '----------------- associated data ---------------------------'
//!  ciphertext = payload chain | padding | pad length (1)
//! ```
//!
//! SK is the last payload; the type field of its generic header names the first payload inside.
//! The layout is here, the cipher is the caller's.

use super::message::{Generic, MAX_PAYLOADS, encode_chain, first_type, read_chain};
use super::{HEADER_LEN, Header, Message, PayloadType};
use crate::codec::{LengthPrefixed, Malformed, Reader};
use zeroize::Zeroizing;

/// Octets of the explicit IV (RFC 5282 section 4).
pub const IV_LEN: usize = 8;

const ICV_LEN: usize = 16;

/// A message that has not been opened. Nothing in it can be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The header as received.
    pub header: Header,
    aad: &'a [u8],
    first: PayloadType,
    iv: &'a [u8; IV_LEN],
    text: &'a [u8],
    icv: &'a [u8; ICV_LEN],
}

/// Why a sealed message gave no payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened<E> {
    /// The cipher refused it: forged, damaged, or not for these keys.
    #[error("{0}")]
    Refused(E),
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
        let short = Malformed::Truncated("the Encrypted payload");
        let (iv, rest) = body.split_first_chunk().ok_or(short)?;
        let (text, icv) = rest.split_last_chunk().ok_or(short)?;
        Ok(Self {
            header,
            aad,
            first,
            iv,
            text,
            icv,
        })
    }

    /// Opens with `open(iv, associated data, text in place, icv)`. The plaintext is wiped after
    /// its payloads were read.
    pub fn open_with<E>(
        &self,
        open: impl FnOnce(&[u8; IV_LEN], &[u8], &mut [u8], &[u8; ICV_LEN]) -> Result<(), E>,
    ) -> Result<Message, NotOpened<E>> {
        let mut text = Zeroizing::new(self.text.to_vec());
        open(self.iv, self.aad, &mut text, self.icv).map_err(NotOpened::Refused)?;
        let payloads = read_inside(self.first, &text).map_err(NotOpened::Malformed)?;
        Ok(Message {
            header: self.header,
            payloads,
        })
    }
}

impl Message {
    /// The wire form with all payloads sealed by `seal(associated data, text in place) -> ICV`.
    pub fn seal_with(
        &self,
        iv: [u8; IV_LEN],
        seal: impl FnOnce(&[u8], &mut [u8]) -> [u8; ICV_LEN],
    ) -> Vec<u8> {
        // Large enough never to move: a moved buffer would leave keys behind in freed memory.
        let mut out = Vec::with_capacity(super::MAX_MESSAGE);
        self.header.encode(PayloadType::SK, &mut out);
        let aad_len = HEADER_LEN + Generic::HEADER_LEN;
        {
            let head = [first_type(&self.payloads).0, 0];
            let mut body = LengthPrefixed::after(&head, &mut out);
            body.extend_from_slice(&iv);
            encode_chain(&self.payloads, &mut body);
            body.push(0); // no padding: a stream of octets needs none
            body.extend_from_slice(&[0; ICV_LEN]);
        }
        Header::set_length(&mut out);
        let icv_at = out.len() - ICV_LEN;
        let (rest, icv) = out.split_at_mut(icv_at);
        let (aad, body) = rest.split_at_mut(aad_len);
        let text = &mut body[IV_LEN..];
        icv.copy_from_slice(&seal(aad, text));
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
