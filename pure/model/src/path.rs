//! Paths of packets, and packets to send.

use crate::Instant;
use std::net::SocketAddr;

/// The protocol that carries IKE messages and ESP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Carrier {
    /// UDP datagrams.
    #[default]
    Udp,
    /// A TCP stream (RFC 9329).
    Tcp,
    /// IP itself, as protocol 50: ESP only (RFC 4303 section 2).
    Ip,
}

/// Encapsulation of ESP in UDP (RFC 3948).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encapsulation {
    /// On every path: each network that passes IKE also passes ESP.
    #[default]
    Always,
    /// Only if an end detects a NAT or requests encapsulation. On all other paths, ESP is sent as
    /// IP protocol 50.
    ForNat,
}

impl Encapsulation {
    /// Both choices.
    pub const ALL: [Self; 2] = [Self::Always, Self::ForNat];

    /// Returns the name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::ForNat => "nat",
        }
    }
}

/// Treatment of a packet that is longer than the next link of its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Df {
    /// "Don't fragment" is clear: a router may fragment the packet, and so may this host.
    #[default]
    Clear,
    /// "Don't fragment" is set. The system refuses packets longer than the path MTU that routers
    /// have reported to it.
    Set,
    /// "Don't fragment" is set, and reports that the system has heard do not matter, because it
    /// believes anyone: only the interface limits the packet.
    Whole,
    /// The same for a probe of a path MTU, which is lost rather than fragmented by this host.
    Probe,
}

/// The two endpoints of an SA's packets, and their carrier.
///
/// With UDP, the local port determines the encapsulation: IKE alone on 500, IKE with a non-ESP
/// marker and ESP on 4500 (RFC 3948 section 2). With TCP, both endpoints together name one
/// connection. With plain IP, both ports are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// Local address and port.
    pub local: SocketAddr,
    /// Address and port of the peer, as seen from here.
    pub remote: SocketAddr,
    /// Protocol that carries packets between the endpoints.
    pub carrier: Carrier,
}

impl Path {
    /// Returns a path over UDP.
    pub const fn udp(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            carrier: Carrier::Udp,
        }
    }

    /// Returns a path over TCP.
    pub const fn tcp(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            carrier: Carrier::Tcp,
        }
    }

    /// Returns the same path without UDP, for ESP directly over IP.
    #[must_use]
    pub const fn without_udp(mut self) -> Self {
        self.local.set_port(0);
        self.remote.set_port(0);
        self.carrier = Carrier::Ip;
        self
    }

    /// Returns true if packets travel in UDP datagrams.
    pub const fn has_udp(self) -> bool {
        matches!(self.carrier, Carrier::Udp)
    }

    /// Returns true if packets travel in a TCP stream.
    pub const fn is_stream(self) -> bool {
        matches!(self.carrier, Carrier::Tcp)
    }

    /// Returns true if the path has no UDP and carries only ESP.
    pub const fn is_without_udp(self) -> bool {
        matches!(self.carrier, Carrier::Ip)
    }

    /// Returns the path as seen from the other end.
    pub const fn reversed(self) -> Self {
        Self {
            local: self.remote,
            remote: self.local,
            carrier: self.carrier,
        }
    }
}

/// The path of most of the newest authentic packets of an SA that sends on another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray {
    /// Path of the packets.
    pub path: Path,
    /// Time since which all newer packets came on this path.
    pub since: Instant,
    /// Time since which no newer packet came on the path that the SA sends on.
    pub away: Instant,
}

/// A datagram, or a message of a stream, to send: payload only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a datagram that is not sent is lost"]
pub struct Transmit {
    /// Source and destination.
    pub path: Path,
    /// Payload of the UDP datagram, or the message behind a stream's length field.
    pub payload: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> [SocketAddr; 2] {
        ["192.0.2.1:4500", "198.51.100.7:4500"].map(|end| end.parse().unwrap())
    }

    #[test]
    fn a_path_has_one_carrier_from_both_ends() {
        let [local, remote] = ends();
        let udp = Path::udp(local, remote);
        let carried = |path: Path| [path.has_udp(), path.is_stream(), path.is_without_udp()];
        for (path, expected) in [
            (udp, [true, false, false]),
            (Path::tcp(local, remote), [false, true, false]),
            (udp.without_udp(), [false, false, true]),
        ] {
            assert_eq!(carried(path), expected);
            assert_eq!(carried(path.reversed()), expected);
            assert_eq!(path.reversed().reversed(), path);
        }
    }

    /// RFC 4303 section 2: ESP is an IP protocol like UDP and TCP, and no port selects its socket.
    #[test]
    fn a_path_without_udp_keeps_its_addresses_and_has_no_ports() {
        let [local, remote] = ends();
        let bare = Path::udp(local, remote).without_udp();
        assert_eq!((bare.local.ip(), bare.local.port()), (local.ip(), 0));
        assert_eq!((bare.remote.ip(), bare.remote.port()), (remote.ip(), 0));
    }
}
