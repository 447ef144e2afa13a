//! Sessions that are resumed by SKID3 (paper 004, section V).

use super::addresses::{borrower, lender};
use super::certificates::TODAY;
use super::pair::{Flying, Host, NAT, Pair, Side, fit, keys_of};
use super::ticket::{
    LONG, connected_as, exchanges, is_one_tunnel, is_resumed, lose, lose_both, lost_as, resuming,
    set_clocks, told_of_kept, with_ppk,
};
use super::zones::zoned;
use super::*;
use crate::{Event, Resumption};
use model::{Kem, Mode, Suite};
use resumption::{Memory, OperationId, Outcome, Way};
use std::time::Duration;
use wire::ike::{Datagram, ExchangeType, Message, NotifyType, Payload, PayloadType};

/// More than a liveness check may take.
const CHECK: Duration = Duration::from_secs(30);

fn ends() -> (Config, Config) {
    with_skid((mobile(), gateway()))
}

fn with_skid(ends: (Config, Config)) -> (Config, Config) {
    resuming(ends, Resumption::Skid3)
}

fn connected() -> Pair {
    connected_as(ends())
}

/// Returns two ends of which neither has an IKE SA, and the left one can resume.
pub(crate) fn lost() -> Pair {
    lost_as(ends())
}

/// For the pages: a session that was lost is resumed.
pub(crate) fn story() -> Pair {
    let mut pair = lost();
    pair.begin_story();
    pair.connect();
    pair
}

/// For the pages: another attempt has used the session, as the store finds out last.
pub(crate) fn spent() -> Pair {
    let mut pair = lost();
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.right.store = None;
    pair.settle();
    take(&mut pair, false);
    pair.settle();
    pair
}

/// Has the store of the right end answer whether it took the entry.
fn take(pair: &mut Pair, was_there: bool) {
    let awaiting = pair.right.engine.sas().last().map(|sa| sa.id);
    let id = awaiting.map_or(0, |id| id.0);
    pair.store_answers(Side::Right, Outcome::Taken(OperationId(id), was_there));
}

/// Has the left end begin, and returns its first message.
pub(super) fn first(pair: &mut Pair) -> Flying {
    pair.initiate(Side::Left);
    pair.intercept().remove(0)
}

/// Delivers a message, and returns the answer to it.
pub(super) fn answer(pair: &mut Pair, flying: &Flying) -> Flying {
    pair.deliver(flying);
    pair.intercept().remove(0)
}

pub(super) fn clear(flying: &Flying) -> Message {
    match Datagram::decode(&flying.message) {
        Ok(Datagram::Sealed(sealed)) => sealed.clear().unwrap(),
        other => panic!("it is sealed: {other:?}"),
    }
}

fn refusal(pair: &mut Pair, request: &Flying) -> Flying {
    let mut header = clear(request).header;
    (header.flags.initiator, header.flags.response) = (false, true);
    let payloads = vec![crate::extension::ticket::refusal()];
    let message = Message { header, payloads }.encode();
    pair.sent.clear();
    Flying {
        to: Side::Left,
        path: request.path.reversed(),
        message,
    }
}

#[test]
fn a_session_is_resumed_in_one_round_trip() {
    let mut pair = connected();
    lose(&mut pair);
    let key_pairs = pair.right.engine.counters().key_pairs;
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    pair.deliver(&response);
    assert_eq!(pair.left.up(), 1, "it sends packets from now on");
    assert_eq!(pair.left.child().mode, Mode::Tunnel);
    pair.settle();
    is_resumed(&pair);
    assert_eq!(exchanges(&pair), [ExchangeType::SKID_RESUME; 4]);
    assert_eq!(pair.right.engine.counters().key_pairs, key_pairs);
}

#[test]
fn the_next_session_is_resumed_from_the_entry_of_this_one() {
    let mut pair = connected();
    for round in 1..5 {
        lose(&mut pair);
        let secret = pair.right.entries()[0].keys.secret.clone();
        pair.connect();
        assert_eq!(pair.left.resumed().len(), round + 1);
        let entries = pair.right.entries();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].keys.way, Way::Skid3);
        assert_ne!(entries[0].keys.secret, secret);
        assert_eq!(entries[0].usage.since, TODAY, "of the last full proof");
        is_one_tunnel(&pair);
    }
    assert_eq!(pair.left.resumed(), [false, true, true, true, true]);
}

/// Rule: nobody on the way learns who resumes.
// Weakness: 185
#[test]
fn what_is_clear_names_nobody() {
    let mut pair = lost();
    pair.connect();
    let allowed = [
        PayloadType::NONCE,
        PayloadType::NOTIFY,
        PayloadType::VENDOR_ID,
    ];
    for flying in &pair.sent[..2] {
        let kinds: Vec<_> = clear(flying).payloads.iter().map(Payload::kind).collect();
        assert!(kinds.iter().all(|kind| allowed.contains(kind)), "{kinds:?}");
        for name in [&b"mobile"[..], b"gateway"] {
            let octets = &flying.message;
            assert!(!octets.windows(name.len()).any(|part| part == name));
        }
    }
}

/// Rule: a first message may be a copy, so nothing of what it asks for happens.
// Weakness: 185
#[test]
fn before_the_third_message_nothing_happens_at_the_gateway() {
    let mut pair = connected();
    lose(&mut pair);
    let events = pair.right.events.len();
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    assert_eq!(pair.right.events.len(), events);
    assert_eq!(pair.right.up(), 1, "the lost IKE SA stays");
    assert_eq!(pair.right.entries().len(), 1);
    pair.deliver(&response);
    pair.intercept();
    pair.run_for(Duration::from_millis(10));
    assert_eq!(pair.right.up(), 1);
    assert_eq!(pair.right.resumed(), [false]);
}

// Weakness: 185
#[test]
fn copies_of_all_messages_resume_nothing_and_leave_nothing_behind() {
    let mut pair = connected();
    lose(&mut pair);
    pair.connect();
    is_resumed(&pair);
    let to_right = |flying: &&Flying| flying.to == Side::Right;
    let messages: Vec<_> = pair.sent.iter().filter(to_right).cloned().collect();
    pair.run_for(LONG);
    for message in &messages {
        pair.deliver(message);
    }
    pair.run_for(LONG);
    is_resumed(&pair);
    assert_eq!(pair.right.engine.sas().count(), 1);
    assert_eq!(pair.right.engine.half_open.len(), 0);
}

/// A copy of the first message while its session can still be resumed.
// Weakness: 185
#[test]
fn a_copy_of_a_first_message_holds_a_place_for_a_while_and_spends_nothing() {
    let mut pair = connected();
    lose(&mut pair);
    let request = first(&mut pair);
    let mut copy = request.clone();
    copy.path.remote.set_port(4444);
    pair.deliver(&copy);
    pair.run_for(Duration::from_millis(1));
    pair.deliver(&request);
    pair.settle();
    is_resumed(&pair);
    pair.run_for(LONG);
    assert_eq!(pair.right.engine.half_open.len(), 0);
    is_one_tunnel(&pair);
}

#[test]
fn the_third_message_is_repeated_until_it_is_answered_and_gets_the_same_answer() {
    let mut pair = connected();
    lose(&mut pair);
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    pair.deliver(&response);
    pair.intercept();
    pair.run_for(Duration::from_millis(1100));
    is_resumed(&pair);
    // Its answer is lost.
    let mut pair = connected();
    lose(&mut pair);
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    let third = answer(&mut pair, &response);
    let one = answer(&mut pair, &third);
    assert_eq!(pair.right.up(), 1);
    let two = answer(&mut pair, &third);
    assert_eq!(one.message, two.message);
    pair.deliver(&two);
    is_resumed(&pair);
    assert!(pair.left.holds_ticket());
}

/// An overloaded gateway drops initiators that are not authenticated, and its half-open SAs are
/// never answered for. The client is up, and would wait as long as for any request.
// Weakness: 193
#[test]
fn a_gateway_that_lost_the_attempt_before_the_third_message_has_the_client_back_in_seconds() {
    let mut pair = connected();
    lose(&mut pair);
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    let fresh = Host::seeded(ends().1, 7, 2);
    pair.restart(Side::Right, fresh);
    set_clocks(&mut pair, TODAY);
    pair.deliver(&response);
    pair.run_for(Duration::from_millis(2900));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 0));
    pair.run_for(Duration::from_millis(300));
    assert_eq!(pair.right.resumed(), [false], "a full exchange");
    pair.run_for(LONG);
    is_one_tunnel(&pair);
}

/// An answer that is late still counts, and one tunnel stays.
#[test]
fn an_answer_to_the_third_message_that_comes_after_seconds_leaves_one_tunnel() {
    for millis in [3100, 5000, 12_000] {
        let mut pair = connected();
        lose(&mut pair);
        let request = first(&mut pair);
        let response = answer(&mut pair, &request);
        let third = answer(&mut pair, &response);
        pair.deaf = true;
        pair.run_for(Duration::from_millis(millis));
        pair.deaf = false;
        pair.deliver(&third);
        pair.run_for(LONG);
        is_one_tunnel(&pair);
    }
}

/// Rule: a refusal that nobody has proved begins a full exchange at once.
#[test]
fn a_session_that_the_gateway_does_not_know_costs_one_round_trip() {
    let mut pair = lost();
    pair.restart(Side::Right, Host::seeded(ends().1, 7, 2));
    pair.connect();
    assert_eq!(pair.left.not_resumed(), 1);
    assert_eq!(exchanges(&pair).len(), 6);
    is_one_tunnel(&pair);
    pair.run_for(LONG);
    assert_eq!(pair.left.engine.sas().count(), 1);
}

// Weakness: 182
#[test]
fn a_good_answer_after_a_forged_refusal_still_counts() {
    let mut pair = connected();
    lose(&mut pair);
    let request = first(&mut pair);
    let forged = refusal(&mut pair, &request);
    pair.deliver(&forged);
    pair.deliver(&forged);
    assert_eq!(pair.left.not_resumed(), 1, "one full exchange, not two");
    assert_eq!(pair.intercept().len(), 1);
    pair.deliver(&request);
    pair.settle();
    assert_eq!(pair.left.resumed(), [false, true]);
    is_one_tunnel(&pair);
}

/// Two programs with the same entry at the same instant: the faster one is admitted.
// Weakness: 180
#[test]
fn of_two_that_resume_one_session_one_is_admitted() {
    let mut pair = connected();
    let stolen = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    lose(&mut pair);
    // Both have their answers before one of them proves that it is there.
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    let proof = answer(&mut pair, &response);
    let mut thief = Host::seeded(ends().0, 99, 1);
    thief.engine.set_wall_clock(TODAY);
    thief.engine.tickets.hold(peer_id("gateway"), stolen);
    std::mem::swap(&mut pair.left, &mut thief);
    pair.trace.adopt(Side::Left, &pair.left.engine);
    pair.connect();
    assert_eq!(
        pair.left.resumed(),
        [true],
        "whoever steals a client's entry can use it"
    );
    std::mem::swap(&mut pair.left, &mut thief);
    pair.trace.adopt(Side::Left, &pair.left.engine);
    pair.deliver(&proof);
    pair.settle();
    // The slower one is told, and begins in full.
    let spent = |why: &String| why.contains("the ticket has been used");
    assert!(pair.right.refusals().iter().any(spent));
    assert_eq!(pair.left.not_resumed(), 1);
    assert_eq!(pair.right.resumed(), [false, true, false]);
    assert_eq!(pair.left.resumed(), [false, true, false]);
}

// Weakness: 180
#[test]
fn a_client_whose_session_is_spent_is_told_and_begins_in_full() {
    let pair = spent();
    assert_eq!(pair.left.not_resumed(), 1);
    assert_eq!(pair.left.resumed(), [false, true, false]);
    assert_eq!(pair.right.resumed(), [false, false]);
    is_one_tunnel(&pair);
}

/// Rule: an outcome that is not known counts as spent.
// Weakness: 180
#[test]
fn an_entry_that_may_have_been_taken_admits_nobody() {
    let mut pair = lost();
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    pair.right.store = None;
    pair.deliver(&response);
    pair.run_for(Duration::from_millis(300));
    assert_eq!(pair.right.resumed(), [false], "nothing is up before");
    pair.right.store = Some(Memory::new(9));
    pair.run_for(LONG);
    assert!(!pair.right.resumed().contains(&true));
    is_one_tunnel(&pair);
}

// Weakness: 182
#[test]
fn a_store_that_does_not_answer_is_waited_for_half_a_second() {
    let mut pair = connected();
    lose(&mut pair);
    pair.right.store = None;
    pair.initiate(Side::Left);
    pair.settle();
    assert_eq!(exchanges(&pair), [ExchangeType::SKID_RESUME]);
    pair.run_for(Duration::from_millis(600));
    assert_eq!(pair.left.not_resumed(), 1);
    is_one_tunnel(&pair);
    assert_eq!(pair.left.resumed(), [false, false]);
}

/// Changes one octet in `flying`, if it is the `step`th message, and returns what is up at the ends
/// a while later.
fn with_change(step: usize, place: usize) -> (Vec<bool>, Vec<bool>) {
    let mut pair = lost();
    let mut flying = first(&mut pair);
    for at in 0..3 {
        if at == step {
            let place = place % flying.message.len();
            flying.message[place] ^= 0x10;
            pair.deliver(&flying);
            break;
        }
        flying = answer(&mut pair, &flying);
    }
    pair.intercept();
    (pair.left.resumed(), pair.right.resumed())
}

/// Rule: whatever anybody changes on the way is seen by the next one who believes it.
// Weakness: 185
#[test]
fn no_changed_octet_is_believed() {
    for place in 0..700 {
        for step in 0..3 {
            // Past the SPI of the initiator, which only says where an answer goes.
            let (left, right) = with_change(step, 8 + place * 3);
            assert_eq!(right, [false], "message {step}, octet {place}");
            assert!(left == [false] || step == 2, "message {step}, {place}");
        }
    }
}

// Weakness: 185
#[test]
fn messages_that_come_back_are_none() {
    let mut pair = lost();
    let request = first(&mut pair);
    let back = |flying: &Flying| Flying {
        to: flying.to.other(),
        path: flying.path.reversed(),
        message: flying.message.clone(),
    };
    pair.deliver(&back(&request));
    assert_eq!(pair.left.resumed(), [false]);
    let response = answer(&mut pair, &request);
    pair.deliver(&back(&response));
    assert_eq!(pair.right.resumed(), [false]);
    let proof = answer(&mut pair, &response);
    pair.deliver(&back(&proof));
    pair.intercept();
    pair.deliver(&proof);
    pair.settle();
    is_resumed(&pair);
}

/// Rule: an entry is good for the exchange that it was made for, and for no other.
// Weakness: 185
#[test]
fn an_entry_of_one_way_is_not_good_for_the_other() {
    for (made, used) in [(Way::Ticket, Way::Skid3), (Way::Skid3, Way::Ticket)] {
        let of = |way| match way {
            Way::Ticket => Resumption::Tickets,
            Way::Skid3 => Resumption::Skid3,
            Way::Skid3Pfs => Resumption::Skid3Pfs,
        };
        let (left, mut right) = resuming((mobile(), gateway()), of(made));
        right.peers[0].resumption = Resumption::Skid3;
        let mut pair = lost_as((left, right.clone()));
        let mut kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
        assert_eq!(kept.keys.way, made);
        let (left, _) = resuming((mobile(), gateway()), Resumption::Skid3);
        pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
        kept.keys.way = used;
        told_of_kept(&mut pair, kept);
        assert_eq!(pair.left.not_resumed(), 1);
        is_one_tunnel(&pair);
    }
}

/// Rule: SK_d cannot be had from an entry.
// Weakness: 185
#[test]
fn an_entry_does_not_open_what_the_lost_session_sent() {
    let pair = connected();
    let sk_d = pair.left.engine.sk_d().to_vec();
    let held = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    assert_ne!(held.keys.secret.expose(), sk_d);
    assert_eq!(
        held.keys.secret,
        pair.right.entries()[0].keys.secret,
        "both ends have the same"
    );
    let with_ticket = connected_as(resuming((mobile(), gateway()), Resumption::Tickets));
    let sk_d = with_ticket.left.engine.sk_d().to_vec();
    let held = with_ticket
        .left
        .engine
        .tickets
        .copy(peer_id("gateway"))
        .unwrap();
    assert_eq!(held.keys.secret.expose(), sk_d, "RFC 5723 keeps SK_d");
}

#[test]
fn each_resumed_session_has_keys_of_its_own() {
    let mut pair = connected();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..4 {
        for half in [&pair.left.child().inbound, &pair.left.child().outbound] {
            assert!(keys_of(half).into_iter().all(|key| seen.insert(key)));
        }
        lose(&mut pair);
        pair.connect();
    }
}

// Weakness: 183
#[test]
fn a_session_that_proves_less_than_is_required_now_is_not_resumed() {
    let changes: [fn(&mut Config); 4] = [
        with_ppk,
        |config| config.peers[0].kems = vec![Some(Kem::MlKem768)],
        |config| config.peers[0].suites = vec![Suite::Aes256Gcm16],
        |config| config.peers[0].psk = Some(Secret::new(vec![9; 32])),
    ];
    for change in changes {
        let mut pair = lost();
        let kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
        let (mut left, mut right) = ends();
        change(&mut left);
        change(&mut right);
        pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
        pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
        let told = told_of_kept(&mut pair, kept);
        assert!(told[0].contains("cannot resume its session"), "{told:?}");
        assert_eq!(pair.left.not_resumed(), 1);
        is_one_tunnel(&pair);
    }
}

/// A reload may come between the answer and the proof.
// Weakness: 183
#[test]
fn what_is_required_is_looked_at_again_when_the_initiator_has_proved_itself() {
    let mut pair = connected();
    lose(&mut pair);
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    let mut off = ends().1;
    off.peers[0].resumption = Resumption::Off;
    pair.with(Side::Right, |engine, now| engine.reconfigure(off, now));
    pair.deliver(&response);
    pair.run_for(CHECK);
    assert!(!pair.right.resumed().contains(&true));
    is_one_tunnel(&pair);
}

#[test]
fn a_ppk_and_an_additional_key_exchange_count_in_a_resumed_session() {
    let (mut left, mut right) = ends();
    for config in [&mut left, &mut right] {
        with_ppk(config);
        config.peers[0].kems = vec![Some(Kem::MlKem768)];
    }
    let mut pair = lost_as((left, right));
    pair.connect();
    is_resumed(&pair);
    for host in [&pair.left, &pair.right] {
        assert!(host.engine.sas().all(|sa| sa.ppk));
        assert_eq!(host.refusals(), Vec::<String>::new());
    }
}

#[test]
fn zones_are_agreed_upon_anew() {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut pair = connected_as(with_skid((left, right)));
    let before = pair.left.child().agreement.clone();
    lose(&mut pair);
    pair.connect();
    is_resumed(&pair);
    assert_eq!(pair.left.child().agreement, before);
    assert!(before.is_some());
}

#[test]
fn the_address_inside_is_the_same_again() {
    let mut pair = connected_as(with_skid((borrower(), lender(&["10.9.0.0/24"]))));
    let before = pair.left.child().local.clone();
    lose(&mut pair);
    pair.connect();
    is_resumed(&pair);
    assert_eq!(pair.left.child().local, before);
}

/// Rule: no address is leased before the initiator is proved, so one without a lease of its own
/// begins in full.
#[test]
fn a_client_whose_address_was_leased_to_another_one_begins_in_full() {
    let mut pair = lost_as(with_skid((borrower(), lender(&["10.9.0.0/24"]))));
    let mut fresh = Host::seeded(with_skid((borrower(), lender(&["10.9.0.0/24"]))).1, 3, 2);
    fresh.engine.set_wall_clock(TODAY);
    std::mem::swap(&mut fresh.engine.tickets, &mut pair.right.engine.tickets);
    fresh.store = pair.right.store.take();
    pair.restart(Side::Right, fresh);
    pair.connect();
    assert_eq!(pair.left.resumed(), [false, false]);
    let refused = |why: &String| why.contains("no free address");
    assert!(
        pair.right.refusals().iter().any(refused),
        "{:?}",
        pair.right.refusals()
    );
    is_one_tunnel(&pair);
}

#[test]
fn a_session_is_resumed_behind_a_nat() {
    let mut pair = connected();
    lose(&mut pair);
    pair.nat = Some(NAT);
    pair.connect();
    is_resumed(&pair);
    let nat = pair.left.engine.sas().next().unwrap().nat;
    assert!(nat.is_some_and(|nat| nat.ours));
}

#[test]
fn a_gateway_under_load_asks_for_a_cookie_here_too() {
    let mut pair = connected();
    lose(&mut pair);
    let mut right = ends().1;
    right.limits.half_open_without_cookie = 0;
    pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
    pair.connect();
    is_resumed(&pair);
    assert_eq!(pair.sent.len(), 6, "one round trip more");
}

/// An entry that the gateway has not issued costs it one MAC.
// Weakness: 181
#[test]
fn a_made_up_reference_is_refused_without_a_look_into_the_store() {
    let mut pair = connected();
    lose(&mut pair);
    let half_open = pair.right.engine.half_open.len();
    let mut held = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    held.ticket[3] ^= 1;
    pair.left.engine.tickets.hold(peer_id("gateway"), held);
    pair.right.store = None;
    pair.initiate(Side::Left);
    pair.settle_one_round();
    assert_eq!(pair.left.not_resumed(), 1);
    assert_eq!(pair.right.engine.half_open.len(), half_open);
    let (asked, answered) = (&pair.sent[0].message, &pair.sent[1].message);
    assert!(answered.len() < asked.len(), "nobody is amplified");
}

/// Whoever has a reference without the keys cannot use it, and does not spoil it.
// Weakness: 181
#[test]
fn a_reference_without_its_keys_admits_nobody_and_stays_good() {
    let mut pair = connected();
    lose(&mut pair);
    let good = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    let mut bad = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    bad.keys.secret = Secret::new(vec![0; 32]);
    pair.left.engine.tickets.hold(peer_id("gateway"), bad);
    let id = pair.initiate(Side::Left);
    pair.deliver_next();
    pair.intercept();
    assert_eq!(pair.right.entries().len(), 1);
    pair.with(Side::Left, |engine, now| engine.close(id, now));
    pair.left.engine.tickets.hold(peer_id("gateway"), good);
    pair.run_for(LONG);
    pair.connect();
    is_resumed(&pair);
}

#[test]
fn peers_without_our_private_numbers_get_tickets() {
    let said = crate::extension::ticket::request(&ends().0.peers[0], false);
    let kinds = |payload: &Payload| match payload {
        Payload::Notify(notify) => notify.kind,
        _ => NotifyType::PRIVATE_ERROR,
    };
    assert_eq!(said.as_ref().map(kinds), Some(NotifyType::TICKET_REQUEST));
    // One end has tickets only, and the other one knows both ways.
    let (mut left, right) = ends();
    left.peers[0].resumption = Resumption::Tickets;
    let mut pair = lost_as((left, right));
    pair.connect();
    is_resumed(&pair);
    assert_eq!(exchanges(&pair)[0], ExchangeType::IKE_SESSION_RESUME);
}

#[test]
fn a_gateway_that_has_tickets_only_gives_nothing_for_skid() {
    let (left, mut right) = ends();
    right.peers[0].resumption = Resumption::Tickets;
    let mut pair = connected_as((left, right));
    assert!(!pair.left.holds_ticket() && pair.right.entries().is_empty());
    lose(&mut pair);
    pair.connect();
    assert_eq!(exchanges(&pair)[0], ExchangeType::IKE_SA_INIT);
}

/// An operator's `down`, and what a peer is redirected to, are told in a full exchange.
#[test]
fn a_peer_that_was_taken_down_is_not_resumed() {
    let mut pair = lost();
    let request = first(&mut pair);
    let response = answer(&mut pair, &request);
    let peer = peer_id("mobile");
    pair.with(Side::Right, |engine, now| engine.bar(peer, true, now));
    pair.deliver(&response);
    pair.run_for(CHECK);
    assert!(!pair.right.resumed().contains(&true));
    assert_eq!(pair.right.up(), 0);
}

#[test]
fn a_session_is_resumed_on_a_network_that_loses_repeats_and_delays() {
    for seed in 0..60 {
        let (left, right) = ends();
        let mut pair = Pair::seeded(left, right, seed);
        set_clocks(&mut pair, TODAY);
        pair.connect();
        lose(&mut pair);
        pair.hop = pair.hop.losing(200).repeating(300).delaying(200);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(400));
        if pair.left.up() == 0 {
            // The proof was lost too often: it is given up like a liveness check.
            pair.initiate(Side::Left);
            pair.run_for(Duration::from_secs(400));
        }
        is_one_tunnel(&pair);
        let sas = [&pair.left, &pair.right].map(|host| host.engine.sas().count());
        assert_eq!(sas, [1, 1], "seed {seed}");
        assert!(pair.right.entries().len() <= 1, "seed {seed}");
    }
}

#[test]
fn a_delete_by_either_end_ends_the_session() {
    for side in [Side::Left, Side::Right] {
        let mut pair = connected();
        assert!(pair.left.holds_ticket());
        pair.with(side, |engine, now| engine.shutdown(now));
        pair.settle();
        assert!(!pair.left.holds_ticket());
        assert_eq!(pair.right.entries().len(), 0);
    }
}

#[test]
fn a_resumed_session_says_so_at_both_ends_and_is_the_same_tunnel() {
    let mut pair = lost();
    pair.connect();
    for host in [&pair.left, &pair.right] {
        let up = |event: &Event| matches!(event, Event::IkeUp { resumed: true, .. });
        assert!(host.events.iter().any(up));
    }
    assert!(fit(pair.left.child(), pair.right.child()));
    lose_both(&mut pair);
}
