//! Children's packets to a peer without MOBIKE whose NAT has another port for it, or seems to.

use super::world::{GATEWAY, MOBILE, Policies, World};
use crate::{Event, Rekey};
use std::net::SocketAddr;
use std::time::Duration;
use wire::esp::Datagram;

const OUTSIDE: &str = "192.0.2.9";
const THIRD: &str = "192.0.2.66:4500";
const GATEWAYS: &str = "198.51.100.1:4500";

/// A tunnel through a NAT that adds 10,000 to ports.
fn connected() -> World {
    let mut world = World::new(Policies::default());
    world.outside = (OUTSIDE.parse().unwrap(), 10_000);
    world.reconfigure(GATEWAY, |config| {
        config.peers.iter_mut().for_each(|peer| peer.mobike = false);
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
