//! Matching of datagrams against a class (DESIGN section 3, "dynamic levels").
//!
//! Sender and receiver match the same octets: the sender to choose a level, the receiver to check
//! the choice against the grant. A datagram that cannot be parsed belongs to no class.

use crate::{ip, rtp, udp};
use model::{Class, Flow, Pictures};

/// The static payload type of MPEG video (RFC 3551 section 6).
const MPEG_VIDEO: u8 = 32;

/// Returns true if a datagram belongs to a class.
pub fn covers(class: &Class, datagram: &[u8]) -> bool {
    let Ok(header) = ip::Header::parse(datagram) else {
        return false;
    };
    let flow = header.flow();
    let content = Content::from_header(&header);
    class
        .protocol
        .is_none_or(|protocol| protocol == flow.protocol)
        && has_port(class, &flow)
        && class.dscp.is_none_or(|dscp| dscp == header.tos() >> 2)
        && (class.marker).is_none_or(|marker| content.is_some_and(|rtp| rtp.marker == marker))
        && (class.pictures).is_none_or(|types| content.is_some_and(|rtp| rtp.shows(types)))
}

/// Returns true if the class names no ports, or one of the flow's ports is among them.
fn has_port(class: &Class, flow: &Flow) -> bool {
    let ports = [flow.source_port, flow.destination_port];
    class.ports.is_none_or(|named| {
        flow.has_ports() && flow.ports_visible && ports.into_iter().any(|port| named.contains(port))
    })
}

/// Fields of RTP that describe its content.
#[derive(Clone, Copy)]
struct Content {
    marker: bool,
    /// Number of the picture type, for MPEG video.
    picture: Option<u8>,
}

impl Content {
    /// Reads the content of a whole datagram. With an RTP header extension, the picture type is not
    /// read.
    fn from_header(header: &ip::Header<'_>) -> Option<Self> {
        if header.protocol() != udp::PROTOCOL || header.is_fragment() {
            return None;
        }
        let payload = header.payload().get(udp::HEADER_LEN..)?;
        let rtp = rtp::Header::parse(payload)?;
        let video = rtp.payload_type == MPEG_VIDEO && !rtp.extended;
        let picture = payload.get(rtp.len..).filter(|_| video).and_then(picture);
        Some(Self {
            marker: rtp.marker,
            picture,
        })
    }

    fn shows(self, types: Pictures) -> bool {
        self.picture.is_some_and(|number| types.contains(number))
    }
}

/// Returns the picture type, from the last three bits of the third octet (RFC 2250 section 3.4).
fn picture(payload: &[u8]) -> Option<u8> {
    let [_, _, third, _] = payload.first_chunk()?;
    Some(third & 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Span;

    /// Returns a UDP datagram from port 5004 to 6000 over IPv4 with DSCP AF41.
    fn datagram(payload: &[u8]) -> Vec<u8> {
        let len = (28 + payload.len()) as u16;
        let mut header = vec![0x45, 34 << 2, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
        header[2..4].copy_from_slice(&len.to_be_bytes());
        header.extend([10, 1, 0, 1, 10, 8, 0, 1]);
        header.extend([0x13, 0x8c, 0x17, 0x70, 0, payload.len() as u8 + 8, 0, 0]);
        [&header, payload].concat()
    }

    /// Returns an RTP packet with MPEG video.
    fn video(flags: u8, marker: u8, picture: u8) -> Vec<u8> {
        let mut payload = vec![flags, marker << 7 | MPEG_VIDEO];
        payload.extend([0; 10]);
        payload.extend([0, 0, 0b0001_0000 | picture, 0, 1, 2, 3]);
        datagram(&payload)
    }

    fn class(change: impl Fn(&mut Class)) -> Class {
        let mut class = Class::default();
        change(&mut class);
        class
    }

    #[test]
    fn one_port_of_both_is_enough() {
        let ports = |first, last| class(|class| class.ports = Span::new(first, last));
        let datagram = datagram(b"anything");
        for (first, last) in [(5004, 5004), (6000, 6000), (5000, 7000), (0, 65535)] {
            assert!(covers(&ports(first, last), &datagram));
        }
        assert!(!covers(&ports(5005, 5999), &datagram));
    }

    #[test]
    fn a_datagram_without_visible_ports_has_none_of_any_class() {
        let all = class(|class| class.ports = Span::new(0, u16::MAX));
        let mut icmp = datagram(b"anything");
        icmp[9] = 1;
        assert!(!covers(&all, &icmp));
        let mut fragment = datagram(b"anything");
        fragment[6] = 0x20;
        assert!(!covers(&all, &fragment));
    }

    #[test]
    fn everything_that_is_named_has_to_be_so() {
        let both = |protocol, dscp| {
            class(|class| (class.protocol, class.dscp) = (Some(protocol), Some(dscp)))
        };
        let datagram = datagram(b"anything");
        assert!(covers(&both(17, 34), &datagram));
        assert!(!covers(&both(6, 34), &datagram));
        assert!(!covers(&both(17, 0), &datagram));
    }

    #[test]
    fn the_marker_of_rtp_is_read_and_nothing_else_has_one() {
        let marker = |marker| class(|class| class.marker = Some(marker));
        for set in [0, 1] {
            let datagram = video(0x80, set, 1);
            assert!(covers(&marker(set == 1), &datagram));
            assert!(!covers(&marker(set == 0), &datagram));
        }
        for other in [datagram(b"short"), video(0x40, 0, 1), datagram(&[0; 40])] {
            assert!(!covers(&marker(false), &other) && !covers(&marker(true), &other));
        }
    }

    /// The paper's example: reference pictures are encrypted, and the others are not.
    #[test]
    fn pictures_of_mpeg_are_told_from_each_other() {
        let types = class(|class| class.pictures = Pictures::from_letters("PB"));
        let shown = [1, 2, 3, 4].map(|picture| covers(&types, &video(0x80, 0, picture)));
        assert_eq!(shown, [false, true, true, false]);
        // With a contributing source, the content starts later. With an extension, it is not read.
        let mut contributed = video(0x81, 0, 2);
        contributed.splice(40..40, [9; 4]);
        let len = contributed.len() as u16;
        contributed[2..4].copy_from_slice(&len.to_be_bytes());
        assert!(covers(&types, &contributed));
        assert!(!covers(&types, &video(0x90, 0, 2)));
        let mut speech = video(0x80, 0, 2);
        speech[29] = 0;
        assert!(!covers(&types, &speech));
    }

    #[test]
    fn what_cannot_be_read_is_of_no_class() {
        let any = class(|class| class.protocol = Some(17));
        let whole = video(0x80, 0, 2);
        for len in 0..whole.len() {
            assert!(!covers(&any, &whole[..len]));
        }
    }
}
