//! The one clock: CLOCK_BOOTTIME, which goes on while a laptop sleeps, so that lifetimes and
//! liveness timers expire when their owner wakes and not hours later.

use model::Instant;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The present moment; its origin is the machine's boot.
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("Linux has CLOCK_BOOTTIME");
    Instant::from_origin(Duration::from(time))
}

#[cfg(test)]
mod tests {
    #[test]
    fn time_never_goes_back() {
        let earlier = super::now();
        assert!(earlier.since_origin() > std::time::Duration::ZERO);
        assert!(super::now() >= earlier);
    }
}
