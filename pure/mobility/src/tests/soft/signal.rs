//! Ways that are left because an external source reports a weak signal.

use super::{BOTH, CELL, EVERY, GATEWAY, Ground, MS, OTHER, SECOND, TAKES, WIFI};
use super::{is_wifi, path, random, standing, ways};
use crate::{Failure, Standing, Step, Why};
use model::{Instant, Path};
use std::time::Duration;

/// A tunnel over two good ways, which were measured for a while.
fn good() -> Ground<impl FnMut(Path, Instant) -> Option<Duration>> {
    let mut ground = Ground::new(EVERY, |_, _| Some(20 * MS));
    ground.run_for(100 * SECOND);
    ground
}

impl<F: FnMut(Path, Instant) -> Option<Duration>> Ground<F> {
    /// Runs for a time in which a source reports the same signal every ten seconds.
    fn report_for(&mut self, local: &str, percent: u8, tens_of_seconds: u32) {
        for _ in 0..tens_of_seconds {
            self.signal(local, percent);
            self.run_for(10 * SECOND);
        }
    }
}

/// The control: the same time without a report, and with reports of good signals.
#[test]
fn nothing_moves_without_a_report_of_a_weak_signal() {
    let mut ground = good();
    ground.run_for(1000 * SECOND);
    ground.report_for(WIFI, 30, 100);
    ground.report_for(CELL, 0, 100);
    assert_eq!(ground.taken(), []);
}

#[test]
fn a_way_with_a_weak_signal_is_left_at_once_and_returned_to_when_it_is_good_again() {
    let mut ground = good();
    let reported = ground.now;
    ground.report_for(WIFI, 29, 10);
    assert_eq!(ground.taken(), [(path(CELL, GATEWAY), Why::Weak)]);
    assert_eq!(ground.moves[0].2, reported + TAKES);
    // Above the bound, but not by enough.
    ground.report_for(WIFI, 44, 100);
    assert_eq!(ground.moves.len(), 1);
    let good = ground.now;
    ground.report_for(WIFI, 45, 1);
    assert_eq!(ground.taken()[1..], [(path(WIFI, GATEWAY), Why::Route)]);
    assert_eq!(ground.moves[1].2, good + 2 * SECOND + TAKES);
    assert_eq!(ground.paths.why(), Why::Route);
}

#[test]
fn the_last_report_of_a_source_that_has_stopped_holds_for_half_a_minute() {
    let mut ground = good();
    ground.signal(WIFI, 0);
    let until = ground.now + 30 * SECOND;
    ground.run_for(29 * SECOND);
    assert_eq!(ground.paths.current(), path(CELL, GATEWAY));
    ground.run_for(10 * SECOND);
    assert_eq!(ground.taken()[1..], [(path(WIFI, GATEWAY), Why::Route)]);
    assert!(ground.moves[1].2 >= until + 2 * SECOND);
}

/// Without the hysteresis, each change would move the tunnel: 360 times.
#[test]
fn a_signal_that_swings_does_not_make_the_tunnel_flap() {
    let mut ground = good();
    for _ in 0..180 {
        ground.report_for(WIFI, 20, 1);
        ground.report_for(WIFI, 60, 1);
    }
    assert!(ground.moves.len() <= 12, "{:?}", ground.taken());
    // Noise around the bound is no change.
    let before = ground.moves.len();
    for percent in [28, 32, 35, 25, 31, 44, 29, 40] {
        ground.report_for(WIFI, percent, 2);
    }
    assert!(ground.moves.len() <= before + 1, "{:?}", ground.taken());
}

/// A weak way is not left for one that was weak a moment ago.
#[test]
fn two_signals_that_swing_in_turn_do_not_make_the_tunnel_flap() {
    let mut ground = good();
    for _ in 0..360 {
        for [weak, strong] in [[WIFI, CELL], [CELL, WIFI]] {
            ground.signal(weak, 10);
            ground.signal(strong, 80);
            ground.run_for(5 * SECOND);
        }
    }
    assert!(ground.moves.len() <= 6, "{:?}", ground.taken());
}

#[test]
fn a_weak_signal_is_no_reason_to_move_if_no_other_way_is_better() {
    // The other one is weak as well, dead, or not there.
    let mut both = good();
    both.signal(CELL, 10);
    both.report_for(WIFI, 5, 2);
    // Not even for the way that the routes prefer.
    both.ways(&[BOTH[1], BOTH[0]]);
    both.signal(CELL, 10);
    both.report_for(WIFI, 5, 2);
    let mut dead = Ground::new(EVERY, |path, _| is_wifi(path).then_some(20 * MS));
    dead.run_for(100 * SECOND);
    dead.report_for(WIFI, 5, 10);
    let mut alone = good();
    alone.ways(&BOTH[..1]);
    alone.report_for(WIFI, 5, 10);
    assert_eq!(both.taken(), []);
    assert_eq!(dead.taken(), []);
    assert_eq!(alone.taken(), []);
}

/// Loss is measured, a signal is a forecast.
#[test]
fn a_way_that_loses_requests_is_left_for_one_with_a_weak_signal() {
    let mut ground = Ground::new(EVERY, |path, now| {
        let fades = is_wifi(path) && now.since_origin() > 100 * SECOND;
        (!fades).then_some(20 * MS)
    });
    ground.run_for(100 * SECOND);
    ground.report_for(CELL, 10, 20);
    let taken = ground.taken();
    assert!(
        matches!(taken[..], [(to, Why::Faded(_))] if !is_wifi(to)),
        "{taken:?}"
    );
}

/// The default interval needs half a minute for three answers.
#[test]
fn another_way_is_measured_in_a_hurry_once_the_signal_is_weak() {
    let mut ground = Ground::new(EVERY, |_, _| Some(20 * MS));
    ground.ways(&BOTH[..1]);
    ground.report_for(WIFI, 10, 10);
    ground.ways(&BOTH);
    let came = ground.now;
    ground.report_for(WIFI, 10, 2);
    assert_eq!(ground.taken(), [(path(CELL, GATEWAY), Why::Weak)]);
    let after = ground.moves[0].2 - came;
    assert!(after < 10 * SECOND, "{after:?}");
}

#[test]
fn without_measurement_the_next_way_of_the_routes_is_tried_once() {
    let mut ground = Ground::new(Duration::ZERO, |_, _| None);
    let three = [BOTH[0], BOTH[1], (CELL, OTHER)];
    ground.ways(&three);
    ground.run_for(3 * SECOND);
    let weak = [super::ip(WIFI)].into();
    for (to, after) in [
        (path(CELL, GATEWAY), Standing::Silent),
        (path(CELL, OTHER), Standing::Silent),
    ] {
        ground.paths.handle_weak(&weak, ground.now);
        assert_eq!(ground.paths.poll_step(), Some(Step::HandOver(to)));
        let silent = Failure::Silent;
        ground.paths.handle_not_handed_over(silent, ground.now);
        assert_eq!(standing(&ground.paths, CELL), after);
    }
    ground.paths.handle_weak(&weak, ground.now);
    assert_eq!(ground.paths.poll_step(), None, "both were silent");
    assert_eq!(ground.paths.current(), path(WIFI, GATEWAY));
}

/// Without clones at both ends, a move has a pause, for which a forecast is no reason.
#[test]
fn a_tunnel_that_cannot_be_handed_over_stays() {
    let mut paths = super::super::tunnel();
    let weak = [super::ip(WIFI)].into();
    paths.handle_weak(&weak, Instant::ZERO);
    paths.handle_ways(&ways(&BOTH), Instant::ZERO);
    assert_eq!((paths.poll_step(), paths.poll_timeout()), (None, None));
    assert!(paths.candidates()[0].is_weak);
}

/// The network has two addresses. What is reported of it concerns both.
#[test]
fn a_weak_network_is_not_left_for_another_address_in_it() {
    let second = "192.168.1.3";
    let all = [BOTH[0], (second, GATEWAY), BOTH[1]];
    let mut ground = Ground::new(EVERY, |_, _| Some(20 * MS));
    ground.ways(&all);
    ground.run_for(100 * SECOND);
    let locals = [WIFI, second].map(super::ip);
    ground.signals.note(&locals, 20, None, ground.now);
    ground.follow_signals();
    ground.run_for(20 * SECOND);
    assert_eq!(ground.taken(), [(path(CELL, GATEWAY), Why::Weak)]);
}

/// A forecast is no reason for a pause, nor for a request each second.
#[test]
fn a_hand_over_that_the_peer_refuses_is_tried_again_after_a_minute_and_never_becomes_a_move() {
    let mut ground = good();
    let weak = [super::ip(WIFI)].into();
    let hand_over = Some(Step::HandOver(path(CELL, GATEWAY)));
    ground.paths.handle_weak(&weak, ground.now);
    assert_eq!(ground.paths.poll_step(), hand_over);
    let refused = ground.now;
    ground
        .paths
        .handle_not_handed_over(Failure::Refused, refused);
    let mut next = ground.paths.poll_step();
    while next != hand_over {
        assert!(matches!(next, None | Some(Step::Measure(_))), "{next:?}");
        ground.now += SECOND;
        assert!(ground.now - refused < 100 * SECOND, "not tried again");
        ground.paths.handle_weak(&weak, ground.now);
        next = ground.paths.poll_step();
    }
    assert!(ground.now - refused > 59 * SECOND);
    assert_eq!(ground.paths.current(), path(WIFI, GATEWAY));
}

#[test]
fn the_way_that_an_operator_chose_is_left_and_returned_to() {
    let mut ground = good();
    assert!(
        ground
            .paths
            .choose(Some(super::ip(CELL)), ground.now)
            .is_ok()
    );
    ground.take_step();
    ground.run_for(200 * SECOND);
    ground.report_for(CELL, 10, 1);
    ground.run_for(200 * SECOND);
    let [asked, weak, back] = [
        (path(CELL, GATEWAY), Why::Asked),
        (path(WIFI, GATEWAY), Why::Weak),
        (path(CELL, GATEWAY), Why::Asked),
    ];
    assert_eq!(ground.taken(), [asked, weak, back]);
}

#[test]
fn a_way_that_turns_weak_while_the_tunnel_goes_there_is_left_again() {
    let mut ground = good();
    ground.signal(WIFI, 10);
    ground.run_for(TAKES / 2);
    assert_eq!(ground.due.len(), 1, "the hand-over is under way");
    ground.signal(WIFI, 80);
    ground.signal(CELL, 10);
    ground.run_for(10 * SECOND);
    let last = ground.taken().last().copied();
    assert_eq!(last, Some((path(WIFI, GATEWAY), Why::Weak)));
}

#[test]
fn if_the_way_is_gone_the_next_one_is_a_good_one() {
    let three = [BOTH[0], BOTH[1], ("100.64.9.2", GATEWAY)];
    let mut ground = good();
    ground.ways(&three);
    ground.signal(CELL, 10);
    ground.ways(&three[1..]);
    assert_eq!(ground.taken(), [(path("100.64.9.2", GATEWAY), Why::Route)]);
}

/// Ways come and go while sources report at random. The tunnel is never left on a way that is
/// gone, and ends on the way of the routes once the sources are silent.
#[test]
fn random_reports_end_on_the_way_of_the_routes() {
    for seed in 0..100 {
        let mut random = random(seed);
        let mut ground = Ground::new(EVERY, |_, _| Some(20 * MS));
        for _ in 0..100 {
            let here = match random() % 4 {
                0 => &BOTH[..1],
                1 => &BOTH[1..],
                _ => &BOTH[..],
            };
            ground.ways(here);
            for local in [WIFI, CELL] {
                ground.signal(local, (random() % 101) as u8);
            }
            ground.run_for((random() % 40) as u32 * SECOND);
            let current = ground.paths.current().local.ip();
            let mut here = here.iter();
            assert!(
                here.any(|(local, _)| super::ip(local) == current),
                "seed {seed}"
            );
        }
        ground.ways(&BOTH);
        ground.run_for(500 * SECOND);
        assert_eq!(ground.paths.current(), path(WIFI, GATEWAY), "seed {seed}");
    }
}
