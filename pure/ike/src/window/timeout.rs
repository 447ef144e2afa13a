//! The retransmission timeout of a path (RFC 6298).

use crate::config::Timers;
use std::time::Duration;

/// The retransmission timeout of a path.
///
/// Peers need more time for a key exchange than for a liveness check, so a response may always take
/// [`Timers::retransmit_slack`] longer than the previous ones. It stands in the place of the clock
/// granularity G of the RFC.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timeout {
    round_trip: Option<RoundTrip>,
    /// Longest timeout of a request since the last measurement that had to be retransmitted. The
    /// timeout has to grow then: otherwise no request on a path that has become slower would ever
    /// be sent only once, and measured.
    too_short: Option<Duration>,
}

/// The measured round trip.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
}

impl Timeout {
    /// Returns the delay before the first retransmission of a request.
    pub(super) fn first(&self, timers: &Timers) -> Duration {
        let measured = self.round_trip.map(|round_trip| {
            let slack = timers.retransmit_slack;
            round_trip.smoothed + slack.max(round_trip.variation * 4)
        });
        let timeout = measured.unwrap_or(timers.retransmit);
        let longer = self.too_short.map(|first| first + timers.retransmit_slack);
        timeout
            .max(longer.unwrap_or_default())
            .min(timers.retransmit_within)
    }

    /// Returns the smoothed round trip, if it was measured.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.round_trip.map(|round_trip| round_trip.smoothed)
    }

    /// Adds the time that the response to a request took. The request must have been sent only
    /// once: "RTT samples MUST NOT be made using segments that were retransmitted" (section 3).
    pub(super) fn measure(&mut self, took: Duration) {
        self.too_short = None;
        self.round_trip = Some(match self.round_trip {
            None => RoundTrip {
                smoothed: took,
                variation: took / 2,
            },
            Some(RoundTrip {
                smoothed,
                variation,
            }) => RoundTrip {
                smoothed: (smoothed * 7 + took) / 8,
                variation: (variation * 3 + smoothed.abs_diff(took)) / 4,
            },
        });
    }

    /// Records a request that was answered after retransmission, with the delay before the first.
    /// The next one waits longer.
    ///
    /// "The host MUST set RTO <- RTO * 2" (section 5.5) holds for the retransmissions of one
    /// request. The next request is not delayed as much: on a path that loses many datagrams, it
    /// has to be sent several times before a half-open SA, a liveness check or a follow-up exchange
    /// ends.
    pub(super) fn note_retransmitted(&mut self, first: Duration) {
        self.too_short = self.too_short.max(Some(first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SATELLITE: Duration = Duration::from_millis(600);
    const FLOOR: Duration = Duration::from_millis(200);

    fn first(timeout: Timeout) -> Duration {
        timeout.first(&Timers::default())
    }

    fn measured(times: &[Duration]) -> Timeout {
        let mut timeout = Timeout::default();
        times.iter().for_each(|took| timeout.measure(*took));
        timeout
    }

    #[test]
    fn before_the_first_measurement_it_is_one_second() {
        assert_eq!(first(Timeout::default()), Duration::from_secs(1));
    }

    #[test]
    fn after_the_first_measurement_it_is_three_round_trips() {
        assert_eq!(first(measured(&[SATELLITE])), SATELLITE * 3);
    }

    /// RTTVAR = 3/4 * 300 ms + 1/4 * 200 ms, SRTT = 7/8 * 600 ms + 1/8 * 800 ms.
    #[test]
    fn the_second_measurement_is_weighted_as_section_2_3_says() {
        let longer = Duration::from_millis(800);
        let timeout = measured(&[SATELLITE, longer]);
        assert_eq!(timeout.round_trip(), Some(Duration::from_millis(625)));
        assert_eq!(first(timeout), Duration::from_millis(625 + 4 * 275));
    }

    #[test]
    fn it_is_200_milliseconds_more_than_the_round_trip_at_least() {
        assert_eq!(first(measured(&[Duration::ZERO; 9])), FLOOR);
        assert_eq!(first(measured(&[SATELLITE; 99])), SATELLITE + FLOOR);
    }

    #[test]
    fn it_is_two_seconds_at_most() {
        let longest = Duration::from_secs(2);
        let mut timeout = measured(&[Duration::from_secs(5)]);
        assert_eq!(first(timeout), longest);
        timeout.note_retransmitted(Duration::from_secs(60));
        assert_eq!(first(timeout), longest);
    }

    #[test]
    fn it_grows_by_200_milliseconds_with_each_repeated_request_until_the_next_measurement() {
        let quick = Duration::from_millis(20);
        let mut timeout = measured(&[quick; 9]);
        timeout.note_retransmitted(SATELLITE);
        timeout.note_retransmitted(quick);
        assert_eq!(first(timeout), SATELLITE + FLOOR);
        timeout.note_retransmitted(SATELLITE + FLOOR);
        assert_eq!(first(timeout), SATELLITE + FLOOR * 2);
        timeout.measure(quick);
        assert_eq!(first(timeout), quick + FLOOR);
    }
}
