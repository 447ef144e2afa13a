//! Message IDs with a window of one (RFC 7296 sections 2.1 to 2.3).
//!
//! Either end numbers its own requests. It has at most one under way, repeats it octet by octet
//! with growing pauses until the answer comes or it gives up, and never answers an answer. The
//! other end keeps its last answer and gives it again when the same request comes again; it never
//! repeats anything on its own, so that a forged source address gains nothing.
//!
//! A message in fragments (RFC 7383) is one message: all of them are repeated, and the peer knows it
//! again by the first. Since an answer may then be longer than what asks for it again, nobody at an
//! address that was not answered before gets more octets than came from there.

use crate::config::Timers;
use crate::extension::fragment::Parcel;
use crypto::sha256;
use model::{Deadline, Instant};
use std::net::SocketAddr;
use std::time::Duration;
use wire::ike::{ExchangeType, Header};

/// An honest peer repeats a request a dozen times; a replaying one gets no more than that.
const MAX_REPEATS: u32 = 16;

/// A request in datagrams of one size is sent this often before it is cut smaller: "a few retries
/// within several seconds" (RFC 7383 section 2.5.2).
const PATIENCE: u32 = 3;

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
    parcel: Parcel,
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
    Again(Vec<Vec<u8>>),
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
        parcel: Parcel,
        attempts: u32,
        timers: &Timers,
        now: Instant,
    ) {
        self.pending = Some(Pending {
            id: self.next_id,
            exchange,
            parcel,
            sent: 1,
            attempts,
            pause: timers.retransmit,
            at: now + timers.retransmit,
        });
    }

    /// The longest datagram of the request that is under way.
    pub(crate) fn longest(&self) -> Option<&[u8]> {
        let datagrams = self.pending.as_ref()?.parcel.datagrams();
        datagrams
            .iter()
            .max_by_key(|octets| octets.len())
            .map(Vec::as_slice)
    }

    /// The request that was repeated to no avail and is about to be once more, if it can be cut
    /// smaller. Pauses begin anew: "the node MUST reset its retransmission timers".
    pub(crate) fn stuck(&mut self, now: Instant) -> Option<&mut Parcel> {
        let pending = self.pending.as_mut()?;
        let stuck = pending.sent >= PATIENCE && pending.at <= now && pending.parcel.is_coarse();
        stuck.then(|| {
            pending.pause = Duration::ZERO;
            &mut pending.parcel
        })
    }

    /// Whatever is under way is sent at most this many times more.
    pub(crate) fn hurry(&mut self, attempts: u32) {
        if let Some(pending) = &mut self.pending {
            pending.attempts = pending.attempts.min(pending.sent + attempts);
        }
    }

    /// How often the request under way was sent.
    pub(crate) fn tries(&self) -> u32 {
        self.pending.as_ref().map_or(0, |pending| pending.sent)
    }

    /// The request under way.
    pub(crate) fn pending(&self) -> Option<Vec<Vec<u8>>> {
        let pending = self.pending.as_ref()?;
        Some(pending.parcel.datagrams().to_vec())
    }

    /// The request under way takes another path from now on, on which it has all its attempts: it is
    /// to be sent at once.
    pub(crate) fn restart(&mut self, timers: &Timers, now: Instant) -> Option<Vec<Vec<u8>>> {
        let pending = self.pending.as_mut()?;
        pending.sent = 1;
        pending.pause = timers.retransmit;
        pending.at = now + pending.pause;
        Some(pending.parcel.datagrams().to_vec())
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
        let pause = (pending.pause * 2).max(timers.retransmit);
        pending.pause = pause.min(timers.retransmit_longest);
        pending.at = now + pending.pause;
        Due::Again(pending.parcel.datagrams().to_vec())
    }
}

/// The peer's requests.
#[derive(Debug)]
pub(crate) struct Responses {
    expected: u32,
    /// By what the request that is being answered is known when it comes again.
    mark: [u8; 32],
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    mark: [u8; 32],
    response: Parcel,
    /// Where it was sent first.
    to: SocketAddr,
    repeats: u32,
    /// Who else asked for it last, and with how many octets that were not answered.
    credit: Option<(SocketAddr, usize)>,
}

/// What a request is to the window.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next one.
    New,
    /// The last one again, octet by octet: here is its answer.
    Again(Vec<Vec<u8>>),
    /// The last one again, more often than any honest peer would send it.
    TooOften,
    /// The last one again, from an address that sent fewer octets than the answer has.
    Elsewhere,
    /// None that could come now.
    Unexpected,
}

impl Responses {
    pub(crate) const fn new() -> Self {
        Self {
            expected: 0,
            mark: [0; 32],
            last: None,
        }
    }

    /// Looks at a request, or a fragment of one, that has not been opened. Comparing all of it and
    /// not only its ID means that a repeated answer needs no cryptography and reveals nothing.
    pub(crate) fn arrival(&mut self, id: u32, request: &[u8], from: SocketAddr) -> Arrival {
        if id == self.expected {
            return Arrival::New;
        }
        match &mut self.last {
            Some(last) if id.wrapping_add(1) == self.expected => {
                last.note(request.len(), from);
                match sha256(&[request]) == last.mark {
                    true => last.again(),
                    false => Arrival::Unexpected,
                }
            }
            _ => Arrival::Unexpected,
        }
    }

    /// Whether a message ID is that of the request that was answered last.
    pub(crate) fn is_last(&self, id: u32) -> bool {
        self.last.is_some() && id.wrapping_add(1) == self.expected
    }

    /// The request that was answered last came again cut in another way, and is genuine: `cut` may
    /// do the same with its answer.
    pub(crate) fn recut(&mut self, request: &[u8], cut: impl FnOnce(&mut Parcel)) -> Arrival {
        match &mut self.last {
            Some(last) => {
                last.mark = sha256(&[request]);
                cut(&mut last.response);
                last.again()
            }
            None => Arrival::Unexpected,
        }
    }

    /// The expected request came, is genuine, and is known by `mark` when it comes again.
    pub(crate) const fn came(&mut self, mark: [u8; 32]) {
        self.mark = mark;
    }

    /// It was answered.
    pub(crate) fn answered(&mut self, response: Parcel, to: SocketAddr) {
        self.expected = self.expected.saturating_add(1);
        self.last = Some(Last {
            mark: self.mark,
            response,
            to,
            repeats: 0,
            credit: None,
        });
    }
}

impl Last {
    fn note(&mut self, octets: usize, from: SocketAddr) {
        let before = self.credit.filter(|(who, _)| *who == from);
        self.credit = Some((from, before.map_or(0, |(_, octets)| octets) + octets));
    }

    fn again(&mut self) -> Arrival {
        let is_long = self.response.datagrams().len() > 1;
        if let Some((who, credit)) = &mut self.credit
            && is_long
            && *who != self.to
        {
            let Some(left) = credit.checked_sub(self.response.len()) else {
                return Arrival::Elsewhere;
            };
            *credit = left;
        }
        self.repeats += 1;
        match self.repeats > MAX_REPEATS {
            true => Arrival::TooOften,
            false => Arrival::Again(self.response.datagrams().to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

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
        requests.sent(
            ExchangeType::IKE_AUTH,
            Parcel::clear(vec![1]),
            4,
            &timers,
            Instant::ZERO,
        );
        let mut sent_at = vec![0];
        let gave_up = loop {
            let now = requests.poll_timeout().unwrap().at;
            match requests.handle_timeout(&timers, now) {
                Due::Again(datagrams) => assert_eq!(datagrams, [[1]]),
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
            Parcel::clear(vec![]),
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

    const HOME: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4500);
    const AWAY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 4500);

    /// A window whose request `q` was answered.
    fn answered(response: Parcel) -> Responses {
        let mut responses = Responses::new();
        assert_eq!(responses.arrival(0, b"q", HOME), Arrival::New);
        responses.came(sha256(&[b"q"]));
        responses.answered(response, HOME);
        responses
    }

    fn again() -> Arrival {
        Arrival::Again(vec![b"a".to_vec()])
    }

    #[test]
    fn a_repeated_request_gets_the_same_answer_a_bounded_number_of_times() {
        let mut responses = answered(Parcel::clear(b"a".to_vec()));
        for _ in 0..MAX_REPEATS {
            assert_eq!(responses.arrival(0, b"q", HOME), again());
        }
        assert_eq!(responses.arrival(0, b"q", HOME), Arrival::TooOften);
        assert_eq!(responses.arrival(1, b"r", HOME), Arrival::New);
    }

    #[test]
    fn the_same_message_id_with_other_octets_is_not_answered() {
        let mut responses = answered(Parcel::clear(b"a".to_vec()));
        for (id, request) in [(0, b"Q"), (2, b"r"), (u32::MAX, b"r")] {
            let arrival = responses.arrival(id, request, HOME);
            assert_eq!(arrival, Arrival::Unexpected);
        }
    }

    #[test]
    fn a_short_answer_is_given_again_to_wherever_a_peer_has_moved() {
        let mut responses = answered(Parcel::clear(b"a".to_vec()));
        assert_eq!(responses.arrival(0, b"q", AWAY), again());
    }
}
