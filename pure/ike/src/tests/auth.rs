//! The octets that AUTH covers.

use super::pair::{Pair, Side, fit};
use super::weaknesses::resealed;
use super::*;
use crate::auth::Claim;
use crate::sa::State;
use wire::ike::{Authentication, Identification, Message, Payload};

/// Returns the proof of one end for an identification with other reserved octets, before IKE_AUTH.
fn proof(pair: &mut Pair, side: Side, id: &Identification) -> Authentication {
    let message = match side {
        Side::Left => pair.sent[0].message.clone(),
        Side::Right => pair.sent[1].message.clone(),
    };
    let state = &pair.host(side).engine.sas.values().next().unwrap().state;
    let (keys, nonce) = match state {
        State::AuthSent(state) => {
            let keys = &state.proof.handshake.keys;
            (keys, &keys.nonce_r)
        }
        State::AwaitAuth(state) => {
            let keys = &state.proof.handshake.keys;
            (keys, &keys.nonce_i)
        }
        _ => panic!("IKE_AUTH is not under way"),
    };
    let claim = Claim {
        message: &message,
        nonce,
        proof_key: &keys.roots.own_proof,
        id,
        intermediate: &[],
    };
    claim.prove(&Secret::new(b"a secret that both ends know".to_vec()))
}

fn reserve(message: &mut Message, octets: [u8; 3]) {
    for payload in &mut message.payloads {
        match payload {
            Payload::IdInitiator(id) => id.reserved = octets,
            Payload::IdResponder(id) if message.header.flags.response => id.reserved = octets,
            _ => {}
        }
    }
}

/// RFC 7296 section 2.15: "RestOfInitIDPayload = IDType | RESERVED | InitIDData".
// Weakness: 94
#[test]
fn reserved_octets_of_an_identification_are_covered_as_they_came() {
    let reserved = [0, 7, 255];
    for (side, name) in [(Side::Left, "mobile"), (Side::Right, "gateway")] {
        for proved in [false, true] {
            let mut pair = Pair::new(mobile(), gateway());
            pair.initiate(Side::Left);
            pair.settle_one_round();
            let identity: model::Identity = format!("{name}.example.net").parse().unwrap();
            let id = Identification { identity, reserved };
            let proof = proof(&mut pair, side, &id);
            let mut genuine = pair.intercept().remove(0);
            if side == Side::Right {
                pair.deliver(&genuine);
                genuine = pair.intercept().remove(0);
            }
            let changed = resealed(&mut pair, &genuine, |message| {
                reserve(message, reserved);
                let mut payloads = message.payloads.iter_mut();
                let auth = payloads.find(|p| matches!(p, Payload::Authentication(_)));
                if proved {
                    *auth.unwrap() = Payload::Authentication(proof);
                }
            });
            pair.deliver(&changed);
            pair.settle();
            assert_eq!(pair.left.up(), usize::from(proved), "{name} {proved}");
            if proved {
                assert!(fit(pair.left.child(), pair.right.child()));
            }
        }
    }
}
