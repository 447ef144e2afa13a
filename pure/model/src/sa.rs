//! Parameters of security associations, as `ike` hands them to `esp`.

use crate::{Licence, MapKind, Path, TrafficSelector, ZoneAgreement, ZoneId, ZoneSuite};
use std::fmt;
use std::time::Duration;

/// Security parameter index, chosen by the receiver. 0 to 255 are reserved (RFC 4303 section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spi(pub u32);

impl fmt::Display for Spi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Our own name of an IKE SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IkeSaId(pub u64);

/// Our own name of a child SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChildSaId(pub u64);

/// Name of a composite SA towards licensed nodes: random, so that it says nothing about its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CsaId(pub u64);

/// How packets and IKE messages are encrypted and authenticated. Numbers are none of the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suite {
    /// AES-128-GCM with a 16-octet ICV (RFC 4106).
    Aes128Gcm16,
    /// AES-256-GCM with a 16-octet ICV (RFC 4106).
    Aes256Gcm16,
    /// ChaCha20-Poly1305 (RFC 7634).
    ChaCha20Poly1305,
    /// AES-128-CBC (RFC 3602), then an HMAC over what it gave (RFC 4868).
    Aes128Cbc(Sha2),
    /// AES-256-CBC, then an HMAC.
    Aes256Cbc(Sha2),
}

/// The hash function of an HMAC, which is cut to half of its output (RFC 4868 section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sha2 {
    /// HMAC-SHA-256-128.
    Sha256,
    /// HMAC-SHA-384-192.
    Sha384,
    /// HMAC-SHA-512-256.
    Sha512,
}

impl Sha2 {
    /// Every hash function.
    pub const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    /// Octets of its output, and of an HMAC's key.
    pub const fn output_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// Octets of salt behind the key of an AEAD (RFC 4106 section 8.1, RFC 5282 section 7.1).
const SALT_LEN: usize = 4;

impl Suite {
    /// Every suite, the better kind first.
    pub const ALL: [Self; 9] = [
        Self::Aes128Gcm16,
        Self::Aes256Gcm16,
        Self::ChaCha20Poly1305,
        Self::Aes128Cbc(Sha2::Sha256),
        Self::Aes256Cbc(Sha2::Sha256),
        Self::Aes128Cbc(Sha2::Sha384),
        Self::Aes256Cbc(Sha2::Sha384),
        Self::Aes128Cbc(Sha2::Sha512),
        Self::Aes256Cbc(Sha2::Sha512),
    ];

    /// Octets of the cipher's key, without salt.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm16 | Self::Aes128Cbc(_) => 16,
            Self::Aes256Gcm16 | Self::ChaCha20Poly1305 | Self::Aes256Cbc(_) => 32,
        }
    }

    /// Octets of salt behind the cipher's key.
    pub const fn salt_len(self) -> usize {
        match self.hash() {
            None => SALT_LEN,
            Some(_) => 0,
        }
    }

    /// The hash function of its HMAC. An AEAD has none.
    pub const fn hash(self) -> Option<Sha2> {
        match self {
            Self::Aes128Gcm16 | Self::Aes256Gcm16 | Self::ChaCha20Poly1305 => None,
            Self::Aes128Cbc(hash) | Self::Aes256Cbc(hash) => Some(hash),
        }
    }

    /// Octets of the ICV.
    pub const fn icv_len(self) -> usize {
        match self.hash() {
            None => 16,
            Some(hash) => hash.output_len() / 2,
        }
    }

    /// Octets of the HMAC's key.
    pub const fn mac_key_len(self) -> usize {
        match self.hash() {
            None => 0,
            Some(hash) => hash.output_len(),
        }
    }

    /// Octets of all that one direction needs: the cipher's key, then salt or the HMAC's key
    /// (RFC 7296 section 2.17).
    pub const fn keymat_len(self) -> usize {
        self.key_len() + self.salt_len() + self.mac_key_len()
    }

    /// How people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm16 => "aes128gcm16",
            Self::Aes256Gcm16 => "aes256gcm16",
            Self::ChaCha20Poly1305 => "chacha20poly1305",
            Self::Aes128Cbc(Sha2::Sha256) => "aes128-sha256",
            Self::Aes128Cbc(Sha2::Sha384) => "aes128-sha384",
            Self::Aes128Cbc(Sha2::Sha512) => "aes128-sha512",
            Self::Aes256Cbc(Sha2::Sha256) => "aes256-sha256",
            Self::Aes256Cbc(Sha2::Sha384) => "aes256-sha384",
            Self::Aes256Cbc(Sha2::Sha512) => "aes256-sha512",
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Diffie-Hellman group. Numbers are none of the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Curve25519 (RFC 8031).
    X25519,
    /// The 256-bit random curve of NIST (RFC 5903).
    P256,
    /// The 384-bit one.
    P384,
    /// The 3072-bit prime (RFC 3526), for peers without curves.
    Modp3072,
    /// The 2048-bit prime, as well.
    Modp2048,
}

impl Group {
    /// Every group, the better first.
    pub const ALL: [Self; 5] = [
        Self::X25519,
        Self::P256,
        Self::P384,
        Self::Modp3072,
        Self::Modp2048,
    ];

    /// How people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X25519 => "x25519",
            Self::P256 => "p256",
            Self::P384 => "p384",
            Self::Modp3072 => "modp3072",
            Self::Modp2048 => "modp2048",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A key encapsulation mechanism that no quantum computer is known to break, used beside a [`Group`]
/// and never instead of one (RFC 9370).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kem {
    /// ML-KEM-768 of FIPS 203, about as hard to break as AES-192.
    MlKem768,
    /// ML-KEM-1024, about as AES-256. Its messages are a third longer.
    MlKem1024,
    /// ML-KEM-512, about as AES-128.
    MlKem512,
}

impl Kem {
    /// Every one, the better compromise first.
    pub const ALL: [Self; 3] = [Self::MlKem768, Self::MlKem1024, Self::MlKem512];

    /// How people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MlKem768 => "mlkem768",
            Self::MlKem1024 => "mlkem1024",
            Self::MlKem512 => "mlkem512",
        }
    }
}

impl fmt::Display for Kem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What of a datagram a child SA seals (RFC 4301 section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// All of it.
    #[default]
    Tunnel,
    /// What follows its IP header, whose addresses are those outside.
    Transport,
    /// What follows its IP header, whose addresses are known to both ends ("bound end-to-end tunnel",
    /// RFC 7402 appendix B).
    Beet,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Tunnel, Self::Transport, Self::Beet];

    /// How people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tunnel => "tunnel",
            Self::Transport => "transport",
            Self::Beet => "beet",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One zone's key in one direction. `K` holds [`ZoneSuite::keymat_len`] octets.
#[derive(Clone, Debug)]
pub struct ZoneKey<K> {
    /// The zone.
    pub zone: ZoneId,
    /// How it is protected.
    pub suite: ZoneSuite,
    /// Encryption key, HMAC key and salt, as far as the suite has them.
    pub key: K,
}

/// How one direction of a child SA protects packets.
#[derive(Clone, Debug)]
pub enum Keys<K> {
    /// Plain ESP (RFC 4303).
    Plain {
        /// How it is protected.
        suite: Suite,
        /// No IV on the wire (RFC 8750).
        implicit_iv: bool,
        /// Extended sequence numbers: 64 bits, of which packets have the lower half (RFC 4303 section
        /// 2.2.1).
        esn: bool,
        /// The cipher's key, then salt or the HMAC's key: [`Suite::keymat_len`] octets.
        key: K,
    },
    /// Zoned ESP: one key for each agreed zone, in ascending serial.
    Zoned(Vec<ZoneKey<K>>),
}

impl<K> Keys<K> {
    /// Whether sequence numbers are extended.
    pub const fn is_extended(&self) -> bool {
        matches!(self, Self::Plain { esn: true, .. })
    }
}

/// One direction of a child SA.
#[derive(Clone, Debug)]
pub struct Half<K> {
    /// Chosen by this direction's receiver.
    pub spi: Spi,
    /// How it protects packets.
    pub keys: Keys<K>,
    /// What the keys of overlays are made of, one for each grant: root_w of DESIGN section 3. `None` if
    /// nobody may write.
    pub writers: Option<K>,
    /// What the keys of injected packets are made of in the same way: root_inj there. `None` if nobody may
    /// inject.
    pub injectors: Option<K>,
}

/// So many child SAs for the same traffic (RFC 9611) are enough for anybody.
pub const MOST_RESOURCES: u8 = 64;

/// A child SA (RFC 7296 section 1.3): plain, or composite if zones were agreed.
#[derive(Clone, Debug)]
pub struct ChildSa<K> {
    /// Our name of it.
    pub id: ChildSaId,
    /// The IKE SA that made it.
    pub ike: IkeSaId,
    /// Name of the peer's table in the configuration.
    pub peer: String,
    /// Which of the peer's children in the configuration it is; `None` for the first.
    pub name: Option<String>,
    /// Which of several for the same traffic it is, from 0 (RFC 9611); `None` where there is one.
    pub resource: Option<u8>,
    /// What of a datagram it seals.
    pub mode: Mode,
    /// Where its packets go.
    pub path: Path,
    /// What of ours it carries.
    pub local: Vec<TrafficSelector>,
    /// What of the peer's it carries.
    pub remote: Vec<TrafficSelector>,
    /// From the peer to us.
    pub inbound: Half<K>,
    /// From us to the peer.
    pub outbound: Half<K>,
    /// What was agreed about zones, if it is composite.
    pub agreement: Option<ZoneAgreement>,
    /// The SA beside it for what its map does not fit, if that is fixed: it comes and goes with this one.
    pub opaque: Option<BesideSa<K>>,
    /// The SA beside it for what goes without encryption, if anything may.
    pub integrity: Option<BesideSa<K>>,
    /// What the keys of tokens are made of, one for each licensed node: root_tok of DESIGN section 3. `None` if it is
    /// no slot.
    pub tokens: Option<K>,
    /// Whether the peer takes padding behind a datagram that hides how long that is.
    pub takes_padding: bool,
    /// The key exchanges of its own that its keys come from.
    pub exchanges: Exchanges,
    /// Whether we initiated the exchange that made it.
    pub initiator: bool,
}

/// An SA beside a composite one, of a single zone: for datagrams that a fixed map does not fit, or for what
/// goes without encryption. What is agreed about it is [`ZoneAgreement::opaque`] or
/// [`ZoneAgreement::integrity`].
#[derive(Clone, Debug)]
pub struct BesideSa<K> {
    /// From the peer to us.
    pub inbound: Half<K>,
    /// From us to the peer.
    pub outbound: Half<K>,
}

/// The key exchanges of its own that a child SA's keys come from. Without any they come from those of
/// its IKE SA alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchanges {
    /// The first.
    pub group: Option<Group>,
    /// Those after it (RFC 9370), in their order.
    pub kems: Vec<Kem>,
}

/// `x25519 and mlkem768`.
impl fmt::Display for Exchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.group.iter().map(|group| group.name());
        let all: Vec<_> = group
            .chain(self.kems.iter().map(|kem| kem.name()))
            .collect();
        f.write_str(&all.join(" and "))
    }
}

/// One direction of a composite SA as a licensed node gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantHalf<K> {
    /// The SPI its packets carry.
    pub spi: Spi,
    /// The keys of the licensed zones, in ascending serial; never empty, zone 1 among them.
    pub zones: Vec<(ZoneId, ZoneSuite, K)>,
    /// Key and salt of the overlays of this grant, if it is one to write: [`NODE_SUITE`].
    pub overlay: Option<K>,
    /// Those of the packets that the node makes under this grant, if it is one to inject.
    pub injection: Option<K>,
}

/// How that is protected which a licensed node makes itself, whatever the zones are.
pub const NODE_SUITE: Suite = Suite::Aes256Gcm16;

/// To whom a licensed node hands on keys when the mobile node asks it to (DESIGN section 5, DKM).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Onward<K> {
    /// By which it knows that the mobile node asks: [`NODE_SUITE`].
    pub key: K,
    /// Which nodes may have which zones from it.
    pub licences: Vec<Licence>,
}

/// What KEY_DISTRIBUTE carries to a licensed node (DESIGN section 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant<K> {
    /// The composite SA's name.
    pub csa: CsaId,
    /// The name of the first of its line: the one that was rekeyed, and rekeyed again, up to this
    /// one. What a node knows of its connections belongs to the line.
    pub line: CsaId,
    /// Fresh number of this grant, never used twice in a composite SA, never persisted.
    pub grant: u16,
    /// The composite SA's payload zone: needed to read its maps.
    pub payload_zone: ZoneId,
    /// Suites of every agreed zone, in ascending serial from 1: needed to find the bodies.
    pub suites: Vec<ZoneSuite>,
    /// Where the map of its packets is.
    pub map: MapKind,
    /// The endpoints' replay window.
    pub window: u32,
    /// How long the keys may be kept.
    pub lifetime: Duration,
    /// What the node may hand on, if it may.
    pub onward: Option<Onward<K>>,
    /// Both directions: from the gateway, then to it.
    pub from_gateway: GrantHalf<K>,
    /// To the gateway.
    pub to_gateway: GrantHalf<K>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Both ends of a tunnel are configured by these names.
    #[test]
    fn no_two_choices_of_a_kind_are_shown_alike() {
        let kinds: [Vec<String>; 4] = [
            Suite::ALL.iter().map(ToString::to_string).collect(),
            Group::ALL.iter().map(ToString::to_string).collect(),
            Kem::ALL.iter().map(ToString::to_string).collect(),
            Mode::ALL.iter().map(ToString::to_string).collect(),
        ];
        for shown in kinds {
            let different: BTreeSet<_> = shown.iter().filter(|name| !name.is_empty()).collect();
            assert_eq!(different.len(), shown.len(), "{shown:?}");
        }
    }
}
