//! Datagrams that change nothing on an IKE SA that is up. Anybody who has seen one message can send
//! them in masses, so no state runs for them.

use super::attack::{forgeries, with_request};
use super::fragment::{auth_in_fragments, certified, next_request, up};
use super::pair::{Flying, Pair, Side};
use crate::DropReason;
use crate::sa::protected::OPENED;
use model::CsaId;
use wire::ike::{ExchangeType, Header};

/// Offset of the message ID in a header.
const MESSAGE_ID: usize = 20;

/// Returns the datagram with its last octet changed, which is a part of the ICV.
fn damaged(flying: &Flying) -> Flying {
    let mut damaged = flying.clone();
    *damaged.message.last_mut().unwrap() ^= 1;
    damaged
}

fn with_message_id(flying: &Flying, id: u32) -> Flying {
    let mut other = flying.clone();
    other.message[MESSAGE_ID..][..4].copy_from_slice(&id.to_be_bytes());
    other
}

fn from(flying: &Flying, address: &str) -> Flying {
    let mut other = flying.clone();
    other.path.remote = address.parse().unwrap();
    other
}

/// Returns the numbers of datagrams that were received, accepted, and dropped or answered again,
/// and the number of times that a state ran.
fn counts(pair: &mut Pair, side: Side) -> [u64; 4] {
    let engine = &pair.host(side).engine;
    let counters = engine.counters();
    let dropped = counters.drops().map(|(_, count)| count).sum::<u64>();
    let unused = dropped + counters.answered_again;
    [counters.received, counters.taken, unused, engine.runs]
}

/// Delivers a datagram for which no state may run.
fn screened(pair: &mut Pair, flying: &Flying) {
    let (before, picture) = (counts(pair, flying.to), pair.host(flying.to).picture());
    pair.deliver(flying);
    let [received, taken, unused, runs] = before;
    let expected = [received + 1, taken, unused + 1, runs];
    assert_eq!(counts(pair, flying.to), expected, "{flying:?}");
    assert_eq!(pair.host(flying.to).picture(), picture, "{flying:?}");
}

/// Returns the protected messages that were sent.
fn recorded(pair: &Pair) -> Vec<Flying> {
    let sent = pair.sent.iter();
    let is_protected = |flying: &&Flying| {
        let header = Header::peek(&flying.message).unwrap();
        header.exchange != ExchangeType::IKE_SA_INIT
    };
    sent.filter(is_protected).cloned().collect()
}

// Weakness: 146
#[test]
fn no_state_runs_for_a_message_that_was_received_before() {
    let (mut pair, request) = with_request();
    pair.deliver(&request);
    pair.settle();
    let sa = pair.right.engine.sas().next().unwrap().id;
    pair.with(Side::Right, |engine, now| engine.revoke(sa, CsaId(1), now));
    pair.settle();
    let recorded = recorded(&pair);
    assert!(recorded.len() >= 6);
    for flying in &recorded {
        for _ in 0..100 {
            screened(&mut pair, flying);
            screened(&mut pair, &from(flying, "198.51.100.66:4500"));
        }
    }
}

// Weakness: 146
#[test]
fn no_state_runs_for_a_message_that_is_damaged_or_outside_the_window() {
    let (mut pair, request) = with_request();
    pair.deliver(&request);
    pair.settle();
    for flying in recorded(&pair) {
        screened(&mut pair, &damaged(&flying));
        for id in [0, 1, 2, 3, 4, 1000, u32::MAX] {
            screened(&mut pair, &with_message_id(&damaged(&flying), id));
        }
    }
    for exchange in [ExchangeType::IKE_AUTH, ExchangeType::INFORMATIONAL] {
        for flying in forgeries(&pair, exchange) {
            screened(&mut pair, &flying);
        }
    }
}

/// The source address of a forgery may be that of the peer, so a limit that it could use up would
/// drop the peer's next message.
// Weakness: 146
#[test]
fn forgeries_keep_no_authentic_message_out() {
    for address in ["198.51.100.66:4500", "the peer's own"] {
        let (mut pair, request) = with_request();
        let mut forged = damaged(&request);
        if address.parse::<std::net::SocketAddr>().is_ok() {
            forged = from(&forged, address);
        }
        for _ in 0..1000 {
            screened(&mut pair, &forged);
        }
        assert_eq!(pair.right.dropped(DropReason::BadIcv), 1000);
        pair.deliver(&request);
        let response = pair.intercept().remove(0);
        for _ in 0..1000 {
            screened(&mut pair, &damaged(&response));
        }
        pair.deliver(&response);
        let windows = pair.left.engine.sas().next().unwrap().windows;
        assert_eq!(windows.under_way, 0, "{address}");
        assert_eq!(pair.left.engine.counters().retransmitted, 0);
    }
}

/// Also for the fragments of a message that is not complete.
// Weakness: 146
#[test]
fn no_state_runs_for_a_fragment_that_is_forged_or_was_received_before() {
    let (mut pair, _) = up();
    let (header, like) = next_request(&pair);
    let mut piece = |number| {
        let message = pair
            .left
            .engine
            .seal_piece(&header, (number, 3), vec![0; 9]);
        Flying {
            message: message.unwrap(),
            ..like.clone()
        }
    };
    let pieces = [1, 2, 3].map(&mut piece);
    let runs = pair.right.engine.runs;
    for (place, flying) in pieces.iter().enumerate() {
        pieces
            .iter()
            .for_each(|piece| screened(&mut pair, &damaged(piece)));
        pair.deliver(flying);
        assert_eq!(pair.right.engine.runs, runs + place as u64 + 1);
        pieces[..=place]
            .iter()
            .for_each(|piece| screened(&mut pair, piece));
    }
    assert_eq!(pair.right.engine.counters().reassembled, 1);
}

// Weakness: 146
#[test]
fn no_state_runs_for_the_fragments_of_a_request_that_was_answered() {
    let mut pair = certified();
    let fragments = auth_in_fragments(&mut pair);
    fragments.iter().for_each(|flying| pair.deliver(flying));
    assert_eq!(pair.right.up(), 1);
    for flying in &fragments {
        for _ in 0..20 {
            screened(&mut pair, flying);
            screened(&mut pair, &damaged(flying));
        }
    }
    assert_eq!(pair.right.engine.counters().answered_again, 8);
}

/// Returns the number of decryptions, genuine datagrams and dropped ones while both ends run.
fn decryptions(pair: &mut Pair, run: impl FnOnce(&mut Pair)) -> [u64; 3] {
    let sum = |pair: &mut Pair, which: usize| {
        let sides = [Side::Left, Side::Right];
        sides
            .map(|side| counts(pair, side)[which])
            .iter()
            .sum::<u64>()
    };
    let before = [OPENED.get(), sum(pair, 1), sum(pair, 2)];
    run(pair);
    let after = [OPENED.get(), sum(pair, 1), sum(pair, 2)];
    std::array::from_fn(|which| after[which] - before[which])
}

/// The content goes on from the check to the state.
// Weakness: 161
#[test]
fn each_genuine_message_is_decrypted_once_and_each_forgery_too() {
    let (mut pair, request) = with_request();
    let settled = decryptions(&mut pair, |pair| {
        pair.deliver(&request);
        pair.settle();
    });
    assert!(settled[1] >= 2, "{settled:?}");
    assert_eq!(settled[0], settled[1] + settled[2]);
    let sa = pair.right.engine.sas().next().unwrap().id;
    let ended = decryptions(&mut pair, |pair| {
        pair.with(Side::Right, |engine, now| engine.rekey_ike(sa, now));
        pair.settle();
        let sa = pair.right.engine.sas().next().unwrap().id;
        pair.with(Side::Right, |engine, now| engine.close(sa, now));
        pair.settle();
    });
    assert!(ended[1] >= 6 && ended[2] == 0, "{ended:?}");
    assert_eq!(ended[0], ended[1]);
    let (mut pair, request) = with_request();
    let forged = decryptions(&mut pair, |pair| {
        (0..10).for_each(|_| pair.deliver(&damaged(&request)));
    });
    assert_eq!(forged, [10, 0, 10]);
    // A message in fragments: one decryption for each of them.
    let (mut pair, _) = up();
    let (header, like) = next_request(&pair);
    let fragments = [1, 2, 3].map(|number| {
        let left = &mut pair.left.engine;
        let message = left.seal_piece(&header, (number, 3), vec![0; 9]);
        Flying {
            message: message.unwrap(),
            ..like.clone()
        }
    });
    let opened = decryptions(&mut pair, |pair| {
        fragments.iter().for_each(|fragment| pair.deliver(fragment));
    });
    assert_eq!(opened, [3, 3, 0]);
}
