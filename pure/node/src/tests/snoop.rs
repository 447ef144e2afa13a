//! The licensed node repairs what the wireless hop loses, with packets it cannot read.

use super::world::{GATEWAY, Hop, Hosts, LICENSED, MOBILE, Policies, World, fixed_map};
use model::{MapKind, Mode};
use std::time::Duration;

/// Sends five segments, the second of which is lost on the wireless hop. The mobile node
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
    world.wireless = Hop::PERFECT;
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
    let [client, server] = world.ends();
    let segment = super::datagram::tcp(client, server, 4, ack, b"");
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

/// DESIGN section 7: the node identifies a connection by its ports and its SA.
#[test]
fn in_transport_and_beet_mode_it_is_repaired_too_and_no_address_is_known() {
    for mode in [Mode::Transport, Mode::Beet] {
        for map in [MapKind::Changeable, fixed_map(20)] {
            let policies = Policies {
                mode,
                map,
                ..Policies::default()
            };
            let (retransmitted, delivered) = lose_one(policies.clone());
            assert!(retransmitted >= 1, "{mode}");
            assert_eq!(delivered, 5, "{mode}");
            let unlicensed = Policies {
                mobile: Vec::new(),
                ..policies
            };
            assert_eq!(lose_one(unlicensed), (0, 4), "{mode}");
        }
    }
    let mut world = World::connected(Policies {
        mode: Mode::Beet,
        ..Policies::default()
    });
    world.segment(GATEWAY, 1, b"data");
    world.run_for(Duration::from_millis(50));
    let flow = world.nodes[LICENSED].flows()[0].flow;
    assert!(flow.source.is_unspecified() && flow.destination.is_unspecified());
    assert_eq!((flow.source_port, flow.destination_port), (80, 40_000));
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
