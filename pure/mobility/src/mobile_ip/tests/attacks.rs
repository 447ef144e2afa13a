//! Attacks without a key, or with the wrong one.

use super::world::{Node, World};
use super::*;

/// A world in which the mobile node is registered through the first agent.
fn registered() -> World {
    let mut world = World::new(2, 21);
    world.move_to(&[0]);
    world.run_for(millis(2_000));
    world.assert_at(0);
    world
}

/// The payload of the last UDP datagram between two nodes.
fn last(world: &World, from: Node, to: Node) -> Vec<u8> {
    let mut packets = world.tap.iter().rev();
    let found = packets.find_map(|packet| match &packet.transmit {
        Transmit::Udp { octets, .. } if (packet.from, packet.to) == (from, to) => Some(octets),
        _ => None,
    });
    found.unwrap().clone()
}

fn to_home(world: &mut World, source: Ipv4Addr, octets: &[u8]) {
    let now = world.now;
    world
        .home
        .handle_datagram(&arrival(source, HOME_AGENT), octets, now);
}

/// A mobile node with one pending request that reached no other node.
fn asked() -> World {
    let mut world = World::new(2, 22);
    world.move_to(&[0]);
    world.hop.lost = 1000;
    let octets = advertisement(0, 7).encode();
    world
        .mobile
        .handle_advertisement(WLAN[0], agent(0), station(agent(0)), &octets, at(0));
    world.run_for(millis(10));
    assert_eq!(world.requests(Node::Mobile).len(), 1);
    world
}

#[test]
fn a_registration_that_is_replayed_brings_nobody_back() {
    let mut world = registered();
    let old = last(&world, Node::Foreign(0), Node::Home);
    world.move_to(&[1]);
    world.run_for(millis(6_000));
    assert_eq!(world.home.care_of(HOME), [agent(1)]);
    to_home(&mut world, agent(0), &old);
    assert_eq!(world.home.care_of(HOME), [agent(1)]);
    let denied = only_reply(|| world.home.poll_transmit());
    assert_eq!(denied.code, Code::HomeIdentification);
    world.run_for(millis(1_000));
    assert_eq!(world.home.care_of(HOME), [agent(1)]);
}

#[test]
fn a_home_agent_that_has_begun_anew_takes_nothing_from_before() {
    let mut world = registered();
    let old = last(&world, Node::Foreign(0), Node::Home);
    world.home = HomeAgent::new(home_config(), [9; 32]);
    world.home.set_wall_clock(ntp(world.now), world.now);
    to_home(&mut world, agent(0), &old);
    let denied = only_reply(|| world.home.poll_transmit());
    assert_eq!(denied.code, Code::HomeIdentification);
    assert!(world.home.care_of(HOME).is_empty());
}

#[test]
fn an_old_request_makes_no_nonce_old() {
    let key = Association {
        replay: Replay::Nonces,
        ..mobile_home()
    };
    let config = HomeAgentConfig {
        mobiles: BTreeMap::from([(HOME, key)]),
        ..home_config()
    };
    let mut home = HomeAgent::new(config, [1; 32]);
    let from = arrival(agent(1), HOME_AGENT);
    let mut ask = |identification| {
        let request = Request {
            identification,
            ..request(1, at(0))
        };
        home.handle_datagram(&from, &signed(&request), at(0));
        only_reply(|| home.poll_transmit())
    };
    let first = ask(1);
    assert_eq!(first.code, Code::HomeIdentification);
    assert_eq!(ask(2).identification >> 32, first.identification >> 32);
    let taken = ask(first.identification & !0xffff_ffff | 3);
    assert_eq!(taken.code, Code::Accepted);
    assert_ne!(taken.identification >> 32, first.identification >> 32);
    assert_eq!(
        ask(first.identification & !0xffff_ffff | 4).code,
        Code::HomeIdentification
    );
}

#[test]
fn a_care_of_address_that_was_changed_on_the_way_binds_nothing() {
    let mut home = HomeAgent::new(home_config(), [1; 32]);
    home.set_wall_clock(ntp(at(0)), at(0));
    let mut octets = signed(&request(1, at(0)));
    octets[15] = 2;
    home.handle_datagram(&arrival(agent(2), HOME_AGENT), &octets, at(0));
    let denied = only_reply(|| home.poll_transmit());
    assert_eq!(denied.code, Code::HomeMobileAuthentication);
    assert!(home.care_of(HOME).is_empty());
    // Denials are limited too, so the home agent is no reflector.
    home.handle_datagram(&arrival(agent(2), HOME_AGENT), &octets, at(500));
    assert_eq!(home.poll_transmit(), None);
    assert_eq!(home.counters().dropped[&Dropped::NotAuthenticMobile], 1);
}

/// A foreign agent makes the mobile node request another agent's care-of address.
#[test]
fn a_care_of_address_is_bound_only_from_where_it_is() {
    let mut home = HomeAgent::new(home_config(), [1; 32]);
    home.set_wall_clock(ntp(at(0)), at(0));
    let octets = signed(&request(2, at(0)));
    home.handle_datagram(&arrival(agent(1), HOME_AGENT), &octets, at(0));
    let denied = only_reply(|| home.poll_transmit());
    assert_eq!(denied.code, Code::HomeProhibited);
}

/// A message in the name of a foreign agent that has a key must be signed with that key.
#[test]
fn a_foreign_agent_that_shares_a_key_is_not_impersonated() {
    let config = HomeAgentConfig {
        foreign: BTreeMap::from([(agent(1), foreign_home())]),
        ..home_config()
    };
    let mut home = HomeAgent::new(config, [1; 32]);
    home.set_wall_clock(ntp(at(0)), at(0));
    let mut octets = signed(&request(1, at(0)));
    let wrong = Association {
        key: Secret::new(vec![7; 32]),
        ..foreign_home()
    };
    wrong.sign(&mut octets, Between::ForeignHome);
    home.handle_datagram(&arrival(agent(1), HOME_AGENT), &octets, at(0));
    let denied = only_reply(|| home.poll_transmit());
    assert_eq!(denied.code, Code::HomeForeignAuthentication);
    assert!(home.care_of(HOME).is_empty());
}

#[test]
fn who_has_another_key_is_not_believed_by_anybody() {
    let key = Association {
        key: Secret::new(vec![7; 32]),
        ..mobile_home()
    };
    let mobile = MobileNodeConfig {
        key,
        ..mobile_config()
    };
    let mut world = World::with(1, 23, mobile, home_config());
    world.move_to(&[0]);
    world.run_for(millis(120_000));
    assert!(world.home.care_of(HOME).is_empty());
    assert_eq!(world.mobile.registrations().count(), 0);
    // The mobile node does not have the key that signed the denial, so it rejects the denial too.
    assert!(world.mobile.counters().dropped[&Dropped::NotAuthenticMobile] > 0);
    assert!(
        world.requests(Node::Mobile).len() < 40,
        "it gives up for a while"
    );
}

#[test]
fn a_strangers_advertisement_moves_nobody_whose_registration_works() {
    let mut world = registered();
    for sequence in 0..50 {
        let stranger = advertisement(1, sequence).encode();
        let now = world.now;
        world
            .mobile
            .handle_advertisement(WLAN[0], agent(1), station(agent(1)), &stranger, now);
        world.run_for(millis(200));
    }
    world.assert_at(0);
    assert_eq!(world.requests(Node::Mobile).len(), 1);
}

#[test]
fn an_agent_in_use_cannot_be_advertised_away() {
    let mut world = registered();
    let gone = Advertisement {
        lifetime: 0,
        ..advertisement(0, 9)
    };
    let now = world.now;
    world
        .mobile
        .handle_advertisement(WLAN[0], agent(0), station(agent(0)), &gone.encode(), now);
    world.run_for(millis(500));
    world.assert_at(0);
    assert_eq!(world.requests(Node::Mobile).len(), 1);
}

#[test]
fn a_care_of_address_in_use_cannot_be_advertised_away_by_who_takes_the_agents_address() {
    let mut world = registered();
    for sequence in 0..20 {
        let now = world.now;
        let octets = advertisement(9, sequence).encode();
        world
            .mobile
            .handle_advertisement(WLAN[0], agent(0), station(agent(0)), &octets, now);
        world.run_for(millis(200));
        let registered: Vec<_> = world.mobile.registrations().map(|at| at.care_of).collect();
        assert_eq!(registered, [agent(0)]);
    }
    assert_eq!(world.requests(Node::Mobile).len(), 1);
}

/// The old address holds for as long as its advertisements. Then the new one is as good as any
/// other.
#[test]
fn an_agent_that_has_another_care_of_address_is_registered_with_again() {
    let mut world = registered();
    world.heard[0] = None;
    for sequence in 5..12 {
        let now = world.now;
        let octets = advertisement(9, sequence).encode();
        world
            .mobile
            .handle_advertisement(WLAN[0], agent(0), station(agent(0)), &octets, now);
        world.run_for(millis(1_000));
    }
    let last = world.requests(Node::Mobile).pop().unwrap();
    assert_eq!(last.care_of, agent(9));
}

#[test]
fn a_flood_of_advertisements_is_remembered_in_part_and_pushes_nobody_out() {
    let mut world = registered();
    for number in 0..1000_u32 {
        let source = Ipv4Addr::from_bits(0x0a00_0001 + number);
        let octets = advertisement(9, 1).encode();
        let now = world.now;
        world
            .mobile
            .handle_advertisement(WLAN[0], source, station(source), &octets, now);
    }
    assert!(world.mobile.counters().dropped[&Dropped::TooManyAgents] > 900);
    world.run_for(millis(1_000));
    world.assert_at(0);
}

#[test]
fn a_request_that_comes_back_is_no_reply() {
    let mut world = asked();
    let request = last(&world, Node::Mobile, Node::Foreign(0));
    let now = world.now;
    world
        .mobile
        .handle_reply(WLAN[0], agent(0), station(agent(0)), &request, now);
    assert_eq!(world.mobile.counters().dropped[&Dropped::Malformed], 1);
    // The request's authenticator does not authenticate a reply either, although the key is the
    // same: it covers the type.
    let mut forged = Reply::to(&world.requests(Node::Mobile)[0], Code::Accepted).encode();
    forged.extend_from_slice(&request[24..]);
    world
        .mobile
        .handle_reply(WLAN[0], agent(0), station(agent(0)), &forged, now);
    assert_eq!(
        world.mobile.counters().dropped[&Dropped::NotAuthenticMobile],
        1
    );
    assert_eq!(world.mobile.registrations().count(), 0);
}

#[test]
fn a_reply_to_another_request_is_no_answer() {
    let mut world = asked();
    let request = world.requests(Node::Mobile)[0];
    let right = Reply::to(&request, Code::Accepted);
    let now = world.now;
    let cases = [
        (
            Reply {
                identification: right.identification ^ 1,
                ..right
            },
            agent(0),
            Dropped::Unsolicited,
        ),
        (
            Reply {
                home: agent(5),
                ..right
            },
            agent(0),
            Dropped::Unsolicited,
        ),
        (right, agent(1), Dropped::WrongSource),
    ];
    for (reply, source, reason) in cases {
        let before = world.mobile.counters().dropped.get(&reason).copied();
        world
            .mobile
            .handle_reply(WLAN[0], source, station(source), &reply_signed(&reply), now);
        let after = world.mobile.counters().dropped[&reason];
        assert_eq!(after, before.unwrap_or(0) + 1);
    }
    assert_eq!(world.mobile.registrations().count(), 0);
    world.mobile.handle_reply(
        WLAN[0],
        agent(0),
        station(agent(0)),
        &reply_signed(&right),
        now,
    );
    assert_eq!(world.mobile.registrations().count(), 1);
}

#[test]
fn a_reply_that_nobody_signed_grants_nothing() {
    let mut world = asked();
    let request = world.requests(Node::Mobile)[0];
    let now = world.now;
    for code in [Code::Accepted, Code::HomeIdentification, Code::Other(2)] {
        let forged = Reply::to(&request, code).encode();
        world
            .mobile
            .handle_reply(WLAN[0], agent(0), station(agent(0)), &forged, now);
    }
    assert_eq!(
        world.mobile.counters().dropped[&Dropped::NotAuthenticMobile],
        3
    );
}

#[test]
fn a_flood_of_requests_at_a_foreign_agent_is_bounded_and_a_visitor_is_served() {
    let mut world = registered();
    let now = world.now;
    for number in 0..10_000_u32 {
        let stranger = Request {
            home: Ipv4Addr::from_bits(0x0a42_1000 + number),
            identification: number.into(),
            ..request(0, now)
        };
        let from = Arrival {
            interface: AIR,
            ttl: 255,
            ..arrival(stranger.home, agent(0))
        };
        world.foreign[0].handle_nearby(&from, STATION, &signed(&stranger), now);
    }
    let sent = datagrams(|| world.foreign[0].poll_transmit()).len();
    assert!(sent <= 8 + 64, "{sent} datagrams for a flood");
    let counters = world.foreign[0].counters();
    assert!(counters.denied[&Code::ForeignResources] > 9_900);
    assert!(counters.dropped[&Dropped::TooOften] > 9_900);
    // A visitor's request replaces one for an unregistered mobile node.
    let renewal = request(0, now);
    let from = arrival(HOME, agent(0));
    world.foreign[0].handle_nearby(&from, STATION, &signed(&renewal), now);
    let sent = datagrams(|| world.foreign[0].poll_transmit());
    assert_eq!(sent, [signed(&renewal)]);
}

#[test]
fn a_visitor_is_not_taken_over_by_who_has_a_home_agent_of_its_own() {
    let mut world = registered();
    let taking = Request {
        home_agent: agent(9),
        ..request(0, world.now)
    };
    let now = world.now;
    world.foreign[0].handle_datagram(&arrival(HOME, agent(0)), &signed(&taking), now);
    let granted = reply_signed(&Reply::to(&taking, Code::Accepted));
    world.foreign[0].handle_datagram(&arrival(agent(9), agent(0)), &granted, now);
    world.run_for(millis(5_000));
    let denied = &world.foreign[0].counters().denied;
    assert_eq!(denied[&Code::ForeignHomeAuthentication], 1);
    let visitor = world.foreign[0].visitors().next().unwrap();
    assert_eq!(visitor.home_agent, HOME_AGENT);
}

#[test]
fn a_reply_to_a_foreign_agent_has_to_come_from_the_home_agent_and_be_asked_for() {
    let mut foreign = ForeignAgent::new(foreign_config(1), [1; 32], at(0));
    let asked = request(1, at(0));
    foreign.handle_datagram(&arrival(HOME, agent(1)), &signed(&asked), at(0));
    let reply = Reply::to(&asked, Code::Accepted);
    let forged = reply_signed(&reply);
    foreign.handle_datagram(&arrival(agent(9), agent(1)), &forged, at(0));
    let other = reply_signed(&Reply {
        identification: reply.identification ^ 1,
        ..reply
    });
    foreign.handle_datagram(&arrival(HOME_AGENT, agent(1)), &other, at(0));
    let dropped = &foreign.counters().dropped;
    assert_eq!(
        (
            dropped[&Dropped::WrongSource],
            dropped[&Dropped::Unsolicited]
        ),
        (1, 1)
    );
    assert_eq!(foreign.visitors().count(), 0);
}

#[test]
fn a_reply_that_the_home_agent_did_not_prove_is_denied_where_there_is_a_key() {
    let mut foreign = ForeignAgent::new(
        ForeignAgentConfig {
            home_keys: BTreeMap::from([(HOME_AGENT, foreign_home())]),
            ..foreign_config(1)
        },
        [1; 32],
        at(0),
    );
    let asked = request(1, at(0));
    foreign.handle_datagram(&arrival(HOME, agent(1)), &signed(&asked), at(0));
    datagrams(|| foreign.poll_transmit());
    let forged = reply_signed(&Reply::to(&asked, Code::Accepted));
    foreign.handle_datagram(&arrival(HOME_AGENT, agent(1)), &forged, at(0));
    let denied = only_reply(|| foreign.poll_transmit());
    assert_eq!(denied.code, Code::ForeignHomeAuthentication);
    assert_eq!(foreign.counters().dropped[&Dropped::NotAuthenticForeign], 1);
    assert_eq!(foreign.visitors().count(), 0);
}

/// A copy that was overheard and arrives first from elsewhere does not block the request that the
/// foreign agent relays.
// Weakness: 115
#[test]
fn a_copy_from_elsewhere_makes_no_request_old() {
    let mut world = asked();
    let octets = last(&world, Node::Mobile, Node::Foreign(0));
    to_home(&mut world, agent(9), &octets);
    let denied = only_reply(|| world.home.poll_transmit());
    assert_eq!(denied.code, Code::HomeProhibited);
    to_home(&mut world, agent(0), &octets);
    let granted = only_reply(|| world.home.poll_transmit());
    assert_eq!(granted.code, Code::Accepted);
    assert_eq!(world.home.care_of(HOME), [agent(0)]);
}

/// A request of the mobile node while its clock is slow.
fn stale() -> Request {
    let mut stale = request(0, at(0));
    stale.identification -= 100 << 32;
    stale
}

/// Any host that has overheard a request can replay it, with any source address. Each source has a
/// limit of its own.
// Weakness: 117
#[test]
fn old_requests_are_answered_so_often_in_a_second_and_new_ones_always() {
    let mut world = registered();
    let old = last(&world, Node::Foreign(0), Node::Home);
    let stale = signed(&stale());
    for octets in [&old, &stale] {
        for source in [agent(0), agent(1)] {
            for _ in 0..100 {
                to_home(&mut world, source, octets);
            }
            assert_eq!(datagrams(|| world.home.poll_transmit()).len(), 8);
        }
        world.now += Duration::from_secs(1);
    }
    assert_eq!(world.home.counters().dropped[&Dropped::TooOften], 4 * 92);
    assert_eq!(world.home.counters().denied[&Code::HomeIdentification], 300);
    for _ in 0..10 {
        to_home(&mut world, agent(1), &stale);
    }
    datagrams(|| world.home.poll_transmit());
    let (fresh, now) = (signed(&request(1, world.now)), world.now);
    to_home(&mut world, agent(1), &fresh);
    let granted = only_reply(|| world.home.poll_transmit());
    assert_eq!(granted.code, Code::Accepted, "{now:?}");
}

/// Replays 100 copies of a granted request in each of three seconds, from a few sources or from
/// many, and sends a request with an old timestamp after them. Returns the number of answers to the
/// copies, and the codes of the answers to the request.
fn replayed(world: &mut World, sources: u8, asking: Ipv4Addr) -> (usize, Vec<Code>) {
    let old = last(world, Node::Foreign(0), Node::Home);
    let (mut answers, mut codes) = (0, Vec::new());
    for _ in 0..3 {
        for copy in 0..100 {
            to_home(world, agent(100 + copy % sources), &old);
        }
        answers += datagrams(|| world.home.poll_transmit()).len();
        to_home(world, asking, &signed(&stale()));
        let replies = datagrams(|| world.home.poll_transmit());
        codes.extend(
            replies
                .iter()
                .map(|octets| Reply::parse(octets).unwrap().0.code),
        );
        world.now += Duration::from_secs(1);
    }
    (answers, codes)
}

/// The mobile node sets its clock by code 133.
// Weakness: 172
#[test]
fn copies_from_elsewhere_use_up_no_answer_that_the_mobile_node_needs() {
    let learns = vec![Code::HomeIdentification; 3];
    // From the agent that it is registered through, however many sources there are.
    for (sources, answers) in [(1, 8), (10, 80), (100, 32)] {
        let expected = (3 * answers, learns.clone());
        assert_eq!(replayed(&mut registered(), sources, agent(0)), expected);
    }
    // From another agent.
    let expected = (24, learns.clone());
    assert_eq!(replayed(&mut registered(), 1, agent(1)), expected);
    // Control: copies from the same source use up its answers.
    let (answers, codes) = replayed(&mut registered(), 1, agent(100));
    assert_eq!((answers, codes), (24, vec![]));
}

/// An agent with a key proves its requests, so nobody else uses up its answers by its address.
// Weakness: 172
#[test]
fn an_agent_with_a_key_has_its_answers_whatever_comes_in_its_name() {
    let config = HomeAgentConfig {
        foreign: BTreeMap::from([(agent(0), foreign_home())]),
        ..home_config()
    };
    let mut home = HomeAgent::new(config, [1; 32]);
    home.set_wall_clock(ntp(at(0)), at(0));
    let copy = signed(&stale());
    let mut proved = copy.clone();
    foreign_home().sign(&mut proved, Between::ForeignHome);
    let mut codes = |octets: &[u8], times: usize| {
        let from = arrival(agent(0), HOME_AGENT);
        (0..times).for_each(|_| home.handle_datagram(&from, octets, at(0)));
        let replies = datagrams(|| home.poll_transmit());
        let codes = replies
            .iter()
            .map(|octets| Reply::parse(octets).unwrap().0.code);
        codes.collect::<Vec<_>>()
    };
    assert_eq!(codes(&copy, 100), [Code::HomeForeignAuthentication; 8]);
    assert_eq!(codes(&proved, 1), [Code::HomeIdentification]);
}

/// What the mobile node has not signed is denied once in a second for each source, and what it has
/// signed is answered as before.
// Weakness: 172
#[test]
fn requests_that_nobody_signed_use_up_no_answer_to_another_source() {
    let mut world = registered();
    let mut unsigned = stale().encode();
    unsigned.extend([32, 20, 0, 0, 16, 1]);
    unsigned.extend([0; 16]);
    for copy in 0..100 {
        to_home(&mut world, agent(100 + copy), &unsigned);
    }
    assert_eq!(datagrams(|| world.home.poll_transmit()).len(), 64);
    to_home(&mut world, agent(1), &signed(&stale()));
    let denied = only_reply(|| world.home.poll_transmit());
    assert_eq!(denied.code, Code::HomeIdentification);
}

/// A station of the link names this mobile node, or many others, and is denied each time.
// Weakness: 172
#[test]
fn denials_to_a_station_are_not_taken_from_another() {
    let mut foreign = ForeignAgent::new(foreign_config(1), [1; 32], at(0));
    let mut denied = |station: u8, home: u32, now| {
        // The care-of address is another agent's.
        let home = Ipv4Addr::from_bits(HOME.to_bits() + home);
        let asked = Request {
            home,
            ..request(2, now)
        };
        let from = Arrival {
            interface: AIR,
            ttl: 255,
            ..arrival(home, agent(1))
        };
        let station = Station([2, 0, 0, 0, 1, station]);
        foreign.handle_nearby(&from, station, &signed(&asked), now);
        datagrams(|| foreign.poll_transmit()).len()
    };
    for second in 0..3 {
        let now = at(second * 1_000);
        let flood: usize = (0..100).map(|home| denied(1, home, now)).sum();
        assert_eq!(flood, 64);
        assert_eq!(denied(2, 0, now), 1, "it has its own");
        assert_eq!(denied(2, 0, now), 0, "once in a second");
        assert_eq!(denied(1, 100, now), 0, "and the flood has no more");
    }
}
