//! Soft hand-overs (RFC 7791) while packets flow: nothing is lost, and licensed nodes continue to
//! read. This world has only one path. `lab` covers several paths.

use super::reauth::{stream, times_of, without_snoop};
use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World, address};
use crate::{CannotMove, Event, NotMovable, PeerState};
use mobility::Way;
use std::time::Duration;

const ENDS: [usize; 2] = [MOBILE, GATEWAY];

/// Longer than the attempts to hand over a clone last.
const TRIED: Duration = Duration::from_secs(40);

fn connected(policies: Policies, seed: u64) -> World {
    let mut world = World::seeded(policies, seed);
    world.run_for(Duration::from_secs(10));
    world
}

pub fn hand_over(world: &mut World) -> Result<(), CannotMove> {
    world.command(MOBILE, |node, now| {
        let way = Way {
            local: address(MOBILE),
            remote: address(GATEWAY),
        };
        node.handle_ways(&[way], now);
        node.hand_over("gw", None, now).map(drop)
    })
}

/// Streams in both directions through several hand-overs, without loss.
fn stream_through(world: &mut World, times: usize, pause: Duration) {
    let mut sent = 0;
    for _ in 0..times {
        assert_eq!(hand_over(world), Ok(()));
        sent += stream(world, &ENDS, sent, pause);
    }
    lost_nothing(world, sent);
}

fn lost_nothing(world: &mut World, sent: u32) {
    world.run_for(Duration::from_secs(1));
    for who in ENDS {
        assert_eq!(world.delivered[who].len(), sent as usize, "at host {who}");
        assert_eq!(world.dropped[who], [], "at host {who}");
    }
}

fn handed_over(world: &World, who: usize) -> usize {
    times_of(world, who, |event| {
        matches!(event, Event::HandedOver { .. })
    })
}

fn never_down(world: &World) {
    for who in ENDS {
        let down =
            |event: &Event| matches!(event, Event::PeerDown { .. } | Event::ChildDown { .. });
        assert_eq!(times_of(world, who, down), 0, "at host {who}");
    }
}

#[test]
fn a_stream_loses_nothing_through_ten_hand_overs_and_the_node_reads_all_of_it() {
    let mut world = connected(without_snoop(), 1);
    stream_through(&mut world, 10, Duration::from_secs(30));
    assert_eq!(ENDS.map(|who| handed_over(&world, who)), [10, 10]);
    never_down(&world);
    let transit = world.nodes[LICENSED].transit_counters();
    assert_eq!((transit.not_opened, transit.stale), (0, 0));
    assert_eq!(transit.unlicensed, 0, "every packet was read");
    world.run_for(Duration::from_secs(60));
    assert!(world.tunnel_is_up());
    for who in ENDS {
        let peer = &world.nodes[who].peers()[0];
        assert_eq!((peer.sas, peer.clones), (1, true), "at host {who}");
    }
}

// Recovers: clone
#[test]
fn a_stream_loses_nothing_if_a_third_of_the_ike_messages_is_lost() {
    for seed in 0..8 {
        let mut world = connected(without_snoop(), seed);
        world.ike_lost = 333;
        stream_through(&mut world, 3, Duration::from_secs(60));
        never_down(&world);
        world.ike_lost = 0;
        // A gateway that received no Delete of a clone gives the clone up after 309 s.
        world.run_for(Duration::from_secs(400));
        assert!(world.tunnel_is_up(), "seed {seed}");
    }
}

/// The move is never answered. The clone carries no child SA yet and is deleted.
#[test]
fn a_hand_over_of_which_nothing_comes_leaves_all_as_it_was() {
    let mut world = connected(without_snoop(), 1);
    let before = ENDS.map(|who| world.spis(who));
    const INFORMATIONAL: u8 = 37;
    world.silent_in = Some((GATEWAY, INFORMATIONAL));
    assert_eq!(hand_over(&mut world), Ok(()));
    let sent = stream(&mut world, &ENDS, 0, TRIED);
    world.silent_in = None;
    lost_nothing(&mut world, sent);
    never_down(&world);
    assert_eq!(ENDS.map(|who| world.spis(who)), before);
    let told = |event: &Event| matches!(event, Event::Refused { why, .. } if why.to_string().contains("the tunnel stays on its path"));
    assert_eq!(times_of(&world, MOBILE, told), 1);
    assert_eq!(handed_over(&world, MOBILE), 0);
}

/// One of two tunnels moves before the other is refused, so the first returns. Only packets in
/// flight at that moment are lost.
#[test]
fn a_hand_over_of_which_half_comes_goes_back_and_loses_two_packets_at_most() {
    let policies = Policies {
        voice: true,
        ..without_snoop()
    };
    let mut world = connected(policies, 1);
    assert_eq!(hand_over(&mut world), Ok(()));
    while times_of(&world, MOBILE, |event| {
        matches!(event, Event::Cloned { .. })
    }) == 0
    {
        world.run_for(Duration::from_millis(1));
    }
    world.reconfigure(GATEWAY, |config| config.peers[0].ike.children.clear());
    let sent = stream(&mut world, &ENDS, 0, TRIED);
    world.run_for(Duration::from_secs(1));
    assert_eq!(handed_over(&world, MOBILE), 0);
    let rekeyed = |event: &Event| matches!(event, Event::ChildRekeyed { .. });
    assert_eq!(times_of(&world, MOBILE, rekeyed), 1, "it had been moved");
    for who in ENDS {
        let peer = &world.nodes[who].peers()[0];
        assert_eq!((peer.state, peer.sas), (PeerState::Up, 1), "at host {who}");
        assert_eq!(peer.children.len(), 1, "at host {who}");
        assert!(!peer.children[0].draining, "at host {who}");
        let delivered = world.delivered[who].len();
        assert!(delivered + 2 >= sent as usize, "{delivered} of {sent}");
    }
    let more = stream(&mut world, &ENDS, sent, Duration::from_secs(2));
    world.run_for(Duration::from_secs(1));
    for who in ENDS {
        assert!(world.delivered[who].len() + 2 >= (sent + more) as usize);
    }
}

#[test]
fn what_cannot_be_handed_over_is_refused_with_a_reason() {
    let mut world = World::new(Policies::default());
    let ike = |why| Err(CannotMove::Ike(why));
    assert_eq!(hand_over(&mut world), ike(NotMovable::NotUp));
    world.run_for(Duration::from_secs(10));
    let theirs = world.command(GATEWAY, |node, now| node.hand_over("alice", None, now));
    assert!(matches!(theirs, Err(CannotMove::Ike(NotMovable::NotOurs))));
    let nobody = world.command(MOBILE, |node, now| node.hand_over("nobody", None, now));
    assert!(matches!(nobody, Err(CannotMove::UnknownPeer(_))));
    let nowhere = world.command(MOBILE, |node, now| {
        node.hand_over("gw", Some(address(GATEWAY)), now)
    });
    assert!(matches!(nowhere, Err(CannotMove::NoWay(_))));
}

/// Requested both while the first hand-over is in progress and while the old SA drains.
#[test]
fn a_hand_over_that_is_asked_for_while_another_drains_is_done_after_it() {
    for pause in [0, 50, 500, 2000] {
        let mut world = connected(without_snoop(), 1);
        assert_eq!(hand_over(&mut world), Ok(()));
        let mut sent = stream(&mut world, &ENDS, 0, Duration::from_millis(pause));
        assert_eq!(hand_over(&mut world), Ok(()));
        sent += stream(&mut world, &ENDS, sent, Duration::from_secs(40));
        assert_eq!(handed_over(&world, MOBILE), 2, "after {pause} ms");
        lost_nothing(&mut world, sent);
        never_down(&world);
    }
}
