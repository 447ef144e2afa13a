//! Guessing the group of the key exchange, and correcting a wrong guess.

use super::pair::{Flying, Pair, Side, fit};
use super::*;
use crate::DropReason;
use std::time::Duration;
use wire::ike::{Datagram, GroupId, Message, Notify, NotifyType, Payload};

pub(super) fn with_groups(left: &[Group], right: &[Group]) -> (Config, Config) {
    let (mut mobile, mut gateway) = (mobile(), gateway());
    mobile.peers[0].groups = left.to_vec();
    gateway.peers[0].groups = right.to_vec();
    (mobile, gateway)
}

/// Returns the groups of the initiator's public values, in order.
fn guesses(pair: &Pair) -> Vec<GroupId> {
    let initiators = pair.sent.iter().filter(|flying| flying.to == Side::Right);
    let values = initiators.filter_map(|flying| match clear(flying)?.payloads.get(1)? {
        Payload::KeyExchange(exchange) => Some(exchange.group),
        _ => None,
    });
    values.collect()
}

fn clear(flying: &Flying) -> Option<Message> {
    match Datagram::decode(&flying.message) {
        Ok(Datagram::Clear(message)) => Some(message),
        _ => None,
    }
}

/// Returns a correction that any attacker on the path can send after a first message.
fn forged(first: &Flying, group: GroupId) -> Flying {
    let mut answer = clear(first).unwrap();
    answer.header.flags.initiator = false;
    answer.header.flags.response = true;
    let wanted = group.0.to_be_bytes().to_vec();
    let notify = Notify::new(NotifyType::INVALID_KE_PAYLOAD, wanted);
    answer.payloads = vec![Payload::Notify(notify)];
    Flying {
        to: Side::Left,
        path: first.path.reversed(),
        message: answer.encode(),
    }
}

// Weakness: 15
#[test]
fn every_group_works() {
    for group in Group::ALL {
        let (left, right) = with_groups(&[group], &Group::ALL);
        let mut pair = Pair::new(left, right);
        pair.connect();
        assert!(fit(pair.left.child(), pair.right.child()));
        assert_eq!(guesses(&pair), [crate::allowed_suites::group_id(group)]);
    }
}

#[test]
fn the_responders_preference_is_found_out_in_a_second_round() {
    use Group::{P256, X25519};
    for (ours, theirs) in [
        ([X25519, P256], [P256, X25519]),
        ([P256, X25519], [X25519, P256]),
    ] {
        let (left, right) = with_groups(&ours, &theirs);
        let mut pair = Pair::new(left, right);
        pair.connect();
        assert!(fit(pair.left.child(), pair.right.child()));
        assert_eq!(guesses(&pair), ours.map(crate::allowed_suites::group_id));
        assert_eq!(pair.sent.len(), 6);
    }
}

#[test]
fn a_wrong_guess_is_corrected_over_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..60 {
        let groups = [Group::P256, Group::X25519];
        let (left, right) = with_groups(&groups, &[Group::X25519]);
        let mut pair = Pair::seeded(left, right, seed);
        pair.hop = pair.hop.losing(200).repeating(300).delaying(300);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(300));
        assert!(fit(pair.left.child(), pair.right.child()), "seed {seed}");
    }
}

/// If the first guess is corrected, both public values of one attempt are sent. An attacker that
/// breaks one group must not learn the private value of the other.
#[test]
fn every_group_has_a_seed_of_its_own() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    let mut sas = pair.left.engine.sas.values();
    let Some(crate::sa::State::InitSent(state)) = sas.next().map(|sa| &sa.state) else {
        panic!("the first message was just sent");
    };
    let seeds: Vec<_> = state.seeds.iter().collect();
    assert_eq!(seeds.len(), 2);
    assert_ne!(seeds[0].1, seeds[1].1);
}

/// Otherwise an attacker on the path could choose the weaker of two groups (RFC 7296 section 2.7).
// Recovers: suites
// Weakness: 68
#[test]
fn a_forged_correction_does_not_choose_the_group() {
    let groups = [Group::X25519, Group::P256];
    let (left, right) = with_groups(&groups, &groups);
    let mut pair = Pair::new(left, right);
    pair.initiate(Side::Left);
    let first = pair.intercept().remove(0);
    pair.deliver(&forged(&first, GroupId::SECP256R1));
    pair.settle();
    assert!(fit(pair.left.child(), pair.right.child()));
    let (ours, weaker) = (GroupId::CURVE25519, GroupId::SECP256R1);
    assert_eq!(guesses(&pair), [ours, weaker, ours]);
}

// Weakness: 69
#[test]
fn the_genuine_answer_to_the_first_guess_counts_after_a_forged_correction() {
    let groups = [Group::X25519, Group::P256];
    let (left, right) = with_groups(&groups, &groups);
    let mut pair = Pair::new(left, right);
    pair.initiate(Side::Left);
    let first = pair.intercept().remove(0);
    pair.deliver(&first);
    let answer = pair.intercept().remove(0);
    pair.deliver(&forged(&first, GroupId::SECP256R1));
    pair.intercept();
    pair.deliver(&answer);
    pair.settle();
    assert!(fit(pair.left.child(), pair.right.child()));
}

// Weakness: 68
#[test]
fn endless_corrections_are_followed_three_times() {
    let groups = [Group::X25519, Group::P256];
    let (left, right) = with_groups(&groups, &groups);
    let mut pair = Pair::new(left, right);
    pair.initiate(Side::Left);
    let first = pair.intercept().remove(0);
    for _ in 0..10 {
        for group in [GroupId::SECP256R1, GroupId::CURVE25519] {
            pair.deliver(&forged(&first, group));
        }
    }
    assert_eq!(guesses(&pair).len(), 4);
    assert_eq!(pair.left.dropped(DropReason::RepeatedTooOften), 9);
    assert_eq!(pair.left.dropped(DropReason::WrongAnswer), 8);
}

// Refuses: suites
#[test]
fn no_common_group_is_a_readable_refusal() {
    let (left, right) = with_groups(&[Group::P256], &[Group::X25519]);
    let (left, right) = refusal::refused(left, right);
    assert!(left.contains("NO_PROPOSAL_CHOSEN"), "{left}");
    assert!(right.contains("with prfsha256 and x25519)"), "{right}");
}

/// A group that another peer allows is accepted until IKE_AUTH identifies the initiator.
#[test]
fn a_group_that_only_another_peer_may_use_is_refused() {
    let (left, mut right) = with_groups(&[Group::P256], &[Group::X25519]);
    let mut other = peer("other", PeerRole::Licensed);
    other.groups = vec![Group::P256];
    right.peers.push(other);
    let (left, right) = refusal::refused(left, right);
    assert!(left.contains("NO_PROPOSAL_CHOSEN"), "{left}");
    assert!(right.contains("with prfsha256 and x25519)"), "{right}");
}
