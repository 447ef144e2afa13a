//! AUTH methods 9 and 10 (RFC 4754), for peers that do not know RFC 7427, and 14.

use super::pair::{Pair, Side, fit};
use super::weaknesses::resealed;
use super::*;
use crate::signature::Signing;
use crate::{Credential, Signer};
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair,
};
use crypto::{KeyKind, RawKey};
use std::sync::Arc;
use wire::ike::{AuthMethod, Authentication, Payload};

#[derive(Debug)]
struct Key(EcdsaKeyPair);

impl Signer for Key {
    #[expect(
        clippy::disallowed_methods,
        reason = "a signature of the other end, in a test"
    )]
    fn sign(&self, octets: &[u8]) -> Option<Vec<u8>> {
        let signature = self.0.sign(&SystemRandom::new(), octets).ok()?;
        Some(signature.as_ref().to_vec())
    }
}

pub(crate) fn credential(kind: KeyKind) -> Credential {
    let key = match kind {
        KeyKind::P256 => EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING),
        _ => EcdsaKeyPair::generate(&ECDSA_P384_SHA384_ASN1_SIGNING),
    };
    let key = Key(key.unwrap());
    let der: PublicKeyX509Der<'_> = key.0.public_key().as_der().unwrap();
    Credential {
        chain: Vec::new(),
        key: RawKey::from_der(der.as_ref()).unwrap(),
        algorithm: kind.signs_with(),
        signer: Arc::new(key),
    }
}

fn by_keys(left: Credential, right: Credential) -> Pair {
    let (mut mobile, mut gateway) = (mobile(), gateway());
    mobile.peers[0].psk = None;
    gateway.peers[0].psk = None;
    mobile.peers[0].key = Some(Box::new(right.key.clone()));
    gateway.peers[0].key = Some(Box::new(left.key.clone()));
    (mobile.credential, gateway.credential) = (Some(left), Some(right));
    Pair::new(mobile, gateway)
}

/// Makes this end announce no hash algorithms.
fn is_old(pair: &mut Pair, side: Side) {
    pair.host(side).engine.config.signing = Signing::default();
}

/// Returns the AUTH methods of both ends.
fn methods(pair: &mut Pair) -> Vec<AuthMethod> {
    let sent = pair.sent.clone();
    let messages = sent
        .iter()
        .filter_map(|flying| pair.host(flying.to).engine.peek(&flying.message));
    let payloads = messages.flat_map(|message| message.payloads);
    let proofs = payloads.filter_map(|payload| match payload {
        Payload::Authentication(proof) => Some(proof.method),
        _ => None,
    });
    proofs.collect()
}

#[test]
fn an_end_that_names_no_hash_algorithms_gets_a_signature_of_the_curve_and_another_a_digital_one() {
    const NEW: AuthMethod = AuthMethod::DIGITAL_SIGNATURE;
    for (kind, old) in [
        (KeyKind::P256, AuthMethod::ECDSA_P256),
        (KeyKind::P384, AuthMethod::ECDSA_P384),
    ] {
        for (who, expected) in [
            (&[][..], [NEW, NEW]),
            (&[Side::Left], [NEW, old]),
            (&[Side::Right], [old, NEW]),
            (&[Side::Left, Side::Right], [old, old]),
        ] {
            let mut pair = by_keys(credential(kind), credential(kind));
            who.iter().for_each(|side| is_old(&mut pair, *side));
            pair.connect();
            assert!(fit(pair.left.child(), pair.right.child()), "{kind} {who:?}");
            assert_eq!(methods(&mut pair), expected, "{kind} {who:?}");
        }
    }
}

/// Returns a responder that announces no hash algorithms, after a request whose AUTH payload was
/// changed and sealed again.
fn with_proof_changed(change: impl Fn(&mut Authentication)) -> Pair {
    let mut pair = by_keys(credential(KeyKind::P256), credential(KeyKind::P256));
    is_old(&mut pair, Side::Right);
    pair.initiate(Side::Left);
    pair.settle_one_round();
    let genuine = pair.intercept().remove(0);
    let changed = resealed(&mut pair, &genuine, |message| {
        for payload in &mut message.payloads {
            if let Payload::Authentication(proof) = payload {
                change(proof);
            }
        }
    });
    pair.deliver(&changed);
    pair
}

// Weakness: 97
#[test]
fn a_signature_of_the_curve_is_verified_by_its_own_method_only() {
    for method in [1, 2, 10, 14, 15] {
        let pair = with_proof_changed(|proof| {
            assert_eq!(
                (proof.method, proof.data.len()),
                (AuthMethod::ECDSA_P256, 64)
            );
            proof.method = AuthMethod(method);
        });
        assert_eq!(pair.right.up(), 0, "method {method}");
        let refused = pair.right.refusals().join("; ");
        assert_eq!(refused.contains("SHA-1"), method == 1, "{refused}");
    }
}

// Weakness: 97
#[test]
fn a_flipped_bit_of_a_signature_of_the_curve_proves_nothing() {
    for at in [0, 31, 32, 63] {
        let pair = with_proof_changed(|proof| proof.data[at] ^= 1);
        assert_eq!(pair.right.up(), 0, "octet {at}");
    }
}

/// Ed25519 has no AUTH method older than RFC 7427.
#[test]
fn a_key_that_an_old_peer_cannot_verify_is_a_readable_refusal() {
    for side in [Side::Left, Side::Right] {
        let ed25519 = |name| certificates::credential(&[], name);
        let mut pair = by_keys(ed25519("mobile-ca"), ed25519("gateway"));
        is_old(&mut pair, side);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(300));
        assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
        let told = match side {
            Side::Left => pair.right.refusals().join("; "),
            Side::Right => pair.left.down_reasons()[0].to_string(),
        };
        assert!(told.contains("announces no hash algorithms"), "{told}");
        assert!(told.contains("Ed25519"), "{told}");
    }
}
