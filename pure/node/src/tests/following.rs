//! Packets of child SAs to a peer whose NAT changes its mapping, or seems to.

use super::world::{GATEWAY, MOBILE, Policies, World};
use crate::{Event, Rekey};
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
    world.outside = (OUTSIDE.parse().unwrap(), 10_000);
    world.reconfigure(GATEWAY, |config| {
        config
            .peers
            .iter_mut()
            .for_each(|peer| peer.mobike = mobike);
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
    let esp = sent.filter(|flight| matches!(Datagram::of(&flight.payload), Datagram::Esp(_)));
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

#[test]
fn a_rewritten_request_takes_no_packet_of_a_child_to_another_address() {
    let mut world = connected();
    world.past.clear();
    let rekeyed = world.command(MOBILE, |node, now| node.rekey("gw", Rekey::Children, now));
    assert!(rekeyed.is_ok());
    let request = world.past.back().unwrap().payload.clone();
    let [local, third] = [GATEWAYS, THIRD].map(|end| end.parse().unwrap());
    world.hand_over(GATEWAY, model::Path::udp(local, third), &request);
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
    world.outside.1 = 20_000;
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

/// Sends a datagram each 100 ms in both directions until one of the gateway's arrives. Returns the time that took.
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

/// RFC 7296 section 2.23 without MOBIKE. With it, our check lets the initiator detect its new mapping (RFC 4555 section
/// 3.8).
#[test]
fn a_new_port_of_a_nat_is_found_by_traffic_alone_within_a_second() {
    for mobike in [true, false] {
        let mut world = through_nat(mobike);
        for shift in [20_000, 30_000, 40_000] {
            world.outside.1 = shift;
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
        world.outside.1 = 20_000;
        let took = time_to_return(&mut world);
        assert!(took < Duration::from_secs(1), "{mobike}: {took:?}");
        // The IKE SA with the licensed node goes down when `through_nat` reconfigures the gateway.
        let down = |event: &Event| matches!(event, Event::PeerDown { peer, .. } if peer != "fa");
        assert!(
            !world.events.iter().flatten().any(down),
            "{mobike}: {:?}",
            world.events
        );
    }
}

/// An attacker on the path writes a third party's address into every other packet. The third party gets at most three
/// times the octets, and no packet of a child SA.
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
                world.hand_over(GATEWAY, model::Path::udp(local, third), &payload);
            }
            world.run_for(Duration::from_millis(50));
            let past = world.past.iter();
            let sent = past.filter(|flight| flight.path.remote == third);
            let sent: Vec<_> = sent.map(|flight| flight.payload.clone()).collect();
            let esp = |payload: &Vec<u8>| matches!(Datagram::of(payload), Datagram::Esp(_));
            assert!(!sent.iter().any(esp));
            went += sent.iter().map(Vec::len).sum::<usize>();
        }
        assert!(went <= came / 2, "{went} octets for {came}");
        assert_eq!(moves(&world), 0);
    }
}
