//! ESP with and without UDP: the rules of RFC 7296 section 2.23, and changes on the way.

use super::mobike::{CELL, move_to, roaming, to};
use super::pair::{LEFT, NAT, Pair, RIGHT, Side, fit};
use super::rekey::{rekey_child, rekey_ike};
use super::*;
use crate::{Event, Tcp};
use model::{Carrier, Encapsulation, Path};
use std::net::IpAddr;
use wire::ike::{NotifyType, Payload};

/// Configures both ends to use UDP only for NATs.
fn honest((mut left, mut right): (Config, Config)) -> (Config, Config) {
    for config in [&mut left, &mut right] {
        config.encapsulation = Encapsulation::ForNat;
    }
    (left, right)
}

fn connected((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    pair
}

fn carriers(pair: &Pair) -> [Carrier; 2] {
    [&pair.left, &pair.right].map(|host| host.newest().path.carrier)
}

/// Returns the last path that an end reported for its children.
fn moved(pair: &mut Pair, side: Side) -> Option<Path> {
    let mut events = pair.host(side).events.iter().rev();
    events.find_map(|event| match event {
        Event::PathMoved { path, .. } => Some(*path),
        _ => None,
    })
}

#[test]
fn where_no_end_sees_a_nat_esp_has_no_udp_and_ike_has() {
    let pair = connected(honest((mobile(), gateway())));
    let path = pair.left.child().path;
    let [left, right] = [LEFT, RIGHT].map(|ip| ip.parse::<IpAddr>().unwrap());
    assert_eq!((path.local.ip(), path.remote.ip()), (left, right));
    assert_eq!((path.local.port(), path.remote.port()), (0, 0));
    assert_eq!(carriers(&pair), [Carrier::Ip; 2]);
    assert_eq!(pair.right.child().path, path.reversed());
    let ike = pair.left.engine.sas().next().unwrap().path;
    assert_eq!((ike.carrier, ike.remote.port()), (Carrier::Udp, 4500));
}

/// "If a NAT is detected, both devices MUST use UDP encapsulation for ESP."
#[test]
fn behind_a_nat_both_ends_have_udp() {
    let (left, right) = honest((mobile(), gateway()));
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT);
    pair.connect();
    assert_eq!(carriers(&pair), [Carrier::Udp; 2]);
    assert_eq!(pair.right.child().path.remote.port(), 24500);
}

#[test]
fn either_end_gets_udp_that_wants_it_always() {
    for always in [Side::Left, Side::Right] {
        let (mut left, mut right) = honest((mobile(), gateway()));
        let config = match always {
            Side::Left => &mut left,
            Side::Right => &mut right,
        };
        config.encapsulation = Encapsulation::Always;
        let pair = connected((left, right));
        assert_eq!(carriers(&pair), [Carrier::Udp; 2], "{always:?}");
    }
}

/// A hash over an address that is not known yet matches no address.
#[test]
fn who_leaves_its_address_to_the_system_gets_udp() {
    let (left, right) = honest((mobile(), gateway()));
    let mut pair = Pair::new(left, right);
    let ends = ["0.0.0.0:500", "203.0.113.1:500"].map(|end| end.parse().unwrap());
    let path = Path::udp(ends[0], ends[1]);
    let begun = pair.with(Side::Left, |engine, now| {
        engine.initiate(peer_id("gateway"), path, now)
    });
    begun.unwrap();
    pair.settle();
    assert_eq!(carriers(&pair), [Carrier::Udp; 2]);
}

#[test]
fn what_is_in_a_stream_stays_there() {
    let (mut left, mut right) = honest((mobile(), gateway()));
    left.peers[0].tcp = Tcp::Always(crate::NATT_PORT);
    right.peers[0].tcp = Tcp::Always(crate::NATT_PORT);
    let pair = connected((left, right));
    assert_eq!(carriers(&pair), [Carrier::Tcp; 2]);
}

#[test]
fn new_keys_of_either_kind_change_nothing() {
    let mut pair = connected(honest(roaming()));
    rekey_ike(&mut pair, Side::Left);
    pair.settle();
    rekey_child(&mut pair, Side::Right);
    pair.settle();
    assert_eq!(carriers(&pair), [Carrier::Ip; 2]);
    assert_eq!(moved(&mut pair, Side::Left), None);
}

/// RFC 4555 section 3.5: an update repeats the NAT detection.
#[test]
fn a_move_behind_a_nat_and_out_of_it_changes_the_encapsulation_at_both_ends() {
    let mut pair = connected(honest(roaming()));
    pair.nat = Some(NAT);
    move_to(&mut pair, to(LEFT));
    pair.settle();
    for side in [Side::Left, Side::Right] {
        let path = moved(&mut pair, side).expect("it moved");
        assert_eq!(path.carrier, Carrier::Udp, "{side:?}");
    }
    pair.nat = None;
    move_to(&mut pair, to(CELL));
    pair.settle();
    for side in [Side::Left, Side::Right] {
        let path = moved(&mut pair, side).expect("it moved back");
        assert_eq!(path.carrier, Carrier::Ip, "{side:?}");
    }
}

// Recovers: plain-esp
#[test]
fn a_nat_that_is_new_is_noticed_by_a_sign_of_life_and_esp_gets_udp() {
    let (mut left, right) = honest(roaming());
    left.peers[0].liveness = Duration::from_secs(10);
    let mut pair = connected((left, right));
    pair.run_for(Duration::from_secs(60));
    assert_eq!(moved(&mut pair, Side::Left), None);
    pair.nat = Some(NAT);
    pair.run_for(Duration::from_secs(12));
    for side in [Side::Left, Side::Right] {
        let path = moved(&mut pair, side).expect("it moved");
        assert_eq!(path.carrier, Carrier::Udp, "{side:?}");
    }
}

/// An attacker on the path changes or removes NAT_DETECTION hashes: it wants ESP in a form that it
/// can filter, or in one that it cannot, or no detection of NATs.
// Refuses: plain-esp
// Weakness: M4
#[test]
fn a_hash_that_is_changed_or_left_out_on_the_way_is_found_out_by_auth() {
    type Change = fn(&mut Vec<Payload>);
    let changes: [(Change, usize); 3] = [(|all| flip(all), 0), (strip, 0), (|_| {}, 1)];
    for (change, children) in changes {
        let (left, right) = honest((mobile(), gateway()));
        let mut pair = Pair::new(left, right);
        pair.initiate(Side::Left);
        let mut request = pair.intercept().remove(0);
        let mut message = request.clear();
        change(&mut message.payloads);
        request.message = message.encode();
        pair.deliver(&request);
        pair.settle();
        let up = [&pair.left, &pair.right].map(|host| host.children().len());
        assert_eq!(up, [children; 2]);
    }
}

fn flip(payloads: &mut [Payload]) {
    for payload in payloads {
        if let Payload::Notify(notify) = payload
            && notify.kind == NotifyType::NAT_DETECTION_SOURCE_IP
        {
            notify.data[0] ^= 1;
        }
    }
}

fn strip(payloads: &mut Vec<Payload>) {
    let hashes = [
        NotifyType::NAT_DETECTION_SOURCE_IP,
        NotifyType::NAT_DETECTION_DESTINATION_IP,
    ];
    payloads.retain(|payload| match payload {
        Payload::Notify(notify) => !hashes.contains(&notify.kind),
        _ => true,
    });
}
