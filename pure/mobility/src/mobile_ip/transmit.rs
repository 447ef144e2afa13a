//! Messages of agents and mobile nodes, inbound and outbound.

use super::Station;
use std::net::{Ipv4Addr, SocketAddrV4};

/// "The IP TTL field MUST be set to 255" in requests (RFC 3024 section 3.2), which shows that the
/// sender is on the link.
pub(super) const NEIGHBOUR: u8 = 255;
/// TTL of routed messages.
pub(super) const ROUTED: u8 = 64;

/// The addressing of a received UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The interface that it arrived on.
    pub interface: u32,
    /// Source address and port.
    pub source: SocketAddrV4,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Remaining time to live.
    pub ttl: u8,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// An ICMP message to the hosts on a link, with a time to live of one.
    Icmp {
        /// The interface.
        interface: u32,
        /// Destination address.
        destination: Ipv4Addr,
        /// The message.
        octets: Vec<u8>,
    },
    /// A UDP datagram.
    Udp {
        /// The interface of a neighbour, which routes need not cover; `None` if routes decide.
        interface: Option<u32>,
        /// The neighbour's station, if known. Never set for routed messages.
        station: Option<Station>,
        /// Source address and port; the route decides if the address is unspecified.
        source: SocketAddrV4,
        /// Destination address and port.
        destination: SocketAddrV4,
        /// The time to live.
        ttl: u8,
        /// The payload.
        octets: Vec<u8>,
    },
}
