//! The times of a log: its formats, its zone, the year that syslog leaves out, and steps of the
//! clock.

use crypto::UnixTime;

/// Going back by no more than this many seconds is the order in which threads write, not a step.
const TOLERANCE: u64 = 5;

const DAY: i64 = 86_400;

/// The last second of the year 9999. Larger numbers are milliseconds, or damaged.
pub(crate) const LAST: u64 = 253_402_300_799;

/// Offset of local time from UTC, in seconds to the east.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone(i32);

impl Zone {
    /// UTC.
    pub const UTC: Self = Self(0);

    /// Reads `Z`, `+hh`, `+hhmm` or `+hh:mm`.
    pub fn read(text: &str) -> Option<Self> {
        let (zone, rest) = Self::split(text)?;
        rest.is_empty().then_some(zone)
    }

    /// Returns the local day of a time, as days since 1970.
    pub fn day(self, time: UnixTime) -> u64 {
        time.0.saturating_add_signed(self.0.into()) / 86_400
    }

    fn split(text: &str) -> Option<(Self, &str)> {
        let sign = match text.as_bytes().first()? {
            b'Z' => return Some((Self::UTC, &text[1..])),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let (hours, rest) = digits(&text[1..], 2)?;
        let after = rest.strip_prefix(':').unwrap_or(rest);
        let (minutes, rest) = digits(after, 2).unwrap_or((0, rest));
        let is_possible = hours <= 15 && minutes < 60;
        is_possible.then_some((Self(sign * (hours * 3600 + minutes * 60) as i32), rest))
    }
}

/// Reads the times of one log.
#[derive(Clone, Debug)]
pub struct Clock {
    zone: Zone,
    latest: UnixTime,
    begun: bool,
    steps: u64,
}

impl Clock {
    /// Creates a clock for a log whose local times are in this zone. `near` is any time within half
    /// a year of the log's first line, for formats without a year.
    pub const fn new(zone: Zone, near: UnixTime) -> Self {
        Self {
            zone,
            latest: near,
            begun: false,
            steps: 0,
        }
    }

    /// Returns how often the clock of the log went back.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Notes the time of a record, in the order of the log.
    pub fn advance(&mut self, to: UnixTime) {
        if self.begun && to.0.saturating_add(TOLERANCE) < self.latest.0 {
            self.steps += 1;
        }
        self.begun = true;
        self.latest = to;
    }

    /// Reads the time with which a text begins, and returns it with the rest of the text. Formats:
    /// RFC 3339 and ISO 8601, syslog with or without a year, `ctime`.
    pub fn split<'a>(&self, text: &'a str) -> Option<(UnixTime, &'a str)> {
        match text.as_bytes().first()? {
            b'0'..=b'9' => self.iso(text),
            _ => self.named(text),
        }
    }

    /// Reads a text that is a time in one of the formats, or seconds since 1970.
    pub fn read(&self, text: &str) -> Option<UnixTime> {
        if text.len() < 15
            && let Some((whole, _)) = text.split_once('.').or(Some((text, "")))
            && let Ok(seconds) = whole.parse()
            && seconds <= LAST
        {
            return Some(UnixTime(seconds));
        }
        let (time, rest) = self.split(text)?;
        rest.trim().is_empty().then_some(time)
    }

    /// `2026-11-30T09:26:17.5+01:00`, with a space in place of `T`, without a fraction or zone.
    fn iso<'a>(&self, text: &'a str) -> Option<(UnixTime, &'a str)> {
        let (year, rest) = digits(text, 4)?;
        let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
        let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
        let (second, rest) = time_of_day(rest.strip_prefix(['T', ' '])?)?;
        let (zone, rest) = Zone::split(rest).unwrap_or((self.zone, rest));
        Some((instant(year, month, day, second, zone)?, rest))
    }

    /// `Nov 30 09:26:17`, `Nov 30 2026 09:26:17`, `Mon Nov 30 09:26:17 2026`.
    fn named<'a>(&self, text: &'a str) -> Option<(UnixTime, &'a str)> {
        let syslog = month(text);
        let is_ctime = syslog.is_none();
        let (month, rest) = match syslog {
            Some(found) => found,
            None => month(text.get(3..)?.strip_prefix(' ')?)?,
        };
        let rest = rest.trim_start_matches(' ');
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (day, rest) = digits(rest, length.clamp(1, 2))?;
        let rest = rest.strip_prefix(' ')?;
        let early = digits(rest, 4).and_then(|(year, rest)| Some((year, rest.strip_prefix(' ')?)));
        let (second, rest) = time_of_day(early.map_or(rest, |(_, rest)| rest))?;
        let late = rest.strip_prefix(' ').filter(|_| is_ctime);
        let late = late.and_then(|rest| digits(rest, 4));
        let (year, rest) = match (early, late) {
            (Some((year, _)), _) => (Some(year), rest),
            (None, Some((year, rest))) => (Some(year), rest),
            (None, None) => (None, rest),
        };
        let time = match year {
            Some(year) => instant(year, month, day, second, self.zone)?,
            None => self.nearest(month, day, second)?,
        };
        Some((time, rest))
    }

    /// Returns the time in the year that is nearest to the previous record.
    fn nearest(&self, month: u32, day: u32, second: u32) -> Option<UnixTime> {
        let about = 1970 + u32::try_from(self.latest.0 / 31_556_952).ok()?;
        let years = about.saturating_sub(1)..=about + 1;
        let times = years.filter_map(|year| instant(year, month, day, second, self.zone));
        times.min_by_key(|time| time.0.abs_diff(self.latest.0))
    }
}

/// Reads a number of so many digits.
fn digits(text: &str, length: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(length)?;
    let is_number = number.bytes().all(|octet| octet.is_ascii_digit());
    let number = is_number.then(|| number.parse().ok())??;
    Some((number, rest))
}

/// Reads `hh:mm:ss`, and a fraction, which is dropped.
fn time_of_day(text: &str) -> Option<(u32, &str)> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let rest = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let is_possible = hour < 24 && minute < 60 && second <= 60;
    is_possible.then_some((hour * 3600 + minute * 60 + second, rest))
}

fn month(text: &str) -> Option<(u32, &str)> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (name, rest) = text.split_at_checked(3)?;
    let place = MONTHS.iter().position(|month| *month == name)?;
    Some((u32::try_from(place).ok()? + 1, rest.strip_prefix(' ')?))
}

fn instant(year: u32, month: u32, day: u32, second: u32, zone: Zone) -> Option<UnixTime> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || !(1..=length).contains(&day) {
        return None;
    }
    let day = UnixTime::from_date(
        u16::try_from(year).ok()?,
        u8::try_from(month).ok()?,
        u8::try_from(day).ok()?,
    );
    let local = i64::try_from(day.0).ok()? + i64::from(second).min(DAY - 1);
    Some(UnixTime(u64::try_from(local - i64::from(zone.0)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 30 November 2026, 09:26:17 UTC.
    const TIME: UnixTime = UnixTime(1_796_030_777);

    fn clock(zone: &str) -> Clock {
        Clock::new(Zone::read(zone).unwrap(), TIME)
    }

    #[test]
    fn every_format_gives_the_same_time() {
        for text in [
            "2026-11-30T09:26:17Z",
            "2026-11-30T10:26:17.123456+01:00",
            "2026-11-30T04:26:17-0500",
            "2026-11-30 09:26:17",
            "Nov 30 09:26:17",
            "Nov 30 2026 09:26:17",
            "Mon Nov 30 09:26:17 2026",
            "1796030777",
            "1796030777.25",
        ] {
            assert_eq!(clock("Z").read(text), Some(TIME), "{text}");
        }
        let (time, rest) = clock("Z").split("Nov 30 09:26:17 gw charon: x").unwrap();
        assert_eq!((time, rest), (TIME, " gw charon: x"));
    }

    #[test]
    fn local_times_are_in_the_zone_of_the_log() {
        assert_eq!(clock("+02:00").read("2026-11-30 11:26:17"), Some(TIME));
        assert_eq!(clock("-0330").read("Nov 30 05:56:17"), Some(TIME));
        assert_eq!(Zone::read("+05").unwrap().day(UnixTime(86_400 - 3600)), 1);
    }

    #[test]
    fn a_time_without_a_year_is_near_the_previous_one() {
        let mut clock = clock("Z");
        let december = clock.read("Dec 31 23:59:59").unwrap();
        clock.advance(december);
        let january = clock.read("Jan  1 00:00:01").unwrap();
        assert_eq!(january.0 - december.0, 2);
        clock.advance(january);
        assert_eq!(clock.read("Dec 31 23:59:59"), Some(december));
    }

    #[test]
    fn steps_back_are_counted_and_disorder_is_not() {
        let mut clock = clock("Z");
        for second in [1000, 1010, 1006, 1011, 400, 401] {
            clock.advance(UnixTime(second));
        }
        assert_eq!(clock.steps(), 1);
    }

    #[test]
    fn impossible_times_are_none() {
        for text in [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-30T24:00:00Z",
            "2026-11-30",
            "1969-12-31T23:59:59Z",
            "Nov 31 09:26:17",
            "Foo 30 09:26:17",
            "",
        ] {
            assert_eq!(clock("Z").read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seconds in 0..4_102_444_800_u64) {
            let text = UnixTime(seconds).rfc3339();
            prop_assert_eq!(clock("+07:00").read(&text), Some(UnixTime(seconds)));
        }

        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,40}") {
            let _ = clock("Z").split(&text);
            let _ = clock("Z").read(&text);
        }
    }
}
