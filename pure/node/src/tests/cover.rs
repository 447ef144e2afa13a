//! Cover traffic (RFC 4303 section 2.6), as seen by an observer who counts packets between the
//! endpoints.

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World};
use crate::{Node, Rekey};
use model::{Instant, Sizes};
use std::collections::BTreeSet;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(100);

fn covered() -> World {
    World::connected(Policies {
        cover: Some(INTERVAL),
        ..Policies::default()
    })
}

/// Returns the number of packets that leave a host in the meantime.
fn sent(world: &mut World, who: usize, what: impl FnOnce(&mut World)) -> usize {
    let before = world.sealed.len();
    what(world);
    let new = world.sealed[before..].iter();
    new.filter(|(from, _)| *from == who).count()
}

fn dummies(world: &World, who: usize) -> u64 {
    world.nodes[who].esp_counters().dummies()
}

#[test]
fn where_nothing_is_sent_a_packet_leaves_in_each_interval() {
    let mut world = covered();
    let count = sent(&mut world, MOBILE, |world| world.run_for(INTERVAL * 50));
    assert!((49..=51).contains(&count), "{count}");
    assert!(dummies(&world, GATEWAY) >= 49 && dummies(&world, MOBILE) >= 49);
    assert!(world.delivered.iter().all(Vec::is_empty));
    assert!(
        world
            .dropped
            .iter()
            .flatten()
            .all(|why| *why == crate::DropReason::Dummy)
    );
    let counters = world.nodes[GATEWAY].esp_counters();
    assert!(counters.drops().all(|(_, count)| count == 0));
}

/// An observer cannot distinguish silence from traffic of up to one packet per interval.
#[test]
fn a_datagram_takes_the_place_of_a_dummy() {
    let mut world = covered();
    let count = sent(&mut world, MOBILE, |world| {
        for seq in 0..50 {
            world.run_for(INTERVAL / 2);
            world.segment(MOBILE, seq, b"hello");
            world.run_for(INTERVAL / 2);
        }
    });
    assert!((49..=52).contains(&count), "{count}");
    assert_eq!(world.delivered[GATEWAY].len(), 50);
    // More traffic than that is visible.
    let more = sent(&mut world, MOBILE, |world| {
        (0..500).for_each(|seq| drop(world.segment(MOBILE, seq, b"hello")));
        world.run_for(INTERVAL);
    });
    assert!(more >= 500);
}

/// Compares lengths and, once a datagram with a map was sent, maps.
// Answers: licence-cover
#[test]
fn a_dummy_looks_like_a_datagram_from_outside() {
    let mut world = covered();
    world.segment(MOBILE, 1, b"hello");
    world.segment(GATEWAY, 1, b"hello to you");
    let before = world.sealed.len();
    world.run_for(INTERVAL * 20);
    for who in [MOBILE, GATEWAY] {
        let seen = |(from, packet): &&(usize, Vec<u8>)| {
            (*from == who).then(|| (packet.len(), packet[8..12].to_vec()))
        };
        let datagrams: BTreeSet<_> = world.sealed[..before]
            .iter()
            .rev()
            .take(2)
            .filter_map(|s| seen(&s))
            .collect();
        let dummies: BTreeSet<_> = world.sealed[before..]
            .iter()
            .filter_map(|s| seen(&s))
            .collect();
        assert_eq!((datagrams.len(), &datagrams), (1, &dummies));
    }
    // The licensed node, which can read headers, sees that dummies have none.
    let counters = world.nodes[LICENSED].transit_counters();
    assert!(
        counters.segments == 2 && counters.opaque >= 30,
        "{counters:?}"
    );
}

// Recovers: tfc
#[test]
fn silence_is_covered_over_new_keys_and_losses() {
    let mut world = covered();
    (world.wireless.lost, world.wired.lost) = (200, 200);
    for round in 0..10 {
        let rekey = |node: &mut Node, now| node.rekey("alice", Rekey::Children, now);
        if round % 3 == 0 {
            world.command(GATEWAY, rekey).unwrap();
        }
        let count = sent(&mut world, MOBILE, |world| world.run_for(INTERVAL * 20));
        assert!((19..=21).contains(&count), "{count} in round {round}");
    }
}

// Recovers: tfc
#[test]
fn it_ends_with_the_tunnel_and_begins_with_the_next() {
    let mut world = covered();
    world
        .command(MOBILE, |node, now| node.down("gw", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    for who in [MOBILE, GATEWAY] {
        assert_eq!(
            sent(&mut world, who, |world| world.run_for(INTERVAL * 50)),
            0
        );
    }
    world
        .command(MOBILE, |node, now| node.up("gw", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    assert!(sent(&mut world, MOBILE, |world| world.run_for(INTERVAL * 50)) >= 49);
}

/// After a suspend a host sends one packet, not all the packets that it missed.
// Recovers: tfc
#[test]
fn an_interval_that_was_slept_through_is_not_made_up_for() {
    let mut world = covered();
    world.now += Duration::from_secs(20);
    let count = sent(&mut world, MOBILE, |world| world.run_for(INTERVAL * 10));
    assert!(count <= 12, "{count}");
}

#[test]
fn a_reload_covers_a_tunnel_that_is_up_or_does_no_more() {
    let mut world = World::connected(Policies::default());
    let quiet = |world: &mut World| sent(world, MOBILE, |world| world.run_for(INTERVAL * 10));
    assert_eq!(quiet(&mut world), 0);
    let replaced = world.reconfigure(MOBILE, |config| {
        config.peers[0].sizes = Some(Sizes::one(1000));
        config.peers[0].cover = Some(INTERVAL);
    });
    assert!(replaced.is_empty(), "{replaced:?}");
    assert!(quiet(&mut world) >= 9);
    world.reconfigure(MOBILE, |_| {});
    assert_eq!(quiet(&mut world), 0);
}

/// Without padding, a dummy could be recognised by its length.
#[test]
fn without_lengths_that_are_hidden_there_are_no_dummies() {
    let mut world = World::connected(Policies::default());
    world.reconfigure(MOBILE, |config| {
        config.peers[0].cover = Some(INTERVAL);
    });
    assert_eq!(
        sent(&mut world, MOBILE, |world| world.run_for(INTERVAL * 10)),
        0
    );
    assert!(world.now > Instant::ZERO);
}
