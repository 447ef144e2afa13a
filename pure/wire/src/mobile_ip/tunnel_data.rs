//! The MIP Tunnel Data Message (RFC 3519 section 3.3): a datagram in UDP, on the port of
//! registrations.
//!
//! ```text
//!  Type 4 | Next Header | Reserved (2) | datagram
//! ```

use super::message;
use crate::codec::{Malformed, Reader};
use crate::ip_in_ip;

const WHAT: &str = "a MIP Tunnel Data Message";

/// Header in front of the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelData {
    /// IP protocol number of the content.
    pub next_header: u8,
}

impl TunnelData {
    /// Octets of the header.
    pub const LEN: usize = 4;
    /// Header of a whole IPv4 datagram ("IP-in-UDP tunnelling").
    pub const IP_IN_UDP: Self = Self {
        next_header: ip_in_ip::PROTOCOL,
    };

    /// Reads the header of a whole UDP payload. The datagram starts behind [`Self::LEN`] octets.
    pub fn parse(octets: &[u8]) -> Result<Self, Malformed> {
        let [kind, next_header, _, _] = Reader::new(WHAT, octets).array()?;
        match kind {
            message::TUNNEL_DATA => Ok(Self { next_header }),
            _ => Err(Malformed::Value(WHAT)),
        }
    }

    /// Returns the octets of the header.
    pub const fn octets(self) -> [u8; Self::LEN] {
        [message::TUNNEL_DATA, self.next_header, 0, 0]
    }
}
