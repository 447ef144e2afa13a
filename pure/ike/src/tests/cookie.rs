//! A responder that requests cookies.

use super::pair::{Flying, Pair, Side};
use super::*;
use crate::DropReason;
use std::net::{Ipv4Addr, SocketAddr};
use wire::ike::{Datagram, Payload};

/// Sends first messages from forged addresses until the responder requests cookies.
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

// Weakness: 62
#[test]
fn addresses_that_nobody_receives_at_cannot_keep_an_honest_initiator_out() {
    let (mut pair, first) = crowded();
    assert_eq!(pair.right.engine.half_open(), 64);
    assert_eq!(pair.right.dropped(DropReason::CookieWanted), 5000 - 64);
    let begun = pair.now;
    pair.deliver(&first);
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert_eq!(pair.now - begun, pair.hop.delay * 5, "one round trip more");
}

// Weakness: 63
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

// Weakness: 64
#[test]
fn asking_for_a_cookie_sends_less_than_came() {
    let (mut pair, first) = crowded();
    pair.deliver(&first);
    let asked = pair.intercept().remove(0);
    assert!(asked.message.len() * 2 < first.message.len());
}

/// Returns a crowded responder, and an initiator's first message with its cookie.
fn paid() -> (Pair, Flying) {
    let (mut pair, first) = crowded();
    pair.deliver(&first);
    pair.deliver_next();
    let paid = pair.intercept().remove(0);
    (pair, paid)
}

/// Returns true if a message creates a half-open SA at the responder.
fn is_accepted(pair: &mut Pair, message: &Flying) -> bool {
    let before = pair.right.engine.half_open();
    pair.deliver(message);
    pair.right.engine.half_open() > before
}

// Weakness: 63
#[test]
fn a_cookie_is_good_for_its_address_its_port_its_spi_and_its_nonce_only() {
    let (mut pair, paid) = paid();
    let cookie_at = 28 + 8;
    let changes: [&dyn Fn(&mut Flying); 5] = [
        &|paid| paid.path.remote = "192.0.2.66:500".parse().unwrap(),
        &|paid| paid.path.remote.set_port(501),
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

/// The responder requests no other cookie meanwhile.
// Weakness: 63
#[test]
fn a_cookie_ends_with_its_time() {
    for (seconds, accepted) in [(119, true), (120, false)] {
        let (mut pair, paid) = paid();
        pair.now += Duration::from_secs(seconds);
        assert_eq!(is_accepted(&mut pair, &paid), accepted, "{seconds} s");
    }
}

/// The initiator repeats its first message while it waits for the cookie request. The copy arrives
/// when the responder is no longer crowded.
// Weakness: 122
#[test]
fn a_cookie_that_is_wanted_of_one_copy_only_spoils_no_proof() {
    let (mut pair, first) = crowded();
    pair.deliver(&first);
    let asked = pair.intercept().remove(0);
    pair.now += Duration::from_secs(61);
    pair.right.engine.handle_timeout(pair.now);
    assert_eq!(pair.right.engine.half_open(), 0);
    pair.deliver(&first);
    let answer = pair.intercept().remove(0);
    pair.deliver(&asked);
    let paid = pair.intercept().remove(0);
    assert!(paid.message.len() > first.message.len());
    pair.deliver(&paid);
    pair.intercept();
    pair.deliver(&answer);
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

/// Returns a first message without its padding: vendor IDs of zero octets.
fn unpadded(first: &Flying) -> Flying {
    let Ok(Datagram::Clear(mut message)) = Datagram::decode(&first.message) else {
        panic!("a first message is in the clear")
    };
    let says = |payload: &Payload| match payload {
        Payload::VendorId(id) => id.iter().any(|octet| *octet != 0),
        _ => true,
    };
    message.payloads.retain(says);
    let message = message.encode();
    Flying { message, ..*first }
}

/// Returns ends whose responder's answer, with the CA it trusts, is longer than the shortest first
/// message.
fn talkative() -> Pair {
    let (left, right) = certificates::ends();
    Pair::new(left, right)
}

// Weakness: 64
#[test]
fn before_an_address_is_proved_it_is_never_sent_more_than_came_from_it() {
    let mut pair = talkative();
    pair.initiate(Side::Left);
    let first = pair.intercept().remove(0);
    let short = unpadded(&first);
    pair.deliver(&short);
    let asked = pair.intercept().remove(0);
    assert!(asked.message.len() <= short.message.len());
    assert_eq!(pair.right.dropped(DropReason::CookieWanted), 1);
    assert_eq!(pair.right.engine.half_open(), 0);

    // The unchanged first message is padded, so no cookie is requested.
    pair.deliver(&first);
    let answer = pair.intercept().remove(0);
    let lengths = [&short, &answer, &first].map(|flying| flying.message.len());
    assert!(
        lengths[0] < lengths[1] && lengths[1] <= lengths[2],
        "{lengths:?}"
    );
    assert_eq!(pair.right.dropped(DropReason::CookieWanted), 1);
}

#[test]
fn who_sends_a_short_first_message_is_answered_one_round_trip_later() {
    let mut pair = talkative();
    pair.initiate(Side::Left);
    let first = pair.intercept().remove(0);
    pair.deliver(&unpadded(&first));
    pair.deliver_next();
    let paid = pair.intercept().remove(0);
    assert!(is_accepted(&mut pair, &unpadded(&paid)));
}

#[test]
fn a_refusal_that_would_be_longer_than_the_question_is_not_sent() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    let first = pair.intercept().remove(0);
    // Only an unknown critical payload.
    let mut message = first.message[..28].to_vec();
    message[16] = 250;
    message[24..28].copy_from_slice(&32_u32.to_be_bytes());
    message.extend([0, 0x80, 0, 4]);
    let critical = Flying { message, ..first };
    pair.deliver(&critical);
    assert!(pair.intercept().is_empty());
    // Only a header, with a later version of the protocol.
    let mut message = critical.message[..28].to_vec();
    message[16] = 0;
    message[17] = 0x30;
    message[24..28].copy_from_slice(&28_u32.to_be_bytes());
    pair.deliver(&Flying {
        message,
        ..critical
    });
    assert!(pair.intercept().is_empty());
    assert_eq!(pair.right.dropped(DropReason::UnknownVersion), 1);
}
