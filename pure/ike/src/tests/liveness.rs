//! Finding out that a peer is gone.

use super::pair::{Pair, Side};
use super::rekey::rekey_child;
use super::*;
use crate::DownReason;
use std::time::Duration;

fn asking() -> Pair {
    let (mut left, right) = (mobile(), gateway());
    left.peers[0].liveness = Duration::from_secs(30);
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

#[test]
fn silence_is_answered_with_a_question() {
    let mut pair = asking();
    pair.pass(Duration::from_secs(29));
    assert_eq!(pair.sent.len(), 4);
    pair.pass(Duration::from_secs(2));
    assert_eq!(pair.sent.len(), 6, "an empty request and its answer");
    pair.pass(Duration::from_secs(3600));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

#[test]
fn traffic_makes_questions_unnecessary() {
    let mut pair = asking();
    let id = pair.left.engine.sas().next().unwrap().id;
    for _ in 0..100 {
        pair.pass(Duration::from_secs(20));
        pair.with(Side::Left, |engine, now| engine.note_inbound(id, now));
    }
    assert_eq!(pair.sent.len(), 4);
}

#[test]
fn a_peer_that_is_gone_is_given_up_with_its_children() {
    let mut pair = asking();
    pair.lost = 1000;
    // Half a minute of silence, then five questions.
    pair.pass(Duration::from_secs(50));
    assert_eq!(
        pair.left.down_reasons(),
        [&DownReason::PeerGone { attempts: 5 }]
    );
    assert!(pair.left.children().is_empty());
    assert_eq!(pair.left.engine.poll_timeout(), None);
}

/// A request that was under way when the peer was killed is not waited for any longer than a question would be.
#[test]
fn a_request_under_way_is_a_question_as_well() {
    let mut pair = asking();
    pair.lost = 1000;
    pair.pass(Duration::from_secs(20));
    rekey_child(&mut pair, Side::Left);
    // Ten seconds until the silence is long enough, then five attempts.
    pair.pass(Duration::from_secs(24));
    assert_eq!(pair.left.up(), 1);
    pair.pass(Duration::from_secs(2));
    let [&DownReason::PeerGone { attempts }] = pair.left.down_reasons()[..] else {
        panic!("{:?}", pair.left.down_reasons());
    };
    assert!((6..16).contains(&attempts), "{attempts}");
    assert!(pair.left.children().is_empty());
}

/// Who is heard of otherwise has all the time that a request may take.
#[test]
fn a_peer_that_is_heard_is_asked_as_often_as_otherwise() {
    let mut pair = asking();
    let id = pair.left.engine.sas().next().unwrap().id;
    pair.lost = 1000;
    rekey_child(&mut pair, Side::Left);
    for _ in 0..6 {
        pair.pass(Duration::from_secs(16));
        pair.with(Side::Left, |engine, now| engine.note_inbound(id, now));
        assert_eq!(pair.left.up(), 1);
    }
    pair.pass(Duration::from_secs(16));
    assert_eq!(
        pair.left.down_reasons(),
        [&DownReason::PeerGone { attempts: 16 }]
    );
}

#[test]
fn zero_never_asks() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    pair.pass(Duration::from_secs(86_400));
    assert_eq!(pair.sent.len(), 4);
}

#[test]
fn an_initiator_that_does_not_go_on_is_forgotten() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    pair.deliver_next();
    assert_eq!(pair.right.engine.half_open(), 1);
    pair.intercept();
    pair.now += Duration::from_secs(60);
    pair.timeout(Side::Right);
    assert_eq!(
        (
            pair.right.engine.half_open(),
            pair.right.engine.sas().count()
        ),
        (0, 0)
    );
}
