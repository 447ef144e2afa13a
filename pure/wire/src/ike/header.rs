//! The IKE header (RFC 7296 section 3.1).
//!
//! ```text
//!  IKE SA Initiator's SPI (8)
//!  IKE SA Responder's SPI (8)
//!  Next Payload (1) | MjVer MnVer (1) | Exchange Type (1) | Flags (1)
//!  Message ID (4)
//!  Length (4)
//! ```

use super::{ExchangeType, PayloadType};
use crate::codec::{Codec, Malformed, Reader};

/// Octets of a header.
pub const HEADER_LEN: usize = 28;

/// Major version 2, minor version 0.
pub const VERSION_2: u8 = 0x20;

/// Header flags. Bits without a meaning are dropped on reading (RFC 7296: "MUST be ignored").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The sender is the original initiator of the IKE SA.
    pub initiator: bool,
    /// The sender supports a higher major version than this message's.
    pub higher_version: bool,
    /// The message answers the request with the same message ID.
    pub response: bool,
}

impl Flags {
    const INITIATOR: u8 = 0x08;
    const HIGHER_VERSION: u8 = 0x10;
    const RESPONSE: u8 = 0x20;

    const fn to_octet(self) -> u8 {
        (self.initiator as u8 * Self::INITIATOR)
            | (self.higher_version as u8 * Self::HIGHER_VERSION)
            | (self.response as u8 * Self::RESPONSE)
    }

    const fn from_octet(octet: u8) -> Self {
        Self {
            initiator: octet & Self::INITIATOR != 0,
            higher_version: octet & Self::HIGHER_VERSION != 0,
            response: octet & Self::RESPONSE != 0,
        }
    }
}

/// An IKE header without the next-payload and length fields, which belong to the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The initiator's SPI, never zero.
    pub spi_i: u64,
    /// The responder's SPI, zero in the first message.
    pub spi_r: u64,
    /// Major version in the upper four bits, minor in the lower.
    pub version: u8,
    /// Exchange of the message.
    pub exchange: ExchangeType,
    /// Role of the sender, and direction of the message.
    pub flags: Flags,
    /// Message ID, which pairs a response with its request.
    pub message_id: u32,
}

impl Header {
    /// Returns the major version. Only version 2 is supported.
    pub const fn major_version(&self) -> u8 {
        self.version >> 4
    }

    /// Appends the header. The length field is zero until [`Self::set_length`].
    pub(super) fn encode(&self, next: PayloadType, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.spi_i.to_be_bytes());
        out.extend_from_slice(&self.spi_r.to_be_bytes());
        next.encode(out);
        out.push(self.version);
        self.exchange.encode(out);
        out.push(self.flags.to_octet());
        out.extend_from_slice(&self.message_id.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
    }

    /// Writes the length field of a finished message that starts at the first octet.
    pub(super) fn set_length(message: &mut [u8]) {
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        message[HEADER_LEN - 4..HEADER_LEN].copy_from_slice(&length.to_be_bytes());
    }

    /// Reads the header, the type of the first payload, and the message's length field.
    pub(super) fn read_with_chain(
        reader: &mut Reader<'_>,
    ) -> Result<(Self, PayloadType, u32), Malformed> {
        let (spi_i, spi_r) = (reader.u64()?, reader.u64()?);
        let next = PayloadType::read(reader)?;
        let header = Self {
            spi_i,
            spi_r,
            version: reader.u8()?,
            exchange: ExchangeType::read(reader)?,
            flags: Flags::from_octet(reader.u8()?),
            message_id: reader.u32()?,
        };
        Ok((header, next, reader.u32()?))
    }

    /// Reads only the header, of any version: enough to find the recipient of a datagram.
    pub fn peek(octets: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("the IKE header", octets);
        Self::read_with_chain(&mut reader).map(|(header, _, _)| header)
    }
}
