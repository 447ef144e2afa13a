//! Wall-clock time, for the validity of certificates, for address leases and for log texts.

use std::fmt;

const DAY: u64 = 86_400;

/// Seconds since the beginning of 1970, without leap seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub u64);

impl UnixTime {
    /// Converts a timestamp; times before 1970 become zero.
    pub(crate) fn from_timestamp(timestamp: i64) -> Self {
        Self(u64::try_from(timestamp).unwrap_or(0))
    }

    /// Returns the beginning of a day of the calendar, in UTC; days before 1970 become zero.
    pub const fn from_date(year: u16, month: u8, day: u8) -> Self {
        Self(days(year as u64, month as u64, day as u64) * DAY)
    }

    /// Returns the whole days from `now` to this time, or zero if it is past.
    pub const fn days_after(self, now: Self) -> u64 {
        self.0.saturating_sub(now.0) / DAY
    }

    /// Returns the time as in `2026-01-31T09:05:07Z` (RFC 3339 section 5.6). These texts sort by
    /// time.
    pub fn rfc3339(self) -> String {
        let (year, month, day) = date(self.0 / DAY);
        let second = self.0 % DAY;
        let (hour, minute, second) = (second / 3600, second % 3600 / 60, second % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl fmt::Display for UnixTime {
    /// Formats the time as in `2026-01-31 09:05 UTC`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0 / DAY, self.0 % DAY);
        let (year, month, day) = date(days);
        let (hour, minute) = (second / 3600, second % 3600 / 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
    }
}

/// Returns year, month and day. Years begin in March here, so that the leap day is the last of its
/// year and the months before a month have (153 m + 2) / 5 days.
const fn date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + next_year, month, day)
}

/// Returns the days from 1970 to a date; the inverse of [`date`].
const fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year.saturating_sub(1), month + 9)
    };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    let of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (era * 146_097 + of_era).saturating_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_that_is_written_as_a_date_is_that_day() {
        for day in (0..200_000).step_by(7).chain(10_957..12_500) {
            let (year, month, of_month) = date(day);
            let read = UnixTime::from_date(year as u16, month as u8, of_month as u8);
            assert_eq!(read, UnixTime(day * DAY));
        }
        assert_eq!(UnixTime::from_date(1969, 12, 31), UnixTime(0));
        assert_eq!(UnixTime::from_date(0, 1, 1), UnixTime(0));
    }

    /// The values come from `date --utc`.
    #[test]
    fn times_are_shown_as_dates() {
        for (time, shown) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_340, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(UnixTime(time).to_string(), shown);
        }
    }

    #[test]
    fn only_whole_days_are_left_and_none_of_what_is_past() {
        let now = UnixTime(951_782_340);
        let left = |seconds| UnixTime(now.0 + seconds).days_after(now);
        assert_eq!(
            [0, 86_399, 86_400, 604_799, 604_800].map(left),
            [0, 0, 1, 6, 7]
        );
        assert_eq!(now.days_after(UnixTime(now.0 + 86_400)), 0);
    }

    /// RFC 3339 section 5.6: the texts sort by time.
    #[test]
    fn times_in_files_are_those_of_rfc_3339() {
        let times = [0, 951_782_399, 951_865_507, 1_769_850_307, 4_107_542_400];
        let written = times.map(|time| UnixTime(time).rfc3339());
        assert_eq!(
            written,
            [
                "1970-01-01T00:00:00Z",
                "2000-02-28T23:59:59Z",
                "2000-02-29T23:05:07Z",
                "2026-01-31T09:05:07Z",
                "2100-03-01T00:00:00Z",
            ]
        );
        assert!(written.is_sorted());
    }
}
