//! Keepalives of one tunnel in UDP (RFC 3519 sections 4.9 and 4.10): an echo request when nothing has been sent for a
//! while, or nothing heard, and a few more where no answer comes. Without any the NAT on the way has forgotten the tunnel,
//! or the home agent is out of reach.

use model::Instant;
use std::time::Duration;

/// "K is a parameter with a default value of 110 seconds."
pub(super) const DEFAULT: Duration = Duration::from_secs(110);
/// One "MUST NOT use a keepalive less than 10 seconds" (section 4.10).
const SHORTEST: Duration = Duration::from_secs(10);
/// An echo request is repeated after so long, and then after twice as long each time.
const FIRST: Duration = Duration::from_secs(1);
/// So many are sent before the tunnel is lost: after a quarter of a minute.
const TRIES: u32 = 4;

/// When one tunnel was in use, and what was done to find out whether it still works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keepalive {
    interval: Duration,
    sent: Instant,
    heard: Instant,
    /// Echo requests without an answer, and when the last of them left.
    tries: u32,
    asked: Instant,
    sequence: u16,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// An echo request of this number is to be sent.
    Ask(u16),
    /// No answer came to any of them.
    Lost,
}

impl Keepalive {
    /// Of a tunnel that is just there. The home agent says `told`, 0 if nothing, and whoever runs this end `ours`: the
    /// shorter counts, for a NAT may forget sooner than the other knows (section 4.10).
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

    /// Something left by the tunnel.
    pub(super) const fn note_sent(&mut self, now: Instant) {
        self.sent = now;
    }

    /// Something came by it.
    pub(super) const fn note_heard(&mut self, now: Instant) {
        self.heard = now;
        self.tries = 0;
    }

    /// When something is to be done.
    pub(super) fn next(&self) -> Instant {
        match self.tries {
            0 => self.sent.min(self.heard) + self.interval,
            tries => self.asked + FIRST * 2_u32.pow(tries - 1),
        }
    }

    /// What is to be done now, if anything is.
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
