//! The TCPs that a server sends with.

use serde::{Deserialize, Serialize};

/// A congestion control, with or without selective acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// Reno without SACK, as in the papers.
    Reno,
    /// CUBIC with SACK: what most servers send with today.
    Cubic,
    /// BBR (version 1) with SACK: paced by what it measures, and deaf to single losses.
    Bbr,
}

impl Sender {
    /// All of them, the oldest first.
    pub const ALL: [Self; 3] = [Self::Reno, Self::Cubic, Self::Bbr];

    /// What a person reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "Reno",
            Self::Cubic => "CUBIC + SACK",
            Self::Bbr => "BBR + SACK",
        }
    }

    /// What the kernel, programs and files call it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// Whether acknowledgements are selective.
    pub fn has_sack(self) -> bool {
        self != Self::Reno
    }
}
