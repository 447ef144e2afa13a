//! Policies: datagrams that may leave, and their protection.

use crate::bench::*;
use crate::datagram::{ICMP, TCP, UDP, segment, tcp, udp, v4, v4_with, v6};
use esp::{Action, DropReason, Packet, Policy, Protected, Sink, Spd, Unusable, Worker};
use model::{ChildSaId, Instant, Path, PeerId, Spi};

fn only_protected() -> Worker {
    let protected = Protected {
        local: alices().into(),
        remote: bobs().into(),
    };
    Worker::new(Spd::new(vec![], vec![(PEER, protected)]))
}

fn with_policy(action: Action) -> Worker {
    let remote = prefixes(&["10.8.0.0/24"]).remove(0);
    let mut worker = Worker::new(Spd::new(vec![Policy { action, remote }], vec![]));
    worker.install(alices_sa(&EXPLICIT)).unwrap();
    worker
}

#[test]
fn nothing_leaves_that_no_sa_protects() {
    let mut down = only_protected();
    assert_eq!(seal(&mut down, &segment()), Err(DropReason::NoSa));
    let mut nobody = Worker::new(Spd::default());
    assert_eq!(seal(&mut nobody, &segment()), Err(DropReason::NoPolicy));
    let mut discarding = with_policy(Action::Discard);
    assert_eq!(
        seal(&mut discarding, &segment()),
        Err(DropReason::DiscardPolicy)
    );
    let mut bypassing = with_policy(Action::Bypass);
    assert_eq!(
        seal(&mut bypassing, &segment()),
        Err(DropReason::BypassNotRouted)
    );
    assert_eq!(bypassing.counters().sealed.packets, 0);
}

#[test]
fn an_sa_that_is_removed_protects_nothing_more() {
    let (mut alice, _) = pair(&two_zones());
    assert!(seal(&mut alice, &segment()).is_ok());
    alice.remove(ChildSaId(1));
    assert_eq!(seal(&mut alice, &segment()), Err(DropReason::NoSa));
    assert_eq!(alice.sa_status().count(), 0);
}

#[test]
fn the_newest_sa_protects_and_the_old_one_still_opens() {
    let (mut alice, mut bob) = pair(&EXPLICIT);
    let old = seal(&mut alice, &segment()).unwrap();
    for (worker, mut sa) in [
        (&mut alice, alices_sa(&two_zones())),
        (&mut bob, bobs_sa(&two_zones())),
    ] {
        sa.id = ChildSaId(2);
        sa.inbound.spi = Spi(sa.inbound.spi.0 + 0x100);
        sa.outbound.spi = Spi(sa.outbound.spi.0 + 0x100);
        worker.install(sa).unwrap();
    }
    let new = seal(&mut alice, &segment()).unwrap();
    assert_eq!(new[..4], (TO_BOB + 0x100).to_be_bytes());
    assert_eq!(open(&mut bob, &new), Ok(segment()));
    assert_eq!(open(&mut bob, &old), Ok(segment()));
}

// Weakness: 74
#[test]
fn an_inbound_spi_that_is_taken_or_reserved_is_refused() {
    let mut alice = endpoint(alices_sa(&EXPLICIT));
    assert_eq!(alice.install(alices_sa(&EXPLICIT)), Err(Unusable::Spi));
    let mut reserved = alices_sa(&EXPLICIT);
    reserved.inbound.spi = Spi(255);
    assert_eq!(alice.install(reserved), Err(Unusable::Spi));
}

#[test]
fn keys_that_do_not_fit_the_agreement_are_refused() {
    let mut worker = only_protected();
    let mut no_agreement = alices_sa(&two_zones());
    no_agreement.agreement = None;
    let mut too_few = alices_sa(&three_zones());
    too_few.agreement = alices_sa(&two_zones()).agreement;
    let mut one_zone = alices_sa(&Kind::Zoned(vec![]));
    one_zone.agreement.as_mut().unwrap().zones.clear();
    for sa in [no_agreement, too_few, one_zone] {
        assert_eq!(worker.install(sa), Err(Unusable::Zones));
    }
    let mut short = alices_sa(&EXPLICIT);
    if let model::Keys::Plain { key, .. } = &mut short.outbound.keys {
        *key = crypto::Secret::new(vec![0; 19]);
    }
    assert_eq!(worker.install(short), Err(Unusable::KeyLength));
    assert_eq!(worker.sa_status().count(), 0);
}

#[test]
fn a_datagram_whose_length_is_not_true_is_not_sealed() {
    let (mut alice, _) = pair(&two_zones());
    let mut trailing = segment();
    trailing.push(0);
    for datagram in [&[][..], &[0x45; 10], &segment()[..50], &trailing] {
        assert_eq!(
            seal(&mut alice, datagram),
            Err(DropReason::DatagramMalformed)
        );
    }
}

#[test]
fn a_path_that_moves_takes_the_packets_with_it() {
    let (mut alice, _) = pair(&EXPLICIT);
    let elsewhere = path().reversed();
    alice.move_path(ChildSaId(1), elsewhere);
    assert_eq!(alice.sa_status().next().unwrap().path, elsewhere);
}

#[test]
fn packets_and_octets_of_datagrams_are_counted() {
    let (mut alice, mut bob) = pair(&two_zones());
    let packet = seal(&mut alice, &segment()).unwrap();
    let icmp = seal(&mut alice, &v4(ICMP, &[8, 0, 0, 0])).unwrap();
    let now = Instant::from_origin(std::time::Duration::from_secs(7));
    let mut batch = [packet, icmp].map(|octets| Packet::from_slice(&octets));
    bob.open(&mut batch, &mut Outcome::default(), now);
    let octets = (segment().len() + 24) as u64;
    for traffic in [
        alice.counters().sealed,
        bob.counters().opened,
        alice.traffic(ChildSaId(1)).unwrap().sealed,
        bob.traffic(ChildSaId(1)).unwrap().opened,
    ] {
        assert_eq!((traffic.packets, traffic.octets), (2, octets));
    }
    assert_eq!(alice.counters().opaque, 1);
    assert_eq!(bob.last_inbound(ChildSaId(1)), Some(now));
    let status = bob.sa_status().next().unwrap();
    assert_eq!((status.highest_received, status.last_sent), (2, 0));
}

#[test]
fn a_map_says_what_classify_found() {
    let secret = crate::datagram::segment_with_secret();
    let fragment = v4_with(&[], 0x2000, TCP, &tcp(&[], b"first fragment"));
    let options = v4_with(&[1, 1, 1, 0], 0, TCP, &tcp(&[], b"options"));
    let mut unsummed = v4(UDP, &udp(b"dns"));
    unsummed[26..28].fill(0);
    let mut wrong = segment();
    wrong[60] ^= 1;
    let cases: [(Kind, Vec<u8>, &[u8]); 10] = [
        (two_zones(), segment(), &[0x42, 1, 0, 52]),
        (three_zones(), segment(), &[0x43, 1, 0, 20, 0, 2, 0, 32]),
        (two_zones(), v6(UDP, &udp(b"dns")), &[0x42, 1, 0, 48]),
        (two_zones(), unsummed, &[0x02, 1, 0, 28]),
        (
            two_zones(),
            secret.clone(),
            &[0x44, 1, 0, 52, 0, 2, 0, 6, 0, 1, 0, 10],
        ),
        (two_zones(), fragment, &[0x01, 2, 0, 0]),
        (two_zones(), options, &[0x01, 2, 0, 0]),
        (two_zones(), wrong, &[0x01, 2, 0, 0]),
        (two_zones(), v4(ICMP, &[8, 0, 0, 0]), &[0x01, 2, 0, 0]),
        (
            three_zones(),
            secret,
            &[0x45, 1, 0, 20, 0, 2, 0, 32, 0, 3, 0, 6, 0, 2, 0, 10],
        ),
    ];
    for (kind, datagram, map) in cases {
        let (mut alice, mut bob) = pair(&kind);
        let packet = seal(&mut alice, &datagram).unwrap();
        assert_eq!(packet[8..8 + map.len()], *map, "{datagram:02x?}");
        assert_eq!(open(&mut bob, &packet), Ok(datagram));
    }
}

/// Collects dropped packets with their peers.
#[derive(Default)]
struct Names(Vec<(DropReason, Option<PeerId>)>);

impl Sink for Names {
    fn transmit(&mut self, _: &mut Packet, _: Path) {}

    fn deliver(&mut self, _: &mut Packet) {}

    fn names_peers(&self) -> bool {
        true
    }

    fn dropped(&mut self, _: &mut Packet, _: DropReason) {
        unreachable!("a sink that names peers is told the peer")
    }

    fn dropped_of(&mut self, _: &mut Packet, why: DropReason, peer: Option<PeerId>) {
        self.0.push((why, peer));
    }
}

/// A log can then be searched for one peer.
#[test]
fn a_dropped_packet_is_reported_with_the_peer_of_its_sa_or_policy() {
    let (mut alice, mut bob) = pair(&two_zones());
    let sealed = seal(&mut alice, &segment()).unwrap();
    let mut damaged = sealed.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let mut unknown = sealed.clone();
    unknown[0] ^= 1;
    let mut names = Names::default();
    for packet in [&damaged, &sealed, &sealed, &unknown, &sealed[..7].to_vec()] {
        let mut packet = Packet::from_slice(packet);
        bob.open(std::slice::from_mut(&mut packet), &mut names, Instant::ZERO);
    }
    let known = |why| (why, Some(ALICE));
    let expected = [
        known(DropReason::BadIcvPayload),
        known(DropReason::Replayed),
        (DropReason::UnknownSpi, None),
        (DropReason::Runt, None),
    ];
    assert_eq!(names.0, expected);
    let mut names = Names::default();
    for mut worker in [only_protected(), Worker::new(Spd::default())] {
        let mut packet = Packet::from_slice(&segment());
        worker.seal(std::slice::from_mut(&mut packet), &mut names, Instant::ZERO);
    }
    let known = (DropReason::NoSa, Some(PEER));
    assert_eq!(names.0, [known, (DropReason::NoPolicy, None)]);
}
