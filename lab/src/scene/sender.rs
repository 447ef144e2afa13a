//! The TCP variants of a server.

use serde::{Deserialize, Serialize};

/// A congestion control, with or without selective acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// Reno without SACK, as in the papers.
    Reno,
    /// CUBIC with SACK, as most servers send today.
    Cubic,
    /// BBR (version 1) with SACK: paced by its own measurements, and insensitive to single losses.
    Bbr,
}

impl Sender {
    /// All of them, the oldest first.
    pub const ALL: [Self; 3] = [Self::Reno, Self::Cubic, Self::Bbr];

    /// Returns the name for readers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "Reno",
            Self::Cubic => "CUBIC + SACK",
            Self::Bbr => "BBR + SACK",
        }
    }

    /// Returns the name for the kernel, programs and files.
    pub fn key(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// Returns true if acknowledgements are selective.
    pub fn has_sack(self) -> bool {
        self != Self::Reno
    }
}
