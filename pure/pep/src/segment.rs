//! Input and output types of the proxy: a packet as the licensed node sees it, and the verdict.

use model::{CsaId, Flow};

/// The side of the node that a packet came from or leaves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Towards the gateway and the servers behind it.
    Wired,
    /// Towards the mobile nodes.
    Wireless,
}

/// The place of a sealed packet in its SA's sequence space. Each composite SA has one space for
/// each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The composite SA that the sequence space belongs to.
    pub csa: CsaId,
    /// The packet's own ESP sequence number, with its upper half if extended numbers are used.
    pub seq: u64,
    /// The highest sequence number the node has seen in this direction, this packet included.
    pub highest: u64,
    /// The endpoint's replay window, in packets.
    pub window: u32,
}

/// The gateway that granted the keys of a line, by a number that the node chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(pub u64);

/// A line: a composite SA with its successors by rekey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Its owner. Owners share memory before lines do, because a gateway chooses how many lines it
    /// has.
    pub owner: Owner,
    /// The first SA of the line, which names it.
    pub csa: CsaId,
}

/// A TCP segment on its way through the node.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The line of composite SAs that carries the packet; `None` for TCP in clear. Both directions
    /// of a connection travel in the same line, and no other SA can affect the connection's state.
    pub line: Option<Line>,
    /// Addresses and ports as in this packet.
    pub flow: Flow,
    /// The TCP header.
    pub header: wire::tcp::Header<'a>,
    /// True if the packet has options hidden from this node; in `header` they are no-operations.
    pub hides: bool,
    /// Octets of TCP payload.
    pub payload_len: usize,
    /// The whole packet as it is forwarded. A retransmission repeats it unread.
    pub sealed: &'a [u8],
    /// True if the packet is new to the node's replay window. A packet that is not new changes no
    /// state.
    pub fresh: bool,
    /// The packet's place in the ESP sequence space; `None` for TCP in clear.
    pub position: Option<Position>,
}

impl Side {
    /// Returns the opposite side.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Wired => Self::Wireless,
            Self::Wireless => Self::Wired,
        }
    }
}

/// The verdict on a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward the packet unchanged.
    Forward,
    /// Drop the packet: an acknowledgement without payload that the sender must not see (yet).
    Suppress,
}
