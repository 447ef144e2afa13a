//! What a packet costs in IPsec, and in zones.

/// Octets of the same packet, outer headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// In IPsec as it is.
    pub plain: usize,
    /// In two zones.
    pub zoned: usize,
}

impl Cost {
    /// What zones add.
    pub fn added(self) -> i64 {
        self.zoned as i64 - self.plain as i64
    }

    /// As the table has it.
    pub fn numbers(cost: Option<Self>) -> [Option<i64>; 2] {
        [cost.map(|cost| cost.plain as i64), cost.map(Self::added)]
    }
}
