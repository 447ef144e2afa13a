//! TCP segments as datagrams (RFC 9293 section 3.1), written here and parsed by `wire`.

use crate::datagram;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use wire::tcp::{Flags, Header, MIN_HEADER_LEN, OptionValue, PROTOCOL, Seq};
use wire::{checksum, ip};

/// A TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub source: SocketAddrV4,
    pub destination: SocketAddrV4,
    pub seq: Seq,
    pub ack: Seq,
    pub flags: Flags,
    /// Window as on the wire, not scaled.
    pub window: u16,
    pub options: Options,
    pub payload: Vec<u8>,
}

/// Supported options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: Option<Timestamps>,
    /// SACK blocks, the most recent first (RFC 2018 section 4).
    pub sack: Vec<(Seq, Seq)>,
}

/// Timestamps option (RFC 7323 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timestamps {
    pub value: u32,
    pub echo: u32,
}

impl Segment {
    /// Returns the datagram.
    pub fn encode(&self) -> Vec<u8> {
        let options = self.options.encode();
        let mut header = Vec::with_capacity(MIN_HEADER_LEN + options.len());
        header.extend(self.source.port().to_be_bytes());
        header.extend(self.destination.port().to_be_bytes());
        header.extend(self.seq.0.to_be_bytes());
        header.extend(self.ack.0.to_be_bytes());
        let words = (MIN_HEADER_LEN + options.len()) / 4;
        header.extend([(words as u8) << 4, self.flags.0]);
        header.extend(self.window.to_be_bytes());
        header.extend([0; 4]);
        header.extend(options);
        let (from, to) = (*self.source.ip(), *self.destination.ip());
        datagram::tcp(from, to, &header, &self.payload)
    }

    /// Parses a datagram. `None` if it is not a TCP segment over IPv4 or its checksum is wrong.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let packet = ip::Header::parse(datagram).ok()?;
        if packet.protocol() != PROTOCOL || packet.is_fragment() {
            return None;
        }
        let header = Header::parse(packet.payload())?;
        let sum = packet.payload().get(16..18)?;
        if checksum::of_transport(&packet)?.to_be_bytes() != sum {
            return None;
        }
        Some(Self {
            source: SocketAddrV4::new(v4(packet.source())?, header.source_port),
            destination: SocketAddrV4::new(v4(packet.destination())?, header.destination_port),
            seq: header.seq,
            ack: header.ack,
            flags: header.flags,
            window: header.window,
            options: Options::read(&header),
            payload: packet.payload()[header.header_len..].to_vec(),
        })
    }
}

impl Options {
    /// Returns the options in the order and with the padding of Linux, so headers have constant
    /// size.
    fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        if let Some(mss) = self.mss {
            octets.extend([2, 4]);
            octets.extend(mss.to_be_bytes());
        }
        if self.sack_permitted {
            octets.extend([1, 1, 4, 2]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            octets.extend([1, 1, 8, 10]);
            octets.extend(value.to_be_bytes());
            octets.extend(echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            octets.extend([1, 3, 3, shift]);
        }
        if !self.sack.is_empty() {
            octets.extend([1, 1, 5, 2 + 8 * self.sack.len() as u8]);
            for (start, end) in &self.sack {
                octets.extend(start.0.to_be_bytes());
                octets.extend(end.0.to_be_bytes());
            }
        }
        octets
    }

    fn read(header: &Header<'_>) -> Self {
        let mut options = Self::default();
        for option in header.options().map_while(Result::ok) {
            match option.value {
                OptionValue::Mss(mss) => options.mss = Some(mss),
                OptionValue::WindowScale(shift) => options.window_scale = Some(shift.min(14)),
                OptionValue::SackPermitted => options.sack_permitted = true,
                OptionValue::Sack(blocks) => options.sack = blocks.collect(),
                OptionValue::Timestamps { value, echo } => {
                    options.timestamps = Some(Timestamps { value, echo });
                }
                OptionValue::Other(_) => {}
            }
        }
        options
    }
}

fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment() -> Segment {
        Segment {
            source: "10.0.0.1:80".parse().unwrap(),
            destination: "10.0.0.2:40000".parse().unwrap(),
            seq: Seq(u32::MAX),
            ack: Seq(7),
            flags: Flags::SYN.union(Flags::ACK),
            window: 500,
            options: Options {
                mss: Some(1460),
                window_scale: Some(7),
                sack_permitted: true,
                timestamps: Some(Timestamps { value: 1, echo: 2 }),
                sack: Vec::new(),
            },
            payload: b"content".to_vec(),
        }
    }

    #[test]
    fn a_segment_reads_as_it_was_written() {
        let mut segment = segment();
        assert_eq!(Segment::parse(&segment.encode()), Some(segment.clone()));
        segment.options = Options {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            sack: vec![(Seq(9), Seq(12)), (Seq(1), Seq(5)), (Seq(20), Seq(30))],
            ..Options::default()
        };
        assert_eq!(Segment::parse(&segment.encode()), Some(segment));
    }

    #[test]
    fn a_segment_with_a_flipped_bit_is_none() {
        let datagram = segment().encode();
        for at in ip::V4_HEADER_LEN..datagram.len() {
            let mut damaged = datagram.clone();
            damaged[at] ^= 1;
            assert_eq!(Segment::parse(&damaged), None, "octet {at}");
        }
    }
}
