//! Configurations change while packets flow.

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World, identity};
use crate::{Config, Event, GrantState, PeerState, Policy, Role, SnoopConfig};
use crypto::Secret;
use model::{Features, Spi, TrafficSelector};
use std::time::Duration;

const NOBODY: [&str; 0] = [];

/// Returns the SPIs of a host's only tunnel.
fn spis(world: &World, who: usize) -> (Spi, Spi) {
    let peers = world.nodes[who].peers();
    let mut children = peers.iter().flat_map(|peer| &peer.children);
    let child = children.next().expect("the tunnel is up");
    (child.inbound, child.outbound)
}

/// Sends packets both ways during a change and asserts that none is lost.
fn nothing_is_lost(world: &mut World, meanwhile: impl FnOnce(&mut World)) {
    world.delivered = Default::default();
    let mut sent = Vec::new();
    let mut segments = |world: &mut World, seqs: std::ops::Range<u32>| {
        for seq in seqs {
            sent.push((GATEWAY, world.segment(MOBILE, seq, b"there")));
            sent.push((MOBILE, world.segment(GATEWAY, seq, b"back")));
        }
    };
    segments(world, 1..50);
    // Some packets are in flight here.
    meanwhile(world);
    segments(world, 50..100);
    world.run_for(Duration::from_secs(5));
    for (to, segment) in sent {
        assert!(world.delivered[to].contains(&segment));
    }
}

fn stranger(name: &str) -> crate::Peer {
    let identity = format!("{name}@example.net").parse().unwrap();
    let mut peer = crate::Peer::new(name, identity, Role::Gateway);
    peer.ike.address = Some("192.0.2.200".parse().unwrap());
    peer.ike.psk = Some(Secret::new(b"another key of that length".to_vec()));
    peer.ike.suites = vec![model::Suite::Aes256Gcm16];
    peer.ike.features = Features::offered();
    peer
}

#[test]
fn a_tunnel_that_does_not_change_keeps_its_spis_and_loses_nothing() {
    let mut world = World::connected(Policies::default());
    let before = (spis(&world, GATEWAY), spis(&world, MOBILE));
    nothing_is_lost(&mut world, |world| {
        let replaced = world.reconfigure(GATEWAY, |config| {
            config.peers.insert(0, stranger("bob"));
            config.peers.push(stranger("carol"));
            config.peers[1].ike.liveness = Duration::from_secs(2);
        });
        assert_eq!(replaced, NOBODY);
        assert_eq!(world.reconfigure(MOBILE, |_| {}), NOBODY);
    });
    assert_eq!((spis(&world, GATEWAY), spis(&world, MOBILE)), before);
    let held = world.nodes[LICENSED].held_grants();
    assert_eq!(held.len(), 1, "the licence stays as well");
    assert_eq!(world.nodes[GATEWAY].peers().len(), 4);
}

#[test]
fn a_removed_peer_is_gone_at_both_ends_and_what_it_protected_still_does_not_leave() {
    let mut world = World::connected(Policies::default());
    let replaced = world.reconfigure(GATEWAY, |config| drop(config.peers.remove(0)));
    assert_eq!(replaced, NOBODY);
    world.run_for(Duration::from_millis(100));
    let names: Vec<_> = world.nodes[GATEWAY]
        .peers()
        .into_iter()
        .map(|p| p.name)
        .collect();
    assert_eq!(names, ["fa"]);
    let told = |who: usize, reason: &str| {
        let down = |event: &Event| matches!(event, Event::PeerDown { why, .. } if why.to_string().contains(reason));
        assert!(
            world.events[who].iter().any(down),
            "{:?}",
            world.events[who]
        );
    };
    told(GATEWAY, "removed from the configuration");
    told(MOBILE, "the peer closed the IKE SA");
    let sealed = world.sealed.len();
    world.segment(GATEWAY, 1, b"not in clear, not at all");
    assert_eq!(
        (world.sealed.len(), world.dropped[GATEWAY].len()),
        (sealed, 1)
    );
}

#[test]
fn an_added_peer_is_initiated_at_once_if_it_is_to_start() {
    let mut world = World::connected(Policies::default());
    let messages = world.ike.len();
    for (start, state) in [(false, PeerState::Down), (true, PeerState::Connecting)] {
        world.reconfigure(MOBILE, |config| {
            let mut bob = stranger("bob");
            bob.ike.role = config.peers[0].ike.role.clone();
            config.peers.push(bob);
            config.start.extend(start.then(|| "bob".to_owned()));
        });
        let bob = world.nodes[MOBILE].peers().pop().expect("bob is the last");
        assert_eq!((bob.name.as_str(), bob.state), ("bob", state));
    }
    assert_eq!(world.ike.len(), messages + 1);
}

#[test]
fn a_peer_with_other_terms_is_made_anew_without_a_wait() {
    let mut world = World::connected(Policies::default());
    let before = spis(&world, MOBILE);
    let key = Some(Secret::new(b"a key that both ends get".to_vec()));
    let replaced = world.reconfigure(GATEWAY, |config| config.peers[0].ike.psk = key.clone());
    assert_eq!(replaced, ["alice"]);
    let replaced = world.reconfigure(MOBILE, |config| config.peers[0].ike.psk = key);
    assert_eq!(replaced, ["gw"]);
    world.run_for(Duration::from_millis(100));
    assert!(world.tunnel_is_up(), "{:?}", world.events);
    assert_ne!(spis(&world, MOBILE), before);
    nothing_is_lost(&mut world, |_| {});
}

#[test]
fn a_licensed_node_that_is_removed_loses_the_tunnels_it_could_read() {
    let mut world = World::connected(Policies::default());
    let csa = world.nodes[GATEWAY].composite_sas()[0].csa;
    let replaced = world.reconfigure(GATEWAY, |config| drop(config.peers.pop()));
    assert_eq!(replaced, ["alice"]);
    world.run_for(Duration::from_secs(5));
    let csas = world.nodes[GATEWAY].composite_sas();
    assert_ne!(csas[0].csa, csa);
    assert!(csas[0].grants.is_empty());
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
    nothing_is_lost(&mut world, |_| {});
    assert_eq!(world.nodes[LICENSED].transit_counters().segments, 0);
}

#[test]
fn a_licensed_node_that_becomes_another_is_another() {
    let mut world = World::connected(Policies::default());
    let replaced = world.reconfigure(GATEWAY, |config| {
        config.peers[1].ike.identity = "fb.example.net".parse().unwrap();
    });
    assert_eq!(replaced, ["alice", "fa"]);
    world.run_for(Duration::from_secs(5));
    assert!(world.nodes[GATEWAY].composite_sas()[0].grants.is_empty());
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
}

#[test]
fn a_licensed_node_that_is_added_gets_the_keys_of_a_tunnel_that_does_not_notice() {
    let mut world = World::new(Policies::default());
    world.reconfigure(GATEWAY, |config| drop(config.peers.pop()));
    world.run_for(Duration::from_secs(10));
    let before = spis(&world, GATEWAY);
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 0);
    nothing_is_lost(&mut world, |world| {
        assert_eq!(world.reconfigure(GATEWAY, |_| {}), NOBODY);
    });
    assert_eq!(spis(&world, GATEWAY), before);
    let csas = world.nodes[GATEWAY].composite_sas();
    assert_eq!(csas[0].grants[0].state, GrantState::Held);
    assert_eq!(csas[0].grants[0].node, identity(LICENSED));
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 1);
}

#[test]
fn policies_hold_for_the_next_packet() {
    let mut world = World::connected(Policies::default());
    let everywhere = TrafficSelector::from_prefix("0.0.0.0".parse().unwrap(), 0).unwrap();
    let discard = |config: &mut Config| {
        config.policies = vec![Policy {
            action: crate::Action::Discard,
            remote: everywhere,
        }]
    };
    let sealed = world.sealed.len();
    assert_eq!(world.reconfigure(MOBILE, discard), NOBODY);
    world.segment(MOBILE, 1, b"nowhere");
    assert_eq!(world.dropped[MOBILE], [crate::DropReason::DiscardPolicy]);
    assert_eq!(world.reconfigure(MOBILE, |_| {}), NOBODY);
    world.segment(MOBILE, 1, b"through the tunnel again");
    assert_eq!(world.sealed.len(), sealed + 1);
}

#[test]
fn snoop_goes_off_and_on_and_its_limits_change() {
    let mut world = World::connected(Policies::default());
    world.reconfigure(LICENSED, |config| config.snoop = None);
    assert!(world.nodes[LICENSED].snoop_counters().is_none());
    nothing_is_lost(&mut world, |_| {});
    world.reconfigure(LICENSED, |_| {});
    nothing_is_lost(&mut world, |world| {
        world.reconfigure(LICENSED, |config| {
            config.snoop = Some(SnoopConfig {
                octets: 0,
                ..SnoopConfig::default()
            });
        });
        let cached = world.nodes[LICENSED].snoop_counters().map(|c| c.cached);
        world.segment(GATEWAY, 50, b"nothing more is cached");
        world.run_for(Duration::from_millis(20));
        let after = world.nodes[LICENSED].snoop_counters().map(|c| c.cached);
        assert_eq!(after, cached);
    });
}

#[test]
fn only_a_changed_start_overrules_the_operator() {
    let mut world = World::connected(Policies::default());
    world
        .command(MOBILE, |node, now| node.down("gw", now))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    let state = |world: &World| world.nodes[MOBILE].peers()[0].state;
    world.reconfigure(MOBILE, |config| {
        config.peers[0].ike.liveness = Duration::from_secs(9)
    });
    assert_eq!(state(&world), PeerState::Down);
    world.reconfigure(MOBILE, |config| config.start.clear());
    world.reconfigure(MOBILE, |_| {});
    world.run_for(Duration::from_secs(5));
    assert_eq!(state(&world), PeerState::Up);
    world.reconfigure(MOBILE, |config| config.start.clear());
    assert_eq!(
        state(&world),
        PeerState::Up,
        "it stays, but is not brought back"
    );
    world.command(GATEWAY, |node, now| node.shutdown(now));
    world.run_for(Duration::from_secs(90));
    assert_eq!(state(&world), PeerState::Down);
}

/// A reload adds a peer whose name comes before all others, and removes one.
#[test]
fn a_peer_keeps_its_identifier_over_reloads_and_no_other_peer_gets_it() {
    let mut world = World::connected(Policies::default());
    world.watch.over = true;
    let ids = |world: &World| {
        let names = world.nodes[GATEWAY].names();
        ["aaron", "alice", "fa"].map(|name| names.id(name))
    };
    let [_, alice, fa] = ids(&world);
    world.events[GATEWAY].clear();
    world.reconfigure(GATEWAY, |config| config.peers[0] = stranger("aaron"));
    world.run_for(Duration::from_secs(1));
    let after = ids(&world);
    assert_eq!(after[1..], [alice, fa]);
    assert!(after[0].is_some_and(|aaron| ![alice, fa].contains(&Some(aaron))));
    let node = &world.nodes[GATEWAY];
    assert_eq!(node.id("alice"), Err(crate::UnknownPeer));
    // What is told of the peer that is gone has its name.
    let mut down = world.events[GATEWAY]
        .iter()
        .filter_map(|event| match event {
            Event::PeerDown { peer, .. } => Some(node.name(*peer)),
            _ => None,
        });
    assert_eq!(down.next(), Some("alice"));
    world.reconfigure(GATEWAY, |_| {});
    assert_eq!(ids(&world), after);
    assert_eq!(world.nodes[GATEWAY].id("aaron"), Err(crate::UnknownPeer));
    world
        .command(MOBILE, |node, now| node.up("gw", now))
        .unwrap();
    world.run_for(Duration::from_secs(70));
    assert!(world.tunnel_is_up(), "{:?}", world.events);
}
