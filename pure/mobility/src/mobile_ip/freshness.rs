//! Identifications of requests, by which a home agent distinguishes new requests from replays (RFC
//! 5944 section 5.7). With either method, the lower half is the mobile node's and comes back
//! unchanged.

use super::clock::{NtpTime, WallClock};
use crypto::Rng;
use model::Instant;
use std::time::Duration;

/// Random bits of a timestamp. The lower half has to distinguish requests even if they leave
/// exactly one second apart.
const DRAWN: u64 = 0x000f_ffff;

/// The replay protection of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// Timestamps (section 5.7.1): both ends know the time of day.
    Timestamps {
        /// Greatest accepted difference between the clocks.
        tolerance: Duration,
    },
    /// Nonces (section 5.7.2): the home agent supplies the next one in its last reply.
    Nonces,
}

impl Replay {
    /// "A default value of 7 seconds MAY be used".
    pub const TIMESTAMPS: Self = Self::Timestamps {
        tolerance: Duration::from_secs(7),
    };
}

impl Default for Replay {
    fn default() -> Self {
        Self::TIMESTAMPS
    }
}

/// Generates the identifications of a mobile node's requests.
#[derive(Debug)]
pub(super) struct IdentificationGenerator {
    replay: Replay,
    clock: WallClock,
    nonce: u32,
    last: Option<NtpTime>,
}

impl IdentificationGenerator {
    pub(super) fn new(replay: Replay, now: Instant) -> Self {
        let mut clock = WallClock::default();
        // Start at zero: a mobile node without the time learns it from the home agent.
        clock.set(NtpTime(0), now);
        Self {
            replay,
            clock,
            nonce: 0,
            last: None,
        }
    }

    pub(super) const fn set_clock(&mut self, time: NtpTime, now: Instant) {
        self.clock.set(time, now);
    }

    /// Returns true if a retransmission gets a new identification: "When nonces are used, the
    /// unanswered Request is retransmitted unchanged" (section 3.6.3).
    pub(super) const fn renews(&self) -> bool {
        matches!(self.replay, Replay::Timestamps { .. })
    }

    /// Returns the identification of a new request.
    pub(super) fn next(&mut self, rng: &mut Rng, now: Instant) -> u64 {
        match self.replay {
            Replay::Nonces => join(self.nonce, rng.u32()),
            Replay::Timestamps { .. } => {
                let shown = self.clock.time(now).unwrap_or(NtpTime(0));
                let mut time = NtpTime(shown.0 & !DRAWN | rng.u64() & DRAWN);
                // It "MUST be greater than that used in any previous Registration Request".
                if let Some(last) = self.last.filter(|&last| !time.is_after(last)) {
                    time = NtpTime(last.0.wrapping_add(1 + (rng.u64() & DRAWN)));
                }
                self.last = Some(time);
                time.0
            }
        }
    }

    /// Applies the identification in an authentic reply of a home agent, accepted or not.
    pub(super) fn learn(&mut self, said: u64, is_refused: bool, now: Instant) {
        let upper = (said >> 32) as u32;
        match self.replay {
            Replay::Nonces => self.nonce = upper,
            Replay::Timestamps { .. } if is_refused => {
                self.clock.set(NtpTime(u64::from(upper) << 32), now);
                self.last = None;
            }
            Replay::Timestamps { .. } => {}
        }
    }
}

/// Checks the identifications of one mobile node, at the home agent.
#[derive(Debug)]
pub(super) struct FreshnessChecker {
    /// The last accepted timestamp.
    last: Option<NtpTime>,
    /// The nonce that the next request must have.
    nonce: u32,
}

/// The freshness of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    New,
    /// A replay; holds the upper half that a new request needs.
    Old(u32),
    /// The time of day is not known yet.
    Unknown,
}

impl FreshnessChecker {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self {
            last: None,
            nonce: rng.u32(),
        }
    }

    /// Checks an identification. `is_before` is true for a timestamp older than this home agent's
    /// knowledge.
    pub(super) fn judge(
        &self,
        replay: Replay,
        identification: u64,
        time: Option<NtpTime>,
        is_before: bool,
    ) -> Freshness {
        let (is_new, upper) = match (replay, time) {
            (Replay::Timestamps { .. }, None) => return Freshness::Unknown,
            (Replay::Timestamps { tolerance }, Some(time)) => {
                let stamp = NtpTime(identification);
                let is_later = self.last.map_or(!is_before, |last| stamp.is_after(last));
                (is_later && stamp.is_near(time, tolerance), time.seconds())
            }
            (Replay::Nonces, _) => (upper_half(identification) == self.nonce, self.nonce),
        };
        match is_new {
            true => Freshness::New,
            // Repeat an unused nonce: replays of old requests must not invalidate the current one.
            false => Freshness::Old(upper),
        }
    }

    /// Accepts a new request. From now on its identification is a replay.
    pub(super) fn take(&mut self, replay: Replay, identification: u64, rng: &mut Rng) {
        match replay {
            Replay::Timestamps { .. } => self.last = Some(NtpTime(identification)),
            Replay::Nonces => self.nonce = self.nonce.wrapping_add(1 + rng.u32() / 2),
        }
    }

    /// Returns the identification of the reply to an accepted request.
    pub(super) const fn answer(&self, replay: Replay, identification: u64) -> u64 {
        match replay {
            Replay::Timestamps { .. } => identification,
            Replay::Nonces => join(self.nonce, identification as u32),
        }
    }
}

/// Joins the two halves of an identification.
pub(super) const fn join(upper: u32, lower: u32) -> u64 {
    (upper as u64) << 32 | lower as u64
}

const fn upper_half(identification: u64) -> u32 {
    (identification >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator whose second number is zero in all random bits of a timestamp.
    fn rng() -> Rng {
        let mut seed = [0; 32];
        seed[..4].copy_from_slice(&460_602_u32.to_le_bytes());
        Rng::from_seed(seed)
    }

    /// "MUST be greater than that used in any previous Registration Request" (RFC 5944 section
    /// 5.7.1).
    #[test]
    fn a_timestamp_is_later_than_the_last_whatever_is_drawn() {
        let mut ahead = rng();
        let drawn = [(); 2].map(|()| ahead.u64() & DRAWN);
        assert_eq!(drawn[1], 0);
        let mut maker = IdentificationGenerator::new(Replay::TIMESTAMPS, Instant::ZERO);
        let last = NtpTime(DRAWN);
        maker.last = Some(last);
        let next = maker.next(&mut rng(), Instant::ZERO);
        assert!(NtpTime(next).is_after(last));
    }
}
