//! `strata flows`: what SNOOP is doing.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The flows that a licensed node looks after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// Whether SNOOP is on at all.
    pub snoop: bool,
    /// Sums over all flows since the start.
    pub total: SnoopCounters,
    /// One for each TCP connection and direction of data.
    pub flows: Vec<Flow>,
}

/// Data in one direction of a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Sender of the data. Of packets without an IP header inside no address is known: the unspecified one of
    /// IPv4 stands for the gateway's end, and that of IPv6 for the other.
    pub source: SocketAddr,
    /// Its receiver.
    pub destination: SocketAddr,
    /// Whether the packets are sealed in zones; else clear TCP.
    pub zoned: bool,
    /// What SNOOP is doing about it: `open`, `repairing`, `acks-elsewhere`, `closing`.
    pub state: String,
    /// Packets in the cache.
    pub cached_packets: u64,
    /// Their octets.
    pub cached_octets: u64,
    /// Smoothed round-trip time on the wireless side, in microseconds; `None` before the first.
    pub round_trip_micros: Option<u64>,
    /// Packets sent again from here.
    pub retransmitted: u64,
    /// Acknowledgements kept from the sender.
    pub suppressed: u64,
}

/// What SNOOP did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopCounters {
    /// Data segments put into the cache.
    pub cached: u64,
    /// Segments sent again from the cache.
    pub retransmitted: u64,
    /// Duplicate acknowledgements kept from the sender.
    pub suppressed: u64,
}
