//! Unencrypted packets (DESIGN section 3, "dynamic levels"): selection, limits in packets and time,
//! and the treatment of all others.

use crate::bench::*;
use crate::datagram::{ICMP, TCP, UDP, segment, tcp, udp, udp_between, v4};
use crate::mode::{V4, moded};
use esp::{DropReason, Packet, Report, Unusable, Worker};
use model::{
    ChildSaId, Class, Instant, Level, LevelChoice, LevelGrant, Mode, Signal, Sizes, Span,
    ZoneSelector, ZoneSuite,
};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::ecn::Ecn;
use wire::probe::{self, Probe};

/// A grant for all datagrams with ports, without practical limits.
pub fn everything() -> LevelGrant {
    LevelGrant {
        class: Class {
            ports: Span::new(0, u16::MAX),
            ..Class::default()
        },
        packets: u32::MAX,
        seconds: u32::MAX,
        renewals: 0,
    }
}

/// A grant for video between two ports.
fn video() -> LevelGrant {
    let class = Class {
        ports: Span::new(5004, 5005),
        ..Class::default()
    };
    LevelGrant {
        class,
        packets: 100,
        seconds: 60,
        renewals: 0,
    }
}

const PICTURE: &[u8] = b"a picture that everybody may see";

fn picture() -> Vec<u8> {
    v4(UDP, &udp_between([5004, 5004], PICTURE))
}

fn ends(grant: LevelGrant) -> (Worker, Worker) {
    let sas = (alices_sa(&two_zones()), bobs_sa(&two_zones()));
    let (alice, bob) = granting(sas, grant);
    (endpoint(alice), endpoint(bob))
}

fn choose(worker: &mut Worker, signal: Signal, every: u32) {
    let choice = LevelChoice {
        signal,
        every,
        ..LevelChoice::default()
    };
    worker.set_level(BOB, choice);
}

fn word(packet: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(packet[at..at + 4].try_into().unwrap())
}

/// Returns true if a packet is on the unencrypted SA. Asserts that exactly then its datagram is
/// visible.
fn is_clear(packet: &[u8], datagram: &[u8]) -> bool {
    let clear = word(packet, 0) == CLEAR_TO_BOB;
    let mut windows = packet.windows(datagram.len());
    assert_eq!(windows.any(|window| window == datagram), clear);
    clear
}

fn at(seconds: u64) -> Instant {
    Instant::from_origin(Duration::from_secs(seconds))
}

fn seal_then(worker: &mut Worker, datagram: &[u8], now: Instant) -> Vec<u8> {
    let mut packet = Packet::with_capacity(2000);
    packet.fill(datagram);
    seal_at(worker, &mut packet, now).unwrap()
}

fn open_then(worker: &mut Worker, packet: &[u8], now: Instant) -> Result<Vec<u8>, DropReason> {
    open_at(worker, packet, Ecn::NotEct, now)
}

#[test]
fn what_is_granted_is_on_the_wire_as_it_is_and_everything_else_is_not() {
    let (mut alice, mut bob) = ends(video());
    let datagrams = [
        (picture(), true),
        (segment(), false),
        (v4(UDP, &udp(PICTURE)), false),
        (v4(ICMP, PICTURE), false),
        (v4(TCP, &tcp(&[], b"")), false),
    ];
    for (datagram, clear) in datagrams.iter().cycle().take(50) {
        let packet = seal(&mut alice, datagram).unwrap();
        assert_eq!(is_clear(&packet, datagram), *clear);
        assert_eq!(open(&mut bob, &packet), Ok(datagram.clone()));
    }
    let level = bob.level(ChildSaId(1)).unwrap();
    assert_eq!((level.sealed, level.opened), (0, 10));
    assert_eq!(alice.level(ChildSaId(1)).unwrap().packets_left(), 90);
}

/// Negative control: without a grant none of the datagram is on the wire.
// Weakness: S20
#[test]
fn without_a_grant_nothing_goes_without_encryption_whatever_an_operator_wants() {
    let (mut alice, mut bob) = pair(&two_zones());
    choose(&mut alice, Signal::Only(Level::Integrity), 0);
    for datagram in [picture(), segment()] {
        let packet = seal(&mut alice, &datagram).unwrap();
        assert!(!is_clear(&packet, &datagram));
        assert_eq!(open(&mut bob, &packet), Ok(datagram));
    }
    assert_eq!(alice.level(ChildSaId(1)), None);
}

/// As in the paper (MML-IPsec, section 5.5).
#[test]
fn every_so_many_th_packet_is_encrypted_all_the_same() {
    for (every, encrypted) in [(0, 0), (1, 60), (2, 30), (3, 20), (5, 12), (10, 6)] {
        let (mut alice, mut bob) = ends(video());
        choose(&mut alice, Signal::Auto, every);
        let mut places = Vec::new();
        for place in 1..=60_u32 {
            // Datagrams outside the class do not count.
            seal(&mut alice, &segment()).unwrap();
            let packet = seal(&mut alice, &picture()).unwrap();
            if !is_clear(&packet, &picture()) {
                places.push(place);
            }
            assert_eq!(open(&mut bob, &packet), Ok(picture()));
        }
        assert_eq!(places.len(), encrypted);
        assert!(places.iter().all(|place| place % every == 0));
    }
}

#[test]
fn an_operator_chooses_among_the_levels_that_are_agreed_on_and_no_packet_is_lost() {
    let (mut alice, mut bob) = ends(video());
    let signals = [
        (Signal::Auto, (true, false)),
        (Signal::Only(Level::Zoned), (false, false)),
        (Signal::Only(Level::Opaque), (false, true)),
        (Signal::Only(Level::Integrity), (true, false)),
        (Signal::Only(Level::Opaque), (false, true)),
        (Signal::Auto, (true, false)),
    ];
    for (signal, (clear, opaque)) in signals {
        choose(&mut alice, signal, 0);
        let before = alice.counters().opaque;
        let packet = seal(&mut alice, &picture()).unwrap();
        assert_eq!(is_clear(&packet, &picture()), clear, "{signal}");
        assert_eq!(open(&mut bob, &packet), Ok(picture()));
        let packet = seal(&mut alice, &segment()).unwrap();
        assert!(!is_clear(&packet, &segment()));
        assert_eq!(open(&mut bob, &packet), Ok(segment()));
        let hidden = alice.counters().opaque - before;
        // Unencrypted and opaque packets have a single zone, so they count as opaque.
        let expected = if opaque { 2 } else { u64::from(clear) };
        assert_eq!(hidden, expected, "{signal}");
    }
}

#[test]
fn with_a_fixed_map_opaque_packets_are_on_the_opaque_sa() {
    let (alice, bob) = granting(fixed_sas(&[(1, 52)]), video());
    let (mut alice, mut bob) = (endpoint(alice), endpoint(bob));
    for (signal, expected) in [
        (Signal::Auto, [TO_BOB, CLEAR_TO_BOB]),
        (Signal::Only(Level::Opaque), [OPAQUE_TO_BOB; 2]),
        (Signal::Only(Level::Zoned), [TO_BOB, OPAQUE_TO_BOB]),
        (Signal::Only(Level::Integrity), [TO_BOB, CLEAR_TO_BOB]),
    ] {
        choose(&mut alice, signal, 0);
        for (datagram, spi) in [segment(), picture()].iter().zip(expected) {
            let packet = seal(&mut alice, datagram).unwrap();
            assert_eq!(word(&packet, 0), spi, "{signal}");
            assert_eq!(open(&mut bob, &packet), Ok(datagram.clone()));
        }
    }
}

/// Invariant 1: the SAs' numbers are independent, and each SA has its own keys.
#[test]
fn each_level_has_numbers_and_a_replay_window_of_its_own() {
    let (mut alice, mut bob) = ends(video());
    for number in 1..=5 {
        for datagram in [picture(), segment()] {
            let packet = seal(&mut alice, &datagram).unwrap();
            assert_eq!(word(&packet, 4), number);
            assert!(open(&mut bob, &packet).is_ok());
            assert_eq!(open(&mut bob, &packet), Err(DropReason::Replayed));
        }
    }
}

#[test]
fn after_the_last_packet_of_the_grant_the_rest_is_encrypted_and_nothing_is_lost() {
    let (mut alice, mut bob) = ends(video());
    for number in 1..=300 {
        let packet = seal(&mut alice, &picture()).unwrap();
        assert_eq!(is_clear(&packet, &picture()), number <= 100);
        assert_eq!(open(&mut bob, &packet), Ok(picture()));
    }
    assert_eq!(alice.poll_report(), Some(Report::LevelSpent(ChildSaId(1))));
    assert_eq!(alice.poll_report(), None, "told once");
    assert_eq!(alice.level(ChildSaId(1)).unwrap().packets_left(), 0);
}

#[test]
fn after_the_last_second_of_the_grant_the_rest_is_encrypted_and_nothing_is_lost() {
    let (mut alice, mut bob) = ends(video());
    // The time limit starts with the first unencrypted packet.
    seal_then(&mut alice, &segment(), at(0));
    for second in 1000..1100 {
        let packet = seal_then(&mut alice, &picture(), at(second));
        // The sender stops an eighth earlier than the receiver.
        assert_eq!(is_clear(&packet, &picture()), second <= 1052);
        // Each packet may take some seconds.
        let late = second + second % 8;
        assert_eq!(open_then(&mut bob, &packet, at(late)), Ok(picture()));
    }
    assert_eq!(alice.poll_report(), Some(Report::LevelSpent(ChildSaId(1))));
    let level = alice.level(ChildSaId(1)).unwrap();
    assert_eq!(level.seconds_left(at(1010)), 42);
    assert_eq!(level.seconds_left(at(1100)), 0);
}

/// A sender with another grant than its receiver. The test builds both ends; a real negotiation
/// would give them different keys.
fn liar(theirs: LevelGrant) -> (Worker, Worker) {
    let (liar, _) = ends(theirs);
    let (_, honest) = ends(video());
    (liar, honest)
}

/// Invariant 6: the receiver limits a downgrade.
// Refuses: dynamic-levels
// Weakness: S21
#[test]
fn a_peer_that_sends_more_than_was_granted_is_not_heard_and_that_is_told_once() {
    let (mut liar, mut bob) = liar(everything());
    for number in 1..=200 {
        let packet = seal(&mut liar, &picture()).unwrap();
        let opened = open(&mut bob, &packet);
        match number <= 100 {
            true => assert_eq!(opened, Ok(picture())),
            false => assert_eq!(opened, Err(DropReason::LevelSpent)),
        }
    }
    assert_eq!(bob.poll_report(), Some(Report::LevelRefused(ChildSaId(1))));
    assert_eq!(bob.poll_report(), None);
    // Its numbers are spent, but its zones still work.
    choose(&mut liar, Signal::Only(Level::Zoned), 0);
    let packet = seal(&mut liar, &picture()).unwrap();
    assert_eq!(open(&mut bob, &packet), Ok(picture()));
}

// Weakness: S21
#[test]
fn a_peer_that_goes_on_for_longer_than_was_granted_is_not_heard() {
    let (mut liar, mut bob) = liar(everything());
    let opened = [0, 59, 60, 10_000].map(|second| {
        let packet = seal_then(&mut liar, &picture(), at(500));
        open_then(&mut bob, &packet, at(500 + second)).map(drop)
    });
    let spent = Err(DropReason::LevelSpent);
    assert_eq!(opened, [Ok(()), Ok(()), spent, spent]);
}

// Refuses: dynamic-levels
// Weakness: S21
#[test]
fn a_peer_that_sends_what_was_not_granted_is_not_heard() {
    let (mut liar, mut bob) = liar(everything());
    for datagram in [segment(), v4(UDP, &udp(PICTURE))] {
        let packet = seal(&mut liar, &datagram).unwrap();
        assert!(is_clear(&packet, &datagram));
        assert_eq!(open(&mut bob, &packet), Err(DropReason::LevelClass));
    }
    let packet = seal(&mut liar, &picture()).unwrap();
    assert_eq!(open(&mut bob, &packet), Ok(picture()));
}

/// Any host can read these packets. Without the keys none can be changed or forged.
// Refuses: dynamic-levels
// Weakness: S20
// Answers: sight-level
#[test]
fn who_reads_a_packet_without_encryption_can_change_none_of_its_octets() {
    let (mut alice, mut bob) = ends(video());
    let packet = seal(&mut alice, &picture()).unwrap();
    for place in 8..packet.len() {
        let mut forged = packet.clone();
        forged[place] ^= 1;
        assert_eq!(open(&mut bob, &forged), Err(DropReason::BadIcvPayload));
    }
    let mut next = packet.clone();
    next[7] += 1;
    assert_eq!(open(&mut bob, &next), Err(DropReason::BadIcvPayload));
    let lies = v4(
        UDP,
        &udp_between([5004, 5004], b"a picture of the attacker's own"),
    );
    let mut made = packet[..8].to_vec();
    made.extend(&lies);
    made.extend([4; 17]);
    assert_eq!(open(&mut bob, &made), Err(DropReason::BadIcvPayload));
    assert_eq!(open(&mut bob, &packet), Ok(picture()), "nothing was spent");
    assert_eq!(bob.poll_report(), None);
}

/// The attacker exchanges the SPIs of an unencrypted and a zoned packet.
// Weakness: S20
#[test]
fn a_packet_of_one_level_is_none_of_another() {
    let (mut alice, mut bob) = ends(video());
    let mut clear = seal(&mut alice, &picture()).unwrap();
    let mut zoned = seal(&mut alice, &segment()).unwrap();
    clear[..4].copy_from_slice(&TO_BOB.to_be_bytes());
    zoned[..4].copy_from_slice(&CLEAR_TO_BOB.to_be_bytes());
    assert!(open(&mut bob, &clear).is_err());
    assert_eq!(open(&mut bob, &zoned), Err(DropReason::BadIcvPayload));
}

/// Invariant 5: a node has lost its licence for the zones. Both policies would allow unencrypted
/// packets, but until a rekey none are sent.
#[test]
fn an_sa_that_was_made_opaque_hides_everything_whatever_an_operator_wants() {
    let (mut alice, mut bob) = ends(video());
    alice.make_opaque(ChildSaId(1));
    for signal in [
        Signal::Auto,
        Signal::Only(Level::Integrity),
        Signal::Only(Level::Zoned),
    ] {
        choose(&mut alice, signal, 0);
        let before = alice.counters().opaque;
        let packet = seal(&mut alice, &picture()).unwrap();
        assert!(!is_clear(&packet, &picture()));
        assert_eq!(alice.counters().opaque, before + 1);
        assert_eq!(open(&mut bob, &packet), Ok(picture()));
    }
}

/// Padding could hide the length of a datagram, but the datagram itself is readable.
#[test]
fn what_goes_without_encryption_is_not_padded() {
    let (mut alice, mut bob) = ends(video());
    alice.set_peers(padded(BOB, Sizes::one(1000)));
    let packet = seal(&mut alice, &picture()).unwrap();
    assert_eq!(packet.len(), picture().len() + 8 + 1 + 16);
    assert_eq!(open(&mut bob, &packet), Ok(picture()));
    assert!(seal(&mut alice, &segment()).unwrap().len() > 1000);
}

#[test]
fn new_keys_begin_with_all_of_their_grant() {
    let (mut alice, mut bob) = ends(video());
    for _ in 0..100 {
        seal(&mut alice, &picture()).unwrap();
    }
    let (mut new, mut bobs) = granting((alices_sa(&two_zones()), bobs_sa(&two_zones())), video());
    for (sa, to) in [(&mut new, 0), (&mut bobs, 1)] {
        sa.id = ChildSaId(2);
        let beside = sa.integrity.as_mut().unwrap();
        for half in [
            &mut sa.inbound,
            &mut sa.outbound,
            &mut beside.inbound,
            &mut beside.outbound,
        ] {
            half.spi.0 += 0x100;
        }
        assert_eq!(sa.initiator, to == 0);
    }
    alice.install(new).unwrap();
    bob.install(bobs).unwrap();
    let packet = seal(&mut alice, &picture()).unwrap();
    assert_eq!(
        (word(&packet, 0), word(&packet, 4)),
        (CLEAR_TO_BOB + 0x100, 1)
    );
    assert_eq!(open(&mut bob, &packet), Ok(picture()));
    // Removing the SAs removes all state of both.
    for worker in [&mut alice, &mut bob] {
        worker.remove(ChildSaId(1));
        worker.remove(ChildSaId(2));
    }
    assert_eq!(open(&mut bob, &packet), Err(DropReason::UnknownSpi));
}

#[test]
fn a_grant_without_its_sa_beside_and_one_without_a_grant_are_not_installed() {
    let sas = || granting((alices_sa(&two_zones()), bobs_sa(&two_zones())), video());
    let refused = |change: fn(&mut model::ChildSa<crypto::Secret>)| {
        let (mut sa, _) = sas();
        change(&mut sa);
        Worker::new(esp::Spd::default()).install(sa).err()
    };
    assert_eq!(refused(|_| {}), None);
    assert_eq!(refused(|sa| sa.integrity = None), Some(Unusable::Zones));
    let ungranted = |sa: &mut model::ChildSa<crypto::Secret>| {
        sa.agreement.as_mut().unwrap().level = None;
    };
    assert_eq!(refused(ungranted), Some(Unusable::Zones));
    let own_spi = |sa: &mut model::ChildSa<crypto::Secret>| {
        sa.integrity.as_mut().unwrap().inbound.spi = sa.inbound.spi;
    };
    assert_eq!(refused(own_spi), Some(Unusable::Spi));
    let encrypting = |sa: &mut model::ChildSa<crypto::Secret>| {
        let kind = Kind::Zoned(vec![(ZoneSelector::Rest, ZoneSuite::Aes256Gcm16)]);
        sa.integrity.as_mut().unwrap().inbound = half(CLEAR_TO_ALICE, &kind);
    };
    assert_eq!(refused(encrypting), Some(Unusable::Zones));
}

/// The IP header is not sent in these modes. The sender checks the class before removing it, the
/// receiver after rebuilding it.
#[test]
fn without_its_ip_header_the_same_goes_without_encryption() {
    for mode in [Mode::Transport, Mode::Beet] {
        let [alice, bob] = moded(mode, &two_zones(), V4);
        let (alice, bob) = granting((alice, bob), video());
        let (mut alice, mut bob) = (endpoint(alice), endpoint(bob));
        for (datagram, clear) in [(picture(), true), (segment(), false)] {
            let packet = seal(&mut alice, &datagram).unwrap();
            assert_eq!(is_clear(&packet, &datagram[20..]), clear, "{mode}");
            let opened = open(&mut bob, &packet).unwrap();
            assert_eq!(opened[20..], datagram[20..], "{mode}");
        }
    }
}

/// Otherwise the packet would be lost at the receiver, which has no DSCP to check against the
/// grant.
#[test]
fn what_is_granted_by_its_class_of_service_is_encrypted_where_that_stays_behind() {
    let mut grant = video();
    grant.class.dscp = Some(0);
    for (mode, expected) in [(Mode::Tunnel, true), (Mode::Beet, false)] {
        let [alice, bob] = moded(mode, &two_zones(), V4);
        let (alice, bob) = granting((alice, bob), grant);
        let (mut alice, mut bob) = (endpoint(alice), endpoint(bob));
        let packet = seal(&mut alice, &picture()).unwrap();
        assert_eq!(is_clear(&packet, &picture()[20..]), expected, "{mode}");
        assert!(open(&mut bob, &packet).is_ok(), "{mode}");
    }
}

/// Bob sends this number of packets, and none is lost.
fn come(alice: &mut Worker, bob: &mut Worker, packets: u32) {
    let mut back = segment();
    back[12..20].rotate_left(4);
    for _ in 0..packets {
        let packet = seal(bob, &back).unwrap();
        open(alice, &packet).unwrap();
    }
}

/// "Mobile multi-layered IPsec", section 5.2: a reliable link needs no help from a node on the
/// path.
// Weakness: S26
#[test]
fn on_a_good_link_packets_are_opaque_until_it_is_bad() {
    let (mut alice, mut bob) = pair(&two_zones());
    let choice = LevelChoice {
        opaque_below: 100,
        ..LevelChoice::default()
    };
    alice.set_level(BOB, choice);
    let is_opaque = |alice: &mut Worker| seal(alice, &segment()).unwrap()[8] & 15 == 1;
    come(&mut alice, &mut bob, 999);
    assert!(!is_opaque(&mut alice), "nobody knows yet");
    come(&mut alice, &mut bob, 1);
    assert!(is_opaque(&mut alice));
    assert!(alice.link(ChildSaId(1)).unwrap().good);
    // An operator's choice has priority.
    let zoned = Signal::Only(Level::Zoned);
    let zoned = LevelChoice {
        signal: zoned,
        ..choice
    };
    alice.set_level(BOB, zoned);
    assert!(!is_opaque(&mut alice));
    alice.set_level(BOB, choice);
    assert!(is_opaque(&mut alice));
    bob.skip_to(ChildSaId(1), 1010);
    come(&mut alice, &mut bob, 1);
    assert!(!is_opaque(&mut alice), "ten of a thousand are missing");
    // Without the setting nothing is measured.
    alice.set_peers(BTreeMap::new());
    assert_eq!(alice.link(ChildSaId(1)), None);
}

/// Lost probes are no lost data: a path that loses them for their length may lose nothing else.
/// Without the notice the measurement could not tell them apart, which is the control.
// Weakness: 168
#[test]
fn the_peers_probes_make_no_link_bad_when_they_are_lost() {
    for (gives_notice, good) in [(true, true), (false, false)] {
        let (mut alice, mut bob) = pair(&two_zones());
        let choice = LevelChoice {
            opaque_below: 100,
            ..LevelChoice::default()
        };
        alice.set_level(BOB, choice);
        come(&mut alice, &mut bob, 1000);
        assert!(alice.link(ChildSaId(1)).unwrap().good);
        for number in 0..20 {
            let mut packet = Packet::with_capacity(2000);
            if gives_notice {
                bob.notice(ChildSaId(1), &mut packet).unwrap();
                assert_eq!(open(&mut alice, packet.octets()), Err(DropReason::Dummy));
            }
            let probe = Probe {
                kind: probe::Kind::Probe,
                octets: 1500,
                number,
            };
            // It is lost.
            bob.probe(ChildSaId(1), probe, &mut packet).unwrap();
            come(&mut alice, &mut bob, 1);
        }
        let link = alice.link(ChildSaId(1)).unwrap();
        assert_eq!(link.good, good, "{link:?}");
        // A datagram that is lost beside a probe counts.
        let mut packet = Packet::with_capacity(2000);
        bob.notice(ChildSaId(1), &mut packet).unwrap();
        let _ = open(&mut alice, packet.octets());
        bob.skip_to(ChildSaId(1), 2000);
        come(&mut alice, &mut bob, 1);
        assert!(!alice.link(ChildSaId(1)).unwrap().good);
    }
}

/// Packets that do not open do not affect the measurement, nor do duplicates.
// Refuses: link-levels
// Weakness: S26
#[test]
fn forged_and_repeated_packets_make_no_link_bad() {
    let (mut alice, mut bob) = pair(&two_zones());
    let choice = LevelChoice {
        opaque_below: 100,
        ..LevelChoice::default()
    };
    alice.set_level(BOB, choice);
    come(&mut alice, &mut bob, 1000);
    let mut back = segment();
    back[12..20].rotate_left(4);
    let packet = seal(&mut bob, &back).unwrap();
    for ahead in [1, 100, 1 << 20] {
        let mut forged = packet.clone();
        let number = word(&packet, 4) + ahead;
        forged[4..8].copy_from_slice(&number.to_be_bytes());
        assert!(open(&mut alice, &forged).is_err());
    }
    open(&mut alice, &packet).unwrap();
    assert_eq!(open(&mut alice, &packet), Err(DropReason::Replayed));
    assert!(alice.link(ChildSaId(1)).unwrap().good);
}
