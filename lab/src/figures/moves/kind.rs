//! Moves to another address, and to another interface.

use serde::{Deserialize, Serialize};

/// Kinds of moves, by the words of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Another address of the only interface.
    Mobility,
    /// Another interface, as the one in use was lost.
    Multihoming,
}

impl Kind {
    pub const ALL: [Self; 2] = [Self::Mobility, Self::Multihoming];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mobility => "mobility",
            Self::Multihoming => "multihoming",
        }
    }
}
