//! The time of day. The caller supplies it; this crate reads no clock.

use model::Instant;
use std::time::Duration;

/// Seconds from 1900 to 1970.
const EPOCH: u64 = 2_208_988_800;

/// A time in NTP format: seconds since 1900, which wrap in 2036, and 32 bits of fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NtpTime(pub u64);

impl NtpTime {
    /// Converts from the time since the beginning of 1970.
    pub const fn from_unix(since_1970: Duration) -> Self {
        Self(EPOCH << 32).plus(since_1970)
    }

    /// Returns this time plus a duration.
    #[must_use]
    pub const fn plus(self, later: Duration) -> Self {
        let fraction = ((later.subsec_nanos() as u64) << 32) / 1_000_000_000;
        Self(self.0.wrapping_add((later.as_secs() << 32) | fraction))
    }

    /// Returns true if this time is later than another one less than 68 years away.
    pub const fn is_after(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0) as i64 > 0
    }

    /// Returns true if this time differs from another by at most `tolerance`.
    pub const fn is_near(self, other: Self, tolerance: Duration) -> bool {
        let apart = (self.0.wrapping_sub(other.0) as i64).unsigned_abs();
        apart <= Self(0).plus(tolerance).0
    }

    /// Returns the whole seconds.
    pub const fn seconds(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A clock that advances from the time it was last set to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WallClock(Option<(NtpTime, Instant)>);

impl WallClock {
    pub(super) const fn set(&mut self, time: NtpTime, now: Instant) {
        self.0 = Some((time, now));
    }

    /// Returns the current time, or `None` if the clock was never set.
    pub(super) fn time(&self, now: Instant) -> Option<NtpTime> {
        self.0.map(|(time, at)| time.plus(now.since(at)))
    }
}
