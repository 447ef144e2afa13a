//! A host may have a hundred thousand tunnels: what happens to one visits none of the others.

use super::world::*;
use crate::{Discovery, Node, Rekey};
use std::time::Duration;

/// Returns how often the state of all tunnels of a host was visited.
fn walks(world: &World) -> usize {
    let of = |node: &Node| {
        let walks = [
            &node.own.tunnels.children().walks,
            &node.own.licensing.grants().walks,
            node.own.tunnels.moves(),
        ];
        walks.map(std::cell::Cell::get).iter().sum::<usize>()
    };
    world.nodes.iter().map(of).sum()
}

// Weakness: 150
#[test]
fn a_tunnel_is_set_up_renewed_moved_and_taken_down_without_a_visit_of_all() {
    let mut world = World::new(Policies {
        voice: true,
        cover: Some(Duration::from_millis(500)),
        ..Policies::default()
    });
    // The status that it compares is that of all tunnels.
    world.watch.over = true;
    let before = walks(&world);
    world.run_for(Duration::from_secs(10));
    assert!(!world.nodes[GATEWAY].own.tunnels.children().is_empty());
    for what in [Rekey::Children, Rekey::Ike] {
        let rekeyed = world.command(MOBILE, |node, now| node.rekey("gw", what, now));
        assert_eq!(rekeyed, Ok(()));
        world.run_for(Duration::from_secs(10));
    }
    let again = world.command(MOBILE, |node, now| node.reauthenticate("gw", now));
    assert_eq!(again, Ok(()));
    world.run_for(Duration::from_secs(10));
    for peer in ["fa", "alice"] {
        let down = world.command(GATEWAY, |node, now| node.down(peer, now));
        assert_eq!(down, Ok(()));
        world.run_for(Duration::from_secs(10));
    }
    assert!(world.nodes[GATEWAY].own.tunnels.children().is_empty());
    assert_eq!(walks(&world), before);
}

/// Only a change of the discovery itself concerns the paths of all child SAs.
#[test]
fn a_reload_that_changes_nothing_measures_no_path_again() {
    let mut world = World::connected(Policies::default());
    world.watch.over = true;
    let mut reload = |discovery| {
        let before = walks(&world);
        world.reconfigure(MOBILE, |config| config.path_mtu = discovery);
        walks(&world) - before
    };
    let changed = reload(Discovery::Probe);
    assert_eq!(reload(Discovery::Probe) + 1, changed);
}

/// The control: a status visits all child SAs.
#[test]
fn a_visit_of_all_is_counted() {
    let world = World::connected(Policies::default());
    let before = walks(&world);
    assert_eq!(world.nodes[GATEWAY].peers().len(), 2);
    assert_eq!(walks(&world), before + 1);
}

/// `strata up NAME --wait` looks at a peer after each event of the daemon.
#[test]
fn the_status_of_one_peer_is_that_among_all_without_a_visit_of_the_others() {
    let world = World::connected(Policies::default());
    let node = &world.nodes[GATEWAY];
    let all = node.peers();
    let before = walks(&world);
    for peer in &all {
        let one = node.peer_named(&peer.name);
        assert_eq!(format!("{one:?}"), format!("{:?}", Some(peer)));
    }
    assert!(node.peer_named("nobody").is_none());
    assert_eq!(walks(&world), before);
}
