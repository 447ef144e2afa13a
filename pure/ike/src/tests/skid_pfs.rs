//! Sessions that are resumed by SKID3 with a key exchange.

use super::certificates::TODAY;
use super::followup::hybrid;
use super::kem::{self, NONE, OPTIONAL, WANTED, Wish};
use super::pair::{Flying, Pair, Side, keys_of};
use super::rekey::{is_settled, rekey_child, rekey_ike};
use super::skid::{answer, clear, first};
use super::stolen::{derived, opens};
use super::ticket::{
    LONG, connected_as, exchanges, is_one_tunnel, is_resumed, lose, lose_both, lost_as, resuming,
    set_clocks,
};
use super::*;
use crate::Resumption::{self, Skid3, Skid3Pfs};
use crate::auth::proof::fingerprint;
use crate::exchange::key_exchange;
use crypto::{KeyPair, Rng};
use resumption::{Entry, Kept, Memory, Operation, Store, Way};
use std::time::Duration;
use wire::ike::ExchangeType;

fn ends(left: Resumption, right: Resumption) -> (Config, Config) {
    let (mut ours, mut theirs) = resuming((mobile(), gateway()), left);
    ours.peers[0].resumption = left;
    theirs.peers[0].resumption = right;
    (ours, theirs)
}

/// Returns ends that resume in this way and want these KEMs.
fn with_kems(way: Resumption, left: Wish, right: Wish) -> (Config, Config) {
    resuming(kem::ends(left, right), way)
}

fn lost() -> Pair {
    lost_as(ends(Skid3Pfs, Skid3Pfs))
}

/// For the pages: a session is resumed, and its keys are made again with ML-KEM.
pub(crate) fn story() -> Pair {
    let (mut left, mut right) = with_kems(Skid3Pfs, WANTED, WANTED);
    (left.fragment, right.fragment) = (0, 0);
    let mut pair = lost_as((left, right));
    pair.begin_story();
    pair.connect();
    pair.run_for(Duration::from_secs(1));
    pair
}

/// Returns the message with another public value among its clear payloads.
fn with_public(flying: &Flying, change: impl Fn(&mut Vec<u8>)) -> Flying {
    let mut public = key_exchange(&clear(flying)).unwrap().public.clone();
    let at = flying.message.windows(public.len());
    let at = at.enumerate().find(|(_, part)| *part == public).unwrap().0;
    change(&mut public);
    let mut changed = flying.clone();
    changed.message[at..at + public.len()].copy_from_slice(&public);
    changed
}

#[test]
fn a_session_is_resumed_in_one_round_trip_with_a_key_exchange() {
    let mut pair = lost();
    let key_pairs = pair.right.engine.counters().key_pairs;
    let request = first(&mut pair);
    assert_eq!(key_exchange(&clear(&request)), None, "it is sealed");
    let response = answer(&mut pair, &request);
    assert!(key_exchange(&clear(&response)).is_some());
    pair.deliver(&response);
    assert_eq!(pair.left.up(), 1, "it sends packets from now on");
    pair.settle();
    is_resumed(&pair);
    assert_eq!(exchanges(&pair), [ExchangeType::SKID_RESUME; 4]);
    assert_eq!(pair.right.engine.counters().key_pairs, key_pairs + 1);
    assert_eq!(pair.right.entries()[0].keys.way, Way::Skid3Pfs);
}

/// Rule: what either end requires is agreed on.
#[test]
fn one_end_that_wants_a_key_exchange_is_enough() {
    for (left, right, expected) in [
        (Skid3, Skid3, Way::Skid3),
        (Skid3Pfs, Skid3, Way::Skid3Pfs),
        (Skid3, Skid3Pfs, Way::Skid3Pfs),
    ] {
        let mut pair = lost_as(ends(left, right));
        let held = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
        let both = [held.keys.way, pair.right.entries()[0].keys.way];
        assert_eq!(both, [expected; 2]);
        pair.connect();
        is_resumed(&pair);
    }
}

/// Rule: an end that wants a key exchange resumes in no other way.
// Refuses: skid3
#[test]
fn with_a_peer_that_has_no_key_exchange_there_is_no_session() {
    for (left, right) in [
        (Skid3Pfs, Resumption::Tickets),
        (Resumption::Tickets, Skid3Pfs),
    ] {
        let mut pair = connected_as(ends(left, right));
        assert!(!pair.left.holds_ticket() && pair.right.entries().is_empty());
        lose(&mut pair);
        pair.connect();
        assert_eq!(exchanges(&pair)[0], ExchangeType::IKE_SA_INIT);
    }
    let peer = &ends(Skid3Pfs, Skid3Pfs).0.peers[0];
    assert_eq!(crate::extension::ticket::request(peer, false), None);
}

/// An entry that is stolen later opens what was captured of the session that it resumed, unless
/// that had a key exchange.
// Weakness: 185
#[test]
fn a_stolen_entry_opens_a_captured_session_only_without_a_key_exchange() {
    for (way, is_open) in [(Skid3, true), (Skid3Pfs, false)] {
        let mut pair = lost_as(ends(way, way));
        let request = first(&mut pair);
        let response = answer(&mut pair, &request);
        let keys = pair.right.entries()[0].keys.clone();
        let keys = derived(&keys, &[request, response.clone()]);
        assert_eq!(opens(&keys, &response), is_open);
    }
}

/// Changes a public value, with another one at hand.
type Change = fn(&mut [u8], &[u8]);

/// Rule: a public value that somebody else has put there is not believed, and costs the attempt
/// nothing.
// Weakness: 185
#[test]
fn the_true_answer_still_counts_after_one_with_another_public_value() {
    let other = KeyPair::generate(crypto::Group::X25519, &mut Rng::from_seed([9; 32]));
    let changes: [Change; 3] = [
        |public, _| public[0] ^= 1,
        |public, other| public.copy_from_slice(other),
        // A point of small order would give a secret that everybody knows.
        |public, _| public.fill(0),
    ];
    let mut pair = lost();
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    for change in changes {
        let changed = with_public(&response, |public| change(public, other.public()));
        pair.deliver(&changed);
        assert_eq!((pair.left.up(), pair.intercept().len()), (0, 0));
    }
    pair.deliver(&response);
    pair.settle();
    is_resumed(&pair);
}

/// Nobody can take the key exchange away: not even the holder of the entry.
#[test]
fn an_entry_with_a_key_exchange_is_not_good_without_and_the_other_way_round() {
    for (way, made, used) in [
        (Skid3Pfs, Way::Skid3Pfs, Way::Skid3),
        (Skid3, Way::Skid3, Way::Skid3Pfs),
    ] {
        let mut pair = lost_as(ends(Skid3, way));
        let mut kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
        assert_eq!(kept.keys.way, made);
        kept.keys.way = used;
        pair.left.engine.tickets.hold(peer_id("gateway"), kept);
        pair.connect();
        assert!(!pair.right.resumed().contains(&true));
        assert_eq!(pair.left.not_resumed(), 1);
        is_one_tunnel(&pair);
    }
}

/// No work with public keys for whoever does not know the entry.
#[test]
fn a_first_message_that_is_not_authentic_costs_no_key_pair() {
    let mut pair = lost();
    let key_pairs = pair.right.engine.counters().key_pairs;
    let mut request = first(&mut pair);
    *request.message.last_mut().unwrap() ^= 1;
    let refused = answer(&mut pair, &request);
    assert!(crate::extension::ticket::is_refused(&refused.clear()));
    assert_eq!(pair.right.engine.counters().key_pairs, key_pairs);
}

#[test]
fn a_group_that_the_gateway_no_longer_allows_begins_a_full_exchange() {
    let mut pair = lost();
    let mut left = ends(Skid3Pfs, Skid3Pfs).0;
    let p256 = Group::P256;
    left.peers[0].groups = vec![p256, Group::X25519];
    pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
    pair.connect();
    assert!(!pair.right.resumed().contains(&true));
    is_one_tunnel(&pair);
}

#[test]
fn a_gateway_under_load_asks_for_a_cookie_and_the_key_exchange_stays_the_same() {
    let (left, mut right) = ends(Skid3Pfs, Skid3Pfs);
    right.limits.half_open_without_cookie = 0;
    let mut pair = lost_as((left, right));
    pair.connect();
    is_resumed(&pair);
}

#[test]
fn a_session_is_resumed_on_a_network_that_loses_repeats_and_delays() {
    for seed in 0..20 {
        let (left, right) = ends(Skid3Pfs, Skid3Pfs);
        let mut pair = Pair::seeded(left, right, seed);
        set_clocks(&mut pair, TODAY);
        pair.connect();
        lose(&mut pair);
        pair.hop = pair.hop.losing(200).repeating(300).delaying(200);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(400));
        if pair.left.up() == 0 {
            // The proof was lost too often: it is given up like a liveness check.
            pair.initiate(Side::Left);
            pair.run_for(Duration::from_secs(400));
        }
        is_one_tunnel(&pair);
        assert!(pair.right.entries().len() <= 1, "seed {seed}");
    }
}

/// Rule: packets flow after one round trip, and a few later all keys have a new ML-KEM exchange.
#[test]
fn with_a_kem_all_keys_are_new_a_few_round_trips_later() {
    let mut pair = lost_as(with_kems(Skid3Pfs, WANTED, WANTED));
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    pair.deliver(&response);
    assert_eq!(pair.left.up(), 1, "it sends packets from now on");
    pair.settle();
    is_resumed(&pair);
    assert_eq!(exchanges(&pair), [ExchangeType::SKID_RESUME; 4]);
    let spent = pair.right.entries()[0].keys.secret.clone();
    pair.run_for(Duration::from_millis(400));
    for host in [&pair.left, &pair.right] {
        assert_eq!(host.ike_rekeys(), 1);
        assert_eq!(host.newest().exchanges, hybrid());
    }
    let mut exchanges = exchanges(&pair);
    exchanges.dedup();
    let rekey = [ExchangeType::CREATE_CHILD_SA, ExchangeType::IKE_FOLLOWUP_KE];
    assert_eq!(exchanges[1..3], rekey);
    pair.run_for(LONG);
    assert!(is_settled(&mut pair), "the old ones are gone");
    assert_eq!(pair.left.ike_rekeys(), 1);
    let entries = pair.right.entries();
    assert_eq!(entries.len(), 1);
    assert_ne!(entries[0].keys.secret, spent);
}

/// Negative control of the test above.
#[test]
fn without_a_kem_at_both_ends_or_without_a_key_exchange_nothing_is_rekeyed() {
    for (way, left, right) in [
        (Skid3Pfs, NONE, NONE),
        (Skid3Pfs, OPTIONAL, NONE),
        (Skid3Pfs, NONE, OPTIONAL),
        (Skid3, WANTED, WANTED),
        (Resumption::Tickets, WANTED, WANTED),
    ] {
        let mut pair = lost_as(with_kems(way, left, right));
        pair.connect();
        pair.run_for(LONG);
        is_resumed(&pair);
        assert_eq!(pair.sent.len(), 4, "{way:?}: {:?}", exchanges(&pair));
    }
}

/// Replaces the secret of the only entry, at both ends, by one that is the same in all runs.
fn set_secret(pair: &mut Pair) {
    let mut held = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    held.keys.secret = Secret::new(vec![7; 32]);
    let config = &pair.right.engine.config;
    let (handle, entry) = pair.right.store.as_ref().unwrap().iter().next().unwrap();
    let handle = *handle;
    let entry = Entry {
        credential: fingerprint(&config.peers[0], &held.keys, config),
        keys: held.keys.clone(),
        ..entry.clone()
    };
    let mut store = Memory::new(9);
    store.submit(Operation::Add(Box::new(Kept { handle, entry })), TODAY);
    pair.right.store = Some(store);
    pair.left.engine.tickets.hold(peer_id("gateway"), held);
}

/// Returns the keys of the packets of a resumed session, before and after its rekeys.
fn keys_around_rekeys(kems: Wish) -> [Vec<Vec<u8>>; 2] {
    let (mut left, mut right) = with_kems(Skid3Pfs, kems, kems);
    for config in [&mut left, &mut right] {
        // Keys of child SAs come from SK_d alone.
        config.peers[0].lifetimes.pfs = false;
    }
    let mut pair = lost_as((left, right));
    set_secret(&mut pair);
    pair.connect();
    is_resumed(&pair);
    let before = keys_of(&pair.left.child().outbound);
    if kems == NONE {
        rekey_ike(&mut pair, Side::Left);
        pair.settle();
        rekey_child(&mut pair, Side::Left);
    }
    pair.run_for(LONG);
    assert!(is_settled(&mut pair) && pair.left.ike_rekeys() == 1);
    [before, keys_of(&pair.left.child().outbound)]
}

/// All but ML-KEM is the same in both runs: the entry, the nonces, and the secrets of the group.
/// Packets under unchanged keys are open to a thief of the entry who breaks the group.
// Weakness: 185
#[test]
fn a_thief_of_the_entry_who_breaks_the_group_reads_only_what_came_before_the_kem() {
    for (kems, is_open) in [(NONE, true), (WANTED, false)] {
        let [one, other] = [(); 2].map(|()| keys_around_rekeys(kems));
        assert_eq!(one[0], other[0]);
        assert_eq!(one[1] == other[1], is_open, "{kems:?}");
        assert_ne!(one[0], one[1]);
    }
}

#[test]
fn the_rekeys_after_it_settle_whatever_the_network_and_the_gateway_do() {
    for seed in 0..40 {
        let (left, right) = with_kems(Skid3Pfs, WANTED, OPTIONAL);
        let mut pair = Pair::seeded(left, right, seed);
        set_clocks(&mut pair, TODAY);
        pair.connect();
        lose_both(&mut pair);
        pair.left.events.clear();
        pair.right.events.clear();
        pair.connect();
        pair.hop = pair.hop.losing(200).repeating(300).delaying(200);
        if seed % 2 == 1 {
            // The gateway rekeys at the same moment.
            rekey_ike(&mut pair, Side::Right);
        }
        pair.run_for(Duration::from_secs(400));
        assert!(is_settled(&mut pair), "seed {seed}: {:?}", pair.left.events);
        for host in [&pair.left, &pair.right] {
            assert!(host.ike_rekeys() >= 1, "seed {seed}");
            assert_eq!(host.newest().exchanges, hybrid(), "seed {seed}");
            assert!(host.down_reasons().is_empty(), "seed {seed}");
        }
        assert_eq!(pair.right.entries().len(), 1, "seed {seed}");
    }
}
