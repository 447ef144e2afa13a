//! IKE_SA_INIT and IKE_AUTH without failures.

use super::pair::{Host, Pair, Side, fit};
use super::*;
use crate::{Event, SaState};
use model::{Keys, Suite};
use std::net::SocketAddr;
use std::time::Duration;
use wire::ike::{Datagram, ExchangeType, Header, Message, Payload, PayloadType};
use world::Nat;

#[test]
fn both_ends_come_up_with_children_that_fit() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert_eq!(pair.sent.len(), 4);
    let up = |event: &Event| matches!(event, Event::IkeUp { .. });
    assert!(pair.left.events.first().is_some_and(up));
    assert!(pair.right.events.first().is_some_and(up));
}

#[test]
fn selectors_are_narrowed_to_what_both_allow() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    let child = pair.left.child();
    assert_eq!(child.local, [prefix("10.8.0.2/32")]);
    assert_eq!(child.remote, [prefix("10.0.0.0/16")]);
}

#[test]
fn the_same_seed_gives_the_same_octets() {
    let run = || {
        let mut pair = Pair::new(mobile(), gateway());
        pair.connect();
        let messages = pair.sent.iter().map(|flying| flying.message.clone());
        messages.collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn every_suite_works_for_ike_and_for_esp() {
    for suite in [
        Suite::Aes128Gcm16,
        Suite::Aes256Gcm16,
        Suite::ChaCha20Poly1305,
    ] {
        let (mut left, mut right) = (mobile(), gateway());
        left.peers[0].suites = vec![suite];
        right.peers[0].suites.push(Suite::ChaCha20Poly1305);
        let mut pair = Pair::new(left, right);
        let id = pair.connect();
        assert_eq!(pair.left.engine.key_log(id).unwrap().suite, suite);
        let Keys::Plain {
            suite: esp,
            implicit_iv,
            ..
        } = &pair.left.child().inbound.keys
        else {
            panic!("no zones were asked for");
        };
        assert_eq!((*esp, *implicit_iv), (model::EspSuite::from(suite), true));
    }
}

#[test]
fn both_ends_log_the_same_ike_keys() {
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    let left = pair.left.engine.key_log(id).unwrap();
    let theirs = pair.right.engine.sas().next().unwrap().id;
    let right = pair.right.engine.key_log(theirs).unwrap();
    assert_eq!((left.spi_i, left.spi_r), (right.spi_i, right.spi_r));
    assert_eq!((&left.sk_ei, &left.sk_er), (&right.sk_ei, &right.sk_er));
    assert_eq!(left.sk_ei.len(), 20);
}

#[test]
fn closing_takes_the_children_down_first_and_both_ends_with_them() {
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    pair.with(Side::Left, |engine, now| engine.close(id, now));
    assert!(pair.left.children().is_empty());
    assert_eq!(
        pair.left.engine.sas().next().unwrap().state,
        SaState::Closing
    );
    pair.settle();
    assert_eq!(pair.left.down_reasons(), [&crate::DownReason::ClosedHere]);
    assert_eq!(
        pair.right.down_reasons(),
        [&crate::DownReason::ClosedByPeer]
    );
    assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
    assert_eq!(
        pair.left.engine.sas().count() + pair.right.engine.sas().count(),
        0
    );
}

#[test]
fn both_ends_may_close_at_once() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    pair.with(Side::Left, |engine, now| engine.shutdown(now));
    pair.with(Side::Right, |engine, now| engine.shutdown(now));
    pair.settle();
    for host in [&pair.left, &pair.right] {
        assert_eq!(host.down_reasons(), [&crate::DownReason::ClosedHere]);
        assert_eq!(host.engine.sas().count(), 0);
    }
}

#[test]
fn shutdown_ends_attempts_and_half_open_sas_too() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.with(Side::Left, |engine, now| engine.shutdown(now));
    pair.with(Side::Right, |engine, now| engine.shutdown(now));
    assert_eq!(
        pair.left.engine.sas().count() + pair.right.engine.sas().count(),
        0
    );
    assert_eq!(pair.right.engine.half_open(), 0);
}

#[test]
fn a_peer_that_comes_back_replaces_its_old_sa_only_when_it_is_authenticated() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    // The mobile node crashes: a new engine without state, with other random numbers.
    let fresh = Host::seeded(mobile(), 9, 1);
    pair.restart(Side::Left, fresh);
    pair.run_for(Duration::from_secs(60));
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.deliver_next();
    assert_eq!(pair.right.up(), 1, "nothing is replaced before IKE_AUTH");
    pair.settle();
    assert_eq!(pair.right.up(), 1);
    assert_eq!(pair.right.down_reasons(), [&crate::DownReason::Replaced]);
    assert!(fit(pair.left.child(), pair.right.child()));
    let position = |wanted: fn(&Event) -> bool| pair.right.events.iter().rposition(wanted);
    let down = position(|event| matches!(event, Event::IkeDown { .. }));
    let up = position(|event| matches!(event, Event::IkeUp { .. }));
    assert!(down < up, "the old SA's end is told first");
}

/// Returns the addresses of all peers that the gateway saw connect from elsewhere.
fn displaced(pair: &Pair) -> Vec<(SocketAddr, SocketAddr)> {
    let told = pair.right.events.iter().filter_map(|event| match event {
        Event::Displaced { old, new, .. } => Some((*old, *new)),
        _ => None,
    });
    told.collect()
}

// Weakness: 152
#[test]
fn a_peer_that_connects_from_elsewhere_while_it_is_up_is_told_with_both_addresses() {
    let behind = |last| {
        let outside = [198, 51, 100, last].into();
        Some(Nat { outside, shift: 0 })
    };
    let mut pair = Pair::new(mobile(), gateway());
    pair.nat = behind(1);
    pair.connect();
    pair.nat = behind(2);
    pair.restart(Side::Left, Host::seeded(mobile(), 9, 1));
    pair.connect();
    let [(old, new)] = displaced(&pair)[..] else {
        panic!("{:?}", pair.right.events);
    };
    assert_eq!(old.ip().to_string(), "198.51.100.1");
    assert_eq!(new.ip().to_string(), "198.51.100.2");
}

#[test]
fn a_peer_that_connects_again_from_the_same_address_is_not_displaced() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    pair.restart(Side::Left, Host::seeded(mobile(), 9, 1));
    pair.connect();
    assert!(displaced(&pair).is_empty());
}

#[test]
fn initial_contact_is_said_only_to_a_peer_without_another_sa() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(60));
    // The old SA is closed by a Delete, because the initiator still knows it.
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    let last = pair.sent.last().unwrap();
    let exchange = Header::peek(&last.message).unwrap().exchange;
    assert_eq!(exchange, ExchangeType::INFORMATIONAL);
    assert!(fit(pair.left.child(), pair.right.child()));
}

#[test]
fn a_second_attempt_while_one_is_under_way_is_a_misuse() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    let path = pair.sent[0].path.reversed();
    let initiate =
        |peer: PeerId| move |engine: &mut crate::Engine, now| engine.initiate(peer, path, now);
    let again = pair.with(Side::Left, initiate(peer_id("gateway")));
    assert_eq!(again, Err(crate::ApiMisuse::AlreadyInitiating));
    let nobody = pair.with(Side::Left, initiate(peer_id("nobody")));
    assert_eq!(nobody, Err(crate::ApiMisuse::UnknownPeer));
}

/// Payloads that strongSwan 5.9 adds to its messages; all of them are ignored.
#[test]
fn extras_of_other_implementations_are_ignored() {
    use wire::ike::{Notify, NotifyType, Proposal, Transform, TransformType};
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    let mut first = pair.intercept().remove(0);
    let Ok(Datagram::Clear(mut message)) = Datagram::decode(&first.message) else {
        panic!("IKE_SA_INIT is in the clear");
    };
    for kind in [
        NotifyType::IKEV2_FRAGMENTATION_SUPPORTED,
        NotifyType::SIGNATURE_HASH_ALGORITHMS,
        NotifyType::REDIRECT_SUPPORTED,
        NotifyType(16435),
    ] {
        let data = vec![0, 2, 0, 3];
        message
            .payloads
            .push(Payload::Notify(Notify::new(kind, data)));
    }
    message
        .payloads
        .push(Payload::VendorId(b"strongSwan".to_vec()));
    message.payloads.push(Payload::Other {
        kind: PayloadType::CERTREQ,
        critical: true,
        data: vec![4; 21],
    });
    if let Payload::SecurityAssociation(proposals) = &mut message.payloads[0] {
        let many = (1..=40).map(|id| Transform::plain(TransformType::KE, id));
        let cbc = Transform::encryption(wire::ike::EncryptionId::AES_CBC, 256);
        let classic = Proposal {
            transforms: std::iter::once(cbc).chain(many).collect(),
            ..proposals[0].clone()
        };
        proposals[0].number = 2;
        proposals.insert(0, classic);
    }
    first.message = message.encode();
    pair.deliver(&first);
    let answer = pair.intercept().remove(0);
    let Ok(Datagram::Clear(Message { payloads, .. })) = Datagram::decode(&answer.message) else {
        panic!("IKE_SA_INIT is in the clear");
    };
    let Payload::SecurityAssociation(chosen) = &payloads[0] else {
        panic!("a proposal was chosen: {payloads:?}");
    };
    assert_eq!(chosen[0].number, 2);
}
