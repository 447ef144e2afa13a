//! Data segments, one scenario per test.

mod world;

use pep::{Config, State, Verdict};
use std::time::Duration;
use wire::tcp::Flags;
use world::bench::{Bench, LEN, seq};
use world::packet::Packet;

#[test]
fn data_in_order_is_cached_until_it_is_acknowledged() {
    let mut bench = Bench::with_data(5);
    assert_eq!((bench.flow().packets, bench.flow().state), (5, State::Open));
    assert_eq!(bench.ack(3), Verdict::Forward);
    assert_eq!(bench.flow().packets, 2);
    bench.ack(5);
    assert_eq!((bench.flow().packets, bench.flow().octets), (0, 0));
}

#[test]
fn a_retransmission_is_the_packet_exactly_as_it_came() {
    let mut bench = Bench::with_data(0);
    let first = Packet::data(seq(0), 700).esp(41);
    bench.down(&first);
    bench.down(&Packet::data(seq(0) + 700, 700).esp(42));
    bench.up(&Packet::ack(seq(0)).esp(1));
    bench.up(&Packet::ack(seq(0)).esp(2));
    let sent = bench.sent();
    assert_eq!(sent, [(pep::Side::Wireless, first)]);
}

#[test]
fn data_that_the_receiver_has_is_not_cached_and_the_sender_sees_the_next_acknowledgement() {
    let mut bench = Bench::with_data(4);
    bench.ack(2);
    bench.data(1);
    assert_eq!(bench.flow().packets, 2);
    assert_eq!(bench.snoop.counters().already_acknowledged, 1);
    assert_eq!(bench.ack(2), Verdict::Forward, "the sender waits for it");
    assert_eq!(bench.resent(), [0; 0], "an echo is no loss");
    assert_eq!(bench.ack(2), Verdict::Suppress);
    assert_eq!(bench.resent(), [2]);
}

#[test]
fn what_the_sender_sends_again_has_its_duplicates_forwarded() {
    let mut bench = Bench::with_data(4);
    bench.data(0);
    assert_eq!(bench.snoop.counters().sender_retransmissions, 1);
    assert_eq!(bench.flow().packets, 4);
    assert_eq!(bench.ack(0), Verdict::Forward);
}

#[test]
fn what_the_sender_sends_again_takes_the_place_of_the_older_packet() {
    let mut bench = Bench::new();
    bench.down(&Packet::data(seq(0), 500).esp(1));
    bench.down(&Packet::data(seq(0), 500).esp(9));
    bench.run(100);
    let sent = bench.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].1.esp_seq, Some(9));
}

#[test]
fn a_hole_that_never_came_here_is_the_senders() {
    let mut bench = Bench::with_data(2);
    bench.data(3);
    bench.data(4);
    bench.ack(2);
    for _ in 0..3 {
        assert_eq!(bench.ack(2), Verdict::Forward);
    }
    assert_eq!(bench.resent(), [0; 0]);
    bench.data(2);
    assert_eq!(bench.ack(2), Verdict::Forward, "its recovery needs them");
}

#[test]
fn a_packet_overtaken_on_the_wired_side_is_not_sent_again_for_that() {
    let mut bench = Bench::with_data(1);
    for n in [2, 3, 1, 4] {
        bench.data(n);
    }
    bench.ack(1);
    assert_eq!(bench.ack(1), Verdict::Forward);
    assert_eq!(bench.ack(1), Verdict::Forward);
    assert_eq!(bench.resent(), [0; 0]);
}

#[test]
fn segments_cut_differently_do_not_overlap_in_the_cache() {
    let mut bench = Bench::with_data(3);
    bench.down(&Packet::data(seq(0) + 500, 2000));
    bench.down(&Packet::data(seq(1), 2000));
    assert_eq!(bench.flow().packets, 3);
    assert_eq!(bench.ack(0), Verdict::Forward, "the sender is at it");
}

#[test]
fn a_full_cache_keeps_the_oldest_and_leaves_the_rest_to_the_sender() {
    let mut bench = Bench::with(Config {
        packets_per_flow: 3,
        ..Config::default()
    });
    for n in 0..6 {
        bench.data(n);
    }
    assert_eq!(bench.flow().packets, 3);
    assert_eq!(bench.snoop.counters().cache_full, 3);
    bench.ack(4);
    assert_eq!(bench.ack(4), Verdict::Forward);
}

#[test]
fn the_limit_of_octets_holds_for_all_connections_together() {
    let packet = Packet::data(seq(0), LEN as usize).sealed().len();
    let mut bench = Bench::with(Config {
        octets: 5 * packet,
        ..Config::default()
    });
    for port in 1..=4 {
        bench.port = port;
        bench.data(0);
        bench.data(1);
    }
    let octets: usize = bench.snoop.flows().map(|flow| flow.octets).sum();
    assert_eq!(octets, 5 * packet);
    assert_eq!(bench.snoop.counters().flows_evicted, 0, "all are in use");
    bench.later(1000);
    bench.data(2);
    let octets: usize = bench.snoop.flows().map(|flow| flow.octets).sum();
    assert!(octets <= 5 * packet);
    assert!(
        bench.snoop.counters().flows_evicted > 0,
        "the silent ones give way"
    );
    assert!(
        bench
            .snoop
            .flows()
            .any(|flow| flow.flow.destination_port == 4 && flow.packets > 0)
    );
}

#[test]
fn the_least_recently_used_connection_gives_way_to_the_sixty_fifth() {
    let mut bench = Bench::with(Config {
        flows: 64,
        ..Config::default()
    });
    for port in 1..=64 {
        (bench.port, bench.now) = (port, bench.now + Duration::from_millis(1));
        bench.data(0);
    }
    (bench.port, bench.now) = (1, bench.now + Duration::from_millis(1));
    bench.data(1);
    bench.port = 65;
    bench.data(0);
    let ports: Vec<_> = bench
        .snoop
        .flows()
        .map(|f| f.flow.destination_port)
        .collect();
    assert_eq!(ports.len(), 64);
    assert!(ports.contains(&1) && ports.contains(&65) && !ports.contains(&2));
}

#[test]
fn syn_and_rst_of_either_side_end_the_state() {
    for flags in [Flags::SYN, Flags::SYN.union(Flags::ACK), Flags::RST] {
        let mut bench = Bench::with_data(2);
        bench.down(&Packet::new(seq(0), 0, flags));
        assert_eq!(bench.snoop.flows().count(), 0);
        let mut bench = Bench::with_data(2);
        bench.up(&Packet::new(1, seq(0), flags));
        assert_eq!(bench.snoop.flows().count(), 0);
    }
}

#[test]
fn a_fin_is_repaired_like_data_and_its_acknowledgement_ends_the_state() {
    let mut bench = Bench::with_data(2);
    let fin = Packet::new(seq(2), 1, Flags::FIN.union(Flags::ACK));
    bench.down(&fin);
    assert_eq!(
        (bench.flow().packets, bench.flow().state),
        (3, State::Closing)
    );
    bench.ack(2);
    bench.run(150);
    assert_eq!(bench.sent(), [(pep::Side::Wireless, fin)]);
    let all = Packet::ack(seq(2).wrapping_add(1));
    assert_eq!(bench.up(&all), Verdict::Forward);
    assert_eq!(bench.snoop.flows().count(), 0);
}

#[test]
fn segments_without_sequence_space_make_no_state() {
    let mut bench = Bench::new();
    bench.down(&Packet::data(seq(0), 0));
    bench.up(&Packet::ack(seq(0)));
    assert_eq!(bench.snoop.flows().count(), 0);
    assert_eq!(bench.snoop.poll_timeout(), None);
}

#[test]
fn a_packet_that_is_not_fresh_changes_nothing_and_is_forwarded() {
    let mut bench = Bench::with_data(3);
    let before = bench.flow();
    bench.fresh = false;
    bench.data(3);
    assert_eq!(bench.ack(0), Verdict::Forward);
    assert_eq!(bench.ack(3), Verdict::Forward);
    bench.up(&Packet::new(1, 0, Flags::RST));
    assert_eq!(bench.flow(), before);
    assert_eq!(bench.resent(), [0; 0]);
    assert_eq!(bench.snoop.counters().not_fresh, 4);
}

#[test]
fn data_half_the_sequence_space_away_touches_nothing() {
    let mut bench = Bench::with_data(2);
    let before = bench.flow();
    for far in [1 << 30, 1 << 31, (3 << 30) - 10] {
        bench.down(&Packet::data(seq(0).wrapping_add(far + 5), 100));
    }
    assert_eq!(bench.flow(), before);
    assert_eq!(bench.snoop.counters().out_of_window, 3);
}

#[test]
fn a_connection_whose_acknowledgements_take_another_way_is_not_cached() {
    let mut bench = Bench::new();
    for n in 0..40 {
        bench.data(n);
        bench.later(50);
    }
    assert_eq!(bench.flow().state, State::AcksElsewhere);
    assert_eq!(bench.flow().packets, 0);
    bench.run(3000);
    assert_eq!(bench.resent(), [0; 0]);
    bench.ack(30);
    bench.data(40);
    assert_eq!((bench.flow().state, bench.flow().packets), (State::Open, 1));
}

#[test]
fn an_outage_is_no_other_way() {
    let mut bench = Bench::with_data(40);
    bench.run(5000);
    bench.data(0);
    assert_eq!(bench.flow().packets, 40);
    assert_ne!(bench.flow().state, State::AcksElsewhere);
}

#[test]
fn a_composite_sa_is_forgotten_with_all_its_connections_and_no_other() {
    let mut bench = Bench::with_data(2);
    bench.port = 2;
    bench.down(&Packet::data(seq(0), 100).esp(1));
    assert_eq!(bench.snoop.flows().count(), 2);
    bench.forget();
    assert_eq!((bench.flow().line, bench.flow().packets), (None, 2));
    bench.run(99);
    bench.down(&Packet::data(seq(2), 100));
    bench.ack(2);
}

#[test]
fn another_sa_with_the_same_addresses_touches_nothing() {
    let mut bench = Bench::with_data(3);
    assert_eq!(bench.up(&Packet::ack(seq(3)).esp(1)), Verdict::Forward);
    bench.up(&Packet::new(1, 0, Flags::RST).esp(2));
    assert_eq!(bench.flow().packets, 3);
}

// Weakness: 109
#[test]
fn one_lines_connections_push_out_none_of_another_line() {
    let mut bench = Bench::with(Config {
        flows: 8,
        ..Config::default()
    });
    bench.down(&Packet::data(seq(0), 100).esp(1));
    for port in 2..100 {
        bench.later(1);
        bench.port = port;
        bench.data(0);
    }
    assert_eq!(bench.snoop.flows().count(), 8);
    assert!(bench.snoop.flows().any(|flow| flow.line.is_some()));
}

/// A gateway chooses how many lines it has. Negative control: where all lines are of one gateway,
/// the largest gives way.
// Weakness: 174
#[test]
fn a_gateway_of_many_lines_pushes_out_no_connection_of_another_gateway() {
    for (owner, keeps) in [(1, true), (2, false)] {
        let mut bench = Bench::new();
        let honest = line(owner, 1);
        bench.line = honest;
        for port in 0..32 {
            bench.port = port;
            bench.down(&Packet::data(seq(0), 100).esp(1));
        }
        for port in 0..64 {
            for csa in 2..258 {
                (bench.line, bench.port) = (line(2, csa), port);
                bench.down(&Packet::data(seq(0), 100).esp(1));
            }
        }
        let of_honest = |flow: &pep::FlowStatus| flow.line == Some(honest);
        let kept = bench.snoop.flows().filter(of_honest).count();
        assert_eq!(kept == 32, keeps, "{kept}");
        assert!(bench.snoop.flows().count() <= Config::default().flows);
    }
}

/// The same for octets.
// Weakness: 174
#[test]
fn a_gateway_of_many_lines_leaves_room_for_the_octets_of_another_gateway() {
    let packet = Packet::data(seq(0), LEN as usize).sealed().len();
    for (owner, keeps) in [(1, true), (2, false)] {
        let mut bench = Bench::with(Config {
            octets: 64 * packet,
            ..Config::default()
        });
        let honest = line(owner, 1);
        bench.line = honest;
        for port in 0..8 {
            bench.port = port;
            bench.down(&Packet::data(seq(0), LEN as usize).esp(1));
        }
        bench.later(1);
        for csa in 2..258 {
            bench.line = line(2, csa);
            bench.down(&Packet::data(seq(0), LEN as usize).esp(1));
        }
        let of_honest = |flow: &pep::FlowStatus| flow.line == Some(honest) && flow.packets == 1;
        let kept = bench.snoop.flows().filter(of_honest).count();
        assert_eq!(kept == 8, keeps, "{kept}");
        let octets: usize = bench.snoop.flows().map(|flow| flow.octets).sum();
        assert_eq!(octets, 64 * packet);
    }
}

fn line(owner: u64, csa: u64) -> pep::Line {
    pep::Line {
        owner: pep::Owner(owner),
        csa: model::CsaId(csa),
    }
}

// Weakness: 109
#[test]
fn one_lines_octets_leave_room_for_those_of_another_line() {
    let packet = Packet::data(seq(0), LEN as usize).sealed().len();
    let mut bench = Bench::with(Config {
        octets: 5 * packet,
        ..Config::default()
    });
    for port in 1..=5 {
        bench.port = port;
        bench.data(0);
    }
    bench.later(1);
    bench.down(&Packet::data(seq(0), LEN as usize).esp(1));
    let sealed = |flow: &pep::FlowStatus| flow.line.is_some() && flow.packets == 1;
    assert_eq!(bench.snoop.flows().filter(sealed).count(), 1);
    let octets: usize = bench.snoop.flows().map(|flow| flow.octets).sum();
    assert_eq!(octets, 5 * packet);
}
