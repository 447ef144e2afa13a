//! Tickets that have the session in them (RFC 5723 section 5.1, `resumption::Ticket`).

use super::certificates::{self, TODAY, by_certificate};
use super::lifetimes::WAYS;
use super::pair::{Host, Pair, Side, keys_of};
use super::rekey::rekey_ike;
use super::skid::{answer, first};
use super::stolen::{copy, nonces, resumes_with};
use super::ticket::{
    LONG, connected_as, is_one_tunnel, is_resumed, lose, lose_both, resuming, set_clocks,
};
use super::*;
use crate::keys::ChildKeys;
use crate::{Config, Resumption};
use crypto::UnixTime;
use resumption::{Handle, Kept, LONGEST, Operation, ReferenceKey, Store, TicketKeys};
use std::time::Duration;

const HOUR: u64 = 3600;

fn ends(way: Resumption) -> (Config, Config) {
    let (left, mut right) = resuming((mobile(), gateway()), way);
    right.resumption.by_value = true;
    (left, right)
}

fn connected(way: Resumption) -> Pair {
    connected_as(ends(way))
}

fn lost(way: Resumption) -> Pair {
    let mut pair = connected(way);
    lose_both(&mut pair);
    pair
}

/// Opens a ticket, as a thief of the keys does.
fn opened(ticket: &[u8], keys: &TicketKeys) -> Option<Kept> {
    let handle: [u8; 16] = ticket[..16].try_into().unwrap();
    keys.open(Handle::from(handle), &ticket[32..])
}

#[test]
fn a_session_is_resumed_from_what_is_in_the_ticket_and_the_store_has_nothing_of_it() {
    for way in WAYS {
        let mut pair = lost(way);
        assert_eq!(pair.right.entries().len(), 0, "{way:?}");
        assert!((100..LONGEST).contains(&copy(&pair).ticket.len()));
        pair.connect();
        is_resumed(&pair);
        assert_eq!(pair.right.entries().len(), 0);
        // And the next one from the ticket of the resumed session.
        lose(&mut pair);
        pair.connect();
        assert_eq!(pair.left.resumed(), [false, true, true], "{way:?}");
        is_one_tunnel(&pair);
    }
}

// Weakness: 180
#[test]
fn a_copy_of_a_ticket_by_value_is_no_good_once_its_owner_was_here() {
    for way in WAYS {
        let mut pair = lost(way);
        let stolen = copy(&pair);
        pair.connect();
        is_resumed(&pair);
        lose(&mut pair);
        pair.left.engine.tickets.forget(None);
        assert!(!resumes_with(&mut pair, stolen), "{way:?}");
    }
}

/// Two programs with the same ticket at the same instant: both are answered before one of them
/// proves that it knows the keys.
// Weakness: 180
#[test]
fn of_two_that_present_one_ticket_by_value_one_is_admitted() {
    for way in WAYS {
        let mut pair = lost(way);
        let stolen = copy(&pair);
        let request = first(&mut pair);
        let response = answer(&mut pair, &request);
        let proof = answer(&mut pair, &response);
        let mut thief = Host::seeded(ends(way).0, 99, 1);
        thief.engine.set_wall_clock(TODAY);
        thief.engine.tickets.hold(peer_id("gateway"), stolen);
        std::mem::swap(&mut pair.left, &mut thief);
        pair.trace.adopt(Side::Left, &pair.left.engine);
        pair.connect();
        assert_eq!(pair.left.resumed(), [true], "{way:?}: the faster one");
        std::mem::swap(&mut pair.left, &mut thief);
        pair.trace.adopt(Side::Left, &pair.left.engine);
        pair.deliver(&proof);
        pair.settle();
        let spent = |why: &String| why.contains("the ticket has been used");
        assert!(pair.right.refusals().iter().any(spent), "{way:?}");
        assert_eq!(pair.right.resumed(), [false, true, false], "{way:?}");
    }
}

/// A rekey voids the earlier ticket, and so does a Delete by either end (RFC 5723 section 6.2).
#[test]
fn a_ticket_by_value_ends_with_its_keys_and_with_its_ike_sa() {
    for way in WAYS {
        let mut pair = connected(way);
        let of_before = copy(&pair);
        rekey_ike(&mut pair, Side::Left);
        pair.settle();
        let newer = copy(&pair);
        assert_ne!(of_before.ticket, newer.ticket);
        lose(&mut pair);
        assert!(!resumes_with(&mut pair, of_before), "{way:?} after a rekey");

        let mut pair = connected(way);
        let kept = copy(&pair);
        let sa = pair.left.engine.sas().next().unwrap().id;
        pair.with(Side::Left, |engine, now| engine.close(sa, now));
        pair.settle();
        assert!(!resumes_with(&mut pair, kept), "{way:?} after a Delete");
    }
}

// Weakness: 180
#[test]
fn a_user_whose_sessions_are_ended_resumes_none_from_a_ticket_by_value() {
    for is_one in [true, false] {
        let mut pair = lost(Resumption::Skid3);
        let alice = pair.right.engine.config.peers[0].id;
        pair.right.engine.end_sessions(is_one.then_some(alice));
        pair.settle();
        pair.connect();
        pair.run_for(LONG);
        assert_eq!(pair.left.resumed(), [false, false], "a full exchange");
        is_one_tunnel(&pair);
    }
}

/// Rule: the key of a ticket opens what a stolen entry would, until its hour is forgotten.
// Weakness: 192
#[test]
fn a_thief_of_the_key_opens_tickets_that_are_still_good_and_no_earlier_ones() {
    let mut pair = connected(Resumption::Tickets);
    let child = pair.left.child();
    let packets = keys_of(&child.outbound).remove(0);
    let recorded = copy(&pair).ticket;
    let both = nonces(&pair.sent).concat();
    let keys = pair.right.engine.tickets.stolen_keys();
    let entry = opened(&recorded, &keys).unwrap().entry;
    let keymat = ChildKeys::first(entry.keys.secret, both).keymat(&[], 40);
    assert_eq!(keymat.expose()[..20], packets);

    let later = UnixTime(TODAY.0 + 9 * HOUR);
    set_clocks(&mut pair, later);
    pair.run_for(Duration::from_secs(700));
    let keys = pair.right.engine.tickets.stolen_keys();
    assert_eq!(opened(&recorded, &keys), None);
}

/// A thief of the key can make up tickets of peers whose credentials are public. The fingerprint of
/// a pre-shared key is unknown.
// Weakness: 192
#[test]
fn a_ticket_that_a_thief_of_the_key_makes_up_lacks_the_pre_shared_key() {
    let mut pair = lost(Resumption::Skid3);
    let references = || ReferenceKey::restored(Secret::new(vec![5; 32]));
    pair.right.engine.refer_by(references());
    let mut made_up = copy(&pair);
    let keys = pair.right.engine.tickets.stolen_keys();
    let mut kept = opened(&made_up.ticket, &keys).unwrap();
    kept.handle = Handle::from([7; 16]);
    kept.entry.keys.secret = Secret::new(vec![6; 32]);
    kept.entry.credential = [0; 8];
    let reference = references().issue(&kept.handle);
    let mut rng = crypto::Rng::from_seed([4; 32]);
    made_up.ticket = keys.seal(&reference, &kept, &mut rng, TODAY).unwrap();
    made_up.keys = kept.entry.keys;
    assert!(!resumes_with(&mut pair, made_up));
}

/// Rule: a ticket by value counts no use, so a limit of use refuses it.
#[test]
fn tickets_by_value_are_refused_once_they_are_turned_off_or_use_is_limited() {
    let changes: [fn(&mut Config); 2] = [
        |config| config.resumption.by_value = false,
        |config| config.resumption.established = Some(Duration::from_secs(7200)),
    ];
    for change in changes {
        let mut pair = lost(Resumption::Skid3);
        let mut config = ends(Resumption::Skid3).1;
        change(&mut config);
        pair.with(Side::Right, |engine, now| {
            drop(engine.reconfigure(config, now));
        });
        pair.connect();
        pair.run_for(LONG);
        assert_eq!(pair.left.resumed(), [false, false]);
        assert_eq!(pair.right.entries().len(), 1, "by reference");
        lose(&mut pair);
        pair.connect();
        assert_eq!(pair.left.resumed(), [false, false, true]);
    }
}

fn restarted(keys: TicketKeys, pair: &mut Pair) {
    let references = Secret::new(vec![5; 32]);
    let mut other = Host::seeded(ends(Resumption::Skid3).1, 77, 2);
    other.engine.set_wall_clock(TODAY);
    other.engine.refer_by(ReferenceKey::restored(references));
    other.engine.seal_by(keys, pair.now);
    other.store = pair.right.store.take();
    pair.restart(Side::Right, other);
}

#[test]
fn a_gateway_that_is_killed_takes_tickets_by_value_if_it_has_kept_their_key() {
    for keeps in [true, false] {
        let (left, right) = ends(Resumption::Skid3);
        let mut pair = Pair::new(left, right);
        let references = Secret::new(vec![5; 32]);
        let references = ReferenceKey::restored(references);
        pair.right.engine.refer_by(references);
        set_clocks(&mut pair, TODAY);
        pair.connect();
        let keys = match keeps {
            true => pair.right.engine.tickets.stolen_keys(),
            false => TicketKeys::default(),
        };
        restarted(keys, &mut pair);
        lose(&mut pair);
        pair.connect();
        pair.run_for(LONG);
        assert_eq!(pair.left.resumed(), [false, keeps]);
        is_one_tunnel(&pair);
    }
}

/// What the gateway has on disk is which tickets are void, and their keys.
// Weakness: 190
#[test]
fn a_used_ticket_by_value_is_no_good_to_a_gateway_that_was_killed_since() {
    let mut pair = lost(Resumption::Skid3);
    let references = Secret::new(vec![5; 32]);
    pair.right
        .engine
        .refer_by(ReferenceKey::restored(references));
    let handle = Handle::from(<[u8; 16]>::try_from(&copy(&pair).ticket[..16]).unwrap());
    let mut held = copy(&pair);
    let references = ReferenceKey::restored(Secret::new(vec![5; 32]));
    held.ticket[..32].copy_from_slice(&references.issue(&handle));
    pair.left.engine.tickets.hold(peer_id("gateway"), held);
    let stolen = copy(&pair);
    pair.connect();
    is_resumed(&pair);
    lose(&mut pair);
    let keys = pair.right.engine.tickets.stolen_keys();
    restarted(keys, &mut pair);
    pair.left.engine.tickets.forget(None);
    assert!(!resumes_with(&mut pair, stolen));
}

/// A clock that is ahead for a while has keys and marks go too early.
#[test]
fn a_clock_that_was_ahead_makes_no_used_ticket_good_again() {
    for way in WAYS {
        let mut pair = lost(way);
        let stolen = copy(&pair);
        pair.connect();
        is_resumed(&pair);
        let sa = pair.left.engine.sas().next().unwrap().id;
        set_clocks(&mut pair, UnixTime(TODAY.0 + 9 * HOUR));
        // The Delete has the ticket of the resumed session void, and earlier marks forgotten.
        pair.with(Side::Left, |engine, now| engine.close(sa, now));
        pair.settle();
        set_clocks(&mut pair, TODAY);
        assert!(!resumes_with(&mut pair, stolen), "{way:?}");
    }
}

/// The message that presents a ticket cannot be fragmented.
#[test]
fn a_session_with_long_certificates_has_its_ticket_by_reference() {
    let short = ["mobile-middle", "middle"];
    let long = [&short[..], &["deep-1", "deep-2"]].concat();
    for (chain, stored) in [(&short[..], 0), (&long, 1)] {
        let left = by_certificate(mobile(), chain);
        let (left, mut right) = resuming((left, certificates::ends().1), Resumption::Skid3);
        right.resumption.by_value = true;
        let mut pair = connected_as((left, right));
        assert_eq!(pair.right.entries().len(), stored, "{chain:?}");
        lose(&mut pair);
        pair.connect();
        is_resumed(&pair);
        assert!(pair.sent.iter().all(|flying| flying.message.len() < 1400));
    }
}

#[test]
fn the_keys_go_to_the_store_whenever_an_hour_begins() {
    let mut pair = connected(Resumption::Skid3);
    let mut store = resumption::Memory::new(1);
    let mut kept = 0;
    for hours in 0..12 {
        let now = UnixTime(TODAY.0 + hours * HOUR);
        set_clocks(&mut pair, now);
        pair.now += Duration::from_secs(601);
        pair.right.engine.handle_timeout(pair.now);
        while let Some(operation) = pair.right.engine.poll_store() {
            kept += usize::from(matches!(operation, Operation::Keep(_)));
            store.submit(operation, now);
        }
    }
    assert_eq!(kept, 11, "once in each further hour");
}
