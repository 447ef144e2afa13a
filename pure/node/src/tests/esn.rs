//! Extended sequence numbers between whole hosts: tunnels survive a wrap of the numbers on the
//! wire.

use super::world::{GATEWAY, Hop, Hosts, MOBILE, Policies, World};
use crate::{DropReason, Event, Rekey, Stance};
use std::time::Duration;

const BOTH: [usize; 2] = [MOBILE, GATEWAY];

/// Numbers left in the first cycle of every SA.
const LEFT: u64 = 50;

fn plain(esn: [bool; 2]) -> Policies {
    Policies {
        mobile: Vec::new(),
        gateway: Vec::new(),
        stance: Stance::Refuse,
        snoop: false,
        esn,
        ..Policies::default()
    }
}

/// Returns a connected world near the end of the first cycle.
fn late(policies: Policies) -> World {
    let mut world = World::connected(policies);
    come_late(&mut world);
    world
}

fn come_late(world: &mut World) {
    for who in BOTH {
        world.nodes[who].skip_numbers((1 << 32) - LEFT);
    }
}

fn is_extended(world: &World) -> Vec<bool> {
    let peers = BOTH.iter().flat_map(|who| world.nodes[*who].peers());
    let children = peers.flat_map(|peer| peer.children);
    children.map(|child| child.esn).collect()
}

/// Sends each segment once in both directions. Returns the number of the next.
fn stream(world: &mut World, first: u32, count: u32) -> u32 {
    for number in first..first + count {
        for who in BOTH {
            world.segment(who, 4 * number, &number.to_be_bytes());
            world.run_for(Duration::from_millis(10));
        }
    }
    first + count
}

#[test]
fn a_cycle_ends_and_new_keys_come_without_a_packet_lost() {
    let mut world = late(plain([true; 2]));
    assert_eq!(is_extended(&world), [true, true]);
    let mut sent = stream(&mut world, 0, 2 * LEFT as u32);
    for who in BOTH {
        let peer = ["gw", "alice"][who];
        let rekeyed = world.command(who, |node, now| node.rekey(peer, Rekey::Children, now));
        assert!(rekeyed.is_ok());
        sent = stream(&mut world, sent, 20);
        come_late(&mut world);
        sent = stream(&mut world, sent, 2 * LEFT as u32);
        assert!(is_extended(&world).into_iter().all(|extended| extended));
    }
    for who in BOTH {
        assert_eq!(world.dropped[who], []);
        assert_eq!(world.delivered[who].len(), sent as usize);
    }
}

/// Negative control.
#[test]
fn without_extended_numbers_the_last_one_is_the_last() {
    for esn in [[false; 2], [true, false], [false, true]] {
        let mut world = late(plain(esn));
        assert_eq!(is_extended(&world), [false, false]);
        stream(&mut world, 0, 2 * LEFT as u32);
        for who in BOTH {
            assert_eq!(world.delivered[who].len(), LEFT as usize - 1);
            let exhausted = |why: &DropReason| *why == DropReason::SequenceExhausted;
            assert!(world.dropped[who].iter().all(exhausted));
        }
    }
}

#[test]
fn on_a_bad_hop_a_cycle_ends_as_well() {
    let mut world = late(plain([true; 2]));
    world.wireless = Hop::PERFECT.losing(200).repeating(200).delaying(200);
    stream(&mut world, 0, 10 * LEFT as u32);
    for who in BOTH {
        let most = 10 * LEFT as usize;
        let came = world.delivered[who].len();
        assert!((most / 2..most).contains(&came), "{came}");
        let twice = |why: &DropReason| *why == DropReason::Replayed;
        assert!(world.dropped[who].iter().all(twice));
    }
}

/// This cannot be configured, and is harmless: zones have 32-bit numbers whatever was negotiated
/// for plain ESP.
#[test]
fn zones_have_32_bits_whoever_wants_more() {
    let world = World::connected(Policies {
        esn: [true; 2],
        ..Policies::default()
    });
    assert_eq!(is_extended(&world), [false, false]);
    let zoned = |event: &Event| matches!(event, Event::ChildUp { zoned: true, .. });
    assert!(BOTH.iter().all(|who| world.events[*who].iter().any(zoned)));
}
