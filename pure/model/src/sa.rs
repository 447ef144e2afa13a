//! Parameters of security associations, passed from `ike` to `esp`.

use crate::{
    Allowance, EspSuite, Licence, MapKind, Path, PeerId, Suite, TrafficSelector, ZoneAgreement,
    ZoneId, ZoneSuite,
};
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

/// Local identifier of an IKE SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IkeSaId(pub u64);

/// Local identifier of a child SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChildSaId(pub u64);

/// Identifier of a composite SA towards licensed nodes. It is random, so it does not identify a
/// peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CsaId(pub u64);

/// A Diffie-Hellman group. The discriminants are not transform IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Curve25519 (RFC 8031).
    X25519,
    /// The 256-bit random curve of NIST (RFC 5903).
    P256,
    /// The 384-bit random curve of NIST (RFC 5903).
    P384,
    /// The 3072-bit MODP group (RFC 3526), for peers without curves.
    Modp3072,
    /// The 2048-bit MODP group (RFC 3526), for peers without curves.
    Modp2048,
}

impl Group {
    /// All groups, preferred first.
    pub const ALL: [Self; 5] = [
        Self::X25519,
        Self::P256,
        Self::P384,
        Self::Modp3072,
        Self::Modp2048,
    ];

    /// Returns the name in configuration files.
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

/// A key encapsulation mechanism against quantum computers. It is used in addition to a [`Group`],
/// never instead of one (RFC 9370).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kem {
    /// ML-KEM-768 (FIPS 203), about as hard to break as AES-192.
    MlKem768,
    /// ML-KEM-1024, about as hard to break as AES-256. Its messages are a third longer.
    MlKem1024,
    /// ML-KEM-512, about as hard to break as AES-128.
    MlKem512,
}

impl Kem {
    /// All mechanisms, the best compromise first.
    pub const ALL: [Self; 3] = [Self::MlKem768, Self::MlKem1024, Self::MlKem512];

    /// Returns the name in configuration files.
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

/// The part of a datagram that a child SA seals (RFC 4301 section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// The whole datagram.
    #[default]
    Tunnel,
    /// Everything behind the IP header. The outer header keeps its addresses.
    Transport,
    /// Everything behind the IP header. Both ends know the inner addresses ("bound end-to-end
    /// tunnel", RFC 7402 appendix B).
    Beet,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Tunnel, Self::Transport, Self::Beet];

    /// Returns the name in configuration files.
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

/// Key of one zone in one direction. `K` holds [`ZoneSuite::keymat_len`] octets.
#[derive(Clone, Debug)]
pub struct ZoneKey<K> {
    /// Zone that the key protects.
    pub zone: ZoneId,
    /// Cipher suite of the zone.
    pub suite: ZoneSuite,
    /// Encryption key, HMAC key and salt, as far as the suite needs them.
    pub key: K,
}

/// Cipher suites and keys of one direction of a child SA.
#[derive(Clone, Debug)]
pub enum Keys<K> {
    /// Plain ESP (RFC 4303).
    Plain {
        /// Cipher suite of all packets.
        suite: EspSuite,
        /// True if packets carry no IV (RFC 8750).
        implicit_iv: bool,
        /// True for extended sequence numbers of 64 bits. Packets carry the lower half (RFC 4303
        /// section 2.2.1).
        esn: bool,
        /// The cipher's key, then the salt or the HMAC key: [`EspSuite::keymat_len`] octets.
        key: K,
    },
    /// Zoned ESP: one key for each agreed zone, in ascending serial.
    Zoned(Vec<ZoneKey<K>>),
}

impl<K> Keys<K> {
    /// Returns true if sequence numbers are extended.
    pub const fn is_extended(&self) -> bool {
        matches!(self, Self::Plain { esn: true, .. })
    }

    /// Returns the suite of a plain SA.
    pub const fn plain_suite(&self) -> Option<EspSuite> {
        match self {
            Self::Plain { suite, .. } => Some(*suite),
            Self::Zoned(_) => None,
        }
    }

    /// Returns true if packets of the SA are not encrypted. Zones have suites of their own.
    pub fn is_unencrypted(&self) -> bool {
        self.plain_suite().is_some_and(|suite| !suite.encrypts())
    }
}

/// One direction of a child SA.
#[derive(Clone, Debug)]
pub struct Half<K> {
    /// SPI of the packets, chosen by the receiver of this direction.
    pub spi: Spi,
    /// Cipher suites and keys.
    pub keys: Keys<K>,
    /// Root of the overlay keys, with one key for each grant: root_w of DESIGN section 3. `None` if
    /// no node may write.
    pub writers: Option<K>,
    /// Root of the keys of injected packets, with one key for each grant: root_inj of DESIGN
    /// section 3. `None` if no node may inject.
    pub injectors: Option<K>,
}

/// Most child SAs for the same traffic (RFC 9611).
pub const MOST_RESOURCES: u8 = 64;

/// Maximum number of paths that carry packets of one peer at the same time.
pub const MOST_PATHS: u8 = 4;

/// A child SA (RFC 7296 section 1.3): plain, or composite if zones were agreed.
#[derive(Clone, Debug)]
pub struct ChildSa<K> {
    /// Local identifier.
    pub id: ChildSaId,
    /// IKE SA that created this child SA.
    pub ike: IkeSaId,
    /// The peer.
    pub peer: PeerId,
    /// Name of the child in the peer's configuration; `None` for the first child.
    pub name: Option<String>,
    /// Index among several child SAs for the same traffic, from 0 (RFC 9611). `None` if there is
    /// only one.
    pub resource: Option<u8>,
    /// True if it carries a part of the traffic of the first child SA, before all others.
    pub narrowed: bool,
    /// Part of a datagram that the SA seals.
    pub mode: Mode,
    /// Path of its packets.
    pub path: Path,
    /// Local traffic selectors.
    pub local: Vec<TrafficSelector>,
    /// Remote traffic selectors.
    pub remote: Vec<TrafficSelector>,
    /// Direction from the peer to us.
    pub inbound: Half<K>,
    /// Direction from us to the peer.
    pub outbound: Half<K>,
    /// Agreement about zones, if the SA is composite.
    pub agreement: Option<ZoneAgreement>,
    /// Companion SA for datagrams that do not fit a fixed map. It is created and deleted with this
    /// SA.
    pub opaque: Option<BesideSa<K>>,
    /// Companion SA for unencrypted datagrams, if any are allowed.
    pub integrity: Option<BesideSa<K>>,
    /// Root of the token keys, with one key for each licensed node: root_tok of DESIGN section 3.
    /// `None` if the SA is not a hand-over slot.
    pub tokens: Option<K>,
    /// True if the peer accepts padding behind a datagram that hides its length.
    pub takes_padding: bool,
    /// The packets that it may carry without encryption; `None` if it encrypts.
    pub allowance: Option<Allowance>,
    /// Key exchanges of this child SA itself.
    pub exchanges: Exchanges,
    /// True if we initiated the exchange that created this SA.
    pub initiator: bool,
}

/// A companion SA of a composite SA, with a single zone. It carries datagrams that do not fit a
/// fixed map, or unencrypted datagrams. Its agreement is [`ZoneAgreement::opaque`] or
/// [`ZoneAgreement::integrity`].
#[derive(Clone, Debug)]
pub struct BesideSa<K> {
    /// Direction from the peer to us.
    pub inbound: Half<K>,
    /// Direction from us to the peer.
    pub outbound: Half<K>,
}

/// Key exchanges of a child SA itself. Without any, its keys come from those of its IKE SA alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchanges {
    /// Group of the first exchange.
    pub group: Option<Group>,
    /// Mechanisms of the exchanges that follow (RFC 9370), in order.
    pub kems: Vec<Kem>,
}

/// Written as `x25519 and mlkem768`.
impl fmt::Display for Exchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.group.iter().map(|group| group.name());
        let all: Vec<_> = group
            .chain(self.kems.iter().map(|kem| kem.name()))
            .collect();
        f.write_str(&all.join(" and "))
    }
}

/// One direction of a composite SA, as distributed to a licensed node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantHalf<K> {
    /// SPI of the packets.
    pub spi: Spi,
    /// Keys of the licensed zones in ascending serial. Zone 1 is always among them.
    pub zones: Vec<(ZoneId, ZoneSuite, K)>,
    /// Key and salt of this grant's overlays, if the grant permits writing. The suite is
    /// [`NODE_SUITE`].
    pub overlay: Option<K>,
    /// Key and salt of the packets that the node injects, if the grant permits it.
    pub injection: Option<K>,
}

/// Suite of everything that a licensed node seals itself, independent of the zones' suites.
pub const NODE_SUITE: Suite = Suite::Aes256Gcm16;

/// Nodes that a licensed node may hand keys on to when the mobile node asks for it (DESIGN section
/// 5, DKM).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Onward<K> {
    /// Key that authenticates the mobile node's request. The suite is [`NODE_SUITE`].
    pub key: K,
    /// Zones that each of the other nodes may get.
    pub licences: Vec<Licence>,
}

/// Content of KEY_DISTRIBUTE for a licensed node (DESIGN section 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant<K> {
    /// Identifier of the composite SA.
    pub csa: CsaId,
    /// Identifier of the first composite SA in the chain of rekeys that led to this one. A node
    /// keeps the state of its connections per chain.
    pub line: CsaId,
    /// Fresh number of this grant, never used twice in a composite SA, never persisted.
    pub grant: u16,
    /// Payload zone of the composite SA, needed to read its maps.
    pub payload_zone: ZoneId,
    /// Suites of all agreed zones in ascending serial from 1, needed to locate the bodies.
    pub suites: Vec<ZoneSuite>,
    /// Place of the zone map.
    pub map: MapKind,
    /// Replay window of the endpoints, in packets.
    pub window: u32,
    /// Time for which the node may keep the keys.
    pub lifetime: Duration,
    /// Keys that the node may hand on, if any.
    pub onward: Option<Onward<K>>,
    /// Direction from the gateway.
    pub from_gateway: GrantHalf<K>,
    /// Direction to the gateway.
    pub to_gateway: GrantHalf<K>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Both ends of a tunnel are configured with these names.
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
