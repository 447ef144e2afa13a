//! Transport and BEET mode between whole hosts: delivered datagrams, and the packets outside.

use super::world::{GATEWAY, Hop, Hosts, LICENSED, MOBILE, Policies, World};
use crate::{CannotMove, DropReason, Event, Rekey, Stance};
use ike::CannotMove as Why;
use model::Mode;
use std::time::Duration;
use wire::ip::Header;

const BOTH: [Mode; 2] = [Mode::Transport, Mode::Beet];

fn policies(mode: Mode) -> Policies {
    Policies {
        mobile: Vec::new(),
        gateway: Vec::new(),
        stance: Stance::Refuse,
        snoop: false,
        mode,
        ..Policies::default()
    }
}

/// Sends segments each way. Returns the delivered ones together with the sent ones.
fn exchange(world: &mut World, first: u32, count: u32) -> [Vec<Vec<u8>>; 2] {
    let mut sent = [Vec::new(), Vec::new()];
    for number in first..first + count {
        for who in [MOBILE, GATEWAY] {
            let segment = world.segment(who, 4 * number, &number.to_be_bytes());
            sent[who].push(segment);
            world.run_for(Duration::from_millis(10));
        }
    }
    world.run_for(Duration::from_secs(1));
    sent
}

/// Compares the parts that survive in these modes: addresses, protocol and payload.
fn same(sent: &[u8], came: &[u8]) -> bool {
    let (sent, came) = (Header::parse(sent).unwrap(), Header::parse(came).unwrap());
    sent.flow() == came.flow() && sent.payload() == came.payload() && came.checksum_is_right()
}

fn arrived(world: &World, sent: &[Vec<Vec<u8>>; 2]) {
    for (from, to) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
        assert_eq!(world.delivered[to].len(), sent[from].len());
        let mut pairs = sent[from].iter().zip(&world.delivered[to]);
        assert!(pairs.all(|(sent, came)| same(sent, came)));
    }
}

#[test]
fn what_goes_in_comes_out_at_the_other_end() {
    for mode in BOTH {
        let mut world = World::connected(policies(mode));
        let sent = exchange(&mut world, 0, 20);
        arrived(&world, &sent);
        for who in [MOBILE, GATEWAY] {
            assert_eq!(world.dropped[who], []);
            let up = world.events[who].iter().find_map(|event| match event {
                Event::ChildUp { mode, .. } => Some(*mode),
                _ => None,
            });
            assert_eq!(up, Some(mode));
            let peers = world.nodes[who].peers();
            assert_eq!(peers[0].children[0].mode, mode);
        }
    }
}

/// The same segments are twenty octets longer in tunnel mode.
#[test]
fn no_header_is_inside() {
    let longest = |mode| {
        let mut world = World::connected(policies(mode));
        exchange(&mut world, 0, 1);
        let sealed = world.sealed.iter().map(|(_, octets)| octets.len());
        sealed.max().unwrap()
    };
    let tunnel = longest(Mode::Tunnel);
    assert_eq!(BOTH.map(|mode| tunnel - longest(mode)), [20, 20]);
}

#[test]
fn new_keys_lose_no_packet() {
    for mode in BOTH {
        let mut world = World::connected(policies(mode));
        let mut sent = exchange(&mut world, 0, 5);
        for (number, who) in [(5, MOBILE), (10, GATEWAY)] {
            let peer = if who == MOBILE { "gw" } else { "alice" };
            for rekey in [Rekey::Children, Rekey::Ike] {
                let asked = world.command(who, |node, now| node.rekey(peer, rekey, now));
                assert_eq!(asked, Ok(()));
            }
            let more = exchange(&mut world, number, 5);
            for (sent, more) in sent.iter_mut().zip(more) {
                sent.extend(more);
            }
        }
        world.run_for(Duration::from_secs(60));
        arrived(&world, &sent);
        assert_eq!(world.nodes[MOBILE].peers()[0].children[0].mode, mode);
        assert_eq!(world.nodes[GATEWAY].peers()[0].children.len(), 1);
    }
}

/// Packets may be lost. Nothing else is delivered than was sent, and nothing twice.
// Recovers: modes
#[test]
fn over_hops_that_lose_and_repeat_nothing_comes_out_that_did_not_go_in() {
    for mode in BOTH {
        let mut world = World::connected(policies(mode));
        let bad = Hop::PERFECT.losing(200).repeating(200).delaying(300);
        (world.wireless, world.wired) = (bad, bad);
        let sent = exchange(&mut world, 0, 200);
        for (from, to) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
            let mut left: Vec<_> = sent[from].iter().collect();
            for came in &world.delivered[to] {
                let at = left.iter().position(|sent| same(sent, came));
                left.remove(at.expect("it was sent, and did not come before"));
            }
            let came = world.delivered[to].len();
            assert!((50..200).contains(&came), "{came}");
            assert!(world.dropped[to].contains(&DropReason::Replayed));
        }
    }
}

#[test]
fn a_node_between_sees_nothing_of_it() {
    for mode in BOTH {
        let mut world = World::connected(policies(mode));
        exchange(&mut world, 0, 3);
        assert!(world.nodes[LICENSED].held_grants().is_empty());
    }
}

/// With MOBIKE-X it moves: see `transport.rs`.
#[test]
fn without_mobike_transport_mode_does_not_move_and_says_why() {
    let mut world = World::new(policies(Mode::Transport));
    world.reconfigure(GATEWAY, |config| {
        let peers = config.peers.iter_mut();
        peers.for_each(|peer| peer.ike.features.mobike = false);
    });
    world.run_for(Duration::from_secs(10));
    assert!(world.tunnel_is_up());
    for (who, peer) in [(MOBILE, "gw"), (GATEWAY, "alice")] {
        let moved = world.command(who, |node, now| node.move_peer(peer, None, now));
        assert_eq!(moved.err(), Some(CannotMove::Ike(Why::Transport)));
    }
}

/// Authentic packets forwarded from another address: in BEET mode, the datagrams are between the
/// same two hosts. In transport mode, they do not match the selectors.
#[test]
fn packets_from_elsewhere_are_between_the_same_hosts_or_dropped() {
    for mode in BOTH {
        let mut world = World::connected(policies(mode));
        let segment = world.segment(MOBILE, 7, b"data");
        let (_, payload) = world.sealed.pop().unwrap();
        let path = world.nodes[GATEWAY].peers()[0].children[0].path;
        let elsewhere = "203.0.113.66:4500".parse().unwrap();
        world.hand_over(GATEWAY, model::Path::udp(path.local, elsewhere), &payload);
        let mismatch = DropReason::InnerSelectorMismatch;
        let dropped = match mode {
            Mode::Transport => vec![mismatch, DropReason::Replayed],
            Mode::Tunnel | Mode::Beet => {
                assert!(same(&segment, &world.delivered[GATEWAY][0]));
                vec![DropReason::Replayed]
            }
        };
        assert_eq!(world.delivered[GATEWAY].len(), 2 - dropped.len());
        // The packet on the usual path is the second.
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.dropped[GATEWAY], dropped);
    }
}
