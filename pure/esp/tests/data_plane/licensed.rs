//! The view of a licensed node, and its limits.

use crate::bench::*;
use crate::datagram::{ICMP, TCP, segment, segment_with_secret, tcp, v4};
use crypto::Secret;
use esp::{Direction, Licensed, NotOpened, Scratch, Unusable};
use model::{CsaId, Grant, GrantHalf, Spi, ZoneId};
use std::time::Duration;
use wire::tcp::Header;
use wire::zoned::BadMap;

pub fn grant(kind: &Kind, zones: &[u8]) -> Grant<Secret> {
    let Kind::Zoned(agreed) = kind else {
        panic!("plain SAs have nothing to license")
    };
    let suite = |zone: u8| agreed[usize::from(zone) - 1].1;
    let half = |spi: u32| GrantHalf {
        spi: Spi(spi),
        zones: zones
            .iter()
            .map(|zone| (ZoneId(*zone), suite(*zone), key(spi, *zone, suite(*zone))))
            .collect(),
        overlay: None,
        injection: None,
    };
    Grant {
        map: model::MapKind::Changeable,
        csa: CsaId(7),
        line: CsaId(7),
        grant: 1,
        payload_zone: ZoneId(agreed.len() as u8),
        suites: agreed.iter().map(|(_, suite)| *suite).collect(),
        window: 5000,
        lifetime: Duration::from_secs(60),
        onward: None,
        from_gateway: half(TO_ALICE),
        to_gateway: half(TO_BOB),
    }
}

fn node(kind: &Kind, zones: &[u8]) -> Licensed {
    let mut node = Licensed::new();
    node.install(grant(kind, zones)).unwrap();
    node
}

// Answers: licence-headers
#[test]
fn the_headers_are_seen_and_the_payload_is_a_length() {
    let (mut alice, mut bob) = pair(&two_zones());
    let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
    let packet = seal(&mut alice, &segment()).unwrap();
    let view = node.open(&packet, &mut scratch).unwrap();
    assert_eq!(
        (view.csa(), view.seq(), view.spi()),
        (CsaId(7), 1, Spi(TO_BOB))
    );
    assert_eq!(view.direction(), Direction::ToGateway);
    assert_eq!(
        (view.fresh(), view.highest(), view.window()),
        (true, 1, 5000)
    );
    let headers = view.headers().unwrap();
    assert_eq!(headers.ip, &segment()[..20]);
    assert_eq!(Some(headers.flow), wire::ip::flow(&segment()));
    let tcp = Header::parse(headers.transport).unwrap();
    assert_eq!((tcp.source_port, tcp.header_len), (8080, 32));
    assert_eq!(view.payload_len(), 40);
    assert_eq!(view.datagram_len(), segment().len());
    assert_eq!((view.len_of(ZoneId(1)), view.len_of(ZoneId(2))), (52, 40));
    assert_eq!(view.zone(ZoneId(2)), None);
    // The checksum would reveal 16 bits about the payload.
    assert_eq!(view.zone(ZoneId(1)).unwrap()[36..38], [0, 0]);
    assert_eq!(open(&mut bob, &packet), Ok(segment()));
}

/// CVE-2026-43284: the node forwards the packet that it reads, and others may share the buffer.
// Weakness: 72
#[test]
fn a_packet_is_opened_in_a_copy_whatever_comes_of_it() {
    let (mut alice, mut bob) = pair(&two_zones());
    let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
    let genuine = seal(&mut alice, &segment()).unwrap();
    let shared: std::sync::Arc<[u8]> = genuine.clone().into();
    let reader = std::sync::Arc::clone(&shared);
    for _ in 0..2 {
        let view = node.open(&shared, &mut scratch).unwrap();
        assert_eq!(view.headers().unwrap().ip, &segment()[..20]);
        assert_eq!(*reader, *genuine);
    }
    for at in 0..genuine.len() {
        let mut damaged = genuine.clone();
        damaged[at] ^= 1;
        let before = damaged.clone();
        // Damage behind the node's zone does not concern it.
        let _ = node.open(&damaged, &mut scratch).map(drop);
        assert_eq!(damaged, before, "octet {at}");
    }
    assert_eq!(open(&mut bob, &reader), Ok(segment()));
}

#[test]
fn of_a_fixed_map_a_node_knows_without_reading_it() {
    let (alice, bob) = fixed_sas(&[(1, 52)]);
    let map = alice.agreement.as_ref().unwrap().map.clone();
    let (mut alice, mut bob) = (endpoint(alice), endpoint(bob));
    let mut node = Licensed::new();
    let unmapped = grant(&two_zones(), &[1]);
    node.install(Grant {
        map,
        ..unmapped.clone()
    })
    .unwrap();
    let mut scratch = Scratch::new();
    let packet = seal(&mut alice, &segment()).unwrap();
    let view = node.open(&packet, &mut scratch).unwrap();
    assert_eq!(view.headers().unwrap().ip, &segment()[..20]);
    assert_eq!((view.len_of(ZoneId(1)), view.len_of(ZoneId(2))), (52, 40));
    assert_eq!(open(&mut bob, &packet), Ok(segment()));
    let opaque = seal(&mut alice, &v4(ICMP, &[0; 40])).unwrap();
    let opened = node.open(&opaque, &mut scratch).map(drop);
    assert_eq!(opened, Err(NotOpened::NoGrant));
    // With the same keys but another map the node opens nothing.
    node.install(unmapped).unwrap();
    assert!(node.open(&packet, &mut scratch).is_err());
}

// Weakness: S8
#[test]
fn the_other_direction_is_told_apart() {
    let (_, mut bob) = pair(&two_zones());
    let mut answer = segment();
    let (source, destination) = ([10, 8, 0, 1], [10, 1, 0, 1]);
    answer[12..16].copy_from_slice(&source);
    answer[16..20].copy_from_slice(&destination);
    let packet = seal(&mut bob, &answer).unwrap();
    let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
    let view = node.open(&packet, &mut scratch).unwrap();
    assert_eq!(view.direction(), Direction::FromGateway);
}

// Answers: licence-hidden-header
#[test]
fn a_secret_option_looks_like_no_operation() {
    let packet = seal(&mut pair(&two_zones()).0, &segment_with_secret()).unwrap();
    let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
    let view = node.open(&packet, &mut scratch).unwrap();
    let headers = view.headers().unwrap();
    let mut expected = segment_with_secret()[20..68].to_vec();
    expected[16..18].fill(0);
    expected[32..38].fill(1);
    assert_eq!(headers.transport, expected);
    assert_eq!(view.payload_len(), 3);
    let cookie = [0xc0, 0x0c, 0x1e, 0x42];
    let zone = view.zone(ZoneId(1)).unwrap();
    assert!(!zone.windows(4).any(|octets| octets == cookie));
}

#[test]
fn a_secret_option_at_the_end_of_the_header_counts_as_header_not_as_payload() {
    let datagram = v4(TCP, &tcp(&[1, 1, 34, 6, 1, 2, 3, 4], b"GET"));
    let packet = seal(&mut pair(&two_zones()).0, &datagram).unwrap();
    assert_eq!(packet[8..12], [0x42, 1, 0, 42]);
    let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
    let view = node.open(&packet, &mut scratch).unwrap();
    let headers = view.headers().unwrap();
    assert_eq!(headers.transport[20..], [1; 8]);
    assert_eq!(view.payload_len(), 3);
}

// Answers: licence-smaller
#[test]
fn the_ip_header_alone_shows_no_ports() {
    let packet = seal(&mut pair(&three_zones()).0, &segment()).unwrap();
    let mut scratch = Scratch::new();
    let mut ip_only = node(&three_zones(), &[1]);
    let view = ip_only.open(&packet, &mut scratch).unwrap();
    assert_eq!(view.zone(ZoneId(1)), Some(&segment()[..20]));
    assert_eq!((view.zone(ZoneId(2)), view.headers()), (None, None));
    assert_eq!(view.payload_len(), segment().len());
    let mut both = node(&three_zones(), &[1, 2]);
    let view = both.open(&packet, &mut scratch).unwrap();
    assert_eq!(view.zone(ZoneId(2)).unwrap().len(), 32);
    assert_eq!(view.payload_len(), 40);
}

#[test]
fn a_payload_licensed_by_name_is_seen() {
    let (mut node, mut scratch) = (node(&two_zones(), &[1, 2]), Scratch::new());
    let (mut alice, _) = pair(&two_zones());
    let packet = seal(&mut alice, &segment()).unwrap();
    let view = node.open(&packet, &mut scratch).unwrap();
    assert_eq!(view.zone(ZoneId(2)), Some(&segment()[52..]));
    let icmp = v4(ICMP, &[8, 0, 0, 0]);
    let opaque = seal(&mut alice, &icmp).unwrap();
    let view = node.open(&opaque, &mut scratch).unwrap();
    assert_eq!(view.zone(ZoneId(2)), Some(&icmp[..]));
    assert_eq!(view.headers(), None);
}

// Answers: licence-opaque
#[test]
fn an_opaque_packet_is_not_opened() {
    let packet = seal(&mut pair(&two_zones()).0, &v4(ICMP, &[8, 0, 0, 0])).unwrap();
    let opened = node(&two_zones(), &[1])
        .open(&packet, &mut Scratch::new())
        .err();
    assert_eq!(opened, Some(NotOpened::Opaque));
}

/// Its licence is revoked, but its keys remain valid until the rekey.
#[test]
fn an_sa_that_is_made_opaque_shows_a_node_nothing_more_and_its_peer_everything() {
    for kind in [two_zones(), mixed_zones(), three_zones(), eight_zones()] {
        let (mut alice, mut bob) = pair(&kind);
        alice.make_opaque(model::ChildSaId(1));
        for _ in 0..3 {
            let packet = seal(&mut alice, &segment()).unwrap();
            assert_eq!(open(&mut bob, &packet), Ok(segment()));
            if let Kind::Zoned(_) = kind {
                let opened = node(&kind, &[1]).open(&packet, &mut Scratch::new()).err();
                assert_eq!(opened, Some(NotOpened::Opaque));
            }
        }
    }
}

// Weakness: S9
// Answers: duration-recorded
#[test]
fn a_duplicate_is_seen_but_is_not_fresh() {
    let (mut alice, _) = pair(&two_zones());
    let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
    let packets = [(); 2].map(|()| seal(&mut alice, &segment()).unwrap());
    for (packet, fresh) in [(1, true), (1, false), (0, true), (0, false)] {
        let view = node.open(&packets[packet], &mut scratch).unwrap();
        assert_eq!((view.fresh(), view.highest()), (fresh, 2));
    }
}

// Weakness: S9
#[test]
fn a_renewed_grant_makes_no_old_packet_fresh_again() {
    let (mut alice, _) = pair(&two_zones());
    let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
    let packet = seal(&mut alice, &segment()).unwrap();
    assert!(node.open(&packet, &mut scratch).unwrap().fresh());
    let renewed = grant(&two_zones(), &[1]);
    node.install(Grant {
        grant: 2,
        ..renewed
    })
    .unwrap();
    assert!(!node.open(&packet, &mut scratch).unwrap().fresh());
    let next = seal(&mut alice, &segment()).unwrap();
    assert!(node.open(&next, &mut scratch).unwrap().fresh());
}

#[test]
fn a_forged_packet_moves_no_window_of_the_node() {
    let (mut alice, _) = pair(&two_zones());
    let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
    let packet = seal(&mut alice, &segment()).unwrap();
    let mut forged = packet.clone();
    forged[4] = 0xff;
    let bad_icv = NotOpened::BadIcv(ZoneId(1));
    assert_eq!(node.open(&forged, &mut scratch).err(), Some(bad_icv));
    let view = node.open(&packet, &mut scratch).unwrap();
    assert_eq!((view.fresh(), view.highest()), (true, 1));
}

#[test]
fn what_cannot_be_opened_says_why() {
    let packet = seal(&mut pair(&two_zones()).0, &segment()).unwrap();
    let (mut node, mut scratch) = (node(&two_zones(), &[1]), Scratch::new());
    let mut bad_map = packet.clone();
    bad_map[8] |= 0x10;
    let mut stranger = packet.clone();
    stranger[0] ^= 1;
    let cases = [
        (&packet[..7], NotOpened::Runt),
        (&packet[..20], NotOpened::BadMap(BadMap::Bodies)),
        (&bad_map, NotOpened::BadMap(BadMap::Reserved)),
        (&stranger, NotOpened::NoGrant),
    ];
    for (packet, why) in cases {
        assert_eq!(node.open(packet, &mut scratch).err(), Some(why));
    }
}

#[test]
fn a_revoked_grant_opens_nothing() {
    let packet = seal(&mut pair(&two_zones()).0, &segment()).unwrap();
    let mut node = node(&two_zones(), &[1]);
    node.revoke(CsaId(7));
    let opened = node.open(&packet, &mut Scratch::new()).err();
    assert_eq!(opened, Some(NotOpened::NoGrant));
}

// Weakness: S7
#[test]
fn gateways_that_chose_the_same_spi_are_told_apart_by_the_icv() {
    let packet = seal(&mut pair(&two_zones()).0, &segment()).unwrap();
    let mut node = Licensed::new();
    for csa in 1..=4 {
        let mut grant = grant(&two_zones(), &[1]);
        grant.csa = CsaId(csa);
        if csa != 3 {
            for half in [&mut grant.from_gateway, &mut grant.to_gateway] {
                half.zones[0].2 = Secret::new(vec![csa as u8; 20]);
            }
        }
        node.install(grant).unwrap();
    }
    let mut scratch = Scratch::new();
    assert_eq!(node.open(&packet, &mut scratch).unwrap().csa(), CsaId(3));
}

#[test]
fn a_renewal_that_is_of_no_use_leaves_what_it_was_to_renew() {
    let packet = seal(&mut pair(&two_zones()).0, &segment()).unwrap();
    let mut node = node(&two_zones(), &[1]);
    let mut short = grant(&two_zones(), &[1]);
    short.to_gateway.zones[0].2 = Secret::new(vec![0; 16]);
    assert_eq!(node.install(short), Err(Unusable::KeyLength));
    assert!(node.open(&packet, &mut Scratch::new()).is_ok());
}

/// Both have one outer address. The gateway's packets go to different ports of it, which no node on
/// the path looks at.
#[test]
fn two_mobile_nodes_behind_one_nat_that_chose_the_same_spi_are_told_apart() {
    const OTHER: u32 = 0x55;
    let kind = two_zones();
    let mut ends = [pair(&kind), {
        let (mut alice, mut bob) = (alices_sa(&kind), bobs_sa(&kind));
        for sa in [&mut alice, &mut bob] {
            for part in [&mut sa.inbound, &mut sa.outbound] {
                let spi = part.spi;
                *part = half(spi.0 ^ OTHER, &kind);
                part.spi = spi;
            }
        }
        (endpoint(alice), endpoint(bob))
    }];
    let mut second = grant(&kind, &[1]);
    (second.csa, second.line) = (CsaId(8), CsaId(8));
    for part in [&mut second.from_gateway, &mut second.to_gateway] {
        for (zone, suite, secret) in &mut part.zones {
            *secret = key(part.spi.0 ^ OTHER, zone.0, *suite);
        }
    }
    let (mut node, mut scratch) = (node(&kind, &[1]), Scratch::new());
    node.install(second).unwrap();
    let mut answer = segment();
    answer[12..20].rotate_left(4);
    for _ in 0..3 {
        for ((alice, bob), csa) in ends.iter_mut().zip([CsaId(7), CsaId(8)]) {
            for packet in [seal(alice, &segment()), seal(bob, &answer)] {
                let view = node.open(&packet.unwrap(), &mut scratch).unwrap();
                assert_eq!(view.csa(), csa);
            }
        }
    }
}

#[test]
fn a_grant_against_the_rules_is_refused() {
    let kind = two_zones();
    let mut node = Licensed::new();
    assert_eq!(
        node.install(grant(&kind, &[])),
        Err(Unusable::NoDesignatedZone)
    );
    assert_eq!(
        node.install(grant(&kind, &[2])),
        Err(Unusable::NoDesignatedZone)
    );
    let mut wrong_payload = grant(&kind, &[1]);
    wrong_payload.payload_zone = ZoneId(3);
    assert_eq!(node.install(wrong_payload), Err(Unusable::Zones));
    let mut unknown_zone = grant(&kind, &[1]);
    unknown_zone.to_gateway.zones[0].0 = ZoneId(9);
    assert_eq!(node.install(unknown_zone), Err(Unusable::Zones));
    let mut short_key = grant(&kind, &[1]);
    short_key.to_gateway.zones[0].2 = Secret::new(vec![0; 16]);
    assert_eq!(node.install(short_key), Err(Unusable::KeyLength));
}
