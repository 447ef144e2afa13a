//! Attacks by holders of keys, and from the path.

use super::hosts::{AGENT, HOME, MOBILE, Policies};
use super::world::{Flight, Hop, Hosts, World};
use node::Handover;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A compromised node keeps its keys, and ignores every message.
// Weakness: S27
#[test]
fn an_agent_that_ignores_revoke_has_the_key_of_nothing_that_comes_later() {
    for handover in [Handover::Push, Handover::Pkd] {
        let mut world = World::at(Policies::new(handover), 0);
        let kept = world.nodes[AGENT].held_grants();
        world.off[AGENT] = true;
        world.move_to(1);
        assert!(world.run_until(20 * SECOND, |world| world.readers() == [Some(1); 2]));
        for _ in 0..5 {
            assert!(world.traffic_flows());
        }
        let kept: Vec<_> = kept
            .iter()
            .flat_map(|held| [held.from_gateway, held.to_gateway])
            .collect();
        let sealed = [MOBILE, HOME].map(|end| world.slot(end).unwrap());
        assert!(sealed.iter().all(|spi| !kept.contains(spi)));
        world.witness.assert_nobody_read_behind();
    }
}

/// A neighbour holds the keys of its own slot in advance, and of no other.
// Refuses: handover
// Weakness: S28
#[test]
fn a_neighbour_that_is_never_visited_has_the_key_of_nothing() {
    let mut world = World::at(Policies::new(Handover::Pkd), 0);
    world.run_for(10 * SECOND);
    let held = world.nodes[AGENT + 2].held_grants();
    assert_eq!(held.len(), 1, "it is prepared");
    for agent in [1, 0, 1] {
        world.move_to(agent);
        assert!(world.run_until(20 * SECOND, |world| world.readers() == [Some(agent); 2]));
        assert!(world.traffic_flows());
    }
    // The neighbour is on the path all the same, and sees all packets.
    let before = (world.read(2), world.unread(2));
    let packet = super::datagram::udp(
        "192.0.2.1:4500".parse().unwrap(),
        "10.66.0.7:4500".parse().unwrap(),
        &[
            world.slot(HOME).unwrap().0.to_be_bytes().as_slice(),
            &[0; 100],
        ]
        .concat(),
    );
    world.nodes[AGENT + 2].transit(node::Side::Wired, &packet, world.now);
    assert_eq!((world.read(2), world.unread(2)), (before.0, before.1 + 1));
    world.witness.assert_nobody_read_behind();
}

/// A recorded registration is replayed when the mobile node is elsewhere: neither the binding nor
/// the keys follow.
// Refuses: handover
// Weakness: S29
#[test]
fn a_registration_that_is_replayed_moves_no_key() {
    let mut world = World::new(Policies::new(Handover::Push), 7);
    let mut recorded = Vec::new();
    world.set_link(0, true);
    while recorded.is_empty() {
        world.run_for(Duration::from_millis(1));
        recorded = world.under_way(|it| matches!(it, Flight::Registration(HOME, ..)));
        assert!(
            world.now.since_origin() < Duration::from_secs(1100),
            "it never registers"
        );
    }
    assert!(world.run_until(20 * SECOND, |world| world.readers() == [Some(0); 2]));
    world.move_to(1);
    assert!(world.run_until(20 * SECOND, |world| world.readers() == [Some(1); 2]));
    for flight in recorded {
        world.fly(flight, Hop::PERFECT);
    }
    world.run_for(5 * SECOND);
    assert_eq!(world.readers(), [Some(1); 2]);
    assert_eq!(world.places(HOME), [1].into());
    world.witness.assert_nobody_read_behind();
}

/// An attacker advertises in the name of an agent. The mobile node may send requests there, without
/// an answer. Its packets are still sealed for its real location.
// Refuses: handover
// Weakness: S29
#[test]
fn an_advertisement_that_is_spoofed_moves_no_key() {
    let mut world = World::at(Policies::new(Handover::Push), 0);
    let mut recorded = Vec::new();
    while recorded.is_empty() {
        world.run_for(Duration::from_millis(1));
        recorded = world.under_way(|it| matches!(it, Flight::Discovery(MOBILE, 1, ..)));
    }
    for _ in 0..10 {
        for flight in &recorded {
            let Flight::Discovery(who, _, source, octets) = flight.clone() else {
                continue;
            };
            // On the link of the first agent.
            world.fly(Flight::Discovery(who, 0, source, octets), Hop::PERFECT);
        }
        world.run_for(SECOND);
    }
    assert!(world.traffic_flows());
    assert_eq!(world.readers(), [Some(0); 2]);
    assert!(world.nodes[AGENT + 1].held_grants().is_empty());
}
