//! A licensed node may repeat the acknowledgements of an end. Anything beyond that is dropped.

use crate::bench::*;
use crate::datagram::{TCP, UDP, segment, tcp, udp, v4, v4_with, v6};
use crate::licensed::grant;
use crate::mode::{BOTH, V4, moded};
use esp::{DropReason, Licensed, NotOpened, NotWritten, Report, Scratch, Worker, grant_key};
use model::{ChildSaId, CsaId, Instant, Mode, ZoneSuite};
use proptest::prelude::*;
use std::time::Duration;
use wire::ecn::Ecn;

/// The sequence number, acknowledgement, window, timestamps and payload length of `segment()`.
const SEQ: u32 = 0x0102_0304;
const ACK: u32 = 0x0506_0708;
const WINDOW: u16 = 0x7210;
const STAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
const CARRIED: u32 = 40;

/// The next header of an IPv4 datagram.
const IN_IPV4: u8 = 4;

/// A bare acknowledgement on the connection of `segment()`.
#[derive(Clone)]
struct LastSent {
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    options: Vec<u8>,
    payload: &'static [u8],
}

/// A change to an acknowledgement.
type Change = fn(&mut LastSent);

/// Alice's own acknowledgement after `segment()`.
fn last() -> LastSent {
    LastSent {
        seq: SEQ + CARRIED,
        ack: ACK,
        flags: 0x10,
        window: WINDOW,
        options: STAMPS.to_vec(),
        payload: b"",
    }
}

impl LastSent {
    fn tcp(&self) -> Vec<u8> {
        let mut segment = tcp(&self.options, self.payload);
        segment[4..8].copy_from_slice(&self.seq.to_be_bytes());
        segment[8..12].copy_from_slice(&self.ack.to_be_bytes());
        segment[13] = self.flags;
        segment[14..16].copy_from_slice(&self.window.to_be_bytes());
        segment
    }

    fn datagram(&self) -> Vec<u8> {
        v4(TCP, &self.tcp())
    }

    /// The acknowledgement as a node seals it: without a checksum.
    fn text(&self) -> Vec<u8> {
        let mut datagram = self.datagram();
        datagram[36..38].fill(0);
        [&datagram[..], &[IN_IPV4]].concat()
    }
}

fn ends(kind: &Kind) -> (Worker, Worker) {
    let (alice, bob) = (alices_sa(kind), bobs_sa(kind));
    (
        endpoint(with_injectors(alice)),
        endpoint(with_injectors(bob)),
    )
}

/// Bob after receiving `segment()`.
fn bob() -> Worker {
    let (mut alice, mut bob) = ends(&two_zones());
    let packet = seal(&mut alice, &segment()).unwrap();
    open(&mut bob, &packet).unwrap();
    bob
}

fn made(counter: u32, sent: &LastSent) -> Vec<u8> {
    injected(&root_inj(TO_BOB), (1, counter), &sent.text())
}

/// A node with a grant of this number to inject.
fn injector(kind: &Kind, number: u16) -> Licensed {
    let mut grant = grant(kind, &[1]);
    grant.grant = number;
    for half in [&mut grant.from_gateway, &mut grant.to_gateway] {
        half.injection = Some(grant_key(&root_inj(half.spi.0), number));
    }
    let mut node = Licensed::new();
    node.install(grant).unwrap();
    node
}

#[test]
fn what_the_peer_has_said_can_be_said_again_and_the_checksum_follows() {
    let kind = two_zones();
    let (mut alice, mut bob) = ends(&kind);
    let mut node = injector(&kind, 9);
    let packet = seal(&mut alice, &segment()).unwrap();
    open(&mut bob, &packet).unwrap();
    let mut scratch = Scratch::new();
    let direction = node.open(&packet, &mut scratch).unwrap().direction();
    for number in 1..=3 {
        let text = last().text();
        let (headers, first) = (&text[..text.len() - 1], IN_IPV4);
        let packet = node.inject(CsaId(7), direction, (headers, first)).unwrap();
        let expected = injected(&root_inj(TO_BOB), (9, number), &text);
        assert_eq!(packet, expected, "as the format has it");
        assert_eq!(open(&mut bob, &packet), Ok(last().datagram()));
    }
    assert_eq!(bob.counters().injected, 3);
    // Alice's own packets have a number space of their own.
    let packet = seal(&mut alice, &segment()).unwrap();
    assert_eq!(open(&mut bob, &packet), Ok(segment()));
    assert_eq!(bob.counters().injected, 3);
}

#[test]
fn what_was_said_before_may_be_said_with_less() {
    let less: [Change; 6] = [
        |sent| sent.window = 0,
        |sent| sent.window -= 1,
        |sent| sent.ack -= 1000,
        |sent| sent.seq -= 1,
        |sent| sent.options = vec![],
        |sent| sent.options[7] = 6,
    ];
    let mut bob = bob();
    for (counter, change) in (1..).zip(less) {
        let mut sent = last();
        change(&mut sent);
        let opened = open(&mut bob, &made(counter, &sent));
        assert_eq!(opened, Ok(sent.datagram()), "{counter}");
    }
}

/// Each of these would damage a connection: acknowledge undelivered data, deliver data, end the
/// connection, make its receiver reject later segments (RFC 7323 section 5.3), or slow it down.
// Refuses: inject-right
// Weakness: S23
// Answers: inject-what
#[test]
fn a_node_that_says_more_than_the_peer_has_said_is_dropped() {
    use DropReason::{InjectionBeyond, InjectionNotBare};
    let attacks: [(Change, DropReason); 14] = [
        (|sent| sent.ack += 1, InjectionBeyond),
        (|sent| sent.ack += 1 << 30, InjectionBeyond),
        (|sent| sent.seq += 1, InjectionBeyond),
        (|sent| sent.window += 1, InjectionBeyond),
        (|sent| sent.options[7] = 8, InjectionBeyond),
        (|sent| sent.options[11] = 10, InjectionBeyond),
        (|sent| sent.payload = b"GET", InjectionNotBare),
        (|sent| sent.flags |= 0x01, InjectionNotBare),
        (|sent| sent.flags |= 0x02, InjectionNotBare),
        (|sent| sent.flags = 0x04, InjectionNotBare),
        (|sent| sent.flags |= 0x20, InjectionNotBare),
        // Echo of a mark that no router made (RFC 3168 section 6.1.3).
        (|sent| sent.flags |= 0x40, InjectionNotBare),
        (|sent| sent.flags = 0, InjectionNotBare),
        // Report of data received behind a gap (RFC 2018).
        (
            |sent| sent.options = vec![1, 1, 5, 10, 5, 6, 8, 0, 5, 6, 9, 0],
            InjectionNotBare,
        ),
    ];
    let mut bob = bob();
    for (counter, (change, why)) in (1..).zip(attacks) {
        let mut sent = last();
        change(&mut sent);
        assert_eq!(open(&mut bob, &made(counter, &sent)), Err(why), "{counter}");
    }
    assert_eq!(bob.counters().injected, 0);
}

// Weakness: S23
#[test]
fn what_is_no_segment_of_tcp_is_dropped() {
    let fragment = v4_with(&[], 0x2000, TCP, &last().tcp());
    for (counter, datagram) in (1..).zip([v4(UDP, &udp(b"")), fragment, v4(TCP, &[0; 12])]) {
        let text = [&datagram[..], &[IN_IPV4]].concat();
        let packet = injected(&root_inj(TO_BOB), (1, counter), &text);
        assert_eq!(open(&mut bob(), &packet), Err(DropReason::InjectionNotBare));
    }
    let sent = [&v6(TCP, &last().tcp())[..], &[IN_IPV4]].concat();
    let packet = injected(&root_inj(TO_BOB), (1, 1), &sent);
    assert_eq!(
        open(&mut bob(), &packet),
        Err(DropReason::NextHeaderMismatch)
    );
    let packet = injected(&root_inj(TO_BOB), (1, 1), &[IN_IPV4]);
    assert_eq!(open(&mut bob(), &packet), Err(DropReason::InnerMalformed));
}

/// A node can neither open a connection, nor continue one that its end has closed.
// Weakness: S23
#[test]
fn on_a_connection_on_which_the_peer_has_not_spoken_nothing_is_believed() {
    let (mut alice, mut bob) = ends(&two_zones());
    let unknown = Err(DropReason::InjectionNoConnection);
    assert_eq!(open(&mut bob, &made(1, &last())), unknown);
    for (counter, flags) in [(2, 0x02), (4, 0x12), (6, 0x04)] {
        let packet = seal(&mut alice, &segment()).unwrap();
        open(&mut bob, &packet).unwrap();
        assert!(open(&mut bob, &made(counter, &last())).is_ok());
        let over = LastSent { flags, ..last() };
        let packet = seal(&mut alice, &over.datagram()).unwrap();
        open(&mut bob, &packet).unwrap();
        assert_eq!(open(&mut bob, &made(counter + 1, &last())), unknown);
    }
}

// Weakness: S22
#[test]
fn what_was_injected_comes_once() {
    let mut bob = bob();
    let sent = last();
    for counter in [2, 1, 5000] {
        let packet = made(counter, &sent);
        assert_eq!(open(&mut bob, &packet), Ok(sent.datagram()), "{counter}");
        assert_eq!(open(&mut bob, &packet), Err(DropReason::Replayed));
    }
    assert_eq!(open(&mut bob, &made(3, &sent)), Err(DropReason::TooOld));
    assert_eq!(
        open(&mut bob, &made(0, &sent)),
        Err(DropReason::SequenceZero)
    );
}

/// Each direction and each grant has a different key, and so do overlays.
// Weakness: S22
#[test]
fn what_is_sealed_with_another_key_is_dropped() {
    let mut bob = bob();
    let text = last().text();
    let mut other_grant = made(1, &last());
    other_grant[11] += 1;
    for packet in [
        injected(&root_inj(TO_ALICE), (1, 1), &text),
        injected(&root(TO_BOB), (1, 1), &text),
        injected(&key(TO_BOB, 1, ZoneSuite::Aes128Gcm16), (1, 1), &text),
        injected(&root_inj(TO_BOB), (0, 1), &text),
        other_grant,
    ] {
        assert_eq!(open(&mut bob, &packet), Err(DropReason::BadIcvInjected));
    }
    // None of these packets has moved the window or changed the known grants.
    assert!(open(&mut bob, &made(1, &last())).is_ok());
}

// Weakness: S22
#[test]
fn every_octet_of_what_was_injected_is_authenticated() {
    let packet = made(1, &last());
    for at in 4..packet.len() {
        for bit in [0x01, 0x80] {
            let mut changed = packet.clone();
            changed[at] ^= bit;
            assert!(open(&mut bob(), &changed).is_err(), "octet {at}");
        }
    }
    for len in 4..packet.len() {
        assert!(open(&mut bob(), &packet[..len]).is_err(), "{len} octets");
    }
}

// Weakness: S22
// Answers: inject-without
#[test]
fn a_reader_and_a_writer_inject_nothing() {
    let kind = two_zones();
    let (mut alice, _) = ends(&kind);
    let packet = seal(&mut alice, &segment()).unwrap();
    let mut node = Licensed::new();
    let mut grant = grant(&kind, &[1]);
    for half in [&mut grant.from_gateway, &mut grant.to_gateway] {
        half.overlay = Some(grant_key(&root(half.spi.0), 1));
    }
    node.install(grant).unwrap();
    let mut scratch = Scratch::new();
    let direction = node.open(&packet, &mut scratch).unwrap().direction();
    let refused = node.inject(CsaId(7), direction, (&[], IN_IPV4));
    assert_eq!(refused, Err(NotWritten::NotGranted));
}

/// For an end without this agreement, and for every other node, the packet has a map without runs.
// Weakness: S22
#[test]
fn without_a_licence_nothing_is_heard() {
    let (_, mut bob) = pair(&two_zones());
    let packet = made(1, &last());
    assert_eq!(open(&mut bob, &packet), Err(DropReason::MapRunCount));
    let mut node = injector(&two_zones(), 1);
    let mut scratch = Scratch::new();
    let seen = node.open(&packet, &mut scratch).err();
    assert!(matches!(seen, Some(NotOpened::BadMap(_))), "{seen:?}");
}

// Weakness: S25
#[test]
fn where_a_licence_was_taken_back_nothing_is_believed() {
    let mut bob = bob();
    bob.make_opaque(ChildSaId(1));
    assert_eq!(
        open(&mut bob, &made(1, &last())),
        Err(DropReason::InjectionTakenBack)
    );
}

/// Grants follow each other during the life of an SA. A forgotten one is never accepted again.
// Weakness: S22
#[test]
fn a_grant_whose_window_is_forgotten_is_over() {
    let mut bob = bob();
    let under = |grant, counter| injected(&root_inj(TO_BOB), (grant, counter), &last().text());
    for grant in 1..=9 {
        assert!(open(&mut bob, &under(grant, 1)).is_ok());
    }
    assert_eq!(
        open(&mut bob, &under(1, 1)),
        Err(DropReason::BadIcvInjected)
    );
    assert_eq!(
        open(&mut bob, &under(1, 2)),
        Err(DropReason::BadIcvInjected)
    );
    assert_eq!(open(&mut bob, &under(2, 1)), Err(DropReason::Replayed));
    assert!(open(&mut bob, &under(2, 2)).is_ok());
}

/// A node that injects must not make a dead peer look alive, or confirm an SA that its peer has not
/// installed.
// Weakness: S24
#[test]
fn what_is_injected_says_nothing_about_the_peer() {
    let (mut alice, mut bob) = ends(&two_zones());
    let mut later = bobs_sa(&two_zones());
    later.id = ChildSaId(2);
    later.inbound.spi.0 += 1;
    bob.install_beside(with_injectors(later)).unwrap();
    let (then, now) = (Instant::ZERO, Instant::ZERO + Duration::from_secs(60));
    let packet = seal(&mut alice, &segment()).unwrap();
    open_at(&mut bob, &packet, Ecn::NotEct, then).unwrap();
    open_at(&mut bob, &made(1, &last()), Ecn::NotEct, now).unwrap();
    assert_eq!(bob.last_inbound(ChildSaId(1)), Some(then));
    let mut to_later = made(2, &last());
    to_later[3] += 1;
    assert!(open_at(&mut bob, &to_later, Ecn::NotEct, now).is_err());
    let confirmed = |report| matches!(report, Report::Confirmed(ChildSaId(2)));
    assert!(!std::iter::from_fn(|| bob.poll_report()).any(confirmed));
}

#[test]
fn in_transport_and_beet_mode_the_header_of_tcp_alone_is_made() {
    for mode in BOTH {
        let [mut alice, mut bob] =
            moded(mode, &two_zones(), V4).map(|sa| endpoint(with_injectors(sa)));
        let packet = seal(&mut alice, &segment()).unwrap();
        open(&mut bob, &packet).unwrap();
        let text = |sent: &LastSent| [&sent.tcp()[..], &[TCP]].concat();
        let packet = injected(&root_inj(TO_BOB), (1, 1), &text(&last()));
        let opened = open(&mut bob, &packet).unwrap();
        assert_eq!(opened[20..36], last().datagram()[20..36], "{mode:?}");
        let beyond = LastSent {
            ack: ACK + 1,
            ..last()
        };
        let packet = injected(&root_inj(TO_BOB), (1, 2), &text(&beyond));
        assert_eq!(open(&mut bob, &packet), Err(DropReason::InjectionBeyond));
    }
    assert_eq!(BOTH, [Mode::Transport, Mode::Beet]);
}

/// For any sequence of segments from a peer, no accepted packet exceeds them.
// Weakness: S23
// Answers: inject-what
#[test]
fn nothing_is_ever_believed_that_the_peer_has_not_said() {
    let spoken = proptest::collection::vec((0..2000u32, 0..2000u32, 0..500u16), 1..20);
    let told = proptest::collection::vec((0..2000u32, 0..2000u32, 0..500u16), 1..40);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let ran = runner.run(&(spoken, told), |(spoken, told)| {
        let (mut alice, mut bob) = ends(&two_zones());
        let sent = |(seq, ack, window)| LastSent {
            seq,
            ack,
            window,
            options: vec![],
            ..last()
        };
        for numbers in &spoken {
            let packet = seal(&mut alice, &sent(*numbers).datagram()).unwrap();
            open(&mut bob, &packet).unwrap();
        }
        let furthest = |number: fn(&(u32, u32, u16)) -> u32| spoken.iter().map(number).max();
        let (seq, ack) = (furthest(|it| it.0), furthest(|it| it.1));
        for (counter, numbers) in (1..).zip(&told) {
            let opened = open(&mut bob, &made(counter, &sent(*numbers)));
            let widest = spoken.iter().map(|it| it.2).max();
            if opened.is_ok() {
                prop_assert!(Some(numbers.0) <= seq && Some(numbers.1) <= ack);
                prop_assert!(Some(numbers.2) <= widest);
            } else {
                prop_assert_eq!(opened, Err(DropReason::InjectionBeyond));
            }
        }
        Ok(())
    });
    ran.unwrap();
}
