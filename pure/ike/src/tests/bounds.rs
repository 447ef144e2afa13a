//! Limits for a malicious peer with valid keys: it occupies no more than its share of an engine.

use super::pair::{Pair, Side, fit};
use super::*;

/// A latency so short that no message is retransmitted.
const INSTANTLY: Duration = Duration::from_nanos(1);

/// SAs that a peer can replace before the first of these is forgotten.
const MANY: usize = 100;

fn pair() -> Pair {
    let mut pair = Pair::new(mobile(), gateway());
    pair.hop.delay = INSTANTLY;
    pair
}

/// Rekeys the left end's IKE SA again and again, with or without deleting the old ones.
pub(crate) fn rekeying(deletes: bool) -> Pair {
    let mut pair = pair();
    let sa = pair.connect();
    for _ in 0..MANY {
        pair.with(Side::Left, |engine, now| engine.rekey_ike(sa, now));
        match deletes {
            true => pair.settle(),
            false => {
                assert!(pair.deliver_next() && pair.deliver_next());
                pair.lose();
            }
        }
    }
    pair
}

/// Initiates from the left end again and again, and loses all answers to its Deletes.
pub(crate) fn beginning() -> Pair {
    let mut pair = pair();
    for _ in 0..MANY {
        let sa = pair.connect();
        pair.with(Side::Left, |engine, now| engine.close(sa, now));
        pair.deliver_next();
        pair.lose();
    }
    pair.connect();
    pair
}

fn assert_bounded(pair: &Pair) {
    let kept = pair.right.engine.sas.len();
    assert!(kept < MANY / 4, "{kept} IKE SAs");
    assert_eq!(pair.right.engine.by_spi.len(), kept);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

// Weakness: 123
#[test]
fn what_is_left_of_ike_sas_that_a_peer_rekeys_without_end_is_bounded() {
    for deletes in [true, false] {
        let pair = rekeying(deletes);
        assert_bounded(&pair);
        assert!(fit(pair.left.child(), pair.right.child()));
    }
}

// Weakness: 123
#[test]
fn a_peer_that_begins_without_end_has_no_more_ike_sas_than_one_that_does_not() {
    assert_bounded(&beginning());
}
