//! What a node reports about peers that do not answer, and about those that it refuses.

use super::world::{GATEWAY, Hosts, MOBILE, Policies, World};
use crate::{Event, OVERDUE, PeerState, PeerStatus};
use model::Instant;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn peer(world: &World, of: usize) -> PeerStatus {
    world.nodes[of].peers().swap_remove(0)
}

/// Returns the numbers of messages in all reports of a peer that does not answer.
fn unanswered(world: &World) -> Vec<u32> {
    let told = world.events[MOBILE].iter().filter_map(|event| match event {
        Event::Unanswered { tries, .. } => Some(*tries),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_peer_that_does_not_answer_is_reported_after_five_seconds_and_once_for_each_attempt() {
    let mut world = World::new(Policies::default());
    world.off[GATEWAY] = true;
    world.restart(MOBILE);
    world.run_for(OVERDUE - SECOND);
    assert_eq!(unanswered(&world), [0; 0]);
    world.run_for(SECOND * 2);
    let told = unanswered(&world);
    assert!(matches!(told[..], [tries] if tries > 1), "{told:?}");
    assert!(peer(&world, MOBILE).silent);
    assert_eq!(peer(&world, MOBILE).state, PeerState::Connecting);
    world.run_for(SECOND * 60);
    assert_eq!(unanswered(&world).len(), 1);
    world.run_for(SECOND * 600);
    assert!(
        (3..8).contains(&unanswered(&world).len()),
        "{:?}",
        unanswered(&world)
    );
}

#[test]
fn a_peer_that_answers_is_not_reported() {
    let world = World::connected(Policies::default());
    assert_eq!(unanswered(&world), [0; 0]);
    assert!(!peer(&world, MOBILE).silent);
}

fn ago(world: &World, heard: Option<Instant>) -> Duration {
    world.now.since(heard.expect("the peer is up"))
}

/// A gateway that sends nothing asks nothing, so the time is all that shows a peer that is gone.
// Recovers: failures
#[test]
fn the_time_at_which_a_peer_was_last_heard_is_known_by_messages_and_by_packets() {
    let mut world = World::connected(Policies::default());
    assert!(ago(&world, peer(&world, GATEWAY).heard) < SECOND * 11);
    world.run_for(SECOND * 60);
    world.segment(MOBILE, 1, b"request");
    world.run_for(SECOND);
    assert!(ago(&world, peer(&world, GATEWAY).heard) <= SECOND);
    world.off[MOBILE] = true;
    world.run_for(SECOND * 20);
    let status = peer(&world, GATEWAY);
    assert!(ago(&world, status.heard) >= SECOND * 20);
    assert_eq!((status.state, status.silent), (PeerState::Up, false));
}

// Recovers: failures
#[test]
fn a_peer_that_does_not_answer_is_silent_until_it_is_heard_again() {
    let mut world = World::connected(Policies::default());
    world.off[MOBILE] = true;
    world.segment(GATEWAY, 1, b"request");
    world.run_for(SECOND * 12);
    assert!(peer(&world, GATEWAY).silent);
    world.off[MOBILE] = false;
    world.run_for(SECOND * 10);
    assert!(!peer(&world, GATEWAY).silent);
    assert_eq!(peer(&world, GATEWAY).state, PeerState::Up);
}
