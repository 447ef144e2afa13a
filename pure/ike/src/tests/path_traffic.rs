//! Traffic of one of several live paths: agreement at both ends, and requests outside of it.

use super::attack::ask_sealed;
use super::children::rekey;
use super::mobike::{CELL, TRAIN, move_to, roaming, to};
use super::pair::{Host, Pair, Side, fit};
use super::rekey::rekey_ike;
use super::*;
use crate::exchange::notify;
use crate::extension::delete;
use crate::{DownReason, Event, PathRule};
use std::net::IpAddr;
use wire::ike::{ExchangeType, NotifyType, Payload, TrafficSelectors};

const OURS: Option<&str> = Some("rule 1 on path 2");
const THEIRS: Option<&str> = Some("traffic of path 2");
const BOTH: [Side; 2] = [Side::Left, Side::Right];

fn voice() -> TrafficSelector {
    TrafficSelector {
        protocol: 17,
        ports: 5060..=5061,
        ..prefix("10.0.0.0/16")
    }
}

fn bulk() -> TrafficSelector {
    TrafficSelector {
        protocol: 6,
        ..prefix("10.0.2.0/24")
    }
}

fn rule(interface: &str, remote: TrafficSelector) -> PathRule {
    PathRule {
        interface: interface.to_owned(),
        remote: vec![remote],
    }
}

fn ends() -> (Config, Config) {
    let (mut left, mut right) = roaming();
    left.peers[0].features.paths = 2;
    right.peers[0].features.paths = 2;
    left.peers[0].rules = vec![rule("cell", voice()), rule("wifi", bulk())];
    (left, right)
}

/// Returns a pair with a second path, from CELL.
fn connected((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.connect();
    let sa = pair.left.ike();
    pair.with(Side::Left, |engine, now| engine.add_path(sa, to(CELL), now));
    pair.settle();
    assert!(pair.right.named(Some("path 2")).is_some());
    pair
}

fn select(pair: &mut Pair, number: u8, rule: u8) {
    let sa = pair.left.ike();
    pair.with(Side::Left, |engine, now| {
        engine.add_path_traffic(sa, number, rule, now);
    });
}

/// Returns a pair whose second path has the traffic of the first rule.
fn selected() -> Pair {
    let mut pair = connected(ends());
    select(&mut pair, 2, 0);
    pair.settle();
    assert_eq!(agreed(&pair), Some([vec![voice()], vec![voice()]]));
    pair
}

/// Returns the selectors of the traffic of path 2 as both ends have them.
fn agreed(pair: &Pair) -> Option<[Vec<TrafficSelector>; 2]> {
    let both = pair.left.named(OURS).zip(pair.right.named(THEIRS));
    both.map(|(left, right)| {
        assert!(fit(left, right));
        assert!(left.narrowed && right.narrowed);
        assert_eq!((left.resource, right.resource), (Some(5), Some(5)));
        assert_eq!(left.path.local.ip(), right.path.remote.ip());
        [left.remote.clone(), right.local.clone()]
    })
}

fn has(host: &Host, name: Option<&str>) -> bool {
    let sa = host.engine.sas.get(&host.ike()).unwrap();
    sa.established().unwrap().children.current(name).is_some()
}

#[test]
fn both_ends_have_a_child_sa_with_the_selectors_of_the_rule_on_the_path() {
    let mut pair = selected();
    let cell: IpAddr = CELL.parse().unwrap();
    assert_eq!(pair.right.named(THEIRS).unwrap().path.remote.ip(), cell);
    // The path keeps its child SA for all traffic.
    let wide = pair.left.named(Some("path 2")).unwrap();
    assert_eq!(wide.remote, [prefix("10.0.0.0/16")]);
    assert!(!wide.narrowed);
    // Once more has no effect.
    let sent = pair.sent.len();
    select(&mut pair, 2, 0);
    select(&mut pair, 2, 1);
    assert_eq!(pair.sent.len(), sent);
}

#[test]
fn the_path_of_the_ike_sa_has_traffic_too_which_moves_with_it() {
    let mut pair = connected(ends());
    select(&mut pair, 1, 1);
    pair.settle();
    let id = pair.right.named(Some("traffic of path 1")).unwrap().id;
    assert_eq!(
        pair.left.named(Some("rule 2 on path 1")).unwrap().remote,
        [bulk()]
    );
    move_to(&mut pair, to(TRAIN));
    pair.settle();
    let moved = pair.right.events.iter().any(|event| match event {
        Event::PathMoved { children, .. } => children.contains(&id),
        _ => false,
    });
    assert!(moved, "{:?}", pair.right.events);
}

#[test]
fn a_rekey_by_either_end_keeps_selectors_and_path() {
    let mut pair = selected();
    for (side, name) in [
        (Side::Left, OURS),
        (Side::Right, THEIRS),
        (Side::Left, OURS),
    ] {
        rekey(&mut pair, side, name);
        pair.settle();
        pair.run_for(Duration::from_secs(60));
        assert_eq!(agreed(&pair), Some([vec![voice()], vec![voice()]]));
    }
    rekey_ike(&mut pair, Side::Right);
    pair.settle();
    rekey(&mut pair, Side::Right, THEIRS);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(agreed(&pair), Some([vec![voice()], vec![voice()]]));
}

/// Renegotiation: the selectors of the next child SA are others.
#[test]
fn another_rule_has_the_child_sa_made_again_with_other_selectors() {
    let mut pair = selected();
    let (mut left, _) = ends();
    left.peers[0].rules[0].remote = vec![bulk()];
    left.peers[0].id = pair.left.engine.config.peers[0].id;
    let changed = pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
    assert!(changed.is_empty(), "the tunnel stays");
    pair.run_for(Duration::from_secs(60));
    for (host, name) in [(&pair.left, OURS), (&pair.right, THEIRS)] {
        assert!(!has(host, name) && has(host, Some("path 2")));
    }
    select(&mut pair, 2, 0);
    pair.settle();
    assert_eq!(agreed(&pair), Some([vec![bulk()], vec![bulk()]]));
}

#[test]
fn the_traffic_goes_with_its_path_or_alone() {
    for alone in [true, false] {
        let mut pair = selected();
        let sa = pair.left.ike();
        pair.with(Side::Left, |engine, now| match alone {
            true => engine.remove_path_traffic(sa, 2, now),
            false => engine.remove_path(sa, 2, now),
        });
        pair.settle();
        pair.run_for(Duration::from_secs(60));
        for (host, name) in [(&pair.left, OURS), (&pair.right, THEIRS)] {
            assert!(!has(host, name));
            assert_eq!(has(host, Some("path 2")), alone);
        }
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    }
}

/// Deletes a child SA by a request that no task would send: it names no path.
fn delete_alone(pair: &mut Pair, name: Option<&str>) {
    let spi = pair.left.named(name).unwrap().inbound.spi;
    let sa = pair.left.ike();
    let payloads = vec![delete::child(spi)];
    ask_sealed(pair, sa, ExchangeType::INFORMATIONAL, payloads);
}

/// Nothing checks the address of a path without a child SA for all traffic.
#[test]
fn the_traffic_goes_with_the_child_sa_for_all_traffic_of_its_path() {
    let first = (Some("rule 2 on path 1"), Some("traffic of path 1"));
    for (number, rule, wide, (ours, theirs)) in
        [(2, 0, Some("path 2"), (OURS, THEIRS)), (1, 1, None, first)]
    {
        let mut pair = connected(ends());
        select(&mut pair, number, rule);
        pair.settle();
        let id = pair.right.named(theirs).unwrap().id;
        delete_alone(&mut pair, wide);
        let retired = pair.right.events.iter().any(|event| match event {
            Event::ChildRetired { child } => *child == id,
            _ => false,
        });
        assert!(retired, "path {number}: {:?}", pair.right.events);
        pair.run_for(Duration::from_secs(60));
        assert!(!has(&pair.left, ours) && !has(&pair.right, theirs));
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    }
}

/// The traffic of the only path left does not keep an IKE SA that has no other child SA.
#[test]
fn an_ike_sa_ends_without_child_sas_for_all_traffic() {
    let mut pair = connected(ends());
    select(&mut pair, 1, 1);
    pair.settle();
    let sa = pair.left.ike();
    pair.with(Side::Left, |engine, now| engine.remove_path(sa, 2, now));
    pair.run_for(Duration::from_secs(60));
    assert!(has(&pair.right, Some("traffic of path 1")));
    delete_alone(&mut pair, None);
    pair.run_for(Duration::from_secs(60));
    let reasons = pair.right.down_reasons();
    assert_eq!(
        reasons.first(),
        Some(&&DownReason::ChildDeleted),
        "{reasons:?}"
    );
}

/// The path is removed while the request is under way, in any order.
#[test]
fn a_removal_that_crosses_the_request_leaves_nothing() {
    for order in 0..4 {
        let mut pair = connected(ends());
        select(&mut pair, 2, 0);
        let sa = pair.left.ike();
        pair.with(Side::Left, |engine, now| engine.remove_path(sa, 2, now));
        pair.cross(order);
        pair.settle();
        pair.run_for(Duration::from_secs(120));
        for (host, name) in [(&pair.left, OURS), (&pair.right, THEIRS)] {
            assert!(!has(host, name) && !has(host, Some("path 2")), "{order}");
        }
    }
}

fn older(pair: &mut Pair, side: Side) {
    let sa = pair.host(side).ike();
    pair.with(side, |engine, now| {
        engine.with_established(sa, now, |session, _| {
            session.mobike.as_mut().unwrap().path_selectors = false;
        });
    });
}

#[test]
fn a_peer_that_does_not_announce_it_is_asked_for_nothing() {
    let mut pair = connected(ends());
    older(&mut pair, Side::Left);
    let sent = pair.sent.len();
    select(&mut pair, 2, 0);
    assert_eq!(pair.sent.len(), sent);
    assert!(!pair.left.engine.has_path_selectors(pair.left.ike()));
}

#[test]
fn the_rules_of_the_end_that_does_not_choose_have_no_effect_and_it_is_told() {
    let (mut left, mut right) = ends();
    right.peers[0].rules = std::mem::take(&mut left.peers[0].rules);
    let mut pair = connected((left, right));
    let told = |told: &String| told.contains("the peer initiated the tunnel");
    assert!(pair.right.refusals().iter().any(told));
    let (sa, sent) = (pair.right.ike(), pair.sent.len());
    pair.with(Side::Right, |engine, now| {
        engine.add_path_traffic(sa, 2, 0, now);
    });
    assert_eq!(pair.sent.len(), sent);
}

/// Returns a request for the traffic of a path, as no task would send it.
fn request(number: &[u8], local: &str, remote: TrafficSelector) -> Vec<Payload> {
    let menu = crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]);
    vec![
        Payload::SecurityAssociation(crate::proposal::offer_esp(&menu, model::Spi(0x1000_0001))),
        Payload::Nonce(vec![7; 32]),
        Payload::TsInitiator(TrafficSelectors(vec![prefix(local)])),
        Payload::TsResponder(TrafficSelectors(vec![remote])),
        notify(NotifyType::PATH_SELECTORS, number.to_vec()),
    ]
}

fn ask(pair: &mut Pair, payloads: Vec<Payload>) -> Vec<Payload> {
    let sa = pair.left.ike();
    ask_sealed(pair, sa, ExchangeType::CREATE_CHILD_SA, payloads)
}

fn says(answer: &[Payload], kind: NotifyType) -> bool {
    answer == [notify(kind, Vec::new())]
}

/// An authenticated peer asks for what the agreement does not have.
#[test]
fn selectors_outside_the_agreement_are_refused_or_narrowed() {
    for (local, remote) in [
        ("10.8.0.2/32", prefix("10.99.0.0/16")),
        ("10.8.7.2/32", voice()),
        ("10.8.0.2/32", prefix("2001:db8::/32")),
    ] {
        let mut pair = connected(ends());
        let answer = ask(&mut pair, request(&[2], local, remote.clone()));
        assert!(
            says(&answer, NotifyType::TS_UNACCEPTABLE),
            "{remote} {answer:?}"
        );
        assert!(!has(&pair.right, THEIRS));
    }
    let mut pair = connected(ends());
    let all = TrafficSelector {
        protocol: 17,
        ..prefix("0.0.0.0/0")
    };
    ask(&mut pair, request(&[2], "0.0.0.0/0", all));
    let narrowed = pair.right.named(THEIRS).unwrap();
    let within = TrafficSelector {
        protocol: 17,
        ..prefix("10.0.0.0/16")
    };
    assert_eq!(narrowed.local, [within]);
    assert_eq!(narrowed.remote, [prefix("10.8.0.0/24")]);
}

#[test]
fn a_number_that_no_path_has_is_refused_and_floods_are_bounded() {
    let mut pair = connected(ends());
    for number in [&[0][..], &[3], &[5], &[255], &[], &[2, 2]] {
        let answer = ask(&mut pair, request(number, "10.8.0.2/32", voice()));
        assert!(
            says(&answer, NotifyType::NO_ADDITIONAL_SAS),
            "{number:?} {answer:?}"
        );
    }
    for _ in 0..200 {
        ask(&mut pair, request(&[2], "10.8.0.2/32", voice()));
        ask(&mut pair, request(&[1], "10.8.0.2/32", bulk()));
    }
    // The first, that of path 2, and the traffic of both paths.
    assert_eq!(pair.right.children().len(), 4);
    // Without a second path, it has no traffic.
    let (left, right) = ends();
    let mut pair = Pair::new(left, right);
    pair.connect();
    let answer = ask(&mut pair, request(&[2], "10.8.0.2/32", voice()));
    assert!(says(&answer, NotifyType::TEMPORARY_FAILURE), "{answer:?}");
}

/// The responder has not heard from the address of the path: nothing may be sent there.
#[test]
fn a_path_that_is_not_verified_gets_no_traffic() {
    let (left, right) = ends();
    let mut pair = Pair::new(left, right);
    pair.connect();
    let sa = pair.left.ike();
    pair.with(Side::Left, |engine, now| engine.add_path(sa, to(CELL), now));
    // The check of the initiator, and its request for the child SA.
    for _ in 0..3 {
        pair.deliver_next();
    }
    // The answer, and the question of the responder, which is lost.
    pair.lose();
    pair.with(Side::Left, |engine, now| {
        engine.request_raw(
            sa,
            ExchangeType::CREATE_CHILD_SA,
            request(&[2], "10.8.0.2/32", voice()),
            now,
        );
    });
    pair.deliver_next();
    assert!(!has(&pair.right, THEIRS));
}

/// Only the end that chooses the paths selects their traffic.
#[test]
fn the_responder_selects_no_traffic() {
    let mut pair = connected(ends());
    let sa = pair.right.ike();
    pair.with(Side::Right, |engine, now| {
        let payloads = request(&[2], "10.0.0.0/16", prefix("10.8.0.2/32"));
        engine.request_raw(sa, ExchangeType::CREATE_CHILD_SA, payloads, now);
    });
    pair.deliver_next();
    let told = |told: &String| told.contains("only we can, as we initiated it");
    assert!(pair.left.refusals().iter().any(told));
    assert!(!has(&pair.left, THEIRS));
}

#[test]
fn traffic_is_agreed_over_a_hop_that_loses_repeats_and_delays() {
    for seed in 1..30 {
        let (left, right) = ends();
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        let perfect = pair.hop;
        pair.hop = pair.hop.losing(250).repeating(150).delaying(300);
        let sa = pair.left.ike();
        pair.with(Side::Left, |engine, now| engine.add_path(sa, to(CELL), now));
        for second in 0..30 {
            select(&mut pair, 2, 0);
            select(&mut pair, 1, 1);
            if second == 15 {
                let sa = pair.right.ike();
                pair.with(Side::Right, |engine, now| engine.rekey_ike(sa, now));
            }
            pair.run_for(Duration::from_secs(1));
        }
        pair.hop = perfect;
        pair.run_for(Duration::from_secs(120));
        for (ours, theirs) in [
            (OURS, THEIRS),
            (Some("rule 2 on path 1"), Some("traffic of path 1")),
        ] {
            let both = [has(&pair.left, ours), has(&pair.right, theirs)];
            assert!(both[0] == both[1], "seed {seed}, {ours:?}: {both:?}");
        }
        let sides = BOTH.map(|side| pair.host(side).up());
        assert_eq!(sides, [1, 1], "seed {seed}");
    }
}
