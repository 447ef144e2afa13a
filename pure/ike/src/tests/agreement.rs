//! Ends that do not agree on IKE_AUTH (Cremers, "Key Exchange in IPsec Revisited", 2011).

use super::certificates::{TODAY, credential, ends, pair};
use crate::Event;
use std::time::Duration;

/// The initiator's proof names its recipient, so another gateway that trusts the same CA rejects
/// the proof.
// Weakness: 51
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

// Weakness: 51
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
