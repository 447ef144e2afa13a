//! Initiations whose responder has to detect a NAT: they state the address that the packets
//! actually leave from.

use super::world::{GATEWAY, MOBILE, Policies, address, config};
use crate::{Event, Node};
use ike::Resumption;
use mobility::Way;
use model::{Encapsulation, Instant, PeerNames};
use std::net::IpAddr;

fn node(encapsulation: Encapsulation) -> Node {
    let config = config(MOBILE, &Policies::default());
    let config = crate::Config {
        encapsulation,
        ..config
    };
    Node::new(config, [7; 32], Instant::ZERO)
}

fn wants_ways(node: &mut Node) -> bool {
    std::iter::from_fn(|| node.poll_event())
        .any(|event| matches!(event, Event::WaysWanted { of: None }))
}

/// Returns the source address of the first message, if there is one.
fn source(node: &mut Node) -> Option<IpAddr> {
    node.poll_transmit().map(|first| first.path.local.ip())
}

#[test]
fn it_waits_for_the_ways_and_begins_by_the_best() {
    let mut node = node(Encapsulation::ForNat);
    assert_eq!(source(&mut node), None);
    assert!(wants_ways(&mut node));
    let remote = address(GATEWAY);
    assert_eq!(node.remotes(), [remote]);
    let other = "100.64.0.2".parse().unwrap();
    let ways = [address(MOBILE), other].map(|local| Way { local, remote });
    node.handle_ways(&ways, Instant::ZERO);
    assert_eq!(source(&mut node), Some(address(MOBILE)));
}

#[test]
fn the_ike_engine_is_told_when_esp_has_udp() {
    for encapsulation in [Encapsulation::ForNat, Encapsulation::Always] {
        let mut config = crate::Config {
            encapsulation,
            ..config(MOBILE, &Policies::default())
        };
        assert_eq!(
            config.take_peers(&mut PeerNames::default()).0.encapsulation,
            encapsulation
        );
    }
}

/// The peer then detects a NAT, and ESP uses UDP.
#[test]
fn without_a_way_the_system_chooses_once_its_time_has_come() {
    let mut node = node(Encapsulation::ForNat);
    node.handle_timeout(Instant::ZERO);
    assert_eq!(source(&mut node), Some("0.0.0.0".parse().unwrap()));
}

/// A ticket is shown on one network only, which is known by the address there.
#[test]
fn ways_to_a_peer_whose_sessions_are_resumed_are_wanted_and_nobody_waits_for_them() {
    let policies = Policies {
        resumption: Resumption::Skid3,
        ..Policies::default()
    };
    let mut node = Node::new(config(MOBILE, &policies), [7; 32], Instant::ZERO);
    assert_eq!(source(&mut node), Some("0.0.0.0".parse().unwrap()));
    assert!(wants_ways(&mut node));
    assert_eq!(node.remotes(), [address(GATEWAY)]);
}

#[test]
fn nobody_waits_whose_esp_has_udp_anyway() {
    let mut node = node(Encapsulation::Always);
    assert_eq!(source(&mut node), Some("0.0.0.0".parse().unwrap()));
    assert!(!wants_ways(&mut node));
    assert!(node.remotes().is_empty());
}
