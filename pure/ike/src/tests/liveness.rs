//! Finding out that a peer is gone.

use super::pair::{Flying, Host, Pair, Side, fit};
use super::rekey::rekey_child;
use super::*;
use crate::{DownReason, DropReason};
use std::time::Duration;
use wire::ike::{Notify, NotifyType};

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
    pair.run_for(Duration::from_secs(29));
    assert_eq!(pair.sent.len(), 4);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.sent.len(), 6, "an empty request and its answer");
    pair.run_for(Duration::from_secs(3600));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

#[test]
fn traffic_makes_questions_unnecessary() {
    let mut pair = asking();
    let id = pair.left.engine.sas().next().unwrap().id;
    for _ in 0..100 {
        pair.run_for(Duration::from_secs(20));
        pair.with(Side::Left, |engine, now| engine.note_inbound(id, now));
    }
    assert_eq!(pair.sent.len(), 4);
}

// Weakness: 51
#[test]
fn a_peer_that_is_gone_is_given_up_with_its_children() {
    let mut pair = asking();
    pair.hop.lost = 1000;
    // Half a minute of silence, then a question for 15.5 s.
    pair.run_for(Duration::from_secs(45));
    assert_eq!(pair.left.up(), 1);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(
        pair.left.down_reasons(),
        [&DownReason::PeerGone { attempts: 7 }]
    );
    assert!(pair.left.children().is_empty());
    assert_eq!(pair.left.engine.poll_timeout(), None);
}

/// A request that was under way when the peer was killed is not waited for any longer than a
/// question would be.
// Recovers: liveness
#[test]
fn a_request_under_way_is_a_question_as_well() {
    let mut pair = asking();
    pair.hop.lost = 1000;
    pair.run_for(Duration::from_secs(20));
    rekey_child(&mut pair, Side::Left);
    // Ten seconds until the silence is long enough, then 15.5 s.
    pair.run_for(Duration::from_secs(24));
    assert_eq!(pair.left.up(), 1);
    pair.run_for(Duration::from_secs(2));
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
    pair.hop.lost = 1000;
    rekey_child(&mut pair, Side::Left);
    for _ in 0..6 {
        pair.run_for(Duration::from_secs(16));
        pair.with(Side::Left, |engine, now| engine.note_inbound(id, now));
        assert_eq!(pair.left.up(), 1);
    }
    pair.run_for(Duration::from_secs(16));
    assert_eq!(
        pair.left.down_reasons(),
        [&DownReason::PeerGone { attempts: 18 }]
    );
}

#[test]
fn zero_never_asks() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    pair.run_for(Duration::from_secs(86_400));
    assert_eq!(pair.sent.len(), 4);
}

// Weakness: 65
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

/// A pair with a liveness check of the left host, which is taken out of the network.
fn doubting() -> (Pair, Flying) {
    let mut pair = asking();
    pair.run_for(Duration::from_secs(10));
    let id = pair.left.engine.sas().next().unwrap().id;
    pair.with(Side::Left, |engine, now| engine.doubt(id, now));
    let question = pair.intercept().remove(0);
    (pair, question)
}

/// The refusal may be forged, so it affects nothing that is up.
// Weakness: 133
#[test]
fn an_unproved_refusal_of_a_question_begins_one_other_sa_and_ends_nothing() {
    let (mut pair, question) = doubting();
    let unknown = Notify::new(NotifyType::INVALID_IKE_SPI, Vec::new());
    let forged = question.forged_answer(&[unknown]);
    for _ in 0..100 {
        pair.deliver(&forged);
        pair.timeout(Side::Left);
    }
    assert_eq!(pair.intercept().len(), 1, "one first message");
    assert_eq!(pair.left.up(), 1);
    assert_eq!(pair.left.refusals().len(), 1, "told once");
    pair.deliver(&question);
    pair.run_for(Duration::from_secs(300));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    let gone = |why: &&&DownReason| matches!(why, DownReason::PeerGone { .. });
    assert_eq!(pair.left.down_reasons().iter().filter(gone).count(), 0);
}

/// RFC 7296 section 1.5. The rate and the size of the answers are limited because sources may be
/// forged.
// Weakness: 133
#[test]
fn a_question_on_an_unknown_sa_is_told_so_in_fewer_octets_and_64_times_a_second() {
    let (mut pair, question) = doubting();
    pair.restart(Side::Right, Host::seeded(gateway(), 9, 2));
    for _ in 0..200 {
        pair.deliver(&question);
    }
    let answers = pair.intercept();
    assert_eq!(answers.len(), 64);
    let longest = answers.iter().map(|answer| answer.message.len()).max();
    assert!(longest < Some(question.message.len()));
    // An answer gets no answer.
    let mut answer = answers[0].clone();
    answer.to = Side::Right;
    pair.deliver(&answer);
    assert!(pair.is_quiet());
}

/// No process was lost, so a late request must not make its sender start another IKE SA.
// Weakness: 142
#[test]
fn a_question_on_an_sa_that_was_ended_gets_no_answer() {
    let (mut pair, question) = doubting();
    let id = pair.right.engine.sas().next().unwrap().id;
    pair.with(Side::Right, |engine, now| engine.close(id, now));
    pair.run_for(Duration::from_secs(600));
    assert_eq!((pair.left.up(), pair.right.engine.sas().count()), (0, 0));
    pair.deliver(&question);
    assert!(pair.is_quiet());
    assert_eq!(pair.right.dropped(DropReason::UnknownSa), 1);
}

/// The restarted peer answers the check with INVALID_IKE_SPI, so another IKE SA is up at once.
#[test]
fn a_peer_that_was_started_again_is_back_within_a_second_of_the_question() {
    let (mut pair, _) = doubting();
    pair.restart(Side::Right, Host::seeded(gateway(), 9, 2));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.right.up(), 1);
    pair.run_for(Duration::from_secs(120));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert!(fit(pair.left.child(), pair.right.child()));
}

/// No Delete was sent, so the peer cannot know.
// Weakness: 142
#[test]
fn a_peer_that_was_given_up_is_back_within_a_second_of_its_question() {
    let (mut left, mut right) = (mobile(), gateway());
    left.peers[0].liveness = Duration::from_secs(600);
    right.peers[0].liveness = Duration::from_secs(10);
    let mut pair = Pair::new(left, right);
    let id = pair.connect();
    pair.hop.lost = 1000;
    pair.run_for(Duration::from_secs(60));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 0));
    pair.hop.lost = 0;
    pair.with(Side::Left, |engine, now| engine.doubt(id, now));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.right.up(), 1);
    pair.run_for(Duration::from_secs(120));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert!(fit(pair.left.child(), pair.right.child()));
}
