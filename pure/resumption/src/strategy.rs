//! How long an entry may be used: the caching strategies of the paper (004, section IV-B), alone or
//! together.
//!
//! With a *clocked* lifetime, an entry ends a time after the last full key exchange. With an
//! *established* lifetime, only the time counts for which an IKE SA was up. That does not end by
//! itself, so the clock always limits an entry as well.

use crypto::UnixTime;
use std::time::Duration;

/// What the sessions since the last full authentication have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Time of the last full authentication.
    pub since: UnixTime,
    /// Time for which an IKE SA has been up since, in whole seconds.
    pub established: Duration,
}

impl Usage {
    /// Returns the usage of a session that has just been authenticated.
    pub const fn new(since: UnixTime) -> Self {
        Self {
            since,
            established: Duration::ZERO,
        }
    }

    /// Returns the usage after another stretch.
    pub const fn and(self, established: Duration) -> Self {
        Self {
            since: self.since,
            established: self.established.saturating_add(established),
        }
    }
}

/// Limits of an entry. All that are set have to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// Longest time since the last full authentication.
    pub clocked: Duration,
    /// Longest time for which IKE SAs have been up since.
    pub established: Option<Duration>,
}

/// The reason why an entry cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// The last full authentication is too long ago.
    #[error("the last full authentication is too long ago")]
    Clocked,
    /// IKE SAs have been up for too long since.
    #[error("IKE SAs have been up for too long since the last full authentication")]
    Established,
    /// The last full authentication is in the future: the clock went back.
    #[error("the clock went back behind the last full authentication")]
    ClockWentBack,
}

impl Strategy {
    /// Returns `Ok` if a session with this usage may be resumed.
    pub fn admits(&self, usage: &Usage, now: UnixTime) -> Result<(), Spent> {
        let age = now.0.checked_sub(usage.since.0);
        let age = age.ok_or(Spent::ClockWentBack)?;
        if Duration::from_secs(age) >= self.clocked {
            return Err(Spent::Clocked);
        }
        if self
            .established
            .is_some_and(|most| usage.established >= most)
        {
            return Err(Spent::Established);
        }
        Ok(())
    }

    /// Returns the time for which an entry with this usage and this end is still good. Zero: the
    /// session may not be resumed.
    pub fn left(&self, usage: &Usage, ends: UnixTime, now: UnixTime) -> Duration {
        let end = ends.min(self.end(usage));
        match self.admits(usage, now) {
            Ok(()) => Duration::from_secs(end.0.saturating_sub(now.0)),
            Err(_) => Duration::ZERO,
        }
    }

    /// Returns true if an entry is limited by its use.
    pub const fn counts_use(&self) -> bool {
        self.established.is_some()
    }

    /// Returns the latest end of an entry, whatever else limits it.
    pub fn end(&self, usage: &Usage) -> UnixTime {
        UnixTime(usage.since.0.saturating_add(self.clocked.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const ALL: Strategy = Strategy {
        clocked: HOUR.saturating_mul(8),
        established: Some(HOUR.saturating_mul(2)),
    };

    /// The paper's example: "a connection could initially last two hours, disconnect, and resume
    /// three hours later" with a clocked lifetime of 8 hours, but not after seven hours more.
    #[test]
    fn a_clocked_lifetime_counts_the_time_between_sessions_too() {
        let clocked = Strategy {
            established: None,
            ..ALL
        };
        let usage = Usage::new(UnixTime(1000)).and(HOUR * 2);
        let after = |hours: u64| clocked.admits(&usage, UnixTime(1000 + 3600 * hours));
        assert_eq!([after(5), after(9)], [Ok(()), Err(Spent::Clocked)]);
        assert_eq!(clocked.end(&usage), UnixTime(1000 + 8 * 3600));
    }

    #[test]
    fn an_established_lifetime_counts_only_the_time_that_a_session_was_up() {
        let admits = |up| ALL.admits(&Usage::new(UnixTime(0)).and(up), UnixTime(7 * 3600));
        assert_eq!(admits(HOUR), Ok(()));
        assert_eq!(admits(HOUR * 2), Err(Spent::Established));
    }

    #[test]
    fn stretches_add_up_and_never_start_again() {
        let usage = Usage::new(UnixTime(5)).and(HOUR).and(HOUR);
        assert_eq!(usage.established, HOUR * 2);
        assert_eq!(usage.and(Duration::MAX).established, Duration::MAX);
    }

    #[test]
    fn an_entry_is_good_until_its_end_or_that_of_the_strategy() {
        let left = |ends, now| {
            let left = ALL.left(&Usage::new(UnixTime(0)), UnixTime(ends), UnixTime(now));
            left.as_secs()
        };
        assert_eq!([left(100, 40), left(100, 100), left(100, 101)], [60, 0, 0]);
        let most = 8 * 3600;
        assert_eq!([left(most + 9, 0), left(most + 9, most)], [most, 0]);
        let spent = Usage::new(UnixTime(0)).and(HOUR * 2);
        assert_eq!(
            ALL.left(&spent, UnixTime(100), UnixTime(40)),
            Duration::ZERO
        );
    }

    #[test]
    fn a_clock_that_went_back_refuses() {
        let usage = Usage::new(UnixTime(1000));
        assert_eq!(ALL.admits(&usage, UnixTime(1000)), Ok(()));
        assert_eq!(ALL.admits(&usage, UnixTime(999)), Err(Spent::ClockWentBack));
    }
}
