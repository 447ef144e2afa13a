//! The sealing direction of an SA: its sequence numbers, each given once, and its cipher.

use crate::drop::DropReason;
use crate::key::Unusable;
use crate::packet::Packet;
use crate::plain::Plain;
use crate::report::Traffic;
use crate::scratch::Scratch;
use crate::zoned::Zoned;
use crypto::Secret;
use model::{Half, Keys, Spi, ZoneAgreement};
use wire::esp::{Header, next_header};

/// The number that says that half of the numbers are used (DESIGN section 3).
const REKEY_AT: u32 = 1 << 31;

/// How one direction of an SA protects packets. The SPI decides, never the packet.
pub(crate) enum Cipher {
    Plain(Plain),
    Zoned(Zoned),
}

impl Cipher {
    pub fn new(keys: &Keys<Secret>, agreement: Option<&ZoneAgreement>) -> Result<Self, Unusable> {
        match (keys, agreement) {
            (
                Keys::Plain {
                    suite,
                    implicit_iv,
                    key,
                },
                None,
            ) => Plain::new(*suite, *implicit_iv, key).map(Self::Plain),
            (Keys::Zoned(keys), Some(agreement)) => Zoned::new(agreement, keys).map(Self::Zoned),
            _ => Err(Unusable::Zones),
        }
    }
}

/// What became of a datagram.
pub(crate) struct Sealed {
    /// Whether its zones hid everything.
    pub opaque: bool,
    /// Whether this packet is the one after which new keys should be made.
    pub rekey_soon: bool,
}

/// The sealing direction of an SA.
pub(crate) struct Outbound {
    spi: Spi,
    cipher: Cipher,
    /// Number of the packet before, 0 before the first.
    used: u32,
    pub traffic: Traffic,
}

impl Outbound {
    pub fn new(half: &Half<Secret>, agreement: Option<&ZoneAgreement>) -> Result<Self, Unusable> {
        Ok(Self {
            spi: half.spi,
            cipher: Cipher::new(&half.keys, agreement)?,
            used: 0,
            traffic: Traffic::default(),
        })
    }

    pub fn spi(&self) -> Spi {
        self.spi
    }

    /// Number of the packet sealed last, 0 before the first.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Turns an inner datagram of IP version `version` into a packet.
    pub fn seal(
        &mut self,
        packet: &mut Packet,
        version: u8,
        scratch: &mut Scratch,
    ) -> Result<Sealed, DropReason> {
        let (octets, seq) = (packet.len(), self.next_seq()?);
        let header = Header { spi: self.spi, seq };
        let next_header = match version {
            4 => next_header::IPV4,
            _ => next_header::IPV6,
        };
        let opaque = match &self.cipher {
            Cipher::Plain(plain) => plain.seal(packet, header, next_header).map(|()| false)?,
            Cipher::Zoned(zoned) => zoned.seal(packet, header, next_header, scratch)?,
        };
        self.traffic.count(octets);
        Ok(Sealed {
            opaque,
            rekey_soon: seq == REKEY_AT,
        })
    }

    /// The next number. It is spent whether or not a packet is sealed with it, and after the last
    /// there is none: a second round would repeat nonces (RFC 4303 section 3.3.3).
    fn next_seq(&mut self) -> Result<u32, DropReason> {
        self.used = self
            .used
            .checked_add(1)
            .ok_or(DropReason::SequenceExhausted)?;
        Ok(self.used)
    }
}

#[cfg(test)]
impl Outbound {
    /// As if so many packets had been sealed.
    pub fn skip_to(&mut self, used: u32) {
        self.used = used;
    }
}
