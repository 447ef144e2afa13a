//! Zones in transport and BEET mode: they begin behind the IP header, which is in no packet.

use crate::bench::*;
use crate::datagram::{ICMP, TCP, UDP, segment, segment_with_secret, tcp, udp, v4, v4_with, v6};
use crate::identity::{datagram, grant, header_octets, kind};
use crate::licensed;
use crate::mode::{BOTH, V4, V6, moded, payload};
use crypto::Secret;
use esp::{Direction, DropReason, Licensed, NotWritten, Scratch, Worker, grant_key};
use model::{ChildSa, Grant, Hmac, MapKind, Mode, Sha2, Sizes, Span, ZoneId};
use model::{ZoneSelector, ZoneSuite};
use proptest::prelude::*;
use wire::ip::Header;
use wire::zoned::mark;

/// Transport header and rest: zones for a mode without an IP header.
fn bare_zones() -> Kind {
    Kind::Zoned(vec![
        (ZoneSelector::Transport, ZoneSuite::Aes128Gcm16),
        (ZoneSelector::Rest, ZoneSuite::Aes256Gcm16),
    ])
}

fn ends(mode: Mode, kind: &Kind, addresses: [&str; 2]) -> [Worker; 2] {
    moded(mode, kind, addresses).map(endpoint)
}

/// The addresses of the tests' datagrams.
fn addresses(datagram: &[u8]) -> [&'static str; 2] {
    if datagram[0] >> 4 == 4 { V4 } else { V6 }
}

/// Compares the parts of a datagram that these modes preserve: the octets behind the header, and
/// the addresses.
fn is_same(sent: &[u8], came: &[u8]) -> bool {
    let (sent, came) = (Header::parse(sent).unwrap(), Header::parse(came).unwrap());
    (sent.flow(), sent.payload()) == (came.flow(), came.payload()) && came.checksum_is_right()
}

fn node(grant: Grant<Secret>) -> Licensed {
    let mut node = Licensed::new();
    node.install(grant).unwrap();
    node
}

fn reader(kind: &Kind) -> Licensed {
    node(licensed::grant(kind, &[1]))
}

fn datagrams() -> Vec<Vec<u8>> {
    let mut no_checksum = v4(UDP, &udp(b"hello"));
    no_checksum[26..28].fill(0);
    let mut wrong = v4(TCP, &tcp(&[], b"hello"));
    wrong[36] ^= 1;
    vec![
        segment(),
        segment_with_secret(),
        v4(UDP, &udp(b"hello")),
        v4(UDP, &udp(&[7; 1400])),
        v4(ICMP, &[8, 0, 0, 0, 0, 1, 0, 1]),
        v6(TCP, &tcp(&[], b"hello")),
        v6(UDP, &udp(b"hello")),
        no_checksum,
        wrong,
    ]
}

/// A wrong checksum arrives equally wrong, and a missing one stays missing.
#[test]
fn what_follows_the_header_arrives_with_its_checksum_under_a_header_of_the_same_addresses() {
    let kinds = [two_zones(), bare_zones(), eight_zones(), old_zones()];
    for (mode, kind) in BOTH
        .into_iter()
        .flat_map(|mode| kinds.iter().map(move |kind| (mode, kind)))
    {
        for datagram in datagrams() {
            let [mut alice, mut bob] = ends(mode, kind, addresses(&datagram));
            let sealed = seal(&mut alice, &datagram).unwrap();
            let opened = open(&mut bob, &sealed).unwrap();
            assert!(is_same(&datagram, &opened), "{kind:?} {opened:02x?}");
        }
    }
}

#[test]
fn the_ip_header_is_in_no_zone() {
    let tunnel = seal(&mut pair(&two_zones()).0, &segment()).unwrap();
    for mode in BOTH {
        for kind in [two_zones(), bare_zones()] {
            let [mut alice, _] = ends(mode, &kind, V4);
            let sealed = seal(&mut alice, &segment()).unwrap();
            assert_eq!(tunnel.len() - sealed.len(), 20);
            assert_eq!(sealed[8..12], [0x42, 1, 0, 32], "TCP with timestamps");
        }
    }
}

/// The first zone determines all others. If it is not in the packet, the datagram is opaque.
#[test]
fn a_layout_that_begins_with_the_ip_header_hides_everything() {
    let [mut alice, mut bob] = ends(Mode::Beet, &three_zones(), V4);
    let sealed = seal(&mut alice, &segment()).unwrap();
    assert_eq!(sealed[8..12], [1, 3, 0, 0]);
    assert!(is_same(&segment(), &open(&mut bob, &sealed).unwrap()));
    assert_eq!(alice.counters().opaque, 1);
}

#[test]
fn octets_are_counted_from_the_front_of_what_is_sealed() {
    let kind = Kind::Zoned(vec![
        (
            ZoneSelector::Octets(Span::new(0, 3).unwrap()),
            ZoneSuite::Aes128Gcm16,
        ),
        (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
    ]);
    let [mut alice, _] = ends(Mode::Transport, &kind, V4);
    let sealed = seal(&mut alice, &segment()).unwrap();
    assert_eq!(sealed[8..12], [0x42, 1, 0, 4]);
    let (mut node, mut scratch) = (reader(&kind), Scratch::new());
    let view = node.open(&sealed, &mut scratch).unwrap();
    assert_eq!(view.zone(ZoneId(1)), Some(&segment()[20..24]), "the ports");
    assert_eq!(view.headers(), None);
}

// Answers: licence-modes
#[test]
fn a_node_sees_the_transport_header_and_no_address() {
    for (mode, kind) in BOTH.into_iter().zip([two_zones(), bare_zones()]) {
        let [mut alice, mut bob] = ends(mode, &kind, V4);
        let (mut node, mut scratch) = (reader(&kind), Scratch::new());
        let sealed = seal(&mut alice, &segment()).unwrap();
        let view = node.open(&sealed, &mut scratch).unwrap();
        let headers = view.headers().unwrap();
        let mut expected = segment()[20..52].to_vec();
        expected[16..18].fill(0);
        assert_eq!(headers.transport, expected);
        assert!(headers.ip.is_empty());
        assert_eq!((view.payload_len(), view.datagram_len()), (40, 72));
        let flow = headers.flow;
        assert!(flow.source.is_unspecified() && flow.destination.is_unspecified());
        assert_eq!((flow.source_port, flow.protocol), (8080, TCP));
        assert!(open(&mut bob, &sealed).is_ok());
    }
}

/// Even if both ends use the same port: without addresses nothing else distinguishes them.
#[test]
fn a_node_tells_both_ends_of_a_connection_apart() {
    let mut same = segment();
    same.copy_within(20..22, 22);
    same[36..38].fill(0);
    assert!(wire::checksum::restore(&mut same));
    let mut answer = same.clone();
    answer.copy_within(12..16, 16);
    answer[12..20].copy_from_slice(&[10, 8, 0, 1, 10, 1, 0, 1]);
    let [mut alice, mut bob] = ends(Mode::Beet, &bare_zones(), V4);
    let mut node = reader(&bare_zones());
    let mut seen = |worker: &mut Worker, datagram: &[u8]| {
        let sealed = seal(worker, datagram).unwrap();
        let mut scratch = Scratch::new();
        let view = node.open(&sealed, &mut scratch).unwrap();
        (view.direction(), view.headers().unwrap().flow)
    };
    let (to, from) = (seen(&mut alice, &same), seen(&mut bob, &answer));
    assert_eq!(
        (to.0, from.0),
        (Direction::ToGateway, Direction::FromGateway)
    );
    assert_eq!(to.1.source_port, to.1.destination_port);
    assert_ne!(to.1.source, to.1.destination);
    assert_eq!(
        (to.1.source, to.1.destination),
        (from.1.destination, from.1.source)
    );
}

#[test]
fn a_secret_option_looks_like_no_operation() {
    let [mut alice, _] = ends(Mode::Transport, &bare_zones(), V4);
    let sealed = seal(&mut alice, &segment_with_secret()).unwrap();
    let (mut node, mut scratch) = (reader(&bare_zones()), Scratch::new());
    let view = node.open(&sealed, &mut scratch).unwrap();
    let whole = segment_with_secret();
    let transport = view.headers().unwrap().transport;
    assert_eq!(transport.len(), 48);
    let hidden: Vec<_> = (20..48)
        .filter(|i| transport[*i] != whole[20 + i])
        .collect();
    assert!(!hidden.is_empty() && hidden.iter().all(|i| transport[*i] == 1));
}

/// In tunnel mode the IP header contains the length (RFC 4303 section 2.7 has the same problem with
/// padding).
// Answers: licence-modes
#[test]
fn of_a_payload_in_blocks_a_node_knows_the_length_if_udp_says_it() {
    let blocks = ZoneSuite::Aes128Cbc(Hmac {
        hash: Sha2::Sha256,
        whole: false,
    });
    let kind = Kind::Zoned(vec![
        (ZoneSelector::Transport, ZoneSuite::Aes128Gcm16),
        (ZoneSelector::Rest, blocks),
    ]);
    let [mut alice, mut bob] = ends(Mode::Beet, &kind, V4);
    let (mut node, mut scratch) = (reader(&kind), Scratch::new());
    for (datagram, seen) in [(v4(UDP, &udp(&[7; 41])), Some(41)), (segment(), None)] {
        let sealed = seal(&mut alice, &datagram).unwrap();
        let view = node.open(&sealed, &mut scratch).unwrap();
        let len = view.headers().map(|_| view.payload_len());
        assert_eq!(len, seen);
        assert!(is_same(&datagram, &open(&mut bob, &sealed).unwrap()));
    }
}

/// One map serves both IP versions, because it does not include the IP header.
#[test]
fn a_fixed_map_fits_the_transport_header_and_the_rest_goes_beside() {
    for (addresses, datagram) in [
        (V4, segment()),
        (
            V6,
            v6(TCP, &tcp(&[1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9], b"x")),
        ),
    ] {
        let [alice, bob] = moded(Mode::Transport, &bare_zones(), addresses);
        let (alice, bob) = fix(alice, bob, &[(1, 32)]);
        let (mut alice, mut bob) = (endpoint(alice), endpoint(bob));
        let spi = |packet: &[u8]| u32::from_be_bytes(packet[..4].try_into().unwrap());
        let sealed = seal(&mut alice, &datagram).unwrap();
        assert_eq!(spi(&sealed), TO_BOB);
        assert!(is_same(&datagram, &open(&mut bob, &sealed).unwrap()));
        let mut node = node(Grant {
            map: MapKind::Fixed(vec![model::Run {
                zone: ZoneId(1),
                len: 32,
            }]),
            ..licensed::grant(&bare_zones(), &[1])
        });
        let mut scratch = Scratch::new();
        let view = node.open(&sealed, &mut scratch).unwrap();
        assert_eq!(view.headers().unwrap().transport.len(), 32);
        let other = match datagram[0] >> 4 {
            4 => v4(UDP, &udp(b"x")),
            _ => v6(UDP, &udp(b"x")),
        };
        let sealed = seal(&mut alice, &other).unwrap();
        assert_eq!(spi(&sealed), OPAQUE_TO_BOB);
        assert_eq!(sealed.len(), payload(&other).len() + 8 + 1 + 16);
        assert!(is_same(&other, &open(&mut bob, &sealed).unwrap()));
    }
}

#[test]
fn with_a_fixed_map_fragments_and_options_are_dropped_too_and_use_no_number() {
    let [alice, bob] = moded(Mode::Transport, &bare_zones(), V4);
    let (alice, _) = fix(alice, bob, &[(1, 32)]);
    let mut alice = endpoint(alice);
    let fragment = v4_with(&[], 0x2000, UDP, &[7; 64]);
    assert_eq!(seal(&mut alice, &fragment), Err(DropReason::Fragment));
    let options = v4_with(&[1, 1, 1, 1], 0x4000, UDP, &udp(b"x"));
    assert_eq!(seal(&mut alice, &options), Err(DropReason::HeaderOptions));
    for datagram in [v4(ICMP, &[0; 8]), segment()] {
        let sealed = seal(&mut alice, &datagram).unwrap();
        assert_eq!(sealed[4..8], [0, 0, 0, 1]);
    }
}

#[test]
fn fragments_and_options_are_dropped() {
    for mode in BOTH {
        let [mut alice, mut bob] = ends(mode, &bare_zones(), V4);
        let fragment = v4_with(&[], 0x2000, UDP, &[7; 64]);
        assert_eq!(seal(&mut alice, &fragment), Err(DropReason::Fragment));
        let options = v4_with(&[1, 1, 1, 1], 0x4000, UDP, &udp(b"x"));
        assert_eq!(seal(&mut alice, &options), Err(DropReason::HeaderOptions));
        // A peer with the keys sets these next headers itself.
        for (seq, next_header, why) in [
            (1, 44, DropReason::Fragment),
            (2, 0, DropReason::HeaderOptions),
            (3, 43, DropReason::HeaderOptions),
            (4, 94, DropReason::HeaderOptions),
        ] {
            let text = [&segment()[20..52], &[next_header]].concat();
            let packet = from_alice(seq, [0x42, 1, 0, 32], &[&text, b"data"]);
            assert_eq!(open(&mut bob, &packet), Err(why));
        }
    }
}

/// A packet of [`bare_zones`] from a peer that breaks the rules.
fn from_alice(seq: u32, map: [u8; 4], texts: &[&[u8]]) -> Vec<u8> {
    let key = |zone, suite| (zone, key(TO_BOB, zone, suite));
    let keys = [
        key(1, ZoneSuite::Aes128Gcm16),
        key(2, ZoneSuite::Aes256Gcm16),
    ];
    zoned_packet(&keys, seq, &map, texts)
}

#[test]
fn a_packet_written_by_the_rules_opens() {
    let [_, mut bob] = ends(Mode::Beet, &bare_zones(), V4);
    let mut header = segment()[20..52].to_vec();
    header[16..18].fill(0);
    header.push(TCP);
    let packet = from_alice(1, [0x42, 1, 0, 32], &[&header, &segment()[52..]]);
    let opened = open(&mut bob, &packet).unwrap();
    assert!(is_same(&segment(), &opened));
}

/// Without keys an attacker can change neither the next header nor any other octet.
#[test]
fn whatever_octet_is_changed_the_packet_is_dropped_and_the_next_header_is_one_of_them() {
    for mode in BOTH {
        let [mut alice, mut bob] = ends(mode, &bare_zones(), V4);
        let sealed = seal(&mut alice, &segment()).unwrap();
        for at in 4..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(&mut bob, &changed).is_err(), "octet {at}");
        }
        let next_header = 12 + 32;
        let mut changed = sealed.clone();
        changed[next_header] ^= TCP ^ UDP;
        assert_eq!(open(&mut bob, &changed), Err(DropReason::BadIcvDesignated));
        assert!(open(&mut bob, &sealed).is_ok());
    }
}

/// The licensed node has the key of the first zone, so it can seal another protocol there. The
/// payload's ICV covers that body.
// Refuses: zones-in-modes
#[test]
fn a_node_that_seals_another_protocol_with_its_key_is_found_out_by_the_payloads_icv() {
    let [mut alice, mut bob] = ends(Mode::Transport, &bare_zones(), V4);
    let sealed = seal(&mut alice, &segment()).unwrap();
    let mut header = segment()[20..52].to_vec();
    header[16..18].fill(0);
    header.push(UDP);
    let mut aad = aad0(1, &sealed[8..12], sealed.len() as u32);
    aad.push(1);
    let key = key(TO_BOB, 1, ZoneSuite::Aes128Gcm16);
    let body = encrypt(&key, 1, &aad, &header);
    let mut changed = sealed.clone();
    changed[12..12 + body.len()].copy_from_slice(&body);
    // Another reader accepts it.
    let (mut reader, mut scratch) = (reader(&bare_zones()), Scratch::new());
    let view = reader.open(&changed, &mut scratch).unwrap();
    assert_eq!(view.zone(ZoneId(1)).unwrap().len(), 32);
    assert_eq!(open(&mut bob, &changed), Err(DropReason::BadIcvPayload));
    assert!(open(&mut bob, &sealed).is_ok());
}

/// SAs never share keys. Even if they did, as here, the zones of one mode do not open in another.
// Refuses: zones-in-modes
#[test]
fn zones_of_a_tunnel_and_of_another_mode_are_none_of_each_other() {
    for mode in BOTH {
        let [mut alice, mut bob] = ends(mode, &two_zones(), V4);
        let (mut near, mut far) = pair(&two_zones());
        let (bare, whole) = (
            seal(&mut alice, &segment()).unwrap(),
            seal(&mut near, &segment()).unwrap(),
        );
        assert_eq!(open(&mut far, &bare), Err(DropReason::InnerMalformed));
        // In the other mode it is IP in IP, which has no checksum to omit.
        let opened = open(&mut bob, &whole);
        assert_eq!(opened, Err(DropReason::ChecksumNotRestorable));
        let (mut spliced, zone) = (bare.clone(), 12..12 + 33 + 16);
        spliced[zone.clone()].copy_from_slice(&whole[zone]);
        let [_, mut bob] = ends(mode, &two_zones(), V4);
        assert_eq!(open(&mut bob, &spliced), Err(DropReason::BadIcvDesignated));
        assert!(open(&mut bob, &bare).is_ok());
    }
}

/// ICMP checksums are never omitted and cannot be restored, and a truncated header has none.
#[test]
fn an_authentic_packet_without_a_checksum_that_could_be_restored_is_dropped() {
    let [_, mut bob] = ends(Mode::Beet, &bare_zones(), V4);
    for (seq, next_header, len) in [(1, ICMP, 32), (2, TCP, 16), (3, UDP, 7)] {
        let text = [&vec![0; usize::from(len)][..], &[next_header]].concat();
        let packet = from_alice(seq, [0x42, 1, 0, len], &[&text, b""]);
        assert_eq!(
            open(&mut bob, &packet),
            Err(DropReason::ChecksumNotRestorable)
        );
    }
}

fn writing(mode: Mode, kind: &Kind) -> ([Worker; 2], Licensed) {
    let mut grant = licensed::grant(kind, &[1]);
    for half in [&mut grant.from_gateway, &mut grant.to_gateway] {
        half.overlay = Some(grant_key(&root(half.spi.0), 1));
    }
    let written = |sa: ChildSa<Secret>| endpoint(with_writers(sa));
    (moded(mode, kind, V4).map(written), node(grant))
}

fn write(node: &mut Licensed, packet: &[u8], window: u16) -> Result<Vec<u8>, NotWritten> {
    let mut scratch = Scratch::new();
    let view = node.open(packet, &mut scratch).unwrap();
    let overlay = node.lower_window(&view, packet, window)?;
    let mut written = packet.to_vec();
    mark(&mut written, true);
    overlay.append(&mut written);
    Ok(written)
}

#[test]
fn a_writer_lowers_the_window_and_the_checksum_follows() {
    for mode in BOTH {
        let ([mut alice, mut bob], mut node) = writing(mode, &two_zones());
        let sealed = seal(&mut alice, &segment()).unwrap();
        let written = write(&mut node, &sealed, 16).unwrap();
        let mut expected = segment();
        expected[34..36].copy_from_slice(&[0, 16]);
        expected[36..38].fill(0);
        assert!(wire::checksum::restore(&mut expected));
        assert!(is_same(&expected, &open(&mut bob, &written).unwrap()));
        let sealed = seal(&mut alice, &v4(UDP, &udp(b"hello, hello, hello"))).unwrap();
        let refused = write(&mut node, &sealed, 16);
        assert_eq!(refused, Err(NotWritten::NoWindow));
    }
}

/// At the window's offset in tunnel mode there is another field.
#[test]
fn a_writer_outside_its_mask_is_dropped() {
    const FIRST: u64 = 1 << 48 | 1;
    for (text, why) in [
        ([34, 2, 0, 1], DropReason::OverlayOutsideMask),
        ([0, 2, 0, 1], DropReason::OverlayOutsideMask),
        ([32, 2, 0, 1], DropReason::OverlayOutsideMask),
        ([14, 2, 0x72, 0x11], DropReason::OverlayRaised),
    ] {
        let ([mut alice, mut bob], _) = writing(Mode::Beet, &two_zones());
        let sealed = seal(&mut alice, &segment()).unwrap();
        let written = overlaid(&sealed, &root(TO_BOB), FIRST, &text);
        assert_eq!(open(&mut bob, &written), Err(why), "{text:?}");
    }
}

/// RFC 4303 section 2.7: padding needs the datagram's length, which only the IP header contains.
#[test]
fn datagrams_look_as_long_as_they_are() {
    for mode in BOTH {
        let [mut alice, mut bob] = ends(mode, &bare_zones(), V4);
        alice.set_peers(padded(BOB, Sizes::one(1400)));
        let sealed = seal(&mut alice, &segment()).unwrap();
        assert!(sealed.len() < 200);
        assert!(open(&mut bob, &sealed).is_ok());
    }
}

#[test]
fn an_opaque_packet_shows_nothing_and_arrives() {
    for mode in BOTH {
        let [mut alice, mut bob] = ends(mode, &bare_zones(), V4);
        alice.make_opaque(model::ChildSaId(1));
        let sealed = seal(&mut alice, &segment()).unwrap();
        assert_eq!(sealed[8..12], [1, 2, 0, 0]);
        let opened = reader(&bare_zones())
            .open(&sealed, &mut Scratch::new())
            .map(drop);
        assert_eq!(opened, Err(esp::NotOpened::Opaque));
        assert!(is_same(&segment(), &open(&mut bob, &sealed).unwrap()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Invariant 3 of DESIGN section 4. A datagram that these modes do not carry is dropped and
    /// counted.
    // Refuses: zones-in-modes
    #[test]
    fn no_octet_beyond_the_headers_is_ever_licensed(kind in kind(), datagram in datagram()) {
        let Some(grant) = grant(&kind) else { return Ok(()) };
        let [mut alice, mut bob] = ends(Mode::Transport, &kind, addresses(&datagram));
        let packet = match seal(&mut alice, &datagram) {
            Ok(packet) => packet,
            Err(why) => {
                prop_assert!([DropReason::Fragment, DropReason::HeaderOptions].contains(&why));
                return Ok(());
            }
        };
        let opened = open(&mut bob, &packet);
        prop_assert!(opened.as_ref().is_ok_and(|opened| is_same(&datagram, opened)), "{opened:?}");
        let (mut node, mut scratch) = (node(grant), Scratch::new());
        let Ok(view) = node.open(&packet, &mut scratch) else { return Ok(()) };
        let ip_len = datagram.len() - payload(&datagram).len();
        let most = crate::identity::shown_octets(&datagram) - ip_len;
        for run in view.runs().filter(|run| view.zone(run.zone).is_some()) {
            prop_assert!(run.datagram.end <= most, "{run:?} of {most} octets of headers");
        }
        if let Some(seen) = view.headers() {
            prop_assert_eq!(seen.transport.len(), header_octets(&datagram) - ip_len);
            prop_assert_eq!(view.payload_len(), datagram.len() - header_octets(&datagram));
            let flow = wire::ip::flow(&datagram).unwrap();
            prop_assert_eq!(seen.flow.source_port, flow.source_port);
            prop_assert!(seen.flow.destination.is_unspecified());
        }
    }

    #[test]
    fn any_octets_are_opened_without_panic(
        kind in kind(),
        mut octets in proptest::collection::vec(any::<u8>(), 9..200),
    ) {
        octets[..4].copy_from_slice(&TO_BOB.to_be_bytes());
        octets[8] &= 0x47;
        let [_, mut bob] = ends(Mode::Beet, &kind, V6);
        prop_assert!(open(&mut bob, &octets).is_err());
    }
}
