//! Traffic without an answer.

use super::world::{GATEWAY, Hosts, MOBILE, Policies, World};
use crate::{Event, PeerState};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

const INFORMATIONAL: u8 = 37;

/// Counts the requests that a host has sent after the first `after` messages.
fn requests(world: &World, of: usize, after: usize) -> usize {
    let sent = world.ike[after..].iter();
    let sent = sent.filter(|(who, message)| {
        *who == of && message[18] == INFORMATIONAL && message[19] & 0x20 == 0
    });
    sent.count()
}

/// Sends a datagram each second from one end. Returns the seconds in which that end sent a check.
fn asked_in(world: &mut World, from: usize, seconds: u32) -> Vec<u32> {
    let mut asked = Vec::new();
    for second in 1..=seconds {
        let before = world.ike.len();
        world.segment(from, second, b"datagram");
        world.run_for(SECOND);
        if requests(world, from, before) > 0 {
            asked.push(second);
        }
    }
    asked
}

/// After 3 s, then rarely, because one-way traffic is normal.
#[test]
fn one_way_traffic_leads_to_few_questions_and_ends_nothing() {
    for from in [MOBILE, GATEWAY] {
        let mut world = World::connected(Policies::default());
        let asked = asked_in(&mut world, from, 600);
        let early = asked.iter().any(|second| (3..=5).contains(second));
        assert!(early, "{asked:?}");
        // The gateway also asks the licensed node every 30 s.
        assert!((8..45).contains(&asked.len()), "{asked:?}");
        assert_eq!(world.nodes[from].peers()[0].state, PeerState::Up);
        let down = |event: &Event| matches!(event, Event::PeerDown { .. });
        assert!(!world.events.iter().flatten().any(down));
    }
}

/// What was sent before the check needs no other one.
// Weakness: 199
#[test]
fn a_tunnel_that_rests_after_a_packet_costs_one_question() {
    for from in [MOBILE, GATEWAY] {
        let mut world = World::connected(Policies::default());
        let before = world.ike.len();
        world.segment(from, 1, b"the last of a transfer");
        world.run_for(SECOND * 25);
        assert_eq!(requests(&world, from, before), 1);
        let before = world.ike.len();
        world.segment(from, 2, b"the last of another one");
        world.run_for(SECOND * 4);
        assert_eq!(
            requests(&world, from, before),
            1,
            "asked again after a later packet"
        );
    }
}

#[test]
fn traffic_that_is_answered_leads_to_no_question() {
    let mut world = World::connected(Policies::default());
    let before = world.ike.len();
    for seq in 0..120 {
        world.segment(MOBILE, seq, b"request");
        world.segment(GATEWAY, seq, b"answer");
        world.run_for(SECOND / 2);
    }
    assert_eq!(requests(&world, MOBILE, before), 0);
}

/// A check without an answer ends the SA when liveness would have, and not earlier.
#[test]
fn a_peer_that_is_gone_is_asked_soon_and_given_up_as_late_as_ever() {
    let mut world = World::connected(Policies::default());
    world.segment(MOBILE, 1, b"request");
    world.segment(GATEWAY, 1, b"answer");
    world.run_for(SECOND);
    world.off[GATEWAY] = true;
    let asked = asked_in(&mut world, MOBILE, 42);
    assert!(matches!(asked[0], 3..=5), "{asked:?}");
    assert_eq!(world.nodes[MOBILE].peers()[0].state, PeerState::Up);
    asked_in(&mut world, MOBILE, 6);
    assert_ne!(world.nodes[MOBILE].peers()[0].state, PeerState::Up);
}
