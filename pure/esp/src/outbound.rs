//! The sealing direction of an SA: its sequence numbers, each used once, and its cipher.

use crate::drop::DropReason;
use crate::foreign::Make;
use crate::key::Unusable;
use crate::level::{Choice, Sealing};
use crate::link::Link;
use crate::packet::Packet;
use crate::padding::pad;
use crate::pair::Pair;
use crate::plain::Plain;
use crate::report::Traffic;
use crate::room::{PathMtu, Room, packet_len};
use crate::scratch::Scratch;
use crate::zoned::Zoned;
use crypto::Secret;
use model::{
    Df, Half, Instant, Keys, Level, LevelChoice, Path, Signal, Sizes, Spi, ZoneAgreement, ZoneId,
};
use wire::content::Content;
use wire::esp::{Header, next_header};
use wire::probe::{self, Kind, Probe};
use wire::zoned::ONE_FIELD_LEN;

/// The last sequence number of an SA, without and with extended numbers. The latter is not the last
/// 64-bit number, but the last for which a key is suitable: "MUST generate a fresh key before
/// encrypting 2^64 blocks" (RFC 4106 section 10). AES becomes distinguishable from a random
/// function long before that: 2^41 packets of 1,500 octets are 2^48 blocks, with a probability of
/// one in 2^33.
const LAST: u64 = u32::MAX as u64;
const LAST_EXTENDED: u64 = (1 << 41) - 1;

/// The last packets of an SA that a router's report may quote: a round trip at 10 Gb/s.
const RECENT: u64 = 1 << 20;

/// The protection of one direction of an SA. The SPI selects it, never the packet.
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
                    esn,
                    key,
                },
                None,
            ) => {
                let plain = Plain::new(*suite, *implicit_iv, key)?;
                Ok(Self::Plain(plain.extended(*esn)))
            }
            (Keys::Zoned(keys), Some(agreement)) => Zoned::new(agreement, keys).map(Self::Zoned),
            _ => Err(Unusable::Zones),
        }
    }

    /// Prefetches the parts behind pointers.
    pub fn prefetch(&self) {
        match self {
            Self::Plain(plain) => plain.prefetch(),
            Self::Zoned(zoned) => zoned.prefetch(),
        }
    }

    /// Returns true if sequence numbers are extended. Those of composite SAs never are: a node that
    /// sees only some of the packets could not infer the upper half.
    pub const fn is_extended(&self) -> bool {
        match self {
            Self::Plain(plain) => plain.is_extended(),
            Self::Zoned(_) => false,
        }
    }

    /// Returns the last sequence number.
    const fn last_number(&self) -> u64 {
        match self.is_extended() {
            true => LAST_EXTENDED,
            false => LAST,
        }
    }

    /// Returns the sequence number at which half of the numbers are used (DESIGN section 3).
    const fn rekey_at(&self) -> u64 {
        self.last_number() / 2 + 1
    }

    /// Replaces the agreed ciphers by foreign ones.
    pub fn make_foreign(&mut self, make: Make<'_>) {
        match self {
            Self::Plain(plain) => *plain = Plain::foreign(make(ZoneId::DESIGNATED)),
            Self::Zoned(zoned) => zoned.make_foreign(make),
        }
    }
}

/// The result of sealing a datagram.
pub(crate) struct Sealed {
    /// True if the whole datagram is in the payload zone.
    pub opaque: bool,
    /// Padding that hides the length, in octets.
    pub padding: usize,
    /// True for the one packet after which the SA should be rekeyed.
    pub rekey_soon: bool,
    /// True for the first packet that is encrypted because the grant is used up.
    pub spent: bool,
}

/// The sealing direction of an SA.
pub(crate) struct Outbound {
    numbers: Numbers,
    pub cipher: Cipher,
    /// The companion SA for datagrams that a fixed map does not fit.
    opaque: Option<Box<Self>>,
    /// The companion SA for unencrypted packets, if a grant allows any.
    pub integrity: Option<Box<Sealing>>,
    choice: LevelChoice,
    /// The quality of the path of inbound packets.
    link: Link,
    /// True if all packets are opaque from now on, whatever level an operator selects.
    made_opaque: bool,
    /// The lengths that datagrams are padded to; `None` disables padding.
    pub sizes: Option<Sizes>,
    /// The limits of the path.
    pub room: Room,
    /// Octets that a writer may append to a packet.
    appended: usize,
    /// Length of the IP header that is not sent, outside tunnel mode.
    bare: Option<usize>,
    pub traffic: Traffic,
}

impl Outbound {
    pub fn new(half: &Half<Secret>, agreement: Option<&ZoneAgreement>) -> Result<Self, Unusable> {
        Ok(Self {
            numbers: Numbers {
                spi: half.spi,
                used: 0,
            },
            cipher: Cipher::new(&half.keys, agreement)?,
            opaque: None,
            integrity: None,
            choice: LevelChoice::default(),
            link: Link::default(),
            made_opaque: false,
            sizes: None,
            room: Room::default(),
            appended: half.writers.as_ref().map_or(0, |_| ONE_FIELD_LEN),
            bare: None,
            traffic: Traffic::default(),
        })
    }

    /// Sets the mode: with a pair of addresses the IP header is not sent.
    pub fn between(self, pair: Option<Pair>) -> Self {
        let bare = pair.map(Pair::header_len);
        Self { bare, ..self }
    }

    /// Returns true for a composite SA.
    pub const fn is_zoned(&self) -> bool {
        matches!(self.cipher, Cipher::Zoned(_))
    }

    /// Returns true if the IP header is not sent.
    pub const fn is_bare(&self) -> bool {
        self.bare.is_some()
    }

    /// Adds the sealing directions of the companion SAs: the opaque one, for datagrams that the
    /// fixed map does not fit, and the one for unencrypted packets.
    pub fn with(self, opaque: Option<Self>, integrity: Option<Sealing>) -> Self {
        Self {
            opaque: opaque.map(Box::new),
            integrity: integrity.map(Box::new),
            ..self
        }
    }

    pub fn spi(&self) -> Spi {
        self.numbers.spi
    }

    /// Returns the number of the packet sealed last, 0 before the first.
    pub fn used(&self) -> u64 {
        self.numbers.used
    }

    /// Returns true if one of the last packets, here or of a companion SA, had this header.
    pub fn has_sent(&self, header: Header) -> bool {
        let Numbers { spi, used } = self.numbers;
        let age = (used as u32).wrapping_sub(header.seq);
        let integrity = self.integrity.iter().map(|beside| &beside.outbound);
        let mut besides = self.opaque.iter().map(Box::as_ref).chain(integrity);
        spi == header.spi && u64::from(age) < RECENT.min(used)
            || besides.any(|beside| beside.has_sent(header))
    }

    /// Skips all numbers up to this one.
    pub fn skip_to(&mut self, number: u64) {
        self.numbers.used = self.numbers.used.max(number);
    }

    /// Makes all packets opaque from now on.
    pub fn make_opaque(&mut self) {
        self.made_opaque = true;
        self.choose(self.choice);
    }

    /// Sets the level choice.
    pub fn choose(&mut self, choice: LevelChoice) {
        self.choice = choice;
        if let Cipher::Zoned(zoned) = &mut self.cipher {
            let wanted = match choice.signal {
                Signal::Auto => choice.opaque_below > 0 && self.link.good,
                Signal::Only(level) => level == Level::Opaque,
            };
            zoned.opaque = self.made_opaque || wanted;
        }
    }

    /// Updates the link quality: the highest inbound number has grown by `advance`.
    pub fn judge(&mut self, advance: u64) {
        if self.choice.opaque_below > 0 && self.link.advance(advance, self.choice.opaque_below) {
            self.choose(self.choice);
        }
    }

    /// Returns the link quality, if it affects the level.
    pub fn link(&self) -> Option<Link> {
        (self.is_zoned() && self.choice.opaque_below > 0).then_some(self.link)
    }

    /// Adds a recognised header to the designated zone, if foreign ciphers protect it.
    pub fn recognise(&mut self, content: Box<dyn Content>) {
        if let Cipher::Zoned(zoned) = &mut self.cipher {
            zoned.recognise(content);
        }
    }

    /// Seals an inner datagram of IP version `version`.
    pub fn seal(
        &mut self,
        packet: &mut Packet,
        version: u8,
        scratch: &mut Scratch,
        now: Instant,
    ) -> Result<Sealed, DropReason> {
        let octets = packet.len();
        let level = self.level(packet.octets(), now);
        let size = self.sizes().map(|sizes| sizes.padded(octets));
        let mut sealed = match (level, &mut self.integrity) {
            // The length of an unencrypted datagram is visible anyway.
            (Choice::InClear, Some(beside)) => {
                beside.outbound.protect(packet, None, version, scratch)?
            }
            _ => self.protect(packet, size, version, scratch)?,
        };
        sealed.spent = matches!(level, Choice::Spent { first: true });
        self.traffic.count(octets);
        Ok(sealed)
    }

    /// Decides whether a datagram is sent unencrypted. Opaque packets never are.
    fn level(&mut self, datagram: &[u8], now: Instant) -> Choice {
        match (&self.cipher, &mut self.integrity) {
            (Cipher::Zoned(zoned), Some(beside)) if !zoned.opaque => {
                beside.choose(datagram, self.choice, now)
            }
            _ => Choice::Encrypted,
        }
    }

    /// Seals a datagram, padded to look like `size`, here or in the companion SA.
    fn protect(
        &mut self,
        packet: &mut Packet,
        size: Option<usize>,
        version: u8,
        scratch: &mut Scratch,
    ) -> Result<Sealed, DropReason> {
        let bare = self.is_bare();
        let (last, rekey_at) = (self.cipher.last_number(), self.cipher.rekey_at());
        let (number, (opaque, padding)) = match &mut self.cipher {
            Cipher::Plain(plain) => {
                packet.make_checksum()?;
                let next_header = leave_behind(packet, version, bare)?;
                let number = self.numbers.next(last)?;
                let padding = size.map_or(Ok(0), |size| pad(packet, plain.filling(size)))?;
                plain.seal(packet, self.numbers.spi, number, next_header)?;
                (number, (false, padding))
            }
            Cipher::Zoned(zoned) => {
                // The extents of the headers are only known while the IP header is there.
                let Some(divided) = zoned.divide(packet, bare) else {
                    let opaque = self.opaque.as_mut().ok_or(DropReason::NoSa)?;
                    return opaque.protect(packet, size, version, scratch);
                };
                // The checksum also needs the IP header.
                if divided.has_checksum() {
                    packet.make_checksum()?;
                }
                let next_header = leave_behind(packet, version, bare)?;
                let number = self.numbers.next(last)?;
                let header = self.numbers.header();
                let sealed = zoned.seal(packet, divided, size, header, next_header, scratch)?;
                (number, sealed)
            }
        };
        Ok(Sealed {
            opaque,
            padding,
            rekey_soon: number == rekey_at,
            spent: false,
        })
    }

    /// Creates a dummy that looks like the shortest packet with a datagram. Returns `false` if the
    /// remaining numbers are reserved for datagrams, or if the lengths of packets would give
    /// dummies away.
    pub fn dummy(
        &mut self,
        packet: &mut Packet,
        scratch: &mut Scratch,
    ) -> Result<bool, DropReason> {
        match self.sizes() {
            Some(sizes) => self.protect_nothing(packet, sizes.padded(0), scratch),
            None => Ok(false),
        }
    }

    fn protect_nothing(
        &mut self,
        packet: &mut Packet,
        size: usize,
        scratch: &mut Scratch,
    ) -> Result<bool, DropReason> {
        let last = self.cipher.rekey_at() - 1;
        match (&mut self.cipher, &mut self.opaque) {
            (Cipher::Zoned(zoned), Some(opaque)) if zoned.opaque => {
                return opaque.protect_nothing(packet, size, scratch);
            }
            _ if self.numbers.used >= last => return Ok(false),
            (Cipher::Zoned(zoned), _) => {
                self.numbers.next(last)?;
                zoned.dummy(packet, size, self.numbers.header(), scratch)?;
            }
            (Cipher::Plain(plain), _) => {
                packet.set_len(0);
                pad(packet, plain.filling(size))?;
                let number = self.numbers.next(last)?;
                plain.seal(packet, self.numbers.spi, number, next_header::NONE)?;
            }
        }
        Ok(true)
    }

    /// Creates the notice that the next packet is a probe.
    pub fn notice(
        &mut self,
        packet: &mut Packet,
        path: Path,
        scratch: &mut Scratch,
    ) -> Result<bool, DropReason> {
        let probing = match (&self.cipher, &self.opaque) {
            (Cipher::Zoned(zoned), Some(opaque)) if zoned.opaque => opaque.used(),
            _ => self.used(),
        };
        self.probe(packet, Probe::notice(probing + 2), path, scratch)
    }

    /// Creates a probe of the path's MTU, as long as the probe says, or one of the others, which
    /// are as short as possible. Returns `false` if the remaining numbers are reserved for
    /// datagrams, or if the packet would have no room for it.
    pub fn probe(
        &mut self,
        packet: &mut Packet,
        probe: Probe,
        path: Path,
        scratch: &mut Scratch,
    ) -> Result<bool, DropReason> {
        let last = self.cipher.rekey_at() - 1;
        let body = probe.octets();
        let octets = match probe.kind {
            Kind::Probe => Some(packet_len(probe.octets, path)),
            Kind::Echo | Kind::Notice | Kind::Ping | Kind::Answer => None,
        };
        match (&mut self.cipher, &mut self.opaque) {
            (Cipher::Zoned(zoned), Some(opaque)) if zoned.opaque => {
                return opaque.probe(packet, probe, path, scratch);
            }
            _ if self.numbers.used >= last => return Ok(false),
            (Cipher::Zoned(zoned), _) => {
                if !zoned.lay_out_probe(octets) {
                    return Ok(false);
                }
                self.numbers.next(last)?;
                zoned.seal_probe(packet, &body, self.numbers.header(), scratch)?;
            }
            (Cipher::Plain(plain), _) => {
                let len = octets.map_or(plain.filling(probe::LEN), |octets| plain.longest(octets));
                if len < probe::LEN {
                    return Ok(false);
                }
                packet.set_len(0);
                pad(packet, len)?;
                packet.octets_mut()[..probe::LEN].copy_from_slice(&body);
                let number = self.numbers.next(last)?;
                plain.seal(packet, self.numbers.spi, number, next_header::NONE)?;
            }
        }
        Ok(true)
    }

    /// Returns the treatment of fragmentation of the packet of a datagram of `octets` octets.
    pub fn df(&self, octets: usize) -> Df {
        let padded = self.sizes().map_or(octets, |sizes| sizes.padded(octets));
        self.room.df(padded.max(octets))
    }

    /// Returns the padding sizes, limited to the longest datagram that fits the path.
    fn sizes(&self) -> Option<Sizes> {
        let longest = self.room.padded();
        let within = |sizes: Sizes| longest.map_or(sizes, |longest| sizes.within(longest));
        self.sizes.map(within)
    }

    /// Sets the path MTU. Padding then makes no packet longer than that.
    pub fn give_room(&mut self, mtu: PathMtu, path: Path) {
        let longest = |packet| match &self.cipher {
            Cipher::Plain(plain) => plain.longest(packet),
            Cipher::Zoned(zoned) => zoned.longest(packet.saturating_sub(self.appended)),
        };
        let left_behind = self.bare.unwrap_or_default();
        self.room = Room::new(mtu, path, |packet| longest(packet) + left_behind);
    }

    /// Returns the MTU for TCP segment clamping, if it is on: that of the tunnel's device less the
    /// octets of an overlay, or that of the path if smaller.
    pub fn segments_fit(&self, clamp: Option<u16>) -> Option<u16> {
        let longest = self.room.segments().unwrap_or(u16::MAX);
        let appended = self.appended as u16;
        clamp.map(|mtu| mtu.saturating_sub(appended).min(longest))
    }
}

/// Prepares a datagram for sealing, without its IP header if `bare`, and returns the next header.
fn leave_behind(packet: &mut Packet, version: u8, bare: bool) -> Result<u8, DropReason> {
    match version {
        _ if bare => Pair::strip(packet),
        4 => Ok(next_header::IPV4),
        _ => Ok(next_header::IPV6),
    }
}

/// The sequence numbers of one SA.
struct Numbers {
    spi: Spi,
    /// The last number used, 0 before the first.
    used: u64,
}

impl Numbers {
    /// Returns the next number, which is spent even if no packet is sealed with it. There is none
    /// after the last: a second cycle would repeat nonces (RFC 4303 section 3.3.3).
    fn next(&mut self, last: u64) -> Result<u64, DropReason> {
        if self.used >= last {
            return Err(DropReason::SequenceExhausted);
        }
        self.used += 1;
        Ok(self.used)
    }

    /// Returns the header for the last number used.
    const fn header(&self) -> Header {
        Header::new(self.spi, self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::Foreign;
    use crypto::BadIcv;
    use model::{Frame, Suite};

    const DATAGRAM: [u8; 20] = [
        0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];

    fn outbound(used: u64) -> Outbound {
        counting(false, used)
    }

    fn counting(esn: bool, used: u64) -> Outbound {
        let half = Half {
            spi: Spi(0x1000),
            keys: Keys::Plain {
                suite: Suite::Aes128Gcm16.into(),
                implicit_iv: false,
                esn,
                key: Secret::new(vec![7; 20]),
            },
            writers: None,
            injectors: None,
        };
        let mut outbound = Outbound::new(&half, None).unwrap();
        outbound.skip_to(used);
        outbound
    }

    fn seal(outbound: &mut Outbound) -> Result<(u32, bool), DropReason> {
        let mut packet = Packet::from_slice(&DATAGRAM);
        let now = Instant::ZERO;
        let sealed = outbound.seal(&mut packet, 4, &mut Scratch::new(), now)?;
        let header = Header::parse(packet.octets()).unwrap();
        Ok((header.seq, sealed.rekey_soon))
    }

    #[test]
    fn the_first_number_is_one() {
        assert_eq!(seal(&mut outbound(0)), Ok((1, false)));
    }

    #[test]
    fn new_keys_are_asked_for_once_at_half_of_the_numbers() {
        let mut outbound = outbound((1 << 31) - 2);
        assert_eq!(seal(&mut outbound), Ok(((1 << 31) - 1, false)));
        assert_eq!(seal(&mut outbound), Ok((1 << 31, true)));
        assert_eq!(seal(&mut outbound), Ok(((1 << 31) + 1, false)));
    }

    // Weakness: 75
    #[test]
    fn after_the_last_number_nothing_is_sealed() {
        let mut outbound = outbound(LAST - 1);
        assert_eq!(seal(&mut outbound), Ok((u32::MAX, false)));
        for _ in 0..3 {
            assert_eq!(seal(&mut outbound), Err(DropReason::SequenceExhausted));
        }
        assert_eq!(outbound.used(), LAST);
    }

    #[test]
    fn extended_numbers_go_on_after_the_last_that_is_on_the_wire() {
        let mut outbound = counting(true, LAST - 1);
        for seq in [u32::MAX, 0, 1] {
            assert_eq!(seal(&mut outbound), Ok((seq, false)));
        }
        assert_eq!(outbound.used(), (1 << 32) + 1);
    }

    #[test]
    fn new_keys_are_asked_for_once_at_half_of_the_numbers_that_a_key_is_good_for() {
        let mut outbound = counting(true, (1 << 31) - 1);
        assert_eq!(seal(&mut outbound), Ok((1 << 31, false)));
        outbound.skip_to((1 << 40) - 2);
        for rekey_soon in [false, true, false] {
            assert_eq!(seal(&mut outbound).unwrap().1, rekey_soon);
        }
        outbound.skip_to(LAST_EXTENDED - 1);
        assert_eq!(seal(&mut outbound), Ok((u32::MAX, false)));
        assert_eq!(seal(&mut outbound), Err(DropReason::SequenceExhausted));
    }

    /// RFC 4303 section 2.2: a receiver too takes what is far behind for no packet of the SA.
    #[test]
    fn a_packet_was_sent_if_its_number_was_given_lately() {
        let has_sent = |used: u64, seq: u32| {
            let spi = Spi(0x1000);
            outbound(used).has_sent(Header { spi, seq })
        };
        assert!(!has_sent(0, 0) && !has_sent(0, 1) && !has_sent(0, u32::MAX));
        assert!(has_sent(7, 1) && has_sent(7, 7));
        assert!(!has_sent(7, 0) && !has_sent(7, 8));
        let used = 1 << 30;
        assert!(has_sent(used, (used - RECENT + 1) as u32));
        assert!(!has_sent(used, (used - RECENT) as u32));
        let (spi, seq) = (Spi(0x1001), 7);
        assert!(!outbound(7).has_sent(Header { spi, seq }));
        // Of extended numbers only the lower half is on the wire.
        let extended = counting(true, (1 << 32) + 5);
        for (seq, sent) in [(5, true), (u32::MAX, true), (6, false)] {
            let spi = Spi(0x1000);
            assert_eq!(extended.has_sent(Header { spi, seq }), sent, "{seq}");
        }
    }

    /// A repeated number would repeat a nonce.
    #[test]
    fn skipped_numbers_are_never_given_and_nor_are_given_ones() {
        let mut outbound = outbound(100);
        outbound.skip_to(7);
        assert_eq!(seal(&mut outbound), Ok((101, false)));
        outbound.skip_to(200);
        assert_eq!(seal(&mut outbound), Ok((201, false)));
    }

    /// Foreign ciphers take 32-bit numbers.
    #[test]
    fn a_foreign_cipher_has_no_extended_numbers() {
        struct Nothing;
        impl Foreign for Nothing {
            fn frame(&self) -> Frame {
                Frame {
                    iv_len: 0,
                    block_len: 1,
                    icv_len: 0,
                }
            }
            fn seal(&self, _: u32, _: &[u8], _: &mut [u8], _: &mut [u8], _: &mut [u8]) {}
            fn open(
                &self,
                _: u32,
                _: &[u8],
                _: &[u8],
                _: &mut [u8],
                _: &[u8],
            ) -> Result<(), BadIcv> {
                Ok(())
            }
        }
        let mut outbound = counting(true, LAST - 1);
        outbound.cipher.make_foreign(&|_| Box::new(Nothing));
        assert_eq!(seal(&mut outbound), Ok((u32::MAX, false)));
        assert_eq!(seal(&mut outbound), Err(DropReason::SequenceExhausted));
    }

    /// The other half is for datagrams, whose first one triggers a rekey. Dummies never use numbers
    /// up before that.
    #[test]
    fn dummies_use_no_more_than_half_of_the_numbers() {
        let dummy = |used: u64, sizes: Option<Sizes>| {
            let mut outbound = outbound(used);
            outbound.sizes = sizes;
            let mut packet = Packet::with_capacity(2000);
            let made = outbound.dummy(&mut packet, &mut Scratch::new());
            made.map(|made| (made, outbound.used()))
        };
        let sizes = Some(Sizes::one(1000));
        assert_eq!(dummy(0, sizes), Ok((true, 1)));
        let rekey_at = 1 << 31;
        assert_eq!(dummy(rekey_at - 2, sizes), Ok((true, rekey_at - 1)));
        assert_eq!(dummy(rekey_at - 1, sizes), Ok((false, rekey_at - 1)));
        assert_eq!(dummy(LAST, sizes), Ok((false, LAST)));
        assert_eq!(dummy(0, None), Ok((false, 0)));
    }
}
