//! Several children for the same traffic (RFC 9611).

use super::attack::ask_sealed;
use super::children::{agree, rekey};
use super::pair::{Host, Pair, Side, fit, keys_of};
use super::reauth::reauthenticate;
use super::rekey::rekey_ike;
use super::*;
use crate::exchange::notify;
use crate::extension::delete;
use crate::extension::resource::info;
use crate::task::upkeep;
use crate::{Engine, Event};
use model::{ChildSa, Kem, Spi};
use std::collections::BTreeSet;
use wire::ike::{ExchangeType, NotifyType, Payload, TrafficSelectors};

const BOTH: [Side; 2] = [Side::Left, Side::Right];
const FOUR: [Option<&str>; 4] = [None, Some("#2"), Some("#3"), Some("#4")];
const HOUR: Duration = Duration::from_secs(3600);

fn ends(left: u8, right: u8) -> (Config, Config) {
    let (mut one, mut other) = (mobile(), gateway());
    one.peers[0].features.resources = left;
    other.peers[0].features.resources = right;
    (one, other)
}

fn up((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

fn connected() -> Pair {
    up(ends(4, 4))
}

/// Returns true if both ends have `count` children, and each child fits one at the other end.
pub(crate) fn all_fit(pair: &Pair, count: usize) -> bool {
    let (left, right) = (pair.left.children(), pair.right.children());
    let fits = |ours: &&ChildSa<Secret>| right.iter().any(|theirs| fit(ours, theirs));
    (left.len(), right.len()) == (count, count) && left.iter().all(fits)
}

/// Returns a request for another child, as no task would send it.
fn request(local: &str, named: bool) -> Vec<Payload> {
    let selectors = |text| TrafficSelectors(vec![prefix(text)]);
    let menu = crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]);
    let mut payloads = vec![
        Payload::SecurityAssociation(crate::proposal::offer_esp(&menu, Spi(0x1000_0000))),
        Payload::Nonce(vec![7; 32]),
        Payload::TsInitiator(selectors(local)),
        Payload::TsResponder(selectors("10.0.0.0/16")),
    ];
    payloads.extend(named.then(|| info(Some("a queue"))));
    payloads
}

fn ask(pair: &mut Pair, payloads: Vec<Payload>) -> Vec<Payload> {
    let sa = pair.left.ike();
    ask_sealed(pair, sa, ExchangeType::CREATE_CHILD_SA, payloads)
}

fn says(answer: &[Payload], kind: NotifyType) -> bool {
    answer == [notify(kind, Vec::new())]
}

/// Deletes a child at the right end, which still wants it.
fn delete(pair: &mut Pair, name: Option<&str>) {
    let sa = pair.right.ike();
    let child = pair.right.named(name).expect("it is there");
    let (id, spi) = (child.id, child.inbound.spi);
    pair.with(Side::Right, |engine, now| {
        let payloads = vec![delete::child(spi)];
        engine.request_raw(sa, ExchangeType::INFORMATIONAL, payloads, now);
        engine.with_established(sa, now, |up, turn| upkeep::lose_child(up, id, turn.ctx));
    });
    pair.settle();
}

fn full(host: &Host) -> usize {
    let refusals = host.refusals();
    let full = |told: &&String| told.contains("creates no more tunnels for the same traffic");
    refusals.iter().filter(full).count()
}

#[test]
fn who_began_asks_for_all_of_them_and_each_has_keys_of_its_own() {
    let pair = connected();
    assert!(agree(&pair, &FOUR), "{:?}", pair.left.events);
    assert_eq!(pair.sent.len(), 4 + 2 * 3, "one exchange for each");
    for host in [&pair.left, &pair.right] {
        let children = host.children();
        let keys: BTreeSet<_> = children.iter().map(|one| keys_of(&one.inbound)).collect();
        assert_eq!(keys.len(), 4);
        let first = children[0];
        let same = |one: &&ChildSa<Secret>| {
            (&one.local, &one.remote, one.mode) == (&first.local, &first.remote, first.mode)
        };
        assert!(children.iter().all(same), "identical properties");
        let numbers: Vec<_> = children.iter().map(|one| one.resource).collect();
        assert_eq!(numbers, [0, 1, 2, 3].map(Some));
    }
}

/// Returns the worker of each child: its inbound SPI modulo the number of workers.
fn owners(host: &Host) -> Vec<u32> {
    let workers = u32::from(host.engine.config.workers.get());
    let children = host.children();
    let owners = children.iter().map(|child| child.inbound.spi.0 % workers);
    owners.collect()
}

/// Each worker has its share before and after a rekey. After a re-authentication the shares begin
/// at another worker.
#[test]
fn children_for_the_same_traffic_are_shared_out_among_workers_by_their_spis() {
    let (mut left, mut right) = ends(4, 4);
    (left.workers, right.workers) = (4.try_into().unwrap(), 2.try_into().unwrap());
    let mut pair = up((left, right));
    let fair = |pair: &Pair| {
        let sorted = |mut owners: Vec<u32>| {
            owners.sort_unstable();
            owners
        };
        (sorted(owners(&pair.left)), sorted(owners(&pair.right)))
            == (vec![0, 1, 2, 3], vec![0, 0, 1, 1])
    };
    assert!(fair(&pair), "{:?}", owners(&pair.left));
    let before = owners(&pair.left);
    for name in FOUR {
        rekey(&mut pair, Side::Right, name);
        pair.settle();
    }
    pair.run_for(Duration::from_secs(10));
    assert!(fair(&pair) && agree(&pair, &FOUR));
    assert_eq!(
        owners(&pair.left),
        before,
        "a successor is the same worker's"
    );
    reauthenticate(&mut pair);
    pair.run_for(Duration::from_secs(60));
    assert!(fair(&pair) && agree(&pair, &FOUR));
}

/// The peer "may take the second as a replacement of the first".
#[test]
fn a_peer_that_does_not_say_that_it_wants_several_is_asked_for_none() {
    for (left, right) in [(4, 1), (1, 4)] {
        let mut pair = up(ends(left, right));
        pair.run_for(HOUR);
        assert!(agree(&pair, &[None]));
        assert_eq!(pair.sent.len(), 4);
        let told = |host: &Host| host.refusals().iter().any(|why| why.contains("RFC 9611"));
        assert_eq!((told(&pair.left), told(&pair.right)), (left > 1, right > 1));
        assert_eq!(pair.left.children()[0].resource, None);
    }
}

#[test]
fn each_end_says_what_its_configuration_wants_of_resources_and_nothing_to_who_does_not_ask() {
    let lengths = [(1, 1), (1, 4), (4, 4)].map(|(left, right)| {
        let pair = up(ends(left, right));
        [pair.sent[2].message.len(), pair.sent[3].message.len()]
    });
    assert_eq!(lengths[0], lengths[1]);
    assert_eq!(lengths[2], lengths[0].map(|length| length + 8));
}

#[test]
fn ts_max_queue_is_believed_until_one_of_them_is_deleted_and_the_tunnel_goes_on() {
    let mut pair = up(ends(4, 2));
    assert!(agree(&pair, &FOUR[..2]), "{:?}", pair.left.events);
    assert!(pair.right.refusals()[0].contains("already has all 2"));
    pair.run_for(HOUR);
    assert_eq!(pair.sent.len(), 4 + 2 + 2, "one was made, one refused");
    assert_eq!(full(&pair.left), 1);
    delete(&mut pair, Some("#2"));
    pair.run_for(HOUR);
    assert!(all_fit(&pair, 2), "{:?}", pair.left.events);
    assert_eq!(full(&pair.left), 2, "it was asked once more");
    assert!(pair.left.down_reasons().is_empty());
}

#[test]
fn one_that_the_peer_deletes_is_made_again_and_the_others_stay() {
    let mut pair = connected();
    delete(&mut pair, Some("#3"));
    assert!(agree(&pair, &[None, Some("#2"), Some("#4")]));
    pair.run_for(Duration::from_secs(2));
    assert!(agree(&pair, &FOUR), "{:?}", pair.left.events);
}

#[test]
fn the_fallback_is_made_again_before_others_are() {
    let mut pair = connected();
    delete(&mut pair, Some("#4"));
    delete(&mut pair, None);
    assert!(agree(&pair, &[Some("#2"), Some("#3")]));
    pair.run_for(Duration::from_secs(5));
    assert!(all_fit(&pair, 4), "{:?}", pair.left.events);
    assert!(pair.left.named(None).is_some() && pair.right.named(None).is_some());
}

/// "A rekey of one may or may not have the notify": the successor is for the same resource.
#[test]
fn new_keys_of_one_leave_all_others_and_its_number() {
    for side in BOTH {
        let mut pair = connected();
        let before: Vec<_> = pair.left.children().iter().map(|one| one.id).collect();
        rekey(&mut pair, side, Some("#3"));
        pair.run_for(Duration::from_secs(30));
        assert!(agree(&pair, &FOUR));
        let after = pair.left.children();
        let kept = after.iter().filter(|one| before.contains(&one.id)).count();
        assert_eq!(kept, 3);
        let third = pair.left.named(Some("#3")).expect("it has a successor");
        assert_eq!(third.resource, Some(2));
    }
}

#[test]
fn new_keys_of_the_ike_sa_keep_all_and_a_new_proof_makes_all_anew() {
    let mut pair = connected();
    rekey_ike(&mut pair, Side::Right);
    pair.run_for(Duration::from_secs(60));
    assert!(agree(&pair, &FOUR));
    delete(&mut pair, Some("#2"));
    pair.run_for(Duration::from_secs(2));
    assert!(
        agree(&pair, &FOUR),
        "what was agreed holds in the new IKE SA"
    );
    reauthenticate(&mut pair);
    pair.run_for(Duration::from_secs(120));
    assert!(agree(&pair, &FOUR), "{:?}", pair.left.events);
}

#[test]
fn additional_key_exchanges_of_several_follow_one_another() {
    let (mut left, mut right) = ends(4, 4);
    for config in [&mut left, &mut right] {
        config.peers[0].kems = vec![Some(Kem::MlKem512)];
        config.peers[0].window = 8;
    }
    let pair = up((left, right));
    assert!(agree(&pair, &FOUR), "{:?}", pair.left.events);
    let hybrid = |one: &&ChildSa<Secret>| one.exchanges.kems == [Kem::MlKem512];
    assert_eq!(
        pair.left
            .children()
            .iter()
            .filter(|one| hybrid(one))
            .count(),
        3
    );
}

#[test]
fn the_end_that_answered_is_told_when_the_peer_surely_has_one() {
    let mut pair = connected();
    pair.run_for(Duration::from_secs(20));
    let assured = |host: &Host| {
        let assured = |event: &&Event| matches!(event, Event::ChildAssured { .. });
        host.events.iter().filter(assured).count()
    };
    assert_eq!((assured(&pair.left), assured(&pair.right)), (0, 3));
}

/// A peer that keeps requesting children gets the configured number and no more.
// Refuses: several-sas
#[test]
fn who_asks_without_end_gets_no_more_than_is_configured() {
    let mut pair = up(ends(2, 4));
    for _ in 0..2 {
        let answer = ask(&mut pair, request("10.8.0.2/32", true));
        assert!(answer.contains(&info(Some("#3"))) || answer.contains(&info(Some("#4"))));
    }
    for _ in 0..100 {
        let answer = ask(&mut pair, request("10.8.0.2/32", true));
        assert!(says(&answer, NotifyType::TS_MAX_QUEUE), "{answer:?}");
    }
    assert_eq!(pair.right.children().len(), 4);
    assert_eq!(pair.right.up(), 1);
    let elsewhere = ask(&mut pair, request("172.16.0.1/32", true));
    assert!(says(&elsewhere, NotifyType::TS_UNACCEPTABLE));
}

/// A second child needs the notify, and the notify needs support announced by both ends.
#[test]
fn the_notify_means_something_only_between_ends_that_agreed_and_a_second_child_needs_it() {
    for (ends, named) in [(ends(4, 1), true), (ends(1, 4), true), (ends(2, 4), false)] {
        let mut pair = up(ends);
        let before = pair.right.children().len();
        let answer = ask(&mut pair, request("10.8.0.2/32", named));
        assert!(says(&answer, NotifyType::NO_ADDITIONAL_SAS), "{answer:?}");
        assert_eq!(pair.right.children().len(), before);
    }
}

#[test]
fn sixty_four_are_made_and_get_new_keys_within_the_limit_of_children() {
    let most = model::MOST_RESOURCES;
    let mut pair = up(ends(most, most));
    assert!(all_fit(&pair, 64), "{}", pair.left.children().len());
    let (sa, ids) = (pair.left.ike(), pair.left.engine.sas().count());
    assert_eq!(ids, 1);
    let children: Vec<_> = pair.left.children().iter().map(|one| one.id).collect();
    for child in children {
        pair.with(Side::Left, |engine: &mut Engine, now| {
            engine.rekey_child(sa, child, now)
        });
    }
    pair.run_for(Duration::from_secs(60));
    assert!(all_fit(&pair, 64));
    assert!(
        pair.left.refusals().is_empty(),
        "{:?}",
        pair.left.refusals()
    );
}

#[test]
fn several_come_up_and_get_new_keys_on_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        let (mut left, mut right) = ends(4, 4);
        for config in [&mut left, &mut right] {
            config.peers[0].window = [1, 8][usize::from(seed % 2)];
        }
        let mut pair = Pair::seeded(left, right, seed);
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(200));
        for round in 0..4 {
            let side = BOTH[usize::from(seed.wrapping_add(round) % 2)];
            for (side, at) in [(side, round), (side.other(), round + 1)] {
                let name = FOUR[usize::from(at % 4)];
                if pair.host(side).named(name).is_some() {
                    rekey(&mut pair, side, name);
                }
            }
            pair.run_for(Duration::from_secs(100));
        }
        pair.run_for(Duration::from_secs(300));
        assert!(all_fit(&pair, 4), "seed {seed}: {:?}", pair.left.events);
        assert!(pair.left.down_reasons().is_empty(), "seed {seed}");
    }
}
