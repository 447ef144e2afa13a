//! Keepalives of one UDP tunnel (RFC 3519 sections 4.9 and 4.10).
//!
//! An echo request is sent after a period without traffic in either direction, and repeated a few
//! times if no answer comes. If none is answered, the NAT on the path has dropped its mapping or
//! the home agent is unreachable.

use model::Instant;
use std::time::Duration;

/// "K is a parameter with a default value of 110 seconds."
pub(super) const DEFAULT: Duration = Duration::from_secs(110);
/// The lower limit: one "MUST NOT use a keepalive less than 10 seconds" (section 4.10).
const SHORTEST: Duration = Duration::from_secs(10);
/// Delay before the first repetition of an echo request; each further delay doubles.
const FIRST: Duration = Duration::from_secs(1);
/// Echo requests sent before the tunnel is considered lost, after a quarter of a minute.
const TRIES: u32 = 4;

/// The activity of one tunnel, and the state of its keepalives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keepalive {
    interval: Duration,
    sent: Instant,
    heard: Instant,
    /// Unanswered echo requests, and the time of the last one.
    tries: u32,
    asked: Instant,
    sequence: u16,
}

/// An action that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Send an echo request with this sequence number.
    Ask(u16),
    /// No echo request was answered.
    Lost,
}

impl Keepalive {
    /// Starts the keepalives of a new tunnel. `told` is the home agent's interval in seconds, 0 if
    /// it sent none; `ours` is the configured one. The shorter interval applies, because a NAT may
    /// drop its mapping sooner than the other end expects (section 4.10).
    pub(super) fn new(ours: Option<Duration>, told: u16, now: Instant) -> Self {
        let told = (told > 0).then(|| Duration::from_secs(told.into()));
        let interval = ours.into_iter().chain(told).min().unwrap_or(DEFAULT);
        Self {
            interval: interval.max(SHORTEST),
            sent: now,
            heard: now,
            tries: 0,
            asked: now,
            sequence: 0,
        }
    }

    /// Records that a packet left through the tunnel.
    pub(super) const fn note_sent(&mut self, now: Instant) {
        self.sent = now;
    }

    /// Records that a packet arrived through the tunnel.
    pub(super) const fn note_heard(&mut self, now: Instant) {
        self.heard = now;
        self.tries = 0;
    }

    /// Returns the time of the next action.
    pub(super) fn next(&self) -> Instant {
        match self.tries {
            0 => self.sent.min(self.heard) + self.interval,
            tries => self.asked + FIRST * 2_u32.pow(tries - 1),
        }
    }

    /// Returns the action that is due at `now`, if any.
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        if self.next() > now {
            return None;
        }
        if self.tries == TRIES {
            self.note_heard(now);
            return Some(Due::Lost);
        }
        (self.sent, self.asked) = (now, now);
        self.tries += 1;
        self.sequence = self.sequence.wrapping_add(1);
        Some(Due::Ask(self.sequence))
    }
}
