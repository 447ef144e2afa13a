//! Our requests.

use super::timeout::Timeout;
use crate::config::Timers;
use crate::extension::fragment::Outgoing;
use model::{Deadline, Instant};
use std::time::Duration;
use wire::ike::{ExchangeType, Header};

/// Delay before hastened retransmissions, which gives the driver time to install routes.
const MOMENT: Duration = Duration::from_millis(1);

/// Time for which a request is sent in datagrams of one size before it is fragmented into smaller
/// ones: "a few retries within several seconds" (RFC 7383 section 2.5.2).
const PATIENCE: Duration = Duration::from_secs(3);

/// Our requests.
#[derive(Debug)]
pub(crate) struct Requests {
    next_id: u32,
    /// Number of responses that the peer keeps.
    window: u8,
    /// Outstanding requests, oldest first.
    pending: Vec<Pending>,
    timeout: Timeout,
    /// Time since which outstanding requests have had no response.
    unanswered_since: Instant,
}

#[derive(Debug)]
struct Pending {
    id: u32,
    exchange: ExchangeType,
    parcel: Outgoing,
    sent: u32,
    /// Start of the first transmission on this path.
    since: Instant,
    /// True if the response can only be to the transmission at `since`.
    measurable: bool,
    /// Time from `since` to `until`, unless it was shortened later.
    allowed: Duration,
    /// Time at which the request is given up.
    until: Instant,
    /// Delay before the first retransmission.
    first: Duration,
    pause: Duration,
    at: Instant,
}

impl Pending {
    /// Gives the request up after this time at the latest.
    fn limit(&mut self, allowed: Duration, now: Instant) {
        self.allowed = self.allowed.min(allowed);
        self.until = self.until.min(now + allowed);
        self.at = self.at.min(self.until);
    }
}

/// The action that is due for the outstanding requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// No action is due.
    Nothing,
    /// A request has to be retransmitted.
    Again(Vec<Vec<u8>>),
    /// A request was sent this many times without an answer.
    GiveUp(u32),
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self {
            next_id: 0,
            window: 1,
            pending: Vec::new(),
            timeout: Timeout::default(),
            unanswered_since: Instant::ZERO,
        }
    }

    /// Returns the requests of a successor of the IKE SA, on the same path.
    pub(crate) fn successor(&self) -> Self {
        Self {
            timeout: self.timeout,
            ..Self::new()
        }
    }

    /// Returns the delay before the first retransmission of a request.
    pub(crate) fn timeout(&self, timers: &Timers) -> Duration {
        self.timeout.first(timers)
    }

    /// Returns the smoothed round trip of the path, if it was measured.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.timeout.round_trip()
    }

    /// Drops the measurements, as the path has changed: "Packets sent on the old path MUST NOT
    /// contribute to congestion control or RTT estimation for the new path" (RFC 9000 section 9.4).
    pub(crate) fn forget_round_trip(&mut self) {
        self.timeout = Timeout::default();
    }

    /// Excludes the outstanding requests from measurement, as they were sent on another path.
    pub(crate) fn exclude(&mut self) {
        for pending in &mut self.pending {
            pending.measurable = false;
        }
    }

    /// Returns the message ID of the next request.
    pub(crate) const fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Returns the maximum number of outstanding requests.
    pub(crate) const fn window(&self) -> u8 {
        self.window
    }

    /// Increases the window to the number of responses that the peer keeps: "there is currently no
    /// way to reduce the window size of an existing IKE SA; you can only increase it."
    pub(crate) fn widen(&mut self, window: u8) {
        self.window = self.window.max(window);
    }

    /// Returns true if no request is outstanding.
    pub(crate) const fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns the number of outstanding requests.
    pub(crate) const fn under_way(&self) -> usize {
        self.pending.len()
    }

    /// Returns true if the window has room for one more request.
    pub(crate) fn has_room(&self) -> bool {
        let oldest = self.pending.first();
        oldest.is_none_or(|oldest| self.next_id.abs_diff(oldest.id) < u32::from(self.window))
    }

    /// Records a sent request, which is given up after `allowed`. An outstanding request with the
    /// same message ID is replaced.
    pub(crate) fn sent(
        &mut self,
        header: &Header,
        parcel: Outgoing,
        allowed: Duration,
        timers: &Timers,
        now: Instant,
    ) {
        let id = header.message_id;
        let pause = self.timeout(timers);
        self.next_id = id.saturating_add(1);
        self.pending.retain(|pending| pending.id != id);
        if self.pending.is_empty() {
            self.unanswered_since = now;
        }
        self.pending.reserve_exact(1);
        self.pending.push(Pending {
            id,
            exchange: header.exchange,
            parcel,
            sent: 1,
            since: now,
            measurable: true,
            allowed,
            until: now + allowed,
            first: pause,
            pause,
            at: now + pause.min(allowed),
        });
    }

    /// Returns the longest datagram of the oldest outstanding request.
    pub(crate) fn longest(&self) -> Option<&[u8]> {
        let datagrams = self.oldest()?.iter();
        datagrams
            .max_by_key(|octets| octets.len())
            .map(Vec::as_slice)
    }

    /// Returns a request that was retransmitted without success, and is due again, if smaller
    /// fragments are possible. Its delays start again: "the node MUST reset its retransmission
    /// timers".
    pub(crate) fn stuck(&mut self, now: Instant) -> Option<&mut Outgoing> {
        let stuck = |pending: &&mut Pending| {
            let tried = pending.sent > 1 && pending.since + PATIENCE <= now;
            tried && pending.at <= now && pending.parcel.is_coarse()
        };
        let pending = self.pending.iter_mut().find(stuck)?;
        pending.pause = Duration::ZERO;
        Some(&mut pending.parcel)
    }

    /// Gives all outstanding requests up after this time at the latest.
    pub(crate) fn hurry(&mut self, allowed: Duration, now: Instant) {
        for pending in &mut self.pending {
            pending.limit(allowed, now);
        }
    }

    /// Returns true if any outstanding request was sent with more time than this.
    pub(crate) fn may_exceed(&self, allowed: Duration) -> bool {
        self.pending.iter().any(|pending| pending.allowed > allowed)
    }

    /// Limits requests that have more time than a liveness check to that of a check, with its
    /// delays.
    pub(crate) fn press(&mut self, allowed: Duration, timers: &Timers, now: Instant) {
        let first = self.timeout(timers);
        let pending = self.pending.iter_mut();
        for pending in pending.filter(|pending| pending.allowed > allowed) {
            pending.pause = Duration::ZERO;
            pending.at = pending.at.min(now + first);
            pending.limit(allowed, now);
        }
    }

    /// Puts off the retransmission of the newest request, which was just sent.
    pub(crate) fn wait(&mut self, pause: Duration, now: Instant) {
        if let Some(pending) = self.pending.last_mut() {
            pending.at = (now + pause).min(pending.until);
        }
    }

    /// Retransmits all outstanding requests after [`MOMENT`], and then with the delays of a new
    /// request.
    pub(crate) fn hasten(&mut self, now: Instant) {
        for pending in &mut self.pending {
            pending.pause = Duration::ZERO;
            pending.at = pending.at.min(now + MOMENT);
        }
    }

    /// Returns the number of times that the oldest outstanding request was sent.
    pub(crate) fn tries(&self) -> u32 {
        self.pending.first().map_or(0, |pending| pending.sent)
    }

    /// Returns the time since which outstanding requests have had no response, if there are any.
    pub(crate) fn unanswered_since(&self) -> Option<Instant> {
        (!self.is_idle()).then_some(self.unanswered_since)
    }

    /// Begins to wait for a response now: outstanding requests were sent on other paths so far.
    pub(crate) const fn begin_silence(&mut self, now: Instant) {
        self.unanswered_since = now;
    }

    /// Returns the datagrams of the oldest outstanding request.
    pub(crate) fn oldest(&self) -> Option<&[Vec<u8>]> {
        self.pending
            .first()
            .map(|pending| pending.parcel.datagrams())
    }

    /// Restarts all outstanding requests on another path, with all their time. Returns their
    /// datagrams, to be sent at once.
    pub(crate) fn restart(
        &mut self,
        timers: &Timers,
        now: Instant,
    ) -> impl Iterator<Item = &[Vec<u8>]> {
        let pause = self.timeout(timers);
        self.unanswered_since = now;
        self.pending.iter_mut().map(move |pending| {
            pending.sent = 1;
            pending.since = now;
            pending.measurable = false;
            pending.until = now + pending.allowed;
            pending.first = pause;
            pending.pause = pause;
            pending.at = now + pause.min(pending.allowed);
            pending.parcel.datagrams()
        })
    }

    /// Returns true if a message is an awaited response, judging by its header.
    pub(crate) fn awaits(&self, header: &Header) -> bool {
        self.pending
            .iter()
            .any(|pending| pending.id == header.message_id && pending.exchange == header.exchange)
    }

    /// Returns true if a response is to the newest request.
    pub(crate) const fn is_newest(&self, id: u32) -> bool {
        id.saturating_add(1) == self.next_id
    }

    /// Removes a request whose authentic response has arrived.
    pub(crate) fn answered(&mut self, id: u32, now: Instant) {
        self.unanswered_since = now;
        if let Some(pending) = self.pending.iter().find(|pending| pending.id == id) {
            match (pending.measurable, pending.sent) {
                (true, _) => self.timeout.measure(now - pending.since),
                (false, 1) => {}
                (false, _) => self.timeout.note_retransmitted(pending.first),
            }
        }
        self.pending.retain(|pending| pending.id != id);
        if self.pending.is_empty() {
            self.abandon();
        }
    }

    /// Drops all outstanding requests, as the SA is over.
    pub(crate) fn abandon(&mut self) {
        // An SA is idle nearly always, and then holds no memory for requests.
        self.pending = Vec::new();
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.pending.iter().map(|pending| pending.at).min()?;
        let reason = "retransmit a request";
        Some(Deadline { at, reason })
    }

    /// Retransmits one request that is due.
    pub(crate) fn handle_timeout(&mut self, timers: &Timers, now: Instant) -> Due {
        let first = self.timeout(timers);
        let Some(pending) = self.pending.iter_mut().find(|pending| pending.at <= now) else {
            return Due::Nothing;
        };
        if pending.until <= now {
            return Due::GiveUp(pending.sent);
        }
        pending.sent += 1;
        pending.measurable = false;
        let pause = (pending.pause * 2).max(first);
        pending.pause = pause.min(timers.retransmit_longest);
        pending.at = (now + pending.pause).min(pending.until);
        Due::Again(pending.parcel.datagrams().to_vec())
    }
}

#[cfg(test)]
impl Requests {
    /// Returns the message ID of the oldest outstanding request, or of the next one.
    pub(crate) fn oldest_id(&self) -> u32 {
        self.pending
            .first()
            .map_or(self.next_id, |pending| pending.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(exchange: ExchangeType, message_id: u32) -> Header {
        Header {
            spi_i: 1,
            spi_r: 2,
            version: wire::ike::VERSION_2,
            exchange,
            flags: wire::ike::Flags::default(),
            message_id,
        }
    }

    fn timers() -> Timers {
        Timers {
            retransmit: Duration::from_secs(1),
            retransmit_longest: Duration::from_secs(3),
            ..Timers::default()
        }
    }

    /// Sends the next request, whose content is its message ID.
    fn send(requests: &mut Requests, allowed: u64, now: Instant) {
        let id = requests.next_id();
        let header = header(ExchangeType::INFORMATIONAL, id);
        let parcel = Outgoing::clear(vec![id as u8]);
        let allowed = Duration::from_secs(allowed);
        requests.sent(&header, parcel, allowed, &timers(), now);
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn a_request_is_repeated_with_growing_pauses_and_then_given_up() {
        let mut requests = Requests::new();
        send(&mut requests, 9, Instant::ZERO);
        let mut sent_at = vec![0];
        let gave_up = loop {
            let now = requests.poll_timeout().unwrap().at;
            match requests.handle_timeout(&timers(), now) {
                Due::Again(datagrams) => assert_eq!(datagrams, [[0]]),
                Due::GiveUp(sent) => break (sent, now),
                Due::Nothing => panic!("the deadline was promised"),
            }
            sent_at.push(now.since_origin().as_secs());
        };
        assert_eq!(sent_at, [0, 1, 3, 6]);
        assert_eq!((gave_up.0, gave_up.1.since_origin().as_secs()), (4, 9));
    }

    /// Requests that follow a check are limited one by one, and the check continues unchanged.
    #[test]
    fn what_is_pressed_has_so_much_time_from_then_on_and_what_has_no_more_is_left_alone() {
        let [less, check] = [11, 12].map(Duration::from_secs);
        let mut requests = Requests::new();
        send(&mut requests, 12, Instant::ZERO);
        for second in 0..3 {
            send(&mut requests, 45, at(second));
            assert!(requests.may_exceed(check));
            requests.press(check, &timers(), at(second));
            assert!(requests.may_exceed(less) && !requests.may_exceed(check));
        }
        let mut sent = [1; 4];
        let gave_up = loop {
            let now = requests.poll_timeout().unwrap().at;
            match requests.handle_timeout(&timers(), now) {
                Due::Again(datagrams) => sent[usize::from(datagrams[0][0])] += 1,
                Due::GiveUp(sent) => break (sent, now),
                Due::Nothing => panic!("the deadline was promised"),
            }
        };
        // After pauses of 1, 2, 3, 3 and 3 seconds.
        assert_eq!(gave_up, (5, at(12)), "{sent:?}");
    }

    #[test]
    fn only_the_answer_to_a_request_under_way_is_awaited() {
        let mut requests = Requests::new();
        assert!(!requests.awaits(&header(ExchangeType::INFORMATIONAL, 0)));
        send(&mut requests, 1, Instant::ZERO);
        assert!(requests.awaits(&header(ExchangeType::INFORMATIONAL, 0)));
        assert!(!requests.awaits(&header(ExchangeType::INFORMATIONAL, 1)));
        assert!(!requests.awaits(&header(ExchangeType::CREATE_CHILD_SA, 0)));
        requests.answered(0, Instant::ZERO);
        assert!(requests.is_idle() && requests.next_id() == 1);
    }

    #[test]
    fn a_first_message_that_is_corrected_keeps_its_message_id() {
        let mut requests = Requests::new();
        let first = header(ExchangeType::IKE_SA_INIT, 0);
        for octet in [7, 8] {
            let parcel = Outgoing::clear(vec![octet]);
            let allowed = Duration::from_secs(1);
            requests.sent(&first, parcel, allowed, &timers(), Instant::ZERO);
        }
        assert_eq!((requests.under_way(), requests.next_id()), (1, 1));
        assert_eq!(requests.oldest(), Some(&[vec![8]][..]));
    }

    #[test]
    fn there_is_one_request_at_a_time_until_the_peer_says_otherwise() {
        let mut requests = Requests::new();
        assert!(requests.has_room());
        send(&mut requests, 1, Instant::ZERO);
        assert!(!requests.has_room());
        requests.widen(2);
        assert!(requests.has_room());
    }

    #[test]
    fn a_window_never_gets_narrower() {
        let mut requests = Requests::new();
        for (told, window) in [(4, 4), (2, 4), (0, 4), (8, 8)] {
            requests.widen(told);
            assert_eq!(requests.window(), window);
        }
    }

    /// "It MUST wait until it has received responses to all requests up through request X-N": the
    /// oldest request blocks those a window later, regardless of the number of other responses.
    #[test]
    fn a_request_waits_for_the_answer_to_the_one_a_window_before_it() {
        let mut requests = Requests::new();
        requests.widen(3);
        for _ in 0..3 {
            assert!(requests.has_room());
            send(&mut requests, 1, Instant::ZERO);
        }
        for id in [2, 1] {
            assert!(!requests.has_room());
            requests.answered(id, Instant::ZERO);
        }
        assert!(!requests.has_room());
        requests.answered(0, Instant::ZERO);
        assert!(requests.has_room() && requests.next_id() == 3);
    }

    #[test]
    fn every_request_under_way_is_repeated_for_itself() {
        let mut requests = Requests::new();
        requests.widen(3);
        for second in [0, 0, 2] {
            send(&mut requests, 24, at(second));
        }
        let mut repeated = |second| {
            let due = std::iter::from_fn(|| match requests.handle_timeout(&timers(), at(second)) {
                Due::Again(datagrams) => Some(datagrams[0][0]),
                Due::GiveUp(_) | Due::Nothing => None,
            });
            due.collect::<Vec<_>>()
        };
        assert_eq!(repeated(1), [0, 1]);
        assert!(repeated(2).is_empty());
        assert_eq!(repeated(3), [0, 1, 2]);
    }

    #[test]
    fn a_new_path_has_every_request_sent_anew_the_oldest_first() {
        let mut requests = Requests::new();
        requests.widen(3);
        for _ in 0..3 {
            send(&mut requests, 3, Instant::ZERO);
        }
        requests.answered(1, Instant::ZERO);
        let due = requests.handle_timeout(&timers(), at(1));
        assert_eq!(due, Due::Again(vec![vec![0]]));
        requests.forget_round_trip();
        let again: Vec<_> = requests
            .restart(&timers(), at(1))
            .map(<[_]>::concat)
            .collect();
        assert_eq!(again, [[0], [2]]);
        assert_eq!(requests.poll_timeout().unwrap().at, at(2));
        assert_ne!(requests.handle_timeout(&timers(), at(2)), Due::GiveUp(2));
    }

    /// Each request has its own clock: one that is lost or late changes nothing for the others.
    #[test]
    fn every_request_in_a_window_is_measured_for_itself() {
        let mut requests = Requests::new();
        requests.widen(3);
        for second in 0..3 {
            send(&mut requests, 45, at(second));
        }
        let millis = |millis| Instant::from_origin(Duration::from_millis(millis));
        requests.answered(2, millis(2100));
        // SRTT 100 ms, RTTVAR 50 ms.
        assert_eq!(requests.timeout(&timers()), Duration::from_millis(300));
        requests.answered(1, millis(2200));
        // SRTT (7 * 100 + 1200) / 8 ms, RTTVAR (3 * 50 + 1100) / 4 ms.
        let expected = Duration::from_micros(237_500 + 4 * 312_500);
        assert_eq!(requests.timeout(&timers()), expected);
    }

    /// RFC 6298 section 3: it is not known which of the two transmissions was answered.
    #[test]
    fn a_repeated_request_is_not_measured_and_the_next_is_waited_for_longer() {
        let mut requests = Requests::new();
        send(&mut requests, 45, at(0));
        assert_eq!(
            requests.handle_timeout(&timers(), at(1)),
            Due::Again(vec![vec![0]])
        );
        let soon = at(1) + Duration::from_millis(1);
        requests.answered(0, soon);
        send(&mut requests, 45, soon);
        assert_eq!(
            requests.poll_timeout().unwrap().at,
            soon + Duration::from_millis(1200)
        );
        requests.answered(1, soon + Duration::from_millis(20));
        assert_eq!(requests.timeout(&timers()), Duration::from_millis(220));
    }

    #[test]
    fn what_went_along_two_paths_is_neither_measured_nor_held_against_the_path() {
        let mut requests = Requests::new();
        send(&mut requests, 45, at(0));
        requests.exclude();
        requests.answered(0, at(0));
        send(&mut requests, 45, at(0));
        let again = requests.restart(&timers(), at(0)).count();
        requests.answered(1, at(0));
        assert_eq!(
            (again, requests.timeout(&timers())),
            (1, timers().retransmit)
        );
    }

    #[test]
    fn requests_are_hurried_hastened_and_restarted_within_their_time() {
        let mut requests = Requests::new();
        send(&mut requests, 40, at(0));
        requests.hurry(Duration::from_secs(10), at(5));
        requests.hurry(Duration::from_secs(99), at(6));
        requests.hasten(at(7));
        let gave_up = |requests: &mut Requests| loop {
            let now = requests.poll_timeout().unwrap().at;
            if let Due::GiveUp(_) = requests.handle_timeout(&timers(), now) {
                break now;
            }
        };
        assert_eq!(gave_up(&mut requests), at(15));
        assert_eq!(requests.restart(&timers(), at(20)).count(), 1);
        assert_eq!(gave_up(&mut requests), at(30));
    }

    #[test]
    fn no_memory_is_held_while_nothing_is_under_way() {
        let mut requests = Requests::new();
        send(&mut requests, 1, Instant::ZERO);
        assert_eq!(requests.pending.capacity(), 1);
        requests.answered(0, Instant::ZERO);
        assert_eq!(requests.pending.capacity(), 0);
    }
}
