//! The schedule and sequence numbers of an agent's advertisements (RFC 5944 section 2.3).

use super::part_of;
use crypto::Rng;
use model::Instant;
use std::time::Duration;

/// Longest delay of the answer to a solicitation.
const ANSWER: Duration = Duration::from_millis(50);
/// Least interval between two advertisements, even if solicited: "a mobility agent MUST limit the
/// rate".
const SPACING: Duration = Duration::from_millis(250);

/// The schedule of advertisements.
#[derive(Debug)]
pub(super) struct Beacon {
    interval: Duration,
    sequence: u16,
    last: Option<Instant>,
    next: Instant,
}

impl Beacon {
    pub(super) fn new(interval: Duration, rng: &mut Rng, now: Instant) -> Self {
        Self {
            interval: interval.max(SPACING),
            sequence: 0,
            last: None,
            next: now + part_of(ANSWER, rng),
        }
    }

    /// Handles a solicitation. Repeated solicitations do not bring answers more often than the
    /// least interval.
    pub(super) fn ask(&mut self, rng: &mut Rng, now: Instant) {
        let soon = now + part_of(ANSWER, rng);
        let earliest = self.last.map_or(soon, |last| soon.max(last + SPACING));
        self.next = self.next.min(earliest);
    }

    /// Restarts the sequence numbers, as after a reboot, so that visitors register again (section
    /// 2.4.4).
    pub(super) fn begin_anew(&mut self, rng: &mut Rng, now: Instant) {
        self.sequence = 0;
        self.ask(rng, now);
    }

    /// Returns the sequence number of an advertisement if one is due. The next follows after three
    /// quarters to the whole of the interval (RFC 1256 section 6.2.1).
    pub(super) fn due(&mut self, rng: &mut Rng, now: Instant) -> Option<u16> {
        if self.next > now {
            return None;
        }
        let jitter = part_of(self.interval / 4, rng);
        self.next = now + (self.interval - jitter).max(SPACING);
        self.last = Some(now);
        let sequence = self.sequence;
        // "The sequence number 0xffff MUST be followed by sequence number 256" (section 2.3.2).
        self.sequence = sequence.checked_add(1).unwrap_or(256);
        Some(sequence)
    }

    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// Returns the lifetime of an advertisement in seconds: three intervals.
    pub(super) fn lifetime(&self) -> u16 {
        let seconds = (self.interval * 3).as_millis().div_ceil(1000);
        u16::try_from(seconds).unwrap_or(u16::MAX)
    }
}
