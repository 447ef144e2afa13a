//! The limits and timers of SNOOP.

use std::time::Duration;

/// Limits and timers. The defaults are those of the original where it names one (mobile
/// multi-layered IPsec, table 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Connections with state; the line of SAs with the most gives way.
    pub flows: usize,
    /// Packets cached for one connection. What arrives when the cache is full is forwarded
    /// uncached, and its loss is the sender's to see: the cache holds what waits in the wireless
    /// queue and is not acknowledged yet, so this limit is how congestion reaches the sender.
    pub packets_per_flow: usize,
    /// Octets cached for all connections together; the line of SAs with the most gives way.
    pub octets: usize,
    /// How often one packet is retransmitted before the sender has to.
    pub attempts: u8,
    /// How many packets one acknowledgement may have retransmitted. It says that about one packet
    /// left the queue; the rest waits for the next one.
    pub burst: usize,
    /// Retransmission timeout before the first sample.
    pub initial_rto: Duration,
    /// Lower bound of the retransmission timeout.
    pub min_rto: Duration,
    /// Upper bound of the retransmission timeout, doubling included.
    pub max_rto: Duration,
    /// After this long without a packet from either end everything cached is sent again, once.
    pub persist: Duration,
    /// How many packets that may be.
    pub persist_burst: usize,
    /// After this long without a packet from either end the connection is forgotten.
    pub garbage: Duration,
    /// How long an acknowledgement that would tell the sender of losses under repair may be kept
    /// back. Must stay below the least retransmission timeout of a sender (200 ms on Linux).
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
