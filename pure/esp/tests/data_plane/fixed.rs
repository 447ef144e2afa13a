//! Fixed maps, and the opaque companion SA (DESIGN section 3).

use crate::bench::*;
use crate::datagram::{ICMP, TCP, UDP, tcp, udp, v4, v6};
use esp::{DropReason, Unusable, Worker};
use model::{ChildSaId, Instant, MapKind, Sizes, Spi};
use std::collections::BTreeMap;

/// TCP over IPv4 as Linux sends it: headers of 20 and 32 octets.
const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];

fn fitting() -> Vec<u8> {
    v4(TCP, &tcp(&TIMESTAMPS, b"GET / HTTP/1.0"))
}

fn ends() -> (Worker, Worker) {
    let (alice, bob) = fixed_sas(&[(1, 52)]);
    (endpoint(alice), endpoint(bob))
}

/// A datagram that uses the opaque SA.
fn hidden() -> Vec<u8> {
    v4(
        ICMP,
        b"an echo of which nobody on the path sees anything at all",
    )
}

fn spi(packet: &[u8]) -> u32 {
    u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]])
}

fn seq(packet: &[u8]) -> u32 {
    u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]])
}

#[test]
fn a_packet_does_not_carry_a_fixed_map() {
    let (mut alice, mut bob) = ends();
    let packet = seal(&mut alice, &fitting()).unwrap();
    let (mut with_maps, _) = pair(&two_zones());
    let with_map = seal(&mut with_maps, &fitting()).unwrap();
    assert_eq!(packet.len() + 4, with_map.len());
    assert_eq!((spi(&packet), seq(&packet)), (TO_BOB, 1));
    assert_eq!(open(&mut bob, &packet), Ok(fitting()));
    assert_eq!(alice.counters().opaque, 0);
}

#[test]
fn whatever_the_map_does_not_fit_goes_on_the_opaque_sa_with_numbers_of_its_own() {
    let (mut alice, mut bob) = ends();
    let mut no_checksum = v4(UDP, &udp(&[0; 24]));
    no_checksum[26..28].fill(0);
    let others = [
        v4(TCP, &tcp(&[], b"no options")),
        v4(
            TCP,
            &tcp(&[TIMESTAMPS, TIMESTAMPS].concat(), b"more options"),
        ),
        v6(TCP, &tcp(&TIMESTAMPS, b"a longer header")),
        v4(UDP, &udp(b"another protocol")),
        hidden(),
        no_checksum,
    ];
    for (number, datagram) in (1..).zip(&others) {
        let packet = seal(&mut alice, datagram).unwrap();
        assert_eq!((spi(&packet), seq(&packet)), (OPAQUE_TO_BOB, number));
        // Only SPI, number, next header and ICV are added.
        assert_eq!(packet.len(), datagram.len() + 8 + 1 + 16);
        assert_eq!(open(&mut bob, &packet), Ok(datagram.clone()));
        let fits = seal(&mut alice, &fitting()).unwrap();
        assert_eq!((spi(&fits), seq(&fits)), (TO_BOB, number));
        assert_eq!(open(&mut bob, &fits), Ok(fitting()));
    }
    assert_eq!(alice.counters().opaque, others.len() as u64);
}

#[test]
fn each_of_both_has_a_replay_window_of_its_own() {
    let (mut alice, mut bob) = ends();
    let packets = [fitting(), hidden()].map(|datagram| seal(&mut alice, &datagram).unwrap());
    assert_ne!(spi(&packets[0]), spi(&packets[1]));
    for packet in &packets {
        assert!(open(&mut bob, packet).is_ok());
        assert_eq!(open(&mut bob, packet), Err(DropReason::Replayed));
    }
}

/// The attacker has seen both SPIs, and exchanges them.
// Weakness: S1
#[test]
fn a_packet_of_one_is_none_of_the_other() {
    let (mut alice, mut bob) = ends();
    let mut zoned = seal(&mut alice, &fitting()).unwrap();
    let mut opaque = seal(&mut alice, &hidden()).unwrap();
    zoned[..4].copy_from_slice(&OPAQUE_TO_BOB.to_be_bytes());
    opaque[..4].copy_from_slice(&TO_BOB.to_be_bytes());
    assert_eq!(open(&mut bob, &zoned), Err(DropReason::BadIcvPayload));
    assert_eq!(open(&mut bob, &opaque), Err(DropReason::BadIcvDesignated));
}

/// With another fixed map the zone boundaries differ and no ICV verifies: the map is authenticated
/// even though it is never sent.
// Weakness: S5
#[test]
fn ends_with_different_fixed_maps_open_nothing_of_each_other() {
    let (alice, _) = fixed_sas(&[(1, 52)]);
    let (_, bob) = fixed_sas(&[(1, 40)]);
    let (mut alice, mut bob) = (endpoint(alice), endpoint(bob));
    let packet = seal(&mut alice, &fitting()).unwrap();
    assert_eq!(open(&mut bob, &packet), Err(DropReason::BadIcvDesignated));
}

/// An attacker inserts a map where an SA has a fixed one, or removes it where packets carry one.
// Weakness: S5
#[test]
fn a_map_added_or_taken_away_is_noticed() {
    let (mut alice, mut bob) = ends();
    let packet = seal(&mut alice, &fitting()).unwrap();
    let with_map = [&packet[..8], &[0x42, 1, 0, 52], &packet[8..]].concat();
    assert_eq!(open(&mut bob, &with_map), Err(DropReason::BadIcvDesignated));
    let (mut carrying, mut carried) = pair(&two_zones());
    let packet = seal(&mut carrying, &fitting()).unwrap();
    let without_map = [&packet[..8], &packet[12..]].concat();
    assert!(open(&mut carried, &without_map).is_err());
    let (mut fixed, _) = ends();
    let packet = seal(&mut fixed, &fitting()).unwrap();
    assert!(open(&mut carried, &packet).is_err(), "the same keys");
}

#[test]
fn what_is_made_opaque_goes_on_the_opaque_sa_whole() {
    let (mut alice, mut bob) = ends();
    alice.make_opaque(ChildSaId(1));
    let packet = seal(&mut alice, &fitting()).unwrap();
    assert_eq!(spi(&packet), OPAQUE_TO_BOB);
    assert_eq!(open(&mut bob, &packet), Ok(fitting()));
}

#[test]
fn both_pad_and_dummies_look_like_datagrams() {
    let (mut alice, mut bob) = ends();
    alice.set_peers(padded(BOB, Sizes::one(600)));
    let mut lengths = BTreeMap::<u32, Vec<usize>>::new();
    for datagram in [
        fitting(),
        hidden(),
        v4(ICMP, &[0; 200]),
        v4(TCP, &tcp(&TIMESTAMPS, &[0; 300])),
    ] {
        let packet = seal(&mut alice, &datagram).unwrap();
        lengths.entry(spi(&packet)).or_default().push(packet.len());
        assert_eq!(open(&mut bob, &packet), Ok(datagram));
    }
    let mut dummy = |alice: &mut Worker| {
        alice.cover(BOB, &mut esp::Packet::with_capacity(2000));
        let mut packet = esp::Packet::with_capacity(2000);
        alice.cover(BOB, &mut packet).unwrap();
        let octets = packet.octets().to_vec();
        assert_eq!(open(&mut bob, &octets), Err(DropReason::Dummy));
        (spi(&octets), octets.len())
    };
    let of_zones = dummy(&mut alice);
    alice.make_opaque(ChildSaId(1));
    let of_opaque = dummy(&mut alice);
    for (spi, len) in [of_zones, of_opaque] {
        assert!(
            lengths[&spi].iter().all(|other| *other == len),
            "{lengths:?}"
        );
    }
    assert_ne!(of_zones.0, of_opaque.0);
}

#[test]
fn both_go_with_the_child_and_neither_takes_a_place_that_is_taken() {
    let (alice, bob) = fixed_sas(&[(1, 52)]);
    let mut worker = endpoint(bob.clone());
    for (main, beside) in [
        (OPAQUE_TO_BOB, 0x1000_0009),
        (0x1000_0009, TO_BOB),
        (0x1000_0009, 0x1000_0009),
        (0x1000_0009, 7),
    ] {
        let mut other = bob.clone();
        other.id = ChildSaId(2);
        other.inbound.spi = Spi(main);
        other.opaque.as_mut().unwrap().inbound.spi = Spi(beside);
        assert_eq!(
            worker.install(other),
            Err(Unusable::Spi),
            "{main:x} {beside:x}"
        );
    }
    let mut alice = endpoint(alice);
    let opaque = seal(&mut alice, &hidden()).unwrap();
    worker.remove(ChildSaId(1));
    assert_eq!(open(&mut worker, &opaque), Err(DropReason::UnknownSpi));
    worker.install(bob).unwrap();
    assert!(open(&mut worker, &opaque).is_ok());
}

#[test]
fn a_fixed_map_and_an_opaque_sa_are_there_together_or_not_at_all() {
    let (fixed, _) = fixed_sas(&[(1, 52)]);
    let mut alone = fixed.clone();
    alone.opaque = None;
    let mut changeable = fixed.clone();
    changeable.agreement.as_mut().unwrap().map = MapKind::Changeable;
    let mut impossible = fixed.clone();
    let runs = vec![model::Run {
        zone: model::ZoneId(2),
        len: 20,
    }];
    impossible.agreement.as_mut().unwrap().map = MapKind::Fixed(runs);
    let mut worker = endpoint(alices_sa(&EXPLICIT));
    for mut sa in [alone, changeable, impossible] {
        sa.id = ChildSaId(2);
        sa.inbound.spi = Spi(0x2000_0007);
        assert_eq!(worker.install(sa), Err(Unusable::Zones));
    }
}

#[test]
fn what_comes_on_either_is_heard_of() {
    let (mut alice, mut bob) = ends();
    let opaque = seal(&mut alice, &hidden()).unwrap();
    assert_eq!(bob.last_inbound(ChildSaId(1)), None);
    assert!(open(&mut bob, &opaque).is_ok());
    assert_eq!(bob.last_inbound(ChildSaId(1)), Some(Instant::ZERO));
    assert_eq!(bob.traffic(ChildSaId(1)).unwrap().opened.packets, 1);
}
