//! ECN through the tunnel: outer fields, inner fields, and forged marks (RFC 6040).

use crate::bench::*;
use crate::datagram::{TCP, UDP, segment, tcp, udp, v4, v6};
use esp::{DropReason, Packet, Report, Worker};
use model::{Instant, Mode};
use wire::checksum;
use wire::ecn::Ecn::{self, Ce, Ect0, Ect1, NotEct};
use wire::ip::Header;

const KINDS: [fn() -> Kind; 4] = [|| EXPLICIT, two_zones, three_zones, eight_zones];

fn datagrams() -> [Vec<u8>; 4] {
    let opaque = v4(50, &[7; 40]);
    [
        segment(),
        v6(TCP, &tcp(&[], b"x")),
        v6(UDP, &udp(b"x")),
        opaque,
    ]
}

fn with(ecn: Ecn, datagram: &[u8]) -> Vec<u8> {
    let mut datagram = datagram.to_vec();
    ecn.write(&mut datagram);
    datagram
}

/// The packet and its outer field.
fn sealed(worker: &mut Worker, datagram: &[u8]) -> (Vec<u8>, Ecn) {
    let mut outcome = Outcome::default();
    worker.seal(
        &mut [Packet::from_slice(datagram)],
        &mut outcome,
        Instant::ZERO,
    );
    (outcome.sent[0].clone(), outcome.marks[0])
}

/// Opens a datagram with one field, whose packet arrives with another.
fn opened(kind: &Kind, datagram: &[u8], inner: Ecn, outer: Ecn) -> Result<Vec<u8>, DropReason> {
    let (mut alice, mut bob) = pair(kind);
    let (packet, _) = sealed(&mut alice, &with(inner, datagram));
    open_marked(&mut bob, &packet, outer)
}

/// Figure 3, "normal mode". "Whatever the mode, an encapsulator forwards the inner header without
/// changing the ECN field."
#[test]
fn the_field_outside_is_that_inside() {
    for kind in KINDS.map(|kind| kind()) {
        for datagram in datagrams() {
            for ecn in Ecn::ALL {
                let (mut alice, mut bob) = pair(&kind);
                let datagram = with(ecn, &datagram);
                let (packet, outside) = sealed(&mut alice, &datagram);
                assert_eq!(outside, ecn);
                assert_eq!(open_marked(&mut bob, &packet, outside), Ok(datagram));
                assert_eq!(bob.counters().congestion, esp::Congestion::default());
            }
        }
    }
}

/// Each buffer has held a packet of another flow before.
#[test]
fn each_packet_of_a_batch_has_the_field_of_its_own_datagram() {
    let (mut alice, _) = pair(&EXPLICIT);
    let mut batch = [
        Packet::from_slice(&segment()),
        Packet::from_slice(&segment()),
    ];
    for marks in [[Ce, NotEct], [NotEct, Ect1], [Ect0, Ce]] {
        for (packet, ecn) in batch.iter_mut().zip(marks) {
            packet.fill(&with(ecn, &segment()));
        }
        let mut outcome = Outcome::default();
        alice.seal(&mut batch, &mut outcome, Instant::ZERO);
        assert_eq!(outcome.marks, marks);
    }
}

/// Every intersection of figure 4 as printed: rows are inner fields, columns outer ones.
// Refuses: ecn
#[test]
fn the_field_that_leaves_is_that_of_figure_4() {
    const OUTER: [Ecn; 4] = [NotEct, Ect0, Ect1, Ce];
    let rows = [
        (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
        (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
        (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
        (Ce, [Some(Ce), Some(Ce), Some(Ce), Some(Ce)]),
    ];
    for kind in KINDS.map(|kind| kind()) {
        for datagram in datagrams() {
            for (inner, row) in rows {
                for (outer, leaving) in OUTER.into_iter().zip(row) {
                    let leaving = leaving.map(|leaving| with(leaving, &datagram));
                    let leaving = leaving.ok_or(DropReason::Congested);
                    let came = opened(&kind, &datagram, inner, outer);
                    assert_eq!(came, leaving, "{inner:?} inside, {outer:?} outside");
                }
            }
        }
    }
}

#[test]
fn a_marked_datagram_has_right_checksums() {
    for kind in KINDS.map(|kind| kind()) {
        for datagram in [segment(), v6(TCP, &tcp(&[], b"x"))] {
            let came = opened(&kind, &datagram, Ect0, Ce).unwrap();
            let header = Header::parse(&came).unwrap();
            let (at, sum) = (header.header_len() + 16, checksum::of_transport(&header));
            assert!(header.checksum_is_right());
            assert_eq!(Some([came[at], came[at + 1]]), sum.map(u16::to_be_bytes));
        }
    }
}

/// "(!!!)" and "(!)" in figure 4: counted, but reported only once per SA. Otherwise an attacker who
/// changes outer fields could fill a log.
#[test]
fn currently_unused_combinations_are_counted_and_reported_once() {
    let (mut alice, mut bob) = pair(&EXPLICIT);
    let mut reports = Vec::new();
    for round in 1..=3 {
        for inner in Ecn::ALL {
            for outer in Ecn::ALL {
                let (packet, _) = sealed(&mut alice, &with(inner, &segment()));
                let _ = open_marked(&mut bob, &packet, outer);
            }
        }
        let counted = bob.counters().congestion;
        assert_eq!(
            counted.dangerous,
            4 * round,
            "three in its row, one in that of CE"
        );
        assert_eq!((counted.unused, counted.marked), (round, 2 * round));
        assert_eq!(bob.counters().dropped(DropReason::Congested), round);
        reports.extend(std::iter::from_fn(|| bob.poll_report()));
    }
    assert_eq!(reports, [Report::UnusedEcn(model::ChildSaId(1))]);
}

/// Eve marks packets as CE, forges packets and replays old ones, to slow a sender down or to alarm
/// an operator. Only authentic packets have an effect.
// Refuses: ecn
#[test]
fn the_field_of_a_forged_packet_says_nothing() {
    let (mut alice, mut bob) = pair(&EXPLICIT);
    let (packet, _) = sealed(&mut alice, &segment());
    assert!(open_marked(&mut bob, &packet, NotEct).is_ok());
    let again = open_marked(&mut bob, &packet, Ce);
    assert_eq!(again, Err(DropReason::Replayed));
    let (mut damaged, _) = sealed(&mut alice, &segment());
    damaged[20] ^= 1;
    let forged = open_marked(&mut bob, &damaged, Ce);
    assert_eq!(forged, Err(DropReason::BadIcv));
    assert_eq!(bob.counters().congestion, esp::Congestion::default());
    assert!(!bob.has_reports());
}

/// Eve can neither remove an earlier mark, nor deliver one to a transport that does not understand
/// it.
// Refuses: ecn
#[test]
fn no_field_outside_takes_a_mark_off_or_makes_a_transport_capable() {
    for outer in Ecn::ALL {
        let marked = opened(&EXPLICIT, &segment(), Ce, outer).unwrap();
        assert_eq!(Ecn::from_packet(&marked), Ce);
        let deaf = opened(&EXPLICIT, &segment(), NotEct, outer);
        assert!(deaf.is_err() || deaf == Ok(segment()));
    }
}

/// Without an inner header the outer field is the only one.
#[test]
fn transport_and_beet_mode_have_one_field_on_the_way() {
    let datagrams = [
        (["10.1.0.1/32", "10.8.0.1/32"], segment()),
        (["fd00:1::1/128", "fd00:8::1/128"], v6(UDP, &udp(b"x"))),
    ];
    for mode in [Mode::Transport, Mode::Beet] {
        for ([here, there], datagram) in &datagrams {
            for sent in Ecn::ALL {
                for came in Ecn::ALL {
                    let (mut alices, mut bobs) = (alices_sa(&EXPLICIT), bobs_sa(&EXPLICIT));
                    for sa in [&mut alices, &mut bobs] {
                        sa.mode = mode;
                    }
                    (alices.local, alices.remote) = (prefixes(&[here]), prefixes(&[there]));
                    (bobs.local, bobs.remote) = (prefixes(&[there]), prefixes(&[here]));
                    let (mut alice, mut bob) = (endpoint(alices), endpoint(bobs));
                    let (packet, outside) = sealed(&mut alice, &with(sent, datagram));
                    assert_eq!(outside, sent);
                    let opened = open_marked(&mut bob, &packet, came).unwrap();
                    assert_eq!(Ecn::from_packet(&opened), came);
                    assert!(Header::parse(&opened).unwrap().checksum_is_right());
                    assert_eq!(bob.counters().congestion, esp::Congestion::default());
                }
            }
        }
    }
}

/// A stream has no ECN field, so no packet in it was marked. The worker does not know the carrier.
#[test]
fn what_came_in_a_stream_leaves_as_it_was() {
    let (mut alice, mut bob) = pair(&two_zones());
    for ecn in Ecn::ALL {
        let datagram = with(ecn, &segment());
        let (packet, _) = sealed(&mut alice, &datagram);
        let mut batch = [Packet::from_slice(&packet)];
        let mut outcome = Outcome::default();
        bob.open(&mut batch, &mut outcome, Instant::ZERO);
        assert_eq!(outcome.delivered, [datagram]);
    }
}
