//! Licences that are added and revoked while packets flow (invariants 4 and 5).

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World, fixed_map, licence};
use crate::{Ending, Event, PeerState, Rekey, Role, Stance};
use crypto::Secret;
use model::{Licence, Spi};
use std::time::Duration;

const FA: &str = "fa.example.net";
const FB: &str = "fb.example.net";

/// Number of the CREATE_CHILD_SA exchange.
const CREATE_CHILD_SA: u8 = 36;

/// These streams contain no acknowledgements, so SNOOP would retransmit all of them.
fn connected(licences: &[Licence]) -> World {
    World::connected(Policies {
        snoop: false,
        mobile: licences.to_vec(),
        gateway: licences.to_vec(),
        ..Policies::default()
    })
}

/// Reloads the configuration of an end with these licences.
fn license(world: &mut World, who: usize, licences: &[Licence]) {
    let replaced = world.reconfigure(who, |config| {
        let Role::Vpn { zones, .. } = &mut config.peers[0].ike.role else {
            panic!("the first peer is the other end of the tunnel");
        };
        zones.licences = licences.to_vec();
    });
    assert_eq!(replaced, [""; 0], "nothing is made anew");
}

/// Sends packets both ways, a hundred per second, and asserts that none is lost.
fn stream(world: &mut World, time: Duration) {
    world.delivered = Default::default();
    let mut sent = [Vec::new(), Vec::new()];
    for number in 0..time.as_millis() as u32 / 10 {
        for (to, from) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
            sent[to].push(world.segment(from, 4 * number, &number.to_be_bytes()));
        }
        world.run_for(Duration::from_millis(10));
    }
    world.run_for(Duration::from_secs(1));
    for (who, sent) in sent.into_iter().enumerate() {
        assert!(world.delivered[who] == sent, "other packets at host {who}");
        assert_eq!(world.dropped[who], [], "at host {who}");
    }
}

/// Returns the SPI of a packet, and true if the packet is entirely in the payload zone.
fn look(packet: &[u8]) -> (Spi, bool) {
    let spi = u32::from_be_bytes(packet[..4].try_into().unwrap());
    (Spi(spi), packet[8] & 0x0f == 1)
}

/// Returns the same for the next packet of an end.
fn seal(world: &mut World, who: usize) -> (Spi, bool) {
    world.segment(who, 1, b"x");
    let (_, packet) = world.sealed.pop().expect("it was sealed");
    look(&packet)
}

fn opened(world: &World) -> u64 {
    let transit = world.nodes[LICENSED].transit_counters();
    transit.segments + transit.stale + transit.opaque
}

/// Returns the licence events of a host, in order.
fn said(world: &World, who: usize) -> Vec<String> {
    let events = world.events[who].iter();
    let said = events.filter_map(|event| match event {
        Event::Licensed { agreement, .. } => {
            let nodes = agreement.licences.iter().map(|l| l.node.to_string());
            Some(format!("agreed {}", nodes.collect::<Vec<_>>().join(" ")))
        }
        Event::NotLicensed { licence, .. } => Some(format!("not agreed {}", licence.node)),
        Event::Granted { node, .. } => Some(format!("taken {node}")),
        Event::GrantEnded { node, why, .. } => Some(format!("ended {node} {why:?}")),
        _ => None,
    });
    said.collect()
}

fn is_down(event: &Event) -> bool {
    matches!(event, Event::PeerDown { .. } | Event::ChildDown { .. })
}

// Recovers: licence-changes
#[test]
fn a_licence_that_either_end_takes_back_costs_no_packet_and_no_tunnel() {
    for who in [MOBILE, GATEWAY] {
        let mut world = connected(&[licence(FA, 1)]);
        let before = world.spis(GATEWAY);
        stream(&mut world, Duration::from_secs(1));
        license(&mut world, who, &[]);
        // Time for the rekey request to arrive.
        world.run_for(Duration::from_millis(11));
        world.sealed.clear();
        stream(&mut world, Duration::from_secs(10));
        for (_, packet) in &world.sealed {
            let (spi, opaque) = look(packet);
            let old = before.iter().any(|(to, from)| [*to, *from].contains(&spi));
            assert_eq!(opaque, old, "{spi:?}");
        }
        let now = opened(&world);
        stream(&mut world, Duration::from_secs(5));
        assert_eq!(opened(&world), now);
        world.run_for(Duration::from_secs(60));
        assert_ne!(world.spis(GATEWAY), before);
        assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
        for who in [MOBILE, GATEWAY] {
            assert!(!world.events[who].iter().any(is_down));
        }
    }
}

#[test]
fn a_licence_that_both_ends_have_now_is_given_while_packets_flow() {
    for (first, second) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
        let mut world = connected(&[]);
        license(&mut world, first, &[licence(FA, 1)]);
        stream(&mut world, Duration::from_secs(5));
        assert_eq!(opened(&world), 0, "one end alone gives nothing");
        license(&mut world, second, &[licence(FA, 1)]);
        stream(&mut world, Duration::from_secs(10));
        assert!(opened(&world) > 0);
        assert_eq!(world.nodes[LICENSED].held_grants().len(), 1);
    }
}

/// The peer is unreachable: revocation does not wait for it.
// Weakness: S14
// Answers: end-revocation
#[test]
fn from_that_moment_on_the_end_that_took_it_back_seals_nothing_the_node_opens() {
    for (who, peer) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
        let mut world = World::connected(Policies::default());
        let (spi, opaque) = seal(&mut world, who);
        assert!(!opaque);
        world.run_for(Duration::from_secs(1));
        world.off[LICENSED] = true;
        world.deaf[peer] = true;
        license(&mut world, who, &[]);
        assert_eq!(world.nodes[LICENSED].transit_counters().segments, 1);
        // After 45 seconds the tunnel would be down.
        for _ in 0..25 {
            assert_eq!(
                seal(&mut world, who),
                (spi, true),
                "the old keys, and nothing in clear"
            );
            world.run_for(Duration::from_secs(1));
        }
        world.off[LICENSED] = false;
        assert_eq!(
            world.nodes[LICENSED].held_grants().len(),
            1,
            "it was told nothing"
        );
        seal(&mut world, who);
        world.run_for(Duration::from_secs(1));
        let transit = world.nodes[LICENSED].transit_counters();
        assert_eq!((transit.segments, transit.opaque), (1, 1));
    }
}

/// The node keeps its keys and hears nothing more. The control changes a timer of the node.
// Weakness: S38
// Answers: end-revocation
#[test]
fn a_node_whose_proof_counts_no_more_opens_nothing_that_is_sealed_from_then_on() {
    let ends = [MOBILE, GATEWAY];
    for is_trusted in [false, true] {
        let mut world = connected(&[licence(FA, 1)]);
        let before = ends.map(|who| seal(&mut world, who));
        assert!(before.iter().all(|(_, opaque)| !opaque));
        world.run_for(Duration::from_secs(1));
        world.deaf[LICENSED] = true;
        world.reconfigure(GATEWAY, |config| {
            let node = &mut config.peers[1].ike;
            match is_trusted {
                true => node.liveness *= 2,
                false => node.psk = Some(Secret::new(b"another key of this length".to_vec())),
            }
        });
        let (spi, opaque) = seal(&mut world, GATEWAY);
        assert_eq!((spi, opaque), (before[GATEWAY].0, !is_trusted));
        world.run_for(Duration::from_secs(5));
        for who in ends {
            let (spi, opaque) = seal(&mut world, who);
            assert_eq!(spi == before[who].0, is_trusted, "at host {who}");
            assert!(!opaque);
        }
        world.run_for(Duration::from_secs(1));
        assert_eq!(
            world.nodes[LICENSED].held_grants().len(),
            1,
            "it forgot nothing"
        );
        let closed = world.nodes[LICENSED].transit_counters().unlicensed;
        assert_eq!(closed, if is_trusted { 0 } else { 2 });
        for who in ends {
            let down = world.events[who].iter().filter(|event| is_down(event));
            let of_tunnel = down.filter(|event| matches!(event, Event::ChildDown { .. }));
            assert_eq!(of_tunnel.count(), 0, "at host {who}");
        }
    }
}

/// The same with a fixed map: nothing is sealed on the SA that the node opens any more.
#[test]
fn from_that_moment_on_everything_goes_on_the_opaque_sa_beside_a_fixed_map() {
    for (who, peer) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
        let mut world = World::connected(Policies {
            map: fixed_map(40),
            ..Policies::default()
        });
        let (zoned, _) = seal(&mut world, who);
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.nodes[LICENSED].transit_counters().segments, 1);
        (world.off[LICENSED], world.deaf[peer]) = (true, true);
        license(&mut world, who, &[]);
        let opaque = world.nodes[who].composite_sas()[0].opaque.unwrap().1;
        assert_ne!(opaque, zoned);
        // After 45 seconds the tunnel would be down.
        for _ in 0..25 {
            assert_eq!(seal(&mut world, who).0, opaque);
            world.run_for(Duration::from_secs(1));
        }
        world.off[LICENSED] = false;
        seal(&mut world, who);
        world.run_for(Duration::from_secs(1));
        let transit = world.nodes[LICENSED].transit_counters();
        assert_eq!(
            (transit.segments, transit.unlicensed),
            (1, 1),
            "{transit:?}"
        );
    }
}

/// The other end does not know whether its answer has reached the requester.
// Weakness: S14
#[test]
fn the_other_end_obeys_as_soon_as_it_is_asked_for_new_keys() {
    for (who, peer) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
        let mut world = connected(&[licence(FA, 1)]);
        let (spi, opaque) = seal(&mut world, peer);
        assert!(!opaque);
        world.silent_in = Some((peer, CREATE_CHILD_SA));
        license(&mut world, who, &[]);
        world.run_for(Duration::from_millis(20));
        assert_eq!(seal(&mut world, peer), (spi, true));
        world.silent_in = None;
        world.run_for(Duration::from_secs(20));
        let (new, opaque) = seal(&mut world, peer);
        assert!(new != spi && !opaque);
    }
}

/// The node's keys also open opaque packets, so nothing is sealed with them at all.
// Weakness: S14
// Weakness: S37
#[test]
fn where_the_payload_was_licensed_nothing_is_sealed_until_there_are_new_keys() {
    let both = [licence(FA, 1), licence(FA, 2)];
    for (who, peer) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
        let mut world = connected(&both);
        stream(&mut world, Duration::from_secs(1));
        let before = (seal(&mut world, who).0, seal(&mut world, peer).0);
        world.run_for(Duration::from_secs(1));
        world.sealed.clear();
        world.deaf[peer] = true;
        license(&mut world, who, &[licence(FA, 1)]);
        world.segment(who, 1, b"nowhere");
        world.run_for(Duration::from_secs(5));
        assert!(world.sealed.is_empty() && world.dropped[who].len() == 1);
        world.deaf[peer] = false;
        world.dropped = Default::default();
        world.run_for(Duration::from_secs(10));
        assert_ne!(seal(&mut world, who).0, before.0);
        assert_ne!(seal(&mut world, peer).0, before.1);
        world.run_for(Duration::from_secs(1));
        stream(&mut world, Duration::from_secs(1));
        world.run_for(Duration::from_secs(60));
        let held = world.nodes[LICENSED].held_grants();
        assert_eq!(held.len(), 1);
        assert_eq!(held[0].zones, [model::ZoneId(1)]);
    }
}

/// The rekey was requested while the licence still existed.
// Refuses: licence-changes
#[test]
fn keys_that_were_being_made_are_not_given_to_who_has_no_licence_any_more() {
    for (asks, revokes) in [
        (MOBILE, MOBILE),
        (MOBILE, GATEWAY),
        (GATEWAY, MOBILE),
        (GATEWAY, GATEWAY),
    ] {
        let mut world = connected(&[licence(FA, 1)]);
        let peer = ["gw", "alice"][asks];
        world
            .command(asks, |node, now| node.rekey(peer, Rekey::Children, now))
            .unwrap();
        // The request has arrived, and the answer is in flight.
        world.run_for(Duration::from_millis(12));
        world.events = Default::default();
        license(&mut world, revokes, &[]);
        world.run_for(Duration::from_secs(3));
        let given = |event: &Event| matches!(event, Event::Granted { .. });
        // The gateway may learn of the mobile node's change later than of the new keys.
        let given = world.events[GATEWAY].iter().any(given);
        assert!(revokes == MOBILE || !given, "{:?}", world.events[GATEWAY]);
        let before = opened(&world);
        stream(&mut world, Duration::from_secs(5));
        assert_eq!(opened(&world), before);
        world.run_for(Duration::from_secs(60));
        assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
    }
}

// Refuses: licence-changes
#[test]
fn a_node_that_comes_back_gets_no_keys_by_a_licence_that_is_gone() {
    let mut world = connected(&[licence(FA, 1)]);
    world
        .command(GATEWAY, |node, now| node.down("fa", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    // The old keys stay in use because there is no answer.
    world.deaf[MOBILE] = true;
    license(&mut world, GATEWAY, &[]);
    world
        .command(GATEWAY, |node, now| node.up("fa", now))
        .unwrap();
    world.run_for(Duration::from_secs(20));
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
    assert!(world.nodes[GATEWAY].composite_sas()[0].grants.is_empty());
}

#[test]
fn a_key_that_waits_to_be_recorded_does_not_leave_by_a_licence_that_is_gone() {
    let mut world = World::new(Policies::default());
    world.command(GATEWAY, |node, now| node.set_recording(true, now));
    world.run_for(Duration::from_secs(10));
    let (csa, grant) = super::record::asked(&world)[0];
    license(&mut world, GATEWAY, &[]);
    super::record::answer(&mut world, (csa, grant), Ok(()));
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
}

// Recovers: several-licensed-nodes
#[test]
fn another_node_keeps_its_licence_when_one_is_gone() {
    let (fa, fb) = (licence(FA, 1), licence(FB, 1));
    let mut world = connected(&[fa.clone(), fb.clone()]);
    world.events = Default::default();
    license(&mut world, GATEWAY, &[fa]);
    world.run_for(Duration::from_secs(60));
    let told = |of: &str| format!("{of} {FA}");
    assert_eq!(
        said(&world, GATEWAY),
        [
            format!("ended {FB} {:?}", Ending::Reconfigured),
            told("agreed"),
            told("taken"),
            format!("ended {FA} {:?}", Ending::Rekeyed),
        ]
    );
    assert_eq!(
        said(&world, MOBILE),
        [
            format!("not agreed {FB}"),
            format!("agreed {FA}"),
            format!("ended {FB} {:?}", Ending::Rekeyed),
            format!("ended {FA} {:?}", Ending::Rekeyed),
        ]
    );
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 1);
    let csas = world.nodes[MOBILE].composite_sas();
    assert_eq!(csas[0].missing, [fb]);
    assert_eq!(world.nodes[GATEWAY].composite_sas()[0].missing, []);
}

#[test]
fn a_licence_that_is_given_and_taken_back_leaves_its_story_in_the_right_order() {
    let mut world = connected(&[]);
    let fa = [licence(FA, 1)];
    license(&mut world, MOBILE, &fa);
    license(&mut world, GATEWAY, &fa);
    world.run_for(Duration::from_secs(60));
    license(&mut world, GATEWAY, &[]);
    world.run_for(Duration::from_secs(60));
    let story = said(&world, GATEWAY);
    let ended = format!("ended {FA} {:?}", Ending::Reconfigured);
    let last = [format!("agreed {FA}"), format!("taken {FA}"), ended];
    assert_eq!(story[story.len() - 3..], last, "{story:?}");
}

/// The other end may still seal under the licence, and it may never stop.
// Weakness: S14
// Answers: end-silence
#[test]
fn a_tunnel_whose_peer_makes_no_new_keys_within_a_minute_ends_and_is_made_anew() {
    let mut world = connected(&[licence(FA, 1)]);
    world.deaf[MOBILE] = true;
    license(&mut world, GATEWAY, &[]);
    world.run_for(Duration::from_secs(59));
    assert_eq!(world.nodes[GATEWAY].peers()[0].state, PeerState::Up);
    assert!(!world.events[GATEWAY].iter().any(is_down));
    world.run_for(Duration::from_secs(2));
    let down = |event: &&Event| matches!(event, Event::PeerDown { why, .. } if why.to_string().contains("configuration"));
    assert!(world.events[GATEWAY].iter().any(|event| down(&event)));
    world.deaf[MOBILE] = false;
    world.run_for(Duration::from_secs(300));
    assert!(world.tunnel_is_up());
    stream(&mut world, Duration::from_secs(1));
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
}

#[test]
fn every_tunnel_of_a_peer_gets_its_new_keys() {
    let mut world = World::connected(Policies {
        snoop: false,
        voice: true,
        resources: 3,
        ..Policies::default()
    });
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 4);
    license(&mut world, GATEWAY, &[]);
    world.run_for(Duration::from_secs(5));
    let before = opened(&world);
    for port in 0..50 {
        for who in [MOBILE, GATEWAY] {
            world.flow(who, 40000 + port, 1);
            world.call(who, u32::from(port), b"hello");
        }
    }
    world.run_for(Duration::from_secs(60));
    assert_eq!(opened(&world), before);
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
}

#[test]
fn a_tunnel_without_zones_does_not_notice() {
    let mut world = World::connected(Policies {
        stance: Stance::Refuse,
        ..Policies::default()
    });
    let before = world.spis(GATEWAY);
    license(&mut world, GATEWAY, &[]);
    stream(&mut world, Duration::from_secs(1));
    assert_eq!(world.spis(GATEWAY), before);
}
