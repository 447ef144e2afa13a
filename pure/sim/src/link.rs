//! One direction of a link: tail-drop queue, then serialisation, then propagation.
//!
//! A packet that finds the queue full is lost immediately and takes no time on the link. Any other
//! packet waits for those before it, occupies the link for `8 L / rate`, and arrives one delay
//! later, unless a bit error hits it. Then it has occupied the link for nothing, as on a real
//! radio. Bit errors are Poisson: independent for each bit, so a packet of L octets survives with
//! probability `(1 - BER)^(8 L)`. The caller defines L, and adds framing if it should count.

use model::Instant;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

/// Properties of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Bits per second. With `None`, serialisation takes no time and the queue is always empty.
    pub rate: Option<NonZeroU64>,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Number of packets that may wait behind the one in serialisation.
    pub queue: usize,
    /// Probability of an error per bit, 0 to 1.
    pub bit_error_rate: f64,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The packet arrives.
    Deliver {
        /// Arrival time of its last bit.
        at: Instant,
    },
    /// The packet is lost.
    Lost(Reason),
}

/// The reason why a packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The queue was full.
    Queue,
    /// A bit error hit it.
    BitError,
}

/// Counters of a link, in packets. `offered` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets offered to the link.
    pub offered: u64,
    /// Packets that have arrived, or are certain to arrive.
    pub delivered: u64,
    /// Octets of the delivered packets.
    pub delivered_octets: u64,
    /// Packets lost because the queue was full.
    pub lost_queue: u64,
    /// Packets lost to bit errors.
    pub lost_bit_error: u64,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Link {
    settings: Settings,
    errors: ChaCha8Rng,
    /// Departure times of packets that are not yet serialised, in order. The first one is in
    /// service.
    departures: VecDeque<Instant>,
    /// Rounding error of the last departure, in units of 1 / rate nanoseconds. Without it, errors
    /// would accumulate on fast links.
    remainder: u128,
    statistics: Statistics,
}

impl Link {
    /// Creates an idle link. The same seed, offers and times result in the same outcomes.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            errors: ChaCha8Rng::seed_from_u64(seed),
            departures: VecDeque::new(),
            remainder: 0,
            statistics: Statistics::default(),
        }
    }

    /// Offers a packet of `octets`. `now` must never decrease between offers.
    pub fn offer(&mut self, octets: usize, now: Instant) -> Outcome {
        self.statistics.offered += 1;
        if self.queued(now) > self.settings.queue {
            self.statistics.lost_queue += 1;
            return Outcome::Lost(Reason::Queue);
        }
        let departure = self.serialise(octets, now);
        if self.is_hit(octets) {
            self.statistics.lost_bit_error += 1;
            return Outcome::Lost(Reason::BitError);
        }
        self.statistics.delivered += 1;
        self.statistics.delivered_octets += octets as u64;
        Outcome::Deliver {
            at: departure + self.settings.delay,
        }
    }

    /// Returns the number of packets not yet serialised, including the one in service.
    pub fn queued(&mut self, now: Instant) -> usize {
        while self.departures.front().is_some_and(|&at| at <= now) {
            self.departures.pop_front();
        }
        self.departures.len()
    }

    /// Returns the counters.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the properties of the link.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Queues a packet and returns the departure time of its last bit.
    fn serialise(&mut self, octets: usize, now: Instant) -> Instant {
        const NANOS_PER_SECOND: u128 = 1_000_000_000;
        let Some(rate) = self.settings.rate else {
            return now;
        };
        let start = match self.departures.back() {
            Some(&busy_until) => busy_until,
            None => {
                self.remainder = 0;
                now
            }
        };
        let rate = u128::from(rate.get());
        let work = octets as u128 * 8 * NANOS_PER_SECOND + self.remainder;
        self.remainder = work % rate;
        let nanos = u64::try_from(work / rate).unwrap_or(u64::MAX);
        let departure = start + Duration::from_nanos(nanos);
        self.departures.push_back(departure);
        departure
    }

    /// Draws the bit errors of a packet. A link with errors makes exactly one draw for each packet,
    /// so packet lengths do not change the fate of later packets.
    fn is_hit(&mut self, octets: usize) -> bool {
        let rate = self.settings.bit_error_rate;
        if rate <= 0.0 {
            return false;
        }
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        let draw = (self.errors.next_u64() >> 11) as f64 * UNIT;
        draw < loss_probability(rate, octets)
    }
}

/// Computes `1 - (1 - BER)^(8 L)`, exactly even if `1 - BER` rounds to 1.
fn loss_probability(bit_error_rate: f64, octets: usize) -> f64 {
    -(8.0 * octets as f64 * (-bit_error_rate.min(1.0)).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERFECT: Settings = Settings {
        rate: NonZeroU64::new(2_000_000),
        delay: Duration::from_millis(1),
        queue: 50,
        bit_error_rate: 0.0,
    };

    fn at_us(us: u64) -> Instant {
        Instant::from_origin(Duration::from_micros(us))
    }

    #[test]
    fn an_idle_link_delivers_after_serialisation_and_delay_exactly() {
        let mut link = Link::new(PERFECT, 0);
        // 1500 octets at 2 Mb/s take 6 ms.
        for start in [0, 7_000, 1_000_000] {
            let at = at_us(start + 6_000 + 1_000);
            assert_eq!(link.offer(1500, at_us(start)), Outcome::Deliver { at });
        }
    }

    #[test]
    fn packets_wait_for_those_before_them_but_propagation_overlaps() {
        let mut link = Link::new(PERFECT, 0);
        for n in 1..=10 {
            let at = at_us(n * 6_000 + 1_000);
            assert_eq!(link.offer(1500, at_us(0)), Outcome::Deliver { at });
        }
    }

    #[test]
    fn the_queue_limit_is_exact_and_a_tail_drop_costs_no_time() {
        let mut link = Link::new(PERFECT, 0);
        for _ in 0..1 + PERFECT.queue {
            assert!(matches!(
                link.offer(1500, at_us(0)),
                Outcome::Deliver { .. }
            ));
        }
        for _ in 0..3 {
            assert_eq!(link.offer(1500, at_us(5_999)), Outcome::Lost(Reason::Queue));
        }
        // The first one has left: exactly one place is free, behind the 51 packets before it.
        let at = at_us(52 * 6_000 + 1_000);
        assert_eq!(link.offer(1500, at_us(6_000)), Outcome::Deliver { at });
        assert_eq!(link.offer(1500, at_us(6_000)), Outcome::Lost(Reason::Queue));
        assert_eq!(link.statistics().lost_queue, 4);
    }

    #[test]
    fn a_saturated_link_carries_its_rate() {
        for (rate, octets) in [(2_000_000, 1372), (9_999_999_999, 64), (56_000, 40), (3, 1)] {
            let settings = Settings {
                rate: NonZeroU64::new(rate),
                queue: usize::MAX,
                ..PERFECT
            };
            let mut link = Link::new(settings, 0);
            let mut last = Instant::ZERO;
            for _ in 0..20_000 {
                if let Outcome::Deliver { at } = link.offer(octets, Instant::ZERO) {
                    last = at;
                }
            }
            let seconds = (last.since(Instant::ZERO) - settings.delay).as_secs_f64();
            let measured = 20_000.0 * 8.0 * octets as f64 / seconds;
            let error = (measured / rate as f64 - 1.0).abs();
            assert!(error < 1e-6, "{rate} b/s: off by {error}");
        }
    }

    #[test]
    fn a_link_without_a_rate_only_delays() {
        let settings = Settings {
            rate: None,
            queue: 0,
            ..PERFECT
        };
        let mut link = Link::new(settings, 0);
        for _ in 0..1000 {
            let at = at_us(1_000);
            assert_eq!(link.offer(65_535, at_us(0)), Outcome::Deliver { at });
        }
    }

    #[test]
    fn losses_agree_with_the_formula_within_four_sigma() {
        const PACKETS: u64 = 200_000;
        for (seed, ber) in [(1, 1e-7), (2, 1.0 / 524_288.0), (3, 1e-5), (4, 1e-4)] {
            for octets in [40, 576, 1500] {
                let settings = Settings {
                    rate: None,
                    bit_error_rate: ber,
                    ..PERFECT
                };
                let mut link = Link::new(settings, seed);
                for _ in 0..PACKETS {
                    link.offer(octets, Instant::ZERO);
                }
                let p = 1.0 - (1.0 - ber).powi(8 * octets as i32);
                let expected = PACKETS as f64 * p;
                let sigma = (expected * (1.0 - p)).sqrt();
                let lost = link.statistics().lost_bit_error as f64;
                assert!(
                    (lost - expected).abs() <= 4.0 * sigma,
                    "BER {ber}, {octets} octets: lost {lost}, expected {expected} +- {sigma}"
                );
            }
        }
    }

    #[test]
    fn a_hit_packet_takes_its_time_on_the_link() {
        let settings = Settings {
            bit_error_rate: 1.0,
            ..PERFECT
        };
        let mut link = Link::new(settings, 0);
        let lost = Outcome::Lost(Reason::BitError);
        assert_eq!(link.offer(1500, at_us(0)), lost);
        assert_eq!(link.offer(1500, at_us(0)), lost);
        assert_eq!(link.queued(at_us(5_999)), 2);
        assert_eq!(link.queued(at_us(6_000)), 1);
        assert_eq!(link.queued(at_us(12_000)), 0);
    }

    #[test]
    fn the_same_seed_gives_the_same_losses_and_another_seed_others() {
        let fates = |seed| {
            let settings = Settings {
                rate: None,
                bit_error_rate: 1e-4,
                ..PERFECT
            };
            let mut link = Link::new(settings, seed);
            (0..1000)
                .map(|n| link.offer(400, at_us(n)))
                .collect::<Vec<_>>()
        };
        assert_eq!(fates(7), fates(7));
        assert_ne!(fates(7), fates(8));
    }

    #[test]
    fn errors_below_the_precision_of_one_minus_ber_still_count() {
        let p = loss_probability(1e-18, 1500);
        assert!((p / 1.2e-14 - 1.0).abs() < 1e-6, "{p}");
        assert_eq!(loss_probability(7.0, 1500), 1.0);
        assert_eq!(loss_probability(0.5, 0), 0.0);
    }

    proptest! {
        #[test]
        fn every_packet_is_accounted_for_and_order_is_kept(
            offers in proptest::collection::vec((0_usize..3000, 0_u64..9_000), 1..300),
            queue in 0_usize..20,
            ber in 0.0_f64..1e-4,
        ) {
            let mut link = Link::new(Settings { queue, bit_error_rate: ber, ..PERFECT }, 5);
            let (mut now, mut last) = (Instant::ZERO, Instant::ZERO);
            for (octets, gap) in offers {
                now += Duration::from_micros(gap);
                if let Outcome::Deliver { at } = link.offer(octets, now) {
                    prop_assert!(at >= last && at >= now + PERFECT.delay);
                    last = at;
                }
                prop_assert!(link.queued(now) <= queue + 1);
            }
            let s = link.statistics();
            prop_assert_eq!(s.offered, s.delivered + s.lost_queue + s.lost_bit_error);
        }
    }
}
