//! A station may be the first to claim a mobile node's home address, with a home agent of its own
//! that accepts every request. The home agent on the route of the address wins.

use super::super::world::{BAD, World, udp};
use super::*;
use ::world::Hop;
use wire::ecn::Ecn;
use wire::mobile_ip::{HomeTest, TunnelData};

/// The station of the thief, and its home agent.
const THIEF: Station = Station([2, 0, 0, 0, 0, 9]);
const FALSE_HOME_AGENT: Ipv4Addr = agent(9);
/// Another home agent that accepts every request.
const OTHER_HOME_AGENT: Ipv4Addr = agent(8);

/// A host that any test seems to come from.
const ANYWHERE: SocketAddrV4 = SocketAddrV4::new(agent(1), 40_000);

fn claimed(home_agent: Ipv4Addr, now: Instant) -> Request {
    Request {
        home_agent,
        ..request(1, now)
    }
}

fn ask(foreign: &mut ForeignAgent, station: Station, request: &Request, now: Instant) {
    let from = Arrival {
        interface: AIR,
        ttl: 255,
        ..arrival(request.home, request.care_of)
    };
    foreign.handle_nearby(&from, station, &signed(request), now);
}

fn grant(foreign: &mut ForeignAgent, request: &Request, reply: &Reply, now: Instant) {
    let from = arrival(request.home_agent, request.care_of);
    foreign.handle_datagram(&from, &reply_signed(reply), now);
}

/// Sends a request from a station, and has its home agent accept it.
fn claim(foreign: &mut ForeignAgent, station: Station, request: &Request, now: Instant) {
    ask(foreign, station, request, now);
    grant(foreign, request, &Reply::to(request, Code::Accepted), now);
}

/// The tests and the replies that were sent, and the stations of the replies.
#[derive(Default)]
struct Sent {
    tests: Vec<HomeTest>,
    replies: Vec<(Option<Station>, Reply)>,
}

fn sent(foreign: &mut ForeignAgent) -> Sent {
    let mut sent = Sent::default();
    while let Some(transmit) = foreign.poll_transmit() {
        let Transmit::Udp {
            interface,
            station,
            source,
            destination,
            octets,
            ..
        } = transmit
        else {
            continue;
        };
        if let Some(test) = HomeTest::within(&udp(source, destination, &octets)) {
            assert_eq!(interface, None, "by ordinary routes");
            assert_eq!(octets.len(), 24);
            sent.tests.push(test);
        } else if let Ok((reply, _)) = Reply::parse(&octets) {
            sent.replies.push((station, reply));
        }
    }
    sent
}

/// The only test that was sent.
fn only_test(foreign: &mut ForeignAgent) -> HomeTest {
    let tests = sent(foreign).tests;
    let [test] = tests[..] else {
        panic!("{tests:?}");
    };
    test
}

/// A test comes out of a tunnel. Returns true if it went no further.
fn comes(foreign: &mut ForeignAgent, from: Remote, test: HomeTest, now: Instant) -> bool {
    let inner = udp(ANYWHERE, SocketAddrV4::new(test.home, PORT), &test.encode());
    let data = TunnelData::IP_IN_UDP.octets();
    let front = from.udp().map_or(&[][..], |_| &data);
    let mut octets = [front, &inner].concat();
    let taken = foreign.decapsulate(from, Ecn::NotEct, &mut octets, now);
    matches!(taken, Ok(None))
}

fn holders(foreign: &ForeignAgent) -> Vec<(Ipv4Addr, Option<Station>)> {
    let visitors = foreign.visitors();
    let visitors = visitors.map(|visitor| (visitor.home_agent, visitor.station));
    visitors.collect()
}

fn events(foreign: &mut ForeignAgent) -> Vec<ForeignEvent> {
    std::iter::from_fn(|| foreign.poll_event()).collect()
}

fn visitor(home_agent: Ipv4Addr, station: Station) -> Visitor {
    Visitor {
        home: HOME,
        home_agent,
        interface: AIR,
        station: Some(station),
    }
}

/// An agent at which a thief has the home address.
fn stolen() -> ForeignAgent {
    let mut foreign = foreign();
    claim(
        &mut foreign,
        THIEF,
        &claimed(FALSE_HOME_AGENT, at(0)),
        at(0),
    );
    let sent = sent(&mut foreign);
    assert!(sent.tests.is_empty(), "nobody else has it");
    events(&mut foreign);
    foreign
}

/// An agent at which a thief has the home address, and its mobile node has claimed it.
fn contested() -> (ForeignAgent, Request, HomeTest) {
    let mut foreign = stolen();
    let own = request(1, at(1_000));
    claim(&mut foreign, STATION, &own, at(1_000));
    let test = only_test(&mut foreign);
    (foreign, own, test)
}

const STOLEN: [(Ipv4Addr, Option<Station>); 1] = [(FALSE_HOME_AGENT, Some(THIEF))];
const MENDED: [(Ipv4Addr, Option<Station>); 1] = [(HOME_AGENT, Some(STATION))];

// Weakness: 164
#[test]
fn a_station_that_is_the_first_to_claim_a_home_address_does_not_keep_its_mobile_node_out() {
    let (mut foreign, own, test) = contested();
    assert_eq!(holders(&foreign), STOLEN, "not yet");
    assert!(comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(1_050)));
    assert_eq!(holders(&foreign), MENDED);
    let replies = sent(&mut foreign).replies;
    let accepted = Reply::to(&own, Code::Accepted);
    assert_eq!(replies, [(Some(STATION), accepted)]);
    let thief = visitor(FALSE_HOME_AGENT, THIEF);
    let expected = [
        ForeignEvent::Displaced {
            visitor: thief,
            by: HOME_AGENT,
        },
        ForeignEvent::Left(thief),
        ForeignEvent::Came(visitor(HOME_AGENT, STATION)),
    ];
    assert_eq!(events(&mut foreign), expected);
    // Packets pass the tunnel of the mobile node's home agent only.
    for (from, passes) in [(HOME_AGENT, true), (FALSE_HOME_AGENT, false)] {
        let mut inner = udp(ANYWHERE, SocketAddrV4::new(HOME, 9), b"data");
        let taken = foreign.decapsulate(Remote::Ip(from), Ecn::NotEct, &mut inner, at(1_100));
        assert_eq!(taken.is_ok(), passes);
    }
}

#[test]
fn the_tunnel_may_be_in_udp() {
    let (mut foreign, _, test) = contested();
    let from = Remote::Udp(SocketAddrV4::new(HOME_AGENT, PORT));
    assert!(comes(&mut foreign, from, test, at(1_050)));
    assert_eq!(holders(&foreign), MENDED);
}

// Refuses: claimed-home-address
#[test]
fn a_home_agent_off_the_route_gets_no_home_address_that_another_one_has() {
    let mut foreign = foreign();
    claim(&mut foreign, STATION, &request(1, at(0)), at(0));
    sent(&mut foreign);
    events(&mut foreign);
    claim(
        &mut foreign,
        THIEF,
        &claimed(FALSE_HOME_AGENT, at(1_000)),
        at(1_000),
    );
    let test = only_test(&mut foreign);
    // The home agent on the route tunnels the test here. No station of the link sees it.
    assert!(comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(1_050)));
    assert_eq!(holders(&foreign), MENDED);
    let replies = sent(&mut foreign).replies;
    let [(Some(THIEF), denied)] = &replies[..] else {
        panic!("{replies:?}");
    };
    assert_eq!(denied.code, Code::ForeignHomeAuthentication);
    let told = ForeignEvent::Unproved(visitor(FALSE_HOME_AGENT, THIEF));
    assert_eq!(events(&mut foreign), [told]);
    assert_eq!(foreign.counters().dropped[&Dropped::NotRouted], 1);
    // The cookie is of no use any more.
    comes(&mut foreign, Remote::Ip(FALSE_HOME_AGENT), test, at(1_100));
    assert_eq!(holders(&foreign), MENDED);
}

/// The control of the tests above: without the answer to the test the first claim stands.
// Weakness: 164
#[test]
fn a_claim_that_is_not_shown_is_denied_and_the_first_one_stands() {
    let (mut foreign, _, _) = contested();
    let mut tests = 0;
    while let Some(due) = foreign.poll_timeout().filter(|due| due.at < at(3_500)) {
        foreign.handle_timeout(due.at);
        tests += sent(&mut foreign).tests.len();
    }
    assert_eq!(tests, 2, "and the first one");
    assert_eq!(holders(&foreign), STOLEN);
    foreign.handle_timeout(at(3_500));
    let replies = sent(&mut foreign).replies;
    assert_eq!(replies[0].1.code, Code::ForeignHomeAuthentication);
    let told = ForeignEvent::Unproved(visitor(HOME_AGENT, STATION));
    assert_eq!(events(&mut foreign), [told]);
    assert_eq!(holders(&foreign), STOLEN);
}

#[test]
fn a_test_that_is_lost_is_sent_again_and_one_that_is_doubled_changes_nothing() {
    let (mut foreign, _, test) = contested();
    foreign.handle_timeout(at(1_500));
    assert_eq!(only_test(&mut foreign), test);
    for millis in [1_600, 1_601] {
        comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(millis));
        assert_eq!(holders(&foreign), MENDED);
    }
    foreign.handle_timeout(at(10_000));
    assert!(sent(&mut foreign).tests.is_empty(), "the claim is settled");
    assert_eq!(holders(&foreign), MENDED);
}

/// A host answers requests in the name of the mobile node's home address, so that this seems to be
/// the address of a home agent. The thief has a home address of its own there.
fn called() -> ForeignAgent {
    let mut foreign = foreign();
    let calling = Request {
        home: Ipv4Addr::new(10, 66, 0, 8),
        ..claimed(HOME, at(0))
    };
    claim(&mut foreign, THIEF, &calling, at(0));
    assert!(sent(&mut foreign).tests.is_empty());
    events(&mut foreign);
    foreign
}

// Weakness: 173
#[test]
fn a_station_that_calls_a_home_address_a_home_agents_does_not_keep_its_mobile_node_out() {
    let mut foreign = called();
    let own = request(1, at(1_000));
    claim(&mut foreign, STATION, &own, at(1_000));
    let test = only_test(&mut foreign);
    // Its own visit, and what comes out of its tunnel, settle nothing.
    comes(&mut foreign, Remote::Ip(HOME), test, at(1_010));
    assert_eq!(holders(&foreign), [(HOME, Some(THIEF))]);
    assert!(comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(1_050)));
    assert_eq!(holders(&foreign), MENDED);
    let [(Some(STATION), accepted)] = sent(&mut foreign).replies[..] else {
        panic!("another reply");
    };
    assert_eq!(accepted.code, Code::Accepted);
    let thief = Visitor {
        home: Ipv4Addr::new(10, 66, 0, 8),
        ..visitor(HOME, THIEF)
    };
    let came = ForeignEvent::Came(visitor(HOME_AGENT, STATION));
    assert_eq!(events(&mut foreign), [ForeignEvent::Left(thief), came]);
    // The mobile node is a visitor by then, and renews its registration.
    let calling = Request {
        home: Ipv4Addr::new(10, 66, 0, 8),
        ..claimed(HOME, at(2_000))
    };
    claim(&mut foreign, THIEF, &calling, at(2_000));
    claim(&mut foreign, STATION, &request(1, at(3_000)), at(3_000));
    let test = only_test(&mut foreign);
    assert!(comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(3_050)));
    assert_eq!(holders(&foreign), MENDED);
}

/// The control: without the answer to the test the address stays that of a home agent.
// Weakness: 173
#[test]
fn a_claim_to_the_address_of_a_home_agent_is_denied_unless_it_is_shown() {
    let mut foreign = called();
    claim(&mut foreign, STATION, &request(1, at(1_000)), at(1_000));
    only_test(&mut foreign);
    foreign.handle_timeout(at(3_500));
    let replies = sent(&mut foreign).replies;
    assert_eq!(replies[0].1.code, Code::ForeignHomeAuthentication);
    assert_eq!(holders(&foreign), [(HOME, Some(THIEF))]);
}

/// What is guessed, forged or sent through other tunnels settles nothing. A neighbour may forward a
/// copy to this agent.
// Refuses: claimed-home-address
#[test]
fn only_the_cookie_by_the_tunnel_of_the_claim_shows_anything() {
    let (mut foreign, _, test) = contested();
    let guessed = HomeTest {
        cookie: [7; 16],
        ..test
    };
    let elsewhere = HomeTest {
        home: Ipv4Addr::new(10, 66, 0, 8),
        ..test
    };
    for (from, test) in [
        (HOME_AGENT, guessed),
        (HOME_AGENT, elsewhere),
        (OTHER_HOME_AGENT, test),
        (agent(0), test),
    ] {
        comes(&mut foreign, Remote::Ip(from), test, at(1_010));
        assert_eq!(holders(&foreign), STOLEN, "{from} {test:?}");
    }
    // Neither does one that comes without a tunnel, from the link or by routes.
    for station in [Some(THIEF), None] {
        let from = arrival(HOME_AGENT, agent(1));
        match station {
            Some(station) => foreign.handle_nearby(&from, station, &test.encode(), at(1_020)),
            None => foreign.handle_datagram(&from, &test.encode(), at(1_020)),
        }
        assert_eq!(holders(&foreign), STOLEN);
    }
    assert!(comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(1_050)));
    assert_eq!(holders(&foreign), MENDED);
}

/// The home agent answers a request that was sent again before the first is settled.
#[test]
fn the_reply_to_the_latest_request_is_passed_on_and_there_is_one_test() {
    let (mut foreign, _, test) = contested();
    let again = request(1, at(1_200));
    claim(&mut foreign, STATION, &again, at(1_200));
    assert!(sent(&mut foreign).tests.is_empty());
    comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(1_250));
    let replies = sent(&mut foreign).replies;
    let accepted = Reply::to(&again, Code::Accepted);
    assert_eq!(replies, [(Some(STATION), accepted)]);
}

/// The thief is asked for first and answered last, or leaves meanwhile.
#[test]
fn the_order_of_requests_and_replies_does_not_matter() {
    let mut foreign = foreign();
    let (theirs, own) = (claimed(FALSE_HOME_AGENT, at(0)), request(1, at(10)));
    ask(&mut foreign, THIEF, &theirs, at(0));
    ask(&mut foreign, STATION, &own, at(10));
    let accepted = |request| Reply::to(request, Code::Accepted);
    grant(&mut foreign, &theirs, &accepted(&theirs), at(20));
    grant(&mut foreign, &own, &accepted(&own), at(30));
    let test = only_test(&mut foreign);
    let leaving = Request {
        lifetime: Lifetime::NONE,
        ..claimed(FALSE_HOME_AGENT, at(40))
    };
    claim(&mut foreign, THIEF, &leaving, at(40));
    assert_eq!(holders(&foreign), []);
    comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(50));
    assert_eq!(holders(&foreign), MENDED);
}

/// The mobile node registers again, or leaves, while its first claim is open and the thief is gone.
#[test]
fn an_open_claim_ends_with_a_later_reply_of_its_home_agent() {
    for (lifetime, left) in [(Lifetime(300), &MENDED[..]), (Lifetime::NONE, &[])] {
        let (mut foreign, _, test) = contested();
        let leaving = Request {
            lifetime: Lifetime::NONE,
            ..claimed(FALSE_HOME_AGENT, at(1_100))
        };
        claim(&mut foreign, THIEF, &leaving, at(1_100));
        let later = Request {
            lifetime,
            ..request(1, at(1_200))
        };
        claim(&mut foreign, STATION, &later, at(1_200));
        comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(1_300));
        assert_eq!(holders(&foreign), left);
        let until = foreign.until(HOME);
        let granted = at(1_200) + Duration::from_secs(300);
        assert!(until.is_none_or(|until| until == granted));
    }
}

#[test]
fn nobody_deregisters_who_has_another_home_agent() {
    let mut foreign = foreign();
    claim(&mut foreign, STATION, &request(1, at(0)), at(0));
    for lifetime in [Lifetime::NONE, Lifetime(300)] {
        let taking = Request {
            lifetime,
            ..claimed(FALSE_HOME_AGENT, at(1_000 + u64::from(lifetime.0)))
        };
        ask(&mut foreign, THIEF, &taking, at(1_500));
        let reply = Reply {
            lifetime: Lifetime::NONE,
            ..Reply::to(&taking, Code::Accepted)
        };
        grant(&mut foreign, &taking, &reply, at(1_500));
        assert_eq!(holders(&foreign), MENDED);
    }
    assert!(sent(&mut foreign).tests.is_empty());
}

/// A mobile node may get another home agent, and the route of its home address changes.
#[test]
fn the_home_agent_that_the_route_leads_to_now_is_the_one() {
    let (mut foreign, _, test) = contested();
    comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(1_050));
    sent(&mut foreign);
    claim(
        &mut foreign,
        STATION,
        &claimed(OTHER_HOME_AGENT, at(2_000)),
        at(2_000),
    );
    let test = only_test(&mut foreign);
    comes(&mut foreign, Remote::Ip(OTHER_HOME_AGENT), test, at(2_050));
    assert_eq!(holders(&foreign), [(OTHER_HOME_AGENT, Some(STATION))]);
}

#[test]
fn a_station_has_a_few_open_claims_and_another_one_finds_room() {
    let mut foreign = stolen();
    let mut tests = 0;
    for number in 0..100_u32 {
        let home_agent = Ipv4Addr::from_bits(FALSE_HOME_AGENT.to_bits() + 1 + number);
        let millis = 1_000 + u64::from(number);
        claim(
            &mut foreign,
            THIEF,
            &claimed(home_agent, at(millis)),
            at(millis),
        );
        tests += sent(&mut foreign).tests.len();
    }
    assert_eq!(tests, 4);
    assert_eq!(foreign.counters().denied[&Code::ForeignResources], 96);
    let own = request(1, at(1_200));
    claim(&mut foreign, STATION, &own, at(1_200));
    let test = only_test(&mut foreign);
    comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(1_250));
    assert_eq!(holders(&foreign), MENDED);
}

/// Any number of stations and home agents cause a bounded number of tests.
// Weakness: 164
#[test]
fn tests_are_bounded_by_the_claims_that_are_open() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        pending: 256,
        ..foreign_config(1)
    });
    claim(&mut foreign, STATION, &request(1, at(0)), at(0));
    sent(&mut foreign);
    let mut tests = 0;
    for number in 0..2_400_u32 {
        let home_agent = Ipv4Addr::from_bits(FALSE_HOME_AGENT.to_bits() + number);
        let millis = 1_000 + u64::from(number);
        let [a, b, ..] = number.to_le_bytes();
        let station = Station([2, 0, 0, 1, a, b]);
        claim(
            &mut foreign,
            station,
            &claimed(home_agent, at(millis)),
            at(millis),
        );
        tests += sent(&mut foreign).tests.len();
    }
    assert_eq!(tests, 32 * 3, "in 2.4 seconds");
    assert_eq!(holders(&foreign), MENDED);
}

/// A mobile node at the first of two neighbouring agents that hears the second as well. It has a
/// key for the first agent only.
fn at_the_first_of_two() -> World {
    let mut world = World::with(2, 61, keyed_config(1), home_config());
    let neighbours = |number| BTreeMap::from([(agent(number), between_agents())]);
    for (number, other) in [(0, 1), (1, 0)] {
        let mut config = world.foreign[number].config().clone();
        config.neighbours = neighbours(other);
        world.foreign[number] = ForeignAgent::new(config, [9; 32], at(0));
    }
    world.heard = vec![Some(WLAN[0]), None];
    world.run_for(millis(2_000));
    world.heard[1] = Some(WLAN[1]);
    world.run_for(millis(3_000));
    world.assert_at(0);
    world
}

/// The mobile node moves to the second agent, and its home agent denies the registration. So only
/// the packets that the neighbour forwards are for it.
fn move_without_home(world: &mut World) {
    let config = HomeAgentConfig {
        mobiles: BTreeMap::new(),
        ..home_config()
    };
    world.home = HomeAgent::new(config, [3; 32]);
    world.heard[0] = None;
    world.mobile.interface_lost(WLAN[0], world.now);
    world.run_for(millis(100));
}

/// Otherwise the packets that a neighbour forwards would go to the thief.
// Weakness: 165
#[test]
fn a_home_address_is_not_taken_while_a_neighbour_forwards_its_packets() {
    let mut world = at_the_first_of_two();
    move_without_home(&mut world);
    let told = events(&mut world.foreign[1]);
    let own = visitor(HOME_AGENT, STATION);
    assert_eq!(told, [ForeignEvent::Followed(own)]);
    let now = world.now;
    let foreign = &mut world.foreign[1];
    claim(foreign, THIEF, &claimed(FALSE_HOME_AGENT, now), now);
    assert_eq!(holders(foreign), []);
    assert_eq!(sent(foreign).tests.len(), 1);
    foreign.handle_timeout(now + Duration::from_secs(3));
    let thief = visitor(FALSE_HOME_AGENT, THIEF);
    assert_eq!(events(foreign), [ForeignEvent::Unproved(thief)]);
}

/// The thief is at the second agent before the mobile node comes there.
// Weakness: 165
#[test]
fn what_a_neighbour_forwards_does_not_go_to_a_station_that_was_first() {
    for is_first in [true, false] {
        let mut world = at_the_first_of_two();
        let now = world.now;
        if is_first {
            let taking = claimed(FALSE_HOME_AGENT, now);
            claim(&mut world.foreign[1], THIEF, &taking, now);
        }
        move_without_home(&mut world);
        let mut inner = udp(ANYWHERE, SocketAddrV4::new(HOME, 9), b"data");
        let now = world.now;
        let from = Remote::Ip(agent(0));
        let taken = world.foreign[1].decapsulate(from, Ecn::NotEct, &mut inner, now);
        assert_eq!(taken.is_ok(), !is_first);
    }
}

// With the real engines, on links that lose, double and reorder packets.

/// A mobile node that hears an agent at which a thief registers and renews, all the time.
fn beset(seed: u8, hop: Hop, has_firewall: bool) -> World {
    let mut world = World::new(2, seed);
    world.hop = hop;
    world.has_firewall = has_firewall;
    for round in 0..40 {
        let now = world.now;
        let taking = Request {
            care_of: agent(0),
            ..claimed(FALSE_HOME_AGENT, now)
        };
        claim(&mut world.foreign[0], THIEF, &taking, now);
        if round == 2 {
            world.move_to(&[0]);
        }
        world.run_for(millis(1_500));
    }
    world
}

// Recovers: claimed-home-address
// Weakness: 164
#[test]
fn a_mobile_node_is_served_however_often_its_address_is_claimed_and_whatever_is_lost() {
    for seed in 0..24 {
        let hop = if seed == 0 { Hop::PERFECT } else { BAD };
        let mut world = beset(seed, hop, false);
        assert_eq!(holders(&world.foreign[0]), MENDED, "seed {seed}");
        world.hop = Hop::PERFECT;
        world.run_for(millis(400_000));
        world.assert_at(0);
        let events = events(&mut world.foreign[0]);
        let displaced = events
            .iter()
            .filter(|event| matches!(event, ForeignEvent::Displaced { .. }));
        assert_eq!(displaced.count(), 1, "seed {seed}: only the thief");
    }
}

/// The control: the test does not reach the home network.
#[test]
fn behind_a_firewall_that_drops_the_test_the_first_claim_stands() {
    let world = beset(1, Hop::PERFECT, true);
    assert_eq!(holders(&world.foreign[0]), STOLEN);
    let counters = world.foreign[0].counters();
    assert!(counters.dropped[&Dropped::NotRouted] > 0);
    assert_eq!(world.mobile.registrations().count(), 0);
}

/// A mobile node walks between two agents, at each of which a thief is first.
#[test]
fn a_mobile_node_that_moves_is_served_at_each_agent() {
    for seed in 0..8 {
        let mut world = World::new(2, seed);
        world.hop = Hop { lost: 118, ..BAD };
        for there in [0, 1, 0, 1] {
            let now = world.now;
            let taking = Request {
                care_of: agent(there as u8),
                ..claimed(FALSE_HOME_AGENT, now)
            };
            claim(&mut world.foreign[there], THIEF, &taking, now);
            world.move_to(&[there]);
            world.run_for(millis(60_000));
            assert_eq!(holders(&world.foreign[there]), MENDED, "seed {seed}");
            assert_eq!(world.home.care_of(HOME), [agent(there as u8)]);
        }
    }
}

/// A station repeats the mobile node's request, which the home agent accepts again. The station may
/// also give up the home address before.
// Refuses: claimed-home-address
#[test]
fn a_copy_of_a_granted_request_does_not_move_its_claim() {
    for leaves in [false, true] {
        let (mut foreign, own, test) = contested();
        if leaves {
            let leaving = Request {
                lifetime: Lifetime::NONE,
                ..claimed(FALSE_HOME_AGENT, at(1_010))
            };
            claim(&mut foreign, THIEF, &leaving, at(1_010));
        }
        claim(&mut foreign, THIEF, &own, at(1_020));
        comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(1_050));
        assert_eq!(holders(&foreign), MENDED, "{leaves}");
    }
}

/// Eight stations, which may be one that forges its address, have all claims that may be open.
// Weakness: 113
#[test]
fn stations_that_fill_the_list_of_claims_leave_room_for_another() {
    let mut foreign = foreign_with(ForeignAgentConfig {
        visitors: 200,
        ..foreign_config(1)
    });
    let station = |number: u8| Station([2, 0, 0, 0, 1, number]);
    let of = |home_agent, number: u8, now| Request {
        home: Ipv4Addr::from_bits(HOME.to_bits() + u32::from(number)),
        ..claimed(home_agent, now)
    };
    for number in 0..40 {
        let held = of(FALSE_HOME_AGENT, number, at(0));
        claim(&mut foreign, station(number / 4), &held, at(0));
    }
    for number in 4..40 {
        let claimed = of(OTHER_HOME_AGENT, number, at(1_000));
        claim(&mut foreign, station(number / 4), &claimed, at(1_000));
    }
    let first = sent(&mut foreign);
    // The ninth station takes the oldest place of each station in turn, but keeps no more than the
    // others.
    assert_eq!(first.tests.len(), 32 + 3);
    claim(&mut foreign, STATION, &request(1, at(1_100)), at(1_100));
    let test = only_test(&mut foreign);
    assert_eq!(test.home, HOME);
    assert_eq!(foreign.counters().dropped[&Dropped::GaveWay], 4);
    assert!(comes(&mut foreign, Remote::Ip(HOME_AGENT), test, at(1_150)));
    assert!(holders(&foreign).contains(&MENDED[0]));
    // Stations with one claim each keep them, so that the rate of tests stays bounded.
    for number in 1..40 {
        let claimed = of(agent(7), number, at(1_200));
        claim(&mut foreign, station(100 + number), &claimed, at(1_200));
    }
    assert_eq!(sent(&mut foreign).tests.len(), 1 + 22);
}
