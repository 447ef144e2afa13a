//! The single clock: CLOCK_BOOTTIME, which continues while a laptop sleeps, so that lifetimes and
//! liveness timers expire when the machine resumes and not hours later.

use model::Instant;
use nix::libc;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns the current time since the machine's boot.
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("Linux has CLOCK_BOOTTIME");
    Instant::from_origin(Duration::from(time))
}

/// Returns true if the kernel reports that the wall clock is synchronised. `None` if it reports no
/// status.
pub fn is_synchronised() -> Option<bool> {
    #![allow(unsafe_code, reason = "no crate at hand has this call")]
    // SAFETY: a `timex` of zeros only queries.
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
