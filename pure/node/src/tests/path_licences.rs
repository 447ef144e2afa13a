//! A licensed node on one of several live paths: it reads what that path carries, and nothing else.

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, NAMES, Policies, SECOND, World, address};
use crate::{Event, Rekey, Way};
use model::Spi;
use std::net::IpAddr;
use std::time::Duration;

const FLOWS: u16 = 16;
const SECONDS: Duration = Duration::from_secs(1);

fn second() -> IpAddr {
    SECOND.parse().unwrap()
}

fn policies(at: &[IpAddr]) -> Policies {
    Policies {
        paths: 2,
        at: at.to_vec(),
        ..Policies::default()
    }
}

/// Has packets leave from these addresses of the mobile node, the best first.
fn ways(world: &mut World, locals: &[IpAddr]) {
    let remote = address(GATEWAY);
    let ways = locals.iter().map(|local| Way {
        local: *local,
        remote,
    });
    let ways: Vec<_> = ways.collect();
    world.command(MOBILE, |node, now| node.handle_ways(&ways, now));
}

/// Creates a world with two paths, in which the licensed node may read at these addresses.
fn connected(at: &[IpAddr]) -> World {
    let mut world = World::new(policies(at));
    bring_up(&mut world);
    world
}

fn bring_up(world: &mut World) {
    world.run_for(SECONDS);
    ways(world, &[address(MOBILE), second()]);
    world.run_for(10 * SECONDS);
    for who in [MOBILE, GATEWAY] {
        let paths = world.nodes[who].paths();
        let live = paths.iter().flat_map(|tunnel| &tunnel.live);
        let works = live.filter(|path| path.works).count();
        assert_eq!(works, 2, "{} {:?}", NAMES[who], world.events[who]);
    }
}

/// Sends segments of all flows both ways. Returns the numbers of segments that the node has read,
/// and of packets that it has no keys for.
fn stream(world: &mut World, numbers: std::ops::Range<u32>) -> (u64, u64) {
    let counters = |world: &World| {
        let counters = world.nodes[LICENSED].transit_counters();
        (counters.segments, counters.unlicensed)
    };
    let before = counters(world);
    for number in numbers {
        for who in [MOBILE, GATEWAY] {
            for flow in 0..FLOWS {
                world.flow(who, 40_000 + flow, 4 * number);
            }
        }
        world.run_for(Duration::from_millis(2));
    }
    world.run_for(Duration::from_millis(100));
    let after = counters(world);
    (after.0 - before.0, after.1 - before.1)
}

/// Returns the SPIs of the keys that the node holds, as sorted pairs.
fn held(world: &World) -> Vec<[Spi; 2]> {
    let held = world.nodes[LICENSED].held_grants().into_iter();
    let mut held: Vec<_> = held
        .map(|held| sorted(held.from_gateway, held.to_gateway))
        .collect();
    held.sort();
    held
}

fn sorted(one: Spi, other: Spi) -> [Spi; 2] {
    [one.min(other), one.max(other)]
}

/// Returns the SPIs of a child SA that is not being replaced, and the packets that both ends have
/// sent on it.
fn child(world: &World, name: Option<&str>) -> ([Spi; 2], u64) {
    let (mut spis, mut packets) = (None, 0);
    for who in [MOBILE, GATEWAY] {
        let peers = world.nodes[who].peers();
        let mut children = peers.iter().flat_map(|peer| &peer.children);
        let found = children.find(|child| child.name.as_deref() == name && !child.draining);
        let child = found.unwrap_or_else(|| panic!("{} has no {name:?}", NAMES[who]));
        spis = Some(sorted(child.inbound, child.outbound));
        packets += child.sent.packets;
    }
    (spis.unwrap(), packets)
}

fn slot() -> String {
    format!("@{}", NAMES[LICENSED])
}

/// The node is on the path of the IKE SA, on the other one, on both, or on none.
#[test]
fn a_node_has_the_keys_of_its_path_and_reads_its_packets_alone() {
    let slot = slot();
    let first = (Some(slot.as_str()), address(MOBILE));
    let further = (Some("path 2"), second());
    let elsewhere: IpAddr = "203.0.113.200".parse().unwrap();
    for nodes in [vec![first], vec![further], vec![first, further], vec![]] {
        let at: Vec<_> = nodes.iter().map(|(_, at)| *at).collect();
        let at = if at.is_empty() { vec![elsewhere] } else { at };
        let mut world = connected(&at);
        let sent = |world: &World| -> u64 {
            let own = nodes.iter().map(|(name, _)| child(world, *name).1);
            own.sum()
        };
        let before = sent(&world);
        let (read, unread) = stream(&mut world, 0..50);
        assert_eq!(read, sent(&world) - before, "{at:?}");
        let all = 2 * 50 * u64::from(FLOWS);
        assert!(
            read < all || nodes.len() == 2,
            "{at:?}: one path has all flows"
        );
        assert_eq!(read > 0, !nodes.is_empty(), "{at:?}");
        assert!(unread >= all - read, "{at:?}: {read} {unread}");
        let mut spis: Vec<_> = nodes
            .iter()
            .map(|(name, _)| child(&world, *name).0)
            .collect();
        spis.sort();
        assert_eq!(held(&world), spis, "{at:?}");
    }
}

/// The flows of a path that is gone take the other one, whose node reads them at once. It has no
/// key of the other path any more.
#[test]
fn flows_of_a_path_that_is_gone_are_read_on_the_other_one() {
    for gone in [address(MOBILE), second()] {
        let left = if gone == second() {
            address(MOBILE)
        } else {
            second()
        };
        let mut world = connected(&[left]);
        let (read, unread) = stream(&mut world, 0..50);
        assert!(read > 0 && unread > 0, "{gone}: {read} {unread}");
        world.cut = vec![gone];
        ways(&mut world, &[left]);
        // The gateway learns of it from the next message.
        stream(&mut world, 50..100);
        let (read, _) = stream(&mut world, 100..1100);
        assert_eq!(read, 2 * 1000 * u64::from(FLOWS), "{gone}");
        world.run_for(20 * SECONDS);
        assert_eq!(held(&world), [child(&world, Some(&slot())).0], "{gone}");
        let (read, _) = stream(&mut world, 1100..1200);
        assert_eq!(read, 2 * 100 * u64::from(FLOWS), "{gone}");
    }
}

/// Returns the paths that a host has reported as down.
fn reported_down(world: &World, who: usize) -> Vec<IpAddr> {
    let events = world.events[who].iter();
    let down = events.filter_map(|event| match event {
        Event::LivePath { path, works, .. } if !works => Some(path.local.ip()),
        _ => None,
    });
    down.collect()
}

/// Until its slot is ready, the path of the IKE SA is covered by another one, and works.
#[test]
fn a_path_that_another_one_covers_is_not_reported_as_down() {
    let mut world = connected(&[second()]);
    let moved = world.command(MOBILE, |node, now| {
        node.move_peer("gw", Some(second()), now)
    });
    moved.unwrap();
    world.run_for(10 * SECONDS);
    assert_eq!(reported_down(&world, MOBILE), Vec::<IpAddr>::new());
    let (read, _) = stream(&mut world, 0..50);
    assert!(read > 0);
}

#[test]
fn keys_of_a_path_that_is_removed_are_withdrawn() {
    let mut world = connected(&[second()]);
    assert_eq!(held(&world).len(), 1);
    ways(&mut world, &[address(MOBILE)]);
    world.run_for(20 * SECONDS);
    assert!(held(&world).is_empty());
    let (read, _) = stream(&mut world, 0..50);
    assert_eq!(read, 0);
    // It comes back with other keys.
    ways(&mut world, &[address(MOBILE), second()]);
    world.run_for(20 * SECONDS);
    assert_eq!(held(&world), [child(&world, Some("path 2")).0]);
    assert!(stream(&mut world, 50..100).0 > 0);
}

#[test]
fn a_silent_path_is_left_and_its_flows_are_read_on_the_other_one() {
    let mut world = connected(&[address(MOBILE)]);
    stream(&mut world, 0..50);
    world.cut = vec![second()];
    stream(&mut world, 50..1050);
    let (read, _) = stream(&mut world, 1050..1150);
    assert_eq!(read, 2 * 100 * u64::from(FLOWS));
    world.cut.clear();
    stream(&mut world, 1150..4000);
    let (read, unread) = stream(&mut world, 4000..4100);
    assert!(read > 0 && unread > 0, "both paths again: {read} {unread}");
}

#[test]
fn rekeys_leave_no_packet_unread() {
    let at = [address(MOBILE), second()];
    let mut world = connected(&at);
    let mut count = 0;
    let mut go_on = |world: &mut World| {
        let (read, _) = stream(world, count..count + 500);
        count += 500;
        assert_eq!(read, 2 * 500 * u64::from(FLOWS));
    };
    go_on(&mut world);
    for (who, peer) in [(MOBILE, "gw"), (GATEWAY, "alice")] {
        for what in [Rekey::Children, Rekey::Ike] {
            world
                .command(who, |node, now| node.rekey(peer, what, now))
                .unwrap();
            go_on(&mut world);
        }
    }
    world.run_for(60 * SECONDS);
    assert_eq!(held(&world).len(), 2);
}

#[test]
fn keys_of_paths_arrive_over_hops_that_lose_and_reorder() {
    for seed in 0..4 {
        let mut world = World::seeded(policies(&[second()]), seed);
        world.run_for(SECONDS);
        world.wireless = world.wireless.losing(100).delaying(100);
        world.wired = world.wired.losing(100);
        ways(&mut world, &[address(MOBILE), second()]);
        world.run_for(60 * SECONDS);
        (world.wireless, world.wired) = Default::default();
        world.run_for(60 * SECONDS);
        assert_eq!(held(&world), [child(&world, Some("path 2")).0], "{seed}");
        assert!(stream(&mut world, 0..50).0 > 0, "{seed}");
    }
}
