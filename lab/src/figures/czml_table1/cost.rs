//! Length of a packet in IPsec, and in zones.

use serde::{Deserialize, Serialize};

/// Octets of the same packet in both forms, outer headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cost {
    /// In plain IPsec.
    pub plain: usize,
    /// In two zones.
    pub zoned: usize,
}

impl Cost {
    /// Returns the octets that zones add.
    pub fn added(self) -> i64 {
        self.zoned as i64 - self.plain as i64
    }

    /// Returns the numbers of a row.
    pub fn numbers(cost: Option<Self>) -> [Option<i64>; 2] {
        [cost.map(|cost| cost.plain as i64), cost.map(Self::added)]
    }
}
