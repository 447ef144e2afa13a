//! Both ends initiate at the same moment.

use super::pair::{Host, Pair, Side, fit};
use super::*;
use crate::DownReason;

/// Returns two ends whose first messages cross.
fn crossing(seed: u8) -> Pair {
    let mut pair = Pair::seeded(mobile(), gateway(), seed);
    pair.initiate(Side::Left);
    pair.initiate(Side::Right);
    pair
}

/// Checks that both ends keep the same single IKE SA and child. Returns true if the left end
/// initiated it.
fn survivor(pair: &Pair) -> bool {
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    let spis = |host: &Host| {
        let sa = host.engine.sas().find(|sa| sa.since.is_some()).unwrap();
        (sa.spi_i, sa.spi_r, sa.initiator)
    };
    let (left, right) = (spis(&pair.left), spis(&pair.right));
    assert_eq!((left.0, left.1), (right.0, right.1));
    assert_ne!(left.2, right.2);
    assert!(fit(pair.left.child(), pair.right.child()));
    left.2
}

#[test]
fn of_two_ike_sas_made_at_once_both_ends_keep_the_same_one() {
    let mut began = [0, 0];
    for seed in 1..=40 {
        let mut pair = crossing(seed);
        pair.settle();
        began[usize::from(survivor(&pair))] += 1;
        for host in [&pair.left, &pair.right] {
            let one_went = match host.down_reasons()[..] {
                [why] => matches!(why, DownReason::Replaced | DownReason::ClosedByPeer),
                _ => false,
            };
            assert!(one_went, "{:?}", host.down_reasons());
        }
    }
    assert!(began[0] > 5 && began[1] > 5, "chance decides: {began:?}");
}

#[test]
fn loss_and_disorder_do_not_change_what_is_kept() {
    for seed in 1..=40 {
        let mut pair = crossing(seed);
        pair.hop = pair.hop.losing(200).repeating(200).delaying(300);
        pair.run_for(Duration::from_secs(200));
        survivor(&pair);
    }
}

/// Between the Delete of one end and its arrival, both ends have the SA that stays.
#[test]
fn neither_end_is_ever_without_a_child_once_it_had_one() {
    for seed in 1..=40 {
        let mut pair = crossing(seed);
        let (mut left, mut right) = (0, 0);
        while pair.deliver_next() {
            let (now_left, now_right) = (pair.left.children().len(), pair.right.children().len());
            assert!(now_left >= left.min(1) && now_right >= right.min(1));
            (left, right) = (now_left, now_right);
        }
        survivor(&pair);
    }
}
