//! IP datagrams to send through tunnels, and outer packets.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use wire::checksum;

/// Returns a TCP segment over IPv4 with correct checksums.
pub fn tcp(source: &str, destination: &str, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = (v4(source), v4(destination));
    let mut segment = Vec::new();
    segment.extend(source.port().to_be_bytes());
    segment.extend(destination.port().to_be_bytes());
    segment.extend(seq.to_be_bytes());
    segment.extend(ack.to_be_bytes());
    segment.extend([0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(payload);
    let mut datagram = ipv4(
        *source.ip(),
        *destination.ip(),
        wire::tcp::PROTOCOL,
        &segment,
    );
    assert!(checksum::restore(&mut datagram));
    datagram
}

/// Returns the IKE message that a host sends. On port 4500 it follows a marker (RFC 3948 section
/// 2.2).
pub fn ike(transmit: &model::Transmit) -> &[u8] {
    let marker = if transmit.path.local.port() == 500 {
        0
    } else {
        4
    };
    &transmit.payload[marker..]
}

/// Returns the outer packet of a UDP datagram, as routers see it.
pub fn udp(source: SocketAddr, destination: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let (SocketAddr::V4(source), SocketAddr::V4(destination)) = (source, destination) else {
        panic!("the outer network here is IPv4")
    };
    let mut datagram = Vec::new();
    datagram.extend(source.port().to_be_bytes());
    datagram.extend(destination.port().to_be_bytes());
    datagram.extend(u16::try_from(payload.len() + 8).unwrap().to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    ipv4(
        *source.ip(),
        *destination.ip(),
        wire::udp::PROTOCOL,
        &datagram,
    )
}

/// Returns the payload of a packet from [`udp`].
pub fn udp_payload(packet: &[u8]) -> &[u8] {
    &packet[28..]
}

fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(u16::try_from(payload.len() + 20).unwrap().to_be_bytes());
    packet.extend([0, 0, 0, 0, 63, protocol, 0, 0]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    let words = packet
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    packet.extend(payload);
    packet
}

fn v4(text: &str) -> SocketAddrV4 {
    text.parse().unwrap()
}
