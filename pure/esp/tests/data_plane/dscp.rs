//! The DSCP of the outer header (RFC 2983).

use crate::bench::*;
use crate::datagram::{UDP, segment, udp, v6};
use esp::{Packet, PeerSettings, Worker};
use model::{Dscp, Instant, PeerId};
use std::collections::BTreeMap;
use wire::ecn::Ecn;

/// A datagram of each IP version with this DSCP and ECT(1).
fn datagrams(dscp: u8) -> [Vec<u8>; 2] {
    let (mut four, mut six) = (segment(), v6(UDP, &udp(b"x")));
    let class = dscp << 2 | 1;
    wire::checksum::rewrite(&mut four, 0, [0x45, class], 10);
    (six[0], six[1]) = (0x60 | class >> 4, class << 4);
    [four, six]
}

fn classes(peer: PeerId, dscp: Dscp) -> BTreeMap<PeerId, PeerSettings> {
    let settings = PeerSettings {
        dscp,
        ..PeerSettings::default()
    };
    BTreeMap::from([(peer, settings)])
}

/// The outer traffic class of a datagram, which must arrive unchanged.
fn outside(alice: &mut Worker, bob: &mut Worker, datagram: &[u8]) -> u8 {
    let mut outcome = Outcome::default();
    let mut packet = [Packet::from_slice(datagram)];
    alice.seal(&mut packet, &mut outcome, Instant::ZERO);
    let opened = open_marked(bob, &outcome.sent[0], outcome.marks[0]);
    assert_eq!(opened.unwrap(), datagram);
    packet[0].class()
}

#[test]
fn without_a_word_nobody_outside_learns_the_class() {
    let (mut alice, mut bob) = pair(&two_zones());
    for dscp in 0..=Dscp::HIGHEST {
        for datagram in datagrams(dscp) {
            assert_eq!(outside(&mut alice, &mut bob, &datagram), Ecn::Ect1.bits());
        }
    }
}

#[test]
fn a_class_is_copied_or_fixed_beside_the_congestion_field() {
    for (kind, dscp) in [(EXPLICIT, 46), (two_zones(), 10), (eight_zones(), 63)] {
        let (mut alice, mut bob) = pair(&kind);
        for [policy, expected] in [[Dscp::Copied, Dscp::Fixed(dscp)], [Dscp::Fixed(7); 2]] {
            alice.set_peers(classes(BOB, policy));
            for datagram in datagrams(dscp) {
                let expected = expected.outside(0) << 2 | 1;
                assert_eq!(outside(&mut alice, &mut bob, &datagram), expected);
            }
        }
    }
}

/// Applies also to a peer whose tunnel is installed later, and after the setting is removed.
#[test]
fn every_peer_has_a_class_of_its_own_from_when_it_is_told() {
    let (mut alice, mut bob) = pair(&EXPLICIT);
    let [datagram, _] = datagrams(46);
    alice.set_peers(classes(PEER, Dscp::Copied));
    assert_eq!(outside(&mut alice, &mut bob, &datagram), 1);
    alice.set_peers(classes(BOB, Dscp::Copied));
    assert_eq!(outside(&mut alice, &mut bob, &datagram), 46 << 2 | 1);
    let sa = alices_sa(&EXPLICIT);
    alice.remove(sa.id);
    alice.install(sa).unwrap();
    let (_, mut bob) = pair(&EXPLICIT);
    assert_eq!(outside(&mut alice, &mut bob, &datagram), 46 << 2 | 1);
    alice.set_peers(BTreeMap::new());
    assert_eq!(outside(&mut alice, &mut bob, &datagram), 1);
}
