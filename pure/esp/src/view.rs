//! What a licensed node sees of one packet: the zones it opened, the lengths of the others, and the
//! headers put together as far as they are known.

use model::{CsaId, Flow, Spi, ZoneId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::esp::{Header, next_header};
use wire::zoned::{Layout, MAX_ZONES, Place};
use wire::{ip, tcp, udp};

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the gateway that granted.
    FromGateway,
    /// To it.
    ToGateway,
}

/// One packet as far as it is licensed.
pub struct View<'s> {
    pub(crate) csa: CsaId,
    pub(crate) direction: Direction,
    pub(crate) header: Header,
    pub(crate) fresh: bool,
    pub(crate) highest: u64,
    pub(crate) window: u32,
    pub(crate) layout: Layout,
    pub(crate) written: bool,
    /// By serial.
    pub(crate) opened: [bool; MAX_ZONES + 1],
    pub(crate) copy: &'s [u8],
    pub(crate) headers: Option<Headers<'s>>,
}

/// The headers of a datagram. Options in the payload zone are no-operations here; the transport
/// checksum may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'s> {
    /// What selectors ask for. In transport and BEET mode no address is in a packet: the unspecified one of
    /// IPv4 stands for the gateway then, and that of IPv6 for the other end.
    pub flow: Flow,
    /// The IP header; empty where that is left behind.
    pub ip: &'s [u8],
    /// The transport header with its options.
    pub transport: &'s [u8],
    /// Whether it has options that are not licensed.
    pub hides: bool,
}

impl<'s> View<'s> {
    /// The composite SA's name.
    pub fn csa(&self) -> CsaId {
        self.csa
    }

    /// Which way it goes.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Its SPI.
    pub fn spi(&self) -> Spi {
        self.header.spi
    }

    /// Its sequence number.
    pub fn seq(&self) -> u32 {
        self.header.seq
    }

    /// Whether this node sees it for the first time. If not, it is a duplicate or too old, and may
    /// change nothing.
    pub fn fresh(&self) -> bool {
        self.fresh
    }

    /// Whether a writer before this node has appended an overlay. What is shown is as it was sealed.
    pub fn written(&self) -> bool {
        self.written
    }

    /// The highest sequence number this node has seen in this direction.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// The endpoints' replay window in packets.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// A licensed zone's octets: its runs in datagram order. `None` if it is not licensed or the
    /// packet has none of it.
    pub fn zone(&self, zone: ZoneId) -> Option<&'s [u8]> {
        let opened = *self.opened.get(usize::from(zone.0))?;
        let text = self.layout.body(zone).filter(|_| opened)?.text();
        Some(&self.copy[text.start..text.start + self.len_of(zone)])
    }

    /// How many octets of the datagram are in a zone, licensed or not.
    pub fn len_of(&self, zone: ZoneId) -> usize {
        let runs = self.runs().filter(|run| run.zone == zone);
        runs.map(|run| run.datagram.len()).sum()
    }

    /// The runs in datagram order.
    pub fn runs(&self) -> impl Iterator<Item = Place> + '_ {
        self.layout.places()
    }

    /// Octets of the datagram, or of what of it is sealed. If the payload zone has padding, or what hides its
    /// length, and the header that tells it is not licensed or not there, as many as there may be.
    pub fn datagram_len(&self) -> usize {
        self.layout.datagram_len()
    }

    /// The headers, if those of a TCP segment or a UDP packet are licensed.
    pub fn headers(&self) -> Option<Headers<'s>> {
        self.headers
    }

    /// Octets after the headers: of the whole datagram, if they are not known.
    pub fn payload_len(&self) -> usize {
        let headers = self.headers.map_or(0, |h| h.ip.len() + h.transport.len());
        self.datagram_len().saturating_sub(headers)
    }
}

/// Puts the headers together in `out`. The runs that are not licensed become TCP's no-operations:
/// inside an otherwise known header, only secret options are. The next header says what is the first.
pub(crate) fn put_together<'s>(
    layout: &mut Layout,
    (opened, direction): (&[bool; MAX_ZONES + 1], Direction),
    copy: &[u8],
    out: &'s mut Vec<u8>,
) -> Option<Headers<'s>> {
    const LONGEST: usize = 60 + 60;
    const NO_OPERATION: u8 = 1;
    out.clear();
    // What is known of a dummy looks like anything.
    let first = usize::from(layout.bodies()[0].zone().0);
    let next_header = opened[first].then(|| copy[layout.next_header_at()]);
    if next_header == Some(next_header::NONE) {
        return None;
    }
    // Octets from the start of the datagram up to the first that is not known.
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

/// The headers of a datagram. Its IP header says where that ends if the payload zone has padding.
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

/// The header of what is without one of IP, in transport and BEET mode. Where it ends is said by the packet's
/// length alone, and by UDP: of TCP nothing is known if the payload zone has padding.
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

/// The transport header at the front of these octets, of which so many are known: all that no secret option
/// can be in have to be.
fn transport(protocol: u8, known: usize, octets: &[u8]) -> Option<&[u8]> {
    let (fixed, len) = match protocol {
        tcp::PROTOCOL => (tcp::MIN_HEADER_LEN, tcp::Header::parse(octets)?.header_len),
        udp::PROTOCOL => (udp::HEADER_LEN, udp::HEADER_LEN),
        _ => return None,
    };
    octets.get(..len).filter(|_| known >= fixed)
}
