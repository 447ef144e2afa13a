//! Measurements of single paths.

use super::mobike::{CELL, ips, move_to, roaming, to, told};
use super::pair::{LEFT, Pair, Side};
use super::*;
use crate::{Event, Measured};
use model::Path;
use std::net::IpAddr;
use wire::ike::ExchangeType;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn connected() -> Pair {
    let (mut left, right) = roaming();
    left.peers[0].liveness = 30 * SECOND;
    let mut pair = Pair::new(left, right);
    pair.connect();
    // Until the path has been measured by ordinary requests, too.
    pair.run_for(SECOND);
    pair.sent.clear();
    pair
}

fn measure(pair: &mut Pair, local: &str) {
    let sa = pair.left.current();
    pair.with(Side::Left, |engine, now| engine.measure(sa, to(local), now));
}

fn measured(pair: &Pair) -> Vec<(Path, Measured)> {
    let events = pair.left.events.iter();
    let measured = events.filter_map(|event| match event {
        Event::PathMeasured { path, measured, .. } => Some((*path, *measured)),
        _ => None,
    });
    measured.collect()
}

/// Returns the local addresses of the left host's requests.
fn asked_from(pair: &Pair) -> Vec<IpAddr> {
    let to_right = pair.sent.iter().filter(|flying| flying.to == Side::Right);
    to_right.map(|flying| flying.path.remote.ip()).collect()
}

#[test]
fn a_request_goes_on_one_path_alone_and_its_answer_moves_nothing() {
    for local in [LEFT, CELL] {
        let mut pair = connected();
        measure(&mut pair, local);
        pair.run_for(SECOND);
        assert_eq!(measured(&pair), [(to(local), Measured::Answered(40 * MS))]);
        assert_eq!(asked_from(&pair), ips(&[local]));
        assert!(told(&mut pair, Side::Left).is_empty() && told(&mut pair, Side::Right).is_empty());
        let path = pair.right.engine.sas().next().unwrap().path;
        assert_eq!(path.remote.ip(), ips(&[LEFT])[0]);
    }
}

#[test]
fn a_request_that_is_lost_is_repeated_on_the_current_path_and_blocks_others_for_a_second() {
    let mut pair = connected();
    pair.away = ips(&[CELL]);
    measure(&mut pair, CELL);
    let sa = pair.left.current();
    pair.with(Side::Left, |engine, now| engine.rekey_ike(sa, now));
    pair.run_for(2 * SECOND);
    assert_eq!(measured(&pair), [(to(CELL), Measured::Lost)]);
    let asked = asked_from(&pair);
    assert_eq!(asked[..2], ips(&[CELL, LEFT]), "{asked:?}");
    let rekeyed = |event: &Event| matches!(event, Event::IkeRekeyed { .. });
    assert!(pair.left.events.iter().any(rekeyed));
    let silent = |event: &Event| matches!(event, Event::PathSilent { .. });
    assert!(!pair.left.events.iter().any(silent));
}

#[test]
fn a_loss_is_reported_once_though_the_current_path_answers_as_little() {
    let mut pair = connected();
    measure(&mut pair, CELL);
    pair.lose();
    pair.away = ips(&[CELL, LEFT]);
    pair.run_for(SECOND);
    assert_eq!(measured(&pair), [(to(CELL), Measured::Lost)]);
    pair.away.clear();
    pair.run_for(10 * SECOND);
    assert_eq!(measured(&pair), [(to(CELL), Measured::Lost)]);
    assert!(pair.is_quiet());
}

#[test]
fn nothing_is_measured_while_another_request_is_outstanding_or_by_the_other_end() {
    let mut pair = connected();
    let sa = pair.left.current();
    pair.with(Side::Left, |engine, now| engine.rekey_ike(sa, now));
    measure(&mut pair, CELL);
    assert_eq!(measured(&pair), [(to(CELL), Measured::Unknown)]);
    assert_eq!(asked_from(&pair), ips(&[LEFT]));
    let mut pair = connected();
    let theirs = pair.right.current();
    let back = to(LEFT).reversed();
    pair.with(Side::Right, |engine, now| engine.measure(theirs, back, now));
    assert!(pair.is_quiet());
}

#[test]
fn nothing_is_measured_if_liveness_checks_are_disabled() {
    let (mut left, right) = roaming();
    left.peers[0].liveness = Duration::ZERO;
    let mut pair = Pair::new(left, right);
    pair.connect();
    measure(&mut pair, CELL);
    assert!(pair.is_quiet());
    assert_eq!(measured(&pair), [(to(CELL), Measured::Unknown)]);
}

/// An end that is dead is given up as early as without measurements, and not earlier.
#[test]
fn a_measurement_neither_ends_the_sa_nor_keeps_it() {
    let mut pair = connected();
    pair.deaf = true;
    measure(&mut pair, CELL);
    let down = |pair: &Pair| {
        let mut events = pair.left.events.iter();
        events.any(|event| matches!(event, Event::IkeDown { .. }))
    };
    pair.run_for(20 * SECOND);
    assert!(!down(&pair));
    assert!(pair.run_until(3600 * SECOND, |pair| down(pair)));
}

/// The path moves while the request is outstanding: its answer comes on the new path.
#[test]
fn an_answer_on_another_path_says_nothing() {
    let mut pair = connected();
    measure(&mut pair, LEFT);
    pair.lose();
    move_to(&mut pair, to(CELL));
    pair.run_for(SECOND / 2);
    assert_eq!(measured(&pair), [(to(LEFT), Measured::Unknown)]);
}

#[test]
fn a_measurement_is_an_empty_request() {
    let mut pair = connected();
    measure(&mut pair, CELL);
    let request = pair.right.engine.peek(&pair.sent[0].message).unwrap();
    assert_eq!(request.header.exchange, ExchangeType::INFORMATIONAL);
    assert!(request.payloads.is_empty());
}
