//! Fuzzes zone maps: any packet's map is read without a panic and written as the same octets, and
//! the layout has a place for every octet exactly once.

use model::{ZoneId, ZoneSuite};
use wire::esp::{HEADER_LEN, Header};
use wire::zoned::{Layout, MAX_MAP_LEN, MAX_ZONES, Map, Overlay, mark, writes};

/// Runs on an octet that selects the first suite and the number of zones, then a packet from the
/// SPI on.
pub fn run(octets: &[u8]) {
    let Some((first, packet)) = octets.split_first() else {
        return;
    };
    if Header::parse(packet).is_none() {
        return;
    }
    let packet = &without_overlay(packet);
    let (first, more) = (usize::from(*first), MAX_ZONES - 1);
    let (suite, zones) = (first / more, 2 + first % more);
    let suites = ZoneSuite::all().cycle().skip(suite);
    let suites: Vec<_> = suites.take(zones).collect();
    let Ok(map) = Map::parse(&packet[HEADER_LEN..], ZoneId(zones as u8)) else {
        return;
    };
    let mut written = [0; MAX_MAP_LEN];
    map.write(&mut written);
    assert_eq!(
        written[..map.wire_len()],
        packet[HEADER_LEN..][..map.wire_len()]
    );
    without_map(map, &suites, packet.len());
    let Ok(mut layout) = Layout::of_packet(map, &suites, packet.len()) else {
        return;
    };
    check(&layout, packet.len());
    // Padding of every length, and lengths beyond the maximum.
    for _ in 0..20 {
        if layout
            .datagram_len()
            .checked_sub(1)
            .is_some_and(|len| layout.cut(len))
        {
            check(&layout, packet.len());
        }
    }
}

/// Checks that a packet without the same map, fixed in the SA, is shorter by the map and otherwise
/// equal.
fn without_map(map: Map, suites: &[ZoneSuite], packet_len: usize) {
    let payload_zone = ZoneId(suites.len() as u8);
    let Ok(fixed) = Map::fixed(payload_zone, map.described()) else {
        return;
    };
    let carried = Layout::of_packet(map, suites, packet_len);
    let fixed = Layout::of_packet(fixed, suites, packet_len - map.wire_len());
    match (carried, fixed) {
        (Ok(carried), Ok(fixed)) => {
            check(&fixed, packet_len - map.wire_len());
            assert_eq!(carried.datagram_len(), fixed.datagram_len());
        }
        (carried, fixed) => assert_eq!(carried.is_err(), fixed.is_err()),
    }
}

/// Returns the packet without its overlay, after checking that the overlay is written as the same
/// octets.
fn without_overlay(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if let Ok(Some((end, overlay))) = Overlay::read(&packet) {
        let mut written = packet[..end].to_vec();
        overlay.append(&mut written);
        assert_eq!(written, packet);
        let mut free = 0;
        for write in writes(overlay.text()).map_while(Result::ok) {
            assert!(write.offset >= free && !write.octets.is_empty());
            free = write.offset + write.octets.len() + 1;
        }
        packet.truncate(end);
        mark(&mut packet, false);
    }
    packet
}

fn check(layout: &Layout, packet_len: usize) {
    assert_eq!(layout.packet_len(), packet_len);
    let mut covered = vec![0_u8; packet_len];
    let mut cover = |range: std::ops::Range<usize>| covered[range].iter_mut().for_each(|n| *n += 1);
    cover(0..HEADER_LEN + layout.map().wire_len());
    cover(layout.next_header_at()..layout.next_header_at() + 1);
    let mut datagram_len = 0;
    for place in layout.places() {
        assert_eq!(place.datagram.start, datagram_len);
        datagram_len = place.datagram.end;
        cover(place.packet);
    }
    for body in layout.bodies() {
        for part in [body.iv(), body.padding(), body.icv()] {
            cover(part);
        }
    }
    assert_eq!(datagram_len, layout.datagram_len());
    assert!(covered.iter().all(|n| *n == 1));
}
