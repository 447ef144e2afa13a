//! Message IDs with a window of one (RFC 7296 sections 2.1 to 2.3).
//!
//! Either end numbers its own requests. It has at most one under way, repeats it octet by octet
//! with growing pauses until the answer comes or it gives up, and never answers an answer. The
//! other end keeps its last answer and gives it again when the same request comes again; it never
//! repeats anything on its own, so that a forged source address gains nothing.

use crate::config::Timers;
use crypto::sha256;
use model::{Deadline, Instant};
use std::time::Duration;
use wire::ike::{ExchangeType, Header};

/// An honest peer repeats a request a dozen times; a replaying one gets no more than that.
const MAX_REPEATS: u32 = 16;

/// Our requests.
#[derive(Debug)]
pub(crate) struct Requests {
    next_id: u32,
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    id: u32,
    exchange: ExchangeType,
    octets: Vec<u8>,
    sent: u32,
    attempts: u32,
    pause: Duration,
    at: Instant,
}

/// What time did to the request that is under way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// It has to be sent again.
    Again(Vec<u8>),
    /// It was sent this often, to no avail.
    GiveUp(u32),
}

impl Requests {
    pub(crate) const fn new() -> Self {
        Self {
            next_id: 0,
            pending: None,
        }
    }

    /// The ID for the next request.
    pub(crate) const fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Whether a request may be sent.
    pub(crate) const fn is_idle(&self) -> bool {
        self.pending.is_none()
    }

    /// A request with [`Self::next_id`] was sent; `attempts` bounds how often in all.
    pub(crate) fn sent(
        &mut self,
        exchange: ExchangeType,
        octets: Vec<u8>,
        attempts: u32,
        timers: &Timers,
        now: Instant,
    ) {
        self.pending = Some(Pending {
            id: self.next_id,
            exchange,
            octets,
            sent: 1,
            attempts,
            pause: timers.retransmit,
            at: now + timers.retransmit,
        });
    }

    /// Whatever is under way is sent at most this many times more.
    pub(crate) fn hurry(&mut self, attempts: u32) {
        if let Some(pending) = &mut self.pending {
            pending.attempts = pending.attempts.min(pending.sent + attempts);
        }
    }

    /// Whether a message is the response that is waited for, as far as its header tells.
    pub(crate) fn awaits(&self, header: &Header) -> bool {
        self.pending.as_ref().is_some_and(|pending| {
            pending.id == header.message_id && pending.exchange == header.exchange
        })
    }

    /// The response came and was genuine.
    pub(crate) fn answered(&mut self) {
        self.pending = None;
        self.next_id = self.next_id.saturating_add(1);
    }

    /// The SA is over: nobody waits for the response any more.
    pub(crate) fn abandon(&mut self) {
        self.pending = None;
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        self.pending.as_ref().map(|pending| Deadline {
            at: pending.at,
            reason: "a request is repeated",
        })
    }

    pub(crate) fn handle_timeout(&mut self, timers: &Timers, now: Instant) -> Due {
        let Some(pending) = self.pending.as_mut().filter(|pending| pending.at <= now) else {
            return Due::Nothing;
        };
        if pending.sent >= pending.attempts {
            return Due::GiveUp(pending.sent);
        }
        pending.sent += 1;
        pending.pause = (pending.pause * 2).min(timers.retransmit_longest);
        pending.at = now + pending.pause;
        Due::Again(pending.octets.clone())
    }
}

/// The peer's requests.
#[derive(Debug)]
pub(crate) struct Responses {
    expected: u32,
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    request: [u8; 32],
    response: Vec<u8>,
    repeats: u32,
}

/// What a request is to the window.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next one.
    New,
    /// The last one again, octet by octet: here is its answer.
    Again(Vec<u8>),
    /// The last one again, more often than any honest peer would send it.
    TooOften,
    /// None that could come now.
    Unexpected,
}

impl Responses {
    pub(crate) const fn new() -> Self {
        Self {
            expected: 0,
            last: None,
        }
    }

    /// Looks at a request that has not been opened. Comparing the whole request and not only its
    /// ID means that a repeated answer needs no cryptography and reveals nothing.
    pub(crate) fn arrival(&mut self, id: u32, request: &[u8]) -> Arrival {
        if id == self.expected {
            return Arrival::New;
        }
        match &mut self.last {
            Some(last) if sha256(&[request]) == last.request => {
                last.repeats += 1;
                match last.repeats > MAX_REPEATS {
                    true => Arrival::TooOften,
                    false => Arrival::Again(last.response.clone()),
                }
            }
            _ => Arrival::Unexpected,
        }
    }

    /// The expected request was answered.
    pub(crate) fn answered(&mut self, request: &[u8], response: Vec<u8>) {
        self.expected = self.expected.saturating_add(1);
        self.last = Some(Last {
            request: sha256(&[request]),
            response,
            repeats: 0,
        });
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

    #[test]
    fn a_request_is_repeated_with_growing_pauses_and_then_given_up() {
        let timers = Timers {
            retransmit: Duration::from_secs(1),
            retransmit_longest: Duration::from_secs(3),
            ..Timers::default()
        };
        let mut requests = Requests::new();
        requests.sent(ExchangeType::IKE_AUTH, vec![1], 4, &timers, Instant::ZERO);
        let mut sent_at = vec![0];
        let gave_up = loop {
            let now = requests.poll_timeout().unwrap().at;
            match requests.handle_timeout(&timers, now) {
                Due::Again(octets) => assert_eq!(octets, [1]),
                Due::GiveUp(sent) => break (sent, now),
                Due::Nothing => panic!("the deadline was promised"),
            }
            sent_at.push(now.since_origin().as_secs());
        };
        assert_eq!(sent_at, [0, 1, 3, 6]);
        assert_eq!((gave_up.0, gave_up.1.since_origin().as_secs()), (4, 9));
    }

    #[test]
    fn only_the_answer_to_the_request_under_way_is_awaited() {
        let mut requests = Requests::new();
        let timers = Timers::default();
        assert!(!requests.awaits(&header(ExchangeType::INFORMATIONAL, 0)));
        requests.sent(
            ExchangeType::INFORMATIONAL,
            vec![],
            1,
            &timers,
            Instant::ZERO,
        );
        assert!(requests.awaits(&header(ExchangeType::INFORMATIONAL, 0)));
        assert!(!requests.awaits(&header(ExchangeType::INFORMATIONAL, 1)));
        assert!(!requests.awaits(&header(ExchangeType::CREATE_CHILD_SA, 0)));
        requests.answered();
        assert!(requests.is_idle() && requests.next_id() == 1);
    }

    #[test]
    fn a_repeated_request_gets_the_same_answer_a_bounded_number_of_times() {
        let mut responses = Responses::new();
        assert_eq!(responses.arrival(0, b"q"), Arrival::New);
        responses.answered(b"q", b"a".to_vec());
        for _ in 0..MAX_REPEATS {
            assert_eq!(responses.arrival(0, b"q"), Arrival::Again(b"a".to_vec()));
        }
        assert_eq!(responses.arrival(0, b"q"), Arrival::TooOften);
        assert_eq!(responses.arrival(1, b"r"), Arrival::New);
    }

    #[test]
    fn the_same_message_id_with_other_octets_is_not_answered() {
        let mut responses = Responses::new();
        responses.answered(b"q", b"a".to_vec());
        assert_eq!(responses.arrival(0, b"Q"), Arrival::Unexpected);
        assert_eq!(responses.arrival(2, b"r"), Arrival::Unexpected);
        assert_eq!(responses.arrival(u32::MAX, b"r"), Arrival::Unexpected);
    }
}
