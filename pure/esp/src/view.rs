//! What a licensed node sees of one packet: the zones it opened, the lengths of the others, and the
//! headers put together as far as they are known.

use model::{CsaId, Flow, Spi, ZoneId};
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
    pub(crate) highest: u32,
    pub(crate) window: u32,
    pub(crate) layout: Layout,
    /// By serial.
    pub(crate) opened: [bool; MAX_ZONES + 1],
    pub(crate) copy: &'s [u8],
    pub(crate) headers: Option<Headers<'s>>,
}

/// The headers of a datagram. Options in the payload zone are no-operations here; the transport
/// checksum may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'s> {
    /// What selectors ask for.
    pub flow: Flow,
    /// The IP header.
    pub ip: &'s [u8],
    /// The transport header with its options.
    pub transport: &'s [u8],
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

    /// The highest sequence number this node has seen in this direction.
    pub fn highest(&self) -> u32 {
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

    /// Octets of the datagram. If the payload zone has padding, or what hides its length, and the IP
    /// header is not licensed, as many as there may be.
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
/// inside an otherwise known header, only secret options are. The IP header says where the datagram
/// ends if the payload zone has padding.
pub(crate) fn put_together<'s>(
    layout: &mut Layout,
    opened: &[bool; MAX_ZONES + 1],
    copy: &[u8],
    out: &'s mut Vec<u8>,
) -> Option<Headers<'s>> {
    const LONGEST: usize = 60 + 60;
    const NO_OPERATION: u8 = 1;
    out.clear();
    // What is known of a dummy looks like anything.
    let next_header = copy[layout.next_header_at()];
    if opened[usize::from(layout.bodies()[0].zone().0)] && next_header == next_header::NONE {
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
    let header = ip::Header::parse_front(&out[..known]).ok()?;
    if header.is_fragment() || !layout.cut(header.total_len()) {
        return None;
    }
    let (ip, rest) = out.split_at(header.header_len());
    let (fixed, transport_len) = match header.protocol() {
        tcp::PROTOCOL => (tcp::MIN_HEADER_LEN, tcp::Header::parse(rest)?.header_len),
        udp::PROTOCOL => (udp::HEADER_LEN, udp::HEADER_LEN),
        _ => return None,
    };
    (known >= ip.len() + fixed).then(|| Headers {
        flow: header.flow(),
        ip,
        transport: &rest[..transport_len],
    })
}
