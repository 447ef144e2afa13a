//! Our requests.

use crate::config::Timers;
use crate::extension::fragment::Parcel;
use model::{Deadline, Instant};
use std::time::Duration;
use wire::ike::{ExchangeType, Header};

/// So long a driver has to lead packets another way.
const MOMENT: Duration = Duration::from_millis(1);

/// A request in datagrams of one size is sent this often before it is cut smaller: "a few retries
/// within several seconds" (RFC 7383 section 2.5.2).
const PATIENCE: u32 = 3;

/// Our requests.
#[derive(Debug)]
pub(crate) struct Requests {
    next_id: u32,
    /// How many answers the peer keeps.
    window: u8,
    /// What is under way, oldest first.
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

/// What time did to the requests that are under way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// One has to be sent again.
    Again(Vec<Vec<u8>>),
    /// One was sent this often, to no avail.
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

    /// The ID for the next request.
    pub(crate) const fn next_id(&self) -> u32 {
        self.next_id
    }

    /// How many requests may be under way at once.
    pub(crate) const fn window(&self) -> u8 {
        self.window
    }

    /// The peer keeps so many answers: "there is currently no way to reduce the window size of an
    /// existing IKE SA; you can only increase it."
    pub(crate) fn widen(&mut self, window: u8) {
        self.window = self.window.max(window);
    }

    /// Whether no request is under way.
    pub(crate) const fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// How many are.
    pub(crate) const fn under_way(&self) -> usize {
        self.pending.len()
    }

    /// Whether one more request may be sent.
    pub(crate) fn has_room(&self) -> bool {
        let oldest = self.pending.first();
        oldest.is_none_or(|oldest| self.next_id.abs_diff(oldest.id) < u32::from(self.window))
    }

    /// A request was sent; `attempts` bounds how often in all. With an ID that is under way it takes
    /// the place of that.
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

    /// The longest datagram of the oldest request that is under way.
    pub(crate) fn longest(&self) -> Option<&[u8]> {
        let datagrams = self.oldest()?.iter();
        datagrams
            .max_by_key(|octets| octets.len())
            .map(Vec::as_slice)
    }

    /// A request that was repeated to no avail and is about to be once more, if it can be cut
    /// smaller. Pauses begin anew: "the node MUST reset its retransmission timers".
    pub(crate) fn stuck(&mut self, now: Instant) -> Option<&mut Parcel> {
        let stuck = |pending: &&mut Pending| {
            pending.sent >= PATIENCE && pending.at <= now && pending.parcel.is_coarse()
        };
        let pending = self.pending.iter_mut().find(stuck)?;
        pending.pause = Duration::ZERO;
        Some(&mut pending.parcel)
    }

    /// Whatever is under way is sent at most this many times more.
    pub(crate) fn hurry(&mut self, attempts: u32) {
        for pending in &mut self.pending {
            pending.attempts = pending.attempts.min(pending.sent + attempts);
        }
    }

    /// Whether any that is under way may be sent more than so many times more.
    pub(crate) fn may_exceed(&self, attempts: u32) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| pending.may_exceed(attempts))
    }

    /// What has more attempts left than a question to a silent peer has those of one from now on, and its pauses.
    pub(crate) fn press(&mut self, attempts: u32, timers: &Timers, now: Instant) {
        let pending = self.pending.iter_mut();
        for pending in pending.filter(|pending| pending.may_exceed(attempts)) {
            pending.attempts = pending.sent + attempts;
            pending.pause = Duration::ZERO;
            pending.at = pending.at.min(now + timers.retransmit);
        }
    }

    /// Whatever is under way is to be repeated in a moment, and from then on as if it had been sent for the first time.
    pub(crate) fn hasten(&mut self, now: Instant) {
        for pending in &mut self.pending {
            pending.pause = Duration::ZERO;
            pending.at = pending.at.min(now + MOMENT);
        }
    }

    /// How often the oldest request under way was sent.
    pub(crate) fn tries(&self) -> u32 {
        self.pending.first().map_or(0, |pending| pending.sent)
    }

    /// The oldest request under way.
    pub(crate) fn oldest(&self) -> Option<&[Vec<u8>]> {
        self.pending
            .first()
            .map(|pending| pending.parcel.datagrams())
    }

    /// The requests under way take another path from now on, on which they have all their attempts:
    /// they are to be sent at once.
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

    /// Whether a message is a response that is waited for, as far as its header tells.
    pub(crate) fn awaits(&self, header: &Header) -> bool {
        self.pending
            .iter()
            .any(|pending| pending.id == header.message_id && pending.exchange == header.exchange)
    }

    /// Whether a response is to the newest request there is.
    pub(crate) const fn is_newest(&self, id: u32) -> bool {
        id.saturating_add(1) == self.next_id
    }

    /// A response came and was genuine.
    pub(crate) fn answered(&mut self, id: u32) {
        self.pending.retain(|pending| pending.id != id);
        if self.pending.is_empty() {
            self.abandon();
        }
    }

    /// The SA is over: nobody waits for responses any more.
    pub(crate) fn abandon(&mut self) {
        // An SA is idle nearly always, and then holds no memory for requests.
        self.pending = Vec::new();
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.pending.iter().map(|pending| pending.at).min()?;
        let reason = "a request is repeated";
        Some(Deadline { at, reason })
    }

    /// Repeats one request whose time has come.
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
    /// The ID of the oldest request under way; of the next one if there is none.
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

    /// Sends the next request, whose octets are its number.
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

    /// Requests that follow a question are pressed one by one, and the question goes on as it was.
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
    /// oldest holds up what comes a window after it, however many others were answered.
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
        assert_eq!(repeated(2), []);
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
