//! Round trips of every payload, arbitrary octets, and limits.

use super::*;
use crate::codec::Malformed;
use model::{
    CsaId, Identity, Licence, MapKind, Right, Run, Span, Spi, Suite, TrafficSelector, Zone,
    ZoneAgreement, ZoneId, ZoneSelector, ZoneSuite,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

const HEADER: Header = Header {
    spi_i: 0x0102_0304_0506_0708,
    spi_r: 0,
    version: VERSION_2,
    exchange: ExchangeType::IKE_SA_INIT,
    flags: Flags {
        initiator: true,
        higher_version: false,
        response: false,
    },
    message_id: 0,
};

fn message(payloads: Vec<Payload>) -> Message {
    Message {
        header: HEADER,
        payloads,
    }
}

fn clear(octets: &[u8]) -> Result<Message, Malformed> {
    match Datagram::decode(octets)? {
        Datagram::Clear(message) => Ok(message),
        Datagram::Sealed(_) => panic!("nothing was sealed"),
    }
}

/// A cipher that checks the layout without cryptography: exclusive or, with a sum of associated
/// data and text as the ICV.
fn toy(aad: &[u8], text: &[u8]) -> [u8; 16] {
    let sum = |octets: &[u8]| {
        octets
            .iter()
            .fold(7_u64, |sum, o| sum.wrapping_mul(31) + u64::from(*o))
    };
    [sum(aad).to_be_bytes(), sum(text).to_be_bytes()]
        .concat()
        .try_into()
        .unwrap()
}

fn toy_seal(message: &Message, iv: [u8; 8]) -> Vec<u8> {
    message.seal_with(Frame::AEAD, &iv, |aad, text, icv| {
        text.iter_mut().for_each(|octet| *octet ^= 0x5a);
        icv.copy_from_slice(&toy(aad, text));
    })
}

fn toy_open(sealed: &Sealed<'_>) -> Result<Message, NotOpened<&'static str>> {
    sealed.open_with(Frame::AEAD, |_, aad, text, icv| {
        let genuine = toy(aad, text) == *icv;
        text.iter_mut().for_each(|octet| *octet ^= 0x5a);
        genuine.then_some(()).ok_or("refused")
    })
}

#[test]
fn the_first_message_looks_as_the_rfc_draws_it() {
    let nonce = vec![9; 16];
    let key = KeyExchange {
        group: GroupId::CURVE25519,
        public: vec![8; 32],
    };
    let proposal = Proposal {
        number: 1,
        protocol: Protocol::IKE,
        spi: Vec::new(),
        transforms: vec![
            Transform::suite(Suite::Aes128Gcm16, false),
            Transform::prf(PrfId::HMAC_SHA2_256),
        ],
    };
    let octets = message(vec![
        Payload::SecurityAssociation(vec![proposal]),
        Payload::KeyExchange(key),
        Payload::Nonce(nonce.clone()),
    ])
    .encode();
    let mut expected = vec![1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    expected.extend([33, 0x20, 34, 0x08, 0, 0, 0, 0, 0, 0, 0, 120]);
    expected.extend([34, 0, 0, 32, 0, 0, 0, 28, 1, 1, 0, 2]);
    expected.extend([3, 0, 0, 12, 1, 0, 0, 20, 0x80, 14, 0, 128]);
    expected.extend([0, 0, 0, 8, 2, 0, 0, 5]);
    expected.extend([40, 0, 0, 40, 0, 31, 0, 0]);
    expected.extend([8; 32]);
    expected.extend([0, 0, 0, 20]);
    expected.extend(nonce);
    assert_eq!(octets, expected);
}

// Weakness: 33
#[test]
fn every_truncation_is_an_error() {
    let octets = message(vec![
        Payload::Nonce(vec![1; 32]),
        Payload::Notify(Notify::new(NotifyType::COOKIE, vec![2; 8])),
    ])
    .encode();
    for length in 0..octets.len() {
        assert!(Datagram::decode(&octets[..length]).is_err(), "{length}");
    }
}

#[test]
fn unknown_payloads_are_kept_and_the_critical_ones_found() {
    let other = |kind, critical| Payload::Other {
        kind: PayloadType(kind),
        critical,
        data: vec![1, 2],
    };
    let polite = message(vec![other(99, false), other(PayloadType::CERTREQ.0, true)]);
    let polite = clear(&polite.encode()).unwrap();
    assert_eq!(polite.unsupported_critical(), None);
    let harsh = message(vec![other(1, true)]);
    let harsh = clear(&harsh.encode()).unwrap();
    assert_eq!(harsh.unsupported_critical(), Some(PayloadType(1)));
}

// Weakness: 3
// Weakness: 61
#[test]
fn the_number_of_payloads_is_bounded() {
    let notify = Payload::Notify(Notify::new(NotifyType::COOKIE, Vec::new()));
    let most = message(vec![notify.clone(); MAX_PAYLOADS]);
    assert_eq!(clear(&most.encode()), Ok(most));
    let more = message(vec![notify; MAX_PAYLOADS + 1]).encode();
    assert!(matches!(clear(&more), Err(Malformed::TooMany(_))));
}

#[test]
fn the_number_of_proposals_is_bounded() {
    let proposal = Proposal {
        number: 1,
        protocol: Protocol::ESP,
        spi: vec![0; 4],
        transforms: vec![Transform::esn(EsnId::NO)],
    };
    let most = message(vec![Payload::SecurityAssociation(vec![
        proposal.clone();
        MAX_PROPOSALS
    ])]);
    assert_eq!(clear(&most.encode()), Ok(most.clone()));
    let more = vec![Payload::SecurityAssociation(vec![
        proposal;
        MAX_PROPOSALS + 20
    ])];
    assert_eq!(clear(&message(more).encode()), Ok(most));
}

/// The critical bit of an unknown payload counts, and its content does not (RFC 7296 section 2.5).
#[test]
fn our_private_payloads_mean_something_in_our_private_exchanges_alone() {
    let payload = |kind, critical| Payload::Other {
        kind,
        critical,
        data: vec![1, 2, 3],
    };
    for kind in [PayloadType::GRANT, PayloadType::SECRET] {
        for critical in [false, true] {
            let sent = message(vec![payload(kind, critical)]);
            let read = clear(&sent.encode()).unwrap();
            assert_eq!(read, sent);
            assert_eq!(read.unsupported_critical(), critical.then_some(kind));
            let mut ours = sent;
            ours.header.exchange = ExchangeType::KEY_DISTRIBUTE;
            assert!(clear(&ours.encode()).is_err());
        }
    }
}

#[test]
fn private_notifies_are_forgotten_and_private_errors_become_unknown_ones() {
    let notify = |kind| Payload::Notify(Notify::new(NotifyType(kind), vec![7]));
    let known: Vec<u16> = (0..=u16::MAX)
        .filter(|kind| NotifyType(*kind).is_private())
        .collect();
    let ours = [
        12288, 12289, 12290, 40961, 41100, 41101, 41102, 41103, 41104, 41105, 41106, 41107, 41108,
        41109, 41110, 41111, 41112, 41113, 41114, 41115, 41116,
    ];
    assert_eq!(known, ours);
    for kind in 0..=u16::MAX {
        let mut read = message(vec![notify(kind)]);
        read.forget_private();
        let error = notify(NotifyType::PRIVATE_ERROR.0);
        match (known.contains(&kind), NotifyType(kind).is_error()) {
            (false, _) => assert_eq!(read.payloads, [notify(kind)]),
            (true, true) => assert_eq!(read.payloads, [error]),
            (true, false) => assert_eq!(read.payloads, []),
        }
    }
}

// Weakness: 24
// Weakness: 61
#[test]
fn a_message_longer_than_the_limit_is_not_read() {
    let data = vec![0; MAX_MESSAGE];
    let octets = message(vec![Payload::VendorId(data)]).encode();
    assert!(matches!(
        Datagram::decode(&octets),
        Err(Malformed::Length(_))
    ));
}

// Weakness: 10
#[test]
fn a_length_field_that_lies_is_an_error() {
    let mut octets = message(vec![Payload::Nonce(vec![1; 32])]).encode();
    octets[27] += 1;
    assert!(matches!(clear(&octets), Err(Malformed::Length(_))));
}

#[test]
fn an_encrypted_payload_must_be_the_last() {
    let mut octets = toy_seal(&message(vec![Payload::Nonce(vec![1; 32])]), [0; 8]);
    octets.extend([0, 0, 0, 4]);
    let length = octets.len() as u32;
    octets[24..28].copy_from_slice(&length.to_be_bytes());
    assert!(matches!(
        Datagram::decode(&octets),
        Err(Malformed::Trailing(_))
    ));
}

/// Returns a fragment sealed with the toy cipher.
fn toy_fragment(content: &Content, number: u16, total: u16) -> Vec<u8> {
    let at = Fragment { number, total };
    content.seal_with(
        &HEADER,
        &[],
        Some(at),
        Frame::AEAD,
        &[3; 8],
        |aad, text, icv| {
            text.iter_mut().for_each(|octet| *octet ^= 0x5a);
            icv.copy_from_slice(&toy(aad, text));
        },
    )
}

/// Returns a message with two clear payloads before the Encrypted one.
fn toy_half_clear() -> (Vec<Payload>, Vec<Payload>, Vec<u8>) {
    let clear = vec![
        Payload::Nonce(vec![1; 32]),
        Payload::Notify(Notify::new(NotifyType::SESSION, vec![2; 32])),
    ];
    let inside = vec![Payload::VendorId(vec![3; 16])];
    let content = Content::new(&inside);
    let octets = content.seal_with(
        &HEADER,
        &clear,
        None,
        Frame::AEAD,
        &[3; 8],
        |aad, text, icv| {
            text.iter_mut().for_each(|octet| *octet ^= 0x5a);
            icv.copy_from_slice(&toy(aad, text));
        },
    );
    (clear, inside, octets)
}

#[test]
fn clear_payloads_before_the_encrypted_one_are_read_and_authenticated() {
    let (clear, inside, octets) = toy_half_clear();
    let Ok(Datagram::Sealed(sealed)) = Datagram::decode(&octets) else {
        panic!("it is sealed");
    };
    assert_eq!(sealed.clear().unwrap().payloads, clear);
    assert_eq!(toy_open(&sealed).unwrap().payloads, inside);
    let sealed_at = octets.len() - 40 - 4 - 8 - 20 - 1 - 16;
    for place in HEADER_LEN..sealed_at {
        let mut changed = octets.clone();
        changed[place] ^= 1;
        if let Ok(Datagram::Sealed(sealed)) = Datagram::decode(&changed) {
            assert!(toy_open(&sealed).is_err(), "octet {place}");
        }
    }
}

/// RFC 7383 section 2.5: Next Payload 40 (Nonce), then the numbers, then the same fields as in SK.
#[test]
fn a_fragment_looks_as_the_rfc_draws_it() {
    let content = Content::new(&[Payload::Nonce(vec![1; 32])]);
    let octets = toy_fragment(&content, 1, 2);
    assert_eq!(octets[16], 53, "the header names SKF");
    let skf = &octets[HEADER_LEN..];
    assert_eq!(skf[..2], [40, 0]);
    assert_eq!(usize::from(u16::from_be_bytes([skf[2], skf[3]])), skf.len());
    assert_eq!(skf[4..16], [0, 1, 0, 2, 3, 3, 3, 3, 3, 3, 3, 3]);
    assert_eq!(skf.len(), 16 + content.octets.len() + 1 + 16);
}

/// Returns the octets before the IV of a message or of a first fragment.
fn before_iv(octets: &[u8]) -> Vec<u8> {
    match Datagram::decode(octets) {
        Ok(Datagram::Sealed(sealed)) => sealed.before_iv(),
        other => panic!("it is sealed: {other:?}"),
    }
}

/// RFC 9242 figure 1: without IV, padding and ICV, and with adjusted lengths.
#[test]
fn what_authentication_covers_is_the_same_whether_and_however_a_message_was_cut() {
    let payloads = vec![Payload::Nonce(vec![1; 200])];
    let content = Content::new(&payloads);
    let bare = content.bare(content.before_iv(&HEADER));
    let length = content.octets.len();
    assert_eq!(bare.len(), HEADER_LEN + 4 + length);
    assert_eq!(bare[16], 46, "the header names SK");
    assert_eq!(bare[24..28], (bare.len() as u32).to_be_bytes());
    assert_eq!(bare[28..30], [40, 0]);
    assert_eq!(bare[30..32], (4 + length as u16).to_be_bytes());
    assert_eq!(bare[32..], content.octets[..]);
    let whole = toy_seal(&message(payloads), [0; 8]);
    for room in [90, 128, 200] {
        let (at, piece) = content.pieces(Frame::AEAD, room).remove(0);
        let first = toy_fragment(&piece, at.number, at.total);
        for octets in [&whole, &first] {
            assert_eq!(*content.bare(before_iv(octets)), *bare, "{room}");
        }
    }
}

/// Unencrypted payloads are covered, and so is the octet before the length: "the RESERVED field in
/// the reconstructed Encrypted payload header MUST be set to the value ... from the first fragment"
/// (RFC 9242 section 3.3.2).
#[test]
fn what_authentication_covers_has_payloads_in_the_clear_and_reserved_bits() {
    let content = Content::new(&[Payload::Nonce(vec![1; 32])]);
    let mut octets = toy_fragment(&content, 1, 1);
    octets[HEADER_LEN + 1] = 5;
    octets[16] = PayloadType::VENDOR_ID.0;
    let in_the_clear = [PayloadType::SKF.0, 0, 0, 8, 1, 2, 3, 4];
    octets.splice(HEADER_LEN..HEADER_LEN, in_the_clear);
    Header::set_length(&mut octets);
    let before = before_iv(&octets);
    assert_eq!(before.len(), HEADER_LEN + 8 + 4);
    assert_eq!(before[16], PayloadType::VENDOR_ID.0);
    let as_sk = [PayloadType::SK.0, 0, 0, 8, 1, 2, 3, 4];
    assert_eq!(before[HEADER_LEN..][..8], as_sk);
    assert_eq!(before[HEADER_LEN + 8..][..2], [PayloadType::NONCE.0, 5]);
}

/// With another number, the fragment fails authentication.
#[test]
fn a_fragments_numbers_are_authenticated() {
    let content = Content::new(&[Payload::Nonce(vec![1; 32])]);
    let mut octets = toy_fragment(&content, 1, 2);
    octets[HEADER_LEN + 7] = 3;
    let Ok(Datagram::Sealed(sealed)) = Datagram::decode(&octets) else {
        panic!("it is a fragment");
    };
    let (number, total) = (1, 3);
    assert_eq!(sealed.fragment, Some(Fragment { number, total }));
    assert_eq!(toy_open(&sealed), Err(NotOpened::Refused("refused")));
}

/// RFC 7383 section 2.6: "the message MUST be silently discarded".
// Weakness: 4
#[test]
fn a_fragment_number_of_zero_or_beyond_the_total_is_an_error() {
    let content = Content::new(&[]);
    for (number, total) in [(0, 0), (0, 2), (1, 0), (3, 2), (u16::MAX, 1)] {
        let octets = toy_fragment(&content, number, total);
        assert_eq!(
            Datagram::decode(&octets),
            Err(Malformed::Value("the fragment's numbers")),
            "{number} of {total}"
        );
    }
    assert!(Datagram::decode(&toy_fragment(&content, 2, 2)).is_ok());
}

#[test]
fn only_the_first_fragment_names_the_first_payload() {
    let content = Content::new(&[Payload::Nonce(vec![1; 200])]);
    let firsts = content
        .pieces(Frame::AEAD, 128)
        .into_iter()
        .map(|(_, piece)| piece.first);
    let firsts: Vec<_> = firsts.collect();
    assert_eq!(firsts[0], PayloadType::NONCE);
    assert!(firsts.len() > 2);
    assert!(firsts[1..].iter().all(|first| *first == PayloadType::NONE));
}

// Weakness: 4
// Weakness: 5
#[test]
fn a_fragment_too_short_for_its_numbers_is_an_error() {
    let mut octets = message(Vec::new()).encode();
    octets[16] = 53;
    octets.extend([0, 0, 0, 6, 0, 1]);
    octets[27] = 34;
    assert!(matches!(
        Datagram::decode(&octets),
        Err(Malformed::Truncated(_))
    ));
}

#[test]
fn padding_longer_than_the_text_is_an_error() {
    let octets = message(Vec::new()).seal_with(Frame::AEAD, &[0; 8], |_, text, _| text.fill(200));
    let Ok(Datagram::Sealed(sealed)) = Datagram::decode(&octets) else {
        panic!("it was sealed");
    };
    let opened = sealed.open_with(Frame::AEAD, |_, _, _, _| Ok::<_, ()>(()));
    assert!(matches!(
        opened,
        Err(NotOpened::Malformed(Malformed::Length(_)))
    ));
}

// Weakness: 11
#[test]
fn a_selector_of_an_unknown_type_is_left_out() {
    // One selector of type 9 with 4 octets of content, then one known.
    let mut body = vec![2, 0, 0, 0, 9, 0, 0, 8, 1, 2, 3, 4];
    body.extend([7, 6, 0, 16, 0, 80, 0, 80, 10, 0, 0, 0, 10, 0, 0, 255]);
    let payload = Payload::read_body(PayloadType::TSI, false, &body).unwrap();
    let Payload::TsInitiator(TrafficSelectors(selectors)) = payload else {
        panic!("it was a TSi");
    };
    assert_eq!(
        selectors[0].to_string(),
        "10.0.0.0/24 protocol 6 ports 80-80"
    );
    assert_eq!(selectors.len(), 1);
}

// Weakness: 11
#[test]
fn a_selector_that_ends_before_it_starts_is_an_error() {
    let mut body = vec![1, 0, 0, 0, 7, 0, 0, 16, 0, 0, 255, 255];
    body.extend([10, 0, 0, 2, 10, 0, 0, 1]);
    let payload = Payload::read_body(PayloadType::TSI, false, &body);
    assert!(matches!(payload, Err(Malformed::Value(_))));
}

fn agreement() -> ZoneAgreement {
    let zone = |id, selector, suite| Zone {
        id: ZoneId(id),
        selector,
        suite,
    };
    let licence = |node: &str, zone| Licence {
        node: node.parse().unwrap(),
        zone: ZoneId(zone),
        right: Right::Read,
    };
    ZoneAgreement {
        zones: vec![
            zone(1, ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
            zone(2, ZoneSelector::Rest, ZoneSuite::Aes256Gcm16),
        ],
        map: MapKind::Changeable,
        window: 4096,
        licences: vec![licence("a.example", 1), licence("b.example", 1)],
        level: None,
    }
}

#[test]
fn a_fixed_map_is_agreed_on_as_packets_would_carry_it() {
    let run = |zone, len| Run {
        zone: ZoneId(zone),
        len,
    };
    let read = |runs: Vec<Run>| {
        let agreement = ZoneAgreement {
            map: MapKind::Fixed(runs),
            ..agreement()
        };
        let read = decode_zone_map(&encode_zone_map(&agreement));
        read.map(|read| assert_eq!(read, agreement))
    };
    assert_eq!(read(vec![run(1, 52)]), Ok(()));
    assert_eq!(read(vec![run(1, 20), run(2, 12), run(1, 20)]), Ok(()));
    let bad = [
        vec![],
        vec![run(2, 20)],
        vec![run(1, 0)],
        vec![run(1, 20), run(3, 20)],
        vec![run(1, 20), run(2, 20)],
        vec![run(1, 20), run(1, 20)],
        [run(1, 20), run(2, 20)].repeat(4),
        [run(1, 20), run(2, 20)].repeat(100),
    ];
    for runs in bad {
        assert!(read(runs.clone()).is_err(), "{runs:?}");
    }
}

#[test]
fn a_zone_map_has_one_form_only() {
    let good = agreement();
    assert_eq!(decode_zone_map(&encode_zone_map(&good)), Ok(good.clone()));
    let variants: [fn(&mut ZoneAgreement); 8] = [
        |a| a.licences.reverse(),
        |a| a.licences[1] = a.licences[0].clone(),
        |a| a.licences[1].zone = ZoneId(3),
        |a| a.zones[0].id = ZoneId(2),
        |a| a.zones[0].selector = ZoneSelector::Rest,
        |a| a.zones[1].selector = ZoneSelector::Ip,
        |a| a.window = 4095,
        |a| a.zones.truncate(1),
    ];
    for (index, change) in variants.iter().enumerate() {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(decode_zone_map(&encode_zone_map(&bad)).is_err(), "{index}");
    }
    // The fields that a node may write or repeat are in the headers, which are the first zone.
    for (right, fields, others) in [
        (Right::Write, 1, [(5, 1), (5, 3), (3, 0), (3, 3)]),
        (Right::Inject, 0, [(5, 0), (5, 2), (5, 4), (3, 1)]),
    ] {
        let mut more = good.clone();
        more.licences[1].right = right;
        let octets = encode_zone_map(&more);
        assert_eq!(decode_zone_map(&octets), Ok(more.clone()));
        let mut refused = more.clone();
        refused.zones[0].selector = ZoneSelector::Ip;
        assert!(decode_zone_map(&encode_zone_map(&refused)).is_err());
        refused = more;
        refused.licences[1].zone = ZoneId(2);
        assert!(decode_zone_map(&encode_zone_map(&refused)).is_err());
        // Each right has its own mask of fields.
        let node = octets.len() - "b.example".len();
        assert_eq!(octets[node - 6..node - 2], [1, right as u8, 2, fields]);
        for (at, value) in others {
            let mut octets = octets.clone();
            octets[node - at] = value;
            assert!(decode_zone_map(&octets).is_err(), "{at} {value}");
        }
    }
    let mut spans = good.clone();
    let span = |first, last| Span::new(first, last).unwrap();
    spans.zones = vec![
        Zone {
            selector: ZoneSelector::Octets(span(0, 27)),
            ..good.zones[0]
        },
        Zone {
            id: ZoneId(2),
            selector: ZoneSelector::Rtp(span(16384, 32767)),
            ..good.zones[0]
        },
        Zone {
            id: ZoneId(3),
            ..good.zones[1]
        },
    ];
    let octets = encode_zone_map(&spans);
    assert_eq!(decode_zone_map(&octets), Ok(spans));
    let mut backwards = octets;
    // Move the last octet of the first zone before its first.
    backwards[8 + 2 + 1] = 28;
    assert!(decode_zone_map(&backwards).is_err());
    let mut reserved = encode_zone_map(&good);
    reserved[8 + 12 + 3] = 1;
    assert!(decode_zone_map(&reserved).is_err());
}

#[test]
fn every_suite_of_a_zone_has_one_form_only() {
    let mut forms = BTreeSet::new();
    for suite in ZoneSuite::all() {
        let mut zones = agreement();
        zones.zones[0].suite = suite;
        let octets = encode_zone_map(&zones);
        assert_eq!(decode_zone_map(&octets), Ok(zones), "{suite}");
        assert!(forms.insert(octets), "{suite}");
    }
}

#[test]
fn a_secret_does_not_show_in_a_log() {
    let share = SecretShare {
        direction: KeyDirection::FROM_GATEWAY,
        zone: ZoneId(1),
        suite: ZoneSuite::Aes128Gcm16,
        key: vec![0xab; 20].into(),
    };
    assert_eq!(format!("{share:?}"), "SecretShare(FROM_GATEWAY zone 1)");
}

fn octets(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), range)
}

fn identity() -> impl Strategy<Value = Identity> {
    prop_oneof![
        any::<IpAddr>().prop_map(Identity::Address),
        "[A-Za-z.]{1,20}".prop_map(Identity::Fqdn),
        "[A-Za-z.]{1,9}@[A-Za-z.]{1,9}".prop_map(Identity::Email),
        (9..=255_u8, octets(0..40)).prop_map(|(kind, data)| Identity::Opaque { kind, data }),
    ]
}

fn suite() -> impl Strategy<Value = ZoneSuite> {
    prop::sample::select(ZoneSuite::all().collect::<Vec<_>>())
}

fn selector() -> impl Strategy<Value = TrafficSelector> {
    let addresses = prop_oneof![
        any::<(u32, u32)>().prop_map(|(a, b)| {
            let ip = |bits: u32| IpAddr::V4(bits.into());
            (ip(a.min(b)), ip(a.max(b)))
        }),
        any::<(u128, u128)>().prop_map(|(a, b)| {
            let ip = |bits: u128| IpAddr::V6(bits.into());
            (ip(a.min(b)), ip(a.max(b)))
        }),
    ];
    (any::<u8>(), any::<(u16, u16)>(), addresses).prop_map(|(protocol, (a, b), (first, last))| {
        TrafficSelector {
            protocol,
            ports: a.min(b)..=a.max(b),
            first,
            last,
        }
    })
}

fn attribute() -> impl Strategy<Value = Attribute> {
    prop_oneof![
        (0..0x7fff_u16, octets(0..9)).prop_map(|(kind, value)| Attribute { kind, value }),
        (0x8010..0xffff_u16, octets(2..3)).prop_map(|(kind, value)| Attribute { kind, value }),
    ]
}

fn proposal() -> impl Strategy<Value = Proposal> {
    let transform = (
        any::<u8>(),
        any::<u16>(),
        any::<Option<u16>>(),
        vec(attribute(), 0..4),
    );
    let transform = transform.prop_map(|(kind, id, key_bits, others)| Transform {
        kind: TransformType(kind),
        id,
        key_bits,
        others,
    });
    (any::<u8>(), any::<u8>(), octets(0..9), vec(transform, 0..9)).prop_map(
        |(number, protocol, spi, transforms)| Proposal {
            number,
            protocol: Protocol(protocol),
            spi,
            transforms,
        },
    )
}

fn token() -> Token {
    Token {
        spis: [Spi(0x1111), Spi(0x2222)],
        nonce: [3; 16],
        expiry: 4,
        zones: vec![ZoneId(1)],
        mac: [5; 16],
        holder: "fa.example.net".parse().unwrap(),
    }
}

#[test]
fn what_a_token_proves_is_another_for_each_field_of_it_and_for_each_who_asks() {
    let asker: Identity = "fb.example.net".parse().unwrap();
    let base = token().covered(&asker);
    let mut others = vec![token().covered(&token().holder)];
    let change = |change: fn(&mut Token)| {
        let mut other = token();
        change(&mut other);
        other.covered(&asker)
    };
    others.push(change(|token| token.spis[0] = Spi(1)));
    others.push(change(|token| token.spis[1] = Spi(0x3333)));
    others.push(change(|token| token.nonce[15] = 4));
    others.push(change(|token| token.expiry = 5));
    others.push(change(|token| token.zones.push(ZoneId(2))));
    others.push(change(|token| {
        token.holder = "fb.example.net".parse().unwrap();
    }));
    assert!(others.iter().all(|other| *other != base));
    assert_eq!(change(|token| token.mac[0] = 0), base);
}

#[test]
fn a_token_has_one_form_only() {
    let refused: [fn(&mut Token); 3] = [
        |token| token.spis.reverse(),
        |token| token.zones.push(ZoneId(1)),
        |token| token.zones = (1..=9).map(ZoneId).collect(),
    ];
    for change in refused {
        let mut token = token();
        change(&mut token);
        assert!(Token::decode(&token.encode()).is_err(), "{token:?}");
    }
    let mut longer = token().encode();
    longer.push(0);
    assert!(Token::decode(&longer).is_err());
}

fn grant() -> impl Strategy<Value = GrantOffer> {
    let numbers = any::<(u64, u64, u16, u32, u32, u32, u32)>();
    (numbers, vec(suite(), 2..=8)).prop_map(|(numbers, suites)| {
        let (csa, line, grant, window, seconds, from, to) = numbers;
        GrantOffer {
            map: MapKind::Changeable,
            csa: CsaId(csa),
            line: CsaId(line),
            grant,
            payload_zone: ZoneId(suites.len() as u8),
            window,
            lifetime: Duration::from_secs(seconds.into()),
            from_gateway: Spi(from),
            to_gateway: Spi(to),
            suites,
        }
    })
}

fn share() -> impl Strategy<Value = SecretShare> {
    (any::<(u8, u8)>(), suite(), octets(132..133)).prop_map(|((direction, zone), suite, key)| {
        SecretShare {
            direction: KeyDirection(direction),
            zone: ZoneId(zone),
            suite,
            key: key[..suite.keymat_len()].to_vec().into(),
        }
    })
}

fn identification() -> impl Strategy<Value = Identification> {
    (identity(), any::<[u8; 3]>())
        .prop_map(|(identity, reserved)| Identification { identity, reserved })
}

fn payload() -> impl Strategy<Value = Payload> {
    let selectors = || vec(selector(), 0..5).prop_map(TrafficSelectors);
    prop_oneof![
        vec(proposal(), 1..4).prop_map(Payload::SecurityAssociation),
        (any::<u16>(), octets(0..80)).prop_map(|(group, public)| {
            let group = GroupId(group);
            Payload::KeyExchange(KeyExchange { group, public })
        }),
        identification().prop_map(Payload::IdInitiator),
        identification().prop_map(Payload::IdResponder),
        (any::<u8>(), octets(0..80)).prop_map(|(method, data)| {
            let method = AuthMethod(method);
            Payload::Authentication(Authentication { method, data })
        }),
        octets(16..257).prop_map(Payload::Nonce),
        (any::<u8>(), octets(0..9), any::<u16>(), octets(0..50)).prop_map(
            |(protocol, spi, kind, data)| {
                Payload::Notify(Notify {
                    protocol: Protocol(protocol),
                    spi,
                    kind: NotifyType(kind),
                    data,
                })
            }
        ),
        Just(Payload::Delete(Delete::IkeSa)),
        vec(any::<u32>().prop_map(Spi), 0..9).prop_map(|spis| {
            let protocol = Protocol::ESP;
            Payload::Delete(Delete::Children { protocol, spis })
        }),
        octets(0..40).prop_map(Payload::VendorId),
        selectors().prop_map(Payload::TsInitiator),
        selectors().prop_map(Payload::TsResponder),
        grant().prop_map(Payload::Grant),
        share().prop_map(Payload::Secret),
        (54..200_u8, any::<bool>(), octets(0..40)).prop_map(|(kind, critical, data)| {
            Payload::Other {
                kind: PayloadType(kind),
                critical,
                data,
            }
        }),
    ]
}

#[test]
fn counts_of_pings_are_read_as_they_were_written_and_have_one_length() {
    let counts = PingCounts {
        received: 1,
        answered: 2,
        withheld: u64::MAX,
    };
    let octets = counts.encode();
    assert_eq!(PingCounts::decode(&octets), Ok(counts));
    assert_eq!(
        octets[..16],
        [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    );
    for len in (0..48).filter(|len| *len != octets.len()) {
        assert!(PingCounts::decode(&vec![0; len]).is_err(), "{len}");
    }
}

#[test]
fn a_list_of_nodes_is_read_as_it_was_written_and_no_longer_than_it_may_be() {
    let node = |number: usize| format!("n{number}.example.net").parse().unwrap();
    let some: Vec<Identity> = (0..MAX_NODES).map(node).collect();
    let octets = encode_nodes(&some);
    assert_eq!(decode_nodes(&octets), Ok(some.clone()));
    assert_eq!(decode_nodes(&[]), Ok(Vec::new()));
    for end in 1..octets.len() {
        let read = decode_nodes(&octets[..end]);
        assert!(read.is_err() || read.is_ok_and(|read| read.len() < some.len()));
    }
    let more: Vec<Identity> = (0..=MAX_NODES).map(node).collect();
    assert!(decode_nodes(&encode_nodes(&more)).is_err());
}

#[test]
fn a_place_is_read_as_addresses_alone_and_no_longer_than_it_may_be() {
    let range = |number: u8| TrafficSelector::from_prefix([10, 3, number, 0].into(), 24).unwrap();
    let some: Vec<_> = (0..MAX_RANGES as u8).map(range).collect();
    let octets = encode_place(&some);
    assert_eq!(decode_place(&octets), Ok(some.clone()));
    for end in 0..octets.len() {
        assert!(decode_place(&octets[..end]).is_err(), "{end}");
    }
    let more: Vec<_> = (0..=MAX_RANGES as u8).map(range).collect();
    assert!(decode_place(&encode_place(&more)).is_err());
    assert_eq!(decode_place(&encode_place(&[])), Ok(Vec::new()));
    let narrow = TrafficSelector {
        protocol: 6,
        ports: 80..=80,
        ..range(1)
    };
    assert_eq!(decode_place(&encode_place(&[narrow])), Ok(vec![range(1)]));
}

proptest! {
    #[test]
    fn what_was_encoded_decodes_to_the_same(payloads in vec(payload(), 0..8)) {
        let mut sent = message(payloads);
        sent.header.exchange = ExchangeType::KEY_DISTRIBUTE;
        prop_assert_eq!(clear(&sent.encode()), Ok(sent));
    }

    #[test]
    fn what_was_sealed_opens_to_the_same(payloads in vec(payload(), 0..8), iv: [u8; 8]) {
        let mut sent = message(payloads);
        sent.header.exchange = ExchangeType::KEY_DISTRIBUTE;
        let octets = toy_seal(&sent, iv);
        let Datagram::Sealed(sealed) = Datagram::decode(&octets).unwrap() else {
            return Err(TestCaseError::fail("it was sealed"));
        };
        prop_assert_eq!(toy_open(&sealed), Ok(sent));
    }

    #[test]
    fn pieces_fit_and_make_up_the_whole(payloads in vec(payload(), 0..8), room in 80_usize..700) {
        let content = Content::new(&payloads);
        let mut joined = Vec::new();
        let pieces = content.pieces(Frame::AEAD, room);
        for (index, (at, piece)) in pieces.iter().enumerate() {
            prop_assert_eq!(usize::from(at.number), index + 1);
            prop_assert_eq!(usize::from(at.total), pieces.len());
            let octets = toy_fragment(piece, at.number, at.total);
            prop_assert!(octets.len() <= room);
            let Datagram::Sealed(sealed) = Datagram::decode(&octets).unwrap() else {
                return Err(TestCaseError::fail("it was sealed"));
            };
            let opened = sealed.content_with(Frame::AEAD, |_, _, text, _| {
                text.iter_mut().for_each(|octet| *octet ^= 0x5a);
                Ok::<_, ()>(())
            });
            joined.extend_from_slice(&opened.unwrap().octets);
        }
        prop_assert_eq!(&joined, &*content.octets);
    }

    #[test]
    fn arbitrary_octets_never_panic(octets in octets(0..400)) {
        let _ = Datagram::decode(&octets);
        let _ = decode_zone_map(&octets);
        let _ = GrantReply::decode(&octets);
        let _ = decode_nodes(&octets);
        if let Ok(place) = decode_place(&octets) {
            prop_assert_eq!(decode_place(&encode_place(&place)), Ok(place));
        }
        if let Ok(token) = Token::decode(&octets) {
            prop_assert_eq!(token.encode(), octets.clone());
        }
        if let Ok(licences) = decode_licences(&octets) {
            prop_assert_eq!(encode_licences(&licences), octets);
        }
    }

    #[test]
    fn a_token_says_the_same_when_it_was_read_and_damaged_ones_never_panic(
        spis: [u32; 2], nonce: [u8; 16], expiry: u32, zones in 0..=8_u8, mac: [u8; 16], holder in identity(),
        at: prop::sample::Index, value: u8,
    ) {
        let mut spis = spis.map(Spi);
        spis.sort();
        let zones = (1..=zones).map(ZoneId).collect();
        let token = Token { spis, nonce, expiry, zones, mac, holder };
        let mut octets = token.encode();
        prop_assert_eq!(Token::decode(&octets), Ok(token));
        let at = at.index(octets.len());
        octets[at] = value;
        if let Ok(token) = Token::decode(&octets) {
            prop_assert_eq!(token.encode(), octets);
        }
    }

    #[test]
    fn arbitrary_chains_behind_a_good_header_never_panic(kind: u8, tail in octets(0..300)) {
        let mut octets = message(Vec::new()).encode();
        octets.extend(tail);
        octets[16] = kind;
        let length = octets.len() as u32;
        octets[24..28].copy_from_slice(&length.to_be_bytes());
        if let Ok(Datagram::Sealed(sealed)) = Datagram::decode(&octets) {
            let _ = sealed.open_with(Frame::AEAD, |_, _, _, _| Ok::<_, ()>(()));
        }
    }

    #[test]
    fn damaged_messages_never_panic(
        payloads in vec(payload(), 1..6), at: prop::sample::Index, value: u8,
    ) {
        let mut octets = message(payloads).encode();
        let at = at.index(octets.len());
        octets[at] = value;
        let _ = Datagram::decode(&octets);
    }

    #[test]
    fn a_zone_map_that_decodes_encodes_to_the_same_octets(
        at: prop::sample::Index, value: u8,
    ) {
        let mut octets = encode_zone_map(&agreement());
        let at = at.index(octets.len());
        octets[at] = value;
        if let Ok(agreement) = decode_zone_map(&octets) {
            prop_assert_eq!(encode_zone_map(&agreement), octets);
        }
    }
}
