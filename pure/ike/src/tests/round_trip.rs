//! Retransmission follows the measured round trip (RFC 6298), and the time after which a request is
//! given up does not.

use super::mobike::{CELL, move_to, roaming, to};
use super::pair::{LEFT, NAT, Pair, RIGHT, Side, fit};
use super::rekey::{rekey_child, rekey_ike};
use super::*;
use crate::Event;
use model::Kem;
use std::collections::BTreeMap;
use wire::ike::Header;
use world::Nat;

/// One way by satellite. A round trip takes 600 ms.
const SATELLITE: Duration = Duration::from_millis(300);

/// Liveness checks of both ends.
const LIVENESS: Duration = Duration::from_secs(30);

fn checking((mut left, mut right): (Config, Config)) -> (Config, Config) {
    for config in [&mut left, &mut right] {
        config.peers[0].liveness = LIVENESS;
    }
    (left, right)
}

fn connected(ends: (Config, Config)) -> Pair {
    let mut pair = Pair::new(ends.0, ends.1);
    pair.connect();
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    pair
}

/// Returns the delay before the first retransmission of an end's next request.
fn timeout(pair: &mut Pair, side: Side) -> Duration {
    let engine = &pair.host(side).engine;
    let sa = engine.sas.values().next().expect("an SA");
    sa.core.requests.timeout(&engine.config.timers)
}

/// Returns the number of retransmissions of both ends.
fn retransmitted(pair: &Pair) -> u64 {
    let hosts = [&pair.left, &pair.right];
    let counters = hosts.map(|host| host.engine.counters().retransmitted);
    counters.iter().sum()
}

/// Sends a liveness check and awaits the response.
fn check(pair: &mut Pair, side: Side) {
    let id = pair.host(side).engine.sas().next().expect("an SA").id;
    pair.with(side, |engine, now| engine.doubt(id, now));
    pair.run_for(Duration::from_secs(2));
}

/// Returns a pair by satellite after set-up, rekeys by both ends, liveness checks and the end.
fn lived((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.hop.delay = SATELLITE;
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(10));
    for _ in 0..3 {
        for side in [Side::Left, Side::Right] {
            rekey_child(&mut pair, side);
            pair.run_for(LIVENESS * 4);
            rekey_ike(&mut pair, side);
            pair.run_for(LIVENESS * 4);
        }
    }
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert!(fit(pair.left.child(), pair.right.child()));
    pair.with(Side::Left, |engine, now| engine.shutdown(now));
    pair.run_for(Duration::from_secs(60));
    let left = [&pair.left, &pair.right].map(|host| host.engine.sas().count());
    assert_eq!(left, [0, 0]);
    pair
}

/// Returns ends that differ in the exchanges of a set-up.
fn ends() -> [(Config, Config); 4] {
    let with = |change: fn(&mut Config)| {
        let (mut left, mut right) = checking(roaming());
        change(&mut left);
        change(&mut right);
        (left, right)
    };
    [
        checking((mobile(), gateway())),
        with(|config| config.peers[0].window = 8),
        with(|config| config.peers[0].kems = vec![Some(Kem::MlKem768)]),
        with(|config| config.limits.half_open_without_cookie = 0),
    ]
}

#[test]
fn over_a_round_trip_of_600_milliseconds_no_request_is_sent_twice() {
    for ends in ends() {
        let pair = lived(ends);
        assert_eq!(retransmitted(&pair), 0);
        assert_eq!(pair.left.engine.counters().answered_again, 0);
        assert_eq!(pair.right.engine.counters().answered_again, 0);
    }
}

/// The counter-test: with a timeout of 500 ms, each request would be sent twice.
#[test]
fn over_a_round_trip_of_600_milliseconds_500_are_too_few() {
    for (mut left, mut right) in ends() {
        for config in [&mut left, &mut right] {
            let half = Duration::from_millis(500);
            config.timers.retransmit = half;
            config.timers.retransmit_within = half;
        }
        let pair = lived((left, right));
        let mut requests = BTreeMap::<&[u8], usize>::new();
        for flying in &pair.sent {
            let header = Header::peek(&flying.message).expect("a message");
            if !header.flags.response {
                *requests.entry(&flying.message).or_default() += 1;
            }
        }
        assert!(requests.len() > 40);
        assert!(requests.values().all(|sent| *sent == 2), "{requests:?}");
    }
}

/// A first message that is lost costs a second. A second message costs 200 ms more than the round
/// trip if the first was measured, and 1.2 s if not.
#[test]
fn a_set_up_with_losses_takes_a_bounded_time() {
    let round_trip = Duration::from_millis(40);
    let took = |first: usize, second: usize| {
        let mut pair = Pair::new(mobile(), gateway());
        pair.initiate(Side::Left);
        for lost in [first, second] {
            for _ in 0..lost {
                pair.lose();
                let due = pair.left.engine.poll_timeout().expect("a retransmission");
                pair.now = due.at;
                pair.timeout(Side::Left);
            }
            pair.settle_one_round();
        }
        assert!(fit(pair.left.child(), pair.right.child()));
        pair.now.since_origin() - round_trip * 2
    };
    let expected = [
        [0, 240, 720, 1680],
        [1000, 2200, 4600, 9400],
        [3000, 4200, 6600, 11_400],
        [7000, 8200, 10_600, 15_400],
    ];
    for (first, expected) in expected.into_iter().enumerate() {
        let actual = [0, 1, 2, 3].map(|second| took(first, second).as_millis());
        assert_eq!(actual, expected, "{first} lost first");
    }
}

#[test]
fn a_lost_request_is_sent_again_200_milliseconds_after_its_response_was_due() {
    let mut pair = connected(checking((mobile(), gateway())));
    for _ in 0..10 {
        check(&mut pair, Side::Left);
    }
    let round_trip = pair.hop.delay * 2;
    let expected = round_trip + Duration::from_millis(200);
    assert_eq!(timeout(&mut pair, Side::Left), expected);
    let before = pair.now;
    pair.hop.lost = 1000;
    rekey_child(&mut pair, Side::Left);
    let next = pair.left.engine.poll_timeout().map(|due| due.at);
    assert_eq!(next, Some(before + expected));
}

/// Karn's algorithm needs both halves. Without the second, each request would be sent twice, and
/// none would ever be measured.
#[test]
fn a_path_that_becomes_slower_is_measured_again_after_two_requests() {
    let mut pair = connected(checking((mobile(), gateway())));
    for _ in 0..10 {
        check(&mut pair, Side::Left);
    }
    assert_eq!(retransmitted(&pair), 0);
    pair.hop.delay = SATELLITE;
    for _ in 0..10 {
        check(&mut pair, Side::Left);
    }
    assert_eq!(retransmitted(&pair), 2);
    assert!(timeout(&mut pair, Side::Left) > SATELLITE * 2);
}

/// RFC 9000 section 9.4: the round trip belongs to the path.
#[test]
fn a_path_between_other_addresses_is_measured_anew() {
    let mut pair = connected(checking(roaming()));
    for side in [Side::Left, Side::Right] {
        check(&mut pair, side);
        assert!(timeout(&mut pair, side) < Duration::from_millis(300));
    }
    pair.hop.delay = SATELLITE;
    move_to(&mut pair, to(CELL));
    assert_eq!(timeout(&mut pair, Side::Left), Duration::from_secs(1));
    pair.run_for(LIVENESS * 4);
    for side in [Side::Left, Side::Right] {
        assert!(timeout(&mut pair, side) > SATELLITE * 2);
    }
    assert_eq!(retransmitted(&pair), 0);
    pair.hop.delay = Duration::from_millis(20);
    move_to(&mut pair, to(LEFT));
    pair.run_for(LIVENESS * 4);
    for side in [Side::Left, Side::Right] {
        assert!(timeout(&mut pair, side) < Duration::from_secs(1));
    }
    assert_eq!(retransmitted(&pair), 0);
}

/// "Port-only changes are commonly the result of NAT rebinding": the path is the same.
#[test]
fn a_path_to_another_port_keeps_its_measurement_and_to_another_address_does_not() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.right.engine.config.peers[0].liveness = LIVENESS;
    pair.nat = Some(NAT);
    pair.connect();
    for _ in 0..10 {
        check(&mut pair, Side::Right);
    }
    let measured = timeout(&mut pair, Side::Right);
    assert_eq!(measured, Duration::from_millis(240));
    let outsides = [
        (NAT.outside, 30_000, measured),
        ([198, 51, 100, 10].into(), 30_000, Duration::from_secs(1)),
    ];
    for (outside, shift, expected) in outsides {
        pair.nat = Some(Nat { outside, shift });
        rekey_child(&mut pair, Side::Left);
        pair.run_for(Duration::from_secs(5));
        let path = pair.right.engine.sas().next().expect("an SA").path;
        let port = crate::NATT_PORT + shift;
        assert_eq!(path.remote, format!("{outside}:{port}").parse().unwrap());
        assert_eq!(timeout(&mut pair, Side::Right), expected);
    }
}

#[test]
fn the_successor_of_an_ike_sa_knows_its_path() {
    let mut pair = connected((mobile(), gateway()));
    pair.hop.delay = SATELLITE;
    rekey_child(&mut pair, Side::Left);
    pair.run_for(Duration::from_secs(60));
    rekey_ike(&mut pair, Side::Left);
    pair.run_for(Duration::from_secs(60));
    let successor = timeout(&mut pair, Side::Left);
    assert!(successor > SATELLITE * 2, "{successor:?}");
}

/// Returns the time after which an end has no SA any more, since a request that nothing answered.
fn given_up(mut pair: Pair, side: Side, ask: fn(&mut Pair, Side)) -> Duration {
    pair.hop.lost = 1000;
    let since = pair.now;
    ask(&mut pair, side);
    while pair.host(side).engine.sas().next().is_some() {
        let due = pair.host(side).engine.poll_timeout().expect("a deadline");
        pair.now = due.at;
        pair.timeout(side);
    }
    pair.now - since
}

/// RFC 6298 changes when requests are sent again, but not the total time.
#[test]
fn a_request_is_given_up_after_the_same_time_on_every_path() {
    let at_latency = |latency: Duration, ends: (Config, Config)| {
        let mut pair = Pair::new(ends.0, ends.1);
        pair.hop.delay = latency;
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(20));
        pair
    };
    for latency in [1, 20, 300, 700].map(Duration::from_millis) {
        let plain = || at_latency(latency, (mobile(), gateway()));
        let rekey = given_up(plain(), Side::Left, rekey_child);
        assert_eq!(rekey, Duration::from_millis(103_500));
        let close = |pair: &mut Pair, side| {
            pair.with(side, |engine, now| engine.shutdown(now));
        };
        assert_eq!(
            given_up(plain(), Side::Left, close),
            Duration::from_millis(3500)
        );
        let moving = at_latency(latency, roaming());
        let patient = given_up(moving, Side::Right, rekey_child);
        assert_eq!(patient, Duration::from_millis(303_500));
        let mut checked = at_latency(latency, checking((mobile(), gateway())));
        checked.run_for(LIVENESS * 10);
        let question = given_up(checked, Side::Left, |pair, side| {
            let id = pair.host(side).engine.sas().next().expect("an SA").id;
            pair.with(side, |engine, now| engine.note_inbound(id, now));
        });
        assert_eq!(question, LIVENESS + Duration::from_millis(15_500));
    }
    let mut pair = Pair::new(mobile(), gateway());
    pair.away.push(RIGHT.parse().unwrap());
    let first = given_up(pair, Side::Left, |pair, side| {
        pair.initiate(side);
    });
    assert_eq!(first, Duration::from_millis(103_500));
}

/// Other paths are tried after the same time on every path.
#[test]
fn a_path_without_responses_is_reported_after_one_and_a_half_seconds() {
    for latency in [1, 20, 300].map(Duration::from_millis) {
        let mut pair = connected(roaming());
        pair.hop.delay = latency;
        rekey_child(&mut pair, Side::Left);
        pair.run_for(Duration::from_secs(20));
        let since = pair.now;
        pair.hop.lost = 1000;
        rekey_child(&mut pair, Side::Left);
        let silent = |pair: &Pair| {
            let mut events = pair.left.events.iter();
            events.any(|event| matches!(event, Event::PathSilent { .. }))
        };
        while !silent(&pair) {
            pair.now = pair.left.engine.poll_timeout().expect("a deadline").at;
            pair.timeout(Side::Left);
        }
        assert_eq!(pair.now - since, Duration::from_millis(1500));
        pair.run_for(Duration::from_secs(60));
        let events = pair.left.events.iter();
        let silent = events.filter(|event| matches!(event, Event::PathSilent { .. }));
        assert_eq!(silent.count(), 1, "once");
    }
}
