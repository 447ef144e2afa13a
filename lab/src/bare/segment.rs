//! TCP segments from a server to mobile nodes.

use super::BATCH;
use std::net::Ipv4Addr;
use wire::checksum::{Sum, restore};
use wire::{ip, tcp, udp};

/// Octets of the IP and TCP headers.
pub(crate) const HEADERS: usize = ip::V4_HEADER_LEN + tcp::MIN_HEADER_LEN;

pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);

/// Step that scatters consecutive packets over SAs; a prime number.
const STEP: usize = 7919;

/// Returns the inner address of a mobile node.
pub(super) fn mobile(number: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 64, 0, 2)) + number as u32)
}

/// Returns a batch of consecutive segments of this length with headers, from the `round`th batch
/// on.
pub(crate) fn row(octets: usize, round: u32) -> Vec<Vec<u8>> {
    rows(&[octets], 1, round)
}

/// Returns a batch of segments with these lengths in turn, scattered over `nodes` mobile nodes.
pub(crate) fn rows(octets: &[usize], nodes: usize, round: u32) -> Vec<Vec<u8>> {
    let lengths = octets.iter().cycle();
    let all = lengths.take(BATCH).enumerate().map(|(place, octets)| {
        let number = round.wrapping_mul(BATCH as u32).wrapping_add(place as u32);
        let node = number as usize * STEP % nodes;
        let payload = vec![0x55; octets - HEADERS];
        let first = number.wrapping_mul(payload.len() as u32).wrapping_add(1);
        let ends = [(SERVER, 80), (mobile(node), 40_000)];
        segment(ends, [first, 1], &payload)
    });
    all.collect()
}

/// Returns a batch of UDP datagrams of this length with headers, to the first mobile node.
pub(crate) fn datagrams(octets: usize) -> Vec<Vec<u8>> {
    let udp_len = (octets - ip::V4_HEADER_LEN) as u16;
    let mut datagram = header((SERVER, mobile(0)), udp::PROTOCOL, octets);
    datagram.extend([5000, 5000, udp_len, 0].map(u16::to_be_bytes).concat());
    datagram.resize(octets, 0x55);
    let _ = restore(&mut datagram);
    vec![datagram; BATCH]
}

/// Returns the acknowledgement of the first mobile node for a segment.
pub(crate) fn acknowledgement(data: &[u8]) -> Vec<u8> {
    let number = &data[ip::V4_HEADER_LEN + 4..][..4];
    let number = u32::from_be_bytes([number[0], number[1], number[2], number[3]]);
    let next = number.wrapping_add((data.len() - HEADERS) as u32);
    segment([(mobile(0), 40_000), (SERVER, 80)], [1, next], &[])
}

fn segment(
    [from, to]: [(Ipv4Addr, u16); 2],
    [number, acknowledged]: [u32; 2],
    payload: &[u8],
) -> Vec<u8> {
    let mut octets = header((from.0, to.0), tcp::PROTOCOL, HEADERS + payload.len());
    octets.extend([from.1, to.1].map(u16::to_be_bytes).concat());
    octets.extend([number, acknowledged].map(u32::to_be_bytes).concat());
    octets.extend([0x50, 0x10, 0x72, 0x10, 0, 0, 0, 0]);
    octets.extend(payload);
    let _ = restore(&mut octets);
    octets
}

/// Returns the IPv4 header of a datagram of this total length.
pub(crate) fn header((from, to): (Ipv4Addr, Ipv4Addr), protocol: u8, octets: usize) -> Vec<u8> {
    let mut header = [
        [0x45, 0],
        (octets as u16).to_be_bytes(),
        [0, 0],
        [0x40, 0],
        [64, protocol],
        [0, 0],
    ]
    .concat();
    header.extend(from.octets());
    header.extend(to.octets());
    let sum = Sum::default().with(&header).finish();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}
