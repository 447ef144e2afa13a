//! Notify and Delete payloads (RFC 7296 sections 3.10 and 3.11).

use super::{NotifyType, Protocol};
use crate::codec::{Codec, Malformed, Reader};
use model::Spi;

/// An error or a status of the IKE SA or of one of its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// Protocol of the SA that the notify concerns; [`Protocol::NONE`] for none in particular.
    pub protocol: Protocol,
    /// SPI of the SA that the notify concerns; empty for the IKE SA.
    pub spi: Vec<u8>,
    /// Type of the notify.
    pub kind: NotifyType,
    /// Data of the notify.
    pub data: Vec<u8>,
}

impl Notify {
    /// Returns a notify about the exchange itself.
    pub const fn new(kind: NotifyType, data: Vec<u8>) -> Self {
        Self {
            protocol: Protocol::NONE,
            spi: Vec::new(),
            kind,
            data,
        }
    }
}

impl Codec for Notify {
    fn encode(&self, out: &mut Vec<u8>) {
        self.protocol.encode(out);
        out.push(u8::try_from(self.spi.len()).unwrap_or(u8::MAX));
        self.kind.encode(out);
        out.extend_from_slice(&self.spi);
        out.extend_from_slice(&self.data);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let protocol = Protocol::read(reader)?;
        let spi_len = usize::from(reader.u8()?);
        let kind = NotifyType::read(reader)?;
        Ok(Self {
            protocol,
            kind,
            spi: reader.take(spi_len)?.to_vec(),
            data: reader.rest().to_vec(),
        })
    }
}

/// SAs that the sender has deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delete {
    /// The IKE SA itself, with all its children.
    IkeSa,
    /// Child SAs, named by the sender's inbound SPIs.
    Children {
        /// ESP, or an unsupported protocol.
        protocol: Protocol,
        /// The sender's inbound SPIs.
        spis: Vec<Spi>,
    },
}

impl Codec for Delete {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::IkeSa => {
                Protocol::IKE.encode(out);
                out.extend_from_slice(&[0, 0, 0]);
            }
            Self::Children { protocol, spis } => {
                protocol.encode(out);
                out.push(4);
                let count = u16::try_from(spis.len()).unwrap_or(u16::MAX);
                out.extend_from_slice(&count.to_be_bytes());
                spis.iter()
                    .for_each(|spi| out.extend_from_slice(&spi.0.to_be_bytes()));
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let protocol = Protocol::read(reader)?;
        let (size, count) = (reader.u8()?, reader.u16()?);
        match (protocol, size, count) {
            (Protocol::IKE, 0, 0) => Ok(Self::IkeSa),
            // "It MUST be zero for IKE (SPI is in message header) or four for AH and ESP".
            (Protocol::IKE, _, _) => Err(Malformed::Value("a Delete payload")),
            (_, 4, _) => {
                let spis = (0..count).map(|_| reader.u32().map(Spi));
                let spis = spis.collect::<Result<_, _>>()?;
                Ok(Self::Children { protocol, spis })
            }
            _ => Err(Malformed::Value("a Delete payload")),
        }
    }
}
