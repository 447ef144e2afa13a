//! How long a session may be resumed, in each way: lifetimes, certificates, clocks, rekeys.

use super::certificates::{TODAY, certificate};
use super::pair::{Host, Pair, Side};
use super::reauth::reauthenticate;
use super::rekey::rekey_ike;
use super::stolen::{copy, resumes_with};
use super::ticket::{
    LONG, connected_as, exchanges, is_one_tunnel, is_resumed, lose, lose_both, lost_as, resuming,
    set_clocks, told_of_kept,
};
use super::{revocation, *};
use crate::{Config, Resumption};
use crypto::{Revocation, TrustStore, UnixTime};
use resumption::Strategy;
use wire::ike::ExchangeType;

pub(super) const WAYS: [Resumption; 3] =
    [Resumption::Tickets, Resumption::Skid3, Resumption::Skid3Pfs];

const HOUR: u64 = 3600;

fn ends(way: Resumption) -> (Config, Config) {
    resuming((mobile(), gateway()), way)
}

fn connected(way: Resumption) -> Pair {
    connected_as(ends(way))
}

/// Returns two ends of which the gateway limits sessions.
fn limited(way: Resumption, limit: impl FnOnce(&mut Strategy)) -> Pair {
    let (left, mut right) = ends(way);
    limit(&mut right.resumption);
    connected_as((left, right))
}

/// Loses the session, sets both clocks, and returns true if it is resumed.
fn is_resumed_at(pair: &mut Pair, at: UnixTime) -> bool {
    lose(pair);
    set_clocks(pair, at);
    let before = pair.left.resumed().len();
    pair.connect();
    is_one_tunnel(pair);
    pair.left.resumed()[before]
}

/// Kills the gateway, which has no account left, only its store, and returns true if the session
/// is resumed.
fn is_resumed_after_a_kill(mut pair: Pair) -> bool {
    let mut fresh = Host::seeded(pair.right.engine.config.clone(), 1, 2);
    fresh.engine.set_wall_clock(TODAY);
    fresh.store = pair.right.store.take();
    pair.restart(Side::Right, fresh);
    is_resumed_at(&mut pair, TODAY)
}

/// Tells the right end what a child SA has carried since it was installed.
fn carry(pair: &mut Pair, octets: u64) {
    pair.with(Side::Right, |engine, now| {
        let sa = engine.metered().next().unwrap();
        let child = engine.children(sa)[0];
        engine.meter(sa, [(child, octets)], now);
    });
}

// The strategies of the paper.

/// The age of an authentication is not renewed by a session that is resumed.
#[test]
fn a_clocked_lifetime_is_inherited_along_the_chain() {
    for way in WAYS {
        let mut pair = connected(way);
        let at = |hours| UnixTime(TODAY.0 + hours * HOUR);
        assert!(is_resumed_at(&mut pair, at(3)), "{way:?}");
        assert!(is_resumed_at(&mut pair, at(6)), "{way:?}");
        assert_eq!(pair.right.entries()[0].usage.since, TODAY);
        let after_the_first = is_resumed_at(&mut pair, at(9));
        assert!(!after_the_first, "{way:?}: 8 hours after the first one");
        assert!(is_resumed_at(&mut pair, at(12)), "{way:?}");
    }
}

#[test]
fn an_established_lifetime_counts_while_the_ike_sa_is_up() {
    for way in WAYS {
        let most = Some(Duration::from_secs(1000));
        let mut pair = limited(way, |strategy| strategy.established = most);
        pair.run_for(Duration::from_secs(300));
        assert!(is_resumed_at(&mut pair, TODAY));
        // What the next ten minutes may use is charged in advance.
        let used = pair.right.entries()[0].usage.established.as_secs();
        assert!((1100..1200).contains(&used), "{way:?}: {used}");
        pair.run_for(Duration::from_secs(200));
        assert!(is_resumed_at(&mut pair, TODAY), "{way:?}: 900 s of 1000");
        pair.run_for(Duration::from_secs(100));
        assert!(!is_resumed_at(&mut pair, TODAY), "{way:?}");
    }
}

#[test]
fn of_a_gateway_that_was_killed_each_stretch_up_to_a_checkpoint_counts() {
    for way in WAYS {
        let is_resumed_after = |up: u64, limit: u64| {
            let limit = Some(Duration::from_secs(limit));
            let mut pair = limited(way, |strategy| strategy.established = limit);
            pair.run_for(Duration::from_secs(up));
            is_resumed_after_a_kill(pair)
        };
        assert!(is_resumed_after(10, 601) && !is_resumed_after(10, 600));
        assert!(is_resumed_after(1300, 1801) && !is_resumed_after(1300, 1800));
    }
}

#[test]
fn a_data_lifetime_counts_what_child_sas_carry_along_the_chain() {
    for way in WAYS {
        let mut pair = limited(way, |strategy| strategy.data = Some(1600));
        carry(&mut pair, 700);
        carry(&mut pair, 900);
        assert!(is_resumed_at(&mut pair, TODAY), "{way:?}");
        // A sixteenth of the limit is charged in advance.
        assert_eq!(pair.right.entries()[0].usage.data, 1000);
        carry(&mut pair, 700);
        assert!(!is_resumed_at(&mut pair, TODAY), "{way:?}");
        assert_eq!(pair.right.entries()[0].usage.data, 100);
    }
}

#[test]
fn of_a_gateway_that_was_killed_what_was_charged_in_advance_counts() {
    for way in WAYS {
        let is_resumed_after = |octets: u64| {
            let mut pair = limited(way, |strategy| strategy.data = Some(1600));
            carry(&mut pair, octets);
            is_resumed_after_a_kill(pair)
        };
        assert!(is_resumed_after(1499) && !is_resumed_after(1500));
    }
}

/// All limits that are set have to hold, and each of them ends a session alone.
#[test]
fn of_several_limits_the_first_that_is_reached_ends_the_session() {
    for way in WAYS {
        let (short, long) = (Duration::from_secs(100), 4 * HOUR);
        for (up, octets, later, resumes) in [
            (short, 900, 2 * HOUR, true),
            (short, 900, long, false),
            (short, 1600, 2 * HOUR, false),
            (Duration::from_secs(1000), 900, 2 * HOUR, false),
        ] {
            let mut pair = limited(way, |strategy| {
                strategy.clocked = Duration::from_secs(3 * HOUR);
                strategy.established = Some(Duration::from_secs(1000));
                strategy.data = Some(1600);
            });
            carry(&mut pair, octets);
            pair.run_for(up);
            // The client would not present a ticket that has ended. Its clock has stood still.
            let resumed = is_resumed_at(&mut pair, UnixTime(TODAY.0 + later));
            assert_eq!(resumed, resumes, "{way:?}: {up:?}, {octets}, {later}");
        }
    }
}

#[test]
fn a_limit_of_use_that_comes_with_a_reload_counts_what_is_up() {
    for way in WAYS {
        let mut pair = connected(way);
        pair.run_for(Duration::from_secs(300));
        let mut right = ends(way).1;
        right.resumption.established = Some(Duration::from_secs(5000));
        pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
        pair.run_for(Duration::from_secs(1));
        let used = pair.right.entries()[0].usage.established.as_secs();
        assert!((900..=901).contains(&used), "{way:?}: {used}");
    }
}

#[test]
fn a_client_does_not_present_a_ticket_that_has_ended() {
    for way in WAYS {
        let mut pair = limited(way, |strategy| strategy.clocked = Duration::from_secs(100));
        lose(&mut pair);
        pair.connect();
        assert_eq!(exchanges(&pair)[0], ExchangeType::IKE_SA_INIT, "{way:?}");
    }
}

#[test]
fn a_clock_that_went_back_refuses() {
    for way in WAYS {
        let mut pair = connected(way);
        assert!(!is_resumed_at(&mut pair, UnixTime(TODAY.0 - 1)), "{way:?}");
        let mut pair = connected(way);
        assert!(is_resumed_at(&mut pair, TODAY), "{way:?}: the control");
    }
}

// Authentication: repeated, renewed, revoked.

/// RFC 5723 section 6.2: the lifetime of a ticket is at most the re-authentication time.
#[test]
fn an_authentication_that_is_to_be_repeated_is_not_stretched_by_resuming() {
    for way in WAYS {
        let (left, mut right) = ends(way);
        right.peers[0].lifetimes.reauth = Duration::from_secs(1000);
        let mut pair = connected_as((left, right));
        assert_eq!(pair.right.entries()[0].ends, UnixTime(TODAY.0 + 1000));
        let later = UnixTime(TODAY.0 + 400);
        assert!(is_resumed_at(&mut pair, later), "{way:?}");
        assert_eq!(pair.right.entries()[0].ends, UnixTime(TODAY.0 + 1000));
        // The client repeats it within nine tenths of the 600 s that are left.
        pair.sent.clear();
        pair.run_for(Duration::from_secs(541));
        assert!(exchanges(&pair).contains(&ExchangeType::IKE_SA_INIT));
    }
}

#[test]
fn a_re_authentication_is_a_full_one() {
    for way in WAYS {
        let mut pair = connected(way);
        pair.sent.clear();
        reauthenticate(&mut pair);
        pair.settle();
        assert_eq!(exchanges(&pair)[0], ExchangeType::IKE_SA_INIT, "{way:?}");
        pair.run_for(LONG);
        assert!(pair.left.holds_ticket());
        assert_eq!(pair.right.entries().len(), 1);
    }
}

/// "When the IKE SA is rekeyed, the ticket is invalidated, and the client SHOULD request a new
/// ticket" (RFC 5723 section 6.2).
#[test]
fn a_rekey_by_either_end_replaces_the_ticket() {
    for way in WAYS {
        for side in [Side::Left, Side::Right] {
            let mut pair = connected(way);
            let before = copy(&pair);
            rekey_ike(&mut pair, side);
            pair.settle();
            let entries = pair.right.entries();
            assert_eq!(entries.len(), 1, "{way:?}, {side:?}");
            assert_ne!(entries[0].keys.secret, before.keys.secret);
            lose(&mut pair);
            pair.connect();
            is_resumed(&pair);
            // The one of before the rekey is good for nothing.
            lose(&mut pair);
            let resumed = pair.right.resumed().len();
            pair.left.engine.tickets.hold(peer_id("gateway"), before);
            pair.connect();
            pair.run_for(LONG);
            assert_eq!(pair.right.resumed()[resumed..], [false], "{way:?}");
        }
    }
}

/// Returns ends with certificates, of which each has lists of those that are revoked.
fn certified(way: Resumption, lists: [&[&str]; 2]) -> (Config, Config) {
    let left = revocation::left_with(lists[0]);
    resuming(
        (left, revocation::right(lists[1], Revocation::Relaxed)),
        way,
    )
}

// Weakness: 183
#[test]
fn certificates_are_not_sent_again_but_a_revoked_one_ends_the_session() {
    for way in WAYS {
        let mut pair = connected_as(certified(way, [&[], &[]]));
        let longest = |pair: &Pair| {
            let lengths = pair.sent.iter().map(|flying| flying.message.len());
            lengths.max().unwrap_or_default()
        };
        let in_full = longest(&pair);
        lose(&mut pair);
        pair.connect();
        is_resumed(&pair);
        let resumed = longest(&pair);
        assert!(resumed < 600 && resumed < in_full, "{way:?}: {resumed}");
        lose_both(&mut pair);
        let (_, right) = certified(way, [&[], &["mobile"]]);
        pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
        pair.connect();
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.right.resumed(), [false, true], "{way:?}");
        assert_eq!(pair.right.up(), 0);
        let told = |why: &String| why.contains("was revoked");
        assert!(pair.right.refusals().iter().any(told));
    }
}

// Weakness: 183
#[test]
fn a_session_by_a_certificate_is_not_resumed_once_the_cas_have_changed() {
    for way in WAYS {
        let mut pair = lost_as(certified(way, [&[], &[]]));
        let kept = copy(&pair);
        let mut right = certified(way, [&[], &[]]).1;
        right.trust = TrustStore::new(vec![certificate("ca")]);
        pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
        let told = told_of_kept(&mut pair, kept);
        let changed = |why: &String| why.contains("a key, a CA or an identity");
        assert!(told.iter().any(changed), "{way:?}: {told:?}");
        assert_eq!(pair.right.up(), 0);
    }
}

// Weakness: 183
#[test]
fn a_client_resumes_no_session_of_a_gateway_whose_certificate_was_revoked() {
    for way in WAYS {
        let mut pair = lost_as(certified(way, [&[], &[]]));
        assert!(pair.left.holds_ticket());
        let (left, _) = certified(way, [&["gateway"], &[]]);
        pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
        assert!(!pair.left.holds_ticket(), "{way:?}");
        pair.connect();
        assert_eq!(exchanges(&pair)[0], ExchangeType::IKE_SA_INIT);
        assert_eq!(pair.left.up(), 0);
    }
}

/// Rule: no entry outlives the certificate that it rests on, at either end.
#[test]
fn a_session_ends_with_the_certificate_of_either_end() {
    let ends_at = certificate("../revocation/mobile").not_after;
    for way in WAYS {
        let (left, right) = certified(way, [&[], &[]]);
        let mut pair = Pair::new(left, right);
        set_clocks(&mut pair, UnixTime(ends_at.0 - HOUR));
        pair.connect();
        assert_eq!(pair.right.entries()[0].ends, ends_at, "not after 8 h");
        let gateways = certificate("../revocation/gateway").not_after;
        let left = gateways.min(ends_at).0 - (ends_at.0 - HOUR);
        let held = copy(&pair).ends - pair.now;
        assert!(held <= Duration::from_secs(left), "{way:?}: {held:?}");
        assert!(is_resumed_at(&mut pair, UnixTime(ends_at.0 - 1)), "{way:?}");
        lose_both(&mut pair);
        set_clocks(&mut pair, ends_at);
        let kept = copy(&pair);
        assert!(!resumes_with(&mut pair, kept), "{way:?}");
    }
}

// Answers.

/// Rule: a gateway that is there answers, so silence for long means that it is not.
#[test]
fn a_gateway_that_does_not_answer_is_asked_in_full_after_three_seconds() {
    for way in WAYS {
        let mut pair = connected(way);
        lose(&mut pair);
        pair.deaf = true;
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_millis(2900));
        assert_eq!(pair.left.not_resumed(), 0, "{way:?}");
        pair.run_for(Duration::from_millis(200));
        assert_eq!(pair.left.not_resumed(), 1, "{way:?}");
        let last = exchanges(&pair).pop();
        assert_eq!(last, Some(ExchangeType::IKE_SA_INIT));
        pair.deaf = false;
        pair.run_for(LONG);
        is_one_tunnel(&pair);
        assert_eq!(pair.left.engine.sas().count(), 1);
    }
}
