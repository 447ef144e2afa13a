//! Hostile input causes no panic, no unbounded memory and no suppressed payload.

mod world;

use model::Instant;
use pep::{Config, Side, Snoop, Verdict};
use proptest::prelude::*;
use std::time::Duration;
use wire::tcp::Flags;
use world::bench::{Bench, seq};
use world::packet::{Packet, downward, upward};

/// One step: a packet of any kind, near the others or far from them, or a lapse of time.
#[derive(Clone, Debug)]
enum Step {
    Packet {
        from: Side,
        port: u16,
        fresh: bool,
        highest: u32,
        packet: Packet,
    },
    Wait(u64),
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => (0_u32..40).prop_map(seq),
        2 => (0_u32..40_000).prop_map(|n| seq(0).wrapping_add(n)),
        1 => any::<u32>(),
    ]
}

fn packet() -> impl Strategy<Value = Packet> {
    let flags = prop_oneof![20 => Just(Flags::ACK), 1 => any::<u8>().prop_map(Flags)];
    let len = prop_oneof![4 => Just(1000_usize), 3 => Just(0), 1 => 0_usize..70_000];
    let window = prop_oneof![5 => Just(1000_u16), 1 => Just(0), 1 => any::<u16>()];
    let blocks = proptest::collection::vec((number(), number()), 0..5);
    let esp = prop_oneof![2 => Just(None), 3 => (0_u32..8000).prop_map(Some)];
    (number(), number(), flags, len, window, blocks, esp).prop_map(
        |(seq, ack, flags, len, window, blocks, esp)| {
            let mut packet = Packet::new(seq, ack, flags).window(window).payload(len);
            packet = packet.sack(&blocks);
            packet.esp_seq = esp;
            packet
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let side = prop_oneof![Just(Side::Wired), Just(Side::Wireless)];
    prop_oneof![
        9 => (side, 1_u16..9, any::<bool>(), 0_u32..10_000, packet()).prop_map(
            |(from, port, stale, highest, packet)| Step::Packet {
                from, port, fresh: !stale || port % 4 != 0, highest, packet,
            }),
        1 => (0_u64..1500).prop_map(Step::Wait),
    ]
}

fn small() -> Config {
    Config {
        flows: 5,
        packets_per_flow: 12,
        octets: 2_000,
        attempts: 4,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_limit_holds_and_nothing_that_carries_payload_is_suppressed(
        steps in proptest::collection::vec(step(), 1..250),
    ) {
        let mut snoop = Snoop::new(small());
        let mut now = Instant::ZERO;
        for step in steps {
            match step {
                Step::Wait(ms) => {
                    now += Duration::from_millis(ms);
                    snoop.handle_timeout(now);
                    let overdue = snoop.poll_timeout().is_some_and(|d| d.at < now);
                    prop_assert!(!overdue, "a deadline in the past would make the driver spin");
                }
                Step::Packet { from, port, fresh, highest, packet } => {
                    let flow = if from == Side::Wired { downward(port) } else { upward(port) };
                    let sealed = packet.sealed();
                    let mut segment = packet.segment(flow, &sealed, highest);
                    segment.fresh = fresh;
                    let verdict = snoop.handle_segment(from, &segment, now);
                    let carries = packet.payload_len > 0 || !fresh || from == Side::Wired;
                    prop_assert!(!carries || verdict == Verdict::Forward);
                }
            }
            let mut sent = 0;
            while let Some((_, sealed)) = snoop.poll_transmit() {
                Packet::unseal(&sealed);
                sent += 1;
            }
            prop_assert!(sent <= small().flows * (small().packets_per_flow + 2));
            prop_assert!(snoop.flows().count() <= small().flows);
            prop_assert!(snoop.flows().all(|f| f.packets <= small().packets_per_flow));
            prop_assert!(snoop.flows().map(|f| f.octets).sum::<usize>() <= small().octets);
        }
    }

    #[test]
    fn no_packet_is_sent_more_often_than_its_attempts(
        acks in proptest::collection::vec(
            (0_u32..12, proptest::collection::vec((0_u32..12, 0_u32..12), 0..4), 0_u64..400),
            1..200,
        ),
    ) {
        let mut bench = Bench::with(Config { attempts: 4, ..Config::default() });
        for n in 0..12 {
            bench.data(n);
        }
        let mut times = [0_u8; 12];
        for (ack, blocks, ms) in acks {
            bench.sack(ack, &blocks);
            bench.run(ms);
            for (side, packet) in bench.sent() {
                if side == Side::Wireless {
                    let n = packet.header().seq.0.wrapping_sub(seq(0)) / 1000;
                    times[n as usize] += 1;
                }
            }
        }
        prop_assert!(times.iter().all(|n| *n <= 4), "{times:?}");
    }
}

#[test]
fn a_flood_of_connections_is_bounded_and_harms_none_that_is_repaired_now() {
    let mut bench = Bench::with_data(5);
    for port in 2..20_000 {
        bench.port = port;
        bench.down(&Packet::data(seq(0), 10));
        if port % 100 == 0 {
            bench.port = 1;
            bench.later(1);
            bench.ack(9);
        }
    }
    assert!(bench.snoop.flows().count() <= Config::default().flows);
    bench.port = 1;
    assert_eq!(bench.ack(0), Verdict::Suppress, "whoever is in use stays");
}

// Weakness: S9
#[test]
fn forged_acknowledgements_cost_a_bounded_number_of_packets() {
    let mut bench = Bench::with_data(10);
    for _ in 0..10_000 {
        bench.ack(0);
    }
    let attempts = usize::from(Config::default().attempts);
    assert!(bench.sent().len() <= attempts);
    assert_eq!(bench.ack(0), Verdict::Forward, "then the sender decides");
}

#[test]
fn a_window_of_one_segment_and_one_of_a_gigabyte_work() {
    let mut bench = Bench::new();
    for n in 0..50 {
        bench.data(n);
        assert_eq!(bench.ack(n + 1), Verdict::Forward);
    }
    assert_eq!(bench.flow().packets, 0);
    let mut at = seq(50);
    for _ in 0..(1 << 30) / 60_000 {
        bench.down(&Packet::data(at, 60_000));
        at = at.wrapping_add(60_000);
    }
    assert_eq!(bench.flow().packets, Config::default().packets_per_flow);
    assert_eq!(bench.up(&Packet::ack(at)), Verdict::Forward);
    assert_eq!(bench.flow().packets, 0);
}
