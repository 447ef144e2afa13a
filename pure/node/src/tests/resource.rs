//! Several tunnels for the same traffic (RFC 9611): each flow uses one of them, and no flow loses a
//! packet when they come and go.

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, NAMES, Policies, World};
use crate::Rekey;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::ip::Header;

const FLOWS: u16 = 16;

/// These streams contain no acknowledgements, so SNOOP would retransmit all of them.
fn policies() -> Policies {
    Policies {
        resources: 4,
        snoop: false,
        ..Policies::default()
    }
}

/// Sends a packet of each flow in both directions every ten milliseconds. Returns the number of the
/// next.
fn stream(world: &mut World, first: u32, time: Duration) -> u32 {
    let next = first + time.as_millis() as u32 / 10;
    for number in first..next {
        for who in [MOBILE, GATEWAY] {
            for flow in 0..FLOWS {
                world.flow(who, 40_000 + flow, 4 * number);
            }
        }
        world.run_for(Duration::from_millis(10));
    }
    next
}

/// Asserts that all packets arrived, those of each flow in order.
fn nothing_is_lost(world: &World, sent: u32) {
    for who in [MOBILE, GATEWAY] {
        assert_eq!(world.dropped[who], [], "{}", NAMES[who]);
        let mut flows = BTreeMap::<_, Vec<Vec<u8>>>::new();
        for octets in &world.delivered[who] {
            let header = Header::parse(octets).unwrap();
            let segments = flows.entry(header.flow()).or_default();
            segments.push(header.payload()[4..8].to_vec());
        }
        assert_eq!(flows.len(), usize::from(FLOWS), "{}", NAMES[who]);
        for segments in flows.values() {
            assert_eq!(segments.len(), sent as usize, "{}", NAMES[who]);
            assert!(segments.is_sorted(), "out of order at {}", NAMES[who]);
        }
    }
}

/// Returns the number of packets that each tunnel of a host has sent.
fn sent(world: &World, who: usize) -> Vec<u64> {
    let peers = world.nodes[who].peers();
    let children = peers.iter().flat_map(|peer| &peer.children);
    children.map(|child| child.sent.packets).collect()
}

#[test]
fn flows_are_spread_over_all_and_each_keeps_its_order() {
    let mut world = World::connected(policies());
    let count = stream(&mut world, 0, Duration::from_secs(1));
    world.run_for(Duration::from_secs(1));
    nothing_is_lost(&world, count);
    // The gateway has two workers. The active one uses its own tunnel.
    for (who, least) in [(MOBILE, 3), (GATEWAY, 1)] {
        let sent = sent(&world, who);
        assert_eq!(
            sent.iter().sum::<u64>(),
            u64::from(count) * u64::from(FLOWS)
        );
        assert!(
            sent.iter().all(|sent| sent % u64::from(count) == 0),
            "{sent:?}"
        );
        assert!(
            sent.iter().filter(|sent| **sent > 0).count() >= least,
            "{sent:?}"
        );
    }
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 4, "keys of all");
}

/// The responder must not send on an SA before the initiator has it.
#[test]
fn nothing_is_lost_while_they_come_up_one_after_the_other() {
    let mut world = World::new(policies());
    let one = |world: &World, who: usize| !sent(world, who).is_empty();
    while !(one(&world, MOBILE) && one(&world, GATEWAY)) {
        world.run_for(Duration::from_millis(1));
    }
    assert!(!world.tunnel_is_up(), "the others are still to come");
    let count = stream(&mut world, 0, Duration::from_secs(5));
    world.run_for(Duration::from_secs(1));
    assert!(world.tunnel_is_up());
    nothing_is_lost(&world, count);
}

// Recovers: several-sas
#[test]
fn what_one_carried_goes_by_the_others_when_it_is_deleted() {
    for who in [MOBILE, GATEWAY] {
        let mut world = World::connected(policies());
        let peer = ["gw", "alice"][who];
        let mut count = stream(&mut world, 0, Duration::from_secs(1));
        for name in ["#2", "#3", "#4"] {
            // The pause lets packets in flight arrive before the Delete. Otherwise they would be
            // lost, as at the end of an SA.
            world.run_for(Duration::from_secs(1));
            let closed = world.command(who, |node, now| node.close_child(peer, name, now));
            assert_eq!(closed, Ok(()));
            count = stream(&mut world, count, Duration::from_secs(1));
        }
        world.run_for(Duration::from_secs(5));
        nothing_is_lost(&world, count);
        assert_eq!(sent(&world, who).len(), 1, "the fallback is left");
    }
}

#[test]
fn new_keys_and_proofs_lose_nothing() {
    let mut world = World::connected(policies());
    let mut count = stream(&mut world, 0, Duration::from_secs(1));
    for round in 0..3 {
        match round {
            0 => world
                .command(MOBILE, |node, now| node.rekey("gw", Rekey::Children, now))
                .unwrap(),
            1 => world
                .command(GATEWAY, |node, now| node.rekey("alice", Rekey::Ike, now))
                .unwrap(),
            _ => world
                .command(MOBILE, |node, now| node.reauthenticate("gw", now))
                .unwrap(),
        }
        count = stream(&mut world, count, Duration::from_secs(10));
    }
    world.run_for(Duration::from_secs(60));
    let delivered = world.delivered[MOBILE].len() + world.delivered[GATEWAY].len();
    assert_eq!(delivered, 2 * count as usize * usize::from(FLOWS));
    assert!(world.tunnel_is_up());
}
