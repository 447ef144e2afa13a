//! Signs of life on one of several live paths.
//!
//! Each authentic packet of the path's child SA is one. An end that sends there and receives
//! nothing asks by pings, which the peer answers on the same path ([`Probe::CHECK`]). A path
//! without an answer for [`least patience`](LEAST) is down, and its flows take the others. It is
//! used again after it has answered for [`TRUST`], so that a path that comes and goes moves no
//! flows.
//!
//! [`Probe::CHECK`]: wire::probe::Probe::CHECK

use model::Instant;
use std::time::Duration;

/// Interval of pings on a path that owes a sign of life. A peer answers at most eight in a second.
pub(super) const TICK: Duration = Duration::from_millis(200);

/// Interval of pings on a path without traffic, which keep the mapping of a NAT.
pub(super) const IDLE: Duration = Duration::from_secs(10);

/// Least and greatest time without an answer after which a path is down: several pings, and round
/// trips of the IKE SA.
const LEAST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3);
const ROUND_TRIPS: u32 = 4;

/// Time for which a path that was down answers before it is used again.
const TRUST: Duration = Duration::from_secs(2);

/// The state of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Health {
    /// Arrival of the newest packet.
    heard: Option<Instant>,
    /// Time of the first ping since then.
    asked: Option<Instant>,
    standing: Standing,
    /// Time of the last ping or sign of life; `None` on a new path, which is pinged at once.
    last: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Up,
    /// It gives signs of life since this time, if it does.
    Down(Option<Instant>),
}

/// What the data plane has seen of a path's child SA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Arrival of the newest packet.
    pub heard: Option<Instant>,
    /// True if something was sent since.
    pub owes: bool,
    /// True if datagrams were sent or received since the last look.
    pub is_busy: bool,
    /// Smoothed round trip of the IKE SA.
    pub round_trip: Option<Duration>,
}

impl Health {
    /// Begins with a path that has just been verified.
    pub const fn new() -> Self {
        Self {
            heard: None,
            asked: None,
            standing: Standing::Up,
            last: None,
        }
    }

    pub fn is_down(&self) -> bool {
        self.standing != Standing::Up
    }

    /// Takes a path down at once, as packets cannot leave there, or the peer has left it.
    pub fn leave(&mut self) {
        if !self.is_down() {
            self.standing = Standing::Down(None);
        }
    }

    /// Evaluates what was seen since the last call. Returns true if a ping is due.
    pub fn tick(&mut self, seen: Seen, now: Instant) -> bool {
        let is_alive = seen.heard > self.heard;
        if is_alive {
            (self.heard, self.asked, self.last) = (seen.heard, None, Some(now));
        }
        let patience = seen.round_trip.unwrap_or_default() * ROUND_TRIPS;
        let patience = patience.clamp(LEAST, LONGEST);
        let is_silent = self.asked.is_some_and(|asked| asked + patience <= now);
        self.standing = match self.standing {
            _ if is_silent => Standing::Down(None),
            Standing::Down(Some(since)) if since + TRUST <= now => Standing::Up,
            Standing::Down(since) => Standing::Down(since.or(is_alive.then_some(now))),
            Standing::Up => Standing::Up,
        };
        let owes = self.is_down() || self.asked.is_some() || seen.owes && !is_alive;
        let asks = owes || self.last.is_none_or(|last| last + IDLE <= now);
        if asks {
            self.last = Some(now);
            self.asked.get_or_insert(now);
        }
        asks
    }

    /// Returns the time of the next tick of a path with or without traffic.
    pub fn next(&self, is_busy: bool, now: Instant) -> Instant {
        match is_busy || self.is_down() || self.asked.is_some() {
            true => now + TICK,
            false => self.last.map_or(now, |last| last + IDLE).max(now + TICK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(millis: u32) -> Instant {
        Instant::ZERO + millis * MS
    }

    fn seen(heard: Option<u32>, owes: bool) -> Seen {
        Seen {
            heard: heard.map(at),
            owes,
            is_busy: owes,
            round_trip: Some(20 * MS),
        }
    }

    #[test]
    fn a_path_with_traffic_both_ways_is_never_pinged() {
        let mut health = Health::new();
        for millis in (200..20_000).step_by(200) {
            assert!(!health.tick(seen(Some(millis - 10), true), at(millis)));
        }
        assert!(!health.is_down());
    }

    #[test]
    fn a_path_that_does_not_answer_is_down_after_a_second() {
        let mut health = Health::new();
        assert!(!health.tick(seen(Some(190), true), at(200)));
        for millis in (400..1400).step_by(200) {
            assert!(health.tick(seen(Some(190), true), at(millis)));
            assert!(!health.is_down(), "{millis}");
        }
        health.tick(seen(Some(190), true), at(1400));
        assert!(health.is_down());
    }

    #[test]
    fn a_long_round_trip_has_more_time() {
        let mut health = Health::new();
        let mut slow = seen(None, true);
        slow.round_trip = Some(600 * MS);
        let mut down = None;
        for millis in (200..4000).step_by(200) {
            health.tick(slow, at(millis));
            down = down.or(health.is_down().then_some(millis));
        }
        assert_eq!(down, Some(2600));
    }

    #[test]
    fn a_path_that_comes_back_is_used_after_two_seconds_of_answers() {
        let mut health = Health::new();
        health.leave();
        let mut up = None;
        for millis in (200..6000).step_by(200) {
            // It answers for a second, is silent for two, and then answers again.
            let heard = match millis {
                200..1200 => Some(millis - 1),
                1200..3200 => Some(1199),
                _ => Some(millis - 1),
            };
            assert!(health.tick(seen(heard, false), at(millis)) || !health.is_down());
            up = up.or((!health.is_down()).then_some(millis));
        }
        assert_eq!(up, Some(5200));
    }

    #[test]
    fn a_path_without_traffic_is_pinged_now_and_then() {
        let mut health = Health::new();
        let mut pings = 0;
        for millis in (200..60_000).step_by(200) {
            // Each ping is answered.
            let heard = (pings > 0).then_some(pings * 10_000 + 5);
            pings += u32::from(health.tick(seen(heard, false), at(millis)));
        }
        assert_eq!(pings, 6);
        assert!(!health.is_down());
        assert!(health.next(false, at(60_000)) > at(61_000));
    }
}
