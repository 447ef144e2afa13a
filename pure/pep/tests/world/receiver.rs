//! A receiver: delayed acknowledgements (every second segment or 40 ms), an immediate duplicate for
//! every segment out of order, SACK on request, and the replay window of an IPsec endpoint.

use super::packet::Packet;
use super::sender::MSS;
use model::Instant;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

pub struct Receiver {
    pub initial: u32,
    pub sack: bool,
    pub replayed: u64,
    pub next: u64,
    beyond: BTreeSet<u64>,
    recent: VecDeque<u64>,
    seen: BTreeSet<u32>,
    delayed: Option<Instant>,
}

impl Receiver {
    pub fn new(initial: u32, sack: bool) -> Self {
        Self {
            initial,
            sack,
            replayed: 0,
            next: 0,
            beyond: BTreeSet::new(),
            recent: VecDeque::new(),
            seen: BTreeSet::new(),
            delayed: None,
        }
    }

    pub fn timer(&self) -> Option<Instant> {
        self.delayed
    }

    pub fn handle_data(&mut self, packet: &Packet, now: Instant) -> Option<Packet> {
        if packet
            .esp_seq
            .is_some_and(|esp_seq| !self.seen.insert(esp_seq))
        {
            self.replayed += 1;
            return None;
        }
        let offset = packet.header().seq.0.wrapping_sub(self.initial);
        let near = (self.next * MSS as u64) as u32;
        let ahead = i64::from(offset.wrapping_sub(near) as i32) / MSS as i64;
        let segment = self.next as i64 + ahead;
        let Ok(segment) = u64::try_from(segment) else {
            return Some(self.ack());
        };
        if segment > self.next {
            self.beyond.insert(segment);
            self.recent.retain(|n| *n != segment);
            self.recent.push_front(segment);
            self.recent.truncate(64);
            return Some(self.ack());
        }
        if segment < self.next {
            return Some(self.ack());
        }
        let filled = !self.beyond.is_empty();
        self.next += 1;
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
        if filled || self.delayed.is_some() {
            return Some(self.ack());
        }
        self.delayed = Some(now + Duration::from_millis(40));
        None
    }

    pub fn handle_timer(&mut self, now: Instant) -> Option<Packet> {
        self.delayed.is_some_and(|at| at <= now).then(|| self.ack())
    }

    fn ack(&mut self) -> Packet {
        self.delayed = None;
        let blocks = if self.sack { self.blocks() } else { Vec::new() };
        Packet::ack(self.number(self.next)).sack(&blocks)
    }

    /// Returns the three runs that changed last, newest first (RFC 2018 section 4).
    fn blocks(&self) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &segment in self.recent.iter().filter(|n| self.beyond.contains(n)) {
            if runs.iter().any(|(l, r)| (*l..*r).contains(&segment)) {
                continue;
            }
            let (mut left, mut right) = (segment, segment + 1);
            while left > 0 && self.beyond.contains(&(left - 1)) {
                left -= 1;
            }
            while self.beyond.contains(&right) {
                right += 1;
            }
            runs.push((left, right));
        }
        let number = |n| self.number(n);
        runs.into_iter()
            .take(3)
            .map(|(left, right)| (number(left), number(right)))
            .collect()
    }

    fn number(&self, segment: u64) -> u32 {
        self.initial.wrapping_add((segment * MSS as u64) as u32)
    }
}
