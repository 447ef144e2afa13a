//! The opening direction of an SA: check for replay, authenticate, check again and advance the
//! window, reassemble. The order is invariant 2 of the design; every failure has a drop reason of
//! its own.

use crate::drop::DropReason;
use crate::injection::Injectors;
use crate::key::Unusable;
use crate::outbound::Cipher;
use crate::overlay::{self, Writers};
use crate::packet::Packet;
use crate::pair::Pair;
use crate::plain;
use crate::prefetch::prefetch;
use crate::replay::{MIN_WINDOW, Replay};
use crate::report::Traffic;
use crate::scratch::Scratch;
use crypto::Secret;
use model::{Flow, Half, Instant, Spi, ZoneAgreement};
use wire::checksum::{self, Checksum};
use wire::esp::{Header, next_header};
use wire::ip;
use wire::zoned::Injected;

/// A licensed node's part in an inbound packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// None: the packet is as the peer sealed it.
    None,
    /// A node changed the packet.
    Written,
    /// A node created the packet.
    Injected,
}

/// The record of received packets.
struct Arrivals {
    replay: Replay,
    heard: Option<Instant>,
    /// The increase of the highest number by the last packet.
    advance: u64,
    /// The number of the last packet.
    number: u64,
}

impl Arrivals {
    /// Records an authentic packet, unless its number was received since the first check.
    fn take(&mut self, number: u64, now: Instant) -> Result<(), DropReason> {
        let before = self.replay.highest();
        self.replay.take(number)?;
        self.advance = self.replay.highest() - before;
        self.number = number;
        self.heard = Some(now);
        Ok(())
    }
}

/// The opening direction of an SA. Rarely used parts are boxed: with many SAs a packet waits for
/// everything stored here.
pub(crate) struct Inbound {
    spi: Spi,
    pub cipher: Cipher,
    arrivals: Arrivals,
    /// Present if licensed nodes may write.
    pub writers: Option<Box<Writers>>,
    /// Present if licensed nodes may inject.
    pub injectors: Option<Box<Injectors>>,
    /// A licensed node's part in the last packet.
    pub share: Share,
    pub traffic: Traffic,
}

impl Inbound {
    pub fn new(half: &Half<Secret>, agreement: Option<&ZoneAgreement>) -> Result<Self, Unusable> {
        Ok(Self {
            spi: half.spi,
            cipher: Cipher::new(&half.keys, agreement)?,
            arrivals: Arrivals {
                replay: Replay::new(agreement.map_or(MIN_WINDOW, |agreed| agreed.window)),
                heard: None,
                advance: 0,
                number: 0,
            },
            writers: half.writers.as_ref().map(Writers::new).map(Box::new),
            injectors: half.injectors.as_ref().map(Injectors::new).map(Box::new),
            share: Share::None,
            traffic: Traffic::default(),
        })
    }

    /// Prefetches the SPI, which identifies the direction.
    pub fn prefetch_spi(&self) {
        prefetch(&self.spi);
    }

    /// Prefetches the parts behind pointers.
    pub fn prefetch(&self) {
        self.cipher.prefetch();
        self.arrivals.replay.prefetch();
    }

    pub fn spi(&self) -> Spi {
        self.spi
    }

    /// Returns the highest number received, 0 before the first.
    pub fn highest(&self) -> u64 {
        self.arrivals.replay.highest()
    }

    /// Returns the time of the last new authentic packet.
    pub fn heard(&self) -> Option<Instant> {
        self.arrivals.heard
    }

    /// Returns the increase of the highest number by the last packet.
    pub fn advance(&self) -> u64 {
        self.arrivals.advance
    }

    /// Returns the number of the last authentic packet.
    pub fn number(&self) -> u64 {
        self.arrivals.number
    }

    /// Opens a packet, and returns the fields of its datagram that selectors match. Returns `None`
    /// for a dummy, which a receiver discards "without indicating an error" (RFC 4303 section 2.6).
    /// `pair` has the addresses of the header to rebuild, outside tunnel mode.
    pub fn open(
        &mut self,
        packet: &mut Packet,
        header: Header,
        pair: Option<Pair>,
        scratch: &mut Scratch,
        now: Instant,
    ) -> Result<Option<Flow>, DropReason> {
        (self.share, self.arrivals.advance) = (Share::None, 0);
        if let Some(injectors) = &mut self.injectors
            && let Some(front) = Injected::read(packet.octets())
        {
            self.share = Share::Injected;
            let next_header = injectors.open(packet, front)?;
            let flow = whole(packet, next_header, pair)?;
            injectors.admit(&flow, packet.octets())?;
            return leave(packet).map(|()| Some(flow));
        }
        let number = match self.cipher.is_extended() {
            true => self.arrivals.replay.extended(header.seq),
            false => header.seq.into(),
        };
        self.arrivals.replay.check(number)?;
        let (next_header, without_checksum) = match &mut self.cipher {
            Cipher::Plain(plain) => {
                let text = plain.verify(packet.octets_mut(), header.spi, number)?;
                self.arrivals.take(number, now)?;
                (plain::unwrap(packet, text)?, false)
            }
            Cipher::Zoned(zoned) => {
                let mut overlay = match self.writers {
                    Some(_) => overlay::detach(packet)?,
                    None => None,
                };
                zoned.verify(packet.octets_mut(), header, scratch)?;
                if let Some((writers, overlay)) = self.writers.as_mut().zip(overlay.as_mut()) {
                    writers.open(overlay, packet.octets(), (header, zoned.layout()), scratch)?;
                }
                self.arrivals.take(number, now)?;
                let heeded = self.writers.as_ref().is_some_and(|writers| writers.heeded);
                if let Some(overlay) = overlay.filter(|_| heeded) {
                    overlay::apply(packet.octets_mut(), zoned.layout(), overlay.text())?;
                    self.share = Share::Written;
                }
                zoned.assemble(packet, scratch)?
            }
        };
        // "need not be well-formed" (RFC 4303 section 2.6).
        if next_header == next_header::NONE {
            return Ok(None);
        }
        let flow = whole(packet, next_header, pair)?;
        if without_checksum {
            leave(packet)?;
        }
        if let Some(injectors) = &mut self.injectors {
            injectors.hear(&flow, packet.octets());
        }
        Ok(Some(flow))
    }
}

/// Completes the datagram with its header, and returns the fields that selectors match.
fn whole(packet: &mut Packet, next_header: u8, pair: Option<Pair>) -> Result<Flow, DropReason> {
    match pair {
        Some(pair) => pair.dress(packet, next_header),
        None => inner(packet, next_header),
    }
}

/// Marks the transport checksum of a datagram as omitted. It is computed only where it is needed.
fn leave(packet: &mut Packet) -> Result<(), DropReason> {
    let header = ip::Header::parse(packet.octets()).map_err(|_| DropReason::InnerMalformed)?;
    checksum::place(&header).ok_or(DropReason::ChecksumNotRestorable)?;
    packet.checksum = Checksum::Left;
    Ok(())
}

/// Checks the next header against the datagram. Octets after the datagram's own length are padding
/// that hides its length (RFC 4303 section 2.7), and are removed.
fn inner(packet: &mut Packet, next_header: u8) -> Result<Flow, DropReason> {
    let header = ip::Header::parse(packet.octets()).map_err(|_| DropReason::InnerMalformed)?;
    let expected = match header.version() {
        4 => next_header::IPV4,
        _ => next_header::IPV6,
    };
    if next_header != expected {
        return Err(DropReason::NextHeaderMismatch);
    }
    let (flow, len) = (header.flow(), header.total_len());
    packet.cut(0, len);
    Ok(flow)
}
