//! What a licensed node tells the proxy about a packet, and what it hears back.

use model::{CsaId, Flow};

/// Where a packet came from, or which way it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Towards the gateway and the servers behind it.
    Wired,
    /// Towards the mobile nodes.
    Wireless,
}

/// Where a sealed packet stands in its SA's sequence space. One space for each composite SA and
/// direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The composite SA whose sequence space it is.
    pub csa: CsaId,
    /// The packet's own ESP sequence number, its upper half too where numbers are extended.
    pub seq: u64,
    /// The highest one the node has seen in this direction, this packet included.
    pub highest: u64,
    /// The endpoint's replay window, in packets.
    pub window: u32,
}

/// A TCP segment on its way through the node.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The line of composite SAs that carries it, by the name of the first one: a rekey does not
    /// change it. `None` for TCP in the clear. Both directions of a connection travel in the
    /// same line, and no other SA can touch the connection's state.
    pub line: Option<CsaId>,
    /// Addresses and ports as this packet carries them.
    pub flow: Flow,
    /// Its TCP header.
    pub header: wire::tcp::Header<'a>,
    /// Whether it has options that this node may not see, which are no-operations in the header.
    pub hides: bool,
    /// Octets of TCP payload.
    pub payload_len: usize,
    /// The whole packet as it is forwarded: what a retransmission repeats, never looked into.
    pub sealed: &'a [u8],
    /// Whether it is new to the node's replay window. A packet that is not changes nothing.
    pub fresh: bool,
    /// Its place in the ESP sequence space; `None` for TCP in the clear.
    pub position: Option<Position>,
}

impl Side {
    /// The other one.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Wired => Self::Wireless,
            Self::Wireless => Self::Wired,
        }
    }
}

/// What becomes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it came.
    Forward,
    /// It goes no further: an acknowledgement without payload that the sender must not see (yet).
    Suppress,
}
