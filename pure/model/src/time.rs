//! Time as an argument: nothing below `os` reads a clock.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A moment on a monotonic clock that also counts suspend. The origin is the clock's own (boot in
/// production, zero in a simulation), so only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// The clock's origin, where simulations start.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// Returns the moment `since_origin` after the clock's origin.
    pub const fn from_origin(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// Returns the time since the clock's origin.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// Returns the time since `earlier`, or zero if `earlier` is not in the past.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub for Instant {
    type Output = Duration;
    /// Saturates at zero, as [`Instant::since`].
    fn sub(self, rhs: Self) -> Duration {
        self.since(rhs)
    }
}

/// The time of the next `handle_timeout` call, and its reason for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    /// Time of the call.
    pub at: Instant,
    /// Event that the deadline waits for.
    pub reason: &'static str,
}
