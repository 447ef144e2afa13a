//! The peer's requests, and our answers to them.

use crate::extension::fragment::Parcel;
use crypto::sha256;
use std::net::SocketAddr;

/// An honest peer repeats a request a dozen times; a replaying one gets no more than that.
const MAX_REPEATS: u32 = 16;

/// The peer's requests.
#[derive(Debug)]
pub(crate) struct Responses {
    /// The lowest ID that was not answered.
    expected: u32,
    /// How many answers we keep.
    window: u8,
    /// The requests that came last, and the answers; one for each ID, none of them a window or more
    /// behind the highest.
    kept: Vec<Kept>,
}

/// A request that came.
#[derive(Debug)]
struct Kept {
    id: u32,
    /// By what it is known when it comes again.
    mark: [u8; 32],
    /// The answer, and where it was sent first; `None` while it is being made.
    response: Option<(Parcel, SocketAddr)>,
    repeats: u32,
    /// Who else asked for it last, and with how many octets that were not answered.
    credit: Option<(SocketAddr, usize)>,
}

/// What a request is to the window.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// One that did not come yet.
    New,
    /// One that was answered, octet by octet: here is its answer.
    Again(Vec<Vec<u8>>),
    /// One that was answered, more often than any honest peer would send it.
    TooOften,
    /// One that was answered, from an address that sent fewer octets than the answer has.
    Elsewhere,
    /// None that could come now.
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

    /// How many requests may come in any order.
    pub(crate) const fn window(&self) -> u8 {
        self.window
    }

    /// So many may from now on.
    pub(crate) fn widen(&mut self, window: u8) {
        self.window = self.window.max(window);
    }

    /// Looks at a request, or a fragment of one, that has not been opened. Comparing all of it and
    /// not only its ID means that a repeated answer needs no cryptography and reveals nothing.
    pub(crate) fn arrival(&mut self, id: u32, request: &[u8], from: SocketAddr) -> Arrival {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.id == id) {
            return kept.arrival(request, from);
        }
        let ahead = id.checked_sub(self.expected);
        match ahead.is_some_and(|ahead| ahead < u32::from(self.window)) {
            true => Arrival::New,
            false => Arrival::Unexpected,
        }
    }

    /// Whether the answer to a message ID is kept.
    pub(crate) fn is_answered(&self, id: u32) -> bool {
        let answered = |kept: &Kept| kept.id == id && kept.response.is_some();
        self.kept.iter().any(answered)
    }

    /// Whether no newer request came than this one.
    pub(crate) fn is_newest(&self, id: u32) -> bool {
        self.kept.iter().all(|kept| kept.id <= id)
    }

    /// Whether everything was answered that the peer asked before a request that is being answered.
    pub(crate) const fn is_in_order(&self, id: u32) -> bool {
        self.expected == id
    }

    /// A request that was answered came again cut in another way, and is genuine: `cut` may do the
    /// same with its answer.
    pub(crate) fn recut(
        &mut self,
        id: u32,
        request: &[u8],
        cut: impl FnOnce(&mut Parcel),
    ) -> Arrival {
        let Some(kept) = self.kept.iter_mut().find(|kept| kept.id == id) else {
            return Arrival::Unexpected;
        };
        kept.mark = sha256(&[request]);
        if let Some((response, _)) = &mut kept.response {
            cut(response);
        }
        kept.again()
    }

    /// A new request came, is genuine, and is known by `mark` when it comes again. Answers a window
    /// or more before it are forgotten: nobody waits for them any more.
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
            credit: None,
        });
    }

    /// The request that came last.
    pub(crate) fn latest(&self) -> Option<u32> {
        self.kept.last().map(|kept| kept.id)
    }

    /// How often a request came again, as long as somebody may wait for its answer.
    pub(crate) fn repeats(&self, id: u32) -> Option<u32> {
        let kept = self.kept.iter().find(|kept| kept.id == id);
        kept.map(|kept| kept.repeats)
    }

    /// It was answered.
    pub(crate) fn answered(&mut self, id: u32, response: Parcel, to: SocketAddr) {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.id == id) {
            kept.response = Some((response, to));
        }
        while self.is_answered(self.expected) && self.expected < u32::MAX {
            self.expected += 1;
        }
    }
}

impl Kept {
    fn arrival(&mut self, request: &[u8], from: SocketAddr) -> Arrival {
        self.note(request.len(), from);
        match sha256(&[request]) == self.mark {
            true => self.again(),
            false => Arrival::Unexpected,
        }
    }

    fn note(&mut self, octets: usize, from: SocketAddr) {
        let before = self.credit.filter(|(who, _)| *who == from);
        self.credit = Some((from, before.map_or(0, |(_, octets)| octets) + octets));
    }

    fn again(&mut self) -> Arrival {
        let Some((response, to)) = &self.response else {
            return Arrival::Unexpected;
        };
        let is_long = response.datagrams().len() > 1;
        if let Some((who, credit)) = &mut self.credit
            && is_long
            && who != to
        {
            let Some(left) = credit.checked_sub(response.len()) else {
                return Arrival::Elsewhere;
            };
            *credit = left;
        }
        self.repeats += 1;
        match self.repeats > MAX_REPEATS {
            true => Arrival::TooOften,
            false => Arrival::Again(response.datagrams().to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    const HOME: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4500);
    const AWAY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 4500);

    /// A window whose request `q` was answered.
    fn answered(response: Parcel) -> Responses {
        let mut responses = Responses::new();
        assert_eq!(responses.arrival(0, b"q", HOME), Arrival::New);
        responses.came(0, sha256(&[b"q"]));
        responses.answered(0, response, HOME);
        responses
    }

    fn again() -> Arrival {
        Arrival::Again(vec![b"a".to_vec()])
    }

    /// A window of this many, in which requests of these IDs came in turn and were answered by
    /// themselves.
    fn wide(window: u8, ids: &[u32]) -> Responses {
        let mut responses = Responses::new();
        responses.widen(window);
        for &id in ids {
            let request = [id as u8];
            assert_eq!(responses.arrival(id, &request, HOME), Arrival::New);
            responses.came(id, sha256(&[&request]));
            responses.answered(id, Parcel::clear(request.to_vec()), HOME);
        }
        responses
    }

    fn arrivals(responses: &mut Responses, ids: std::ops::Range<u32>) -> String {
        let told = ids.map(|id| match responses.arrival(id, &[id as u8], HOME) {
            Arrival::New => 'n',
            Arrival::Again(answer) if answer == [[id as u8]] => 'a',
            Arrival::Unexpected => '-',
            other => panic!("{other:?}"),
        });
        told.collect()
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
        assert_eq!(responses.arrival(0, b"q", HOME), Arrival::Unexpected);
        assert_eq!(responses.arrival(1, b"r", HOME), Arrival::New);
        assert_eq!(responses.arrival(2, b"s", HOME), Arrival::Unexpected);
        responses.answered(0, Parcel::clear(b"a".to_vec()), HOME);
        assert_eq!(responses.arrival(0, b"q", HOME), again());
        assert_eq!(responses.arrival(2, b"s", HOME), Arrival::New);
    }

    #[test]
    fn an_answer_to_what_never_came_changes_nothing() {
        let mut responses = wide(2, &[0]);
        for id in [1, 2, 7, u32::MAX] {
            responses.answered(id, Parcel::clear(b"a".to_vec()), HOME);
        }
        assert_eq!(arrivals(&mut responses, 0..4), "ann-");
    }

    #[test]
    fn message_ids_that_cannot_grow_any_more_end_the_window() {
        let mut responses = Responses::new();
        responses.widen(4);
        responses.expected = u32::MAX - 1;
        for id in [u32::MAX, u32::MAX - 1] {
            assert_eq!(responses.arrival(id, b"q", HOME), Arrival::New);
            responses.came(id, sha256(&[b"q"]));
            responses.answered(id, Parcel::clear(b"a".to_vec()), HOME);
        }
        assert_eq!(responses.arrival(u32::MAX, b"q", HOME), again());
        assert_eq!(responses.arrival(0, b"q", HOME), Arrival::Unexpected);
    }
}
