//! The sealing direction of an SA: its sequence numbers, each given once, and its cipher.

use crate::drop::DropReason;
use crate::foreign::Make;
use crate::key::Unusable;
use crate::level::{Choice, Sealing};
use crate::packet::Packet;
use crate::padding::pad;
use crate::pair::Pair;
use crate::plain::Plain;
use crate::report::Traffic;
use crate::room::{PathMtu, Room};
use crate::scratch::Scratch;
use crate::zoned::Zoned;
use crypto::Secret;
use model::{
    Half, Instant, Keys, Level, LevelChoice, Path, Signal, Sizes, Spi, ZoneAgreement, ZoneId,
};
use wire::content::Content;
use wire::esp::{Header, next_header};
use wire::zoned::ONE_FIELD_LEN;

/// The number that says that half of the numbers are used (DESIGN section 3).
const REKEY_AT: u32 = 1 << 31;

/// How one direction of an SA protects packets. The SPI decides, never the packet.
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
                    key,
                },
                None,
            ) => Plain::new(*suite, *implicit_iv, key).map(Self::Plain),
            (Keys::Zoned(keys), Some(agreement)) => Zoned::new(agreement, keys).map(Self::Zoned),
            _ => Err(Unusable::Zones),
        }
    }

    /// From now on other ciphers than the agreed ones protect it.
    pub fn make_foreign(&mut self, make: Make<'_>) {
        match self {
            Self::Plain(plain) => *plain = Plain::foreign(make(ZoneId::DESIGNATED)),
            Self::Zoned(zoned) => zoned.make_foreign(make),
        }
    }
}

/// What became of a datagram.
pub(crate) struct Sealed {
    /// Whether its zones hid everything.
    pub opaque: bool,
    /// Octets of padding that hide its length.
    pub padding: usize,
    /// Whether this packet is the one after which new keys should be made.
    pub rekey_soon: bool,
    /// Whether it is the first that is encrypted because nothing is left of the grant not to.
    pub spent: bool,
}

/// The sealing direction of an SA.
pub(crate) struct Outbound {
    numbers: Numbers,
    pub cipher: Cipher,
    /// The SA beside, for datagrams that a fixed map does not fit.
    opaque: Option<Box<Self>>,
    /// The SA beside for what goes without encryption, if anything may.
    pub integrity: Option<Box<Sealing>>,
    choice: LevelChoice,
    /// Whether all is opaque from now on, whatever an operator wants.
    made_opaque: bool,
    /// How long datagrams are to look, if not as long as they are.
    pub sizes: Option<Sizes>,
    /// What its path has room for.
    pub room: Room,
    /// Octets that a writer may append to a packet.
    appended: usize,
    /// Octets of each datagram's IP header, if it is left behind.
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
            made_opaque: false,
            sizes: None,
            room: Room::default(),
            appended: half.writers.as_ref().map_or(0, |_| ONE_FIELD_LEN),
            bare: None,
            traffic: Traffic::default(),
        })
    }

    /// That of an SA which leaves the IP header behind, if it has a pair of addresses.
    pub fn between(self, pair: Option<Pair>) -> Self {
        let bare = pair.map(Pair::header_len);
        Self { bare, ..self }
    }

    /// Whether it leaves the IP header behind.
    pub const fn is_bare(&self) -> bool {
        self.bare.is_some()
    }

    /// With the sealing directions of the SAs beside: for datagrams that the map of this one does not fit,
    /// and for what goes without encryption.
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

    /// Number of the packet sealed last, 0 before the first.
    pub fn used(&self) -> u32 {
        self.numbers.used
    }

    /// Shows nothing of a datagram in any zone but the payload's from now on.
    pub fn make_opaque(&mut self) {
        self.made_opaque = true;
        self.choose(self.choice);
    }

    /// Chooses among the levels in this way from now on.
    pub fn choose(&mut self, choice: LevelChoice) {
        self.choice = choice;
        if let Cipher::Zoned(zoned) = &mut self.cipher {
            zoned.opaque = self.made_opaque || choice.signal == Signal::Only(Level::Opaque);
        }
    }

    /// Shows what this finds in the designated zone, if foreign ciphers protect it.
    pub fn recognise(&mut self, content: Box<dyn Content>) {
        if let Cipher::Zoned(zoned) = &mut self.cipher {
            zoned.recognise(content);
        }
    }

    /// Turns an inner datagram of IP version `version` into a packet.
    pub fn seal(
        &mut self,
        packet: &mut Packet,
        version: u8,
        scratch: &mut Scratch,
        now: Instant,
    ) -> Result<Sealed, DropReason> {
        let octets = packet.len();
        let level = self.level(packet.octets(), now);
        let size = self.sizes().map(|sizes| sizes.of(octets));
        let mut sealed = match (level, &mut self.integrity) {
            // Of what everybody reads nobody needs to guess how long it is.
            (Choice::InClear, Some(beside)) => {
                beside.outbound.protect(packet, None, version, scratch)?
            }
            _ => self.protect(packet, size, version, scratch)?,
        };
        sealed.spent = matches!(level, Choice::Spent { first: true });
        self.traffic.count(octets);
        Ok(sealed)
    }

    /// Whether a datagram goes without encryption. One that is to be opaque never does.
    fn level(&mut self, datagram: &[u8], now: Instant) -> Choice {
        match (&self.cipher, &mut self.integrity) {
            (Cipher::Zoned(zoned), Some(beside)) if !zoned.opaque => {
                beside.choose(datagram, self.choice, now)
            }
            _ => Choice::Encrypted,
        }
    }

    /// Seals what is to look like `size`, here or in the SA beside.
    fn protect(
        &mut self,
        packet: &mut Packet,
        size: Option<usize>,
        version: u8,
        scratch: &mut Scratch,
    ) -> Result<Sealed, DropReason> {
        let bare = self.is_bare();
        let (header, (opaque, padding)) = match &mut self.cipher {
            Cipher::Plain(plain) => {
                let next_header = leave_behind(packet, version, bare)?;
                let header = self.numbers.next()?;
                let padding = size.map_or(Ok(0), |size| pad(packet, plain.filling(size)))?;
                plain.seal(packet, header, next_header)?;
                (header, (false, padding))
            }
            Cipher::Zoned(zoned) => {
                // Only with its header a datagram says where the others end.
                let Some(divided) = zoned.divide(packet.octets(), bare) else {
                    let opaque = self.opaque.as_mut().ok_or(DropReason::NoSa)?;
                    return opaque.protect(packet, size, version, scratch);
                };
                let next_header = leave_behind(packet, version, bare)?;
                let header = self.numbers.next()?;
                let sealed = zoned.seal(packet, divided, size, header, next_header, scratch)?;
                (header, sealed)
            }
        };
        Ok(Sealed {
            opaque,
            padding,
            rekey_soon: header.seq == REKEY_AT,
            spent: false,
        })
    }

    /// Makes a packet that carries nothing and looks like the shortest with a datagram. `false` if the
    /// numbers are to last for those that have one, or lengths tell dummies from them.
    pub fn dummy(
        &mut self,
        packet: &mut Packet,
        scratch: &mut Scratch,
    ) -> Result<bool, DropReason> {
        match self.sizes() {
            Some(sizes) => self.protect_nothing(packet, sizes.of(0), scratch),
            None => Ok(false),
        }
    }

    fn protect_nothing(
        &mut self,
        packet: &mut Packet,
        size: usize,
        scratch: &mut Scratch,
    ) -> Result<bool, DropReason> {
        match (&self.cipher, &mut self.opaque) {
            (Cipher::Zoned(zoned), Some(opaque)) if zoned.opaque => {
                return opaque.protect_nothing(packet, size, scratch);
            }
            _ if self.numbers.used >= REKEY_AT - 1 => return Ok(false),
            (Cipher::Zoned(zoned), _) => {
                zoned.dummy(packet, size, self.numbers.next()?, scratch)?;
            }
            (Cipher::Plain(plain), _) => {
                packet.set_len(0);
                pad(packet, plain.filling(size))?;
                plain.seal(packet, self.numbers.next()?, next_header::NONE)?;
            }
        }
        Ok(true)
    }

    /// What datagrams look like where no longer ones get through.
    fn sizes(&self) -> Option<Sizes> {
        let longest = self.room.longest();
        let within = |sizes: Sizes| longest.map_or(sizes, |longest| sizes.within(longest));
        self.sizes.map(within)
    }

    /// Knows this of its path from now on. Padding makes no packet longer than gets through.
    pub fn give_room(&mut self, mtu: PathMtu, path: Path) {
        let longest = |packet| match &self.cipher {
            Cipher::Plain(plain) => plain.longest(packet),
            Cipher::Zoned(zoned) => zoned.longest(packet.saturating_sub(self.appended)),
        };
        let left_behind = self.bare.unwrap_or_default();
        self.room = Room::new(mtu, path, |packet| longest(packet) + left_behind);
    }

    /// What TCP segments have to fit, if those that begin a connection are to say so: the tunnel's
    /// device, with room for what a writer appends, and what is known of the path.
    pub fn segments_fit(&self, clamp: Option<u16>) -> Option<u16> {
        let longest = self.room.longest().unwrap_or(u16::MAX);
        let appended = self.appended as u16;
        clamp.map(|mtu| mtu.saturating_sub(appended).min(longest))
    }
}

/// Makes of a datagram what is sealed of it, without its header if that is `bare`, and says what that is.
fn leave_behind(packet: &mut Packet, version: u8, bare: bool) -> Result<u8, DropReason> {
    match version {
        _ if bare => Pair::strip(packet),
        4 => Ok(next_header::IPV4),
        _ => Ok(next_header::IPV6),
    }
}

/// The numbers of one SA's packets.
struct Numbers {
    spi: Spi,
    /// That of the packet before, 0 before the first.
    used: u32,
}

impl Numbers {
    /// The header of the next packet. Its number is spent whether or not a packet is sealed with it, and
    /// after the last there is none: a second round would repeat nonces (RFC 4303 section 3.3.3).
    fn next(&mut self) -> Result<Header, DropReason> {
        let seq = self.used.checked_add(1);
        self.used = seq.ok_or(DropReason::SequenceExhausted)?;
        Ok(Header {
            spi: self.spi,
            seq: self.used,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Suite;

    const DATAGRAM: [u8; 20] = [
        0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];

    fn outbound(used: u32) -> Outbound {
        let half = Half {
            spi: Spi(0x1000),
            keys: Keys::Plain {
                suite: Suite::Aes128Gcm16,
                implicit_iv: false,
                key: Secret::new(vec![7; 20]),
            },
            writers: None,
        };
        let mut outbound = Outbound::new(&half, None).unwrap();
        outbound.numbers.used = used;
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

    #[test]
    fn after_the_last_number_nothing_is_sealed() {
        let mut outbound = outbound(u32::MAX - 1);
        assert_eq!(seal(&mut outbound), Ok((u32::MAX, false)));
        for _ in 0..3 {
            assert_eq!(seal(&mut outbound), Err(DropReason::SequenceExhausted));
        }
        assert_eq!(outbound.used(), u32::MAX);
    }

    /// The other half is for datagrams, the first of which asks for new keys: dummies never use numbers up
    /// before there are any.
    #[test]
    fn dummies_use_no_more_than_half_of_the_numbers() {
        let dummy = |used: u32, sizes: Option<Sizes>| {
            let mut outbound = outbound(used);
            outbound.sizes = sizes;
            let mut packet = Packet::with_capacity(2000);
            let made = outbound.dummy(&mut packet, &mut Scratch::new());
            made.map(|made| (made, outbound.used()))
        };
        let sizes = Some(Sizes::one(1000));
        assert_eq!(dummy(0, sizes), Ok((true, 1)));
        assert_eq!(dummy(REKEY_AT - 2, sizes), Ok((true, REKEY_AT - 1)));
        assert_eq!(dummy(REKEY_AT - 1, sizes), Ok((false, REKEY_AT - 1)));
        assert_eq!(dummy(u32::MAX, sizes), Ok((false, u32::MAX)));
        assert_eq!(dummy(0, None), Ok((false, 0)));
    }
}
