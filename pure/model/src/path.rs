//! Where packets come from and go to.

use std::net::SocketAddr;

/// The pair of UDP sockets an SA uses right now. The local port tells the encapsulation: IKE
/// alone on 500, IKE with a non-ESP marker and ESP on 4500 (RFC 3948 section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's address and port, as seen from here.
    pub remote: SocketAddr,
}

impl Path {
    /// The same path seen from the other end.
    pub const fn reversed(self) -> Self {
        Self {
            local: self.remote,
            remote: self.local,
        }
    }
}

/// One datagram to send, UDP payload only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a datagram that is not sent is lost"]
pub struct Transmit {
    /// From where to where.
    pub path: Path,
    /// The UDP payload.
    pub payload: Vec<u8>,
}
