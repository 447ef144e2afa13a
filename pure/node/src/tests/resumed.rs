//! Sessions that are resumed, and licensed nodes: nothing licensed outlives the loss of a tunnel.

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World, license};
use crate::Event;
use ike::Resumption;
use std::time::Duration;

const WAYS: [Resumption; 2] = [Resumption::Tickets, Resumption::Skid3];

const ENDS: [usize; 2] = [MOBILE, GATEWAY];

fn connected(resumption: Resumption) -> World {
    World::connected(Policies {
        resumption,
        ..Policies::default()
    })
}

/// Has the mobile node hear nothing until it has lost the tunnel. It then begins again, and its
/// first message is under way.
fn lose(world: &mut World) {
    world.deaf[MOBILE] = true;
    for _ in 0..100_000 {
        world.run_for(Duration::from_millis(2));
        if world.spis(MOBILE).is_empty() {
            world.deaf[MOBILE] = false;
            return;
        }
    }
    panic!("the tunnel stays up: {:?}", world.events[MOBILE]);
}

/// Checks that the session was resumed at both ends.
fn is_resumed(world: &World) {
    for who in ENDS {
        let resumed = |event: &&Event| matches!(event, Event::Resumed { .. });
        let times = world.events[who].iter().filter(resumed).count();
        assert_eq!(times, 1, "at host {who}: {:?}", world.events[who]);
    }
}

/// Sends a segment both ways, and returns how many of them the licensed node read.
fn read(world: &mut World) -> u64 {
    let before = world.nodes[LICENSED].transit_counters().segments;
    let seq = 100 * world.sealed.len() as u32;
    let there = world.segment(MOBILE, seq, b"something");
    let back = world.segment(GATEWAY, seq, b"something else");
    world.run_for(Duration::from_secs(1));
    assert!(world.delivered[GATEWAY].contains(&there));
    assert!(world.delivered[MOBILE].contains(&back));
    world.nodes[LICENSED].transit_counters().segments - before
}

#[test]
fn a_node_that_is_licensed_still_gets_keys_of_the_resumed_session() {
    for way in WAYS {
        let mut world = connected(way);
        let before = world.nodes[LICENSED].held_grants();
        assert_eq!(read(&mut world), 2);
        lose(&mut world);
        world.run_for(Duration::from_secs(10));
        is_resumed(&world);
        let held = world.nodes[LICENSED].held_grants();
        assert_eq!(held.len(), 1, "{way:?}");
        assert_ne!(held[0].csa, before[0].csa, "{way:?}");
        assert_eq!(read(&mut world), 2, "{way:?}");
    }
}

/// The node hears nothing of the gateway any more, and keeps all that it has.
// Weakness: S14
#[test]
fn a_node_reads_nothing_of_a_resumed_session_by_the_keys_of_the_lost_one() {
    for way in WAYS {
        let mut world = connected(way);
        let before = world.nodes[LICENSED].held_grants();
        world.deaf[LICENSED] = true;
        lose(&mut world);
        world.run_for(Duration::from_secs(10));
        is_resumed(&world);
        let held = world.nodes[LICENSED].held_grants();
        assert_eq!(held[0].csa, before[0].csa, "{way:?}: it still has them");
        assert_eq!(read(&mut world), 0, "{way:?}");
    }
}

/// Either end alone takes a licence back.
// Weakness: S14
#[test]
fn a_licence_that_was_taken_back_since_the_loss_is_not_given_to_the_resumed_session() {
    for way in WAYS {
        for who in ENDS {
            let mut world = connected(way);
            lose(&mut world);
            license(&mut world, who, false);
            world.run_for(Duration::from_secs(60));
            let times = |event: &&Event| matches!(event, Event::Resumed { .. });
            let resumed = world.events[MOBILE].iter().filter(times).count();
            assert_eq!(resumed, 1, "{way:?}, {who}");
            assert!(world.nodes[LICENSED].held_grants().is_empty());
            assert_eq!(read(&mut world), 0, "{way:?}, {who}");
        }
    }
}
