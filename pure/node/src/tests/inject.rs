//! A licensed node that may inject stands in for a silent mobile node, only as long and as far as
//! it is allowed to.

use super::datagram;
use super::world::{
    GATEWAY, Hosts, LICENSED, MOBILE, NAMES, Policies, World, licence, licence_to, license,
    one_end_alone_gives_nothing,
};
use crate::{Patience, Rekey};
use esp::DropReason;
use model::{Licence, Mode, Right};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::zoned::Injected;
use wire::{ip, tcp};

const SERVER: &str = "10.8.0.1:80";
const CLIENT: &str = "10.1.0.2:40000";

fn injectors() -> Vec<Licence> {
    licence_to(Right::Inject)
}

fn policies(licences: Vec<Licence>) -> Policies {
    Policies {
        mobile: licences.clone(),
        gateway: licences,
        stand_in: Some(Patience {
            after: Duration::from_secs(2),
            limit: Duration::from_secs(60),
        }),
        ..Policies::default()
    }
}

/// Sends one segment each way: the server has then sent up to 2, the client up to 1.
fn begin(world: &mut World) {
    world.send(MOBILE, &datagram::tcp(CLIENT, SERVER, 1, 1, b""));
    world.send(GATEWAY, &datagram::tcp(SERVER, CLIENT, 1, 1, b"x"));
    world.run_for(Duration::from_millis(50));
    world.send(MOBILE, &datagram::tcp(CLIENT, SERVER, 1, 2, b""));
    world.run_for(Duration::from_millis(50));
}

/// Makes the mobile node unreachable.
fn outage(world: &mut World) {
    world.wireless.lost = 1000;
}

/// Sends a keepalive probe of the server's kernel. Returns the answers within some seconds.
fn probe(world: &mut World, seconds: u64) -> Vec<(u32, u16)> {
    let before = world.delivered[GATEWAY].len();
    world.send(GATEWAY, &datagram::tcp(SERVER, CLIENT, 1, 1, b""));
    world.run_for(Duration::from_secs(seconds));
    let heard = &world.delivered[GATEWAY][before..];
    let numbers = |datagram: &Vec<u8>| {
        let header = ip::Header::parse(datagram).unwrap();
        assert_eq!(header.flow().source_port, 40_000);
        let tcp = tcp::Header::parse(header.payload()).unwrap();
        (tcp.ack.0, tcp.window)
    };
    heard.iter().map(numbers).collect()
}

/// Returns SPI, grant and counter of all packets injected by the node. Each combination occurs
/// once.
fn numbers(world: &World) -> BTreeSet<(u32, u16, u32)> {
    let mut numbers = BTreeSet::new();
    for made in world
        .resent
        .iter()
        .filter_map(|packet| Injected::read(packet))
    {
        let number = (made.spi.0, made.grant, made.counter);
        assert!(numbers.insert(number), "{made:?} twice");
    }
    numbers
}

#[test]
fn a_silent_mobile_node_is_stood_in_for() {
    for mode in [Mode::Tunnel, Mode::Beet] {
        let mut world = World::connected(Policies {
            mode,
            ..policies(injectors())
        });
        begin(&mut world);
        outage(&mut world);
        for _ in 0..3 {
            assert_eq!(probe(&mut world, 5), [(2, 0xffff)], "{mode:?}");
        }
        let transit = world.nodes[LICENSED].transit_counters();
        assert_eq!((transit.injected, transit.uninjected), (3, 0));
        assert_eq!(world.nodes[GATEWAY].esp_counters().injected, 3);
        assert!(world.nodes[LICENSED].held_grants()[0].injects);
        assert_eq!(numbers(&world).len(), 3);
    }
}

#[test]
fn data_under_way_waits_with_a_closed_window() {
    let mut world = World::connected(policies(injectors()));
    begin(&mut world);
    outage(&mut world);
    for _ in 0..2 {
        world.send(GATEWAY, &datagram::tcp(SERVER, CLIENT, 2, 1, b"y"));
        world.run_for(Duration::from_millis(400));
    }
    world.run_for(Duration::from_secs(3));
    assert_eq!(probe(&mut world, 1), [(2, 0xffff)]);
    let windows: Vec<_> = world.delivered[GATEWAY].iter().rev().take(2).collect();
    assert_eq!(windows[1][34..36], [0, 0], "before that it was closed");
}

/// Same node and configuration: only the right is missing.
#[test]
fn a_node_that_may_only_read_stands_in_for_nobody() {
    let mut world = World::connected(policies(vec![licence(NAMES[LICENSED], 1)]));
    begin(&mut world);
    outage(&mut world);
    assert_eq!(probe(&mut world, 5), []);
    let transit = world.nodes[LICENSED].transit_counters();
    assert_eq!((transit.injected, transit.uninjected), (0, 1));
    assert_eq!(numbers(&world).len(), 0);
}

// Refuses: inject-right
#[test]
fn a_right_that_only_one_end_gives_is_given_by_nobody() {
    one_end_alone_gives_nothing(&injectors()[0], policies);
}

/// Invariant 5: injected packets are refused as soon as the endpoint knows that the licence has
/// ended.
#[test]
fn a_licence_to_inject_that_is_taken_back_ends_at_once() {
    let mut world = World::connected(policies(injectors()));
    begin(&mut world);
    outage(&mut world);
    assert_eq!(probe(&mut world, 5).len(), 1);
    license(&mut world, GATEWAY, false);
    assert_eq!(probe(&mut world, 5), []);
    let dropped = &world.dropped[GATEWAY];
    let reasons = [DropReason::InjectionTakenBack];
    assert!(
        dropped.iter().all(|why| reasons.contains(why)),
        "{dropped:?}"
    );
}

/// Invariant 1: a node that was killed restarts its counter, under a new grant.
// Recovers: inject-right
// Weakness: S25
#[test]
fn no_number_comes_twice_over_restarts_of_the_node_renewals_and_rekeys() {
    let mut world = World::connected(policies(injectors()));
    for round in 0..6 {
        begin(&mut world);
        outage(&mut world);
        assert_eq!(probe(&mut world, 5).len(), 1, "{round}");
        assert_eq!(probe(&mut world, 5).len(), 1, "{round}");
        world.wireless.lost = 0;
        match round % 3 {
            0 => {
                world.restart(LICENSED);
                world.run_for(Duration::from_secs(600));
            }
            1 => world.run_for(Duration::from_secs(1900)),
            _ => {
                world.command(MOBILE, |node, now| {
                    node.rekey("gw", Rekey::Children, now).unwrap()
                });
                world.run_for(Duration::from_secs(5));
            }
        }
    }
    assert_eq!(numbers(&world).len(), 12);
}

/// A gateway detects a dead peer as early as without a stand-in.
// Recovers: inject-right
// Weakness: S24
// Answers: inject-hiding
#[test]
fn a_dead_peer_is_found_dead_though_it_is_stood_in_for() {
    let found = |licences| {
        let mut world = World::connected(Policies {
            stand_in: Some(Patience {
                after: Duration::from_secs(2),
                limit: Duration::from_secs(86_400),
            }),
            ..policies(licences)
        });
        begin(&mut world);
        world.off[MOBILE] = true;
        let since = world.now;
        let mut answers = 0;
        while !world.nodes[GATEWAY].peers()[0].children.is_empty() {
            answers += probe(&mut world, 5).len();
            assert!(world.now.since(since) < Duration::from_secs(3600));
        }
        (world.now.since(since), answers)
    };
    let (with, answers) = found(injectors());
    let (without, none) = found(vec![licence(NAMES[LICENSED], 1)]);
    assert!(answers > 5 && none == 0, "{answers} {none}");
    assert_eq!(with, without);
}
