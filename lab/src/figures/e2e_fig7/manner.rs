//! Manners of moving traffic to another address or interface.

use crate::experiment::Plan;
use crate::figures::moves::{Contender, Protection};
use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};

/// A manner of moving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Manner {
    /// MOBIKE moves a tunnel of Strata.
    Mobike,
    /// MOBIKE-X moves an SA in transport mode.
    Transport,
    /// MOBIKE moves a tunnel of strongSwan.
    Strongswan,
    /// The packets of one path take the other, which carries packets already.
    LivePaths,
    /// A clone of the IKE SA replaces it before the interface is lost.
    Soft,
}

impl Manner {
    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mobike => "MOBIKE",
            Self::Transport => "transport mode",
            Self::Strongswan => "strongSwan's MOBIKE",
            Self::LivePaths => "live paths",
            Self::Soft => "soft hand-over",
        }
    }

    /// Returns the name in legends.
    pub const fn brief(self) -> &'static str {
        match self {
            Self::Mobike => "MOBIKE",
            Self::Transport => "transport",
            Self::Strongswan => "strongSwan",
            Self::LivePaths => "live paths",
            Self::Soft => "soft",
        }
    }

    pub const fn colour(self) -> RGBColor {
        match self {
            Self::Mobike => RGBColor(40, 80, 220),
            Self::Transport => RGBColor(190, 20, 110),
            Self::Strongswan => RGBColor(213, 148, 0),
            Self::LivePaths => RGBColor(0, 140, 100),
            Self::Soft => RGBColor(150, 150, 150),
        }
    }

    pub const fn contender(self) -> Contender {
        match self {
            Self::Strongswan => Contender::Strongswan,
            _ => Contender::Strata,
        }
    }

    pub const fn protection(self) -> Protection {
        match self {
            Self::Transport => Protection::EspTransport,
            _ => Protection::EspTunnel,
        }
    }

    /// Returns the lines in Strata's tables of both peers.
    pub const fn lines(self, plan: &Plan) -> &'static str {
        match self {
            _ if !plan.mobike => "mobike = \"off\"\n",
            Self::LivePaths if plan.paths => "paths = 2\n",
            Self::Soft if plan.clones => "clone = true\n",
            _ => "",
        }
    }

    /// Returns true if traffic stays on its path until the change, so that messages time the move.
    pub const fn is_hard(self) -> bool {
        matches!(self, Self::Mobike | Self::Transport | Self::Strongswan)
    }

    /// Returns the number of moves with each tunnel. A path that was lost is used again after a
    /// pause, so with live paths each tunnel makes one.
    pub const fn moves(self, quick: bool) -> usize {
        match self {
            Self::LivePaths => 1,
            _ if quick => 1,
            _ => 6,
        }
    }
}
