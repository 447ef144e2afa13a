//! Certificates revoked by their CA. Those in `revocation/` were made by openssl and are valid in
//! 2030.

use super::certificates::{TODAY, by_certificate, certificate, pair, pem, refused};
use super::pair::{Pair, Side, fit};
use super::rekey::rekey_ike;
use super::*;
use crate::{DownReason, Event};
use crypto::{Revocation, RevocationList, TrustStore, UnixTime};
use std::time::Duration;

fn made(name: &str) -> String {
    format!("../revocation/{name}")
}

/// Returns a host with this certificate and these lists of the CA that both ends trust.
fn host(config: Config, own: &str, lists: &[&str], revocation: Revocation) -> Config {
    let lists = lists.iter().flat_map(|name| {
        let pem = pem(&made(&format!("{name}.crl")));
        RevocationList::all_from_pem(&pem).expect("openssl made it")
    });
    let trust = TrustStore::new(vec![certificate(&made("ca"))]);
    Config {
        trust: trust.with_revocation(lists.collect(), revocation),
        ..by_certificate(config, &[&made(own)])
    }
}

/// Returns the mobile node, without lists.
pub(crate) fn left() -> Config {
    left_with(&[])
}

/// Returns the mobile node with these lists.
pub(crate) fn left_with(lists: &[&str]) -> Config {
    host(mobile(), "mobile", lists, Revocation::Relaxed)
}

/// Returns the gateway with these lists.
pub(crate) fn right(lists: &[&str], revocation: Revocation) -> Config {
    host(gateway(), "gateway", lists, revocation)
}

fn connected() -> Pair {
    let mut pair = pair(left(), right(&[], Revocation::Relaxed), TODAY, 1);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    pair
}

/// Reloads the gateway's configuration with other lists.
fn reload(pair: &mut Pair, lists: &[&str], revocation: Revocation) {
    let config = right(lists, revocation);
    let anew = pair.with(Side::Right, |engine, now| engine.reconfigure(config, now));
    assert_eq!(anew, []);
}

/// Returns the reason why the gateway's only IKE SA is down.
fn ended(pair: &Pair) -> String {
    let reasons = pair.right.down_reasons();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons[0].to_string()
}

#[test]
fn a_revoked_certificate_is_refused_and_both_ends_say_so() {
    for revocation in [Revocation::Relaxed, Revocation::Strict] {
        let (here, there) = refused(left(), right(&["mobile"], revocation), TODAY);
        assert!(here.contains("the certificate was revoked"), "{here}");
        assert!(
            there.contains("`CN=mobile` was revoked by its CA on 2030-01-15"),
            "{there}"
        );
    }
}

#[test]
fn a_responder_whose_certificate_is_revoked_is_left_and_told_why() {
    let (here, there) = refused(
        left_with(&["gateway"]),
        right(&[], Revocation::Relaxed),
        TODAY,
    );
    assert!(here.contains("`CN=gateway` was revoked"), "{here}");
    assert!(there.contains("the certificate was revoked"), "{there}");
}

#[test]
fn strict_refuses_who_is_in_no_list_that_holds() {
    for (lists, why) in [
        (&[][..], "no revocation list in `crl`"),
        (&["ended"][..], "expired on 2030-03-01"),
    ] {
        let (here, there) = refused(left(), right(lists, Revocation::Strict), TODAY);
        assert!(
            here.contains("the peer cannot check its revocation"),
            "{here}"
        );
        assert!(there.contains(why), "{there}");
    }
    let mut pair = pair(left(), right(&["nothing"], Revocation::Strict), TODAY, 1);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
}

#[test]
fn a_list_that_comes_ends_what_its_certificates_have_begun() {
    let mut pair = connected();
    reload(&mut pair, &["mobile"], Revocation::Relaxed);
    assert!(pair.right.children().is_empty());
    pair.settle();
    assert!(ended(&pair).contains("was revoked"), "{}", ended(&pair));
    assert_eq!(pair.left.down_reasons(), [&DownReason::ClosedByPeer]);
    assert!(pair.left.children().is_empty());
    let [right, left] = [&pair.right, &pair.left].map(|end| end.down_reasons()[0].ends_trust());
    assert!(right && !left);
    pair.connect();
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
}

/// A rekey is no new authentication, so a revocation also ends rekeyed SAs.
#[test]
fn what_was_rekeyed_is_ended_too() {
    for side in [Side::Left, Side::Right] {
        let mut pair = connected();
        rekey_ike(&mut pair, side);
        pair.run_for(Duration::from_secs(60));
        reload(&mut pair, &["mobile"], Revocation::Relaxed);
        pair.settle();
        assert!(ended(&pair).contains("was revoked"), "{side:?}");
        assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    }
}

/// The certificate was valid at the time of authentication, and that time counts.
#[test]
fn what_has_expired_meanwhile_can_be_revoked() {
    let mut pair = connected();
    let later = UnixTime(1_950_000_000);
    pair.right.engine.set_wall_clock(later);
    reload(&mut pair, &["nothing"], Revocation::Relaxed);
    assert_eq!(pair.right.up(), 1);
    reload(&mut pair, &["mobile"], Revocation::Relaxed);
    pair.settle();
    assert!(ended(&pair).contains("was revoked"));
}

/// No other property of the certificates ends the SA, because they were trusted when it began.
#[test]
fn a_list_that_revokes_others_or_none_that_holds_ends_nothing() {
    for (lists, revocation) in [
        (&["gateway"][..], Revocation::Relaxed),
        (&["forged"][..], Revocation::Relaxed),
        (&["ended"][..], Revocation::Strict),
        (&[][..], Revocation::Strict),
    ] {
        let mut pair = connected();
        let before = pair.right.picture();
        reload(&mut pair, lists, revocation);
        assert_eq!(pair.right.picture(), before, "{lists:?}");
        assert!(pair.is_quiet());
    }
}

#[test]
fn a_peer_with_a_pre_shared_key_has_nothing_that_a_list_could_revoke() {
    let (left, mut right) = (mobile(), gateway());
    let mut pair = pair(left, right.clone(), TODAY, 1);
    pair.connect();
    right.trust = self::right(&["mobile"], Revocation::Strict).trust;
    pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
    pair.settle();
    assert!(fit(pair.left.child(), pair.right.child()));
}

/// If the Delete is lost, the other end detects the end with a liveness check.
// Recovers: revocation-lists
#[test]
fn both_ends_agree_that_it_is_over_on_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..20 {
        let mut left = left();
        left.peers[0].liveness = Duration::from_secs(10);
        let mut pair = pair(left, right(&[], Revocation::Relaxed), TODAY, seed);
        pair.connect();
        pair.hop = pair.hop.losing(300).repeating(300).delaying(300);
        reload(&mut pair, &["mobile"], Revocation::Relaxed);
        pair.run_for(Duration::from_secs(300));
        assert!(pair.left.children().is_empty(), "seed {seed}");
        assert!(pair.right.children().is_empty(), "seed {seed}");
        let down = |event: &&Event| matches!(event, Event::IkeDown { .. });
        assert_eq!(pair.right.events.iter().filter(down).count(), 1);
    }
}
