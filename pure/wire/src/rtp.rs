//! RTP headers (RFC 3550 section 5.1).

use crate::content::Content;
use model::Span;

const VERSION: u8 = 2;
const FIXED_LEN: usize = 12;
const CSRC_LEN: usize = 4;

/// Payload types, with the marker bit in front, that are packet types of RTCP on a shared port
/// (RFC 5761 section 4).
const RTCP: std::ops::RangeInclusive<u8> = 192..=223;

/// Recognition of RTP on negotiated ports. An RTP header has no identifying number: a quarter of
/// all random octets would match it.
#[derive(Clone, Copy, Debug)]
pub struct Rtp {
    /// Range that contains both ports.
    pub ports: Span,
}

/// Fields of an RTP header.
pub(crate) struct Header {
    pub(crate) marker: bool,
    pub(crate) payload_type: u8,
    /// True if a header extension follows.
    pub(crate) extended: bool,
    /// Octets of the fixed header and the list of contributing sources.
    pub(crate) len: usize,
}

impl Header {
    /// Reads a header from the front of a UDP payload. `None` if the payload is not RTP.
    pub(crate) fn parse(payload: &[u8]) -> Option<Self> {
        let &[flags, kind, ..] = payload else {
            return None;
        };
        let len = FIXED_LEN + CSRC_LEN * usize::from(flags & 0x0f);
        let is_rtp = flags >> 6 == VERSION && !RTCP.contains(&kind) && len <= payload.len();
        is_rtp.then_some(Self {
            marker: kind >> 7 == 1,
            payload_type: kind & 0x7f,
            extended: flags & 0x10 != 0,
            len,
        })
    }
}

impl Content for Rtp {
    /// The header is the fixed header and the list of contributing sources. An extension is
    /// content: it may hold the loudness of speech (RFC 6464), and RFC 9335 encrypts extensions.
    fn header_len(&self, ports: [u16; 2], payload: &[u8]) -> usize {
        match ports.iter().all(|port| self.ports.contains(*port)) {
            true => Header::parse(payload).map_or(0, |header| header.len),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: [u16; 2] = [16384, 32767];

    fn header_len(ports: [u16; 2], payload: &[u8]) -> usize {
        let agreed = Span::new(16384, 32767).unwrap();
        Rtp { ports: agreed }.header_len(ports, payload)
    }

    fn packet(flags: u8, kind: u8) -> [u8; 40] {
        let mut packet = [7; 40];
        (packet[0], packet[1]) = (flags, kind);
        packet
    }

    #[test]
    fn the_fixed_header_and_the_contributors_are_header() {
        assert_eq!(header_len(PORTS, &packet(0x80, 96)), 12);
        assert_eq!(header_len(PORTS, &packet(0x80, 0x80 | 96)), 12);
        assert_eq!(header_len(PORTS, &packet(0x83, 8)), 24);
    }

    #[test]
    fn an_extension_is_content() {
        assert_eq!(header_len(PORTS, &packet(0x90, 96)), 12);
    }

    #[test]
    fn of_rtcp_nothing_is_header() {
        assert_eq!(header_len(PORTS, &packet(0x81, 200)), 0);
    }

    #[test]
    fn of_another_version_nothing_is_header() {
        for flags in [0x00, 0x40, 0xc0] {
            assert_eq!(header_len(PORTS, &packet(flags, 96)), 0);
        }
    }

    // Weakness: S13
    #[test]
    fn on_a_port_that_was_not_agreed_nothing_is_header() {
        for ports in [[16383, 32767], [16384, 32768], [53, 5353]] {
            assert_eq!(header_len(ports, &packet(0x80, 96)), 0);
        }
    }

    #[test]
    fn of_a_header_that_is_cut_short_nothing_is_shown() {
        assert_eq!(header_len(PORTS, &packet(0x80, 96)[..11]), 0);
        assert_eq!(header_len(PORTS, &packet(0x8f, 96)), 0);
        assert_eq!(header_len(PORTS, &[0x80]), 0);
        assert_eq!(header_len(PORTS, &[]), 0);
    }
}
