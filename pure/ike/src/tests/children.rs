//! Additional children of an IKE SA (RFC 7296 section 1.3.1).

use super::attack::ask_sealed;
use super::mobike::{CELL, to};
use super::pair::{Host, Pair, Side, fit, keys_of};
use super::reauth::reauthenticate;
use super::rekey::rekey_ike;
use super::*;
use crate::exchange::notify;
use crate::task::upkeep;
use crate::{DownReason, Event};
use model::{ChildSa, ChildSaId, Group};
use std::collections::BTreeSet;
use wire::ike::{ExchangeType, NotifyType, Payload, TrafficSelectors};

const BOTH: [Side; 2] = [Side::Left, Side::Right];
const VOICE: Option<&str> = Some("voice");

/// Returns a mobile node and its gateway, with a separate tunnel for telephones.
pub(crate) fn ends() -> (Config, Config) {
    let (mut left, mut right) = (mobile(), gateway());
    left.peers[0].children = vec![child("voice", "10.8.0.2/32", "192.168.7.0/24")];
    right.peers[0].children = vec![child("voice", "192.168.7.0/24", "10.8.0.0/24")];
    (left, right)
}

/// Like [`ends`], with a child that waits for an operator.
pub(crate) fn waiting() -> (Config, Config) {
    let (mut left, mut right) = ends();
    for config in [&mut left, &mut right] {
        config.peers[0].children[0].auto = false;
    }
    (left, right)
}

pub(crate) fn connected() -> Pair {
    up(ends())
}

fn up((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

impl Host {
    /// Returns the newest child with a name.
    pub(crate) fn named(&self, name: Option<&str>) -> Option<&ChildSa<Secret>> {
        let mut live = self.children();
        live.retain(|child| child.name.as_deref() == name);
        live.last().copied()
    }

    fn retired(&self, child: ChildSaId) -> bool {
        let retired =
            |event: &Event| matches!(event, Event::ChildRetired { child: id } if *id == child);
        self.events.iter().any(retired)
    }
}

/// Returns true if both ends have exactly these children, and each opens what the other seals.
pub(crate) fn agree(pair: &Pair, names: &[Option<&str>]) -> bool {
    let same = |name: &Option<&str>| {
        let both = pair.left.named(*name).zip(pair.right.named(*name));
        both.is_some_and(|(left, right)| fit(left, right))
    };
    let count = |host: &Host| host.children().len() == names.len();
    count(&pair.left) && count(&pair.right) && names.iter().all(same)
}

pub(crate) fn open(pair: &mut Pair, side: Side) {
    let peer = pair.host(side).engine.config.peers[0].id;
    let opened = pair.with(side, |engine, now| engine.open_child(peer, "voice", now));
    assert_eq!(opened, Ok(()));
}

pub(crate) fn close(pair: &mut Pair, side: Side) {
    let peer = pair.host(side).engine.config.peers[0].id;
    let closed = pair.with(side, |engine, now| engine.close_child(peer, "voice", now));
    assert_eq!(closed, Ok(()));
}

pub(crate) fn rekey(pair: &mut Pair, side: Side, name: Option<&str>) {
    let host = pair.host(side);
    let (sa, child) = (host.ike(), host.named(name).unwrap().id);
    pair.with(side, |engine, now| engine.rekey_child(sa, child, now));
}

/// Returns a request for a child with these selectors, as no task would send it.
fn request(local: &str, remote: &str) -> Vec<Payload> {
    let selectors = |text| TrafficSelectors(vec![prefix(text)]);
    let offer = crate::proposal::offer_esp(
        &crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]),
        model::Spi(0x1000_0000),
    );
    vec![
        Payload::SecurityAssociation(offer),
        Payload::Nonce(vec![7; 32]),
        Payload::TsInitiator(selectors(local)),
        Payload::TsResponder(selectors(remote)),
    ]
}

fn ask(pair: &mut Pair, payloads: Vec<Payload>) -> Vec<Payload> {
    let sa = pair.left.ike();
    ask_sealed(pair, sa, ExchangeType::CREATE_CHILD_SA, payloads)
}

#[test]
fn who_began_asks_for_the_children_beside_the_first() {
    let pair = connected();
    assert!(agree(&pair, &[None, VOICE]));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert_eq!(pair.sent.len(), 6, "one exchange more");
    let keys: BTreeSet<_> = pair
        .left
        .children()
        .iter()
        .map(|child| keys_of(&child.inbound))
        .collect();
    assert_eq!(keys.len(), 2);
    let initiators = |host: &Host| host.children().iter().all(|child| child.initiator);
    assert!(initiators(&pair.left) && !initiators(&pair.right));
}

#[test]
fn keys_of_a_child_come_from_a_key_exchange_if_its_policy_wants_it() {
    let sizes = [true, false].map(|pfs| {
        let (mut left, right) = ends();
        left.peers[0].children[0].pfs = pfs;
        let pair = up((left, right));
        assert!(agree(&pair, &[None, VOICE]));
        pair.sent[4].message.len()
    });
    // A KE payload, and three transforms to choose from: two groups and none.
    assert_eq!(sizes[0] - sizes[1], 40 + 24);
}

#[test]
fn a_child_in_another_group_than_ours_is_asked_for_again_in_that() {
    let (left, mut right) = ends();
    right.peers[0].groups = vec![Group::P256];
    let pair = up((left, right));
    assert!(agree(&pair, &[None, VOICE]));
    assert!(
        pair.left.refusals().is_empty(),
        "{:?}",
        pair.left.refusals()
    );
}

#[test]
fn a_child_that_waits_for_the_operator_is_made_by_whoever_is_told_to() {
    for side in BOTH {
        let mut pair = up(waiting());
        pair.run_for(Duration::from_secs(300));
        assert!(agree(&pair, &[None]));
        open(&mut pair, side);
        pair.settle();
        assert!(agree(&pair, &[None, VOICE]));
        let ours = pair.host(side).named(VOICE).unwrap().initiator;
        assert!(ours);
    }
}

/// Section 1.3.1: "A failed attempt to create a Child SA SHOULD NOT tear down the IKE SA".
// Recovers: children
#[test]
fn a_child_that_is_refused_is_tried_again_after_growing_pauses_and_all_else_stays() {
    let (left, _) = ends();
    let mut pair = up((left, gateway()));
    assert!(agree(&pair, &[None]));
    let told = pair.left.refusals();
    assert!(
        told[0].contains("`voice`: TS_UNACCEPTABLE; retrying"),
        "{told:?}"
    );
    assert!(pair.right.refusals()[0].contains("traffic selectors"));
    let mut tries = Vec::new();
    for _ in 0..8 {
        let before = pair.sent.len();
        let since = pair.now;
        while pair.sent.len() == before {
            pair.run_for(Duration::from_millis(500));
        }
        tries.push((pair.now - since).as_secs());
        pair.settle();
    }
    assert_eq!(tries, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert!(agree(&pair, &[None]));
    let (_, right) = ends();
    pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
    pair.run_for(Duration::from_secs(61));
    assert!(agree(&pair, &[None, VOICE]));
}

#[test]
fn what_the_selectors_have_in_common_is_agreed() {
    let (left, mut right) = ends();
    right.peers[0].children = vec![child("phones", "192.168.7.64/26", "10.8.0.0/24")];
    let pair = up((left, right));
    let (left, right) = (pair.left.named(VOICE), pair.right.named(Some("phones")));
    assert!(fit(left.unwrap(), right.unwrap()));
    assert_eq!(left.unwrap().remote, [prefix("192.168.7.64/26")]);
}

/// The initiator decides which child comes first.
#[test]
fn any_child_may_be_the_first_that_is_made() {
    let (mut left, right) = ends();
    left.peers[0].role = vpn("10.8.0.2/32", "192.168.7.0/24", ZonePolicy::default());
    left.peers[0].children = vec![child("data", "10.8.0.2/32", "10.0.0.0/8")];
    let pair = up((left, right));
    for (ours, theirs) in [(None, VOICE), (Some("data"), None)] {
        let (left, right) = (pair.left.named(ours), pair.right.named(theirs));
        assert!(fit(left.unwrap(), right.unwrap()));
    }
}

#[test]
fn there_is_one_of_each_child() {
    let mut pair = connected();
    let none = notify(NotifyType::NO_ADDITIONAL_SAS, Vec::new());
    let answer = ask(&mut pair, request("10.8.0.2/32", "192.168.7.0/24"));
    assert_eq!(answer, std::slice::from_ref(&none));
    let answer = ask(&mut pair, request("10.8.0.2/32", "10.0.0.0/16"));
    assert_eq!(answer, [none]);
    assert!(pair.right.refusals()[0].contains("all of its configured tunnels are in use"));
    let elsewhere = notify(NotifyType::TS_UNACCEPTABLE, Vec::new());
    let answer = ask(&mut pair, request("10.8.0.2/32", "172.16.0.0/12"));
    assert_eq!(answer, [elsewhere]);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert_eq!(pair.right.children().len(), 2);
}

#[test]
fn a_request_for_a_child_that_lacks_selectors_ends_the_sa() {
    let mut pair = connected();
    let mut lacking = request("10.8.0.2/32", "192.168.7.0/24");
    lacking.truncate(2);
    let fatal = notify(NotifyType::INVALID_SYNTAX, Vec::new());
    assert_eq!(ask(&mut pair, lacking), [fatal]);
    assert_eq!(pair.right.up(), 0);
}

// Refuses: children
#[test]
fn requests_for_children_without_end_are_bounded() {
    let (left, mut right) = waiting();
    right.limits.children = 1;
    let mut pair = up((left, right));
    let none = notify(NotifyType::NO_ADDITIONAL_SAS, Vec::new());
    let answer = ask(&mut pair, request("10.8.0.2/32", "192.168.7.0/24"));
    assert_eq!(answer, [none]);
    assert!(pair.right.refusals()[0].contains("already has 1"));
    // Successors do not fill the memory either.
    let (left, mut right) = waiting();
    right.limits.children = 4;
    let mut pair = up((left, right));
    for _ in 0..20 {
        rekey(&mut pair, Side::Left, None);
        pair.settle();
    }
    assert!(pair.right.children().len() <= 4);
}

#[test]
fn a_delete_of_one_child_leaves_the_others_and_of_the_last_ends_the_sa() {
    let mut pair = up(waiting());
    open(&mut pair, Side::Right);
    pair.settle();
    let voice = pair.left.named(VOICE).unwrap().id;
    close(&mut pair, Side::Right);
    pair.settle();
    assert!(
        pair.right.named(VOICE).is_some(),
        "what is under way may come"
    );
    pair.run_for(Duration::from_secs(3));
    assert!(agree(&pair, &[None]));
    assert!(!pair.left.children().iter().any(|child| child.id == voice));
    // Only the first child remains.
    let sa = pair.right.ike();
    let spi = pair.right.named(None).unwrap().inbound.spi;
    let delete = crate::extension::delete::child(spi);
    let informational = ExchangeType::INFORMATIONAL;
    pair.with(Side::Right, |engine, now| {
        engine.request_raw(sa, informational, vec![delete], now)
    });
    pair.settle();
    assert_eq!(pair.left.down_reasons(), [&DownReason::ChildDeleted]);
}

#[test]
fn the_first_child_is_asked_for_again_where_it_alone_was_deleted() {
    let mut pair = connected();
    let sa = pair.right.ike();
    let (id, spi) = {
        let first = pair.right.named(None).unwrap();
        (first.id, first.inbound.spi)
    };
    let delete = crate::extension::delete::child(spi);
    pair.with(Side::Right, |engine, now| {
        engine.request_raw(sa, ExchangeType::INFORMATIONAL, vec![delete], now)
    });
    pair.settle();
    assert_eq!((pair.left.up(), pair.left.children().len()), (1, 1));
    // The right end's engine did not send the Delete, so the test drops the child there.
    pair.with(Side::Right, |engine, now| {
        engine.with_established(sa, now, |up, turn| upkeep::lose_child(up, id, turn.ctx))
    });
    pair.run_for(Duration::from_secs(2));
    assert!(agree(&pair, &[None, VOICE]), "{:?}", pair.left.events);
}

#[test]
fn a_child_that_was_closed_is_refused_until_it_is_opened_and_told_so() {
    for side in BOTH {
        let mut pair = connected();
        let other = side.other();
        close(&mut pair, side);
        pair.settle();
        let gone = pair.host(side).named(VOICE).unwrap().id;
        assert!(pair.host(side).retired(gone), "nothing more is sent on it");
        pair.run_for(Duration::from_secs(200));
        assert!(agree(&pair, &[None]));
        if side == Side::Right {
            let told = pair.left.refusals();
            assert!(told[0].contains("`voice`: TEMPORARY_FAILURE; retrying"));
            assert!(pair.right.refusals()[0].contains("tunnel `voice` was taken down here"));
        }
        open(&mut pair, other);
        pair.run_for(Duration::from_secs(10));
        assert!(agree(&pair, &[None]), "the other end does not decide it");
        open(&mut pair, side);
        pair.run_for(Duration::from_secs(61));
        assert!(agree(&pair, &[None, VOICE]));
    }
}

#[test]
fn letting_a_peer_in_opens_its_children_again() {
    let mut pair = connected();
    close(&mut pair, Side::Left);
    pair.run_for(Duration::from_secs(10));
    assert!(agree(&pair, &[None]));
    pair.with(Side::Left, |engine, now| {
        engine.bar(peer_id("gateway"), false, now)
    });
    pair.settle();
    assert!(agree(&pair, &[None, VOICE]));
}

#[test]
fn nothing_can_be_said_of_a_child_that_is_not_configured() {
    let mut pair = connected();
    for (peer, name) in [("gateway", "video"), ("nobody", "voice")] {
        let said = pair.with(Side::Left, |engine, now| {
            [
                engine.open_child(peer_id(peer), name, now),
                engine.close_child(peer_id(peer), name, now),
            ]
        });
        assert_eq!(said, [Err(crate::UnknownChild); 2]);
    }
}

/// Every order of the four messages; the child with the lowest nonce is deleted.
// Recovers: children
#[test]
fn of_two_children_asked_for_at_once_one_stays() {
    let mut stayed = [0, 0];
    for seed in 0..20 {
        for order in 0..4 {
            let (left, right) = waiting();
            let mut pair = Pair::seeded(left, right, seed);
            pair.connect();
            open(&mut pair, Side::Left);
            open(&mut pair, Side::Right);
            pair.cross(order);
            pair.run_for(Duration::from_secs(120));
            assert!(
                agree(&pair, &[None, VOICE]),
                "seed {seed}: {:?}",
                pair.left.events
            );
            stayed[usize::from(pair.left.named(VOICE).unwrap().initiator)] += 1;
        }
    }
    assert!(stayed.iter().all(|&count| count > 10), "{stayed:?}");
}

#[test]
fn a_request_that_comes_when_the_peers_own_is_done_changes_nothing() {
    let mut pair = up(waiting());
    open(&mut pair, Side::Left);
    let late = pair.intercept().remove(0);
    open(&mut pair, Side::Right);
    pair.settle();
    pair.deliver(&late);
    pair.run_for(Duration::from_secs(60));
    assert!(agree(&pair, &[None, VOICE]), "{:?}", pair.left.events);
    assert!(pair.left.refusals().is_empty() && pair.left.down_reasons().is_empty());
}

#[test]
fn one_child_is_rekeyed_while_the_other_is_deleted() {
    for sides in [[Side::Left, Side::Right], [Side::Right, Side::Left]] {
        let mut pair = connected();
        let first = pair.left.named(None).unwrap().id;
        rekey(&mut pair, sides[0], None);
        close(&mut pair, sides[1]);
        pair.run_for(Duration::from_secs(50));
        assert!(agree(&pair, &[None]), "{:?}", pair.left.events);
        assert_ne!(pair.left.named(None).unwrap().id, first);
    }
}

#[test]
fn a_child_that_is_deleted_while_it_is_rekeyed_is_gone_at_both_ends() {
    for sides in [[Side::Left, Side::Right], [Side::Right, Side::Left]] {
        for order in 0..8 {
            let mut pair = connected();
            rekey(&mut pair, sides[0], VOICE);
            if order & 1 == 1 {
                pair.deliver_next();
            }
            close(&mut pair, sides[1]);
            if order & 2 == 2 {
                let mut flying = pair.intercept();
                flying.reverse();
                flying.iter().for_each(|flying| pair.deliver(flying));
            }
            if order & 4 == 4 {
                pair.lose();
            }
            pair.run_for(Duration::from_secs(300));
            assert!(
                agree(&pair, &[None]),
                "{sides:?} {order}: {:?}",
                pair.left.events
            );
            assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
        }
    }
}

/// The end that requests the child also closes it.
#[test]
fn a_child_that_is_closed_while_it_is_asked_for_does_not_stay() {
    for side in BOTH {
        let mut pair = up(waiting());
        open(&mut pair, side);
        close(&mut pair, side);
        pair.run_for(Duration::from_secs(60));
        assert!(agree(&pair, &[None]), "{:?}", pair.left.events);
        open(&mut pair, side);
        pair.settle();
        rekey(&mut pair, side, VOICE);
        close(&mut pair, side);
        pair.run_for(Duration::from_secs(100));
        assert!(agree(&pair, &[None]), "{:?}", pair.left.events);
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    }
}

/// A child that is removed from the configuration file follows the same rule.
#[test]
fn a_child_that_is_taken_out_while_it_is_rekeyed_ends_nothing_else() {
    let mut pair = connected();
    let (mut left, _) = ends();
    left.peers[0].children.clear();
    rekey(&mut pair, Side::Left, VOICE);
    pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
    pair.run_for(Duration::from_secs(100));
    assert!(agree(&pair, &[None]), "{:?}", pair.left.events);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

/// The answer is lost. The child's Delete arrives before the answer is retransmitted.
// Recovers: children
#[test]
fn a_child_that_is_deleted_before_its_answer_arrives_does_not_come_up() {
    let mut pair = up(waiting());
    open(&mut pair, Side::Left);
    pair.deliver_next();
    pair.lose();
    close(&mut pair, Side::Right);
    pair.settle();
    pair.run_for(Duration::from_secs(300));
    assert!(agree(&pair, &[None]), "{:?}", pair.left.events);
    let never = |event: &Event| matches!(event, Event::ChildUp(child) if child.name.is_some());
    assert!(!pair.left.events.iter().any(never));
}

/// The answer is lost. The child is due for rekeying before the answer is retransmitted.
#[test]
fn a_child_whose_answer_has_not_arrived_is_rekeyed_later() {
    let (left, mut right) = waiting();
    right.timers.retry = Duration::from_millis(100);
    let mut pair = up((left, right));
    open(&mut pair, Side::Left);
    pair.deliver_next();
    pair.lose();
    rekey(&mut pair, Side::Right, VOICE);
    pair.run_for(Duration::from_secs(60));
    assert!(agree(&pair, &[None, VOICE]), "{:?}", pair.left.events);
    assert!(pair.right.named(VOICE).unwrap().initiator, "it was rekeyed");
}

#[test]
fn a_rekeyed_ike_sa_keeps_all_children() {
    for side in BOTH {
        let mut pair = connected();
        let before: Vec<_> = pair.left.children().iter().map(|child| child.id).collect();
        rekey_ike(&mut pair, side);
        pair.run_for(Duration::from_secs(60));
        let after: Vec<_> = pair.left.children().iter().map(|child| child.id).collect();
        assert_eq!(before, after);
        rekey(&mut pair, side.other(), VOICE);
        pair.run_for(Duration::from_secs(60));
        assert!(agree(&pair, &[None, VOICE]));
    }
}

/// The rule also holds for a child that only the other end's operator opened.
#[test]
fn an_authentication_anew_makes_all_children_anew_before_the_old_ones_go() {
    for opened in [None, Some(Side::Left), Some(Side::Right)] {
        let mut pair = up(match opened {
            None => ends(),
            Some(_) => waiting(),
        });
        if let Some(side) = opened {
            open(&mut pair, side);
            pair.settle();
        }
        let old: Vec<_> = pair.left.children().iter().map(|child| child.id).collect();
        assert_eq!(old.len(), 2);
        reauthenticate(&mut pair);
        pair.run_for(Duration::from_secs(60));
        assert!(
            agree(&pair, &[None, VOICE]),
            "{opened:?}: {:?}",
            pair.left.events
        );
        for host in [&pair.left, &pair.right] {
            let rekeyed = |event: &&Event| matches!(event, Event::ChildRekeyed { .. });
            // Both ends request the child that the other end's operator opened.
            let twice = usize::from(opened == Some(Side::Right));
            let rekeyed = host.events.iter().filter(rekeyed).count();
            assert!((2..=2 + twice).contains(&rekeyed), "{opened:?}");
            assert!(
                host.down_reasons()
                    .iter()
                    .all(|why| **why == DownReason::Replaced)
            );
        }
        assert!(
            pair.left
                .children()
                .iter()
                .all(|child| !old.contains(&child.id))
        );
    }
}

/// The old SA waits until the new SA has all children.
#[test]
fn an_authentication_anew_over_a_lossy_network_leaves_no_child_behind() {
    for seed in 0..20 {
        let (left, right) = ends();
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        pair.hop = pair.hop.losing(250).repeating(200).delaying(200);
        reauthenticate(&mut pair);
        pair.run_for(Duration::from_secs(100));
        pair.hop = pair.hop.healed();
        pair.run_for(Duration::from_secs(200));
        assert!(
            agree(&pair, &[None, VOICE]),
            "seed {seed}: {:?}",
            pair.left.events
        );
        let down = |event: &&Event| matches!(event, Event::ChildRekeyed { .. });
        assert_eq!(
            pair.left.events.iter().filter(down).count(),
            2,
            "seed {seed}"
        );
    }
}

#[test]
fn children_come_and_go_with_the_configuration_one_by_one() {
    let mut pair = connected();
    let first = pair.left.named(None).unwrap().id;
    let (mut left, mut right) = ends();
    left.peers[0].children = vec![child("video", "10.8.0.2/32", "192.168.8.0/24")];
    right.peers[0].children = vec![child("video", "192.168.8.0/24", "10.8.0.0/24")];
    pair.with(Side::Right, |engine, now| {
        assert_eq!(engine.reconfigure(right, now), []);
    });
    pair.with(Side::Left, |engine, now| {
        assert_eq!(engine.reconfigure(left, now), []);
    });
    pair.run_for(Duration::from_secs(5));
    assert!(
        agree(&pair, &[None, Some("video")]),
        "{:?}",
        pair.left.events
    );
    assert_eq!(pair.left.named(None).unwrap().id, first);
    // A child with other selectors is replaced; a child with other lifetimes is not.
    let video = pair.left.named(Some("video")).unwrap().id;
    let (mut left, _) = ends();
    left.peers[0].children = vec![child("video", "10.8.0.2/32", "192.168.8.0/24")];
    left.peers[0].children[0].lifetime = Duration::from_secs(1000);
    pair.with(Side::Left, |engine, now| {
        engine.reconfigure(left.clone(), now)
    });
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.left.named(Some("video")).unwrap().id, video);
    left.peers[0].children[0].remote = vec![prefix("192.168.8.0/25")];
    pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
    pair.run_for(Duration::from_secs(10));
    assert!(
        agree(&pair, &[None, Some("video")]),
        "{:?}",
        pair.left.events
    );
    assert_ne!(pair.left.named(Some("video")).unwrap().id, video);
}

#[test]
fn all_children_move_with_their_sa() {
    let (mut left, mut right) = mobike::roaming();
    let (with, against) = ends();
    left.peers[0].children = with.peers[0].children.clone();
    right.peers[0].children = against.peers[0].children.clone();
    let mut pair = up((left, right));
    assert!(agree(&pair, &[None, VOICE]));
    let sa = pair.left.ike();
    pair.with(Side::Left, |engine, now| engine.move_to(sa, to(CELL), now))
        .unwrap();
    pair.run_for(Duration::from_secs(5));
    for host in [&pair.left, &pair.right] {
        let moved = host.events.iter().find_map(|event| match event {
            Event::PathMoved { children, .. } => Some(children.len()),
            _ => None,
        });
        assert_eq!(moved, Some(2));
    }
}

#[test]
fn each_child_lives_as_long_as_its_own_policy_says() {
    let hour = Duration::from_secs(3600);
    let (mut left, mut right) = ends();
    for config in [&mut left, &mut right] {
        config.peers[0].children[0].lifetime = hour;
    }
    let mut pair = up((left, right));
    let (first, voice) = (
        pair.left.named(None).unwrap().id,
        pair.left.named(VOICE).unwrap().id,
    );
    pair.run_for(hour + Duration::from_secs(60));
    assert!(agree(&pair, &[None, VOICE]));
    assert_eq!(pair.left.named(None).unwrap().id, first);
    assert_ne!(pair.left.named(VOICE).unwrap().id, voice);
}

/// "Its keys reached the end of their lifetime": the other tunnel stays up.
#[test]
fn a_child_that_gets_no_new_keys_is_made_anew_alone() {
    let (mut left, mut right) = ends();
    left.peers[0].children[0].lifetime = Duration::from_secs(600);
    right.limits.children = 2;
    let mut pair = up((left, right));
    let first = pair.left.named(None).unwrap().id;
    pair.run_for(Duration::from_secs(800));
    assert!(agree(&pair, &[None, VOICE]), "{:?}", pair.left.events);
    assert_eq!(pair.left.named(None).unwrap().id, first);
    assert!(pair.left.down_reasons().is_empty());
}

#[test]
fn two_children_come_up_and_are_rekeyed_on_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        let (left, right) = ends();
        let mut pair = Pair::seeded(left, right, seed);
        pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(200));
        assert_eq!(pair.left.children().len(), 2, "seed {seed}");
        for round in 0..4 {
            let side = BOTH[usize::from(seed.wrapping_add(round) % 2)];
            rekey(&mut pair, side, [None, VOICE][usize::from(round % 2)]);
            rekey(
                &mut pair,
                side.other(),
                [VOICE, None][usize::from(round % 2)],
            );
            pair.run_for(Duration::from_secs(100));
        }
        pair.run_for(Duration::from_secs(300));
        assert!(
            agree(&pair, &[None, VOICE]),
            "seed {seed}: {:?}",
            pair.left.events
        );
        assert!(pair.left.down_reasons().is_empty(), "seed {seed}");
    }
}

#[test]
fn a_child_is_opened_and_closed_on_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        let (left, right) = ends();
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        pair.hop = pair.hop.losing(300).repeating(200).delaying(300);
        for round in 0..6_u8 {
            let side = BOTH[usize::from(seed.wrapping_add(round) % 2)];
            match round % 3 {
                0 => rekey(&mut pair, side, None),
                1 => close(&mut pair, side),
                _ => open(&mut pair, side.other()),
            }
            pair.run_for(Duration::from_millis(100 * u64::from(seed)));
        }
        for side in BOTH {
            open(&mut pair, side);
        }
        pair.hop = pair.hop.healed();
        pair.run_for(Duration::from_secs(400));
        assert!(
            agree(&pair, &[None, VOICE]),
            "seed {seed}: {:?}",
            pair.left.events
        );
        assert!(pair.left.down_reasons().is_empty(), "seed {seed}");
    }
}
