//! Datagrams arrive unchanged, and a node with all keys except the payload's sees headers only.

use crate::bench::*;
use crate::datagram::{ICMP, TCP, UDP, tcp, udp, udp_between, v4_with, v6};
use esp::{Licensed, Scratch};
use model::{
    ChildSaId, CsaId, EspSuite, Grant, GrantHalf, Span, Spi, ZoneId, ZoneSelector, ZoneSuite,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::time::Duration;

fn option() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![1]),
        Just(vec![2, 4, 5, 0xb4]),
        Just(vec![3, 3, 7]),
        Just(vec![4, 2]),
        Just(vec![8, 10, 0, 0, 0, 1, 0, 0, 0, 2]),
        Just(vec![5, 10, 0, 0, 0, 1, 0, 0, 0, 2]),
        vec(any::<u8>(), 2..8)
            .prop_map(|cookie| [vec![34, cookie.len() as u8 + 2], cookie].concat()),
        any::<u8>().prop_map(|subtype| vec![30, 4, subtype, 0]),
        vec(any::<u8>(), 1..4),
    ]
}

fn options() -> impl Strategy<Value = Vec<u8>> {
    vec(option(), 0..6).prop_map(|options| {
        let mut octets = options.concat();
        octets.truncate(40);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    })
}

fn transport() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let payload = vec(any::<u8>(), 0..300);
    prop_oneof![
        4 => (options(), payload.clone()).prop_map(|(o, p)| (TCP, tcp(&o, &p))),
        2 => payload.clone().prop_map(|p| (UDP, udp(&p))),
        3 => (any::<u8>(), vec(any::<u8>(), 0..90), 5002..5009_u16).prop_map(|(flags, p, port)| {
            let packet = [&[0x80 | flags & 0x5f], &p[..]].concat();
            (UDP, udp_between([5004, port], &packet))
        }),
        1 => payload.clone().prop_map(|p| (ICMP, p)),
        1 => (any::<u8>(), payload),
    ]
}

/// Datagrams of all kinds: fragments, options, broken checksums.
pub fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let v4_extras = prop_oneof![
        6 => Just((vec![], 0x4000)),
        1 => Just((vec![1, 1, 1, 0], 0)),
        1 => any::<u16>().prop_map(|fragment| (vec![], fragment)),
    ];
    let damage = prop_oneof![4 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)];
    (any::<bool>(), v4_extras, transport(), damage).prop_map(
        |(six, (ip_options, fragment), (protocol, payload), damage)| {
            let (mut octets, header_len) = match six {
                // Announced extension headers that are missing would make the datagram malformed.
                true if ![0, 43, 44, 51, 60].contains(&protocol) => (v6(protocol, &payload), 40),
                _ => (
                    v4_with(&ip_options, fragment, protocol, &payload),
                    20 + ip_options.len(),
                ),
            };
            if let Some(index) = damage.filter(|_| octets.len() > header_len) {
                let at = header_len + index.index(octets.len() - header_len);
                octets[at] ^= 0x55;
            }
            octets
        },
    )
}

/// The ports that carry RTP.
const MEDIA: [u16; 2] = [5004, 5007];

fn header_selector() -> impl Strategy<Value = ZoneSelector> {
    let places = (0..70_u16, 0..70_u16);
    prop_oneof![
        Just(ZoneSelector::Ip),
        Just(ZoneSelector::Transport),
        Just(ZoneSelector::IpTransport),
        places.prop_map(|(first, more)| octets(first, first + more)),
        Just(ZoneSelector::Rtp(Span::new(MEDIA[0], MEDIA[1]).unwrap())),
    ]
}

fn octets(first: u16, last: u16) -> ZoneSelector {
    ZoneSelector::Octets(Span::new(first, last).unwrap())
}

pub fn kind() -> impl Strategy<Value = Kind> {
    let whatever = || vec(header_selector(), 1..=7);
    let selectors = prop_oneof![
        5 => whatever(),
        5 => (0..70_u16, whatever())
            .prop_map(|(last, more)| [vec![octets(0, last)], more[..more.len().min(6)].to_vec()].concat()),
        5 => whatever().prop_map(|more| [vec![ZoneSelector::Ip], more[..more.len().min(6)].to_vec()].concat()),
        1 => Just(vec![ZoneSelector::IpTransport]),
        1 => Just(vec![ZoneSelector::Ip]),
        1 => Just(vec![ZoneSelector::Transport]),
        1 => Just(vec![ZoneSelector::Ip, ZoneSelector::Transport]),
        1 => Just(vec![ZoneSelector::Transport, ZoneSelector::Ip]),
        1 => Just([[ZoneSelector::Ip; 3], [ZoneSelector::Transport; 3]].concat()),
    ];
    let suite = || select(ZoneSuite::all().collect::<Vec<_>>());
    let zoned = (selectors, vec(suite(), 8)).prop_map(|(selectors, suites)| {
        let all = selectors.into_iter().chain([ZoneSelector::Rest]);
        Kind::Zoned(all.zip(suites).collect())
    });
    let plain = select(EspSuite::all().collect::<Vec<_>>());
    prop_oneof![
        1 => (plain, any::<[bool; 2]>()).prop_map(|(suite, [implicit_iv, esn])| Kind::Plain { suite, implicit_iv, esn }),
        5 => zoned,
    ]
}

/// A grant for every zone except the payload zone, from Alice to Bob.
pub fn grant(kind: &Kind) -> Option<Grant<crypto::Secret>> {
    let Kind::Zoned(zones) = kind else {
        return None;
    };
    let licensed = |spi: u32| GrantHalf {
        spi: Spi(spi),
        zones: (1..zones.len() as u8)
            .zip(zones)
            .map(|(zone, (_, suite))| (ZoneId(zone), *suite, key(spi, zone, *suite)))
            .collect(),
        overlay: None,
        injection: None,
    };
    Some(Grant {
        map: model::MapKind::Changeable,
        csa: CsaId(1),
        line: CsaId(1),
        grant: 1,
        payload_zone: ZoneId(zones.len() as u8),
        suites: zones.iter().map(|(_, suite)| *suite).collect(),
        window: 4096,
        lifetime: Duration::from_secs(60),
        onward: None,
        from_gateway: licensed(TO_ALICE),
        to_gateway: licensed(TO_BOB),
    })
}

/// Upper limit of header octets that may be visible, computed without `classify`.
pub fn header_octets(datagram: &[u8]) -> usize {
    let (ip_len, protocol) = match datagram[0] >> 4 {
        4 => (20, datagram[9]),
        _ => (40, datagram[6]),
    };
    match protocol {
        TCP => ip_len + usize::from(datagram[ip_len + 12] >> 4) * 4,
        UDP => ip_len + 8,
        _ => 0,
    }
}

/// Upper limit of visible octets, including recognised headers in UDP.
pub fn shown_octets(datagram: &[u8]) -> usize {
    header_octets(datagram) + content_octets(datagram)
}

/// Upper limit of RTP header octets in UDP, computed without the code under test.
fn content_octets(datagram: &[u8]) -> usize {
    let headers = header_octets(datagram);
    let (udp, payload) = datagram[headers.max(8) - 8..].split_at(8);
    let port = |at| u16::from_be_bytes([udp[at], udp[at + 1]]);
    match payload {
        [flags, kind, ..]
            if [port(0), port(2)]
                .iter()
                .all(|port| (MEDIA[0]..=MEDIA[1]).contains(port))
                && (128..192).contains(flags)
                && !(192..224).contains(kind) =>
        {
            12 + 4 * usize::from(flags % 16)
        }
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_was_sealed_opens_as_it_was(kind in kind(), datagrams in vec(datagram(), 1..4)) {
        let (mut alice, mut bob) = pair(&kind);
        for datagram in datagrams {
            let packet = seal(&mut alice, &datagram).unwrap();
            prop_assert_eq!(open(&mut bob, &packet), Ok(datagram));
        }
    }

    /// The SA's cached state of one packet, even of an unauthentic one, does not affect another
    /// packet.
    #[test]
    fn a_packet_is_sealed_and_opened_as_if_none_had_been_before_it(
        kind in kind(),
        datagrams in vec(datagram(), 1..6),
        damage in any::<prop::sample::Index>(),
    ) {
        let (mut alice, mut bob) = pair(&kind);
        for (datagram, before) in datagrams.into_iter().zip(0..) {
            let packet = seal(&mut alice, &datagram).unwrap();
            let (mut other_alice, mut other_bob) = pair(&kind);
            other_alice.skip_to(ChildSaId(1), before);
            prop_assert_eq!(seal(&mut other_alice, &datagram), Ok(packet.clone()));
            let mut damaged = packet.clone();
            damaged[8 + damage.index(packet.len() - 8)] ^= 1;
            prop_assert_eq!(open(&mut bob, &damaged), open(&mut other_bob, &damaged));
            prop_assert_eq!(open(&mut bob, &packet), Ok(datagram));
        }
    }

    // Weakness: S5
    // Weakness: S13
    // Answers: licence-payload
    #[test]
    fn no_octet_beyond_the_headers_is_ever_licensed(kind in kind(), datagram in datagram()) {
        let Some(grant) = grant(&kind) else { return Ok(()) };
        let packet = seal(&mut pair(&kind).0, &datagram).unwrap();
        let mut node = Licensed::new();
        node.install(grant).unwrap();
        let mut scratch = Scratch::new();
        let Ok(view) = node.open(&packet, &mut scratch) else { return Ok(()) };
        let (headers, most) = (header_octets(&datagram), shown_octets(&datagram));
        for run in view.runs() {
            let Some(zone) = view.zone(run.zone) else { continue };
            prop_assert!(zone.len() >= run.datagram.len());
            prop_assert!(run.datagram.end <= most, "{:?} of {} header octets", run, most);
        }
        let padding = view.datagram_len() - datagram.len();
        let most = match &kind {
            Kind::Zoned(zones) if zones.last().unwrap().1.iv_len() > 0 => 15,
            _ => 0,
        };
        prop_assert!(padding <= most);
        if let Some(seen) = view.headers() {
            prop_assert_eq!(padding, 0, "the IP header tells");
            prop_assert_eq!(seen.ip.len() + seen.transport.len(), headers);
            prop_assert_eq!(view.payload_len(), datagram.len() - headers);
            prop_assert_eq!(Some(seen.flow), wire::ip::flow(&datagram));
        }
    }

    #[test]
    fn any_octets_are_opened_without_panic(kind in kind(), mut octets in vec(any::<u8>(), 9..200)) {
        octets[..4].copy_from_slice(&TO_BOB.to_be_bytes());
        octets[8] &= 0x47;
        prop_assert!(open(&mut pair(&kind).1, &octets).is_err());
        let mut node = Licensed::new();
        if let Some(grant) = grant(&kind) {
            node.install(grant).unwrap();
        }
        prop_assert!(node.open(&octets, &mut Scratch::new()).is_err());
    }
}
