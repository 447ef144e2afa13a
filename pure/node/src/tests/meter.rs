//! What tunnels carry counts for the sessions that peers may resume.

use super::world::{GATEWAY, Hosts, MOBILE, Policies, World};
use crate::Rekey;
use ike::Resumption;
use resumption::Handle;
use std::time::Duration;

const LIMIT: u64 = 160_000;
/// Part of the limit that is charged in advance.
const PART: u64 = LIMIT / 16;

/// Long enough for one look.
const A_LOOK: Duration = Duration::from_secs(11);

/// Returns a tunnel whose session may be resumed until it has carried so much.
fn connected(data: Option<u64>) -> World {
    let mut world = World::new(Policies {
        snoop: false,
        mobile: Vec::new(),
        ..Policies::default()
    });
    for who in [MOBILE, GATEWAY] {
        world.reconfigure(who, |config| {
            config.peers[0].ike.resumption = Resumption::Tickets;
            config.resumption.data = data;
        });
    }
    world.run_for(Duration::from_secs(5));
    assert!(world.tunnel_is_up(), "{:?}", world.events);
    world
}

/// Sends datagrams both ways, and returns their octets.
fn carry(world: &mut World, count: u32) -> u64 {
    let mut octets = 0;
    for number in 0..count {
        for who in [MOBILE, GATEWAY] {
            octets += world.segment(who, number, &[7; 960]).len() as u64;
        }
        world.run_for(Duration::from_millis(100));
    }
    octets
}

/// Returns the only entry in the gateway's store, and the data that it is charged.
fn entry(world: &World) -> (Handle, u64) {
    let entries: Vec<_> = world.stores[GATEWAY].iter().collect();
    let [(handle, entry)] = entries[..] else {
        panic!("{} entries", entries.len());
    };
    (*handle, entry.usage.data)
}

#[test]
fn what_a_tunnel_carries_both_ways_counts_through_rekeys_of_either_kind() {
    let mut world = connected(Some(LIMIT));
    let (first, charged) = entry(&world);
    assert_eq!(charged, PART, "in advance");
    let mut carried = carry(&mut world, 3);
    world.run_for(A_LOOK);
    let used = |world: &World, handle| {
        let usage = world.nodes[GATEWAY].session_usage(handle, world.now);
        usage.map(|usage| usage.data)
    };
    assert_eq!(used(&world, &first), Some(carried));
    assert_eq!(entry(&world), (first, carried + PART));

    for (what, count) in [(Rekey::Children, 7), (Rekey::Children, 0), (Rekey::Ike, 5)] {
        let asked = world.command(GATEWAY, |node, now| node.rekey("alice", what, now));
        assert_eq!(asked, Ok(()));
        carried += carry(&mut world, count);
    }
    // The child SAs that were replaced are gone.
    world.run_for(Duration::from_secs(100));
    let (second, charged) = entry(&world);
    assert!(second != first, "a rekey of the IKE SA makes another entry");
    assert_eq!(used(&world, &second), Some(carried));
    assert!((carried + PART / 2..=carried + PART).contains(&charged));
}

/// A few writes, and not one for each look.
#[test]
fn an_entry_is_charged_again_once_half_of_the_advance_is_used() {
    let mut world = connected(Some(LIMIT));
    let mut writes = 0;
    for _ in 0..20 {
        let before = entry(&world);
        carry(&mut world, 1);
        world.run_for(A_LOOK);
        writes += usize::from(entry(&world) != before);
    }
    assert!((4..=8).contains(&writes), "{writes}");
}

#[test]
fn without_a_limit_nobody_looks() {
    let mut world = connected(None);
    let looks = |world: &World| {
        let deadline = world.nodes[GATEWAY].own.tunnels.poll_timeout();
        deadline.is_some_and(|deadline| deadline.reason.contains("carried"))
    };
    let (handle, charged) = entry(&world);
    carry(&mut world, 9);
    world.run_for(A_LOOK);
    assert!(!looks(&world) && charged == 0 && entry(&world) == (handle, 0));
    // A reload with a limit counts all that was carried.
    world.reconfigure(GATEWAY, |config| {
        config.peers[0].ike.resumption = Resumption::Tickets;
        config.resumption.data = Some(LIMIT);
    });
    world.run_for(A_LOOK);
    assert_eq!(entry(&world), (handle, 18 * 1000 + PART));
}
