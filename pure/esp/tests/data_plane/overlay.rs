//! A writer may lower the window and nothing else. Packets written without the right, or beyond it,
//! are dropped.

use crate::bench::*;
use crate::datagram::{TCP, UDP, segment, tcp, udp, v4, v6};
use crate::licensed::grant;
use esp::{DropReason, Licensed, NotOpened, NotWritten, PathMtu, Scratch, Worker, grant_key};
use model::{ChildSaId, ZoneSuite};
use std::collections::BTreeSet;
use wire::zoned::{ONE_FIELD_LEN, Overlay, mark};

/// The offset of the window in `segment()`, whose value is 0x7210.
const WINDOW: u8 = 34;
/// The first overlay under the grant of `writer`.
const FIRST: u64 = 1 << 48 | 1;

fn ends(kind: &Kind) -> (Worker, Worker) {
    let (alice, bob) = (alices_sa(kind), bobs_sa(kind));
    (endpoint(with_writers(alice)), endpoint(with_writers(bob)))
}

/// A node with a grant of this number to write.
fn writer(kind: &Kind, number: u16) -> Licensed {
    let mut node = Licensed::new();
    node.install(granted(kind, number)).unwrap();
    node
}

fn granted(kind: &Kind, number: u16) -> model::Grant<crypto::Secret> {
    let mut grant = grant(kind, &[1]);
    grant.grant = number;
    for half in [&mut grant.from_gateway, &mut grant.to_gateway] {
        half.overlay = Some(grant_key(&root(half.spi.0), number));
    }
    grant
}

fn write(node: &mut Licensed, packet: &[u8], window: u16) -> Result<(Vec<u8>, u64), NotWritten> {
    let mut scratch = Scratch::new();
    let view = node.open(packet, &mut scratch).unwrap();
    let overlay = node.lower_window(&view, packet, window)?;
    let mut written = packet.to_vec();
    mark(&mut written, true);
    overlay.append(&mut written);
    Ok((written, overlay.number()))
}

/// A segment with another window, and the matching checksum.
fn with_window(datagram: &[u8], window: u16) -> Vec<u8> {
    let mut datagram = datagram.to_vec();
    let at = if datagram[0] >> 4 == 4 { 20 } else { 40 };
    datagram[at + 14..at + 16].copy_from_slice(&window.to_be_bytes());
    datagram[at + 16..at + 18].fill(0);
    assert!(wire::checksum::restore(&mut datagram));
    datagram
}

#[test]
fn a_writer_lowers_the_window_and_the_checksum_follows() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let packet = seal(&mut alice, &segment()).unwrap();
    let (written, _) = write(&mut writer(&kind, 1), &packet, 16).unwrap();
    assert_eq!(written.len(), packet.len() + ONE_FIELD_LEN);
    assert_eq!(open(&mut bob, &written), Ok(with_window(&segment(), 16)));
    assert_eq!(bob.counters().written, 1);
    // A packet without an overlay is unaffected.
    let packet = seal(&mut alice, &segment()).unwrap();
    assert_eq!(open(&mut bob, &packet), Ok(segment()));
    assert_eq!(bob.counters().written, 1);
}

#[test]
fn the_same_window_is_no_higher_and_zero_is_lower() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let mut node = writer(&kind, 1);
    for window in [0, 0x7210] {
        let packet = seal(&mut alice, &segment()).unwrap();
        let (written, _) = write(&mut node, &packet, window).unwrap();
        assert_eq!(
            open(&mut bob, &written),
            Ok(with_window(&segment(), window))
        );
    }
}

#[test]
fn whatever_the_suites_and_the_version_an_overlay_is_done() {
    for suite in ZoneSuite::all() {
        let kind = zones_of(suite);
        let (mut alice, mut bob) = ends(&kind);
        for datagram in [segment(), v6(TCP, &tcp(&[], b"GET"))] {
            let packet = seal(&mut alice, &datagram).unwrap();
            let (written, _) = write(&mut writer(&kind, 9), &packet, 300).unwrap();
            assert_eq!(
                open(&mut bob, &written),
                Ok(with_window(&datagram, 300)),
                "{suite}"
            );
        }
    }
}

/// Each direction and each grant has a different key.
// Weakness: S17
#[test]
fn an_overlay_of_the_other_direction_or_of_another_grant_is_dropped() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let packet = seal(&mut alice, &segment()).unwrap();
    let text = [WINDOW, 2, 0, 1];
    let mut other_grant = overlaid(&packet, &root(TO_BOB), FIRST, &text);
    other_grant[packet.len() + 1] += 1;
    for written in [
        overlaid(&packet, &root(TO_ALICE), FIRST, &text),
        other_grant,
    ] {
        assert_eq!(open(&mut bob, &written), Err(DropReason::BadIcvOverlay));
    }
    // None of these packets has moved the window or changed the known grants.
    let written = overlaid(&packet, &root(TO_BOB), FIRST, &text);
    assert_eq!(open(&mut bob, &written), Ok(with_window(&segment(), 1)));
}

// Weakness: S17
// Answers: write-without
#[test]
fn a_reader_that_writes_is_dropped() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let packet = seal(&mut alice, &segment()).unwrap();
    let mut reader = Licensed::new();
    reader.install(grant(&kind, &[1])).unwrap();
    assert_eq!(
        write(&mut reader, &packet, 1).err(),
        Some(NotWritten::NotGranted)
    );
    // The node tries the key that it has.
    let guess = key(TO_BOB, 1, ZoneSuite::Aes128Gcm16);
    let written = overlaid(&packet, &guess, FIRST, &[WINDOW, 2, 0, 1]);
    assert_eq!(open(&mut bob, &written), Err(DropReason::BadIcvOverlay));
}

// Weakness: S17
#[test]
fn where_nobody_may_write_an_overlay_is_dropped() {
    let (mut alice, mut bob) = pair(&two_zones());
    let packet = seal(&mut alice, &segment()).unwrap();
    let written = overlaid(&packet, &root(TO_BOB), FIRST, &[WINDOW, 2, 0, 1]);
    assert_eq!(
        open(&mut bob, &written),
        Err(DropReason::OverlayNotAccepted)
    );
}

// Refuses: write-right
// Weakness: S18
// Answers: write-what
#[test]
fn a_writer_outside_its_mask_is_dropped() {
    let outside = DropReason::OverlayOutsideMask;
    let texts: [(&[u8], DropReason); 9] = [
        (&[WINDOW, 2, 0xff, 0xff], DropReason::OverlayRaised),
        (&[WINDOW, 2, 0x72, 0x11], DropReason::OverlayRaised),
        (&[28, 4, 0, 0, 0, 1], outside),     // the acknowledgement
        (&[33, 3, 0x14, 0, 1], outside),     // flags and window
        (&[WINDOW, 1, 0], outside),          // half of it
        (&[WINDOW, 4, 0, 1, 0, 0], outside), // and the checksum
        (&[0, 1, 0x45, WINDOW, 2, 0, 1], outside), // something else as well
        (&[WINDOW, 2, 0, 1, 52, 1, 41], outside), // the next header
        (&[255, 3, 0, 0, 0], outside),       // beyond the zone
    ];
    for (text, why) in texts {
        let (mut alice, mut bob) = ends(&two_zones());
        let packet = seal(&mut alice, &segment()).unwrap();
        let written = overlaid(&packet, &root(TO_BOB), FIRST, text);
        assert_eq!(open(&mut bob, &written), Err(why), "{text:?}");
        assert_eq!(bob.counters().written, 0);
    }
}

// Weakness: S18
#[test]
fn a_text_that_is_none_is_dropped() {
    for text in [
        &[WINDOW, 2, 0][..],
        &[WINDOW, 0, 0],
        &[WINDOW, 2, 0, 1, WINDOW, 2, 0, 0],
        &[WINDOW, 2, 0, 1, 7],
    ] {
        let (mut alice, mut bob) = ends(&two_zones());
        let packet = seal(&mut alice, &segment()).unwrap();
        let written = overlaid(&packet, &root(TO_BOB), FIRST, text);
        assert_eq!(
            open(&mut bob, &written),
            Err(DropReason::OverlayMalformed),
            "{text:?}"
        );
    }
}

// Answers: write-what
#[test]
fn what_has_no_window_cannot_be_written() {
    let (mut alice, mut bob) = ends(&two_zones());
    let mut node = writer(&two_zones(), 1);
    let packet = seal(&mut alice, &v4(UDP, &udp(&[0; 40]))).unwrap();
    assert_eq!(
        write(&mut node, &packet, 1).err(),
        Some(NotWritten::NoWindow)
    );
    let written = overlaid(&packet, &root(TO_BOB), FIRST, &[WINDOW, 2, 0, 0]);
    assert_eq!(
        open(&mut bob, &written),
        Err(DropReason::OverlayOutsideMask)
    );
    // Only the payload zone, which no writer has.
    let packet = seal(&mut alice, &v4(1, &[8, 0, 0, 0, 0, 0, 0, 0])).unwrap();
    let written = overlaid(&packet, &root(TO_BOB), FIRST, &[WINDOW, 2, 0, 0]);
    assert_eq!(
        open(&mut bob, &written),
        Err(DropReason::OverlayOutsideMask)
    );
}

#[test]
fn a_window_in_another_zone_than_the_first_cannot_be_written() {
    let (mut alice, _) = ends(&three_zones());
    let mut grant = granted(&three_zones(), 1);
    let both = crate::licensed::grant(&three_zones(), &[1, 2]);
    grant.from_gateway.zones = both.from_gateway.zones;
    grant.to_gateway.zones = both.to_gateway.zones;
    let mut node = Licensed::new();
    node.install(grant).unwrap();
    let packet = seal(&mut alice, &segment()).unwrap();
    assert_eq!(
        write(&mut node, &packet, 1).err(),
        Some(NotWritten::NoWindow)
    );
}

// Weakness: S17
#[test]
fn a_stripped_overlay_leaves_what_was_sealed() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let packet = seal(&mut alice, &segment()).unwrap();
    let (written, _) = write(&mut writer(&kind, 1), &packet, 16).unwrap();
    // The bit alone or the overlay alone is not accepted.
    let mut unmarked = written.clone();
    mark(&mut unmarked, false);
    assert_eq!(open(&mut bob, &unmarked), Err(DropReason::BadIcvDesignated));
    let mut bare = packet.clone();
    mark(&mut bare, true);
    assert_eq!(open(&mut bob, &bare), Err(DropReason::OverlayMalformed));
    assert_eq!(open(&mut bob, &packet), Ok(segment()));
    assert_eq!(open(&mut bob, &written), Err(DropReason::Replayed));
}

// Weakness: S17
#[test]
fn a_moved_overlay_is_dropped() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let mut node = writer(&kind, 1);
    let packets = [(); 2].map(|()| seal(&mut alice, &segment()).unwrap());
    let (written, _) = write(&mut node, &packets[0], 16).unwrap();
    let overlay = &written[packets[0].len()..];
    let mut moved = packets[1].clone();
    mark(&mut moved, true);
    moved.extend(overlay);
    assert_eq!(open(&mut bob, &moved), Err(DropReason::BadIcvOverlay));
    // A second overlay is not accepted.
    let twice = [&written[..], overlay].concat();
    assert_eq!(open(&mut bob, &twice), Err(DropReason::BadIcvDesignated));
    assert_eq!(open(&mut bob, &written), Ok(with_window(&segment(), 16)));
    assert_eq!(open(&mut bob, &written), Err(DropReason::Replayed));
    assert_eq!(open(&mut bob, &packets[0]), Err(DropReason::Replayed));
}

#[test]
fn every_single_bit_flip_of_a_written_packet_is_dropped() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let packet = seal(&mut alice, &segment()).unwrap();
    let (written, _) = write(&mut writer(&kind, 1), &packet, 16).unwrap();
    for bit in 0..written.len() * 8 {
        let mut flipped = written.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&mut bob, &flipped).is_err(), "bit {bit}");
    }
    for len in 0..written.len() {
        assert!(open(&mut bob, &written[..len]).is_err(), "{len} octets");
    }
    assert_eq!(open(&mut bob, &written), Ok(with_window(&segment(), 16)));
}

#[test]
fn who_comes_behind_a_writer_reads_what_was_sealed_and_writes_nothing() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let packet = seal(&mut alice, &segment()).unwrap();
    let (written, _) = write(&mut writer(&kind, 1), &packet, 16).unwrap();
    let (mut second, mut scratch) = (writer(&kind, 2), Scratch::new());
    let view = second.open(&written, &mut scratch).unwrap();
    assert!(view.written() && view.fresh());
    assert_eq!(view.headers().unwrap().transport[14..16], [0x72, 0x10]);
    assert_eq!(view.payload_len(), 40);
    let again = second.lower_window(&view, &written, 1);
    assert_eq!(again, Err(NotWritten::Another));
    let mut cut = written.clone();
    cut.pop();
    assert!(matches!(
        second.open(&cut, &mut scratch).err(),
        Some(NotOpened::BadOverlay(_))
    ));
    assert_eq!(open(&mut bob, &written), Ok(with_window(&segment(), 16)));
}

/// Its licence is revoked: until the rekey its overlays are verified but not applied. No packet is
/// lost.
#[test]
fn after_a_revocation_what_is_written_does_not_count() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let mut node = writer(&kind, 1);
    let packet = seal(&mut alice, &segment()).unwrap();
    let (written, _) = write(&mut node, &packet, 16).unwrap();
    bob.make_opaque(ChildSaId(1));
    assert_eq!(open(&mut bob, &written), Ok(segment()));
    assert_eq!(bob.counters().written, 0);
    // An invalid overlay still causes a drop.
    let packet = seal(&mut alice, &segment()).unwrap();
    let forged = overlaid(&packet, &root(TO_ALICE), FIRST, &[WINDOW, 2, 0, 1]);
    assert_eq!(open(&mut bob, &forged), Err(DropReason::BadIcvOverlay));
}

/// Invariant 1: neither repeated nor new grants seal twice with one key and number.
// Weakness: S19
#[test]
fn no_number_seals_twice_over_grants_that_come_again_or_anew() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let mut node = Licensed::new();
    let mut seen = BTreeSet::new();
    for grant in [1, 1, 3, 3, 5] {
        node.install(granted(&kind, grant)).unwrap();
        for _ in 0..3 {
            let packet = seal(&mut alice, &segment()).unwrap();
            let (written, number) = write(&mut node, &packet, 16).unwrap();
            assert_eq!(number >> 48, u64::from(grant));
            assert!(seen.insert(number), "{number:x} came twice");
            assert_eq!(open(&mut bob, &written), Ok(with_window(&segment(), 16)));
        }
    }
    assert_eq!(seen.len(), 15);
}

/// A retransmission has the same overlay or none: SNOOP retransmits the packet as written.
#[test]
fn a_packet_is_written_anew_under_another_number() {
    let kind = two_zones();
    let (mut alice, _) = ends(&kind);
    let mut node = writer(&kind, 1);
    let packet = seal(&mut alice, &segment()).unwrap();
    let numbers = [16, 16, 17].map(|window| write(&mut node, &packet, window).unwrap().1);
    assert_eq!(numbers, [FIRST, FIRST + 1, FIRST + 2]);
}

#[test]
fn what_a_writer_appends_has_room_in_the_path_and_in_segments() {
    let kind = two_zones();
    let (plain, written) = (pair(&kind).0, ends(&kind).0);
    let longest = |mut worker: Worker| {
        let mtu = PathMtu::Octets(1500);
        usize::from(worker.set_path_mtu(ChildSaId(1), mtu).unwrap())
    };
    assert_eq!(longest(plain) - longest(written), ONE_FIELD_LEN);
}

#[test]
fn the_room_is_what_an_overlay_takes() {
    let overlay = Overlay::new(1, 1, &[WINDOW, 2, 0, 1]).unwrap();
    assert_eq!(overlay.wire_len(), ONE_FIELD_LEN);
}
