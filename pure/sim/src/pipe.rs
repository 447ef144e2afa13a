//! A link that holds the packets in transit.

use crate::{Link, Outcome, Settings, Statistics};
use model::Instant;
use std::collections::VecDeque;

/// A [`Link`] with the packets that it will deliver. They leave in order, because all packets of a
/// link have the same delay.
#[derive(Clone, Debug)]
pub struct Pipe<P> {
    link: Link,
    on_the_way: VecDeque<(Instant, P)>,
}

impl<P> Pipe<P> {
    /// Creates an empty pipe over an idle link; see [`Link::new`].
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            link: Link::new(settings, seed),
            on_the_way: VecDeque::new(),
        }
    }

    /// Sends a packet that counts as `octets` on the link. Returns its fate, and drops it if it is
    /// lost.
    pub fn push(&mut self, packet: P, octets: usize, now: Instant) -> Outcome {
        let outcome = self.link.offer(octets, now);
        if let Outcome::Deliver { at } = outcome {
            self.on_the_way.push_back((at, packet));
        }
        outcome
    }

    /// Returns the next packet that has arrived by `now`. Call until `None`.
    pub fn pop_due(&mut self, now: Instant) -> Option<P> {
        self.on_the_way
            .pop_front_if(|(at, _)| *at <= now)
            .map(|(_, packet)| packet)
    }

    /// Returns the arrival time of the next packet.
    pub fn next_due(&self) -> Option<Instant> {
        self.on_the_way.front().map(|(at, _)| *at)
    }

    /// Returns the counters of the link.
    pub fn statistics(&self) -> Statistics {
        self.link.statistics()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;
    use std::num::NonZeroU64;
    use std::time::Duration;

    fn at_ms(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    #[test]
    fn packets_come_out_when_due_and_in_order_and_the_lost_ones_never() {
        let settings = Settings {
            rate: NonZeroU64::new(8_000),
            delay: Duration::from_millis(100),
            queue: 1,
            bit_error_rate: 0.0,
        };
        let mut pipe = Pipe::new(settings, 0);
        // One octet takes 1 ms.
        pipe.push('a', 10, at_ms(0));
        pipe.push('b', 10, at_ms(0));
        let lost = pipe.push('c', 10, at_ms(0));
        assert_eq!(lost, Outcome::Lost(Reason::Queue));
        assert_eq!(pipe.next_due(), Some(at_ms(110)));
        assert_eq!(pipe.pop_due(at_ms(109)), None);
        assert_eq!(pipe.pop_due(at_ms(500)), Some('a'));
        assert_eq!(pipe.next_due(), Some(at_ms(120)));
        assert_eq!(pipe.pop_due(at_ms(500)), Some('b'));
        assert_eq!(pipe.pop_due(at_ms(500)), None);
        assert_eq!(pipe.next_due(), None);
        assert_eq!(pipe.statistics().lost_queue, 1);
    }
}
