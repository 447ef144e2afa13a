//! Our requests.

use crate::config::Timers;
use crate::extension::fragment::Parcel;
use model::{Deadline, Instant};
use std::time::Duration;
use wire::ike::{ExchangeType, Header};

/// Delay before hastened retransmissions, which gives the driver time to install routes.
const MOMENT: Duration = Duration::from_millis(1);

/// Number of times that a request is sent in datagrams of one size before it is fragmented into
/// smaller ones: "a few retries within several seconds" (RFC 7383 section 2.5.2).
const PATIENCE: u32 = 3;

/// Our requests.
#[derive(Debug)]
pub(crate) struct Requests {
    next_id: u32,
    /// Number of responses that the peer keeps.
    window: u8,
    /// Outstanding requests, oldest first.
    pending: Vec<Pending>,
}

#[derive(Debug)]
struct Pending {
    id: u32,
    exchange: ExchangeType,
    parcel: Parcel,
    sent: u32,
    attempts: u32,
    pause: Duration,
    at: Instant,
}

impl Pending {
    const fn may_exceed(&self, attempts: u32) -> bool {
        self.attempts > self.sent + attempts
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
    pub(crate) const fn new() -> Self {
        Self {
            next_id: 0,
            window: 1,
            pending: Vec::new(),
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

    /// Records a sent request. `attempts` is the maximum number of times to send it. An outstanding
    /// request with the same message ID is replaced.
    pub(crate) fn sent(
        &mut self,
        header: &Header,
        parcel: Parcel,
        attempts: u32,
        timers: &Timers,
        now: Instant,
    ) {
        let id = header.message_id;
        self.next_id = id.saturating_add(1);
        self.pending.retain(|pending| pending.id != id);
        self.pending.reserve_exact(1);
        self.pending.push(Pending {
            id,
            exchange: header.exchange,
            parcel,
            sent: 1,
            attempts,
            pause: timers.retransmit,
            at: now + timers.retransmit,
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
    pub(crate) fn stuck(&mut self, now: Instant) -> Option<&mut Parcel> {
        let stuck = |pending: &&mut Pending| {
            pending.sent >= PATIENCE && pending.at <= now && pending.parcel.is_coarse()
        };
        let pending = self.pending.iter_mut().find(stuck)?;
        pending.pause = Duration::ZERO;
        Some(&mut pending.parcel)
    }

    /// Limits all outstanding requests to this many further attempts.
    pub(crate) fn hurry(&mut self, attempts: u32) {
        for pending in &mut self.pending {
            pending.attempts = pending.attempts.min(pending.sent + attempts);
        }
    }

    /// Returns true if any outstanding request has more than this many attempts left.
    pub(crate) fn may_exceed(&self, attempts: u32) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| pending.may_exceed(attempts))
    }

    /// Limits requests with more attempts left than a liveness check to those of a check, with its
    /// delays.
    pub(crate) fn press(&mut self, attempts: u32, timers: &Timers, now: Instant) {
        let pending = self.pending.iter_mut();
        for pending in pending.filter(|pending| pending.may_exceed(attempts)) {
            pending.attempts = pending.sent + attempts;
            pending.pause = Duration::ZERO;
            pending.at = pending.at.min(now + timers.retransmit);
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

    /// Returns the datagrams of the oldest outstanding request.
    pub(crate) fn oldest(&self) -> Option<&[Vec<u8>]> {
        self.pending
            .first()
            .map(|pending| pending.parcel.datagrams())
    }

    /// Restarts all outstanding requests on another path, with all their attempts. Returns their
    /// datagrams, to be sent at once.
    pub(crate) fn restart(
        &mut self,
        timers: &Timers,
        now: Instant,
    ) -> impl Iterator<Item = &[Vec<u8>]> {
        self.pending.iter_mut().map(move |pending| {
            pending.sent = 1;
            pending.pause = timers.retransmit;
            pending.at = now + pending.pause;
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
    pub(crate) fn answered(&mut self, id: u32) {
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
        let Some(pending) = self.pending.iter_mut().find(|pending| pending.at <= now) else {
            return Due::Nothing;
        };
        if pending.sent >= pending.attempts {
            return Due::GiveUp(pending.sent);
        }
        pending.sent += 1;
        let pause = (pending.pause * 2).max(timers.retransmit);
        pending.pause = pause.min(timers.retransmit_longest);
        pending.at = now + pending.pause;
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
    fn send(requests: &mut Requests, attempts: u32, now: Instant) {
        let id = requests.next_id();
        let header = header(ExchangeType::INFORMATIONAL, id);
        let parcel = Parcel::clear(vec![id as u8]);
        requests.sent(&header, parcel, attempts, &timers(), now);
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn a_request_is_repeated_with_growing_pauses_and_then_given_up() {
        let mut requests = Requests::new();
        send(&mut requests, 4, Instant::ZERO);
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
    fn what_is_pressed_is_sent_so_many_times_more_and_what_has_no_more_is_left_alone() {
        let mut requests = Requests::new();
        send(&mut requests, 5, Instant::ZERO);
        for second in 0..3 {
            send(&mut requests, 16, at(second));
            assert!(requests.may_exceed(5));
            requests.press(5, &timers(), at(second));
            assert!(requests.may_exceed(4) && !requests.may_exceed(5));
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
        requests.answered(0);
        assert!(requests.is_idle() && requests.next_id() == 1);
    }

    #[test]
    fn a_first_message_that_is_corrected_keeps_its_message_id() {
        let mut requests = Requests::new();
        let first = header(ExchangeType::IKE_SA_INIT, 0);
        for octet in [7, 8] {
            let parcel = Parcel::clear(vec![octet]);
            requests.sent(&first, parcel, 1, &timers(), Instant::ZERO);
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
            requests.answered(id);
        }
        assert!(!requests.has_room());
        requests.answered(0);
        assert!(requests.has_room() && requests.next_id() == 3);
    }

    #[test]
    fn every_request_under_way_is_repeated_for_itself() {
        let mut requests = Requests::new();
        requests.widen(3);
        for second in [0, 0, 2] {
            send(&mut requests, 9, at(second));
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
            send(&mut requests, 2, Instant::ZERO);
        }
        requests.answered(1);
        let due = requests.handle_timeout(&timers(), at(1));
        assert_eq!(due, Due::Again(vec![vec![0]]));
        let again: Vec<_> = requests
            .restart(&timers(), at(1))
            .map(<[_]>::concat)
            .collect();
        assert_eq!(again, [[0], [2]]);
        assert_eq!(requests.poll_timeout().unwrap().at, at(2));
        assert_ne!(requests.handle_timeout(&timers(), at(2)), Due::GiveUp(2));
    }

    #[test]
    fn no_memory_is_held_while_nothing_is_under_way() {
        let mut requests = Requests::new();
        send(&mut requests, 1, Instant::ZERO);
        assert_eq!(requests.pending.capacity(), 1);
        requests.answered(0);
        assert_eq!(requests.pending.capacity(), 0);
    }
}
