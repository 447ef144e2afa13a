//! Errors in otherwise correct answers (RFC 7296 sections 2.21.2 and 3.10.1).

use super::attack::ask_sealed;
use super::pair::{Flying, Pair, Side, fit};
use super::weaknesses::resealed;
use super::*;
use crate::DownReason;
use wire::ike::{Datagram, ExchangeType, Message, Notify, NotifyType, Payload, PayloadType};

/// An error type that is unknown here.
const UNKNOWN: NotifyType = NotifyType(12345);

fn error(kind: NotifyType) -> Payload {
    Payload::Notify(Notify::new(kind, Vec::new()))
}

fn has_child(payload: &Payload) -> bool {
    let kinds = [PayloadType::SA, PayloadType::TSI, PayloadType::TSR];
    kinds.contains(&payload.kind())
}

/// Returns a pair whose answer to IKE_AUTH is in flight.
fn answered(left: Config) -> (Pair, Flying) {
    let mut pair = Pair::new(left, gateway());
    pair.initiate(Side::Left);
    pair.settle_one_round();
    pair.deliver_next();
    let answer = pair.intercept().remove(0);
    (pair, answer)
}

fn with_another_child() -> Config {
    let mut left = mobile();
    let another = child("another", "10.8.0.2/32", "10.0.0.0/24");
    left.peers[0].children.push(another);
    left
}

// Weakness: 93
#[test]
fn an_error_beside_a_child_in_ike_auth_is_believed() {
    for kind in [
        UNKNOWN,
        NotifyType::AUTHENTICATION_FAILED,
        NotifyType::TS_UNACCEPTABLE,
        NotifyType::NO_PROPOSAL_CHOSEN,
        NotifyType::SINGLE_PAIR_REQUIRED,
        NotifyType::INTERNAL_ADDRESS_FAILURE,
        NotifyType::FAILED_CP_REQUIRED,
    ] {
        let (mut pair, answer) = answered(mobile());
        let changed = resealed(&mut pair, &answer, |m| m.payloads.push(error(kind)));
        pair.deliver(&changed);
        pair.run_for(Duration::from_secs(60));
        assert_eq!((pair.left.up(), pair.right.up()), (0, 0), "{kind}");
        assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
        let why = pair.left.down_reasons()[0];
        assert!(why.to_string().contains(&kind.to_string()), "{why}");
    }
}

#[test]
fn the_refusal_of_one_child_leaves_the_ike_sa_to_the_others_and_an_unknown_error_does_not() {
    for (kind, up) in [
        (NotifyType::TS_UNACCEPTABLE, 1),
        (NotifyType::NO_PROPOSAL_CHOSEN, 1),
        (UNKNOWN, 0),
        (NotifyType::AUTHENTICATION_FAILED, 0),
    ] {
        let (mut pair, answer) = answered(with_another_child());
        let changed = resealed(&mut pair, &answer, |message| {
            message.payloads.retain(|payload| !has_child(payload));
            message.payloads.push(error(kind));
        });
        pair.deliver(&changed);
        assert_eq!(pair.left.up(), up, "{kind}");
        assert!(pair.left.children().is_empty());
        if up == 1 {
            let told = pair.left.refusals().join("; ");
            assert!(told.contains(&kind.to_string()), "{told}");
        }
    }
}

/// Our responder sends such an answer itself, and the second child comes up nevertheless.
#[test]
fn a_responder_that_refuses_the_first_child_keeps_the_ike_sa_for_the_others() {
    let (mut left, mut right) = (with_another_child(), gateway());
    left.peers[0].role = vpn("172.16.0.1/32", "10.0.0.0/8", ZonePolicy::default());
    let another = child("another", "10.0.0.0/16", "10.8.0.2/32");
    right.peers[0].role = vpn("192.0.2.0/24", "198.51.100.0/24", ZonePolicy::default());
    right.peers[0].children.push(another);
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert!(fit(pair.left.child(), pair.right.child()));
    assert_eq!(pair.left.child().name.as_deref(), Some("another"));
    let told = (
        pair.left.refusals().join(";"),
        pair.right.refusals().join(";"),
    );
    assert!(told.0.contains("TS_UNACCEPTABLE"), "{told:?}");
    assert!(told.1.contains("traffic selectors"), "{told:?}");
}

// Weakness: 93
#[test]
fn an_error_beside_a_wrong_proof_is_no_reason() {
    let (mut pair, answer) = answered(mobile());
    let changed = resealed(&mut pair, &answer, |message| {
        for payload in &mut message.payloads {
            if let Payload::Authentication(proof) = payload {
                proof.data[0] ^= 1;
            }
        }
        message.payloads.push(error(UNKNOWN));
    });
    pair.deliver(&changed);
    assert_eq!(*pair.left.down_reasons()[0], DownReason::WrongKey);
}

#[test]
fn an_unknown_error_in_the_first_answer_is_remembered_and_the_genuine_answer_awaited() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    pair.deliver_next();
    let genuine = pair.intercept().remove(0);
    let Ok(Datagram::Clear(mut message)) = Datagram::decode(&genuine.message) else {
        panic!("IKE_SA_INIT is in the clear");
    };
    message.payloads.push(error(UNKNOWN));
    let changed = Flying {
        message: Message::encode(&message),
        ..genuine.clone()
    };
    pair.deliver(&changed);
    assert!(pair.is_quiet());
    let told = pair.left.refusals().join("; ");
    assert!(told.contains("12345"), "{told}");
    pair.deliver(&genuine);
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

#[test]
fn an_unknown_error_in_a_later_answer_fails_what_was_asked_and_is_told() {
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    let before = pair.left.child().id;
    pair.with(Side::Left, |engine, now| {
        engine.rekey_child(id, before, now)
    });
    pair.deliver_next();
    let answer = pair.intercept().remove(0);
    let changed = resealed(&mut pair, &answer, |m| m.payloads.push(error(UNKNOWN)));
    pair.deliver(&changed);
    assert_eq!(pair.left.child().id, before);
    assert!(pair.left.refusals().join("; ").contains("12345"));
}

#[test]
fn an_error_in_the_answer_to_an_informational_request_is_told() {
    let mut config = mobile();
    config.peers[0].liveness = Duration::from_secs(10);
    let mut pair = Pair::new(config, gateway());
    pair.connect();
    pair.now += Duration::from_secs(11);
    pair.timeout(Side::Left);
    pair.deliver_next();
    let answer = pair.intercept().remove(0);
    let changed = resealed(&mut pair, &answer, |m| m.payloads.push(error(UNKNOWN)));
    pair.deliver(&changed);
    assert_eq!(pair.left.up(), 1);
    let told = pair.left.refusals().join("; ");
    assert!(told.contains("12345"), "{told}");
    // The SA stays up.
    let id = pair.left.engine.sas().next().unwrap().id;
    let answer = ask_sealed(&mut pair, id, ExchangeType::INFORMATIONAL, Vec::new());
    assert!(answer.is_empty());
}
