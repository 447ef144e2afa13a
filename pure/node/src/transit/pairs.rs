//! The pairs of hosts between which licensed composite SAs run. Fragments show no port. To avoid
//! reordering, they should take the same route as the packets that do.
//!
//! Each direction of a composite SA has one pair, the newest. A pair without any direction is
//! discarded.

use crate::Event;
use esp::Direction;
use model::{CsaId, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// Minimum interval between pair changes of a direction, because the outer header can be rewritten
/// in transit, packet by packet.
const REST: Duration = Duration::from_secs(1);

/// Two hosts, by the sides that they are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub wired: IpAddr,
    pub wireless: IpAddr,
}

#[derive(Default)]
pub(crate) struct Pairs {
    /// The pair of each direction, and the time since which it applies.
    newest: BTreeMap<(CsaId, Direction), (Pair, Instant)>,
    events: VecDeque<Event>,
}

impl Pairs {
    /// Records the pair of a packet that is new to the replay window.
    pub fn note(&mut self, direction: (CsaId, Direction), pair: Pair, now: Instant) {
        let known = self.newest.get(&direction);
        if known.is_some_and(|(known, since)| *known == pair || now.since(*since) < REST) {
            return;
        }
        let is_new = !self.has(pair);
        if let Some((old, _)) = self.newest.insert(direction, (pair, now)) {
            self.leave(old);
        }
        let Pair { wired, wireless } = pair;
        let learnt = is_new.then_some(Event::PairLearnt { wired, wireless });
        self.events.extend(learnt);
    }

    /// Removes the pairs of a composite SA.
    pub fn forget(&mut self, csa: CsaId) {
        for direction in [Direction::FromGateway, Direction::ToGateway] {
            if let Some((old, _)) = self.newest.remove(&(csa, direction)) {
                self.leave(old);
            }
        }
    }

    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn has(&self, pair: Pair) -> bool {
        self.newest.values().any(|(known, _)| *known == pair)
    }

    fn leave(&mut self, old: Pair) {
        if !self.has(old) {
            let Pair { wired, wireless } = old;
            self.events
                .push_back(Event::PairForgotten { wired, wireless });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN: (CsaId, Direction) = (CsaId(1), Direction::FromGateway);
    const UP: (CsaId, Direction) = (CsaId(1), Direction::ToGateway);

    fn pair(last: u16) -> Pair {
        let [high, low] = last.to_be_bytes();
        Pair {
            wired: [198, 51, 100, 1].into(),
            wireless: [10, 0, high, low].into(),
        }
    }

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    /// Returns the pairs known to a consumer of the events.
    fn followed(pairs: &mut Pairs) -> Vec<IpAddr> {
        let mut known = Vec::new();
        while let Some(event) = pairs.poll_event() {
            match event {
                Event::PairLearnt { wireless, .. } => known.push(wireless),
                Event::PairForgotten { wireless, .. } => known.retain(|other| *other != wireless),
                _ => unreachable!(),
            }
        }
        known
    }

    // Weakness: 111
    #[test]
    fn of_three_hundred_addresses_of_one_direction_one_pair_is_left() {
        let mut pairs = Pairs::default();
        for last in 0..300 {
            pairs.note(DOWN, pair(last), at(u64::from(last) * 1000));
        }
        assert_eq!(followed(&mut pairs), [pair(299).wireless]);
    }

    // Weakness: 111
    #[test]
    fn a_header_that_is_rewritten_in_each_packet_changes_the_pair_once_a_second() {
        let mut pairs = Pairs::default();
        for packet in 0..2500 {
            pairs.note(DOWN, pair(packet), at(packet.into()));
        }
        let events = std::iter::from_fn(|| pairs.poll_event());
        assert_eq!(events.count(), 1 + 2 + 2);
    }

    #[test]
    fn a_pair_of_both_directions_is_learnt_once_and_stays_until_neither_has_it() {
        let mut pairs = Pairs::default();
        pairs.note(DOWN, pair(1), at(0));
        pairs.note(UP, pair(1), at(1));
        pairs.note((CsaId(2), Direction::ToGateway), pair(1), at(1));
        pairs.forget(CsaId(1));
        assert_eq!(pairs.events.len(), 1);
        pairs.forget(CsaId(2));
        assert_eq!(followed(&mut pairs), [] as [IpAddr; 0]);
    }
}
