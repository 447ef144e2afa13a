//! The sealing direction of an SA: its sequence numbers, each given once, and its cipher.

use crate::drop::DropReason;
use crate::key::Unusable;
use crate::packet::Packet;
use crate::padding::pad;
use crate::pair::Pair;
use crate::plain::Plain;
use crate::report::Traffic;
use crate::room::{PathMtu, Room};
use crate::scratch::Scratch;
use crate::zoned::Zoned;
use crypto::Secret;
use model::{Half, Keys, Path, Sizes, Spi, ZoneAgreement};
use wire::esp::{Header, next_header};

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
}

/// What became of a datagram.
pub(crate) struct Sealed {
    /// Whether its zones hid everything.
    pub opaque: bool,
    /// Octets of padding that hide its length.
    pub padding: usize,
    /// Whether this packet is the one after which new keys should be made.
    pub rekey_soon: bool,
}

/// The sealing direction of an SA.
pub(crate) struct Outbound {
    spi: Spi,
    cipher: Cipher,
    /// Number of the packet before, 0 before the first.
    used: u32,
    /// How long datagrams are to look, if not as long as they are.
    pub sizes: Option<Sizes>,
    /// What its path has room for.
    pub room: Room,
    pub traffic: Traffic,
}

impl Outbound {
    pub fn new(half: &Half<Secret>, agreement: Option<&ZoneAgreement>) -> Result<Self, Unusable> {
        Ok(Self {
            spi: half.spi,
            cipher: Cipher::new(&half.keys, agreement)?,
            used: 0,
            sizes: None,
            room: Room::default(),
            traffic: Traffic::default(),
        })
    }

    pub fn spi(&self) -> Spi {
        self.spi
    }

    /// Number of the packet sealed last, 0 before the first.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Shows nothing of a datagram in any zone but the payload's from now on.
    pub fn make_opaque(&mut self) {
        if let Cipher::Zoned(zoned) = &mut self.cipher {
            zoned.opaque = true;
        }
    }

    /// Turns an inner datagram of IP version `version` into a packet. `bare`: without its header.
    pub fn seal(
        &mut self,
        packet: &mut Packet,
        (version, bare): (u8, bool),
        scratch: &mut Scratch,
    ) -> Result<Sealed, DropReason> {
        let octets = packet.len();
        let next_header = match version {
            _ if bare => Pair::strip(packet)?,
            4 => next_header::IPV4,
            _ => next_header::IPV6,
        };
        let seq = self.next_seq()?;
        let header = Header { spi: self.spi, seq };
        let size = self.sizes().map(|sizes| sizes.of(packet.len()));
        let (opaque, padding) = match &mut self.cipher {
            Cipher::Plain(plain) => {
                let padding = size.map_or(Ok(0), |size| pad(packet, plain.filling(size)))?;
                plain.seal(packet, header, next_header)?;
                (false, padding)
            }
            Cipher::Zoned(zoned) => zoned.seal(packet, size, header, next_header, scratch)?,
        };
        self.traffic.count(octets);
        Ok(Sealed {
            opaque,
            padding,
            rekey_soon: seq == REKEY_AT,
        })
    }

    /// Makes a packet that carries nothing and looks like the shortest with a datagram. `false` if the
    /// numbers are to last for those that have one, or lengths tell dummies from them.
    pub fn dummy(
        &mut self,
        packet: &mut Packet,
        scratch: &mut Scratch,
    ) -> Result<bool, DropReason> {
        let Some(sizes) = self.sizes().filter(|_| self.used < REKEY_AT - 1) else {
            return Ok(false);
        };
        let (size, seq) = (sizes.of(0), self.next_seq()?);
        let header = Header { spi: self.spi, seq };
        match &self.cipher {
            Cipher::Plain(plain) => {
                packet.set_len(0);
                pad(packet, plain.filling(size))?;
                plain.seal(packet, header, next_header::NONE)?;
            }
            Cipher::Zoned(zoned) => zoned.dummy(packet, size, header, scratch)?,
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
        self.room = Room::new(mtu, path, |packet| match &self.cipher {
            Cipher::Plain(plain) => plain.longest(packet),
            Cipher::Zoned(zoned) => zoned.longest(packet),
        });
    }

    /// The next number. It is spent whether or not a packet is sealed with it, and after the last
    /// there is none: a second round would repeat nonces (RFC 4303 section 3.3.3).
    fn next_seq(&mut self) -> Result<u32, DropReason> {
        self.used = self
            .used
            .checked_add(1)
            .ok_or(DropReason::SequenceExhausted)?;
        Ok(self.used)
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
        };
        let mut outbound = Outbound::new(&half, None).unwrap();
        outbound.used = used;
        outbound
    }

    fn seal(outbound: &mut Outbound) -> Result<(u32, bool), DropReason> {
        let mut packet = Packet::from_slice(&DATAGRAM);
        let sealed = outbound.seal(&mut packet, (4, false), &mut Scratch::new())?;
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
