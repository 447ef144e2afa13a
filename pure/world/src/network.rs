//! Packets in flight.

use crate::Hop;
use crypto::Rng;
use model::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Steps in a row at one moment, after which a timer is taken to be due for ever.
const MOST_AT_ONCE: u32 = 1000;

/// The packets in flight, and the random decisions about them.
#[derive(Debug)]
pub struct Network<P> {
    /// Generator of the decisions, which tests may use as well.
    pub rng: Rng,
    /// Draws a number for a decision.
    roll: fn(&mut Rng) -> u32,
    /// Packets by time of arrival and order of sending.
    flights: BTreeMap<(Instant, u64), P>,
    sent: u64,
    /// Time of the last step, and the number of steps at that time.
    last: Instant,
    at_once: u32,
}

impl<P> Default for Network<P> {
    /// Returns a network whose generator has the seed zero.
    fn default() -> Self {
        Self::new(Rng::from_seed([0; 32]))
    }
}

impl<P> Network<P> {
    /// Creates a network without packets.
    pub const fn new(rng: Rng) -> Self {
        Self {
            rng,
            roll: |rng| rng.u16().into(),
            flights: BTreeMap::new(),
            sent: 0,
            last: Instant::ZERO,
            at_once: 0,
        }
    }

    /// Returns this network with numbers of 32 bits instead of 16, and so with other decisions for
    /// the same seed.
    #[must_use]
    pub fn rolling_u32(self) -> Self {
        Self {
            roll: Rng::u32,
            ..self
        }
    }

    /// Sends a packet over a hop. Returns false if the hop loses it.
    pub fn send(&mut self, packet: P, hop: &Hop, now: Instant) -> bool
    where
        P: Clone,
    {
        let copies = hop.fate(|| (self.roll)(&mut self.rng));
        for takes in &copies {
            self.deliver(packet.clone(), now + *takes);
        }
        !copies.is_empty()
    }

    /// Delivers a packet at a time, whatever the conditions are.
    pub fn deliver(&mut self, packet: P, at: Instant) {
        self.sent += 1;
        self.flights.insert((at, self.sent), packet);
    }

    /// Returns the number of packets that have arrived or will, copies included.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the time of the next arrival.
    pub fn next_due(&self) -> Option<Instant> {
        self.flights.keys().next().map(|(at, _)| *at)
    }

    /// Removes the next packet that arrives by `now`. Of two at one time, the older one is first.
    pub fn pop_due(&mut self, now: Instant) -> Option<P> {
        let first = self.flights.first_entry();
        let due = first.filter(|entry| entry.key().0 <= now);
        due.map(|entry| entry.remove())
    }

    /// Returns the packets in flight, by time of arrival.
    pub fn in_flight(&self) -> impl DoubleEndedIterator<Item = &P> {
        self.flights.values()
    }

    /// Removes all packets in flight.
    pub fn intercept(&mut self) -> Vec<P> {
        std::mem::take(&mut self.flights).into_values().collect()
    }

    /// Delays all packets in flight.
    pub fn postpone(&mut self, by: Duration) {
        let flights = std::mem::take(&mut self.flights).into_iter();
        self.flights = flights
            .map(|((at, number), packet)| ((at + by, number), packet))
            .collect();
    }

    /// Counts the steps at one moment. Panics after too many.
    pub(crate) fn step(&mut self, now: Instant) {
        self.at_once = if now - self.last > Duration::ZERO {
            0
        } else {
            self.at_once + 1
        };
        self.last = now;
        assert!(self.at_once < MOST_AT_ONCE, "something is due for ever");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    #[test]
    fn packets_arrive_in_the_order_of_their_times_then_of_their_sending() {
        let mut network = Network::default();
        network.deliver('c', at(7));
        network.send('a', &Hop::PERFECT, at(0));
        network.send('b', &Hop::PERFECT, at(0));
        assert_eq!(network.next_due(), Some(at(5)));
        assert_eq!(network.pop_due(at(4)), None);
        let all: String = std::iter::from_fn(|| network.pop_due(at(7))).collect();
        assert_eq!(all, "abc");
        assert_eq!((network.next_due(), network.sent()), (None, 3));
    }

    #[test]
    fn intercepted_packets_do_not_arrive() {
        let mut network = Network::default();
        network.send('a', &Hop::PERFECT, at(0));
        assert_eq!(network.in_flight().collect::<String>(), "a");
        assert_eq!(network.intercept(), ['a']);
        assert_eq!(network.pop_due(at(9)), None);
    }

    #[test]
    fn postponed_packets_arrive_later_in_the_same_order() {
        let mut network = Network::default();
        network.deliver('b', at(2));
        network.deliver('a', at(1));
        network.postpone(Duration::from_millis(3));
        assert_eq!(network.pop_due(at(3)), None);
        let all: String = std::iter::from_fn(|| network.pop_due(at(5))).collect();
        assert_eq!(all, "ab");
    }

    /// Two networks with one seed decide the same, and with another seed differently.
    #[test]
    fn the_seed_decides() {
        let fates = |seed: u8| {
            let mut network = Network::new(Rng::from_seed([seed; 32]));
            let hop = Hop::PERFECT.losing(500);
            let send = |number| network.send(number, &hop, at(0));
            (0..64).map(send).collect::<Vec<_>>()
        };
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
    }
}
