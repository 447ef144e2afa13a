//! Every suite carries an SA through its whole life, and no attacker on the path makes the ends use
//! a worse suite.

use super::pair::{Pair, Side, fit};
use super::*;
use crate::{DownReason, DropReason};
use model::{EspSuite, Keys, Sha2};
use wire::ike::{Datagram, Message, Payload, TransformType};

const CBC: Suite = Suite::Aes256Cbc(Sha2::Sha512);

fn with_suites(left: &[Suite], right: &[Suite]) -> Pair {
    let (mut mobile, mut gateway) = (mobile(), gateway());
    mobile.peers[0].suites = left.to_vec();
    gateway.peers[0].suites = right.to_vec();
    Pair::new(mobile, gateway)
}

fn suite_of(pair: &Pair) -> EspSuite {
    match &pair.left.children().last().unwrap().inbound.keys {
        Keys::Plain { suite, .. } => *suite,
        Keys::Zoned(_) => panic!("no zones were asked for"),
    }
}

// Recovers: suites
// Weakness: 15
// Weakness: 16
// Weakness: 70
#[test]
fn every_suite_protects_both_sas_and_their_successors_over_a_bad_hop() {
    for suite in Suite::ALL {
        let mut pair = with_suites(&[suite], &Suite::ALL);
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        let id = pair.connect();
        pair.run_for(Duration::from_secs(30));
        assert!(fit(pair.left.child(), pair.right.child()));
        assert_eq!(suite_of(&pair), EspSuite::from(suite));
        let keys = pair.left.engine.key_log(id).unwrap();
        assert_eq!((keys.suite, keys.sk_ai.len()), (suite, suite.mac_key_len()));
        let child = pair.left.child().id;
        pair.with(Side::Left, |engine, now| engine.rekey_ike(id, now));
        pair.run_for(Duration::from_secs(60));
        pair.with(Side::Right, |engine, now| {
            let sa = engine.sas().next().unwrap();
            engine.rekey_child(sa.id, sa.children[0], now);
        });
        pair.run_for(Duration::from_secs(60));
        assert!(fit(pair.left.child(), pair.right.child()));
        assert_ne!(pair.left.child().id, child);
        assert_ne!(pair.left.engine.key_log(id).unwrap().sk_ei, keys.sk_ei);
        assert_eq!(suite_of(&pair), EspSuite::from(suite));
        for host in [&pair.left, &pair.right] {
            assert_eq!(host.dropped(DropReason::BadIcv), 0, "{suite}");
        }
    }
}

#[test]
fn suites_without_a_common_one_are_told_at_both_ends() {
    let mut pair = with_suites(&[CBC], &[Suite::Aes256Cbc(Sha2::Sha256)]);
    pair.connect();
    assert!(pair.right.refusals()[0].contains("aes256-sha256"));
    let ours = &pair.left.engine.attempt(peer_id("gateway")).unwrap().ours;
    let theirs = &pair.right.engine.stranger().unwrap().theirs;
    assert_eq!(ours.ike, theirs.ike);
    let hmacs = |kind: TransformType| kind == TransformType::INTEG;
    assert_eq!(ours.ike.iter().filter(|t| hmacs(t.kind)).count(), 1);
}

/// A downgrade attack. Both ends support AEADs and, for other peers, AES-CBC. An attacker on the
/// path removes the AEADs from the first message. The responder accepts AES-CBC, and the initiator
/// sees an answer to its offer. But the initiator signs the message as it was sent, and the
/// responder checks it as it arrived (RFC 7296 section 2.15).
// Recovers: suites
#[test]
fn a_stripped_offer_is_found_out_before_anything_is_up() {
    let both = [Suite::Aes256Gcm16, CBC];
    let mut pair = with_suites(&both, &both);
    pair.initiate(Side::Left);
    for mut flying in pair.intercept() {
        flying.message = stripped(&flying.message);
        pair.deliver(&flying);
    }
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    assert!(
        pair.left
            .events
            .iter()
            .all(|event| !matches!(event, crate::Event::ChildUp(_)))
    );
    assert!(matches!(
        pair.left.down_reasons()[..],
        [DownReason::AuthenticationRefused { .. }]
    ));
    let refusals = pair.right.refusals();
    assert!(refusals[0].contains("pre-shared key"), "{refusals:?}");
    // Without an attacker the better suite is used.
    let mut pair = with_suites(&both, &both);
    pair.connect();
    assert_eq!(suite_of(&pair), EspSuite::from(Suite::Aes256Gcm16));
}

/// Returns a first message without its AEAD proposals.
fn stripped(octets: &[u8]) -> Vec<u8> {
    let Ok(Datagram::Clear(Message {
        header,
        mut payloads,
    })) = Datagram::decode(octets)
    else {
        panic!("the first message is in clear");
    };
    let Some(Payload::SecurityAssociation(proposals)) = payloads.first_mut() else {
        panic!("it begins with the SA payload");
    };
    let hmac = |transform: &wire::ike::Transform| transform.kind == TransformType::INTEG;
    proposals.retain(|proposal| proposal.transforms.iter().any(hmac));
    assert_eq!(proposals.len(), 1);
    Message { header, payloads }.encode()
}
