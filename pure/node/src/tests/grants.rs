//! Who gets keys, and who does not (invariants 4 and 5).

use super::world::{GATEWAY, LICENSED, MOBILE, Policies, World, licence};
use crate::{Event, GrantState, Stance};
use model::ZoneId;
use std::time::Duration;

/// Lets a little traffic flow both ways and returns whether all of it arrived.
fn traffic_flows(world: &mut World) -> bool {
    let there = world.segment(MOBILE, 1, b"GET / HTTP/1.1\r\n\r\n");
    let back = world.segment(GATEWAY, 1, &[0xa5; 1300]);
    world.run_for(Duration::from_secs(1));
    world.delivered[GATEWAY].contains(&there) && world.delivered[MOBILE].contains(&back)
}

#[test]
fn a_licence_that_both_ends_accept_lets_the_node_see_headers_and_no_payload() {
    let mut world = World::connected(Policies::default());
    let csas = world.nodes[GATEWAY].composite_sas();
    assert_eq!(csas[0].grants[0].state, GrantState::Held);
    let held = world.nodes[LICENSED].held_grants();
    assert_eq!(held[0].zones, [ZoneId(1)]);
    assert_eq!(held[0].payload_zone, ZoneId(2));
    assert!(traffic_flows(&mut world));
    assert_eq!(world.nodes[LICENSED].transit_counters().segments, 2);
    assert!(
        world.events[GATEWAY]
            .iter()
            .any(|event| matches!(event, Event::Granted { .. }))
    );
}

#[test]
fn no_key_leaves_for_a_licence_that_only_one_end_accepts() {
    let nobody = Vec::new();
    for (mobile, gateway) in [
        (Policies::default().mobile, nobody.clone()),
        (nobody, Policies::default().gateway),
    ] {
        let mut world = World::connected(Policies {
            mobile,
            gateway,
            ..Policies::default()
        });
        assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
        assert!(world.nodes[GATEWAY].composite_sas()[0].grants.is_empty());
        assert!(traffic_flows(&mut world), "the traffic flows all the same");
        assert_eq!(world.nodes[LICENSED].transit_counters().unlicensed, 2);
    }
}

#[test]
fn a_licence_for_another_identity_gives_this_node_nothing() {
    let other = vec![licence("fb.example.net", 1)];
    let mut world = World::connected(Policies {
        mobile: other.clone(),
        gateway: other,
        ..Policies::default()
    });
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
    assert!(traffic_flows(&mut world));
}

#[test]
fn the_payload_zone_is_licensed_only_by_its_own_name() {
    let both = vec![licence("fa.example.net", 1), licence("fa.example.net", 2)];
    let headers = vec![licence("fa.example.net", 1)];
    let world = World::connected(Policies {
        mobile: both.clone(),
        gateway: headers,
        ..Policies::default()
    });
    assert_eq!(world.nodes[LICENSED].held_grants()[0].zones, [ZoneId(1)]);
    let world = World::connected(Policies {
        mobile: both.clone(),
        gateway: both,
        ..Policies::default()
    });
    assert_eq!(
        world.nodes[LICENSED].held_grants()[0].zones,
        [ZoneId(1), ZoneId(2)]
    );
}

#[test]
fn without_zones_the_tunnel_is_plain_and_nobody_reads_anything() {
    let mut world = World::connected(Policies {
        stance: Stance::Refuse,
        ..Policies::default()
    });
    assert!(world.nodes[GATEWAY].composite_sas().is_empty());
    assert!(traffic_flows(&mut world));
    assert_eq!(world.nodes[LICENSED].transit_counters().unlicensed, 2);
}

#[test]
fn when_the_tunnel_ends_the_node_forgets_its_keys() {
    let mut world = World::connected(Policies::default());
    world.nodes[MOBILE].down("gw", world.now).unwrap();
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
    assert!(world.nodes[GATEWAY].composite_sas().is_empty());
}

#[test]
fn a_grant_expires_by_itself() {
    let mut world = World::connected(Policies::default());
    // The gateway is cut off from everybody; the node must not keep the keys for ever.
    world.off = [true, true, false];
    world.run_for(Duration::from_secs(2 * 3600));
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
}

#[test]
fn a_grant_is_renewed_for_as_long_as_the_tunnel_is_up() {
    let mut world = World::connected(Policies::default());
    for _ in 0..60 {
        world.run_for(Duration::from_secs(600));
        assert_eq!(world.nodes[LICENSED].held_grants().len(), 1);
    }
    let opened = world.nodes[LICENSED].transit_counters().segments;
    assert!(traffic_flows(&mut world));
    let segments = world.nodes[LICENSED].transit_counters().segments;
    assert_eq!(segments - opened, 2, "it still sees headers");
}

#[test]
fn an_unlicensed_node_changes_nothing_about_packets() {
    let mut world = World::connected(Policies {
        snoop: false,
        ..Policies::default()
    });
    assert!(traffic_flows(&mut world));
    assert_eq!(world.nodes[LICENSED].transit_counters().suppressed, 0);
}
