//! The limits and timers of SNOOP.

use std::time::Duration;

/// Limits and timers. The timers are those of table 4 of mobile multi-layered IPsec. Its limits are
/// smaller (64 connections, 50 packets of each, 4 retransmissions of a packet): windows of today
/// hold more packets. `[snoop]` of the configuration has defaults of its own; the figures of that
/// paper set its numbers of connections and packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most connections with state; at the limit the line of SAs with the most gives way.
    pub flows: usize,
    /// Most packets cached for one connection.
    ///
    /// Packets that arrive when the cache is full are forwarded uncached, and the sender has to
    /// repair their loss. The cache holds the unacknowledged packets in the wireless queue, so this
    /// limit is how congestion reaches the sender.
    pub packets_per_flow: usize,
    /// Most octets cached for all connections together; at the limit the line of SAs with the most
    /// gives way.
    pub octets: usize,
    /// Retransmissions of one packet by the proxy; after these its repair is left to the sender.
    pub attempts: u8,
    /// Most packets retransmitted for one acknowledgement. An acknowledgement shows that about one
    /// packet left the queue, so the rest waits for the next one.
    pub burst: usize,
    /// Retransmission timeout before the first sample.
    pub initial_rto: Duration,
    /// Lower bound of the retransmission timeout.
    pub min_rto: Duration,
    /// Upper bound of the retransmission timeout, doubling included.
    pub max_rto: Duration,
    /// Time without a packet from either end after which all cached packets are retransmitted,
    /// once.
    pub persist: Duration,
    /// Most packets retransmitted when the persist time ends.
    pub persist_burst: usize,
    /// Time without a packet from either end after which the connection is forgotten.
    pub garbage: Duration,
    /// Longest time to hold an acknowledgement that reports losses under repair. Must stay below a
    /// sender's least retransmission timeout (200 ms on Linux).
    pub hold: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            flows: 4096,
            packets_per_flow: 128,
            octets: 32 << 20,
            attempts: 10,
            burst: 4,
            initial_rto: Duration::from_millis(100),
            min_rto: Duration::from_millis(100),
            max_rto: Duration::from_secs(3),
            persist: Duration::from_secs(1),
            persist_burst: 50,
            garbage: Duration::from_secs(10),
            hold: Duration::from_millis(150),
        }
    }
}
