//! The opening direction of an SA: check, authenticate, check again and move, put together. The
//! order is invariant 2 of the design; every step that fails ends in a drop of its own name.

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

/// What a licensed node had to do with a packet that came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Nothing: it is what the peer has sealed.
    None,
    /// It has changed it.
    Written,
    /// It has made it.
    Injected,
}

/// Which packets came.
struct Arrivals {
    replay: Replay,
    heard: Option<Instant>,
    /// By how much the last packet's number was higher than all before.
    advance: u64,
}

impl Arrivals {
    /// An authentic packet moves the window, unless its number was taken since it was checked.
    fn take(&mut self, number: u64, now: Instant) -> Result<(), DropReason> {
        let before = self.replay.highest();
        self.replay.take(number)?;
        self.advance = self.replay.highest() - before;
        self.heard = Some(now);
        Ok(())
    }
}

/// The opening direction of an SA. What few have is elsewhere: a packet of one among many SAs waits for all that is
/// here.
pub(crate) struct Inbound {
    spi: Spi,
    pub cipher: Cipher,
    arrivals: Arrivals,
    /// If anybody may write.
    pub writers: Option<Box<Writers>>,
    /// If anybody may inject.
    pub injectors: Option<Box<Injectors>>,
    /// What somebody on the way had to do with it.
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
            },
            writers: half.writers.as_ref().map(Writers::new).map(Box::new),
            injectors: half.injectors.as_ref().map(Injectors::new).map(Box::new),
            share: Share::None,
            traffic: Traffic::default(),
        })
    }

    /// Asks memory for what says which one it is.
    pub fn prefetch_spi(&self) {
        prefetch(&self.spi);
    }

    /// Asks memory for what it points to.
    pub fn prefetch(&self) {
        self.cipher.prefetch();
        self.arrivals.replay.prefetch();
    }

    pub fn spi(&self) -> Spi {
        self.spi
    }

    /// The highest number seen, 0 before the first.
    pub fn highest(&self) -> u64 {
        self.arrivals.replay.highest()
    }

    /// When the last authentic packet came that was new.
    pub fn heard(&self) -> Option<Instant> {
        self.arrivals.heard
    }

    /// By how much the last packet's number was higher than all before.
    pub fn advance(&self) -> u64 {
        self.arrivals.advance
    }

    /// Turns a packet into the datagram it protects, and says what selectors ask about that. `None` if
    /// it is a dummy, which is to be discarded "without indicating an error" (RFC 4303 section 2.6).
    /// `pair`: whose header it came without.
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

/// The datagram with its header, and what selectors ask about it.
fn whole(packet: &mut Packet, next_header: u8, pair: Option<Pair>) -> Result<Flow, DropReason> {
    match pair {
        Some(pair) => pair.dress(packet, next_header),
        None => inner(packet, next_header),
    }
}

/// A datagram that came without its transport checksum is to have one: whoever needs it makes it.
fn leave(packet: &mut Packet) -> Result<(), DropReason> {
    let header = ip::Header::parse(packet.octets()).map_err(|_| DropReason::InnerMalformed)?;
    checksum::place(&header).ok_or(DropReason::ChecksumNotRestorable)?;
    packet.checksum = Checksum::Left;
    Ok(())
}

/// Holds the next header against the datagram. Octets after the datagram's own length are padding
/// that hides its length (RFC 4303 section 2.7) and go.
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
