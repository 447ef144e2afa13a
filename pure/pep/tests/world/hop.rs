//! The wireless hop in one direction: a tail-drop queue, serialisation, delay, and losses that are
//! scripted or random. The random numbers are seeded.

use super::packet::Packet;
use model::Instant;
use std::time::Duration;

/// Decides if a packet is lost, from the packet and the number of packets sent before it.
pub type Loss = Box<dyn FnMut(&Packet, u64) -> bool>;

pub struct Hop {
    pub bits_per_second: u64,
    pub delay: Duration,
    pub queue: Duration,
    pub loss: Loss,
    pub sent: u64,
    pub lost: u64,
    pub overflowed: u64,
    busy_until: Instant,
}

impl Hop {
    /// Returns a hop that holds `packets` of 1500 octets in its queue.
    pub fn new(bits_per_second: u64, delay: Duration, packets: u64, loss: Loss) -> Self {
        Self {
            bits_per_second,
            delay,
            queue: Duration::from_nanos(packets * 1500 * 8 * 1_000_000_000 / bits_per_second),
            loss,
            sent: 0,
            lost: 0,
            overflowed: 0,
            busy_until: Instant::ZERO,
        }
    }

    /// Returns the arrival time of a packet, or `None` if it is lost.
    pub fn send(&mut self, packet: &Packet, now: Instant) -> Option<Instant> {
        if self.busy_until.since(now) > self.queue {
            self.overflowed += 1;
            return None;
        }
        let nanos = packet.len() as u64 * 8 * 1_000_000_000 / self.bits_per_second;
        self.busy_until = self.busy_until.max(now) + Duration::from_nanos(nanos);
        let lost = (self.loss)(packet, self.sent);
        self.sent += 1;
        self.lost += u64::from(lost);
        (!lost).then(|| self.busy_until + self.delay)
    }
}

pub fn perfect() -> Loss {
    Box::new(|_, _| false)
}

/// Loses each packet with payload with the given probability.
pub fn chance(probability: f64, seed: u64) -> Loss {
    let mut state = seed;
    Box::new(move |packet, _| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let draw = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        packet.payload_len > 0 && draw < probability
    })
}

/// Loses the packets with these numbers, counted over everything sent.
pub fn exactly(numbers: &'static [u64]) -> Loss {
    Box::new(move |_, number| numbers.contains(&number))
}
