//! Extended sequence numbers (RFC 4303 section 2.2.1 and appendix A): 64 bits; packets carry the
//! lower half.

use crate::bench::*;
use crate::datagram::segment;
use crypto::Rng;
use esp::{DropReason, Worker};
use model::{ChildSaId, EspSuite, Suite};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The first number with an upper half.
const CYCLE: u64 = 1 << 32;

/// The replay window of every plain SA.
const WINDOW: u64 = 4096;

const SA: ChildSaId = ChildSaId(1);

const ESN: Kind = extended(EspSuite::Encrypted(Suite::Aes256Gcm16), true);

const fn kind(suite: EspSuite, implicit_iv: bool, esn: bool) -> Kind {
    Kind::Plain {
        suite,
        implicit_iv,
        esn,
    }
}

const fn extended(suite: EspSuite, implicit_iv: bool) -> Kind {
    kind(suite, implicit_iv, true)
}

/// Every suite, with explicit and implicit IV.
fn forms() -> impl Iterator<Item = (EspSuite, bool)> {
    let explicit = EspSuite::all().map(|suite| (suite, false));
    let aeads = EspSuite::all().filter(|suite| suite.may_omit_iv());
    explicit.chain(aeads.map(|suite| (suite, true)))
}

/// Every kind of plain SA with extended numbers.
fn all() -> impl Iterator<Item = Kind> {
    forms().map(|(suite, implicit_iv)| extended(suite, implicit_iv))
}

/// Seals a packet with this number, which is above all earlier ones.
fn numbered(alice: &mut Worker, number: u64) -> Vec<u8> {
    alice.skip_to(SA, number - 1);
    seal(alice, &segment()).unwrap()
}

/// Both ends, after a packet with this number.
fn pair_at(kind: &Kind, number: u64) -> (Worker, Worker) {
    let (mut alice, mut bob) = pair(kind);
    for number in (CYCLE / 2..number).step_by(1 << 31).chain([number]) {
        open(&mut bob, &numbered(&mut alice, number)).unwrap();
    }
    (alice, bob)
}

fn highest(bob: &Worker) -> u64 {
    bob.sa_status().next().unwrap().highest_received
}

/// One packet in five is lost, one in five duplicated, and all are reordered.
// Recovers: esn
#[test]
fn packets_of_every_suite_cross_the_end_of_a_cycle_however_they_come() {
    for (seed, kind) in (0..).zip(all()) {
        let mut rng = Rng::from_seed([seed; 32]);
        let (mut alice, mut bob) = pair_at(&kind, CYCLE - 150);
        let packets: Vec<_> = (0..300)
            .map(|_| seal(&mut alice, &segment()).unwrap())
            .collect();
        let mut on_the_way: Vec<_> = packets
            .iter()
            .filter(|_| !rng.u16().is_multiple_of(5))
            .collect();
        let twice: Vec<_> = packets
            .iter()
            .filter(|_| rng.u16().is_multiple_of(5))
            .collect();
        on_the_way.extend(twice);
        for i in (1..on_the_way.len()).rev() {
            on_the_way.swap(i, usize::from(rng.u16()) % (i + 1));
        }
        let mut came = BTreeSet::new();
        for packet in on_the_way {
            let expected = match came.insert(packet) {
                true => Ok(segment()),
                false => Err(DropReason::Replayed),
            };
            assert_eq!(open(&mut bob, packet), expected, "{kind:?}");
        }
        let last = packets.iter().rposition(|packet| came.contains(packet));
        assert_eq!(highest(&bob), CYCLE - 149 + last.unwrap() as u64);
    }
}

/// The number on the wire is new again. The upper half is not, so the ICV does not verify.
#[test]
fn a_packet_of_the_cycle_before_is_no_packet_of_this_one() {
    for kind in all() {
        let (mut alice, mut bob) = pair(&kind);
        let kept = numbered(&mut alice, 7);
        assert_eq!(open(&mut bob, &kept), Ok(segment()));
        for number in [CYCLE / 2, CYCLE - 1, CYCLE + 5] {
            let packet = numbered(&mut alice, number);
            assert_eq!(open(&mut bob, &packet), Ok(segment()));
        }
        for _ in 0..3 {
            assert_eq!(open(&mut bob, &kept), Err(DropReason::BadIcv), "{kind:?}");
        }
        assert_eq!(highest(&bob), CYCLE + 5);
        let packet = numbered(&mut alice, CYCLE + 7);
        assert_eq!(packet[..8], kept[..8], "the same header");
        assert_eq!(open(&mut bob, &packet), Ok(segment()), "{kind:?}");
    }
}

/// An attacker changes the number of a packet, to low and high values.
#[test]
fn a_number_that_is_changed_on_the_way_moves_no_window() {
    for kind in all() {
        let (mut alice, mut bob) = pair_at(&kind, CYCLE - 3);
        let packet = seal(&mut alice, &segment()).unwrap();
        let near = (-3..=3_i32).map(|near| near as u32);
        let bits = (0..32).map(|bit| (u32::MAX - 1) ^ (1 << bit));
        for lower in near.chain(bits).filter(|lower| *lower != u32::MAX - 1) {
            let mut changed = packet.clone();
            changed[4..8].copy_from_slice(&lower.to_be_bytes());
            let why = open(&mut bob, &changed).unwrap_err();
            let known = lower == u32::MAX - 2;
            let expected = match known {
                true => DropReason::Replayed,
                false => DropReason::BadIcv,
            };
            assert_eq!(why, expected, "{lower:08x}");
        }
        assert_eq!(highest(&bob), CYCLE - 3);
        assert_eq!(open(&mut bob, &packet), Ok(segment()), "{kind:?}");
    }
}

/// RFC 4303 appendix A3 describes resynchronization, which is not implemented: a rekey restores
/// traffic.
// Recovers: esn
#[test]
fn who_lost_a_whole_cycle_counts_all_that_comes_then() {
    let least = CYCLE - WINDOW;
    for (gap, opens) in [
        (least, true),
        (least + 1, false),
        (CYCLE, false),
        (5 * CYCLE, false),
    ] {
        let (mut alice, mut bob) = pair_at(&ESN, 10_000);
        let packet = numbered(&mut alice, 10_000 + gap);
        assert_eq!(open(&mut bob, &packet).is_ok(), opens, "{gap}");
        if opens {
            continue;
        }
        for _ in 0..100 {
            let packet = seal(&mut alice, &segment()).unwrap();
            let why = open(&mut bob, &packet).unwrap_err();
            assert!([DropReason::BadIcv, DropReason::Replayed].contains(&why));
        }
        assert_eq!(highest(&bob), 10_000, "nothing was believed");
    }
}

#[test]
fn who_has_no_extended_numbers_opens_nothing_of_who_has() {
    for (suite, implicit_iv) in forms() {
        let [with, without] = [true, false].map(|esn| kind(suite, implicit_iv, esn));
        for (sender, receiver) in [(&with, &without), (&without, &with)] {
            let (mut alice, mut bob) = (pair(sender).0, pair(receiver).1);
            let packet = seal(&mut alice, &segment()).unwrap();
            assert_eq!(open(&mut bob, &packet), Err(DropReason::BadIcv), "{with:?}");
        }
    }
}

/// With an upper half of zero a packet has the same length, but other content.
#[test]
fn extended_numbers_make_no_packet_longer() {
    for (suite, implicit_iv) in forms() {
        let [with, without] = [true, false].map(|esn| {
            let mut alice = pair(&kind(suite, implicit_iv, esn)).0;
            seal(&mut alice, &segment()).unwrap()
        });
        assert_eq!((with.len(), &with[..8]), (without.len(), &without[..8]));
        assert_ne!(with, without);
    }
}

/// Arriving packets, by the distance of their numbers from the last one sent.
fn journey() -> impl Strategy<Value = Vec<(u64, Option<u16>)>> {
    let ahead = prop_oneof![
        6 => 1..200_u64,
        2 => 1..2 * WINDOW,
        1 => CYCLE / 2 - WINDOW..CYCLE - 2 * WINDOW,
    ];
    // A packet delayed for long, if there is one.
    proptest::collection::vec((ahead, proptest::option::of(any::<u16>())), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// With any loss, delay or duplication, exactly the packets open that are new and not left of
    /// the window.
    #[test]
    fn what_opens_is_what_a_window_of_64_bits_says(journey in journey(), steps in journey()) {
        let (mut alice, mut bob) = pair(&ESN);
        let (mut sent, mut seen) = (Vec::new(), BTreeSet::new());
        let mut number = 0;
        for (ahead, late) in journey.into_iter().chain(steps) {
            number += ahead;
            sent.push((number, numbered(&mut alice, number)));
            let which = late.map_or(sent.len() - 1, |late| usize::from(late) % sent.len());
            let (number, packet) = &sent[which];
            let highest = seen.last().copied().unwrap_or(0_u64);
            let bottom = highest.saturating_sub(WINDOW - 1);
            let lost = number.saturating_sub(bottom) >= CYCLE;
            let old = *number + WINDOW <= highest;
            let expected = !lost && !old && !seen.contains(number);
            let opened = open(&mut bob, packet);
            prop_assert_eq!(opened.is_ok(), expected, "{} after {}: {:?}", number, highest, opened);
            if expected {
                seen.insert(*number);
            }
            prop_assert_eq!(crate::esn::highest(&bob), seen.last().copied().unwrap_or(0));
        }
    }
}
