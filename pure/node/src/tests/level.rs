//! Dynamic levels: two hosts with a licensed node between them, and some of the packets
//! unencrypted.

use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World};
use crate::{Event, NoLevel, Node, Rekey};
use model::{Class, Level, LevelGrant, Signal, Span};
use std::time::Duration;

/// Returns a grant for all traffic with ports, with a limit of packets and seconds.
pub fn grant(packets: u32, seconds: u32, renewals: u16) -> LevelGrant {
    let class = Class {
        ports: Span::new(0, u16::MAX),
        ..Class::default()
    };
    LevelGrant {
        class,
        packets,
        seconds,
        renewals,
    }
}

fn world(grant: LevelGrant, every: u32) -> World {
    World::connected(Policies {
        levels: [Some(grant); 2],
        every,
        // SNOOP would retransmit segments, which are never acknowledged here.
        snoop: false,
        ..Policies::default()
    })
}

/// Sends datagrams each way, none of which may be lost. Returns how many per direction were
/// readable in transit.
fn exchange(world: &mut World, count: u32) -> [usize; 2] {
    world.delivered = Default::default();
    let mut sent = [Vec::new(), Vec::new()];
    let mut readable = [0, 0];
    let first = world.now.since_origin().as_millis() as u32;
    for number in first..first + count {
        for (from, to) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
            let datagram = world.segment(from, 4 * number, &number.to_be_bytes());
            let (_, packet) = world.sealed.last().expect("it was sealed");
            let mut parts = packet.windows(datagram.len());
            readable[from] += usize::from(parts.any(|part| part == datagram));
            sent[to].push(datagram);
        }
        world.run_for(Duration::from_millis(10));
    }
    world.run_for(Duration::from_secs(1));
    for (who, sent) in sent.into_iter().enumerate() {
        assert!(world.delivered[who] == sent, "other packets at host {who}");
        assert_eq!(world.dropped[who], [], "at host {who}");
    }
    readable
}

/// Returns the number of packets that the licensed node opened.
fn opened(world: &World) -> u64 {
    let transit = world.nodes[LICENSED].transit_counters();
    transit.segments + transit.stale + transit.opaque
}

fn told(world: &World, who: usize) -> usize {
    let spent = |event: &&Event| matches!(event, Event::LevelSpent { .. });
    world.events[who].iter().filter(spent).count()
}

// Answers: sight-level
#[test]
fn what_was_granted_is_everybodys_to_read_and_the_rest_the_licensed_nodes() {
    let mut world = world(grant(50, 600, 0), 2);
    let before = opened(&world);
    assert_eq!(exchange(&mut world, 20), [10, 10]);
    // The licensed node learns no more from unencrypted packets than any router.
    assert_eq!(opened(&world) - before, 20);
    assert_eq!(exchange(&mut world, 100), [40, 40]);
    assert_eq!([MOBILE, GATEWAY].map(|who| told(&world, who)), [1, 1]);
}

// Recovers: dynamic-levels
#[test]
fn a_grant_whose_time_is_over_is_of_no_use_and_nothing_is_lost() {
    let mut world = world(grant(1000, 80, 0), 0);
    assert_eq!(exchange(&mut world, 10), [10, 10]);
    // The sender stops ten seconds before the receiver does.
    world.run_for(Duration::from_secs(65));
    assert_eq!(exchange(&mut world, 10), [10, 10]);
    world.run_for(Duration::from_secs(5));
    assert_eq!(exchange(&mut world, 10), [0, 0]);
    assert_eq!([MOBILE, GATEWAY].map(|who| told(&world, who)), [1, 1]);
}

// Answers: sight-level
#[test]
fn new_keys_renew_it_as_often_as_was_agreed() {
    let mut world = world(grant(10, 600, 1), 0);
    assert_eq!(exchange(&mut world, 20), [10, 10]);
    for readable in [10, 0, 0] {
        let rekey = |node: &mut Node, now| node.rekey("gw", Rekey::Children, now);
        world.command(MOBILE, rekey).unwrap();
        world.run_for(Duration::from_secs(60));
        assert_eq!(exchange(&mut world, 20), [readable; 2]);
    }
}

#[test]
fn an_operator_chooses_for_all_keys_to_come() {
    let mut world = world(grant(1000, 6000, 9), 0);
    for (signal, readable) in [
        (Signal::Only(Level::Zoned), 0),
        (Signal::Only(Level::Integrity), 10),
        (Signal::Only(Level::Opaque), 0),
        (Signal::Auto, 10),
    ] {
        let choose = |node: &mut Node, _| node.choose_level("gw", signal);
        world.command(MOBILE, choose).unwrap();
        assert_eq!(exchange(&mut world, 10), [readable, 10], "{signal}");
        let rekey = |node: &mut Node, now| node.rekey("gw", Rekey::Children, now);
        world.command(MOBILE, rekey).unwrap();
        world.run_for(Duration::from_secs(60));
        assert_eq!(exchange(&mut world, 10), [readable, 10], "{signal}");
    }
}

#[test]
fn an_operator_gets_no_level_that_is_not_agreed_on() {
    let asked = |policies: Policies, peer: &'static str, level| {
        let mut world = World::connected(policies);
        let choose = |node: &mut Node, _| node.choose_level(peer, Signal::Only(level));
        world.command(MOBILE, choose)
    };
    let one_end = |end: usize| {
        let mut levels = [None; 2];
        levels[end] = Some(grant(10, 10, 0));
        Policies {
            levels,
            ..Policies::default()
        }
    };
    let integrity = Level::Integrity;
    assert_eq!(asked(one_end(1), "gw", integrity), Err(NoLevel::NotGranted));
    assert_eq!(asked(one_end(0), "gw", integrity), Err(NoLevel::NotAgreed));
    assert_eq!(asked(one_end(0), "gw", Level::Opaque), Ok(()));
    let nobody = asked(one_end(0), "nobody", Level::Zoned);
    assert_eq!(nobody, Err(NoLevel::UnknownPeer));
    let plain = Policies {
        stance: crate::Stance::Refuse,
        ..Policies::default()
    };
    assert_eq!(asked(plain, "gw", Level::Opaque), Err(NoLevel::NoZones));
}
