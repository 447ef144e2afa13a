//! Loss of a running wire that does not depend on the length of packets.

use crate::canary::split_mix;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One, as a share. Shares have 53 bits, as numbers of `f64` do.
const WHOLE: f64 = (1_u64 << 53) as f64;

/// The share of packets that is lost, and their number.
#[derive(Default)]
struct Loss {
    /// In units of 2^-53.
    share: AtomicU64,
    lost: AtomicU64,
}

/// Sets the loss of one direction, from any thread.
pub(super) struct Fader(Arc<Loss>);

/// Decides the fate of each packet of one direction.
pub(super) struct Fading {
    loss: Arc<Loss>,
    state: u64,
}

/// Creates both ends, without loss. The same seed loses the same packets.
pub(super) fn channel(seed: u64) -> (Fader, Fading) {
    let loss = Arc::<Loss>::default();
    let fading = Fading {
        loss: Arc::clone(&loss),
        state: seed,
    };
    (Fader(loss), fading)
}

impl Fader {
    /// Loses this share of the packets from now on.
    pub fn set(&self, share: f64) {
        let share = (share.clamp(0.0, 1.0) * WHOLE) as u64;
        self.0.share.store(share, Relaxed);
    }

    /// Returns the number of packets that were lost.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Relaxed)
    }
}

impl Fading {
    /// Returns true if the next packet is lost.
    pub fn takes(&mut self) -> bool {
        let share = self.loss.share.load(Relaxed);
        let is_lost = share > 0 && split_mix(&mut self.state) >> 11 < share;
        self.loss.lost.fetch_add(u64::from(is_lost), Relaxed);
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_packets_that_is_lost_is_the_one_that_was_set() {
        let (fader, mut fading) = channel(1);
        let mut lost_of_1000 = |share| {
            fader.set(share);
            (0..1000).filter(|_| fading.takes()).count()
        };
        assert_eq!(lost_of_1000(0.0), 0);
        assert!((150..250).contains(&lost_of_1000(0.2)));
        assert_eq!(lost_of_1000(1.0), 1000);
        assert!(fader.lost() >= 1150);
    }
}
