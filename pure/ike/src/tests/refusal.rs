//! All refusals, and their log messages at both ends.

use super::pair::{LEFT, Pair, Side};
use super::*;
use crate::{DownReason, Event, Refusal};
use std::time::Duration;
use wire::ike::{Datagram, GroupId, KeyExchange, Message, Notify, NotifyType, Payload};

/// Returns the reason why the left host is down, and the refusals of the right host.
pub(crate) fn refused(left: Config, right: Config) -> (String, String) {
    let mut pair = Pair::new(left, right);
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(600));
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
    assert_eq!(
        pair.left.engine.sas().count() + pair.right.engine.sas().count(),
        0
    );
    assert_eq!(pair.left.down_reasons().len(), 1);
    let down = pair.left.down_reasons()[0].to_string();
    (down, pair.right.refusals().join("; "))
}

#[test]
fn a_wrong_pre_shared_key_is_named_at_both_ends() {
    let (mut left, right) = (mobile(), gateway());
    left.peers[0].psk = Some(Secret::new(b"another".to_vec()));
    let (left, right) = refused(left, right);
    assert!(left.contains("pre-shared keys differ"), "{left}");
    assert!(
        right.contains("pre-shared key of mobile.example.net"),
        "{right}"
    );
}

// Weakness: 153
#[test]
fn the_refusal_of_an_initiator_that_proves_nothing_names_its_address() {
    let (mut unknown, mut other) = (mobile(), mobile());
    unknown.identity = "eve@example.net".parse().unwrap();
    other.peers[0].groups = vec![Group::P384];
    for left in [unknown, other] {
        let mut pair = Pair::new(left, gateway());
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(600));
        let from = pair.right.events.iter().find_map(|event| match event {
            Event::Refused {
                peer: None, from, ..
            } => *from,
            _ => None,
        });
        let from = from.expect("the gateway refuses");
        assert_eq!(from.ip().to_string(), LEFT);
    }
}

/// The rule holds for a peer with a tunnel and for one without a child.
#[test]
fn a_peer_that_was_taken_down_is_refused_until_it_is_let_in_and_told_so() {
    let licensed = (distribute::gateway_of_node(), distribute::node());
    for (left, right) in [(mobile(), gateway()), licensed] {
        let mut pair = Pair::new(left, right);
        let peer = pair.right.engine.config.peers[0].id;
        pair.with(Side::Right, |engine, now| engine.bar(peer, true, now));
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(600));
        assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
        assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
        let why = pair.left.down_reasons()[0].to_string();
        assert!(why.contains("TEMPORARY_FAILURE"), "{why}");
        assert!(pair.right.refusals()[0].contains("taken down here"));
        assert_eq!(pair.right.engine.counters().refused, 1);
        pair.with(Side::Right, |engine, now| engine.bar(peer, false, now));
        pair.connect();
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    }
}

/// A peer may use only its own suites, even without a tunnel.
#[test]
fn a_peer_without_a_child_gets_no_ike_sa_with_a_suite_that_is_not_its_own() {
    let (mut left, mut right) = (distribute::gateway_of_node(), distribute::node());
    let mut other = right.peers[0].clone();
    (other.id, other.identity) = (peer_id("other"), "other.example.net".parse().unwrap());
    other.suites = vec![Suite::Aes256Gcm16];
    left.peers[0].suites = other.suites.clone();
    right.peers[0].suites = vec![Suite::Aes128Gcm16];
    right.peers.push(other);
    let (left, right) = refused(left, right);
    assert!(left.contains("NO_PROPOSAL_CHOSEN"), "{left}");
    assert!(!right.is_empty());
}

// Weakness: 40
// Weakness: 54
#[test]
fn an_unknown_identity_gives_the_initiator_the_same_answer() {
    let (mut left, right) = (mobile(), gateway());
    left.identity = "stranger.example.net".parse().unwrap();
    let (left, right) = refused(left, right);
    assert!(
        left.contains("stranger.example.net is unknown there"),
        "{left}"
    );
    assert!(
        right.contains("no peer with the identity stranger"),
        "{right}"
    );
}

// Weakness: 50
#[test]
fn an_initiator_that_looks_for_somebody_else_is_told_apart() {
    let (mut left, right) = (mobile(), gateway());
    left.peers[0].identity = "other.example.net".parse().unwrap();
    let (_, right) = refused(left, right);
    assert!(
        right.contains("expects other.example.net, but we are gateway"),
        "{right}"
    );
}

#[test]
fn a_peer_bound_to_an_address_must_come_from_it() {
    let (left, mut right) = (mobile(), gateway());
    right.peers[0].address = Some("198.51.100.77".parse().unwrap());
    let (_, right) = refused(left, right);
    assert!(right.contains("came from 192.168.1.2"), "{right}");
}

#[test]
fn no_common_ike_suite_is_a_readable_refusal() {
    let (mut left, mut right) = (mobile(), gateway());
    left.peers[0].suites = vec![Suite::Aes256Gcm16];
    right.peers[0].suites = vec![Suite::Aes128Gcm16];
    let (left, right) = refused(left, right);
    assert!(left.contains("NO_PROPOSAL_CHOSEN"), "{left}");
    assert!(
        right.contains("aes128gcm16 with prfsha256 and x25519 or p256"),
        "{right}"
    );
}

#[test]
fn selectors_without_anything_in_common_are_a_readable_refusal() {
    let (mut left, right) = (mobile(), gateway());
    left.peers[0].role = vpn("172.16.0.1/32", "10.0.0.0/8", ZonePolicy::default());
    let (left, right) = refused(left, right);
    assert!(left.contains("TS_UNACCEPTABLE"), "{left}");
    assert!(right.contains("traffic selectors"), "{right}");
}

#[test]
fn nobody_there_says_where_we_looked() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.hop.lost = 1000;
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(600));
    let why = pair.left.down_reasons()[0].to_string();
    assert!(why.contains("no answer from 203.0.113.1"), "{why}");
}

#[test]
fn a_firewalled_port_4500_is_told_from_a_dead_peer() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.deliver_next();
    pair.hop.lost = 1000;
    pair.intercept();
    pair.run_for(Duration::from_secs(600));
    let why = pair.left.down_reasons()[0].to_string();
    assert!(why.contains("not IKE_AUTH on UDP port 4500"), "{why}");
}

/// RFC 7296 section 1.2: the responder asks for the group that it wants.
#[test]
fn a_wrong_guess_of_the_group_is_answered_with_the_right_one() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    let mut first = pair.intercept().remove(0);
    let Ok(Datagram::Clear(mut message)) = Datagram::decode(&first.message) else {
        panic!("IKE_SA_INIT is in the clear");
    };
    message.payloads[1] = Payload::KeyExchange(KeyExchange {
        group: GroupId::SECP256R1,
        public: vec![4; 64],
    });
    first.message = message.encode();
    pair.deliver(&first);
    let answer = pair.intercept().remove(0);
    let Ok(Datagram::Clear(Message { payloads, .. })) = Datagram::decode(&answer.message) else {
        panic!("errors of IKE_SA_INIT are in the clear");
    };
    let wanted = Notify::new(NotifyType::INVALID_KE_PAYLOAD, vec![0, 31]);
    assert_eq!(payloads, [Payload::Notify(wanted)]);
    assert_eq!(pair.right.engine.half_open(), 0);
}

/// RFC 7296 section 2.21.1: an unprotected error ends nothing at once.
// Weakness: 69
#[test]
fn an_unprotected_refusal_is_told_but_the_genuine_answer_still_counts() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    let genuine = pair.intercept().remove(0);
    let Ok(Datagram::Clear(request)) = Datagram::decode(&genuine.message) else {
        panic!("IKE_SA_INIT is in the clear");
    };
    for kind in [
        NotifyType::NO_PROPOSAL_CHOSEN,
        NotifyType::INVALID_SYNTAX,
        NotifyType::INVALID_KE_PAYLOAD,
        NotifyType::AUTHENTICATION_FAILED,
    ] {
        let mut forged = request.clone();
        forged.header.flags.initiator = false;
        forged.header.flags.response = true;
        forged.payloads = vec![Payload::Notify(Notify::new(kind, vec![0, 14]))];
        let mut flying = genuine.clone();
        flying.to = Side::Left;
        flying.path = genuine.path.reversed();
        flying.message = forged.encode();
        pair.deliver(&flying);
        pair.deliver(&flying);
    }
    assert_eq!(pair.left.refusals().len(), 4, "each is told once");
    pair.deliver(&genuine);
    pair.settle();
    assert_eq!(pair.left.up(), 1);
}

#[test]
fn an_esp_suite_that_is_not_allowed_is_refused_and_the_ike_sa_deleted() {
    // The IKE suite comes from the union of all peers' suites, the ESP suite from this peer's.
    let (mut left, mut right) = (mobile(), gateway());
    left.peers[0].suites = vec![Suite::Aes256Gcm16];
    right.peers[0].suites = vec![Suite::Aes128Gcm16];
    let mut other = peer("other", PeerRole::Licensed);
    other.suites = vec![Suite::Aes256Gcm16];
    right.peers.push(other);
    let (left, right) = refused(left, right);
    assert!(
        left.contains("refused the tunnel: NO_PROPOSAL_CHOSEN"),
        "{left}"
    );
    assert!(
        right.contains("no IKE suite that is allowed here"),
        "{right}"
    );
}

// Weakness: 7
#[test]
fn reasons_fit_one_line_and_say_what_to_do() {
    let reasons = [
        DownReason::WrongKey.to_string(),
        DownReason::ZonesRequired.to_string(),
        DownReason::PeerGone { attempts: 10 }.to_string(),
        Refusal::ZonesNotAgreed.to_string(),
        Refusal::LevelNotAgreed.to_string(),
        Refusal::LicenceNotAccepted(licence("node.example")).to_string(),
    ];
    for reason in reasons {
        assert!(!reason.contains('\n') && reason.len() > 20, "{reason}");
    }
}
