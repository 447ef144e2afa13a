//! Puts sessions into the order of their begins, as a log has them in the order of their ends.

use crate::Session;
use crypto::UnixTime;
use std::collections::BTreeMap;

/// Sessions that wait for earlier ones, at most a given number.
#[derive(Debug)]
pub struct Order {
    waiting: BTreeMap<(UnixTime, u64), Session>,
    most: usize,
    added: u64,
    last: UnixTime,
    late: u64,
}

impl Order {
    /// Creates an order in which at most so many sessions wait.
    pub const fn new(most: usize) -> Self {
        Self {
            waiting: BTreeMap::new(),
            most,
            added: 0,
            last: UnixTime(0),
            late: 0,
        }
    }

    /// Returns how many sessions were handed out after one that begins later.
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Adds a session, and hands out the first if there is no more room. A session without a begin
    /// is dropped.
    pub fn add(&mut self, session: Session, out: &mut dyn FnMut(Session)) {
        if let Some(begin) = session.span.begin() {
            self.added += 1;
            self.waiting.insert((begin, self.added), session);
        }
        if self.waiting.len() > self.most {
            self.hand_out(out);
        }
    }

    /// Hands out all sessions that wait.
    pub fn finish(&mut self, out: &mut dyn FnMut(Session)) {
        while !self.waiting.is_empty() {
            self.hand_out(out);
        }
    }

    fn hand_out(&mut self, out: &mut dyn FnMut(Session)) {
        if let Some(((begin, _), session)) = self.waiting.pop_first() {
            self.late += u64::from(begin < self.last);
            self.last = self.last.max(begin);
            out(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use proptest::prelude::*;

    fn ordered(begins: &[u64], most: usize) -> (Vec<u64>, u64) {
        let mut order = Order::new(most);
        let mut found = Vec::new();
        let mut out = |session: Session| found.extend(session.span.begin().map(|begin| begin.0));
        for begin in begins {
            let begin = UnixTime(*begin);
            let session = Session {
                user: "ann".into(),
                gateway: "".into(),
                address: None,
                span: Span::NotEnded { begin },
                octets: None,
            };
            order.add(session, &mut out);
        }
        order.finish(&mut out);
        (found, order.late())
    }

    #[test]
    fn what_comes_too_late_is_counted() {
        assert_eq!(ordered(&[5, 9, 7, 1], 2), (vec![5, 1, 7, 9], 1));
    }

    proptest! {
        #[test]
        fn with_room_the_order_is_that_of_the_begins(
            begins in proptest::collection::vec(0..100_u64, 0..50)
        ) {
            let mut sorted = begins.clone();
            sorted.sort_unstable();
            prop_assert_eq!(ordered(&begins, 50), (sorted, 0));
        }
    }
}
