//! The peer's requests, and our responses.
//!
//! An attacker can record a request and replay it from any address. Retransmissions of a response
//! are therefore bounded by a rate and not by a number: a peer that lost the response gets it,
//! regardless of the number of replayed copies. Each address has its own [`Bucket`], and only the
//! address that got the first response may receive more octets than it sent.

use crate::extension::fragment::Outgoing;
use crypto::sha256;
use model::{Bucket, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// Time after which an address may have one more. An honest peer retransmits a request after 200 ms
/// at the earliest, and doubles the delay each time.
const PAUSE: Duration = Duration::from_millis(250);

/// Seven more in a row: more than an honest peer requests on several paths at once.
const BURST: Duration = Duration::from_millis(7 * 250);

/// Maximum number of other addresses that are remembered for each request.
const MOST_SOURCES: usize = 4;

/// The peer's requests, and our responses.
#[derive(Debug)]
pub(crate) struct Responses {
    /// The lowest message ID that is not answered.
    expected: u32,
    /// Number of responses that we keep.
    window: u8,
    /// The last requests and their responses, one per message ID. None of them is a window or more
    /// behind the highest.
    kept: Vec<Kept>,
}

/// A request that has arrived.
#[derive(Debug)]
struct Kept {
    id: u32,
    /// Hash that identifies a retransmission.
    mark: [u8; 32],
    /// The response and the address that got it first; `None` until there is one.
    response: Option<(Outgoing, SocketAddr)>,
    repeats: u32,
    /// Budget of the address that got the first response.
    budget: Bucket,
    /// Other addresses that sent the request, the newest last.
    sources: VecDeque<Source>,
}

/// An address that sent a request whose response went to another address first.
#[derive(Debug)]
struct Source {
    address: SocketAddr,
    /// Unanswered octets from this address.
    credit: usize,
    budget: Bucket,
}

/// Classification of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The request is new.
    New,
    /// A retransmission of an answered request; holds the response.
    Again(Vec<Vec<u8>>),
    /// A retransmission of an answered request, more frequent than an honest peer's.
    TooOften,
    /// A retransmission of an answered request, from an address that sent fewer octets than the
    /// response has.
    Elsewhere,
    /// Any other request, which is not acceptable now.
    Unexpected,
}

impl Responses {
    pub(crate) const fn new() -> Self {
        Self {
            expected: 0,
            window: 1,
            kept: Vec::new(),
        }
    }

    /// Returns the number of requests that may arrive in any order.
    pub(crate) const fn window(&self) -> u8 {
        self.window
    }

    /// Increases this number.
    pub(crate) fn widen(&mut self, window: u8) {
        self.window = self.window.max(window);
    }

    /// Classifies a request, or a fragment of one, before it is opened. The whole message is
    /// compared and not only its message ID. A retransmitted response therefore needs no
    /// cryptography and reveals nothing.
    pub(crate) fn arrival(
        &mut self,
        id: u32,
        request: &[u8],
        from: SocketAddr,
        now: Instant,
    ) -> Arrival {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.id == id) {
            return kept.arrival(request, from, now);
        }
        let ahead = id.checked_sub(self.expected);
        match ahead.is_some_and(|ahead| ahead < u32::from(self.window)) {
            true => Arrival::New,
            false => Arrival::Unexpected,
        }
    }

    /// Returns true if the response to a message ID is kept.
    pub(crate) fn is_answered(&self, id: u32) -> bool {
        let answered = |kept: &Kept| kept.id == id && kept.response.is_some();
        self.kept.iter().any(answered)
    }

    /// Returns true if no newer request has arrived.
    pub(crate) fn is_newest(&self, id: u32) -> bool {
        self.kept.iter().all(|kept| kept.id <= id)
    }

    /// Returns true if all earlier requests have been answered.
    pub(crate) const fn is_in_order(&self, id: u32) -> bool {
        self.expected == id
    }

    /// Handles an authentic retransmission of an answered request with other fragments. `cut` may
    /// fragment the response in the same way.
    pub(crate) fn recut(
        &mut self,
        id: u32,
        request: &[u8],
        from: SocketAddr,
        now: Instant,
        cut: impl FnOnce(&mut Outgoing),
    ) -> Arrival {
        let Some(kept) = self.kept.iter_mut().find(|kept| kept.id == id) else {
            return Arrival::Unexpected;
        };
        kept.mark = sha256(&[request]);
        if let Some((response, _)) = &mut kept.response {
            cut(response);
        }
        kept.again(from, now)
    }

    /// Records a new, authentic request. `mark` identifies its retransmissions. Responses that are
    /// a window or more older are dropped, because the peer no longer needs them.
    pub(crate) fn came(&mut self, id: u32, mark: [u8; 32]) {
        let window = u32::from(self.window);
        let waited_for = |kept: &Kept| id < kept.id.saturating_add(window);
        self.kept.retain(waited_for);
        self.kept.reserve_exact(1);
        self.kept.push(Kept {
            id,
            mark,
            response: None,
            repeats: 0,
            budget: Bucket::default(),
            sources: VecDeque::new(),
        });
    }

    /// Returns the message ID of the request that arrived last.
    pub(crate) fn latest(&self) -> Option<u32> {
        self.kept.last().map(|kept| kept.id)
    }

    /// Returns the number of retransmissions of a request, as long as its response is kept.
    pub(crate) fn repeats(&self, id: u32) -> Option<u32> {
        let kept = self.kept.iter().find(|kept| kept.id == id);
        kept.map(|kept| kept.repeats)
    }

    /// Stores the response to a request.
    pub(crate) fn answered(&mut self, id: u32, response: Outgoing, to: SocketAddr) {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.id == id) {
            kept.response = Some((response, to));
        }
        while self.is_answered(self.expected) && self.expected < u32::MAX {
            self.expected += 1;
        }
    }
}

impl Kept {
    fn arrival(&mut self, request: &[u8], from: SocketAddr, now: Instant) -> Arrival {
        if self
            .response
            .as_ref()
            .is_some_and(|(_, first)| *first != from)
        {
            self.source(from).credit += request.len();
        }
        match sha256(&[request]) == self.mark {
            true => self.again(from, now),
            false => Arrival::Unexpected,
        }
    }

    fn again(&mut self, from: SocketAddr, now: Instant) -> Arrival {
        let answered = self.response.as_ref();
        let Some((octets, first)) = answered.map(|(response, first)| (response.len(), *first))
        else {
            return Arrival::Unexpected;
        };
        let budget = if from == first {
            &mut self.budget
        } else {
            let source = self.source(from);
            let Some(left) = source.credit.checked_sub(octets) else {
                return Arrival::Elsewhere;
            };
            source.credit = left;
            &mut source.budget
        };
        if !budget.take(PAUSE, BURST, now) {
            return Arrival::TooOften;
        }
        self.repeats += 1;
        let answer = self.response.iter();
        let answer = answer.flat_map(|(response, _)| response.datagrams());
        Arrival::Again(answer.cloned().collect())
    }

    /// Returns the state of an address. If there are too many, it replaces the least recently heard
    /// one.
    fn source(&mut self, address: SocketAddr) -> &mut Source {
        let at = self
            .sources
            .iter()
            .position(|source| source.address == address);
        let known = at.and_then(|at| self.sources.remove(at));
        if self.sources.len() == MOST_SOURCES {
            self.sources.pop_front();
        }
        self.sources.push_back(known.unwrap_or(Source {
            address,
            credit: 0,
            budget: Bucket::default(),
        }));
        let newest = self.sources.len() - 1;
        &mut self.sources[newest]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    const HOME: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4500);
    const AWAY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 4500);

    /// Returns a window whose request `q` was answered.
    fn answered(response: Outgoing) -> Responses {
        let mut responses = Responses::new();
        assert_eq!(
            responses.arrival(0, b"q", HOME, Instant::ZERO),
            Arrival::New
        );
        responses.came(0, sha256(&[b"q"]));
        responses.answered(0, response, HOME);
        responses
    }

    fn again() -> Arrival {
        Arrival::Again(vec![b"a".to_vec()])
    }

    /// Returns a window of this size, in which requests with these message IDs arrived in turn and
    /// each was answered with its own octet.
    fn wide(window: u8, ids: &[u32]) -> Responses {
        let mut responses = Responses::new();
        responses.widen(window);
        for &id in ids {
            let request = [id as u8];
            assert_eq!(
                responses.arrival(id, &request, HOME, Instant::ZERO),
                Arrival::New
            );
            responses.came(id, sha256(&[&request]));
            responses.answered(id, Outgoing::clear(request.to_vec()), HOME);
        }
        responses
    }

    fn arrivals(responses: &mut Responses, ids: std::ops::Range<u32>) -> String {
        let told = ids.map(
            |id| match responses.arrival(id, &[id as u8], HOME, Instant::ZERO) {
                Arrival::New => 'n',
                Arrival::Again(answer) if answer == [[id as u8]] => 'a',
                Arrival::Unexpected => '-',
                other => panic!("{other:?}"),
            },
        );
        told.collect()
    }

    fn after(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(3600) + Duration::from_millis(millis))
    }

    /// Returns the number of answered copies among one copy per millisecond.
    fn storm(responses: &mut Responses, from: SocketAddr, millis: std::ops::Range<u64>) -> usize {
        let mut copies = millis.map(|at| responses.arrival(0, b"q", from, after(at)));
        copies
            .by_ref()
            .filter(|arrival| *arrival == again())
            .count()
    }

    // Weakness: 66
    #[test]
    fn a_repeated_request_gets_the_same_answer_at_a_bounded_rate() {
        for from in [HOME, AWAY] {
            let mut responses = answered(Outgoing::clear(b"a".to_vec()));
            assert_eq!(storm(&mut responses, from, 0..200), 8);
            assert_eq!(storm(&mut responses, from, 200..10_200), 40);
            let arrival = responses.arrival(0, b"q", from, after(10_200));
            assert_eq!(arrival, Arrival::TooOften);
            assert_eq!(responses.arrival(1, b"r", from, after(0)), Arrival::New);
        }
    }

    // Weakness: 66
    #[test]
    fn no_number_of_copies_keeps_the_peer_from_its_answer() {
        let mut responses = answered(Outgoing::clear(b"a".to_vec()));
        let mut at = 0;
        // Retransmissions of a peer over several minutes.
        for pause in [200, 400, 800, 1600, 3200].into_iter().chain([8000; 40]) {
            storm(&mut responses, AWAY, at..at + pause);
            let elsewhere = (0..u16::from(u8::MAX)).map(|n| SocketAddr::new(AWAY.ip(), 5000 + n));
            for from in elsewhere {
                responses.arrival(0, b"q", from, after(at));
            }
            at += pause;
            assert_eq!(responses.arrival(0, b"q", HOME, after(at)), again());
        }
    }

    #[test]
    fn a_peer_that_has_moved_is_answered_however_many_others_ask() {
        let mut responses = answered(Outgoing::clear(b"a".to_vec()));
        storm(&mut responses, AWAY, 0..1000);
        let moved = SocketAddr::new(AWAY.ip(), 4501);
        assert_eq!(responses.arrival(0, b"q", moved, after(1000)), again());
    }

    /// Also for a response of one datagram.
    #[test]
    fn no_other_address_gets_more_octets_than_came_from_it() {
        let mut responses = answered(Outgoing::clear(vec![7; 5]));
        let mut went = 0;
        for came in 1..100 {
            if let Arrival::Again(answer) = responses.arrival(0, b"q", AWAY, after(came * 999)) {
                went += answer.concat().len() as u64;
            }
            assert!(went <= came, "{went} octets for {came}");
        }
        assert_eq!(went, 95, "and it is answered in the end");
    }

    #[test]
    fn what_is_remembered_of_addresses_is_bounded() {
        let mut responses = answered(Outgoing::clear(b"a".to_vec()));
        for port in 1..1000 {
            responses.arrival(0, b"q", SocketAddr::new(AWAY.ip(), port), after(0));
        }
        assert_eq!(responses.kept[0].sources.len(), MOST_SOURCES);
    }

    #[test]
    fn the_same_message_id_with_other_octets_is_not_answered() {
        let mut responses = answered(Outgoing::clear(b"a".to_vec()));
        for (id, request) in [(0, b"Q"), (2, b"r"), (u32::MAX, b"r")] {
            let arrival = responses.arrival(id, request, HOME, Instant::ZERO);
            assert_eq!(arrival, Arrival::Unexpected);
        }
    }

    #[test]
    fn a_short_answer_is_given_again_to_wherever_a_peer_has_moved() {
        let mut responses = answered(Outgoing::clear(b"a".to_vec()));
        assert_eq!(responses.arrival(0, b"q", AWAY, Instant::ZERO), again());
    }

    #[test]
    fn requests_of_one_window_come_in_any_order_and_each_is_answered_once() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let mut responses = wide(4, &order);
            assert_eq!(arrivals(&mut responses, 0..9), "aaaannnn-");
        }
    }

    #[test]
    fn what_is_missing_holds_the_window_where_it_is() {
        let mut responses = wide(4, &[0, 2, 3, 4]);
        assert_eq!(arrivals(&mut responses, 0..7), "-naaa--");
        assert!(responses.is_in_order(1) && !responses.is_in_order(5));
        assert!(responses.is_newest(4) && !responses.is_newest(1));
    }

    /// "The responder MUST remember each response until it receives a request whose sequence number
    /// is larger than or equal to the sequence number in the response plus its window size."
    // Weakness: 67
    #[test]
    fn as_many_answers_are_kept_as_the_window_is_wide() {
        let mut responses = wide(3, &[0, 1, 2, 3, 4]);
        assert_eq!(arrivals(&mut responses, 0..9), "--aaannn-");
        assert_eq!(responses.kept.len(), 3);
        let mut narrow = wide(1, &[0, 1, 2]);
        assert_eq!(arrivals(&mut narrow, 0..5), "--an-");
        assert_eq!(narrow.kept.len(), 1);
    }

    #[test]
    fn a_request_that_is_being_answered_is_not_handled_twice() {
        let mut responses = Responses::new();
        responses.widen(2);
        responses.came(0, sha256(&[b"q"]));
        assert_eq!(
            responses.arrival(0, b"q", HOME, Instant::ZERO),
            Arrival::Unexpected
        );
        assert_eq!(
            responses.arrival(1, b"r", HOME, Instant::ZERO),
            Arrival::New
        );
        assert_eq!(
            responses.arrival(2, b"s", HOME, Instant::ZERO),
            Arrival::Unexpected
        );
        responses.answered(0, Outgoing::clear(b"a".to_vec()), HOME);
        assert_eq!(responses.arrival(0, b"q", HOME, Instant::ZERO), again());
        assert_eq!(
            responses.arrival(2, b"s", HOME, Instant::ZERO),
            Arrival::New
        );
    }

    #[test]
    fn an_answer_to_what_never_came_changes_nothing() {
        let mut responses = wide(2, &[0]);
        for id in [1, 2, 7, u32::MAX] {
            responses.answered(id, Outgoing::clear(b"a".to_vec()), HOME);
        }
        assert_eq!(arrivals(&mut responses, 0..4), "ann-");
    }

    #[test]
    fn message_ids_that_cannot_grow_any_more_end_the_window() {
        let mut responses = Responses::new();
        responses.widen(4);
        responses.expected = u32::MAX - 1;
        for id in [u32::MAX, u32::MAX - 1] {
            assert_eq!(
                responses.arrival(id, b"q", HOME, Instant::ZERO),
                Arrival::New
            );
            responses.came(id, sha256(&[b"q"]));
            responses.answered(id, Outgoing::clear(b"a".to_vec()), HOME);
        }
        assert_eq!(
            responses.arrival(u32::MAX, b"q", HOME, Instant::ZERO),
            again()
        );
        assert_eq!(
            responses.arrival(0, b"q", HOME, Instant::ZERO),
            Arrival::Unexpected
        );
    }
}
