//! Pings through a tunnel, and where they are lost by the counters of both ends.

use super::world::{GATEWAY, Hop, Hosts, LICENSED, MOBILE, Policies, World};
use crate::{CannotPing, NotPinged, PingId, PingReport, Rekey};
use model::Sizes;
use std::num::NonZeroU16;
use std::time::Duration;
use wire::probe::Probe;

const SECOND: Duration = Duration::from_secs(1);

/// A tunnel with zones, and one without.
fn tunnels() -> [World; 2] {
    let plain = Policies {
        stance: crate::Stance::Refuse,
        ..Policies::default()
    };
    [
        World::connected(Policies::default()),
        World::connected(plain),
    ]
}

fn begin(world: &mut World, count: u16) -> Result<PingId, CannotPing> {
    let count = NonZeroU16::new(count).unwrap();
    world.command(MOBILE, |node, now| node.ping("gw", count, now))
}

/// Pings the gateway from the mobile node.
fn ping(world: &mut World, count: u16) -> PingReport {
    let id = begin(world, count).unwrap();
    for _ in 0..600 {
        world.run_for(SECOND / 10);
        if let Some(report) = world.nodes[MOBILE].take_ping(id) {
            return report;
        }
    }
    panic!("the ping does not end");
}

/// Returns pings that were sent, that arrived, that were answered, and answers that arrived.
fn counts(report: &PingReport) -> (u64, Option<u64>, Option<u64>, u64) {
    let sent = report.pings - report.not_sent;
    (sent, report.received, report.answered, report.returned)
}

#[test]
fn where_nothing_is_lost_all_pings_return_and_the_peer_is_asked_once() {
    for mut world in tunnels() {
        let before = world.ike.len();
        let report = ping(&mut world, 4);
        assert_eq!(counts(&report), (4, None, None, 4));
        assert!(report.is_ours && report.why_not_sent.is_none());
        let times = report.round_trips.unwrap();
        assert!(times.least <= times.mean && times.mean <= times.most);
        assert_eq!(world.ike.len() - before, 2, "a question and its answer");
    }
}

#[test]
fn counters_tell_on_which_way_pings_are_lost() {
    for mut world in tunnels() {
        world.esp_lost[MOBILE] = true;
        assert_eq!(counts(&ping(&mut world, 3)), (3, Some(0), Some(0), 0));
        world.esp_lost = [false; 3];
        world.esp_lost[GATEWAY] = true;
        assert_eq!(counts(&ping(&mut world, 3)), (3, Some(3), Some(3), 0));
        // What was lost before is not told again.
        world.esp_lost = [false; 3];
        assert_eq!(counts(&ping(&mut world, 3)), (3, None, None, 3));
    }
}

#[test]
fn a_peer_that_hides_lengths_receives_and_withholds() {
    for mut world in tunnels() {
        world.reconfigure(GATEWAY, |config| {
            config.peers[0].sizes = Some(Sizes::one(1000))
        });
        world.run_for(SECOND);
        let report = ping(&mut world, 2);
        assert_eq!(counts(&report), (2, Some(2), Some(0), 0));
        assert_eq!(report.withheld, Some(2));
    }
}

#[test]
fn an_end_that_hides_lengths_sends_no_pings() {
    let mut world = World::connected(Policies::default());
    world.reconfigure(MOBILE, |config| {
        config.peers[0].sizes = Some(Sizes::one(1000))
    });
    world.run_for(SECOND);
    let before = world.sealed.len();
    let report = ping(&mut world, 2);
    assert_eq!((report.pings, report.not_sent), (2, 2));
    assert_eq!(report.why_not_sent, Some(NotPinged::Hidden));
    assert_eq!(world.sealed.len(), before);
}

/// Losses, repetitions and delays of a real network, in both directions: the numbers add up.
// Recovers: ping
#[test]
fn over_a_lossy_network_each_ping_is_lost_at_one_place() {
    let (mut lost, mut told) = (0, 0);
    for seed in 0..10 {
        let mut world = World::seeded(Policies::default(), seed);
        world.run_for(10 * SECOND);
        let hop = Hop::PERFECT.losing(150).delaying(50);
        (world.wireless, world.wired) = (hop, hop);
        let report = ping(&mut world, 10);
        let (sent, received, answered, returned) = counts(&report);
        assert_eq!(sent, 10);
        lost += sent - returned;
        if let Some((received, answered)) = received.zip(answered) {
            assert!(returned <= answered && answered <= received && received <= sent);
            told += 1;
        }
    }
    assert!(lost > 10 && told > 5, "{lost}, {told}");
}

#[test]
fn a_path_that_carries_nothing_tells_that_ike_does_not_pass_either() {
    let mut world = World::connected(Policies::default());
    world.deaf[GATEWAY] = true;
    let report = ping(&mut world, 2);
    assert_eq!(counts(&report), (2, None, None, 0));
    assert_eq!(report.ike, None);
    assert!(world.tunnel_is_up());
}

#[test]
fn a_rekey_in_between_loses_no_ping() {
    for what in [Rekey::Children, Rekey::Ike] {
        let mut world = World::connected(Policies::default());
        let id = begin(&mut world, 20).unwrap();
        world.run_for(SECOND);
        let rekeyed = world.command(MOBILE, |node, now| node.rekey("gw", what, now));
        assert_eq!(rekeyed, Ok(()));
        world.run_for(20 * SECOND);
        let report = world.nodes[MOBILE].take_ping(id).unwrap();
        assert_eq!(report.returned, 20, "{report:?}");
    }
}

// Refuses: ping
#[test]
fn a_ping_needs_a_tunnel_and_the_end_of_the_one_before() {
    let mut world = World::connected(Policies::default());
    let one = NonZeroU16::MIN;
    let refused = |world: &mut World, who: usize, peer: &str| {
        let refused = world.command(who, |node, now| node.ping(peer, one, now));
        refused.unwrap_err()
    };
    assert_eq!(refused(&mut world, MOBILE, "home"), CannotPing::UnknownPeer);
    assert_eq!(refused(&mut world, GATEWAY, "fa"), CannotPing::NoChild);
    assert_eq!(refused(&mut world, LICENSED, "gw"), CannotPing::NoChild);
    let id = begin(&mut world, 2).unwrap();
    assert_eq!(begin(&mut world, 2), Err(CannotPing::UnderWay));
    world.run_for(10 * SECOND);
    assert_eq!(world.nodes[MOBILE].take_ping(id).unwrap().returned, 2);
    assert_eq!(world.nodes[MOBILE].take_ping(id), None);
    assert_eq!(ping(&mut world, 2).returned, 2);
    world
        .command(MOBILE, |node, now| node.down("gw", now))
        .unwrap();
    assert_eq!(refused(&mut world, MOBILE, "gw"), CannotPing::NotUp);
}

/// The peer answers eight in a second, and what it does not answer would be taken for a loss.
#[test]
fn commands_one_after_the_other_ping_no_faster_than_one() {
    let mut world = World::connected(Policies::default());
    for _ in 0..40 {
        assert_eq!(ping(&mut world, 1).returned, 1);
    }
}

#[test]
fn a_tunnel_that_goes_down_ends_the_ping() {
    let mut world = World::connected(Policies::default());
    let id = begin(&mut world, 100).unwrap();
    world.run_for(SECOND);
    world
        .command(MOBILE, |node, now| node.down("gw", now))
        .unwrap();
    world.run_for(SECOND);
    let report = world.nodes[MOBILE].take_ping(id).unwrap();
    assert!((1..10).contains(&report.pings), "{report:?}");
}

/// A peer with the keys sends pings in a flood, and answers that nobody has asked for.
#[test]
fn a_peer_that_floods_pings_gets_few_answers() {
    let mut world = World::connected(Policies::default());
    let children = world.nodes[GATEWAY].own.tunnels.children();
    let id = children.iter().next().unwrap().0;
    let from = world.sealed.len();
    for number in 0..100 {
        for ping in [Probe::ping(number), Probe::ping(number).answer()] {
            let mut packet = esp::Packet::with_capacity(2000);
            let path = world.nodes[GATEWAY].plane.probe(id, ping, &mut packet);
            let path = path.unwrap().reversed();
            world.hand_over(MOBILE, path, packet.octets());
        }
    }
    world.run_for(SECOND / 2);
    let answers = world.sealed[from..]
        .iter()
        .filter(|(who, _)| *who == MOBILE);
    assert_eq!(answers.count(), 8);
}
