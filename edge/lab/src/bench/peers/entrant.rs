//! Who carries between the two hosts.

use super::wireguard;
use serde::Serialize;

/// All of them use AES-128-GCM, but for the wire and WireGuard, which knows ChaCha20-Poly1305 alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Entrant {
    /// Nobody: the wire alone.
    Wire,
    /// A bare forwarder with the same AEAD: the roofline of the machine.
    Roofline,
    /// Strata with plain ESP.
    Plain,
    /// Strata with headers and payload in zones of their own.
    Zones,
    /// The same with a licensed node on the way, which reads the headers.
    Licensed,
    /// Strata with plain ESP by two threads at each end (`workers = 2`).
    Workers,
    /// Strata with plain ESP, packets one by one (`offload = "off"`).
    OneByOne,
    /// Strata with plain ESP, without the table of nftables that drops packets in clear.
    Unguarded,
    /// strongSwan with ESP in user space.
    Strongswan,
    /// WireGuard's own implementation in user space.
    WireguardGo,
    /// Cloudflare's.
    Boringtun,
}

impl Entrant {
    /// Everybody, in the order of the turns.
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

    /// For people.
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

    /// For people, where there is less room and Strata is what the others are beside.
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

    /// Whether this machine has it. No package of Debian's has what [`wireguard`] finds, so it may be missing.
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
