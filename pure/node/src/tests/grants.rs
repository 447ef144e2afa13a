//! Distribution of keys to licensed nodes (invariants 4 and 5).

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World, licence};
use crate::{Event, GrantState, Stance};
use crypto::Secret;
use model::{CsaId, Grant, GrantHalf, IkeSaId, Spi, ZoneId, ZoneSuite};
use std::time::Duration;

/// Lets a little traffic flow both ways and returns whether all of it arrived.
fn traffic_flows(world: &mut World) -> bool {
    let there = world.segment(MOBILE, 1, b"GET / HTTP/1.1\r\n\r\n");
    let back = world.segment(GATEWAY, 1, &[0xa5; 1300]);
    world.run_for(Duration::from_secs(1));
    world.delivered[GATEWAY].contains(&there) && world.delivered[MOBILE].contains(&back)
}

/// Returns a world whose licensed node holds the maximum number of grants per SPI from our gateway,
/// all with the SPI that the gateway is about to use.
pub fn crowded() -> World {
    let mut world = World::connected(Policies::default());
    let held = world.nodes[LICENSED].held_grants().remove(0);
    world
        .command(GATEWAY, |node, now| node.down("fa", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    for number in 1..=4 {
        let half = |spi, fill| GrantHalf {
            spi,
            zones: vec![(
                ZoneId(1),
                ZoneSuite::Aes128Gcm16,
                Secret::new(vec![fill; 20]),
            )],
            overlay: None,
            injection: None,
        };
        let other = Grant {
            map: model::MapKind::Changeable,
            csa: CsaId(number),
            line: CsaId(number),
            grant: 1,
            payload_zone: ZoneId(2),
            suites: vec![ZoneSuite::Aes128Gcm16; 2],
            window: 4096,
            lifetime: Duration::from_secs(3600),
            onward: None,
            from_gateway: half(held.from_gateway, 1),
            to_gateway: half(Spi(0x1000 + number as u32), 2),
        };
        let (ours, now) = (held.identity.clone(), world.now);
        world.nodes[LICENSED]
            .own
            .transit
            .install(IkeSaId(1000), held.gateway, ours, other, now)
            .unwrap();
    }
    world
        .command(GATEWAY, |node, now| node.up("fa", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    world
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

// Answers: sight-none
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

// Answers: licence-payload
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

// Answers: end-itself
#[test]
fn when_the_tunnel_ends_the_node_forgets_its_keys() {
    let mut world = World::connected(Policies::default());
    world.nodes[MOBILE].down("gw", world.now).unwrap();
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
    assert!(world.nodes[GATEWAY].composite_sas().is_empty());
}

/// The gateway's state of a grant matches the node's, even if the node cannot use the grant.
#[test]
fn a_grant_that_cannot_be_used_is_refused_and_the_reason_told() {
    let world = crowded();
    let csas = world.nodes[GATEWAY].composite_sas();
    let grant = &csas[0].grants[0];
    assert_eq!(grant.state, GrantState::Refused);
    assert!(
        grant
            .refusal
            .as_ref()
            .unwrap()
            .to_string()
            .contains("TOO_MANY_GRANTS")
    );
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 4);
}

#[test]
fn a_grant_is_taken_on_any_ike_sa_of_its_gateway() {
    let mut world = World::connected(Policies::default());
    let (node, now) = (&mut world.nodes[LICENSED], world.now);
    let gateway = node.id("gw").unwrap();
    let desired = node.own.tunnels.desired_mut();
    desired.up(gateway, IkeSaId(1000), now);
    world.run_for(Duration::from_secs(3600));
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 1);
    let csas = world.nodes[GATEWAY].composite_sas();
    assert_eq!(csas[0].grants[0].state, GrantState::Held);
}

/// The node keeps the older keys until they expire, so they are revoked when the tunnel ends.
// Weakness: 105
#[test]
fn a_node_that_refuses_a_renewal_still_counts_as_one_that_has_keys() {
    let mut world = World::connected(Policies::default());
    world.watch.over = true;
    let csa = world.nodes[GATEWAY].composite_sas()[0].csa;
    world.command(GATEWAY, |node, now| {
        let why = Some("it is of no use".to_owned().into());
        let fa = node.id("fa").unwrap();
        node.own
            .licensing
            .distribution()
            .grants_mut()
            .answered(fa, csa, why, now);
    });
    world.nodes[MOBILE].down("gw", world.now).unwrap();
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
    let ended = |event: &Event| matches!(event, Event::GrantEnded { given: true, .. });
    assert!(world.events[GATEWAY].iter().any(ended));
}

// Answers: duration-keeping
#[test]
fn a_grant_expires_by_itself() {
    let mut world = World::connected(Policies::default());
    // The gateway is cut off. The node must discard the keys on its own.
    world.off = [true, true, false];
    world.run_for(Duration::from_secs(2 * 3600));
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
}

// Answers: duration-keeping
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
