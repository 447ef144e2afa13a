//! A small TCP over IPv4 with real segments: a licensed node sees the same as with a kernel's TCP.
//!
//! It follows Linux wherever that affects a measurement: Reno with an initial window of ten
//! (RFC 5681, RFC 6928), NewReno or SACK recovery (RFC 6582, RFC 6675) with proportional rate
//! reduction (RFC 6937), limited transmit (RFC 3042), timers (RFC 6298) with F-RTO (RFC 5682),
//! undoing by timestamps (RFC 7323, RFC 4015), delayed acknowledgements, receive windows and probes
//! of a closed window (RFC 9293).
//!
//! It omits closing (a connection ends with the simulation), resets, urgent data, path MTU
//! discovery, ECN, pacing, receive buffer tuning, tail loss probes and the reordering window of
//! RFC 8985.

mod connection;
mod flight;
mod receiver;
mod reno;
mod round_trip;
mod segment;
mod sender;
#[cfg(test)]
mod tests;

pub use connection::Connection;

use std::time::Duration;

/// Settings of one end. Options are used only if both ends enable them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Announced segment size in octets, TCP options included.
    pub mss: u16,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Octets of the receive buffer, and so of the largest window; at least two segments.
    pub receive_buffer: u32,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Least distance of the retransmission timeout above the smoothed round-trip time.
    pub least_timeout: Duration,
    /// Longest time for which an acknowledgement waits for a second segment.
    pub delay: Duration,
}

impl Default for Settings {
    /// Settings of Linux, with a receive buffer that fills a path of 6 Mb/s and 200 ms.
    fn default() -> Self {
        Self {
            mss: 1460,
            sack: true,
            timestamps: true,
            receive_buffer: 155_000,
            initial_window: 10,
            least_timeout: Duration::from_millis(200),
            delay: Duration::from_millis(40),
        }
    }
}

impl Settings {
    /// Returns the octets of the stream that a full segment carries.
    const fn payload_len(&self) -> usize {
        const TIMESTAMPS: usize = 12;
        self.mss as usize - if self.timestamps { TIMESTAMPS } else { 0 }
    }
}

/// Counters of the sending half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent for the first time.
    pub sent: u64,
    /// Segments retransmitted.
    pub sent_again: u64,
    /// Losses proved by later arrivals: number of recoveries entered.
    pub recoveries: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// Reductions of the window that were reverted.
    pub undone: u64,
    /// Probes of a closed window.
    pub probes: u64,
    /// The largest congestion window, in segments.
    pub largest_window: u32,
}
