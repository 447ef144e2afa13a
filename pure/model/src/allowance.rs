//! Packets that may go without encryption.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of packets that the child SAs of a peer may send and receive without encryption, all
/// together. Clones count together, and so do all threads. By default there is none.
#[derive(Clone, Debug, Default)]
pub struct Allowance(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    all: u64,
    used: AtomicU64,
}

impl Allowance {
    /// Creates an allowance of which nothing is used.
    pub fn new(packets: u32) -> Self {
        Self(Arc::new(Count {
            all: packets.into(),
            used: AtomicU64::new(0),
        }))
    }

    /// Uses a packet. Returns the packets that are left, or `None` if there was none.
    pub fn spend(&self) -> Option<u64> {
        let before = self.0.used.fetch_add(1, Ordering::Relaxed);
        self.0.all.checked_sub(before.checked_add(1)?)
    }

    /// Returns the packets that are left.
    pub fn left(&self) -> u64 {
        let used = self.0.used.load(Ordering::Relaxed);
        self.0.all.saturating_sub(used)
    }

    /// Returns the number of packets kept for the time in which tunnels are rekeyed to encryption:
    /// a tenth.
    pub fn notice(&self) -> u64 {
        self.0.all / 10
    }

    /// Returns true if no more than these packets are left.
    pub fn is_low(&self) -> bool {
        self.left() <= self.notice()
    }
}

/// Two are equal that allow the same, whatever is used of them.
impl PartialEq for Allowance {
    fn eq(&self, other: &Self) -> bool {
        self.0.all == other.0.all
    }
}

impl Eq for Allowance {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clones_use_the_same_packets_and_a_tenth_is_kept() {
        let all = Allowance::new(20);
        let shared = [all.clone(), all.clone()];
        let left: Vec<_> = (0..22).map(|turn| shared[turn % 2].spend()).collect();
        let expected: Vec<_> = (0..20).rev().map(Some).chain([None, None]).collect();
        assert_eq!(left, expected);
        assert_eq!((all.left(), all.notice()), (0, 2));
    }

    #[test]
    fn it_is_low_at_nine_tenths_and_at_its_end() {
        for (packets, low_after) in [(1, 1), (5, 5), (10, 9), (1000, 900)] {
            let all = Allowance::new(packets);
            for spent in 1..=packets {
                all.spend();
                assert_eq!(all.is_low(), spent >= low_after, "{spent} of {packets}");
            }
        }
        assert!(Allowance::default().is_low());
        assert_eq!(Allowance::default().spend(), None);
    }
}
