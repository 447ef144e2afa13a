//! A licensed node's view of one packet: the zones it opened, the lengths of the others, and the
//! headers reassembled as far as they are known.

use model::{CsaId, Flow, Spi, ZoneId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::esp::{Header, next_header};
use wire::zoned::{Layout, MAX_ZONES, Place};
use wire::{ip, tcp, udp};

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the gateway that issued the grant.
    FromGateway,
    /// To the gateway that issued the grant.
    ToGateway,
}

/// One packet, as far as it is licensed.
pub struct View<'s> {
    pub(crate) csa: CsaId,
    pub(crate) direction: Direction,
    pub(crate) header: Header,
    pub(crate) fresh: bool,
    pub(crate) highest: u64,
    pub(crate) window: u32,
    pub(crate) layout: Layout,
    pub(crate) written: bool,
    /// The opened zones, by serial.
    pub(crate) opened: [bool; MAX_ZONES + 1],
    pub(crate) copy: &'s [u8],
    pub(crate) headers: Option<Headers<'s>>,
}

/// The headers of a datagram. Options in the payload zone appear as no-operations; the transport
/// checksum may be omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'s> {
    /// The fields that selectors match. Packets in transport and BEET mode contain no addresses:
    /// there the unspecified IPv4 address stands for the gateway, and the unspecified IPv6 address
    /// for the other end.
    pub flow: Flow,
    /// The IP header; empty in transport and BEET mode.
    pub ip: &'s [u8],
    /// The transport header with its options.
    pub transport: &'s [u8],
    /// True if the header has options that are not licensed.
    pub hides: bool,
}

impl<'s> View<'s> {
    /// Returns the id of the composite SA.
    pub fn csa(&self) -> CsaId {
        self.csa
    }

    /// Returns the direction of the packet.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns the SPI.
    pub fn spi(&self) -> Spi {
        self.header.spi
    }

    /// Returns the sequence number.
    pub fn seq(&self) -> u32 {
        self.header.seq
    }

    /// Returns true if this node sees the packet for the first time. Otherwise it is a duplicate or
    /// too old, and must not change any state.
    pub fn fresh(&self) -> bool {
        self.fresh
    }

    /// Returns true if another writer has appended an overlay. The view shows the packet as sealed.
    pub fn written(&self) -> bool {
        self.written
    }

    /// Returns the highest sequence number that this node has seen in this direction.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Returns the endpoints' replay window, in packets.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Returns the octets of a licensed zone: its runs in datagram order. Returns `None` if the
    /// zone is not licensed or not present.
    pub fn zone(&self, zone: ZoneId) -> Option<&'s [u8]> {
        let opened = *self.opened.get(usize::from(zone.0))?;
        let text = self.layout.body(zone).filter(|_| opened)?.text();
        Some(&self.copy[text.start..text.start + self.len_of(zone)])
    }

    /// Returns the number of the datagram's octets in a zone, licensed or not.
    pub fn len_of(&self, zone: ZoneId) -> usize {
        let runs = self.runs().filter(|run| run.zone == zone);
        runs.map(|run| run.datagram.len()).sum()
    }

    /// Returns the runs in datagram order.
    pub fn runs(&self) -> impl Iterator<Item = Place> + '_ {
        self.layout.places()
    }

    /// Returns the length of the datagram, or of its sealed part. If the payload zone has padding
    /// and the header with the true length is not readable, this is the greatest possible length.
    pub fn datagram_len(&self) -> usize {
        self.layout.datagram_len()
    }

    /// Returns the headers, if those of a TCP segment or UDP packet are licensed.
    pub fn headers(&self) -> Option<Headers<'s>> {
        self.headers
    }

    /// Returns the number of octets after the headers, or the datagram's length if the headers are
    /// unknown.
    pub fn payload_len(&self) -> usize {
        let headers = self.headers.map_or(0, |h| h.ip.len() + h.transport.len());
        self.datagram_len().saturating_sub(headers)
    }
}

/// Reassembles the headers in `out`. Runs that are not licensed become TCP no-operations, because
/// within known headers only secret options are hidden. The next header gives the type of the first
/// header.
pub(crate) fn put_together<'s>(
    layout: &mut Layout,
    (opened, direction): (&[bool; MAX_ZONES + 1], Direction),
    copy: &[u8],
    out: &'s mut Vec<u8>,
) -> Option<Headers<'s>> {
    const LONGEST: usize = 60 + 60;
    const NO_OPERATION: u8 = 1;
    out.clear();
    // The content of a dummy is arbitrary.
    let first = usize::from(layout.bodies()[0].zone().0);
    let next_header = opened[first].then(|| copy[layout.next_header_at()]);
    if next_header == Some(next_header::NONE) {
        return None;
    }
    // Octets from the start of the datagram up to the first unknown one.
    let mut known = 0;
    for place in layout.places() {
        let len = place.packet.len().min(LONGEST - out.len());
        if opened[usize::from(place.zone.0)] {
            known += if known == out.len() { len } else { 0 };
            out.extend_from_slice(&copy[place.packet][..len]);
        } else {
            out.resize(out.len() + len, NO_OPERATION);
        }
    }
    let out: &'s [u8] = out;
    match next_header {
        Some(protocol @ (tcp::PROTOCOL | udp::PROTOCOL)) => {
            bare(layout, (protocol, direction), &out[..known], out)
        }
        _ => under_ip(layout, &out[..known], out),
    }
}

/// Returns the headers of a datagram with an IP header, which gives its length if the payload zone
/// has padding.
fn under_ip<'s>(layout: &mut Layout, known: &[u8], out: &'s [u8]) -> Option<Headers<'s>> {
    let header = ip::Header::parse_front(known).ok()?;
    if header.is_fragment() || !layout.cut(header.total_len()) {
        return None;
    }
    let (ip, rest) = out.split_at(header.header_len());
    let known = known.len() - ip.len();
    let transport = transport(header.protocol(), known, rest)?;
    Some(Headers {
        flow: header.flow(),
        ip,
        transport,
        hides: known < transport.len(),
    })
}

/// Returns the header of a datagram without an IP header, in transport and BEET mode. Only the
/// packet's length or a UDP length gives its end: with padding in the payload zone a TCP header is
/// not returned.
fn bare<'s>(
    layout: &mut Layout,
    (protocol, direction): (u8, Direction),
    known: &[u8],
    out: &'s [u8],
) -> Option<Headers<'s>> {
    let transport = transport(protocol, known.len(), out)?;
    let has_end = match protocol {
        udp::PROTOCOL => layout.cut(usize::from(udp::Header::parse(known)?.len)),
        _ => layout.payload().padding().is_empty(),
    };
    let (gateway, other) = (
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    );
    let (source, destination) = match direction {
        Direction::FromGateway => (gateway, other),
        Direction::ToGateway => (other, gateway),
    };
    let flow = ip::flow_between((source, destination), protocol, transport);
    has_end.then_some(Headers {
        flow,
        ip: &[],
        transport,
        hides: known.len() < transport.len(),
    })
}

/// Returns the transport header at the front of `octets`. Only the first `known` octets are
/// readable; those that cannot belong to a secret option must be among them.
fn transport(protocol: u8, known: usize, octets: &[u8]) -> Option<&[u8]> {
    let (fixed, len) = match protocol {
        tcp::PROTOCOL => (tcp::MIN_HEADER_LEN, tcp::Header::parse(octets)?.header_len),
        udp::PROTOCOL => (udp::HEADER_LEN, udp::HEADER_LEN),
        _ => return None,
    };
    octets.get(..len).filter(|_| known >= fixed)
}
