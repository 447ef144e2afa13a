//! The test of a home address: a foreign agent sends it to the home address by ordinary routes, and
//! the home agent that intercepts it there returns it through its tunnel. The message is
//! experimental (RFC 4064), because there is no standard.
//!
//! ```text
//!  Type 255 | Sub-Type 3 | 0 (2) | Home Address (4) | Cookie (16)
//! ```

use super::{PORT, message};
use crate::codec::Reader;
use crate::ip::Header;
use crate::udp;
use std::net::{IpAddr, Ipv4Addr};

const WHAT: &str = "the test of a home address";
const SUB_TYPE: u8 = 3;

/// A test of the route to a home address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeTest {
    /// The home address, which is also the destination.
    pub home: Ipv4Addr,
    /// Unpredictable octets.
    pub cookie: [u8; 16],
}

impl HomeTest {
    /// Returns the UDP payload.
    pub fn encode(self) -> Vec<u8> {
        let mut out = vec![message::EXPERIMENT, SUB_TYPE, 0, 0];
        out.extend(self.home.octets());
        out.extend(self.cookie);
        out
    }

    /// Returns the test in a whole datagram to port 434 of its home address, or `None` if the
    /// datagram is not such a test. A NAT may have changed the source.
    pub fn within(datagram: &[u8]) -> Option<Self> {
        let header = Header::parse(datagram).ok()?;
        let IpAddr::V4(home) = header.destination() else {
            return None;
        };
        if header.protocol() != udp::PROTOCOL || header.is_fragment() {
            return None;
        }
        let segment = header.payload();
        let udp = udp::Header::parse(segment)?;
        if udp.destination_port != PORT || usize::from(udp.len) != segment.len() {
            return None;
        }
        let test = Self::parse(&segment[udp::HEADER_LEN..])?;
        (test.home == home).then_some(test)
    }

    fn parse(octets: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(WHAT, octets);
        if reader.array().ok()? != [message::EXPERIMENT, SUB_TYPE, 0, 0] {
            return None;
        }
        let test = Self {
            home: reader.array::<4>().ok()?.into(),
            cookie: reader.array().ok()?,
        };
        reader.is_empty().then_some(test)
    }
}
