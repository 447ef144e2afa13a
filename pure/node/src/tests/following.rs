//! Packets of child SAs to a peer whose NAT changes its mapping, or seems to.

use super::world::{Flight, GATEWAY, Hosts, MOBILE, Nat, Policies, World};
use crate::{Event, Rekey};
use model::{Instant, Path};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use wire::esp::Datagram;

const OUTSIDE: &str = "192.0.2.9";
const THIRD: &str = "192.0.2.66:4500";
const GATEWAYS: &str = "198.51.100.1:4500";

/// A tunnel without MOBIKE through a NAT that adds 10,000 to ports.
fn connected() -> World {
    through_nat(false)
}

fn through_nat(mobike: bool) -> World {
    let mut world = World::new(Policies::default());
    world.nat = Nat {
        outside: OUTSIDE.parse().unwrap(),
        shift: 10_000,
    };
    world.reconfigure(GATEWAY, |config| {
        config
            .peers
            .iter_mut()
            .for_each(|peer| peer.ike.features.mobike = mobike);
    });
    world.run_for(Duration::from_secs(30));
    assert!(world.tunnel_is_up(), "{:?}", world.events);
    world
}

/// Where packets of the tunnel went that the gateway sent since.
fn destinations(world: &mut World) -> Vec<SocketAddr> {
    let gateway: SocketAddr = GATEWAYS.parse().unwrap();
    let flights = world.past.drain(..);
    let sent = flights.filter(|flight| flight.path.local == gateway);
    let esp = sent.filter(|flight| matches!(Datagram::parse(&flight.payload), Datagram::Esp(_)));
    let mut to: Vec<_> = esp.map(|flight| flight.path.remote).collect();
    to.dedup();
    to
}

fn moves(world: &World) -> usize {
    let events = world.events[GATEWAY].iter();
    events
        .filter(|event| matches!(event, Event::PathMoved { .. }))
        .count()
}

/// The gateway answers a download for a while.
fn download(world: &mut World, seq: u32) {
    for number in 0..20 {
        world.segment(GATEWAY, seq + number, b"content");
        world.run_for(Duration::from_millis(10));
    }
}

// Weakness: 81
#[test]
fn a_rewritten_request_takes_no_packet_of_a_child_to_another_address() {
    let mut world = connected();
    world.past.clear();
    let rekeyed = world.command(MOBILE, |node, now| node.rekey("gw", Rekey::Children, now));
    assert!(rekeyed.is_ok());
    let request = world.past.back().unwrap().payload.clone();
    let [local, third] = [GATEWAYS, THIRD].map(|end| end.parse().unwrap());
    world.hand_over(GATEWAY, Path::udp(local, third), &request);
    world.past.clear();
    download(&mut world, 1000);
    let [to] = destinations(&mut world)[..] else {
        panic!("one destination");
    };
    assert_eq!(to, SocketAddr::new(OUTSIDE.parse().unwrap(), 14_500));
    assert_eq!(moves(&world), 0);
}

#[test]
fn a_new_port_of_a_nat_gets_the_packets_of_children_once_the_old_one_is_silent() {
    let mut world = connected();
    world.nat.shift = 20_000;
    let before = world.delivered[MOBILE].len();
    let rekeyed = world.command(MOBILE, |node, now| node.rekey("gw", Rekey::Children, now));
    assert!(rekeyed.is_ok());
    world.run_for(Duration::from_millis(200));
    assert_eq!(moves(&world), 1);
    world.past.clear();
    download(&mut world, 1000);
    world.run_for(Duration::from_secs(1));
    let new = SocketAddr::new(OUTSIDE.parse().unwrap(), 24_500);
    assert_eq!(destinations(&mut world), [new]);
    assert_eq!(world.delivered[MOBILE].len(), before + 20);
}

/// Sends a datagram each 100 ms in both directions until one of the gateway's arrives. Returns the
/// time that took.
fn time_to_return(world: &mut World) -> Duration {
    let (since, before) = (world.now, world.delivered[MOBILE].len());
    for seq in 1.. {
        world.segment(MOBILE, seq, b"request");
        world.segment(GATEWAY, seq, b"answer");
        world.run_for(Duration::from_millis(100));
        let took = world.now - since;
        if world.delivered[MOBILE].len() > before || took > Duration::from_secs(40) {
            return took;
        }
    }
    unreachable!()
}

/// RFC 7296 section 2.23 without MOBIKE. With it, our check lets the initiator detect its new
/// mapping (RFC 4555 section 3.8).
#[test]
fn a_new_port_of_a_nat_is_found_by_traffic_alone_within_a_second() {
    for mobike in [true, false] {
        let mut world = through_nat(mobike);
        for shift in [20_000, 30_000, 40_000] {
            world.nat.shift = shift;
            let took = time_to_return(&mut world);
            assert!(took < Duration::from_secs(1), "{mobike}: {took:?}");
            world.run_for(Duration::from_secs(10));
        }
        // IKE messages reach the peer too.
        world.past.clear();
        let rekeyed = world.command(GATEWAY, |node, now| {
            node.rekey("alice", Rekey::Children, now)
        });
        assert!(rekeyed.is_ok());
        world.run_for(Duration::from_secs(1));
        assert_eq!(time_to_return(&mut world), Duration::from_millis(100));
    }
}

#[test]
fn packets_that_a_nat_maps_apart_from_messages_are_answered_where_they_come_from() {
    for mobike in [true, false] {
        let mut world = through_nat(mobike);
        world.apart = 7;
        let took = time_to_return(&mut world);
        assert!(took < Duration::from_secs(1), "{mobike}: {took:?}");
        for seq in 0..200 {
            world.segment(MOBILE, seq, b"request");
            world.run_for(Duration::from_millis(50));
        }
        world.past.clear();
        download(&mut world, 1000);
        let apart = SocketAddr::new(OUTSIDE.parse().unwrap(), 14_507);
        assert_eq!(destinations(&mut world), [apart], "{mobike}");
        world.nat.shift = 20_000;
        let took = time_to_return(&mut world);
        assert!(took < Duration::from_secs(1), "{mobike}: {took:?}");
        // The IKE SA with the licensed node goes down when `through_nat` reconfigures the gateway.
        let fa = world.nodes[GATEWAY].id("fa").ok();
        let down =
            |event: &Event| matches!(event, Event::PeerDown { peer, .. } if Some(*peer) != fa);
        assert!(
            !world.events.iter().flatten().any(down),
            "{mobike}: {:?}",
            world.events
        );
    }
}

/// An attacker on the path writes a third party's address into every other packet. The third party
/// gets at most three times the octets, and no packet of a child SA.
// Weakness: 134
// Weakness: M1
#[test]
fn rewritten_packets_send_a_third_party_rare_questions_and_nothing_else() {
    for mobike in [true, false] {
        let mut world = through_nat(mobike);
        let [local, third] = [GATEWAYS, THIRD].map(|end| end.parse().unwrap());
        let (mut came, mut went) = (0, 0);
        for seq in 0..600 {
            world.past.clear();
            world.segment(MOBILE, seq, b"request");
            if seq % 2 == 0 {
                let payload = world.past.back().unwrap().payload.clone();
                came += payload.len();
                world.hand_over(GATEWAY, Path::udp(local, third), &payload);
            }
            world.run_for(Duration::from_millis(50));
            let past = world.past.iter();
            let sent = past.filter(|flight| flight.path.remote == third);
            let sent: Vec<_> = sent.map(|flight| flight.payload.clone()).collect();
            let esp = |payload: &Vec<u8>| matches!(Datagram::parse(payload), Datagram::Esp(_));
            assert!(!sent.iter().any(esp));
            went += sent.iter().map(Vec::len).sum::<usize>();
        }
        assert!(went <= came / 2, "{went} octets for {came}");
        assert_eq!(moves(&world), 0);
    }
}

/// A NAT that reboots twice, or a host that passes through several networks.
// Weakness: 139
#[test]
fn a_mapping_that_changes_again_while_it_is_checked_is_found_within_a_second() {
    for mobike in [true, false] {
        for changes in [&[20_000, 30_000][..], &[20_000, 30_000, 40_000]] {
            let mut world = through_nat(mobike);
            for shift in changes {
                world.nat.shift = *shift;
                world.segment(MOBILE, 1, b"request");
                // The gateway asks at a mapping that is gone before the question arrives.
                world.run_for(Duration::from_millis(7));
                world.nat.shift += 5_000;
                world.run_for(Duration::from_millis(150));
            }
            world.nat.shift = 50_000;
            let took = time_to_return(&mut world);
            assert!(
                took < Duration::from_secs(1),
                "{mobike} {changes:?}: {took:?}"
            );
        }
    }
}

/// A message from the first mapping, packets from the second.
// Weakness: 139
#[test]
fn packets_from_a_newer_mapping_are_not_kept_waiting_by_the_check_of_a_message() {
    let mut world = through_nat(false);
    world.nat.shift = 20_000;
    let rekeyed = world.command(MOBILE, |node, now| node.rekey("gw", Rekey::Children, now));
    assert!(rekeyed.is_ok());
    world.run_for(Duration::from_millis(7));
    world.nat.shift = 30_000;
    let took = time_to_return(&mut world);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// Whatever source a third party writes into packets: few addresses are asked, and the tunnel
/// stays.
// Weakness: 139
// Weakness: M3
#[test]
fn packets_from_ever_new_addresses_lead_to_few_questions() {
    for mobike in [true, false] {
        let mut world = through_nat(mobike);
        let local = GATEWAYS.parse().unwrap();
        let mut asked = Vec::new();
        for seq in 0..600_u16 {
            world.past.clear();
            world.segment(MOBILE, seq.into(), b"request");
            let payload = world.past.back().unwrap().payload.clone();
            let from = SocketAddr::new("192.0.2.66".parse().unwrap(), 5000 + seq);
            world.hand_over(GATEWAY, Path::udp(local, from), &payload);
            world.run_for(Duration::from_millis(50));
            let to = world.past.iter().map(|flight| flight.path.remote);
            asked.extend(to.filter(|to| to.ip() == from.ip()));
        }
        asked.dedup();
        // 30 seconds.
        assert!((10..=40).contains(&asked.len()), "{}", asked.len());
        assert_eq!(moves(&world), 0);
    }
}

/// An attacker that is not on the path has old packets at most, and no key. The negative control: a
/// packet that has not arrived yet leads to a question.
// Weakness: M3
#[test]
fn packets_that_come_again_or_are_forged_from_elsewhere_ask_nobody() {
    for mobike in [true, false] {
        let mut world = through_nat(mobike);
        let [local, third] = [GATEWAYS, THIRD].map(|end| end.parse().unwrap());
        let from_third = Path::udp(local, third);
        let is_asked = |world: &World| {
            let mut past = world.past.iter();
            past.any(|flight| flight.path.remote == third)
        };
        for seq in 0..100 {
            world.past.clear();
            world.segment(MOBILE, seq, b"request");
            let old = world.past.back().unwrap().payload.clone();
            world.run_for(Duration::from_millis(50));
            let mut forged = old.clone();
            forged[7] = forged[7].wrapping_add(9);
            for payload in [&old, &forged] {
                world.hand_over(GATEWAY, from_third, payload);
            }
            world.run_for(Duration::from_millis(50));
            assert!(!is_asked(&world), "{mobike} {seq}");
        }
        world.segment(MOBILE, 100, b"request");
        let fresh = world.past.back().unwrap().payload.clone();
        world.hand_over(GATEWAY, from_third, &fresh);
        world.run_for(Duration::from_secs(1));
        assert!(is_asked(&world), "{mobike}");
        assert_eq!(moves(&world), 0);
    }
}

/// A third party between both ends, with an address of its own. It hands packets of the mobile node
/// to the gateway before they arrive, as its own, and to the mobile node what the gateway sends to
/// the third party.
struct Relay {
    /// Selects the packets that it hands over.
    wins: fn(&Flight) -> bool,
    /// True if packets of the mobile node arrive from the third party alone.
    alone: bool,
    /// Time for which it keeps each packet.
    delay: Duration,
    /// Interval of the datagrams of both ends.
    pause: Duration,
    /// Packets that it keeps, with the time of their delivery.
    kept: RefCell<VecDeque<(Instant, Vec<u8>)>>,
}

impl Default for Relay {
    fn default() -> Self {
        Self {
            wins: |_| true,
            alone: false,
            delay: Duration::ZERO,
            pause: Duration::from_millis(50),
            kept: RefCell::default(),
        }
    }
}

impl Relay {
    fn run(&self, world: &mut World, time: Duration) {
        let [gateway, third] = [GATEWAYS, THIRD].map(|end| end.parse().unwrap());
        let mobile = SocketAddr::new(super::world::address(MOBILE), 4500);
        let (end, mut kept) = (world.now + time, self.kept.borrow_mut());
        world.deaf[GATEWAY] = self.alone;
        while world.now < end {
            for flight in world.past.drain(..).collect::<Vec<_>>() {
                let Flight { path, payload, .. } = &flight;
                if path.remote == third {
                    world.hand_over(MOBILE, Path::udp(mobile, gateway), payload);
                } else if path.local.ip() == world.nat.outside && (self.wins)(&flight) {
                    kept.push_back((world.now + self.delay, flight.payload));
                }
            }
            while let Some((_, payload)) = kept.pop_front_if(|(at, _)| *at <= world.now) {
                world.hand_over(GATEWAY, Path::udp(gateway, third), &payload);
            }
            world.run_for(Duration::from_millis(1));
        }
        world.deaf[GATEWAY] = false;
    }

    /// Both ends send datagrams. Returns the number of those that reached the mobile node.
    fn traffic(&self, world: &mut World, time: Duration) -> usize {
        let (end, before) = (world.now + time, world.delivered[MOBILE].len());
        let mut seq = 1000;
        while world.now < end {
            seq += 1;
            world.segment(MOBILE, seq, b"request");
            world.segment(GATEWAY, seq, b"answer");
            self.run(world, self.pause);
        }
        world.delivered[MOBILE].len() - before
    }
}

fn is_esp(flight: &Flight) -> bool {
    matches!(Datagram::parse(&flight.payload), Datagram::Esp(_))
}

/// Returns the destination of the gateway's packets.
fn destination(world: &World) -> SocketAddr {
    let mut peers = world.nodes[GATEWAY].peers().into_iter();
    let alice = peers.find(|peer| peer.name == "alice").unwrap();
    alice.children[0].path.remote
}

/// The third party is faster than the network and answers for the mobile node, which answers too.
// Weakness: 140
// Weakness: M7
#[test]
fn packets_and_checks_that_a_third_party_relays_leave_the_sa_with_its_host() {
    for mobike in [true, false] {
        let mut world = through_nat(mobike);
        let relay = Relay {
            wins: is_esp,
            ..Relay::default()
        };
        let arrived = relay.traffic(&mut world, Duration::from_secs(20));
        assert!(arrived > 390, "{arrived}");
        assert_eq!(moves(&world), 0, "{mobike}");
        let home = SocketAddr::new(OUTSIDE.parse().unwrap(), 14_500);
        assert_eq!(destination(&world), home);
    }
}

/// The third party cannot be told from a NAT while nothing else reaches the gateway. It goes on to
/// answer checks.
// Weakness: 140
// Weakness: M7
#[test]
fn the_host_is_back_as_soon_as_its_own_packets_arrive_however_long_a_third_party_relayed_them() {
    for mobike in [true, false] {
        let mut world = through_nat(mobike);
        world.nat.shift = 20_000;
        let relay = Relay {
            alone: true,
            ..Relay::default()
        };
        relay.traffic(&mut world, Duration::from_secs(60));
        assert_eq!(destination(&world), THIRD.parse().unwrap(), "{mobike}");
        let relay = Relay {
            wins: |_| false,
            ..Relay::default()
        };
        relay.traffic(&mut world, Duration::from_secs(1));
        let home = SocketAddr::new(OUTSIDE.parse().unwrap(), 24_500);
        assert_eq!(destination(&world), home, "{mobike}");
    }
}

/// Without MOBIKE, only packets show the new mapping. At 500 packets a second, the newest packet is
/// always one that the third party handed over.
// Weakness: 159
// Weakness: M7
#[test]
fn a_third_party_that_relays_some_packets_does_not_keep_a_new_mapping_from_being_found() {
    let [slow, fast] = [50, 2].map(Duration::from_millis);
    let some = |wins, pause| Relay {
        wins,
        pause,
        ..Relay::default()
    };
    let late = Relay {
        delay: Duration::from_millis(30),
        ..some(is_esp, fast)
    };
    for (name, relay) in [
        ("one in four, 20 a second", some(one_in::<4>, slow)),
        ("one in four, 500 a second", some(one_in::<4>, fast)),
        ("one in three, 500 a second", some(one_in::<3>, fast)),
        ("each of them, but late", late),
    ] {
        for (mobike, before) in [(true, false), (false, false), (true, true), (false, true)] {
            let mut world = through_nat(mobike);
            relay.kept.take();
            if before {
                relay.traffic(&mut world, Duration::from_secs(2));
                assert_eq!(moves(&world), 0, "{name}");
            }
            world.nat.shift = 20_000;
            relay.traffic(&mut world, Duration::from_secs(4));
            let home = SocketAddr::new(OUTSIDE.parse().unwrap(), 24_500);
            assert_eq!(
                destination(&world),
                home,
                "{name}, MOBIKE {mobike}, before {before}"
            );
            let arrived = relay.traffic(&mut world, Duration::from_secs(1));
            let sent = Duration::from_secs(1).as_millis() / relay.pause.as_millis();
            assert!(arrived as u128 >= sent - 10, "{name}: {arrived} of {sent}");
            assert_eq!(
                destination(&world),
                home,
                "{name}, MOBIKE {mobike}, before {before}"
            );
        }
    }
}

fn one_in<const N: u8>(flight: &Flight) -> bool {
    is_esp(flight) && flight.payload[7].is_multiple_of(N)
}
