//! Hosts on virtual time.

use crate::Network;
use model::Instant;
use std::time::Duration;

/// Interval in which [`Hosts::run_until`] looks.
const GLANCE: Duration = Duration::from_millis(10);

/// The hosts of a test, joined by a network.
///
/// The next event is the earliest due: the arrival of a packet, or a deadline of a host. At one
/// moment, packets come first, in the order in which they were sent. So a run is a function of its
/// hosts and of the network's seed.
pub trait Hosts {
    /// What travels between the hosts.
    type Packet;

    /// Returns the time of all hosts.
    fn clock(&mut self) -> &mut Instant;

    /// Returns the network between the hosts.
    fn network(&mut self) -> &mut Network<Self::Packet>;

    /// Returns the next deadline of any host.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Runs the timers that are due.
    fn handle_timeout(&mut self);

    /// Hands a packet to its receiver.
    fn receive(&mut self, packet: Self::Packet);

    /// Collects what the hosts send and report, if the inputs above do not do it.
    fn collect(&mut self) {}

    /// Runs the next event if it is due by `end`. Returns false if none is.
    fn step(&mut self, end: Instant) -> bool {
        let arrival = self.network().next_due();
        let next = arrival.into_iter().chain(self.poll_timeout()).min();
        let Some(next) = next.filter(|next| *next <= end) else {
            return false;
        };
        let clock = self.clock();
        let now = next.max(*clock);
        *clock = now;
        self.network().step(now);
        while let Some(packet) = self.network().pop_due(now) {
            self.receive(packet);
        }
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.handle_timeout();
        }
        self.collect();
        true
    }

    /// Advances the time to `end`.
    fn run_to(&mut self, end: Instant) {
        self.collect();
        while self.step(end) {}
        *self.clock() = end;
    }

    /// Lets time pass.
    fn run_for(&mut self, duration: Duration) {
        let end = *self.clock() + duration;
        self.run_to(end);
    }

    /// Lets time pass until a condition holds. Returns false if `most` passes first.
    fn run_until(&mut self, most: Duration, is_so: impl Fn(&Self) -> bool) -> bool
    where
        Self: Sized,
    {
        let end = *self.clock() + most;
        while !is_so(self) && *self.clock() < end {
            self.run_for(GLANCE);
        }
        is_so(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hop;

    /// A host that answers each packet, and sends one at each deadline.
    struct Echo {
        now: Instant,
        network: Network<u32>,
        hop: Hop,
        due: Vec<Instant>,
        /// Times and numbers of packets that arrived; deadlines have the number 0.
        story: Vec<(Duration, u32)>,
    }

    impl Hosts for Echo {
        type Packet = u32;

        fn clock(&mut self) -> &mut Instant {
            &mut self.now
        }

        fn network(&mut self) -> &mut Network<u32> {
            &mut self.network
        }

        fn poll_timeout(&self) -> Option<Instant> {
            self.due.first().copied()
        }

        fn handle_timeout(&mut self) {
            self.due.remove(0);
            self.story.push((self.now.since_origin(), 0));
        }

        fn receive(&mut self, number: u32) {
            self.story.push((self.now.since_origin(), number));
            self.network.send(number + 1, &self.hop, self.now);
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn echo(due: &[u64]) -> Echo {
        let at = |due: &u64| Instant::from_origin(ms(*due));
        let mut echo = Echo {
            now: Instant::ZERO,
            network: Network::default(),
            hop: Hop::PERFECT,
            due: due.iter().map(at).collect(),
            story: Vec::new(),
        };
        echo.network.send(1, &echo.hop, echo.now);
        echo
    }

    #[test]
    fn nothing_happens_before_its_time_and_nothing_after_it() {
        let mut echo = echo(&[7, 12]);
        echo.run_for(ms(4));
        assert_eq!(echo.story, []);
        echo.run_for(ms(6));
        assert_eq!(echo.story, [(ms(5), 1), (ms(7), 0), (ms(10), 2)]);
        assert_eq!(echo.now.since_origin(), ms(10));
    }

    #[test]
    fn at_one_moment_packets_come_before_deadlines() {
        let mut echo = echo(&[5]);
        echo.run_for(ms(5));
        assert_eq!(echo.story, [(ms(5), 1), (ms(5), 0)]);
    }

    #[test]
    fn a_deadline_that_has_passed_is_handled_at_once() {
        let mut echo = echo(&[1]);
        echo.now = Instant::from_origin(ms(3));
        echo.run_for(ms(1));
        assert_eq!(echo.story, [(ms(3), 0)]);
    }

    #[test]
    fn a_condition_ends_the_wait_and_so_does_its_limit() {
        let mut echo = echo(&[]);
        assert!(echo.run_until(ms(100), |echo| echo.story.len() > 3));
        assert_eq!(echo.now.since_origin(), ms(20));
        assert!(!echo.run_until(ms(100), |_| false));
        assert_eq!(echo.now.since_origin(), ms(120));
    }

    #[test]
    #[should_panic(expected = "due for ever")]
    fn a_timer_that_is_always_due_is_noticed() {
        let mut echo = echo(&[1; 2000]);
        echo.run_for(ms(1));
    }
}
