//! NAT detection, ports and moving mappings.

use super::mobike::{move_to, roaming, to};
use super::pair::{Flying, LEFT, NAT, Pair, RIGHT, Side, fit};
use super::rekey::rekey_ike;
use super::*;
use crate::{Event, Nat};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

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
    // The sender's hash is falsified on purpose, so each end takes its peer to be behind a NAT.
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

/// Gives the left host another mapping at its NAT.
fn rebind(pair: &mut Pair, shift: u16) {
    pair.nat = Some(NAT.with_shift(shift));
}

/// Sends a request from an end; its content does not matter.
fn ask(pair: &mut Pair, side: Side) {
    let sas = pair.host(side).engine.sas();
    let id = sas.last().unwrap().id;
    pair.with(side, |engine, now| {
        engine.revoke(id, model::CsaId(1), now);
    });
}

/// Returns a request of the left host with another source, as an attacker on the path forwards it.
fn rewritten(pair: &mut Pair, from: &str) -> Flying {
    ask(pair, Side::Left);
    let mut flying = pair.intercept().into_iter();
    let mut request = flying.find(|flying| flying.to == Side::Right).unwrap();
    request.path.remote = from.parse().unwrap();
    request
}

fn moves(pair: &Pair) -> Vec<(u16, usize)> {
    let events = pair.right.events.iter();
    let moved = events.filter_map(|event| match event {
        Event::PathMoved { path, children, .. } => Some((path.remote.port(), children.len())),
        _ => None,
    });
    moved.collect()
}

/// Returns the time until the right host has moved once more.
fn time_to_move(pair: &mut Pair) -> Duration {
    let (since, before) = (pair.now, moves(pair).len());
    while moves(pair).len() == before {
        pair.run_for(Duration::from_millis(1));
        assert!(pair.now - since < Duration::from_secs(10), "it stays");
    }
    pair.now - since
}

fn octets_astray(pair: &Pair) -> usize {
    pair.astray.iter().map(|(_, message)| message.len()).sum()
}

/// RFC 7296 section 2.23. The first message arrives after half a round trip. The new address
/// answers after one more, and the old address has a quarter longer than that to answer.
#[test]
fn a_new_mapping_is_followed_within_two_round_trips_and_a_quarter() {
    let mut pair = behind_nat();
    for (number, shift) in [(1, 30000), (2, 40000), (3, 50000)] {
        rebind(&mut pair, shift);
        ask(&mut pair, Side::Left);
        pair.deliver_next();
        let took = time_to_move(&mut pair);
        assert!(took <= pair.hop.delay * 2 * 9 / 4, "{took:?}");
        assert_eq!(moves(&pair).len(), number);
        assert_eq!(moves(&pair).last(), Some(&(4500 + shift, 1)));
        pair.run_for(Duration::from_secs(5));
    }
    ask(&mut pair, Side::Right);
    pair.run_for(Duration::from_secs(5));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert!(pair.right.engine.sas().all(|sa| sa.windows.under_way == 0));
}

#[test]
fn a_new_mapping_is_followed_while_a_request_to_the_old_one_is_under_way() {
    let mut pair = behind_nat();
    rebind(&mut pair, 30000);
    ask(&mut pair, Side::Right);
    ask(&mut pair, Side::Left);
    pair.deliver_next();
    let took = time_to_move(&mut pair);
    assert!(took <= pair.hop.delay * 2 * 13 / 4, "{took:?}");
    assert_eq!(moves(&pair), [(34500, 1)]);
}

#[test]
fn a_new_mapping_is_followed_through_a_network_that_loses_datagrams() {
    for seed in 1..=10 {
        let mut pair = behind_nat();
        pair.reseed(seed);
        pair.hop.lost = 200;
        rebind(&mut pair, 30000);
        for _ in 0..20 {
            ask(&mut pair, Side::Left);
            pair.run_for(Duration::from_secs(10));
        }
        assert_eq!(moves(&pair), [(34500, 1)], "{seed}");
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "{seed}");
    }
}

/// A router on the path forwards one genuine request with another source before the original
/// arrives.
// Weakness: 81
#[test]
fn one_rewritten_header_moves_nothing_and_sends_its_address_three_times_the_octets_at_most() {
    let mut pair = behind_nat();
    let path = pair.right.engine.sas().last().unwrap().path;
    let request = rewritten(&mut pair, "192.0.2.66:4500");
    pair.deliver(&request);
    pair.run_for(Duration::from_secs(30));
    assert_eq!(pair.astray.len(), 2, "the answer and one question");
    assert!(octets_astray(&pair) <= 3 * request.message.len());
    assert_eq!(moves(&pair), []);
    assert_eq!(pair.right.engine.sas().last().unwrap().path, path);
    assert!(pair.right.engine.sas().all(|sa| sa.windows.under_way == 0));
    let refusals = pair.right.refusals();
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].starts_with("a message came from 192.0.2.66:4500"));
}

// Weakness: 81
#[test]
fn every_third_header_rewritten_moves_nothing_and_multiplies_no_octets() {
    let mut pair = behind_nat();
    let mut octets = 0;
    for number in 0..300_u16 {
        if number % 3 == 0 {
            let to = format!("192.0.2.66:{}", 1000 + number % 7);
            let request = rewritten(&mut pair, &to);
            octets += request.message.len();
            pair.deliver(&request);
        } else {
            ask(&mut pair, Side::Left);
        }
        pair.run_for(Duration::from_millis(u64::from(number % 11 + 6) * 100));
    }
    pair.run_for(Duration::from_secs(30));
    assert!(octets_astray(&pair) <= 3 * octets);
    assert_eq!(moves(&pair), []);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

/// An accomplice at the new address forwards everything in both directions, so the new address
/// answers.
// Weakness: 81
#[test]
fn an_address_that_answers_gets_nothing_while_the_old_one_answers() {
    let mut pair = behind_nat();
    const THIRD: &str = "192.0.2.66:4500";
    let genuine = pair.left.engine.sas().last().unwrap().path;
    let request = rewritten(&mut pair, THIRD);
    pair.deliver(&request);
    pair.run_for(Duration::from_millis(10));
    for (_, message) in std::mem::take(&mut pair.astray) {
        let (to, path) = (Side::Left, genuine);
        pair.deliver(&Flying { to, path, message });
    }
    for mut answer in pair.intercept() {
        answer.path.remote = THIRD.parse().unwrap();
        pair.deliver(&answer);
    }
    pair.run_for(Duration::from_secs(30));
    assert_eq!(moves(&pair), []);
    assert_eq!(pair.astray.len(), 0);
    assert!(pair.right.refusals()[0].contains("still answers at its previous address"));
}

/// A peer without MOBIKE may answer without reading the request.
#[test]
fn a_peer_that_returns_no_cookie_answers_three_times_before_it_is_followed() {
    let mut pair = behind_nat();
    rebind(&mut pair, 30000);
    ask(&mut pair, Side::Left);
    pair.deliver_next();
    let mut answered = 0;
    while moves(&pair).is_empty() {
        let questions = pair.intercept().into_iter().filter(|flying| {
            let peeked = pair.left.engine.peek(&flying.message);
            flying.to == Side::Left && peeked.is_some_and(|m| !m.header.flags.response)
        });
        for question in questions.collect::<Vec<_>>() {
            let mut header = pair.left.engine.peek(&question.message).unwrap().header;
            (header.flags.initiator, header.flags.response) = (true, true);
            let payloads = Vec::new();
            let answer = wire::ike::Message { header, payloads };
            let message = pair.left.engine.seal(&answer).unwrap();
            let path = model::Path::udp(
                "203.0.113.1:4500".parse().unwrap(),
                "198.51.100.9:34500".parse().unwrap(),
            );
            let to = Side::Right;
            answered += 1;
            pair.deliver(&Flying { to, path, message });
        }
        pair.run_for(Duration::from_millis(1));
        assert!(answered < 10);
    }
    assert_eq!(answered, 3);
}

#[test]
fn a_peer_that_must_be_at_an_address_is_followed_to_another_port_there_alone() {
    let (left, mut right) = (mobile(), gateway());
    right.peers[0].address = Some(NAT.outside);
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT);
    pair.connect();
    let request = rewritten(&mut pair, "192.0.2.66:4500");
    pair.deliver(&request);
    assert_eq!(pair.astray.len(), 1, "the answer alone");
    assert!(pair.right.refusals()[0].contains("its configured address is"));
    rebind(&mut pair, 30000);
    ask(&mut pair, Side::Left);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(moves(&pair), [(34500, 1)]);
}

#[test]
fn a_rekey_of_the_ike_sa_from_a_new_mapping_is_followed() {
    let mut pair = behind_nat();
    rebind(&mut pair, 30000);
    rekey_ike(&mut pair, Side::Left);
    pair.deliver_next();
    time_to_move(&mut pair);
    assert_eq!(moves(&pair), [(34500, 1)]);
}

/// An answer to IKE_SA_INIT is not authenticated yet, and its header never is.
// Weakness: 103
#[test]
fn a_first_answer_from_elsewhere_does_not_redirect_ike_auth() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    pair.deliver_next();
    let mut answer = pair.intercept().remove(0);
    answer.path.remote = "192.0.2.66:500".parse().unwrap();
    pair.deliver(&answer);
    pair.settle();
    assert!(fit(pair.left.child(), pair.right.child()));
    let mut to_right = pair.sent.iter().filter(|flying| flying.to == Side::Right);
    assert!(to_right.all(|flying| flying.path.local.ip() == RIGHT.parse::<IpAddr>().unwrap()));
}

/// Returns a pair whose IKE_AUTH request has not reached the responder.
fn about_to_authenticate((mut left, right): (Config, Config)) -> Pair {
    // With MOBIKE this liveness check reports the address at which the peer sees this end.
    left.peers[0].liveness = Duration::from_secs(30);
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT);
    pair.initiate(Side::Left);
    pair.settle_one_round();
    pair
}

// Weakness: 103
#[test]
fn ike_auth_with_a_rewritten_header_brings_no_child_to_its_address() {
    for ends in [(mobile(), gateway()), roaming()] {
        let mut pair = about_to_authenticate(ends);
        let mut request = pair.intercept().remove(0);
        request.path.remote = "192.0.2.66:4500".parse().unwrap();
        pair.deliver(&request);
        let first = pair.right.child().path.remote;
        assert_eq!(first, "198.51.100.9:4500".parse().unwrap());
        pair.run_for(Duration::from_secs(5));
        let third = pair
            .astray
            .iter()
            .filter(|(to, _)| *to == request.path.remote);
        let octets: usize = third.map(|(_, message)| message.len()).sum();
        assert!(octets <= 3 * request.message.len());
        ask(&mut pair, Side::Left);
        pair.run_for(Duration::from_secs(120));
        assert_eq!(moves(&pair).last(), Some(&(24500, 1)));
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    }
}

/// A NAT with several addresses that maps each port to any of these (RFC 4787 section 4.1).
#[test]
fn ike_auth_from_another_address_of_a_nat_is_answered_and_followed_there() {
    for ends in [(mobile(), gateway()), roaming()] {
        let mut pair = about_to_authenticate(ends);
        let mut request = pair.intercept().remove(0);
        let outside = [198, 51, 100, 10].into();
        pair.nat = Some(world::Nat { outside, ..NAT });
        request.path.remote.set_ip(outside);
        pair.deliver(&request);
        pair.run_for(Duration::from_secs(1));
        assert!(fit(pair.left.child(), pair.right.child()));
        assert_eq!(moves(&pair), [(24500, 1)]);
        let path = pair.right.engine.sas().last().unwrap().path;
        assert_eq!(path.remote, request.path.remote);
    }
}

// Weakness: 81
#[test]
fn a_peer_with_mobike_is_followed_by_its_update_alone() {
    let (left, right) = roaming();
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT);
    pair.connect();
    let request = rewritten(&mut pair, "192.0.2.66:4500");
    pair.deliver(&request);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.astray.len(), 1, "the answer alone");
    assert_eq!(moves(&pair), []);
}

// Weakness: 81
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

/// RFC 7296 section 2.23: an end behind a NAT must not follow the peer.
// Weakness: 81
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

/// RFC 7296 section 2.21.1: the answer is not authenticated, so a better one is awaited.
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
            pair.hop.lost = 1000;
            pair.run_for(Duration::from_secs(600));
            let why = pair.left.down_reasons()[0].to_string();
            assert!(why.contains("does not support NAT traversal"), "{why}");
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
        engine.initiate(peer_id("gateway"), path, now)
    })
    .unwrap();
    pair.run_for(Duration::from_secs(1));
    assert!(fit(pair.left.child(), pair.right.child()));
    assert!(
        pair.sent
            .iter()
            .all(|flying| flying.path.local.port() == 4500)
    );
}

/// A pair with MOBIKE behind a NAT, and a packet of its child SA at the gateway that came from
/// another address.
fn with_a_stray(from: &str) -> Pair {
    let (left, right) = roaming();
    let mut pair = Pair::new(left, right);
    pair.nat = Some(NAT);
    pair.connect();
    let sa = pair.right.engine.sas().next().unwrap().id;
    let path = model::Path::udp(to(LEFT).remote, from.parse().unwrap());
    pair.with(Side::Right, |engine, now| {
        engine.note_stray(sa, path, 1000, now);
    });
    pair
}

/// RFC 4555 section 3.5: an update moves the IPsec SAs too. An update in answer to a check only
/// repeats where the IKE SA is.
// Weakness: 141
#[test]
fn an_update_brings_back_packets_that_were_mapped_apart() {
    let mut pair = with_a_stray("198.51.100.9:24507");
    pair.run_for(Duration::from_secs(10));
    assert_eq!(moves(&pair), [(24507, 1)]);
    move_to(&mut pair, to(LEFT));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(moves(&pair), [(24507, 1), (24500, 1)]);
}

/// An attacker on the path forwards one packet and the question about it, and drops the question to
/// the old address.
// Weakness: 140
#[test]
fn an_update_brings_back_packets_that_a_third_party_took() {
    let mut pair = with_a_stray("192.0.2.66:4501");
    let genuine = to(LEFT);
    for (_, message) in std::mem::take(&mut pair.astray) {
        let (to, path) = (Side::Left, genuine);
        pair.deliver(&Flying { to, path, message });
    }
    let answer = pair.intercept().remove(0);
    pair.deliver(&answer);
    while moves(&pair).is_empty() {
        pair.intercept();
        pair.now += Duration::from_millis(1);
        pair.timeout(Side::Right);
        assert!(
            pair.now.since_origin() < Duration::from_secs(10),
            "it stays"
        );
    }
    assert_eq!(moves(&pair), [(4501, 1)]);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(moves(&pair), [(4501, 1), (24500, 1)]);
}
