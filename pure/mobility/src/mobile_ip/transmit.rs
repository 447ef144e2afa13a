//! What agents and mobile nodes say to each other, on its way in and out.

use super::Station;
use std::net::{Ipv4Addr, SocketAddrV4};

/// "The IP TTL field MUST be set to 255" in requests (RFC 3024 section 3.2), which tells who is on the link.
pub(super) const NEIGHBOUR: u8 = 255;
/// That of what is routed.
pub(super) const ROUTED: u8 = 64;

/// How a UDP datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The interface on which it came.
    pub interface: u32,
    /// From where.
    pub source: SocketAddrV4,
    /// To which address.
    pub destination: Ipv4Addr,
    /// What was left of its time to live.
    pub ttl: u8,
}

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// An ICMP message to whoever is on a link, with a time to live of one.
    Icmp {
        /// The interface.
        interface: u32,
        /// To whom.
        destination: Ipv4Addr,
        /// The message.
        octets: Vec<u8>,
    },
    /// A UDP datagram.
    Udp {
        /// The interface of a neighbour, to whom no route need lead; `None` if routes decide.
        interface: Option<u32>,
        /// The neighbour's station, if that is known. It is never known of what is routed.
        station: Option<Station>,
        /// From where.
        source: SocketAddrV4,
        /// To whom.
        destination: SocketAddrV4,
        /// The time to live.
        ttl: u8,
        /// The payload.
        octets: Vec<u8>,
    },
}
