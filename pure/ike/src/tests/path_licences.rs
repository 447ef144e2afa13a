//! Licensed nodes on several live paths: each path has keys of its own, for the nodes that are on
//! it.

use super::children::{agree, rekey};
use super::mobike::{CELL, TRAIN, ips, move_to, roaming, to};
use super::pair::{Host, LEFT, Pair, Side, keys_of};
use super::*;
use crate::Slot;
use model::Path;
use std::collections::BTreeSet;

const A: &str = "a.example.net";
const B: &str = "b.example.net";
const SECOND: Option<&str> = Some("path 2");
const THIRD: Option<&str> = Some("path 3");
const BOTH: [Side; 2] = [Side::Left, Side::Right];

/// A node, and the address of the mobile node at its place.
type At = (&'static str, &'static str);

/// Returns the slots of nodes that are on the paths from these addresses.
fn slots(nodes: &[At], zones: &ZonePolicy) -> Vec<Slot> {
    let slot = |(node, at): &At| Slot {
        paths: vec![prefix(&format!("{at}/32"))],
        ..Slot::new(node.parse().unwrap(), [licence(node)], zones)
    };
    nodes.iter().map(slot).collect()
}

fn ends(mobile: &[At], gateway: &[At], stances: [Stance; 2]) -> (Config, Config) {
    let (mut left, mut right) = roaming();
    let both = [(&mut left, mobile), (&mut right, gateway)];
    for ((config, nodes), stance) in both.into_iter().zip(stances) {
        let mut zones = two_zones(stance, A);
        zones.licences.clear();
        config.peers[0].slots = slots(nodes, &zones);
        *zones_of(config) = zones;
        config.peers[0].features.paths = 3;
    }
    (left, right)
}

fn up(mobile: &[At], gateway: &[At]) -> Pair {
    let (left, right) = ends(mobile, gateway, [Stance::Require; 2]);
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

fn add(pair: &mut Pair, path: Path) {
    let sa = pair.left.ike();
    pair.with(Side::Left, |engine, now| engine.add_path(sa, path, now));
}

/// Returns a pair with the paths from CELL and from TRAIN.
fn connected(mobile: &[At], gateway: &[At]) -> Pair {
    let mut pair = up(mobile, gateway);
    for local in [CELL, TRAIN] {
        add(&mut pair, to(local));
        pair.settle();
    }
    assert!(
        agree(&pair, &[None, SECOND, THIRD]),
        "{:?}",
        pair.left.events
    );
    pair
}

/// Returns the nodes that are licensed in the newest child SA with a name.
fn licensed(host: &Host, name: Option<&str>) -> Vec<String> {
    let child = host.named(name).unwrap();
    let agreement = child.agreement.as_ref().unwrap();
    let nodes = agreement.licences.iter();
    nodes.map(|licence| licence.node.to_string()).collect()
}

fn licensed_at_both(pair: &Pair, name: Option<&str>) -> Vec<String> {
    let [left, right] = [&pair.left, &pair.right].map(|host| licensed(host, name));
    assert_eq!(left, right);
    left
}

#[test]
fn each_path_licenses_the_node_with_its_addresses_and_has_keys_of_its_own() {
    let nodes = [(A, CELL), (B, TRAIN)];
    let pair = connected(&nodes, &nodes);
    assert_eq!(licensed_at_both(&pair, None), [""; 0]);
    assert_eq!(licensed_at_both(&pair, SECOND), [A]);
    assert_eq!(licensed_at_both(&pair, THIRD), [B]);
    let mut keys = BTreeSet::new();
    for child in pair.left.children() {
        for half in [&child.inbound, &child.outbound] {
            keys.extend(keys_of(half));
        }
    }
    // Two zones each way on each of three paths.
    assert_eq!(keys.len(), 2 * 2 * 3);
    // A node on the path of the IKE SA has a slot, and is on no further path.
    let nodes = [(A, LEFT)];
    let pair = connected(&nodes, &nodes);
    for name in [None, SECOND, THIRD] {
        assert_eq!(licensed_at_both(&pair, name), [""; 0], "{name:?}");
    }
}

/// Each end decides by its own list of places.
#[test]
fn a_node_gets_nothing_on_a_path_where_one_end_does_not_license_it() {
    for (mobile, gateway) in [
        (&[(A, CELL)][..], &[(A, TRAIN)][..]),
        (&[(A, CELL)], &[]),
        (&[], &[(A, CELL)]),
    ] {
        let pair = connected(mobile, gateway);
        for name in [None, SECOND, THIRD] {
            assert_eq!(
                licensed_at_both(&pair, name),
                [""; 0],
                "{mobile:?} {gateway:?}"
            );
        }
        let told = |host: &Host| host.refusals().iter().any(|told| told.contains(A));
        assert!(
            told(&pair.left) || told(&pair.right),
            "{mobile:?} {gateway:?}"
        );
    }
}

#[test]
fn rekeys_and_moves_of_the_ike_sa_keep_the_licences_of_a_path() {
    let nodes = [(A, CELL), (B, TRAIN)];
    let mut pair = connected(&nodes, &nodes);
    for side in BOTH {
        for name in [SECOND, THIRD, None] {
            rekey(&mut pair, side, name);
            pair.settle();
            pair.run_for(Duration::from_secs(60));
        }
        assert_eq!(licensed_at_both(&pair, SECOND), [A], "{side:?}");
        assert_eq!(licensed_at_both(&pair, THIRD), [B], "{side:?}");
    }
    move_to(&mut pair, to("198.18.7.2"));
    pair.settle();
    pair.run_for(Duration::from_secs(60));
    assert_eq!(licensed_at_both(&pair, None), [""; 0]);
    assert_eq!(licensed_at_both(&pair, SECOND), [A]);
}

/// Both ends have a slot on the path of the IKE SA as well. It shares the traffic of that path.
#[test]
fn a_slot_is_one_of_the_child_sas_of_the_path_of_the_ike_sa() {
    let nodes = [(A, CELL), (B, LEFT)];
    let mut pair = connected(&nodes, &nodes);
    let slot = crate::slot_name([&B.parse().unwrap()]);
    let opened = pair.with(Side::Right, |engine, now| {
        engine.open_child(peer_id("mobile"), &slot, now)
    });
    assert_eq!(opened, Ok(()));
    pair.settle();
    assert_eq!(licensed_at_both(&pair, Some(&slot)), [B]);
    for host in [&pair.left, &pair.right] {
        let number = |name| host.named(name).unwrap().resource;
        assert_eq!(number(None), Some(0));
        assert_eq!(number(Some(&slot)), Some(0));
        assert_eq!(number(SECOND), Some(1));
    }
}

/// The NAT of a path maps it to an address elsewhere.
#[test]
fn a_path_that_moves_away_from_a_node_is_rekeyed_without_it() {
    let nodes = [(A, CELL)];
    let mut pair = up(&nodes, &nodes);
    add(&mut pair, to(CELL));
    pair.settle();
    assert_eq!(licensed_at_both(&pair, SECOND), [A]);
    let before = pair.right.named(SECOND).unwrap().id;
    pair.away = ips(&[CELL]);
    let sa = pair.right.ike();
    pair.with(Side::Right, |engine, now| {
        engine.note_path_stray(sa, 2, to(TRAIN).reversed(), now);
    });
    pair.run_for(Duration::from_secs(60));
    assert_ne!(pair.right.named(SECOND).unwrap().id, before);
    assert_eq!(licensed_at_both(&pair, SECOND), [""; 0]);
}

#[test]
fn licences_of_a_path_come_and_go_with_the_configuration() {
    let nodes = [(A, CELL)];
    let mut pair = connected(&nodes, &nodes);
    for gateway in [&[][..], &nodes[..]] {
        let (_, right) = ends(&nodes, gateway, [Stance::Require; 2]);
        pair.with(Side::Right, |engine, now| {
            assert!(engine.reconfigure(right, now).is_empty());
        });
        pair.run_for(Duration::from_secs(60));
        assert_eq!(licensed_at_both(&pair, SECOND).len(), gateway.len());
        assert!(agree(&pair, &[None, SECOND, THIRD]));
    }
}

/// A tunnel without zones has several paths, and nothing to license.
#[test]
fn without_zones_paths_are_added_and_no_node_is_licensed() {
    let nodes = [(A, CELL)];
    let (left, right) = ends(&nodes, &nodes, [Stance::Accept, Stance::Refuse]);
    let mut pair = Pair::new(left, right);
    pair.connect();
    add(&mut pair, to(CELL));
    pair.settle();
    assert!(agree(&pair, &[None, SECOND]), "{:?}", pair.left.events);
    assert!(pair.left.named(SECOND).unwrap().agreement.is_none());
}

/// Whatever is lost, both ends have the same licences on each path in the end.
#[test]
fn licences_of_paths_are_agreed_over_a_hop_that_loses_repeats_and_delays() {
    for seed in 1..30 {
        let nodes = [(A, CELL), (B, TRAIN)];
        let (left, right) = ends(&nodes, &nodes, [Stance::Require; 2]);
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        let perfect = pair.hop;
        pair.hop = pair.hop.losing(250).repeating(150).delaying(300);
        add(&mut pair, to(CELL));
        pair.run_for(Duration::from_secs(10));
        add(&mut pair, to(TRAIN));
        if pair.right.named(SECOND).is_some() {
            rekey(&mut pair, Side::Right, SECOND);
        }
        pair.run_for(Duration::from_secs(30));
        pair.hop = perfect;
        pair.run_for(Duration::from_secs(120));
        for (name, node) in [(SECOND, A), (THIRD, B)] {
            let both = [&pair.left, &pair.right].map(|host| host.named(name).is_some());
            assert!(both[0] == both[1], "seed {seed}, {name:?}: {both:?}");
            if both[0] {
                let child = pair.left.named(name).unwrap();
                let node = match child.path.local.ip().to_string() == CELL {
                    true => A,
                    false => node.max(B),
                };
                assert_eq!(licensed_at_both(&pair, name), [node], "seed {seed}");
            }
        }
    }
}
