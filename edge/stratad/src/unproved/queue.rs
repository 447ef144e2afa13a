//! A queue of messages, shared fairly among the networks that they come from.

use model::{Entry, Instant, Origin, Path, Room, UnknownPeers};
use std::collections::BTreeMap;

/// Limits of a queue. A network that fills its places loses further messages, as with a full
/// socket.
pub const ROOM: Room = Room {
    total: 512,
    per_site: 256,
    per_host: 128,
    patience: std::time::Duration::MAX,
};

/// A message and the path on which it arrived.
pub type Message = (Path, Vec<u8>);

/// The result of queueing a message.
pub enum Pushed {
    /// It is queued.
    Queued,
    /// It is queued, and this one is lost.
    Instead(Message),
    /// It is lost.
    Refused,
}

/// A queue of bounded length.
#[derive(Default)]
pub struct Queue {
    /// Messages by order of arrival.
    messages: BTreeMap<u64, Message>,
    senders: UnknownPeers<u64>,
    arrivals: u64,
}

impl Queue {
    /// Queues a message, if there is room.
    pub fn push(
        &mut self,
        message: impl FnOnce() -> Message,
        from: Origin,
        now: Instant,
    ) -> Pushed {
        let evicted = match self.senders.entry(from, &ROOM, now) {
            Entry::Free => None,
            Entry::Instead(oldest) => {
                self.senders.remove(oldest);
                self.messages.remove(&oldest)
            }
            Entry::Refused => return Pushed::Refused,
        };
        self.arrivals += 1;
        self.senders.insert(self.arrivals, from, now);
        self.messages.insert(self.arrivals, message());
        evicted.map_or(Pushed::Queued, Pushed::Instead)
    }

    /// Returns true if [`Self::push`] would queue a message from there.
    pub fn has_place(&self, from: Origin, now: Instant) -> bool {
        self.senders.entry(from, &ROOM, now) != Entry::Refused
    }

    /// Removes the oldest message of the network with fewest messages. So a network that floods the
    /// queue delays itself alone.
    pub fn pop_of_least_crowded(&mut self) -> Option<Message> {
        let arrival = self.senders.least_crowded()?;
        let message = self.messages.remove(&arrival);
        self.left(message.map(|message| (arrival, message)))
    }

    /// Removes the oldest message.
    pub fn pop_oldest(&mut self) -> Option<Message> {
        let message = self.messages.pop_first();
        self.left(message)
    }

    /// Removes the newest message, whose sender still waits for an answer.
    pub fn pop_newest(&mut self) -> Option<Message> {
        let message = self.messages.pop_last();
        self.left(message)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn left(&mut self, message: Option<(u64, Message)>) -> Option<Message> {
        let (arrival, message) = message?;
        self.senders.remove(arrival);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::{IpAddr, Ipv6Addr, SocketAddr};

    fn push(queue: &mut Queue, from: IpAddr) -> bool {
        let local = SocketAddr::from(([192, 0, 2, 1], 500));
        let path = Path::udp(local, SocketAddr::new(from, 500));
        let from = Origin::new(from, &BTreeSet::new());
        !matches!(
            queue.push(|| (path, vec![7; 400]), from, Instant::ZERO),
            Pushed::Queued
        )
    }

    fn subnet(n: u128) -> IpAddr {
        Ipv6Addr::from_bits(0x2001_0db8 << 96 | n << 80).into()
    }

    fn sender(message: Option<Message>) -> Option<IpAddr> {
        message.map(|(path, _)| path.remote.ip())
    }

    // Weakness: 29
    // Weakness: 30
    // Weakness: 92
    #[test]
    fn a_network_that_fills_the_queue_keeps_no_other_out_and_memory_is_bounded() {
        let mut queue = Queue::default();
        let lost = (0..10_000).filter(|n| push(&mut queue, subnet(n % 5)));
        assert_eq!(lost.count(), 10_000 - ROOM.total);
        assert_eq!(queue.messages.len(), ROOM.total);
        let honest = "192.0.2.66".parse().unwrap();
        push(&mut queue, honest);
        for n in 0..10_000 {
            push(&mut queue, subnet(n % 5));
        }
        let senders: Vec<_> = std::iter::from_fn(|| sender(queue.pop_of_least_crowded())).collect();
        assert!(senders.contains(&honest));
        assert!(queue.is_empty() && queue.senders.is_empty());
    }

    #[test]
    fn messages_of_equally_crowded_networks_are_in_the_order_they_came() {
        let mut queue = Queue::default();
        (0..100).for_each(|n| assert!(!push(&mut queue, subnet(n))));
        for n in 0..50 {
            assert_eq!(sender(queue.pop_of_least_crowded()), Some(subnet(n)));
            assert_eq!(sender(queue.pop_newest()), Some(subnet(99 - n)));
        }
        assert!(queue.is_empty() && queue.senders.is_empty());
    }

    // Weakness: 92
    #[test]
    fn a_network_that_fills_its_places_delays_no_other_one() {
        let mut queue = Queue::default();
        let flooder = |n: u8| IpAddr::from([198, 51, 100, n]);
        for n in 0..=255 {
            assert!(!push(&mut queue, flooder(n)));
        }
        let of = |from| Origin::new(from, &BTreeSet::new());
        assert!(!queue.has_place(of(flooder(7)), Instant::ZERO));
        assert!(push(&mut queue, flooder(7)));
        for n in 0..3 {
            let honest = IpAddr::from([192, 0, 2, n]);
            assert!(queue.has_place(of(honest), Instant::ZERO));
            push(&mut queue, honest);
        }
        for n in 0..3 {
            let honest = IpAddr::from([192, 0, 2, n]);
            assert_eq!(sender(queue.pop_of_least_crowded()), Some(honest));
        }
        assert_eq!(sender(queue.pop_of_least_crowded()), Some(flooder(0)));
        assert!(queue.has_place(of(flooder(7)), Instant::ZERO));
    }
}
