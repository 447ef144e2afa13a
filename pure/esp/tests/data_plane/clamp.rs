//! MSS clamping: TCP connections through a tunnel have segments that fit it, whichever end clamps.

use crate::bench::*;
use crate::datagram::{TCP, UDP, tcp, udp, v4, v6};
use crate::mode::{BOTH, V4, moded};
use esp::Worker;
use wire::checksum;
use wire::ip::Header;
use wire::tcp::{self, OptionValue};
use wire::zoned::ONE_FIELD_LEN;

const MTU: u16 = 1380;
const KINDS: [fn() -> Kind; 3] = [|| EXPLICIT, two_zones, eight_zones];

/// A SYN that offers 1460 octets.
fn syn() -> Vec<u8> {
    let mut segment = tcp(&[2, 4, 5, 0xb4, 1, 3, 3, 7], b"");
    segment[13] = 0x02;
    segment
}

fn offered(datagram: &[u8]) -> u16 {
    let header = Header::parse(datagram).unwrap();
    let sum = checksum::of_transport(&header).unwrap();
    assert_eq!(header.payload()[16..18], sum.to_be_bytes());
    let segment = tcp::Header::parse(header.payload()).unwrap();
    match segment.options().next().unwrap().unwrap().value {
        OptionValue::Mss(size) => size,
        other => panic!("{other:?}"),
    }
}

/// Sends a datagram through both workers, each with a clamp MTU or none. Also returns the segments
/// that each has lowered.
fn passed([alice, bob]: [Option<u16>; 2], kind: &Kind, datagram: &[u8]) -> (Vec<u8>, [u64; 2]) {
    let (mut a, mut b) = pair(kind);
    a.set_clamp(alice);
    b.set_clamp(bob);
    let packet = seal(&mut a, datagram).unwrap();
    let came = open(&mut b, &packet).unwrap();
    let counted = |worker: &Worker| worker.counters().clamped;
    (came, [counted(&a), counted(&b)])
}

#[test]
fn either_end_lowers_what_enters_and_what_leaves() {
    for kind in KINDS.map(|kind| kind()) {
        for (datagram, fits) in [(v4(TCP, &syn()), 1340), (v6(TCP, &syn()), 1320)] {
            for (ends, lowered) in [
                ([Some(MTU), None], [1, 0]),
                ([None, Some(MTU)], [0, 1]),
                ([Some(MTU); 2], [1, 0]),
                ([Some(1480), Some(MTU)], [1, 1]),
            ] {
                let (came, counted) = passed(ends, &kind, &datagram);
                assert_eq!((offered(&came), counted), (fits, lowered), "{ends:?}");
            }
        }
    }
}

#[test]
fn without_it_a_connection_is_as_its_ends_agree() {
    for kind in KINDS.map(|kind| kind()) {
        let datagram = v4(TCP, &syn());
        assert_eq!(passed([None; 2], &kind, &datagram), (datagram, [0; 2]));
    }
}

#[test]
fn what_begins_no_connection_passes_as_it_is() {
    let options = [2, 4, 5, 0xb4];
    for datagram in [v4(TCP, &tcp(&options, b"x")), v4(UDP, &udp(&syn()))] {
        let came = passed([Some(MTU); 2], &EXPLICIT, &datagram);
        assert_eq!(came, (datagram, [0; 2]));
    }
}

#[test]
fn in_transport_and_beet_mode_it_is_the_same() {
    for mode in BOTH {
        for kind in KINDS.map(|kind| kind()) {
            for clamped in [[Some(MTU), None], [None, Some(MTU)]] {
                let [mut alice, mut bob] = moded(mode, &kind, V4).map(endpoint);
                alice.set_clamp(clamped[0]);
                bob.set_clamp(clamped[1]);
                let packet = seal(&mut alice, &v4(TCP, &syn())).unwrap();
                assert_eq!(offered(&open(&mut bob, &packet).unwrap()), 1340);
            }
        }
    }
}

/// A datagram that no SA carries is dropped unchanged and does not count as lowered.
#[test]
fn what_is_dropped_is_not_counted() {
    let (mut alice, mut bob) = pair(&EXPLICIT);
    bob.set_clamp(Some(MTU));
    let mut packet = seal(&mut alice, &v4(TCP, &syn())).unwrap();
    packet[20] ^= 1;
    assert!(open(&mut bob, &packet).is_err());
    assert_eq!(bob.counters().clamped, 0);
}

/// A writer appends to packets that are already full.
#[test]
fn segments_leave_room_for_what_a_writer_appends() {
    let kind = two_zones();
    let (mut alice, mut bob) = (
        endpoint(with_writers(alices_sa(&kind))),
        endpoint(with_writers(bobs_sa(&kind))),
    );
    for (clamping, other) in [(0, 1), (1, 0)] {
        let clamps = [Some(MTU), None];
        alice.set_clamp(clamps[clamping]);
        bob.set_clamp(clamps[other]);
        let packet = seal(&mut alice, &v4(TCP, &syn())).unwrap();
        let came = open(&mut bob, &packet).unwrap();
        assert_eq!(offered(&came), 1340 - ONE_FIELD_LEN as u16);
    }
}
