//! Effects of each hand-over mode.

use super::hosts::{AGENT, HOME, MOBILE, Policies, config};
use super::world::{Hosts, Message, World};
use node::{Ending, Event, Handover};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Exchange numbers.
const CREATE_CHILD_SA: u8 = 36;
const KEY_DISTRIBUTE: u8 = 240;

#[test]
fn keys_come_after_a_mobile_node_wherever_it_goes() {
    for handover in [Handover::Push, Handover::Pkd] {
        let mut world = World::at(Policies::new(handover), 0);
        for agent in [1, 2, 0, 2] {
            world.move_to(agent);
            let reads = world.run_until(20 * SECOND, |world| world.readers() == [Some(agent); 2]);
            assert!(reads, "{handover:?}: nobody reads at {agent}");
            let before = world.read(agent);
            assert!(world.traffic_flows());
            assert_eq!(world.read(agent), before + 2);
        }
        world.witness.assert_nobody_read_behind();
    }
}

/// The initiation started before there was a route.
#[test]
fn a_tunnel_is_up_as_soon_as_a_registration_has_led_it_home() {
    let mut world = World::new(Policies::new(Handover::Push), 7);
    let is_up = |world: &World| {
        let mut told = world.events[MOBILE].iter();
        told.any(|event| matches!(event, Event::PeerUp { .. }))
    };
    world.set_link(0, true);
    assert!(world.run_until(20 * SECOND, |world| world.is_at(0)));
    assert!(!is_up(&world));
    assert!(world.run_until(SECOND / 10, is_up));
}

/// The new node gets no keys of its own, so both ends leave the slot after two seconds. The slot is
/// closed only after all packets sent in it have arrived, even if others overtake them.
#[test]
fn by_dkm_a_slot_is_received_on_for_a_while_when_both_ends_have_left_it() {
    let mut world = World::at(Policies::new(Handover::Dkm), 0);
    world.silent_in = Some((HOME, KEY_DISTRIBUTE));
    world.move_to(1);
    assert!(world.run_until(20 * SECOND, |world| world.is_at(1)));
    let left = world.slot(HOME);
    assert!(left.is_some());
    (world.wireless.delayed, world.wired.delayed) = (500, 500);
    let mut sent = [Vec::new(), Vec::new()];
    for seq in 0..800 {
        sent[HOME].push(world.segment(MOBILE, seq));
        sent[MOBILE].push(world.segment(HOME, seq));
        world.run_for(SECOND / 200);
    }
    world.run_for(SECOND);
    assert_ne!(world.slot(HOME), left);
    for end in [MOBILE, HOME] {
        let lost = sent[end]
            .iter()
            .filter(|sent| !world.delivered[end].contains(sent));
        assert_eq!(lost.count(), 0, "{:?}", world.dropped);
    }
}

/// SNOOP keeps unacknowledged packets. It drops them when its node loses the keys, and the next
/// node starts without any.
#[test]
fn what_snoop_keeps_of_who_has_left_is_gone_and_the_next_one_has_its_own() {
    for handover in [Handover::Push, Handover::Dkm] {
        let mut world = World::at(Policies::new(handover), 0);
        let kept = |world: &World| {
            let flows = [0, 1].map(|agent| world.nodes[AGENT + agent].flows());
            flows.map(|flows| !flows.is_empty())
        };
        assert!(world.traffic_flows());
        assert_eq!(kept(&world), [true, false], "{handover:?}");
        world.move_to(1);
        assert!(world.run_until(20 * SECOND, |world| world.is_at(1)));
        let gone = world.run_until(5 * SECOND, |world| !kept(world)[0]);
        assert!(gone, "{handover:?}: the first keeps what it had");
        assert!(world.traffic_flows());
        assert_eq!(kept(&world), [false, true], "{handover:?}");
    }
}

/// Packets in flight and late packets reach the endpoints. Only the nodes cannot read them.
#[test]
fn what_is_sealed_between_a_move_and_new_keys_no_node_reads() {
    let mut world = World::at(Policies::new(Handover::Push), 0);
    world.silent_in = Some((HOME, CREATE_CHILD_SA));
    world.move_to(1);
    assert!(world.run_until(20 * SECOND, |world| world.is_at(1)
        && world.slot(MOBILE).is_none()
        && world.slot(HOME).is_none()));
    let before = [0, 1].map(|agent| world.read(agent));
    assert!(world.traffic_flows());
    assert_eq!([0, 1].map(|agent| world.read(agent)), before);
    assert_eq!(world.unread(1), 2);
    world.silent_in = None;
    assert!(world.run_until(30 * SECOND, |world| world.readers() == [Some(1); 2]));
}

/// Keys of a payload whose licence ended seal nothing more (invariants 4 and 5): neither in the
/// slot in use, nor in a slot that waits for the mobile node.
// Weakness: S37
#[test]
fn a_slot_whose_payload_is_not_licensed_any_more_is_sealed_in_no_more() {
    for place in [0, 1] {
        let policies = Policies::new(Handover::Pkd);
        let licensed = Policies {
            payload: true,
            ..policies.clone()
        };
        let mut world = World::at(licensed, 0);
        world.run_for(10 * SECOND);
        let before = world.slot(HOME);
        assert!(before.is_some());
        // There are no new keys while the gateway gets no answer.
        world.silent_in = Some((MOBILE, CREATE_CHILD_SA));
        let told = config(HOME, &policies);
        world.command(HOME, |node, now| node.reconfigure(told, now));
        if place == 1 {
            world.move_to(place);
            assert!(world.run_until(20 * SECOND, |world| world.is_at(place)));
        }
        // A child SA whose keys no node had is rekeyed in the meantime, and then sends.
        world.run_for(SECOND);
        assert_eq!(world.slot(HOME), None, "at {place}");
        world.silent_in = None;
        assert!(world.run_until(60 * SECOND, |world| world.slot(HOME).is_some()));
        assert_ne!(world.slot(HOME), before);
    }
}

#[test]
fn with_pkd_no_message_is_needed_between_a_registration_and_the_new_keys() {
    let mut world = World::at(Policies::new(Handover::Pkd), 0);
    world.run_for(10 * SECOND);
    // The ends could not exchange CREATE_CHILD_SA messages if they tried.
    world.silent_in = Some((HOME, CREATE_CHILD_SA));
    let spis = [1, 2].map(|agent| world.nodes[AGENT + agent].held_grants().len());
    assert_eq!(spis, [1, 1], "both neighbours are prepared");
    world.move_to(1);
    let registered = world.run_until(20 * SECOND, |world| world.is_at(1));
    assert!(registered);
    world.run_for(Duration::from_millis(20));
    assert_eq!(world.readers(), [Some(1); 2]);
    assert!(world.traffic_flows());
    assert!(world.read(1) > 0);
}

#[test]
fn a_registration_waits_for_no_key() {
    for handover in [Handover::Push, Handover::Pkd] {
        let mut world = World::at(Policies::new(handover), 0);
        world.silent_in = Some((HOME, KEY_DISTRIBUTE));
        world.move_to(1);
        assert!(world.run_until(20 * SECOND, |world| world.is_at(1)));
        assert!(world.traffic_flows());
    }
}

// Weakness: S27
#[test]
fn who_comes_back_finds_other_keys() {
    for handover in [Handover::Push, Handover::Pkd] {
        let mut world = World::at(Policies::new(handover), 0);
        let mut seen = std::collections::BTreeSet::new();
        for agent in [1, 0, 1, 0] {
            world.move_to(agent);
            assert!(world.run_until(20 * SECOND, |world| world.readers() == [Some(agent); 2]));
            for end in [MOBILE, HOME] {
                assert!(
                    seen.insert((end, world.slot(end))),
                    "{handover:?}: it is a slot of before"
                );
            }
            assert!(world.traffic_flows());
        }
    }
}

/// The replaced child SA of the slot stays for as long as packets may be in flight.
#[test]
fn a_slot_that_one_end_has_renewed_is_not_renewed_by_the_other() {
    for handover in [Handover::Push, Handover::Pkd] {
        let mut world = World::at(Policies::new(handover), 0);
        world.move_to(1);
        assert!(world.run_until(20 * SECOND, |world| world.readers() == [Some(1); 2]));
        let before = world.story.len();
        world.move_to(0);
        assert!(world.run_until(20 * SECOND, |world| world.readers() == [Some(0); 2]));
        world.run_for(10 * SECOND);
        let renewals = |end: usize| {
            let story = world.story[before..].iter();
            let asked = |message: &Message| matches!(message, Message::Ike { exchange, response: false, .. } if exchange.0 == CREATE_CHILD_SA);
            story
                .filter(|(_, who, message)| *who == end && asked(message))
                .count()
        };
        assert_eq!((renewals(HOME), renewals(MOBILE)), (1, 0), "{handover:?}");
    }
}

/// Invariant 4: both ends have to agree, and either can refuse.
// Refuses: handover
// Weakness: S30
#[test]
fn a_node_that_one_end_does_not_license_gets_no_key_by_any_way() {
    for handover in [Handover::Push, Handover::Pkd] {
        for end in [MOBILE, HOME] {
            let mut policies = Policies::new(handover);
            policies.licensed[end] = vec![0];
            let mut world = World::at(policies, 0);
            world.move_to(1);
            world.run_for(30 * SECOND);
            assert!(world.traffic_flows());
            assert!(world.nodes[AGENT + 1].held_grants().is_empty());
            assert_eq!(world.read(1), 0);
            let told = world.events[MOBILE].iter().any(|event| {
                matches!(event, Event::Refused { why, .. } if why.to_string().contains("offers to let fb.example.net read"))
            });
            assert_eq!(told, end == MOBILE, "the one that refuses says so");
        }
    }
}

/// If a mobile node is in two places at once, the node at the place it sends from can read.
#[test]
fn of_two_places_the_one_counts_that_is_sent_by() {
    let policies = Policies {
        simultaneous: true,
        ..Policies::new(Handover::Pkd)
    };
    let mut world = World::at(policies, 0);
    world.set_link(1, true);
    assert!(world.run_until(20 * SECOND, |world| world.places(HOME).len() == 2));
    for _ in 0..20 {
        assert!(world.traffic_flows());
    }
    assert_eq!(world.readers(), [Some(0); 2]);
    world.set_link(0, false);
    assert!(world.run_until(20 * SECOND, |world| world.places(MOBILE).contains(&1)));
    for _ in 0..5 {
        world.traffic_flows();
    }
    assert_eq!(world.readers(), [Some(1); 2]);
    assert!(world.traffic_flows());
}

// Recovers: handover
#[test]
fn whoever_restarts_is_read_again_where_the_mobile_node_is() {
    for who in [MOBILE, HOME, AGENT + 1] {
        let mut world = World::at(Policies::new(Handover::Push), 0);
        world.move_to(1);
        assert!(world.run_until(20 * SECOND, |world| world.readers() == [Some(1); 2]));
        world.restart(who);
        assert!(
            world.run_until(120 * SECOND, |world| world.readers() == [Some(1); 2]),
            "after a restart of {who}"
        );
        assert!(world.traffic_flows());
    }
}

/// The keys of the first child SA are only for nodes with a licence without `at`.
#[test]
fn at_home_in_no_place_nobody_reads() {
    let mut policies = Policies::new(Handover::Push);
    policies.licensed = [vec![1, 2], vec![1, 2]];
    let mut world = World::new(policies, 7);
    world.set_link(0, true);
    world.run_for(10 * SECOND);
    assert!(world.traffic_flows());
    assert_eq!((world.read(0), world.unread(0)), (0, 2));
}

/// The mobile node is out of reach for longer than its registration lasts. Both ends keep the
/// tunnel, because they do not ask yet whether the other one is there.
// Weakness: 149
#[test]
fn a_binding_that_expires_takes_its_keys_back_and_who_is_bound_again_has_others() {
    for handover in [Handover::Push, Handover::Pkd, Handover::Dkm] {
        let policies = Policies {
            liveness: 1000 * SECOND,
            ..Policies::new(handover)
        };
        let mut world = World::at(policies, 0);
        assert!(world.traffic_flows());
        let before = world.slot(HOME);
        world.switch(MOBILE);
        let holds_nothing = |world: &World| {
            let mut agents = world.nodes[AGENT..].iter();
            agents.all(|agent| agent.held_grants().is_empty())
        };
        world.run_for(40 * SECOND);
        assert!(!holds_nothing(&world), "{handover:?}: before it expires");
        assert!(
            world.run_until(25 * SECOND, holds_nothing),
            "{handover:?}: agents keep the keys"
        );
        assert_eq!(world.slot(HOME), None, "{handover:?}");
        let unbound = Ending::Unbound;
        let told = world.events[HOME].iter().any(
            |event| matches!(event, Event::GrantEnded { why, given: true, .. } if *why == unbound),
        );
        assert!(told, "{handover:?}");
        world.run_for(30 * SECOND);
        world.switch(MOBILE);
        let is_read = |world: &World| world.readers() == [Some(0); 2];
        assert!(
            world.run_until(20 * SECOND, is_read),
            "{handover:?}: nobody reads"
        );
        assert_ne!(world.slot(HOME), before, "{handover:?}");
        let read = world.read(0);
        assert!(world.traffic_flows());
        assert_eq!(world.read(0), read + 2, "{handover:?}");
        let told = world.events[HOME].iter();
        let alice = world.nodes[HOME].names().id("alice");
        let is_down =
            |event: &Event| matches!(event, Event::PeerDown { peer, .. } if Some(*peer) == alice);
        assert_eq!(told.filter(|event| is_down(event)).count(), 0);
        world.witness.assert_nobody_read_behind();
    }
}
