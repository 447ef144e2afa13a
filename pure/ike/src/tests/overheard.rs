//! Messages and tickets of a session that is resumed, in the hands of an attacker on the way:
//! mixed, sent back, copied, and presented under another name.

use super::certificates::TODAY;
use super::pair::{Flying, Pair, Side};
use super::resumed::{WAYS, answer, copied, first, plain};
use super::ticket::{is_resumed, lost_as, told_of_kept};
use super::*;
use crate::{Config, DropReason, Resumption};
use crypto::UnixTime;
use resumption::{Operation, OperationId, Outcome, Store};

/// An unknown key share: the keys alone do not say whose session it is.
// Weakness: 189
#[test]
fn a_session_is_resumed_under_its_own_identity_only() {
    for way in WAYS {
        let (left, mut right) = plain(way);
        let role = vpn("10.0.0.0/16", "10.8.0.0/24", ZonePolicy::default());
        right.peers.push(peer("other", role));
        right.peers[1].resumption = way;
        let mut pair = lost_as((left.clone(), right));
        let kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
        let secret = kept.keys.secret.clone();
        let other = Config {
            identity: "other.example.net".parse().unwrap(),
            ..left
        };
        pair.with(Side::Left, |engine, now| engine.reconfigure(other, now));
        let told = told_of_kept(&mut pair, kept);
        let others = |why: &String| why.contains("the session belongs to another identity");
        assert!(told.iter().any(others), "{way:?}: {told:?}");
        let entries = pair.right.entries();
        let stays = entries.iter().any(|entry| entry.keys.secret == secret);
        assert!(stays, "nothing is spent");
    }
}

/// Makes the ticket of the client good for nothing.
type Spoil = fn(&mut Pair);

const SPOILS: [Spoil; 4] = [made_up, spent, revoked, ended];

fn made_up(pair: &mut Pair) {
    let mut held = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    held.ticket[31] ^= 1;
    pair.left.engine.tickets.hold(peer_id("gateway"), held);
}

fn spent(pair: &mut Pair) {
    let store = pair.right.store.as_mut().unwrap();
    let handle = *store.iter().next().unwrap().0;
    store.submit(Operation::Take(OperationId(0), handle.into()), TODAY);
    assert_eq!(store.poll(), Some(Outcome::Taken(OperationId(0), true)));
}

fn revoked(pair: &mut Pair) {
    pair.with(Side::Right, |engine, _| engine.end_sessions(None));
}

fn ended(pair: &mut Pair) {
    let later = UnixTime(TODAY.0 + 8 * 3600);
    pair.right.engine.set_wall_clock(later);
}

/// Rule: who has a ticket learns nothing of its entry from the answer, and amplifies nothing.
// Weakness: 189
#[test]
fn the_answer_is_the_same_for_a_ticket_that_is_made_up_spent_revoked_or_ended() {
    for way in WAYS {
        let answers = SPOILS.map(|spoil| {
            let mut pair = lost_as(plain(way));
            spoil(&mut pair);
            let request = first(&mut pair);
            let answer = answer(&mut pair, &request);
            assert!(answer.message.len() < request.message.len(), "{way:?}");
            // Behind the SPIs.
            answer.message[16..].to_vec()
        });
        let is_same = |answer: &Vec<u8>| *answer == answers[0];
        assert!(answers.iter().all(is_same), "{way:?}: {answers:?}");
        let mut good = lost_as(plain(way));
        let request = first(&mut good);
        assert!(!is_same(
            &answer(&mut good, &request).message[16..].to_vec()
        ));
    }
}

/// Two attempts of one client at the same time, with the answers exchanged by an attacker.
// Weakness: 189
#[test]
fn messages_of_one_attempt_are_none_of_another() {
    for way in WAYS {
        let mut pair = lost_as(plain(way));
        let kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
        let one = first(&mut pair);
        let one = answer(&mut pair, &one);
        let id = pair.left.engine.sas().next().unwrap().id;
        pair.with(Side::Left, |engine, now| engine.close(id, now));
        pair.left.engine.tickets.hold(peer_id("gateway"), kept);
        let other = first(&mut pair);
        let other = answer(&mut pair, &other);
        // Each answer with the SPIs of the other attempt.
        let with_spis = |of: &Flying, as_in: &Flying| {
            let mut mixed = of.clone();
            mixed.message[..16].copy_from_slice(&as_in.message[..16]);
            mixed
        };
        let mixed = with_spis(&one, &other);
        pair.deliver(&mixed);
        let wrong = pair.intercept();
        assert_eq!(pair.left.resumed(), [false], "{way:?}");
        match way {
            // Nothing in the answer is proved. The keys that come of it are others.
            Resumption::Tickets => {
                pair.deliver(&wrong[0]);
                assert_eq!(pair.right.dropped(DropReason::BadIcv), 1);
            }
            Resumption::Skid3 | Resumption::Skid3Pfs | Resumption::Off => {
                assert_eq!(wrong.len(), 0);
                let proof = answer(&mut pair, &other);
                let elsewhere = with_spis(&proof, &one);
                pair.deliver(&elsewhere);
                assert_eq!(pair.right.dropped(DropReason::BadIcv), 1);
                assert_eq!(pair.right.resumed(), [false]);
                pair.deliver(&proof);
                pair.settle();
                is_resumed(&pair);
            }
        }
        assert_eq!(pair.right.entries().len(), 1);
    }
}

/// Rule: AUTH of each end covers its first message octet by octet, although that is clear.
// Weakness: 189
#[test]
fn no_changed_octet_of_the_first_messages_of_a_ticket_is_believed() {
    for step in 0..2 {
        let mut place = 8;
        loop {
            let mut pair = lost_as(plain(Resumption::Tickets));
            let mut flying = first(&mut pair);
            if step == 1 {
                flying = answer(&mut pair, &flying);
            }
            let Some(octet) = flying.message.get_mut(place) else {
                break;
            };
            *octet ^= 0x10;
            pair.deliver(&flying);
            pair.settle();
            let which = format!("message {step}, octet {place}");
            assert!(!pair.left.resumed().contains(&true), "{which}");
            assert!(
                step == 1 || !pair.right.resumed().contains(&true),
                "{which}"
            );
            place += 1;
        }
    }
}

// Weakness: 189
#[test]
fn messages_of_a_ticket_that_come_back_are_none() {
    let mut pair = lost_as(plain(Resumption::Tickets));
    let back = |flying: &Flying| Flying {
        to: flying.to.other(),
        path: flying.path.reversed(),
        message: flying.message.clone(),
    };
    let mut flying = first(&mut pair);
    for _ in 0..3 {
        let states = [pair.left.picture(), pair.right.picture()];
        pair.deliver(&back(&flying));
        assert!(pair.intercept().is_empty());
        assert_eq!([pair.left.picture(), pair.right.picture()], states);
        flying = answer(&mut pair, &flying);
    }
    pair.deliver(&flying);
    is_resumed(&pair);
    // An answer with the client's own nonce.
    let mut pair = lost_as(plain(Resumption::Tickets));
    let request = first(&mut pair);
    let mut mirrored = request.clear();
    mirrored.header.flags.initiator = false;
    mirrored.header.flags.response = true;
    mirrored.header.spi_r = 7;
    let mirrored = Flying {
        message: mirrored.encode(),
        ..back(&request)
    };
    pair.deliver(&mirrored);
    assert_eq!(pair.left.dropped(DropReason::Reflected), 1);
    assert!(pair.is_quiet());
}

/// An overheard ticket can be presented in any number of first messages.
// Weakness: 181
#[test]
fn copies_of_a_ticket_are_read_in_the_store_a_few_times_in_ten_seconds() {
    for way in WAYS {
        let (left, mut right) = plain(way);
        right.limits.half_open.total = 100;
        right.limits.half_open.per_host = 10;
        right.limits.half_open_without_cookie = 100;
        right.limits.half_open_per_host_without_cookie = 10;
        let mut pair = lost_as((left, right));
        let request = first(&mut pair);
        let mut reads = 0;
        for n in 0..5000_u32 {
            let copy = copied(&request, n + 1, n / 20);
            let (engine, now) = (&mut pair.right.engine, pair.now);
            engine.handle_datagram(copy.path, &copy.message, now);
            while let Some(operation) = engine.poll_store() {
                assert!(matches!(operation, Operation::Read(..)), "{operation:?}");
                reads += 1;
            }
        }
        assert_eq!(reads, 3, "{way:?}");
        assert_eq!(pair.right.engine.half_open.len(), 3, "{way:?}");
        pair.trace.adopt(Side::Right, &pair.right.engine);
        // The owner returns a cookie.
        pair.deliver(&request);
        pair.settle();
        is_resumed(&pair);
    }
}

/// The store of a gateway is slow, and the client repeats its proof.
// Weakness: 180
#[test]
fn a_proof_that_is_repeated_while_the_store_is_asked_takes_nothing_twice() {
    for way in WAYS {
        let mut pair = lost_as(plain(way));
        let request = first(&mut pair);
        let response = answer(&mut pair, &request);
        let proof = answer(&mut pair, &response);
        let (engine, now) = (&mut pair.right.engine, pair.now);
        let mut taken = Vec::new();
        for _ in 0..5 {
            engine.handle_datagram(proof.path, &proof.message, now);
            taken.extend(std::iter::from_fn(|| engine.poll_store()));
        }
        assert!(
            matches!(taken[..], [Operation::Take(..)]),
            "{way:?}: {taken:?}"
        );
        let Operation::Take(id, handle) = taken.remove(0) else {
            panic!("see above");
        };
        let store = pair.right.store.as_mut().unwrap();
        store.submit(Operation::Take(id, handle), TODAY);
        let outcome = store.poll().unwrap();
        pair.store_answers(Side::Right, outcome.clone());
        pair.store_answers(Side::Right, outcome);
        pair.settle();
        is_resumed(&pair);
    }
}
