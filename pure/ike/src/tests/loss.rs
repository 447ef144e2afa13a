//! Networks that lose, duplicate and reorder.

use super::pair::{Pair, Side, fit};
use super::*;
use crate::DownReason;
use std::time::Duration;

#[test]
fn a_handshake_survives_a_network_that_loses_a_quarter() {
    for seed in 0..60 {
        let mut pair = Pair::seeded(mobile(), gateway(), seed);
        pair.hop.lost = 250;
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(300));
        assert!(fit(pair.left.child(), pair.right.child()), "seed {seed}");
    }
}

#[test]
fn doubled_and_overtaken_datagrams_change_nothing() {
    for seed in 0..60 {
        let mut pair = Pair::seeded(mobile(), gateway(), seed);
        pair.hop = pair.hop.losing(100).repeating(500).delaying(300);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(300));
        assert!(fit(pair.left.child(), pair.right.child()), "seed {seed}");
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "seed {seed}");
        pair.with(Side::Right, |engine, now| engine.shutdown(now));
        pair.run_for(Duration::from_secs(300));
        let left = pair.left.engine.sas().count();
        assert_eq!(
            (left, pair.right.engine.sas().count()),
            (0, 0),
            "seed {seed}"
        );
    }
}

#[test]
fn what_was_lost_is_repeated_as_soon_as_there_is_a_way() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    pair.intercept();
    pair.now += Duration::from_millis(10);
    pair.with(Side::Left, |engine, now| engine.hasten(now));
    assert!(pair.is_quiet(), "the driver has to know the way first");
    pair.now += Duration::from_millis(1);
    pair.timeout(Side::Left);
    pair.settle();
    assert!(fit(pair.left.child(), pair.right.child()));
}

// Weakness: 64
#[test]
fn the_responder_never_repeats_anything_on_its_own() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.intercept();
    let sent = pair.right.engine.counters().sent;
    // Time passes only at the responder. Its answer is lost, and no request is repeated.
    for _ in 0..100 {
        pair.now += Duration::from_secs(1);
        pair.timeout(Side::Right);
    }
    assert_eq!(pair.right.engine.counters().sent, sent);
}

#[test]
fn a_lost_answer_to_a_delete_is_given_again() {
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    pair.with(Side::Left, |engine, now| engine.close(id, now));
    pair.deliver_next();
    assert_eq!(pair.intercept().len(), 1, "the answer is lost");
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.left.down_reasons(), [&DownReason::ClosedHere]);
    assert_eq!(pair.right.engine.counters().answered_again, 1);
}

#[test]
fn a_peer_that_vanished_does_not_hold_up_closing() {
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    pair.hop.lost = 1000;
    pair.with(Side::Left, |engine, now| engine.close(id, now));
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.left.down_reasons(), [&DownReason::ClosedHere]);
}

#[test]
fn retransmissions_are_the_same_octets() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.hop.lost = 1000;
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(10));
    let first = &pair.sent[0].message;
    assert!(pair.sent.len() > 2);
    assert!(pair.sent.iter().all(|flying| flying.message == *first));
}
