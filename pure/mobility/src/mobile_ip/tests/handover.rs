//! The agent that a mobile node leaves forwards its packets, and no other host can divert them.

use super::tunnel::datagram;
use super::world::{Node, World};
use super::*;
use wire::ecn::Ecn;
use wire::mobile_ip::{Note, Notice, Step};

const PEER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// A mobile node that moves from the first of three agents to the second. The second agent has
/// received the request, but no time has passed yet.
fn leaving() -> World {
    let mut world = World::with(3, 31, keyed_config(3), home_config());
    begin(&mut world);
    move_over(&mut world);
    world
}

/// Registers at the first agent, with the second in reach.
fn begin(world: &mut World) {
    world.heard[0] = Some(WLAN[0]);
    world.run_for(millis(2_000));
    world.heard[1] = Some(WLAN[1]);
    world.run_for(millis(3_000));
    world.assert_at(0);
}

/// Moves to the second agent.
fn move_over(world: &mut World) {
    world.heard[0] = None;
    world.mobile.interface_lost(WLAN[0], world.now);
    world.run_for(millis(0));
}

/// Moves back to the first agent.
fn move_back(world: &mut World) {
    world.heard[0] = Some(WLAN[0]);
    world.mobile.interface_found(WLAN[0], world.now);
    world.heard[1] = None;
    world.mobile.interface_lost(WLAN[1], world.now);
    world.run_for(millis(2_000));
    world.assert_at(0);
}

/// The fate of a packet for the mobile node that arrives at an agent: dropped, delivered, or
/// forwarded to another agent.
fn comes(world: &mut World, to: usize, from: Ipv4Addr) -> Option<Option<Ipv4Addr>> {
    let mut inner = datagram(PEER, HOME);
    let now = world.now;
    let tunnel = world.foreign[to].tunnel();
    let from = Remote::Ip(from);
    let taken = tunnel
        .decapsulate(from, Ecn::NotEct, &mut inner, now)
        .ok()??;
    Some(taken.onward.map(|envelope| envelope.outer.destination))
}

/// Asserts that a packet from the home agent is delivered or dropped after at most one agent has
/// forwarded it.
pub(super) fn assert_no_circle(world: &mut World) {
    for first in 0..world.foreign.len() {
        let Some(Some(next)) = comes(world, first, HOME_AGENT) else {
            continue;
        };
        let second = (0..world.foreign.len()).find(|&number| agent(number as u8) == next);
        let then = comes(world, second.unwrap(), agent(first as u8));
        assert!(!matches!(then, Some(Some(_))), "sent on twice");
    }
}

/// The last payload that one agent sent to the other.
fn said(world: &World, from: usize, to: usize) -> Vec<u8> {
    let ends = (Node::Foreign(from), Node::Foreign(to));
    let mut packets = world.tap.iter().rev();
    let found = packets.find_map(|packet| match &packet.transmit {
        Transmit::Udp { octets, .. } if (packet.from, packet.to) == ends => Some(octets.clone()),
        _ => None,
    });
    found.expect("it has said something")
}

/// Delivers a payload to an agent, and returns its answer, if any.
fn hears(world: &mut World, to: usize, from: Ipv4Addr, octets: &[u8]) -> Option<Notice> {
    let now = world.now;
    let agent = &mut world.foreign[to];
    while agent.poll_transmit().is_some() {}
    agent.handle_datagram(&arrival(from, super::agent(to as u8)), octets, now);
    let mut said = datagrams(|| agent.poll_transmit());
    let said = said.pop()?;
    Some(Notice::parse(&said).unwrap().0)
}

fn events(world: &mut World, number: usize) -> Vec<ForeignEvent> {
    std::iter::from_fn(|| world.foreign[number].poll_event()).collect()
}

fn dropped(world: &World, number: usize, reason: Dropped) -> u64 {
    let counters = world.foreign[number].counters();
    counters.dropped.get(&reason).copied().unwrap_or(0)
}

/// A notice of the second agent to the first, with a note for this registration, signed with these
/// keys.
fn notice(
    home: Ipv4Addr,
    registration: u64,
    (care_of, number): (u8, u8),
    key: &Association,
) -> Vec<u8> {
    let notice = Notice {
        step: Step::Told,
        lifetime: Lifetime::NONE,
        home,
        identification: 77,
    };
    let mut octets = notice.encode();
    let of = (agent(0), registration);
    mobile_foreign(number).append_note(&mut octets, of, (home, agent(care_of)));
    key.sign(&mut octets, Between::ForeignHome);
    octets
}

/// The identification of the mobile node's registration at the first agent.
fn registration(world: &World) -> u64 {
    let requests = world.requests(Node::Mobile);
    let here = |request: &&Request| request.care_of == agent(0);
    requests.iter().rfind(here).unwrap().identification
}

#[test]
fn what_comes_to_the_agent_that_was_left_is_sent_after_who_has_left() {
    let mut world = leaving();
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None), "not yet");
    assert_eq!(comes(&mut world, 1, agent(0)), None);
    // The request and the notice have arrived, and the home agent has just received the request.
    world.run_for(millis(10));
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(Some(agent(1))));
    world.run_for(millis(5));
    assert_eq!(comes(&mut world, 1, agent(0)), Some(None), "for it");
    world.run_for(millis(1_000));
    world.assert_at(1);
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(Some(agent(1))));
    assert_eq!(comes(&mut world, 1, agent(0)), Some(None));
    assert_eq!(comes(&mut world, 1, HOME_AGENT), Some(None));
    assert_eq!(world.foreign[0].tunnel_counters().forwarded, 2);
    assert_eq!(world.foreign[0].gone_to(HOME), Some(agent(1)));
    let visitor = world.foreign[1].visitors().next().unwrap();
    let gone = ForeignEvent::Gone {
        visitor,
        to: agent(1),
    };
    assert_eq!(events(&mut world, 0).last(), Some(&gone));
    assert!(events(&mut world, 1).contains(&ForeignEvent::Came(visitor)));
}

// Recovers: mobile-ip-forwarding
#[test]
fn nothing_is_sent_after_anybody_for_longer_than_some_seconds() {
    let mut world = leaving();
    world.run_for(millis(6_000));
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None));
    assert_eq!(comes(&mut world, 1, agent(0)), None);
    assert_eq!(world.foreign[0].gone_to(HOME), None);
    let old = said(&world, 1, 0);
    let answer = hears(&mut world, 0, agent(1), &old).unwrap();
    assert_eq!(answer.lifetime, Lifetime::NONE, "nor again");
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None));
}

#[test]
fn nothing_is_sent_after_anybody_for_longer_than_it_was_registered() {
    let mobile = MobileNodeConfig {
        lifetime: Lifetime(10),
        ..keyed_config(3)
    };
    let mut world = World::with(3, 32, mobile, home_config());
    world.heard = vec![Some(WLAN[0]), Some(WLAN[1]), None];
    world.run_for(millis(7_000));
    move_over(&mut world);
    world.run_for(millis(1_000));
    let (answer, _) = Notice::parse(&said(&world, 0, 1))
        .map(|(notice, _)| (notice, ()))
        .unwrap();
    assert_eq!(answer.lifetime, Lifetime(3));
    world.run_for(millis(3_000));
    assert_eq!(comes(&mut world, 0, HOME_AGENT), None, "it is no visitor");
}

#[test]
fn a_home_agent_sees_nothing_of_a_note() {
    let mut world = leaving();
    world.run_for(millis(1_000));
    let is_home = |packet: &&world::Packet| packet.to == Node::Home;
    for packet in world.tap.iter().filter(is_home) {
        if let Transmit::Udp { octets, .. } = &packet.transmit {
            let (_, extensions) = Request::parse(octets).unwrap();
            assert_eq!(Note::find(extensions), None);
        }
    }
}

#[test]
fn without_a_key_there_is_no_note_and_the_move_is_as_ever() {
    let mut world = World::new(2, 33);
    begin(&mut world);
    move_over(&mut world);
    world.run_for(millis(1_000));
    world.assert_at(1);
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None));
    let between = |packet: &world::Packet| {
        matches!(
            (packet.from, packet.to),
            (Node::Foreign(_), Node::Foreign(_))
        )
    };
    assert!(!world.tap.iter().any(between));
}

#[test]
fn who_goes_to_an_agent_that_is_no_neighbour_is_registered_all_the_same() {
    let mut world = World::with(2, 34, keyed_config(2), home_config());
    world.foreign[1] = ForeignAgent::new(foreign_config(1), [8; 32], at(0));
    begin(&mut world);
    move_over(&mut world);
    world.run_for(millis(2_000));
    // The second agent has no key for that neighbour, and counts the drop.
    assert!(dropped(&world, 1, Dropped::StrangeNeighbour) > 0);
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None));
}

#[test]
fn two_agents_at_once_are_no_move() {
    let mobile = MobileNodeConfig {
        simultaneous: true,
        ..keyed_config(2)
    };
    let mut world = World::with(2, 35, mobile, home_config());
    world.heard = vec![Some(WLAN[0]), Some(WLAN[1])];
    world.run_for(millis(5_000));
    assert_eq!(world.mobile.registrations().count(), 2);
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None));
    assert_eq!(comes(&mut world, 1, HOME_AGENT), Some(None));
    // The end of one registration counts as a move: packets in transit to it are forwarded to the
    // other.
    move_over(&mut world);
    world.run_for(millis(1_500));
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(Some(agent(1))));
    assert_eq!(comes(&mut world, 1, HOME_AGENT), Some(None));
}

#[test]
fn a_notice_or_an_answer_that_is_lost_is_said_again() {
    let mut world = leaving();
    world.hop.lost = 1000;
    // The request has already left. All later messages are lost, including the notice.
    world.run_for(millis(100));
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None));
    world.hop.lost = 0;
    world.run_for(millis(500));
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(Some(agent(1))));
    assert_eq!(comes(&mut world, 1, agent(0)), Some(None));
}

// Recovers: mobile-ip-forwarding
#[test]
fn a_neighbour_that_is_silent_is_told_a_few_times_and_counted() {
    let mut world = World::with(2, 36, keyed_config(2), home_config());
    world.heard = vec![Some(WLAN[0]), Some(WLAN[1])];
    world.run_for(millis(5_000));
    world.foreign[0] = ForeignAgent::new(foreign_config(0), [7; 32], world.now);
    move_over(&mut world);
    world.run_for(millis(10_000));
    world.assert_at(1);
    assert_eq!(dropped(&world, 1, Dropped::NeighbourSilent), 1);
    let is_told =
        |packet: &&world::Packet| (packet.from, packet.to) == (Node::Foreign(1), Node::Foreign(0));
    let told = world.tap.iter().filter(is_told).count();
    assert!((2..=6).contains(&told), "{told} times");
}

#[test]
fn a_notice_that_comes_again_is_answered_and_changes_nothing() {
    let mut world = leaving();
    world.run_for(millis(1_000));
    let again = said(&world, 1, 0);
    world.run_for(millis(2_000));
    events(&mut world, 0);
    let answer = hears(&mut world, 0, agent(1), &again).unwrap();
    assert_eq!(
        (answer.step, answer.lifetime),
        (Step::Answered, Lifetime(2))
    );
    assert!(events(&mut world, 0).is_empty());
    // Forwarding ends with the lifetime that was left.
    world.run_for(millis(3_000));
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None));
}

/// The note names a registration that no longer exists.
// Refuses: mobile-ip-forwarding
// Weakness: 83
#[test]
fn a_notice_that_is_replayed_when_its_mobile_node_is_back_moves_nothing() {
    let mut world = leaving();
    world.run_for(millis(1_000));
    let old = said(&world, 1, 0);
    move_back(&mut world);
    let answer = hears(&mut world, 0, agent(1), &old).unwrap();
    assert_eq!(answer.lifetime, Lifetime::NONE);
    assert_eq!(dropped(&world, 0, Dropped::OldNote), 1);
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None));
}

// Weakness: 83
#[test]
fn an_answer_that_is_replayed_or_was_not_asked_for_lets_nothing_in() {
    let mut world = leaving();
    world.run_for(millis(1_000));
    let old = said(&world, 0, 1);
    world.run_for(millis(6_000));
    assert_eq!(hears(&mut world, 1, agent(0), &old), None);
    assert_eq!(dropped(&world, 1, Dropped::Unsolicited), 1);
    assert_eq!(comes(&mut world, 1, agent(0)), None);
}

// Refuses: mobile-ip-forwarding
// Weakness: 83
#[test]
fn a_notice_has_to_be_proved_by_a_neighbour_and_its_note_by_the_mobile_node() {
    let mut world = World::with(3, 37, keyed_config(3), home_config());
    world.heard = vec![Some(WLAN[0]), None, None];
    world.run_for(millis(5_000));
    let right = registration(&world);
    let key = between_agents();
    let cases = [
        // Another agent's key, or an agent that is no neighbour.
        (
            agent(1),
            notice(HOME, right, (1, 0), &foreign_home()),
            Dropped::NotAuthenticForeign,
            false,
        ),
        (
            agent(9),
            notice(HOME, right, (9, 0), &key),
            Dropped::StrangeNeighbour,
            false,
        ),
        // A neighbour forges the note, with another key of the mobile node or for another agent.
        (
            agent(1),
            notice(HOME, right, (1, 1), &key),
            Dropped::NotAuthenticMobile,
            true,
        ),
        (
            agent(2),
            notice(HOME, right, (1, 0), &key),
            Dropped::NotAuthenticMobile,
            true,
        ),
        // Another registration, and a mobile node that is not here.
        (
            agent(1),
            notice(HOME, right ^ 1, (1, 0), &key),
            Dropped::OldNote,
            true,
        ),
        (
            agent(1),
            notice(PEER, right, (1, 0), &key),
            Dropped::UnknownMobile,
            true,
        ),
    ];
    for (from, octets, reason, is_answered) in cases {
        let before = dropped(&world, 0, reason);
        let answer = hears(&mut world, 0, from, &octets);
        assert_eq!(answer.is_some(), is_answered, "{reason}");
        assert!(
            answer.is_none_or(|answer| answer.lifetime.is_none()),
            "{reason}"
        );
        assert_eq!(dropped(&world, 0, reason), before + 1, "{reason}");
        assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None), "{reason}");
    }
    // Negative control.
    let octets = notice(HOME, right, (1, 0), &key);
    let answer = hears(&mut world, 0, agent(1), &octets).unwrap();
    assert_eq!(answer.lifetime, Lifetime(5));
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(Some(agent(1))));
}

#[test]
fn of_a_mobile_node_without_a_key_no_note_is_believed() {
    let mut world = World::with(2, 38, keyed_config(2), home_config());
    let config = ForeignAgentConfig {
        neighbours: BTreeMap::from([(agent(1), between_agents())]),
        ..foreign_config(0)
    };
    world.foreign[0] = ForeignAgent::new(config, [6; 32], at(0));
    let now = world.now;
    let asked = request(0, now);
    world.foreign[0].handle_datagram(&arrival(HOME, agent(0)), &signed(&asked), now);
    let reply = reply_signed(&Reply::to(&asked, Code::Accepted));
    world.foreign[0].handle_datagram(&arrival(HOME_AGENT, agent(0)), &reply, now);
    let octets = notice(HOME, asked.identification, (1, 0), &between_agents());
    let answer = hears(&mut world, 0, agent(1), &octets).unwrap();
    assert_eq!(answer.lifetime, Lifetime::NONE);
    assert_eq!(dropped(&world, 0, Dropped::NoNoteKey), 1);
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None));
}

/// A mobile node that has moved on to a third agent is not moved back to the second by that note.
// Refuses: mobile-ip-forwarding
// Weakness: 83
#[test]
fn the_note_of_a_registration_is_taken_once() {
    let mut world = leaving();
    world.run_for(millis(1_000));
    let right = registration(&world);
    let octets = notice(HOME, right, (2, 0), &between_agents());
    let answer = hears(&mut world, 0, agent(2), &octets).unwrap();
    assert_eq!(answer.lifetime, Lifetime::NONE);
    assert_eq!(dropped(&world, 0, Dropped::OldNote), 1);
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(Some(agent(1))));
}

/// The first agent forwards to the second, and the second to the first.
// Refuses: mobile-ip-forwarding
// Weakness: 83
#[test]
fn two_agents_that_send_after_it_to_each_other_make_no_circle() {
    let mut world = leaving();
    world.run_for(millis(1_000));
    // The mobile node is back, but the last message to the first agent said that it had left.
    world.heard[0] = Some(WLAN[0]);
    world.mobile.interface_found(WLAN[0], world.now);
    world.heard[1] = None;
    world.mobile.interface_lost(WLAN[1], world.now);
    let right = world.requests(Node::Mobile).last().unwrap().identification;
    let note = Notice {
        step: Step::Told,
        lifetime: Lifetime::NONE,
        home: HOME,
        identification: 78,
    };
    let mut octets = note.encode();
    mobile_foreign(1).append_note(&mut octets, (agent(1), right), (HOME, agent(0)));
    between_agents().sign(&mut octets, Between::ForeignHome);
    let answer = hears(&mut world, 1, agent(0), &octets).unwrap();
    assert_eq!(answer.lifetime, Lifetime(5));
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(Some(agent(1))));
    assert_eq!(comes(&mut world, 1, HOME_AGENT), Some(Some(agent(0))));
    assert_no_circle(&mut world);
    assert_eq!(comes(&mut world, 1, agent(0)), None);
    assert_eq!(comes(&mut world, 0, agent(1)), None);
}

#[test]
fn who_comes_back_at_once_gets_what_is_sent_after_it_there() {
    let mut world = leaving();
    world.run_for(millis(1_500));
    world.assert_at(1);
    move_back(&mut world);
    assert_eq!(comes(&mut world, 1, HOME_AGENT), Some(Some(agent(0))));
    assert_eq!(comes(&mut world, 0, agent(1)), Some(None));
    assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(None));
}

/// A mobile node that moves after its home agent has lost its configuration.
fn unknown_at_home() -> World {
    let mut world = leaving();
    world.home = HomeAgent::new(
        HomeAgentConfig {
            mobiles: BTreeMap::new(),
            ..home_config()
        },
        [1; 32],
    );
    world.run_for(millis(500));
    world
}

/// The home agent denies the registration, so the mobile node is never a visitor and leaves no
/// state.
#[test]
fn who_is_followed_and_never_comes_has_left() {
    let mut world = unknown_at_home();
    let visitor = Visitor {
        home: HOME,
        home_agent: HOME_AGENT,
        interface: AIR,
        station: Some(STATION),
    };
    assert_eq!(events(&mut world, 1), [ForeignEvent::Followed(visitor)]);
    let mut back = datagram(HOME, PEER);
    let now = world.now;
    let refused = world.foreign[1].tunnel().encapsulate(&back, now);
    assert_eq!(
        refused,
        Err(TunnelDrop::NoTunnel),
        "it gets, and may not send"
    );
    world.mobile.interface_lost(WLAN[1], world.now);
    world.run_for(millis(8_000));
    assert_eq!(events(&mut world, 1), [ForeignEvent::Left(visitor)]);
    back = datagram(PEER, HOME);
    let tunnel = world.foreign[1].tunnel();
    let dropped = tunnel.decapsulate(Remote::Ip(agent(0)), Ecn::NotEct, &mut back, now);
    assert_eq!(dropped, Err(TunnelDrop::NoTunnel));
}

#[test]
fn who_is_followed_leaves_when_the_host_needs_its_address() {
    let mut world = unknown_at_home();
    world.foreign[1].set_reserved(vec![network(HOME, 24)]);
    let told = events(&mut world, 1);
    assert!(
        matches!(told[..], [ForeignEvent::Followed(_), ForeignEvent::Left(_)]),
        "{told:?}"
    );
}

/// A station that requests in the mobile node's name, with a forged note, neither ends nor blocks
/// anything.
// Weakness: 83
#[test]
fn a_stranger_on_the_link_does_not_stand_between_a_mobile_node_and_what_is_sent_after_it() {
    let mut world = leaving();
    let forge = |world: &mut World, identification, registration| {
        let asked = Request {
            identification,
            ..request(1, world.now)
        };
        let mut octets = signed(&asked);
        mobile_foreign(9).append_note(&mut octets, (agent(0), registration), (HOME, agent(1)));
        mobile_foreign(1).sign(&mut octets, Between::MobileForeign);
        let now = world.now;
        world.foreign[1].handle_datagram(&arrival(HOME, agent(1)), &octets, now);
    };
    let right = registration(&world);
    forge(&mut world, 1, right);
    world.run_for(millis(10));
    forge(&mut world, 2, right);
    forge(&mut world, 3, right ^ 1);
    world.run_for(millis(10));
    assert_eq!(comes(&mut world, 1, agent(0)), Some(None));
    for number in 0..4 {
        forge(&mut world, 10 + number, right ^ number);
        world.run_for(millis(100));
        assert_eq!(comes(&mut world, 0, HOME_AGENT), Some(Some(agent(1))));
        assert_eq!(comes(&mut world, 1, agent(0)), Some(None));
    }
    assert!(dropped(&world, 0, Dropped::NotAuthenticMobile) > 3);
    assert!(dropped(&world, 1, Dropped::NotSentOn) > 3);
}

/// From unknown hosts on the link.
// Weakness: 83
#[test]
fn a_flood_of_notes_is_bounded() {
    let config = ForeignAgentConfig {
        neighbours: BTreeMap::from([(agent(0), between_agents())]),
        ..foreign_config(1)
    };
    let mut foreign = ForeignAgent::new(config, [1; 32], at(0));
    for number in 0..1000_u32 {
        let stranger = Request {
            home: Ipv4Addr::from_bits(0x0a42_1000 + number),
            identification: number.into(),
            ..request(1, at(0))
        };
        let mut octets = signed(&stranger);
        mobile_foreign(0).append_note(&mut octets, (agent(0), 1), (stranger.home, agent(1)));
        let from = Arrival {
            interface: AIR,
            ttl: 255,
            ..arrival(stranger.home, agent(1))
        };
        foreign.handle_datagram(&from, &octets, at(u64::from(number)));
    }
    let told = datagrams(|| foreign.poll_transmit())
        .iter()
        .filter(|octets| Notice::parse(octets).is_ok())
        .count();
    assert!(told <= 8 * 4, "{told} notices");
    foreign.handle_timeout(at(20_000));
    assert!(foreign.poll_event().is_none());
}

/// Eight stations, which may be one that forges its address, have all notices that may be open.
// Weakness: 113
#[test]
fn stations_that_fill_the_list_of_notices_leave_room_for_another() {
    let config = ForeignAgentConfig {
        neighbours: BTreeMap::from([(agent(0), between_agents())]),
        pending: 64,
        ..foreign_config(1)
    };
    let mut foreign = ForeignAgent::new(config, [1; 32], at(0));
    let mut notices = |number: u8, station: u8| {
        let stranger = Request {
            home: Ipv4Addr::from_bits(HOME.to_bits() + u32::from(number)),
            ..request(1, at(number.into()))
        };
        let mut octets = signed(&stranger);
        mobile_foreign(0).append_note(&mut octets, (agent(0), 1), (stranger.home, agent(1)));
        let from = Arrival {
            interface: AIR,
            ttl: 255,
            ..arrival(stranger.home, agent(1))
        };
        let station = Station([2, 0, 0, 0, 1, station]);
        foreign.handle_nearby(&from, station, &octets, at(number.into()));
        let sent = datagrams(|| foreign.poll_transmit());
        let sent = sent.iter().filter(|octets| Notice::parse(octets).is_ok());
        sent.count()
    };
    let told: usize = (0..64).map(|number| notices(number, number / 8)).sum();
    assert_eq!(told, 64);
    assert_eq!(notices(64, 8), 1);
    assert_eq!(notices(65, 1), 0, "a station that has its share");
}
