//! IPv4 datagrams for wires: built here, parsed by `wire`.
//!
//! They have no options, are never fragmented, and carry right checksums, like those of a kernel.
//! Only UDP has no checksum, as for ESP in UDP (RFC 3948 section 2.1).

use std::net::{Ipv4Addr, SocketAddrV4};
use wire::checksum::{self, Sum};
use wire::{ip, tcp, udp};

/// Offsets of the time to live and the header checksum (RFC 791 section 3.1).
const TTL_AT: usize = 8;
const CHECKSUM_AT: usize = 10;

/// Initial time to live of Linux.
const TTL: u8 = 64;

/// Returns a datagram from one address to another.
fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[&[u8]]) -> Vec<u8> {
    let len = ip::V4_HEADER_LEN + payload.iter().map(|part| part.len()).sum::<usize>();
    let total = u16::try_from(len).expect("nobody here sends more than 64 KiB at once");
    let mut datagram = Vec::with_capacity(len);
    datagram.extend([0x45, 0]);
    datagram.extend(total.to_be_bytes());
    const DO_NOT_FRAGMENT: u8 = 0x40;
    datagram.extend([0, 0, DO_NOT_FRAGMENT, 0, TTL, protocol, 0, 0]);
    datagram.extend(source.octets());
    datagram.extend(destination.octets());
    let sum = Sum::default().with(&datagram).finish();
    datagram[CHECKSUM_AT..][..2].copy_from_slice(&sum.to_be_bytes());
    payload.iter().for_each(|part| datagram.extend(*part));
    datagram
}

/// Returns a UDP datagram.
pub(crate) fn udp(source: SocketAddrV4, destination: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(udp::HEADER_LEN + payload.len()).expect("it fits a datagram");
    let mut header = [0; udp::HEADER_LEN];
    header[..2].copy_from_slice(&source.port().to_be_bytes());
    header[2..4].copy_from_slice(&destination.port().to_be_bytes());
    header[4..6].copy_from_slice(&len.to_be_bytes());
    let (from, to) = (*source.ip(), *destination.ip());
    ipv4(from, to, udp::PROTOCOL, &[&header, payload])
}

/// Returns a TCP segment. The header includes its options, and its checksum is filled in here.
pub(crate) fn tcp(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    header: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let mut datagram = ipv4(source, destination, tcp::PROTOCOL, &[header, payload]);
    let restored = checksum::restore(&mut datagram);
    debug_assert!(restored, "a TCP header has a checksum");
    datagram
}

/// Forwards a datagram as a router does: decrements its time to live. Returns `false` if it
/// expired.
#[must_use]
pub(crate) fn pass_router(datagram: &mut [u8]) -> bool {
    let word = |at: usize, datagram: &[u8]| u16::from_be_bytes([datagram[at], datagram[at + 1]]);
    let old = word(TTL_AT, datagram);
    datagram[TTL_AT] = datagram[TTL_AT].saturating_sub(1);
    let new = word(TTL_AT, datagram);
    let sum = checksum::updated(word(CHECKSUM_AT, datagram), old, new);
    datagram[CHECKSUM_AT..][..2].copy_from_slice(&sum.to_be_bytes());
    datagram[TTL_AT] > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_reads_back_with_right_checksums_also_behind_routers() {
        let from = "192.0.2.1:4500".parse().unwrap();
        let to = "192.0.2.9:500".parse().unwrap();
        let mut datagram = udp(from, to, b"payload");
        for hops_left in (0..TTL).rev() {
            assert_eq!(pass_router(&mut datagram), hops_left > 0);
            let header = ip::Header::parse(&datagram).unwrap();
            assert!(header.checksum_is_right());
            assert_eq!(header.ttl(), hops_left);
        }
        let header = ip::Header::parse(&datagram).unwrap();
        assert_eq!(
            (header.flow().source_port, header.flow().destination_port),
            (4500, 500)
        );
        assert_eq!(&header.payload()[udp::HEADER_LEN..], b"payload");
    }
}
