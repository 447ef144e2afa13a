//! Hiding the amount of traffic: padding behind datagrams (RFC 4303 section 2.7) and dummies
//! (section 2.6). The effects at the receiver, and the information that outsiders and licensed
//! nodes obtain.

use crate::bench::*;
use crate::datagram::*;
use crate::identity;
use crypto::Secret;
use esp::{DropReason, Licensed, Packet, Report, Scratch, Worker};
use model::{ChildSaId, EspSuite, Mode, Sizes, Span, Suite, ZoneId, ZoneSelector, ZoneSuite};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MTU: u16 = 1380;
const NO_NEXT_HEADER: u8 = 59;

/// Alice pads datagrams to Bob.
fn padding_pair(kind: &Kind, sizes: Sizes) -> (Worker, Worker) {
    let (mut alice, bob) = pair(kind);
    look_like(&mut alice, sizes);
    (alice, bob)
}

fn look_like(worker: &mut Worker, sizes: Sizes) {
    worker.set_peers(padded(BOB, sizes));
}

fn segment_of(len: usize) -> Vec<u8> {
    v4(TCP, &tcp(&[], &vec![7; len - 40]))
}

/// Segments, packets and echoes of both IP versions, the shortest and the longest.
fn datagrams() -> Vec<Vec<u8>> {
    let secret = [34, 6, 1, 2, 3, 4, 1, 1];
    let mut all = vec![segment(), segment_with_secret(), v4(ICMP, &[8, 0, 0, 0])];
    for len in [0, 1, 64, 500, 1380 - 60] {
        let payload = vec![7; len];
        all.extend([
            v4(TCP, &tcp(&[], &payload)),
            v6(TCP, &tcp(&[], &payload)),
            v4(TCP, &tcp(&secret, &payload)),
            v4(UDP, &udp(&payload)),
            v6(UDP, &udp(&payload)),
            v6(ICMP, &payload),
        ]);
    }
    all.extend([segment_of(1379), segment_of(1380), v4(ICMP, &[8; 1360])]);
    all
}

/// The lengths of the sealed packets. Every datagram must arrive unchanged.
fn lengths(kind: &Kind, sizes: Option<Sizes>) -> BTreeSet<usize> {
    let (mut alice, mut bob) = pair(kind);
    let peers = sizes.map(|sizes| padded(BOB, sizes));
    alice.set_peers(peers.unwrap_or_default());
    let through = |datagram: &Vec<u8>| {
        let packet = seal(&mut alice, datagram).unwrap();
        assert_eq!(open(&mut bob, &packet).as_ref(), Ok(datagram), "{kind:?}");
        packet.len()
    };
    datagrams().iter().map(through).collect()
}

/// Alice's keys of two zones.
fn keys() -> [(u8, Secret); 2] {
    [
        (1, key(TO_BOB, 1, Suite::Aes128Gcm16)),
        (2, key(TO_BOB, 2, Suite::Aes256Gcm16)),
    ]
}

// The receiver.

/// "arbitrary padding after the end of an IP packet" (RFC 4303 section 8), in any zones.
#[test]
fn octets_after_the_datagram_are_cut_off_in_every_kind_of_sa() {
    for noise in [vec![0; 300], vec![0x45; 300], (0..=255).collect()] {
        let padded = [&segment()[..], &noise].concat();
        let header = [&padded[..52], &[4]].concat();
        let zoned = zoned_packet(&keys(), 1, &[0x02, 1, 0, 52], &[&header, &padded[52..]]);
        assert_eq!(open(&mut pair(&two_zones()).1, &zoned), Ok(segment()));
        let opaque = [&padded[..], &[4]].concat();
        let opaque = zoned_packet(&keys()[1..], 1, &[0x01, 2, 0, 0], &[&opaque]);
        assert_eq!(open(&mut pair(&two_zones()).1, &opaque), Ok(segment()));
        let plain = plain_packet(1, &[&padded[..], &[1, 2, 2, 4]].concat());
        assert_eq!(open(&mut pair(&EXPLICIT).1, &plain), Ok(segment()));
    }
}

/// An omitted checksum covers the datagram, not the padding behind it.
#[test]
fn a_checksum_is_restored_without_the_padding() {
    let mut left_out = segment();
    left_out[36..38].fill(0);
    let header = [&left_out[..52], &[4]].concat();
    let payload = [&left_out[52..], &[0xff; 99]].concat();
    let packet = zoned_packet(&keys(), 1, &[0x42, 1, 0, 52], &[&header, &payload]);
    assert_eq!(open(&mut pair(&two_zones()).1, &packet), Ok(segment()));
}

/// "a receiver MUST be prepared to discard such packets, without indicating an error", of which
/// "the plaintext portion of the payload […] need not be well-formed" (RFC 4303 section 2.6).
#[test]
fn a_dummy_is_discarded_counted_for_itself_and_no_loss() {
    let mut bob = pair(&EXPLICIT).1;
    for (seq, noise) in (1..).zip([&[][..], &[7; 40], &segment()]) {
        let dummy = plain_packet(seq, &[noise, &[0, NO_NEXT_HEADER]].concat());
        assert_eq!(open(&mut bob, &dummy), Err(DropReason::Dummy));
    }
    let counters = bob.counters();
    assert_eq!((counters.dummies(), counters.opened.packets), (3, 0));
    assert!(counters.drops().all(|(_, count)| count == 0));
}

/// Its map may describe anything that other maps may.
#[test]
fn a_dummy_in_zones_need_not_be_well_formed_either() {
    let mut bob = pair(&two_zones()).1;
    for (seq, flags) in [(1, 0x02), (2, 0x42)] {
        let header = [&[0; 40][..], &[NO_NEXT_HEADER]].concat();
        let dummy = zoned_packet(&keys(), seq, &[flags, 1, 0, 40], &[&header, &[0; 9]]);
        assert_eq!(open(&mut bob, &dummy), Err(DropReason::Dummy));
    }
    assert_eq!(bob.counters().dummies(), 2);
}

/// A dummy is as authentic as any other packet: its sender has the keys.
#[test]
fn a_dummy_tells_that_the_peer_has_an_sa() {
    let mut bob = pair(&EXPLICIT).1;
    bob.remove(ChildSaId(1));
    bob.install_beside(bobs_sa(&EXPLICIT)).unwrap();
    let dummy = plain_packet(1, &[0, NO_NEXT_HEADER]);
    assert_eq!(open(&mut bob, &dummy), Err(DropReason::Dummy));
    assert_eq!(bob.poll_report(), Some(Report::Confirmed(ChildSaId(1))));
    assert!(bob.last_inbound(ChildSaId(1)).is_some());
}

/// Without the keys, dummies can neither be forged nor replayed, and the counter does not grow.
#[test]
fn a_forged_or_repeated_dummy_is_dropped_like_any_packet() {
    let mut bob = pair(&EXPLICIT).1;
    let dummy = plain_packet(1, &[0, NO_NEXT_HEADER]);
    let mut forged = dummy.clone();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(open(&mut bob, &forged), Err(DropReason::BadIcv));
    assert_eq!(open(&mut bob, &dummy), Err(DropReason::Dummy));
    assert_eq!(open(&mut bob, &dummy), Err(DropReason::Replayed));
    assert_eq!(bob.counters().dummies(), 1);
}

// The sender.

/// For any datagram: its length, its IP version, its headers, and the number of its zones.
// Weakness: S15
#[test]
fn all_packets_of_an_sa_are_of_one_length() {
    let suites = [ZoneSuite::ChaCha20Poly1305, ZoneSuite::Aes128Gmac].map(zones_of);
    let kinds = [
        EXPLICIT,
        IMPLICIT,
        two_zones(),
        mixed_zones(),
        three_zones(),
        eight_zones(),
    ];
    for kind in kinds.into_iter().chain(suites) {
        assert!(lengths(&kind, None).len() > 10, "{kind:?}");
        let padded = lengths(&kind, Some(Sizes::one(MTU)));
        assert_eq!(padded.len(), 1, "{kind:?}: {padded:?}");
    }
}

/// A padded packet therefore fits any path that the longest one fits.
#[test]
fn no_packet_is_longer_than_that_of_the_longest_datagram() {
    let longest = |kind: &Kind| seal(&mut pair(kind).0, &segment_of(1380)).unwrap().len();
    for kind in [
        EXPLICIT,
        IMPLICIT,
        two_zones(),
        mixed_zones(),
        three_zones(),
    ] {
        let padded = lengths(&kind, Some(Sizes::one(MTU)));
        assert_eq!(padded, BTreeSet::from([longest(&kind)]), "{kind:?}");
    }
}

/// A zone in blocks cannot compensate exactly for the length of headers in another zone, but the
/// map shows outsiders that length anyway.
#[test]
fn in_blocks_packets_are_of_one_length_but_for_what_fills_no_block() {
    for suite in EspSuite::all() {
        let plain = Kind::Plain {
            suite,
            implicit_iv: false,
            esn: false,
        };
        let padded = lengths(&plain, Some(Sizes::one(MTU)));
        assert_eq!(padded.len(), 1, "{suite}: {padded:?}");
    }
    for suite in ZoneSuite::all() {
        let padded = lengths(&zones_of(suite), Some(Sizes::one(MTU)));
        let spread = padded.last().unwrap() - padded.first().unwrap();
        assert!(spread < suite.iv_len().max(1), "{suite}: {padded:?}");
    }
}

// Weakness: S15
#[test]
fn buckets_leave_five_lengths_at_most() {
    for kind in [EXPLICIT, two_zones(), eight_zones()] {
        let padded = lengths(&kind, Some(Sizes::doubling(MTU)));
        assert!((3..=5).contains(&padded.len()), "{kind:?}: {padded:?}");
    }
}

/// Three options in the payload zone make a map of five words. Padding leaves room for them; a
/// datagram that fills the packet does not.
// Weakness: S15
#[test]
fn a_datagram_whose_map_would_make_it_longer_than_all_others_is_opaque() {
    let secret = [34, 4, 1, 2];
    let options = [&secret[..], &[1; 4], &secret, &[1; 4], &secret].concat();
    for (payload, runs) in [(10, 6), (1380 - 60, 1)] {
        let (mut alice, mut bob) = padding_pair(&two_zones(), Sizes::one(MTU));
        let datagram = v4(TCP, &tcp(&options, &vec![7; payload]));
        let packet = seal(&mut alice, &datagram).unwrap();
        assert_eq!(packet[8] & 15, runs);
        assert_eq!(packet.len(), usize::from(MTU) + 45);
        assert_eq!(open(&mut bob, &packet), Ok(datagram));
    }
}

#[test]
fn a_datagram_longer_than_all_sizes_goes_as_it_is() {
    for kind in [EXPLICIT, two_zones()] {
        let (mut alice, mut bob) = padding_pair(&kind, Sizes::one(200));
        let packet = seal(&mut alice, &segment_of(1000)).unwrap();
        let unpadded = seal(&mut pair(&kind).0, &segment_of(1000)).unwrap();
        assert_eq!(packet.len(), unpadded.len());
        assert_eq!(open(&mut bob, &packet), Ok(segment_of(1000)));
    }
}

/// A peer must not see earlier content of the buffer, which may belong to another peer. A zone with
/// GMAC shows the padding.
// Weakness: S16
#[test]
fn padding_is_zeros_whatever_was_in_the_buffer() {
    let (mut alice, _) = padding_pair(&zones_of(ZoneSuite::Aes128Gmac), Sizes::one(MTU));
    let mut packet = Packet::with_capacity(2000);
    packet.fill(&[0xaa; 2000]);
    packet.fill(&segment());
    let sealed = seal_in(&mut alice, &mut packet).unwrap();
    assert!(!sealed.windows(4).any(|octets| octets == [0xaa; 4]));
    let behind = 12 + 53 + 16 + 40;
    let padding = &sealed[behind..sealed.len() - 16];
    assert!(padding.len() > 1200 && padding.iter().all(|octet| *octet == 0));
}

#[test]
fn a_buffer_without_room_for_the_padding_drops_and_does_not_show_a_length() {
    for kind in [EXPLICIT, two_zones()] {
        let (mut alice, _) = padding_pair(&kind, Sizes::one(MTU));
        let sealed = seal_in(&mut alice, &mut Packet::from_slice(&segment()));
        assert_eq!(sealed, Err(DropReason::TooBig));
    }
}

#[test]
fn what_padding_costs_is_counted_and_traffic_is_what_it_was() {
    let (mut alice, _) = padding_pair(&two_zones(), Sizes::one(1000));
    for datagram in [segment(), segment_of(1000)] {
        seal(&mut alice, &datagram).unwrap();
    }
    let (sealed, padded) = (alice.counters().sealed, alice.counters().padded);
    assert_eq!((sealed.packets, sealed.octets), (2, 1092));
    assert_eq!((padded.packets, padded.octets), (1, 1000 - 92));
}

/// "TFC padding can still be sent in the other direction" (RFC 7296 section 1.3.1), and a report
/// tells the operator that this direction has none.
// Refuses: tfc
#[test]
fn a_peer_that_takes_no_padding_gets_none_and_that_is_told() {
    let mut sa = alices_sa(&EXPLICIT);
    sa.takes_padding = false;
    let mut alice = endpoint(sa.clone());
    look_like(&mut alice, Sizes::one(MTU));
    assert_eq!(alice.poll_report(), Some(Report::Unpadded(sa.id)));
    let packet = seal(&mut alice, &segment());
    assert_eq!(packet, seal(&mut pair(&EXPLICIT).0, &segment()));
    assert_eq!(alice.counters().padded.packets, 0);
    // The same if the tunnel is installed after the configuration.
    alice.remove(sa.id);
    alice.install(sa.clone()).unwrap();
    assert_eq!(alice.poll_report(), Some(Report::Unpadded(sa.id)));
    alice.set_peers(BTreeMap::new());
    assert_eq!(alice.poll_report(), None);
}

/// Without an IP header the receiver could not find the end of the datagram.
#[test]
fn without_a_header_nothing_is_padded() {
    for mode in [Mode::Transport, Mode::Beet] {
        let mut sa = alices_sa(&EXPLICIT);
        sa.mode = mode;
        (sa.local, sa.remote) = (prefixes(&["10.1.0.1/32"]), prefixes(&["10.8.0.1/32"]));
        let mut alice = endpoint(sa);
        let before = seal(&mut alice, &segment()).unwrap().len();
        look_like(&mut alice, Sizes::one(MTU));
        assert_eq!(seal(&mut alice, &segment()).unwrap().len(), before);
        assert_eq!(alice.poll_report(), None);
    }
}

/// Padding that an outsider removes, extends or changes is detected, as with every octet.
// Refuses: tfc
// Weakness: S16
#[test]
fn nobody_on_the_way_changes_padding() {
    for kind in [EXPLICIT, two_zones()] {
        let (mut alice, mut bob) = padding_pair(&kind, Sizes::one(300));
        let packet = seal(&mut alice, &segment()).unwrap();
        let mut changed = packet.clone();
        changed[packet.len() - 20] ^= 1;
        let longer = [&packet[..], &[0; 4]].concat();
        for attacked in [&changed[..], &longer, &packet[..packet.len() - 4]] {
            assert!(open(&mut bob, attacked).is_err());
        }
        assert_eq!(open(&mut bob, &packet), Ok(segment()));
    }
}

/// Dummies are as long as other packets, and are sealed only during silence; the receiver drops
/// them.
#[test]
fn silence_is_covered_by_packets_that_look_like_all_others() {
    for kind in [EXPLICIT, IMPLICIT, two_zones(), eight_zones(), old_zones()] {
        let (mut alice, mut bob) = padding_pair(&kind, Sizes::one(MTU));
        let mut packet = Packet::with_capacity(2000);
        for _ in 0..3 {
            let sealed = seal(&mut alice, &segment_of(700)).unwrap();
            assert_eq!(open(&mut bob, &sealed), Ok(segment_of(700)));
            assert_eq!(alice.cover(BOB, &mut packet), None, "something was said");
            packet.fill(&[0xaa; 2000]);
            assert_eq!(alice.cover(BOB, &mut packet), Some(path()));
            assert_eq!(packet.len(), sealed.len(), "{kind:?}");
            let opened = open(&mut bob, packet.octets());
            assert_eq!(opened, Err(DropReason::Dummy), "{kind:?}");
        }
        assert_eq!((alice.counters().covered, bob.counters().dummies()), (3, 3));
        assert_eq!(alice.cover(PEER, &mut packet), None);
    }
}

/// A node that lost its licence sees no more of dummies than of datagrams.
#[test]
fn an_sa_that_is_made_opaque_makes_opaque_dummies() {
    let (mut alice, mut bob) = padding_pair(&two_zones(), Sizes::one(MTU));
    let packet = seal(&mut alice, &segment()).unwrap();
    assert_eq!(packet[8] & 15, 2);
    alice.make_opaque(ChildSaId(1));
    let mut dummy = Packet::with_capacity(2000);
    assert_eq!(alice.cover(BOB, &mut dummy), None);
    assert_eq!(alice.cover(BOB, &mut dummy), Some(path()));
    assert_eq!((dummy.octets()[8] & 15, dummy.len()), (1, packet.len()));
    assert_eq!(open(&mut bob, dummy.octets()), Err(DropReason::Dummy));
}

// The licensed node.

fn node(kind: &Kind, zones: &[u8]) -> Licensed {
    let mut node = Licensed::new();
    node.install(crate::licensed::grant(kind, zones)).unwrap();
    node
}

// Answers: licence-padding
#[test]
fn a_node_that_reads_the_ip_header_knows_how_long_a_datagram_is() {
    for kind in [two_zones(), zones_of(ZoneSuite::all().last().unwrap())] {
        let (mut alice, _) = padding_pair(&kind, Sizes::one(MTU));
        let packet = seal(&mut alice, &segment()).unwrap();
        let (mut node, mut scratch) = (node(&kind, &[1]), Scratch::new());
        let view = node.open(&packet, &mut scratch).unwrap();
        assert_eq!(view.datagram_len(), segment().len());
        assert_eq!((view.payload_len(), view.len_of(ZoneId(2))), (40, 40));
    }
}

/// An acknowledgement is recognised with any padding behind it, as SNOOP requires.
// Weakness: S16
#[test]
fn a_padded_acknowledgement_has_no_payload() {
    let (mut alice, _) = padding_pair(&two_zones(), Sizes::one(MTU));
    let packet = seal(&mut alice, &v4(TCP, &tcp(&[], b""))).unwrap();
    let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
    assert_eq!(node.open(&packet, &mut scratch).unwrap().payload_len(), 0);
}

/// The node's zone has the front of the IP header but not the length, so the node learns no more
/// than any observer.
// Answers: licence-padding
#[test]
fn a_node_that_does_not_read_the_length_does_not_know_it() {
    let version = ZoneSelector::Octets(Span::new(0, 0).unwrap());
    let kind = Kind::Zoned(vec![
        (version, ZoneSuite::Aes128Gcm16),
        (ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
        (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
    ]);
    let seen = |datagram: &[u8]| {
        let (mut alice, _) = padding_pair(&kind, Sizes::one(MTU));
        let packet = seal(&mut alice, datagram).unwrap();
        let (mut node, mut scratch) = (node(&kind, &[1]), Scratch::new());
        let view = node.open(&packet, &mut scratch).unwrap();
        (view.datagram_len(), view.payload_len())
    };
    assert_eq!(seen(&segment()), seen(&segment_of(1000)));
}

/// The sender of a dummy chooses its text, which may look like an acknowledgement.
// Weakness: S16
// Answers: licence-cover
#[test]
fn a_dummy_is_no_segment_to_a_licensed_node() {
    let ack = v4(TCP, &tcp(&[], b""));
    for (next_header, is_seen) in [(4, true), (NO_NEXT_HEADER, false)] {
        let header = [&ack[..], &[next_header]].concat();
        let packet = zoned_packet(&keys(), 1, &[0x02, 1, 0, 40], &[&header, &[0; 200]]);
        let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
        let view = node.open(&packet, &mut scratch).unwrap();
        assert_eq!(view.headers().is_some(), is_seen);
        assert_eq!(open(&mut pair(&two_zones()).1, &packet).is_ok(), is_seen);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_was_padded_opens_as_it_was(
        kind in identity::kind(),
        size in 0..1500_u16,
        doubling in any::<bool>(),
        datagrams in prop::collection::vec(identity::datagram(), 1..4),
    ) {
        let sizes = if doubling { Sizes::doubling(size) } else { Sizes::one(size) };
        let (mut alice, mut bob) = padding_pair(&kind, sizes);
        for datagram in datagrams {
            let packet = seal(&mut alice, &datagram).unwrap();
            if let Some(grant) = identity::grant(&kind) {
                let mut node = Licensed::new();
                node.install(grant).unwrap();
                let mut scratch = Scratch::new();
                let view = node.open(&packet, &mut scratch).ok();
                if let Some((view, seen)) = view.and_then(|view| view.headers().map(|h| (view, h))) {
                    let headers = identity::header_octets(&datagram);
                    prop_assert_eq!(seen.ip.len() + seen.transport.len(), headers);
                    prop_assert_eq!(view.payload_len(), datagram.len() - headers);
                }
            }
            prop_assert_eq!(open(&mut bob, &packet), Ok(datagram));
        }
    }
}
