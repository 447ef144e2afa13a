//! Segments that were sent and are not acknowledged: the scoreboard of RFC 6675, per segment.
//!
//! Each segment is in the network, has arrived (according to SACK), or is lost. A lost segment that
//! is retransmitted is in the network again. Without SACK, a duplicate acknowledgement means that
//! *some* segment has arrived, so duplicates are only counted.

use model::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Number of duplicate acknowledgements, or of segments that arrived beyond a hole, that prove a
/// loss (RFC 5681 section 3.2, RFC 6675 section 2).
pub(super) const PROOF: u32 = 3;

/// A segment in transit. Offsets count from the first octet of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    start: u64,
    end: u64,
    at: Instant,
    /// Number of the transmission: later transmissions have higher numbers.
    number: u64,
    fate: Fate,
    /// True if the segment was sent more than once.
    again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InNetwork,
    Arrived,
    Lost,
}

/// The segments in transit, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    sent: VecDeque<Sent>,
    transmissions: u64,
    /// The highest transmission known to have arrived.
    newest_arrival: u64,
    /// Without SACK: arrivals reported by duplicate acknowledgements.
    duplicates: u32,
}

/// Segments that an acknowledgement removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acknowledged {
    /// Number of segments.
    pub segments: u32,
    /// Number of those segments that SACK had not reported before.
    pub news: u32,
    /// Send time of the last of those segments that was sent only once (Karn's algorithm).
    pub sent_at: Option<Instant>,
}

impl Flight {
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub fn len(&self) -> u32 {
        self.sent.len() as u32
    }

    /// Returns the pipe of RFC 6675.
    pub fn in_network(&self) -> u32 {
        self.count(Fate::InNetwork).saturating_sub(self.duplicates)
    }

    /// Returns the number of segments that arrived out of order, as far as the peer has reported.
    pub fn arrived(&self) -> u32 {
        self.count(Fate::Arrived) + self.duplicates
    }

    pub fn has_lost(&self) -> bool {
        self.count(Fate::Lost) > 0
    }

    /// Returns true if a segment in transit was sent more than once.
    pub fn has_again(&self) -> bool {
        self.sent.iter().any(|segment| segment.again)
    }

    fn count(&self, fate: Fate) -> u32 {
        let segments = self.sent.iter().filter(|segment| segment.fate == fate);
        segments.count() as u32
    }

    /// Records a new segment.
    pub fn push(&mut self, start: u64, end: u64, now: Instant) {
        self.transmissions += 1;
        self.sent.push_back(Sent {
            start,
            end,
            at: now,
            number: self.transmissions,
            fate: Fate::InNetwork,
            again: false,
        });
    }

    /// Marks the first lost segment as sent again, and returns its range.
    pub fn send_lost(&mut self, now: Instant) -> Option<(u64, u64)> {
        let mut lost = self.sent.iter_mut();
        let segment = lost.find(|segment| segment.fate == Fate::Lost)?;
        self.transmissions += 1;
        segment.number = self.transmissions;
        (segment.at, segment.again) = (now, true);
        segment.fate = Fate::InNetwork;
        Some((segment.start, segment.end))
    }

    /// Removes everything before `to`, which has arrived. `echo` is the peer's echo of our
    /// timestamp, if present: it shows whether the first transmission of a retransmitted segment
    /// arrived.
    pub fn acknowledge(&mut self, to: u64, echo: Option<Instant>) -> Acknowledged {
        let mut result = Acknowledged::default();
        while let Some(segment) = self.sent.pop_front_if(|segment| segment.end <= to) {
            result.segments += 1;
            result.news += u32::from(segment.fate != Fate::Arrived);
            let late = segment.again && echo.is_some_and(|echo| is_before(echo, segment.at));
            if !late && segment.fate != Fate::Arrived {
                self.newest_arrival = self.newest_arrival.max(segment.number);
            }
            if !segment.again {
                result.sent_at = Some(segment.at);
            }
        }
        if let Some(first) = self.sent.front_mut() {
            first.start = first.start.max(to);
        }
        result
    }

    /// Records that the peer holds these octets (RFC 2018). Returns the number of segments newly
    /// reported.
    pub fn note_sack(&mut self, start: u64, end: u64) -> u32 {
        let mut news = 0;
        let inside = |segment: &&mut Sent| start <= segment.start && segment.end <= end;
        for segment in self.sent.iter_mut().filter(inside) {
            if segment.fate != Fate::Arrived {
                segment.fate = Fate::Arrived;
                self.newest_arrival = self.newest_arrival.max(segment.number);
                news += 1;
            }
        }
        news
    }

    /// Without SACK: records a duplicate acknowledgement. Not more segments can have arrived than
    /// were sent and are not lost. Returns true if the duplicate counts.
    pub fn note_duplicate(&mut self) -> bool {
        let lost = self.count(Fate::Lost).max(1);
        let counts = self.duplicates + lost < self.len();
        self.duplicates += u32::from(counts);
        counts
    }

    /// Without SACK: an acknowledgement of new segments accounts for earlier duplicates, one for
    /// each segment except for the missing one.
    pub fn explain_duplicates(&mut self, acknowledged: u32) {
        let explained = acknowledged.saturating_sub(1);
        self.duplicates = self.duplicates.saturating_sub(explained);
    }

    pub fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }

    /// Marks the first segment as lost, after a third duplicate acknowledgement, or a partial
    /// acknowledgement in recovery (RFC 6582 section 3.2). A retransmitted segment is lost again.
    pub fn lose_first(&mut self) {
        if let Some(first) = self.sent.front_mut() {
            first.fate = Fate::Lost;
        }
    }

    /// Marks every segment as lost that left before an arrived segment (RFC 8985 section 3.2,
    /// without allowance for reordering). This includes retransmissions.
    pub fn lose_overtaken(&mut self) {
        for segment in &mut self.sent {
            if segment.fate == Fate::InNetwork && segment.number < self.newest_arrival {
                segment.fate = Fate::Lost;
            }
        }
    }

    /// Marks all segments as lost that have not arrived, after the retransmission timer expired.
    pub fn lose_all(&mut self) {
        self.duplicates = 0;
        let waiting = self.sent.iter_mut();
        for segment in waiting.filter(|segment| segment.fate != Fate::Arrived) {
            segment.fate = Fate::Lost;
        }
    }

    /// Reverts losses that were a mistake: all segments are in transit again.
    pub fn find_all(&mut self) {
        let lost = self.sent.iter_mut();
        for segment in lost.filter(|segment| segment.fate == Fate::Lost) {
            segment.fate = Fate::InNetwork;
        }
    }
}

/// Returns true if an echoed timestamp is from before `moment`, in the timestamps' milliseconds.
pub(super) fn is_before(echo: Instant, moment: Instant) -> bool {
    echo + Duration::from_millis(1) <= moment
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a flight of ten segments of 100 octets.
    fn ten() -> Flight {
        let mut flight = Flight::default();
        (0..10).for_each(|n| flight.push(n * 100, n * 100 + 100, Instant::ZERO));
        flight
    }

    #[test]
    fn acknowledged_segments_leave_and_tell_what_is_news() {
        let mut flight = ten();
        assert_eq!(flight.note_sack(100, 300), 2);
        assert_eq!(flight.note_sack(100, 400), 1, "two are no news");
        let acknowledged = flight.acknowledge(500, None);
        assert_eq!((acknowledged.segments, acknowledged.news), (5, 2));
        assert_eq!((flight.len(), flight.in_network()), (5, 5));
    }

    #[test]
    fn a_sack_block_that_covers_a_part_of_a_segment_says_nothing_of_it() {
        let mut flight = ten();
        assert_eq!(flight.note_sack(150, 350), 1);
        assert_eq!(flight.arrived(), 1);
    }

    #[test]
    fn the_pipe_is_what_neither_arrived_nor_is_lost() {
        let mut flight = ten();
        flight.note_sack(300, 600);
        flight.lose_overtaken();
        assert_eq!((flight.arrived(), flight.in_network()), (3, 4));
        assert_eq!(flight.send_lost(Instant::ZERO), Some((0, 100)));
        assert_eq!(flight.in_network(), 5);
    }

    #[test]
    fn a_retransmission_is_lost_again_when_something_sent_after_it_arrives() {
        let mut flight = ten();
        flight.note_sack(100, 400);
        flight.lose_overtaken();
        assert_eq!(flight.send_lost(Instant::ZERO), Some((0, 100)));
        flight.note_sack(400, 1000);
        flight.lose_overtaken();
        assert_eq!(
            flight.send_lost(Instant::ZERO),
            None,
            "nothing newer arrived"
        );
        flight.push(1000, 1100, Instant::ZERO);
        flight.note_sack(1000, 1100);
        flight.lose_overtaken();
        assert_eq!(flight.send_lost(Instant::ZERO), Some((0, 100)));
    }

    #[test]
    fn duplicates_count_no_more_than_can_have_arrived() {
        let mut flight = ten();
        let counted = (0..20).filter(|_| flight.note_duplicate()).count();
        assert_eq!((counted, flight.in_network()), (9, 1));
        flight.acknowledge(400, None);
        flight.explain_duplicates(4);
        assert_eq!(flight.in_network(), 0);
    }

    #[test]
    fn a_segment_sent_twice_gives_no_sample() {
        let mut flight = ten();
        flight.lose_first();
        flight.send_lost(Instant::ZERO);
        assert_eq!(flight.acknowledge(100, None).sent_at, None);
        assert_eq!(flight.acknowledge(200, None).sent_at, Some(Instant::ZERO));
    }
}
