//! Hand-over of keys from one licensed node to another, with a mobile node's token.

use super::distribute::{self, grant};
use super::pair::{Pair, Side};
use super::*;
use crate::{Event, GrantRefusal, KeyRefusal, is_signed, sign_token, token_key};
use model::{Grant, Identity, IkeSaId, Onward, Spi};
use std::time::Duration;
use wire::ike::{RefusalCode, Token};

fn root() -> Secret {
    Secret::new(vec![9; 32])
}

fn node(name: &str) -> Identity {
    format!("{name}.example.net").parse().unwrap()
}

pub(super) fn token(nonce: u8) -> Token {
    let mut token = Token {
        spis: [Spi(0x1111), Spi(0x2222)],
        nonce: [nonce; 16],
        expiry: 100,
        zones: vec![ZoneId(1)],
        mac: [0; 16],
        holder: node("before"),
    };
    sign_token(
        &mut token,
        &token_key(&root(), &node("before")),
        &node("next"),
    );
    token
}

/// Returns a pair with the next node on the left and the previous node on the right.
fn neighbours() -> (Pair, IkeSaId) {
    with_roles(PeerRole::Neighbour, PeerRole::Neighbour)
}

fn with_roles(of_before: PeerRole, of_next: PeerRole) -> (Pair, IkeSaId) {
    let next = host("next", peer("before", of_before));
    let before = host("before", peer("next", of_next));
    let mut pair = Pair::new(next, before);
    let id = pair.connect();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    pair.right.keys = Some(grant(1));
    (pair, id)
}

fn ask(pair: &mut Pair, id: IkeSaId, nonce: u8) {
    pair.with(Side::Left, |engine, now| {
        engine.request_keys(id, token(nonce), now);
    });
}

fn answers(pair: &Pair) -> Vec<Result<Grant<Secret>, KeyRefusal>> {
    let answers = pair.left.events.iter().filter_map(|event| match event {
        Event::KeysAnswered { answer, .. } => Some(answer.clone()),
        _ => None,
    });
    answers.collect()
}

fn asked(pair: &Pair) -> Vec<(Identity, Token)> {
    let asked = pair.right.events.iter().filter_map(|event| match event {
        Event::KeysAsked { node, token, .. } => Some((node.clone(), token.clone())),
        _ => None,
    });
    asked.collect()
}

#[test]
fn a_neighbour_is_shown_a_token_and_answers_with_keys() {
    let (mut pair, id) = neighbours();
    assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
    ask(&mut pair, id, 1);
    pair.settle();
    assert_eq!(asked(&pair), [(node("next"), token(1))]);
    assert_eq!(answers(&pair), [Ok(grant(1))]);
}

#[test]
fn a_neighbour_that_gives_nothing_says_why() {
    let (mut pair, id) = neighbours();
    pair.right.keys = None;
    ask(&mut pair, id, 1);
    pair.settle();
    let code = KeyRefusal::Code(RefusalCode::UNKNOWN_GRANT);
    assert_eq!(answers(&pair), [Err(code)]);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

#[test]
fn keys_that_are_no_sound_grant_are_none() {
    let (mut pair, id) = neighbours();
    let mut unsound = grant(1);
    unsound.to_gateway.zones[0].0 = ZoneId(3);
    pair.right.keys = Some(unsound);
    ask(&mut pair, id, 1);
    pair.settle();
    assert_eq!(answers(&pair), [Err(KeyRefusal::NoAnswer)]);
}

/// A token for a neighbour is shown neither to a gateway nor to a node that gets keys from us.
// Refuses: handover-dkm
#[test]
fn nobody_but_a_neighbour_is_asked_or_answered() {
    let (mut pair, id) = with_roles(PeerRole::Gateway, PeerRole::Licensed);
    ask(&mut pair, id, 1);
    assert!(pair.is_quiet(), "nothing was sent");
    assert_eq!(answers(&pair), [Err(KeyRefusal::NotANeighbour)]);
    for of_next in [PeerRole::Licensed, PeerRole::Gateway] {
        let (mut pair, id) = with_roles(PeerRole::Neighbour, of_next);
        ask(&mut pair, id, 1);
        pair.settle();
        assert!(asked(&pair).is_empty());
        let code = KeyRefusal::Code(RefusalCode::NOT_A_NEIGHBOUR);
        assert_eq!(answers(&pair), [Err(code)]);
    }
}

#[test]
fn a_neighbour_takes_no_grant_as_from_a_gateway() {
    let (mut pair, id) = with_roles(PeerRole::Licensed, PeerRole::Neighbour);
    pair.with(Side::Left, |engine, now| {
        engine.distribute(id, grant(1), now);
    });
    pair.settle();
    let code = RefusalCode::NOT_THE_GATEWAY;
    let refused = |event: &Event| matches!(event, Event::GrantRefused { why: GrantRefusal::Code(why), .. } if *why == code);
    assert!(pair.left.events.iter().any(refused));
}

#[test]
fn requests_and_answers_survive_loss_and_are_bounded_while_nobody_answers() {
    let (mut pair, id) = neighbours();
    pair.hop.lost = 300;
    for nonce in 1..=9 {
        ask(&mut pair, id, nonce);
    }
    let too_many = |answer: &&Result<_, _>| **answer == Err(KeyRefusal::TooMany);
    assert_eq!(answers(&pair).iter().filter(too_many).count(), 5);
    pair.run_for(Duration::from_secs(60));
    let given = answers(&pair)
        .iter()
        .filter(|answer| answer.is_ok())
        .count();
    assert_eq!((given, asked(&pair).len()), (4, 4));
}

#[test]
fn to_whom_a_grant_may_be_handed_on_comes_with_it() {
    let gateway = distribute::gateway_of_node();
    let mut pair = Pair::new(gateway, distribute::node());
    let id = pair.connect();
    let mut onward = grant(1);
    onward.onward = Some(Onward {
        key: token_key(&root(), &node("before")),
        licences: vec![licence("next.example.net")],
    });
    let sent = onward.clone();
    pair.with(Side::Left, |engine, now| engine.distribute(id, sent, now));
    // Rights beyond `read` come from the gateway alone.
    let mut more = onward.clone();
    let licences = &mut more.onward.as_mut().unwrap().licences;
    licences[0].right = Right::Write;
    pair.with(Side::Left, |engine, now| engine.distribute(id, more, now));
    pair.settle();
    let granted = pair.right.events.iter().filter_map(|event| match event {
        Event::Granted { grant, .. } => Some(grant.clone()),
        _ => None,
    });
    assert_eq!(granted.collect::<Vec<_>>(), [onward]);
}

/// A node's key signs no token for another node, and a token for one requester is invalid for
/// another.
#[test]
fn a_token_is_good_for_who_is_asked_and_who_asks() {
    let key = token_key(&root(), &node("before"));
    assert!(is_signed(&token(1), &key, &node("next")));
    assert!(!is_signed(&token(1), &key, &node("other")));
    let others = token_key(&root(), &node("other"));
    assert!(!is_signed(&token(1), &others, &node("next")));
    let mut later = token(1);
    later.expiry += 1;
    assert!(!is_signed(&later, &key, &node("next")));
}

/// The mobile node and the gateway derive the key from their own configurations, and the holder
/// compares the asker with the identity of its IKE peer.
#[test]
fn a_token_is_good_however_the_ends_spell_the_names() {
    let other = |name: &str| name.to_uppercase().parse::<Identity>().unwrap();
    let key = token_key(&root(), &other("before.example.net"));
    assert_eq!(key, token_key(&root(), &node("before")));
    assert!(is_signed(&token(1), &key, &other("next.example.net")));
}
