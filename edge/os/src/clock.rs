//! The one clock: CLOCK_BOOTTIME, which goes on while a laptop sleeps, so that lifetimes and
//! liveness timers expire when their owner wakes and not hours later.

use model::Instant;
use nix::libc;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The present moment; its origin is the machine's boot.
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("Linux has CLOCK_BOOTTIME");
    Instant::from_origin(Duration::from(time))
}

/// Whether the kernel says that somebody keeps the time of day right. `None` if it does not say.
pub fn is_synchronised() -> Option<bool> {
    #![allow(unsafe_code, reason = "no crate at hand has this call")]
    // SAFETY: a `timex` of zeros is one that asks and changes nothing.
    let mut answer: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live `timex`.
    let state = unsafe { libc::adjtimex(&raw mut answer) };
    (state >= 0).then_some(answer.status & libc::STA_UNSYNC == 0)
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
