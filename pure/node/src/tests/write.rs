//! A licensed node that may write lowers the windows that it sees. No node writes twice under one
//! key with one number.

use super::datagram;
use super::world::{
    GATEWAY, Hosts, LICENSED, MOBILE, NAMES, Policies, World, licence, licence_to, license,
    one_end_alone_gives_nothing,
};
use crate::Rekey;
use model::{Licence, Mode, Right, Spi};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::checksum;
use wire::tcp::Flags;
use wire::zoned::Overlay;

const WINDOW: u32 = 1 << 16;
const SERVER: &str = "10.8.0.1:80";
const CLIENT: &str = "10.1.0.2:40000";
/// The TCP option for window scale 7, and the end of the options.
const SCALE: &[u8] = &[3, 3, 7, 0];

fn writers() -> Vec<Licence> {
    licence_to(Right::Write)
}

fn policies(licences: Vec<Licence>) -> Policies {
    Policies {
        mobile: licences.clone(),
        gateway: licences,
        window: Some(WINDOW),
        ..Policies::default()
    }
}

/// Returns a segment without payload and with the largest window.
fn segment(who: usize, flags: Flags, options: &[u8]) -> Vec<u8> {
    let (source, destination) = match who {
        MOBILE => (CLIENT, SERVER),
        _ => (SERVER, CLIENT),
    };
    let mut datagram = datagram::tcp(source, destination, 1, 1, options);
    datagram[32] = (5 + options.len() as u8 / 4) << 4;
    datagram[33] = flags.0;
    datagram[36..38].fill(0);
    assert!(checksum::restore(&mut datagram));
    datagram
}

/// Returns the window of the last datagram delivered to one end.
fn heard(world: &World, who: usize) -> u16 {
    let datagram = world.delivered[who].last().unwrap();
    let sum = wire::ip::Header::parse(datagram).unwrap();
    let right = checksum::of_transport(&sum).unwrap().to_be_bytes();
    assert_eq!(datagram[36..38], right, "the checksum followed");
    u16::from_be_bytes([datagram[34], datagram[35]])
}

/// Sends a segment and returns the window that arrives.
fn say(world: &mut World, who: usize, flags: Flags, options: &[u8]) -> u16 {
    let other = if who == MOBILE { GATEWAY } else { MOBILE };
    world.send(who, &segment(who, flags, options));
    world.run_for(Duration::from_millis(50));
    heard(world, other)
}

fn begin(world: &mut World) {
    assert_eq!(say(world, MOBILE, Flags::SYN, SCALE), 0xffff);
    assert_eq!(
        say(world, GATEWAY, Flags::SYN.union(Flags::ACK), SCALE),
        0xffff
    );
}

/// Returns grant and counter of all overlays that left the node, with their SPIs. Each combination
/// occurs once.
fn numbers(world: &World) -> BTreeSet<(u32, u64)> {
    let mut numbers = BTreeSet::new();
    for packet in &world.resent {
        if let Some((_, overlay)) = Overlay::read(packet).unwrap() {
            let spi = u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]);
            assert!(numbers.insert((spi, overlay.number())), "{overlay:?} twice");
        }
    }
    numbers
}

#[test]
fn windows_are_lowered_in_both_directions_as_their_ends_scale_them() {
    let mut world = World::connected(policies(writers()));
    begin(&mut world);
    for who in [MOBILE, GATEWAY] {
        assert_eq!(say(&mut world, who, Flags::ACK, &[]), (WINDOW >> 7) as u16);
    }
    let transit = *world.nodes[LICENSED].transit_counters();
    assert_eq!(
        (transit.written, transit.unwritten, transit.unscaled),
        (2, 0, 0)
    );
    for who in [MOBILE, GATEWAY] {
        assert_eq!(world.nodes[who].esp_counters().written, 1);
    }
    assert_eq!(numbers(&world).len(), 2);
    assert!(world.nodes[LICENSED].held_grants()[0].writes);
}

#[test]
fn in_beet_mode_windows_are_lowered_in_both_directions_too() {
    let mut world = World::connected(Policies {
        mode: Mode::Beet,
        ..policies(writers())
    });
    begin(&mut world);
    for who in [MOBILE, GATEWAY] {
        assert_eq!(say(&mut world, who, Flags::ACK, &[]), (WINDOW >> 7) as u16);
    }
    assert_eq!(world.nodes[LICENSED].transit_counters().unscaled, 0);
}

#[test]
fn a_connection_that_does_not_scale_is_lowered_below_what_it_can_say() {
    let mut world = World::connected(Policies {
        window: Some(20_000),
        ..policies(writers())
    });
    assert_eq!(say(&mut world, MOBILE, Flags::SYN, &[]), 20_000);
    assert_eq!(say(&mut world, MOBILE, Flags::ACK, &[]), 20_000);
}

/// Same node and configuration: only the right is missing.
#[test]
fn a_node_that_may_only_read_lowers_nothing() {
    let mut world = World::connected(policies(vec![licence(NAMES[LICENSED], 1)]));
    begin(&mut world);
    assert_eq!(say(&mut world, MOBILE, Flags::ACK, &[]), 0xffff);
    let transit = world.nodes[LICENSED].transit_counters();
    assert_eq!((transit.written, transit.unwritten), (0, 1));
    assert!(world.resent.is_empty());
}

#[test]
fn a_right_that_only_one_end_gives_is_given_by_nobody() {
    one_end_alone_gives_nothing(&writers()[0], policies);
}

#[test]
fn a_connection_whose_beginning_was_not_seen_is_left_alone_and_counted() {
    let mut world = World::connected(policies(writers()));
    assert_eq!(say(&mut world, MOBILE, Flags::ACK, &[]), 0xffff);
    assert_eq!(world.nodes[LICENSED].transit_counters().unscaled, 1);
}

#[test]
fn windows_stay_lowered_over_a_rekey() {
    let mut world = World::connected(policies(writers()));
    begin(&mut world);
    let before = world.spis(GATEWAY);
    world.command(GATEWAY, |node, now| {
        node.rekey("alice", Rekey::Children, now).unwrap()
    });
    world.run_for(Duration::from_secs(5));
    assert_ne!(world.spis(GATEWAY), before);
    assert_eq!(
        say(&mut world, MOBILE, Flags::ACK, &[]),
        (WINDOW >> 7) as u16
    );
    numbers(&world);
}

/// Invariant 5: windows are no longer lowered as soon as either end knows that the licence has
/// ended.
// Answers: write-without
#[test]
fn a_licence_to_write_that_either_end_takes_back_ends_at_once() {
    for who in [MOBILE, GATEWAY] {
        let mut world = World::connected(policies(writers()));
        begin(&mut world);
        assert!(say(&mut world, MOBILE, Flags::ACK, &[]) < 0xffff);
        license(&mut world, who, false);
        let other = if who == MOBILE { GATEWAY } else { MOBILE };
        // Packets to this end, and packets from it.
        for from in [other, who] {
            assert_eq!(
                say(&mut world, from, Flags::ACK, &[]),
                0xffff,
                "{who} {from}"
            );
        }
        world.run_for(Duration::from_secs(60));
        assert_eq!(say(&mut world, MOBILE, Flags::ACK, &[]), 0xffff);
        assert!(world.nodes[LICENSED].held_grants().is_empty());
        assert!(
            world.dropped.iter().all(Vec::is_empty),
            "{:?}",
            world.dropped
        );
    }
}

/// Invariant 1: a node that was killed restarts its counter, under a new grant.
// Weakness: S19
#[test]
fn no_number_comes_twice_over_restarts_of_the_node_renewals_and_rekeys() {
    let mut world = World::connected(policies(writers()));
    let mut grants = BTreeSet::new();
    for round in 0..6 {
        begin(&mut world);
        for _ in 0..3 {
            assert!(say(&mut world, MOBILE, Flags::ACK, &[]) < 0xffff, "{round}");
            assert!(
                say(&mut world, GATEWAY, Flags::ACK, &[]) < 0xffff,
                "{round}"
            );
        }
        let held = world.nodes[LICENSED].held_grants();
        grants.insert((held[0].csa, held[0].grant));
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
    assert_eq!(numbers(&world).len(), 6 * 6);
    assert!(grants.len() >= 4, "{grants:?}");
}

/// Both ends may grant, and overlay keys are derived from the grant's number alone.
#[test]
fn the_numbers_of_one_ends_grants_are_none_of_the_others() {
    let world = World::connected(policies(writers()));
    let held = world.nodes[LICENSED].held_grants();
    assert_eq!(held[0].grant % 2, 0, "the gateway was the responder");
}

/// SNOOP keeps and retransmits packets with the overlay that they first left with.
#[test]
fn snoop_repeats_what_was_written() {
    let mut world = World::connected(policies(writers()));
    begin(&mut world);
    world.wireless.lost = 1000;
    world.segment(GATEWAY, 1, &[7; 1000]);
    world.run_for(Duration::from_millis(20));
    world.wireless.lost = 0;
    world.run_for(Duration::from_secs(3));
    assert_eq!(heard(&world, MOBILE), (WINDOW >> 7) as u16);
    let spi = world.spis(MOBILE)[0].0;
    let down = world
        .resent
        .iter()
        .filter(|packet| packet[..4] == spi_octets(spi));
    let down: BTreeSet<_> = down.collect();
    assert_eq!(down.len(), 1, "the same octets each time");
}

fn spi_octets(spi: Spi) -> [u8; 4] {
    spi.0.to_be_bytes()
}
