//! The rules of path selection.

mod soft;

use crate::{Candidate, Carriage, Paths, Standing, Step, Way};
use model::{Carrier, Instant, Path};
use std::net::IpAddr;
use std::time::Duration;

const WIFI: &str = "192.168.1.2";
const CELL: &str = "100.64.0.2";
const GATEWAY: &str = "203.0.113.1";
const OTHER: &str = "198.51.100.1";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn path(local: &str, remote: &str) -> Path {
    Path::udp((ip(local), 4500).into(), (ip(remote), 4500).into())
}

fn ways(pairs: &[(&str, &str)]) -> Vec<Way> {
    let way = |&(local, remote): &(&str, &str)| Way {
        local: ip(local),
        remote: ip(remote),
    };
    pairs.iter().map(way).collect()
}

const DATAGRAMS: Carriage = Carriage {
    carrier: Carrier::Udp,
    local: 4500,
    remote: 4500,
};

const STREAM: Carriage = Carriage {
    carrier: Carrier::Tcp,
    local: 0,
    remote: 443,
};

const BOTH: [(&str, &str); 2] = [(WIFI, GATEWAY), (CELL, GATEWAY)];

/// A tunnel over Wi-Fi that could also use a mobile network.
fn tunnel() -> Paths {
    let mut paths = Paths::new(path(WIFI, GATEWAY), vec![DATAGRAMS]);
    paths.handle_ways(&ways(&BOTH), at(0));
    assert_eq!(paths.poll_step(), None);
    paths
}

fn at(millis: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(millis))
}

/// Runs all timeouts up to a time, and returns the paths that were probed.
fn tries(paths: &mut Paths, until: Instant) -> Vec<Path> {
    let mut tried = Vec::new();
    while let Some(deadline) = paths.poll_timeout().filter(|deadline| deadline.at <= until) {
        paths.handle_timeout(deadline.at);
        match paths.poll_step() {
            Some(Step::Try(path)) => tried.push(path),
            other => panic!("a try was due: {other:?}"),
        }
    }
    tried
}

fn standing(paths: &Paths, local: &str) -> Standing {
    let of = |candidate: &&Candidate| candidate.way.local == ip(local);
    paths.candidates().iter().find(of).unwrap().standing
}

#[test]
fn a_way_that_is_gone_is_left_at_once_for_the_best_that_is_there() {
    let mut paths = tunnel();
    paths.handle_ways(&ways(&BOTH[1..]), at(0));
    assert_eq!(paths.poll_step(), Some(Step::Take(path(CELL, GATEWAY))));
    assert_eq!(paths.current(), path(CELL, GATEWAY));
}

#[test]
fn a_better_way_that_comes_is_taken() {
    let mut paths = tunnel();
    paths.handle_ways(&ways(&BOTH[1..]), at(0));
    paths.poll_step();
    paths.handle_ways(&ways(&BOTH), at(0));
    assert_eq!(paths.poll_step(), Some(Step::Take(path(WIFI, GATEWAY))));
}

#[test]
fn without_any_way_it_stays_where_it_is() {
    let mut paths = tunnel();
    paths.handle_ways(&[], at(0));
    assert_eq!(paths.poll_step(), None);
    assert_eq!(paths.current(), path(WIFI, GATEWAY));
    paths.handle_ways(&ways(&BOTH), at(0));
    assert_eq!(paths.poll_step(), None);
}

#[test]
fn a_silent_path_is_left_only_for_one_that_answers() {
    let mut paths = tunnel();
    paths.handle_silence(at(0));
    assert_eq!(tries(&mut paths, at(0)), [path(CELL, GATEWAY)]);
    assert_eq!(paths.current(), path(WIFI, GATEWAY));
    paths.handle_answer(path(CELL, GATEWAY), at(0));
    assert_eq!(paths.poll_step(), Some(Step::Take(path(CELL, GATEWAY))));
    assert_eq!(paths.poll_timeout(), None);
}

#[test]
fn others_are_tried_in_turn_until_somebody_answers() {
    let mut paths = tunnel();
    let three = [BOTH[0], BOTH[1], (WIFI, OTHER)];
    paths.handle_ways(&ways(&three), at(0));
    paths.handle_silence(at(0));
    let tried = tries(&mut paths, at(1000));
    let [a, b] = [path(CELL, GATEWAY), path(WIFI, OTHER)];
    assert_eq!(tried, [a, b, a, b]);
    // The path was only slow.
    paths.handle_answer(path(WIFI, GATEWAY), at(0));
    assert_eq!((paths.poll_step(), paths.poll_timeout()), (None, None));
    assert_eq!(standing(&paths, WIFI), Standing::Fresh);
}

#[test]
fn a_path_that_was_silent_is_not_returned_to_before_it_was_away() {
    let mut paths = tunnel();
    paths.handle_silence(at(0));
    paths.handle_answer(path(CELL, GATEWAY), at(0));
    paths.poll_step();
    paths.handle_ways(&ways(&BOTH), at(0));
    assert_eq!(paths.poll_step(), None, "it is there, but dead");
    paths.handle_ways(&ways(&BOTH[1..]), at(0));
    paths.handle_ways(&ways(&BOTH), at(0));
    assert_eq!(paths.poll_step(), Some(Step::Take(path(WIFI, GATEWAY))));
}

#[test]
fn an_answer_from_an_address_that_nobody_named_moves_nothing() {
    let mut paths = tunnel();
    paths.handle_silence(at(0));
    paths.handle_answer(path(CELL, "192.0.2.66"), at(0));
    assert_eq!(paths.poll_step(), None);
    assert!(paths.poll_timeout().is_some(), "the search goes on");
}

#[test]
fn a_late_answer_on_another_path_moves_nothing() {
    let mut paths = tunnel();
    paths.handle_answer(path(CELL, GATEWAY), at(0));
    assert_eq!(paths.poll_step(), None);
}

#[test]
fn a_way_that_the_peer_refuses_is_left_for_the_next() {
    let mut paths = tunnel();
    paths.handle_ways(&ways(&BOTH[1..]), at(0));
    paths.poll_step();
    paths.handle_ways(&ways(&[BOTH[1], BOTH[0]]), at(0));
    paths.handle_refusal(at(0));
    assert_eq!(paths.poll_step(), Some(Step::Take(path(WIFI, GATEWAY))));
    paths.handle_refusal(at(0));
    assert_eq!(paths.poll_step(), None, "nothing is left");
}

#[test]
fn an_operators_choice_holds_until_its_address_is_gone() {
    let mut paths = tunnel();
    assert_eq!(paths.choose(Some(ip(CELL)), at(0)), Ok(path(CELL, GATEWAY)));
    assert_eq!(paths.poll_step(), Some(Step::Take(path(CELL, GATEWAY))));
    paths.handle_ways(&ways(&BOTH), at(0));
    assert_eq!(paths.poll_step(), None);
    paths.handle_ways(&ways(&BOTH[..1]), at(0));
    assert_eq!(paths.poll_step(), Some(Step::Take(path(WIFI, GATEWAY))));
    paths.handle_ways(&ways(&BOTH), at(0));
    assert_eq!(paths.poll_step(), None, "the choice is forgotten");
}

#[test]
fn a_choice_without_an_address_takes_the_best_and_tells_the_peer() {
    let mut paths = tunnel();
    assert_eq!(paths.choose(None, at(0)), Ok(path(WIFI, GATEWAY)));
    assert_eq!(paths.poll_step(), Some(Step::Take(path(WIFI, GATEWAY))));
}

#[test]
fn an_address_from_which_nothing_leaves_cannot_be_chosen() {
    let mut paths = tunnel();
    let refused = paths.choose(Some(ip("10.9.9.9")), at(0)).unwrap_err();
    assert_eq!(refused.from, [ip(WIFI), ip(CELL)]);
    assert_eq!(paths.poll_step(), None);
}

#[test]
fn another_address_of_the_peer_is_reached_at_its_usual_port() {
    let mut translated = path(WIFI, GATEWAY);
    translated.remote.set_port(24_500);
    let mut paths = Paths::new(translated, vec![DATAGRAMS]);
    paths.handle_ways(&ways(&[(CELL, GATEWAY), (WIFI, OTHER)]), at(0));
    let mut same = path(CELL, GATEWAY);
    same.remote.set_port(24_500);
    assert_eq!(paths.poll_step(), Some(Step::Take(same)));
    paths.handle_ways(&ways(&[(WIFI, OTHER)]), at(0));
    assert_eq!(paths.poll_step(), Some(Step::Take(path(WIFI, OTHER))));
}

/// A stream path before its connection is opened.
fn stream(local: &str, remote: &str) -> Path {
    Path::tcp((ip(local), 0).into(), (ip(remote), 443).into())
}

/// A stream path after its connection was opened from this port.
fn connected(local: &str, port: u16) -> Path {
    Path::tcp((ip(local), port).into(), (ip(GATEWAY), 443).into())
}

#[test]
fn datagrams_are_tried_on_every_way_before_a_stream_on_any() {
    let mut paths = Paths::new(path(WIFI, GATEWAY), vec![DATAGRAMS, STREAM]);
    paths.handle_ways(&ways(&BOTH), at(0));
    assert_eq!(paths.poll_step(), None);
    paths.handle_silence(at(0));
    let tried = tries(&mut paths, at(700));
    let expected = [
        path(CELL, GATEWAY),
        stream(WIFI, GATEWAY),
        stream(CELL, GATEWAY),
    ];
    assert_eq!(tried, expected);
}

#[test]
fn a_stream_that_answers_is_taken_as_it_is() {
    let mut paths = Paths::new(path(WIFI, GATEWAY), vec![DATAGRAMS, STREAM]);
    paths.handle_ways(&ways(&[(WIFI, GATEWAY)]), at(0));
    paths.handle_silence(at(0));
    assert_eq!(tries(&mut paths, at(0)), [stream(WIFI, GATEWAY)]);
    paths.handle_answer(connected(WIFI, 50_000), at(0));
    assert_eq!(paths.poll_step(), Some(Step::Take(connected(WIFI, 50_000))));
}

#[test]
fn a_tunnel_in_a_stream_does_not_go_back_to_where_datagrams_were_silent() {
    let mut paths = Paths::new(connected(WIFI, 50_000), vec![DATAGRAMS, STREAM]);
    paths.handle_ways(&ways(&[(WIFI, GATEWAY)]), at(0));
    assert_eq!(paths.poll_step(), None);
    // "SHOULD be initiated first over UDP before attempting over TCP" on another network.
    paths.handle_ways(&ways(&[(CELL, GATEWAY), (WIFI, GATEWAY)]), at(0));
    assert_eq!(paths.poll_step(), Some(Step::Take(path(CELL, GATEWAY))));
}

#[test]
fn an_operator_who_moves_a_tunnel_moves_it_to_datagrams() {
    let mut paths = Paths::new(connected(WIFI, 50_000), vec![DATAGRAMS, STREAM]);
    paths.handle_ways(&ways(&[(WIFI, GATEWAY)]), at(0));
    assert_eq!(paths.choose(None, at(0)), Ok(path(WIFI, GATEWAY)));
}

#[test]
fn where_there_is_only_a_stream_no_datagram_is_tried() {
    let mut paths = Paths::new(connected(WIFI, 50_000), vec![STREAM]);
    paths.handle_ways(&ways(&BOTH), at(0));
    paths.handle_silence(at(0));
    let tried = tries(&mut paths, at(600));
    assert!(tried.iter().all(|path| path.is_stream()), "{tried:?}");
}
