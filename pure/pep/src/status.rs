//! What `strata flows` shows.

use model::{CsaId, Flow};
use std::fmt;
use std::time::Duration;

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStatus {
    /// The line of composite SAs that carries it, by the name of the first; `None` for TCP in the clear.
    pub line: Option<CsaId>,
    /// Addresses and ports in the direction of the data: from the wired sender.
    pub flow: Flow,
    /// What the proxy is doing about it.
    pub state: State,
    /// Packets cached.
    pub packets: usize,
    /// Octets of them.
    pub octets: usize,
    /// Packets sent again from here.
    pub retransmitted: u64,
    /// Acknowledgements suppressed.
    pub suppressed: u64,
    /// Smoothed round-trip time over the wireless hop, its queue included.
    pub srtt: Option<Duration>,
    /// Retransmission timeout now.
    pub rto: Duration,
}

/// What the proxy is doing about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Data is cached, nothing is missing.
    Open,
    /// The oldest cached packet was sent again and is not acknowledged yet.
    Repairing,
    /// Nothing is cached: the acknowledgements take another way.
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
