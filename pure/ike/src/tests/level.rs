//! Agreement on traffic that may be sent unencrypted.

use super::pair::{Flying, Pair, Side, fit, keys_of};
use super::rekey::rekey_child;
use super::zones::zoned;
use super::*;
use crate::DownReason;
use model::{BesideSa, ChildSa};
use std::time::Duration;
use wire::ike::{Notify, NotifyType, Payload, decode_level, encode_level};

/// Returns both ends with the traffic that each would send unencrypted.
fn ends(left: Option<LevelGrant>, right: Option<LevelGrant>) -> (Config, Config) {
    let (mut mobile, mut gateway) = zoned(Stance::Require, Stance::Require);
    (zones_of(&mut mobile).level, zones_of(&mut gateway).level) = (left, right);
    (mobile, gateway)
}

fn connected((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(600));
    assert!(fit(pair.left.child(), pair.right.child()));
    pair
}

fn granted(pair: &Pair) -> Option<LevelGrant> {
    let child = pair.left.child();
    let level = child.agreement.as_ref()?.level;
    assert_eq!(level.is_some(), child.integrity.is_some());
    level
}

fn beside(child: &ChildSa<Secret>) -> &BesideSa<Secret> {
    child.integrity.as_ref().expect("it was agreed on")
}

#[test]
fn what_both_ends_grant_has_an_sa_beside_with_spis_and_keys_of_its_own() {
    for map in [MapKind::Changeable, fixed_map(52)] {
        let mut ends = ends(Some(grant()), Some(grant()));
        for config in [&mut ends.0, &mut ends.1] {
            zones_of(config).map = map.clone();
        }
        let pair = connected(ends);
        assert_eq!(granted(&pair), Some(grant()));
        let child = pair.left.child();
        let besides = child.opaque.iter().chain(&child.integrity);
        let besides = besides.flat_map(|sa| [&sa.inbound, &sa.outbound]);
        let halves: Vec<_> = [&child.inbound, &child.outbound]
            .into_iter()
            .chain(besides)
            .collect();
        let mut spis: Vec<_> = halves.iter().map(|half| half.spi).collect();
        spis.sort();
        assert!(spis.is_sorted_by(|a, b| a < b), "{spis:?}");
        let mut keys: Vec<_> = halves.iter().flat_map(|half| keys_of(half)).collect();
        let len = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), len, "no key is used twice");
    }
}

// Weakness: S20
#[test]
fn nothing_goes_without_encryption_unless_both_ends_grant_it_for_the_same_datagrams() {
    let mut others = grant();
    others.class.ports = Span::new(5004, 5006);
    for (left, right) in [
        (Some(grant()), None),
        (None, Some(grant())),
        (Some(grant()), Some(others)),
        (None, None),
    ] {
        let pair = connected(ends(left, right));
        assert_eq!(granted(&pair), None);
        for (host, own) in [(&pair.left, left), (&pair.right, right)] {
            let told = host.refusals().join("");
            assert_eq!(told.contains("unencrypted traffic"), own.is_some());
        }
    }
}

#[test]
fn of_two_grants_the_narrower_is_agreed_on_whoever_asks() {
    let few = LevelGrant {
        packets: 10,
        ..grant()
    };
    let short = LevelGrant {
        seconds: 5,
        ..grant()
    };
    let both = LevelGrant {
        packets: 10,
        ..short
    };
    assert_eq!(
        granted(&connected(ends(Some(few), Some(short)))),
        Some(both)
    );
    assert_eq!(
        granted(&connected(ends(Some(short), Some(few)))),
        Some(both)
    );
}

/// A grant that was changed on the way, or understood differently, gives other keys for unencrypted
/// and for all other traffic.
// Weakness: S20
#[test]
fn keys_bind_what_may_go_without_encryption() {
    let with = |level: Option<LevelGrant>| {
        let pair = connected(ends(level, level));
        let child = pair.left.child();
        let beside = child.integrity.as_ref().map(|sa| keys_of(&sa.inbound));
        (keys_of(&child.inbound), beside)
    };
    let (zones, beside) = with(Some(grant()));
    assert_eq!(with(Some(grant())), (zones.clone(), beside.clone()));
    let changes: [fn(&mut LevelGrant); 4] = [
        |grant| grant.packets += 1,
        |grant| grant.seconds += 1,
        |grant| grant.renewals += 1,
        |grant| grant.class.dscp = Some(34),
    ];
    for change in changes {
        let mut changed = grant();
        change(&mut changed);
        let (other_zones, other_beside) = with(Some(changed));
        assert!(zones != other_zones && beside != other_beside);
    }
    assert_ne!(zones, with(None).0);
}

/// Invariant 6: no rekey lengthens a downgrade, however often it happens.
// Recovers: dynamic-levels
// Weakness: S21
#[test]
fn new_keys_renew_a_grant_as_often_as_both_ends_said_and_then_there_is_none() {
    for side in [Side::Left, Side::Right] {
        let mut pair = connected(ends(Some(grant()), Some(grant())));
        let mut keys = vec![keys_of(&beside(pair.left.child()).inbound)];
        let mut renewals = Vec::new();
        for _ in 0..3 {
            rekey_child(&mut pair, side);
            pair.run_for(Duration::from_secs(60));
            let newest = pair.left.newest();
            assert!(fit(newest, pair.right.newest()));
            let agreed = newest.agreement.as_ref().expect("its zones stay");
            renewals.push(agreed.level.map(|level| level.renewals));
            keys.extend(newest.integrity.as_ref().map(|sa| keys_of(&sa.inbound)));
        }
        assert_eq!(renewals, [Some(0), None, None]);
        assert!(keys.len() == 2 && keys[0] != keys[1]);
    }
}

/// Returns a pair after a rekey whose answer was changed by a holder of the peer's keys.
fn answered(change: impl Fn(&mut Payload)) -> Pair {
    let mut pair = connected(ends(Some(grant()), Some(grant())));
    rekey_child(&mut pair, Side::Left);
    let request = pair.intercept().remove(0);
    pair.deliver(&request);
    let answer = pair.intercept().remove(0);
    let peeked = pair.left.engine.peek(&answer.message);
    let mut message = peeked.expect("sealed whole");
    message.payloads.iter_mut().for_each(change);
    let message = pair.right.engine.seal(&message).unwrap();
    pair.deliver(&Flying { message, ..answer });
    pair
}

/// Returns the answer's LEVEL_GRANT notify, if this payload is it.
fn level_of(payload: &mut Payload) -> Option<&mut Notify> {
    match payload {
        Payload::Notify(notify) if notify.kind == NotifyType::LEVEL_GRANT => Some(notify),
        _ => None,
    }
}

fn rewrite(payload: &mut Payload, change: fn(&mut LevelGrant)) {
    if let Some(notify) = level_of(payload) {
        let mut grant = decode_level(&notify.data).unwrap();
        change(&mut grant);
        notify.data = encode_level(&grant);
    }
}

#[test]
fn a_peer_that_answers_with_more_than_was_offered_is_left() {
    let changes: [fn(&mut LevelGrant); 4] = [
        |grant| grant.packets += 1,
        |grant| grant.seconds += 1,
        |grant| grant.renewals += 1,
        |grant| grant.class.ports = Span::new(0, u16::MAX),
    ];
    for change in changes {
        let mut pair = answered(|payload| rewrite(payload, change));
        pair.run_for(Duration::from_secs(60));
        assert_eq!(pair.left.down_reasons(), [&DownReason::ZonesWidened]);
        assert!(pair.left.children().is_empty());
    }
}

/// If each end receives another grant, the ends share no key, so neither opens what the other
/// seals.
#[test]
fn ends_that_were_told_different_grants_share_no_key() {
    let fewer = |payload: &mut Payload| rewrite(payload, |grant| grant.packets = 1);
    let stripped = |payload: &mut Payload| {
        if let Some(notify) = level_of(payload) {
            notify.kind = NotifyType(50000);
        }
    };
    let unreadable = |payload: &mut Payload| {
        if let Some(notify) = level_of(payload) {
            notify.data.push(0);
        }
    };
    let elsewhere = |payload: &mut Payload| {
        if let Some(notify) = level_of(payload) {
            notify.spi = vec![9; 4];
        }
    };
    let changes: [fn(&mut Payload); 4] = [fewer, stripped, unreadable, elsewhere];
    for (number, change) in changes.into_iter().enumerate() {
        let pair = answered(change);
        let (ours, theirs) = (pair.left.newest(), pair.right.newest());
        assert_ne!(
            keys_of(&ours.inbound),
            keys_of(&theirs.outbound),
            "{number}"
        );
        assert_eq!(ours.integrity.is_some(), [0, 3].contains(&number));
    }
    let honest = answered(|_| {});
    assert!(fit(honest.left.newest(), honest.right.newest()));
}
