//! `strata flows`: TCP connections that SNOOP handles.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// TCP connections that cross a licensed node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// True if SNOOP is enabled.
    pub snoop: bool,
    /// Sums over all flows since the daemon started.
    pub total: SnoopCounters,
    /// One entry per TCP connection and direction of data.
    pub flows: Vec<Flow>,
}

/// Data in one direction of a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Sender of the data. In transport and BEET mode the inner packet has no IP header, so the
    /// address is unknown: `0.0.0.0` stands for the gateway's end, `::` for the other end.
    pub source: SocketAddr,
    /// Receiver of the data.
    pub destination: SocketAddr,
    /// True for zoned ESP, false for TCP in clear.
    pub zoned: bool,
    /// SNOOP's state: `open`, `repairing`, `acks-elsewhere` or `closing`.
    pub state: String,
    /// Packets in the cache.
    pub cached_packets: u64,
    /// Octets in the cache.
    pub cached_octets: u64,
    /// Smoothed round-trip time on the wireless side, in microseconds; `None` before the first
    /// sample.
    pub round_trip_micros: Option<u64>,
    /// Packets that this node retransmitted.
    pub retransmitted: u64,
    /// Acknowledgements that this node did not forward to the sender.
    pub suppressed: u64,
}

/// SNOOP's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopCounters {
    /// Data segments added to the cache.
    pub cached: u64,
    /// Segments retransmitted from the cache.
    pub retransmitted: u64,
    /// Duplicate acknowledgements not forwarded to the sender.
    pub suppressed: u64,
}
