//! NAT detection, ports and moving mappings.

use super::pair::{NatBox, Pair, Side, fit};
use super::*;
use crate::{Event, Nat};
use std::net::SocketAddr;
use std::time::Duration;

const NAT: NatBox = NatBox {
    outside: "198.51.100.9",
    shift: 20000,
};

fn behind_nat() -> Pair {
    let mut pair = Pair::new(mobile(), gateway());
    pair.nat = Some(NAT);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    pair
}

#[test]
fn both_ends_move_to_the_shared_port_after_the_first_exchange() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    let ports: Vec<_> = pair.sent.iter().map(|f| f.path.local.port()).collect();
    assert_eq!(ports, [500, 500, 4500, 4500]);
    assert_eq!(pair.left.child().path.remote.port(), 4500);
    assert_eq!(pair.right.child().path.remote.port(), 4500);
}

#[test]
fn who_is_behind_the_nat_knows_it() {
    let pair = behind_nat();
    let nat = |host: &pair::Host| host.engine.sas().next().unwrap().nat;
    // The forged source hash makes either end look as if it were behind one.
    let (ours, theirs) = (true, true);
    assert_eq!(nat(&pair.left), Some(Nat { ours, theirs }));
    assert_eq!(
        nat(&pair.right),
        Some(Nat {
            ours: false,
            theirs
        })
    );
    let child = pair.right.child();
    assert_eq!(
        child.path.remote,
        "198.51.100.9:24500".parse::<SocketAddr>().unwrap()
    );
}

#[test]
fn a_new_mapping_is_followed_from_a_genuine_new_message() {
    let mut pair = behind_nat();
    let id = pair.left.engine.sas().next().unwrap().id;
    pair.nat = Some(NatBox {
        shift: 30000,
        ..NAT
    });
    pair.with(Side::Left, |engine, now| {
        engine.revoke(id, model::CsaId(1), now)
    });
    pair.settle();
    let moved: Vec<_> = pair
        .right
        .events
        .iter()
        .filter_map(|event| match event {
            Event::PathMoved { path, children, .. } => Some((path.remote.port(), children.len())),
            _ => None,
        })
        .collect();
    assert_eq!(moved, [(34500, 1)]);
    assert_eq!(pair.left.up(), 1);
}

#[test]
fn a_replayed_or_forged_message_moves_nobody() {
    let mut pair = behind_nat();
    let path = pair.right.engine.sas().next().unwrap().path;
    let requests: Vec<_> = pair
        .sent
        .iter()
        .filter(|f| f.to == Side::Right)
        .cloned()
        .collect();
    for mut replayed in requests {
        replayed.path.remote = "192.0.2.66:4500".parse().unwrap();
        pair.deliver(&replayed);
        replayed.message[40] ^= 1;
        pair.deliver(&replayed);
    }
    let right = &pair.right;
    let up = right.engine.sas().find(|sa| sa.since.is_some()).unwrap();
    assert_eq!(up.path, path);
    assert!(
        !right
            .events
            .iter()
            .any(|e| matches!(e, Event::PathMoved { .. }))
    );
}

/// RFC 7296 section 2.23: who sits behind a NAT must not follow the peer.
#[test]
fn who_is_behind_a_nat_does_not_follow() {
    let mut pair = behind_nat();
    let id = pair.right.engine.sas().next().unwrap().id;
    pair.with(Side::Right, |engine, now| {
        engine.revoke(id, model::CsaId(1), now)
    });
    let mut request = pair.intercept().remove(0);
    let path = pair.left.engine.sas().next().unwrap().path;
    request.path.remote = "203.0.113.200:4500".parse().unwrap();
    pair.deliver(&request);
    assert_eq!(pair.left.engine.sas().next().unwrap().path, path);
    pair.settle();
}

/// RFC 7296 section 2.21.1: nothing of the answer is proved, so a better one is waited for.
#[test]
fn a_peer_without_nat_traversal_is_given_up_with_the_reason_when_no_better_answer_comes() {
    use wire::ike::{Datagram, NotifyType, Payload};
    for genuine_comes in [true, false] {
        let mut pair = Pair::new(mobile(), gateway());
        pair.initiate(Side::Left);
        pair.deliver_next();
        let genuine = pair.intercept().remove(0);
        let Ok(Datagram::Clear(mut message)) = Datagram::decode(&genuine.message) else {
            panic!("IKE_SA_INIT is in the clear");
        };
        message.payloads.retain(|payload| {
            !matches!(payload, Payload::Notify(n) if n.kind == NotifyType::NAT_DETECTION_SOURCE_IP)
        });
        let mut stripped = genuine.clone();
        stripped.message = message.encode();
        pair.deliver(&stripped);
        pair.deliver(&stripped);
        assert!(pair.left.down_reasons().is_empty(), "it waits");
        assert_eq!(pair.left.refusals().len(), 1, "told once");
        if genuine_comes {
            pair.deliver(&genuine);
            pair.settle();
            assert!(fit(pair.left.child(), pair.right.child()));
        } else {
            pair.lost = 1000;
            pair.pass(Duration::from_secs(600));
            let why = pair.left.down_reasons()[0].to_string();
            assert!(why.contains("does not detect NATs"), "{why}");
        }
    }
}

#[test]
fn an_initiator_may_begin_on_the_shared_port() {
    let mut pair = Pair::new(mobile(), gateway());
    let path = model::Path::udp(
        "192.168.1.2:4500".parse().unwrap(),
        "203.0.113.1:4500".parse().unwrap(),
    );
    pair.with(Side::Left, |engine, now| {
        engine.initiate("gateway", path, now)
    })
    .unwrap();
    pair.pass(Duration::from_secs(1));
    assert!(fit(pair.left.child(), pair.right.child()));
    assert!(
        pair.sent
            .iter()
            .all(|flying| flying.path.local.port() == 4500)
    );
}
