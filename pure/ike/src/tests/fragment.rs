//! Messages in fragments (RFC 7383).

use super::certificates::{self, TODAY, by_certificate};
use super::pair::{Flying, Pair, Side, fit};
use super::*;
use crate::{DownReason, DropReason};
use model::IkeSaId;
use std::time::Duration;
use wire::ike::{
    Datagram, ExchangeType, Fragment, Header, MAX_MESSAGE, NotifyType, Payload, PayloadType,
};

/// Octets of the IP and UDP headers and the marker before an IKE message.
const BEFORE_IKE: usize = 20 + 8 + 4;

/// Returns ends that authenticate in messages of about a thousand octets.
fn ends(fragment: u16) -> (Config, Config) {
    let mut left = by_certificate(mobile(), &["mobile-middle", "middle"]);
    let mut right = by_certificate(gateway(), &["gateway", "middle"]);
    (left.fragment, right.fragment) = (fragment, fragment);
    (left, right)
}

fn between(left: Config, right: Config, seed: u8) -> Pair {
    certificates::pair(left, right, TODAY, seed)
}

/// Returns two hosts whose IKE_AUTH messages are fragmented, not yet connected.
pub(crate) fn certified() -> Pair {
    let (left, right) = ends(576);
    between(left, right, 1)
}

/// Returns a pair connected with a pre-shared key, without long messages so far.
pub(super) fn up() -> (Pair, IkeSaId) {
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    (pair, id)
}

fn fragment_of(flying: &Flying) -> Option<Fragment> {
    match Datagram::decode(&flying.message) {
        Ok(Datagram::Sealed(sealed)) => sealed.fragment,
        _ => None,
    }
}

fn numbers(flying: &[Flying]) -> Vec<(u16, u16)> {
    let fragments = flying.iter().filter_map(fragment_of);
    fragments.map(|at| (at.number, at.total)).collect()
}

/// Takes the fragments of IKE_AUTH out of the network.
pub(super) fn auth_in_fragments(pair: &mut Pair) -> Vec<Flying> {
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.deliver_next();
    let fragments = pair.intercept();
    assert!(numbers(&fragments).len() >= 2, "{fragments:?}");
    fragments
}

/// Returns the header of the left host's next INFORMATIONAL request, and a datagram on its path.
pub(super) fn next_request(pair: &Pair) -> (Header, Flying) {
    let like = pair.sent.iter().rfind(|flying| flying.to == Side::Right);
    let like = like.expect("IKE_AUTH was sent").clone();
    let header = Header {
        exchange: ExchangeType::INFORMATIONAL,
        message_id: 2,
        ..Header::peek(&like.message).expect("a message")
    };
    (header, like)
}

/// Delivers to the right host a fragment that the left host sealed.
fn give_piece(pair: &mut Pair, at: (u16, u16), octets: usize) {
    let (header, like) = next_request(pair);
    let message = pair.left.engine.seal_piece(&header, at, vec![0; octets]);
    let message = message.expect("it has keys");
    pair.deliver(&Flying { message, ..like });
}

#[test]
fn a_message_that_fits_is_not_fragmented() {
    let (mut left, mut right) = (mobile(), gateway());
    (left.fragment, right.fragment) = (576, 576);
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    assert_eq!(numbers(&pair.sent), []);
}

#[test]
fn a_message_that_does_not_fit_is_sent_in_fragments_that_do() {
    let mut pair = certified();
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    let fragments = numbers(&pair.sent);
    assert_eq!(fragments.iter().filter(|at| at.0 == 1).count(), 2);
    for flying in pair.sent.iter().filter(|of| fragment_of(of).is_some()) {
        assert!(flying.message.len() + BEFORE_IKE <= 576);
    }
    for host in [&pair.left, &pair.right] {
        let counters = host.engine.counters();
        assert_eq!((counters.fragmented, counters.reassembled), (1, 1));
    }
}

#[test]
fn ike_sa_init_is_never_fragmented() {
    let mut pair = certified();
    pair.connect();
    for flying in &pair.sent[..2] {
        assert!(matches!(
            Datagram::decode(&flying.message),
            Ok(Datagram::Clear(_))
        ));
    }
}

#[test]
fn fragments_are_sent_only_if_both_ends_said_that_they_can() {
    for (of_left, of_right) in [(0, 576), (576, 0), (0, 0)] {
        let (mut left, mut right) = ends(576);
        (left.fragment, right.fragment) = (of_left, of_right);
        let mut pair = between(left, right, 1);
        pair.connect();
        assert!(fit(pair.left.child(), pair.right.child()));
        assert_eq!(numbers(&pair.sent), []);
        let said = |flying: &Flying| {
            let Ok(Datagram::Clear(message)) = Datagram::decode(&flying.message) else {
                panic!("IKE_SA_INIT is in the clear");
            };
            let kind = NotifyType::IKEV2_FRAGMENTATION_SUPPORTED;
            crate::exchange::find_notify(&message, kind).is_some()
        };
        assert_eq!(said(&pair.sent[0]), of_left != 0);
        assert!(!said(&pair.sent[1]), "the other end did not ask");
    }
}

#[test]
fn a_fragment_where_none_were_agreed_is_dropped() {
    let (mut left, right) = (mobile(), gateway());
    left.fragment = 0;
    let mut pair = Pair::new(left, right);
    pair.connect();
    give_piece(&mut pair, (1, 2), 100);
    assert_eq!(pair.right.dropped(DropReason::FragmentNotAgreed), 1);
}

#[test]
fn a_successor_goes_on_with_fragments() {
    let mut pair = certified();
    let id = pair.connect();
    pair.with(Side::Left, |engine, now| engine.rekey_ike(id, now));
    pair.settle();
    let successor = pair.left.engine.sas().next().expect("an SA").id;
    let core = &pair.left.engine.sas[&successor].core;
    assert_eq!(core.limit.map(|limit| limit.0), Some(576));
}

#[test]
fn fragments_are_put_together_in_any_order() {
    let mut pair = certified();
    let mut fragments = auth_in_fragments(&mut pair);
    fragments.reverse();
    for fragment in &fragments {
        pair.deliver(fragment);
    }
    pair.settle();
    assert!(fit(pair.left.child(), pair.right.child()));
}

/// "If the ICV check fails, the message MUST be silently discarded" (section 2.6). A forged
/// fragment does not displace the genuine one.
// Weakness: 6
#[test]
fn a_forged_fragment_is_not_stored() {
    let mut pair = certified();
    let fragments = auth_in_fragments(&mut pair);
    for fragment in &fragments {
        let mut forged = fragment.clone();
        *forged.message.last_mut().expect("a message has octets") ^= 1;
        pair.deliver(&forged);
        pair.deliver(fragment);
    }
    pair.settle();
    let forged = fragments.len() as u64;
    assert_eq!(pair.right.dropped(DropReason::BadIcv), forged);
    assert!(fit(pair.left.child(), pair.right.child()));
}

#[test]
fn a_fragment_that_came_before_is_dropped_and_counted() {
    let mut pair = certified();
    let fragments = auth_in_fragments(&mut pair);
    pair.deliver(&fragments[0]);
    pair.deliver(&fragments[0]);
    assert_eq!(pair.right.dropped(DropReason::FragmentRepeated), 1);
    for fragment in &fragments[1..] {
        pair.deliver(fragment);
    }
    pair.settle();
    assert!(fit(pair.left.child(), pair.right.child()));
}

#[test]
fn a_larger_total_begins_anew_and_a_smaller_one_is_dropped() {
    let (mut pair, _) = up();
    give_piece(&mut pair, (1, 2), 100);
    give_piece(&mut pair, (1, 3), 100);
    give_piece(&mut pair, (2, 2), 100);
    assert_eq!(pair.right.dropped(DropReason::FragmentMisfit), 1);
    // The first of two would have completed the message.
    assert_eq!(pair.right.engine.counters().reassembled, 0);
    give_piece(&mut pair, (2, 3), 100);
    give_piece(&mut pair, (3, 3), 100);
    assert_eq!(pair.right.engine.counters().reassembled, 1);
}

/// The header is authenticated with each fragment and has to be the same in all of them.
#[test]
fn a_fragment_of_another_exchange_does_not_fit() {
    let (mut pair, _) = up();
    give_piece(&mut pair, (1, 2), 100);
    let (mut header, like) = next_request(&pair);
    header.exchange = ExchangeType::CREATE_CHILD_SA;
    let message = pair.left.engine.seal_piece(&header, (2, 2), vec![0; 100]);
    let message = message.expect("it has keys");
    pair.deliver(&Flying { message, ..like });
    assert_eq!(pair.right.dropped(DropReason::FragmentMisfit), 1);
}

// Weakness: 6
#[test]
fn fragments_that_stay_incomplete_are_thrown_away_in_time() {
    let (mut pair, _) = up();
    give_piece(&mut pair, (1, 2), 100);
    pair.run_for(Duration::from_secs(29));
    assert_eq!(pair.right.engine.counters().incomplete, 0);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.right.engine.counters().incomplete, 1);
    give_piece(&mut pair, (2, 2), 100);
    assert_eq!(pair.right.engine.counters().reassembled, 0);
}

// Weakness: 5
// Weakness: 6
#[test]
fn more_octets_than_any_message_has_are_not_gathered() {
    let (mut pair, _) = up();
    give_piece(&mut pair, (1, 200), 100);
    assert_eq!(pair.right.dropped(DropReason::FragmentTooLong), 1);
    let most = MAX_MESSAGE / 2;
    give_piece(&mut pair, (1, 9), most);
    give_piece(&mut pair, (2, 9), most);
    assert_eq!(pair.right.dropped(DropReason::FragmentTooLong), 1);
    give_piece(&mut pair, (3, 9), 1);
    assert_eq!(pair.right.dropped(DropReason::FragmentTooLong), 2);
    // Nothing of that message is kept.
    give_piece(&mut pair, (1, 1), 100);
    assert_eq!(pair.right.engine.counters().reassembled, 1);
}

#[test]
fn fragments_of_a_message_that_is_not_awaited_are_not_gathered() {
    let (mut pair, _) = up();
    let (mut header, like) = next_request(&pair);
    header.message_id += 1;
    let message = pair.left.engine.seal_piece(&header, (1, 2), vec![0; 100]);
    let message = message.expect("it has keys");
    pair.deliver(&Flying { message, ..like });
    assert_eq!(pair.right.dropped(DropReason::MessageId), 1);
}

/// Fragments of an unauthenticated peer are dropped with its half-open SA.
// Weakness: 6
#[test]
fn a_stranger_is_gone_with_its_fragments() {
    let mut pair = certified();
    let fragments = auth_in_fragments(&mut pair);
    pair.hop.lost = 1000;
    pair.deliver(&fragments[0]);
    assert_eq!(pair.right.engine.half_open(), 1);
    pair.run_for(Duration::from_secs(61));
    assert_eq!(pair.right.engine.half_open(), 0);
    assert_eq!(pair.right.engine.sas.len(), 0);
}

// Weakness: 4
#[test]
fn nonsense_in_fragments_ends_the_sa_as_it_does_whole() {
    let (mut pair, _) = up();
    give_piece(&mut pair, (1, 2), 100);
    give_piece(&mut pair, (2, 2), 100);
    assert!(matches!(
        pair.right.down_reasons()[..],
        [DownReason::Misbehaved(_)]
    ));
}

#[test]
fn all_fragments_are_sent_again_octet_by_octet() {
    let mut pair = certified();
    let fragments = auth_in_fragments(&mut pair);
    pair.hop.lost = 1000;
    let before = pair.sent.len();
    pair.run_for(Duration::from_millis(600));
    let again: Vec<_> = pair.sent[before..].iter().map(|of| &of.message).collect();
    let first: Vec<_> = fragments.iter().map(|of| &of.message).collect();
    assert_eq!(again, first);
}

/// Section 2.6.1: "MUST only trigger a retransmission of the response message (fragmented or not)
/// if the Fragment Number field in the received fragment is set to 1".
#[test]
fn only_the_first_fragment_of_a_request_has_its_answer_repeated() {
    let mut pair = certified();
    let fragments = auth_in_fragments(&mut pair);
    for fragment in &fragments {
        pair.deliver(fragment);
    }
    let answer = pair.intercept();
    for (index, fragment) in fragments.iter().enumerate() {
        pair.deliver(fragment);
        let again: Vec<_> = pair.intercept().into_iter().map(|of| of.message).collect();
        match index {
            0 => assert!(again.iter().eq(answer.iter().map(|of| &of.message))),
            _ => assert!(again.is_empty()),
        }
    }
    assert_eq!(pair.right.engine.counters().answered_again, 1);
    let others = fragments.len() as u64 - 1;
    assert_eq!(pair.right.dropped(DropReason::FragmentRepeated), others);
}

/// An attacker sends a recorded first fragment from another host's address.
#[test]
fn a_recorded_fragment_makes_nobody_send_more_than_came_from_there() {
    let mut pair = certified();
    let fragments = auth_in_fragments(&mut pair);
    for fragment in &fragments {
        pair.deliver(fragment);
    }
    pair.intercept();
    let mut replayed = fragments[0].clone();
    replayed.path.remote = "198.51.100.66:4500".parse().expect("an address");
    let (mut came, mut went) = (0, 0);
    for _ in 0..40 {
        came += replayed.message.len();
        pair.deliver(&replayed);
        went += pair
            .intercept()
            .iter()
            .map(|of| of.message.len())
            .sum::<usize>();
        assert!(went <= came, "{went} octets for {came}");
    }
    assert!(went > 0, "an honest peer that moved is answered at last");
    assert!(pair.right.dropped(DropReason::RepeatedElsewhere) > 0);
}

/// Section 2.5.2, smaller: first unfragmented, then in fragments.
#[test]
fn a_request_that_does_not_come_through_is_cut_smaller() {
    let (left, right) = ends(1280);
    let mut pair = between(left, right, 1);
    pair.longest = [700; 2];
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(30));
    assert!(fit(pair.left.child(), pair.right.child()));
    assert_eq!(pair.left.engine.counters().cut_smaller, 1);
    // The answer is fragmented like the request.
    assert_eq!(pair.right.engine.counters().fragmented, 1);
}

/// The request arrived and was answered. Its retransmission in fragments is genuine and no new
/// request, and its answer is fragmented in the same way.
#[test]
fn an_answer_that_does_not_come_through_is_cut_like_the_request_that_asks_again() {
    let (left, right) = ends(1280);
    let mut pair = between(left, right, 1);
    pair.longest = [700, usize::MAX];
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(30));
    assert!(fit(pair.left.child(), pair.right.child()));
    assert_eq!(pair.right.engine.counters().reassembled, 0);
    assert_eq!(pair.left.engine.counters().reassembled, 1);
}

/// The retransmission times start again with the smaller fragments, and the total time stays the
/// same.
#[test]
fn a_peer_that_is_out_of_reach_is_given_up_whatever_is_cut() {
    let (left, right) = ends(1280);
    let mut pair = between(left, right, 1);
    pair.longest = [usize::MAX, 500];
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(200));
    assert!(matches!(
        pair.left.down_reasons()[..],
        [DownReason::AuthUnanswered { .. }]
    ));
    assert_eq!(pair.left.engine.counters().cut_smaller, 1);
}

#[test]
fn who_needs_ip_to_cut_its_messages_says_so_when_they_are_not_answered() {
    for ours in [true, false] {
        let (mut left, mut right) = ends(1280);
        let long = ["mobile-middle", "middle", "middle", "middle"];
        left.credential = by_certificate(mobile(), &long).credential;
        match ours {
            true => left.fragment = 0,
            false => right.fragment = 0,
        }
        let mut pair = between(left, right, 1);
        pair.longest = [usize::MAX, 1280];
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(200));
        let [DownReason::LongAuthUnanswered(uncut)] = pair.left.down_reasons()[..] else {
            panic!("{:?}", pair.left.down_reasons());
        };
        assert_eq!(uncut.ours, ours);
    }
}

#[test]
fn fragments_survive_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        let (left, right) = ends(576);
        let mut pair = between(left, right, seed);
        pair.hop = pair.hop.losing(150).repeating(300).delaying(300);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(300));
        assert!(fit(pair.left.child(), pair.right.child()), "seed {seed}");
    }
}

/// An unfragmented request replaces the fragments of an incomplete one.
#[test]
fn a_request_that_comes_whole_after_all_is_taken() {
    let (mut pair, id) = up();
    give_piece(&mut pair, (1, 2), 100);
    let answer = attack::ask_sealed(
        &mut pair,
        id,
        ExchangeType::INFORMATIONAL,
        vec![Payload::Other {
            kind: PayloadType(99),
            critical: false,
            data: Vec::new(),
        }],
    );
    assert!(answer.is_empty());
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.right.engine.counters().incomplete, 0);
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
}
