//! UDP tunnels for foreign agents behind a NAT (RFC 3519).

use super::tunnel::datagram;
use super::world::{BAD, Node, World, outside};
use super::*;
use crypto::Rng;
use wire::ecn::Ecn;
use wire::ip_in_ip::Refusal;
use wire::mobile_ip::{TunnelData, UdpTunnelReply, UdpTunnelRequest, echo, message};

const PEER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
const NAT_PORT: u16 = 20_345;
/// The address of an agent behind a NAT, as the home agent sees it.
const OUTSIDE: SocketAddrV4 = SocketAddrV4::new(outside(0), NAT_PORT);
/// The address of a host that has overheard a request.
const THIEF: SocketAddrV4 = SocketAddrV4::new(PEER, 1);
const ASK: UdpTunnelRequest = UdpTunnelRequest {
    forced: false,
    through_agent: false,
    encapsulation: 4,
};
const FORCE: UdpTunnelRequest = UdpTunnelRequest {
    forced: true,
    ..ASK
};

/// Shares keys with both agents: UDP requests without one are denied.
fn home_with(nat: Nat) -> HomeAgentConfig {
    HomeAgentConfig {
        nat,
        foreign: [0, 1].map(|number| (agent(number), foreign_home())).into(),
        ..home_config()
    }
}

fn foreign_with(number: u8, nat: Nat) -> ForeignAgentConfig {
    ForeignAgentConfig {
        nat,
        home_keys: [(HOME_AGENT, foreign_home())].into(),
        ..foreign_config(number)
    }
}

fn home_agent(config: HomeAgentConfig) -> HomeAgent {
    let mut home = HomeAgent::new(config, [1; 32]);
    home.set_wall_clock(ntp(at(0)), at(0));
    home
}

/// A request through the first agent, which adds a UDP request and authenticates it.
fn through(asked: UdpTunnelRequest, now: Instant) -> Vec<u8> {
    let mut octets = unproved(asked, now);
    foreign_home().sign(&mut octets, Between::ForeignHome);
    octets
}

/// The same request without authentication, as any host can build it from an overheard one.
fn unproved(asked: UdpTunnelRequest, now: Instant) -> Vec<u8> {
    let mut octets = signed(&request(0, now));
    asked.append(&mut octets);
    octets
}

/// The home agent's reply to a request from this source, with its UDP tunnel reply.
fn said(
    home: &mut HomeAgent,
    source: SocketAddrV4,
    octets: &[u8],
    now: Instant,
) -> (Reply, Option<UdpTunnelReply>) {
    let arrival = Arrival {
        source,
        ..arrival(*source.ip(), HOME_AGENT)
    };
    home.handle_datagram(&arrival, octets, now);
    let octets = datagrams(|| home.poll_transmit()).remove(0);
    let (reply, extensions) = Reply::parse(&octets).unwrap();
    (reply, UdpTunnelReply::find(extensions))
}

fn code(home: &mut HomeAgent, source: SocketAddrV4, octets: &[u8], now: Instant) -> Code {
    said(home, source, octets, now).0.code
}

/// The location of the mobile node at the home agent.
fn place(home: &HomeAgent) -> Option<Place> {
    let (_, mut places) = home.bindings().next()?;
    places.next()
}

/// A mobile node at the first agent, which is behind a NAT.
fn world(seed: u8) -> World {
    world_with(seed, home_with(Nat::Detect), foreign_with(0, Nat::Detect))
}

fn world_with(seed: u8, home: HomeAgentConfig, foreign: ForeignAgentConfig) -> World {
    let mobile = MobileNodeConfig {
        lifetime: Lifetime(600),
        ..mobile_config()
    };
    let mut world = World::with(2, seed, mobile, home);
    world.foreign[0] = ForeignAgent::new(foreign, [seed; 32], at(0));
    world.nats.insert(0, NAT_PORT);
    world.move_to(&[0]);
    world
}

/// Returns true if a packet from the mobile node reaches the home agent, and its answer returns.
fn passes(world: &mut World) -> bool {
    let (now, source) = (world.now, world.seen(0));
    let Ok(envelope) = world.foreign[0]
        .tunnel()
        .encapsulate(&datagram(HOME, PEER), now)
    else {
        return false;
    };
    let data = TunnelData::IP_IN_UDP.octets();
    let mut inner = [&data[..], &datagram(HOME, PEER)].concat();
    let home = world.home.tunnel();
    let there = match envelope.port {
        Some(_) => home.decapsulate(Remote::Udp(source), Ecn::NotEct, &mut inner),
        None => home.decapsulate(Remote::Ip(*source.ip()), Ecn::NotEct, &mut inner[4..]),
    };
    if there.is_err() {
        return false;
    }
    let mut ways = Vec::new();
    let _ = home.encapsulate(&datagram(PEER, HOME), |envelope| ways.push(envelope));
    let [way] = ways[..] else {
        return false;
    };
    let end = way
        .port
        .map(|port| SocketAddrV4::new(way.outer.destination, port));
    let mut inner = [&data[..], &datagram(PEER, HOME)].concat();
    let foreign = world.foreign[0].tunnel();
    let from = Remote::Udp(SocketAddrV4::new(HOME_AGENT, PORT));
    end == Some(source)
        && foreign
            .decapsulate(from, Ecn::NotEct, &mut inner, now)
            .is_ok()
}

#[test]
fn through_a_nat_packets_go_to_where_the_request_came_from() {
    let mut world = world(1);
    world.run_for(millis(1_000));
    world.assert_at(0);
    assert_eq!(place(&world.home).unwrap().udp, Some(OUTSIDE));
    assert!(world.foreign[0].is_in_udp(HOME));
    assert!(passes(&mut world));
    let mut ways = Vec::new();
    let tunnel = world.home.tunnel();
    let whole = datagram(PEER, HOME);
    let _ = tunnel.encapsulate(&whole, |envelope| ways.push(envelope));
    let Envelope { outer, port } = ways[0];
    assert_eq!((outer.destination, port), (outside(0), Some(NAT_PORT)));
    assert_eq!(usize::from(outer.total_len), whole.len() + 20 + 8 + 4);
    assert!(outer.dont_fragment, "pieces do not come through a NAT");
}

/// Negative control of the test above: one of the two ends does not support NAT traversal.
#[test]
fn without_udp_nobody_is_registered_through_a_nat() {
    for (home, foreign) in [(Nat::Never, Nat::Detect), (Nat::Detect, Nat::Never)] {
        let mut world = world_with(2, home_with(home), foreign_with(0, foreign));
        world.run_for(millis(5_000));
        assert_eq!(world.mobile.registrations().count(), 0);
        assert!(world.home.counters().denied[&Code::HomeProhibited] > 0);
        assert!(!passes(&mut world));
    }
}

#[test]
fn who_moves_out_of_a_nat_has_its_packets_in_ip_again_and_back() {
    let mut world = world(3);
    world.run_for(millis(2_000));
    for (number, is_in_udp) in [(1, false), (0, true)] {
        world.move_to(&[number]);
        world.run_for(millis(8_000));
        world.assert_at(number);
        assert_eq!(place(&world.home).unwrap().udp.is_some(), is_in_udp);
    }
    assert!(passes(&mut world));
}

/// Section 4.7: "each binding may have a different type".
#[test]
fn of_two_places_one_may_be_behind_a_nat() {
    let mobile = MobileNodeConfig {
        simultaneous: true,
        ..mobile_config()
    };
    let mut world = World::with(2, 4, mobile, home_with(Nat::Detect));
    world.foreign[0] = ForeignAgent::new(foreign_with(0, Nat::Detect), [4; 32], at(0));
    world.nats.insert(0, NAT_PORT);
    world.heard = vec![Some(WLAN[0]), Some(WLAN[1])];
    world.run_for(millis(5_000));
    let mut ports = Vec::new();
    let tunnel = world.home.tunnel();
    let _ = tunnel.encapsulate(&datagram(PEER, HOME), |envelope| ports.push(envelope.port));
    ports.sort_unstable();
    assert_eq!(ports, [None, Some(NAT_PORT)]);
}

/// Section 4.6: "the home agent SHOULD respond with a Registration Reply containing a declining UDP
/// Tunnel Reply".
#[test]
fn where_no_nat_is_seen_udp_is_declined_and_packets_are_in_ip() {
    for nat in [Nat::Never, Nat::Detect, Nat::Always] {
        let mut home = home_agent(home_with(nat));
        let here = SocketAddrV4::new(agent(0), NAT_PORT);
        let (reply, udp) = said(&mut home, here, &through(ASK, at(0)), at(0));
        assert_eq!(reply.code, Code::Accepted);
        assert!(!udp.unwrap().assents());
        assert_eq!(place(&home).unwrap().udp, None);
    }
    let mut world = world(5);
    world.nats.clear();
    world.run_for(millis(1_000));
    world.assert_at(0);
    assert!(!world.foreign[0].is_in_udp(HOME));
    assert!(place(&world.home).unwrap().udp.is_none());
}

/// Section 4.6.1: "NAT detected by home agent, but traversal not allowed", and forced encapsulation
/// that policy forbids.
#[test]
fn what_is_not_allowed_is_administratively_prohibited() {
    let (behind, here) = (OUTSIDE, SocketAddrV4::new(agent(0), PORT));
    for (nat, source, asked, expected) in [
        (Nat::Never, behind, ASK, Code::HomeProhibited),
        (Nat::Never, here, FORCE, Code::HomeProhibited),
        (Nat::Detect, here, FORCE, Code::HomeProhibited),
        (Nat::Detect, behind, FORCE, Code::Accepted),
        (Nat::Always, here, FORCE, Code::Accepted),
    ] {
        let mut home = home_agent(home_with(nat));
        let octets = through(asked, at(0));
        assert_eq!(
            code(&mut home, source, &octets, at(0)),
            expected,
            "{nat:?} {asked:?}"
        );
    }
}

/// Section 3.1.1.
#[test]
fn what_is_forced_is_in_udp_without_a_nat() {
    let home = home_with(Nat::Always);
    let mut world = world_with(6, home, foreign_with(0, Nat::Always));
    world.nats.clear();
    world.run_for(millis(1_000));
    world.assert_at(0);
    assert!(world.foreign[0].is_in_udp(HOME) && passes(&mut world));
}

/// Section 3.2: the F bit of a reply.
#[test]
fn a_reply_says_whether_udp_was_forced() {
    for (asked, forced) in [(ASK, false), (FORCE, true)] {
        let mut home = home_agent(home_with(Nat::Always));
        let (_, udp) = said(&mut home, OUTSIDE, &through(asked, at(0)), at(0));
        assert_eq!(udp.map(|udp| udp.forced), Some(forced));
    }
}

/// "If the HA does not understand the UDP Tunnel Request Extension, it will silently discard it
/// [...]. In this case, the mobile node MUST NOT use MIP UDP tunnelling" (section 3.1.1). The same
/// holds for a foreign agent.
#[test]
fn a_home_agent_that_says_nothing_of_udp_gets_packets_in_ip() {
    let config = ForeignAgentConfig {
        home_keys: BTreeMap::new(),
        ..foreign_with(0, Nat::Detect)
    };
    let mut foreign = ForeignAgent::new(config, [7; 32], at(0));
    let answer = |foreign: &mut ForeignAgent, udp: Option<UdpTunnelReply>, now| {
        let asked = request(0, now);
        foreign.handle_datagram(&arrival(HOME, agent(0)), &signed(&asked), now);
        while foreign.poll_transmit().is_some() {}
        let mut octets = reply_signed(&Reply::to(&asked, Code::Accepted));
        if let Some(udp) = udp {
            udp.append(&mut octets);
        }
        foreign.handle_datagram(&arrival(HOME_AGENT, agent(0)), &octets, now);
        foreign.is_in_udp(HOME)
    };
    let will = UdpTunnelReply {
        code: UdpTunnelReply::WILL,
        forced: false,
        keepalive: 0,
    };
    let declined = UdpTunnelReply { code: 64, ..will };
    assert!(answer(&mut foreign, Some(will), at(0)));
    assert!(!answer(&mut foreign, None, at(2_000)));
    assert!(!answer(&mut foreign, Some(declined), at(4_000)));
    // "Only when the mobility binding used for sending was established using the UDP Tunnel
    // Request" (section 4.7).
    let mut never = ForeignAgent::new(foreign_config(0), [7; 32], at(0));
    assert!(!answer(&mut never, Some(will), at(0)));
}

/// Section 4.5: the request follows the mobile node's authentication and precedes the agent's.
#[test]
fn an_agent_asks_for_udp_between_both_authentications_and_its_visitor_hears_nothing_of_it() {
    let config = foreign_with(0, Nat::Detect);
    let mut world = world_with(8, home_with(Nat::Detect), config);
    world.run_for(millis(1_000));
    world.assert_at(0);
    assert!(
        passes(&mut world),
        "by its care-of address it is known who it is"
    );
    let sent = |from: Node, to: Node| {
        let is_it = |packet: &&world::Packet| {
            let is_udp = matches!(packet.transmit, Transmit::Udp { .. });
            (packet.from, packet.to) == (from, to) && is_udp
        };
        match &world.tap.iter().find(is_it).unwrap().transmit {
            Transmit::Udp { octets, .. } => octets.clone(),
            Transmit::Icmp { .. } => panic!("it is UDP"),
        }
    };
    let request = sent(Node::Foreign(0), Node::Home);
    let (_, extensions) = Request::parse(&request).unwrap();
    let kinds: Vec<_> = extensions.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [32, 144, 34]);
    let reply = sent(Node::Home, Node::Foreign(0));
    let (_, extensions) = Reply::parse(&reply).unwrap();
    let kinds: Vec<_> = extensions.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [32, 44, 34]);
    let passed_on = sent(Node::Foreign(0), Node::Mobile);
    let (_, extensions) = Reply::parse(&passed_on).unwrap();
    assert_eq!(extensions.iter().count(), 1);
}

/// The authentication of both agents does not cover extensions behind it.
// Weakness: 84
#[test]
fn what_is_added_behind_the_authentication_of_agents_is_not_looked_at() {
    let mut home = home_agent(home_with(Nat::Detect));
    let mut octets = signed(&request(0, at(0)));
    foreign_home().sign(&mut octets, Between::ForeignHome);
    ASK.append(&mut octets);
    let denied = code(&mut home, OUTSIDE, &octets, at(0));
    assert_eq!(denied, Code::HomeProhibited);
    // Behind a NAT, too, such an agent must authenticate itself.
    let without = code(&mut home, OUTSIDE, &unproved(ASK, at(1_000)), at(1_000));
    assert_eq!(without, Code::HomeForeignAuthentication);
}

/// Section 4.6.1.
#[test]
fn a_place_that_does_not_fit_the_d_bit_is_poorly_formed() {
    let mut home = home_agent(home_with(Nat::Detect));
    let asked = |co_located: bool, is_mobiles: bool, now| {
        let mut asked = request(0, now);
        if co_located {
            asked.flags = asked.flags | RequestFlags::CO_LOCATED;
        }
        let mut octets = asked.encode();
        if is_mobiles {
            ASK.append(&mut octets);
        }
        mobile_home().sign(&mut octets, Between::MobileHome);
        if !is_mobiles {
            ASK.append(&mut octets);
        }
        foreign_home().sign(&mut octets, Between::ForeignHome);
        octets
    };
    for (number, (co_located, is_mobiles, expected)) in [
        (true, false, Code::HomePoorlyFormed),
        (false, true, Code::HomePoorlyFormed),
        (true, true, Code::Accepted),
        (false, false, Code::Accepted),
    ]
    .into_iter()
    .enumerate()
    {
        let now = at(1_000 * number as u64);
        let octets = asked(co_located, is_mobiles, now);
        assert_eq!(code(&mut home, OUTSIDE, &octets, now), expected);
    }
}

/// Section 4.1: "the request MUST either be accepted using the requested encapsulation, or
/// rejected".
// Refuses: mobile-ip-nat
#[test]
fn another_encapsulation_in_udp_is_refused_with_its_own_code() {
    for (encapsulation, flags, expected) in [
        (4, RequestFlags::GRE, Code::Accepted),
        (47, RequestFlags::default(), Code::HomeUdpEncapsulation),
        (55, RequestFlags::default(), Code::HomeUdpEncapsulation),
        (0, RequestFlags::default(), Code::Accepted),
        (0, RequestFlags::GRE, Code::HomeUdpEncapsulation),
        (0, RequestFlags::MINIMAL, Code::HomeUdpEncapsulation),
    ] {
        let mut home = home_agent(home_with(Nat::Detect));
        let mut asked = request(0, at(0));
        asked.flags = asked.flags | flags;
        let mut octets = signed(&asked);
        UdpTunnelRequest {
            encapsulation,
            ..ASK
        }
        .append(&mut octets);
        foreign_home().sign(&mut octets, Between::ForeignHome);
        assert_eq!(code(&mut home, OUTSIDE, &octets, at(0)), expected);
        // For IP in IP the flags apply as usual.
        let mut home = home_agent(home_with(Nat::Detect));
        let here = SocketAddrV4::new(agent(0), PORT);
        let of_ip = match flags == RequestFlags::default() {
            true => Code::Accepted,
            false => Code::HomeEncapsulation,
        };
        assert_eq!(code(&mut home, here, &octets, at(0)), of_ip);
    }
}

/// Sections 5.2 and 6.
// Weakness: 84
#[test]
fn a_registration_through_a_nat_is_short() {
    let mut home = home_agent(home_with(Nat::Detect));
    let (reply, _) = said(&mut home, OUTSIDE, &through(ASK, at(0)), at(0));
    assert_eq!(reply.lifetime, Lifetime(60));
    let here = SocketAddrV4::new(agent(0), PORT);
    let (reply, _) = said(&mut home, here, &through(ASK, at(1_000)), at(1_000));
    assert_eq!(reply.lifetime, Lifetime(300));
}

/// Section 3.3.
#[test]
fn what_is_in_udp_in_another_way_than_agreed_is_dropped_at_both_ends() {
    let mut world = world(9);
    world.run_for(millis(1_000));
    let gre = TunnelData { next_header: 47 }.octets();
    let mut inner = [&gre[..], &datagram(HOME, PEER)].concat();
    let from = Remote::Udp(OUTSIDE);
    let dropped = world
        .home
        .tunnel()
        .decapsulate(from, Ecn::NotEct, &mut inner);
    assert_eq!(dropped, Err(TunnelDrop::OtherEncapsulation));
    let from = Remote::Udp(SocketAddrV4::new(HOME_AGENT, PORT));
    let foreign = world.foreign[0].tunnel();
    let dropped = foreign.decapsulate(from, Ecn::NotEct, &mut inner, at(1_000));
    assert_eq!(dropped, Err(TunnelDrop::OtherEncapsulation));
    let mut short = [4, 4];
    let dropped = foreign.decapsulate(from, Ecn::NotEct, &mut short, at(1_000));
    assert_eq!(dropped, Err(TunnelDrop::Refused(Refusal::Malformed)));
}

/// Section 4.3: addresses and ports "exactly match the values used for the tunnel". Section 4.7:
/// all other encapsulations are dropped.
// Refuses: mobile-ip-nat
#[test]
fn what_comes_from_another_port_or_in_ip_is_dropped() {
    let mut world = world(10);
    world.run_for(millis(1_000));
    let data = TunnelData::IP_IN_UDP.octets();
    let (port, address) = (
        SocketAddrV4::new(outside(0), 1),
        SocketAddrV4::new(PEER, NAT_PORT),
    );
    for from in [port, address] {
        let mut inner = [&data[..], &datagram(HOME, PEER)].concat();
        let home = world.home.tunnel();
        let dropped = home.decapsulate(Remote::Udp(from), Ecn::NotEct, &mut inner);
        assert_eq!(dropped, Err(TunnelDrop::Spoofed));
    }
    for from in [agent(0), outside(0)] {
        let home = world.home.tunnel();
        let mut inner = datagram(HOME, PEER);
        let dropped = home.decapsulate(Remote::Ip(from), Ecn::NotEct, &mut inner);
        assert_eq!(dropped, Err(TunnelDrop::Spoofed));
    }
    let foreign = world.foreign[0].tunnel();
    let mut inner = datagram(PEER, HOME);
    let dropped = foreign.decapsulate(Remote::Ip(HOME_AGENT), Ecn::NotEct, &mut inner, at(1_000));
    assert_eq!(dropped, Err(TunnelDrop::Spoofed));
}

/// Section 6.1.1: only a request moves a tunnel, and a copy of one is a replay.
// Refuses: mobile-ip-nat
// Weakness: 84
#[test]
fn a_request_that_is_repeated_from_elsewhere_moves_no_tunnel() {
    let mut home = home_agent(home_with(Nat::Detect));
    let octets = through(ASK, at(0));
    said(&mut home, OUTSIDE, &octets, at(0));
    let (reply, _) = said(&mut home, OUTSIDE, &octets, at(500));
    assert_eq!(reply.code, Code::Accepted, "as the first time");
    let newer = through(ASK, at(2_000));
    said(&mut home, OUTSIDE, &newer, at(2_000));
    for copy in [octets, newer] {
        let denied = code(&mut home, THIEF, &copy, at(3_000));
        assert_eq!(denied, Code::HomeIdentification);
        assert_eq!(place(&home).unwrap().udp, Some(OUTSIDE));
    }
}

/// The first request to arrive may be the copy. So neither sender is confirmed as the location, and
/// an event reports both to the operator.
// Weakness: 115
#[test]
fn a_registration_from_two_places_is_denied_at_the_second_and_told_once() {
    let mut home = home_agent(home_with(Nat::Detect));
    let octets = through(ASK, at(0));
    said(&mut home, THIEF, &octets, at(0));
    home.poll_event();
    for millis in [1, 2, 3] {
        let denied = code(&mut home, OUTSIDE, &octets, at(millis));
        assert_eq!(denied, Code::HomeIdentification);
    }
    let contested = HomeEvent::Contested {
        home: HOME,
        bound: Remote::Udp(THIEF),
        other: OUTSIDE,
    };
    assert_eq!(home.poll_event(), Some(contested));
    assert_eq!(home.poll_event(), None);
    // The mobile node sends a new request.
    let newer = through(ASK, at(1_000));
    assert_eq!(code(&mut home, OUTSIDE, &newer, at(1_000)), Code::Accepted);
    assert_eq!(place(&home).unwrap().udp, Some(OUTSIDE));
}

/// RFC 3519 section 6: an attacker overhears a request, adds the extension, and its copy arrives
/// before the agent's.
// Weakness: 115
#[test]
fn a_copy_that_asks_for_udp_without_a_key_is_denied_and_makes_the_agents_own_not_old() {
    let mut home = home_agent(HomeAgentConfig {
        foreign: BTreeMap::new(),
        ..home_with(Nat::Always)
    });
    for asked in [ASK, FORCE] {
        let denied = code(&mut home, THIEF, &unproved(asked, at(0)), at(0));
        assert_eq!(denied, Code::HomeForeignAuthentication);
    }
    assert_eq!(place(&home), None);
    let here = SocketAddrV4::new(agent(0), PORT);
    let granted = code(&mut home, here, &signed(&request(0, at(0))), at(1));
    assert_eq!(granted, Code::Accepted);
    assert_eq!(place(&home).unwrap().udp, None);
}

/// A mobile node's own authentication covers its UDP request.
#[test]
fn a_mobile_node_that_asks_for_udp_itself_needs_no_foreign_agents_key() {
    let mut home = home_agent(HomeAgentConfig {
        foreign: BTreeMap::new(),
        ..home_with(Nat::Detect)
    });
    let mut asked = request(0, at(0));
    asked.flags = asked.flags | RequestFlags::CO_LOCATED;
    let mut octets = asked.encode();
    ASK.append(&mut octets);
    mobile_home().sign(&mut octets, Between::MobileHome);
    assert_eq!(code(&mut home, OUTSIDE, &octets, at(0)), Code::Accepted);
}

#[test]
fn another_place_of_a_nat_is_news_and_the_same_one_is_none() {
    let mut home = home_agent(home_with(Nat::Detect));
    said(&mut home, OUTSIDE, &through(ASK, at(0)), at(0));
    home.poll_event();
    said(&mut home, OUTSIDE, &through(ASK, at(1_000)), at(1_000));
    assert_eq!(home.poll_event(), Some(HomeEvent::Renewed { home: HOME }));
    let moved = SocketAddrV4::new(outside(0), 7);
    said(&mut home, moved, &through(ASK, at(2_000)), at(2_000));
    let remapped = HomeEvent::Remapped {
        home: HOME,
        care_of: agent(0),
        udp: Some(moved),
    };
    assert_eq!(home.poll_event(), Some(remapped));
}

/// Section 6.1.2: a keepalive is no evidence of a new location.
// Refuses: mobile-ip-nat
// Weakness: 84
#[test]
fn a_keepalive_from_elsewhere_moves_no_tunnel_and_is_not_answered() {
    let mut home = home_agent(home_with(Nat::Detect));
    said(&mut home, OUTSIDE, &through(ASK, at(0)), at(0));
    let keepalive = |from, source| {
        let echo = echo::Echo {
            identifier: 1,
            sequence: 1,
            cookie: 1,
        };
        let data = TunnelData::IP_IN_UDP.octets();
        let mut octets = [&data[..], &echo.request(source, HOME_AGENT)].concat();
        let taken = home.tunnel().decapsulate(from, Ecn::NotEct, &mut octets);
        taken.map(|taken| taken.onward.is_some())
    };
    let mut keepalive = keepalive;
    assert_eq!(keepalive(Remote::Udp(OUTSIDE), HOME), Ok(true));
    let elsewhere = Remote::Udp(SocketAddrV4::new(outside(0), 1));
    assert_eq!(keepalive(elsewhere, HOME), Err(TunnelDrop::Spoofed));
    let another = keepalive(Remote::Udp(OUTSIDE), PEER);
    assert_eq!(another, Err(TunnelDrop::Spoofed));
    assert_eq!(home.tunnel_counters().keepalives.answered, 1);
    assert_eq!(place(&home).unwrap().udp, Some(OUTSIDE));
}

#[test]
fn no_tunnel_in_udp_ends_at_the_home_agent_or_at_a_home_address() {
    for address in [HOME_AGENT, HOME, Ipv4Addr::LOCALHOST] {
        let mut home = home_agent(home_with(Nat::Detect));
        let source = SocketAddrV4::new(address, 7);
        let denied = code(&mut home, source, &through(ASK, at(0)), at(0));
        assert_eq!(denied, Code::HomeProhibited);
    }
}

/// The times of the keepalives that the agent has sent.
fn keepalives(world: &World) -> Vec<Instant> {
    let is_one = |packet: &&world::Packet| match &packet.transmit {
        Transmit::Udp { octets, .. } => {
            packet.from == Node::Foreign(0) && octets.first() == Some(&message::TUNNEL_DATA)
        }
        Transmit::Icmp { .. } => false,
    };
    world
        .tap
        .iter()
        .filter(is_one)
        .map(|packet| packet.sent)
        .collect()
}

/// A world with these keepalive intervals: the agent's own, and the one from the home agent.
fn kept(ours: Option<u64>, told: Option<u64>) -> World {
    let second = Duration::from_secs;
    let home = HomeAgentConfig {
        keepalive: told.map(second),
        nat_lifetime: Lifetime(600),
        ..home_with(Nat::Detect)
    };
    let foreign = ForeignAgentConfig {
        keepalive: ours.map(second),
        ..foreign_with(0, Nat::Detect)
    };
    let mut world = world_with(11, home, foreign);
    world.run_for(millis(220_000));
    world.assert_at(0);
    world
}

/// Sections 3.2, 4.9 and 4.10.
#[test]
fn a_tunnel_that_is_not_used_is_kept_alive_as_often_as_the_shorter_of_both_ends_says() {
    for (ours, told, expected) in [
        (None, None, 1),
        (None, Some(30), 7),
        (Some(40), Some(30), 7),
        (Some(20), Some(100), 10),
        (Some(20), None, 10),
        // "MUST NOT use a keepalive less than 10 seconds."
        (None, Some(1), 21),
    ] {
        let world = kept(ours, told);
        let sent = keepalives(&world);
        assert_eq!(sent.len(), expected, "{ours:?} {told:?}: {sent:?}");
        let counted = world.foreign[0].tunnel_counters().keepalives;
        let all = sent.len() as u64;
        assert_eq!(
            (counted.sent, counted.answered, counted.lost),
            (all, all, 0)
        );
        assert_eq!(world.home.tunnel_counters().keepalives.answered, all);
    }
}

/// "If no other packet to the HA has been sent in K seconds" (section 4.9).
#[test]
fn a_tunnel_that_is_used_both_ways_needs_no_keepalive() {
    let mut world = world(12);
    for _ in 0..60 {
        world.run_for(millis(5_000));
        assert!(passes(&mut world));
    }
    assert_eq!(keepalives(&world).len(), 0);
}

// Recovers: mobile-ip-nat
#[test]
fn a_keepalive_that_is_lost_is_repeated() {
    let mut world = kept(Some(20), None);
    world.nats.insert(0, NAT_PORT + 1);
    world.run_for(millis(5_000));
    world.nats.insert(0, NAT_PORT);
    world.run_for(millis(10_000));
    let counted = world.foreign[0].tunnel_counters().keepalives;
    assert_eq!((counted.sent, counted.answered, counted.lost), (14, 11, 0));
    assert!(passes(&mut world));
}

/// Section 4.10: only a request changes the mapping at the home agent, so the visitor must send
/// one.
#[test]
fn a_nat_that_forgets_is_noticed_by_keepalives_and_mended_by_a_registration() {
    let mut world = kept(Some(20), None);
    world.nats.insert(0, NAT_PORT + 1);
    assert!(!passes(&mut world));
    world.run_for(millis(15_000));
    assert!(!passes(&mut world), "a keepalive by itself moves nothing");
    world.run_for(millis(30_000));
    assert!(passes(&mut world));
    let moved = SocketAddrV4::new(outside(0), NAT_PORT + 1);
    assert_eq!(place(&world.home).unwrap().udp, Some(moved));
    let counted = world.foreign[0].tunnel_counters().keepalives;
    assert_eq!(counted.lost, 1);
    let unheard = |event| matches!(event, ForeignEvent::Unheard(_));
    let mut events = std::iter::from_fn(|| world.foreign[0].poll_event());
    assert!(events.any(unheard));
}

/// The mobile node's packets continue to leave, so outbound silence cannot reveal the loss.
#[test]
fn a_nat_that_forgets_is_noticed_while_only_one_end_sends() {
    let mut world = kept(Some(20), None);
    world.nats.insert(0, NAT_PORT + 1);
    for _ in 0..45 {
        world.run_for(millis(1_000));
        let now = world.now;
        let _ = world.foreign[0]
            .tunnel()
            .encapsulate(&datagram(HOME, PEER), now);
    }
    assert!(passes(&mut world));
}

/// "A mobile node [...] will have to deal with the possibility" even without keepalives, by a short
/// lifetime (section 5.2).
// Recovers: mobile-ip-nat
#[test]
fn a_nat_that_forgets_is_mended_by_the_next_registration_in_any_case() {
    let mut world = world(13);
    world.run_for(millis(1_000));
    world.nats.insert(0, NAT_PORT + 1);
    world.run_for(millis(60_000));
    assert!(passes(&mut world));
}

/// The advertisements of the first agent.
fn advertised(world: &World) -> impl Iterator<Item = Agent> {
    let packets = world.tap.iter();
    packets.filter_map(|packet| match &packet.transmit {
        Transmit::Icmp { octets, .. } if packet.from == Node::Foreign(0) => {
            Advertisement::parse(octets).ok()?.agent
        }
        Transmit::Icmp { .. } | Transmit::Udp { .. } => None,
    })
}

/// An unreachable home agent makes visitors register once, not continually.
#[test]
fn a_home_agent_that_is_silent_has_an_agent_begin_anew_once() {
    let mut world = kept(Some(20), None);
    let begins = |world: &World| {
        let advertised = advertised(world);
        advertised.filter(|agent| agent.sequence == 0).count()
    };
    assert_eq!(begins(&world), 1);
    world.home = home_agent(HomeAgentConfig {
        mobiles: BTreeMap::new(),
        ..home_config()
    });
    world.run_for(millis(300_000));
    assert_eq!(begins(&world), 2);
}

/// Section 3.4.
#[test]
fn an_agent_says_that_it_has_udp_when_it_knows_of_a_nat_and_not_otherwise() {
    // The first and the last advertisement.
    let has_udp = |world: &World| {
        let all: Vec<_> = advertised(world)
            .map(|agent| agent.flags.has(AgentFlags::UDP_TUNNEL))
            .collect();
        [all[0], all[all.len() - 1]]
    };
    let mut behind = world(14);
    behind.run_for(millis(3_000));
    assert_eq!(has_udp(&behind), [false, true]);
    let mut open = world(15);
    open.nats.clear();
    open.run_for(millis(3_000));
    assert_eq!(has_udp(&open), [false, false]);
}

#[test]
fn who_leaves_behind_a_nat_is_deregistered_everywhere() {
    let mut world = world(16);
    world.run_for(millis(2_000));
    world.mobile.deregister(world.now);
    world.run_for(millis(2_000));
    let done = MobileEvent::Deregistered { confirmed: true };
    assert!(world.events.contains(&done));
    assert_eq!(place(&world.home), None);
    assert!(!passes(&mut world));
}

/// Moves into and out of NATs that drop mappings, on links that lose, duplicate and reorder. In the
/// end all parties agree, and packets pass.
// Recovers: mobile-ip-nat
#[test]
fn all_agree_in_the_end_whatever_nats_and_links_do() {
    for seed in 0..30 {
        let mut world = kept(Some(20), None);
        let mut rng = Rng::from_seed([seed; 32]);
        world.hop = BAD;
        for _ in 0..8 {
            let [to, forgets, seconds] = rng.array();
            world.move_to(&[usize::from(to % 2)]);
            if forgets % 2 == 0 {
                let port = world.nats[&0] + 1;
                world.nats.insert(0, port);
            }
            world.run_for(millis(500 + u64::from(seconds) * 100));
        }
        world.hop = Hop::PERFECT;
        world.move_to(&[0]);
        world.run_for(millis(400_000));
        world.assert_at(0);
        assert!(passes(&mut world), "seed {seed}");
    }
}
