//! Maximum packet length per path (RFC 4301 section 8.2).
//!
//! [`Discovery::Probe`], the default of the daemon, searches it: it starts from the MTU of the
//! interface, and probes travel as data does (`search.rs`, RFC 8899). A probe is a dummy packet on
//! one of the path's SAs, and a peer that has our vendor ID answers it with a short one, whatever
//! its own configuration says. Both take sequence numbers like all packets, but neither is data:
//! the loss of one is no loss of a datagram, and no reason to check the peer. In a composite SA, a
//! notice before each probe keeps its loss out of the measurement by which the peer may choose a
//! protection. A path that carries nothing is not probed. Every path has a search of its own, so a
//! tunnel that moves starts again, with the presumption that the new path carries what the old one
//! did.
//!
//! With [`Discovery::Icmp`], packets are sent with DF set. A router that cannot forward a packet
//! reports its MTU, which applies to every SA on the path: datagrams that do not fit are not
//! sealed, and their sources are informed of the limit. A value expires after ten minutes, because
//! the path may have changed (RFC 1191 section 6.3). It does not follow a tunnel that moves.
//!
//! The driver passes all reports in here. One counts only if it quotes a packet of ours: path, SPI
//! and a recent sequence number. The system believes anyone who knows the addresses, so its own
//! value for a path is never asked for. Whoever sees our packets can still forge a report (RFC 4301
//! section 8.2.1). A value that no link can have is therefore ignored, and without probes no
//! accepted value ever causes loss: `esp` allows fragmentation in transit rather than limit
//! datagrams to fewer than 1280 octets.

mod paths;
mod search;
mod searches;

pub(crate) use paths::{ChildSas, PathMtus};
pub use search::Origin;

/// The way in which path MTUs are discovered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discovery {
    /// None: packets may be fragmented.
    #[default]
    Off,
    /// Routers report them.
    Icmp,
    /// Probes find them, and reports of routers choose the probes.
    Probe,
}

/// Counters of probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeCounts {
    /// Probes sent.
    pub sent: u64,
    /// Probes without an echo.
    pub lost: u64,
    /// Probes of peers that were answered.
    pub echoed: u64,
}
