//! Rekeys while packets flow: nothing is lost, and licensed nodes continue to read.

use super::world::{GATEWAY, Hop, Hosts, LICENSED, MOBILE, Policies, World};
use crate::{CannotRekey, Event, PeerNumbers, PeerState, Rekey, Stance};
use std::collections::BTreeSet;
use std::time::Duration;

/// Name of the peer at each endpoint.
const PEERS: [&str; 2] = ["gw", "alice"];

fn rekey(world: &mut World, who: usize, what: Rekey) {
    let asked = world.command(who, |node, now| node.rekey(PEERS[who], what, now));
    assert_eq!(asked, Ok(()));
}

/// Sends packets both ways, a hundred per second. Returns the number.
fn stream(world: &mut World, first: u32, time: Duration) -> u32 {
    let count = time.as_millis() as u32 / 10;
    for number in first..first + count {
        world.segment(MOBILE, 4 * number, &number.to_be_bytes());
        world.segment(GATEWAY, 4 * number, &number.to_be_bytes());
        world.run_for(Duration::from_millis(10));
    }
    count
}

/// Streams through twenty rekeys by both ends, of child SAs and IKE SAs in turn. Returns the number
/// of SAs that sent, per direction.
fn stream_through_rekeys(world: &mut World) -> usize {
    let mut sent = 0;
    let mut outbound = BTreeSet::new();
    for round in 0..20 {
        let who = [GATEWAY, MOBILE][round % 2];
        let what = if round % 5 == 4 {
            Rekey::Ike
        } else {
            Rekey::Children
        };
        rekey(world, who, what);
        sent += stream(world, sent, Duration::from_secs(4));
        outbound.extend(
            world
                .sealed
                .drain(..)
                .map(|(who, packet)| (who, packet[..4].to_vec())),
        );
    }
    world.run_for(Duration::from_secs(1));
    for who in [MOBILE, GATEWAY] {
        assert_eq!(world.delivered[who].len(), sent as usize, "at host {who}");
        assert_eq!(world.dropped[who], [], "at host {who}");
    }
    outbound.len() / 2
}

/// These streams contain no acknowledgements, so SNOOP would retransmit all of them.
fn without_snoop() -> Policies {
    Policies {
        snoop: false,
        ..Policies::default()
    }
}

/// Returns a tunnel without licences.
fn unlicensed(stance: Stance) -> World {
    World::connected(Policies {
        stance,
        mobile: Vec::new(),
        ..without_snoop()
    })
}

#[test]
fn a_stream_loses_nothing_through_twenty_rekeys_and_the_node_reads_all_of_it() {
    let mut world = World::connected(without_snoop());
    assert_eq!(stream_through_rekeys(&mut world), 1 + 16);
    let transit = world.nodes[LICENSED].transit_counters();
    assert_eq!(
        (transit.unlicensed, transit.not_opened, transit.stale),
        (0, 0, 0)
    );
    assert_eq!(transit.opaque, 2 * 8000, "opened, and shown to nobody");
    world.run_for(Duration::from_secs(60));
    assert_eq!(
        world.nodes[LICENSED].held_grants().len(),
        1,
        "old keys are forgotten"
    );
    assert!(world.tunnel_is_up());
}

// Recovers: rekey
#[test]
fn a_stream_loses_nothing_if_a_third_of_the_ike_messages_is_lost() {
    let mut world = World::connected(without_snoop());
    world.ike_lost = 333;
    // Some SAs are replaced before they send.
    assert!(stream_through_rekeys(&mut world) > 5);
    // Unopened packets are those sent while a grant was in flight.
    let transit = world.nodes[LICENSED].transit_counters();
    assert!(transit.opaque > 2 * 8000 * 8 / 10, "{transit:?}");
}

#[test]
fn a_stream_without_zones_or_licences_loses_nothing_either() {
    for stance in [Stance::Refuse, Stance::Require] {
        let mut world = unlicensed(stance);
        assert_eq!(stream_through_rekeys(&mut world), 1 + 16);
    }
}

/// As when both timers expire at the same time. One of the two new child SAs is deleted, before its
/// requester ever had it: nothing is sent on it, and its end is not the end of the tunnel.
#[test]
fn when_rekeys_cross_a_stream_loses_nothing_and_no_tunnel_is_down() {
    for stance in [Stance::Refuse, Stance::Require] {
        let mut world = unlicensed(stance);
        let mut sent = 0;
        for _ in 0..8 {
            rekey(&mut world, GATEWAY, Rekey::Children);
            rekey(&mut world, MOBILE, Rekey::Children);
            sent += stream(&mut world, sent, Duration::from_secs(4));
        }
        world.run_for(Duration::from_secs(1));
        for who in [MOBILE, GATEWAY] {
            assert_eq!(world.dropped[who], [], "at host {who}");
            assert_eq!(world.delivered[who].len(), sent as usize, "at host {who}");
            let down = |event: &&Event| matches!(event, Event::ChildDown { .. });
            assert_eq!(world.events[who].iter().filter(down).count(), 0);
        }
    }
}

/// The licensed node's IKE SA is dead: sending waits for it for two seconds at most.
#[test]
fn a_licensed_node_that_is_away_holds_nobody_up() {
    let mut world = World::connected(Policies::default());
    world.deaf[LICENSED] = true;
    rekey(&mut world, GATEWAY, Rekey::Children);
    let old = world.spis(GATEWAY)[0];
    let sends_on = |world: &mut World| {
        world.segment(GATEWAY, 1, b"x");
        let (_, packet) = world.sealed.pop().unwrap();
        u32::from_be_bytes(packet[..4].try_into().unwrap())
    };
    world.run_for(Duration::from_millis(1900));
    assert_eq!(sends_on(&mut world), old.0.0, "the old one is sent on");
    world.run_for(Duration::from_millis(200));
    assert_ne!(sends_on(&mut world), old.0.0, "the new one is sent on");
}

#[test]
fn snoop_repairs_over_a_rekey_what_was_sealed_before_it() {
    let mut world = World::connected(Policies::default());
    world.segment(MOBILE, 1, b"GET");
    world.run_for(Duration::from_millis(50));
    for index in 0..14_u32 {
        if index == 2 {
            rekey(&mut world, GATEWAY, Rekey::Children);
        }
        world.wireless.lost = if index == 1 { 1000 } else { 0 };
        world.segment(GATEWAY, 1 + index * 1000, &[index as u8; 1000]);
        world.run_for(Duration::from_millis(5));
    }
    world.wireless = Hop::PERFECT;
    let spi = |(_, packet): &(usize, Vec<u8>)| packet[..4].to_vec();
    let from_gateway = world.sealed.iter().filter(|(who, _)| *who == GATEWAY);
    let spis: BTreeSet<_> = from_gateway.map(spi).collect();
    assert_eq!(spis.len(), 2, "the rekey fell into the flight");
    for ack in [1001, 1001, 1001, 1001, 1001, 1001] {
        let ack = super::datagram::tcp("10.1.0.2:40000", "10.8.0.1:80", 4, ack, b"");
        world.send(MOBILE, &ack);
        world.run_for(Duration::from_millis(2));
    }
    world.run_for(Duration::from_millis(100));
    let counters = world.nodes[LICENSED].snoop_counters().unwrap();
    assert!(counters.retransmitted_lost >= 1, "{counters:?}");
    assert_eq!(world.delivered[MOBILE].len(), 14);
    assert_eq!(
        world.nodes[LICENSED].flows().len(),
        1,
        "one connection, not two"
    );
}

#[test]
fn rekeys_that_cannot_be_are_refused_with_a_reason() {
    let mut world = World::new(Policies::default());
    let rekey = |world: &mut World, who, peer: &str, what| {
        world.command(who, |node, now| node.rekey(peer, what, now))
    };
    let (children, ike) = (Rekey::Children, Rekey::Ike);
    let nobody = rekey(&mut world, MOBILE, "nobody", children);
    assert_eq!(nobody, Err(CannotRekey::UnknownPeer));
    let down = rekey(&mut world, MOBILE, "gw", ike);
    assert_eq!(down, Err(CannotRekey::NotUp));
    world.run_for(Duration::from_secs(10));
    let childless = rekey(&mut world, GATEWAY, "fa", children);
    assert_eq!(childless, Err(CannotRekey::NoChild));
    assert_eq!(rekey(&mut world, GATEWAY, "fa", ike), Ok(()));
    world.run_for(Duration::from_secs(1));
    let rekeyed = |event: &Event| matches!(event, Event::IkeRekeyed { .. });
    assert!(world.events[LICENSED].iter().any(rekeyed));
    assert_eq!(
        world.nodes[LICENSED].held_grants().len(),
        1,
        "the grant stays"
    );
}

fn numbers(world: &World, who: usize) -> PeerNumbers {
    let node = &world.nodes[who];
    let mut all = node.peer_numbers(usize::MAX).into_iter();
    all.find(|numbers| node.name(numbers.peer) == PEERS[who])
        .unwrap()
}

#[test]
fn the_numbers_of_a_peer_outlive_the_sas_that_they_are_about() {
    let mut world = World::connected(without_snoop());
    let mut sent = 0;
    for what in [Rekey::Children, Rekey::Ike, Rekey::Children] {
        rekey(&mut world, GATEWAY, what);
        sent += stream(&mut world, sent, Duration::from_secs(2));
    }
    world.run_for(Duration::from_secs(1));
    for who in [MOBILE, GATEWAY] {
        let numbers = numbers(&world, who);
        assert_eq!(numbers.traffic.sealed.packets, u64::from(sent));
        assert_eq!(numbers.traffic.opened.packets, u64::from(sent));
        assert_eq!(
            (numbers.rekeys, numbers.state, numbers.has_tunnels),
            (3, PeerState::Up, true)
        );
        assert!(numbers.round_trip.is_some() && numbers.tunnels > 0);
    }
    let opened: u64 = world.nodes[LICENSED]
        .opened_for()
        .map(|(_, count)| count)
        .sum();
    assert_eq!(opened, 2 * u64::from(sent));
    let before = numbers(&world, GATEWAY).traffic;
    let down = world.command(MOBILE, |node, now| node.down("gw", now));
    assert_eq!(down, Ok(()));
    world.run_for(Duration::from_secs(5));
    let after = numbers(&world, GATEWAY);
    assert_eq!(
        (after.traffic, after.tunnels, after.heard),
        (before, 0, None)
    );
    let totals = world.nodes[GATEWAY].totals();
    assert_eq!(
        (totals.up, totals.children),
        (1, 0),
        "the licensed node stays"
    );
    assert!(world.nodes[MOBILE].set_ups().count == 1);
}
