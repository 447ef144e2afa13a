//! Two tunnels with one peer: each packet uses the tunnel whose selectors match, or is dropped.

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, NAMES, Policies, World};
use crate::{DropReason, Event, Rekey};
use std::time::Duration;

/// These streams contain no acknowledgements, so SNOOP would retransmit all of them.
fn policies() -> Policies {
    Policies {
        voice: true,
        snoop: false,
        ..Policies::default()
    }
}

/// Returns the number of packets sent by a host on the first tunnel and on the telephones' tunnel.
fn sent(world: &World, who: usize) -> [u64; 2] {
    let peers = world.nodes[who].peers();
    [None, Some("voice")].map(|name| {
        let children = peers.iter().flat_map(|peer| &peer.children);
        let named = children.filter(|child| child.name.as_deref() == name);
        named.map(|child| child.sent.packets).sum()
    })
}

/// Sends packets on both tunnels in both directions, a hundred per second. Returns the number per
/// tunnel.
fn stream(world: &mut World, first: u32, time: Duration) -> u32 {
    let count = time.as_millis() as u32 / 10;
    for number in first..first + count {
        for who in [MOBILE, GATEWAY] {
            world.segment(who, 4 * number, &number.to_be_bytes());
            world.call(who, 4 * number, &number.to_be_bytes());
        }
        world.run_for(Duration::from_millis(10));
    }
    count
}

fn nothing_is_lost(world: &World, sent: u32) {
    for who in [MOBILE, GATEWAY] {
        assert_eq!(
            world.delivered[who].len(),
            2 * sent as usize,
            "{}",
            NAMES[who]
        );
        assert_eq!(world.dropped[who], [], "{}", NAMES[who]);
    }
}

#[test]
fn each_packet_goes_by_the_tunnel_that_carries_it() {
    let mut world = World::connected(policies());
    for (number, who) in [MOBILE, GATEWAY, MOBILE].into_iter().enumerate() {
        world.segment(who, number as u32, b"data");
    }
    world.call(MOBILE, 1, b"voice");
    world.run_for(Duration::from_secs(1));
    assert_eq!(sent(&world, MOBILE), [2, 1]);
    assert_eq!(sent(&world, GATEWAY), [1, 0]);
    assert_eq!(world.delivered[GATEWAY].len(), 3);
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 2, "keys of both");
}

#[test]
fn what_is_for_a_tunnel_that_is_down_goes_by_no_other() {
    for who in [MOBILE, GATEWAY] {
        let mut world = World::connected(policies());
        let peer = ["gw", "alice"][who];
        let closed = world.command(who, |node, now| node.close_child(peer, "voice", now));
        assert_eq!(closed, Ok(()));
        world.call(who, 1, b"voice");
        world.segment(who, 1, b"data");
        world.run_for(Duration::from_secs(30));
        assert_eq!(world.dropped[who], [DropReason::NoSa]);
        assert_eq!(world.delivered[[GATEWAY, MOBILE][who]].len(), 1);
        for host in [MOBILE, GATEWAY] {
            let down = |event: &&Event| matches!(event, Event::ChildDown { child: Some(name), .. } if name == "voice");
            assert_eq!(
                world.events[host].iter().filter(down).count(),
                1,
                "{}",
                NAMES[host]
            );
        }
        let opened = world.command(who, |node, now| node.open_child(peer, "voice", now));
        assert_eq!(opened, Ok(()));
        world.run_for(Duration::from_secs(90));
        assert!(world.tunnel_is_up());
    }
}

#[test]
fn two_streams_lose_nothing_through_new_keys_and_proofs() {
    let mut world = World::connected(policies());
    let mut number = stream(&mut world, 0, Duration::from_secs(1));
    for round in 0..6 {
        match round % 3 {
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
        number += stream(&mut world, number, Duration::from_secs(40));
    }
    world.run_for(Duration::from_secs(1));
    nothing_is_lost(&world, number);
    world.run_for(Duration::from_secs(60));
    assert!(world.tunnel_is_up());
    assert_eq!(world.nodes[LICENSED].held_grants().len(), 2);
}

#[test]
fn two_streams_lose_nothing_through_proofs_if_a_third_of_the_ike_messages_is_lost() {
    for seed in 0..4 {
        let mut world = World::seeded(policies(), seed);
        world.run_for(Duration::from_secs(20));
        world.ike_lost = 333;
        let mut number = 0;
        for _ in 0..2 {
            while world
                .command(MOBILE, |node, now| node.reauthenticate("gw", now))
                .is_err()
            {
                number += stream(&mut world, number, Duration::from_secs(1));
            }
            number += stream(&mut world, number, Duration::from_secs(100));
        }
        world.run_for(Duration::from_secs(1));
        nothing_is_lost(&world, number);
    }
}

#[test]
fn of_two_that_were_made_at_once_nobody_misses_the_one_that_goes() {
    let mut world = World::connected(policies());
    let closed = world.command(MOBILE, |node, now| node.close_child("gw", "voice", now));
    assert_eq!(closed, Ok(()));
    world.run_for(Duration::from_secs(30));
    world.events = Default::default();
    for who in [MOBILE, GATEWAY] {
        let peer = ["gw", "alice"][who];
        let opened = world.command(who, |node, now| node.open_child(peer, "voice", now));
        assert_eq!(opened, Ok(()));
    }
    world.run_for(Duration::from_secs(90));
    assert!(world.tunnel_is_up());
    let down = |event: &Event| matches!(event, Event::ChildDown { .. });
    assert!(
        !world.events.iter().flatten().any(down),
        "{:?}",
        world.events
    );
}

#[test]
fn a_tunnel_that_cannot_be_made_is_missing_and_said_so() {
    let mut world = World::connected(policies());
    world.reconfigure(GATEWAY, |config| config.peers[0].ike.children.clear());
    world.run_for(Duration::from_secs(20));
    let peers = world.nodes[MOBILE].peers();
    assert_eq!(peers[0].children.len(), 1);
    assert_eq!(peers[0].missing, ["voice"]);
    let why = peers[0]
        .refusal
        .as_ref()
        .map(|refused| refused.why.to_string());
    let told = |why: &String| why.contains("`voice`");
    assert!(why.as_ref().is_some_and(told), "{why:?}");
    world.reconfigure(GATEWAY, |_| {});
    world.run_for(Duration::from_secs(70));
    assert!(world.tunnel_is_up());
}
