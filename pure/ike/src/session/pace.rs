//! Rate of the checks that packets of child SAs start.
//!
//! A NAT may change its mapping again while the last one is checked, so a check of a newer address
//! replaces another one. Sources are not authenticated, and a third party can repeat packets from
//! many addresses. Therefore only [`MOST`] checks follow each other closely. The last one is not
//! replaced, and a pause follows.

use model::Instant;
use std::net::SocketAddr;
use std::time::Duration;

/// Pause after the start of the first check, until there may be more than [`MOST`], or another of
/// the last address.
const PAUSE: Duration = Duration::from_secs(3);

/// Maximum number of checks in a pause.
const MOST: u8 = 4;

#[derive(Default)]
pub(crate) struct Pace {
    rests_until: Instant,
    /// Number of checks in the pause.
    begun: u8,
    last: Option<SocketAddr>,
}

impl Pace {
    /// Counts a check of an address. Returns false if it must not start now. With `replaces`,
    /// another check is running.
    pub(crate) fn admits(&mut self, to: SocketAddr, replaces: bool, now: Instant) -> bool {
        if !replaces && !self.is_resting(now) {
            *self = Self {
                rests_until: now + PAUSE,
                ..Self::default()
            };
        }
        let admitted = self.begun < MOST && self.last != Some(to);
        if admitted {
            self.begun += 1;
            self.last = Some(to);
        }
        admitted
    }

    /// Permits as many checks of other addresses as before, because the last check found the peer.
    pub(crate) const fn succeed(&mut self) {
        self.begun = 0;
    }

    /// Returns true in the pause after a check.
    pub(crate) fn is_resting(&self, now: Instant) -> bool {
        now < self.rests_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    fn port(port: u16) -> SocketAddr {
        SocketAddr::new([192, 0, 2, 1].into(), port)
    }

    #[test]
    fn the_same_address_is_checked_once_in_a_pause() {
        let mut pace = Pace::default();
        let begun = (0..9000).filter(|millis| pace.admits(port(1), false, at(*millis)));
        assert_eq!(begun.collect::<Vec<_>>(), [0, 3000, 6000]);
    }

    // Weakness: 139
    #[test]
    fn a_few_checks_replace_each_other_and_the_last_one_ends() {
        let mut pace = Pace::default();
        let changing = |millis: u64| port(1 + millis as u16 % 7);
        let begun =
            (0..9000).filter(|millis| pace.admits(changing(*millis), *millis > 0, at(*millis)));
        assert_eq!(begun.collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(pace.admits(port(9), false, at(9000)));
    }

    #[test]
    fn a_peer_that_was_found_may_move_on_at_once() {
        let mut pace = Pace::default();
        for n in 0..100 {
            assert!(pace.admits(port(n), false, at(n.into())));
            pace.succeed();
        }
        assert!(!pace.admits(port(99), false, at(100)), "it came from there");
    }
}
