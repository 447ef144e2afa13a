//! Hand-overs that nobody asks for: measured ways of changing quality, in virtual time.

mod signal;

use super::{BOTH, CELL, DATAGRAMS, GATEWAY, OTHER, WIFI, ip, path, standing, ways};
use crate::{Failure, Fate, Paths, Signals, Standing, Step, Why};
use model::{Instant, Path};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_secs(10);

/// Time that a hand-over takes.
const TAKES: Duration = Duration::from_secs(1);

/// Time after which a request counts as lost.
const LOST: Duration = Duration::from_secs(1);

/// A tunnel over ways whose quality a function of the time and the path tells: the round trip, or
/// `None` for a lost request.
struct Ground<F> {
    paths: Paths,
    signals: Signals,
    now: Instant,
    answers: F,
    /// What happens next: the fate of a request, or the end of a hand-over.
    due: Vec<(Instant, Path, Option<Fate>)>,
    requests: usize,
    moves: Vec<(Path, Why, Instant)>,
}

impl<F: FnMut(Path, Instant) -> Option<Duration>> Ground<F> {
    fn new(every: Duration, answers: F) -> Self {
        let mut paths = Paths::new(path(WIFI, GATEWAY), vec![DATAGRAMS]);
        paths.allow_soft(every, Instant::ZERO);
        paths.handle_ways(&ways(&BOTH), Instant::ZERO);
        Self {
            paths,
            signals: Signals::default(),
            now: Instant::ZERO,
            answers,
            due: Vec::new(),
            requests: 0,
            moves: Vec::new(),
        }
    }

    fn ways(&mut self, pairs: &[(&str, &str)]) {
        self.paths.handle_ways(&ways(pairs), self.now);
        self.take_step();
    }

    /// A source reports the signal of a local address.
    fn signal(&mut self, local: &str, percent: u8) {
        self.signals.note(&[ip(local)], percent, None, self.now);
        self.follow_signals();
    }

    fn follow_signals(&mut self) {
        self.paths.handle_weak(&self.signals.weak(), self.now);
        self.take_step();
    }

    fn take_step(&mut self) {
        match self.paths.poll_step() {
            Some(Step::Measure(path)) => {
                self.requests += 1;
                let took = (self.answers)(path, self.now).filter(|took| *took < LOST);
                let fate = took.map_or(Fate::Lost, Fate::Answered);
                let at = self.now + took.unwrap_or(LOST);
                self.due.push((at, path, Some(fate)));
            }
            Some(Step::HandOver(path)) => self.due.push((self.now + TAKES, path, None)),
            Some(Step::Take(path)) => self.moves.push((path, self.paths.why(), self.now)),
            Some(Step::Try(_)) => panic!("no path is silent"),
            None => {}
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let due = self.due.iter().map(|(at, ..)| *at).min();
            let timeouts = [self.paths.poll_timeout(), self.signals.poll_timeout()];
            let timeouts = timeouts.into_iter().flatten().map(|deadline| deadline.at);
            let next = due.into_iter().chain(timeouts).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            if !self.signals.expire(self.now).is_empty() {
                self.follow_signals();
            }
            match self.due.iter().position(|(at, ..)| *at <= self.now) {
                Some(first) => self.conclude(first),
                None => self.paths.handle_timeout(self.now),
            }
            self.take_step();
        }
    }

    fn conclude(&mut self, which: usize) {
        match self.due.swap_remove(which) {
            (_, path, Some(fate)) => self.paths.handle_measured(path, fate, self.now),
            (_, path, None) => {
                if let Some(mut next) = self.paths.handed_over(path, self.now) {
                    next.handle_weak(&self.signals.weak(), self.now);
                    self.paths = next;
                    self.moves.push((path, self.paths.why(), self.now));
                }
            }
        }
    }

    /// Returns the paths that were taken, with the reasons.
    fn taken(&self) -> Vec<(Path, Why)> {
        let moves = self.moves.iter();
        moves.map(|(path, why, _)| (*path, *why)).collect()
    }
}

/// A generator that a seed determines.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    }
}

fn is_wifi(path: Path) -> bool {
    path.local.ip() == ip(WIFI)
}

/// One request per interval on the current way and one on the others, however many there are.
#[test]
fn measurement_costs_two_requests_per_interval_for_any_number_of_ways() {
    let mut ground = Ground::new(EVERY, |_, _| Some(20 * MS));
    ground.run_for(1000 * SECOND);
    assert!(
        (195..=201).contains(&ground.requests),
        "{}",
        ground.requests
    );
    ground.ways(&[BOTH[0], BOTH[1], (WIFI, OTHER), (CELL, OTHER)]);
    let before = ground.requests;
    ground.run_for(1000 * SECOND);
    let more = ground.requests - before;
    assert!((195..=201).contains(&more), "{more}");
    assert_eq!(ground.taken(), []);
    let measured = |known: &crate::Candidate| known.quality.round_trip() == Some(20 * MS);
    assert!(ground.paths.candidates().iter().all(measured));
}

#[test]
fn nothing_is_measured_if_it_is_off_or_there_is_one_way() {
    let mut off = Ground::new(Duration::ZERO, |_, _| Some(20 * MS));
    off.run_for(1000 * SECOND);
    let mut one = Ground::new(EVERY, |_, _| Some(20 * MS));
    one.paths.handle_ways(&ways(&BOTH[..1]), Instant::ZERO);
    one.run_for(1000 * SECOND);
    assert_eq!((off.requests, one.requests), (0, 0));
}

#[test]
fn a_better_way_that_stays_is_handed_over_to_and_one_that_is_gone_is_left_at_once() {
    let mut ground = Ground::new(Duration::ZERO, |_, _| None);
    ground.ways(&BOTH[1..]);
    assert_eq!(ground.taken(), [(path(CELL, GATEWAY), Why::Route)]);
    assert_eq!(ground.moves[0].2, Instant::ZERO, "without a delay");
    ground.run_for(100 * SECOND);
    ground.ways(&BOTH);
    ground.run_for(SECOND);
    assert_eq!(ground.moves.len(), 1, "it may be gone again");
    ground.run_for(3 * SECOND);
    assert_eq!(ground.taken()[1], (path(WIFI, GATEWAY), Why::Route));
}

/// Without the hysteresis there would be 2,000 moves.
#[test]
fn a_better_way_that_comes_and_goes_is_returned_to_less_and_less_often() {
    let mut ground = Ground::new(EVERY, |_, _| Some(20 * MS));
    for _ in 0..1000 {
        ground.ways(&BOTH[1..]);
        ground.run_for(SECOND);
        ground.ways(&BOTH);
        ground.run_for(9 * SECOND);
    }
    assert!(ground.moves.len() <= 20, "{}", ground.moves.len());
    ground.run_for(200 * SECOND);
    assert_eq!(ground.paths.current(), path(WIFI, GATEWAY), "it stays now");
}

#[test]
fn a_way_that_fades_is_left_within_seconds_and_returned_to_when_it_has_recovered() {
    let fades = |now: Instant| (100..400).contains(&now.since_origin().as_secs());
    let mut random = random(1);
    let mut ground = Ground::new(EVERY, move |path, now| {
        let lost = is_wifi(path) && fades(now) && random().is_multiple_of(2);
        (!lost).then_some(20 * MS)
    });
    ground.run_for(400 * SECOND);
    let (there, why, at) = ground.moves[0];
    assert_eq!((there, ground.moves.len()), (path(CELL, GATEWAY), 1));
    assert!(matches!(why, Why::Faded(lost) if lost >= 15), "{why:?}");
    let after = at.since_origin().as_secs() - 100;
    assert!(after < 60, "{after} s");
    ground.run_for(600 * SECOND);
    assert_eq!(ground.taken()[1..], [(path(WIFI, GATEWAY), Why::Route)]);
}

#[test]
fn loss_on_all_ways_moves_the_tunnel_a_few_times_an_hour_at_most() {
    for seed in 0..20 {
        let mut random = random(seed);
        let mut ground = Ground::new(EVERY, move |_, _| {
            (!random().is_multiple_of(4)).then_some(20 * MS)
        });
        ground.run_for(3600 * SECOND);
        assert!(ground.moves.len() <= 8, "{:?}", ground.taken());
    }
}

/// Without the hysteresis, each change of quality would move the tunnel.
#[test]
fn ways_that_fade_in_turn_do_not_make_the_tunnel_flap() {
    for period in [20, 60, 200] {
        let mut ground = Ground::new(EVERY, move |path, now| {
            let first = now.since_origin().as_secs() / period % 2 == 0;
            (is_wifi(path) == first).then_some(20 * MS)
        });
        ground.run_for(20_000 * SECOND);
        let changes = 20_000 / period as usize;
        let moves = ground.moves.len();
        assert!(moves * 4 <= changes.max(100), "{moves} of {changes}");
    }
}

/// The first in the list is the way of the routes, and only a loss overrides them.
#[test]
fn a_slow_way_that_the_routes_prefer_is_kept() {
    let mut ground = Ground::new(EVERY, |path, _| {
        Some(if is_wifi(path) { 600 * MS } else { 20 * MS })
    });
    ground.run_for(3600 * SECOND);
    assert_eq!(ground.taken(), []);
}

#[test]
fn of_two_ways_that_the_routes_do_not_prefer_the_quicker_is_used_once_it_has_been_for_a_while() {
    const FAR: &str = "100.64.9.2";
    let three = [BOTH[0], BOTH[1], (FAR, GATEWAY)];
    let slow_until = Instant::from_origin(1000 * SECOND);
    let mut ground = Ground::new(EVERY, move |path, now| {
        let far = path.local.ip() == ip(FAR);
        // Noise of 10 % is no reason for a move.
        let noise = (now.since_origin().as_secs() % 7) as u32 * 2 * MS;
        let took = match (far, now < slow_until) {
            (true, true) => 400 * MS,
            (true, false) => 30 * MS,
            (false, _) => 100 * MS,
        };
        (!is_wifi(path)).then_some(took + noise)
    });
    ground.ways(&three);
    ground.run_for(1000 * SECOND);
    assert_eq!(ground.paths.current(), path(CELL, GATEWAY));
    ground.run_for(1000 * SECOND);
    let last = ground.taken().last().copied();
    assert_eq!(last, Some((path(FAR, GATEWAY), Why::Quicker)));
    assert!(ground.moves.len() <= 3, "{:?}", ground.taken());
}

#[test]
fn the_way_that_an_operator_chose_is_kept_until_it_fades() {
    let mut ground = Ground::new(EVERY, |path, now| {
        let late = now.since_origin() > 1000 * SECOND;
        (is_wifi(path) || !late).then_some(20 * MS)
    });
    assert!(ground.paths.choose(Some(ip(CELL)), ground.now).is_ok());
    ground.take_step();
    ground.run_for(1000 * SECOND);
    assert_eq!(ground.taken(), [(path(CELL, GATEWAY), Why::Asked)]);
    ground.run_for(60 * SECOND);
    let last = ground.taken()[1];
    assert!(
        matches!(last, (to, Why::Faded(_)) if is_wifi(to)),
        "{last:?}"
    );
}

/// The way of the operator fades, and comes back as any other.
#[test]
fn a_fault_of_the_way_before_is_no_reason_once_all_ways_are_sound() {
    let mut ground = Ground::new(EVERY, |path, now| {
        let fades = (1000..1500).contains(&now.since_origin().as_secs());
        (is_wifi(path) || !fades).then_some(20 * MS)
    });
    assert!(ground.paths.choose(Some(ip(CELL)), ground.now).is_ok());
    ground.take_step();
    ground.run_for(1400 * SECOND);
    let why = ground.paths.why();
    assert!(matches!(why, Why::Faded(_)), "{why:?}");
    ground.ways(&BOTH[..1]);
    ground.run_for(200 * SECOND);
    ground.ways(&BOTH);
    ground.run_for(200 * SECOND);
    assert_eq!(ground.paths.current(), path(WIFI, GATEWAY));
    assert_eq!(ground.paths.why(), Why::Route);
}

#[test]
fn a_hand_over_that_fails_stays_or_moves_with_a_pause() {
    for (failure, expected, after) in [
        (Failure::Silent, None, Standing::Silent),
        (Failure::Busy, None, Standing::Fresh),
        (
            Failure::Refused,
            Some(Step::Take(path(WIFI, GATEWAY))),
            Standing::Fresh,
        ),
    ] {
        let mut ground = Ground::new(Duration::ZERO, |_, _| None);
        ground.ways(&BOTH[1..]);
        ground.paths.handle_ways(&ways(&BOTH), ground.now);
        ground.paths.handle_timeout(ground.now + 2 * SECOND);
        let now = ground.now + 3 * SECOND;
        assert_eq!(
            ground.paths.poll_step(),
            Some(Step::HandOver(path(WIFI, GATEWAY)))
        );
        ground.paths.handle_not_handed_over(failure, now);
        assert_eq!(ground.paths.poll_step(), expected, "{failure:?}");
        assert_eq!(standing(&ground.paths, WIFI), after);
        if failure == Failure::Busy {
            ground.run_for(10 * SECOND);
            assert_eq!(
                ground.paths.current(),
                path(WIFI, GATEWAY),
                "another attempt"
            );
        }
    }
}

#[test]
fn what_an_operator_wants_without_a_pause_or_not_at_all_does_not_move_if_it_is_refused() {
    for or_hard in [false, true] {
        let mut ground = Ground::new(Duration::ZERO, |_, _| None);
        ground
            .paths
            .note_handing(path(CELL, GATEWAY), or_hard, ground.now);
        ground
            .paths
            .handle_not_handed_over(Failure::Refused, ground.now);
        let step = or_hard.then_some(Step::Take(path(CELL, GATEWAY)));
        assert_eq!(ground.paths.poll_step(), step);
    }
}

#[test]
fn a_way_that_is_gone_during_a_hand_over_is_left_at_once() {
    let mut ground = Ground::new(Duration::ZERO, |_, _| None);
    ground.ways(&BOTH[1..]);
    ground.run_for(100 * SECOND);
    ground.ways(&BOTH);
    ground.run_for(2 * SECOND + TAKES / 2);
    assert_eq!(ground.due.len(), 1, "the hand-over is under way");
    ground.ways(&BOTH[..1]);
    assert_eq!(ground.taken()[1..], [(path(WIFI, GATEWAY), Why::Route)]);
}

/// Ways come, go, fade and recover at random. The tunnel is never left on a way that is gone, and
/// no deadline stays due.
#[test]
fn random_walks_end_on_a_way_that_exists() {
    for seed in 0..200 {
        let mut random_ways = random(seed);
        let mut random_loss = random(seed + 1000);
        let loss = std::cell::Cell::new([0, 0]);
        let mut ground = Ground::new(EVERY, |path, _| {
            let lost = random_loss() % 100 < loss.get()[usize::from(is_wifi(path))];
            (!lost).then_some(20 * MS)
        });
        for _ in 0..100 {
            let here = match random_ways() % 4 {
                0 => &BOTH[..1],
                1 => &BOTH[1..],
                _ => &BOTH[..],
            };
            loss.set([random_ways() % 60, random_ways() % 60]);
            ground.ways(here);
            ground.run_for((random_ways() % 100) as u32 * SECOND);
            let current = ground.paths.current().local.ip();
            assert!(
                here.iter().any(|(local, _)| ip(local) == current),
                "seed {seed}"
            );
            let due = ground.paths.poll_timeout();
            assert!(
                due.is_none_or(|due| due.at >= ground.now),
                "seed {seed}: {due:?}"
            );
        }
        loss.set([0, 0]);
        ground.ways(&BOTH);
        ground.run_for(5000 * SECOND);
        assert_eq!(ground.paths.current(), path(WIFI, GATEWAY), "seed {seed}");
    }
}
