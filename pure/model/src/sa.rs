//! Parameters of security associations, as `ike` hands them to `esp`.

use crate::{Path, TrafficSelector, ZoneAgreement, ZoneId};
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

/// An AEAD with its key length. Numbers are none of the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suite {
    /// AES-128-GCM with a 16-octet ICV (RFC 4106).
    Aes128Gcm16,
    /// AES-256-GCM with a 16-octet ICV (RFC 4106).
    Aes256Gcm16,
    /// ChaCha20-Poly1305 (RFC 7634).
    ChaCha20Poly1305,
}

impl Suite {
    /// Every suite.
    pub const ALL: [Self; 3] = [Self::Aes128Gcm16, Self::Aes256Gcm16, Self::ChaCha20Poly1305];

    /// Octets of encryption key, without the 4 of salt.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm16 => 16,
            Self::Aes256Gcm16 | Self::ChaCha20Poly1305 => 32,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aes128Gcm16 => "aes128gcm16",
            Self::Aes256Gcm16 => "aes256gcm16",
            Self::ChaCha20Poly1305 => "chacha20poly1305",
        })
    }
}

/// A Diffie-Hellman group. Numbers are none of the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Curve25519 (RFC 8031).
    X25519,
    /// The 256-bit random curve of NIST (RFC 5903).
    P256,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X25519 => "x25519",
            Self::P256 => "p256",
        })
    }
}

/// One zone's key in one direction. `K` holds encryption key and salt.
#[derive(Clone, Debug)]
pub struct ZoneKey<K> {
    /// The zone.
    pub zone: ZoneId,
    /// How it is protected.
    pub suite: Suite,
    /// Encryption key and salt.
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
        /// Encryption key and salt.
        key: K,
    },
    /// Zoned ESP: one key for each agreed zone, in ascending serial.
    Zoned(Vec<ZoneKey<K>>),
}

/// One direction of a child SA.
#[derive(Clone, Debug)]
pub struct Half<K> {
    /// Chosen by this direction's receiver.
    pub spi: Spi,
    /// How it protects packets.
    pub keys: Keys<K>,
}

/// A child SA (RFC 7296 section 1.3): plain, or composite if zones were agreed.
#[derive(Clone, Debug)]
pub struct ChildSa<K> {
    /// Our name of it.
    pub id: ChildSaId,
    /// The IKE SA that made it.
    pub ike: IkeSaId,
    /// Name of the peer's table in the configuration.
    pub peer: String,
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
    /// Whether we initiated the exchange that made it.
    pub initiator: bool,
}

/// One direction of a composite SA as a licensed node gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantHalf<K> {
    /// The SPI its packets carry.
    pub spi: Spi,
    /// The keys of the licensed zones, in ascending serial; never empty, zone 1 among them.
    pub zones: Vec<(ZoneId, Suite, K)>,
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
    pub suites: Vec<Suite>,
    /// The endpoints' replay window.
    pub window: u32,
    /// How long the keys may be kept.
    pub lifetime: Duration,
    /// Both directions: from the gateway, then to it.
    pub from_gateway: GrantHalf<K>,
    /// To the gateway.
    pub to_gateway: GrantHalf<K>,
}
