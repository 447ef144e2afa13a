//! Ways of a hand-over to another interface.

use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};

/// A way of a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::figures) enum Way {
    /// The interface in use is lost without a warning.
    Lost,
    /// It is lost right after the command that moves the tunnel.
    Hard,
    /// It is lost after a clone of the IKE SA has replaced the old one on the other interface.
    Soft,
}

impl Way {
    pub const ALL: [Self; 3] = [Self::Lost, Self::Hard, Self::Soft];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Hard => "hard",
            Self::Soft => "soft",
        }
    }

    pub const fn colour(self) -> RGBColor {
        match self {
            Self::Lost => RGBColor(190, 20, 110),
            Self::Hard => RGBColor(213, 148, 0),
            Self::Soft => RGBColor(0, 140, 100),
        }
    }
}
