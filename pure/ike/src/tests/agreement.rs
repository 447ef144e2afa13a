//! What a responder knows of an initiator that has its answer to IKE_AUTH, or has it not (Cremers, "Key Exchange in IPsec
//! Revisited", 2011).

use super::certificates::{TODAY, credential, ends, pair};
use super::pair::{Pair, Side};
use super::*;
use crate::{DownReason, Event};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// A responder that has an hour of patience with a silent peer.
fn patient() -> Pair {
    let (left, mut right) = (mobile(), gateway());
    right.peers[0].liveness = HOUR;
    Pair::new(left, right)
}

/// The initiator's proof names whom it is for: another gateway that believes the same CA takes it for nothing.
#[test]
fn a_proof_that_is_relayed_to_another_responder_makes_no_ike_sa() {
    let (left, mut right) = ends();
    right.identity = "thief.example.net".parse().unwrap();
    right.credential = Some(credential(&["thief"], "thief"));
    let mut pair = pair(left, right, TODAY, 1);
    pair.connect();
    let refusals = pair.right.refusals();
    assert!(refusals[0].contains("gateway.example.net"), "{refusals:?}");
    let is_up = |event: &Event| matches!(event, Event::IkeUp { .. } | Event::ChildUp(_));
    assert!(!pair.right.events.iter().any(is_up));
}

#[test]
fn an_initiator_that_refuses_the_answer_ends_the_responders_sa_at_once() {
    let (left, mut right) = ends();
    right.credential = Some(credential(&["gateway"], "thief"));
    let mut pair = pair(left, right, TODAY, 1);
    pair.connect();
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    assert!(pair.right.children().is_empty());
    assert!(pair.now.since_origin() < Duration::from_secs(1));
}

/// Its word that it refuses is lost, or it never had the answer.
#[test]
fn an_initiator_that_does_not_show_that_it_has_the_answer_is_given_up_soon() {
    let mut pair = patient();
    pair.initiate(Side::Left);
    pair.settle_one_round();
    pair.deliver_next();
    assert_eq!(pair.right.up(), 1);
    pair.intercept();
    pair.lost = 1000;
    pair.pass(Duration::from_secs(30));
    assert_eq!(
        pair.right.down_reasons(),
        [&DownReason::PeerGone { attempts: 5 }]
    );
    assert!(pair.right.children().is_empty());
}

#[test]
fn an_initiator_that_has_the_answer_is_asked_once_and_then_as_often_as_any() {
    let mut pair = patient();
    pair.connect();
    pair.pass(Duration::from_secs(4));
    assert_eq!(pair.sent.len(), 4);
    pair.pass(HOUR - Duration::from_secs(10));
    assert_eq!(pair.sent.len(), 6, "an empty request and its answer");
    pair.pass(HOUR);
    assert_eq!(pair.sent.len(), 8);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

#[test]
fn an_initiator_that_sends_is_not_asked() {
    let mut pair = patient();
    pair.connect();
    pair.pass(Duration::from_secs(1));
    let id = pair.right.engine.sas().next().unwrap().id;
    pair.with(Side::Right, |engine, now| engine.note_inbound(id, now));
    pair.pass(HOUR / 2);
    assert_eq!(pair.sent.len(), 4);
}
