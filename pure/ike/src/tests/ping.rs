//! Questions for the counters of pings.

use super::pair::{Pair, Side};
use super::rekey::rekey_ike;
use super::*;
use crate::Event;
use std::time::Duration;
use wire::ike::PingCounts;

const SECOND: Duration = Duration::from_secs(1);

/// Returns a pair whose ends check nothing by themselves.
fn idle() -> Pair {
    let (mut left, mut right) = (mobile(), gateway());
    for end in [&mut left, &mut right] {
        end.peers[0].liveness = Duration::ZERO;
    }
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

fn ask(pair: &mut Pair, question: u64) {
    let sa = pair.left.ike();
    pair.with(Side::Left, |engine, now| {
        engine.ask_ping_counts(sa, question, now);
    });
}

fn note(pair: &mut Pair, received: u64, answered: u64, withheld: u64) {
    let sa = pair.right.ike();
    let counts = PingCounts {
        received,
        answered,
        withheld,
    };
    pair.with(Side::Right, |engine, _| engine.note_pings(sa, counts));
}

/// Returns a pair of which one end has pinged, while the other could not send an answer.
pub(crate) fn unanswered() -> Pair {
    let mut pair = idle();
    ask(&mut pair, 1);
    pair.settle();
    note(&mut pair, 4, 0, 0);
    ask(&mut pair, 1);
    pair.settle();
    pair
}

/// Returns the answers, with the numbers of their questions.
fn told(pair: &Pair) -> Vec<(u64, Option<[u64; 3]>)> {
    let told = pair.left.events.iter().filter_map(|event| match event {
        Event::PingCounts {
            question, counts, ..
        } => {
            let counts = counts.map(|of| [of.received, of.answered, of.withheld]);
            Some((*question, counts))
        }
        _ => None,
    });
    told.collect()
}

#[test]
fn the_peer_tells_its_counters_and_no_others() {
    let mut pair = idle();
    ask(&mut pair, 7);
    pair.settle();
    note(&mut pair, 3, 2, 0);
    note(&mut pair, 1, 0, 1);
    // Those of the end that asks are its own.
    let sa = pair.left.ike();
    let own = PingCounts {
        received: 9,
        ..PingCounts::default()
    };
    pair.with(Side::Left, |engine, _| engine.note_pings(sa, own));
    ask(&mut pair, 8);
    pair.settle();
    assert_eq!(told(&pair), [(7, Some([0; 3])), (8, Some([4, 2, 1]))]);
}

#[test]
fn counters_survive_a_rekey_of_the_ike_sa() {
    let mut pair = idle();
    note(&mut pair, 5, 5, 0);
    rekey_ike(&mut pair, Side::Left);
    pair.settle();
    note(&mut pair, 1, 0, 0);
    ask(&mut pair, 1);
    pair.settle();
    assert_eq!(told(&pair), [(1, Some([6, 5, 0]))]);
}

#[test]
fn a_question_that_is_lost_is_repeated_and_answered_once() {
    for seed in 0..20 {
        let mut pair = idle();
        pair.reseed(seed);
        pair.hop = pair.hop.losing(400).repeating(200).delaying(100);
        note(&mut pair, 2, 1, 1);
        ask(&mut pair, 1);
        pair.run_for(60 * SECOND);
        assert_eq!(told(&pair), [(1, Some([2, 1, 1]))], "{seed}");
    }
}

/// A ping over a path that carries nothing must not end the tunnel.
#[test]
fn a_question_without_an_answer_ends_nothing_without_liveness() {
    let mut pair = idle();
    pair.hop.lost = 1000;
    for question in 0..5 {
        ask(&mut pair, question);
    }
    pair.run_for(300 * SECOND);
    assert_eq!((pair.left.up(), told(&pair).len()), (1, 0));
    pair.hop.lost = 0;
    pair.run_for(600 * SECOND);
    // The others were too many at once.
    let questions: Vec<_> = told(&pair)
        .into_iter()
        .map(|(question, _)| question)
        .collect();
    assert_eq!(questions, [0, 1]);
}

#[test]
fn a_peer_without_the_vendor_id_gives_a_sign_of_life_alone() {
    let mut pair = idle();
    pair.left.engine.forget_vendor();
    pair.right.engine.forget_vendor();
    let before = pair.sent.len();
    ask(&mut pair, 1);
    pair.settle();
    assert_eq!(told(&pair), [(1, None)]);
    // A request and its answer, as long as those of a liveness check.
    let lens: Vec<_> = pair.sent[before..]
        .iter()
        .map(|sent| sent.message.len())
        .collect();
    assert!(lens.len() == 2 && lens[0] == lens[1], "{lens:?}");
}
