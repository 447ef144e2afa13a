//! Findings of the audit, as tests that show them.
use super::pair::{Pair, Side};
use super::*;
use std::net::SocketAddr;
use std::time::Duration;

fn asking() -> Pair {
    let (mut left, right) = (mobile(), gateway());
    left.peers[0].liveness = Duration::from_secs(30);
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

/// Somebody who hears a question and can send packets of his own, but cannot stop any: he sends the same
/// sixteen times. If the genuine answer is lost (once, by the link) no repetition is ever answered.
#[test]
fn one_lost_answer_is_enough() {
    for (what, copies) in [
        ("liveness", 0),
        ("liveness", 16),
        ("rekey", 0),
        ("rekey", 16),
    ] {
        let mut pair = asking();
        let id = pair.left.engine.sas().next().unwrap().id;
        let request = if what == "rekey" {
            pair.with(Side::Left, |engine, now| engine.rekey_ike(id, now));
            pair.intercept().remove(0)
        } else {
            let mut caught = Vec::new();
            while caught.is_empty() {
                pair.now += Duration::from_millis(500);
                pair.timeout(Side::Left);
                caught = pair.intercept();
            }
            caught.remove(0)
        };
        pair.deliver(&request);
        assert_eq!(
            pair.intercept().len(),
            1,
            "the genuine answer, which the link loses"
        );
        let mut copy = request.clone();
        copy.path.remote = "192.0.2.66:4500".parse::<SocketAddr>().unwrap();
        for _ in 0..copies {
            pair.deliver(&copy);
        }
        pair.intercept();
        // From now on nothing is lost.
        pair.pass(Duration::from_secs(25));
        println!(
            "{what}, {copies} copies: left up {}, down {:?}; right up {}; dropped as too often: {}",
            pair.left.up(),
            pair.left.down_reasons(),
            pair.right.up(),
            pair.right.dropped(crate::DropReason::RepeatedTooOften)
        );
    }
}

/// A public value that is none costs the responder a key pair of its own, and is never counted.
#[test]
fn bad_public_values_are_free() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    let first = pair.intercept().remove(0);
    let at = first
        .message
        .windows(4)
        .position(|w| w == [0, 40, 0, 31])
        .unwrap()
        + 6;
    for n in 0..5000_u32 {
        let mut forged = first.clone();
        forged.message[..4].copy_from_slice(&(n + 1).to_be_bytes());
        forged.message[at..at + 32].fill(0);
        pair.deliver(&forged);
    }
    println!(
        "half open {}, key exchange {}, cookies wanted {}",
        pair.right.engine.half_open(),
        pair.right.dropped(crate::DropReason::KeyExchange),
        pair.right.dropped(crate::DropReason::CookieWanted)
    );
    assert_eq!(pair.right.engine.half_open(), 0);
}

/// A peer behind a NAT without MOBIKE: somebody on its path sends one genuine request on from another address.
#[test]
fn one_header_rewritten_on_the_path_moves_the_tunnel_to_a_third_party() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.nat = Some(super::pair::NatBox {
        outside: "198.51.100.7",
        shift: 1000,
    });
    let id = pair.connect();
    let right = |pair: &Pair| {
        pair.right
            .engine
            .sas()
            .find(|sa| sa.since.is_some())
            .unwrap()
            .path
            .remote
    };
    println!("before: {}", right(&pair));
    pair.with(Side::Left, |engine, now| {
        engine.revoke(id, model::CsaId(1), now)
    });
    let mut request = pair.intercept().remove(0);
    request.path.remote = "192.0.2.66:4500".parse::<SocketAddr>().unwrap();
    pair.deliver(&request);
    let moved: Vec<_> = pair
        .right
        .events
        .iter()
        .filter(|e| matches!(e, crate::Event::PathMoved { .. }))
        .collect();
    println!("after: {}; events {moved:?}", right(&pair));
}

#[test]
fn timing() {
    let (mut pair, request) = super::attack::with_request();
    pair.deliver(&request);
    pair.settle();
    let auth = pair
        .sent
        .iter()
        .rfind(|f| {
            f.to == Side::Right && wire::ike::Header::peek(&f.message).unwrap().message_id == 1
        })
        .unwrap()
        .clone();
    let mut damaged = request.clone();
    *damaged.message.last_mut().unwrap() ^= 1;
    let mut next = damaged.clone();
    next.message[23] += 1;
    const N: u32 = 100_000;
    for (what, flying) in [
        ("repeat", &request),
        ("damaged repeat", &damaged),
        ("forged next", &next),
        ("old auth", &auth),
    ] {
        let engine = &mut pair.right.engine;
        let begun = std::time::Instant::now();
        for _ in 0..N {
            engine.handle_datagram(flying.path, &flying.message, pair.now);
        }
        let took = begun.elapsed() / N;
        while engine.poll_transmit().is_some() {}
        let id = engine.sas().next().unwrap().id;
        let begun = std::time::Instant::now();
        for _ in 0..N {
            let wire::ike::Datagram::Sealed(sealed) =
                wire::ike::Datagram::decode(&flying.message).unwrap()
            else {
                panic!()
            };
            let arrived = crate::sa::Arrived {
                datagram: wire::ike::Datagram::Sealed(sealed),
                octets: &flying.message,
                path: flying.path,
            };
            engine.with_sa(id, pair.now, |sa, ctx| {
                sa.screen(&arrived, ctx);
                sa.handle_timeout(ctx);
            });
        }
        let old = begun.elapsed() / N;
        while engine.poll_transmit().is_some() {}
        println!(
            "{what}: {} octets, {took:?}; about {old:?} with the machine",
            flying.message.len()
        );
    }
}
