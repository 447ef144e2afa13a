//! Processes end without a word, packets get lost, and the tunnel comes back by itself.

use super::world::{GATEWAY, Hop, Hosts, LICENSED, MOBILE, Policies, World};
use crate::{GrantState, PeerState};
use crypto::Secret;
use std::time::Duration;

fn recovers(world: &mut World) {
    for _ in 0..300 {
        world.run_for(Duration::from_secs(1));
        let held = !world.nodes[LICENSED].held_grants().is_empty();
        let granted = world.nodes[GATEWAY]
            .composite_sas()
            .iter()
            .any(|csa| csa.grants[0].state == GrantState::Held);
        if world.tunnel_is_up() && held && granted && traffic_arrives(world) {
            return;
        }
    }
    panic!(
        "no tunnel or no licence after five minutes: {:?}",
        world.events
    );
}

fn traffic_arrives(world: &mut World) -> bool {
    let there = world.segment(MOBILE, 1, b"still there?");
    let back = world.segment(GATEWAY, 1, b"yes");
    world.run_for(Duration::from_millis(200));
    world.delivered[GATEWAY].contains(&there) && world.delivered[MOBILE].contains(&back)
}

// Answers: duration-restart
#[test]
fn the_tunnel_and_the_licence_come_back_after_each_host_restarts() {
    for who in [MOBILE, GATEWAY, LICENSED] {
        let mut world = World::connected(Policies::default());
        world.restart(who);
        world.delivered = Default::default();
        recovers(&mut world);
    }
}

#[test]
fn a_host_that_was_off_for_an_hour_comes_back() {
    for who in [MOBILE, GATEWAY, LICENSED] {
        let mut world = World::connected(Policies::default());
        world.off[who] = true;
        world.run_for(Duration::from_secs(3600));
        world.off[who] = false;
        world.delivered = Default::default();
        recovers(&mut world);
    }
}

// Recovers: tunnel
#[test]
fn the_tunnel_comes_up_over_hops_that_lose_repeat_and_delay() {
    let bad = Hop::PERFECT.losing(300).repeating(100).delaying(300);
    let mut world = World::new(Policies::default());
    (world.wireless, world.wired) = (bad, bad);
    for _ in 0..600 {
        world.run_for(Duration::from_secs(1));
        if world.tunnel_is_up() && !world.nodes[LICENSED].held_grants().is_empty() {
            return;
        }
    }
    panic!("no tunnel after ten minutes: {:?}", world.events);
}

/// Each end began an IKE SA; one stays, and it is the one that `down` ends.
#[test]
fn what_the_responder_took_down_stays_down_until_it_lets_the_peer_in() {
    let mut world = World::connected(Policies::default());
    world
        .command(GATEWAY, |node, now| node.down("alice", now))
        .unwrap();
    world.run_for(Duration::from_secs(600));
    assert!(!world.tunnel_is_up());
    let why = world.nodes[MOBILE].peers()[0].refusal.clone().unwrap().why;
    assert!(why.contains("`strata up` there"), "{why}");
    world
        .command(GATEWAY, |node, now| node.up("alice", now))
        .unwrap();
    world.run_for(Duration::from_secs(70));
    assert!(world.tunnel_is_up());
}

#[test]
fn two_ends_that_begin_at_once_keep_one_tunnel_and_down_ends_it() {
    let mut world = World::new(Policies {
        both_begin: true,
        ..Policies::default()
    });
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.spis(MOBILE).len(), 1);
    assert_eq!(world.spis(MOBILE), world.spis(GATEWAY));
    assert!(traffic_arrives(&mut world));
    for who in [MOBILE, GATEWAY] {
        assert_eq!(world.nodes[who].peers()[0].state, PeerState::Up);
    }
    world
        .command(MOBILE, |node, now| node.down("gw", now))
        .unwrap();
    // The gateway still wants it, and tries again after a second.
    world.run_for(Duration::from_millis(500));
    assert!(world.spis(MOBILE).is_empty() && world.spis(GATEWAY).is_empty());
}

/// Its driver could not give the device an address, or the like: nothing is left half done.
#[test]
fn what_a_host_cannot_take_up_ends_at_both_ends_and_is_tried_again() {
    let mut world = World::connected(Policies::default());
    let why = "the device does not take the address".to_owned();
    world.command(MOBILE, |node, now| node.withdraw("gw", why.clone(), now));
    assert_eq!(world.nodes[MOBILE].peers()[0].state, PeerState::Down);
    world.run_for(Duration::from_millis(500));
    assert!(world.spis(MOBILE).is_empty() && world.spis(GATEWAY).is_empty());
    let told = world.nodes[MOBILE].peers()[0].refusal.clone();
    assert_eq!(told.map(|told| told.why), Some(why));
    world.run_for(Duration::from_secs(2));
    assert!(traffic_arrives(&mut world));
    assert_eq!(world.nodes[MOBILE].peers()[0].refusal, None);
}

/// The operator's `down` does not wait for a peer that is out of reach, and no more does `up` after
/// it.
#[test]
fn up_after_down_begins_at_once_though_nobody_answered_the_delete() {
    let mut world = World::connected(Policies::default());
    world.off[GATEWAY] = true;
    world
        .command(MOBILE, |node, now| node.down("gw", now))
        .unwrap();
    assert_eq!(world.nodes[MOBILE].peers()[0].state, PeerState::Down);
    assert!(world.spis(MOBILE).is_empty());
    world.run_for(Duration::from_millis(300));
    world.off[GATEWAY] = false;
    world
        .command(MOBILE, |node, now| node.up("gw", now))
        .unwrap();
    world.run_for(Duration::from_millis(500));
    assert!(traffic_arrives(&mut world));
    // The old SA's end, whenever it comes, takes nothing with it.
    world.run_for(Duration::from_secs(60));
    assert!(world.tunnel_is_up());
    assert_eq!(world.nodes[MOBILE].peers()[0].state, PeerState::Up);
}

/// Requests ten times a second, and answers; how long until one arrives.
fn time_to_recover(world: &mut World) -> Duration {
    let since = world.now;
    world.delivered = Default::default();
    for seq in 1.. {
        world.segment(MOBILE, seq, b"request");
        world.segment(GATEWAY, seq, b"answer");
        world.run_for(Duration::from_millis(100));
        let took = world.now - since;
        let both = [MOBILE, GATEWAY].iter();
        if both.clone().all(|who| !world.delivered[*who].is_empty()) || took.as_secs() > 60 {
            return took;
        }
    }
    unreachable!()
}

/// The gateway answers a check on the lost IKE SA with an unauthenticated INVALID_IKE_SPI, so the
/// mobile node starts another.
#[test]
fn a_gateway_that_was_killed_and_started_again_is_back_within_five_seconds() {
    for seconds in [3, 20, 100] {
        // With a licensed node, packets wait up to two seconds longer for its keys.
        let policies = Policies {
            mobile: Vec::new(),
            gateway: Vec::new(),
            ..Policies::default()
        };
        let mut world = World::connected(policies);
        world.run_for(Duration::from_secs(seconds));
        world.restart(GATEWAY);
        let took = time_to_recover(&mut world);
        assert!(took < Duration::from_secs(5), "{took:?}");
        world.run_for(Duration::from_secs(120));
        assert!(world.tunnel_is_up());
        assert!(traffic_arrives(&mut world));
    }
}

#[test]
fn a_key_that_is_changed_at_both_ends_is_used_within_five_seconds() {
    for seconds in [2, 13, 40] {
        for first in [MOBILE, GATEWAY] {
            let mut world = World::connected(Policies::default());
            let psk = || Some(Secret::new(b"another battery staple".to_vec()));
            for who in [first, MOBILE + GATEWAY - first] {
                world.reconfigure(who, |config| {
                    config
                        .peers
                        .iter_mut()
                        .filter(|peer| ["gw", "alice"].contains(&peer.name.as_str()))
                        .for_each(|peer| peer.psk = psk());
                });
                if who == first {
                    world.run_for(Duration::from_secs(seconds));
                }
            }
            let took = time_to_recover(&mut world);
            assert!(took < Duration::from_secs(5), "{first}: {took:?}");
        }
    }
}
