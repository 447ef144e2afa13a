use super::*;
use crate::codec::Malformed;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const HOME: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 7);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const CARE_OF: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

fn request() -> Request {
    Request {
        flags: RequestFlags::SIMULTANEOUS | RequestFlags::REVERSE_TUNNEL,
        lifetime: Lifetime(300),
        home: HOME,
        home_agent: HOME_AGENT,
        care_of: CARE_OF,
        identification: 0x0123_4567_89ab_cdef,
    }
}

fn advertisement() -> Advertisement {
    Advertisement {
        routes_for_all: false,
        lifetime: 3,
        routers: Vec::new(),
        agent: Some(Agent {
            sequence: 258,
            registration_lifetime: Lifetime(600),
            flags: AgentFlags::REGISTRATION_REQUIRED
                | AgentFlags::FOREIGN_AGENT
                | AgentFlags::REVERSE_TUNNEL,
            care_of: vec![CARE_OF],
        }),
    }
}

fn signed(between: Between) -> Vec<u8> {
    let mut octets = request().encode();
    append_authentication(&mut octets, between, (0x1001, 3), |covered| {
        vec![covered.len() as u8; 3]
    });
    octets
}

/// Drawn in section 2.1.1, with the ICMP header of RFC 1256 section 4.
#[test]
fn an_advertisement_is_as_the_standard_draws_it() {
    let octets = advertisement().encode();
    let expected = [
        9, 16, 0x28, 0x50, 0, 2, 0, 3, // ICMP: no addresses, of two words each, 3 s
        16, 10, 1, 2, 2, 0x58, 0x91, 0, 198, 51, 100, 2, // agent: 258, 600 s, R F T
    ];
    assert_eq!(octets, expected);
    assert_eq!(Advertisement::parse(&octets), Ok(advertisement()));
}

#[test]
fn prefix_lengths_are_those_of_the_routers_and_padding_makes_the_length_even() {
    let mut with_router = advertisement();
    with_router.routers = vec![Router {
        address: CARE_OF,
        preference: i32::MIN,
        prefix_length: Some(24),
    }];
    let octets = with_router.encode();
    assert_eq!(octets[28..], [19, 1, 24, 0]);
    assert_eq!(Advertisement::parse(&octets), Ok(with_router));
}

#[test]
fn prefix_lengths_for_more_routers_than_there_are_do_not_fit() {
    let mut octets = advertisement().encode();
    octets.extend([19, 1, 24, 0]);
    assert_eq!(
        Advertisement::parse(&mended(octets)),
        Err(Malformed::Length("the Prefix-Lengths extension"))
    );
}

#[test]
fn an_advertisement_with_a_wrong_checksum_is_none() {
    let mut octets = advertisement().encode();
    octets[2] ^= 1;
    assert!(Advertisement::parse(&octets).is_err());
    let mut octets = Solicitation.encode();
    assert_eq!(octets[..2], [10, 0]);
    assert_eq!(Solicitation::parse(&octets), Ok(Solicitation));
    octets[3] ^= 1;
    assert!(Solicitation::parse(&octets).is_err());
}

#[test]
fn a_router_that_is_no_agent_says_so() {
    let mut router = advertisement();
    router.agent = None;
    assert_eq!(Advertisement::parse(&router.encode()), Ok(router));
}

/// "A mobile node MUST ignore reserved bits in Agent Advertisements" (section 2.4).
#[test]
fn reserved_bits_of_an_advertisement_are_ignored() {
    let mut octets = advertisement().encode();
    octets[14] |= 0x02;
    octets[15] |= 0x1f;
    assert_eq!(Advertisement::parse(&mended(octets)), Ok(advertisement()));
}

/// Section 1.8, for both sets of extensions.
#[test]
fn an_unknown_extension_below_128_refuses_the_message_and_one_above_is_skipped() {
    for (kind, is_read) in [(1, false), (127, false), (128, true), (255, true)] {
        let mut octets = signed(Between::MobileHome);
        octets.extend([kind, 2, 0, 0]);
        assert_eq!(Request::parse(&octets).is_ok(), is_read, "{kind}");
        let mut octets = advertisement().encode();
        octets.extend([kind, 2, 0, 0]);
        let read = Advertisement::parse(&mended(octets));
        assert_eq!(read.is_ok(), is_read, "{kind}");
    }
}

#[test]
fn a_request_is_as_the_standard_draws_it() {
    let octets = request().encode();
    let expected = [
        1, 0x82, 1, 44, 10, 66, 0, 7, 192, 0, 2, 1, 198, 51, 100, 2, // to the care-of address
        0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
    ];
    assert_eq!(octets, expected);
    assert_eq!(Request::parse(&octets).unwrap().0, request());
}

#[test]
fn a_reply_is_as_the_standard_draws_it() {
    let reply = Reply::to(&request(), Code::HomeIdentification);
    let octets = reply.encode();
    let expected = [
        3, 133, 1, 44, 10, 66, 0, 7, 192, 0, 2, 1, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
    ];
    assert_eq!(octets, expected);
    assert_eq!(Reply::parse(&octets).unwrap().0, reply);
}

/// Both "Sent as zero; ignored on reception" (section 3.3).
#[test]
fn the_bits_r_and_x_of_a_request_are_ignored() {
    let mut octets = request().encode();
    octets[1] |= 0x05;
    assert_eq!(Request::parse(&octets).unwrap().0, request());
}

#[test]
fn an_authenticator_covers_all_before_it_with_its_type_length_and_spi() {
    let octets = signed(Between::MobileHome);
    let (_, extensions) = Request::parse(&octets).unwrap();
    let found = extensions.only(Between::MobileHome).unwrap();
    assert_eq!(found.covered, &octets[..30]);
    assert_eq!(octets[24..30], [32, 7, 0, 0, 0x10, 1]);
    assert_eq!((found.spi, found.authenticator), (0x1001, &[30; 3][..]));
    assert_eq!(found.end(), octets.len());
    assert_eq!(extensions.only(Between::ForeignHome), None);
}

#[test]
fn of_two_authentications_between_the_same_none_is_the_only_one() {
    let mut octets = signed(Between::ForeignHome);
    octets.extend_from_within(24..);
    let (_, extensions) = Request::parse(&octets).unwrap();
    assert_eq!(extensions.only(Between::ForeignHome), None);
    assert!(extensions.has(kind::FOREIGN_HOME));
}

#[test]
fn an_authentication_without_room_for_its_spi_is_unreadable() {
    let mut octets = request().encode();
    octets.extend([32, 3, 0, 0, 0]);
    assert!(Request::parse(&octets).is_err());
    octets.truncate(25);
    assert!(Request::parse(&octets).is_err());
}

#[test]
fn every_code_has_one_number_and_a_text() {
    for number in 0..=255 {
        let code = Code::from_number(number);
        assert_eq!(code.number(), number);
        assert!(code.to_string().len() > 10);
    }
    assert_eq!(Code::ALL.len(), 36);
    assert!(!Code::ALL.iter().any(|code| matches!(code, Code::Other(_))));
}

#[test]
fn a_foreign_agent_denies_by_64_to_127_and_by_194() {
    for code in Code::ALL {
        let foreign = matches!(code.number(), 64..=127 | 194);
        assert_eq!(code.party() == Party::ForeignAgent, foreign, "{code}");
        assert_eq!(code.is_accepted(), code.number() < 2);
    }
}

const PREVIOUS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

fn note() -> Note<'static> {
    Note {
        previous: PREVIOUS,
        registration: 0x0123_4567_89ab_cdef,
        spi: 0x1003,
        authenticator: &[7; 4],
    }
}

/// The note is our own extension, without a standard: this test fixes its form.
#[test]
fn a_note_is_behind_what_is_authenticated_for_the_home_agent() {
    let mut octets = signed(Between::MobileHome);
    let end = octets.len();
    note().append(&mut octets);
    let expected = [
        255, 22, 1, 0, 198, 51, 100, 1, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 0, 0x10,
        3, 7, 7, 7, 7,
    ];
    assert_eq!(octets[end..], expected);
    let (_, extensions) = Request::parse(&octets).unwrap();
    assert_eq!(Note::find(extensions), Some(note()));
    assert_eq!(extensions.only(Between::MobileHome).unwrap().end(), end);
}

#[test]
fn what_a_note_proves_is_another_for_each_field_of_it() {
    let base = note().covered(HOME, CARE_OF);
    let others = [
        note().covered(CARE_OF, CARE_OF),
        note().covered(HOME, HOME),
        Note {
            previous: HOME,
            ..note()
        }
        .covered(HOME, CARE_OF),
        Note {
            registration: 1,
            ..note()
        }
        .covered(HOME, CARE_OF),
        Note { spi: 1, ..note() }.covered(HOME, CARE_OF),
    ];
    assert!(others.iter().all(|other| *other != base));
    assert!(![message::REQUEST, message::REPLY].contains(&base[0]));
}

#[test]
fn of_two_notes_none_is_the_one_and_the_experiments_of_others_are_none() {
    let mut octets = signed(Between::MobileHome);
    for other in [&[255, 0][..], &[255, 1, 1], &[255, 18, 2], &[255, 17, 1]] {
        let mut octets = octets.clone();
        octets.extend(other);
        octets.resize(octets.len() + usize::from(other[1]) + 2 - other.len(), 0);
        let (_, extensions) = Request::parse(&octets).unwrap();
        assert_eq!(Note::find(extensions), None);
    }
    for expected in [Some(note()), None] {
        note().append(&mut octets);
        let (_, extensions) = Request::parse(&octets).unwrap();
        assert_eq!(Note::find(extensions), expected);
    }
}

#[test]
fn a_notice_and_its_answer_are_told_apart_and_read_as_nothing_else() {
    for (step, number) in [(Step::Told, 1), (Step::Answered, 2)] {
        let notice = Notice {
            step,
            lifetime: Lifetime(5),
            home: HOME,
            identification: 0x0123_4567_89ab_cdef,
        };
        let octets = notice.encode();
        let expected = [
            255, number, 0, 5, 10, 66, 0, 7, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
        ];
        assert_eq!(octets, expected);
        assert_eq!(Notice::parse(&octets).unwrap().0, notice);
        assert!(Request::parse(&octets).is_err() && Reply::parse(&octets).is_err());
        assert!(Notice::parse(&octets[..15]).is_err());
        for wrong in [0, 3] {
            let mut octets = octets.clone();
            octets[1] = wrong;
            assert!(Notice::parse(&octets).is_err());
        }
    }
}

const TEST: HomeTest = HomeTest {
    home: HOME,
    cookie: [
        0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
    ],
};

/// A datagram with the test of a home address from any host.
fn datagram(test: HomeTest) -> Vec<u8> {
    let mut datagram = vec![
        0x45, 0, 0, 52, 0, 0, 0, 0, 60, 17, 0, 0, 192, 0, 2, 9, 10, 66, 0, 7, 0x30, 0x39, 1, 0xb2,
        0, 32, 0, 0,
    ];
    datagram.extend(test.encode());
    datagram
}

#[test]
fn the_test_of_a_home_address_is_found_in_a_datagram_for_that_address_only() {
    assert_eq!(TEST.encode()[..8], [255, 3, 0, 0, 10, 66, 0, 7]);
    assert_eq!(TEST.encode()[8..], TEST.cookie);
    assert!(Notice::parse(&TEST.encode()).is_err());
    assert_eq!(HomeTest::within(&datagram(TEST)), Some(TEST));
    // Version, length, fragment, protocol, destination, port, length, type, sub-type, reserved and
    // home address.
    for at in [0, 3, 7, 9, 19, 23, 25, 28, 29, 30, 31, 35] {
        let mut other = datagram(TEST);
        other[at] ^= 1;
        assert_eq!(HomeTest::within(&other), None, "{at}");
    }
    for len in 0..52 {
        assert_eq!(HomeTest::within(&datagram(TEST)[..len]), None);
    }
    // Another source, another time to live, and a checksum.
    for at in [8, 10, 12, 20, 26] {
        let mut other = datagram(TEST);
        other[at] ^= 1;
        assert_eq!(HomeTest::within(&other), Some(TEST), "{at}");
    }
}

#[test]
fn what_is_enclosed_is_behind_what_is_authenticated_for_the_home_agent() {
    let mut octets = signed(Between::MobileHome);
    let end = octets.len();
    // Experiments of others are ignored.
    octets.extend([255, 0, 255, 3, 1, 0, 9]);
    for enclosed in [&[7, 8][..], &[]] {
        Enclosure(enclosed).append(&mut octets);
    }
    Enclosure(&[0; Enclosure::LONGEST + 1]).append(&mut octets);
    assert_eq!(octets[end + 7..], [255, 4, 2, 0, 7, 8, 255, 2, 2, 0]);
    let (_, extensions) = Request::parse(&octets).unwrap();
    let all: Vec<_> = Enclosure::all(extensions).collect();
    assert_eq!(all, [Enclosure(&[7, 8]), Enclosure(&[])]);
    assert_eq!(extensions.only(Between::MobileHome).unwrap().end(), end);
}

fn ask() -> UdpTunnelRequest {
    UdpTunnelRequest {
        forced: true,
        through_agent: false,
        encapsulation: 4,
    }
}

const WILL: UdpTunnelReply = UdpTunnelReply {
    code: UdpTunnelReply::WILL,
    forced: true,
    keepalive: 110,
};

/// RFC 3519 section 3.1.
#[test]
fn a_udp_tunnel_request_is_as_the_standard_draws_it() {
    let mut octets = signed(Between::MobileHome);
    let end = octets.len();
    ask().append(&mut octets);
    assert_eq!(octets[end..], [144, 6, 0, 0, 0x80, 4, 0, 0]);
    let (_, extensions) = Request::parse(&octets).unwrap();
    assert_eq!(UdpTunnelRequest::find(extensions), Some(ask()));
    let through_agent = UdpTunnelRequest {
        through_agent: true,
        ..UdpTunnelRequest::default()
    };
    let mut octets = signed(Between::MobileHome);
    through_agent.append(&mut octets);
    assert_eq!(octets[end + 4..], [0x40, 0, 0, 0]);
    let (_, extensions) = Request::parse(&octets).unwrap();
    assert_eq!(UdpTunnelRequest::find(extensions), Some(through_agent));
}

/// "Reserved 1" and "Reserved 2" are ignored. A request with "Reserved 3" set (section 3.1.3) or
/// another sub-type is skipped.
#[test]
fn a_udp_tunnel_request_that_is_not_understood_is_skipped() {
    let read = |body: &[u8]| {
        let mut octets = signed(Between::MobileHome);
        octets.extend([144, body.len() as u8]);
        octets.extend(body);
        let (_, extensions) = Request::parse(&octets).unwrap();
        UdpTunnelRequest::find(extensions)
    };
    assert_eq!(read(&[0, 9, 0xbf, 4, 0, 0]), Some(ask()));
    for body in [
        &[0, 0, 0x80, 4, 0, 1][..],
        &[0, 0, 0x80, 4, 1, 0],
        &[1, 0, 0x80, 4, 0, 0],
        &[0, 0, 0x80, 4, 0],
        &[],
    ] {
        assert_eq!(read(body), None);
    }
}

#[test]
fn of_two_udp_tunnel_requests_none_is_the_one() {
    let mut octets = signed(Between::MobileHome);
    for expected in [Some(ask()), None] {
        ask().append(&mut octets);
        let (_, extensions) = Request::parse(&octets).unwrap();
        assert_eq!(UdpTunnelRequest::find(extensions), expected);
    }
}

/// Sections 4.4 and 4.5: the position of a tunnel request determines its sender.
#[test]
fn extensions_are_in_front_of_what_authenticates_them_or_behind_it() {
    let mut octets = request().encode();
    ask().append(&mut octets);
    append_authentication(&mut octets, Between::MobileHome, (0x1001, 3), |_| {
        vec![1; 3]
    });
    let theirs = UdpTunnelRequest {
        encapsulation: 0,
        ..ask()
    };
    theirs.append(&mut octets);
    append_authentication(&mut octets, Between::ForeignHome, (0x1002, 3), |_| {
        vec![2; 3]
    });
    ask().append(&mut octets);
    let (_, all) = Request::parse(&octets).unwrap();
    let mobile = all.only(Between::MobileHome).unwrap();
    let foreign = all.only(Between::ForeignHome).unwrap();
    let find = UdpTunnelRequest::find;
    assert_eq!(find(all.before(&mobile)), Some(ask()));
    assert_eq!(find(all.after(&mobile).before(&foreign)), Some(theirs));
    assert_eq!(find(all.after(&foreign)), Some(ask()));
    assert_eq!(all.after(&foreign).before(&mobile).iter().count(), 0);
}

/// Section 3.2.
#[test]
fn a_udp_tunnel_reply_is_as_the_standard_draws_it() {
    let reply = Reply::to(&request(), Code::Accepted);
    let mut octets = reply.encode();
    let end = octets.len();
    WILL.append(&mut octets);
    assert_eq!(octets[end..], [44, 6, 0, 0, 0x80, 0, 0, 110]);
    let (_, extensions) = Reply::parse(&octets).unwrap();
    assert_eq!(UdpTunnelReply::find(extensions), Some(WILL));
    let codes = [(0, true), (63, true), (64, false), (255, false)];
    for (code, assents) in codes {
        assert_eq!(UdpTunnelReply { code, ..WILL }.assents(), assents);
    }
}

/// The extension is not skippable: a node that does not understand it does not know the path of
/// packets.
#[test]
fn a_reply_with_a_udp_tunnel_reply_that_is_not_understood_is_refused() {
    for body in [&[1, 0, 0, 0, 0, 0][..], &[0, 0, 0, 0, 0], &[0; 7]] {
        let mut octets = Reply::to(&request(), Code::Accepted).encode();
        octets.extend([44, body.len() as u8]);
        octets.extend(body);
        assert!(Reply::parse(&octets).is_err(), "{body:?}");
    }
}

/// Section 3.3.
#[test]
fn tunnel_data_is_as_the_standard_draws_it_and_read_as_nothing_else() {
    let octets = TunnelData::IP_IN_UDP.octets();
    assert_eq!(octets, [4, 4, 0, 0]);
    assert_eq!(
        TunnelData::parse(&[4, 47, 1, 2, 3]).unwrap().next_header,
        47
    );
    assert!(TunnelData::parse(&octets[..3]).is_err());
    assert!(Request::parse(&octets).is_err() && Reply::parse(&octets).is_err());
    for kind in [message::REQUEST, message::REPLY, message::EXPERIMENT] {
        assert!(TunnelData::parse(&[kind, 4, 0, 0]).is_err());
    }
}

const ECHO: echo::Echo = echo::Echo {
    identifier: 0x1234,
    sequence: 9,
    cookie: 0x0123_4567_89ab_cdef,
};

#[test]
fn an_echo_request_comes_back_as_what_answers_it() {
    let asked = ECHO.request(HOME, HOME_AGENT);
    assert_eq!(echo::Echo::answered_by(&asked), None);
    let mut answer = asked.clone();
    assert!(echo::answer(&mut answer, HOME_AGENT));
    assert_eq!(echo::Echo::answered_by(&answer), Some(ECHO));
    let header = crate::ip_in_ip::whole(&answer).unwrap();
    assert_eq!(
        (header.source(), header.destination()),
        (HOME_AGENT.into(), HOME.into())
    );
    assert!(
        !echo::answer(&mut answer, HOME),
        "an answer is not answered"
    );
}

#[test]
fn nothing_but_an_echo_request_for_us_is_answered() {
    let asked = ECHO.request(HOME, HOME_AGENT);
    let mut for_another = asked.clone();
    assert!(!echo::answer(&mut for_another, CARE_OF));
    // Another protocol, a fragment, options, another type, and a wrong checksum.
    for (at, value) in [(9, 17), (6, 0x20), (0, 0x46), (20, 13), (30, 1)] {
        let mut other = asked.clone();
        other[at] = value;
        let before = other.clone();
        assert!(!echo::answer(&mut other, HOME_AGENT), "octet {at}");
        assert_eq!(other, before);
    }
}

#[test]
fn a_lifetime_is_counted_in_seconds_or_has_no_end() {
    use std::time::Duration;
    let of = |seconds| Lifetime::from_duration(Duration::from_secs(seconds));
    assert_eq!((of(300), of(70_000)), (Lifetime(300), Lifetime(0xfffe)));
    assert_eq!(Lifetime(300).duration(), Some(Duration::from_secs(300)));
    assert_eq!(Lifetime::INFINITE.duration(), None);
}

/// Returns the message with a right checksum.
fn mended(mut octets: Vec<u8>) -> Vec<u8> {
    if octets.len() >= 4 {
        octets[2..4].fill(0);
        return icmp::finish(octets);
    }
    octets
}

proptest! {
    #[test]
    fn any_datagram_is_answered_rightly_or_left(
        mut octets in proptest::collection::vec(any::<u8>(), 0..60),
        at in 0..40_usize,
        value in any::<u8>(),
    ) {
        let mut asked = ECHO.request(HOME, HOME_AGENT);
        if let Some(octet) = asked.get_mut(at) {
            *octet = value;
        }
        for datagram in [&mut asked, &mut octets] {
            let before = datagram.clone();
            match echo::answer(datagram, HOME_AGENT) {
                true => prop_assert!(echo::Echo::answered_by(datagram).is_some() || datagram.len() != 36),
                false => prop_assert_eq!(&*datagram, &before),
            }
        }
    }

    #[test]
    fn any_octets_are_read_without_panic_and_what_was_read_is_written_alike(
        first in prop_oneof![Just(1_u8), Just(3), Just(4), Just(9), Just(10), Just(255)],
        rest in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0), 16..35_u8, Just(255), Just(1), Just(2), Just(44), Just(144), Just(6)], 0..120),
    ) {
        let mut octets = vec![first];
        octets.extend(rest);
        if let Ok((request, extensions)) = Request::parse(&octets) {
            prop_assert_eq!(Request::parse(&request.encode()).unwrap().0, request);
            prop_assert!(extensions.iter().count() < octets.len());
            let _ = extensions.only(Between::MobileHome);
            prop_assert!(Enclosure::all(extensions).count() < octets.len());
            if let Some(asked) = UdpTunnelRequest::find(extensions) {
                let mut octets = request.encode();
                asked.append(&mut octets);
                let (_, extensions) = Request::parse(&octets).unwrap();
                prop_assert_eq!(UdpTunnelRequest::find(extensions), Some(asked));
            }
            if let Some(note) = Note::find(extensions) {
                let mut octets = request.encode();
                note.append(&mut octets);
                prop_assert_eq!(Note::find(Request::parse(&octets).unwrap().1), Some(note));
            }
        }
        if let Ok((notice, extensions)) = Notice::parse(&octets) {
            prop_assert_eq!(Notice::parse(&notice.encode()).unwrap().0, notice);
            let _ = Note::find(extensions);
        }
        let _ = HomeTest::within(&octets);
        if let Ok((reply, extensions)) = Reply::parse(&octets) {
            prop_assert_eq!(Reply::parse(&reply.encode()).unwrap().0, reply);
            if let Some(answer) = UdpTunnelReply::find(extensions) {
                let mut octets = reply.encode();
                answer.append(&mut octets);
                let (_, extensions) = Reply::parse(&octets).unwrap();
                prop_assert_eq!(UdpTunnelReply::find(extensions), Some(answer));
            }
        }
        if let Ok(data) = TunnelData::parse(&octets) {
            prop_assert_eq!(TunnelData::parse(&data.octets()), Ok(data));
        }
        let octets = mended(octets);
        let _ = Solicitation::parse(&octets);
        if let Ok(read) = Advertisement::parse(&octets) {
            prop_assert_eq!(Advertisement::parse(&read.encode()), Ok(read));
        }
    }
}
