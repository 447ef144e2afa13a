//! The programs that carry traffic between the two hosts.

use super::wireguard;
use serde::Serialize;

/// A program that carries traffic. All use AES-128-GCM, apart from the wire and WireGuard, which
/// supports only ChaCha20-Poly1305.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Entrant {
    /// No program: the wire alone.
    Wire,
    /// A bare forwarder with the same AEAD: the roofline of the machine.
    Roofline,
    /// Strata with plain ESP.
    Plain,
    /// Strata with headers and payload in separate zones.
    Zones,
    /// Strata with two zones and a licensed node on the path that reads the headers.
    Licensed,
    /// Strata with plain ESP and two threads at each end (`workers = 2`).
    Workers,
    /// Strata with plain ESP and without packet batching (`offload = "off"`).
    OneByOne,
    /// Strata with plain ESP, without the nftables table that drops packets in clear.
    Unguarded,
    /// strongSwan with ESP in user space.
    Strongswan,
    /// WireGuard's own implementation in user space.
    WireguardGo,
    /// Cloudflare's implementation of WireGuard.
    Boringtun,
}

impl Entrant {
    /// All programs, in the order of the turns.
    pub const ALL: [Self; 11] = [
        Self::Wire,
        Self::Roofline,
        Self::Plain,
        Self::Zones,
        Self::Licensed,
        Self::Workers,
        Self::OneByOne,
        Self::Unguarded,
        Self::Strongswan,
        Self::WireguardGo,
        Self::Boringtun,
    ];

    /// Returns the name for readers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wire => "the wire",
            Self::Roofline => "the roofline",
            Self::Plain => "Strata",
            Self::Zones => "Strata, two zones",
            Self::Licensed => "Strata, licensed",
            Self::Workers => "Strata, 2 workers",
            Self::OneByOne => "Strata, one by one",
            Self::Unguarded => "Strata, unguarded",
            Self::Strongswan => "strongSwan",
            Self::WireguardGo => "wireguard-go",
            Self::Boringtun => "boringtun",
        }
    }

    /// Returns a shorter name, for pictures that compare with Strata.
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::Roofline => "roofline",
            Self::Plain => "plain",
            Self::Zones => "two zones",
            Self::Licensed => "licensed",
            Self::Workers => "2 workers",
            Self::OneByOne => "one by one",
            Self::Unguarded => "unguarded",
            Self::Strongswan | Self::WireguardGo | Self::Boringtun => self.name(),
        }
    }

    /// Returns true if this machine has the program. Debian has no package of those that
    /// [`wireguard`] finds, so they may be missing.
    pub(super) fn is_here(self) -> bool {
        match self {
            Self::WireguardGo => wireguard::GO.find().is_some(),
            Self::Boringtun => wireguard::BORINGTUN.find().is_some(),
            Self::Wire
            | Self::Roofline
            | Self::Plain
            | Self::Zones
            | Self::Licensed
            | Self::Workers
            | Self::OneByOne
            | Self::Unguarded
            | Self::Strongswan => true,
        }
    }
}
