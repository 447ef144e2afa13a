//! Where packets come from and go to.

use std::net::SocketAddr;

/// What carries IKE messages and ESP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Carrier {
    /// Datagrams of UDP.
    #[default]
    Udp,
    /// A stream of TCP (RFC 9329).
    Tcp,
    /// IP itself, as protocol 50: ESP alone (RFC 4303 section 2).
    Ip,
}

/// When ESP is in UDP (RFC 3948).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encapsulation {
    /// On every path: no network that lets IKE through stops it.
    #[default]
    Always,
    /// Where one of both ends sees a NAT, or wants it always. Elsewhere ESP is protocol 50 of IP.
    ForNat,
}

impl Encapsulation {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Always, Self::ForNat];

    /// How people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::ForNat => "nat",
        }
    }
}

/// The pair of sockets an SA uses right now. Of UDP the local port tells the encapsulation: IKE
/// alone on 500, IKE with a non-ESP marker and ESP on 4500 (RFC 3948 section 2). Of TCP both ends
/// are the name of one connection. Of IP itself both ports are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's address and port, as seen from here.
    pub remote: SocketAddr,
    /// What carries packets between them.
    pub carrier: Carrier,
}

impl Path {
    /// A path in datagrams.
    pub const fn udp(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            carrier: Carrier::Udp,
        }
    }

    /// A path in a stream.
    pub const fn tcp(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            carrier: Carrier::Tcp,
        }
    }

    /// The same path without UDP, for ESP that needs none.
    #[must_use]
    pub const fn without_udp(mut self) -> Self {
        self.local.set_port(0);
        self.remote.set_port(0);
        self.carrier = Carrier::Ip;
        self
    }

    /// Whether each packet is in a datagram of UDP.
    pub const fn has_udp(self) -> bool {
        matches!(self.carrier, Carrier::Udp)
    }

    /// Whether it is a stream.
    pub const fn is_stream(self) -> bool {
        matches!(self.carrier, Carrier::Tcp)
    }

    /// Whether it has no UDP, and carries ESP alone.
    pub const fn is_without_udp(self) -> bool {
        matches!(self.carrier, Carrier::Ip)
    }

    /// The same path seen from the other end.
    pub const fn reversed(self) -> Self {
        Self {
            local: self.remote,
            remote: self.local,
            carrier: self.carrier,
        }
    }
}

/// One datagram or message of a stream to send, payload only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a datagram that is not sent is lost"]
pub struct Transmit {
    /// From where to where.
    pub path: Path,
    /// The payload of UDP, or what a length precedes in a stream.
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

    /// RFC 4303 section 2: ESP is a protocol beside UDP and TCP, and no port selects a socket for it.
    #[test]
    fn a_path_without_udp_keeps_its_addresses_and_has_no_ports() {
        let [local, remote] = ends();
        let bare = Path::udp(local, remote).without_udp();
        assert_eq!((bare.local.ip(), bare.local.port()), (local.ip(), 0));
        assert_eq!((bare.remote.ip(), bare.remote.port()), (remote.ip(), 0));
    }
}
