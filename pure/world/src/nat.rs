//! A NAT with fixed mappings.

use std::net::{IpAddr, SocketAddr};

/// A NAT that shows one host by another address, and adds a number to its ports.
///
/// Changing either while packets flow is a NAT that has lost its mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat {
    /// Address by which the host appears.
    pub outside: IpAddr,
    /// Number added to the host's ports.
    pub shift: u16,
}

impl Nat {
    /// Returns this NAT with other mappings.
    #[must_use]
    pub const fn with_shift(self, shift: u16) -> Self {
        Self { shift, ..self }
    }

    /// Returns the socket by which a socket of the host appears.
    #[must_use]
    pub const fn outward(self, socket: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.outside, socket.port() + self.shift)
    }

    /// Returns the socket of the host that a packet to this destination reaches, if it passes.
    #[must_use]
    pub fn inward(self, destination: SocketAddr, host: IpAddr) -> Option<SocketAddr> {
        let port = destination.port().checked_sub(self.shift)?;
        (destination.ip() == self.outside).then(|| SocketAddr::new(host, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_out_finds_back_and_nothing_else_does() {
        let nat = Nat {
            outside: [198, 51, 100, 7].into(),
            shift: 10_000,
        };
        let socket: SocketAddr = "192.168.1.2:4500".parse().unwrap();
        let seen = nat.outward(socket);
        assert_eq!(seen.to_string(), "198.51.100.7:14500");
        assert_eq!(nat.inward(seen, socket.ip()), Some(socket));
        for other in [
            "198.51.100.8:14500",
            "198.51.100.7:4500",
            "192.168.1.2:4500",
        ] {
            assert_eq!(nat.inward(other.parse().unwrap(), socket.ip()), None);
        }
    }
}
