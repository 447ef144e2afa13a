//! The record of an attempt, for a person who asks for the cause of a failure.

use super::pair::{Host, Pair, Side};
use super::*;
use crate::{Attempt, DownReason, End, Refusal};
use model::{Identity, Suite};
use wire::ike::{AuthMethod, GroupId, NotifyType, Transform};

fn of(pair: &Pair, side: Side) -> Option<Attempt> {
    match side {
        Side::Left => pair.left.engine.attempt(peer_id("gateway")),
        Side::Right => pair.right.engine.attempt(peer_id("mobile")),
    }
}

fn down(attempt: Option<Attempt>) -> DownReason {
    match attempt.and_then(|attempt| attempt.end) {
        Some(End::Down(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn refused(attempt: Option<Attempt>) -> Refusal {
    match attempt.and_then(|attempt| attempt.end) {
        Some(End::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn identity(text: &str) -> Option<Identity> {
    Some(text.parse().unwrap())
}

#[test]
fn an_attempt_that_succeeded_holds_what_both_ends_wanted() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    for (side, ours, theirs) in [
        (Side::Left, "mobile.example.net", "gateway.example.net"),
        (Side::Right, "gateway.example.net", "mobile.example.net"),
    ] {
        let attempt = of(&pair, side).unwrap();
        assert_eq!(attempt.end, Some(End::Up));
        assert_eq!(attempt.initiator, side == Side::Left);
        assert_eq!(attempt.ours.identity, identity(ours));
        assert_eq!(attempt.theirs.identity, identity(theirs));
        assert_eq!(attempt.theirs.auth, Some(AuthMethod::SHARED_KEY));
        let group = Transform::group(GroupId::CURVE25519);
        assert!(attempt.ours.ike.contains(&group) && attempt.theirs.ike.contains(&group));
        assert!(!attempt.theirs.esp.is_empty());
    }
    let (left, right) = (
        of(&pair, Side::Left).unwrap(),
        of(&pair, Side::Right).unwrap(),
    );
    assert_eq!(
        right.theirs.remote,
        [prefix("10.0.0.0/8")],
        "as it was offered"
    );
    assert_eq!(
        left.theirs.local,
        [prefix("10.0.0.0/16")],
        "as it was narrowed"
    );
    assert_eq!(left.path.remote.port(), crate::NATT_PORT);
}

#[test]
fn no_suite_in_common_shows_both_offers_to_the_responder_and_the_refusal_to_the_initiator() {
    let (mut left, mut right) = (mobile(), gateway());
    left.peers[0].suites = vec![Suite::Aes128Gcm16];
    right.peers[0].suites = vec![Suite::Aes256Gcm16];
    let mut pair = Pair::new(left, right);
    pair.connect();
    let attempt = of(&pair, Side::Left).unwrap();
    assert_eq!(attempt.end, None, "nothing is proved yet");
    assert_eq!(attempt.theirs.error, Some(NotifyType::NO_PROPOSAL_CHOSEN));
    let stranger = pair.right.engine.stranger().unwrap();
    let theirs = Transform::suite(Suite::Aes128Gcm16, false);
    assert!(stranger.theirs.ike.contains(&theirs), "{stranger:?}");
    assert_eq!(of(&pair, Side::Right), None, "nobody said who it is");
    pair.run_for(Duration::from_secs(200));
    let notify = NotifyType::NO_PROPOSAL_CHOSEN;
    assert_eq!(down(of(&pair, Side::Left)), DownReason::Refused { notify });
}

#[test]
fn a_wrong_key_is_kept_under_the_name_that_was_claimed() {
    let mut left = mobile();
    left.peers[0].psk = Some(Secret::new(vec![7; 32]));
    let mut pair = Pair::new(left, gateway());
    pair.connect();
    let why = refused(of(&pair, Side::Right));
    assert!(matches!(why, Refusal::WrongKey(_)), "{why}");
    let why = down(of(&pair, Side::Left));
    assert!(matches!(why, DownReason::AuthenticationRefused { .. }));
}

#[test]
fn what_a_stranger_claims_does_not_touch_the_record_of_a_peer_that_is_up() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    let before = of(&pair, Side::Right);
    let mut impostor = mobile();
    impostor.peers[0].psk = Some(Secret::new(vec![7; 32]));
    pair.restart(Side::Left, Host::seeded(impostor, 9, 1));
    pair.connect();
    assert_eq!(of(&pair, Side::Right), before);
    let why = refused(pair.right.engine.stranger().cloned());
    assert!(matches!(why, Refusal::WrongKey(_)), "{why}");
}

#[test]
fn strangers_leave_one_record_however_many_they_are() {
    let mut pair = Pair::new(mobile(), gateway());
    for number in 0..50_u8 {
        let mut nobody = mobile();
        nobody.identity = format!("nobody-{number}.example.net").parse().unwrap();
        pair.restart(Side::Left, Host::seeded(nobody, number, 1));
        pair.connect();
    }
    let stranger = pair.right.engine.stranger().unwrap();
    assert_eq!(stranger.theirs.identity, identity("nobody-49.example.net"));
    assert_eq!(stranger.theirs.expects, identity("gateway.example.net"));
    assert_eq!(of(&pair, Side::Right), None);
}

#[test]
fn an_attempt_without_an_answer_counts_how_often_it_asked() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.hop.lost = 1000;
    pair.initiate(Side::Left);
    assert_eq!(of(&pair, Side::Left).map(|attempt| attempt.tries), Some(1));
    pair.run_for(Duration::from_secs(300));
    let attempt = of(&pair, Side::Left).unwrap();
    assert_eq!(attempt.tries, 16);
    assert_eq!(attempt.path.remote, "203.0.113.1:500".parse().unwrap());
    assert!(matches!(
        down(Some(attempt)),
        DownReason::Unreachable { .. }
    ));
}

#[test]
fn a_refused_child_shows_the_selectors_of_both() {
    let mut left = mobile();
    left.peers[0].role = vpn("172.16.0.1/32", "10.0.0.0/8", ZonePolicy::default());
    let mut pair = Pair::new(left, gateway());
    pair.connect();
    let attempt = of(&pair, Side::Right).unwrap();
    assert_eq!(refused(Some(attempt.clone())), Refusal::TrafficSelectors);
    assert_eq!(attempt.theirs.local, [prefix("172.16.0.1/32")]);
    assert_eq!(attempt.ours.remote, [prefix("10.8.0.0/24")]);
    assert_eq!(attempt.remarks, []);
}

#[test]
fn a_licence_that_is_not_accepted_is_a_remark_beside_the_success() {
    let (mut left, mut right) = (mobile(), gateway());
    *zones_of(&mut left) = two_zones(Stance::Accept, "node.example.net");
    *zones_of(&mut right) = two_zones(Stance::Accept, "other.example.net");
    let mut pair = Pair::new(left, right);
    pair.connect();
    let attempt = of(&pair, Side::Left).unwrap();
    assert_eq!(attempt.end, Some(End::Up));
    let missing = Refusal::LicenceNotAccepted(licence("node.example.net"));
    assert_eq!(attempt.remarks, [missing]);
    let theirs = attempt.theirs.zones.as_ref().unwrap();
    assert!(theirs.licences.is_empty());
}

#[test]
fn the_end_of_an_sa_is_the_end_of_its_attempt() {
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    pair.with(Side::Left, |engine, now| engine.close(id, now));
    pair.settle();
    assert_eq!(down(of(&pair, Side::Left)), DownReason::ClosedHere);
    assert_eq!(down(of(&pair, Side::Right)), DownReason::ClosedByPeer);
}

#[test]
fn a_peer_that_is_removed_takes_its_record_along() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    let mut config = mobile();
    config.peers[0].id = peer_id("renamed");
    pair.with(Side::Left, |engine, now| engine.reconfigure(config, now));
    pair.settle();
    assert_eq!(of(&pair, Side::Left), None);
}
