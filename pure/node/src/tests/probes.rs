//! Path MTUs found by probes (RFC 8899): two nodes, a path that carries less than their interfaces,
//! and peers that answer wrongly.

use super::datagram::{tcp, udp};
use super::path_mtu::learn;
use super::world::{GATEWAY, Hop, Hosts, MOBILE, Policies, World, fixed_map};
use crate::{Discovery, Event, Node, Origin, Rekey};
use model::{Instant, Mode, Path};
use std::time::Duration;
use wire::probe::{Kind, Probe};

const SECOND: Duration = Duration::from_secs(1);

/// Returns a tunnel whose mobile node probes. The other end does not, but echoes.
fn probing(policies: Policies) -> World {
    let mut world = World::connected(policies);
    world.reconfigure(MOBILE, |config| config.path_mtu = Discovery::Probe);
    world.run_for(SECOND);
    world
}

/// Sends one datagram, so that the path is searched, and lets a time pass.
fn use_for(world: &mut World, time: Duration) {
    world.segment(MOBILE, 1000, b"hello");
    world.run_for(time);
}

fn known(world: &World) -> (Option<u16>, Option<Origin>) {
    let peers = world.nodes[MOBILE].peers();
    let child = peers[0].children.last().unwrap();
    (child.path_mtu, child.path_mtu_origin)
}

/// Returns the lengths outside of ESP packets that an end sent since `from`.
fn lengths(world: &World, who: usize, from: usize) -> Vec<usize> {
    let sealed = world.sealed[from..].iter();
    let sealed = sealed.filter(|(sender, _)| *sender == who);
    sealed.map(|(_, packet)| packet.len() + 28).collect()
}

fn zoned_and_plain() -> [Policies; 3] {
    let plain = Policies {
        stance: crate::Stance::Refuse,
        ..Policies::default()
    };
    let fixed = Policies {
        map: fixed_map(40),
        ..Policies::default()
    };
    [plain, Policies::default(), fixed]
}

#[test]
fn one_probe_and_its_echo_find_a_path_that_carries_what_the_interface_does() {
    for policies in zoned_and_plain() {
        let mut world = probing(policies);
        assert_eq!(known(&world), (Some(1500), Some(Origin::Interface)));
        let from = world.sealed.len();
        use_for(&mut world, 300 * SECOND);
        assert_eq!(known(&world), (Some(1500), Some(Origin::Probed)));
        let [sent, echoed] = [MOBILE, GATEWAY].map(|who| lengths(&world, who, from));
        let probes: Vec<_> = sent.iter().filter(|len| **len > 1400).collect();
        assert!(probes.len() == 1 && *probes[0] > 1492, "{sent:?}");
        assert!(echoed.len() == 1 && echoed[0] < 200, "{echoed:?}");
        let counts = world.nodes[MOBILE].probe_counts();
        assert_eq!((counts.sent, counts.lost), (1, 0));
        assert_eq!(world.nodes[GATEWAY].probe_counts().echoed, 1);
    }
}

#[test]
fn a_path_that_carries_nothing_is_not_probed() {
    let mut world = probing(Policies::default());
    let from = world.sealed.len();
    world.run_for(900 * SECOND);
    assert_eq!(world.sealed.len(), from);
}

#[test]
fn a_narrow_path_is_found_without_any_report() {
    for policies in zoned_and_plain() {
        let mut world = probing(policies);
        world.carries = 1400;
        use_for(&mut world, 60 * SECOND);
        assert_eq!(known(&world), (Some(1400), Some(Origin::Probed)));
        let told = world.events[MOBILE].iter().filter_map(|event| match event {
            Event::PathMtu { outside, .. } => *outside,
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [1400]);
        // The longest datagram that the source may send comes through.
        let longest = world.nodes[MOBILE].peers()[0].children[0].mtu.unwrap();
        let delivered = world.delivered[GATEWAY].len();
        world.segment(MOBILE, 1005, &vec![7; usize::from(longest) - 40]);
        world.run_for(SECOND);
        assert_eq!(world.delivered[GATEWAY].len(), delivered + 1);
    }
}

/// The control: without probes the datagram is lost.
#[test]
fn without_probes_a_long_datagram_is_lost_on_a_narrow_path() {
    let mut world = World::connected(Policies::default());
    world.carries = 1400;
    use_for(&mut world, 60 * SECOND);
    let delivered = world.delivered[GATEWAY].len();
    world.segment(MOBILE, 1005, &[7; 1340]);
    world.run_for(SECOND);
    assert_eq!(world.delivered[GATEWAY].len(), delivered);
}

#[test]
fn a_report_that_is_true_shortens_and_a_forged_one_does_not() {
    for (carries, found) in [(1386, 1386), (1500, 1500)] {
        let mut world = probing(Policies::default());
        use_for(&mut world, 10 * SECOND);
        world.carries = carries;
        let path: Path = world.nodes[MOBILE].peers()[0].children[0].path;
        learn(&mut world, MOBILE, path, 1386);
        assert_eq!(known(&world).1, Some(Origin::Searching));
        world.run_for(5 * SECOND);
        assert_eq!(known(&world).0, Some(found));
        let refuted = world.nodes[MOBILE].disbelieved_path_mtus();
        assert_eq!(refuted, u64::from(carries == 1500));
    }
}

/// Losses, repetitions and delays of a real network, in both directions.
// Recovers: path-mtu
#[test]
fn a_lossy_path_that_reorders_is_found_too() {
    let mut world = probing(Policies::default());
    let hop = Hop::PERFECT.losing(100).repeating(100).delaying(300);
    (world.wireless, world.wired) = (hop, hop);
    world.carries = 1400;
    for _ in 0..4 {
        use_for(&mut world, 620 * SECOND);
        let (mtu, _) = known(&world);
        assert!(mtu.is_some_and(|mtu| mtu <= 1400), "{mtu:?}");
    }
    (world.wireless, world.wired) = (Hop::PERFECT, Hop::PERFECT);
    for _ in 0..2 {
        use_for(&mut world, 620 * SECOND);
    }
    assert_eq!(known(&world).0, Some(1400));
}

/// The loss of probes is no reason to check the peer: liveness knows of datagrams only.
#[test]
fn lost_probes_cause_no_check_of_the_peer() {
    let checks = |discovery| {
        let mut world = World::connected(Policies::default());
        world.reconfigure(MOBILE, |config| config.path_mtu = discovery);
        world.run_for(SECOND);
        world.carries = 1400;
        world.segment(MOBILE, 1000, b"hello");
        world.run_for(Duration::from_millis(100));
        world.segment(GATEWAY, 1, b"hello");
        let before = world.ike.len();
        world.run_for(25 * SECOND);
        (
            world.ike.len() - before,
            world.nodes[MOBILE].probe_counts().lost,
        )
    };
    let (without, _) = checks(Discovery::Off);
    let (with, lost) = checks(Discovery::Probe);
    assert!(lost > 3 && with <= without, "{lost}, {with}, {without}");
}

/// RFC 8899 section 4.3: the peer is silent, because long packets are lost.
#[test]
fn a_path_that_becomes_narrow_without_a_report_is_noticed_by_the_silence() {
    let mut world = probing(Policies::default());
    use_for(&mut world, 10 * SECOND);
    world.segment(GATEWAY, 1, b"hello");
    world.run_for(SECOND);
    world.carries = 1400;
    for second in 0..20 {
        let segment = tcp("10.1.0.2:40000", "10.8.0.1:80", second, 1, &[7; 1330]);
        world.seal_batch(MOBILE, &mut [esp::Packet::from_slice(&segment)]);
        world.run_for(SECOND);
    }
    assert!(known(&world).0 <= Some(1400), "{:?}", known(&world));
}

/// RFC 1191 section 3: a router reports what it cannot forward, with the front of the packet.
#[test]
fn the_report_of_a_router_about_a_probe_is_heard() {
    let mut world = probing(Policies::default());
    (world.carries, world.reports) = (1386, true);
    use_for(&mut world, 2 * SECOND);
    assert_eq!(known(&world), (Some(1386), Some(Origin::Reported)));
    assert_eq!(world.nodes[MOBILE].disbelieved_path_mtus(), 0);
}

/// Before the first echo, nothing is sent that a path of 1,400 octets would not carry.
#[test]
fn from_the_first_datagram_on_a_path_that_drops_fragments_loses_nothing() {
    for policies in zoned_and_plain() {
        let mut world = probing(policies);
        world.carries = 1400;
        let [from, to] = ["10.1.0.2:5000", "10.8.0.1:5000"].map(|end| end.parse().unwrap());
        for number in 0..50 {
            let delivered = world.delivered[GATEWAY].len();
            let mut batch = [esp::Packet::from_slice(&udp(from, to, &[7; 1390]))];
            world.seal_batch(MOBILE, &mut batch);
            world.run_for(SECOND / 10);
            let came = &world.delivered[GATEWAY][delivered..];
            let octets: usize = came.iter().map(|piece| piece.len() - 20).sum();
            assert_eq!(octets, 1398, "{number}: {}", came.len());
        }
    }
}

/// The other end sends soon after a probe has arrived, and then knows the length.
#[test]
fn a_probe_that_arrives_begins_the_search_of_the_other_end() {
    let mut world = probing(Policies::default());
    world.reconfigure(GATEWAY, |config| config.path_mtu = Discovery::Probe);
    world.run_for(SECOND);
    use_for(&mut world, SECOND);
    let peers = world.nodes[GATEWAY].peers();
    let alice = peers.iter().find(|peer| !peer.children.is_empty()).unwrap();
    assert_eq!(alice.children[0].path_mtu_origin, Some(Origin::Probed));
    assert_eq!(alice.children[0].sent.packets, 0);
}

/// RFC 4555: the new path is searched anew. What came through before is presumed, and if it does
/// not here, no more than a quarter of a second and a round trip is lost.
// Weakness: 167
#[test]
fn a_tunnel_that_moves_to_a_narrow_path_is_no_black_hole() {
    let mut world = probing(Policies::default());
    world.reconfigure(GATEWAY, |config| config.path_mtu = Discovery::Probe);
    use_for(&mut world, 5 * SECOND);
    world.segment(GATEWAY, 1, b"hello");
    world.run_for(5 * SECOND);
    let gateways = |world: &World| {
        let peers = world.nodes[GATEWAY].peers();
        let child = peers.iter().flat_map(|peer| &peer.children).last();
        child
            .map(|child| (child.path, child.path_mtu, child.path_mtu_origin))
            .unwrap()
    };
    let (before, mtu, _) = gateways(&world);
    assert_eq!(mtu, Some(1500));
    // Another network, and a NAT.
    world.nat.outside = "192.0.2.99".parse().unwrap();
    world.nat.shift = 7;
    world.carries = 1400;
    let mut number = 1000;
    let mut exchange = |world: &mut World| {
        number += 1400;
        world.segment(MOBILE, number, b"here");
        let long = tcp("10.8.0.1:80", "10.1.0.2:40000", number, 1, &[7; 1340]);
        world.seal_batch(GATEWAY, &mut [esp::Packet::from_slice(&long)]);
        world.run_for(SECOND / 20);
    };
    let mut moved = None;
    for _ in 0..2000 {
        exchange(&mut world);
        if gateways(&world).0 != before {
            moved = Some(world.now);
            break;
        }
    }
    let moved = moved.expect("the gateway follows");
    let known = |world: &World| gateways(world).1.is_some_and(|mtu| mtu <= 1400);
    while !known(&world) {
        exchange(&mut world);
        assert!(world.now < moved + SECOND / 2, "{:?}", gateways(&world));
    }
    world.run_for(30 * SECOND);
    assert_eq!(gateways(&world).1, Some(1400));
}

#[test]
fn new_keys_keep_what_is_known_and_a_moved_tunnel_starts_again() {
    let mut world = probing(Policies::default());
    world.carries = 1400;
    use_for(&mut world, 60 * SECOND);
    let rekey = |node: &mut Node, now: Instant| node.rekey("gw", Rekey::Children, now);
    world.command(MOBILE, rekey).unwrap();
    world.run_for(5 * SECOND);
    assert_eq!(known(&world), (Some(1400), Some(Origin::Probed)));
    let sent = world.nodes[MOBILE].probe_counts().sent;
    use_for(&mut world, 60 * SECOND);
    assert_eq!(world.nodes[MOBILE].probe_counts().sent, sent);
}

#[test]
fn at_an_end_that_does_not_probe_nothing_is_limited() {
    let mut world = probing(Policies::default());
    use_for(&mut world, 10 * SECOND);
    let peers = world.nodes[GATEWAY].peers();
    assert_eq!(peers[0].children[0].path_mtu, None);
}

/// A peer with the keys repeats echoes, makes up others, and sends probes in a flood.
// Refuses: path-mtu
// Weakness: 158
#[test]
fn a_peer_that_echoes_wrongly_gains_nothing() {
    let mut world = probing(Policies::default());
    world.carries = 1400;
    use_for(&mut world, 60 * SECOND);
    let id = world.nodes[GATEWAY]
        .own
        .tunnels
        .children()
        .iter()
        .next()
        .unwrap()
        .0;
    let begun = world.nodes[MOBILE].probe_counts();
    for number in 0..100 {
        for kind in [Kind::Echo, Kind::Probe] {
            let mut packet = esp::Packet::with_capacity(2000);
            let probe = Probe {
                kind,
                octets: 1300,
                number,
            };
            let path = world.nodes[GATEWAY].plane.probe(id, probe, &mut packet);
            let path = path.unwrap().reversed();
            world.hand_over(MOBILE, path, packet.octets());
        }
    }
    world.run_for(SECOND);
    assert_eq!(known(&world), (Some(1400), Some(Origin::Probed)));
    // At most eight in a second are answered.
    let counts = world.nodes[MOBILE].probe_counts();
    assert_eq!(counts.echoed - begun.echoed, 8);
}

#[test]
fn in_transport_mode_a_narrow_path_is_found_too() {
    let mut world = probing(Policies {
        mode: Mode::Transport,
        ..Policies::default()
    });
    world.carries = 1400;
    use_for(&mut world, 60 * SECOND);
    assert_eq!(known(&world), (Some(1400), Some(Origin::Probed)));
}

/// IPv4 without DF (RFC 4301 section 8.1): no packet outside is longer than the path.
#[test]
fn a_datagram_that_may_be_fragmented_is_before_it_is_sealed() {
    let mut world = probing(Policies::default());
    world.carries = 1400;
    use_for(&mut world, 60 * SECOND);
    let [from, to] = ["10.1.0.2:5000", "10.8.0.1:5000"].map(|end| end.parse().unwrap());
    let datagram = udp(from, to, &[7; 1400]);
    let (from, delivered) = (world.sealed.len(), world.delivered[GATEWAY].len());
    let mut batch = [esp::Packet::from_slice(&datagram)];
    world.seal_batch(MOBILE, &mut batch);
    world.run_for(SECOND);
    assert_eq!(world.delivered[GATEWAY].len(), delivered + 2);
    let lengths = lengths(&world, MOBILE, from);
    assert!(
        lengths.len() == 2 && lengths.iter().all(|len| *len <= 1400),
        "{lengths:?}"
    );
    assert_eq!(world.nodes[MOBILE].esp_counters().cut, 1);
}
