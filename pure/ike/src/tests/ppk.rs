//! Post-quantum pre-shared keys (RFC 8784).

use super::certificates::{self, TODAY, by_certificate};
use super::pair::{Flying, Pair, Side, fit, keys_of};
use super::rekey::{rekey_child, rekey_ike};
use super::*;
use crate::{DownReason, DropReason, End, Event, Ppk};
use std::time::Duration;
use wire::ike::{Datagram, Message, Notify, NotifyType, Payload};

const NAME: &str = "office2026";

fn ppk(id: &str, octet: u8, required: bool) -> Option<Box<Ppk>> {
    Some(Box::new(Ppk {
        id: id.to_owned(),
        secret: Secret::new(vec![octet; 32]),
        required,
    }))
}

fn optional() -> Option<Box<Ppk>> {
    ppk(NAME, 7, false)
}

fn required() -> Option<Box<Ppk>> {
    ppk(NAME, 7, true)
}

/// Returns a mobile node and a gateway with these PPKs for each other.
fn between(left: Option<Box<Ppk>>, right: Option<Box<Ppk>>) -> Pair {
    let (left, right) = ends(left, right);
    Pair::new(left, right)
}

fn ends(left: Option<Box<Ppk>>, right: Option<Box<Ppk>>) -> (Config, Config) {
    let (mut mobile, mut gateway) = (mobile(), gateway());
    (mobile.peers[0].ppk, gateway.peers[0].ppk) = (left, right);
    (mobile, gateway)
}

/// For the pages: both ends have the same PPK, or different ones.
pub(crate) fn story(same: bool) -> Pair {
    let right = if same { NAME } else { "office2027" };
    let mut pair = between(optional(), ppk(right, 7, false));
    pair.connect();
    pair
}

/// Returns true if a PPK is in the keys; both ends have to agree.
fn is_used(pair: &Pair) -> bool {
    let used = [&pair.left, &pair.right].map(|host| {
        let up = host.engine.sas().find(|sa| sa.since.is_some());
        up.expect("it is up").ppk
    });
    assert_eq!(used[0], used[1]);
    used[0]
}

fn clear(flying: &Flying) -> Message {
    match Datagram::decode(&flying.message) {
        Ok(Datagram::Clear(message)) => message,
        other => panic!("IKE_SA_INIT is in the clear: {other:?}"),
    }
}

/// Returns an IKE_SA_INIT message without USE_PPK.
fn stripped(flying: &Flying) -> Flying {
    let mut message = clear(flying);
    let before = message.payloads.len();
    let use_ppk = Payload::Notify(Notify::new(NotifyType::USE_PPK, Vec::new()));
    message.payloads.retain(|payload| *payload != use_ppk);
    assert_eq!(message.payloads.len(), before - 1, "it was there");
    Flying {
        message: message.encode(),
        ..flying.clone()
    }
}

#[test]
fn a_ppk_of_both_ends_is_in_their_keys_and_in_all_that_come_of_them() {
    let mut pair = between(required(), required());
    pair.connect();
    assert!(is_used(&pair) && fit(pair.left.child(), pair.right.child()));
    for side in [Side::Left, Side::Right] {
        rekey_ike(&mut pair, side);
        pair.run_for(Duration::from_secs(60));
        rekey_child(&mut pair, side);
        pair.run_for(Duration::from_secs(60));
        assert!(is_used(&pair) && fit(pair.left.child(), pair.right.child()));
    }
}

/// With the same random numbers the child's keys differ, and the keys that seal IKE_AUTH do not.
#[test]
fn a_ppk_changes_the_keys_of_children_and_not_those_of_the_first_ike_sa() {
    let keys = |octet| {
        let mut pair = between(ppk(NAME, octet, true), ppk(NAME, octet, true));
        let id = pair.connect();
        let ike = pair.left.engine.key_log(id).unwrap().sk_ei;
        (ike, keys_of(&pair.left.child().inbound))
    };
    let (one, other) = (keys(7), keys(8));
    assert_eq!(one.0, other.0);
    assert_ne!(one.1, other.1);
}

/// All cases of section 3, for initiator and responder.
#[test]
fn what_both_ends_want_decides_whether_there_is_an_sa_and_whether_the_ppk_is_in_it() {
    let (none, another) = (|| None, || ppk("office2027", 7, false));
    let another_required = || ppk("office2027", 7, true);
    const UP: Option<bool> = Some(false);
    const USED: Option<bool> = Some(true);
    const REFUSED: Option<bool> = None;
    let table = [
        (none(), none(), UP),
        (none(), optional(), UP),
        (none(), required(), REFUSED),
        (optional(), none(), UP),
        (optional(), optional(), USED),
        (optional(), required(), USED),
        (optional(), another(), UP),
        (optional(), another_required(), REFUSED),
        (required(), none(), REFUSED),
        (required(), optional(), USED),
        (required(), required(), USED),
        (required(), another(), REFUSED),
        (required(), another_required(), REFUSED),
    ];
    for (left, right, expected) in table {
        let told = format!("{left:?} with {right:?}");
        let alone = [left.is_some(), right.is_some()].map(|has| has && expected == UP);
        let mut pair = between(left, right);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(300));
        let Some(used) = expected else {
            assert_eq!((pair.left.up(), pair.right.up()), (0, 0), "{told}");
            assert!(pair.left.children().is_empty(), "{told}");
            assert!(pair.right.children().is_empty(), "{told}");
            continue;
        };
        assert_eq!(is_used(&pair), used, "{told}");
        assert!(fit(pair.left.child(), pair.right.child()), "{told}");
        // Section 6: "implementations SHOULD audit this event".
        let audited = [&pair.left, &pair.right].map(|host| {
            let refusals = host.refusals();
            refusals.iter().any(|why| why.contains("not protected"))
        });
        assert_eq!(audited, alone, "{told}");
    }
}

/// The responder has PPKs, but none for this initiator. It sent USE_PPK before the initiator was
/// identified.
#[test]
fn a_ppk_for_somebody_else_is_none() {
    let pair_with = |left| {
        let (left, mut right) = ends(left, None);
        let mut other = peer("other", PeerRole::Licensed);
        other.ppk = required();
        right.peers.push(other);
        let mut pair = Pair::new(left, right);
        pair.connect();
        pair
    };
    let pair = pair_with(optional());
    assert!(!is_used(&pair) && fit(pair.left.child(), pair.right.child()));
    let pair = pair_with(required());
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    let refusals = pair.right.refusals().join("; ");
    assert!(
        refusals.contains("the peer's PPK `office2026`"),
        "{refusals}"
    );
}

// Recovers: ppk
#[test]
fn a_ppk_comes_through_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        let other = ppk("office2027", 7, false);
        for (right, used) in [(required(), true), (other, false)] {
            let (left, right) = ends(optional(), right);
            let mut pair = Pair::seeded(left, right, seed);
            pair.hop = pair.hop.losing(250).repeating(300).delaying(300);
            pair.initiate(Side::Left);
            pair.run_for(Duration::from_secs(300));
            assert_eq!(is_used(&pair), used, "seed {seed}");
            assert!(fit(pair.left.child(), pair.right.child()), "seed {seed}");
        }
    }
}

#[test]
fn a_cookie_is_sent_with_use_ppk_as_before() {
    let (left, mut right) = ends(required(), required());
    right.limits.half_open_without_cookie = 0;
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert_eq!(pair.right.dropped(DropReason::CookieWanted), 1);
    assert!(is_used(&pair));
}

/// The answer is the same, down to its length, in all cases.
// Refuses: ppk
#[test]
fn a_wrong_ppk_an_unknown_one_and_an_unknown_identity_are_told_apart_here_and_not_there() {
    let refuse = |left: Option<Box<Ppk>>, stranger: bool| {
        let (mut left, right) = ends(left, required());
        if stranger {
            left.identity = "nobody.example.net".parse().unwrap();
        }
        let mut pair = Pair::new(left, right);
        pair.connect();
        assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
        assert_eq!(pair.right.engine.counters().refused, 1);
        assert_eq!(pair.sent.len(), 4);
        let why = pair.left.down_reasons()[0].to_string();
        assert!(why.contains("the PPK `office202"), "{why}");
        (pair.sent[3].message.len(), pair.right.refusals().join("; "))
    };
    let wrong = refuse(ppk(NAME, 8, true), false);
    let unknown = refuse(ppk("office2027", 7, true), false);
    let nobody = refuse(required(), true);
    assert!(wrong.1.contains("proof does not verify"), "{wrong:?}");
    assert!(unknown.1.contains("PPK `office2027`"), "{unknown:?}");
    assert!(nobody.1.contains("no peer with the identity"), "{nobody:?}");
    assert_eq!((wrong.0, unknown.0), (nobody.0, nobody.0));
}

/// Section 3: "the responder MUST send back an AUTHENTICATION_FAILED notification". An attacker
/// removes USE_PPK from the answer, and the initiator accepts this.
#[test]
fn use_ppk_taken_out_of_the_answer_is_found_out_before_anything_is_up() {
    let mut pair = between(optional(), optional());
    pair.initiate(Side::Left);
    pair.deliver_next();
    for answer in pair.intercept() {
        pair.deliver(&stripped(&answer));
    }
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    let refusals = pair.right.refusals().join("; ");
    assert!(refusals.contains("does not name the PPK"), "{refusals}");
}

/// AUTH covers the message as it was sent, and the responder checks the message as it arrived.
#[test]
fn use_ppk_taken_out_of_the_request_is_found_out_before_anything_is_up() {
    let mut pair = between(optional(), optional());
    pair.initiate(Side::Left);
    for request in pair.intercept() {
        pair.deliver(&stripped(&request));
    }
    pair.settle();
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    let refusals = pair.right.refusals().join("; ");
    assert!(refusals.contains("pre-shared key"), "{refusals}");
}

/// Section 6: otherwise an attacker could prevent the SA by injecting an answer without USE_PPK.
// Recovers: ppk
#[test]
fn a_forged_answer_without_use_ppk_is_outwaited() {
    let mut pair = between(required(), required());
    pair.initiate(Side::Left);
    pair.deliver_next();
    let genuine = pair.intercept().remove(0);
    pair.deliver(&stripped(&genuine));
    let remark = pair.left.refusals().join("; ");
    assert!(remark.contains("still trying"), "{remark}");
    pair.deliver(&genuine);
    pair.settle();
    assert!(is_used(&pair));
}

#[test]
fn a_responder_without_ppks_is_given_up_where_one_is_required() {
    let mut pair = between(required(), None);
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(300));
    assert_eq!(pair.left.down_reasons(), [&DownReason::NoPpk]);
    assert_eq!(pair.right.engine.half_open(), 0);
}

/// Section 3: "it MUST either fail the IKE SA negotiation sending the AUTHENTICATION_FAILED
/// notification in the INFORMATIONAL exchange ...".
#[test]
fn a_responder_that_goes_on_without_a_required_ppk_is_told_that_it_failed() {
    let mut pair = between(optional(), ppk("office2027", 7, false));
    pair.initiate(Side::Left);
    for _ in 0..3 {
        pair.deliver_next();
    }
    assert_eq!(pair.right.up(), 1, "it took NO_PPK_AUTH");
    pair.left.engine.config.peers[0].ppk = required();
    pair.settle();
    assert_eq!(pair.left.down_reasons(), [&DownReason::NoPpk]);
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    assert!(pair.right.children().is_empty());
    let up = |event: &Event| matches!(event, Event::IkeUp { .. } | Event::ChildUp(_));
    assert!(!pair.left.events.iter().any(up));
}

/// NO_PPK_AUTH is "the same data that would normally be placed in the Authentication Data field":
/// here a signature.
#[test]
fn certificates_prove_both_ends_with_a_ppk_and_without() {
    for (right, used) in [(required(), true), (ppk("office2027", 7, false), false)] {
        let (left, right) = ends(optional(), right);
        let left = by_certificate(left, &["mobile-ca"]);
        let right = by_certificate(right, &["gateway"]);
        let mut pair = certificates::pair(left, right, TODAY, 1);
        pair.connect();
        assert_eq!(is_used(&pair), used);
        assert!(fit(pair.left.child(), pair.right.child()));
    }
}

/// An invalid signature is explained to a peer of this implementation, but not if a PPK is in use.
/// The explanation would reveal who has which PPK.
#[test]
fn a_certificate_with_a_wrong_ppk_is_refused_without_an_explanation() {
    for wrong in [ppk(NAME, 8, true), ppk("office2027", 7, true)] {
        let (left, right) = ends(wrong, required());
        let left = by_certificate(left, &["mobile-ca"]);
        let right = by_certificate(right, &["gateway"]);
        let mut pair = certificates::pair(left, right, TODAY, 1);
        pair.connect();
        assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
        assert!(matches!(
            pair.left.down_reasons()[..],
            [DownReason::PpkRefused { .. }]
        ));
    }
}

#[test]
fn an_account_of_the_attempt_names_the_ppks_of_both_ends() {
    let mut pair = between(required(), required());
    pair.connect();
    let named = Some(NAME.to_owned());
    let initiator = pair.left.engine.attempt(peer_id("gateway")).unwrap();
    assert_eq!(initiator.ours.ppk, named);
    assert_eq!(initiator.theirs.ppk.as_deref(), Some(""), "it took ours");
    let responder = pair.right.engine.attempt(peer_id("mobile")).unwrap();
    assert_eq!(
        (&responder.ours.ppk, &responder.theirs.ppk),
        (&named, &named)
    );
    assert_eq!(responder.end, Some(End::Up));
    let mut pair = between(required(), ppk(NAME, 8, true));
    pair.connect();
    let refused = pair.right.engine.attempt(peer_id("mobile")).unwrap();
    assert_eq!(refused.theirs.ppk, named);
}
