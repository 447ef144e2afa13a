//! Packets modified in transit are dropped, with a separate reason for each kind of attack.

use crate::bench::*;
use crate::datagram::{segment, v4};
use esp::{DropReason, Packet, Worker};
use model::{ChildSaId, Instant, Spi, Suite};

/// The place of zone 1 of `segment()` in a packet of two zones: 52 octets and a next header.
const ZONE_1: std::ops::Range<usize> = 12..12 + 53 + 16;

fn sealed_segments(kind: &Kind, count: usize) -> (Vec<Vec<u8>>, Worker) {
    let (mut alice, bob) = pair(kind);
    let packets = (0..count).map(|_| seal(&mut alice, &segment()).unwrap());
    (packets.collect(), bob)
}

// Weakness: S1
#[test]
fn a_zone_spliced_from_another_packet_is_dropped() {
    let (packets, mut bob) = sealed_segments(&two_zones(), 2);
    let mut header_of_first = packets[1].clone();
    header_of_first[ZONE_1].copy_from_slice(&packets[0][ZONE_1]);
    assert_eq!(
        open(&mut bob, &header_of_first),
        Err(DropReason::BadIcvDesignated)
    );
    let mut payload_of_first = packets[1].clone();
    payload_of_first[ZONE_1.end..].copy_from_slice(&packets[0][ZONE_1.end..]);
    assert_eq!(
        open(&mut bob, &payload_of_first),
        Err(DropReason::BadIcvPayload)
    );
    assert_eq!(open(&mut bob, &packets[1]), Ok(segment()));
}

// Weakness: S5
#[test]
fn a_changed_map_is_dropped() {
    let (packets, mut bob) = sealed_segments(&two_zones(), 1);
    let word = &packets[0][8..12];
    assert_eq!(word, [0x42, 1, 0, 52]);
    let cases = [
        ([0x02, 1, 0, 52], DropReason::BadIcvDesignated),
        ([0x42, 1, 0, 51], DropReason::BadIcvDesignated),
        ([0x42, 1, 0, 53], DropReason::BadIcvDesignated),
        ([0x42, 1, 0, 0], DropReason::MapEmptyRun),
        ([0x42, 1, 0xff, 0xff], DropReason::MapBodies),
        ([0x42, 2, 0, 52], DropReason::MapFirst),
        ([0x42, 3, 0, 52], DropReason::MapUnknownZone),
        ([0x40, 1, 0, 52], DropReason::MapRunCount),
        ([0x49, 1, 0, 52], DropReason::MapRunCount),
        ([0x41, 1, 0, 52], DropReason::MapOpaque),
        ([0x52, 1, 0, 52], DropReason::MapReserved),
        ([0xc2, 1, 0, 52], DropReason::OverlayNotAccepted),
    ];
    for (word, why) in cases {
        let mut packet = packets[0].clone();
        packet[8..12].copy_from_slice(&word);
        assert_eq!(open(&mut bob, &packet), Err(why), "{word:02x?}");
    }
    assert_eq!(open(&mut bob, &packets[0]), Ok(segment()));
}

// Weakness: S5
#[test]
fn maps_with_words_against_the_rules_are_dropped() {
    let (_, mut bob) = sealed_segments(&three_zones(), 0);
    let cases: [(&[u8], DropReason); 3] = [
        (&[0x03, 1, 0, 1, 0, 1, 0, 1], DropReason::MapNeighbours),
        (&[0x03, 1, 0, 1, 0, 3, 0, 1], DropReason::MapLast),
        (&[0x04, 1, 0, 1, 0, 2, 0, 1], DropReason::MapTruncated),
    ];
    for (map, why) in cases {
        let header = [TO_BOB, 1].map(u32::to_be_bytes).concat();
        assert_eq!(open(&mut bob, &[&header, map].concat()), Err(why));
    }
}

// Weakness: S12
#[test]
fn a_changed_length_is_dropped() {
    let (packets, mut bob) = sealed_segments(&two_zones(), 1);
    let mut longer = packets[0].clone();
    longer.push(0);
    assert_eq!(open(&mut bob, &longer), Err(DropReason::BadIcvDesignated));
    for len in 0..packets[0].len() {
        let why = match len {
            0..8 => DropReason::Runt,
            8..12 => DropReason::MapTruncated,
            _ if len < ZONE_1.end + 16 => DropReason::MapBodies,
            _ => DropReason::BadIcvDesignated,
        };
        assert_eq!(open(&mut bob, &packets[0][..len]), Err(why), "{len} octets");
    }
}

// Weakness: S12
#[test]
fn bodies_in_another_order_are_dropped() {
    let (packets, mut bob) = sealed_segments(&three_zones(), 1);
    let packet = &packets[0];
    let (first, second) = (16..16 + 21 + 16, 53..53 + 32 + 16);
    let swapped = [
        &packet[..16],
        &packet[second.clone()],
        &packet[first],
        &packet[second.end..],
    ];
    assert_eq!(
        open(&mut bob, &swapped.concat()),
        Err(DropReason::BadIcvDesignated)
    );
}

#[test]
fn a_middle_zone_that_was_changed_is_counted_apart() {
    let (packets, mut bob) = sealed_segments(&three_zones(), 1);
    let mut packet = packets[0].clone();
    packet[60] ^= 1;
    assert_eq!(open(&mut bob, &packet), Err(DropReason::BadIcvOther));
}

// Weakness: S2
// Weakness: S4
// Answers: licence-forging
#[test]
fn a_node_that_seals_a_changed_header_zone_with_its_key_is_found_out_by_the_payloads_icv() {
    let (packets, mut bob) = sealed_segments(&two_zones(), 1);
    let packet = &packets[0];
    let header_key = key(TO_BOB, 1, Suite::Aes128Gcm16);
    let mut text = segment()[..52].to_vec();
    text[36..38].fill(0);
    text.push(4);
    let mut aad = aad0(1, &packet[8..12], packet.len() as u32);
    aad.push(1);
    // The node can seal this zone exactly as Alice did.
    let same = encrypt(&header_key, 1, &aad, &text);
    assert_eq!(same, packet[ZONE_1]);
    // It can therefore also seal another window, which another reader would accept.
    text[34] = 0;
    let mut written = packet.clone();
    written[ZONE_1].copy_from_slice(&encrypt(&header_key, 1, &aad, &text));
    assert_eq!(open(&mut bob, &written), Err(DropReason::BadIcvPayload));
    assert_eq!(open(&mut bob, packet), Ok(segment()));
}

// Weakness: S12
#[test]
fn stripping_the_header_zone_makes_no_opaque_packet() {
    let (packets, mut bob) = sealed_segments(&two_zones(), 1);
    let packet = &packets[0];
    let opaque = [&packet[..8], &[1, 2, 0, 0], &packet[ZONE_1.end..]].concat();
    assert_eq!(open(&mut bob, &opaque), Err(DropReason::BadIcvPayload));
}

// Weakness: S8
#[test]
fn a_packet_reflected_to_its_sender_is_dropped() {
    for (kind, why) in [
        (EXPLICIT, DropReason::BadIcv),
        (two_zones(), DropReason::BadIcvDesignated),
    ] {
        let (mut alice, _) = pair(&kind);
        let mut packet = seal(&mut alice, &segment()).unwrap();
        assert_eq!(open(&mut alice, &packet), Err(DropReason::UnknownSpi));
        packet[..4].copy_from_slice(&TO_ALICE.to_be_bytes());
        assert_eq!(open(&mut alice, &packet), Err(why));
    }
}

// Weakness: S11
#[test]
fn a_packet_moved_to_another_sa_is_dropped_even_if_that_has_the_same_keys() {
    for (kind, why) in [
        (EXPLICIT, DropReason::BadIcv),
        (two_zones(), DropReason::BadIcvDesignated),
    ] {
        let (mut alice, mut bob) = pair(&kind);
        let mut twin = bobs_sa(&kind);
        twin.id = ChildSaId(2);
        twin.inbound.spi = Spi(TO_BOB + 1);
        bob.install(twin).unwrap();
        let mut packet = seal(&mut alice, &segment()).unwrap();
        packet[3] += 1;
        assert_eq!(open(&mut bob, &packet), Err(why));
    }
}

// Weakness: S11
#[test]
fn packets_of_one_kind_never_open_under_an_sa_of_the_other() {
    let (zoned, _) = sealed_segments(&two_zones(), 1);
    let (plain, mut zoned_bob) = (sealed_segments(&EXPLICIT, 1).0, pair(&two_zones()).1);
    let mut plain_bob = pair(&EXPLICIT).1;
    assert_eq!(open(&mut plain_bob, &zoned[0]), Err(DropReason::BadIcv));
    assert!(open(&mut zoned_bob, &plain[0]).is_err());
}

// Weakness: 76
// Weakness: S9
#[test]
fn a_replayed_packet_is_delivered_once_also_within_one_batch() {
    for kind in [EXPLICIT, two_zones()] {
        let (packets, mut bob) = sealed_segments(&kind, 3);
        let order = [1, 0, 1, 0, 2, 2];
        let mut batch = order.map(|i: usize| Packet::from_slice(&packets[i]));
        let mut outcome = Outcome::default();
        bob.open(&mut batch, &mut outcome, Instant::ZERO);
        assert_eq!(outcome.delivered.len(), 3);
        assert_eq!(outcome.dropped, [DropReason::Replayed; 3]);
        assert_eq!(bob.counters().dropped(DropReason::Replayed), 3);
        assert_eq!(open(&mut bob, &packets[0]), Err(DropReason::Replayed));
    }
}

#[test]
fn a_packet_left_of_the_window_is_dropped() {
    let (packets, mut bob) = sealed_segments(&two_zones(), 4098);
    assert_eq!(open(&mut bob, &packets[4097]), Ok(segment()));
    assert_eq!(open(&mut bob, &packets[1]), Err(DropReason::TooOld));
    assert_eq!(open(&mut bob, &packets[2]), Ok(segment()));
}

// Weakness: 77
#[test]
fn a_forged_packet_moves_no_window() {
    let (packets, mut bob) = sealed_segments(&two_zones(), 1);
    let mut forged = packets[0].clone();
    forged[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(open(&mut bob, &forged), Err(DropReason::BadIcvDesignated));
    assert_eq!(bob.last_inbound(ChildSaId(1)), None);
    assert_eq!(open(&mut bob, &packets[0]), Ok(segment()));
}

#[test]
fn what_names_no_sa_is_dropped_before_any_cryptography() {
    for kind in [EXPLICIT, two_zones()] {
        let (packets, mut bob) = sealed_segments(&kind, 1);
        let with = |at: std::ops::Range<usize>, number: u32| {
            let mut packet = packets[0].clone();
            packet[at].copy_from_slice(&number.to_be_bytes());
            packet
        };
        let drops = [
            (with(0..4, 0), DropReason::ReservedSpi),
            (with(0..4, 255), DropReason::ReservedSpi),
            (with(0..4, 256), DropReason::UnknownSpi),
            (with(4..8, 0), DropReason::SequenceZero),
            (packets[0][..7].to_vec(), DropReason::Runt),
            (vec![], DropReason::Runt),
        ];
        for (packet, why) in drops {
            assert_eq!(open(&mut bob, &packet), Err(why));
        }
    }
}

// Weakness: 73
#[test]
fn a_plain_packet_shorter_than_its_overhead_is_a_runt() {
    let (packets, mut bob) = sealed_segments(&EXPLICIT, 1);
    assert_eq!(open(&mut bob, &packets[0][..33]), Err(DropReason::Runt));
    assert_eq!(open(&mut bob, &packets[0][..34]), Err(DropReason::BadIcv));
}

// Weakness: S4
#[test]
fn every_single_bit_flip_is_dropped() {
    let kinds = [
        EXPLICIT,
        IMPLICIT,
        two_zones(),
        mixed_zones(),
        three_zones(),
    ];
    let datagrams = [segment(), v4(1, &[8, 0, 0, 0, 1, 2, 3, 4])];
    for (kind, datagram) in kinds
        .iter()
        .flat_map(|k| datagrams.iter().map(move |d| (k, d)))
    {
        let (mut alice, mut bob) = pair(kind);
        let packet = seal(&mut alice, datagram).unwrap();
        for bit in 0..packet.len() * 8 {
            let mut flipped = packet.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&mut bob, &flipped).is_err(), "{kind:?}, bit {bit}");
        }
        assert_eq!(open(&mut bob, &packet).as_ref(), Ok(datagram));
    }
}
