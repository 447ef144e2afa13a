//! The sending half: decides which segments leave, which are lost, and how fast to send.
//!
//! It has four states. *Open*: no sign of loss. *Disorder*: a segment arrived out of order, which
//! may be harmless; new segments follow each arrival (RFC 3042). *Recovery*: a loss is proved; lost
//! segments are retransmitted while the window shrinks to its half (RFC 6582 without SACK, RFC 6675
//! with SACK). *Loss*: the timer expired; the window grows again from one segment, after a check
//! for a spurious timeout (F-RTO, RFC 5682). If timestamps show that the first transmission had
//! arrived, a reduction is reverted (RFC 3522, RFC 4015).
//!
//! The steps have the order of Linux's `tcp_ack`, so that results can be compared.

mod recovery;

use super::flight::Flight;
use super::reno::Reno;
use super::round_trip::RoundTrip;
use super::{Counters, Settings};
use model::Instant;
use std::time::Duration;

/// An acknowledgement, in offsets from the first octet of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Ack {
    /// Next octet that the peer expects.
    pub to: u64,
    /// Octets that may be sent from there.
    pub window: u64,
    pub sack: Vec<(u64, u64)>,
    /// Send time of the segment that it answers, if timestamps are in use.
    pub echo: Option<Instant>,
    /// True if it came with data, so it does not count as a duplicate.
    pub with_data: bool,
}

/// A segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// Octets of the stream.
    Data { start: u64, end: u64 },
    /// A probe of the window, without data (RFC 9293 section 3.8.6.1).
    Probe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Disorder,
    Recovery,
    Loss(Trial),
}

/// Detection of spurious timeouts (RFC 5682 section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    /// The timeout was not spurious, or detection has ended.
    Over,
    /// One segment was retransmitted, and its acknowledgement is awaited.
    Waiting,
    /// That segment was acknowledged. New data is sent before other retransmissions.
    NewFirst,
}

#[derive(Clone, Debug)]
pub(super) struct Sender {
    mss: u64,
    sack: bool,
    /// Octets that the program has written.
    written: u64,
    acknowledged: u64,
    next: u64,
    /// End of the window that the peer allows.
    right: u64,
    flight: Flight,
    reno: Reno,
    state: State,
    /// Value of `next` when the state was entered.
    high: u64,
    /// Window and threshold to restore if the reduction was a mistake.
    undo: Option<(u32, u32)>,
    /// Time of the first retransmission since the state was last open.
    first_again: Option<Instant>,
    round_trip: RoundTrip,
    timer: Option<Instant>,
    /// Timeouts since the last progress.
    in_row: u32,
    probe: bool,
    /// Use of the congestion window: growth needs a window that limits the sender (RFC 7661).
    usage: Usage,
    pub counters: Counters,
}

/// Use of the congestion window in the current round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    limited: bool,
    most: u32,
    until: u64,
}

impl Sender {
    pub fn new(settings: &Settings) -> Self {
        Self {
            mss: settings.payload_len() as u64,
            sack: settings.sack,
            written: 0,
            acknowledged: 0,
            next: 0,
            right: 0,
            flight: Flight::default(),
            reno: Reno::new(settings.initial_window),
            state: State::Open,
            high: 0,
            undo: None,
            first_again: None,
            round_trip: RoundTrip::new(settings.least_timeout),
            timer: None,
            in_row: 0,
            probe: false,
            usage: Usage::default(),
            counters: Counters::default(),
        }
    }

    /// Adds octets to send.
    pub const fn write(&mut self, octets: u64) {
        self.written = self.written.saturating_add(octets);
    }

    /// Sets the peer's first window, and measures the handshake if none of it was retransmitted.
    pub fn open(&mut self, window: u64, round_trip: Option<Duration>) {
        self.right = window;
        if let Some(measured) = round_trip {
            self.round_trip.sample(measured);
        }
    }

    pub const fn written(&self) -> u64 {
        self.written
    }

    pub const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub const fn next(&self) -> u64 {
        self.next
    }

    pub const fn window(&self) -> u32 {
        self.reno.window
    }

    pub fn threshold(&self) -> Option<u32> {
        self.reno.threshold()
    }

    pub const fn timer(&self) -> Option<Instant> {
        self.timer
    }

    /// Handles an acknowledgement.
    pub fn handle_ack(&mut self, ack: &Ack, now: Instant) {
        if ack.to > self.next || ack.to < self.acknowledged {
            return;
        }
        let (advanced, right) = (ack.to > self.acknowledged, ack.to + ack.window);
        let moved = right != self.right;
        let was_empty = self.flight.is_empty();
        self.right = self.right.max(right);
        self.acknowledged = ack.to;
        let delivered = self.note_arrivals(ack, advanced, now);
        let duplicate = !(advanced || ack.with_data || moved || was_empty);
        if advanced {
            self.in_row = 0;
            self.timer = (!self.flight.is_empty()).then(|| now + self.round_trip.timeout());
        }
        let lost_before = self.flight.has_lost();
        let delivered = delivered + self.judge(advanced, duplicate, ack.echo);
        match self.state {
            State::Recovery => {
                let progress = advanced && (lost_before || !self.flight.has_lost());
                let in_network = self.flight.in_network();
                self.reno.reduce(delivered, in_network, progress);
            }
            State::Open | State::Disorder | State::Loss(_) => {
                if advanced && self.is_window_limited() {
                    self.reno.grow(delivered);
                }
            }
        }
        self.counters.largest_window = self.counters.largest_window.max(self.reno.window);
    }

    /// Handles the expired timer (RFC 6298 section 5).
    pub fn handle_timer(&mut self, now: Instant) {
        if self.timer.is_none_or(|at| now < at) {
            return;
        }
        self.round_trip.back_off();
        if self.flight.is_empty() {
            self.probe = true;
            self.counters.probes += 1;
        } else {
            self.enter_loss();
        }
        self.timer = Some(now + self.round_trip.timeout());
    }

    /// Returns the next segment that may leave now.
    pub fn poll(&mut self, now: Instant) -> Option<Outgoing> {
        if std::mem::take(&mut self.probe) {
            return Some(Outgoing::Probe);
        }
        let room = self.flight.in_network() < self.reno.window;
        let outgoing = match room {
            true if self.state == State::Loss(Trial::NewFirst) => {
                self.send_new(now).or_else(|| self.send_again(now))
            }
            true => self.send_again(now).or_else(|| self.send_new(now)),
            false => None,
        };
        self.arm_timer(outgoing.is_some(), now);
        match outgoing {
            Some(_) if self.state == State::Recovery => self.reno.note_sent(),
            Some(_) => {}
            None => self.note_usage(),
        }
        outgoing.map(|(start, end)| Outgoing::Data { start, end })
    }

    /// Starts the timer. It runs while segments are in transit (RFC 6298 section 5.1), or while the
    /// peer's window holds octets back (RFC 9293 section 3.8.6.1).
    fn arm_timer(&mut self, sends: bool, now: Instant) {
        let timeout = now + self.round_trip.timeout();
        if sends && self.flight.len() == 1 {
            self.timer = Some(timeout);
        } else if sends || self.written > self.next {
            self.timer.get_or_insert(timeout);
        }
    }

    fn send_again(&mut self, now: Instant) -> Option<(u64, u64)> {
        let again = self.flight.send_lost(now)?;
        self.first_again.get_or_insert(now);
        self.counters.sent_again += 1;
        Some(again)
    }

    /// Sends a full segment, or the rest of the stream (RFC 9293 section 3.8.6.2.1).
    fn send_new(&mut self, now: Instant) -> Option<(u64, u64)> {
        let start = self.next;
        let end = (start + self.mss).min(self.written);
        if end <= start || end > self.right {
            return None;
        }
        self.next = end;
        self.flight.push(start, end, now);
        self.counters.sent += 1;
        Some((start, end))
    }

    /// Removes arrived segments and measures the round trip. Returns the number of segments newly
    /// known to have arrived.
    fn note_arrivals(&mut self, ack: &Ack, advanced: bool, now: Instant) -> u32 {
        let gone = self.flight.acknowledge(ack.to, ack.echo);
        if advanced {
            let sent_at = ack.echo.or(gone.sent_at);
            if let Some(sent_at) = sent_at {
                self.round_trip.sample(now - sent_at);
            }
        }
        if !self.sack {
            let duplicates = self.flight.arrived();
            self.flight.explain_duplicates(gone.segments);
            return match gone.segments {
                0 => 0,
                segments => segments.saturating_sub(duplicates).max(1),
            };
        }
        let blocks = ack.sack.iter();
        let sacked: u32 = blocks
            .map(|(start, end)| self.flight.note_sack(*start, *end))
            .sum();
        gone.news + sacked
    }

    /// Records the use of the window when no more segments may leave.
    fn note_usage(&mut self) {
        let limited = self.flight.in_network() >= self.reno.window;
        let usage = &mut self.usage;
        let most = !usage.limited && self.flight.len() > usage.most;
        if self.acknowledged >= usage.until || limited || most {
            *usage = Usage {
                limited,
                most: self.flight.len(),
                until: self.next,
            };
        }
    }

    fn is_window_limited(&self) -> bool {
        let ample = self.reno.in_slow_start() && self.reno.window < 2 * self.usage.most;
        self.usage.limited || ample
    }
}
