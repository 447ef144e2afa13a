//! How long an entry may be used: the caching strategies of the paper (004, section IV-B), alone or
//! together.
//!
//! With a *clocked* lifetime, an entry ends a time after the last full key exchange. With an
//! *established* lifetime, only the time counts for which an IKE SA was up; with a *data* lifetime,
//! the octets of the datagrams that its child SAs carried. Neither ends by itself, so the clock
//! always limits an entry as well.

use crypto::UnixTime;
use std::time::Duration;

/// What the sessions since the last full authentication have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Time of the last full authentication.
    pub since: UnixTime,
    /// Time for which an IKE SA has been up since, in whole seconds.
    pub established: Duration,
    /// Octets of the datagrams that child SAs have carried since, in both directions.
    pub data: u64,
}

impl Usage {
    /// Returns the usage of a session that has just been authenticated.
    pub const fn new(since: UnixTime) -> Self {
        Self {
            since,
            established: Duration::ZERO,
            data: 0,
        }
    }

    /// Returns the usage after another stretch, with the octets that were carried in it.
    pub const fn and(self, established: Duration, data: u64) -> Self {
        Self {
            since: self.since,
            established: self.established.saturating_add(established),
            data: self.data.saturating_add(data),
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
    /// Most octets that child SAs have carried since.
    pub data: Option<u64>,
    /// True if tickets are given by value. Nobody counts the use of these, so neither time nor data
    /// may be limited ([`Self::is_by_value`]).
    pub by_value: bool,
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
    /// Child SAs have carried too much since.
    #[error("tunnels have carried too much since the last full authentication")]
    Data,
    /// The last full authentication is in the future: the clock went back.
    #[error("the clock went back behind the last full authentication")]
    ClockWentBack,
}

impl Strategy {
    /// Longest lifetime of any entry.
    pub const LONGEST: Duration = Duration::from_secs(30 * 86_400);

    /// Returns the latest end of any session whose last full authentication was not later than
    /// this.
    pub const fn latest_end(since: UnixTime) -> UnixTime {
        UnixTime(since.0.saturating_add(Self::LONGEST.as_secs()))
    }

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
        if self.data.is_some_and(|most| usage.data >= most) {
            return Err(Spent::Data);
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

    /// Returns true if the time counts for which IKE SAs are up.
    pub const fn counts_time(&self) -> bool {
        self.established.is_some()
    }

    /// Returns true if tickets are given and taken by value.
    pub const fn is_by_value(&self) -> bool {
        self.by_value && self.established.is_none() && self.data.is_none()
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
        data: Some(50_000_000),
        by_value: true,
    };

    /// The paper's example: "a connection could initially last two hours, disconnect, and resume
    /// three hours later" with a clocked lifetime of 8 hours, but not after seven hours more.
    #[test]
    fn a_clocked_lifetime_counts_the_time_between_sessions_too() {
        let clocked = Strategy {
            established: None,
            ..ALL
        };
        let usage = Usage::new(UnixTime(1000)).and(HOUR * 2, 0);
        let after = |hours: u64| clocked.admits(&usage, UnixTime(1000 + 3600 * hours));
        assert_eq!([after(5), after(9)], [Ok(()), Err(Spent::Clocked)]);
        assert_eq!(clocked.end(&usage), UnixTime(1000 + 8 * 3600));
    }

    #[test]
    fn an_established_lifetime_counts_only_the_time_that_a_session_was_up() {
        let admits = |up| ALL.admits(&Usage::new(UnixTime(0)).and(up, 0), UnixTime(7 * 3600));
        assert_eq!(admits(HOUR), Ok(()));
        assert_eq!(admits(HOUR * 2), Err(Spent::Established));
    }

    /// Rule: by value only a clocked lifetime, as a ticket cannot count its use.
    #[test]
    fn what_is_counted_is_not_by_value() {
        let without = |established, data| {
            let strategy = Strategy {
                established,
                data,
                ..ALL
            };
            strategy.is_by_value()
        };
        assert!(without(None, None) && !ALL.is_by_value());
        assert!(!without(ALL.established, None) && !without(None, ALL.data));
    }

    /// The paper's example: "a data lifetime of 50 MBytes".
    #[test]
    fn a_data_lifetime_counts_only_what_was_carried() {
        let admits = |data| {
            let usage = Usage::new(UnixTime(0)).and(HOUR, data);
            ALL.admits(&usage, UnixTime(7 * 3600))
        };
        assert_eq!(admits(49_999_999), Ok(()));
        assert_eq!(admits(50_000_000), Err(Spent::Data));
        let without = Strategy { data: None, ..ALL };
        let usage = Usage::new(UnixTime(0)).and(HOUR, u64::MAX);
        assert_eq!(without.admits(&usage, UnixTime(0)), Ok(()));
    }

    #[test]
    fn stretches_add_up_and_never_start_again() {
        let usage = Usage::new(UnixTime(5)).and(HOUR, 7).and(HOUR, 8);
        assert_eq!((usage.established, usage.data), (HOUR * 2, 15));
        let most = usage.and(Duration::MAX, u64::MAX);
        assert_eq!((most.established, most.data), (Duration::MAX, u64::MAX));
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
        let spent = Usage::new(UnixTime(0)).and(HOUR * 2, 0);
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
