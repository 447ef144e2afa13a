//! The time of day, which is told and never read.

use model::Instant;
use std::time::Duration;

/// Seconds from 1900 to 1970.
const EPOCH: u64 = 2_208_988_800;

/// A time as NTP writes it: seconds since 1900, which begin anew in 2036, and 32 bits of a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NtpTime(pub u64);

impl NtpTime {
    /// From the time since the beginning of 1970.
    pub const fn from_unix(since_1970: Duration) -> Self {
        Self(EPOCH << 32).plus(since_1970)
    }

    /// So much later.
    #[must_use]
    pub const fn plus(self, later: Duration) -> Self {
        let fraction = ((later.subsec_nanos() as u64) << 32) / 1_000_000_000;
        Self(self.0.wrapping_add((later.as_secs() << 32) | fraction))
    }

    /// Whether it is later than another time, of which it is less than 68 years away.
    pub const fn is_after(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0) as i64 > 0
    }

    /// Whether it is no more than so much before or after another time.
    pub const fn is_near(self, other: Self, tolerance: Duration) -> bool {
        let apart = (self.0.wrapping_sub(other.0) as i64).unsigned_abs();
        apart <= Self(0).plus(tolerance).0
    }

    /// Whole seconds.
    pub const fn seconds(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A clock that was set once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WallClock(Option<(NtpTime, Instant)>);

impl WallClock {
    pub(super) const fn set(&mut self, time: NtpTime, now: Instant) {
        self.0 = Some((time, now));
    }

    /// What it shows; `None` if nobody has set it.
    pub(super) fn time(&self, now: Instant) -> Option<NtpTime> {
        self.0.map(|(time, at)| time.plus(now.since(at)))
    }
}
