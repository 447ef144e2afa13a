//! A peer that lists other addresses without end: what its tunnel asks the driver for.

use super::world::{GATEWAY, MOBILE, Policies, address, config};
use crate::{Event, Node};
use model::{IkeSaId, Instant, Path};
use std::iter::from_fn;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const SA: IkeSaId = IkeSaId(77);
const OTHER: IkeSaId = IkeSaId(78);

fn at(millis: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(millis))
}

fn path() -> Path {
    let [local, remote] = [MOBILE, GATEWAY].map(|host| SocketAddr::new(address(host), 4500));
    Path::udp(local, remote)
}

fn node() -> Node {
    let mut node = Node::new(config(MOBILE, &Policies::default()), [7; 32], at(0));
    asked(&mut node);
    node
}

/// The tunnels whose ways are asked for.
fn asked(node: &mut Node) -> Vec<IkeSaId> {
    let events = from_fn(|| node.poll_event());
    let asked = events.filter_map(|event| match event {
        Event::WaysWanted { of } => of,
        _ => None,
    });
    asked.collect()
}

/// Has the peer of a tunnel list its addresses.
fn mobile(node: &mut Node, sa: IkeSaId, others: Vec<IpAddr>, now: Instant) {
    node.turn(now, |own, turn| {
        own.tunnels.moving().mobile(sa, path(), others, turn);
    });
}

fn listed(number: u64) -> IpAddr {
    [10, 0, (number >> 8) as u8, number as u8].into()
}

// Weakness: 137
#[test]
fn a_peer_that_lists_other_addresses_without_end_has_its_own_looked_up_once_a_second() {
    let mut node = node();
    mobile(&mut node, OTHER, vec![], at(0));
    assert_eq!(asked(&mut node), [OTHER]);
    let mut times = 0;
    for number in 0..10_000 {
        let now = at(number);
        mobile(&mut node, SA, vec![listed(number)], now);
        node.handle_timeout(now);
        let asked = asked(&mut node);
        assert!(asked.iter().all(|sa| *sa == SA));
        times += asked.len();
    }
    assert_eq!(times, 10);
    // The last list is looked up when its time has come.
    let due = node.own.tunnels.poll_moving().unwrap().at;
    assert_eq!(due, at(10_000));
    node.handle_timeout(due);
    assert_eq!(asked(&mut node), [SA]);
    assert_eq!(node.remotes_of(SA), [address(GATEWAY), listed(9_999)]);
    assert_eq!(node.remotes_of(OTHER), [address(GATEWAY)]);
}

// Weakness: 137
#[test]
fn a_list_that_is_repeated_asks_for_nothing() {
    let mut node = node();
    for number in 0..10 {
        mobile(&mut node, SA, vec![listed(1)], at(number * 5_000));
    }
    assert_eq!(asked(&mut node), [SA]);
}
