//! Keepalives of a tunnel in UDP: "a properly UDP encapsulated ICMP echo request directed to the
//! home agent" (RFC 3519 section 4.9), and its reply (RFC 792).

use super::icmp;
use crate::checksum::{Sum, rewrite};
use crate::ip::{Header, V4_HEADER_LEN};
use std::net::{IpAddr, Ipv4Addr};

/// The IP protocol number of ICMP.
const ICMP: u8 = 1;
const TTL: u8 = 64;
const REQUEST: u8 = 8;
const REPLY: u8 = 0;
const WHAT: &str = "an echo message";
/// Offsets of the addresses in an IPv4 header.
const SOURCE: usize = 12;
const DESTINATION: usize = 16;

/// Fields that distinguish a keepalive from other echo messages of the same host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Identifier of the sender.
    pub identifier: u16,
    /// Sequence number of the request.
    pub sequence: u16,
    /// Unpredictable octets that the reply returns unchanged.
    pub cookie: u64,
}

impl Echo {
    /// Returns a whole datagram with the echo request.
    pub fn request(self, source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
        let mut message = icmp::begin(REQUEST, 0);
        message.extend(self.identifier.to_be_bytes());
        message.extend(self.sequence.to_be_bytes());
        message.extend(self.cookie.to_be_bytes());
        let message = icmp::finish(message);
        let total_len = (V4_HEADER_LEN + message.len()) as u16;
        let mut datagram = vec![0x45, 0];
        datagram.extend(total_len.to_be_bytes());
        datagram.extend([0, 0, 0, 0, TTL, ICMP, 0, 0]);
        datagram.extend(source.octets());
        datagram.extend(destination.octets());
        let sum = Sum::default().with(&datagram).finish();
        datagram[10..12].copy_from_slice(&sum.to_be_bytes());
        datagram.extend(message);
        datagram
    }

    /// Returns the echo that a whole datagram replies to, or `None` if it is not such a reply.
    pub fn answered_by(datagram: &[u8]) -> Option<Self> {
        let (_, mut reader) = icmp::read(WHAT, REPLY, message(datagram)?).ok()?;
        let echo = Self {
            identifier: reader.u16().ok()?,
            sequence: reader.u16().ok()?,
            cookie: reader.u64().ok()?,
        };
        reader.is_empty().then_some(echo)
    }
}

/// Turns an echo request for `here` into its reply, in place. Returns `false`, and changes nothing,
/// for any other datagram.
pub fn answer(datagram: &mut [u8], here: Ipv4Addr) -> bool {
    let asks = || {
        let header = Header::parse(datagram).ok()?;
        let is_here = header.destination() == IpAddr::V4(here) && !header.has_options();
        icmp::read(WHAT, REQUEST, message(datagram)?).ok()?;
        is_here.then_some(())
    };
    if asks().is_none() {
        return false;
    }
    // The order of the words does not affect the checksum.
    let (front, back) = datagram.split_at_mut(DESTINATION);
    front[SOURCE..].swap_with_slice(&mut back[..4]);
    rewrite(datagram, 8, [TTL, ICMP], 10);
    rewrite(
        &mut datagram[V4_HEADER_LEN..],
        0,
        [REPLY, 0],
        icmp::CHECKSUM,
    );
    true
}

/// Returns the ICMP message of an unfragmented datagram.
fn message(datagram: &[u8]) -> Option<&[u8]> {
    let header = Header::parse(datagram).ok()?;
    let is_message = header.version() == 4 && header.protocol() == ICMP && !header.is_fragment();
    is_message.then(|| header.payload())
}
