//! Users of a table: each is a peer of its own at the gateway, by its own name.

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, NAMES, Policies, World};
use crate::{PeerState, PeerStatus, Rekey, UnknownPeer, UserPolicy};
use model::{Unique, Wildcard};
use std::time::Duration;

const ALICE: &str = NAMES[MOBILE];

/// Longer than the last answers of an ended tunnel are kept.
const LONG: Duration = Duration::from_secs(120);

/// Turns the gateway's table of the mobile node into one whose tunnels have users.
fn with_users(config: &mut crate::Config) {
    let peer = &mut config.peers[0].ike;
    peer.unique = Unique::Never;
    peer.users = Some(Box::new(UserPolicy {
        identities: Wildcard::One(peer.identity.clone()),
        most: 10,
    }));
}

fn connected(policies: Policies) -> World {
    let mut world = World::new(policies);
    // The pages about states know configured peers.
    world.watch.over = true;
    world.reconfigure(GATEWAY, with_users);
    world.run_for(Duration::from_secs(10));
    assert!(world.tunnel_is_up(), "{:?}", world.events);
    world
}

fn peer(world: &World, name: &str) -> Option<PeerStatus> {
    world.nodes[GATEWAY].peer_named(name)
}

#[test]
fn a_user_is_up_by_its_own_name_and_its_table_tells_how_many_there_are() {
    let mut world = connected(Policies::default());
    let user = peer(&world, ALICE).unwrap();
    assert_eq!(
        (user.state, user.table.as_deref()),
        (PeerState::Up, Some("alice"))
    );
    assert_eq!(
        (user.identity.to_string(), user.users),
        (ALICE.to_owned(), None)
    );
    let table = peer(&world, "alice").unwrap();
    let users = table.users.unwrap();
    assert_eq!(
        (table.state, users.here, users.most),
        (PeerState::Down, 1, 10)
    );
    let names: Vec<_> = world.nodes[GATEWAY]
        .peers()
        .into_iter()
        .map(|p| p.name)
        .collect();
    assert_eq!(names, ["alice", "fa", ALICE]);
    // Licences of the table hold for its users.
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 1);
    let csas = world.nodes[GATEWAY].composite_sas();
    assert_eq!(world.nodes[GATEWAY].name(csas[0].peer), ALICE);
    let sent = world.segment(MOBILE, 1, b"to the gateway");
    let back = world.segment(GATEWAY, 1, b"to the user");
    world.run_for(Duration::from_secs(1));
    assert!(world.delivered[GATEWAY].contains(&sent) && world.delivered[MOBILE].contains(&back));
}

#[test]
fn packets_to_a_user_are_as_its_table_says() {
    let interval = Duration::from_millis(100);
    let mut world = connected(Policies {
        cover: Some(interval),
        ..Policies::default()
    });
    let dummies = |world: &World| world.nodes[GATEWAY].esp_counters().dummies();
    let lengths = |world: &World| {
        let sealed = world.sealed.iter().filter(|(who, _)| *who == GATEWAY);
        sealed.map(|(_, packet)| packet.len()).max()
    };
    world.sealed.clear();
    world.run_for(interval * 50);
    assert!(dummies(&world) >= 49, "{}", dummies(&world));
    assert!(lengths(&world) > Some(1000), "padded");
    // A reload applies to those who are here.
    world.reconfigure(GATEWAY, |config| {
        with_users(config);
        config.peers[0].cover = None;
        config.peers[0].sizes = None;
    });
    assert!(world.tunnel_is_up());
    world.run_for(interval);
    world.sealed.clear();
    let before = world.sealed.len();
    world.run_for(interval * 50);
    assert_eq!(
        world.sealed[before..]
            .iter()
            .filter(|(who, _)| *who == GATEWAY)
            .count(),
        0
    );
}

#[test]
fn a_user_can_be_taken_down_by_name_and_is_forgotten_after_it_has_left() {
    let mut world = connected(Policies::default());
    world
        .command(GATEWAY, |node, now| node.down(ALICE, now))
        .unwrap();
    world.run_for(LONG);
    let user = peer(&world, ALICE).unwrap();
    assert_eq!(user.state, PeerState::Down, "it is refused, and known");
    world
        .command(GATEWAY, |node, now| node.up(ALICE, now))
        .unwrap();
    world.run_for(LONG);
    assert!(world.tunnel_is_up());
    world
        .command(MOBILE, |node, now| node.down("gw", now))
        .unwrap();
    world.run_for(LONG);
    assert!(peer(&world, ALICE).is_none());
    let down = world.command(GATEWAY, |node, now| node.down(ALICE, now));
    assert_eq!(down, Err(UnknownPeer));
    // What is told of it still has its name.
    let node = &world.nodes[GATEWAY];
    let mut downs = world.events[GATEWAY]
        .iter()
        .filter_map(|event| match event {
            crate::Event::PeerDown { peer, .. } => Some(node.name(*peer)),
            _ => None,
        });
    assert_eq!(downs.next(), Some(ALICE));
    assert!(downs.all(|name| name == ALICE));
}

/// The numbers of those who have left would take memory for ever.
#[test]
fn the_numbers_of_a_user_are_its_own_and_go_with_it() {
    let mut world = connected(Policies::default());
    let numbers = |world: &World, name: &str| {
        let node = &world.nodes[GATEWAY];
        let all = node.peer_numbers(usize::MAX);
        assert_eq!(all.len(), node.totals().peers + node.totals().users);
        all.into_iter().find(|one| node.name(one.peer) == name)
    };
    let rekeyed = world.command(GATEWAY, |node, now| node.rekey(ALICE, Rekey::Ike, now));
    assert_eq!(rekeyed, Ok(()));
    world.run_for(Duration::from_secs(2));
    let table = numbers(&world, "alice").unwrap();
    assert!(table.users.is_some() && !table.has_tunnels && table.rekeys == 0);
    let user = numbers(&world, ALICE).unwrap();
    assert!(user.users.is_none() && user.has_tunnels && user.rekeys == 1);
    let left = world.command(MOBILE, |node, now| node.down("gw", now));
    assert_eq!(left, Ok(()));
    world.run_for(LONG);
    assert!(numbers(&world, ALICE).is_none());
    let tally = world.nodes[GATEWAY].own.tunnels.tally();
    assert_eq!(tally.of(user.peer).rekeys, 0);
}

#[test]
fn a_table_that_is_taken_down_takes_its_users_down() {
    let mut world = connected(Policies::default());
    world
        .command(GATEWAY, |node, now| node.down("alice", now))
        .unwrap();
    world.run_for(LONG);
    assert!(!world.tunnel_is_up() && peer(&world, ALICE).is_none());
    let refusal = peer(&world, "alice").unwrap().refusal.unwrap();
    assert_eq!(refusal.why.to_string(), "the peer was taken down here");
    world
        .command(GATEWAY, |node, now| node.up("alice", now))
        .unwrap();
    world.run_for(LONG);
    assert!(world.tunnel_is_up());
}

#[test]
fn a_reload_that_removes_the_table_ends_its_users() {
    let mut world = connected(Policies::default());
    world.reconfigure(GATEWAY, |config| drop(config.peers.remove(0)));
    let names: Vec<_> = world.nodes[GATEWAY]
        .peers()
        .into_iter()
        .map(|p| p.name)
        .collect();
    assert_eq!(names, ["fa"]);
    world.run_for(Duration::from_secs(1));
    assert!(world.nodes[LICENSED].held_grants().is_empty());
}

/// A peer that connects again and again, each time as if it had never been here.
#[test]
fn users_that_come_and_leave_take_no_more_memory_than_those_that_are_here() {
    let mut world = connected(Policies::default());
    for _ in 0..30 {
        world
            .command(MOBILE, |node, now| node.down("gw", now))
            .unwrap();
        world.run_for(Duration::from_secs(1));
        world
            .command(MOBILE, |node, now| node.up("gw", now))
            .unwrap();
        world.run_for(Duration::from_secs(2));
        assert!(peer(&world, "alice").unwrap().users.unwrap().here <= 10);
    }
    world
        .command(MOBILE, |node, now| node.down("gw", now))
        .unwrap();
    world.run_for(LONG);
    let names: Vec<_> = world.nodes[GATEWAY]
        .peers()
        .into_iter()
        .map(|p| p.name)
        .collect();
    assert_eq!(names, ["alice", "fa"]);
}

#[test]
fn a_user_with_the_name_of_another_table_has_another_name() {
    let mut world = World::new(Policies::default());
    world.watch.over = true;
    world.reconfigure(GATEWAY, |config| {
        with_users(config);
        config.peers[0].name = "staff".to_owned();
        config.peers[1].name = ALICE.to_owned();
    });
    world.run_for(Duration::from_secs(10));
    let user = peer(&world, &format!("{ALICE} (user)")).unwrap();
    assert_eq!(
        (user.state, user.table.as_deref()),
        (PeerState::Up, Some("staff"))
    );
    assert_eq!(peer(&world, ALICE).unwrap().table, None);
}
