//! The quality of one way, from requests that were sent on it alone.

use std::time::Duration;

/// Number of newest requests that count.
const KEPT: u8 = 20;

/// Number of these that are lost on a way that fades: 15 %.
const FADED: u32 = 3;

/// Number of answers in a row after which a way that faded is used again, the first time and at
/// most. The number doubles each time that the way fades.
const TRUSTED: u16 = 10;
const MOST_TRUSTED: u16 = 160;

/// Round trip and loss of one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quality {
    round_trip: Option<Duration>,
    /// The newest requests, the last in the lowest bit. A set bit is a lost one.
    lost: u32,
    /// Number of requests that `lost` covers.
    count: u8,
    /// Number of answers since the last loss.
    run: u16,
    faded: bool,
    /// Value of `run` at which the way has recovered, the next time that it fades.
    trusted: u16,
}

impl Quality {
    /// The quality of a way on which no request was sent.
    pub(crate) const UNKNOWN: Self = Self {
        round_trip: None,
        lost: 0,
        count: 0,
        run: 0,
        faded: false,
        trusted: TRUSTED,
    };

    /// Adds the round trip of a request, or its loss.
    pub(crate) fn note(&mut self, took: Option<Duration>) {
        self.count = self.count.saturating_add(1).min(KEPT);
        self.lost = (self.lost << 1 | u32::from(took.is_none())) & ((1 << KEPT) - 1);
        match took {
            Some(took) => self.note_answer(took),
            None => self.run = 0,
        }
        self.faded |= self.lost.count_ones() >= FADED && self.run == 0;
    }

    fn note_answer(&mut self, took: Duration) {
        let smoothed = self.round_trip.map(|before| (before * 7 + took) / 8);
        self.round_trip = smoothed.or(Some(took));
        self.run = self.run.saturating_add(1);
        if self.faded && self.run >= self.trusted {
            self.faded = false;
            self.trusted = (self.trusted * 2).min(MOST_TRUSTED);
        }
        if self.run > MOST_TRUSTED {
            self.trusted = TRUSTED;
        }
    }

    /// Has the way answer for longer, because it did not carry the tunnel.
    pub(crate) fn distrust(&mut self) {
        self.run = 0;
        self.trusted = (self.trusted * 2).min(MOST_TRUSTED);
    }

    /// Returns the smoothed round trip, if a request was answered.
    pub const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// Returns the share of the newest requests that was lost, in per cent, if any was sent.
    pub fn lost(&self) -> Option<u8> {
        let percent = self.lost.count_ones() * 100;
        percent
            .checked_div(self.count.into())
            .map(|lost| lost as u8)
    }

    /// Returns true if the way loses too much, or has not recovered from that.
    pub const fn fades(&self) -> bool {
        self.faded
    }

    /// Returns true if any of the newest requests was lost.
    pub(crate) const fn is_doubtful(&self) -> bool {
        self.lost != 0
    }

    /// Returns true if a way that was silent has answered for long enough.
    pub(crate) const fn is_trusted(&self) -> bool {
        self.run >= self.trusted
    }

    /// Returns true if the way answers now.
    pub(crate) const fn answers(&self) -> bool {
        self.run >= 3
    }

    /// Returns the time that a packet needs, with the loss as if each lost packet took longer.
    pub(crate) fn cost(&self) -> Option<Duration> {
        Some(self.round_trip? * (KEPT as u32 + self.lost.count_ones() * 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(outcomes: &str) -> Quality {
        let mut quality = Quality::UNKNOWN;
        for outcome in outcomes.chars() {
            quality.note((outcome == '+').then_some(10 * MS));
        }
        quality
    }

    #[test]
    fn a_way_fades_with_the_third_loss_among_twenty_requests() {
        assert_eq!(after("").lost(), None);
        assert_eq!(
            (after("+-+-").lost(), after("+-+-").fades()),
            (Some(50), false)
        );
        let faded = after("-++++++-+++++++++++-");
        assert_eq!((faded.lost(), faded.fades()), (Some(15), true));
        // The first loss is too long ago.
        assert!(!after("-++++++-++++++++++++-").fades());
    }

    #[test]
    fn a_way_that_fades_again_has_to_answer_for_twice_as_long() {
        let faded = "---";
        let ten = "+".repeat(10);
        assert!(after(&(faded.to_owned() + &ten[1..])).fades());
        let once = faded.to_owned() + &ten;
        assert!(!after(&once).fades());
        let again = once + faded + &ten;
        assert!(after(&again).fades());
        assert!(!after(&(again + &ten)).fades());
    }

    #[test]
    fn after_a_long_time_without_loss_a_way_is_trusted_as_at_first() {
        let ten = "+".repeat(10);
        let long = "---".to_owned() + &ten.repeat(20) + "---" + &ten;
        assert!(!after(&long).fades());
    }

    #[test]
    fn the_round_trip_is_smoothed_and_loss_costs_time() {
        let mut quality = after("+");
        quality.note(Some(18 * MS));
        assert_eq!(quality.round_trip(), Some(11 * MS));
        assert!(after("+-++").cost() > after("++++").cost());
        assert_eq!(after("---").cost(), None);
    }
}
