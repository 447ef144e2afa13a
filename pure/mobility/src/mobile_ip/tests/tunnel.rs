use super::super::tunnel::End;
use super::*;
use crypto::Rng;
use std::collections::BTreeSet;
use wire::checksum::Sum;
use wire::ecn::Ecn;
use wire::ip_in_ip::{Egress, Outer, Refusal};

const PEER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// A datagram of 24 octets.
pub(super) fn datagram(source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    let mut octets = vec![0x45, 0xb8 | 2, 0, 24, 0, 1, 0x40, 0, 64, 253, 0, 0];
    octets.extend([source.octets(), destination.octets()].concat());
    octets.extend([1, 2, 3, 4]);
    let sum = Sum::default().with(&octets[..20]).finish();
    octets[10..12].copy_from_slice(&sum.to_be_bytes());
    octets
}

fn end(number: u8) -> End {
    End {
        to: Remote::Ip(agent(number)),
        egress: Egress::PassesMarks,
        reverse: true,
    }
}

fn home(ends: &[End]) -> HomeTunnel {
    let mut tunnel = HomeTunnel::new(HOME_AGENT);
    tunnel.set(HOME, ends.to_vec());
    tunnel
}

fn visitor() -> VisitorTunnel {
    let mut tunnel = VisitorTunnel::new(agent(1), &mut Rng::from_seed([1; 32]));
    let to = (Remote::Ip(HOME_AGENT), None);
    tunnel.insert(HOME, to, Egress::Unknown, Instant::ZERO);
    tunnel
}

fn outers(tunnel: &mut HomeTunnel, datagram: &[u8]) -> Vec<Outer> {
    let mut outers = Vec::new();
    let _ = tunnel.encapsulate(datagram, |envelope| {
        assert_eq!(envelope.port, None);
        outers.push(envelope.outer);
    });
    outers
}

#[test]
fn what_comes_for_a_home_address_goes_to_each_of_its_care_of_addresses() {
    let mut tunnel = home(&[end(1), end(2)]);
    let outers = outers(&mut tunnel, &datagram(PEER, HOME));
    let destinations: Vec<_> = outers.iter().map(|outer| outer.destination).collect();
    assert_eq!(destinations, [agent(1), agent(2)]);
    assert!(outers.iter().all(|outer| outer.source == HOME_AGENT));
    assert_eq!(tunnel.counters().sent, 2);
}

#[test]
fn the_home_agents_own_packets_go_to_the_mobile_node_as_well() {
    let mut tunnel = home(&[end(1)]);
    assert_eq!(outers(&mut tunnel, &datagram(HOME_AGENT, HOME)).len(), 1);
}

#[test]
fn each_reason_for_a_drop_has_a_counter_and_a_text_of_its_own() {
    let refused = [
        Refusal::Malformed,
        Refusal::Expired,
        Refusal::Loop,
        Refusal::TooLong,
        Refusal::Congested,
    ];
    let all = [
        TunnelDrop::NoTunnel,
        TunnelDrop::Spoofed,
        TunnelDrop::OtherEncapsulation,
    ];
    let all = all.into_iter().chain(refused.map(TunnelDrop::from));
    let mut shown = BTreeSet::from([String::new()]);
    for why in all {
        assert!(shown.insert(why.label().to_owned()), "{why:?}");
        assert!(shown.insert(why.to_string()), "{why:?}");
    }
}

#[test]
fn what_comes_for_nobody_is_dropped_with_a_count() {
    let mut tunnel = home(&[end(1)]);
    let dropped = tunnel.encapsulate(&datagram(PEER, PEER), |_| panic!("it goes nowhere"));
    assert_eq!(dropped, Err(TunnelDrop::NoTunnel));
    assert_eq!(tunnel.counters().dropped[&TunnelDrop::NoTunnel], 1);
    tunnel.set(HOME, Vec::new());
    assert!(outers(&mut tunnel, &datagram(PEER, HOME)).is_empty());
}

/// RFC 2003 section 3.2, applied to each endpoint alone.
#[test]
fn what_comes_from_where_a_tunnel_ends_is_not_sent_back_into_it() {
    let mut tunnel = home(&[end(1), end(2)]);
    let outers = outers(&mut tunnel, &datagram(agent(1), HOME));
    assert_eq!(outers.len(), 1);
    assert_eq!(outers[0].destination, agent(2));
    let looped = TunnelDrop::Refused(Refusal::Loop);
    assert_eq!(tunnel.counters().dropped[&looped], 1);
}

/// All hosts behind a NAT share its address, so that rule does not apply to UDP tunnels.
#[test]
fn what_comes_from_behind_the_nat_where_a_tunnel_ends_goes_into_it() {
    let to = Remote::Udp(SocketAddrV4::new(agent(1), 20_345));
    let mut tunnel = home(&[End { to, ..end(1) }]);
    let mut ports = Vec::new();
    let sent = tunnel.encapsulate(&datagram(agent(1), HOME), |envelope| {
        ports.push(envelope.port);
    });
    assert_eq!((sent, ports), (Ok(()), vec![Some(20_345)]));
}

#[test]
fn what_a_mobile_node_sends_comes_out_of_its_own_tunnel() {
    let mut tunnel = home(&[end(1)]);
    let mut inner = datagram(HOME, PEER);
    let came = tunnel.decapsulate(Remote::Ip(agent(1)), Ecn::Ce, &mut inner);
    let came = came.unwrap().datagram;
    assert_eq!(Ecn::from_packet(came), Ecn::Ce, "it was marked on the way");
    assert_eq!(came.len(), 24);
    assert_eq!(tunnel.counters().received, 1);
}

/// RFC 3024 section 4.3.2.
#[test]
fn a_packet_from_a_care_of_address_that_is_not_bound_to_its_source_is_dropped() {
    let mut tunnel = home(&[end(1)]);
    for (outer, source) in [(agent(2), HOME), (agent(1), PEER), (PEER, HOME)] {
        let mut inner = datagram(source, PEER);
        let dropped = tunnel.decapsulate(Remote::Ip(outer), Ecn::NotEct, &mut inner);
        assert_eq!(dropped, Err(TunnelDrop::Spoofed));
    }
    assert_eq!(tunnel.counters().dropped[&TunnelDrop::Spoofed], 3);
}

#[test]
fn a_tunnel_back_that_was_not_asked_for_is_none() {
    let one_way = End {
        reverse: false,
        ..end(1)
    };
    let mut tunnel = home(&[one_way]);
    let mut inner = datagram(HOME, PEER);
    let dropped = tunnel.decapsulate(Remote::Ip(agent(1)), Ecn::NotEct, &mut inner);
    assert_eq!(dropped, Err(TunnelDrop::Spoofed));
}

#[test]
fn what_a_visitor_sends_goes_to_its_home_agent_whomever_it_is_for() {
    let mut tunnel = visitor();
    let envelope = tunnel.encapsulate(&datagram(HOME, PEER), at(0)).unwrap();
    let outer = envelope.outer;
    assert_eq!((outer.source, outer.destination), (agent(1), HOME_AGENT));
    assert_eq!(outer.tos, 0xb8, "nobody knows whether marks are passed on");
    let stranger = tunnel.encapsulate(&datagram(PEER, HOME), at(0));
    assert_eq!(stranger, Err(TunnelDrop::NoTunnel));
}

#[test]
fn a_visitor_gets_what_comes_from_its_own_home_agent() {
    let mut tunnel = visitor();
    let mut inner = datagram(PEER, HOME);
    assert!(
        tunnel
            .decapsulate(Remote::Ip(HOME_AGENT), Ecn::NotEct, &mut inner, at(0))
            .is_ok()
    );
    let spoofed = tunnel.decapsulate(Remote::Ip(PEER), Ecn::NotEct, &mut inner, at(0));
    assert_eq!(spoofed, Err(TunnelDrop::Spoofed));
    let mut inner = datagram(PEER, agent(1));
    let nobodys = tunnel.decapsulate(Remote::Ip(HOME_AGENT), Ecn::NotEct, &mut inner, at(0));
    assert_eq!(nobodys, Err(TunnelDrop::NoTunnel));
}

#[test]
fn what_is_no_datagram_passes_no_tunnel() {
    let malformed = TunnelDrop::Refused(Refusal::Malformed);
    let mut home = home(&[end(1)]);
    assert_eq!(home.encapsulate(&[], |_| ()), Err(malformed));
    assert_eq!(
        home.decapsulate(Remote::Ip(agent(1)), Ecn::NotEct, &mut [0x45; 10]),
        Err(malformed)
    );
    let mut visitor = visitor();
    assert_eq!(visitor.encapsulate(&[0x60; 40], at(0)), Err(malformed));
    assert_eq!(
        visitor.decapsulate(Remote::Ip(HOME_AGENT), Ecn::NotEct, &mut [], at(0)),
        Err(malformed)
    );
}

/// With the real engines: the tables follow the registrations.
#[test]
fn packets_pass_both_ways_while_a_mobile_node_is_registered_and_not_after() {
    let mut world = world::World::new(1, 1);
    world.move_to(&[0]);
    world.run_for(millis(1_000));
    let mut there = datagram(PEER, HOME);
    let outer = outers(world.home.tunnel(), &there);
    assert_eq!(outer[0].destination, agent(0));
    let tunnel = world.foreign[0].tunnel();
    assert!(
        tunnel
            .decapsulate(Remote::Ip(HOME_AGENT), Ecn::NotEct, &mut there, at(0))
            .is_ok()
    );
    let mut back = datagram(HOME, PEER);
    let envelope = tunnel.encapsulate(&back, at(0)).unwrap();
    assert_eq!(envelope.outer.destination, HOME_AGENT);
    let tunnel = world.home.tunnel();
    assert!(
        tunnel
            .decapsulate(Remote::Ip(agent(0)), Ecn::NotEct, &mut back)
            .is_ok()
    );
    world.mobile.deregister(world.now);
    world.run_for(millis(1_000));
    let tunnel = world.home.tunnel();
    let dropped = tunnel.decapsulate(Remote::Ip(agent(0)), Ecn::NotEct, &mut back);
    assert_eq!(dropped, Err(TunnelDrop::Spoofed));
    let tunnel = world.foreign[0].tunnel();
    assert_eq!(tunnel.encapsulate(&back, at(0)), Err(TunnelDrop::NoTunnel));
}

/// RFC 2003 section 5.1 relays the path MTU to sources, but any host can forge a router's report.
// Weakness: 116
#[test]
fn no_source_is_told_of_less_than_every_link_takes() {
    for (path_mtu, added, told) in [
        (1500, 20, Some(1480)),
        (1300, 20, Some(1280)),
        (1299, 20, None),
        (1300, 32, None),
        (552, 20, None),
        (0, 20, None),
    ] {
        assert_eq!(room(path_mtu, added), told, "{path_mtu}");
    }
}
