//! Several paths that carry packets at the same time: what is lost when one of them fails.

use super::world::{
    Flight, GATEWAY, Hosts, LICENSED, MOBILE, NAMES, Policies, SECOND, World, address,
};
use crate::{Event, Rekey, Stance, Way};
use model::Path;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::esp::Datagram;
use wire::ip::Header;

const FLOWS: u16 = 16;

/// Address of a third party.
const THIRD: &str = "192.0.2.66";

const MS: Duration = Duration::from_millis(1);

fn policies(paths: u8) -> Policies {
    Policies {
        mobile: Vec::new(),
        gateway: Vec::new(),
        stance: Stance::Refuse,
        snoop: false,
        paths,
        ..Policies::default()
    }
}

fn second() -> IpAddr {
    SECOND.parse().unwrap()
}

/// Has packets leave from these addresses of the mobile node, the best first.
fn ways(world: &mut World, locals: &[IpAddr]) {
    let remote = address(GATEWAY);
    let ways: Vec<_> = locals
        .iter()
        .map(|local| Way {
            local: *local,
            remote,
        })
        .collect();
    world.command(MOBILE, |node, now| node.handle_ways(&ways, now));
}

fn both(world: &mut World) {
    ways(world, &[address(MOBILE), second()]);
}

/// Creates a world in which the tunnel has both paths, if `paths` allows them.
fn connected(paths: u8) -> World {
    let mut world = World::new(policies(paths));
    world.off[LICENSED] = true;
    world.run_for(Duration::from_secs(1));
    both(&mut world);
    world.run_for(Duration::from_secs(5));
    let expected = if paths > 1 { 2 } else { 0 };
    for who in [MOBILE, GATEWAY] {
        assert_eq!(live(&world, who).len(), expected, "{:?}", world.events[who]);
    }
    world
}

/// Returns the remote or local addresses of the mobile node on the live paths of a host, each with
/// true if it is used.
fn live(world: &World, who: usize) -> Vec<(IpAddr, bool)> {
    let paths = world.nodes[who].paths();
    let live = paths.iter().flat_map(|tunnel| &tunnel.live);
    live.map(|live| match who {
        MOBILE => (live.path.local.ip(), live.works),
        _ => (live.path.remote.ip(), live.works),
    })
    .collect()
}

/// Sends a packet of each flow in both directions every two milliseconds.
fn stream(world: &mut World, numbers: std::ops::Range<u32>) {
    for number in numbers {
        for who in [MOBILE, GATEWAY] {
            for flow in 0..FLOWS {
                world.flow(who, 40_000 + flow, 4 * number);
            }
        }
        world.run_for(2 * MS);
    }
}

/// Returns the numbers that are missing at a host, each once.
fn missing(world: &World, who: usize, sent: u32) -> BTreeSet<u32> {
    let mut missing = BTreeSet::new();
    let mut counts = vec![0_u16; sent as usize];
    for octets in &world.delivered[who] {
        let header = Header::parse(octets).unwrap();
        let number = header.payload()[4..8].try_into().unwrap();
        counts[u32::from_be_bytes(number) as usize / 4] += 1;
    }
    let short = (0..).zip(counts).filter(|(_, count)| *count != FLOWS);
    missing.extend(short.map(|(number, _)| number));
    missing
}

fn sent(world: &World, who: usize) -> Vec<u64> {
    let peers = world.nodes[who].peers();
    let children = peers.iter().flat_map(|peer| &peer.children);
    children.map(|child| child.sent.packets).collect()
}

#[test]
fn flows_are_spread_over_both_paths_and_both_directions_of_a_flow_take_the_same() {
    let mut world = connected(2);
    stream(&mut world, 0..200);
    world.run_for(Duration::from_secs(1));
    for who in [MOBILE, GATEWAY] {
        assert!(missing(&world, who, 200).is_empty(), "{}", NAMES[who]);
        assert!(
            sent(&world, who).iter().all(|sent| *sent > 0),
            "{:?}",
            sent(&world, who)
        );
    }
    assert_eq!(sent(&world, MOBILE), sent(&world, GATEWAY));
    assert!(live(&world, MOBILE).iter().all(|(_, works)| *works));
}

/// The route of one path is gone: its flows take the other within the same moment.
#[test]
fn a_path_that_packets_cannot_leave_on_loses_what_was_under_way() {
    for gone in [second(), address(MOBILE)] {
        let mut world = connected(2);
        stream(&mut world, 0..100);
        let left = if gone == second() {
            address(MOBILE)
        } else {
            second()
        };
        world.cut = vec![gone];
        ways(&mut world, &[left]);
        stream(&mut world, 100..600);
        world.run_for(Duration::from_secs(10));
        let lost = missing(&world, GATEWAY, 600);
        assert!(lost.is_empty(), "{gone}: {lost:?} to the gateway");
        // The gateway learns of it from the next message.
        let lost = missing(&world, MOBILE, 600);
        assert!(
            lost.iter().all(|number| (99..160).contains(number)),
            "{gone}: {lost:?}"
        );
        assert!(lost.len() < 40, "{gone}: {lost:?}");
        let paths = live(&world, MOBILE);
        assert_eq!(paths, [(left, true)], "{gone}");
        assert_eq!(live(&world, GATEWAY), paths);
    }
}

/// Packets vanish on one path, and nobody says so.
#[test]
fn a_silent_path_is_left_after_a_second_and_used_again_after_two_of_answers() {
    for gone in [second(), address(MOBILE)] {
        let mut world = connected(2);
        stream(&mut world, 0..100);
        world.cut = vec![gone];
        // Two seconds.
        stream(&mut world, 100..1100);
        let before = world.delivered[MOBILE]
            .len()
            .min(world.delivered[GATEWAY].len());
        stream(&mut world, 1100..1600);
        world.run_for(MS * 500);
        for who in [MOBILE, GATEWAY] {
            let lost = missing(&world, who, 1600);
            assert!(
                lost.range(900..).next().is_none(),
                "{gone} {}: {lost:?}",
                NAMES[who]
            );
            assert!(!lost.is_empty(), "the path was in use");
        }
        assert!(world.delivered[MOBILE].len() > before);
        world.cut.clear();
        stream(&mut world, 1600..2100);
        stream(&mut world, 2100..6000);
        world.run_for(Duration::from_secs(1));
        for who in [MOBILE, GATEWAY] {
            let lost = missing(&world, who, 6000);
            assert!(
                lost.range(1100..).next().is_none(),
                "{gone} {}: {lost:?}",
                NAMES[who]
            );
        }
        let told = |event: &Event| matches!(event, Event::LivePath { works: false, .. });
        assert!(world.events[MOBILE].iter().any(told));
    }
}

/// Flows to the gateway leave a path with a weak signal until that is good again, and nothing is
/// lost. The gateway goes on as before.
#[test]
fn a_path_with_a_weak_signal_is_avoided_by_the_end_that_has_it() {
    let mut world = connected(2);
    let avoided = |world: &World| -> Vec<bool> {
        let paths = world.nodes[MOBILE].paths();
        paths[0].live.iter().map(|live| live.is_avoided).collect()
    };
    let report = |world: &mut World, percent| {
        let locals = [second()];
        world.command(MOBILE, |node, now| {
            node.handle_signal(&locals, percent, None, now);
        });
    };
    stream(&mut world, 0..100);
    assert_eq!(avoided(&world), [false, false]);
    report(&mut world, 10);
    assert_eq!(avoided(&world), [false, true]);
    let before = [MOBILE, GATEWAY].map(|who| sent(&world, who));
    stream(&mut world, 100..200);
    let after = [MOBILE, GATEWAY].map(|who| sent(&world, who));
    let least = |who: usize| {
        let both = before[who].iter().zip(&after[who]);
        both.map(|(before, after)| after - before).min()
    };
    // Of 1,600 packets. The mobile node answers pings of the gateway there.
    assert!(least(0) < Some(20), "{before:?} {after:?}");
    assert!(least(1) > Some(90), "{before:?} {after:?}");
    report(&mut world, 80);
    assert_eq!(avoided(&world), [false, false]);
    stream(&mut world, 200..300);
    world.run_for(Duration::from_secs(1));
    for who in [MOBILE, GATEWAY] {
        assert!(missing(&world, who, 300).is_empty(), "{}", NAMES[who]);
    }
}

/// The same with one path: everything is lost until the tunnel has moved.
#[test]
fn with_one_path_more_is_lost() {
    let lost = |paths| {
        let mut world = connected(paths);
        stream(&mut world, 0..100);
        world.cut = vec![address(MOBILE)];
        stream(&mut world, 100..3000);
        world.run_for(Duration::from_secs(20));
        missing(&world, GATEWAY, 3000).len()
    };
    let (two, one) = (lost(2), lost(1));
    assert!(2 * two < one, "{two} with two paths, {one} with one");
}

#[test]
fn a_path_that_comes_back_is_added_again_after_a_pause_that_grows() {
    let mut world = connected(2);
    let mut pauses = Vec::new();
    for _ in 0..3 {
        ways(&mut world, &[address(MOBILE)]);
        world.run_for(Duration::from_secs(1));
        assert_eq!(live(&world, MOBILE).len(), 1);
        both(&mut world);
        let begin = world.now;
        assert!(
            world.run_until(Duration::from_secs(60), |world| live(world, MOBILE).len()
                == 2)
        );
        pauses.push((world.now - begin).as_secs());
    }
    assert!(
        pauses.is_sorted() && pauses[0] >= 2 && pauses[2] >= 8,
        "{pauses:?}"
    );
}

#[test]
fn rekeys_and_proofs_lose_nothing_on_any_path() {
    let mut world = connected(2);
    let mut count = 0;
    let mut go_on = |world: &mut World, more| {
        stream(world, count..count + more);
        count += more;
    };
    go_on(&mut world, 100);
    world
        .command(MOBILE, |node, now| node.rekey("gw", Rekey::Children, now))
        .unwrap();
    go_on(&mut world, 500);
    world
        .command(GATEWAY, |node, now| node.rekey("alice", Rekey::Ike, now))
        .unwrap();
    go_on(&mut world, 500);
    world
        .command(GATEWAY, |node, now| {
            node.rekey("alice", Rekey::Children, now)
        })
        .unwrap();
    go_on(&mut world, 500);
    world
        .command(MOBILE, |node, now| node.reauthenticate("gw", now))
        .unwrap();
    go_on(&mut world, 500);
    // The driver is asked for the ways of the new IKE SA.
    both(&mut world);
    go_on(&mut world, 1500);
    world.run_for(Duration::from_secs(30));
    for who in [MOBILE, GATEWAY] {
        let lost = missing(&world, who, 3600);
        assert!(lost.is_empty(), "{}: {lost:?}", NAMES[who]);
        assert_eq!(live(&world, who).len(), 2, "{}", NAMES[who]);
    }
}

/// A third party with an address of its own. It hands packets of the second path to the gateway
/// before they arrive, and to the mobile node what the gateway sends to the third party.
fn relay(world: &mut World, time: Duration) -> usize {
    let [gateway, second, third] =
        [address(GATEWAY), second(), THIRD.parse().unwrap()].map(|ip| SocketAddr::new(ip, 4500));
    let (end, mut packets) = (world.now + time, 0);
    while world.now < end {
        for flight in world.past.drain(..).collect::<Vec<_>>() {
            let Flight { path, payload, .. } = &flight;
            if path.remote == third {
                packets += usize::from(is_esp(payload));
                world.hand_over(MOBILE, Path::udp(second, gateway), payload);
            } else if path.local == second {
                world.hand_over(GATEWAY, Path::udp(gateway, third), payload);
            }
        }
        world.run_for(MS);
    }
    packets
}

fn is_esp(payload: &[u8]) -> bool {
    matches!(Datagram::parse(payload), Datagram::Esp(_))
}

/// The third party is faster than the network, and answers for the mobile node.
// Weakness: 201
// Weakness: M7
#[test]
fn a_third_party_that_is_faster_than_a_path_does_not_take_it() {
    let mut world = connected(2);
    let mut packets = 0;
    for number in 0..600 {
        stream(&mut world, number..number + 1);
        packets += relay(&mut world, 10 * MS);
    }
    packets += relay(&mut world, Duration::from_secs(1));
    assert_eq!(packets, 0);
    for who in [MOBILE, GATEWAY] {
        assert!(missing(&world, who, 600).is_empty(), "{}", NAMES[who]);
        assert!(live(&world, who).contains(&(second(), true)));
    }
}

/// An attacker that is not on the path has old packets at most, and no key. The negative control: a
/// packet that has not arrived yet leads to a question.
// Weakness: M3
#[test]
fn packets_that_come_again_or_are_forged_from_elsewhere_ask_nobody() {
    let mut world = connected(2);
    let gateway = SocketAddr::new(address(GATEWAY), 4500);
    let from_third = Path::udp(gateway, SocketAddr::new(THIRD.parse().unwrap(), 4500));
    let newest = |world: &World| {
        let mut past = world.past.iter().rev();
        let found =
            past.find(|flight| flight.path.local.ip() == second() && is_esp(&flight.payload));
        found.map(|flight| flight.payload.clone())
    };
    let is_asked = |world: &World| {
        let mut past = world.past.iter();
        past.any(|flight| flight.path.remote == from_third.remote)
    };
    for number in 0..100 {
        stream(&mut world, number..number + 1);
        let old = newest(&world).expect("a flow takes the path");
        world.run_for(20 * MS);
        let mut forged = old.clone();
        forged[7] = forged[7].wrapping_add(100);
        for payload in [&old, &forged] {
            world.hand_over(GATEWAY, from_third, payload);
        }
        world.run_for(20 * MS);
        assert!(!is_asked(&world), "{number}");
        world.past.clear();
    }
    stream(&mut world, 100..101);
    for flow in 0..FLOWS {
        world.flow(MOBILE, 40_000 + flow, 404);
    }
    let fresh = newest(&world).unwrap();
    world.hand_over(GATEWAY, from_third, &fresh);
    world.run_for(Duration::from_secs(1));
    assert!(is_asked(&world));
}

/// The address of the path may be somebody else's: the peer has keys, and no answer comes from
/// there.
// Weakness: M1
#[test]
fn no_packet_goes_to_an_address_that_has_not_answered() {
    let mut world = World::new(policies(2));
    world.off[LICENSED] = true;
    world.run_for(Duration::from_secs(1));
    world.mute = Some(second());
    both(&mut world);
    for number in 0..2000 {
        for flow in 0..FLOWS {
            world.flow(MOBILE, 40_000 + flow, 4 * number);
            world.flow(GATEWAY, 40_000 + flow, 4 * number);
        }
        world.run_for(5 * MS);
        let there = |flight: &Flight| flight.path.remote.ip() == second();
        let mut past = world.past.iter().filter(|flight| there(flight));
        let is_esp = |payload: &[u8]| matches!(Datagram::parse(payload), Datagram::Esp(_));
        assert!(!past.any(|flight| is_esp(&flight.payload)), "{number}");
        world.past.clear();
    }
}

#[test]
fn paths_hold_over_hops_that_lose_and_reorder() {
    for seed in 0..4 {
        let mut world = World::seeded(policies(2), seed);
        world.off[LICENSED] = true;
        world.run_for(Duration::from_secs(1));
        world.wireless = world.wireless.losing(50).delaying(100);
        both(&mut world);
        world.run_for(Duration::from_secs(20));
        assert_eq!(
            live(&world, MOBILE).len(),
            2,
            "{seed}: {:?}",
            world.events[MOBILE]
        );
        stream(&mut world, 0..3000);
        world.wireless = super::world::Hop::default();
        world.run_for(Duration::from_secs(60));
        for who in [MOBILE, GATEWAY] {
            let paths = live(&world, who);
            assert!(
                paths.len() == 2 && paths.iter().all(|(_, works)| *works),
                "{seed} {paths:?}"
            );
        }
    }
}

#[test]
fn a_path_that_is_silent_for_long_is_removed_and_added_again_when_it_answers() {
    let mut world = connected(2);
    world.cut = vec![second()];
    world.run_for(Duration::from_secs(60));
    for who in [MOBILE, GATEWAY] {
        assert_eq!(live(&world, who).len(), 1, "{}", NAMES[who]);
        let down = |event: &Event| matches!(event, Event::PeerDown { .. });
        assert!(!world.events[who].iter().any(down));
    }
    // Attempts on the dead path hold nothing up.
    world.run_for(Duration::from_secs(300));
    stream(&mut world, 0..100);
    world.run_for(Duration::from_secs(1));
    assert!(missing(&world, GATEWAY, 100).is_empty());
    world.cut.clear();
    let both = |world: &World| live(world, MOBILE).len() == 2 && live(world, GATEWAY).len() == 2;
    assert!(world.run_until(Duration::from_secs(120), both));
}

/// A gateway with bad will lists addresses of others as its own.
// Weakness: M1
// Weakness: M5
#[test]
fn a_peer_that_lists_addresses_of_others_has_few_of_them_asked() {
    let mut world = World::new(policies(4));
    world.off[LICENSED] = true;
    let victims: Vec<IpAddr> = (100..120).map(|n| [203, 0, 113, n].into()).collect();
    let listed = victims.clone();
    world.reconfigure(GATEWAY, |config| config.addresses = listed);
    world.run_for(Duration::from_secs(1));
    let local = address(MOBILE);
    let remotes = std::iter::once(address(GATEWAY)).chain(victims.iter().copied());
    let ways: Vec<_> = remotes.map(|remote| Way { local, remote }).collect();
    world.command(MOBILE, |node, now| node.handle_ways(&ways, now));
    let (mut asked, mut packets) = (0, 0);
    for number in 0..600 {
        for flow in 0..FLOWS {
            world.flow(MOBILE, 40_000 + flow, 4 * number);
        }
        world.run_for(100 * MS);
        let there = |flight: &&Flight| victims.contains(&flight.path.remote.ip());
        for flight in world.past.iter().filter(there) {
            match Datagram::parse(&flight.payload) {
                Datagram::Esp(_) => packets += 1,
                _ => asked += 1,
            }
        }
        world.past.clear();
    }
    assert_eq!(packets, 0);
    assert!((1..90).contains(&asked), "{asked} questions in a minute");
}
