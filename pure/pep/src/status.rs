//! Status of connections, as `strata flows` shows it.

use crate::Line;
use model::Flow;
use std::fmt;
use std::time::Duration;

/// Status of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStatus {
    /// The line of composite SAs that carries the connection; `None` for TCP in clear.
    pub line: Option<Line>,
    /// Addresses and ports in the direction of the data, from the wired sender.
    pub flow: Flow,
    /// Current state of the repairs.
    pub state: State,
    /// Packets cached.
    pub packets: usize,
    /// Octets cached.
    pub octets: usize,
    /// Packets retransmitted by the proxy.
    pub retransmitted: u64,
    /// Acknowledgements suppressed.
    pub suppressed: u64,
    /// Smoothed round-trip time over the wireless hop, its queue included.
    pub srtt: Option<Duration>,
    /// Current retransmission timeout.
    pub rto: Duration,
}

/// State of a connection in the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Data is cached and no packet is missing.
    Open,
    /// The oldest cached packet was retransmitted and is not acknowledged yet.
    Repairing,
    /// Nothing is cached, because the acknowledgements take another path.
    AcksElsewhere,
    /// The sender has sent its last octet.
    Closing,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Repairing => "repairing",
            Self::AcksElsewhere => "acks-elsewhere",
            Self::Closing => "closing",
        })
    }
}
