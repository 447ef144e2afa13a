//! Several live paths: adding, checking and removing them, and attempts to abuse them.

use super::attack::ask_sealed;
use super::children::{agree, rekey};
use super::mobike::{CELL, TRAIN, ips, move_to, roaming, to, told};
use super::pair::{Flying, Host, LEFT, Pair, Side};
use super::rekey::rekey_ike;
use super::*;
use crate::Event;
use crate::exchange::notify;
use crate::extension::live_path;
use model::{ChildSaId, Path};
use std::net::{IpAddr, SocketAddr};
use wire::ike::{ExchangeType, Header, NotifyType, Payload, TrafficSelectors};

const SECOND: Option<&str> = Some("path 2");
const TWO: [Option<&str>; 2] = [None, SECOND];
const VICTIM: &str = "203.0.113.66";
const BOTH: [Side; 2] = [Side::Left, Side::Right];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn ends(paths: [u8; 2]) -> (Config, Config) {
    let (mut left, mut right) = roaming();
    left.peers[0].features.paths = paths[0];
    right.peers[0].features.paths = paths[1];
    (left, right)
}

fn up(paths: [u8; 2]) -> Pair {
    let (left, right) = ends(paths);
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

fn add(pair: &mut Pair, path: Path) {
    let sa = pair.left.ike();
    pair.with(Side::Left, |engine, now| engine.add_path(sa, path, now));
}

fn remove(pair: &mut Pair, number: u8) {
    let sa = pair.left.ike();
    pair.with(Side::Left, |engine, now| {
        engine.remove_path(sa, number, now)
    });
}

/// Returns a pair with a second path, from CELL.
fn connected() -> Pair {
    let mut pair = up([2, 2]);
    add(&mut pair, to(CELL));
    pair.settle();
    assert!(agree(&pair, &TWO), "{:?}", pair.left.events);
    pair
}

fn proved(pair: &Pair) -> usize {
    let is_proof = |event: &&Event| matches!(event, Event::PathProved { number: 2, .. });
    pair.right.events.iter().filter(is_proof).count()
}

/// Returns the paths that were not added, each with true if the peer allows no more.
fn not_added(pair: &Pair) -> Vec<(IpAddr, bool)> {
    let refused = pair.left.events.iter().filter_map(|event| match event {
        Event::PathNotAdded { path, full, .. } => Some((path.local.ip(), *full)),
        _ => None,
    });
    refused.collect()
}

fn id(pair: &mut Pair, side: Side, name: Option<&str>) -> ChildSaId {
    pair.host(side).named(name).unwrap().id
}

/// Returns the address of the mobile node on which the newest child with a name was created.
fn mobile_end(pair: &Pair, name: Option<&str>) -> [IpAddr; 2] {
    [
        pair.left.named(name).unwrap().path.local.ip(),
        pair.right.named(name).unwrap().path.remote.ip(),
    ]
}

#[test]
fn each_end_checks_the_path_by_a_request_of_its_own_on_it_alone() {
    let pair = connected();
    assert_eq!(mobile_end(&pair, SECOND), [ip(CELL); 2]);
    assert_eq!(mobile_end(&pair, None), [ip(LEFT); 2]);
    assert_eq!(proved(&pair), 1);
    // The check of the initiator, the child SA, and the check of the responder.
    let on_path = |flying: &&Flying| {
        let cell = [flying.path.local, flying.path.remote];
        cell.iter().any(|end| end.ip().to_string() == CELL)
    };
    assert_eq!(pair.sent.iter().filter(on_path).count(), 6);
    assert_eq!(pair.sent.len(), 4 + 6);
    let numbers = |host: &Host| {
        let children = host.children().into_iter();
        children.map(|child| child.resource).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&pair.left), [Some(0), Some(1)]);
    assert_eq!(numbers(&pair.right), [Some(0), Some(1)]);
}

#[test]
fn up_to_four_paths_have_a_child_each() {
    let mut pair = up([4, 4]);
    for local in [CELL, TRAIN, "198.18.7.2"] {
        add(&mut pair, to(local));
        pair.settle();
    }
    assert!(agree(
        &pair,
        &[None, SECOND, Some("path 3"), Some("path 4")]
    ));
    add(&mut pair, to("198.18.8.2"));
    pair.settle();
    assert_eq!(not_added(&pair), [("198.18.8.2".parse().unwrap(), false)]);
    // A path that exists is not added again.
    let mut pair = connected();
    for local in [CELL, LEFT] {
        add(&mut pair, to(local));
    }
    pair.settle();
    assert!(agree(&pair, &TWO));
}

#[test]
fn the_end_that_allows_fewer_decides() {
    for (paths, full) in [([2, 1], true), ([3, 2], true), ([1, 2], false)] {
        let mut pair = up(paths);
        for local in [CELL, TRAIN].into_iter().take(paths[0].max(2).into()) {
            add(&mut pair, to(local));
            pair.settle();
        }
        let refused = not_added(&pair);
        assert!(
            refused.iter().any(|(_, is_full)| *is_full == full),
            "{paths:?} {refused:?}"
        );
        let told = |told: &String| told.contains("allows no further path");
        assert_eq!(pair.left.refusals().iter().any(told), full);
        assert_eq!(
            pair.left.children().len(),
            usize::from(paths[1].min(paths[0]))
        );
    }
}

/// Without the vendor ID, or with `mobike = "off"`, everything is as without the feature.
#[test]
fn a_peer_without_the_capability_has_one_path_and_the_operator_is_told() {
    let (left, mut right) = ends([2, 2]);
    right.peers[0].features.mobike = false;
    let mut pair = Pair::new(left, right);
    pair.connect();
    let told = |told: &String| told.contains("does not support several live paths");
    assert!(pair.left.refusals().iter().any(told));
    assert_eq!(pair.left.engine.most_paths(pair.left.ike()), 1);
    add(&mut pair, to(CELL));
    pair.settle();
    assert!(agree(&pair, &[None]));
}

/// A dead path costs the IKE SA no more than a second, and is no sign that its own path is silent.
#[test]
fn a_path_that_does_not_answer_is_not_added_and_blocks_nothing() {
    let mut pair = up([2, 2]);
    pair.away = ips(&[CELL]);
    add(&mut pair, to(CELL));
    pair.run_for(Duration::from_secs(30));
    assert_eq!(not_added(&pair), [(CELL.parse().unwrap(), false)]);
    let silent = |event: &Event| matches!(event, Event::PathSilent { .. });
    assert!(!pair.left.events.iter().any(silent));
    assert!(agree(&pair, &[None]));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    rekey(&mut pair, Side::Left, None);
    pair.settle();
    assert!(pair.left.down_reasons().is_empty());
}

/// The initiator reaches the responder by the path, but not the other way round.
#[test]
fn a_path_on_which_the_responder_gets_no_answer_is_removed_and_never_proved() {
    let mut pair = up([2, 2]);
    add(&mut pair, to(CELL));
    // The check of the initiator, and its request for the child SA.
    for _ in 0..3 {
        pair.deliver_next();
    }
    pair.away = ips(&[CELL]);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(proved(&pair), 0);
    assert!(agree(&pair, &[None]), "{:?}", pair.right.events);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}

/// A peer with keys names the address of a third party as its own.
// Weakness: M1
#[test]
fn an_address_of_somebody_else_gets_a_few_questions_and_no_packet() {
    let mut pair = up([2, 2]);
    pair.away = ips(&[VICTIM]);
    add(&mut pair, to(CELL));
    pair.deliver_next();
    pair.deliver_next();
    let request = pair.intercept().remove(0);
    let mut forged = request.clone();
    forged.path.remote.set_ip(VICTIM.parse().unwrap());
    let before = pair.sent.len();
    pair.deliver(&forged);
    pair.run_for(Duration::from_secs(120));
    let victim: IpAddr = VICTIM.parse().unwrap();
    let sent = pair.sent[before..]
        .iter()
        .filter(|sent| sent.path.remote.ip() != victim);
    let reached = pair.sent[before..]
        .iter()
        .filter(|sent| sent.path.local.ip() == victim);
    let octets: usize = reached.map(|sent| sent.message.len()).sum();
    assert!(
        octets <= 3 * forged.message.len(),
        "{octets} for {}",
        forged.message.len()
    );
    assert!(sent.count() > 0);
    assert_eq!(proved(&pair), 0, "nothing may be sent there");
    assert!(pair.right.named(SECOND).is_none());
}

#[test]
fn a_rekey_by_either_end_keeps_the_path() {
    let mut pair = connected();
    for side in [Side::Left, Side::Right, Side::Left] {
        rekey(&mut pair, side, SECOND);
        pair.settle();
        pair.run_for(Duration::from_secs(60));
        assert!(agree(&pair, &TWO));
        assert_eq!(mobile_end(&pair, SECOND), [ip(CELL); 2]);
    }
    assert_eq!(proved(&pair), 1, "the path is the same");
    rekey_ike(&mut pair, Side::Right);
    pair.settle();
    rekey(&mut pair, Side::Right, SECOND);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(mobile_end(&pair, SECOND), [ip(CELL); 2]);
}

#[test]
fn a_move_of_the_ike_sa_leaves_the_further_path_alone() {
    let mut pair = connected();
    let further = id(&mut pair, Side::Right, SECOND);
    move_to(&mut pair, to(TRAIN));
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), ips(&[TRAIN]));
    let moved = |event: &Event| match event {
        Event::PathMoved { children, .. } => children.contains(&further),
        _ => false,
    };
    assert!(!pair.right.events.iter().any(moved));
    let left = |event: &Event| matches!(event, Event::PathLeft { .. });
    assert_eq!(
        pair.right.events.iter().filter(|event| left(event)).count(),
        1
    );
}

#[test]
fn a_removal_deletes_the_child_at_both_ends_and_the_number_is_free_again() {
    let mut pair = connected();
    remove(&mut pair, 2);
    pair.settle();
    pair.run_for(Duration::from_secs(60));
    assert!(agree(&pair, &[None]));
    add(&mut pair, to(TRAIN));
    pair.settle();
    assert!(agree(&pair, &TWO));
    assert_eq!(mobile_end(&pair, SECOND), [ip(TRAIN); 2]);
}

/// Whichever request comes first, no end keeps a child SA that the other does not have.
// Weakness: M2
#[test]
fn a_removal_that_crosses_a_rekey_leaves_nothing() {
    for order in 0..4 {
        for side in BOTH {
            let mut pair = connected();
            rekey(&mut pair, side, SECOND);
            match side {
                // One after the other, without waiting.
                Side::Left => remove(&mut pair, 2),
                Side::Right => {
                    remove(&mut pair, 2);
                    pair.cross(order);
                }
            }
            pair.settle();
            pair.run_for(Duration::from_secs(120));
            assert!(
                agree(&pair, &[None]),
                "{order} {side:?}: {:?}",
                pair.right.events
            );
            assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
        }
    }
}

/// Whatever comes again, from wherever, adds no path and removes none.
// Weakness: M2
#[test]
fn replayed_additions_and_removals_change_nothing() {
    let mut pair = connected();
    remove(&mut pair, 2);
    pair.run_for(Duration::from_secs(60));
    assert!(agree(&pair, &[None]));
    let is_sealed =
        |sent: &&Flying| sent.to == Side::Right && sent.path.local.port() == crate::NATT_PORT;
    let requests: Vec<_> = pair.sent.iter().filter(is_sealed).cloned().collect();
    let replay = |pair: &mut Pair| {
        for request in &requests {
            for from in [CELL, VICTIM] {
                let mut request = request.clone();
                request.path.remote.set_ip(ip(from));
                pair.deliver(&request);
            }
        }
        pair.lose();
    };
    let picture = pair.right.picture();
    replay(&mut pair);
    assert_eq!(pair.right.picture(), picture);
    add(&mut pair, to(TRAIN));
    pair.settle();
    let picture = pair.right.picture();
    replay(&mut pair);
    assert_eq!(pair.right.picture(), picture);
    assert!(agree(&pair, &TWO));
    assert_eq!(mobile_end(&pair, SECOND), [ip(TRAIN); 2]);
}

/// No number is that of the path of the IKE SA.
#[test]
fn the_last_path_is_not_removed() {
    let mut pair = up([2, 2]);
    let sa = pair.left.ike();
    for number in [0, 1, 2, 3, 255] {
        remove(&mut pair, number);
        let payloads = live_path::remove(number, to(LEFT));
        ask_sealed(&mut pair, sa, ExchangeType::INFORMATIONAL, payloads);
        pair.settle();
        assert!(agree(&pair, &[None]), "{number}");
    }
}

/// The peer moves its IKE SA while it adds a path.
#[test]
fn additions_cross_moves_and_rekeys_of_the_ike_sa() {
    for order in 0..4 {
        for what in 0..3 {
            let mut pair = up([2, 2]);
            add(&mut pair, to(CELL));
            pair.settle_one_round();
            match what {
                0 => move_to(&mut pair, to(TRAIN)),
                1 => rekey_ike_beside(&mut pair, Side::Right),
                _ => rekey_ike_beside(&mut pair, Side::Left),
            }
            pair.cross(order);
            pair.settle();
            pair.run_for(Duration::from_secs(120));
            assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "{what} {order}");
            let both = [&pair.left, &pair.right].map(|host| host.named(SECOND).is_some());
            assert!(both[0] == both[1], "{what} {order}: {both:?}");
        }
    }
}

fn rekey_ike_beside(pair: &mut Pair, side: Side) {
    let sa = pair.host(side).ike();
    pair.with(side, |engine, now| engine.rekey_ike(sa, now));
}

/// Under loss, duplicates and reordering, both ends have the same child SAs in the end.
#[test]
fn paths_come_and_go_over_a_hop_that_loses_repeats_and_delays() {
    for seed in 1..40 {
        let (left, right) = ends([3, 3]);
        let mut pair = Pair::seeded(left, right, seed);
        pair.connect();
        let perfect = pair.hop;
        pair.hop = pair.hop.losing(250).repeating(150).delaying(300);
        add(&mut pair, to(CELL));
        pair.run_for(Duration::from_secs(5));
        add(&mut pair, to(TRAIN));
        pair.run_for(Duration::from_secs(5));
        rekey_ike_beside(&mut pair, Side::Right);
        // A path that is not there yet is not removed.
        let was_there = pair.left.named(SECOND).is_some();
        remove(&mut pair, 2);
        pair.run_for(Duration::from_secs(30));
        pair.hop = perfect;
        pair.run_for(Duration::from_secs(120));
        for name in [SECOND, Some("path 3")] {
            let both = [&pair.left, &pair.right].map(|host| host.named(name).is_some());
            assert!(both[0] == both[1], "seed {seed}, {name:?}: {both:?}");
        }
        assert_eq!((pair.left.up(), pair.right.up()), (1, 1), "seed {seed}");
        let is_left = was_there && pair.right.named(SECOND).is_some();
        assert!(!is_left, "seed {seed}");
    }
}

/// Returns a request that adds a path, as no task would send it.
fn addition(number: u8) -> Vec<Payload> {
    let selectors = |text| TrafficSelectors(vec![prefix(text)]);
    let menu = crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]);
    let spi = model::Spi(0x1000_0000 + u32::from(number));
    let mut payloads = vec![
        Payload::SecurityAssociation(crate::proposal::offer_esp(&menu, spi)),
        Payload::Nonce(vec![7; 32]),
        Payload::TsInitiator(selectors("10.8.0.2/32")),
        Payload::TsResponder(selectors("10.0.0.0/16")),
    ];
    payloads.extend(live_path::add(number, to(CELL)));
    payloads
}

fn ask(pair: &mut Pair, payloads: Vec<Payload>) -> Vec<Payload> {
    let sa = pair.left.ike();
    ask_sealed(pair, sa, ExchangeType::CREATE_CHILD_SA, payloads)
}

fn says(answer: &[Payload], kind: NotifyType) -> bool {
    answer == [notify(kind, Vec::new())]
}

#[test]
fn a_number_that_no_path_has_is_refused_and_floods_are_bounded() {
    let mut pair = up([2, 2]);
    for number in [0, 1, 3, 4, 5, 255] {
        let answer = ask(&mut pair, addition(number));
        assert!(
            says(&answer, NotifyType::NO_ADDITIONAL_SAS),
            "{number} {answer:?}"
        );
    }
    // On the path of the IKE SA itself, it is no other path.
    for _ in 0..1000 {
        let answer = ask(&mut pair, addition(2));
        assert!(says(&answer, NotifyType::TEMPORARY_FAILURE), "{answer:?}");
    }
    assert_eq!(pair.right.children().len(), 1);
}

/// A peer adds a path again and again from other addresses: few questions a second leave.
// Weakness: M1
#[test]
fn a_peer_that_adds_paths_without_end_has_few_addresses_asked() {
    let mut pair = up([2, 2]);
    let sa = pair.left.ike();
    let before = pair.sent.len();
    let mut asked = 0;
    for number in 0..200_u8 {
        pair.with(Side::Left, |engine, now| {
            engine.request_raw(sa, ExchangeType::CREATE_CHILD_SA, addition(2), now);
        });
        let mut request = pair.intercept().remove(0);
        request.path.remote = SocketAddr::new([203, 0, 113, number].into(), 4500);
        pair.deliver(&request);
        let answers = pair.intercept();
        let is_answer = |sent: &&Flying| Header::peek(&sent.message).unwrap().flags.response;
        let answer = answers
            .iter()
            .find(is_answer)
            .expect("it is answered")
            .clone();
        asked += answers.len() - 1;
        pair.deliver(&answer);
    }
    assert!(asked <= 4, "{asked} in a moment");
    assert!(pair.sent.len() > before);
    assert!(pair.right.children().len() <= 2);
}

/// Only the end that chooses the paths adds them.
// Weakness: M6
#[test]
fn the_responder_adds_no_path() {
    let mut pair = up([2, 2]);
    let sa = pair.right.ike();
    let path = to(CELL).reversed();
    pair.with(Side::Right, |engine, now| engine.add_path(sa, path, now));
    pair.settle();
    assert!(agree(&pair, &[None]));
    pair.with(Side::Right, |engine, now| {
        engine.request_raw(sa, ExchangeType::CREATE_CHILD_SA, addition(2), now);
    });
    let mut request = pair.intercept().remove(0);
    request.path.local.set_ip(CELL.parse().unwrap());
    pair.deliver(&request);
    let told = |told: &String| told.contains("only we can, as we initiated it");
    assert!(pair.left.refusals().iter().any(told));
    assert_eq!(pair.left.children().len(), 1);
}

// Weakness: M6
#[test]
fn a_configured_address_admits_no_path_from_another_one() {
    let (left, mut right) = ends([2, 2]);
    right.peers[0].address = Some(LEFT.parse().unwrap());
    let mut pair = Pair::new(left, right);
    pair.connect();
    add(&mut pair, to(CELL));
    pair.settle();
    let told = |told: &String| told.contains(CELL);
    assert!(
        pair.right.refusals().iter().any(told),
        "{:?}",
        pair.right.refusals()
    );
    assert!(agree(&pair, &[None]));
    assert_eq!(not_added(&pair), [(CELL.parse().unwrap(), false)]);
}

// Weakness: M4
#[test]
fn a_nat_on_the_path_is_refused_where_it_is_forbidden() {
    let (left, mut right) = ends([2, 2]);
    right.peers[0].features.forbids_nat = true;
    let mut pair = Pair::new(left, right);
    pair.connect();
    add(&mut pair, to(CELL));
    pair.settle_one_round();
    let mut request = pair.intercept().remove(0);
    request.path.remote.set_ip(TRAIN.parse().unwrap());
    pair.deliver(&request);
    let told = |told: &String| told.contains("address was translated");
    assert!(
        pair.right.refusals().iter().any(told),
        "{:?}",
        pair.right.refusals()
    );
    assert_eq!(pair.right.children().len(), 1);
}

/// The newest packet on the further path came from an address.
fn stray(pair: &mut Pair, from: &str) {
    let (sa, path) = (pair.right.ike(), to(from).reversed());
    pair.with(Side::Right, |engine, now| {
        engine.note_path_stray(sa, 2, path, now)
    });
}

/// The NAT of one path changes its mapping: the newest packets say so, and the peer answers there
/// alone.
// Weakness: M1
// Weakness: M3
#[test]
fn a_path_follows_a_changed_nat_after_a_check() {
    let mut pair = connected();
    let child = id(&mut pair, Side::Right, SECOND);
    // A third party does not answer.
    pair.away = ips(&[VICTIM]);
    stray(&mut pair, VICTIM);
    pair.run_for(Duration::from_secs(20));
    assert_eq!(told(&mut pair, Side::Right), Vec::<IpAddr>::new());
    pair.away = ips(&[CELL]);
    stray(&mut pair, TRAIN);
    pair.run_for(Duration::from_secs(4));
    let moved = pair.right.events.iter().find_map(|event| match event {
        Event::PathMoved { children, path, .. } => Some((children.clone(), path.remote.ip())),
        _ => None,
    });
    assert_eq!(moved, Some((vec![child], TRAIN.parse().unwrap())));
    rekey(&mut pair, Side::Right, SECOND);
    pair.settle();
    assert_eq!(mobile_end(&pair, SECOND)[1].to_string(), TRAIN);
    // The initiator follows nothing.
    let sa = pair.left.ike();
    let mut path = to(CELL);
    path.remote.set_ip(VICTIM.parse().unwrap());
    let before = pair.sent.len();
    pair.with(Side::Left, |engine, now| {
        engine.note_path_stray(sa, 2, path, now)
    });
    assert_eq!(pair.sent.len(), before);
}

/// A third party hands packets and checks over faster than the network. It cannot be told from a
/// NAT while nothing else arrives.
// Weakness: 201
// Weakness: M7
#[test]
fn a_path_stays_while_its_old_address_answers_and_returns_to_that_at_once() {
    let mut pair = connected();
    for _ in 0..5 {
        stray(&mut pair, TRAIN);
        pair.run_for(Duration::from_secs(10));
    }
    assert_eq!(told(&mut pair, Side::Right), Vec::<IpAddr>::new());
    let told_why = |told: &String| told.contains(TRAIN);
    assert!(pair.right.refusals().iter().any(told_why));
    pair.away = ips(&[CELL]);
    stray(&mut pair, TRAIN);
    pair.run_for(Duration::from_secs(10));
    assert_eq!(told(&mut pair, Side::Right), ips(&[TRAIN]));
    // It goes on to answer.
    pair.away.clear();
    stray(&mut pair, CELL);
    pair.settle();
    assert_eq!(told(&mut pair, Side::Right), ips(&[TRAIN, CELL]));
}

/// All requests go on another path because the IKE SA moves, so the answer of the old address says
/// nothing.
// Weakness: 201
// Weakness: M7
#[test]
fn a_question_to_the_old_address_that_a_move_meets_takes_no_path_elsewhere() {
    let mut pair = connected();
    stray(&mut pair, TRAIN);
    // The new address has answered, and the old one is asked.
    pair.deliver_next();
    pair.deliver_next();
    move_to(&mut pair, to(LEFT));
    let update = |flying: &Flying| flying.to == Side::Right;
    let flying = pair.intercept();
    flying
        .iter()
        .filter(|flying| update(flying))
        .for_each(|flying| pair.deliver(flying));
    pair.run_for(Duration::from_secs(20));
    let further = id(&mut pair, Side::Right, SECOND);
    let taken = |event: &Event| match event {
        Event::PathMoved { children, path, .. } => {
            children.contains(&further) && path.remote.ip() == ip(TRAIN)
        }
        _ => false,
    };
    assert!(!pair.right.events.iter().any(taken));
}

#[test]
fn a_peer_that_restarts_has_no_path_left_of_before() {
    for side in BOTH {
        let mut pair = connected();
        let (left, right) = ends([2, 2]);
        let config = if side == Side::Left { left } else { right };
        let fresh = Host::seeded(config, 9, 9);
        pair.restart(side, fresh);
        pair.connect();
        pair.run_for(Duration::from_secs(300));
        let ours = pair.left.named(SECOND).is_some();
        assert!(!ours || pair.right.named(SECOND).is_some(), "{side:?}");
        let sa = pair.left.ike();
        pair.with(Side::Left, |engine, now| engine.add_path(sa, to(CELL), now));
        pair.settle();
        let both = [&pair.left, &pair.right].map(|host| host.named(SECOND).is_some());
        assert_eq!(both, [true; 2], "{side:?}");
    }
}
