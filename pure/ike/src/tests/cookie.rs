//! A responder that asks for cookies.

use super::pair::{Flying, Pair, Side};
use super::*;
use crate::DropReason;
use std::net::{Ipv4Addr, SocketAddr};
use wire::ike::{Datagram, Payload};

/// First messages from addresses that nobody receives at, until cookies are wanted.
fn crowded() -> (Pair, Flying) {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    let first = pair.intercept().remove(0);
    for n in 0..5000_u32 {
        pair.deliver(&from_elsewhere(&first, n));
    }
    pair.intercept();
    (pair, first)
}

fn from_elsewhere(first: &Flying, n: u32) -> Flying {
    let mut other = first.clone();
    other.message[..4].copy_from_slice(&(n + 1).to_be_bytes());
    let address = Ipv4Addr::from_bits(0x0a00_0000 + n);
    other.path.remote = SocketAddr::new(address.into(), 500);
    other
}

#[test]
fn addresses_that_nobody_receives_at_cannot_keep_an_honest_initiator_out() {
    let (mut pair, first) = crowded();
    assert_eq!(pair.right.engine.half_open(), 64);
    assert_eq!(pair.right.dropped(DropReason::CookieWanted), 5000 - 64);
    let begun = pair.now;
    pair.deliver(&first);
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert_eq!(pair.now - begun, pair.latency * 5, "one round trip more");
}

#[test]
fn who_forges_an_address_cannot_keep_its_owner_out() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    let first = pair.intercept().remove(0);
    for n in 0..5000_u32 {
        let path = first.path;
        pair.deliver(&Flying {
            path,
            ..from_elsewhere(&first, n)
        });
    }
    pair.intercept();
    assert_eq!(pair.right.engine.half_open(), 8);
    pair.deliver(&first);
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

#[test]
fn asking_for_a_cookie_sends_less_than_came() {
    let (mut pair, first) = crowded();
    pair.deliver(&first);
    let asked = pair.intercept().remove(0);
    assert!(asked.message.len() * 2 < first.message.len());
}

/// A crowded responder, and the message with which an initiator complied.
fn paid() -> (Pair, Flying) {
    let (mut pair, first) = crowded();
    pair.deliver(&first);
    pair.deliver_next();
    let paid = pair.intercept().remove(0);
    (pair, paid)
}

/// Whether the responder takes a message for the beginning of an SA.
fn is_accepted(pair: &mut Pair, message: &Flying) -> bool {
    let before = pair.right.engine.half_open();
    pair.deliver(message);
    pair.right.engine.half_open() > before
}

#[test]
fn a_cookie_is_good_for_its_address_its_spi_and_its_nonce_only() {
    let (mut pair, paid) = paid();
    let cookie_at = 28 + 8;
    let changes: [&dyn Fn(&mut Flying); 4] = [
        &|paid| paid.path.remote = "192.0.2.66:500".parse().unwrap(),
        &|paid| paid.message[0] ^= 1,
        &|paid| paid.message[cookie_at] ^= 1,
        &|paid| paid.message[cookie_at + 32] ^= 1,
    ];
    for change in changes {
        let mut changed = paid.clone();
        change(&mut changed);
        assert!(!is_accepted(&mut pair, &changed));
    }
    assert!(!is_accepted(&mut pair, &with_another_nonce(&paid)));
    assert!(is_accepted(&mut pair, &paid));
}

fn with_another_nonce(paid: &Flying) -> Flying {
    let Ok(Datagram::Clear(mut message)) = Datagram::decode(&paid.message) else {
        panic!("a first message is in the clear")
    };
    for payload in &mut message.payloads {
        if let Payload::Nonce(nonce) = payload {
            nonce[0] ^= 1;
        }
    }
    let message = message.encode();
    Flying { message, ..*paid }
}

#[test]
fn a_cookie_of_the_secret_before_is_taken_and_an_older_one_is_not() {
    for (renewals, accepted) in [(1, true), (2, false)] {
        let (mut pair, paid) = paid();
        for n in 0..renewals {
            // No timeouts are handled, so the half-open ones stay.
            pair.now += Duration::from_secs(60);
            assert!(!is_accepted(&mut pair, &from_elsewhere(&paid, 9000 + n)));
        }
        assert_eq!(is_accepted(&mut pair, &paid), accepted);
    }
}
