//! A test bench for one proxy: a test feeds packets by hand and reads the output.

use super::packet::{LINE, Packet, downward, upward};
use model::Instant;
use pep::{Config, FlowStatus, Line, Side, Snoop, Verdict};
use std::time::Duration;

/// Octets of payload in every data segment of the bench.
pub const LEN: u32 = 1000;

pub struct Bench {
    pub snoop: Snoop,
    pub now: Instant,
    pub port: u16,
    pub fresh: bool,
    /// True if the packets have hidden options.
    pub hides: bool,
    pub highest: u32,
    /// The line of sealed packets.
    pub line: Line,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(Config::default())
    }

    pub fn with(config: Config) -> Self {
        Self {
            snoop: Snoop::new(config),
            now: Instant::ZERO,
            port: 1,
            fresh: true,
            hides: false,
            highest: 0,
            line: LINE,
        }
    }

    /// Sends segments `0..count`; the receiver has acknowledged only the data before them.
    pub fn with_data(count: u32) -> Self {
        let mut bench = Self::new();
        for n in 0..count {
            bench.data(n);
        }
        assert_eq!(bench.ack(0), Verdict::Forward);
        bench
    }

    pub fn later(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    /// Sends segment `n`, in clear.
    pub fn data(&mut self, n: u32) {
        let verdict = self.down(&Packet::data(seq(n), LEN as usize));
        assert_eq!(verdict, Verdict::Forward, "data is never suppressed");
    }

    /// Acknowledges everything before segment `n`.
    pub fn ack(&mut self, n: u32) -> Verdict {
        self.up(&Packet::ack(seq(n)))
    }

    /// Acknowledges everything before segment `n`, with SACK blocks of later segments.
    pub fn sack(&mut self, n: u32, blocks: &[(u32, u32)]) -> Verdict {
        self.up(&sack(n, blocks))
    }

    pub fn down(&mut self, packet: &Packet) -> Verdict {
        self.highest = self.highest.max(packet.esp_seq.unwrap_or(0));
        let sealed = packet.sealed();
        let mut segment = packet.segment(downward(self.port), &sealed, self.highest);
        segment.fresh = self.fresh;
        segment.line = segment.line.map(|_| self.line);
        self.snoop.handle_segment(Side::Wired, &segment, self.now)
    }

    pub fn up(&mut self, packet: &Packet) -> Verdict {
        let sealed = packet.sealed();
        let highest = packet.esp_seq.unwrap_or(0);
        let mut segment = packet.segment(upward(self.port), &sealed, highest);
        (segment.fresh, segment.hides) = (self.fresh, self.hides);
        segment.line = segment.line.map(|_| self.line);
        self.snoop
            .handle_segment(Side::Wireless, &segment, self.now)
    }

    /// Advances the time and runs the timers.
    pub fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(deadline) = self.snoop.poll_timeout().filter(|d| d.at <= end) {
            self.now = self.now.max(deadline.at);
            self.snoop.handle_timeout(self.now);
        }
        self.now = end;
    }

    /// Returns the segments retransmitted since the last call.
    pub fn resent(&mut self) -> Vec<u32> {
        self.sent()
            .into_iter()
            .map(|(side, packet)| {
                assert_eq!(side, Side::Wireless);
                packet.header().seq.0.wrapping_sub(seq(0)) / LEN
            })
            .collect()
    }

    /// Returns everything sent since the last call.
    pub fn sent(&mut self) -> Vec<(Side, Packet)> {
        std::iter::from_fn(|| self.snoop.poll_transmit())
            .map(|(side, sealed)| (side, Packet::unseal(&sealed)))
            .collect()
    }

    /// Returns the status of the only connection.
    pub fn flow(&self) -> FlowStatus {
        let mut flows = self.snoop.flows();
        let flow = flows.next().expect("a connection");
        assert!(flows.next().is_none());
        flow
    }

    pub fn forget(&mut self) {
        self.snoop.forget(LINE);
    }
}

/// Returns the sequence number of segment `n`; the first ones lie before the wrap of the sequence
/// space.
pub fn seq(n: u32) -> u32 {
    u32::MAX
        .wrapping_sub(2 * LEN)
        .wrapping_add(n.wrapping_mul(LEN))
}

pub fn sack(n: u32, blocks: &[(u32, u32)]) -> Packet {
    let blocks: Vec<_> = blocks.iter().map(|(l, r)| (seq(*l), seq(*r))).collect();
    Packet::ack(seq(n)).sack(&blocks)
}
