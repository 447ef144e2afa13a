//! The servers of the figure, and the links to them.

use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};

/// A server that clients download from: a line of the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Server {
    /// TCP/IP alone.
    Native,
    /// Behind a gateway of Strata.
    Strata,
    /// Behind a gateway of strongSwan with ESP in user space.
    Strongswan,
}

impl Server {
    pub const ALL: [Self; 3] = [Self::Native, Self::Strata, Self::Strongswan];

    /// Those with IPsec.
    pub const PROTECTED: [Self; 2] = [Self::Strata, Self::Strongswan];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native TCP",
            Self::Strata => "Strata",
            Self::Strongswan => "strongSwan",
        }
    }

    /// Returns the name of its host, and of its table at the clients.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Strata => "strata",
            Self::Strongswan => "strongswan",
        }
    }

    pub const fn colour(self) -> RGBColor {
        match self {
            Self::Native => RGBColor(150, 150, 150),
            Self::Strata => RGBColor(0, 140, 100),
            Self::Strongswan => RGBColor(213, 148, 0),
        }
    }

    /// Returns the address on the link.
    pub const fn outside(self) -> &'static str {
        match self {
            Self::Native => "192.0.2.1",
            Self::Strata => "198.51.100.1",
            Self::Strongswan => "203.0.113.1",
        }
    }

    /// Returns the address of the switch on the link.
    pub const fn next_hop(self) -> &'static str {
        match self {
            Self::Native => "192.0.2.2",
            Self::Strata => "198.51.100.2",
            Self::Strongswan => "203.0.113.2",
        }
    }

    /// Returns the address that only a tunnel reaches.
    pub const fn inside(self) -> Option<&'static str> {
        match self {
            Self::Native => None,
            Self::Strata => Some("10.8.0.1"),
            Self::Strongswan => Some("10.9.0.1"),
        }
    }
}

/// The rate of the links to all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Link {
    /// That of the faster of the paper's interfaces.
    Gigabit,
    /// As fast as the machine.
    Unlimited,
}

impl Link {
    pub const ALL: [Self; 2] = [Self::Gigabit, Self::Unlimited];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Gigabit => "1 Gb/s",
            Self::Unlimited => "no limit",
        }
    }

    /// Returns the name in files.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Gigabit => "gigabit",
            Self::Unlimited => "unlimited",
        }
    }
}
