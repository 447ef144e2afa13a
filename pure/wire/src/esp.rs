//! ESP packets (RFC 4303 section 2), and the UDP port 4500 that they share with IKE (RFC 3948).

use model::Spi;

/// The IP protocol number.
pub const PROTOCOL: u8 = 50;
/// The UDP port for ESP and IKE behind NATs (RFC 3948).
pub const NATT_PORT: u16 = 4500;
/// Octets of SPI and sequence number.
pub const HEADER_LEN: usize = 8;
/// Octets of the ICV of an AEAD.
pub const ICV_LEN: usize = 16;
/// SPIs below this one are reserved (RFC 4303 section 2.1).
pub const FIRST_SPI: Spi = Spi(256);

/// Content of a packet (RFC 4303 section 2.6).
pub mod next_header {
    /// An IPv4 datagram: tunnel mode.
    pub const IPV4: u8 = 4;
    /// An IPv6 datagram: tunnel mode.
    pub const IPV6: u8 = 41;
    /// Nothing: a dummy packet that hides idle periods.
    pub const NONE: u8 = 59;
}

/// The part of a packet that is never encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// SPI of the SA, chosen by the receiver.
    pub spi: Spi,
    /// Sequence number within the SA, from 1.
    pub seq: u32,
}

impl Header {
    /// Returns the header of a packet with this number. The upper half of the number is not on the
    /// wire (RFC 4303 section 2.2.1).
    pub const fn new(spi: Spi, number: u64) -> Self {
        Self {
            spi,
            seq: number as u32,
        }
    }

    /// Reads the header at the front of a packet. `None` if the packet is too short.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let &[a, b, c, d, e, f, g, h] = packet.first_chunk()?;
        Some(Self {
            spi: Spi(u32::from_be_bytes([a, b, c, d])),
            seq: u32::from_be_bytes([e, f, g, h]),
        })
    }

    /// Returns the header as on the wire.
    pub fn octets(self) -> [u8; HEADER_LEN] {
        (u64::from(self.spi.0) << 32 | u64::from(self.seq)).to_be_bytes()
    }
}

/// The content of a UDP payload on port 4500 (RFC 3948 section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// An IKE message, without its non-ESP marker.
    Ike(&'a [u8]),
    /// An ESP packet, or octets too short for one.
    Esp(&'a [u8]),
    /// A single octet 0xff that keeps a NAT mapping alive.
    Keepalive,
}

impl<'a> Datagram<'a> {
    /// Classifies a payload. Four zero octets mark IKE, because they are not a valid SPI.
    pub fn parse(payload: &'a [u8]) -> Self {
        match payload {
            [0xff] => Self::Keepalive,
            [0, 0, 0, 0, message @ ..] => Self::Ike(message),
            packet => Self::Esp(packet),
        }
    }
}

/// Returns true if a UDP payload on port 4500 is for the ESP engine.
pub fn is_esp(payload: &[u8]) -> bool {
    matches!(Datagram::parse(payload), Datagram::Esp(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let header = Header {
            spi: Spi(0x1000_0001),
            seq: u32::MAX,
        };
        assert_eq!(
            header.octets(),
            [0x10, 0, 0, 1, 0xff, 0xff, 0xff, 0xff],
            "SPI first"
        );
        assert_eq!(Header::parse(&header.octets()), Some(header));
        assert_eq!(Header::parse(&header.octets()[..7]), None);
    }

    #[test]
    fn ike_esp_and_keepalives_share_a_port() {
        assert_eq!(Datagram::parse(&[0xff]), Datagram::Keepalive);
        assert_eq!(Datagram::parse(&[0, 0, 0, 0, 7]), Datagram::Ike(&[7]));
        assert_eq!(
            Datagram::parse(&[0, 0, 1, 0, 7]),
            Datagram::Esp(&[0, 0, 1, 0, 7])
        );
        assert!(is_esp(&[0xff, 0xff]) && !is_esp(&[0; 4]));
    }
}
