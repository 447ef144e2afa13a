//! Two gateways of one licensed node (invariant 18). The second is authenticated but malicious: it
//! knows the identifiers and SPIs of the first one's composite SAs.

use super::datagram;
use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, PSK, Policies, World, address, identity};
use crate::{Config, Event, GrantState, HeldGrant, Node, Peer, Role};
use crypto::Secret;
use model::{
    CsaId, Grant, GrantHalf, IkeSaId, Instant, Licence, MapKind, Path, Spi, Transmit, ZoneId,
    ZoneSuite,
};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const SECOND: &str = "second.example.net";
const HERE: [u8; 4] = [198, 51, 100, 66];

/// The second gateway, whose IKE SA with the licensed node is up.
struct Second {
    node: Node,
    sa: IkeSaId,
}

impl Second {
    fn join(world: &mut World) -> Self {
        world.watch.over = true;
        world.reconfigure(LICENSED, |config| {
            let peer = Peer::new("second", SECOND.parse().unwrap(), Role::Gateway);
            config.peers.push(with_psk(peer));
        });
        let mut fa = Peer::new("fa", identity(LICENSED), Role::Licensed);
        fa.ike.address = Some(address(LICENSED));
        let config = Config {
            identity: SECOND.parse().unwrap(),
            start: vec!["fa".to_owned()],
            peers: vec![with_psk(fa)],
            ..super::world::config(GATEWAY, &world.policies)
        };
        let node = Node::new(config, [9; 32], world.now);
        let mut second = Self {
            node,
            sa: IkeSaId(0),
        };
        second.node.handle_timeout(world.now);
        second.talk(world);
        second.sa = second.node.sa_with("fa").expect("its IKE SA is up");
        second
    }

    /// Exchanges all pending messages of both.
    fn talk(&mut self, world: &mut World) {
        loop {
            let (here, there) = (HERE.into(), address(LICENSED));
            let licensed = &mut world.nodes[LICENSED];
            if let Some(transmit) = self.node.poll_transmit() {
                deliver(licensed, here, &transmit, world.now);
            } else if let Some(transmit) = licensed.poll_transmit() {
                deliver(&mut self.node, there, &transmit, world.now);
            } else {
                break;
            }
        }
        world.command(LICENSED, |_, _| ());
    }

    fn grant(&mut self, world: &mut World, grant: Grant<Secret>) {
        self.node.ike.distribute(self.sa, grant, world.now);
        self.node.handle_timeout(world.now);
        self.talk(world);
    }

    fn revoke(&mut self, world: &mut World, csa: CsaId) {
        self.node.ike.revoke(self.sa, csa, world.now);
        self.node.handle_timeout(world.now);
        self.talk(world);
    }
}

fn with_psk(mut peer: Peer) -> Peer {
    peer.ike.psk = Some(Secret::new(PSK.as_bytes().to_vec()));
    peer
}

fn deliver(node: &mut Node, from: IpAddr, transmit: &Transmit, now: Instant) {
    let from = SocketAddr::new(from, transmit.path.local.port());
    let path = Path::udp(transmit.path.remote, from);
    node.handle_datagram(path, datagram::ike(transmit), now);
}

/// Returns a grant with the SPIs of a held one, and with keys that open none of its packets.
fn like(held: &HeldGrant, csa: CsaId, line: CsaId) -> Grant<Secret> {
    let half = |spi| GrantHalf {
        spi,
        zones: vec![(
            ZoneId::DESIGNATED,
            ZoneSuite::Aes128Gcm16,
            Secret::new(vec![6; 20]),
        )],
        overlay: None,
        injection: None,
    };
    Grant {
        csa,
        line,
        grant: 1,
        payload_zone: ZoneId(2),
        suites: vec![ZoneSuite::Aes128Gcm16; 2],
        map: MapKind::Changeable,
        window: 4096,
        lifetime: Duration::from_secs(60),
        onward: None,
        from_gateway: half(held.from_gateway),
        to_gateway: half(held.to_gateway),
    }
}

/// Returns a world in which the first gateway's grant is held, with that grant.
fn set() -> (World, Second, HeldGrant) {
    let mut world = World::connected(Policies::default());
    let second = Second::join(&mut world);
    let held = world.nodes[LICENSED].held_grants().remove(0);
    (world, second, held)
}

/// Returns the gateways of the held grants, in order of arrival.
fn gateways(world: &World) -> Vec<String> {
    let node = &world.nodes[LICENSED];
    let held = node.held_grants().into_iter();
    held.map(|held| node.name(held.gateway).to_owned())
        .collect()
}

/// Returns how many of two sent segments the licensed node sees.
fn seen(world: &mut World) -> u64 {
    let before = world.nodes[LICENSED].transit_counters().segments;
    world.segment(MOBILE, 1, b"GET / HTTP/1.1\r\n\r\n");
    world.segment(GATEWAY, 1, &[0xa5; 1300]);
    world.run_for(Duration::from_millis(100));
    world.nodes[LICENSED].transit_counters().segments - before
}

// Weakness: 104
#[test]
fn a_gateway_that_names_anothers_composite_sa_neither_replaces_nor_revokes_it() {
    let (mut world, mut second, held) = set();
    assert_eq!(seen(&mut world), 2);
    second.grant(&mut world, like(&held, held.csa, held.csa));
    assert_eq!(gateways(&world), ["gw", "second"]);
    assert_eq!(seen(&mut world), 2);
    second.revoke(&mut world, held.csa);
    assert_eq!(gateways(&world), ["gw"]);
    second.revoke(&mut world, held.csa);
    assert_eq!(gateways(&world), ["gw"]);
    assert_eq!(seen(&mut world), 2);
    let csas = world.nodes[GATEWAY].composite_sas();
    assert_eq!(csas[0].grants[0].state, GrantState::Held);
}

// Weakness: 104
#[test]
fn a_gateway_that_is_lost_takes_nothing_of_anothers_with_it() {
    let (mut world, mut second, held) = set();
    second.grant(&mut world, like(&held, held.csa, held.csa));
    second.node.shutdown(world.now);
    second.talk(&mut world);
    assert_eq!(gateways(&world), ["gw"]);
    assert_eq!(seen(&mut world), 2);
}

// Weakness: 104
#[test]
fn a_gateway_that_fills_its_slots_of_an_spi_keeps_no_other_out() {
    let (mut world, mut second, held) = set();
    let fa = |node: &mut Node, now, up: bool| match up {
        true => node.up("fa", now),
        false => node.down("fa", now),
    };
    world
        .command(GATEWAY, |node, now| fa(node, now, false))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    assert!(gateways(&world).is_empty());
    for number in 1..=6 {
        second.grant(&mut world, like(&held, CsaId(number), CsaId(number)));
    }
    assert_eq!(gateways(&world).len(), 4);
    let its_id = world.nodes[LICENSED].id("second").unwrap();
    let unusable = |event: &&Event| matches!(event, Event::GrantUnusable { gateway, .. } if *gateway == its_id);
    assert_eq!(world.events[LICENSED].iter().filter(unusable).count(), 2);
    world
        .command(GATEWAY, |node, now| fa(node, now, true))
        .unwrap();
    world.run_for(Duration::from_secs(5));
    assert_eq!(gateways(&world).last().unwrap(), "gw");
    assert_eq!(seen(&mut world), 2);
}

// Weakness: 104
#[test]
fn a_gateway_that_names_anothers_line_has_a_line_of_its_own() {
    let (mut world, mut second, held) = set();
    seen(&mut world);
    let flows = world.nodes[LICENSED].flows();
    assert_eq!(flows.len(), 1);
    second.grant(&mut world, like(&held, CsaId(1), held.csa));
    second.revoke(&mut world, CsaId(1));
    assert_eq!(world.nodes[LICENSED].flows(), flows);
}

/// The renewal uses an SPI for which the gateway has reached the limit of grants.
// Weakness: 105
#[test]
fn a_renewal_that_is_of_no_use_leaves_what_it_was_to_renew() {
    let (mut world, mut second, held) = set();
    for number in 1..=4 {
        second.grant(&mut world, like(&held, CsaId(number), CsaId(number)));
    }
    let crowded = like(&held, CsaId(5), CsaId(5));
    let mut good = crowded.clone();
    good.grant = 7;
    (good.from_gateway.spi, good.to_gateway.spi) = (Spi(0x1000), Spi(0x2000));
    second.grant(&mut world, good);
    second.grant(&mut world, crowded);
    let newest = world.nodes[LICENSED].held_grants().pop().unwrap();
    assert_eq!((newest.csa, newest.grant), (CsaId(5), 7));
    second.revoke(&mut world, CsaId(5));
    assert_eq!(gateways(&world).len(), 1 + 4);
}

/// The keys for a token holder are selected by gateway, so they are the second gateway's own.
// Weakness: 104
#[test]
fn a_gateway_that_hands_on_anothers_spis_gives_no_token_holder_its_keys() {
    let (mut world, mut second, held) = set();
    let mut grant = like(&held, held.csa, held.csa);
    grant.onward = Some(model::Onward {
        key: Secret::new(vec![7; model::NODE_SUITE.keymat_len()]),
        licences: vec![Licence {
            node: identity(GATEWAY),
            zone: ZoneId::DESIGNATED,
            right: model::Right::Read,
        }],
    });
    second.grant(&mut world, grant);
    let mut spis = [held.from_gateway, held.to_gateway];
    spis.sort();
    let onward = world.nodes[LICENSED].own.transit.onward(spis);
    let given: Vec<_> = onward
        .map(|(held, grant)| (world.nodes[LICENSED].name(held.gateway), key_of(grant)))
        .collect();
    assert_eq!(given, [("second", vec![6; 20])]);
}

fn key_of(grant: &Grant<Secret>) -> Vec<u8> {
    grant.from_gateway.zones[0].2.expose().to_vec()
}

/// The grant is not renewed, as if the gateway's clock were wrong.
// Weakness: 104
#[test]
fn a_gateway_is_told_of_keys_whose_time_is_over() {
    let mut world = World::connected(Policies::default());
    world.watch.over = true;
    let held = world.nodes[LICENSED].held_grants().remove(0);
    let mut short = like(&held, held.csa, held.csa);
    short.lifetime = Duration::from_secs(5);
    world.command(GATEWAY, |node, now| {
        let sa = node.sa_with("fa").unwrap();
        node.ike.distribute(sa, short, now);
        node.handle_timeout(now);
    });
    world.run_for(Duration::from_secs(10));
    assert!(gateways(&world).is_empty());
    let csas = world.nodes[GATEWAY].composite_sas();
    assert_eq!(csas[0].grants[0].state, GrantState::Refused);
    let told = |event: &Event| matches!(event, Event::GrantRefused { why, .. } if why.to_string().contains("lifetime was over"));
    assert!(world.events[GATEWAY].iter().any(told));
}

// Weakness: 106
#[test]
fn no_grant_has_an_spi_or_a_window_that_cannot_be() {
    let (mut world, mut second, held) = set();
    let good = || like(&held, CsaId(1), CsaId(1));
    let changes: [fn(&mut Grant<Secret>); 4] = [
        |grant| grant.window = 0,
        |grant| grant.window = u32::MAX,
        |grant| grant.from_gateway.spi = Spi(0),
        |grant| grant.to_gateway.spi = Spi(255),
    ];
    for change in changes {
        let mut bad = good();
        change(&mut bad);
        second.grant(&mut world, bad);
        assert_eq!(gateways(&world), ["gw"]);
    }
    second.grant(&mut world, good());
    assert_eq!(gateways(&world), ["gw", "second"]);
}
