//! Acknowledgements and timers, one scenario per test.

mod world;

use pep::{Config, Side, State, Verdict};
use std::time::Duration;
use wire::tcp::Flags;
use world::bench::{Bench, seq};
use world::packet::{CSA, Packet, WINDOW};

const FORWARD: Verdict = Verdict::Forward;
const SUPPRESS: Verdict = Verdict::Suppress;
const NONE: [u32; 0] = [];

#[test]
fn the_first_duplicate_has_the_hole_sent_again_and_none_reaches_the_sender() {
    let mut bench = Bench::with_data(10);
    for n in 1..10 {
        assert_eq!(bench.ack(0), SUPPRESS, "duplicate {n}");
        assert_eq!(bench.resent(), if n == 1 { vec![0] } else { vec![] });
    }
    assert_eq!(bench.flow().state, State::Repairing);
    assert_eq!(bench.ack(10), FORWARD);
    assert_eq!(
        (bench.flow().retransmitted, bench.flow().suppressed),
        (1, 9)
    );
}

#[test]
fn duplicates_beyond_the_expected_ones_show_that_the_retransmission_was_lost() {
    let mut bench = Bench::with_data(10);
    // Nine packets behind the hole, sent before its retransmission.
    for _ in 0..9 {
        bench.ack(0);
    }
    assert_eq!(bench.resent(), [0]);
    for n in 10..13 {
        bench.data(n);
    }
    // These packets were sent after the retransmission.
    bench.ack(0);
    bench.ack(0);
    assert_eq!(bench.resent(), [0]);
}

#[test]
fn a_partial_acknowledgement_has_the_next_hole_sent_again_at_once() {
    let mut bench = Bench::with_data(10);
    bench.ack(0);
    assert_eq!(bench.resent(), [0]);
    assert_eq!(bench.ack(4), FORWARD);
    assert_eq!(bench.resent(), [4]);
    assert_eq!(bench.ack(7), FORWARD);
    assert_eq!(bench.resent(), [7]);
    assert_eq!(bench.ack(10), FORWARD);
    assert_eq!(bench.flow().packets, 0);
}

#[test]
fn an_acknowledgement_without_losses_before_it_has_nothing_sent_again() {
    let mut bench = Bench::with_data(10);
    for n in 1..10 {
        assert_eq!(bench.ack(n), FORWARD);
    }
    assert_eq!(bench.resent(), NONE);
}

#[test]
fn sack_has_every_hole_sent_again_at_once_and_only_once() {
    let mut bench = Bench::with_data(12);
    assert_eq!(bench.sack(0, &[(1, 2)]), SUPPRESS);
    assert_eq!(bench.resent(), [0]);
    assert_eq!(bench.sack(0, &[(4, 5), (1, 2)]), SUPPRESS);
    assert_eq!(bench.resent(), [2, 3]);
    assert_eq!(bench.sack(0, &[(4, 6), (1, 2)]), SUPPRESS);
    assert_eq!(bench.sack(0, &[(7, 8), (4, 6), (1, 2)]), SUPPRESS);
    assert_eq!(bench.resent(), [6]);
}

#[test]
fn sack_of_a_later_packet_shows_that_a_retransmission_was_lost() {
    let mut bench = Bench::with_data(3);
    bench.sack(0, &[(1, 2)]);
    assert_eq!(bench.resent(), [0]);
    bench.data(3);
    bench.sack(0, &[(1, 3)]);
    assert_eq!(bench.resent(), NONE, "2 was sent before the retransmission");
    bench.sack(0, &[(1, 4)]);
    assert_eq!(bench.resent(), [0], "3 was sent after it");
}

#[test]
fn one_acknowledgement_has_no_more_than_a_burst_sent() {
    let mut bench = Bench::with_data(40);
    bench.sack(0, &[(30, 31)]);
    assert_eq!(bench.resent(), [0, 1, 2, 3]);
    bench.sack(0, &[(30, 32)]);
    assert_eq!(bench.resent(), [4, 5, 6, 7]);
}

#[test]
fn an_acknowledgement_that_reports_losses_under_repair_is_held_until_a_better_one_comes() {
    let mut bench = Bench::with_data(10);
    bench.sack(0, &[(1, 4), (5, 6)]);
    assert_eq!(bench.resent(), [0, 4]);
    bench.later(20);
    assert_eq!(bench.sack(4, &[(5, 6)]), SUPPRESS);
    bench.later(20);
    assert_eq!(bench.ack(6), FORWARD);
    bench.run(500);
    let up = bench
        .sent()
        .into_iter()
        .filter(|(side, _)| *side == Side::Wired);
    assert_eq!(up.count(), 0, "it was superseded");
    assert_eq!(bench.snoop.counters().held, 1);
}

#[test]
fn an_acknowledgement_is_held_no_longer_than_a_sender_can_bear() {
    let mut bench = Bench::with_data(10);
    bench.sack(0, &[(1, 4), (5, 6)]);
    bench.resent();
    let held = world::bench::sack(4, &[(5, 6)]);
    assert_eq!(bench.up(&held), SUPPRESS);
    bench.run(149);
    assert!(bench.sent().iter().all(|(side, _)| *side == Side::Wireless));
    bench.run(1);
    assert_eq!(bench.sent(), [(Side::Wired, held)]);
    assert_eq!(bench.sack(4, &[(5, 7)]), SUPPRESS, "a duplicate still is");
    bench.later(10);
    assert_eq!(
        bench.sack(6, &[(8, 9)]),
        SUPPRESS,
        "the next one has its own time"
    );
    bench.later(140);
    let better = world::bench::sack(7, &[(8, 9)]);
    assert_eq!(
        bench.up(&better),
        SUPPRESS,
        "it inherits what is left of it"
    );
    bench.run(10);
    assert!(bench.sent().contains(&(Side::Wired, better)));
}

#[test]
fn a_connection_that_gives_way_or_ends_lets_go_of_the_acknowledgement_it_holds() {
    let newer = |bench: &mut Bench| {
        bench.port = 2;
        bench.data(0);
    };
    let reset = |bench: &mut Bench| {
        bench.down(&Packet::data(seq(10), 0).flags(Flags::RST));
    };
    let endings: [fn(&mut Bench); 2] = [newer, reset];
    for end in endings {
        let mut bench = Bench::with(Config {
            flows: 1,
            ..Config::default()
        });
        (0..10).for_each(|n| bench.data(n));
        bench.ack(0);
        bench.sack(0, &[(1, 4), (5, 6)]);
        let held = world::bench::sack(4, &[(5, 6)]);
        assert_eq!(bench.up(&held), SUPPRESS);
        bench.sent();
        end(&mut bench);
        assert_eq!(bench.sent(), [(Side::Wired, held)]);
        assert_eq!(bench.snoop.counters().held, 1);
    }
}

#[test]
fn an_acknowledgement_that_reports_a_loss_of_the_senders_is_not_held() {
    let mut bench = Bench::with_data(3);
    for n in 4..8 {
        bench.data(n);
    }
    bench.sack(0, &[(1, 3), (4, 5)]);
    assert_eq!(bench.sack(3, &[(4, 5)]), FORWARD);
}

#[test]
fn an_acknowledgement_with_payload_is_never_suppressed_but_used() {
    let mut bench = Bench::with_data(10);
    assert_eq!(
        bench.up(&world::bench::sack(0, &[(1, 2)]).payload(1)),
        FORWARD
    );
    assert_eq!(bench.resent(), [0]);
    for flags in [Flags::FIN, Flags::URG] {
        let packet = Packet::ack(seq(0)).flags(Flags::ACK.union(flags));
        assert_eq!(bench.up(&packet), FORWARD);
    }
    let held = world::bench::sack(1, &[(3, 4)]).payload(1);
    assert_eq!(bench.up(&held), FORWARD);
}

// Weakness: 108
#[test]
fn a_window_update_is_no_duplicate() {
    let mut bench = Bench::with_data(5);
    assert_eq!(bench.up(&Packet::ack(seq(0)).window(2000)), FORWARD);
    assert_eq!(bench.resent(), NONE);
    assert_eq!(bench.up(&Packet::ack(seq(0)).window(2000)), SUPPRESS);
    let wider = world::bench::sack(0, &[(1, 2)]).window(3000);
    assert_eq!(bench.up(&wider), FORWARD, "with SACK too");
    assert_eq!(bench.up(&wider), SUPPRESS);
}

#[test]
fn answers_to_probes_of_a_closed_window_are_forwarded_and_nothing_is_sent() {
    let mut bench = Bench::with_data(5);
    for _ in 0..5 {
        assert_eq!(bench.up(&Packet::ack(seq(0)).window(0)), FORWARD);
    }
    bench.run(5000);
    assert_eq!(bench.resent(), NONE);
    assert_eq!(bench.ack(0), FORWARD, "the window opens");
    bench.run(2000);
    assert!(bench.resent().contains(&0));
}

#[test]
fn a_window_that_closes_or_opens_is_the_senders_to_know_even_with_sack() {
    let mut bench = Bench::with_data(5);
    let report = world::bench::sack(0, &[(1, 2)]);
    assert_eq!(bench.up(&report.clone().window(0)), FORWARD);
    assert_eq!(bench.up(&report), FORWARD, "it opens");
    assert_eq!(bench.up(&report), SUPPRESS);
}

#[test]
fn answers_to_keepalives_are_forwarded() {
    let mut bench = Bench::with_data(2);
    bench.ack(2);
    // A keepalive is below the acknowledgement and empty (RFC 1122 section 4.2.3.6).
    bench.down(&Packet::data(seq(2).wrapping_sub(1), 0));
    assert_eq!(bench.ack(2), FORWARD);
    bench.down(&Packet::data(seq(2).wrapping_sub(1), 1));
    assert_eq!(bench.ack(2), FORWARD);
}

#[test]
fn a_report_of_duplicates_is_no_loss() {
    let mut bench = Bench::with_data(2);
    bench.sack(0, &[(1, 2)]);
    bench.resent();
    for n in 2..6 {
        bench.data(n);
    }
    bench.ack(2);
    assert_eq!(bench.sack(2, &[(0, 1)]), FORWARD);
    assert_eq!(bench.ack(2), FORWARD);
    assert_eq!(bench.resent(), NONE);
}

#[test]
fn an_older_acknowledgement_is_forwarded_and_changes_nothing() {
    let mut bench = Bench::with_data(6);
    bench.ack(3);
    let before = bench.flow();
    assert_eq!(bench.ack(2), FORWARD);
    assert_eq!(bench.sack(1, &[(4, 5)]), FORWARD);
    assert_eq!((bench.flow(), bench.resent()), (before, vec![]));
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_changes_nothing() {
    let mut bench = Bench::with_data(6);
    let before = bench.flow();
    assert_eq!(bench.ack(7), FORWARD);
    assert_eq!(bench.flow(), before);
    assert_eq!(bench.snoop.counters().ack_beyond_data, 1);
}

#[test]
fn a_receiver_that_drops_what_it_reported_gets_it_again() {
    let mut bench = Bench::with_data(6);
    bench.sack(0, &[(1, 6)]);
    assert_eq!(bench.resent(), [0]);
    assert_eq!(bench.flow().packets, 6, "a report frees nothing");
    bench.ack(1);
    assert_eq!(bench.resent(), [1], "it asks for what it had");
}

#[test]
fn silence_has_the_oldest_sent_again_with_doubling_time_and_limited_attempts() {
    let mut bench = Bench::with(Config {
        attempts: 3,
        persist: Duration::from_secs(60),
        garbage: Duration::from_secs(60),
        ..Config::default()
    });
    bench.data(0);
    bench.data(1);
    let mut times = Vec::new();
    for ms in 1..5000_u32 {
        bench.run(1);
        times.extend(bench.resent().iter().map(|n| (*n, ms)));
    }
    assert_eq!(times, [(0, 100), (0, 300), (0, 700)]);
    bench.ack(0);
    assert_eq!(bench.ack(0), FORWARD, "now it is the sender's");
}

#[test]
fn acknowledgements_that_keep_coming_keep_the_timer_quiet() {
    let mut bench = Bench::with_data(50);
    // A queue of 50 packets drains at 6 ms each, so the last packet waits three times the timeout.
    for n in 1..=50 {
        bench.run(6);
        bench.ack(n);
    }
    assert_eq!(bench.resent(), NONE);
    assert!(bench.flow().srtt.unwrap() > Duration::from_millis(200));
}

#[test]
fn acknowledgements_of_repaired_packets_are_no_samples() {
    let mut bench = Bench::with_data(2);
    bench.later(10);
    bench.ack(1);
    let srtt = bench.flow().srtt;
    assert_eq!(srtt, Some(Duration::from_millis(10)));
    bench.data(2);
    bench.ack(1);
    assert_eq!(bench.resent(), [1]);
    bench.later(800);
    bench.ack(3);
    assert_eq!(bench.flow().srtt, srtt);
}

#[test]
fn a_second_of_silence_has_everything_sent_again_once() {
    let mut bench = Bench::with_data(5);
    bench.run(999);
    let alone = bench.resent();
    assert!(
        alone.iter().all(|n| *n == 0),
        "the timer sends the oldest only"
    );
    bench.run(1);
    assert_eq!(bench.resent(), [0, 1, 2, 3, 4]);
    bench.run(8000);
    assert!(bench.resent().iter().all(|n| *n == 0));
    assert_eq!(bench.snoop.counters().retransmitted_persist, 5);
}

#[test]
fn ten_seconds_of_silence_end_the_state() {
    let mut bench = Bench::with_data(2);
    bench.run(9999);
    assert_eq!(bench.snoop.flows().count(), 1);
    bench.run(1);
    assert_eq!(bench.snoop.flows().count(), 0);
    assert_eq!(bench.snoop.poll_timeout(), None);
    assert_eq!(bench.snoop.counters().flows_expired, 1);
}

#[test]
fn a_packet_half_the_replay_window_behind_is_not_sent_again() {
    for (behind, sent) in [(WINDOW / 2 - 1, 1), (WINDOW / 2, 0)] {
        let mut bench = Bench::new();
        bench.down(&Packet::data(seq(0), 100).esp(10));
        bench.port = 2;
        bench.down(&Packet::data(seq(0), 100).esp(10 + behind));
        bench.port = 1;
        bench.up(&Packet::ack(seq(0)).esp(1));
        let verdict = bench.up(&Packet::ack(seq(0)).esp(2));
        assert_eq!(bench.sent().len(), sent, "{behind} behind");
        assert_eq!(verdict == SUPPRESS, sent == 1, "else the sender has to");
        assert_eq!(bench.snoop.counters().too_old, 1 - sent as u64);
    }
}

#[test]
fn the_echo_of_a_copy_sent_on_suspicion_reaches_nobody_and_means_no_loss() {
    let mut bench = Bench::with_data(5);
    bench.run(100);
    assert_eq!(bench.resent(), [0]);
    bench.ack(3);
    assert_eq!(bench.ack(3), SUPPRESS, "the receiver had it twice");
    assert_eq!(bench.resent(), NONE);
    bench.ack(3);
    assert_eq!(bench.resent(), [3], "the next one is a loss");
}

#[test]
fn echoes_are_awaited_no_longer_because_other_data_was_acknowledged_since() {
    let mut bench = Bench::with_data(5);
    bench.run(100);
    assert_eq!(bench.resent(), [0]);
    bench.ack(3);
    bench.later(900);
    bench.ack(4);
    bench.later(200);
    assert_eq!(bench.ack(4), SUPPRESS);
    assert_eq!(bench.resent(), [4], "the copy arrived over a second ago");
}

/// RFC 3168 section 6.1.3, RFC 9768 section 3.2: the sender reacts to congestion marks and counts
/// them, so changed marks must reach it.
// Weakness: 108
#[test]
fn an_acknowledgement_with_other_congestion_marks_than_the_last_reaches_the_sender() {
    let marked = Flags::ACK.union(Flags::ECE);
    let changes: [fn(Packet) -> Packet; 3] = [
        |packet| packet.flags(Flags::ACK.union(Flags::ECE)),
        |packet| packet.flags(Flags::ACK.union(Flags::CWR)),
        Packet::accurate,
    ];
    for change in changes {
        let mut bench = Bench::with_data(10);
        assert_eq!(bench.sack(0, &[(1, 2)]), SUPPRESS);
        let report = change(world::bench::sack(0, &[(1, 3)]));
        assert_eq!(bench.up(&report), FORWARD);
        assert_eq!(bench.resent(), [0], "it is of use here all the same");
        assert_eq!(bench.up(&report), SUPPRESS, "that has been said");
        assert_eq!(bench.sack(0, &[(1, 4)]), FORWARD, "it is over");
    }
    let mut bench = Bench::with_data(10);
    bench.sack(0, &[(1, 4), (5, 6)]);
    assert_eq!(bench.sack(4, &[(5, 6)]), SUPPRESS);
    let advancing = world::bench::sack(6, &[(7, 8)]).flags(marked);
    assert_eq!(bench.up(&advancing), FORWARD);
    bench.run(500);
    let up = bench.sent();
    assert!(up.iter().all(|(side, _)| *side == Side::Wireless));
}

/// DATA_ACK of MPTCP (RFC 8684 section 3.3.2), counters of accurate ECN (RFC 9768 section 3.2.3),
/// and hidden options, which may be either.
// Weakness: 108
#[test]
fn an_acknowledgement_with_another_option_reaches_the_sender() {
    let data_ack = [30, 8, 0x20, 1, 0, 0, 0, 1];
    let counters = [172, 5, 0, 0, 1, 1, 1, 1];
    for options in [data_ack, counters] {
        let mut bench = Bench::with_data(10);
        let report = world::bench::sack(0, &[(1, 3)]).options(&options);
        assert_eq!(bench.up(&report), FORWARD);
        let advancing = world::bench::sack(4, &[(5, 6)]).options(&options);
        assert_eq!(bench.up(&advancing), FORWARD);
    }
    let mut bench = Bench::with_data(10);
    bench.hides = true;
    assert_eq!(bench.sack(0, &[(1, 3)]), FORWARD);
    bench.hides = false;
    let stamps = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    let report = world::bench::sack(0, &[(1, 3)]).options(&stamps);
    assert_eq!(bench.up(&report), SUPPRESS);
}

/// Returns a connection in a composite SA for which an acknowledgement is held, and that
/// acknowledgement.
fn holding() -> (Bench, Packet) {
    let mut bench = Bench::new();
    for n in 0..10 {
        bench.down(&Packet::data(seq(n), 1000).esp(n + 1));
    }
    bench.up(&Packet::ack(seq(0)).esp(1));
    bench.up(&world::bench::sack(0, &[(1, 4), (5, 6)]).esp(2));
    let held = world::bench::sack(4, &[(5, 6)]).esp(3);
    assert_eq!(bench.up(&held), SUPPRESS);
    bench.sent();
    (bench, held)
}

// Weakness: 110
#[test]
fn what_is_held_leaves_before_its_sa_is_forgotten() {
    let retire = |bench: &mut Bench| bench.snoop.retire(CSA);
    let forget = |bench: &mut Bench| {
        bench.forget();
        bench.snoop.retire(CSA);
    };
    let endings: [fn(&mut Bench); 2] = [retire, forget];
    for end in endings {
        let (mut bench, held) = holding();
        end(&mut bench);
        assert_eq!(bench.sent(), [(Side::Wired, held)]);
        assert_eq!(bench.snoop.counters().too_old, 0);
    }
    let (bench, held) = holding();
    let sent: Vec<_> = bench.snoop.close().collect();
    assert_eq!(sent, [(Side::Wired, held.sealed())]);
}

// Weakness: 110
#[test]
fn what_is_held_leaves_while_the_replay_window_still_takes_it() {
    let (mut bench, held) = holding();
    bench.port = 2;
    bench.up(&Packet::ack(seq(0)).esp(2 + WINDOW / 4));
    assert_eq!(bench.sent(), []);
    bench.up(&Packet::ack(seq(0)).esp(3 + WINDOW / 4));
    assert_eq!(bench.sent(), [(Side::Wired, held)]);
}
