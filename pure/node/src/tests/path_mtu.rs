//! Path MTUs reported by routers (RFC 4301 section 8.2): their scope, their lifetime, and
//! forgeries.

use super::datagram::udp;
use super::world::{GATEWAY, Hosts, MOBILE, Nat, Policies, World};
use crate::{Discovery, Event, Node, Rekey};
use model::{Instant, Path, Spi};
use std::time::Duration;
use wire::esp::Header;
use wire::quoted::Quoted;

const MINUTE: Duration = Duration::from_secs(60);

/// Returns a tunnel whose ends discover path MTUs.
fn asking(policies: Policies) -> World {
    let mut world = World::connected(policies);
    for who in [MOBILE, GATEWAY] {
        world.reconfigure(who, |config| config.path_mtu = Discovery::Icmp);
    }
    world
}

fn path(world: &World, who: usize) -> Path {
    world.nodes[who].peers()[0].children[0].path
}

/// Reports that a packet of the first tunnel was too long for a path.
pub fn learn(world: &mut World, who: usize, path: Path, mtu: u16) {
    let header = Some(sent(world, who));
    let report = Quoted { path, header, mtu };
    world.command(who, |node, now| node.handle_too_big(report, now));
}

/// Returns the ESP header of a packet that counts as sent on the first tunnel.
fn sent(world: &World, who: usize) -> Header {
    const NUMBER: u64 = 1000;
    let node = &world.nodes[who];
    let (id, child) = node.own.tunnels.children().iter().next().unwrap();
    node.plane.apply(esp::Command::SkipTo(id, NUMBER));
    Header::new(child.status.outbound, NUMBER)
}

/// Returns the path MTU known to each tunnel.
fn known(world: &World, who: usize) -> Vec<Option<u16>> {
    let peers = world.nodes[who].peers();
    let children = peers[0].children.iter();
    children.map(|child| child.path_mtu).collect()
}

/// Returns the path MTUs reported to the operator.
fn told(world: &World, who: usize) -> Vec<Option<u16>> {
    let told = world.events[who].iter().filter_map(|event| match event {
        Event::PathMtu { outside, .. } => Some(*outside),
        _ => None,
    });
    told.collect()
}

#[test]
fn what_is_known_holds_for_every_tunnel_on_the_path_and_is_told_once() {
    let mut world = asking(Policies {
        voice: true,
        ..Policies::default()
    });
    let path = path(&world, MOBILE);
    for _ in 0..3 {
        learn(&mut world, MOBILE, path, 1400);
    }
    assert_eq!(known(&world, MOBILE), [Some(1400); 2]);
    assert_eq!(told(&world, MOBILE), [Some(1400)]);
    assert_eq!(known(&world, GATEWAY), [None; 2]);
}

/// "An implementation should 'age' cached values" (RFC 1191 section 6.3): a path does not report
/// that it accepts longer packets again.
// Recovers: path-mtu
#[test]
fn it_is_forgotten_after_ten_minutes() {
    let mut world = asking(Policies::default());
    let path = path(&world, MOBILE);
    learn(&mut world, MOBILE, path, 1400);
    world.run_for(9 * MINUTE);
    assert_eq!(known(&world, MOBILE), [Some(1400)]);
    // A repeated report restarts the time.
    learn(&mut world, MOBILE, path, 1400);
    world.run_for(9 * MINUTE);
    assert_eq!(known(&world, MOBILE), [Some(1400)]);
    world.run_for(2 * MINUTE);
    assert_eq!(known(&world, MOBILE), [None]);
    assert_eq!(told(&world, MOBILE), [Some(1400), None]);
}

#[test]
fn new_keys_change_nothing_of_it() {
    let mut world = asking(Policies::default());
    let path = path(&world, MOBILE);
    learn(&mut world, MOBILE, path, 1400);
    let rekey = |node: &mut Node, now: Instant| node.rekey("gw", Rekey::Children, now);
    world.command(MOBILE, rekey).unwrap();
    world.run_for(Duration::from_secs(5));
    assert!(known(&world, MOBILE).iter().all(|mtu| *mtu == Some(1400)));
    assert_eq!(told(&world, MOBILE), [Some(1400)]);
}

/// The mobile node appears with another address: that is another path with an unknown MTU. The old
/// value applies again when the node returns.
// Recovers: path-mtu
#[test]
fn it_does_not_follow_a_tunnel_that_moves() {
    let mut world = asking(Policies::default());
    let (before, home) = (path(&world, GATEWAY), world.nat);
    learn(&mut world, GATEWAY, before, 1400);
    let elsewhere = Nat {
        outside: "192.0.2.99".parse().unwrap(),
        shift: 7,
    };
    for (nat, expected) in [(elsewhere, None), (home, Some(1400))] {
        world.nat = nat;
        // A changed NAT mapping is detected by packets from the new address.
        world.run_for(2 * MINUTE);
        world.segment(MOBILE, 1000, b"hello");
        world.run_for(Duration::from_secs(20));
        assert_eq!(path(&world, GATEWAY).remote.ip(), nat.outside);
        assert_eq!(known(&world, GATEWAY), [expected]);
    }
}

/// RFC 4301 section 8.2.1: such a message can be forged. A value that no path can have is ignored
/// and reported to the operator.
// Refuses: path-mtu
// Weakness: 82
#[test]
fn what_cannot_be_is_not_believed_and_told() {
    let mut world = asking(Policies::default());
    let path = path(&world, MOBILE);
    for (mtu, disbelieved) in [(0, 1), (68, 2), (575, 3), (576, 3)] {
        learn(&mut world, MOBILE, path, mtu);
        let node = &world.nodes[MOBILE];
        assert_eq!(node.disbelieved_path_mtus(), disbelieved, "{mtu}");
        let believed = (mtu == 576).then_some(mtu);
        assert_eq!(known(&world, MOBILE), [believed]);
    }
    let forged = world.events[MOBILE].iter();
    let forged = forged.filter(|event| matches!(event, Event::PathMtuForged { .. }));
    assert_eq!(forged.count(), 3);
    // Even with the smallest accepted value a tunnel carries 1280 octets.
    let peers = world.nodes[MOBILE].peers();
    assert_eq!(peers[0].children[0].mtu, Some(1280));
}

/// RFC 4301 section 8.2.1: whoever knows only addresses and ports, or has seen a packet long ago,
/// changes nothing. The control is the report of a router.
// Refuses: path-mtu
// Weakness: 166
#[test]
fn a_report_that_quotes_no_packet_of_ours_changes_nothing() {
    for discovery in [Discovery::Icmp, Discovery::Probe] {
        let mut world = asking(Policies::default());
        world.reconfigure(MOBILE, |config| config.path_mtu = discovery);
        world.run_for(Duration::from_secs(1));
        world.segment(MOBILE, 1000, b"hello");
        world.run_for(Duration::from_secs(5));
        let path = path(&world, MOBILE);
        let sent = sent(&world, MOBILE);
        let state = |world: &World| {
            let node = &world.nodes[MOBILE];
            let (sent, events) = (node.probe_counts().sent, world.events[MOBILE].len());
            (known(world, MOBILE), sent, events, node.poll_timeout())
        };
        let before = state(&world);
        let spi = Spi(sent.spi.0 ^ 1);
        let inbound = world.nodes[MOBILE].peers()[0].children[0].inbound;
        let forged = [
            None,
            Some(Header { spi, ..sent }),
            // The packets of the peer are seen as well.
            Some(Header {
                spi: inbound,
                ..sent
            }),
            Some(Header { seq: 0, ..sent }),
            Some(Header {
                seq: sent.seq + 2000,
                ..sent
            }),
            Some(Header {
                seq: sent.seq ^ (1 << 31),
                ..sent
            }),
        ];
        for (count, header) in (1..).zip(forged) {
            let report = Quoted {
                path,
                header,
                mtu: 1386,
            };
            world.command(MOBILE, |node, now| node.handle_too_big(report, now));
            assert_eq!(state(&world), before, "{header:?}");
            assert_eq!(world.nodes[MOBILE].disbelieved_path_mtus(), count);
        }
        // What programs besides this one have sent, and IKE, are not even counted.
        let elsewhere = Path::udp(path.local, "203.0.113.99:4500".parse().unwrap());
        let ike = Header {
            spi: Spi(0),
            seq: 7,
        };
        for (path, header) in [(elsewhere, sent), (path, ike)] {
            let header = Some(header);
            let report = Quoted {
                path,
                header,
                mtu: 1386,
            };
            world.command(MOBILE, |node, now| node.handle_too_big(report, now));
            assert_eq!(state(&world), before);
        }
        assert_eq!(world.nodes[MOBILE].disbelieved_path_mtus(), 6);
        learn(&mut world, MOBILE, path, 1386);
        assert_ne!(state(&world), before, "{discovery:?}");
    }
}

/// What the system refuses is longer than the interface, which needs no report.
#[test]
fn without_probes_the_interface_limits_packets_too() {
    let mut world = asking(Policies::default());
    let path = path(&world, MOBILE);
    let interface = |world: &mut World, mtu| {
        world.command(MOBILE, |node, now| {
            node.handle_interface_mtu(path, mtu, now)
        });
    };
    interface(&mut world, 1400);
    let datagram = |octets: usize| {
        let [from, to] = ["10.1.0.2:5000", "10.8.0.1:5000"].map(|end| end.parse().unwrap());
        esp::Packet::from_slice(&udp(from, to, &vec![7; octets - 28]))
    };
    for (octets, packets) in [(1300, 1), (1380, 2)] {
        let from = world.sealed.len();
        world.seal_batch(MOBILE, &mut [datagram(octets)]);
        assert_eq!(world.sealed.len() - from, packets, "{octets}");
    }
    // A router's report counts if it is less, and stays where the interface allows more.
    learn(&mut world, MOBILE, path, 1350);
    interface(&mut world, 1400);
    assert_eq!(known(&world, MOBILE), [Some(1350)]);
    interface(&mut world, 1300);
    assert_eq!(known(&world, MOBILE), [Some(1300)]);
}

/// The system returns the value with each packet for as long as it keeps it.
// Weakness: 116
#[test]
fn what_is_not_believed_of_a_tunnel_of_mobile_ip_is_told_once_in_ten_minutes() {
    let mut world = asking(Policies::default());
    let path = path(&world, MOBILE).without_udp();
    let (node, begun) = (&mut world.nodes[MOBILE], world.now);
    for minutes in [0, 1, 9, 10, 11] {
        let now = begun + minutes * MINUTE;
        node.disbelieve_path_mtu(path, 552, now);
    }
    assert_eq!(node.disbelieved_path_mtus(), 2);
    let forged = std::iter::from_fn(|| node.poll_event());
    let forged = forged.filter(|event| matches!(event, Event::PathMtuForged { mtu: 552, .. }));
    assert_eq!(forged.count(), 2);
}

/// Such paths are unlimited in number, so a value is kept only for paths that a tunnel uses.
// Refuses: path-mtu
#[test]
fn a_path_that_nobody_takes_is_not_remembered() {
    let mut world = asking(Policies::default());
    let path = path(&world, MOBILE);
    let before = world.nodes[MOBILE].poll_timeout();
    let elsewhere = Path::udp(path.local, "203.0.113.99:4500".parse().unwrap());
    learn(&mut world, MOBILE, elsewhere, 1400);
    assert_eq!(known(&world, MOBILE), [None]);
    assert_eq!(world.nodes[MOBILE].poll_timeout(), before);
}

#[test]
fn who_does_not_ask_learns_nothing_and_who_ends_asking_forgets() {
    let mut world = World::connected(Policies::default());
    let path = path(&world, MOBILE);
    learn(&mut world, MOBILE, path, 1400);
    assert_eq!(known(&world, MOBILE), [None]);
    world.reconfigure(MOBILE, |config| config.path_mtu = Discovery::Icmp);
    learn(&mut world, MOBILE, path, 1400);
    assert_eq!(known(&world, MOBILE), [Some(1400)]);
    world.reconfigure(MOBILE, |config| config.path_mtu = Discovery::Off);
    assert_eq!(known(&world, MOBILE), [None]);
    world.reconfigure(MOBILE, |config| config.path_mtu = Discovery::Icmp);
    assert_eq!(known(&world, MOBILE), [None]);
}
