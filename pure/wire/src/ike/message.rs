//! Whole messages: the header and the chain of payloads behind it.

use super::sealed::Sealed;
use super::{ExchangeType, Header, NotifyType, Payload, PayloadType};
use crate::codec::{Codec, LengthPrefixed, Malformed, Reader};

/// Most octets of a message that is read. Messages of all supported exchanges are far shorter.
pub const MAX_MESSAGE: usize = 16 * 1024;

/// Most payloads of a message that is read.
pub const MAX_PAYLOADS: usize = 64;

/// A message with unencrypted payloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The header.
    pub header: Header,
    /// The payloads in wire order.
    pub payloads: Vec<Payload>,
}

/// The content of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// A message without an Encrypted payload: IKE_SA_INIT, or an error from outside an IKE SA.
    Clear(Message),
    /// A message whose payloads, or the last of them, are encrypted.
    Sealed(Sealed<'a>),
}

impl<'a> Datagram<'a> {
    /// Reads a datagram (without a non-ESP marker). The IKE length must equal the datagram's
    /// length.
    pub fn decode(octets: &'a [u8]) -> Result<Self, Malformed> {
        if octets.len() > MAX_MESSAGE {
            return Err(Malformed::Length("the message"));
        }
        let mut reader = Reader::new("the message", octets);
        let (header, first, length) = Header::read_with_chain(&mut reader)?;
        if usize::try_from(length) != Ok(octets.len()) {
            return Err(Malformed::Length("the message"));
        }
        match Sealed::find(header, octets, first)? {
            Some(sealed) => Ok(Self::Sealed(sealed)),
            None => {
                let payloads = read_chain(first, header.exchange, &mut reader)?;
                Ok(Self::Clear(Message { header, payloads }))
            }
        }
    }

    /// Returns the header.
    pub const fn header(&self) -> &Header {
        match self {
            Self::Clear(message) => &message.header,
            Self::Sealed(sealed) => &sealed.header,
        }
    }
}

impl Message {
    /// Returns the wire form, unencrypted.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        self.header.encode(first_type(&self.payloads), &mut out);
        encode_chain(&self.payloads, PayloadType::NONE, &mut out);
        Header::set_length(&mut out);
        out
    }

    /// Removes our private notifies from a message of a peer that does not support them: a status
    /// is dropped, and an error becomes an unknown error.
    pub fn forget_private(&mut self) {
        self.payloads.retain_mut(|payload| match payload {
            Payload::Notify(notify) if notify.kind.is_private() => {
                let is_error = notify.kind.is_error();
                notify.kind = NotifyType::PRIVATE_ERROR;
                is_error
            }
            _ => true,
        });
    }

    /// Returns the first payload that is unknown and marked critical, if there is one. The request
    /// must be refused as a whole (RFC 7296 section 2.5).
    pub fn unsupported_critical(&self) -> Option<PayloadType> {
        self.payloads.iter().find_map(|payload| match payload {
            Payload::Other { kind, critical, .. } if *critical && !kind.is_standard() => {
                Some(*kind)
            }
            _ => None,
        })
    }
}

/// Returns the payload type for the field before a chain.
pub(super) fn first_type(payloads: &[Payload]) -> PayloadType {
    payloads.first().map_or(PayloadType::NONE, Payload::kind)
}

/// Appends the payloads. The generic header of each names the type of the next (RFC 7296
/// section 3.2), that of the last one `behind`.
pub(super) fn encode_chain(payloads: &[Payload], behind: PayloadType, out: &mut Vec<u8>) {
    for (index, payload) in payloads.iter().enumerate() {
        let next = payloads.get(index + 1).map_or(behind, Payload::kind);
        let critical = u8::from(payload.is_critical()) << 7;
        payload.encode_body(&mut LengthPrefixed::after(&[next.0, critical], out));
    }
}

/// Reads a chain of payloads, which must end with the reader. Our private payload types are known
/// only in our private exchanges.
pub(super) fn read_chain(
    first: PayloadType,
    exchange: ExchangeType,
    reader: &mut Reader<'_>,
) -> Result<Vec<Payload>, Malformed> {
    let mut payloads = Vec::new();
    let mut kind = first;
    while kind != PayloadType::NONE {
        if payloads.len() == MAX_PAYLOADS {
            return Err(Malformed::TooMany("the payload chain"));
        }
        let generic = Generic::read(reader)?;
        payloads.push(generic.payload(kind, exchange)?);
        kind = generic.next;
    }
    reader.clone().finish()?;
    Ok(payloads)
}

/// A payload whose body has not been parsed.
pub(super) struct Generic<'a> {
    pub(super) next: PayloadType,
    pub(super) critical: bool,
    pub(super) body: &'a [u8],
}

impl<'a> Generic<'a> {
    /// Octets of the generic payload header.
    pub(super) const HEADER_LEN: usize = 4;

    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let next = PayloadType::read(reader)?;
        let critical = reader.u8()? & 0x80 != 0;
        let length = usize::from(reader.u16()?)
            .checked_sub(Self::HEADER_LEN)
            .ok_or(Malformed::Length("a payload"))?;
        Ok(Self {
            next,
            critical,
            body: reader.take(length)?,
        })
    }

    /// Parses the body of a payload of this kind.
    pub(super) fn payload(
        &self,
        kind: PayloadType,
        exchange: ExchangeType,
    ) -> Result<Payload, Malformed> {
        match kind.is_private() && !exchange.is_private() {
            true => Ok(Payload::unknown(kind, self.critical, self.body)),
            false => Payload::read_body(kind, self.critical, self.body),
        }
    }
}
