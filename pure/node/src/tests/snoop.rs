//! The licensed node repairs what the wireless hop loses, with packets it cannot read.

use super::world::{GATEWAY, Hop, LICENSED, MOBILE, Policies, World};
use std::time::Duration;

/// Sends five segments of which the second is lost on the wireless hop; the mobile node
/// acknowledges as a receiver does. Returns what SNOOP did, as (retransmitted, delivered).
fn lose_one(policies: Policies) -> (usize, usize) {
    let mut world = World::connected(policies);
    world.segment(MOBILE, 1, b"GET");
    world.run_for(Duration::from_millis(50));
    for index in 0..5_u32 {
        world.wireless.lost = if index == 1 { 1000 } else { 0 };
        world.segment(GATEWAY, 1 + index * 1000, &[index as u8; 1000]);
        world.run_for(Duration::from_millis(20));
    }
    world.wireless = Hop::default();
    for ack in [1001, 1001, 1001, 1001] {
        acknowledge(&mut world, ack);
    }
    world.run_for(Duration::from_millis(100));
    let counters = world.nodes[LICENSED].snoop_counters();
    let retransmitted = counters.map_or(0, |counters| {
        counters.retransmitted_lost + counters.retransmitted_timeout
    });
    (retransmitted as usize, world.delivered[MOBILE].len())
}

fn acknowledge(world: &mut World, ack: u32) {
    let segment = super::datagram::tcp("10.1.0.2:40000", "10.8.0.1:80", 4, ack, b"");
    world.send(MOBILE, &segment);
    world.run_for(Duration::from_millis(2));
}

#[test]
fn a_lost_segment_is_repaired_from_the_sealed_cache() {
    let (retransmitted, delivered) = lose_one(Policies::default());
    assert!(retransmitted >= 1);
    assert_eq!(
        delivered, 5,
        "each segment once: repeated packets end at the replay window"
    );
}

#[test]
fn without_snoop_or_without_a_licence_nothing_is_repaired() {
    assert_eq!(
        lose_one(Policies {
            snoop: false,
            ..Policies::default()
        }),
        (0, 4)
    );
    assert_eq!(
        lose_one(Policies {
            gateway: Vec::new(),
            ..Policies::default()
        }),
        (0, 4)
    );
}
