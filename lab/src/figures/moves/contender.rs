//! The implementations that move tunnels in turns.

use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};

/// The implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::figures) enum Contender {
    Strata,
    Strongswan,
}

impl Contender {
    pub const ALL: [Self; 2] = [Self::Strata, Self::Strongswan];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Strata => "Strata",
            Self::Strongswan => "strongSwan",
        }
    }

    pub const fn colour(self) -> RGBColor {
        match self {
            Self::Strata => RGBColor(0, 140, 100),
            Self::Strongswan => RGBColor(213, 148, 0),
        }
    }
}
