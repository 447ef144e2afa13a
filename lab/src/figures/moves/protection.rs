//! Protection of the traffic during moves, as the paper on end-to-end security names it.

use model::{EspSuite, Mode, Sha2};
use serde::{Deserialize, Serialize};

/// Protection of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::figures) enum Protection {
    /// None: the kernels route clear packets.
    None,
    /// Encryption, between the addresses of the hosts.
    EspTransport,
    /// Encryption, with inner addresses.
    EspTunnel,
    /// Authentication alone, between the addresses of the hosts.
    NullTransport,
    /// Authentication alone, with inner addresses.
    NullTunnel,
}

impl Protection {
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::EspTransport,
        Self::EspTunnel,
        Self::NullTransport,
        Self::NullTunnel,
    ];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::EspTransport => "ESP transport",
            Self::EspTunnel => "ESP tunnel",
            Self::NullTransport => "NULL transport",
            Self::NullTunnel => "NULL tunnel",
        }
    }

    /// Returns the mode of the child SA, if there is one.
    pub(super) const fn mode(self) -> Option<Mode> {
        match self {
            Self::None => None,
            Self::EspTransport | Self::NullTransport => Some(Mode::Transport),
            Self::EspTunnel | Self::NullTunnel => Some(Mode::Tunnel),
        }
    }

    /// Returns the suite without encryption, if the child SA is to have one.
    pub(super) const fn unencrypted(self) -> Option<EspSuite> {
        match self {
            Self::None | Self::EspTransport | Self::EspTunnel => None,
            Self::NullTransport | Self::NullTunnel => Some(EspSuite::Null(Sha2::Sha256)),
        }
    }
}
