//! Lifetimes of registrations.

use std::fmt;
use std::time::Duration;

/// A number of seconds, or infinity (RFC 5944 sections 3.3 and 3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lifetime(pub u16);

impl Lifetime {
    /// "A value of zero indicates a request for deregistration."
    pub const NONE: Self = Self(0);
    /// "A value of 0xffff indicates infinity."
    pub const INFINITE: Self = Self(0xffff);

    /// Returns the whole seconds of a duration, at most the longest finite lifetime.
    pub fn from_duration(duration: Duration) -> Self {
        let longest = Self::INFINITE.0 - 1;
        Self(u16::try_from(duration.as_secs()).map_or(longest, |seconds| seconds.min(longest)))
    }

    /// Returns true for zero.
    pub const fn is_none(self) -> bool {
        self.0 == Self::NONE.0
    }

    /// Returns the duration, or `None` for infinity.
    pub const fn duration(self) -> Option<Duration> {
        match self {
            Self::INFINITE => None,
            Self(seconds) => Some(Duration::from_secs(seconds as u64)),
        }
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::INFINITE => f.write_str("for ever"),
            Self(seconds) => write!(f, "{seconds} s"),
        }
    }
}
