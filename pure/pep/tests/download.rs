//! Whole downloads in virtual time: SNOOP helps where it should and does no harm elsewhere.

mod world;

use std::time::Duration;
use world::hop::{chance, exactly};
use world::packet::Packet;
use world::{Setup, download};

const SEEDS: std::ops::Range<u64> = 0..6;

#[test]
fn at_two_percent_loss_and_200_ms_it_triples_the_goodput_of_reno() {
    for sealed in [true, false] {
        let total = |snoop| {
            SEEDS
                .map(|seed| {
                    let outcome = download(Setup {
                        sealed,
                        ..Setup::new(snoop, chance(0.02, seed))
                    });
                    println!("{}", outcome.story());
                    outcome.goodput()
                })
                .sum::<f64>()
        };
        let (with, without) = (total(true), total(false));
        assert!(
            with >= 3.0 * without,
            "sealed {sealed}: {with} against {without}"
        );
    }
}

#[test]
fn with_sack_and_a_sender_that_undoes_nothing_it_doubles_the_goodput() {
    let total = |snoop| {
        SEEDS
            .map(|seed| {
                let setup = Setup {
                    sack: true,
                    ..Setup::new(snoop, chance(0.02, seed))
                };
                download(setup).goodput()
            })
            .sum::<f64>()
    };
    let (with, without) = (total(true), total(false));
    assert!(with >= 2.0 * without, "{with} against {without}");
}

#[test]
fn holding_acknowledgements_spares_a_sack_sender_recoveries() {
    let recoveries = |hold| {
        SEEDS
            .map(|seed| {
                let mut setup = Setup {
                    sack: true,
                    receive_window: 45,
                    ..Setup::new(true, chance(0.02, seed))
                };
                setup.config.hold = hold;
                let outcome = download(setup);
                assert_eq!(outcome.sender.timeouts, 0, "{}", outcome.story());
                outcome.sender.fast_retransmits
            })
            .sum::<u64>()
    };
    let (held, not) = (
        recoveries(Duration::from_millis(150)),
        recoveries(Duration::ZERO),
    );
    assert!(2 * held < not, "{held} against {not}");
}

#[test]
fn without_loss_it_changes_nothing_at_all() {
    for (sack, sealed) in [(false, false), (false, true), (true, false), (true, true)] {
        let run = |snoop| {
            download(Setup {
                sack,
                sealed,
                ..Setup::new(snoop, chance(0.0, 1))
            })
        };
        let (with, without) = (run(true), run(false));
        assert_eq!(with.took, without.took);
        assert_eq!(
            with.snoop.counters().suppressed + with.snoop.counters().held,
            0
        );
        assert_eq!(with.down.sent, without.down.sent, "no packet of its own");
    }
}

#[test]
fn the_sender_learns_of_no_single_loss() {
    for sack in [false, true] {
        for sealed in [false, true] {
            let outcome = download(Setup {
                sack,
                sealed,
                segments: 1000,
                ..Setup::new(true, exactly(&[30, 200, 201, 400, 650, 700]))
            });
            let sender = &outcome.sender;
            let saw = (
                sender.fast_retransmits,
                sender.timeouts,
                sender.retransmitted,
            );
            assert_eq!(
                saw,
                (0, 0, 0),
                "sack {sack} sealed {sealed}: {}",
                outcome.story()
            );
            assert_eq!(outcome.down.lost, 6);
        }
    }
}

#[test]
fn the_sender_learns_of_no_loss_of_many_packets_in_one_window() {
    for sack in [false, true] {
        let outcome = download(Setup {
            sack,
            segments: 1000,
            receive_window: 45,
            ..Setup::new(true, exactly(&[300, 302, 305, 306, 309, 312]))
        });
        let sender = &outcome.sender;
        let saw = (sender.fast_retransmits, sender.timeouts);
        assert_eq!(saw, (0, 0), "sack {sack}: {}", outcome.story());
    }
}

#[test]
fn the_last_packet_of_a_download_is_repaired_before_the_sender_notices() {
    for tail in [&[199][..], &[198, 199], &[197, 198, 199]] {
        let run = |snoop| {
            let tail = tail.to_vec();
            let loss = Box::new(move |_: &Packet, n| tail.contains(&n));
            download(Setup {
                segments: 200,
                ..Setup::new(snoop, loss)
            })
        };
        let (with, without) = (run(true), run(false));
        assert_eq!(with.sender.timeouts, 0, "{}", with.story());
        assert!(without.sender.timeouts > 0, "{}", without.story());
    }
}

// Recovers: snoop
#[test]
fn a_retransmission_that_is_lost_too_is_repaired_too() {
    // The retransmission of packet 100 follows the packets that were queued by then.
    let mut hits = 0;
    let loss = Box::new(move |packet: &Packet, _| {
        let hit = packet.header().seq.0 == 1 + 100 * 1372 && hits < 3;
        hits += u32::from(hit);
        hit
    });
    let outcome = download(Setup {
        segments: 600,
        receive_window: 45,
        ..Setup::new(true, loss)
    });
    assert_eq!(outcome.down.lost, 3);
    assert_eq!(outcome.sender.timeouts, 0, "{}", outcome.story());
}

#[test]
fn lost_acknowledgements_and_a_wrap_of_sequence_numbers_change_little() {
    for sack in [false, true] {
        let run = |snoop| {
            let mut n = 0;
            let lose_every_tenth = Box::new(move |_: &Packet, _| {
                n += 1;
                n % 10 == 0
            });
            download(Setup {
                sack,
                initial: u32::MAX - 1_000_000,
                ack_loss: lose_every_tenth,
                ..Setup::new(snoop, chance(0.02, 3))
            })
        };
        let (with, without) = (run(true), run(false));
        assert!(
            with.goodput() >= 2.0 * without.goodput(),
            "sack {sack}: {} / {}",
            with.story(),
            without.story()
        );
    }
}

#[test]
fn a_queue_that_overflows_in_slow_start_is_no_worse_than_without() {
    for sack in [false, true] {
        let run = |snoop| {
            download(Setup {
                sack,
                queue: 50,
                receive_window: 400,
                ..Setup::new(snoop, chance(0.0, 1))
            })
        };
        let (with, without) = (run(true), run(false));
        assert!(without.down.overflowed > 0, "the test needs an overflow");
        assert!(with.goodput() >= without.goodput(), "{}", with.story());
    }
}

// Recovers: snoop
#[test]
fn an_outage_of_three_seconds_is_survived() {
    for sack in [false, true] {
        let start = 500;
        let loss = Box::new(move |_: &Packet, n: u64| (start..start + 90).contains(&n));
        let outcome = download(Setup {
            sack,
            segments: 1500,
            receive_window: 45,
            ..Setup::new(true, loss)
        });
        assert!(outcome.sender.is_done());
        assert!(
            outcome.took < Duration::from_secs(40),
            "{}",
            outcome.story()
        );
    }
}
