//! A bulk sender: slow start, congestion avoidance, fast retransmit and recovery (NewReno without
//! SACK, RFC 5681 and 6582; RFC 6675 with SACK), and timeouts (RFC 6298 with the 200 ms minimum of
//! Linux). It has no undo, so every spurious recovery shows.

use super::packet::Packet;
use model::Instant;
use std::collections::BTreeSet;
use std::time::Duration;
use wire::tcp::{OptionValue, Seq};

pub const MSS: usize = 1372;

/// Segments are numbered from 0; number n has sequence number `initial + n * MSS`.
pub struct Sender {
    pub initial: u32,
    pub total: u64,
    pub receive_window: u64,
    pub fast_retransmits: u64,
    pub timeouts: u64,
    pub retransmitted: u64,
    pub una: u64,
    next: u64,
    highest: u64,
    cwnd: f64,
    ssthresh: f64,
    duplicates: u32,
    recover: Option<u64>,
    sacked: BTreeSet<u64>,
    resent: BTreeSet<u64>,
    timed: Option<(u64, Instant)>,
    srtt: Option<Duration>,
    rttvar: Duration,
    backoff: u32,
    timer: Option<Instant>,
}

impl Sender {
    pub fn new(initial: u32, total: u64, receive_window: u64) -> Self {
        Self {
            initial,
            total,
            receive_window,
            fast_retransmits: 0,
            timeouts: 0,
            retransmitted: 0,
            una: 0,
            next: 0,
            highest: 0,
            cwnd: 10.0,
            ssthresh: f64::MAX,
            duplicates: 0,
            recover: None,
            sacked: BTreeSet::new(),
            resent: BTreeSet::new(),
            timed: None,
            srtt: None,
            rttvar: Duration::ZERO,
            backoff: 0,
            timer: None,
        }
    }

    pub fn is_done(&self) -> bool {
        self.una == self.total
    }

    pub fn timer(&self) -> Option<Instant> {
        self.timer
    }

    pub fn handle_ack(&mut self, packet: &Packet, now: Instant) -> Vec<Packet> {
        let header = packet.header();
        let mut blocks = Vec::new();
        for option in header.options().flatten() {
            if let OptionValue::Sack(list) = option.value {
                blocks.extend(list.map(|(left, right)| (self.index(left), self.index(right))));
            }
        }
        let uses_sack = !blocks.is_empty();
        for (left, right) in blocks {
            self.sacked.extend(left..right);
        }
        let ack = self.index(header.ack);
        let mut out = Vec::new();
        if ack > self.una {
            self.advance(ack, now, &mut out);
        } else if ack == self.una && self.una < self.highest {
            self.duplicates += 1;
            self.duplicate(uses_sack, now, &mut out);
        }
        if uses_sack {
            self.sack_recovery(now, &mut out);
        }
        self.send_new(now, &mut out);
        out
    }

    pub fn handle_timer(&mut self, now: Instant) -> Vec<Packet> {
        let mut out = Vec::new();
        if self.timer.is_none_or(|at| at > now) {
            return out;
        }
        self.timeouts += 1;
        self.ssthresh = (self.flight() / 2.0).max(2.0);
        self.cwnd = 1.0;
        self.backoff += 1;
        (self.duplicates, self.recover, self.timed) = (0, None, None);
        self.resent.clear();
        self.next = self.una;
        self.timer = None;
        self.send_new(now, &mut out);
        out
    }

    pub fn start(&mut self, now: Instant) -> Vec<Packet> {
        let mut out = Vec::new();
        self.send_new(now, &mut out);
        out
    }

    fn advance(&mut self, ack: u64, now: Instant, out: &mut Vec<Packet>) {
        if let Some((_, at)) = self.timed.take_if(|(segment, _)| *segment < ack) {
            self.sample(now.since(at));
        }
        let newly = (ack - self.una) as f64;
        self.una = ack;
        self.next = self.next.max(ack);
        self.sacked = self.sacked.split_off(&ack);
        self.duplicates = 0;
        self.backoff = 0;
        match self.recover {
            Some(recover) if ack < recover => {
                if self.sacked.is_empty() {
                    // NewReno's partial acknowledgement.
                    self.cwnd = (self.cwnd - newly + 1.0).max(1.0);
                    self.resend(ack, out);
                }
            }
            Some(_) => {
                self.cwnd = self.ssthresh;
                self.recover = None;
                self.resent.clear();
            }
            None if self.cwnd < self.ssthresh => self.cwnd += newly,
            None => self.cwnd += newly / self.cwnd,
        }
        self.timer = (self.una < self.highest).then(|| now + self.rto());
    }

    fn duplicate(&mut self, uses_sack: bool, now: Instant, out: &mut Vec<Packet>) {
        if self.recover.is_some() {
            self.cwnd += f64::from(u8::from(!uses_sack));
        } else if self.duplicates == 3 && !uses_sack {
            self.enter_recovery(now);
            self.cwnd = self.ssthresh + 3.0;
            self.resend(self.una, out);
        }
    }

    fn enter_recovery(&mut self, now: Instant) {
        self.fast_retransmits += 1;
        self.ssthresh = (self.flight() / 2.0).max(2.0);
        self.cwnd = self.ssthresh;
        self.recover = Some(self.highest);
        self.timed = None;
        self.timer = Some(now + self.rto());
    }

    /// RFC 6675: a segment is lost if three segments above it are SACKed.
    fn sack_recovery(&mut self, now: Instant, out: &mut Vec<Packet>) {
        let Some(edge) = self.sacked.iter().rev().nth(2).copied() else {
            return;
        };
        let lost: Vec<u64> = (self.una..edge)
            .filter(|n| !self.sacked.contains(n) && !self.resent.contains(n))
            .collect();
        if lost.is_empty() {
            return;
        }
        if self.recover.is_none() {
            self.enter_recovery(now);
        }
        for segment in lost {
            if self.pipe() < self.cwnd {
                self.resent.insert(segment);
                self.resend(segment, out);
            }
        }
    }

    fn send_new(&mut self, now: Instant, out: &mut Vec<Packet>) {
        while self.next < self.total
            && self.pipe() < self.cwnd
            && self.next < self.una + self.receive_window
        {
            let segment = self.next;
            self.next += 1;
            if self.sacked.contains(&segment) {
                continue;
            }
            if segment < self.highest {
                self.retransmitted += 1;
            } else {
                self.highest = self.next;
                self.timed = self.timed.or(Some((segment, now)));
            }
            self.timer = self.timer.or(Some(now + self.rto()));
            out.push(self.packet(segment));
        }
    }

    fn resend(&mut self, segment: u64, out: &mut Vec<Packet>) {
        self.retransmitted += 1;
        self.timed = None;
        out.push(self.packet(segment));
    }

    fn flight(&self) -> f64 {
        (self.next - self.una) as f64
    }

    fn pipe(&self) -> f64 {
        self.flight() - self.sacked.range(self.una..self.next).count() as f64
    }

    fn rto(&self) -> Duration {
        let base = match self.srtt {
            None => Duration::from_secs(1),
            Some(srtt) => srtt + (self.rttvar * 4).max(Duration::from_millis(200)),
        };
        base * (1 << self.backoff.min(6))
    }

    fn sample(&mut self, rtt: Duration) {
        match self.srtt {
            None => (self.srtt, self.rttvar) = (Some(rtt), rtt / 2),
            Some(srtt) => {
                self.rttvar = (self.rttvar * 3 + srtt.abs_diff(rtt)) / 4;
                self.srtt = Some((srtt * 7 + rtt) / 8);
            }
        }
    }

    fn packet(&self, segment: u64) -> Packet {
        let offset = (segment * MSS as u64) as u32;
        Packet::data(self.initial.wrapping_add(offset), MSS)
    }

    fn index(&self, seq: Seq) -> u64 {
        let base = self.initial.wrapping_add((self.una * MSS as u64) as u32);
        let ahead = i64::from(seq.since(Seq(base))) / MSS as i64;
        (self.una as i64 + ahead).max(0) as u64
    }
}
