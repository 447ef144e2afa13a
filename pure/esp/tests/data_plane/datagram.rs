//! Datagrams from Alice's network to Bob's.

use wire::checksum::{Sum, restore};

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMP: u8 = 1;

/// An IPv4 datagram with correct checksums.
pub fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    v4_with(&[], 0x4000, protocol, payload)
}

/// An IPv4 datagram with IP options and a fragment field.
pub fn v4_with(options: &[u8], fragment: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header_len = 20 + options.len();
    let mut packet = vec![0x40 | (header_len / 4) as u8, 0];
    packet.extend(((header_len + payload.len()) as u16).to_be_bytes());
    packet.extend([0xab, 0xcd]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 1, 0, 1, 10, 8, 0, 1]);
    packet.extend(options);
    let sum = Sum::default().with(&packet).finish();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(payload);
    let _ = restore(&mut packet);
    packet
}

/// An IPv6 datagram with a correct checksum.
pub fn v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    for network in [1, 8] {
        packet.extend([0xfd, 0, 0, network, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
    packet.extend(payload);
    let _ = restore(&mut packet);
    packet
}

/// A TCP segment without checksum. `options` are whole words.
pub fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0x1f, 0x90, 0xc0, 0x01, 1, 2, 3, 4, 5, 6, 7, 8];
    segment.extend([
        (5 + options.len() as u8 / 4) << 4,
        0x18,
        0x72,
        0x10,
        0,
        0,
        0,
        0,
    ]);
    segment.extend(options);
    segment.extend(payload);
    segment
}

/// A UDP packet without checksum.
pub fn udp(payload: &[u8]) -> Vec<u8> {
    udp_between([5000, 53], payload)
}

/// A UDP packet between two ports, without checksum.
pub fn udp_between(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut packet = ports.map(u16::to_be_bytes).concat();
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

/// A typical packet of a download.
pub fn segment() -> Vec<u8> {
    let timestamps = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    v4(
        TCP,
        &tcp(&timestamps, b"payload that nobody on the path may read"),
    )
}

/// A TCP segment with its ends exchanged, which leaves both checksums as they are.
pub fn reversed(segment: &[u8]) -> Vec<u8> {
    let mut segment = segment.to_vec();
    let (source, destination) = segment[12..20].split_at_mut(4);
    source.swap_with_slice(destination);
    let (source, destination) = segment[20..24].split_at_mut(2);
    source.swap_with_slice(destination);
    segment
}

/// A segment with a secret option between two public ones.
pub fn segment_with_secret() -> Vec<u8> {
    let options = [
        1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, // timestamps
        34, 6, 0xc0, 0x0c, 0x1e, 0x42, // TFO cookie
        3, 3, 7, 2, 4, 5, 0xb4, 1, 1, 1, // window scale, MSS
    ];
    v4(TCP, &tcp(&options[..28], b"GET"))
}
