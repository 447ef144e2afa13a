//! Packets that a node on the path extends or replaces: an ESP packet keeps its outer headers, and
//! their lengths and checksums are updated.

use crate::checksum;
use crate::{ip, udp};

/// Appends octets to a whole IP packet, and to the UDP datagram in it if there is one. Returns
/// `false`, and changes nothing, if the packet is malformed, truncated, a fragment, longer than its
/// headers state, or would become too long.
#[must_use]
pub fn append(packet: &mut Vec<u8>, more: &[u8]) -> bool {
    let Ok(header) = ip::Header::parse(packet) else {
        return false;
    };
    let (version, start) = (header.version(), header.header_len());
    let udp = (header.protocol() == udp::PROTOCOL).then(|| udp::Header::parse(header.payload()));
    let told = udp.flatten().map(|udp| usize::from(udp.len));
    let longer = u16::try_from(packet.len() + more.len());
    let (true, true, false, Ok(longer)) = (
        header.total_len() == packet.len(),
        udp.is_none() || told == Some(packet.len() - start),
        header.is_fragment(),
        longer,
    ) else {
        return false;
    };
    packet.extend_from_slice(more);
    fit(packet, version, longer);
    if let Some(Some(udp)) = udp {
        fit_udp(packet, start, udp);
    }
    true
}

/// Returns a packet with the outer headers of another packet (IP, and UDP if present) and this
/// payload. `None` if the headers are malformed, those of a fragment, or if the packet would be too
/// long.
pub fn behind(front: &[u8], payload: &[u8]) -> Option<Vec<u8>> {
    let header = ip::Header::parse_front(front).ok()?;
    let (version, start) = (header.version(), header.header_len());
    let udp = (header.protocol() == udp::PROTOCOL).then(|| udp::Header::parse(&front[start..]));
    let outside = start + udp.map_or(0, |_| udp::HEADER_LEN);
    if header.is_fragment() || front.len() != outside {
        return None;
    }
    let len = u16::try_from(front.len() + payload.len()).ok()?;
    let mut packet = [front, payload].concat();
    fit(&mut packet, version, len);
    if let Some(udp) = udp {
        fit_udp(&mut packet, start, udp?);
    }
    Some(packet)
}

/// Writes the length of a packet into its IP header.
fn fit(packet: &mut [u8], version: u8, len: u16) {
    match version {
        4 => checksum::rewrite(packet, 2, len.to_be_bytes(), 10),
        _ => {
            let payload = len - ip::V6_HEADER_LEN as u16;
            packet[4..6].copy_from_slice(&payload.to_be_bytes());
        }
    }
}

/// Writes the length into the UDP header at `start`, and updates its checksum if it has one.
fn fit_udp(packet: &mut [u8], start: usize, udp: udp::Header) {
    let len = (packet.len() - start) as u16;
    packet[start + 4..start + 6].copy_from_slice(&len.to_be_bytes());
    if udp.checksum != 0 {
        restore(packet, start + udp::CHECKSUM_OFFSET);
    }
}

/// Computes the UDP checksum.
fn restore(packet: &mut [u8], at: usize) {
    let header = ip::Header::parse(packet).ok();
    if let Some(sum) = header.and_then(|header| checksum::of_transport(&header)) {
        packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::Sum;

    fn v4(payload: &[u8]) -> Vec<u8> {
        let len = 28 + payload.len() as u8;
        let mut packet = vec![
            0x45, 0, 0, len, 0, 1, 0x40, 0, 63, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        let sum = Sum::default().with(&packet).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend([0x11, 0x94, 0x11, 0x94, 0, len - 20, 0, 0]);
        packet.extend(payload);
        packet
    }

    fn v6(payload: &[u8]) -> Vec<u8> {
        let len = 8 + payload.len() as u8;
        let mut packet = vec![0x60, 0, 0, 0, 0, len, 17, 64];
        packet.extend([[0xfd; 16], [0xfc; 16]].concat());
        packet.extend([0x11, 0x94, 0x11, 0x94, 0, len, 0, 0]);
        packet.extend(payload);
        restore(&mut packet, 46);
        packet
    }

    #[test]
    fn behind_the_headers_of_another_packet_it_is_as_if_it_had_been_made_so() {
        for (make, front) in [(v4 as fn(&[u8]) -> Vec<u8>, 28), (v6, 48)] {
            let other = make(b"something else, and longer");
            assert_eq!(behind(&other[..front], b"this"), Some(make(b"this")));
            assert_eq!(behind(&other[..front - 1], b"this"), None);
            assert_eq!(behind(&other, b"this"), None, "that is not a header");
            assert_eq!(behind(&other[..front], &[0; 65_530]), None);
        }
        let mut esp = v4(b"")[..20].to_vec();
        esp[9] = crate::esp::PROTOCOL;
        let packet = behind(&esp, b"sealed").unwrap();
        assert_eq!((packet.len(), packet[3]), (26, 26));
        let mut fragment = esp;
        fragment[6] = 0x20;
        assert_eq!(behind(&fragment, b"sealed"), None);
        assert_eq!(behind(&[], b""), None);
    }

    #[test]
    fn a_longer_packet_is_as_if_it_had_been_made_so() {
        for make in [v4, v6] {
            let mut packet = make(&[1, 2, 3]);
            assert!(append(&mut packet, &[4, 5, 6, 7]));
            assert_eq!(packet, make(&[1, 2, 3, 4, 5, 6, 7]));
        }
    }

    #[test]
    fn a_udp_checksum_over_ipv4_follows_if_there_is_one() {
        let (mut short, mut long) = (v4(&[1, 2, 3]), v4(&[1, 2, 3, 4]));
        restore(&mut short, 26);
        restore(&mut long, 26);
        assert!(append(&mut short, &[4]) && short[26..28] != [0, 0]);
        assert_eq!(short, long);
    }

    #[test]
    fn what_is_cut_short_a_fragment_or_too_long_stays_as_it_is() {
        let cut = v4(&[1, 2, 3])[..30].to_vec();
        let mut padded = v4(&[1, 2, 3]);
        padded.push(0);
        let mut lying = v4(&[1, 2, 3]);
        lying[25] += 1;
        let mut fragment = v4(&[1, 2, 3]);
        fragment[6] = 0x20;
        for packet in [cut, padded, lying, fragment, vec![], vec![0x45]] {
            let mut longer = packet.clone();
            assert!(!append(&mut longer, &[4]));
            assert_eq!(longer, packet);
        }
        let mut packet = v4(&[1, 2, 3]);
        assert!(!append(&mut packet, &[0; 0xffff]));
    }
}
