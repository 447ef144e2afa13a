//! Attacks on a mobile node from its link, without a key. Any host can send advertisements, and
//! denials of foreign agents without a key.

use super::super::world::{Node, World};
use super::*;

/// The longest registration that genuine agents accept.
const LONG: Lifetime = Lifetime(600);

/// A mobile node that knows no agents.
fn mobile() -> MobileNode {
    mobile_with(mobile_config())
}

/// An advertisement with these two lifetimes: its own in seconds, and the longest registration.
fn said(number: u8, (heard, registered): (u16, Lifetime)) -> Vec<u8> {
    let mut advertisement = advertisement(number, 5);
    advertisement.lifetime = heard;
    if let Some(agent) = &mut advertisement.agent {
        agent.registration_lifetime = registered;
    }
    advertisement.encode()
}

fn hear(mobile: &mut MobileNode, number: u8, lifetimes: (u16, Lifetime), now: Instant) {
    let octets = said(number, lifetimes);
    mobile.handle_advertisement(WLAN[0], agent(number), station(agent(number)), &octets, now);
}

/// The only request to send.
fn asked(mobile: &mut MobileNode) -> Request {
    let datagrams = datagrams(|| mobile.poll_transmit());
    assert_eq!(datagrams.len(), 1, "there is one request");
    Request::parse(&datagrams[0]).unwrap().0
}

/// A mobile node registered through the first agent for this lifetime.
fn registered(lifetime: Lifetime) -> MobileNode {
    let mut mobile = mobile();
    hear(&mut mobile, 1, (3, LONG), at(0));
    grant(&mut mobile, Code::Accepted, lifetime, at(10));
    assert_eq!(mobile.registrations().count(), 1);
    mobile
}

fn care_of(mobile: &MobileNode) -> Vec<Ipv4Addr> {
    mobile.registrations().map(|at| at.care_of).collect()
}

// Weakness: 85
#[test]
fn an_advertised_registration_lifetime_of_zero_deregisters_nobody() {
    let mut world = World::new(1, 41);
    world.move_to(&[0]);
    let forged = said(0, (3, Lifetime::NONE));
    for _ in 0..20 {
        let now = world.now;
        world
            .mobile
            .handle_advertisement(WLAN[0], agent(0), station(agent(0)), &forged, now);
        world.run_for(millis(300));
    }
    world.assert_at(0);
    let asked = world.requests(Node::Mobile);
    assert!(
        asked
            .iter()
            .all(|request| request.lifetime == Lifetime(300))
    );
    let is_end = |event: &MobileEvent| matches!(event, MobileEvent::Deregistered { .. });
    assert!(!world.events.iter().any(is_end), "{:?}", world.events);
    assert_eq!(
        world.mobile.counters().dropped[&Dropped::NoForeignAgent],
        20
    );
}

#[test]
fn an_agent_whose_registrations_are_too_short_to_be_renewed_is_of_no_use() {
    for (seconds, is_asked) in [(0, false), (1, false), (4, false), (5, true)] {
        let mut mobile = mobile();
        hear(&mut mobile, 1, (3, Lifetime(seconds)), at(0));
        let requests = datagrams(|| mobile.poll_transmit()).len();
        assert_eq!(requests == 1, is_asked, "{seconds} s");
        let dropped = mobile.counters().dropped.get(&Dropped::NoForeignAgent);
        assert_eq!(dropped.is_none(), is_asked, "{seconds} s");
    }
}

#[test]
fn a_registration_lifetime_that_was_forged_ends_with_the_next_advertisement() {
    let mut mobile = mobile();
    hear(&mut mobile, 1, (60, Lifetime(8)), at(0));
    let first = grant(&mut mobile, Code::Accepted, Lifetime(8), at(10));
    assert_eq!(first.lifetime, Lifetime(8));
    hear(&mut mobile, 1, (60, LONG), at(1_000));
    mobile.handle_timeout(at(6_000));
    assert_eq!(asked(&mut mobile).lifetime, Lifetime(300));
}

/// Section 3.6.2.3: a denial from a foreign agent without a key is not authenticated.
// Weakness: 85
#[test]
fn a_limit_that_nobody_has_proved_ends_with_the_registration_that_it_made_short() {
    let mut mobile = mobile();
    hear(&mut mobile, 1, (60, LONG), at(0));
    grant(&mut mobile, Code::ForeignLifetime, Lifetime(8), at(10));
    hear(&mut mobile, 1, (60, LONG), at(500));
    mobile.handle_timeout(at(1_000));
    let short = grant(&mut mobile, Code::Accepted, Lifetime(8), at(1_010));
    assert_eq!(short.lifetime, Lifetime(8), "the agent may have meant it");
    mobile.handle_timeout(at(7_000));
    assert_eq!(asked(&mut mobile).lifetime, Lifetime(300));
}

#[test]
fn a_limit_that_is_too_short_to_be_of_use_is_a_denial() {
    for limit in [Lifetime::NONE, Lifetime(1), Lifetime(4)] {
        let mut mobile = mobile();
        hear(&mut mobile, 1, (60, LONG), at(0));
        grant(&mut mobile, Code::ForeignLifetime, limit, at(10));
        mobile.handle_timeout(at(9_000));
        assert!(datagrams(|| mobile.poll_transmit()).is_empty(), "{limit}");
        mobile.handle_timeout(at(10_010));
        assert_eq!(
            asked(&mut mobile).lifetime,
            Lifetime(300),
            "it is forgotten"
        );
    }
}

/// Section 3.4: "A value of zero indicates that the mobile node has been deregistered."
// Weakness: 85
#[test]
fn a_grant_of_nothing_ends_a_registration_and_not_the_mobile_node() {
    let mut mobile = registered(Lifetime(100));
    while mobile.poll_event().is_some() {}
    hear(&mut mobile, 1, (300, LONG), at(1_000));
    mobile.handle_timeout(at(75_000));
    grant(&mut mobile, Code::Accepted, Lifetime::NONE, at(75_010));
    let events: Vec<_> = std::iter::from_fn(|| mobile.poll_event()).collect();
    let place = Attachment {
        interface: WLAN[0],
        agent: agent(1),
        care_of: agent(1),
    };
    let code = Code::HomeUnspecified;
    let expected = [
        MobileEvent::Denied { at: place, code },
        MobileEvent::Unregistered(place),
        MobileEvent::Route(None),
    ];
    assert_eq!(events, expected);
    assert_eq!(mobile.counters().denied[&code], 1);
    mobile.handle_timeout(at(80_000));
    assert!(datagrams(|| mobile.poll_transmit()).is_empty());
    mobile.handle_timeout(at(85_010));
    grant(&mut mobile, Code::Accepted, Lifetime(300), at(85_020));
    assert_eq!(care_of(&mobile), [agent(1)]);
}

/// Its request had the S bit: "the home agent retain its prior mobility bindings" (section 3.3).
#[test]
fn a_grant_of_nothing_ends_no_registration_beside_it() {
    let mut mobile = mobile_with(MobileNodeConfig {
        simultaneous: true,
        ..mobile_config()
    });
    hear(&mut mobile, 1, (300, LONG), at(0));
    grant(&mut mobile, Code::Accepted, Lifetime(300), at(10));
    hear(&mut mobile, 2, (300, LONG), at(2_000));
    let request = grant(&mut mobile, Code::Accepted, Lifetime::NONE, at(2_010));
    assert_eq!(request.care_of, agent(2));
    assert!(request.flags.has(RequestFlags::SIMULTANEOUS));
    assert_eq!(care_of(&mobile), [agent(1)]);
}

#[test]
fn a_request_is_a_deregistration_only_of_who_was_told_to_leave() {
    let mut mobile = mobile_with(MobileNodeConfig {
        lifetime: Lifetime::NONE,
        ..mobile_config()
    });
    hear(&mut mobile, 1, (3, LONG), at(0));
    let request = grant(&mut mobile, Code::Accepted, Lifetime::NONE, at(10));
    assert_eq!(request.care_of, agent(1));
    let is_end = |event: MobileEvent| matches!(event, MobileEvent::Deregistered { .. });
    assert!(!std::iter::from_fn(|| mobile.poll_event()).any(is_end));
    assert!(mobile.poll_timeout().is_some());
}

// Weakness: 85
#[test]
fn a_flood_of_advertisements_locks_no_genuine_agent_out() {
    let mut mobile = mobile();
    for number in 100..200 {
        hear(&mut mobile, number, (9_000, LONG), at(0));
    }
    hear(&mut mobile, 1, (3, LONG), at(100));
    let mut asked = Vec::new();
    for millis in (0..20_000).step_by(500) {
        if millis % 1_000 == 0 {
            hear(&mut mobile, 1, (3, LONG), at(100 + millis));
        }
        mobile.handle_timeout(at(100 + millis));
        let octets = datagrams(|| mobile.poll_transmit());
        asked.extend(
            octets
                .iter()
                .map(|one| Request::parse(one).unwrap().0.care_of),
        );
    }
    assert!(asked.contains(&agent(1)), "{asked:?}");
}

#[test]
fn a_flood_on_one_interface_locks_nobody_out_on_another() {
    let mut mobile = mobile();
    for number in 100..116 {
        hear(&mut mobile, number, (9_000, LONG), at(0));
    }
    mobile.handle_advertisement(
        WLAN[1],
        agent(1),
        station(agent(1)),
        &said(1, (3, LONG)),
        at(100),
    );
    assert!(
        !mobile
            .counters()
            .dropped
            .contains_key(&Dropped::TooManyAgents)
    );
    mobile.interface_lost(WLAN[0], at(200));
    mobile.handle_timeout(at(1_200));
    let last = datagrams(|| mobile.poll_transmit()).pop().unwrap();
    assert_eq!(Request::parse(&last).unwrap().0.care_of, agent(1));
}

#[test]
fn a_flood_pushes_out_neither_who_is_asked_nor_who_serves() {
    let mut mobile = mobile();
    hear(&mut mobile, 1, (3, LONG), at(0));
    let request = asked(&mut mobile);
    for number in 100..200 {
        hear(&mut mobile, number, (9_000, LONG), at(10));
    }
    let reply = reply_signed(&Reply::to(&request, Code::Accepted));
    mobile.handle_reply(WLAN[0], agent(1), station(agent(1)), &reply, at(20));
    assert_eq!(care_of(&mobile), [agent(1)]);
    for number in 100..200 {
        hear(&mut mobile, number, (9_000, LONG), at(30));
    }
    assert_eq!(care_of(&mobile), [agent(1)]);
    assert!(mobile.counters().dropped[&Dropped::TooManyAgents] > 150);
}

/// A forgotten agent returns as a new one, and another makes room for it.
#[test]
fn where_there_are_too_many_who_was_struck_makes_room_and_then_who_was_silent_for_longest() {
    let mut mobile = mobile();
    for number in 100..116 {
        hear(&mut mobile, number, (9_000, LONG), at(u64::from(number)));
    }
    grant(&mut mobile, Code::HomeProhibited, Lifetime(300), at(200));
    hear(&mut mobile, 100, (9_000, LONG), at(300));
    for (number, forgotten) in [(1, 1), (102, 1), (101, 1), (100, 2), (102, 2), (103, 3)] {
        hear(&mut mobile, number, (9_000, LONG), at(400));
        let counted = mobile.counters().dropped[&Dropped::TooManyAgents];
        assert_eq!(counted, forgotten, "{number}");
    }
}

/// RFC 1256 section 4.1.
#[test]
fn no_advertisement_is_believed_for_more_than_9000_seconds() {
    let mut mobile = mobile_with(MobileNodeConfig {
        lifetime: Lifetime::INFINITE,
        ..mobile_config()
    });
    hear(&mut mobile, 1, (0xffff, Lifetime::INFINITE), at(0));
    grant(&mut mobile, Code::Accepted, Lifetime::INFINITE, at(10));
    mobile.handle_timeout(at(8_999_999));
    assert_eq!(care_of(&mobile), [agent(1)]);
    mobile.handle_timeout(at(9_000_000));
    assert!(care_of(&mobile).is_empty());
}

// Weakness: 85
#[test]
fn an_agent_in_use_cannot_be_advertised_away_with_a_short_lifetime() {
    let mut mobile = registered(Lifetime(300));
    hear(&mut mobile, 1, (1, LONG), at(1_000));
    mobile.handle_timeout(at(2_900));
    assert_eq!(care_of(&mobile), [agent(1)]);
    mobile.handle_timeout(at(3_000));
    assert!(care_of(&mobile).is_empty(), "what it said itself counts");
}

/// The reverse: a forgery announces a longer lifetime than the agent, and then the mobile node
/// moves.
// Weakness: 85
#[test]
fn an_agent_in_use_cannot_be_advertised_to_be_there_when_it_is_left() {
    let mut mobile = registered(Lifetime(300));
    hear(&mut mobile, 1, (9_000, LONG), at(1_000));
    for second in 2..40 {
        hear(&mut mobile, 1, (3, LONG), at(second * 1_000));
    }
    mobile.handle_timeout(at(41_900));
    assert_eq!(care_of(&mobile), [agent(1)]);
    mobile.handle_timeout(at(42_000));
    assert!(care_of(&mobile).is_empty());
}

// Stations.

/// The station of an attacker that advertises in the agent's name.
const FALSE_STATION: Station = Station([2, 6, 6, 6, 6, 6]);

/// The stations that requests went to until a time, while a false station repeats this
/// advertisement.
fn asked_while(mobile: &mut MobileNode, forged: &[u8], until: u64) -> Vec<Option<Station>> {
    let mut asked = Vec::new();
    for millis in (500..=until).step_by(500) {
        hear(mobile, 1, (3, LONG), at(millis));
        mobile.handle_advertisement(WLAN[0], agent(1), FALSE_STATION, forged, at(millis));
        let transmits = std::iter::from_fn(|| mobile.poll_transmit());
        asked.extend(transmits.filter_map(|transmit| match transmit {
            Transmit::Udp { station, .. } => Some(station),
            Transmit::Icmp { .. } => None,
        }));
    }
    asked
}

// Weakness: 85
// Weakness: 114
#[test]
fn no_advertisement_moves_where_an_agent_in_use_is() {
    let nothing = [9, 0, 0, 0, 0, 0, 0, 0];
    let mut rebooted = advertisement(1, 0);
    rebooted.lifetime = 3;
    for forged in [&nothing[..], &said(1, (3, LONG)), &rebooted.encode()] {
        let mut mobile = registered(Lifetime(10));
        let asked = asked_while(&mut mobile, forged, 9_000);
        assert_eq!(asked[0], Some(station(agent(1))), "{forged:?}");
    }
}

/// An advertisement of no agent does not update the station, even before there is a registration.
// Weakness: 114
#[test]
fn what_is_no_agents_advertisement_moves_nobody() {
    let mut mobile = mobile();
    hear(&mut mobile, 1, (3, LONG), at(0));
    for forged in [vec![9, 0, 0, 0, 0, 0, 0, 0], said(1, (3, Lifetime::NONE))] {
        mobile.handle_advertisement(WLAN[0], agent(1), FALSE_STATION, &forged, at(1));
    }
    datagrams(|| mobile.poll_transmit());
    mobile.handle_timeout(at(1_000));
    let Some(Transmit::Udp { station: asked, .. }) = mobile.poll_transmit() else {
        panic!("it asks again");
    };
    assert_eq!(asked, Some(station(agent(1))));
}

/// The reply is authentic, and may have been overheard.
// Weakness: 114
#[test]
fn a_reply_from_another_station_than_was_asked_is_not_taken() {
    let mut mobile = mobile();
    hear(&mut mobile, 1, (3, LONG), at(0));
    let request = asked(&mut mobile);
    let reply = reply_signed(&Reply::to(&request, Code::Accepted));
    mobile.handle_reply(WLAN[0], agent(1), FALSE_STATION, &reply, at(10));
    assert_eq!(mobile.counters().dropped[&Dropped::WrongSource], 1);
    assert_eq!(mobile.registrations().count(), 0);
    mobile.handle_reply(WLAN[0], agent(1), station(agent(1)), &reply, at(11));
    let found = MobileEvent::Found {
        at: mobile.registrations().next().unwrap(),
        station: station(agent(1)),
    };
    assert_eq!(mobile.poll_event(), Some(found));
}

/// The agent's host was replaced: the old station no longer answers.
// Weakness: 114
#[test]
fn an_agent_that_leaves_three_requests_unanswered_is_asked_where_it_is_heard() {
    let mut mobile = registered(Lifetime(100));
    while mobile.poll_event().is_some() {}
    let moved = said(1, (3, LONG));
    let mut asked = Vec::new();
    for millis in (500..=95_000).step_by(500) {
        let now = at(millis);
        mobile.handle_advertisement(WLAN[0], agent(1), FALSE_STATION, &moved, now);
        while let Some(transmit) = mobile.poll_transmit() {
            let Transmit::Udp {
                station, octets, ..
            } = transmit
            else {
                continue;
            };
            asked.push(station.unwrap());
            if station == Some(FALSE_STATION) {
                let (request, _) = Request::parse(&octets).unwrap();
                let reply = reply_signed(&Reply::to(&request, Code::Accepted));
                mobile.handle_reply(WLAN[0], agent(1), FALSE_STATION, &reply, now);
            }
        }
    }
    let before = station(agent(1));
    assert_eq!(asked, [before, before, before, FALSE_STATION]);
    let events: Vec<_> = std::iter::from_fn(|| mobile.poll_event()).collect();
    let at = mobile.registrations().next().unwrap();
    let station = FALSE_STATION;
    let expected = [MobileEvent::Found { at, station }, MobileEvent::Renewed(at)];
    assert_eq!(events, expected);
}
