//! Zones whose suite is no AEAD: modifications in transit, and padding forged by a peer.

use crate::bench::*;
use crate::datagram::segment;
use crypto::{CbcHmac, Hmac, HmacAlgorithm};
use esp::{DropReason, Licensed, Scratch, Unusable};
use model::{
    CsaId, Grant, GrantHalf, Hmac as AgreedHmac, Sha2, Spi, ZoneId, ZoneSelector, ZoneSuite,
};
use std::time::Duration;

const BLOCKS: ZoneSuite = ZoneSuite::Aes128Cbc(AgreedHmac {
    hash: Sha2::Sha256,
    whole: false,
});

fn blocks_behind_an_aead() -> Kind {
    Kind::Zoned(vec![
        (ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
        (ZoneSelector::Rest, BLOCKS),
    ])
}

fn blocks_before_an_aead() -> Kind {
    Kind::Zoned(vec![
        (ZoneSelector::IpTransport, BLOCKS),
        (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
    ])
}

#[test]
fn no_octet_of_a_packet_of_any_suite_can_be_changed() {
    for kind in ZoneSuite::all().map(zones_of).chain([old_zones()]) {
        let (mut alice, mut bob) = pair(&kind);
        let packet = seal(&mut alice, &segment()).unwrap();
        for at in 4..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 1;
            assert!(open(&mut bob, &changed).is_err(), "{kind:?}, octet {at}");
        }
        for len in 0..packet.len() {
            assert!(
                open(&mut bob, &packet[..len]).is_err(),
                "{kind:?}, {len} octets"
            );
        }
        assert_eq!(open(&mut bob, &packet), Ok(segment()), "{kind:?}");
    }
}

/// RFC 4543: nothing is encrypted, everything is authenticated.
#[test]
fn a_zone_with_gmac_is_read_by_everybody_and_changed_by_nobody() {
    let (mut alice, mut bob) = pair(&old_zones());
    let packet = seal(&mut alice, &segment()).unwrap();
    let ip = 16..16 + 20;
    assert_eq!(packet[ip.clone()], segment()[..20]);
    assert!(!packet.windows(8).any(|part| part == &segment()[20..28]));
    let mut elsewhere = packet.clone();
    elsewhere[ip.end - 1] ^= 1;
    assert_eq!(
        open(&mut bob, &elsewhere),
        Err(DropReason::BadIcvDesignated)
    );
}

#[test]
fn two_packets_with_the_same_datagram_have_nothing_in_common_that_is_encrypted() {
    for suite in ZoneSuite::all().filter(|suite| suite.encrypts()) {
        let mut alice = pair(&zones_of(suite)).0;
        let [first, second] = [(); 2].map(|()| seal(&mut alice, &segment()).unwrap());
        assert_eq!(first.len(), second.len());
        let same = first[12..].chunks(8).zip(second[12..].chunks(8));
        assert!(same.clone().all(|(a, b)| a.len() < 8 || a != b), "{suite}");
    }
}

/// The body of a zone in blocks with an arbitrary text.
fn blocks(keymat: &crypto::Secret, aad: &[u8], text: &[u8]) -> Vec<u8> {
    let (key, mac_key) = keymat.expose().split_at(16);
    let mac = Hmac::new(HmacAlgorithm::Sha256, mac_key).unwrap();
    let cbc = CbcHmac::new(key, mac).unwrap();
    let (iv, mut text, mut icv) = (cbc.iv(1), text.to_vec(), [0; 16]);
    cbc.seal(&iv, aad, &mut text, &mut icv);
    [&iv[..], &text, &icv].concat()
}

/// A packet with the headers of `segment()` in the first zone and `text` in the payload zone.
fn with_payload(text: &[u8]) -> Vec<u8> {
    let map = [0x02, 1, 0, 52];
    let len = 8 + 4 + 53 + 16 + 16 + text.len() + 16;
    let mut aad = aad0(1, &map, len as u32);
    aad.push(1);
    let headers = [&segment()[..52], &[4]].concat();
    let first = encrypt(&key(TO_BOB, 1, ZoneSuite::Aes128Gcm16), 1, &aad, &headers);
    aad[20] = 2;
    aad.extend(&first);
    let payload = blocks(&key(TO_BOB, 2, BLOCKS), &aad, text);
    let header = [TO_BOB, 1].map(u32::to_be_bytes).concat();
    [&header[..], &map, &first, &payload].concat()
}

#[test]
fn padding_of_the_payload_that_is_not_the_prescribed_one_is_dropped() {
    let opened = |padding: &[u8]| {
        let text = [&segment()[52..], padding].concat();
        open(&mut pair(&blocks_behind_an_aead()).1, &with_payload(&text))
    };
    let rest = segment().len() - 52;
    let fill = (rest + 1).next_multiple_of(16) - rest - 1;
    let right: Vec<u8> = (1..=fill as u8).chain([fill as u8]).collect();
    assert_eq!(opened(&right), Ok(segment()));
    let mut zeros = vec![0; fill + 1];
    zeros[fill] = fill as u8;
    assert_eq!(opened(&zeros), Err(DropReason::BadPadding));
    let mut short = right.clone();
    short[fill] -= 1;
    assert_eq!(opened(&short), Err(DropReason::BadPadding));
    // More padding than the text has, and a block more than necessary.
    let mut endless = right.clone();
    endless[fill] = 255;
    assert_eq!(opened(&endless), Err(DropReason::BadPadding));
    let more = fill as u8 + 16;
    let longer: Vec<u8> = (1..=more).chain([more]).collect();
    assert_eq!(opened(&longer), Err(DropReason::BadPadding));
}

/// The zone's length in the map permits only one padding.
#[test]
fn padding_of_the_first_zone_that_is_not_the_prescribed_one_is_dropped() {
    let opened = |padding: &[u8]| {
        let map = [0x02, 1, 0, 52];
        let (headers, rest) = (segment(), segment());
        let text = [&headers[..52], &[4], padding].concat();
        let rest = &rest[52..];
        let len = 8 + 4 + 16 + text.len() + 16 + rest.len() + 16;
        let mut aad = aad0(1, &map, len as u32);
        aad.push(1);
        let first = blocks(&key(TO_BOB, 1, BLOCKS), &aad, &text);
        aad[20] = 2;
        aad.extend(&first);
        let payload = encrypt(&key(TO_BOB, 2, ZoneSuite::Aes128Gcm16), 1, &aad, rest);
        let header = [TO_BOB, 1].map(u32::to_be_bytes).concat();
        let packet = [&header[..], &map, &first, &payload].concat();
        open(&mut pair(&blocks_before_an_aead()).1, &packet)
    };
    let right: Vec<u8> = (1..=10).chain([10]).collect();
    assert_eq!(opened(&right), Ok(segment()));
    for (at, octet) in [(0, 0), (9, 9), (10, 9), (10, 11), (10, 255)] {
        let mut wrong = right.clone();
        wrong[at] = octet;
        assert_eq!(opened(&wrong), Err(DropReason::BadPadding), "{at}: {octet}");
    }
}

/// In the order of DESIGN section 3: encryption key, HMAC key, salt.
#[test]
fn keys_of_another_length_than_the_suites_are_refused() {
    for suite in ZoneSuite::all() {
        for change in [-1, 1] {
            let octets = suite.keymat_len().saturating_add_signed(change);
            let key = crypto::Secret::new(vec![1; octets]);
            let half = |spi| GrantHalf {
                spi: Spi(spi),
                zones: vec![(ZoneId(1), suite, key.clone())],
                overlay: None,
                injection: None,
            };
            let refused = Licensed::new().install(Grant {
                map: model::MapKind::Changeable,
                csa: CsaId(1),
                line: CsaId(1),
                grant: 1,
                payload_zone: ZoneId(2),
                suites: vec![suite; 2],
                window: 4096,
                lifetime: Duration::from_secs(60),
                onward: None,
                from_gateway: half(TO_ALICE),
                to_gateway: half(TO_BOB),
            });
            assert_eq!(
                refused,
                Err(Unusable::KeyLength),
                "{suite}, {octets} octets"
            );
        }
    }
}

/// For all combinations of the node's zones and the zone with padding.
// Answers: licence-padding
#[test]
fn a_node_is_told_by_the_ip_header_how_long_a_padded_payload_is() {
    for kind in [
        blocks_behind_an_aead(),
        blocks_before_an_aead(),
        old_zones(),
    ] {
        let Kind::Zoned(zones) = &kind else {
            continue;
        };
        let licensed: Vec<u8> = (1..zones.len() as u8).collect();
        let mut node = Licensed::new();
        node.install(crate::licensed::grant(&kind, &licensed))
            .unwrap();
        let packet = seal(&mut pair(&kind).0, &segment()).unwrap();
        let mut scratch = Scratch::new();
        let view = node.open(&packet, &mut scratch).unwrap();
        assert_eq!(view.datagram_len(), segment().len());
        assert_eq!(view.payload_len(), segment().len() - 52);
        let headers = view.headers().unwrap();
        assert_eq!(headers.ip, &segment()[..20]);
    }
}
