//! The invariants of DESIGN section 4, one test each under its number, as far as they apply today:
//! 7 waits for mobility, 8 for resumption. Each test has a control that violates the invariant on
//! purpose, and must be detected.

use super::accounts;
use super::ledger::Ledger;
use super::world::{
    Flight, GATEWAY, Hop, Hosts, LICENSED, MOBILE, PSK, Policies, World, address, licence,
};
use crate::{DropReason, Event, KeyLog, Stance};
use model::{Keys, Path, ZoneId, ZoneSuite};
use std::net::SocketAddr;
use std::time::Duration;
use wire::esp::HEADER_LEN;
use wire::ike::{Datagram, Message, PayloadType};
use wire::zoned::{Layout, Map};

const PAYLOAD_ZONE: ZoneId = ZoneId(2);

/// Runs all kinds of protected traffic: data, losses, a restart, a new tunnel.
fn busy(ledger: &mut Ledger, seed: u64) {
    let mut world = World::seeded(Policies::default(), seed);
    world.run_for(Duration::from_secs(10));
    for round in 0..4 {
        (world.wireless.lost, world.wired.repeated) = (100, 100);
        for n in 0..20 {
            ledger.learn(&world);
            world.segment(MOBILE, n, &[round; 10]);
            world.segment(GATEWAY, n, &[round; 500]);
        }
        ledger.enter(&mut world);
        match round {
            0 => world.restart(MOBILE),
            1 => drop(world.command(MOBILE, |node, now| node.down("gw", now))),
            _ => drop(world.command(MOBILE, |node, now| node.up("gw", now))),
        }
        world.run_for(Duration::from_secs(100));
    }
    ledger.enter(&mut world);
}

// Weakness: 75
// Weakness: S3
#[test]
fn invariant_1_no_key_and_nonce_pair_twice() {
    let mut ledger = Ledger::default();
    busy(&mut ledger, 1);
    busy(&mut ledger, 2);
    assert!(ledger.seen > 100);
}

/// Processes that start with the randomness of earlier ones derive the same keys.
#[test]
#[should_panic(expected = "sealed t")]
fn control_1_the_same_randomness_again_is_noticed() {
    let mut ledger = Ledger::default();
    busy(&mut ledger, 1);
    busy(&mut ledger, 1);
}

/// Returns a connected world that loses all packets, and the packets that the mobile node sealed in
/// it.
fn sealed(datagrams: u32) -> (World, Vec<Vec<u8>>) {
    let mut world = World::connected(Policies::default());
    world.wireless = Hop::DEAD;
    for n in 0..datagrams {
        world.segment(MOBILE, n * 100, &[n as u8; 100]);
    }
    let packets = world.sealed.drain(..).map(|(_, packet)| packet).collect();
    (world, packets)
}

/// Returns the reason why the gateway drops a packet, or `None` if the packet was delivered.
fn opened(world: &mut World, packet: &[u8]) -> Option<DropReason> {
    let (local, remote) = (address(GATEWAY), address(MOBILE));
    let path = Path::udp(SocketAddr::new(local, 4500), SocketAddr::new(remote, 4500));
    let delivered = world.delivered[GATEWAY].len();
    world.hand_over(GATEWAY, path, packet);
    let dropped = world.dropped[GATEWAY].pop();
    let released = world.delivered[GATEWAY].len() - delivered;
    assert_eq!(dropped.is_none(), released == 1);
    dropped
}

// Weakness: 77
// Weakness: 78
#[test]
fn invariant_2_replay_then_authentication_then_the_window_then_release() {
    let (mut world, packets) = sealed(1);
    let mut forged = packets[0].clone();
    forged[4..8].copy_from_slice(&0xffff_0000_u32.to_be_bytes());
    assert!(opened(&mut world, &forged).is_some());
    for at in HEADER_LEN..packets[0].len() {
        let mut damaged = packets[0].clone();
        damaged[at] ^= 1;
        assert!(opened(&mut world, &damaged).is_some(), "octet {at}");
    }
    assert_eq!(opened(&mut world, &packets[0]), None);
    assert_eq!(opened(&mut world, &packets[0]), Some(DropReason::Replayed));
}

#[test]
fn control_2_a_genuine_packet_does_move_the_window() {
    let (mut world, packets) = sealed(4097);
    assert_eq!(opened(&mut world, &packets[4096]), None);
    assert_eq!(opened(&mut world, &packets[0]), Some(DropReason::TooOld));
}

fn layout(packet: &[u8]) -> Layout {
    let map = Map::parse(&packet[HEADER_LEN..], PAYLOAD_ZONE).unwrap();
    Layout::of_packet(map, &[ZoneSuite::Aes128Gcm16; 2], packet.len()).unwrap()
}

/// Replaces a zone of `packet` with that of `other`, which has the same length.
fn with_zone_of(packet: &[u8], other: &[u8], zone: ZoneId) -> Vec<u8> {
    let place = layout(packet).body(zone).unwrap().all();
    let mut lifted = packet.to_vec();
    lifted[place.clone()].copy_from_slice(&other[place]);
    lifted
}

// Weakness: S1
// Answers: licence-forging
#[test]
fn invariant_3_no_zone_is_lifted_and_only_headers_are_in_a_licensed_one() {
    let (mut world, packets) = sealed(2);
    for zone in [ZoneId(1), PAYLOAD_ZONE] {
        let lifted = with_zone_of(&packets[0], &packets[1], zone);
        assert!(opened(&mut world, &lifted).is_some());
    }
    let mut longer = packets[0].clone();
    longer.extend([0; 16]);
    let mut other_map = packets[0].clone();
    other_map[HEADER_LEN + 3] -= 1;
    for changed in [&packets[0][..packets[0].len() - 1], &longer, &other_map] {
        assert!(opened(&mut world, changed).is_some());
    }
    let headers = layout(&packets[0]).body(ZoneId(1)).unwrap().text().len();
    assert_eq!(headers, 20 + 20 + 1, "IP, TCP and the next header");
}

#[test]
fn control_3_a_packet_that_is_put_together_as_it_was_opens() {
    let (mut world, packets) = sealed(1);
    let same = with_zone_of(&packets[0], &packets[0], ZoneId(1));
    assert_eq!(opened(&mut world, &same), None);
}

/// Returns the zones whose keys a licensed node gets under these licences.
fn granted(mobile: &[u8], gateway: &[u8]) -> Vec<ZoneId> {
    let licences = |zones: &[u8]| {
        let licences = zones.iter().map(|zone| licence("fa.example.net", *zone));
        licences.collect()
    };
    let world = World::connected(Policies {
        mobile: licences(mobile),
        gateway: licences(gateway),
        ..Policies::default()
    });
    let held = world.nodes[LICENSED].held_grants();
    held.into_iter().flat_map(|grant| grant.zones).collect()
}

// Weakness: 45
// Weakness: S7
// Answers: consent-end
#[test]
fn invariant_4_a_node_learns_only_keys_that_both_ends_license() {
    assert_eq!(granted(&[], &[1]), []);
    assert_eq!(granted(&[1], &[]), []);
    assert_eq!(granted(&[1, 2], &[1]), [ZoneId(1)]);
    assert_eq!(granted(&[1], &[1, 2]), [ZoneId(1)]);
}

#[test]
fn control_4_what_both_license_by_name_is_learnt() {
    assert_eq!(granted(&[1, 2], &[1, 2]), [ZoneId(1), PAYLOAD_ZONE]);
}

/// Restarts both endpoints with changed licences while no message reaches the licensed node.
/// Returns the number of headers that the node sees of the new tunnel.
fn seen_afterwards(change: impl Fn(&mut Policies)) -> u64 {
    let mut world = World::connected(Policies::default());
    let before = world.spis(GATEWAY);
    change(&mut world.policies);
    world.deaf[LICENSED] = true;
    world.restart(GATEWAY);
    world.restart(MOBILE);
    world.run_for(Duration::from_secs(10));
    assert_ne!(world.spis(GATEWAY), before);
    let held = world.nodes[LICENSED].held_grants();
    assert!(!held.is_empty(), "it never forgot what it had");
    let segments = world.nodes[LICENSED].transit_counters().segments;
    let datagram = world.segment(MOBILE, 1, b"who can read this?");
    world.run_for(Duration::from_secs(1));
    assert!(world.delivered[GATEWAY].contains(&datagram));
    world.nodes[LICENSED].transit_counters().segments - segments
}

// Answers: duration-key
// Answers: end-kept
#[test]
fn invariant_5_revocation_needs_no_help_of_the_node() {
    assert_eq!(seen_afterwards(|policies| policies.gateway.clear()), 0);
}

// Answers: duration-recorded
#[test]
fn control_5_a_tunnel_that_is_not_made_anew_is_seen() {
    let mut world = World::connected(Policies::default());
    world.deaf[LICENSED] = true;
    world.segment(MOBILE, 1, b"who can read this?");
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.nodes[LICENSED].transit_counters().segments, 1);
}

/// Both ends accept plain ESP, and an attacker between them modifies their first messages.
fn negotiated_through(change: fn(&mut Message)) -> World {
    let mut world = World::new(Policies {
        stance: Stance::Accept,
        ..Policies::default()
    });
    (world.wireless, world.wired) = (Hop::DEAD, Hop::DEAD);
    for _ in 0..6 {
        world.run_for(Duration::from_millis(10));
        for mut flight in std::mem::take(&mut world.past) {
            if let Ok(Datagram::Clear(mut message)) = Datagram::decode(&flight.payload) {
                change(&mut message);
                flight.payload = message.encode();
            }
            world.inject(Flight {
                passed: true,
                ..flight
            });
        }
    }
    world
}

// Weakness: S6
#[test]
fn invariant_6_nobody_between_the_ends_can_talk_them_out_of_zones() {
    let world = negotiated_through(|message| {
        let ours = PayloadType::VENDOR_ID;
        message.payloads.retain(|payload| payload.kind() != ours);
    });
    assert!(!world.tunnel_is_up());
    assert_eq!((world.spis(MOBILE), world.spis(GATEWAY)), (vec![], vec![]));
}

#[test]
fn control_6_ends_whose_messages_are_left_alone_agree_on_zones() {
    let world = negotiated_through(|_| {});
    assert!(world.tunnel_is_up());
    assert_eq!(world.nodes[MOBILE].composite_sas().len(), 1);
}

/// Returns everything that any host reveals.
fn shown(world: &World) -> String {
    let nodes = world.nodes.iter().map(|node| {
        let (status, csas) = (node.peers(), node.composite_sas());
        format!("{status:?} {csas:?} {:?}", node.held_grants())
    });
    let events = format!("{:?}", world.events);
    nodes.chain([events]).collect::<Vec<_>>().join("\n")
}

/// Returns the secrets of a world, in the form in which code would print octets.
fn secrets(world: &World) -> Vec<String> {
    let mut secrets = vec![PSK.as_bytes().to_vec()];
    for (_, csa) in world.nodes[GATEWAY].own.licensing.grants().iter() {
        for half in [&csa.inbound, &csa.outbound] {
            let Keys::Zoned(zones) = &half.keys else {
                panic!("composite SAs have zones")
            };
            // The salt after the key of an AEAD is not secret.
            let key = |octets: &[u8]| octets[..16].to_vec();
            secrets.extend(zones.iter().map(|zone| key(zone.key.expose())));
        }
    }
    let printed = |octets: &Vec<u8>| {
        let hex = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        [
            hex,
            format!("{octets:?}"),
            String::from_utf8_lossy(octets).into_owned(),
        ]
    };
    secrets.iter().flat_map(printed).collect()
}

#[test]
fn invariant_9_secrets_are_never_shown_and_keys_not_exported_unasked() {
    let world = World::connected(Policies::default());
    let shown = shown(&world);
    for secret in secrets(&world) {
        assert!(!shown.contains(&secret), "{secret}");
    }
    let exported = |event: &Event| matches!(event, Event::KeyLog(_));
    assert!(!world.events.iter().flatten().any(exported));
}

#[test]
fn control_9_keys_that_are_asked_for_are_noticed() {
    let mut world = World::connected(Policies::default());
    world.command(MOBILE, |node, _| node.set_key_log(true));
    let exported = |event: &Event| matches!(event, Event::KeyLog(KeyLog::Ike(_)));
    assert!(world.events[MOBILE].iter().any(exported));
    let secrets = secrets(&world);
    assert!(secrets.len() > 12);
    assert!(format!("{:?}", PSK.as_bytes()).contains(&secrets[1]));
}

/// Feeds a host's IKE and ESP inputs with octets of every short length.
fn pelt(world: &mut World, who: usize) -> u64 {
    let mut handed = 0;
    for (port, marker) in [(500, vec![]), (4500, vec![0; 4]), (4500, vec![0xff; 4])] {
        for len in 0..200 {
            let payload = [marker.clone(), vec![len as u8; len]].concat();
            let end = |who| SocketAddr::new(address(who), port);
            let path = Path::udp(end(who), end((who + 1) % 3));
            world.hand_over(who, path, &payload);
            handed += 1;
        }
    }
    handed
}

#[test]
fn invariant_10_whatever_comes_is_counted_once_and_what_is_refused_says_why() {
    let mut world = World::connected(Policies::default());
    for who in [MOBILE, GATEWAY, LICENSED] {
        let count =
            |world: &World| accounts::ike(&world.nodes[who]) + accounts::opening(&world.nodes[who]);
        let before = count(&world);
        let handed = pelt(&mut world, who);
        assert_eq!(count(&world) - before, handed);
    }
    world.policies.stance = Stance::Refuse;
    world.restart(MOBILE);
    world.run_for(Duration::from_secs(1));
    let refused = world.nodes[MOBILE].peers()[0].refusal.clone();
    let why = refused.expect("the gateway requires zones").why.to_string();
    assert!(why.len() > 20, "a person can read it: {why}");
}

/// The counters of one host do not count the input of another.
#[test]
fn control_10_what_is_not_handed_over_is_not_counted() {
    let mut world = World::connected(Policies::default());
    let before = accounts::opening(&world.nodes[GATEWAY]);
    pelt(&mut world, MOBILE);
    assert_eq!(accounts::opening(&world.nodes[GATEWAY]), before);
    world.segment(GATEWAY, 1, b"sealed, not opened");
    assert_eq!(accounts::opening(&world.nodes[GATEWAY]), before);
}
